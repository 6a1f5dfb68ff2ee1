"""Centres, scales and noise of labelled rows, and the errors of the scales.

In a cluster, row i has scale w_i (of mean 1), noise variance v_i and weight a_i in the
centre, which is ``sum(a_i * x_i) / A`` with ``A = sum(a_i * w_i)``. T is the squared
norm of the true centre. The inner product of row i with the weighted sum of the *other*
rows is expected to be ``w_i * (A - a_i * w_i) * T``, and these equations are solved for
the scales. Formulas below are in units where A is 1; docs/statistics.md derives them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm.matrix import Groups, Matrix, Ops, Tall
from ihgmm.policy import Small
from ihgmm.statistics.roots import falling_root


@dataclass(frozen=True, eq=False)
class ScaledCenters:
    """Centres and scales of labelled rows, and what their errors are made of."""

    weights: Tall  # a_i / A, so that weights @ scales is 1 in each cluster
    scales: Tall  # w_i, (n_samples,)
    centers: np.ndarray  # (n_clusters, n_features)
    true_sqnorms: np.ndarray  # T, (n_clusters,): free of the noise in our centres
    noise_variances: Tall  # v_i, (n_samples,)
    # Whether the equations of the cluster of each row have a solution; None where
    # scales were not found from equations.
    is_solved: Tall | None


def fit_scaled_centers(
    X: Matrix, rows: Groups, weights: Tall, scales: Tall | None = None
) -> ScaledCenters:
    """Fit centres and noise with these weights; also scales, unless they are given."""
    sqnorms = X.sqnorms
    weights = X.ops.persist(weights)
    weighted_sums = rows.weighted_sums(X, weights)  # (n_clusters, n_features)

    is_solved = None
    if scales is None:
        own_part = weights * sqnorms
        products = rows.inner_products(X, weighted_sums) - own_part
        scales, is_solved = solve_scales(rows, weights, products, sqnorms)
    scales = X.ops.persist(scales)

    totals = rows.sums(weights * scales)  # A, (n_clusters,)
    totals[rows.sizes == 0] = 1.0
    centers = weighted_sums / totals[:, None].astype(weighted_sums.dtype)
    weights = X.ops.persist(weights / rows.to_rows(totals))
    true_sqnorms = _true_sqnorms(rows, centers, weights, scales, sqnorms)

    return ScaledCenters(
        weights=weights,
        scales=scales,
        centers=centers,
        true_sqnorms=true_sqnorms,
        noise_variances=_noise_variances(X, rows, scales, true_sqnorms),
        is_solved=is_solved,
    )


def _noise_variances(
    X: Matrix, rows: Groups, scales: Tall, true_sqnorms: np.ndarray
) -> Tall:
    """Return the variance of an entry of each row, beside its multiple of the centre.

    It is what ``w_i**2 * T`` leaves of the squared norm, over ``n_features - 1``.
    """
    xp = X.ops.xp
    residuals = X.sqnorms - scales**2 * rows.to_rows(true_sqnorms)

    rounding = 32 * float(np.finfo(X.dtype).eps)
    is_rounding = residuals < rounding * X.sqnorms
    is_own_center = rows.to_rows(rows.sizes) == 1
    is_zero = is_rounding | is_own_center
    residuals = xp.where(is_zero, xp.zeros_like(residuals), residuals)
    return X.ops.persist(residuals / max(X.shape[1] - 1, 1))


def _true_sqnorms(
    rows: Groups, centers: np.ndarray, weights: Tall, scales: Tall, sqnorms: Tall
) -> np.ndarray:
    """Estimate the squared norms of the true centres, T, from pairs of distinct rows.

    The squared norm of our centre is a double sum over rows. The terms that pair a row
    with itself carry the noise and are left out; a row alone has no others.
    """
    squares = np.einsum("ij,ij->i", centers, centers, dtype=np.float64)
    diagonal = rows.sums(weights**2 * sqnorms)
    share_of_pairs = 1.0 - rows.sums((weights * scales) ** 2)
    share_of_pairs[share_of_pairs <= Small.EXACT] = 1.0
    true_sqnorms = (squares - diagonal) / share_of_pairs
    return np.clip(true_sqnorms, 0.0, squares)


def solve_scales(
    rows: Groups, weights: Tall, products: Tall, sqnorms: Tall
) -> tuple[Tall, Tall]:
    """Return scales, and whether the equations of each row's cluster have a solution.

    Parameters
    ----------
    rows : Groups
        The cluster of each row.
    weights : array of shape (n_samples,)
        Weights a_i of rows in their centre.
    products : array of shape (n_samples,)
        Inner product of each row with the weighted sum of the others in its cluster.
    sqnorms : array of shape (n_samples,)
        Squared norms of the rows.

    Notes
    -----
    The share ``z_i = a_i * w_i / A`` of a row in its centre solves ``z * (1 - z) =
    const * a_i * product_i``, and the shares of a cluster sum to 1. Where there is no
    solution, rows other than the largest do not resemble each other, and scales are
    proportional to the products. The two rows of a pair have one product, which cannot
    tell scales from noise: theirs are proportional to their norms.
    """
    ops = rows.ops
    xp = ops.xp
    right_sides = ops.clip(weights * products, 0.0, None)
    largest = ops.group_maxima(rows.labels, len(rows.sizes), right_sides)
    relative = ops.persist(ops.ratio(right_sides, rows.to_rows(largest)))

    shares, is_solved = _shares_in_centers(rows, relative)
    shares = xp.where(is_solved, shares, relative)
    scales = rows.over_mean(shares / weights)

    is_pair = rows.to_rows(rows.sizes) == 2
    scales_of_pairs = rows.over_mean(xp.sqrt(sqnorms))
    scales = xp.where(is_pair, scales_of_pairs, scales)
    return scales, is_solved & ~is_pair


def _shares_in_centers(rows: Groups, relative: Tall) -> tuple[Tall, Tall]:
    """Solve ``z_i * (1 - z_i) = relative_i * y * (1 - y)``, where the z sum to 1.

    Here y, the one unknown of a cluster, is the share of the row whose right side is
    the largest: its ``relative`` is 1. All other rows have the smaller root, below a
    half. Returned are also the rows of clusters that have a solution.
    """
    ops = rows.ops
    xp = ops.xp

    def smaller_roots(y: np.ndarray, factor: np.ndarray) -> Tall:
        """Return the smaller root for each row, times ``factor / (1 - y)``."""
        largest_side = rows.to_rows(4 * y * (1 - y))
        discriminant = 1 - largest_side * relative
        root = xp.sqrt(ops.clip(discriminant, 0.0, None))
        numerator = rows.to_rows(2 * y * factor) * relative
        return numerator / (1 + root)

    half = np.full(len(rows.sizes), 0.5)
    sum_at_half = rows.sums(smaller_roots(half, half))
    is_below_half = sum_at_half >= 1
    lower = np.where(is_below_half, 0.0, 0.5)
    upper = lower + 0.5
    total = 2 * lower + 1

    def missing_share(y: np.ndarray) -> np.ndarray:
        """Return what shares lack of their sum, for each cluster."""
        # Above a half the largest share is the larger root, and all equations hold at
        # y = 1 too, where nothing is shared: that solution is divided out.
        factor = np.where(is_below_half, 1 - y, 1.0)
        missing: np.ndarray = total - rows.sums(smaller_roots(y, factor))
        return missing

    y = falling_root(missing_share, lower, upper)
    largest_share = rows.to_rows(y)
    shares = smaller_roots(y, 1 - y)
    takes_larger_root = (relative == 1) & (largest_share > 0.5)
    shares = xp.where(takes_larger_root, largest_share, shares)

    has_solution = is_below_half | (rows.sums(relative) > 2)
    return shares, rows.to_rows(has_solution)


@dataclass(frozen=True, eq=False)
class _ScaleResponse:
    """How the scales of a cluster respond to errors of inner products.

    Let s_j be the error that noise gives the product of row j with the other rows. The
    scale of row i then has the error ``sum(B_ij * s_j)`` with

        B_ij = (i == j) / c_i - w_i * (slope_i * b_j + level_j) ,

    where ``c_i = 1 - 2 * a_i * w_i`` and ``b_j = a_j / c_j``. The matrix B is never
    formed: each sum over j is a quadratic in slope_i whose coefficients are sums over
    the cluster.
    """

    scales: Tall  # w
    c: Tall
    b: Tall
    slope: Tall
    level: Tall

    @classmethod
    def of_fit(cls, fit: ScaledCenters, rows: Groups) -> _ScaleResponse:
        """Return what the weights and scales of a fit make of errors."""
        ops = rows.ops
        xp = ops.xp
        c = 1 - 2 * fit.weights * fit.scales
        # The singularity of c is not one of the equations.
        is_singular = xp.abs(c) < Small.SINGULAR
        c = xp.where(is_singular, xp.full_like(c, Small.SINGULAR), c)
        b = ops.persist(fit.weights / c)

        sum_of_b, sum_of_inverses = rows.row_sums(b * fit.scales, fit.scales / c)
        denominator = _nan_for_zero(ops, 1 + sum_of_b)
        n_rows = rows.to_rows(rows.sizes.astype(np.float64))
        level = (1 / c - b * sum_of_inverses / denominator) / n_rows
        level = ops.persist(level)
        slope = 1 / (c * denominator)
        return cls(scales=fit.scales, c=c, b=b, slope=slope, level=level)

    def sums(self, factors: Tall, of_b: Tall, of_level: Tall) -> Tall:
        """Return ``sum(factors_j * B_ij)`` for each row i.

        ``of_b`` and ``of_level`` are sums of factors times b and times level.
        """
        off_diagonal = self.slope * of_b + of_level
        return factors / self.c - self.scales * off_diagonal

    def sums_of_squares(self, factors: Tall, moments: _Moments) -> Tall:
        """Return ``sum(factors_j * B_ij**2)`` for each row i."""
        off_diagonal = (
            self.slope**2 * moments.of_b
            + moments.of_level
            + 2 * self.slope * moments.of_product
        )
        own_move = 2 * self.scales * (self.slope * self.b + self.level)
        diagonal = factors / self.c * (1 / self.c - own_move)
        return diagonal + self.scales**2 * off_diagonal


@dataclass(frozen=True, eq=False)
class _Moments:
    """Sums over the cluster of each row of some factors times squares."""

    of_b: Tall  # of b**2
    of_level: Tall  # of level**2
    of_product: Tall  # of b * level


@dataclass(frozen=True, eq=False)
class _NoiseSums:
    """Sums over the cluster of each row, of noise v and loads ``g = a * v``."""

    noise_moments: _Moments  # with factors v
    load_moments: _Moments  # with factors g**2
    loads_by_b: Tall  # of g * b
    loads_by_level: Tall  # of g * level
    center_noise: Tall  # of a**2 * v
    noise: Tall  # of v

    @classmethod
    def of_fit(
        cls, fit: ScaledCenters, response: _ScaleResponse, rows: Groups
    ) -> _NoiseSums:
        """Return all sums, found at once: a device or cluster is waited for once."""
        v = fit.noise_variances
        loads = v * fit.weights

        squares = (
            response.b**2,
            response.level**2,
            response.b * response.level,
        )
        sums = rows.row_sums(
            *[v * square for square in squares],
            *[loads**2 * square for square in squares],
            loads * response.b,
            loads * response.level,
            v * fit.weights**2,
            v,
        )

        return cls(
            noise_moments=_Moments(of_b=sums[0], of_level=sums[1], of_product=sums[2]),
            load_moments=_Moments(of_b=sums[3], of_level=sums[4], of_product=sums[5]),
            loads_by_b=sums[6],
            loads_by_level=sums[7],
            center_noise=sums[8],
            noise=sums[9],
        )


def scale_error_variances(
    fit: ScaledCenters, rows: Groups, n_features: int, noise_ratio: Tall | float = 1.0
) -> Tall:
    """Return the variances of the errors of scales; ``inf`` where they are not known.

    ``noise_ratio`` says how much more noise there is along the centre of each row than
    in an average direction.

    Notes
    -----
    The error of w_i is, to first order, ``u_i - w_i * mean(u)``, of the noise along the
    centre, plus ``sum(B_ij * s_j)``, of that between pairs of rows (see
    ``_ScaleResponse``): ``s_j = sum(a_l * q_jl, l != j)``. The variance of u_i is
    v_i / T, that of q_jl is ``n_features * v_j * v_l / T**2``, and all are
    uncorrelated.
    """
    ops = rows.ops
    xp = ops.xp
    n_rows = rows.to_rows(rows.sizes.astype(np.float64))
    true_sqnorms = rows.to_rows(fit.true_sqnorms)  # T

    with np.errstate(divide="ignore", invalid="ignore"):
        response = _ScaleResponse.of_fit(fit, rows)
        sums = _NoiseSums.of_fit(fit, response, rows)
        of_pairs = _variances_of_pairs(fit, response, sums)
        of_center = _variances_along_center(fit, n_rows, sums)
        length = _nan_for_zero(ops, true_sqnorms)
        variances = of_center + n_features * of_pairs / length
        variances = noise_ratio * variances / length

    has_pattern = (true_sqnorms > 0) & (n_features > 1)
    is_known = fit.is_solved & has_pattern & xp.isfinite(variances)
    unknown = xp.full_like(variances, np.inf)
    variances = xp.where(is_known, ops.clip(variances, 0.0, None), unknown)
    is_exact = (n_rows == 1) | (sums.noise == 0) & has_pattern
    return ops.persist(xp.where(is_exact, xp.zeros_like(variances), variances))


def _variances_along_center(fit: ScaledCenters, n_rows: Tall, sums: _NoiseSums) -> Tall:
    """Return variances of ``u_i - w_i * mean(u)``, times T."""
    scales = fit.scales
    of_mean = scales**2 * sums.noise / n_rows**2
    return fit.noise_variances * (1 - 2 * scales / n_rows) + of_mean


def _variances_of_pairs(
    fit: ScaledCenters, response: _ScaleResponse, sums: _NoiseSums
) -> Tall:
    """Return variances of ``sum(B_ij * s_j)``, times ``T**2 / n_features``.

    They are sums over j and l, not the same, of ``B_ij * (B_ij * a_l + B_il * a_j) *
    a_l * v_j * v_l``: those over all j and l, without those where j is l.
    """
    loads = fit.noise_variances * fit.weights
    squares = response.sums_of_squares(fit.noise_variances, sums.noise_moments)
    crossed = response.sums(loads, sums.loads_by_b, sums.loads_by_level)
    of_all = squares * sums.center_noise + crossed**2
    return of_all - 2 * response.sums_of_squares(loads**2, sums.load_moments)


def _nan_for_zero(ops: Ops, values: Tall) -> Tall:
    """Return values to divide by, NaN for 0.

    Dask divides later, when warnings are heard, and a division by NaN raises none.
    """
    return ops.xp.where(values == 0, np.nan * values, values)
