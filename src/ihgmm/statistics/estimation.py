"""The parameters of the model, given the data and the labels."""

from dataclasses import replace
from typing import Any

import numpy as np

from ihgmm import _checks as checks
from ihgmm._parameters import check_count, usual_errors
from ihgmm.matrix import (
    HOST,
    Groups,
    Matrix,
    RowSubset,
    Scaled,
    Tall,
    row_lengths,
    to_host,
)
from ihgmm.numerics.spectral import SpectralFit
from ihgmm.statistics.center_noise import noise_of_centers
from ihgmm.statistics.observed_cells import fit_observed_cells
from ihgmm.statistics.parameters import Estimates, P, Parameters, mean_lengths
from ihgmm.statistics.row_weights import steady_weights
from ihgmm.statistics.scale_equations import (
    ScaledCenters,
    fit_scaled_centers,
    scale_error_variances,
)


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
    The model is ``x_i = w_i * center + noise_i``, equation (1) of the paper, where the
    scales w of a cluster have mean 1. A scale comes from inner products of its row with
    the *other* rows of the cluster: a row in its own centre would bias it. Errors
    assume right labels. :doc:`/inference` shows how often intervals hold the truth;
    formulas are in :doc:`/statistics`.

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
    ops = data.ops
    classes, codes, outliers = checks.labelled_rows(labels, data)
    if n_clusters is not None:
        k = _check_integer_labels(classes, n_clusters)
        # Clusters without rows have numbers too.
        codes = ops.take_lines(classes, codes)
        classes = np.arange(k)

    # Rows of weight 0 and outliers have no part in centres.
    if outliers is not None:
        weights = checks.check_weights(sample_weight, data.shape[0])
        sample_weight = weights * ~to_host(outliers)
    counted, subset = checks.counted_rows(data, sample_weight)
    if subset.is_everything:
        return estimates_of_labels(counted, codes, classes)

    fitted = estimates_of_labels(counted, subset.select(codes), classes)
    fitted = for_all_rows(fitted, data, codes, subset)
    unknown = ops.xp.full_like(fitted.scales, np.nan)
    fitted = replace(fitted, scale_errors=subset.scatter(fitted.scale_errors, unknown))
    if outliers is None:
        return fitted
    return replace(
        fitted,
        scales=ops.xp.where(outliers, unknown, fitted.scales),
        noise_levels=ops.xp.where(outliers, unknown, fitted.noise_levels),
    )


def _check_integer_labels(classes: np.ndarray, n_clusters: int) -> int:
    """Return the number of clusters, given labels that are integers below it."""
    k = check_count("n_clusters", n_clusters)
    are_integers = classes.dtype.kind in "iu"
    if not are_integers or classes[0] < 0 or classes[-1] >= k:
        raise ValueError(
            f"labels run from {classes[0]} to {classes[-1]}, not from 0 to "
            f"n_clusters - 1 = {k - 1}; give such labels, or leave n_clusters out."
        )
    return k


def estimates_of_fit(X: Matrix, fit: SpectralFit, labels: Tall, k: int) -> Parameters:
    """Estimate parameters; scales, read off the eigenvectors, may be negative."""
    signs = None if fit.signs is None else X.cast(fit.signs)
    if signs is not None:
        X = Scaled(X, rows=signs)

    rows = X.ops.groups(labels, k, X.weights)
    embedding = fit.placement.embedding
    if embedding.hollow or embedding.roots is not None:
        # Eigenvectors lack the term that pairs a row with itself, or are of roots.
        scaled = _fit_centers_twice(X, rows)
    else:
        lengths = _lengths_along_centers(X, fit, k)
        scales = rows.over_mean(lengths)
        scaled = fit_scaled_centers(X, rows, rows.weighted(scales), scales)

    fitted = _in_units(X, scaled)
    if X.incomplete is not None:
        fitted = fit_observed_cells(fitted, X, rows).parameters

    return fitted if signs is None else replace(fitted, scales=fitted.scales * signs)


def _lengths_along_centers(X: Matrix, fit: SpectralFit, k: int) -> Tall:
    """Return lengths of rows along their centres, the largest of them 1.

    They are found in the leading directions, where noise is averaged away.
    """
    ops = X.ops
    embedding = fit.placement.embedding

    eigenvalues = np.maximum(embedding.eigenvalues[:k], 0.0)
    roots = np.sqrt(eigenvalues)
    coordinates = fit.coordinates[:, : len(roots)]  # (n_samples, n_directions)
    coordinates = coordinates * ops.cast_like(roots, coordinates)
    if fit.signs is not None:
        signs = ops.cast_like(fit.signs, coordinates)
        coordinates = coordinates * signs[:, None]

    counts = ops.xp.ones_like(fit.labels) if X.weights is None else X.weights
    sums = ops.sums_of_rows(fit.labels, k, coordinates, counts)
    directions = HOST.unit_rows(sums).astype(ops.host_dtype(coordinates))
    directions_of_rows = ops.take_lines(directions, fit.labels)

    lengths = ops.widen(ops.row_dots(coordinates, directions_of_rows))
    lengths = ops.clip(lengths, 0.0, None)
    if embedding.unit_rows:
        lengths = lengths * ops.xp.sqrt(X.sqnorms)

    # Lengths of rows that are alike are 1, and so is their mean, to the last digit.
    longest = ops.number(ops.xp.max(lengths)) or 1.0
    return ops.persist(lengths / longest)


