"""How many eigenvalues stand out from those of sign-flipped data."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._devices import to_host
from ihgmm.eigen import EigenPairs, leading_eigenpairs
from ihgmm.flips import Residual, default_flips, null_eigenvalues
from ihgmm.gram import GramOperator
from ihgmm.selection.stability import FEW_FEATURES

__all__ = ["count_above_noise"]

MARGIN, MARGIN_AGAIN = 2.5, 3.0
"""Standard deviations above the mean of the null eigenvalues where the edge lies, and
where it lies for a second look, so that looking twice hardly finds more in noise."""

PRIOR = 4
"""Flips that the Tracy-Widom law counts for in the standard deviation."""

TRACY_WIDOM_SD = 1.268


def count_above_noise(
    G: GramOperator,
    most: int,
    n_flips: int | None,
    rng: np.random.Generator,
    *,
    known: int | None = None,
) -> tuple[EigenPairs, int, np.ndarray, float]:
    """Count eigenvalues above the edge of flipped data, taking strong ones out first.

    Where another Gram matrix has shown directions already, ``known`` says how many:
    the count starts from there, and ends at the first flip that reaches the next.

    Returns the eigenpairs, how many are above, the null eigenvalues and the edge.
    """
    n_flips = n_flips or default_flips(G.X)
    margin = MARGIN if known is None else MARGIN_AGAIN
    rank = start = known or 0
    n, p = G.X.shape
    # All of few features: stability looks at them.
    least = p + 1 if p <= FEW_FEATURES else 11
    pairs = _eigenpairs(G, min(max(least, start + 6), most + 1, n), rng)
    while True:
        found = rank
        residual = Residual(G, pairs.vectors[:, :rank])
        # A first rough look is enough when components stand out clearly.
        for rough in (True, False) if rank == start else (False,):
            flips = 1 if rough else n_flips
            null = np.array(null_eigenvalues(residual, flips, rng, rough=rough))
            edge = _edge(G, null, margin * (4 if rough else 1))
            edge = max(edge, 20 * float(np.finfo(G.dtype).eps) * pairs.values[0])
            found, pairs = _count_above(G, pairs, edge, most, rng)
            # Noise hardly ever exceeds the edge if a copy of it is larger still.
            if found > rank or (known is not None and pairs.values[rank] <= null.max()):
                break
        if found <= rank or found == most:
            break
        rank = found
    # What new flips do not confirm does not count.
    return pairs, max(found, start), null, edge


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


def _edge(G: GramOperator, null: np.ndarray, margin: float) -> float:
    """Put the edge some standard deviations above the mean of the null eigenvalues."""
    spread = _tracy_widom_share(G) * null.mean()
    squares = PRIOR * spread**2 + ((null - null.mean()) ** 2).sum()
    sd = np.sqrt(squares / (PRIOR + len(null) - 1))
    return float(null.mean() + margin * sd * np.sqrt(1 + 1 / len(null)))


def _tracy_widom_share(G: GramOperator) -> float:
    """Return the standard deviation of white noise's top eigenvalue, as a share of it.

    Rows of unequal norm count for fewer rows.
    """
    p = G.X.shape[1]
    sqnorms = to_host(G.sqnorms)
    n = sqnorms.sum() ** 2 / np.square(sqnorms).sum()
    root = np.sqrt(n) + np.sqrt(p)
    scale = root * (1 / np.sqrt(n) + 1 / np.sqrt(p)) ** (1 / 3)
    return float(TRACY_WIDOM_SD * scale / (root**2 - p))
