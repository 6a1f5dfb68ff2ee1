"""Missing cells of a table: refused, filled in, taken for 0, or their rows left out."""

from dataclasses import replace

import numpy as np

from ihgmm.cli.tables import notes
from ihgmm.cli.tables.names import quote
from ihgmm.cli.tables.preparation.constants import without_constants
from ihgmm.cli.tables.request import Request
from ihgmm.cli.tables.table import CellSummary, Table
from ihgmm.words.phrases import counted

MANY = 0.2  # the share of cells or rows from which results may not represent the data


def complete_table(
    table: Table, request: Request, handling: str, *, model_fills_cells: bool
) -> Table:
    """Return columns that say something, with missing cells handled in such a way."""
    if handling == "auto":
        handling = "fit" if model_fills_cells else "drop"

    table = _without_wordless_texts(table, request, handling)
    _refuse_infinity(table)
    if handling == "zero":
        table = _zeros_for_missing(table, request)

    table = without_constants(table, request)
    if not table.cells.is_incomplete_row.any():
        return table
    if handling == "fit":
        return _left_to_the_model(table, request)
    complete = _without_incomplete_rows(table, handling, model_fills_cells)
    # Of fewer rows, other columns may say the same.
    return without_constants(complete, request, where=" in the rows that are left")


def _without_wordless_texts(table: Table, request: Request, handling: str) -> Table:
    """Leave out texts without a word that another has; a model takes them all."""
    if not table.has_texts or request.features:
        return table
    n_words = np.diff(table.X.indptr)  # (n_texts,)
    if n_words.all():
        return table

    n_wordless = int((n_words == 0).sum())
    first = table.rows.place(int(n_words.argmin()))
    texts = f"{counted(n_wordless, 'text')} without a word that another has, the first "
    texts += f"is in {first}"

    if handling == "error":
        raise ValueError(
            f"{table.source} has {texts}. Add --missing drop to leave them out."
        )

    table = table.keep_rows(np.flatnonzero(n_words))
    return table.with_notes(notes.wordless_texts(texts))


def _refuse_infinity(table: Table) -> None:
    """Raise if a cell of an array is infinite; of other data the estimator says so."""
    if table.is_on_disk or table.is_sparse:
        return

    cells = table.cells
    has_infinity = (cells.maxima == np.inf) | (cells.minima == -np.inf)
    if has_infinity.any():
        column = int(has_infinity.argmax())
        row = int(np.isinf(table.X[:, column]).argmax())
        raise ValueError(
            f"{table.source} holds infinity in {table.rows.place(row)}, column "
            f"{quote(table.column_names[column])}; write a number."
        )


def _zeros_for_missing(table: Table, request: Request) -> Table:
    """Take missing cells for 0."""
    n_missing = table.cells.n_missing_cells
    if n_missing == 0:
        return table
    if table.is_on_disk:
        raise ValueError("--missing zero takes a table in memory; raise --memory.")

    as_fit = getattr(request.fit, "empty_is_zero", False)
    table = table.with_notes(notes.missing_as_zero(n_missing, as_fit))
    return replace(table, X=np.nan_to_num(table.X, nan=0.0))


def _left_to_the_model(table: Table, request: Request) -> Table:
    """Leave missing cells for the model to fill in, and say how many there are."""
    cells = table.cells
    n_rows, n_columns = table.X.shape
    share = cells.n_missing_cells / (n_rows * n_columns)

    note = notes.cells_filled_in(
        cells.n_missing_cells,
        share,
        where=_where_cells_are_missing(table, cells),
        names_zero=request.features is None,  # a model reads its cells as the fit did
        is_warning=share > MANY,
    )
    return replace(table.with_notes(note), has_missing=True)


def _without_incomplete_rows(
    table: Table, handling: str, model_fills_cells: bool
) -> Table:
    """Leave out rows with missing cells; raise if that is unwanted, or leaves none."""
    cells = table.cells
    is_incomplete = cells.is_incomplete_row
    n_rows = len(is_incomplete)
    n_incomplete = int(is_incomplete.sum())
    where = _where_cells_are_missing(table, cells)

    remedy = "--missing "
    if model_fills_cells:
        remedy += "fit fills them in, "
    remedy += "zero reads them as 0"
    if handling == "error":
        remedy += ", drop leaves out their rows"
    remedy += "; or leave out such columns."

    if handling == "error" or n_incomplete == n_rows:
        first = table.rows.place(int(is_incomplete.argmax()))
        raise ValueError(
            f"{table.source}: {n_incomplete:,} of {n_rows:,} rows have missing cells, "
            f"{where}; the first is in {first}. {remedy}"
        )

    note = notes.incomplete_rows(
        n_incomplete,
        n_rows,
        where,
        remedy=remedy if n_incomplete > MANY * n_rows else "",
    )
    return table.keep_rows(np.flatnonzero(~is_incomplete)).with_notes(note)


def _where_cells_are_missing(table: Table, cells: CellSummary) -> str:
    """Return the columns in which most cells are missing, three at most."""
    most_first = np.argsort(-cells.n_missing, kind="stable")
    columns = [column for column in most_first if cells.n_missing[column]]

    names = table.column_names
    counts = [
        f"{quote(names[column])} ({cells.n_missing[column]:,})"
        for column in columns[:3]
    ]

    where = "in column " if len(columns) == 1 else "in columns "
    where += ", ".join(counts)
    if len(columns) > 3:
        where += f" and {len(columns) - 3} more"
    return where
