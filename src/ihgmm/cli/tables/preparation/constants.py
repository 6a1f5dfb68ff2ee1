"""Columns that say nothing: constants, empty ones, and those that are nearly empty."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ihgmm.cli.tables import notes
from ihgmm.cli.tables.names import quote
from ihgmm.cli.tables.request import Request
from ihgmm.cli.tables.table import Table
from ihgmm.words.phrases import percent


def without_constants(table: Table, request: Request, where: str = "") -> Table:
    """Leave out columns that say nothing, and refuse data in which nothing is left.

    ``where`` says of which rows constants are constant, if not of all.
    """
    n_rows, n_columns = table.X.shape
    # Columns of a model stay as they are, and one row says nothing about them.
    if request.features is not None or n_rows < 2:
        return table

    cells = table.cells
    # A constant adds the same direction to every row, and drowns what rows differ in;
    # so is a column without a number. What is sparse and not stored does no harm.
    is_constant = cells.minima >= cells.maxima
    if table.is_sparse:
        is_constant &= cells.minima != 0

    # Most of a column that is more than half empty would be made up. It stays if it is
    # asked for, or if most columns are like this, as in a table of ratings.
    is_thin = ~is_constant & (2 * cells.n_missing > n_rows)
    if request.columns or 2 * is_thin.sum() > (~is_constant).sum():
        is_thin[:] = False

    names = table.column_names
    left_out = dict(table.left_out)
    for column in np.flatnonzero(is_constant | is_thin):
        value = cells.minima[column]
        reason = f"constant{where}: {value:.6g}"
        if is_thin[column]:
            reason = f"{percent(cells.n_missing[column] / n_rows)} of it empty"
        elif np.isinf(value):
            reason = "empty"
        left_out[names[column]] = reason

    kept_columns = np.flatnonzero(~(is_constant | is_thin))
    if n_columns == 1 or len(kept_columns) < 2 <= n_columns:
        kept_names = [names[column] for column in kept_columns]
        raise _too_few_columns(table.source, kept_names, left_out)

    if len(kept_columns) == n_columns:
        return table
    return replace(table.keep_columns(kept_columns), left_out=left_out)


def _too_few_columns(
    source: str, names: Sequence[str], left_out: Mapping[str, str]
) -> ValueError:
    """Return the error that rows have no pattern over so few columns."""
    what_is_left = f"only column {quote(names[0])}" if names else "no column"
    reasons = " ".join(map(str, notes.columns_left_out(left_out)))
    text = (
        f"{source}: {what_is_left} is left to cluster by. Rows are told apart by their "
        "pattern over several columns: give at least two columns of numbers, or name "
        f"such columns with --columns. {reasons}"
    )
    return ValueError(text.rstrip())
