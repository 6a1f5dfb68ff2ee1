"""How many eigenvalues stand out from those of sign-flipped data."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm.eigen import EigenPairs, leading_eigenpairs
from ihgmm.flips import Residual, default_flips, null_eigenvalues
from ihgmm.gram import GramOperator

__all__ = ["count_above_noise"]

MARGIN = 2.5
"""Standard deviations above the mean of the null eigenvalues where the edge lies."""

PRIOR = 4
"""Flips that the Tracy-Widom law counts for in the standard deviation."""

TRACY_WIDOM_SD = 1.268


def count_above_noise(
    G: GramOperator, most: int, n_flips: int | None, rng: np.random.Generator
) -> tuple[EigenPairs, int, np.ndarray, float]:
    """Count eigenvalues above the edge of flipped data, taking strong ones out first.

    Returns the eigenpairs, how many are above, the null eigenvalues and the edge.
    """
    n_flips = n_flips or default_flips(G.X)
    pairs = _eigenpairs(G, min(11, most + 1, G.shape[0]), rng)
    rank = 0
    while True:
        found = rank
        null: list[float] = []
        residual = Residual(G, pairs.vectors[:, :rank])
        # A first look with one flip is enough when components stand out clearly.
        for flips in (1, n_flips) if rank == 0 else (n_flips,):
            while len(null) < flips:
                null += null_eigenvalues(residual, flips - len(null), rng)
            edge = _edge(G, np.array(null), first_look=flips < n_flips)
            edge = max(edge, 20 * float(np.finfo(G.dtype).eps) * pairs.values[0])
            found, pairs = _count_above(G, pairs, edge, most, rng)
            if found > rank:
                break
        if found <= rank or found == most:
            break
        rank = found
    return pairs, max(found, rank), np.array(null), edge


def _count_above(
    G: GramOperator,
    pairs: EigenPairs,
    edge: float,
    most: int,
    rng: np.random.Generator,
) -> tuple[int, EigenPairs]:
    """Count eigenvalues above the edge, with more eigenpairs if all known are."""
    while pairs.values[-1] > edge and len(pairs.values) <= most:
        pairs = _eigenpairs(G, min(2 * len(pairs.values) + 5, most + 1), rng)
    return min(int((pairs.values > edge).sum()), most), pairs


def _eigenpairs(G: GramOperator, k: int, rng: np.random.Generator) -> EigenPairs:
    with warnings.catch_warnings():
        # Noise has no gap to resolve; its eigenvalues are needed to a percent only:
        # residuals of five percent are enough.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return leading_eigenpairs(G, k, tol=5.0, signal_only=True, rng=rng)


def _edge(G: GramOperator, null: np.ndarray, first_look: bool) -> float:
    """Put the edge some standard deviations above the mean of the null eigenvalues."""
    spread = _tracy_widom_share(G) * null.mean()
    squares = PRIOR * spread**2 + ((null - null.mean()) ** 2).sum()
    sd = np.sqrt(squares / (PRIOR + len(null) - 1))
    margin = MARGIN * (4.0 if first_look else 1.0)
    return float(null.mean() + margin * sd * np.sqrt(1 + 1 / len(null)))


def _tracy_widom_share(G: GramOperator) -> float:
    """Return the standard deviation of white noise's top eigenvalue, as a share of it.

    Rows of unequal norm count for fewer rows.
    """
    p = G.X.shape[1]
    n = G.sqnorms.sum() ** 2 / np.square(G.sqnorms).sum()
    root = np.sqrt(n) + np.sqrt(p)
    scale = root * (1 / np.sqrt(n) + 1 / np.sqrt(p)) ** (1 / 3)
    return float(TRACY_WIDOM_SD * scale / (root**2 - p))
