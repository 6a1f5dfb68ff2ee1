"""Cells without a number, and columns that say the same in every row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ihgmm.cli.tables.columns import left_out_note
from ihgmm.cli.tables.table import Note, Request, Table, quote
from ihgmm.words.phrases import counted, listed, percent

HANDLING = ("auto", "fit", "zero", "drop", "error")


@dataclass(frozen=True)
class Cells:
    """Gaps and ranges of a table."""

    incomplete: np.ndarray  # which rows lack cells
    gaps: np.ndarray  # how many cells each column lacks
    low: np.ndarray  # the smallest number of each column, infinite if there is none
    high: np.ndarray


def examine(table: Table, learn: Callable[[Any], Any] | None = None) -> Cells:
    """Look at every cell of a table, in one pass if it is on disk.

    All rows are handed to ``learn`` on the way.
    """
    blocks: Any = [table.X]
    if table.on_disk:
        blocks = table.X.map(lambda block: block.array)
    parts = []
    for X in blocks:
        if learn is not None:
            learn(X)
        if table.is_sparse:  # the estimator names the place of a NaN
            low, high = (bound(axis=0).toarray().ravel() for bound in (X.min, X.max))
            gaps = np.zeros(X.shape[0], bool), np.zeros(X.shape[1], int)
        else:
            missing = np.isnan(X)
            low = np.min(X, axis=0, where=~missing, initial=np.inf)
            high = np.max(X, axis=0, where=~missing, initial=-np.inf)
            gaps = missing.any(axis=1), missing.sum(axis=0)
        parts.append(Cells(*gaps, low, high))
    return Cells(
        np.concatenate([part.incomplete for part in parts]),
        np.sum([part.gaps for part in parts], axis=0),
        np.min([part.low for part in parts], axis=0),
        np.max([part.high for part in parts], axis=0),
    )


def refuse_infinity(table: Table, cells: Cells) -> None:
    """Raise if a cell in memory is infinite, and say where it stands."""
    bad = np.flatnonzero((cells.high == np.inf) | (cells.low == -np.inf))
    if len(bad) and not (table.on_disk or table.is_sparse):
        place = table.place(int(np.isinf(table.X[:, bad[0]]).argmax()))
        raise ValueError(
            f"{table.source} holds infinity in {place}, column "
            f"{quote(table.column_names[bad[0]])}; write a number, or nothing."
        )


def handle_missing(
    table: Table, request: Request, handling: str, cells: Cells, *, fills: bool
) -> Table:
    """Refuse missing cells, fill them in, or leave out the rows that have them.

    ``handling`` is one of :data:`HANDLING` but ``"auto"``. Messages advise to have
    cells filled in if the method ``fills`` them.
    """
    if table.counts_words:
        return table if request.features else _with_words(table, handling)
    rows, gaps = cells.incomplete, cells.gaps
    n, count, n_gaps = len(rows), int(rows.sum()), int(gaps.sum())
    if count == 0:
        return table
    where, worst = _places(table, gaps)
    if handling == "fit":
        part = n_gaps / (n * len(gaps))
        text = (
            f"Filled in {counted(n_gaps, 'missing cell')} ({percent(part)}), {where}."
        )
        # Beyond a fifth, results may not represent the data.
        remedy = "If an empty cell means none, add --missing zero."
        return table.noting(Note(text, remedy, loud=part > 0.2), has_missing=True)
    if handling == "zero":
        if table.on_disk:
            raise ValueError(
                f"{table.source}: --missing zero takes a table that is in memory; "
                "raise --memory, or write the zeros to the file."
            )
        was_zero = request.fit is not None and request.fit.empty_is_zero
        as_fit = ", as the fit did" * was_zero
        note = Note(f"Read {counted(n_gaps, 'missing cell')} as 0{as_fit}.")
        return table.noting(note, X=np.nan_to_num(table.X, nan=0.0))
    remedies = ["--missing fit to have them filled in"] * fills
    remedies.append("--missing zero if an empty cell means none")
    # A model has its columns: none can be left out, nor can one without a name.
    has_cure = worst and not request.features
    cure = [f"--drop-columns to leave out {worst}"] * bool(has_cure)
    if handling == "error":
        drop = "--missing drop to leave those rows out"
        raise ValueError(
            f"{request.source}: {count:,} of {n:,} rows have missing cells, {where}; "
            f"the first is in {table.place(int(rows.argmax()))}. Add "
            f"{listed([*remedies, drop, *cure], 'or')}."
        )
    cures = listed([*remedies, *cure], "or")
    if count == n:
        raise ValueError(
            f"{request.source}: every row has a missing cell, {where}. Add {cures}."
        )
    note = Note(f"Left out {counted(count, 'row')} with missing cells.", in_quiet=True)
    if count > 0.2 * n:  # so many that results may not represent the data
        share = f"{count:,} of {n:,} rows ({count / n:.0%})"
        text = f"Left out {share} with missing cells, {where}."
        note = Note(text, f"To keep more rows, add {cures}.", loud=True)
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


def _places(table: Table, gaps: np.ndarray, most: int = 3) -> tuple[str, str]:
    """Return where cells are missing, and the column that lacks most, if one does."""
    total, worst = int(gaps.sum()), np.argsort(-gaps, kind="stable")[:most]
    worst = worst[gaps[worst] > 0]
    names = table.names
    shown = [quote(names[j]) if names else f"number {j + 1}" for j in worst]
    if 2 * gaps[worst[0]] > total:
        share = "all" if gaps[worst[0]] == total else "most"
        column = shown[0] if names and len(names) > 1 else ""
        return f"{share} of them in column {shown[0]}", column
    counts = (f"{name} ({n:,})" for name, n in zip(shown, gaps[worst], strict=True))
    more = " and others" * (int(gaps[worst].sum()) < total)
    return f"in columns {', '.join(counts)}{more}", ""


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
    names = table.column_names
    left_out = table.left_out | {
        names[j]: f"constant: {cells.low[j]:.6g}"
        if np.isfinite(cells.low[j])
        else "empty"
        for j in np.flatnonzero(same)
    }
    kept = np.flatnonzero(~same)
    if len(kept) < 2 <= len(same) or len(same) == 1:
        left = f"only column {quote(names[kept[0]])}" if len(kept) else "no column"
        raise ValueError(
            f"{request.source}: {left} is left to cluster by. Rows are told apart by "
            "their pattern over several columns; with one, they are all multiples of "
            "each other. Give data with at least two columns of numbers. "
            f"{left_out_note(left_out)}".rstrip()
        )
    if not same.any():
        return table
    return replace(table.keep_columns(kept), left_out=left_out)
