"""Cells without a number, and columns that say the same in every row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ihgmm.cli.tables.columns import left_out_note
from ihgmm.cli.tables.table import Note, Request, Table, quote
from ihgmm.words.phrases import counted, listed, percent

HANDLING = ("auto", "fit", "zero", "drop", "error")
MANY = 0.2  # the share of cells or rows from which results may not represent the data


@dataclass(frozen=True)
class Cells:
    """Gaps and ranges of a table."""

    incomplete: np.ndarray  # which rows lack cells
    gaps: np.ndarray  # how many cells each column lacks
    low: np.ndarray  # the smallest number of each column, infinite if there is none
    high: np.ndarray


def examine(table: Table) -> Cells:
    """Look at every cell of a table, in one pass if it is on disk."""
    from ihgmm.estimators.column_scaler import column_ranges

    blocks: Any = [table.X]
    if table.on_disk:
        blocks = table.X.map(lambda block: block.array)
    parts = []
    for X in blocks:
        gaps = np.zeros(X.shape[0], bool), np.zeros(X.shape[1], int)
        if not table.is_sparse:  # else the estimator names the place of a NaN
            missing = np.isnan(X)
            gaps = missing.any(axis=1), missing.sum(axis=0)
        parts.append((*gaps, *column_ranges(X)))
    incomplete, gaps, low, high = zip(*parts, strict=True)
    ends = [np.min(low, axis=0), np.max(high, axis=0)]
    return Cells(np.concatenate(incomplete), np.sum(gaps, axis=0), *ends)


def complete_table(table: Table, request: Request, handling: str, fills: bool) -> Table:
    """Return a table without columns that say nothing, and with missing cells handled.

    ``handling`` is one of :data:`HANDLING`. Messages advise to have cells filled in if
    the method ``fills`` them.
    """
    if handling == "auto":
        handling = "fit" if fills else "drop"
    if table.counts_words and not request.features:
        table = _with_words(table, handling)
    cells = examine(table)
    bad = np.flatnonzero((cells.high == np.inf) | (cells.low == -np.inf))
    if len(bad) and not (table.on_disk or table.is_sparse):
        place = table.place(int(np.isinf(table.X[:, bad[0]]).argmax()))
        raise ValueError(
            f"{table.source} holds infinity in {place}, column "
            f"{quote(table.column_names[bad[0]])}; write a number, or nothing."
        )
    if handling == "zero" and cells.incomplete.any():
        table = _with_zeros(table, request, cells)
        cells = examine(table)
    chosen = _telling_columns(table, request, cells)
    if chosen.X is not table.X:
        cells = examine(chosen)
    complete = _handle_missing(chosen, request, handling, cells, fills)
    if complete.X is chosen.X or complete.on_disk:
        return complete
    return _telling_columns(complete, request, examine(complete))


def _with_zeros(table: Table, request: Request, cells: Cells) -> Table:
    """Return a table whose missing cells are 0."""
    if table.on_disk:
        raise ValueError(
            f"{table.source}: --missing zero takes a table that is in memory; raise "
            "--memory, or write the zeros to the file."
        )
    as_fit = ", as the fit did" * getattr(request.fit, "empty_is_zero", False)
    count = counted(int(cells.gaps.sum()), "missing cell")
    note = Note(f"Read {count} as 0{as_fit}.")
    return table.noting(note, X=np.nan_to_num(table.X, nan=0.0))


def _handle_missing(
    table: Table, request: Request, handling: str, cells: Cells, fills: bool
) -> Table:
    """Refuse missing cells, fill them in, or leave out the rows that have them."""
    rows, gaps, source = cells.incomplete, cells.gaps, table.source
    n, count, n_gaps = len(rows), int(rows.sum()), int(gaps.sum())
    if count == 0:
        return table
    worst = [j for j in np.argsort(-gaps, kind="stable")[:3] if gaps[j]]
    shown = [f"{quote(table.column_names[j])} ({gaps[j]:,})" for j in worst]
    more = " and others" * bool(gaps[worst].sum() < n_gaps)
    where = f"in column{'s' * (len(worst) > 1)} {', '.join(shown)}{more}"
    if handling == "fit":
        share = n_gaps / (n * len(gaps))
        cells_filled = f"{counted(n_gaps, 'missing cell')} ({percent(share)})"
        remedy = "If an empty cell means none, add --missing zero."
        note = Note(f"Filled in {cells_filled}, {where}.", remedy, loud=share > MANY)
        return table.noting(note, has_missing=True)
    cures = ["--missing fit to have them filled in"] * fills
    cures.append("--missing zero if an empty cell means none")
    cures += ["--missing drop to leave those rows out"] * (handling == "error")
    if request.features is None:  # a model has its columns
        cures.append("--drop-columns to leave out such columns")
    remedy = listed(cures, "or")
    if handling == "error":
        raise ValueError(
            f"{source}: {count:,} of {n:,} rows have missing cells, {where}; the first "
            f"is in {table.place(int(rows.argmax()))}. Add {remedy}."
        )
    if count == n:
        raise ValueError(
            f"{source}: every row has a missing cell, {where}. Add {remedy}."
        )
    is_many = count > MANY * n
    text = f"Left out {count:,} of {n:,} rows, with missing cells {where}."
    cure = f"To keep more rows, add {remedy}." * is_many
    note = Note(text, cure, loud=is_many, in_quiet=True)
    return table.keep_rows(np.flatnonzero(~rows)).noting(note)


def _with_words(table: Table, handling: str) -> Table:
    """Leave out texts that are empty, or have no word of another, or refuse them."""
    counts = np.diff(table.X.indptr)
    bare = np.flatnonzero(counts == 0)
    if len(bare) == 0:
        return table
    what = f"{counted(len(bare), 'text')} without a word that another has"
    which = f"the first is in {table.place(bare[0])}"
    if handling == "error":
        raise ValueError(
            f"{table.source} has {what}, {which}. Add --missing drop to leave them out."
        )
    note = Note(f"Left out {what}, {which}.", loud=True)
    return table.keep_rows(np.flatnonzero(counts)).noting(note)


def _telling_columns(table: Table, request: Request, cells: Cells) -> Table:
    """Leave out columns that say nothing, and refuse data in which nothing is left.

    A constant adds the same direction to every row, and drowns what rows differ in. Of
    a column that is more than half empty, most would be made up. It stays if it is
    asked for, or if most columns are like this, as in a table of ratings.
    """
    n, names, low = table.X.shape[0], table.column_names, cells.low
    # Columns of a model stay as they are, and one row says nothing about them.
    if request.features is not None or n < 2:
        return table
    same = low >= cells.high  # a column without a number counts as such
    if table.is_sparse:
        same &= low != 0  # what is not stored does no harm
    thin = 2 * cells.gaps > n
    if request.columns or 2 * (thin & ~same).sum() > (~same).sum():
        thin = np.zeros_like(same)
    left_out = dict(table.left_out)
    for j in np.flatnonzero(same | thin):
        reason = f"{percent(cells.gaps[j] / n)} of it empty"
        if same[j]:
            reason = "empty" if np.isinf(low[j]) else f"constant: {low[j]:.6g}"
        left_out[names[j]] = reason
    kept = np.flatnonzero(~(same | thin))
    if len(kept) < 2 <= len(same) or len(same) == 1:
        left = f"only column {quote(names[kept[0]])}" if len(kept) else "no column"
        raise ValueError(
            f"{table.source}: {left} is left to cluster by. Rows are told apart by "
            "their pattern over several columns; with one, they are all multiples of "
            "each other. Give data with at least two columns of numbers, or name such "
            f"columns with --columns. {left_out_note(left_out)}".rstrip()
        )
    if len(kept) == len(same):
        return table
    return replace(table.keep_columns(kept), left_out=left_out)
