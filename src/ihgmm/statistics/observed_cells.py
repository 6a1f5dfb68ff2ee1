"""Centres and scales from the observed cells alone, where others were filled in.

Notation is that of :mod:`ihgmm.statistics.scale_equations`: a row has scale w, weight a
in its centre and noise variance v, and A is the sum of ``a * w`` over its cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np

from ihgmm.matrix import HOST, Groups, Matrix, Tall, to_host
from ihgmm.policy import Small
from ihgmm.statistics.parameters import P, mean_lengths


@dataclass(frozen=True, eq=False)
class ObservedFit(Generic[P]):
    """Parameters fitted to observed cells, and what that does to their errors."""

    parameters: P
    least_scale_errors: Tall  # (n_samples,): errors of scales are at least so large
    center_error_growth: Tall  # (n_clusters, n_features): factors of errors of centres


def fit_observed_cells(fitted: P, X: Matrix, rows: Groups) -> ObservedFit[P]:
    """Fit parameters once more, to what was observed of the rows.

    An entry of a centre is fitted to the rows that have a cell there, a scale to its
    row's observed cells and the centre without that row.
    """
    gaps = X.incomplete
    assert gaps is not None
    ops = rows.ops
    scales = ops.to_device(ops.widen(fitted.scales), rows.labels)
    levels = ops.to_device(ops.widen(fitted.noise_levels), rows.labels)
    levels = levels / X.unit
    weights = rows.weighted(scales)
    cells = _sum_cells(gaps, rows, weights, weights * scales)
    divisors = np.where(cells.totals > 0, cells.totals, 1.0)
    shares = weights / rows.to_rows(divisors)
    before = _FilledRows(scales=scales, noise_levels=levels, shares=shares)

    filled_centers = to_host(fitted.centers).astype(np.float64)
    centers = cells.means(otherwise=filled_centers / X.unit)
    refit = _fit_rows(gaps, rows, centers, cells, before)
    error_growth = _error_growth(rows, cells, before, refit)

    mean_scales = mean_lengths(rows, refit.scales)
    mean_of_row = rows.to_rows(mean_scales)
    centers = centers * mean_scales[:, None] * X.unit
    return ObservedFit(
        parameters=replace(
            fitted,
            centers=X.to_device(centers.astype(X.dtype)),
            scales=X.cast(refit.scales / mean_of_row),
            noise_levels=X.cast(refit.noise_variances**0.5 * X.unit),
        ),
        least_scale_errors=X.cast(refit.scale_errors / mean_of_row),
        center_error_growth=X.cast(error_growth * mean_scales[:, None]),
    )


@dataclass(frozen=True, eq=False)
class _CellSums:
    """Sums over the observed cells of each row, and over those of each cluster."""

    sqnorms: Tall  # (n_samples,)
    n_missing: Tall  # (n_samples,)
    weighted_rows: np.ndarray  # (n_clusters, n_features): sums of a * x
    totals: np.ndarray  # (n_clusters,): A
    loads: np.ndarray  # (n_clusters, n_features): A of rows that have the cell

    def means(self, otherwise: np.ndarray) -> np.ndarray:
        """Return centres, with other entries where no row of the cluster has a cell."""
        least_load = Small.LOAD * np.maximum(self.totals, Small.TINY)
        is_observed = self.loads > least_load[:, None]
        means = self.weighted_rows / np.where(is_observed, self.loads, 1.0)
        return np.where(is_observed, means, otherwise)

    @property
    def observed_share(self) -> np.ndarray:
        """The share of rows that have a cell, as they count, (n_clusters, n_features).

        It is 1 in clusters without rows.
        """
        totals = np.broadcast_to(self.totals[:, None], self.loads.shape)
        share: np.ndarray = HOST.ratio(self.loads, totals, 1.0)
        return share

    @property
    def coverage(self) -> np.ndarray:
        """The share of cells that were observed, (n_clusters,), never quite zero."""
        share = HOST.ratio(self.loads.mean(axis=1), self.totals, 1.0)
        return np.maximum(share, Small.LOAD)


def _sum_cells(gaps: Matrix, rows: Groups, weights: Tall, loads: Tall) -> _CellSums:
    """Sum up observed cells, by row and by cluster, in one reading of the rows."""
    n_clusters = len(rows.sizes)

    def sums_of_block(block: Matrix, labels: Tall, weights: Tall, loads: Tall) -> Any:
        observed = block.filled()
        missing = block.missing()
        members = block.ops.one_hot(labels, n_clusters, weights)
        weighted_rows = observed.adjoint(members * weights[:, None])
        missing_loads = missing.adjoint(members * loads[:, None])
        return (observed.sqnorms, missing.sqnorms), (
            to_host(weighted_rows).T.astype(np.float64),
            to_host(missing_loads).T.astype(np.float64),
        )

    (sqnorms, n_missing), (weighted_rows, missing_loads) = gaps.sweep(
        sums_of_block,
        gaps.to_device(rows.labels),
        gaps.cast(weights),
        gaps.cast(loads),
    )
    totals = rows.sums(loads)
    return _CellSums(
        sqnorms=rows.ops.to_device(sqnorms, rows.labels),
        n_missing=rows.ops.to_device(n_missing, rows.labels),
        weighted_rows=weighted_rows,
        totals=totals,
        loads=totals[:, None] - missing_loads,
    )


@dataclass(frozen=True, eq=False)
class _FilledRows:
    """What the fit to the filled rows said of each; all of shape (n_samples,)."""

    scales: Tall
    noise_levels: Tall
    shares: Tall  # a / A


@dataclass(frozen=True, eq=False)
class _RowFit:
    """Scales and noise of rows, from their observed cells, and errors of the scales."""

    scales: Tall
    noise_variances: Tall
    scale_errors: Tall


def _fit_rows(
    gaps: Matrix,
    rows: Groups,
    centers: np.ndarray,
    cells: _CellSums,
    before: _FilledRows,
) -> _RowFit:
    """Fit scales and noise of rows to the observed part of their centres.

    As in complete data, a row has no part in the centre that it is compared with, and
    the noise in a centre does not count as length. Rows of clusters of one or two keep
    what they had before.
    """
    ops = rows.ops
    products, hidden_squares = _compare_with_centers(gaps, rows, centers)
    # The part of a row in those entries of its centre where it has cells.
    own_shares = before.shares / rows.to_rows(cells.coverage)

    signal_share = _signal_share(rows, centers, cells.sqnorms, before, own_shares)
    squares = rows.to_rows(np.einsum("ij,ij->i", centers, centers))
    # T, at observed cells
    lengths = (squares - hidden_squares) * rows.to_rows(signal_share)

    # A row of more than half of its centre could take all of it.
    part_of_others = ops.clip(1.0 - own_shares * before.scales, 0.5, None)
    products = (products - own_shares * cells.sqnorms) / part_of_others
    refitted = ops.clip(ops.ratio(products, lengths), 0.0, None)
    is_alone = rows.to_rows(rows.sizes) < 3  # in a cluster of one or two
    refitted = ops.xp.where(is_alone | (lengths <= 0), before.scales, refitted)

    residuals = ops.clip(cells.sqnorms - refitted**2 * lengths, 0.0, None)
    n_cells = gaps.shape[1] - cells.n_missing
    variances = residuals / ops.clip(n_cells - 1.0, 1.0, None)
    is_unknown = is_alone | (n_cells < 2)
    variances = ops.xp.where(is_unknown, before.noise_levels**2, variances)

    errors = ops.ratio(variances, lengths) ** 0.5
    return _RowFit(
        scales=refitted,
        noise_variances=variances,
        scale_errors=ops.xp.where(is_alone, ops.xp.zeros_like(lengths), errors),
    )


def _signal_share(
    rows: Groups,
    centers: np.ndarray,
    sqnorms: Tall,
    before: _FilledRows,
    own_shares: Tall,
) -> np.ndarray:
    """Return the share of the squares of each centre that is no noise, (n_clusters,).

    Squares are double sums over rows; terms that pair a row with itself carry noise.
    """
    squares = np.einsum("ij,ij->i", centers, centers)
    share_of_pairs = 1.0 - rows.sums((before.shares * before.scales) ** 2)
    share_of_pairs = np.maximum(share_of_pairs, Small.EXACT)
    noise = rows.sums(own_shares * before.shares * sqnorms)
    true_squares = (squares - noise) / share_of_pairs
    signal_share: np.ndarray = HOST.ratio(true_squares, squares)
    return np.clip(signal_share, 0.0, 1.0)


def _error_growth(
    rows: Groups, cells: _CellSums, before: _FilledRows, refit: _RowFit
) -> np.ndarray:
    """Return by how much errors of centres grow, (n_clusters, n_features).

    They come from the noise of rows, and from fewer cells.
    """
    noise = rows.sums(before.shares**2 * refit.noise_variances)
    noise_before = rows.sums(before.shares**2 * before.noise_levels**2)
    noise_growth = HOST.ratio(noise, noise_before, 1.0)
    observed_share = np.maximum(cells.observed_share, Small.LOAD)
    squared_growth: np.ndarray = noise_growth[:, None] / observed_share
    return np.sqrt(squared_growth)


def _compare_with_centers(
    gaps: Matrix, rows: Groups, centers: np.ndarray
) -> tuple[Tall, Tall]:
    """Return products of observed cells with centres, and hidden squares of these.

    The hidden square of a row is the sum of squares of its centre at missing cells.
    """

    def compare_block(block: Matrix, labels: Tall) -> Any:
        products = block.filled() @ centers.T
        hidden_squares = block.missing() @ (centers**2).T
        pick = block.ops.pick
        return (pick(products, labels), pick(hidden_squares, labels)), ()

    (products, hidden_squares), _ = gaps.sweep(
        compare_block, gaps.to_device(rows.labels)
    )
    ops = rows.ops
    return (
        ops.to_device(ops.widen(products), rows.labels),
        ops.to_device(ops.widen(hidden_squares), rows.labels),
    )
