"""The parameters of the model, given the data and the labels."""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from scipy.special import polygamma, stdtrit

from ihgmm import _checks as checks
from ihgmm._parameters import check_count, check_number, usual_errors
from ihgmm.matrix import HOST, Matrix, Scaled, Tall, ops_of, to_host
from ihgmm.matrix.ops import Groups, row_lengths
from ihgmm.numerics.spectral import Spectral
from ihgmm.policy import Small, Weighting
from ihgmm.statistics.leave_one_out import falling_root
from ihgmm.statistics.missing_cells import fit_observed, mean_lengths
from ihgmm.statistics.residuals import Fit, independent_entries, noise_of_centers


@dataclass(frozen=True, eq=False, repr=False)
class Parameters:
    """Centres, scales and noise levels."""

    centers: np.ndarray  #: a line for each cluster, zero for one without rows
    scales: np.ndarray  #: of each row; in each cluster their mean is 1
    noise_levels: np.ndarray  #: standard deviation of the noise in each row's entries


P = TypeVar("P", bound=Parameters)


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Parameters):
    """Estimates of what generated the data, ``x_i = scale_i * center + noise``."""

    #: Standard errors of scales; ``inf`` in clusters of two rows, or without a pattern.
    scale_errors: np.ndarray
    center_errors: np.ndarray  #: of entries; ``inf`` for fewer than two rows
    center_freedom: np.ndarray  #: degrees of freedom of these, by cluster
    classes: np.ndarray  #: the label of each cluster

    def __repr__(self) -> str:
        (k, p), n = self.centers.shape, self.scales.shape[0]
        return f"Estimates(n_samples={n}, n_features={p}, n_clusters={k})"

    def scale_intervals(self, level: float = 0.95) -> np.ndarray:
        """Return a confidence interval for the scale of each row, (n_samples, 2).

        ``level`` is the share of intervals that hold the true scale. No end is below 0.
        """
        # Student's t, since the noise level of a row comes from its own entries.
        freedom = max(self.centers.shape[1] - 1, 1)
        ends = _intervals(self.scales, self.scale_errors, freedom, level)
        return ops_of(ends).clip(ends, 0.0, None)

    def center_intervals(self, level: float = 0.95) -> np.ndarray:
        """Return intervals for the entries of centres, (n_clusters, n_features, 2).

        Fewer than ``level`` hold the true entry in columns that are nearly all 0.
        """
        freedom = self.center_freedom[:, None]
        return _intervals(self.centers, self.center_errors, freedom, level)


def _intervals(values: Tall, errors: Tall, freedom: Any, level: float) -> Tall:
    if not 0 < check_number("level", level) < 1:
        raise ValueError(f"level={level:g} is not a share; give one between 0 and 1.")
    host, reach = to_host(values), to_host(errors) * stdtrit(freedom, (1 + level) / 2)
    ends = np.stack([host - reach, host + reach], axis=-1)
    return ops_of(values).cast_like(ends, values)


