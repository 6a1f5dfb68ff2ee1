"""Rows and columns of a spreadsheet that are no observations: totals and footnotes."""

from __future__ import annotations

from typing import Any

import numpy as np

# A total has at least so many parts. One of two may be a quantity of its own: sales are
# costs and profit.
LEAST_PARTS = 3


def no_observations(X: np.ndarray, arrow: Any, most: int = 10_000) -> dict[int, str]:
    """Return rows that are no observations, with what they are; "" if they are empty.

    Among them are rows at the end without a number, and with text in one cell at most:
    footnotes, and totals whose formulas were saved without a value. Totals are looked
    for in tables of at most so many rows, as people keep them.
    """
    bare = np.flatnonzero(np.isnan(X).all(axis=1))
    texts = [column.to_pylist() for column in arrow.take(bare).columns]
    filled = [[str(cell or "").strip() != "" for cell in column] for column in texts]
    n_filled = np.full(len(X), len(texts) + 1)
    n_filled[bare] = np.sum(filled, axis=0)
    last = int(np.flatnonzero(n_filled > 1).max(initial=-1))
    others = dict.fromkeys(range(last + 1, len(X)), "has no number")
    others |= dict.fromkeys(np.flatnonzero(n_filled == 0).tolist(), "")
    rows = np.setdiff1d(np.arange(len(X)), list(others))
    sums = totals(X[rows]) if len(rows) <= most else {}
    for row, parts in sums.items():
        is_whole = len(parts) == len(rows) - len(sums)
        which = "all other rows" if is_whole else f"the {len(parts):,} rows above it"
        others[int(rows[row])] = f"is the sum of {which}"
    return others


def totals(X: np.ndarray) -> dict[int, np.ndarray]:
    """Return rows that are the sum of rows right above them, with these rows.

    Totals in between count for nothing, as do missing cells and columns with negative
    numbers. A total is told by its numbers alone, never by its name.
    """
    X = X[:, ~(np.isinf(X) | (X < 0)).any(axis=0)]
    may_be_one = (np.arange(len(X)) >= LEAST_PARTS) & ~np.isnan(X).all(axis=1)
    for k in range(1, LEAST_PARTS + 1):  # no less than each of its parts, but rounded
        may_be_one[k:] &= ~(X[k:] < X[:-k] - 1).any(axis=1)
    parts_of: dict[int, np.ndarray] = {}
    for row in np.flatnonzero(may_be_one).tolist():
        rows, known = np.setdiff1d(np.arange(row), list(parts_of)), ~np.isnan(X[row])
        target, parts = X[row, known], X[rows[::-1]][:, known]
        sums, n_parts = np.nancumsum(parts, axis=0), np.arange(1, len(rows) + 1)
        unit = _units(np.vstack([parts, target]))
        # Decimals may have been rounded after they were added up.
        rounding = np.where(unit < 1, unit * (0.5 + np.sqrt(n_parts)[:, None]), 0.0)
        loose = rounding + 1e-9 * sums
        fits = (np.abs(sums - target) <= loose).all(axis=1) & (n_parts >= LEAST_PARTS)
        m = int(fits.argmax())
        adds = np.count_nonzero(np.nan_to_num(parts[: m + 1]), axis=0) >= LEAST_PARTS
        # Cells that could have been so many others fit by chance in one table of
        # 100,000. Those with few others say little.
        n_others = (target / (unit + 2 * loose[m]))[adds]
        digits = np.log10(1 + n_others[n_others > 20]).sum()
        if fits.any() and digits > 5 + np.log10(len(X)):
            parts_of[row] = rows[-m - 1 :]
    return parts_of


def _units(X: np.ndarray) -> np.ndarray:
    """Return the power of ten, 1 at most, that the numbers of a column are whole in."""
    units = np.full(X.shape[1], 1e-6)
    for digits in range(5, -1, -1):
        scaled = np.nan_to_num(X) * 10.0**digits
        off = np.abs(scaled - np.round(scaled))
        units[(off <= 1e-6 + 1e-11 * scaled).all(axis=0)] = 10.0**-digits
    return units
