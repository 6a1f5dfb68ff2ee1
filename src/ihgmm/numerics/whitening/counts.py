"""Biwhitening of counts, whose variance is ``mean + c * mean**2``.

Rows and columns are multiplied by factors that make the mean variance of each of them
one, as those of Landa, Zhang and Kluger (2022) do. The dispersion c is estimated from
the residuals of a fit of low rank.
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
    """Find factors of columns that, with those of rows, make mean variances one.

    Factors of rows follow from these: the whitener finds them for any rows.
    """
    n_samples, n_features = X.shape
    squared_factors = np.ones(n_features)
    for _ in range(2):  # rounds of Sinkhorn's algorithm: ten were no better
        variance_sums, entry_sums = _column_sums(X, squared_factors, dispersion)
        squared_factors = inverse_mean_squares(X, variance_sums)

    # A count in a column of mean m is about 1 / sqrt(m) after whitening. Two rows that
    # share one have 1 / m added to their inner product, whose noise is the root of the
    # number of columns. Columns so rare that one coincidence would be more than all
    # noise get smaller factors.
    means = entry_sums * (X.unit / n_samples)  # weights of rows are 1 on average
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

    The first is of variances, each divided by the mean variance of its row after the
    columns were multiplied by their factors. The second is of the entries as X has
    them. Rows count by their weights in both.
    """

    def block_sums(
        block: Materialized, weights: Tall | None
    ) -> tuple[tuple[()], tuple[Tall, Tall]]:
        """Return no lines for each row, and the sums over the rows of a block."""
        refuse_negative(block)
        ops = block.ops
        squares = None
        if dispersion:  # squares of counts are exact in any type, unlike variances
            squares = block.with_values(block.values**2, block.metadata)

        def sums_of_variances(sum_up: Callable[[Matrix], Tall]) -> Tall:
            """Return sums of variances, given a function that sums up any entries."""
            sums = ops.widen(sum_up(block)) / block.unit
            if squares is None:
                return sums
            return count_variances(sums, ops.widen(sum_up(squares)), dispersion)

        row_variances = sums_of_variances(lambda entries: entries @ squared_factors)
        inverse_variances = ops.ratio(float(block.shape[1]), row_variances)  # of rows

        ones = ops.xp.ones_like(inverse_variances)
        row_weights = ones if weights is None else ops.widen(weights)
        line_weights = inverse_variances * row_weights
        variance_sums = sums_of_variances(lambda entries: entries.adjoint(line_weights))
        return (), (variance_sums, ops.widen(block.adjoint(row_weights)))

    _, (variance_sums, entry_sums) = X.sweep(block_sums, X.weights)
    return variance_sums, entry_sums


def estimate_dispersion(X: Matrix) -> float:
    """Return c for which counts have the variance ``mean + c * mean**2``.

    Rows of X count alike.
    """
    dispersion = Whitening.DISPERSION  # a first guess
    for _ in range(2):
        dispersion = _dispersion_of_residuals(X, count_whitener(X, dispersion))
    return dispersion


def _dispersion_of_residuals(X: Matrix, whitener: Whitener) -> float:
    """Return the dispersion by what a fit of low rank leaves of whitened columns.

    Notes
    -----
    With f the factors of rows, the residual of a column, a sum of squares, has the mean
    ``sum(f**2 * m) + c * sum(f**2 * m**2)``. It is regressed on ``sum(f**2 * x)``, of
    mean ``sum(f**2 * m)``, whose slope is 1, and on ``sum(f**2 * (x**2 - x))``, of mean
    ``(1 + c) * sum(f**2 * m**2)``, whose slope is then ``c / (1 + c)``. All of these
    are divided by the number of rows; residuals by that number less the rank, as much
    as the fit has taken of them.
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

    # The error of a residual grows with its expected size.
    weights = HOST.ratio(1.0, np.square(linear + np.abs(quadratic)))
    slope = (weights * quadratic * (residuals - linear)).sum()
    slope /= max((weights * quadratic**2).sum(), Small.TINY)
    # A larger slope would rather come from a pattern that the fit has not taken.
    slope = float(np.clip(slope, 0.0, Whitening.LARGEST_SHARE))
    return slope / (1 - slope)


def _unbiased_residuals(fit: ColumnFit) -> np.ndarray:
    """Return squared norms of residuals of columns, with the noise that a fit took.

    Of the noise of a column the fit takes a share, the leverage of the column: they are
    the diagonal of ``F @ pinv(F.T @ F) @ F.T``.
    """
    F = fit.coordinates
    inverse = np.linalg.pinv(F.T @ F, hermitian=True)
    leverages = (F @ inverse * F).sum(axis=1)
    leverages = np.minimum(leverages, Whitening.LARGEST_LEVERAGE)

    residuals = fit.residuals / (1 - leverages)
    return np.maximum(residuals, Whitening.LEAST_NOISE * fit.sqnorms)
