"""Eigenvalues that noise alone has: those of data whose signs change at random.

The signal goes and the noise stays. Rows are few, and in the memory of the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from scipy.linalg import eigh_tridiagonal

from ihgmm.matrix import HOST, Dense, Matrix, Sparse
from ihgmm.matrix.memory import random_signs
from ihgmm.matrix.threads import one_thread
from ihgmm.numerics.eigen import GramOperator, leading_eigenpairs
from ihgmm.numerics.krylov import EigenPairs
from ihgmm.policy import Counting

RowsInMemory = Dense | Sparse

# Standard deviation of the law of Tracy and Widom for real matrices.
TRACY_WIDOM_DEVIATION = 1.268


def residual(A: Matrix, vectors: np.ndarray, *, most_gain: float = 3.0) -> RowsInMemory:
    """Return the rows of a matrix less their part along ``A.T @ vectors``.

    A gain gives back what these directions took of the noise in a feature. Sparse rows
    keep their stored entries only, and features get up to ``most_gain`` times their
    energy for the others, which are fitted too.
    """
    rows = cast(RowsInMemory, A.take(slice(0, A.shape[0])))
    if vectors.shape[1] == 0:
        return rows

    directions = np.linalg.qr(A.adjoint(vectors))[0]
    coordinates = rows @ directions
    leverages = np.minimum(np.square(directions).sum(axis=1), Counting.LARGEST_LEVERAGE)
    gains = 1 / np.sqrt(1 - leverages)
    if isinstance(rows, Sparse):
        lost_share = _lost_energy(rows, coordinates, directions)
        gains *= np.sqrt(1 + np.clip(lost_share, 0, most_gain))

    return rows.minus_fit(coordinates, directions, gains.astype(A.dtype))


def _lost_energy(
    rows: Sparse, coordinates: np.ndarray, directions: np.ndarray
) -> np.ndarray:
    """Return squares of a fit where no entry is stored, over those of residuals.

    Both are sums over the rows of each feature, (n_features,); residuals are those of
    the stored entries.
    """
    n_features = rows.shape[1]
    fit = rows.fit_at_entries(coordinates, directions)
    residual_squares = np.bincount(
        rows.indices, np.square(rows.values - fit), n_features
    )

    wide = HOST.widen(coordinates)
    products = HOST.tall_dot(wide, wide)
    lost_squares = ((directions @ products) * directions).sum(axis=1)
    lost_squares -= np.bincount(rows.indices, np.square(fit), n_features)
    return HOST.ratio(lost_squares, residual_squares)


def flip_signs(A: RowsInMemory, rng: np.random.Generator) -> RowsInMemory:
    """Return a copy of a matrix in memory whose entries have random signs."""
    n_rows, n_features = A.shape
    seed = int(rng.integers(2**62))
    if isinstance(A, Sparse):
        return A.with_random_signs((seed, 0))

    # Windows of one long vector are as good as independent, and much cheaper.
    length = max(2**14, 4 * n_rows)
    signs = random_signs(rng, length + n_features, A.dtype)
    return A.with_windows_of_signs(signs, rng.integers(length + 1, size=n_rows))


def null_eigenvalues(
    A: RowsInMemory,
    n_flips: int,
    rng: np.random.Generator,
    n_steps: int,
    accuracy: float = Counting.FLIP_ACCURACY,
) -> np.ndarray:
    """Return the top eigenvalues of the hollow Gram matrices of flipped copies."""
    n_rows, n_features = A.shape
    values = np.zeros(n_flips)
    # Products with single vectors are too short for threads.
    with one_thread():
        for i in range(n_flips):
            G = GramOperator.of(flip_signs(A, rng))
            start = G.A @ rng.standard_normal(n_features).astype(A.dtype)
            values[i] = _largest_eigenvalue(G, start, min(n_steps, n_rows), accuracy)

    return values


def _largest_eigenvalue(
    G: GramOperator, start: np.ndarray, n_steps: int, accuracy: float
) -> float:
    """Return the largest eigenvalue by Lanczos, or where its coefficients point to.

    Notes
    -----
    In the basis Q of the steps, G is a tridiagonal matrix T, with the coefficients a on
    and b beside its diagonal. The residual of an eigenpair of T is its last b times the
    last entry of the eigenvector.
    """
    basis = np.empty((n_steps, len(start)), dtype=start.dtype)
    diagonal = np.zeros(n_steps)
    off_diagonal = np.zeros(n_steps)
    vector = start
    length = float(np.linalg.norm(start))
    value = 0.0

    for i in range(n_steps):
        if length == 0:
            return value
        basis[i] = vector / length
        vectors_so_far = basis[: i + 1]
        vector = G @ basis[i]
        for _ in range(2):  # twice is enough for a basis that stays orthogonal
            coefficients = vectors_so_far @ vector
            vector = vector - coefficients @ vectors_so_far
            diagonal[i] += coefficients[i]
        length = float(np.linalg.norm(vector))
        off_diagonal[i] = length

        values, vectors = eigh_tridiagonal(diagonal[: i + 1], off_diagonal[:i])
        value = float(values[-1])
        if length * abs(vectors[-1, -1]) <= accuracy * abs(value):
            return value

    # Deep in noise coefficients settle at a and b, and the bulk ends at a + 2 b.
    settled = slice(n_steps // 2, n_steps)
    bulk_edge = diagonal[settled].mean() + 2 * off_diagonal[settled].mean()
    return max(value, float(bulk_edge))


class CountAboveNoise(NamedTuple):
    """How many eigenvalues stand above the edge of noise, and the evidence."""

    pairs: EigenPairs  # leading ones, also beyond the rank
    rank: int  # how many are above the edge
    null: np.ndarray  # eigenvalues of flipped data
    edge: float


@dataclass(frozen=True)
class _Effort:
    """How much work goes into null eigenvalues."""

    n_flips: int
    n_steps: int
    margin: float  # standard deviations from their mean to the edge


def count_above_noise(
    G: GramOperator, most: int, rng: np.random.Generator, *, least: int = 11
) -> CountAboveNoise:
    """Count eigenvalues above the edge of flipped data, taking strong ones out first.

    At most ``most`` are counted; ``least`` eigenpairs are returned if there are so
    many.
    """
    rounding = Counting.ROUNDING * float(np.finfo(G.A.dtype).eps)

    # Noise has no gap to resolve, and a percent of its eigenvalues is enough. Residuals
    # of several gaps would end the search while eigenvalues at the edge are too small.
    def leading(k: int) -> EigenPairs:
        return leading_eigenpairs(G, k, tol=1.0, quiet=True)

    pairs = leading(min(least, most + 1, G.A.shape[0]))
    rank = 0
    while True:
        noise = residual(G.A, pairs.vectors[:, :rank])
        for effort in _efforts(G, is_first_look=rank == 0):
            null = null_eigenvalues(noise, effort.n_flips, rng, effort.n_steps)
            edge = _edge(G, null, effort.margin)
            edge = max(edge, rounding * pairs.values[0])

            # If all eigenpairs are above the edge, look at more.
            while pairs.values[-1] > edge and len(pairs.values) <= most:
                pairs = leading(min(2 * len(pairs.values) + 5, most + 1))
            n_above = min(int((pairs.values > edge).sum()), most)
            if n_above > rank:
                break

        if n_above <= rank or n_above == most:
            # What new flips do not confirm does not count.
            return CountAboveNoise(pairs=pairs, rank=n_above, null=null, edge=edge)
        rank = n_above


def _efforts(G: GramOperator, *, is_first_look: bool) -> list[_Effort]:
    """Return the efforts to try, until one shows more eigenvalues above the edge.

    A first rough look, at one flip, is enough if components stand out clearly.
    """
    # Less effort for large data, whose flips vary little.
    limits = (Counting.SMALL_ENTRIES, Counting.MIDDLE_ENTRIES)
    size_class = int(np.searchsorted(limits, G.A.n_entries))

    steps_if_small, steps_if_large, steps_of_first_look = Counting.FLIP_STEPS
    is_small = size_class == 0
    thorough = _Effort(
        n_flips=Counting.FLIPS[size_class],
        n_steps=steps_if_small if is_small else steps_if_large,
        margin=Counting.MARGIN,
    )
    if not is_first_look:
        return [thorough]

    rough = _Effort(
        n_flips=1,
        n_steps=steps_if_small if is_small else steps_of_first_look,
        margin=Counting.MARGIN * Counting.ROUGH,
    )
    return [rough, thorough]


def _edge(G: GramOperator, null: np.ndarray, margin: float) -> float:
    """Put the edge some standard deviations above the mean of the null eigenvalues.

    Notes
    -----
    Few flips say little of the deviation: the law of white noise counts for some. The
    top eigenvalue of a white n x p matrix is about ``(sqrt(n) + sqrt(p))**2``, less p
    where the Gram matrix is hollow, and its deviation that of Tracy and Widom times
    ``(sqrt(n) + sqrt(p)) * (1 / sqrt(n) + 1 / sqrt(p))**(1/3)``. Rows of unequal length
    are as good as ``n = sum(s)**2 / sum(s**2)`` alike, s being squared lengths.
    """
    sqnorms = G.A.sqnorms
    n_features = G.A.shape[1]
    n_rows = sqnorms.sum() ** 2 / np.square(sqnorms).sum()
    root_of_rows = np.sqrt(n_rows)
    root_of_features = np.sqrt(n_features)
    root = root_of_rows + root_of_features
    scale = root * (1 / root_of_rows + 1 / root_of_features) ** (1 / 3)
    relative_deviation = TRACY_WIDOM_DEVIATION * scale / (root**2 - n_features)

    n_flips = len(null)
    mean = null.mean()
    prior_squares = Counting.PRIOR_FLIPS * (relative_deviation * mean) ** 2
    squares = prior_squares + ((null - mean) ** 2).sum()
    deviation = np.sqrt(squares / (Counting.PRIOR_FLIPS + n_flips - 1))
    return float(mean + margin * deviation * np.sqrt(1 + 1 / n_flips))
