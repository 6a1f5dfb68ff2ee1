"""Means of features in each cluster, and how cells scatter around them.

Cells that were filled in say nothing: all sums are over observed cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ihgmm.matrix import HOST, Filled, Groups, Matrix, MissingIndicator, Tall, to_host
from ihgmm.policy import Contrasts, Small
from ihgmm.statistics.described_fit import DescribedFit
from ihgmm.statistics.leave_one_out import indicators


@dataclass(frozen=True, eq=False)
class FeatureMeans:
    """Means of cells, (n_clusters, n_features), in the unit of the matrix."""

    means: np.ndarray  # NaN where no cell was observed
    counts: np.ndarray  # of observed cells
    scatter: CellScatter | None  # None where the data have no noise


@dataclass(frozen=True, eq=False)
class CellScatter:
    """How cells scatter around multiples of the pattern of their cluster.

    ``excess lengths`` are how much longer each row makes the mean of its cluster: its
    scale over the mean scale, less 1.
    """

    noise_levels: np.ndarray  # (n_features,): standard deviations of the noise
    pooled_variances: np.ndarray  # (n_features,): their squares, but 0 may be there
    counts: np.ndarray  # (n_clusters, n_features): observed cells
    observed_share: np.ndarray  # (n_clusters, n_features): counts over rows
    # Sums over cells x and excess lengths e, less their means.
    cell_squares: np.ndarray  # (n_clusters, n_features): of x**2
    products: np.ndarray  # (n_clusters, n_features): of x * e
    length_squares: np.ndarray  # (n_clusters,): of e**2

    def squared_errors(self, patterns: np.ndarray) -> np.ndarray:
        """Return squared errors of the means of ``x - e * pattern``, by cluster."""
        patterns = patterns * self.observed_share
        squares = (
            self.cell_squares
            - 2 * patterns * self.products
            + np.square(patterns) * self.length_squares[:, None]
        )

        squares = np.maximum(squares, 0.0)
        variances = squares / np.maximum(self.counts - 1, 1)
        # One cell shows no variance.
        variances = np.where(self.counts > 1, variances, self.pooled_variances)
        return variances / np.maximum(self.counts, 1)


def feature_means(fit: DescribedFit) -> FeatureMeans:
    """Return means of the observed cells of rows in clusters, and their scatter."""
    rows_in_clusters = np.flatnonzero(fit.labels >= 0)
    has_outliers = len(rows_in_clusters) < len(fit.labels)
    data = fit.data.keep_rows(rows_in_clusters) if has_outliers else fit.data
    rows = HOST.groups(fit.labels[rows_in_clusters], len(fit.clusters))

    scales = np.nan_to_num(fit.scales[rows_in_clusters])
    lengths = np.abs(scales)
    excess_lengths = rows.over_mean(lengths) - 1
    if data.incomplete is not None:
        excess_lengths *= _relative_coverage(data.incomplete, rows, fit.centers)

    sums = _sum_cells(data, rows, lengths, excess_lengths)
    means = HOST.ratio(sums.cells, sums.counts, np.nan)
    pooled_variances = _pooled_variances(sums)
    if pooled_variances is None:
        return FeatureMeans(means=means, counts=sums.counts, scatter=None)

    levels = np.sqrt(pooled_variances)
    sizes = np.maximum(fit.sizes, 1)
    mean_cells = np.nan_to_num(means)
    scatter = CellScatter(
        noise_levels=np.where(pooled_variances > 0, levels, 1.0),
        pooled_variances=pooled_variances,
        counts=sums.counts,
        observed_share=sums.counts / sizes[:, None],
        cell_squares=sums.squares - np.square(mean_cells) * sums.counts,
        products=sums.by_excess - mean_cells * sums.excess_lengths,
        length_squares=rows.sums(excess_lengths**2),
    )
    return FeatureMeans(means=means, counts=sums.counts, scatter=scatter)


def _pooled_variances(sums: _CellSums) -> np.ndarray | None:
    """Return variances of the noise of features, (n_features,); None without noise.

    Noise is what multiples of the clusters' patterns leave of a feature.
    """
    total_squares = sums.squares.sum(axis=0)
    fitted_squares = HOST.ratio(np.square(sums.by_length), sums.squared_lengths)
    noise_squares = sums.squares - fitted_squares
    noise_squares = noise_squares.sum(axis=0)
    if noise_squares.sum() <= Small.ROUNDING * total_squares.sum():
        return None

    least_squares = Contrasts.LEAST_NOISE * total_squares
    noise_squares = np.maximum(noise_squares, least_squares)
    counts = sums.counts.sum(axis=0)
    variances: np.ndarray = HOST.ratio(noise_squares, counts)
    return variances


def _relative_coverage(gaps: Matrix, rows: Groups, centers: np.ndarray) -> np.ndarray:
    """Return the share of its centre that a row has cells of, over the mean share."""
    units = HOST.unit_rows(np.nan_to_num(centers))
    missing_share = rows.inner_products(MissingIndicator(gaps), units**2)
    observed_share = 1 - to_host(missing_share)
    relative_share: np.ndarray = rows.over_mean(observed_share)
    return relative_share


@dataclass(frozen=True, eq=False)
class _CellSums:
    """Sums over the observed cells of each cluster, (n_clusters, n_features) each.

    First of cells x, then of figures of their rows: lengths, and excess lengths.
    """

    squares: np.ndarray  # of x**2
    cells: np.ndarray  # of x
    by_length: np.ndarray  # of x times length
    by_excess: np.ndarray  # of x times excess length
    counts: np.ndarray  # of 1
    excess_lengths: np.ndarray
    squared_lengths: np.ndarray


def _sum_cells(
    data: Matrix, rows: Groups, lengths: np.ndarray, excess_lengths: np.ndarray
) -> _CellSums:
    """Sum up observed cells by cluster, in one reading of the rows."""
    k = len(rows.sizes)
    gaps = data.incomplete
    # (4, n_rows)
    factors = np.stack([np.ones_like(lengths), lengths, excess_lengths, lengths**2])

    def sum_block(block: Matrix, codes: Tall, factors: Tall) -> Any:
        codes = to_host(codes).astype(np.intp)
        members = np.eye(k)[codes]
        weighted_members = members * to_host(factors).T[:, :, None]
        sides = np.hstack([*weighted_members])  # (n_rows, 4 n_clusters)
        sides = block.cast(sides)
        observed = block if gaps is None else block.filled()

        squares = np.zeros((k, block.shape[1]))
        for j in np.unique(codes):
            positions = np.flatnonzero(codes == j)
            rows_of_cluster = observed.take(positions)
            squares[j] = rows_of_cluster.column_sqnorms()

        sums = observed.adjoint(sides[:, : 3 * k])  # (n_features, 3 n_clusters)
        if gaps is None:
            return (), (squares, sums)
        sums_of_missing = block.missing().adjoint(sides)
        return (), (squares, sums, sums_of_missing)

    _, (squares, sums, *sums_of_missing) = (gaps or data).sweep(
        sum_block, data.to_device(rows.labels), data.cast(factors.T)
    )
    sums = to_host(sums).astype(np.float64).T
    cells, by_length, by_excess = np.vsplit(sums, 3)

    # The same sums of ones, where cells were observed.
    of_rows = np.concatenate([*map(rows.sums, factors)])
    of_rows = of_rows[:, None]
    of_missing = np.zeros(sums.shape[1])
    if sums_of_missing:
        of_missing = to_host(sums_of_missing[0]).T
    counts, _, excess, squared_lengths = np.vsplit(of_rows - of_missing, 4)
    return _CellSums(
        squares=squares,
        cells=cells,
        by_length=by_length,
        by_excess=by_excess,
        counts=counts,
        excess_lengths=excess,
        squared_lengths=squared_lengths,
    )


def observed_means(
    data: Matrix, labels: np.ndarray, n_clusters: int, wild_cells: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return means of observed cells by cluster and feature, NaN of none; counts.

    Wild cells, each a row and a column, are as if they were missing.
    """
    codes = np.where(labels < 0, n_clusters, labels)  # outliers come last
    members = indicators(data, codes, n_clusters + 1)
    total = data.ops.number(data.ops.xp.sum(data.sqnorms))
    has_missing = np.isnan(total)
    observed = Filled(data) if has_missing else data
    sums = to_host(observed.adjoint(members)).astype(np.float64).T

    sizes = np.bincount(codes, minlength=n_clusters + 1).astype(np.float64)
    counts = np.broadcast_to(sizes[:, None], sums.shape).copy()
    if has_missing:
        missing = MissingIndicator(data).adjoint(members)
        counts -= to_host(missing).T

    # Few rows at a time are read where cells are wild.
    for start in range(0, len(wild_cells), 1_000):
        cells = wild_cells[start : start + 1_000]
        _leave_out_cells(data, codes, cells, sums, counts)

    means = HOST.ratio(sums, counts, np.nan) * data.unit
    return means[:n_clusters], counts[:n_clusters]


