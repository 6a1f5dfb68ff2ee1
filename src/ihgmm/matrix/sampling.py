"""Positions of rows that are drawn at random."""

from __future__ import annotations

import numpy as np


def sample_positions(
    n: int, size: int, rng: np.random.Generator | None = None
) -> np.ndarray:
    """Return the positions of ``size`` of n rows, one from each of as many stretches.

    They are in order, and without a generator always the same. Rows that are sorted in
    some way are shown from the first to the last, and to draw from many rows takes no
    longer than to draw from few.

    Examples
    --------
    >>> sample_positions(4, 10)
    array([0, 1, 2, 3])
    >>> sample_positions(1_000, 3) // 333
    array([0, 1, 2])
    """
    if size >= n:
        return np.arange(n)

    rng = np.random.default_rng(0) if rng is None else rng
    edges = np.arange(size + 1) * n // size  # (size + 1,): where stretches begin
    steps = rng.random(size) * np.diff(edges)
    return edges[:-1] + steps.astype(np.int64)
