"""How much noise there is along centres, and how large the errors of centres are.

Along its own centre the noise of a row cannot be separated from its scale. So residuals
say how it varies by column, and rows of *other* clusters how columns vary together.
docs/statistics.md derives the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm.matrix import HOST, Groups, Matrix, Tall, sample_positions, to_host
from ihgmm.policy import Scales
from ihgmm.statistics.halves import compare_halves, split_clusters
from ihgmm.statistics.noise_along_centers import column_variances
from ihgmm.statistics.scale_equations import ScaledCenters


def noise_of_centers(
    X: Matrix, rows: Groups, fit: ScaledCenters
) -> tuple[np.ndarray, np.ndarray]:
    """Return noise ratios of clusters, and variances of the entries of their centres.

    The noise ratio, (n_clusters,), is the variance of noise along the centre over that
    in an average direction; variances are of shape (n_clusters, n_features).

    Notes
    -----
    In units where A is 1, with residuals e, the squares q of the unit centre, and the
    variance s_i of row i along the centre, the variance in column j is

        sum(a_i**2 * e_ij**2)
        + q_j / n * (mean(s) + 2 * sum(a_i * e_ij**2) - 2 * (1 - q_j) * sum(a_i * s_i))

    since the scales of a cluster have mean 1, so that along the centre all rows count
    alike. Where rows count by weights of users, the part of a row in the mean of the
    scales takes the place of 1 / n.
    """
    weights = fit.weights
    counts = rows.weighted(rows.ops.xp.ones_like(weights))
    mean_shares = counts / rows.row_sums(counts)[0]
    sums = _sum_squared_residuals(
        X, rows, fit, squared_weights=weights**2, products=weights * mean_shares
    )

    units = HOST.unit_rows(fit.centers.astype(np.float64))
    ratio_of_columns = _ratio_of_columns(rows, sums.by_ones, units)
    noise_ratio = ratio_of_columns * _ratio_of_correlation(X, rows)

    s = fit.noise_variances * rows.to_rows(noise_ratio)
    mean_noise = rows.sums(mean_shares**2 * s)[:, None]
    weighted_noise = rows.sums(weights * mean_shares * s)[:, None]
    across_center = 1 - units**2
    along_center = mean_noise + 2 * sums.by_products
    along_center = along_center - 2 * across_center * weighted_noise
    variances = sums.by_squared_weights + units**2 * along_center
    return noise_ratio, np.maximum(variances, 0.0)


@dataclass(frozen=True, eq=False)
class _SquaredResiduals:
    """Sums of squared residuals with three weights, (n_clusters, n_features) each."""

    by_ones: np.ndarray
    by_squared_weights: np.ndarray
    by_products: np.ndarray  # of weights in centres and in mean scales


def _sum_squared_residuals(
    X: Matrix, rows: Groups, fit: ScaledCenters, squared_weights: Tall, products: Tall
) -> _SquaredResiduals:
    """Sum up squares of residuals over clusters, in one reading of the rows."""
    centers = fit.centers.astype(np.float64)
    k, p = centers.shape
    # A residual is too small by the share of the row in its own centre, which may be
    # all of it.
    shares = fit.weights * fit.scales
    shares = rows.ops.clip(shares, None, Scales.LARGEST_SHARE)

    def sum_block(
        block: Matrix,
        labels: Tall,
        scales: Tall,
        shares: Tall,
        squared_weights: Tall,
        products: Tall,
    ) -> tuple[tuple[()], tuple[np.ndarray | float]]:
        ops = block.ops
        xp = ops.xp
        totals: np.ndarray | float = 0.0

        for at in block.dense_ranges(2**18):  # so few entries stay in the cache
            x = ops.widen(block.rows(at))
            centers_of_rows = xp.take(ops.to_device(centers, x), labels[at], axis=0)
            residuals = x - scales[at][:, None] * centers_of_rows
            part_of_others = 1 - shares[at]
            squares = residuals**2 / part_of_others[:, None]

            members = ops.one_hot(labels[at], k, squares)
            weighted_members = (
                members,
                members * squared_weights[at][:, None],
                members * products[at][:, None],
            )
            sides = xp.concat(weighted_members, axis=1)
            totals = totals + ops.tall_dot(sides, squares)

        return (), (totals,)

    _, (totals,) = X.sweep(
        sum_block,
        X.to_device(rows.labels),
        X.to_device(fit.scales),
        X.to_device(shares),
        X.to_device(squared_weights),
        X.to_device(products),
    )
    sums, weighted_sums, sums_by_products = totals.reshape(3, k, p)
    return _SquaredResiduals(
        by_ones=sums, by_squared_weights=weighted_sums, by_products=sums_by_products
    )


def _ratio_of_columns(
    rows: Groups, squares: np.ndarray, units: np.ndarray
) -> np.ndarray:
    """Return noise along centres over that of the average column, (n_clusters,).

    ``squares`` are sums of squared residuals by cluster and column. Entries count as
    independent here.
    """
    sizes = np.maximum(rows.sizes, 1.0)
    variances, along_centers = column_variances(squares / sizes[:, None], units)
    ratios: np.ndarray = HOST.ratio(along_centers, variances.mean(axis=1), 1.0)
    return ratios


def _ratio_of_correlation(X: Matrix, rows: Groups) -> np.ndarray:
    """Return noise along centres over that of independent entries, (n_clusters,).

    Rows of other clusters show it; it is 1 where no cluster has four rows.
    """
    drawn = sample_positions(X.shape[0], Scales.ROWS)
    labels = to_host(rows.ops.take_rows(rows.labels, drawn))
    sample = X if len(drawn) == X.shape[0] else X.keep_rows(drawn)

    rng = np.random.default_rng(0)
    split = split_clusters(labels, len(rows.sizes), n_folds=4, rng=rng)
    halves = compare_halves(sample, split)

    noise = halves.noise_variances[:, 0]
    ratios = HOST.ratio(noise, halves.independent_noise, 1.0)  # (2, n_clusters)
    mean_ratios: np.ndarray = ratios.mean(axis=0)
    return mean_ratios
