"""Biwhitening of counts, whose variance is ``mean + c * mean**2``.

Factors of rows and columns make mean variances of rows and columns one, as those of
Landa, Zhang and Kluger (2022) do. The dispersion c is estimated from what a fit leaves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ihgmm.matrix import HOST, Matrix, Tall, to_host
from ihgmm.matrix.materialized import Materialized
from ihgmm.numerics.whitening.columns import ColumnFit, inverse_mean_squares
from ihgmm.numerics.whitening.whitener import (
    Whitener,
    count_variances,
    refuse_negative,
)
from ihgmm.policy import Small, Whitening


def count_whitener(X: Matrix, dispersion: float) -> Whitener:
    """Find factors of columns that, with those of rows, make mean variances one."""
    n_samples, n_features = X.shape
    squared_factors = np.ones(n_features)
    for _ in range(2):  # of Sinkhorn's algorithm: ten gave the same errors
        variances, counts = _column_sums(X, squared_factors, dispersion)
        squared_factors = inverse_mean_squares(X, variances)

    # Two rows that share an event in a column of mean m have 1 / m added to their inner
    # product, in which noise is the root of the number of columns. Rarer columns, where
    # one coincidence would be more than all noise, are left quieter than others.
    means = counts * (X.unit / n_samples)
    loudness = np.minimum(means * np.sqrt(n_features), 1.0)

    return Whitener(
        noise="counts",
        columns=np.sqrt(squared_factors * loudness),
        directions=np.zeros((n_features, 0)),
        strengths=np.zeros(0),
        dispersion=dispersion,
    )


def _column_sums(
    X: Matrix, squared_factors: np.ndarray, dispersion: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return two sums over rows for each column, (n_features,).

    They are those of variances, each over the mean variance of its row when columns
    have their factors, and those of the entries.
    """

    def block_sums(
        block: Materialized, weights: Tall | None
    ) -> tuple[tuple[()], tuple[Tall, Tall]]:
        """Return the sums over the rows of a block."""
        refuse_negative(block)
        ops = block.ops
        squares = None
        if dispersion:  # sums of squares are exact in any type, unlike variances
            squares = block.with_values(block.values**2, block.metadata)

        def variances(sums: Callable[[Matrix], Tall]) -> Tall:
            """Return sums of variances, given what sums the entries of a matrix."""
            sums_of_counts = ops.widen(sums(block)) / block.unit
            if squares is None:
                return sums_of_counts
            return count_variances(sums_of_counts, ops.widen(sums(squares)), dispersion)

        row_variances = variances(lambda counts: counts @ squared_factors)
        row_factors = ops.ratio(float(block.shape[1]), row_variances)

        ones = ops.xp.ones_like(row_factors)
        row_weights = ones if weights is None else ops.widen(weights)
        columns = variances(lambda counts: counts.adjoint(row_factors * row_weights))
        return (), (columns, ops.widen(block.adjoint(row_weights)))

    _, (variances, counts) = X.sweep(block_sums, X.weights)
    return variances, counts


def estimate_dispersion(X: Matrix) -> float:
    """Return c for which counts have the variance ``mean + c * mean**2``."""
    dispersion = Whitening.DISPERSION
    for _ in range(2):
        dispersion = _dispersion_of_residuals(X, count_whitener(X, dispersion))
    return dispersion


def _dispersion_of_residuals(X: Matrix, whitener: Whitener) -> float:
    """Return the dispersion by what a fit of low rank leaves of whitened columns.

    Notes
    -----
    With f the factors of rows, what is left of a column has the mean ``sum(f**2 * m) +
    c * sum(f**2 * m**2)``. It is regressed on sums of ``f**2 * x``, of mean ``f**2 *
    m``, and of ``f**2 * (x**2 - x)``, of mean ``(1 + c) * f**2 * m**2``: so the slope
    of the second is ``c / (1 + c)``.
    """
    n_rows = X.shape[0]
    white = whitener(X)
    rank = min(*white.shape, Whitening.COUNT_RANK) // 4
    fit = ColumnFit.of(white, rank)
    residuals = _unbiased_residuals(fit) / (n_rows - rank)

    row_factors = X.to_device(white.row_scale)
    sums = to_host(X.adjoint(row_factors**2)).astype(np.float64)
    linear = sums * whitener.columns**2 / (n_rows * X.unit)
    quadratic = fit.sqnorms / n_rows - linear

    # The error of what is left grows with its size.
    weights = HOST.ratio(1.0, np.square(linear + np.abs(quadratic)))
    slope = (weights * quadratic * (residuals - linear)).sum()
    slope /= max((weights * quadratic**2).sum(), Small.TINY)
    # Beyond that what is left is rather a pattern that the fit has not taken.
    slope = float(np.clip(slope, 0.0, Whitening.LARGEST_SHARE))
    return slope / (1 - slope)


def _unbiased_residuals(fit: ColumnFit) -> np.ndarray:
    """Return what a fit leaves of columns, and the noise that it has taken of them.

    It takes more of a column that has a large share in it: of its leverage, which is
    the diagonal of ``F @ pinv(F.T @ F) @ F.T``.
    """
    F = fit.coordinates
    inverse = np.linalg.pinv(F.T @ F, hermitian=True)
    leverages = (F @ inverse * F).sum(axis=1)
    leverages = np.minimum(leverages, Whitening.LARGEST_LEVERAGE)

    residuals = fit.residuals / (1 - leverages)
    return np.maximum(residuals, Whitening.LEAST_NOISE * fit.sqnorms)
