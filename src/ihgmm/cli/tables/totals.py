"""Totals of a spreadsheet: a row or a column that adds up the others.

A total is told by its numbers alone, never by its name. So it has to be so exact, in so
many cells, that chance cannot explain it. Cells that are missing count for nothing, as
they do where a spreadsheet adds up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ihgmm.cli.tables.columns import Origin, choose_columns
from ihgmm.cli.tables.table import Note, Request, Table, quote
from ihgmm.words.phrases import counted

# A sum has at least so many parts. One of two may be a quantity of its own: sales are
# costs and profit.
LEAST_PARTS = 3
# The probability below which a sum is no coincidence: one table in a million.
CHANCE = 1e-6
LARGEST_UNIT = 0.1  # of numbers that may have been rounded: they have decimals

# What a row is.
SUM, MEAN = "is the sum of all other rows", "is the mean of all other rows"
NO_NUMBER = "has no number"


def choose_observations(arrow: Any, request: Request, origin: Origin) -> Table:
    """Make a table as :func:`choose_columns` does, of rows that are observations.

    Totals, subtotals and averages are none, and their size drowns the others. Neither
    are empty rows, nor rows without a number at the end: footnotes, or totals whose
    formulas were saved without a value. They are left out before columns are judged,
    since the word Total may stand among the ids. A model labels every row in which
    something stands: then a note says what the label of a total means.
    """
    table, n = choose_columns(arrow, request, origin), arrow.num_rows
    texts = _texts(table.X, arrow)
    found = no_observations(table.X, texts)
    empty = np.flatnonzero(texts == 0)
    others, notes = np.delete(np.arange(n), empty), []
    if request.features is None:
        others = np.setdiff1d(others, list(found))
        if found:
            what = "a row that is no observation"
            if len(found) > 1:
                what = f"{len(found):,} rows that are no observations"
            notes = [Note(f"Left out {what}: {_told(table, found)}.", loud=True)]
    elif sums := {row: what for row, what in found.items() if what != NO_NUMBER}:
        told = _told(table, sums)
        label = "its label means" if len(sums) == 1 else "their labels mean"
        text = f"{told[0].upper()}{told[1:]}: {label} nothing."
        notes = [Note(text, loud=True)]
    if len(empty):
        notes.insert(0, Note(f"Left out {counted(len(empty), 'empty row')}."))
    if len(others) < n:
        origin = origin.keep(others, n)
        table = choose_columns(arrow.take(others), request, origin)
        if table.ids.dtype.kind == "i":  # rows keep the numbers that they have there
            table = replace(table, ids=others + 1)
    return replace(table, notes=[*table.notes, *notes])


def _texts(X: np.ndarray, arrow: Any) -> np.ndarray:
    """Return how many cells have a text in rows without a number; -1 for others."""
    rows = np.flatnonzero(np.isnan(X).all(axis=1))
    counts = np.full(len(X), -1)
    if len(rows):
        columns = (column.to_pylist() for column in arrow.take(rows).columns)
        written = [[str(cell or "").strip() != "" for cell in c] for c in columns]
        counts[rows] = np.sum(written, axis=0)
    return counts


def _told(table: Table, found: dict[int, str], most: int = 4) -> str:
    """Say where rows are, and why they are no observations."""
    told = [f"{table.place(row)} {what}" for row, what in sorted(found.items())]
    more = f", and {len(told) - most} more" * (len(told) > most)
    return ", ".join(told[:most]) + more


def leave_out_total_columns(table: Table, request: Request) -> Table:
    """Leave out columns that add up others: they say nothing that these do not.

    Columns that are asked for by name stay, and so do those of a model.
    """
    asked = request.features is not None or request.columns
    if asked or table.on_disk or not table.is_mixed:
        return table
    names, lines = np.array(table.column_names, dtype=object), table.python
    left_out, kept = dict(table.left_out), np.arange(len(names))
    # A grand total shows when the totals of groups are gone.
    while totals := list(total_columns(table.X[:, kept])):
        left_out |= {
            names[kept[t.column]]: _reason(names[kept[t.parts]]) for t in totals
        }
        kept = np.delete(kept, [total.column for total in totals])
    if len(kept) == len(names):
        return table
    if lines:
        gone = np.setdiff1d(np.arange(len(names)), kept).tolist()
        lines = (*lines, f"X = X.drop(columns=X.columns[{gone}])  # totals")
    return replace(table.keep_columns(kept), left_out=left_out, python=lines)


class Total(NamedTuple):
    """A column, and the columns that it adds up."""

    column: int
    parts: np.ndarray


def _reason(parts: np.ndarray) -> str:
    """Say that a column is the sum of those with these names."""
    return f"the sum of {len(parts)} columns, {quote(parts[0])} to {quote(parts[-1])}"


def no_observations(X: np.ndarray, texts: np.ndarray) -> dict[int, str]:
    """Return rows that are no observations, with what they are.

    ``texts`` is how many cells of rows without a number have a text. Empty rows are
    passed over.
    """
    found: dict[int, str] = {}
    left = np.flatnonzero(texts != 0)
    # A grand total shows when subtotals are gone.
    for step in (_subtotals, _end_rows, _total_anywhere):
        rows = step(X[left], texts[left])
        found |= {int(left[row]): what for row, what in rows.items()}
        left = np.delete(left, list(rows))
    return found


def _end_rows(X: np.ndarray, texts: np.ndarray, most: int = 12) -> dict[int, str]:
    """Return the rows below the last observation: sums, means, rows without numbers.

    A row without a number is a footnote, in one cell, or may be a total of formulas
    without values. Other such rows may be observations of which nothing is known.
    """
    n = len(X)
    found: dict[int, str] = {}
    if np.isinf(X).any():
        return found
    known = ~np.isnan(X)
    sums, counts = X.sum(axis=0, where=known), np.count_nonzero(known, axis=0)
    for first in range(n - 1, max(1, n - most) - 1, -1):
        # Of the rows above it.
        sums, counts = sums - np.nan_to_num(X[first]), counts - known[first]
        rows = {}
        for row in range(first, n):
            what: str | None = NO_NUMBER
            if known[row].any():
                what = _summary(X[:first], X[row], n, (sums, counts))
            elif texts[row] > 1 and (texts[row + 1 :] != 1).any():
                what = None
            if what is not None:
                rows[row] = what
        if len(rows) == n - first:
            found = rows
    return found


def _subtotals(X: np.ndarray, texts: np.ndarray) -> dict[int, str]:
    """Return rows that add up some of the rows right above them, if there are several.

    Amounts are looked at, which have no negative numbers, so that sums from the first
    row on only grow.
    """
    n = len(X)
    amounts = ~np.isinf(X).any(axis=0) & ~(X < 0).any(axis=0)
    X = X[:, amounts]
    if n <= LEAST_PARTS or X.shape[1] < 2:
        return {}
    cells, known = np.nan_to_num(X), ~np.isnan(X)
    sums = np.vstack([np.zeros(X.shape[1]), cells.cumsum(axis=0)])
    loose = _rounding(_units(cells), n) + 1e-9 * sums[-1]
    # The parts of a row begin where sums are what they are here, less the row.
    begins, ends = np.zeros(n, dtype=int), np.arange(n) - LEAST_PARTS
    for j in range(X.shape[1]):
        before = sums[:-1, j] - cells[:, j]
        low = np.searchsorted(sums[:, j], before - loose[j], "left")
        high = np.searchsorted(sums[:, j], before + loose[j], "right") - 1
        begins = np.where(known[:, j], np.maximum(begins, low), begins)
        ends = np.where(known[:, j], np.minimum(ends, high), ends)
    found = {}
    for row in np.flatnonzero((begins <= ends) & known.any(axis=1)):
        for begin in range(ends[row], max(begins[row], ends[row] - 8) - 1, -1):
            if _summary(X[begin:row], X[row], n * n) == SUM:
                found[int(row)] = f"is the sum of the {row - begin:,} rows above it"
                break
    return found if len(found) > 1 else {}


def _total_anywhere(X: np.ndarray, texts: np.ndarray) -> dict[int, str]:
    """Return the row that is the sum of all other rows, if there is one."""
    row = total_row(X)
    return {} if row is None else {row: SUM}


def total_row(X: np.ndarray) -> int | None:
    """Return the row that is the sum of all other rows, if there is one."""
    n, p = X.shape
    if n <= LEAST_PARTS or p < 2 or np.isinf(X).any():
        return None
    sums = np.nansum(X, axis=0)
    loose = _rounding(np.array(LARGEST_UNIT), n - 1) + 1e-9 * np.abs(sums)
    # A row has to be one half of all; what is not known fits.
    step = max(1, 2**20 // p)
    blocks = (X[begin : begin + step] for begin in range(0, n, step))
    fits = [~(np.abs(2 * block - sums) > loose).any(axis=1) for block in blocks]
    rows = np.flatnonzero(np.concatenate(fits))
    if len(rows) != 1:
        return None
    row = int(rows[0])
    return row if _summary(np.delete(X, row, axis=0), X[row], n) == SUM else None


def _summary(
    parts: np.ndarray,
    row: np.ndarray,
    n_tried: int,
    known_sums: tuple[np.ndarray, np.ndarray] | None = None,
) -> str | None:
    """Return what a row is of others, their sum or their mean, or None.

    Chance is excluded for as many rows as are tried. Sums of the parts and counts of
    their cells can be given.
    """
    n = len(parts)
    if n < LEAST_PARTS or len(row) < 2:
        return None
    known = ~np.isnan(row)
    if known_sums is None:
        known_sums = np.nansum(parts, axis=0), (~np.isnan(parts)).sum(axis=0)
    sums, counts = known_sums[0], np.maximum(known_sums[1], 1)
    # Most rows are neither, which shows at once.
    loose = _rounding(np.array(LARGEST_UNIT), n) + 1e-9 * np.abs(sums)
    off = np.abs(row - [sums, sums / n, sums / counts])
    least = 0.5 + 1e-9 * np.abs(sums)  # means may be whole numbers
    if not (off <= [loose, least, least])[:, known].all(axis=1).any():
        return None
    cells = np.nan_to_num(parts)
    # Columns in which fewer cells than that add up say nothing.
    says = known & (np.count_nonzero(cells, axis=0) >= LEAST_PARTS)
    if not says.any():
        return None
    cells, row, counts = cells[:, says], row[says], counts[says]
    sums = cells.sum(axis=0)
    units, own = _units(np.vstack([cells, row])), _units(row[None])
    for what, expected, unit, rounding in (
        (SUM, sums, units, _rounding(units, n)),
        (MEAN, sums / n, own, own / 2),
        (MEAN, sums / counts, own, own / 2),
    ):
        tolerances = rounding + 1e-9 * np.abs(expected)
        if (np.abs(row - expected) > tolerances).any():
            continue
        # Each multiple of the unit up to the row could have been there as well.
        fitting = 1 + 2 * np.floor(tolerances / unit)
        chances = np.minimum(fitting / (1 + np.abs(row) / unit), 1)
        if chances.prod() * n_tried < CHANCE:
            return what
    return None


def total_columns(X: np.ndarray, most_columns: int = 500) -> Iterator[Total]:
    """Yield columns that add up others: those beside them, or all.

    The parts are neighbours, as in =SUM(B2:F2): the columns right before the total, or
    right after it, or all others. Tables that people add up have few columns.
    """
    p = X.shape[1]
    if not LEAST_PARTS < p <= most_columns or np.isinf(X).any():
        return
    for column in range(p):
        before, after = np.arange(column - 1, -1, -1), np.arange(column + 1, p)
        for run in (before, after, np.concatenate([before, after])):
            found = _parts(X, column, run)
            if found is not None:
                yield Total(column, np.sort(found))
                break


def _parts(X: np.ndarray, column: int, run: np.ndarray) -> np.ndarray | None:
    """Return the first columns of a run that a column adds up, if there are such."""
    # A few rows rule most of them out.
    few = np.nan_to_num(X[:64][:, run])
    off = np.abs(np.cumsum(few, axis=1) - X[:64, column, None])
    numbers = np.arange(1, len(run) + 1)
    size = np.abs(few).max(initial=0.0) * numbers
    loose = _rounding(np.array(LARGEST_UNIT), numbers) + 1e-9 * size
    for end in numbers[~(off > loose).any(axis=0)]:
        if end >= LEAST_PARTS and _adds_up(X[:, run[:end]], X[:, column]):
            return run[:end]
    return None


def _adds_up(parts: np.ndarray, total: np.ndarray) -> bool:
    """Return whether a column is the sum of others, in too many rows for chance."""
    known = ~np.isnan(total)
    parts, total = np.nan_to_num(parts[known]), total[known]
    sums, m = parts.sum(axis=1), parts.shape[1]
    unit = _units(np.column_stack([parts, total])).max()
    largest = np.abs(parts).max(initial=0.0) * m
    tolerance = float(_rounding(unit, m) + 1e-9 * largest)
    if (np.abs(total - sums) > tolerance).any():
        return False
    if np.count_nonzero((parts != 0).any(axis=0)) < LEAST_PARTS:
        return False
    # A row in which one part is all of the sum is a copy, and shows no addition.
    shows = np.count_nonzero(parts, axis=1) >= 2
    # How often a cell of the column, drawn at random, would have fitted.
    ordered = np.sort(total)
    low = np.searchsorted(ordered, sums[shows] - tolerance, "left")
    high = np.searchsorted(ordered, sums[shows] + tolerance, "right")
    # Each column has been compared with about two runs of every length.
    tried = 2 * (1 + m) ** 2
    chance = np.exp(np.log((high - low) / len(total)).sum())
    return bool(chance * tried < CHANCE)


def _rounding(units: np.ndarray, n_parts: Any) -> np.ndarray:
    """Return how far sums of numbers that were rounded later are off, at most.

    A part is off by a uniform error of a unit's length; three deviations of their sum
    are allowed, and half a unit for the total. Whole numbers are taken to be exact.
    """
    return np.where(units < 1, units * (0.5 + 3 * np.sqrt(n_parts / 12)), 0.0)


def _units(cells: np.ndarray) -> np.ndarray:
    """Return the power of ten, 1 at most, that the numbers of a column are whole in."""
    units = np.full(cells.shape[1], 1e-9)
    for digits in range(9, -1, -1):
        scaled = np.abs(cells) * 10.0**digits
        off = np.abs(scaled - np.round(scaled))
        # Beyond eleven digits sums differ by the rounding of floats.
        whole = (off <= np.maximum(1e-6, 1e-11 * scaled)).all(axis=0)
        units = np.where(whole, 10.0**-digits, units)
    return units
