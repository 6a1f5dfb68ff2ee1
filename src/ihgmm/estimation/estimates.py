"""The parameters of the model, given the data and the labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from ihgmm._arrays import Array
from ihgmm._checks.data import check_data
from ihgmm._checks.parameters import check_count, check_number
from ihgmm._checks.rows import check_labels
from ihgmm._devices import is_device, like, moved, namespace, times, to_host
from ihgmm._tall import Tall, positive
from ihgmm.estimation.scale_errors import (
    efficient_weights,
    scale_variances,
    shrunk_variances,
)
from ihgmm.estimation.scale_fit import fit_centers, fit_scales
from ihgmm.groups import Groups

__all__ = ["Estimates", "estimate_parameters"]


@dataclass(frozen=True, eq=False, repr=False)
class Estimates:
    """Estimates of what generated the data, ``x_i = scale_i * center + noise``.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, n_features)
        One centre for each cluster; zero for a cluster without rows.
    scales : ndarray of shape (n_samples,)
        One scale for each row; in each cluster their mean is 1.
    noise_levels : ndarray of shape (n_samples,)
        Standard deviation of the noise in each row's entries.
    scale_errors : ndarray of shape (n_samples,)
        Standard errors of the scales. ``inf`` where the data do not tell the scale
        from the noise: in a cluster of two rows, or one that shows no common pattern.
        0 for a row alone, whose scale is 1 by definition; ``nan`` for scales that
        were given.
    center_errors : ndarray of shape (n_clusters,)
        Standard error of every entry of a centre; ``inf`` for clusters of one row or
        none.
    classes : ndarray of shape (n_clusters,)
        The label of each cluster.
    """

    centers: np.ndarray
    scales: np.ndarray
    noise_levels: np.ndarray
    scale_errors: np.ndarray
    center_errors: np.ndarray
    classes: np.ndarray

    def __repr__(self) -> str:
        k, p = self.centers.shape
        return (
            f"Estimates(n_samples={self.scales.shape[0]}, n_features={p}, "
            f"n_clusters={k}, "
            f"median scale error={np.median(to_host(self.scale_errors)):.3g}, "
            f"median noise level={np.median(to_host(self.noise_levels)):.3g})"
        )

    def scale_intervals(self, level: float = 0.95) -> np.ndarray:
        """Return a confidence interval for the scale of each row.

        Parameters
        ----------
        level : float
            The share of intervals that hold the true scale, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends; none is below 0.

        Notes
        -----
        Student's t with ``n_features - 1`` degrees of freedom, since the noise level
        of a row comes from its own entries.
        """
        level = check_number("level", level, above=0)
        if level >= 1:
            raise ValueError(
                f"level={level:g} is not a share; give a number between 0 and 1, such "
                "as 0.95."
            )
        freedom = max(self.centers.shape[1] - 1, 1)
        scales = to_host(self.scales)
        reach = to_host(self.scale_errors) * stdtrit(freedom, (1 + level) / 2)
        ends = np.column_stack([scales - reach, scales + reach])
        return like(np.maximum(ends, 0), self.scales)


def estimate_parameters(
    X: Any,
    labels: Any,
    n_clusters: int | None = None,
    *,
    scales: Any = None,
    sqnorms: Tall | None = None,
) -> Estimates:
    """Estimate centres, scales and noise levels, with errors, from labelled data.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data. Another library's array stays on its device, and so do results.
    labels : array-like of shape (n_samples,)
        The cluster of each row: labels of any kind, from any method. With
        ``n_clusters``, integers from 0 to ``n_clusters - 1``.
    n_clusters : int, optional
        Number of clusters, if some may have no rows.
    scales : array-like of shape (n_samples,), optional
        Scales up to a factor for each cluster, if estimated already; negative ones
        count as 0.
    sqnorms : ndarray of shape (n_samples,), optional
        Squared row norms, if X has been checked already: finite, float32 or float64,
        an array or a CSR or CSC matrix. It is not checked again.

    Returns
    -------
    Estimates
        Of X's dtype; clusters in the order of the sorted labels.

    Notes
    -----
    In a cluster, let row i have scale w_i (of mean 1), noise variance v_i and weight
    a_i in the centre. Its inner product with the *other* rows' weighted sum has
    expectation ``w_i * (A - a_i * w_i) * T``, where A is the sum of ``a_j * w_j`` and T
    the squared norm of the true centre; the scales solve these equations. With row i in
    its own centre they would be biased by an amount that grows with n_features. For the
    same reason T is a double sum over distinct rows, and v_i is what ``T * w_i**2``
    leaves of the squared row norm, over ``n_features - 1`` degrees of freedom.

    This is done twice: with equal weights, then with ``a_i = w_i / v_i``, where w_i and
    v_i are first pulled towards the mean of their cluster, all the way if their spread
    is no more than their error. Clusters of fewer than ten rows keep equal weights:
    theirs would be too uncertain. The centre is ``sum(a_i * x_i) / A``. With given
    scales, the weights are these scales, the centre is the least-squares fit, and how
    far off the scales are is not known.

    With ``u_i = noise_i @ center / T`` and ``q_ij = noise_i @ noise_j / T``, the error
    of the scale w_i is, to first order in the noise,

        ``u_i - w_i * mean(u) + r_i - w_i * mean(r)``,

    where r solves ``c_i * r_i + w_i * sum(a_j * r_j) = sum(a_j * q_ij, j != i)`` with
    ``c_i = A - 2 * a_i * w_i``. The error of the centre's own length is common to a
    cluster and cancels, since its scales have mean 1. The variance of u_i is
    ``v_i / T``, that of q_ij is ``n_features * v_i * v_j / T**2``, and all are
    uncorrelated; the standard errors follow. They know nothing of wrong labels.

    The noise is alike in all features, so one standard error serves all entries of a
    centre: the root of ``sum(a_i**2 * v_i)``, over A. Only along the centre itself the
    error is another one, that of an unweighted mean.

    Two rows have one inner product, which does not tell scales from noise: their scales
    are put in proportion to their norms, with infinite errors. A row alone has scale 1
    and noise level 0. A zero row has scale 0, noise level 0 and error 0.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.outer([1.0, 2.0, 2.0, 3.0], [3.0, 4.0])
    >>> found = estimate_parameters(X, ["a", "a", "a", "a"])
    >>> found.centers.round(3), found.scales.round(3)
    (array([[6., 8.]]), array([0.5, 1. , 1. , 1.5]))

    >>> from ihgmm import make_ihgmm
    >>> sample = make_ihgmm(4000, 400, 3, random_state=0, return_params=True)
    >>> found = estimate_parameters(sample.X, sample.labels)
    >>> mean = np.bincount(sample.labels, sample.scales) / np.bincount(sample.labels)
    >>> truth = sample.scales / mean[sample.labels]
    >>> lower, upper = found.scale_intervals(0.95).T
    >>> round(float(np.mean((lower < truth) & (truth < upper))), 2)
    0.95
    """
    unit = 1.0
    checked = sqnorms is not None
    if not checked:
        data = check_data(X, blocks=True, devices=True)
        X, sqnorms, unit = data.X, data.sqnorms, data.unit
    if checked and is_device(scales) and n_clusters is not None:
        # What an estimator hands on stays where it is and needs no checks.
        labels, scales = moved(labels, X), positive(scales)
        classes = np.arange(n_clusters)
    else:
        # Figures of the rows are on the host; X need not be.
        sqnorms = to_host(sqnorms)
        labels, classes = _check_clusters(labels, n_clusters, X.shape[0])
        if scales is not None:
            scales = _check_scales(scales, X.shape[0])
    found = _estimate(X, labels, classes, scales, sqnorms)
    if unit == 1.0:
        return found
    return replace(
        found,
        centers=times(found.centers, unit),
        noise_levels=times(found.noise_levels, unit),
        center_errors=times(found.center_errors, unit),
    )


def _check_clusters(
    labels: Any, n_clusters: int | None, n_samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return labels as integers from 0, and what each of these stands for."""
    array = check_labels("labels", labels)
    if len(array) != n_samples:
        raise ValueError(
            f"labels has {len(array)} entries and X has {n_samples} rows; give one "
            "label for each row."
        )
    if n_clusters is None:
        classes, array = np.unique(array, return_inverse=True)
        return np.ravel(array), classes
    check_count("n_clusters", n_clusters)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"labels of dtype {array.dtype} do not go with n_clusters={n_clusters}; "
            "give integers from 0, or leave n_clusters out."
        )
    wrong = array[(array < 0) | (array >= n_clusters)]
    if len(wrong):
        raise ValueError(
            f"labels has the entry {wrong[0]}, not between 0 and n_clusters - 1 = "
            f"{n_clusters - 1}; give such integers, or leave n_clusters out."
        )
    return array.astype(np.intp, copy=False), np.arange(n_clusters)


