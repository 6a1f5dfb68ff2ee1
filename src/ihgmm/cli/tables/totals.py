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

# A sum has at least so many parts. One of two may be a quantity of its own: sales are
# costs and profit.
LEAST_PARTS = 3
# The probability below which a sum is no coincidence: one table in a million.
CHANCE = 1e-6
LARGEST_UNIT = 0.1  # of numbers that may have been rounded: they have decimals


def choose_observations(arrow: Any, request: Request, origin: Origin) -> Table:
    """Make a table as :func:`choose_columns` does, without a row of totals.

    Such a row is no observation, and its size drowns the others. A last row without any
    number is none either: it may hold totals whose formulas were saved without a value.
    Both are left out before columns are judged, since the word Total may stand among
    the ids. A model labels every row that it is given: then a note says what that label
    means.
    """
    table = choose_columns(arrow, request, origin)
    row, n = total_row(table.X), len(table.X)
    if row is not None:
        what = f"{table.place(row)} is the sum of all other rows"
    elif n > 1 and request.features is None and np.isnan(table.X[-1]).all():
        row, what = n - 1, f"{table.place(n - 1)}, the last one, has no number"
    if row is None:
        return table
    if request.features is not None:
        note = Note(f"{what[0].upper()}{what[1:]}: its label means nothing.", loud=True)
        return replace(table, notes=[*table.notes, note])
    others = np.delete(np.arange(arrow.num_rows), row)
    origin = replace(
        origin,
        python=f"{origin.python}.drop(index={row})",
        first_place=origin.first_place + (row == 0),
    )
    left = choose_columns(arrow.take(others), request, origin)
    note = Note(f"Left out a row that is no observation: {what}.", loud=True)
    if left.ids.dtype.kind == "i":  # rows keep the numbers that they have in the file
        left = replace(left, ids=others + 1, first_place=table.first_place)
    return replace(left, notes=[*left.notes, note])


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


def total_row(X: np.ndarray) -> int | None:
    """Return the row that is the sum of all other rows, if there is one."""
    n, p = X.shape
    if n <= LEAST_PARTS or p < 2 or np.isinf(X).any():
        return None
    known = ~np.isnan(X)
    sums = X.sum(axis=0, where=known)
    loose = _rounding(np.array(LARGEST_UNIT), n - 1) + 1e-9 * np.abs(sums)
    # A row has to be one half of all; what is not known fits.
    step = max(1, 2**20 // p)
    blocks = (X[begin : begin + step] for begin in range(0, n, step))
    fits = [~(np.abs(2 * block - sums) > loose).any(axis=1) for block in blocks]
    rows = np.flatnonzero(np.concatenate(fits))
    if len(rows) != 1:
        return None
    row = int(rows[0])
    # Columns in which fewer cells than that add up say nothing.
    says = known[row] & (np.count_nonzero(X * known, axis=0) > LEAST_PARTS)
    if not says.any():
        return None
    cells, sums = np.where(known, X, 0.0)[:, says], sums[says]
    units = _units(cells)
    tolerances = _rounding(units, n - 1) + 1e-9 * np.abs(sums)
    if (np.abs(2 * cells[row] - sums) > tolerances).any():
        return None
    # Each multiple of the unit up to the sum could have been there as well.
    fitting = 1 + 2 * np.floor(tolerances / units)
    chances = np.minimum(fitting / (1 + np.abs(cells[row]) / units), 1)
    return row if chances.prod() * n < CHANCE else None


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
