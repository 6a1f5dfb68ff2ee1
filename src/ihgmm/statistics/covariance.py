"""One covariance of the noise for all clusters, in the leading directions.

Within the span of the centres and in directions where noise stands out the covariance
is full; in all others noise has one level and no correlation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.random import Generator

from ihgmm.matrix import HOST, Matrix, Stretched, Tall, sample_positions, to_host
from ihgmm.policy import Small, TiedNoise
from ihgmm.statistics import leave_one_out
from ihgmm.statistics.model import NOISE_STRUCTURES
from ihgmm.statistics.residuals import shared_covariance

Structure = Literal["common", "class", "individual", "tied"]
STRUCTURES: tuple[Structure, ...] = (*NOISE_STRUCTURES, "tied")


@dataclass(frozen=True, eq=False)
class Covariance:
    """``level**2 * (I + B @ diag(deviations**2 - 1) @ B.T)``, the level apart."""

    directions: np.ndarray  # B, (n_features, m), orthonormal
    deviations: np.ndarray  # (m,): of the noise along them, in levels

    @classmethod
    def none(cls, n_features: int) -> Covariance:
        """Return that of noise that is the same in all directions."""
        return cls(np.zeros((n_features, 0)), np.zeros(0))

    def whiten(self, X: Matrix) -> Matrix:
        """Return rows whose noise is the same in all directions."""
        if len(self.deviations) == 0:
            return X
        return Stretched(X, self.directions, 1 / self.deviations)

    def color(self, rows: np.ndarray, power: float = 1.0) -> np.ndarray:
        """Return rows of white noise with this covariance; with power -1, the rows."""
        factors = self.deviations**power - 1
        return rows + ((rows @ self.directions) * factors) @ self.directions.T

    @property
    def mean_variance(self) -> float:
        """Variance of a feature, on average, over that of other directions."""
        return float(1 + np.sum(self.deviations**2 - 1) / len(self.directions))

    @property
    def log_volume(self) -> float:
        """What whitening takes off the log-density of a row."""
        return float(np.log(self.deviations).sum())

    @property
    def n_parameters(self) -> int:
        """How many numbers describe it, the level apart."""
        p, m = self.directions.shape
        return p * m - m * (m - 1) // 2


Fitted = tuple[leave_one_out.MixtureFit, Covariance]


def fit_noise(
    X: Matrix,
    labels: Tall,
    n_clusters: int,
    noise: Structure,
    rng: Generator,
    covariances: int = TiedNoise.COVARIANCES,
    **rounds: Any,
) -> Fitted:
    """Fit a mixture with noise of some kind, with the options ``rounds``.

    A tied covariance is that of the labels. Once it is taken off, a mixture with common
    noise fits, whose labels give the next of ``covariances``, until they stay the same.
    """
    if noise != "tied":
        labels = leave_one_out.refine_labels(X, labels, n_clusters).labels
        start = leave_one_out.indicators(X, labels, n_clusters)
        mixture = leave_one_out.fit_mixture(X, start, noise=noise, **rounds)
        return mixture, Covariance.none(X.shape[1])
    # Refined labels would go by cosines, which such noise makes wrong.
    for _ in range(covariances):
        covariance = leading_covariance(X, labels, n_clusters, rng)
        white, before = covariance.whiten(X), labels
        start = leave_one_out.indicators(X, labels, n_clusters)
        mixture = leave_one_out.fit_mixture(white, start, noise="common", **rounds)
        labels = X.ops.persist(X.ops.xp.argmax(mixture.memberships, axis=1))
        if not X.ops.number(X.ops.xp.any(labels != before)):
            break
    return mixture, covariance


def compare_noises(
    X: Matrix, labels: Tall, n_clusters: int, rng: Generator
) -> dict[Structure, float]:
    """Return the information criterion of each kind of noise, a row, over the least."""
    # Kinds differ by far more than the last rounds, and rows beyond some, change.
    drawn = sample_positions(X.shape[0], TiedNoise.TRIAL_ROWS)
    if len(drawn) < X.shape[0]:
        X, labels = X.take(drawn), X.ops.take_rows(labels, drawn)
        labels = X.to_device(to_host(labels))
    values: dict[Structure, float] = {}
    for noise in STRUCTURES:
        few: Any = {"covariances": 1, "max_iter": TiedNoise.TRIAL_ROUNDS}
        fit = fit_noise(X, labels, n_clusters, noise, rng, **few)
        values[noise] = information(X, fit, noise)
    least = min(values.values())
    return {noise: (value - least) / len(drawn) for noise, value in values.items()}


def information(X: Matrix, fit: Fitted, kind: Structure, akaike: bool = False) -> float:
    """Return the information criterion of a mixture, Bayes's or Akaike's, in X's unit.

    Rows are judged by centres that the other rows give, which need no penalty.
    """
    mixture, covariance = fit
    live = int(X.ops.number(X.ops.xp.count_nonzero(X.sqnorms)))
    n, p, k = max(live, 1), X.shape[1], len(mixture.mixing_weights)
    levels, cells = {"individual": (live, p), "class": (k, n * p)}.get(kind, (1, n * p))
    others = k - 1 + covariance.n_parameters
    penalty = 2 * (others + levels)
    if not akaike:
        penalty = others * np.log(n) + levels * np.log(cells)
    return float(penalty - 2 * (mixture.log_likelihood - live * covariance.log_volume))


def leading_covariance(X: Matrix, labels: Tall, k: int, rng: Generator) -> Covariance:
    """Estimate the covariance of the noise, given the labels."""
    ops, p = X.ops, X.shape[1]
    rows = ops.groups(labels, k, X.weights)
    counts = rows.weighted(ops.widen(X.sqnorms > 0))
    sizes = rows.sums(counts)
    n = int(sizes.sum())
    # Directions of the centres; rows count by their length along them.
    weights = ops.ratio(1.0, ops.xp.sqrt(X.sqnorms))
    for _ in range(2):
        sums = rows.weighted_sums(X, rows.weighted(weights))
        units = HOST.unit_rows(sums.astype(np.float64))
        weights = ops.clip(rows.inner_products(X, units), 0.0, None)
    centers = np.linalg.svd(units, full_matrices=False)
    span = centers[2][centers[1] > Small.SINE].T
    width = min(n // TiedNoise.ROWS_A_DIRECTION, TiedNoise.DIRECTIONS)
    width = max(min(width, p - span.shape[1] - 1), 0)
    root = ops.persist(X.cast(counts**0.5))
    if n <= k:
        return Covariance.none(p)
    # Leading right singular vectors outside of the span, and squares.
    outside, squares = np.zeros((p, 0)), np.zeros(0)
    if width:
        W = rng.standard_normal((p, min(width + TiedNoise.SPARE, p - span.shape[1])))
        for _ in range(TiedNoise.POWERS):
            W = np.linalg.qr(W - span @ (span.T @ W))[0]
            W = to_host(X.gram_product(W, root)).astype(np.float64)
        W = np.linalg.qr(W - span @ (span.T @ W))[0]
        squares, vectors = np.linalg.eigh(ops.tall_dot(Y := (X @ W) * root[:, None], Y))
        outside, squares = (W @ vectors)[:, ::-1][:, :width], squares[::-1][:width]
    inside = np.trace(ops.tall_dot(Y := (X @ span) * root[:, None], Y))
    squared = ops.number(ops.xp.sum(counts * X.sqnorms))
    total = max(squared - inside, 0.0) / n
    # How many directions stand out, and the level of noise in the others.
    squares, n_directions, left, m = squares / n, p - span.shape[1], total, 0
    gamma = n_directions / n
    edge = (1 + gamma**0.5) ** 2
    while m < len(squares) and n_directions - m > 1:
        rest = (left - squares[m]) / (n_directions - m - 1)
        if squares[m] <= TiedNoise.MARGIN * edge * rest:
            break
        left -= squares[m]
        m += 1
    level = left / max(n_directions - m, 1)
    L = np.hstack([span, outside[:, :m]])
    if level <= Small.ROUNDING * squared / n or not L.size:  # no noise is seen
        return Covariance.none(p)

    def sums_of(block: Matrix, labels: Tall, counts: Tall) -> Any:
        ops, Y = block.ops, block.ops.widen(block @ L)
        members = ops.one_hot(labels, k, Y) * counts[:, None]
        by_cluster = [(Y * members[:, j : j + 1]).T @ Y for j in range(k)]
        return (), (ops.xp.stack(by_cluster),)

    _, (moments,) = X.sweep(sums_of, labels, counts)
    S = shared_covariance(units @ L, moments / level, sizes)
    # Beside a variance so many times as large, noise is none.
    least = max(max(squares[:1], default=0.0) / TiedNoise.RATIO, np.finfo(float).tiny)
    seen = np.maximum(squares[:m] / max(level, least), edge)
    b = seen + 1 - gamma
    true = (b + np.sqrt(np.maximum(b**2 - 4 * seen, 0.0))) / 2
    shrink = np.append(np.ones(span.shape[1]), np.sqrt(true / seen))
    values, vectors = np.linalg.eigh(S * np.outer(shrink, shrink))
    return Covariance(L @ vectors, np.sqrt(np.maximum(values, TiedNoise.RIDGE)))