@usual_errors()
def estimate_parameters(
    X: Any, labels: Any, n_clusters: int | None = None, *, sample_weight: Any = None
) -> Estimates:
    """Estimate centres, scales and noise levels, with errors, from labelled data.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data. Another library's array stays on its device, and so do results.
    labels : array-like of shape (n_samples,), or fitted estimator
        The cluster of each row, of any kind, from any method; a fitted model stands for
        its ``labels_``. Outliers, -1 beside clusters numbered from 0, have NaN.
    n_clusters : int, optional
        Number of clusters, if labels are integers from 0 and some may have no rows.
    sample_weight : array-like of shape (n_samples,), optional
        How much each row counts in the centre of its cluster, and in its mean scale.

    Returns
    -------
    Estimates
        Of X's dtype; clusters in the order of the sorted labels.

    Notes
    -----
    A scale comes from inner products of its row with the *other* rows of the cluster:
    a row in its own centre would bias it. Errors assume right labels. :doc:`/inference`
    shows how often intervals hold the truth; formulas are in :doc:`/statistics`.

    Examples
    --------
    >>> from ihgmm import estimate_parameters, make_ihgmm
    >>> X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    >>> estimates = estimate_parameters(X, kinds)
    >>> estimates.scales[:2].round(2), estimates.scale_intervals(0.95)[:2].round(2)
    (array([1.54, 1.04]), array([[1.52, 1.55],
           [1.01, 1.08]]))
    """
    X, labels = checks.data_and_labels(X, labels)
    data = checks.check_matrix(X)
    ops, (classes, codes, outliers) = data.ops, checks.labelled_rows(labels, data)
    if n_clusters is not None:
        k, integers = check_count("n_clusters", n_clusters), classes.dtype.kind in "iu"
        if not integers or classes[0] < 0 or classes[-1] >= k:
            raise ValueError(
                f"labels run from {classes[0]} to {classes[-1]}, not from 0 to "
                f"n_clusters - 1 = {k - 1}; give such labels, or leave n_clusters out."
            )
        # Clusters without rows have numbers too.
        codes, classes = ops.take_lines(classes, codes), np.arange(k)
    if outliers is not None:
        weights = checks.check_weights(sample_weight, data.shape[0])
        sample_weight = weights * ~to_host(outliers)
    kept, subset = checks.counted_rows(data, sample_weight)
    counts = subset.is_member
    if counts is None:
        return estimates_of_labels(kept, codes, classes)
    fitted = estimates_of_labels(kept, ops.rows_where(codes, counts), classes)
    fitted = for_all_rows(fitted, data, codes, counts)
    unknown = ops.xp.full_like(fitted.scales, np.nan)
    known = {"scale_errors": ops.place(fitted.scale_errors, counts, unknown)}
    for name in ("scales", "noise_levels") if outliers is not None else ():
        known[name] = ops.xp.where(outliers, unknown, getattr(fitted, name))
    return replace(fitted, **known)


def estimates_of_fit(X: Matrix, fit: Spectral, labels: Tall, k: int) -> Parameters:
    """Estimate parameters; scales, read off the eigenvectors, may be negative."""
    signs = None if fit.signs is None else X.cast(fit.signs)
    X = X if signs is None else Scaled(X, rows=signs)
    fitted: Parameters
    if fit.placement.embedding.hollow:  # eigenvectors lack the own term of a row
        fitted = estimates_of_labels(X, labels, np.arange(k))
    else:
        # Lengths along centres in the leading directions, where noise is averaged away.
        ops, embedding = X.ops, fit.placement.embedding
        roots = np.sqrt(np.maximum(embedding.eigenvalues[:k], 0.0))
        lines = fit.coordinates[:, : len(roots)]
        lines = lines * ops.cast_like(roots, lines)
        if fit.signs is not None:
            lines = lines * ops.cast_like(fit.signs, lines)[:, None]
        counts = ops.xp.ones_like(fit.labels) if X.weights is None else X.weights
        sums = ops.sums_of_rows(fit.labels, k, lines, counts)
        centers = HOST.unit_rows(sums).astype(ops.host_dtype(lines))
        along = ops.widen(ops.row_dots(lines, ops.take_lines(centers, fit.labels)))
        lengths = ops.clip(along, 0.0, None)
        if embedding.unit_rows:
            lengths = lengths * ops.xp.sqrt(X.sqnorms)
        # Lengths of rows that are alike are 1, and so is their mean, to the last digit.
        lengths = ops.persist(lengths / (ops.number(ops.xp.max(lengths)) or 1.0))
        rows = ops.groups(labels, k, X.weights)
        scales = rows.over_mean(lengths)
        solved = _fit(X, rows, rows.counted(scales), scales)
        fitted = Parameters(*_parameters(X, solved))
        if X.incomplete is not None:
            fitted, *_ = fit_observed(fitted, X, rows)
    return fitted if signs is None else replace(fitted, scales=fitted.scales * signs)


