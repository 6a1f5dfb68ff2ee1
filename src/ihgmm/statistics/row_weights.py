"""How much each row should count in the centre of its cluster.

Notation is that of :mod:`ihgmm.statistics.scale_equations`. The best weights of rows
whose noise is independent are ``w_i / v_i``. But an estimated scale rises with the
noise of its row along the centre. If weights rose with it, all noise that is correlated
with that would turn the centre. So the weights are

    a_i = x * (w_i / v_i + c * max(t - w_i, 0)) + y ,

where c makes the slopes ``da_i / dw_i``, times v_i, sum to 0 in each cluster, and t is
``m**2 / (m + s)`` with the mean m and the standard deviation s of its scales. Then x
and y, both at least 0, give independent noise the least error.
"""

from __future__ import annotations

import numpy as np
from scipy.special import polygamma

from ihgmm.matrix import HOST, Groups, Matrix, Tall, sample_positions, to_host
from ihgmm.policy import Scales, Small, Weighting
from ihgmm.statistics.scale_equations import ScaledCenters, scale_error_variances


def steady_weights(X: Matrix, fit: ScaledCenters, rows: Groups) -> Tall:
    """Return weights of rows by scale and noise, for a second fit of the centres.

    Clusters of few rows keep equal weights: others would be too uncertain.
    """
    xp = rows.ops.xp
    scale_errors = scale_error_variances(fit, rows, X.shape[1])
    scales = _pulled_to_mean(fit.scales, scale_errors, rows)
    variances = _pulled_noise(X, fit, rows)

    weights = _without_slope(rows, scales, variances)
    weights = _of_least_error(rows, weights, scales, variances)

    has_few_rows = rows.to_rows(rows.sizes) < Weighting.LEAST_ROWS
    return xp.where(has_few_rows, xp.ones_like(weights), weights)


def _pulled_noise(X: Matrix, fit: ScaledCenters, rows: Groups) -> Tall:
    """Return noise variances v of mean 1 in each cluster, their logarithms pulled.

    Errors of noise variances are a factor, of the same law for all rows.
    """
    ops = rows.ops
    xp = ops.xp
    noise = rows.over_mean(fit.noise_variances)
    mean_noise = xp.ones_like(noise)
    # A row that seems free of noise, such as a zero row, counts as an ordinary one.
    positive = ops.clip(noise, Weighting.LEAST_VARIANCE, None)
    noise = xp.where(noise > 0, positive, mean_noise)

    # The variance of the logarithm of a sum of so many squares.
    n_entries = independent_entries(X, rows, fit)
    log_variance = float(polygamma(1, n_entries / 2))
    log_error = log_variance * xp.ones_like(noise)
    log_noise = _pulled_to_mean(xp.log(noise), log_error, rows)
    noise = xp.exp(log_noise)
    return ops.persist(rows.over_mean(noise))


def _without_slope(rows: Groups, scales: Tall, variances: Tall) -> Tall:
    """Return ``w / v + c * max(t - w, 0)``, where the slopes times v sum to 0."""
    ops = rows.ops
    xp = ops.xp
    mean = rows.means(scales)
    variance = rows.means((scales - mean) ** 2)
    deviation = variance**0.5

    # About a third of the rows is below t, whatever the law of the scales.
    t = ops.ratio(mean**2, mean + deviation)
    distance_below = ops.clip(t - scales, 0.0, None)

    # The slope of w / v is 1 / v, that of the other term is -c.
    rise = xp.ones_like(scales)
    fall = xp.where(distance_below > 0, variances, xp.zeros_like(variances))
    rise = rows.weighted(rise)
    fall = rows.weighted(fall)
    total_rise, total_fall = rows.row_sums(rise, fall)

    c = ops.ratio(total_rise, total_fall)
    return ops.persist(scales / variances + c * distance_below)


def _of_least_error(rows: Groups, steady: Tall, scales: Tall, variances: Tall) -> Tall:
    """Return ``x * steady + y`` for which the centre has the least noise.

    Up to a factor in each cluster, which means nothing, the least ``sum(a**2 * v)``
    over ``sum(a * w)**2`` is where x and y solve two linear equations.
    """
    xp = rows.ops.xp
    products = (
        steady**2 * variances,
        steady * variances,
        variances,
        steady * scales,
        scales,
    )
    counted = map(rows.weighted, products)
    # Sums over the cluster of each row; s stands for steady.
    ssv, sv, v, sw, w = rows.row_sums(*counted)

    x = v * sw - sv * w
    x = rows.ops.clip(x, 0.0, None)

    # A weight of zero would leave no equation for the scale of the row itself.
    y = ssv * w - sv * sw
    y = xp.maximum(y, Small.LOAD * ssv * w)
    return x * steady + y


def _pulled_to_mean(values: Tall, errors: Tall, rows: Groups) -> Tall:
    """Pull values to their cluster's mean by the share of error in their variance."""
    means = rows.means(values)
    variance = rows.means((values - means) ** 2)
    error = rows.means(errors)
    error = rows.ops.xp.minimum(error, variance)

    error_share = rows.ops.ratio(error, variance, 1.0)
    return values + error_share * (means - values)


def independent_entries(X: Matrix, rows: Groups, fit: ScaledCenters) -> float:
    """Return how many independent entries vary in length as the noise of a row does.

    It is one over the mean squared cosine of the residuals of two rows, over all pairs
    of a sample of rows.
    """
    units = HOST.unit_rows(_sampled_residuals(X, rows, fit))
    squared_cosines = (units @ units.T) ** 2
    np.fill_diagonal(squared_cosines, 0.0)

    n, p = units.shape
    n_pairs = max(n * (n - 1), 1)
    mean_square = squared_cosines.sum() / n_pairs
    least_square = 1 / max(p - 1, 1)
    return float(1 / np.clip(mean_square, least_square, 1.0))


def _sampled_residuals(X: Matrix, rows: Groups, fit: ScaledCenters) -> np.ndarray:
    """Return what centres and scales leave of some rows, on the host."""
    n, p = X.shape
    most_rows = max(Scales.PAIRED_ENTRIES // p, 16)
    drawn = sample_positions(n, min(Scales.PAIRED_ROWS, most_rows))
    labels = to_host(rows.ops.take_rows(rows.labels, drawn))
    scales = to_host(rows.ops.take_rows(fit.scales, drawn))

    centers = fit.centers[labels].astype(np.float64)
    sample = X.take(drawn).toarray()
    return sample - scales[:, None] * centers