def _check_scales(scales: Any, n_samples: int) -> np.ndarray:
    array = to_host(scales) if is_device(scales) else np.asarray(scales)
    array = array.astype(np.float64, copy=False)
    if array.shape != (n_samples,) or not np.isfinite(array).all():
        raise ValueError(
            f"scales has shape {array.shape}; give {n_samples} finite numbers, one for "
            "each row of X."
        )
    return np.maximum(array, 0.0)


def _estimate(
    X: Array,
    labels: Tall,
    classes: np.ndarray,
    scales: Tall | None,
    sqnorms: Tall,
) -> Estimates:
    p = X.shape[1]
    rows = Groups.of(labels, len(classes))
    if scales is None:
        fit = fit_scales(X, rows, np.ones(len(labels)), sqnorms)
        fit = fit_scales(X, rows, efficient_weights(fit, rows, p), sqnorms)
        errors = np.sqrt(scale_variances(fit, rows, p))
        # The weights prefer rows whose noise was underestimated.
        variances = shrunk_variances(fit, rows, p) * rows.mean(fit.variances)
    else:
        scales = rows.mean_one(scales)
        fit = fit_centers(X, rows, scales, sqnorms)
        variances = fit.variances
        errors = namespace(scales).full_like(scales, np.nan)
    center_errors = np.sqrt(rows.total(fit.weights**2 * variances))
    center_errors[rows.size < 2] = np.inf
    return Estimates(
        centers=moved(fit.centers, X),
        scales=like(fit.scales, X),
        noise_levels=like(namespace(fit.variances).sqrt(fit.variances), X),
        scale_errors=like(errors, X),
        center_errors=like(center_errors, X),
        classes=classes,
    )