def in_data_units(fitted: P, white: Scaled, labels: Tall, weights: Tall | None) -> P:
    """Return parameters of whitened data, weighted or not, in the units of the data."""
    k, unit, ops = fitted.centers.shape[0], white.matrix.unit, white.ops
    factors = ops.widen(white.row_scale)
    lengths = ops.ratio(ops.widen(fitted.scales), factors)
    if weights is not None:
        weights = ops.cast_like(weights, lengths)
    rows = ops.groups(ops.to_device(labels, lengths), k, weights)
    means = mean_lengths(rows, ops.xp.abs(lengths))  # scales may have both signs
    gains = HOST.ratio(1.0, to_host(white.columns).astype(np.float64))
    centers = to_host(fitted.centers) * gains * means[:, None] * unit
    level = float(np.sqrt(np.square(gains[gains > 0]).mean())) * unit
    levels = ops.ratio(ops.widen(fitted.noise_levels), factors) * level
    given = centers, lengths / rows.spread(means), levels
    centers, scales, levels = map(white.cast, given)
    return replace(fitted, centers=centers, scales=scales, noise_levels=levels)


def for_all_rows(
    fitted: P, X: Matrix, labels: Tall, counts: Tall, *, signed: bool = False
) -> P:
    """Return parameters for all rows, found from those that count."""
    centers = to_host(fitted.centers) / X.unit
    scales, levels = fit_to_centers(X, labels, centers, signed=signed)
    scales = X.ops.place(fitted.scales, counts, scales)
    levels = X.ops.place(fitted.noise_levels, counts, levels * X.unit)
    return replace(fitted, scales=scales, noise_levels=levels)


def fit_to_centers(
    X: Matrix, labels: Tall, centers: np.ndarray, *, signed: bool = False
) -> tuple[Tall, Tall]:
    """Return scales and noise levels of rows that had no part in their centres."""
    ops, rows = X.ops, X.ops.groups(labels, len(centers))
    centers = centers.astype(np.float64)
    lengths = row_lengths(centers)
    # Beside a centre that is next to nothing, a scale could be beyond all numbers.
    nothing = lengths < float(np.finfo(X.dtype).tiny) ** 0.75
    lengths = rows.spread(np.where(nothing, 0.0, lengths))
    along = ops.ratio(rows.inner_products(X, centers), lengths)
    if not signed:
        along = ops.clip(along, 0.0, None)
    left = ops.clip(ops.to_device(X.sqnorms, labels) - along**2, 0.0, None)
    variances = left / max(X.shape[1] - 1, 1)
    return X.cast(ops.ratio(along, lengths)), X.cast(variances**0.5)


def estimates_of_labels(
    X: Matrix, labels: Tall, classes: np.ndarray, *, observed_only: bool = True
) -> Estimates:
    """Do as :func:`estimate_parameters`; cells filled in count if not observed_only."""
    rows = X.ops.groups(labels, len(classes), X.weights)
    fit = _fit(X, rows, rows.counted(X.ops.xp.ones_like(X.sqnorms)))
    fit = _fit(X, rows, rows.counted(_steady_weights(X, fit, rows)))
    ratio, variances = noise_of_centers(X, rows, fit)
    errors = _scale_variances(fit, rows, X.shape[1], rows.spread(ratio)) ** 0.5
    variances[rows.sizes < 2] = np.inf
    # Satterthwaite's degrees of freedom of the errors of centres.
    terms = fit.weights**2 * fit.variances
    freedom = HOST.ratio(rows.sums(terms) ** 2, rows.sums(terms**2)) - 1
    both = X.cast(errors), X.cast(np.sqrt(variances) * X.unit)
    fitted = Estimates(*_parameters(X, fit), *both, np.maximum(freedom, 1.0), classes)
    if X.incomplete is None or not observed_only:
        return fitted
    fitted, least, growth = fit_observed(fitted, X, rows)
    # Errors of filled rows know that noise is shared among columns, also by what was
    # filled in, and not how little was observed.
    known, wider = fitted.scale_errors, fitted.center_errors * growth
    known = X.ops.xp.where(known < least, least, known)
    return replace(fitted, scale_errors=known, center_errors=wider)


def _parameters(X: Matrix, fit: Fit) -> tuple[Tall, Tall, Tall]:
    """Return centres, scales and noise levels in the units of the data."""
    centers = X.to_device(fit.centers * X.dtype.type(X.unit))
    return centers, X.cast(fit.scales), X.cast(fit.variances**0.5 * X.unit)


