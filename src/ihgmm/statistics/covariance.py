"""One covariance of the noise for all clusters, in the leading directions.

Within the span of the centres and in directions where noise stands out the covariance
is full; in all others noise has one level and no correlation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from ihgmm.matrix import HOST, Groups, Matrix, Stretched, Tall, to_host
from ihgmm.policy import Small, TiedNoise
from ihgmm.statistics.shared_covariance import shared_covariance


@dataclass(frozen=True, eq=False)
class Covariance:
    """``level**2 * (I + B @ diag(deviations**2 - 1) @ B.T)``, the level apart."""

    directions: np.ndarray  # B, (n_features, m), orthonormal
    deviations: np.ndarray  # (m,): of the noise along them, in levels

    @classmethod
    def none(cls, n_features: int) -> Covariance:
        """Return that of noise that is the same in all directions."""
        return cls(directions=np.zeros((n_features, 0)), deviations=np.zeros(0))

    def whiten(self, X: Matrix) -> Matrix:
        """Return rows whose noise is the same in all directions."""
        if len(self.deviations) == 0:
            return X
        return Stretched(X, self.directions, 1 / self.deviations)

    def color(self, rows: np.ndarray, power: float = 1.0) -> np.ndarray:
        """Return rows of white noise with this covariance; power -1 undoes that."""
        factors = self.deviations**power - 1
        coordinates = rows @ self.directions
        return rows + (coordinates * factors) @ self.directions.T

    @property
    def mean_variance(self) -> float:
        """Variance of a feature, on average, over that of other directions."""
        n_features = len(self.directions)
        excess = np.sum(self.deviations**2 - 1)
        return float(1 + excess / n_features)

    @property
    def log_volume(self) -> float:
        """What whitening takes off the log-density of a row."""
        return float(np.log(self.deviations).sum())

    @property
    def n_parameters(self) -> int:
        """How many numbers describe it, the level apart."""
        p, m = self.directions.shape
        return p * m - m * (m - 1) // 2


def leading_covariance(X: Matrix, labels: Tall, k: int, rng: Generator) -> Covariance:
    """Estimate the covariance of the noise, given the labels.

    Notes
    -----
    Directions of noise outside of the span of the centres, where rows have no signal,
    are leading right singular vectors of X there. Those that stand out are kept, and
    corrected for what chance adds to them (:class:`_Spikes`). In these directions and
    the span, the covariance is the most likely one if scales may be anything
    (:func:`~ihgmm.statistics.shared_covariance.shared_covariance`).
    """
    p = X.shape[1]
    rows = X.ops.groups(labels, k, X.weights)
    is_nonzero = X.ops.widen(X.sqnorms > 0)
    counts = rows.weighted(is_nonzero)
    sizes = rows.sums(counts)
    n = int(sizes.sum())
    if n <= k:
        return Covariance.none(p)

    units = _center_directions(X, rows)
    noise = _noise_directions(X, units, counts, n, rng)
    if noise is None:
        return Covariance.none(p)

    moments = _moments_of_clusters(X, labels, counts, noise.directions, k)
    hidden = units @ noise.directions
    S = shared_covariance(hidden, moments / noise.level, sizes)
    S = S * np.outer(noise.shrinkage, noise.shrinkage)

    variances, vectors = np.linalg.eigh(S)
    variances = np.maximum(variances, TiedNoise.RIDGE)
    return Covariance(
        directions=noise.directions @ vectors, deviations=np.sqrt(variances)
    )


def _center_directions(X: Matrix, rows: Groups) -> np.ndarray:
    """Return unit centres in which rows count by their length along them."""
    weights = X.ops.ratio(1.0, X.ops.xp.sqrt(X.sqnorms))
    for _ in range(2):
        sums = rows.weighted_sums(X, rows.weighted(weights))
        units = HOST.unit_rows(sums.astype(np.float64))
        lengths = rows.inner_products(X, units)
        weights = X.ops.clip(lengths, 0.0, None)
    return units


@dataclass(frozen=True, eq=False)
class _NoiseDirections:
    """Directions in which noise may have variances of its own, and the level beside."""

    directions: np.ndarray  # (n_features, m): the span of centres, then those outside
    shrinkage: np.ndarray  # (m,): factors that take off what chance adds to deviations
    level: float  # variance in all other directions


def _noise_directions(
    X: Matrix, units: np.ndarray, counts: Tall, n: int, rng: Generator
) -> _NoiseDirections | None:
    """Return the span of the centres and directions of noise; None without noise.

    ``units`` are the centres at length 1, and ``counts`` how much each of n rows that
    are not zero counts.
    """
    span = _span_of_rows(units)
    n_outside = X.shape[1] - span.shape[1]
    n_wanted = min(
        n // TiedNoise.ROWS_A_DIRECTION,
        TiedNoise.DIRECTIONS,
        n_outside - 1,
    )
    roots = X.cast(counts**0.5)
    roots = X.ops.persist(roots)
    leading, squares = _leading_directions(X, span, roots, max(n_wanted, 0), rng)

    total_squares = X.ops.number(X.ops.xp.sum(counts * X.sqnorms))
    squares_in_span = np.trace(_scatter(X, span, roots))
    squares_outside = max(total_squares - squares_in_span, 0.0)
    variance_outside = squares_outside / n
    spikes = _Spikes.stand_out(squares / n, variance_outside, n_outside, n)

    directions = np.hstack([span, leading[:, : len(spikes.variances)]])
    is_without_noise = spikes.level <= Small.ROUNDING * total_squares / n
    if is_without_noise or not directions.size:
        return None

    return _NoiseDirections(
        directions=directions,
        shrinkage=np.append(np.ones(span.shape[1]), spikes.shrinkage()),
        level=spikes.level,
    )


def _span_of_rows(units: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the span of unit rows, (n_features, m)."""
    _, values, basis = np.linalg.svd(units, full_matrices=False)
    return basis[values > Small.SINE].T