def _leave_out_cells(
    data: Matrix,
    codes: np.ndarray,
    cells: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Take cells, each a row and a column, off sums and counts by cluster, in place."""
    rows, columns = cells.T
    distinct_rows, places = np.unique(rows, return_inverse=True)
    values = to_host(data.rows(distinct_rows))
    at = (codes[rows], columns)
    np.subtract.at(sums, at, values[places, columns])
    np.subtract.at(counts, at, 1)


def column_offsets(prepared: np.ndarray, original: np.ndarray) -> np.ndarray:
    """Return what each original column has where the prepared one is 0.

    Both are means by cluster and feature; where a column was divided and not shifted,
    or by too little to tell, the offset is 0. It is that of the line by least squares.
    """
    is_known = np.isfinite(prepared) & np.isfinite(original)
    mean_prepared, x = _center_columns(prepared, is_known)
    mean_original, y = _center_columns(original, is_known)

    widest = np.abs(x).max(axis=0)
    unit = np.where(widest > 0, widest, 1.0)
    slopes = _slopes(x / unit, y) / unit  # squares of huge numbers overflow
    offsets = mean_original - slopes * mean_prepared

    size = unit + np.abs(mean_prepared)
    rounding = 1e-5 * np.abs(mean_original) * size
    is_beyond_rounding = np.abs(offsets) * widest > rounding
    return np.where(is_beyond_rounding, offsets, 0.0)


def _center_columns(
    values: np.ndarray, is_known: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return means of columns, and values less these; 0 where one is not known."""
    counts = np.maximum(is_known.sum(axis=0), 1)
    means = np.where(is_known, values, 0.0).sum(axis=0) / counts
    return means, np.where(is_known, values - means, 0.0)


def _slopes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return slopes of y on x by least squares, for each column; both have mean 0."""
    squares = (x**2).sum(axis=0)
    squares = np.maximum(squares, np.finfo(float).tiny)
    slopes: np.ndarray = (x * y).sum(axis=0) / squares
    return slopes
