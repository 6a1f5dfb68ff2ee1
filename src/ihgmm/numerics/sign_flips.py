"""Eigenvalues that noise alone has: those of data whose signs change at random.

The signal goes and the noise stays. Rows are few, and in the memory of the host.
"""

from typing import Any

import numpy as np
from scipy.linalg import eigh_tridiagonal

from ihgmm.matrix import HOST, Matrix
from ihgmm.matrix.memory import random_signs
from ihgmm.matrix.threads import one_thread
from ihgmm.numerics.eigen import GramOperator, leading_eigenpairs
from ihgmm.numerics.krylov import EigenPairs
from ihgmm.policy import Counting


def residual(A: Matrix, vectors: np.ndarray, *, most: float = 3.0) -> Any:
    """Return the rows of a matrix less their part along ``A.T @ vectors``.

    A gain gives back what these directions took of the noise in a feature. Sparse rows
    keep their stored entries only, and features get up to ``most`` times their energy
    for the others, which are fitted too.
    """
    block: Any = A.take(slice(0, A.shape[0]))
    if vectors.shape[1] == 0:
        return block
    directions = np.linalg.qr(A.adjoint(vectors))[0]
    parts, p = block @ directions, A.shape[1]
    taken = np.square(directions).sum(axis=1)
    gain = 1 / np.sqrt(1 - np.minimum(taken, Counting.LARGEST_LEVERAGE))
    if block.sparse:
        wide = HOST.widen(parts)
        fit = block.fit_at_entries(parts, directions)
        left = np.bincount(block.indices, np.square(block.values - fit), p)
        lost = ((directions @ HOST.tall_dot(wide, wide)) * directions).sum(axis=1)
        lost -= np.bincount(block.indices, np.square(fit), p)
        gain *= np.sqrt(1 + np.clip(HOST.ratio(lost, left), 0, most))
    return block.minus_fit(parts, directions, gain.astype(A.dtype))


def flip_signs(A: Any, rng: np.random.Generator) -> Any:
    """Return a copy of a matrix in memory whose entries have random signs."""
    (n, p), seed = A.shape, int(rng.integers(2**62))
    if A.sparse:
        return A.with_random_signs((seed, 0))
    # Windows of one long vector are as good as independent, and much cheaper.
    length = max(2**14, 4 * n)
    signs = random_signs(rng, length + p, A.dtype)
    return A.with_windows_of_signs(signs, rng.integers(length + 1, size=n))


def null_eigenvalues(
    A: Matrix,
    n_flips: int,
    rng: np.random.Generator,
    steps: int,
    accuracy: float = Counting.FLIP_ACCURACY,
) -> np.ndarray:
    """Return the top eigenvalues of the hollow Gram matrices of flipped copies."""
    values = np.zeros(n_flips)
    # Products with single vectors are too short for threads.
    with one_thread():
        for i in range(n_flips):
            G = GramOperator.of(flip_signs(A, rng))
            start = G.A @ rng.standard_normal(A.shape[1]).astype(A.dtype)
            values[i] = _largest(G, start, min(steps, A.shape[0]), accuracy)
    return values


def _largest(G: GramOperator, start: np.ndarray, steps: int, accuracy: float) -> float:
    """Return the largest eigenvalue by Lanczos, or where its coefficients point to."""
    basis = np.empty((steps, len(start)), dtype=start.dtype)
    diagonal, beside = np.zeros(steps), np.zeros(steps)
    u, length, value = start, float(np.linalg.norm(start)), 0.0
    for i in range(steps):
        if length == 0:
            return value
        basis[i] = u / length
        u = G @ basis[i]
        for _ in range(2):  # twice is enough for a basis that stays orthogonal
            part = basis[: i + 1] @ u
            u = u - part @ basis[: i + 1]
            diagonal[i] += part[i]
        length = beside[i] = float(np.linalg.norm(u))
        values, vectors = eigh_tridiagonal(diagonal[: i + 1], beside[:i])
        value = float(values[-1])
        if length * abs(vectors[-1, -1]) <= accuracy * abs(value):
            return value
    # Deep in noise coefficients settle at a and b, and the bulk ends at a + 2 b.
    late = slice(steps // 2, steps)
    return max(value, float(diagonal[late].mean() + 2 * beside[late].mean()))


def count_above_noise(
    G: GramOperator, most: int, rng: np.random.Generator, *, least: int = 11
) -> tuple[EigenPairs, int, np.ndarray, float]:
    """Count eigenvalues above the edge of flipped data, taking strong ones out first.

    Returned are eigenpairs, ``least`` of them if there are so many, the count, the null
    eigenvalues and the edge.
    """
    rounding = Counting.ROUNDING * float(np.finfo(G.A.dtype).eps)
    # Less effort for large data, whose flips vary little.
    sizes = Counting.SMALL_ENTRIES, Counting.MIDDLE_ENTRIES
    size = int(np.searchsorted(sizes, G.A.n_entries))
    small, large, first_look = Counting.FLIP_STEPS

    # Noise has no gap to resolve, and a percent of its eigenvalues is enough. Residuals
    # of several gaps would end the search while eigenvalues at the edge are too small.
    def lead(k: int) -> EigenPairs:
        return leading_eigenpairs(G, k, tol=1.0, quiet=True)

    pairs, rank = lead(min(least, most + 1, G.A.shape[0])), 0
    while True:
        left = residual(G.A, pairs.vectors[:, :rank])
        # A first rough look, at one flip, is enough if components stand out clearly.
        for rough in (True, False) if rank == 0 else (False,):
            steps = small if size == 0 else first_look if rough else large
            flips = 1 if rough else Counting.FLIPS[size]
            null = null_eigenvalues(left, flips, rng, steps)
            edge = _edge(G, null, Counting.MARGIN * (Counting.ROUGH if rough else 1))
            edge = max(edge, rounding * pairs.values[0])
            # If all eigenpairs are above the edge, look at more.
            while pairs.values[-1] > edge and len(pairs.values) <= most:
                pairs = lead(min(2 * len(pairs.values) + 5, most + 1))
            above = min(int((pairs.values > edge).sum()), most)
            if above > rank:
                break
        if above <= rank or above == most:
            # What new flips do not confirm does not count.
            return pairs, above, null, edge
        rank = above


def _edge(G: GramOperator, null: np.ndarray, margin: float) -> float:
    """Put the edge some standard deviations above the mean of the null eigenvalues."""
    # Few flips say little of the deviation: the law of white noise counts for some.
    prior, tracy_widom_deviation = Counting.PRIOR_FLIPS, 1.268
    p, sqnorms = G.A.shape[1], G.A.sqnorms
    n = sqnorms.sum() ** 2 / np.square(sqnorms).sum()
    root = np.sqrt(n) + np.sqrt(p)
    scale = root * (1 / np.sqrt(n) + 1 / np.sqrt(p)) ** (1 / 3)
    expected = tracy_widom_deviation * scale / (root**2 - p) * null.mean()
    squares = prior * expected**2 + ((null - null.mean()) ** 2).sum()
    deviation = np.sqrt(squares / (prior + len(null) - 1))
    return float(null.mean() + margin * deviation * np.sqrt(1 + 1 / len(null)))