def _leading_directions(
    X: Matrix, span: np.ndarray, roots: Tall, n_wanted: int, rng: Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return leading right singular vectors of X outside a span, and squared values.

    Rows are multiplied by ``roots``. Subspace iteration with some spare directions
    finds them: (n_features, n_wanted) and (n_wanted,), the largest first.
    """
    p = X.shape[1]
    if not n_wanted:
        return np.zeros((p, 0)), np.zeros(0)

    def orthonormal_outside(W: np.ndarray) -> np.ndarray:
        W = W - span @ (span.T @ W)
        return np.linalg.qr(W).Q

    width = min(n_wanted + TiedNoise.SPARE, p - span.shape[1])
    W = rng.standard_normal((p, width))
    for _ in range(TiedNoise.POWERS):
        W = orthonormal_outside(W)
        W = to_host(X.gram_product(W, roots))
        W = W.astype(np.float64)
    W = orthonormal_outside(W)

    squares, vectors = np.linalg.eigh(_scatter(X, W, roots))
    # The largest values come last.
    directions = (W @ vectors)[:, ::-1]
    squares = squares[::-1]
    return directions[:, :n_wanted], squares[:n_wanted]


def _scatter(X: Matrix, directions: np.ndarray, roots: Tall) -> np.ndarray:
    """Return ``Y.T @ Y``, Y being coordinates of rows that are multiplied by roots."""
    coordinates = (X @ directions) * roots[:, None]
    return X.ops.tall_dot(coordinates, coordinates)


@dataclass(frozen=True, eq=False)
class _Spikes:
    """Variances that stand out from white noise, and the level of that noise.

    Notes
    -----
    With ``gamma = n_directions / n``, the eigenvalues that n rows of white noise show
    in so many directions stay below ``edge = (1 + sqrt(gamma))**2`` levels. A true
    variance t shows as ``t * (1 + gamma / (t - 1))`` levels (Baik and Silverstein).
    """

    variances: np.ndarray  # (m,): that stand out, the largest first
    level: float  # variance of the noise in the other directions
    gamma: float
    largest: float  # variance of all

    @classmethod
    def stand_out(
        cls, variances: np.ndarray, total: float, n_directions: int, n: int
    ) -> _Spikes:
        """Find which of the leading variances stand out from the rest of the total."""
        gamma = n_directions / n
        least_ratio = TiedNoise.MARGIN * (1 + gamma**0.5) ** 2
        remaining = total
        m = 0

        while m < len(variances) and n_directions - m > 1:
            variance_of_others = remaining - variances[m]
            mean_of_others = variance_of_others / (n_directions - m - 1)
            if variances[m] <= least_ratio * mean_of_others:
                break
            remaining = variance_of_others
            m += 1

        return cls(
            variances=variances[:m],
            level=remaining / max(n_directions - m, 1),
            gamma=gamma,
            largest=max(variances[:1], default=0.0),
        )

    def shrinkage(self) -> np.ndarray:
        """Return factors of deviations that take off what chance has added."""
        # Beside a variance so many times as large, noise is none.
        least_level = max(self.largest / TiedNoise.RATIO, np.finfo(float).tiny)
        level = max(self.level, least_level)
        edge = (1 + self.gamma**0.5) ** 2
        observed = np.maximum(self.variances / level, edge)
        # The larger root of true**2 - b * true + observed = 0.
        b = observed + 1 - self.gamma
        discriminant = np.maximum(b**2 - 4 * observed, 0.0)
        true_variances = (b + np.sqrt(discriminant)) / 2
        return np.sqrt(true_variances / observed)


def _moments_of_clusters(
    X: Matrix, labels: Tall, counts: Tall, directions: np.ndarray, k: int
) -> np.ndarray:
    """Return sums of ``y @ y.T`` for each cluster, y being coordinates of rows."""

    def sum_block(block: Matrix, labels: Tall, counts: Tall) -> Any:
        ops = block.ops
        Y = ops.widen(block @ directions)
        members = ops.one_hot(labels, k, Y)
        members = members * counts[:, None]
        moments = []
        for j in range(k):
            rows_of_cluster = Y * members[:, j : j + 1]
            moments.append(rows_of_cluster.T @ Y)
        return (), (ops.xp.stack(moments),)

    _, (moments,) = X.sweep(sum_block, labels, counts)
    return moments
