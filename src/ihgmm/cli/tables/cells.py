"""What is in the cells of a table: gaps, and columns that say the same in every row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ihgmm.cli.tables.columns import left_out_note
from ihgmm.cli.tables.table import Request, Table, quote
from ihgmm.matrix.delimited import place_names
from ihgmm.words.phrases import counted


@dataclass(frozen=True)
class Cells:
    """Gaps and ranges of a table."""

    incomplete: np.ndarray  # which rows lack cells
    gaps: np.ndarray  # how many cells each column lacks
    low: np.ndarray  # the smallest number of each column, infinite if there is none
    high: np.ndarray


def examine(table: Table) -> Cells:
    """Look at every cell of a table, in one pass if it is on disk."""
    if not table.on_disk:
        return examine_block(table.X, table.is_sparse)
    blocks = list(
        table.X.map(lambda block: examine_block(block.array, table.is_sparse))
    )
    return Cells(
        np.concatenate([block.incomplete for block in blocks]),
        np.sum([block.gaps for block in blocks], axis=0),
        np.min([block.low for block in blocks], axis=0),
        np.max([block.high for block in blocks], axis=0),
    )


def examine_block(X: Any, is_sparse: bool) -> Cells:
    """Look at every cell of an array, or of a sparse one."""
    if is_sparse:
        # The estimator names the place of a NaN in sparse data.
        low, high = (_dense(bound(axis=0)) for bound in (X.min, X.max))
        return Cells(np.zeros(X.shape[0], bool), np.zeros(X.shape[1], int), low, high)
    missing = np.isnan(X)
    low = np.min(X, axis=0, where=~missing, initial=np.inf)
    high = np.max(X, axis=0, where=~missing, initial=-np.inf)
    return Cells(missing.any(axis=1), missing.sum(axis=0), low, high)


def _dense(row: Any) -> np.ndarray:
    return np.asarray(row.toarray()).ravel()


def refuse_infinity(table: Table, cells: Cells) -> None:
    """Raise if a cell of a table in memory is infinite, and say where it is.

    Estimators say where it is in data on disk, and in arrays without names.
    """
    # A column without a number has the bounds inf and -inf.
    wrong = (cells.high == np.inf) | (cells.low == -np.inf)
    if table.on_disk or not table.is_mixed or not wrong.any():
        return
    column = int(wrong.argmax())
    row = int(np.isinf(table.X[:, column]).argmax())
    name = quote(table.column_names[column])
    raise ValueError(
        f"{table.source}: column {name} holds {table.X[row, column]:g}, the first is "
        f"in {table.place(row)}. Mend the file, or leave the column out: "
        f"--drop-columns {name}."
    )


def leave_out_constants(table: Table, request: Request, cells: Cells) -> Table:
    """Leave out columns that say nothing, and refuse data in which nothing is left.

    A constant adds the same direction to every row, and drowns what rows differ in.
    Columns of a model stay as they are, and one row says nothing about them.
    """
    if request.features is not None or table.X.shape[0] < 2:
        return table
    same = cells.low >= cells.high  # a column without a number counts as such
    if table.is_sparse:
        same &= cells.low != 0  # what is not stored does no harm
    names = table.names or place_names(table.X.shape[1])
    left_out = table.left_out | {
        names[j]: f"constant: {cells.low[j]:.6g}"
        if np.isfinite(cells.low[j])
        else "empty"
        for j in np.flatnonzero(same)
    }
    kept = np.flatnonzero(~same)
    if len(kept) < 2 <= len(same) or len(same) == 1:
        left = (
            f"only column {quote(names[kept[0]])} is" if len(kept) else "no column is"
        )
        told = f" {left_out_note(left_out)}" if left_out else ""
        raise ValueError(
            f"{request.source}: {left} left to cluster by. Rows are told apart by "
            "their pattern over several columns; with one, they are all multiples of "
            f"each other. Give data with at least two columns of numbers.{told}"
        )
    if not same.any():
        return table
    lines = table.python
    if lines:
        places = [int(j) for j in np.flatnonzero(same)]
        dropped = f"columns=X.columns[{places}]"
        lines = (*lines, f"X = X.drop({dropped})  # {counted(len(places), 'constant')}")
        if not table.is_mixed:
            lines = (*table.python, f"X = X[:, {[int(j) for j in kept]}]")
    return replace(table.keep_columns(kept), left_out=left_out, python=lines)