def in_data_units(fitted: P, white: Scaled, labels: Tall, weights: Tall | None) -> P:
    """Return parameters of whitened data, weighted or not, in the units of the data."""
    ops = white.ops
    unit = white.matrix.unit
    k = fitted.centers.shape[0]
    row_factors = ops.widen(white.row_scale)
    column_factors = HOST.ratio(1.0, to_host(white.columns).astype(np.float64))

    lengths = ops.ratio(ops.widen(fitted.scales), row_factors)
    if weights is not None:
        weights = ops.cast_like(weights, lengths)
    rows = ops.groups(ops.to_device(labels, lengths), k, weights)
    means = mean_lengths(rows, ops.xp.abs(lengths))  # scales may have both signs
    scales = lengths / rows.to_rows(means)
    centers = to_host(fitted.centers) * column_factors * means[:, None] * unit

    squared_factors = np.square(column_factors[column_factors > 0])
    typical_factor = float(np.sqrt(squared_factors.mean())) * unit
    levels = ops.ratio(ops.widen(fitted.noise_levels), row_factors)
    levels = levels * typical_factor
    return replace(
        fitted,
        centers=white.cast(centers),
        scales=white.cast(scales),
        noise_levels=white.cast(levels),
    )


def for_all_rows(fitted: P, X: Matrix, labels: Tall, subset: RowSubset) -> P:
    """Return parameters for all rows of X, found from those of a subset."""
    centers = to_host(fitted.centers) / X.unit
    scales, levels = fit_to_centers(X, labels, centers)
    return replace(
        fitted,
        scales=subset.scatter(fitted.scales, scales),
        noise_levels=subset.scatter(fitted.noise_levels, levels * X.unit),
    )


def fit_to_centers(X: Matrix, labels: Tall, centers: np.ndarray) -> tuple[Tall, Tall]:
    """Return scales and noise levels of rows that had no part in their centres.

    The scale is that of the nearest multiple of the centre, positive unless X is
    ``signed``, and the noise is what is left of the row.
    """
    ops = X.ops
    rows = ops.groups(labels, len(centers))
    centers = centers.astype(np.float64)
    lengths = row_lengths(centers)
    # Beside a centre that is next to nothing, a scale could be beyond all numbers.
    is_nothing = lengths < float(np.finfo(X.dtype).tiny) ** 0.75
    lengths = np.where(is_nothing, 0.0, lengths)
    lengths = rows.to_rows(lengths)

    products = rows.inner_products(X, centers)
    components = ops.ratio(products, lengths)
    if not X.signed:
        components = ops.clip(components, 0.0, None)
    residuals = ops.to_device(X.sqnorms, labels) - components**2
    residuals = ops.clip(residuals, 0.0, None)
    variances = residuals / max(X.shape[1] - 1, 1)

    scales = ops.ratio(components, lengths)
    return X.cast(scales), X.cast(variances**0.5)


def estimates_of_labels(
    X: Matrix, labels: Tall, classes: np.ndarray, *, observed_only: bool = True
) -> Estimates:
    """Do as :func:`estimate_parameters`; cells filled in count if not observed_only."""
    rows = X.ops.groups(labels, len(classes), X.weights)
    fit = _fit_centers_twice(X, rows)

    noise_ratio, center_variances = noise_of_centers(X, rows, fit)
    noise_ratio = rows.to_rows(noise_ratio)
    scale_errors = scale_error_variances(fit, rows, X.shape[1], noise_ratio) ** 0.5
    center_variances[rows.sizes < 2] = np.inf

    parameters = _in_units(X, fit)
    estimates = Estimates(
        centers=parameters.centers,
        scales=parameters.scales,
        noise_levels=parameters.noise_levels,
        scale_errors=X.cast(scale_errors),
        center_errors=X.cast(np.sqrt(center_variances) * X.unit),
        center_freedom=_freedom_of_centers(fit, rows),
        classes=classes,
    )
    if X.incomplete is None or not observed_only:
        return estimates

    # Errors of filled rows know that noise is shared among columns, also by what was
    # filled in, and not how little was observed.
    refit = fit_observed_cells(estimates, X, rows)
    is_too_small = estimates.scale_errors < refit.least_scale_errors
    scale_errors = X.ops.xp.where(
        is_too_small, refit.least_scale_errors, estimates.scale_errors
    )
    return replace(
        refit.parameters,
        scale_errors=scale_errors,
        center_errors=estimates.center_errors * refit.center_error_growth,
    )


def _fit_centers_twice(X: Matrix, rows: Groups) -> ScaledCenters:
    """Fit centres with equal weights of rows, and with the best weights after that.

    These are the ones that the scales and the noise of the first fit ask for.
    """
    equal_weights = X.ops.xp.ones_like(X.sqnorms)
    first_fit = fit_scaled_centers(X, rows, rows.weighted(equal_weights))
    weights = steady_weights(X, first_fit, rows)
    return fit_scaled_centers(X, rows, rows.weighted(weights))


def _freedom_of_centers(fit: ScaledCenters, rows: Groups) -> np.ndarray:
    """Return degrees of freedom of the errors of each centre (Satterthwaite).

    They are ``sum(f)**2 / sum(f**2) - 1`` with ``f_i = a_i**2 * v_i``, at least 1.
    """
    terms = fit.weights**2 * fit.noise_variances
    squared_sums = rows.sums(terms) ** 2
    freedom = HOST.ratio(squared_sums, rows.sums(terms**2)) - 1
    return np.maximum(freedom, 1.0)


def _in_units(X: Matrix, fit: ScaledCenters) -> Parameters:
    """Return centres, scales and noise levels in the units of the data."""
    return Parameters(
        centers=X.to_device(fit.centers * X.dtype.type(X.unit)),
        scales=X.cast(fit.scales),
        noise_levels=X.cast(fit.noise_variances**0.5 * X.unit),
    )