def _fit(X: Matrix, rows: Groups, weights: Tall, scales: Tall | None = None) -> Fit:
    """Fit centres and noise with these weights; also scales, unless they are given."""
    ops, solved = X.ops, None
    sqnorms, weights = X.sqnorms, ops.persist(weights)
    sums = rows.weighted_sums(X, weights)
    if scales is None:
        inner = rows.inner_products(X, sums) - weights * sqnorms
        scales, solved = _scales(weights, inner, sqnorms, rows)
    scales = ops.persist(scales)
    total = rows.sums(weights * scales)
    total[rows.sizes == 0] = 1.0
    centers = sums / total[:, None].astype(sums.dtype)
    weights = ops.persist(weights / rows.spread(total))
    # The squared norm of our centre is a double sum over rows. The terms that pair a
    # row with itself carry the noise and are left out; a row alone has no others.
    squares = np.einsum("ij,ij->i", centers, centers, dtype=np.float64)
    diagonal = rows.sums(weights**2 * sqnorms)
    kept = 1.0 - rows.sums((weights * scales) ** 2)
    kept[kept <= Small.EXACT] = 1.0
    length = np.clip((squares - diagonal) / kept, 0.0, squares)
    left = sqnorms - scales**2 * rows.spread(length)
    # So little is rounding; and a row alone is its own centre.
    nothing = left < 32 * float(np.finfo(sums.dtype).eps) * sqnorms
    nothing = nothing | (rows.spread(rows.sizes) == 1)
    left = ops.xp.where(nothing, ops.xp.zeros_like(left), left)
    variances = ops.persist(left / max(X.shape[1] - 1, 1))
    return Fit(weights, scales, centers, length, variances, solved)


def _scales(weights: Tall, inner: Tall, sqnorms: Tall, rows: Groups) -> tuple[Any, Any]:
    """Return scales from products with other rows, and where they are solved for."""
    ops, xp = rows.ops, rows.ops.xp
    products = ops.clip(weights * inner, 0.0, None)
    largest = ops.group_maxima(rows.labels, len(rows.sizes), products)
    relative = ops.persist(ops.ratio(products, rows.spread(largest)))

    def smaller_roots(y: np.ndarray, rest: np.ndarray) -> Tall:
        """Return roots for ``y * (1 - y)``, times ``rest / (1 - y)``."""
        square = ops.clip(1 - rows.spread(4 * y * (1 - y)) * relative, 0.0, None)
        return rows.spread(2 * y * rest) * relative / (1 + xp.sqrt(square))

    half = np.full(len(rows.sizes), 0.5)
    below_half = rows.sums(smaller_roots(half, half)) >= 1
    low = np.where(below_half, 0.0, 0.5)
    high, total = low + 0.5, 2 * low + 1

    def missing(y: np.ndarray) -> np.ndarray:
        # Above a half the largest share is the larger root, and all equations hold at
        # y = 1 too, where nothing is shared: that solution is divided out.
        rest = np.where(below_half, 1 - y, 1.0)
        return np.asarray(total - rows.sums(smaller_roots(y, rest)))

    y = falling_root(missing, low, high)
    largest = rows.spread(y)
    shares = smaller_roots(y, 1 - y)
    shares = xp.where((relative == 1) & (largest > 0.5), largest, shares)
    solved = rows.spread(below_half | (rows.sums(relative) > 2))
    scales = rows.over_mean(xp.where(solved, shares, relative) / weights)
    pair = rows.spread(rows.sizes) == 2
    return xp.where(pair, rows.over_mean(xp.sqrt(sqnorms)), scales), solved & ~pair


