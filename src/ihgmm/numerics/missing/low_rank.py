"""The model of rows by which missing cells are filled, and what it says of rows.

A row is taken for ``scale * (loadings @ a + noise)``: positions ``a`` are Gaussian with
covariance one, so are logarithms of scales, and each column has its level of noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm.matrix import Ops, Tall
from ihgmm.policy import Filling

# Scales that a row may have, as multiples of the size of its observed cells.
MULTIPLES = np.geomspace(1 / Filling.LARGEST, Filling.LARGEST, Filling.STEPS)


@dataclass(frozen=True, eq=False)
class LowRankModel:
    """The model of rows whose cells are in units of their columns.

    Notes
    -----
    With t the scale of a row over its size, ``a ~ N(m, I)`` its positions, B the
    loadings and V the diagonal matrix of the variances, a row divided by its size is

        ``y = t * (B @ a + e)`` with ``e ~ N(0, V)``.
    """

    loadings: np.ndarray  # (n_features, rank)
    variances: np.ndarray  # (n_features,), of noise
    mean: np.ndarray  # (rank,), of positions
    log_scale: float  # mean of the logarithms of scales
    spread: float  # standard deviation of the logarithms of scales

    @property
    def rank(self) -> int:
        """Number of positions of a row."""
        return len(self.mean)

    @property
    def weighted_loadings(self) -> np.ndarray:
        """Loadings over variances, (n_features, rank)."""
        return self.loadings / self.variances[:, None]

    def posterior(
        self, ops: Ops, values: Tall, weights: Tall, log_sizes: Tall
    ) -> RowPosterior:
        """Return what the observed cells of rows say of their scale and positions.

        Parameters
        ----------
        ops : Ops
            What serves the arrays.
        values : array of shape (n_rows, n_features)
            Rows divided by their size; cells count by their weights, and are 0 where
            they are missing.
        weights : array of shape (n_rows, n_features)
            1 for observed cells, 0 for missing ones, or between.
        log_sizes : array of shape (n_rows,)
            Logarithms of the sizes.

        Notes
        -----
        Of observed cells, the precision of positions is ``P = B.T @ V^-1 @ B + I``,
        whatever the scale; their mean is ``P^-1 @ (B.T @ V^-1 @ y / t + m)``.
        """
        xp = ops.xp
        weighted_loadings = self.weighted_loadings
        products = weighted_loadings[:, :, None] * self.loadings[:, None, :]
        products = products.reshape(-1, self.rank**2)
        # The systems are small; in single precision they may be next to singular.
        precisions = ops.widen(weights @ ops.cast_like(products, weights))
        precisions = xp.reshape(precisions, (-1, self.rank, self.rank))
        precisions = precisions + ops.cast_like(np.eye(self.rank), precisions)
        covariances = xp.linalg.inv(precisions)

        projections = ops.widen(values @ ops.cast_like(weighted_loadings, values))
        mean = ops.cast_like(self.mean, projections)
        means = xp.zeros_like(projections) + mean
        solved = covariances @ xp.stack([projections, means], axis=2)
        data_part = solved[:, :, 0]

        levels = ops.cast_like(self.variances**0.5, values)
        sqnorms = xp.sum(ops.widen(values / levels) ** 2, axis=1)
        scores = self._scale_scores(
            ops,
            squares=sqnorms - xp.sum(projections * data_part, axis=1),
            inner_products=data_part @ mean,
            n_observed=ops.widen(xp.sum(weights, axis=1)),
            log_sizes=log_sizes,
        )

        return RowPosterior(
            model=self,
            ops=ops,
            values=values,
            data_part=data_part,
            prior_part=solved[:, :, 1],
            covariances=covariances,
            scale_probabilities=ops.softmax(scores),
        )

    def _scale_scores(
        self,
        ops: Ops,
        *,
        squares: Tall,
        inner_products: Tall,
        n_observed: Tall,
        log_sizes: Tall,
    ) -> Tall:
        """Return log-densities of the multiples as scales, up to a term of each row.

        They are of shape (n_rows, n_multiples).

        Notes
        -----
        The observed cells have the covariance ``t**2 * S`` with ``S = B @ B.T + V``,
        and the mean ``t * B @ m``. With ``squares = y @ S^-1 @ y`` and ``inner_products
        = y @ S^-1 @ B @ m``, the logarithm of their density is

            ``inner_products / t - squares / (2 * t**2) - n_observed * log(t)``,

        to which that of the scale is added.
        """
        log_multiples = ops.cast_like(np.log(MULTIPLES)[None], squares)
        inverses = ops.cast_like(1 / MULTIPLES[None], squares)
        deviations = log_sizes[:, None] - self.log_scale + log_multiples
        deviations = deviations / self.spread

        scores = inner_products[:, None] * inverses
        scores = scores - squares[:, None] * inverses**2 / 2
        return scores - n_observed[:, None] * log_multiples - deviations**2 / 2


@dataclass(frozen=True, eq=False)
class RowPosterior:
    """What observed cells say of the scale t and the positions of rows.

    Given t, positions have the mean ``data_part / t + prior_part``.
    """

    model: LowRankModel
    ops: Ops
    values: Tall  # (n_rows, n_features)
    data_part: Tall  # (n_rows, rank)
    prior_part: Tall  # (n_rows, rank)
    covariances: Tall  # (n_rows, rank, rank), of positions
    scale_probabilities: Tall  # (n_rows, n_multiples)

    def scale_moment(self, power: float) -> Tall:
        """Return the mean of a power of the scale, as a column."""
        probabilities = self.scale_probabilities
        powers = MULTIPLES[:, None] ** power
        return probabilities @ self.ops.cast_like(powers, probabilities)

    def cell_means(self) -> Tall:
        """Return the mean of every cell, (n_rows, n_features)."""
        return self._cells(self.data_part + self.scale_moment(1.0) * self.prior_part)

    def draw_cells(self, seed: int) -> Tall:
        """Return every cell as it may be, (n_rows, n_features)."""
        ops = self.ops
        n_rows, rank = self.data_part.shape
        rng = np.random.default_rng(seed)

        # The first of several that come at these rates is one of them by its chance.
        times = rng.exponential(size=(n_rows, len(MULTIPLES)))
        races = self.scale_probabilities / ops.cast_like(times, self.data_part)
        multiples = ops.cast_like(MULTIPLES, self.data_part)
        scales = ops.xp.take(multiples, ops.xp.argmax(races, axis=1))[:, None]

        roots = ops.xp.linalg.cholesky(self.covariances)
        shifts = ops.cast_like(rng.standard_normal((n_rows, rank, 1)), roots)
        positions = self.prior_part + (roots @ shifts)[:, :, 0]
        cells = self._cells(self.data_part + scales * positions)

        standard_noise = rng.standard_normal(self.values.shape)
        noise = ops.cast_like(self.model.variances**0.5 * standard_noise, cells)
        return cells + ops.xp.astype(scales, cells.dtype) * noise

    def _cells(self, scaled_positions: Tall) -> Tall:
        """Return cells without noise, in the type of the data."""
        positions = self.ops.xp.astype(scaled_positions, self.values.dtype)
        return positions @ self.ops.cast_like(self.model.loadings.T, self.values)
