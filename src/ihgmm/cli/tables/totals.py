"""Sums and means of a spreadsheet: rows and columns that are no observations.

A total is told by its numbers alone, never by its name. So it has to be so exact, in so
many cells, that chance cannot explain it. Cells that are missing count for nothing, as
they do where a spreadsheet adds up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# A sum has at least so many parts. One of two may be a quantity of its own: sales are
# costs and profit.
LEAST_PARTS = 3


def no_observations(X: np.ndarray, arrow: Any, most: int = 10_000) -> dict[int, str]:
    """Return rows that are no observations, with what they are; "" if they are empty.

    Among them are rows at the end without a number, and with text in one cell at most:
    footnotes, and totals whose formulas were saved without a value. Sums and means are
    looked for in tables of at most so many rows, as people keep them.
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
    sums = summaries(X[rows]) if len(rows) <= most else {}
    for row, (what, parts) in sums.items():
        is_whole = len(parts) == len(rows) - len(sums)
        which = "all other rows" if is_whole else f"the {len(parts):,} rows above it"
        others[int(rows[row])] = f"is the {what} of {which}"
    return others


def summaries(X: np.ndarray) -> dict[int, tuple[str, np.ndarray]]:
    """Return rows that sum up rows right above them: what they are, and of which rows.

    A mean is one of all rows, and stands in one of the last two. Columns with negative
    numbers are passed over, so that sums only grow.
    """
    X = X[:, ~(np.isinf(X) | (X < 0)).any(axis=0)]
    n = len(X)
    # A sum is no less than each of its parts, but for rounding.
    may_be_one = np.arange(n) >= LEAST_PARTS
    for k in range(1, min(LEAST_PARTS + 1, n)):
        may_be_one[k:] &= ~(X[k:] < X[:-k] - 1).any(axis=1)
    may_be_one[n - 2 :] = True
    found: dict[int, tuple[str, np.ndarray]] = {}
    for row in np.flatnonzero(may_be_one).tolist():
        rows, known = np.setdiff1d(np.arange(row), list(found)), ~np.isnan(X[row])
        if len(rows) < LEAST_PARTS or not known.any():
            continue
        target, parts = X[row, known], X[rows[::-1]][:, known]
        unit = _units(np.vstack([parts, target]))
        sums = np.nancumsum(parts, axis=0)
        n_parts = np.arange(1, len(rows) + 1)[:, None]
        # Decimals may have been rounded after they were added up.
        loose = np.where(unit < 1, unit * (0.5 + np.sqrt(n_parts)), 0.0) + 1e-9 * sums
        fits = (np.abs(sums - target) <= loose).all(axis=1)
        fits[: LEAST_PARTS - 1] = False
        if fits.any():
            m = int(fits.argmax()) + 1
            adds = np.count_nonzero(np.nan_to_num(parts[:m]), axis=0) >= LEAST_PARTS
            if _is_no_chance((target / (unit + 2 * loose[m - 1]))[adds], n):
                found[row] = "sum", rows[-m:]
        elif row >= n - 2:
            mean = sums[-1] / np.maximum(np.count_nonzero(~np.isnan(parts), axis=0), 1)
            loose = _units(target[None]) / 2 + 1e-9 * mean
            spread = np.ptp(np.where(np.isnan(parts), mean, parts), axis=0)
            fits = np.abs(mean - target) <= loose
            if fits.all() and _is_no_chance(spread / (2 * loose), n):
                found[row] = "mean", rows
    return found


def _is_no_chance(n_others: np.ndarray, n_tried: int) -> bool:
    """Return whether cells fit that could have been so many others as well.

    By chance that happens in one table of 100,000. Cells with few others say little:
    someone may give the middle answer to all questions.
    """
    digits = np.log10(1 + n_others[n_others > 20]).sum()
    return bool(digits > 5 + np.log10(n_tried))


def _units(X: np.ndarray) -> np.ndarray:
    """Return the power of ten, 1 at most, that the numbers of a column are whole in."""
    units = np.full(X.shape[1], 1e-6)
    for digits in range(5, -1, -1):
        scaled = np.nan_to_num(X) * 10.0**digits
        off = np.abs(scaled - np.round(scaled))
        units[(off <= 1e-6 + 1e-11 * scaled).all(axis=0)] = 10.0**-digits
    return units