def _scale_variances(fit: Fit, rows: Groups, p: int, along: Any = 1.0) -> Tall:
    """Return the variances of the scales' errors, in linear time."""
    # With B_ij = (i == j) / c_i - w_i * (slope_i * b_j + level_j), each sum over j is
    # a quadratic in slope_i with a cluster's sums in it.
    a, w, v, ops, xp = fit.weights, fit.scales, fit.variances, rows.ops, rows.ops.xp
    n_rows = rows.spread(rows.sizes.astype(np.float64))
    length = rows.spread(fit.true_squares)
    c = 1 - 2 * a * w
    # The singularity of c is not one of the equations.
    c = xp.where(xp.abs(c) < Small.SINGULAR, xp.full_like(c, Small.SINGULAR), c)
    with np.errstate(divide="ignore", invalid="ignore"):
        b = ops.persist(a / c)
        h, total = rows.row_sums(b * w, w / c)
        # dask divides later, when warnings are heard: NaN, unlike 0, raises none.
        one, safe = (xp.where(x == 0, np.nan * x, x) for x in (1 + h, length))
        slope = 1 / (c * one)
        level = ops.persist((1 / c - b * total / one) / n_rows)
        g = v * a
        terms = (b**2, level**2, b * level)
        moments = [weight * term for weight in (v, g**2) for term in terms]
        sums = rows.row_sums(*moments, g * b, g * level, v * a**2, v)
        first, second, loads, all_noise = sums[6:]

        def squares(g: Tall, of_slopes: Tall, of_levels: Tall, of_both: Tall) -> Tall:
            """Return ``sum(g_j * B_ij**2)`` for each row i, from sums over j."""
            others = slope**2 * of_slopes + of_levels + 2 * slope * of_both
            own = g / c * (1 / c - 2 * w * (slope * b + level))
            return own + w**2 * others

        cross = g / c - w * (slope * first + second)
        pairs = squares(v, *sums[:3]) * loads + cross**2 - 2 * squares(g**2, *sums[3:6])
        single = v * (1 - 2 * w / n_rows) + w**2 * all_noise / n_rows**2
        variances = along * (single + p * pairs / safe) / safe
    long = (length > 0) & (p > 1)
    known = fit.solved & long & xp.isfinite(variances)
    unknown = xp.full_like(variances, np.inf)
    variances = xp.where(known, ops.clip(variances, 0.0, None), unknown)
    exact = (n_rows == 1) | (all_noise == 0) & long
    return ops.persist(xp.where(exact, xp.zeros_like(variances), variances))


def _steady_weights(X: Matrix, fit: Fit, rows: Groups) -> Tall:
    """Return weights of rows by scale and noise, pulled towards the mean."""
    # A scale rises with the noise of its row along the centre. If weights rose with it,
    # all noise that is correlated with that would turn the centre. So small rows get a
    # further weight that falls with the scale, until rise and fall cancel in each
    # cluster.
    ops, xp = rows.ops, rows.ops.xp
    scales = _pulled(fit.scales, _scale_variances(fit, rows, X.shape[1]), rows)
    # Errors of noise variances are a factor, the same for all: logarithms are pulled. A
    # row that seems free of noise, such as a zero row, counts as an ordinary one.
    noise = rows.over_mean(fit.variances)
    one = xp.ones_like(noise)
    noise = xp.where(noise > 0, ops.clip(noise, Weighting.LEAST_VARIANCE, None), one)
    error = one * float(polygamma(1, independent_entries(X, rows, fit) / 2))
    v = ops.persist(rows.over_mean(xp.exp(_pulled(xp.log(noise), error, rows))))
    mean = rows.means(scales)
    deviation = rows.means((scales - mean) ** 2) ** 0.5
    # About a third of the rows is below this, whatever the law of the scales.
    below = ops.clip(ops.ratio(mean**2, mean + deviation) - scales, 0.0, None)
    fall = xp.where(below > 0, v, xp.zeros_like(v))
    rise, fall = rows.row_sums(rows.counted(one), rows.counted(fall))
    steady = ops.persist(scales / v + ops.ratio(rise, fall) * below)
    sums = (steady**2 * v, steady * v, v, steady * scales, scales)
    a, b, c, d, e = rows.row_sums(*map(rows.counted, sums))
    # A weight of zero would leave no equation for the row's own scale.
    equal = xp.maximum(a * e - b * d, Small.LOAD * a * e)
    weights = ops.clip(c * d - b * e, 0.0, None) * steady + equal
    # Weights from so few rows would be too uncertain.
    return xp.where(rows.spread(rows.sizes) < Weighting.LEAST_ROWS, one, weights)


def _pulled(values: Tall, errors: Tall, rows: Groups) -> Tall:
    """Pull values to their cluster's mean by the share of error in their variance."""
    means = rows.means(values)
    variance = rows.means((values - means) ** 2)
    error = rows.ops.xp.minimum(rows.means(errors), variance)
    return values + rows.ops.ratio(error, variance, 1.0) * (means - values)
