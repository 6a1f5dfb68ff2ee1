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
    """Return a table without constant columns, and with missing cells handled.

    ``handling`` is one of :data:`HANDLING`. Messages advise to have cells filled in if
    the method ``fills`` them.
    """
    if handling == "auto":
        handling = "fit" if fills else "drop"
    cells = examine(table)
    bad = np.flatnonzero((cells.high == np.inf) | (cells.low == -np.inf))
    if len(bad) and not (table.on_disk or table.is_sparse):
        place = table.place(int(np.isinf(table.X[:, bad[0]]).argmax()))
        raise ValueError(
            f"{table.source} holds infinity in {place}, column "
            f"{quote(table.column_names[bad[0]])}; write a number, or nothing."
        )
    complete = _handle_missing(table, request, handling, cells, fills)
    if complete.X is not table.X and not table.on_disk:
        cells = examine(complete)
    # Columns of a model stay as they are, and one row says nothing about them.
    stays = request.features is not None or complete.X.shape[0] < 2
    return complete if stays else _without_constants(complete, cells)


def _handle_missing(
    table: Table, request: Request, handling: str, cells: Cells, fills: bool
) -> Table:
    """Refuse missing cells, fill them in, or leave out the rows that have them."""
    if table.counts_words:
        return table if request.features else _with_words(table, handling)
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
    if handling == "zero":
        if table.on_disk:
            raise ValueError(
                f"{source}: --missing zero takes a table that is in memory; raise "
                "--memory, or write the zeros to the file."
            )
        as_fit = ", as the fit did" * getattr(request.fit, "empty_is_zero", False)
        note = Note(f"Read {counted(n_gaps, 'missing cell')} as 0{as_fit}.")
        return table.noting(note, X=np.nan_to_num(table.X, nan=0.0))
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


def _without_constants(table: Table, cells: Cells) -> Table:
    """Leave out columns that say nothing, and refuse data in which nothing is left.

    A constant adds the same direction to every row, and drowns what rows differ in.
    """
    low, names = cells.low, table.column_names
    same = low >= cells.high  # a column without a number counts as such
    if table.is_sparse:
        same &= low != 0  # what is not stored does no harm
    left_out = dict(table.left_out)
    for j in np.flatnonzero(same):
        is_empty = np.isinf(low[j])
        left_out[names[j]] = "empty" if is_empty else f"constant: {low[j]:.6g}"
    kept = np.flatnonzero(~same)
    if len(kept) < 2 <= len(same) or len(same) == 1:
        left = f"only column {quote(names[kept[0]])}" if len(kept) else "no column"
        raise ValueError(
            f"{table.source}: {left} is left to cluster by. Rows are told apart by "
            "their pattern over several columns; with one, they are all multiples of "
            "each other. Give data with at least two columns of numbers. "
            f"{left_out_note(left_out)}".rstrip()
        )
    if not same.any():
        return table
    return replace(table.keep_columns(kept), left_out=left_out)
