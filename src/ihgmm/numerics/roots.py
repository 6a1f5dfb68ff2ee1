"""Roots of several functions at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def falling_root(
    function: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Return where functions fall to zero between two ends; positive ones, the upper.

    Secants meet the root in a few steps; where one would move one end only, the value
    at the other counts half (the Illinois rule).
    """
    above, below = function(low), function(high)
    side, middle = np.zeros(len(high)), high
    for _ in range(60):  # more than a float64 has bits
        before, slope = middle, above - below
        falls = slope > 0
        step = np.where(falls, above / np.where(falls, slope, 1.0), 1.0)
        step = np.clip(step, 0.0, 1.0)
        middle = low + (high - low) * step
        value = function(middle)
        more = value > 0
        below = np.where(more, np.where(side > 0, below / 2, below), value)
        above = np.where(more, value, np.where(side < 0, above / 2, above))
        low, high = np.where(more, middle, low), np.where(more, high, middle)
        side = np.where(more, 1.0, -1.0)
        if (np.abs(middle - before) <= 1e-15 * np.abs(middle)).all():
            break
    return middle
