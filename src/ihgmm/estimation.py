"""The parameters of the model, given the data and the labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm._arrays import Array, matmul, row_sqnorms, transposed_matmul

__all__ = ["Estimates", "estimate_parameters"]


@dataclass(frozen=True)
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
    """

    centers: np.ndarray
    scales: np.ndarray
    noise_levels: np.ndarray


def estimate_parameters(
    X: Array,
    labels: np.ndarray,
    n_clusters: int,
    *,
    scales: np.ndarray | None = None,
    sqnorms: np.ndarray | None = None,
) -> Estimates:
    """Estimate centres, scales and noise levels from labelled data.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data.
    labels : ndarray of shape (n_samples,)
        Integers from 0 to ``n_clusters - 1``.
    n_clusters : int
        Number of clusters.
    scales : ndarray of shape (n_samples,), optional
        Non-negative scales, up to a factor for each cluster, if known already.
    sqnorms : ndarray of shape (n_samples,), optional
        Squared row norms of X, if known already.

    Returns
    -------
    Estimates

    Notes
    -----
    Unless given, the scale of row i is proportional to its inner product with the sum
    of the *other* rows of its cluster: with the row's own noise in that sum, scales
    would be overestimated by an amount that grows with n_features. A negative inner
    product gives scale zero. The centre is the least-squares fit given the scales,
    ``sum(scale_i * x_i) / sum(scale_i**2)``. The noise level is what the centre leaves
    of the row, over ``n_features - 1`` degrees of freedom; a row alone in its cluster
    has scale 1 and noise level 0.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.outer([1.0, 2.0, 2.0, 3.0], [3.0, 4.0])
    >>> found = estimate_parameters(X, np.zeros(4, dtype=int), 1)
    >>> found.centers.round(3), found.scales.round(3)
    (array([[6., 8.]]), array([0.5, 1. , 1. , 1.5]))
    """
    p = X.shape[1]
    if sqnorms is None:
        sqnorms = row_sqnorms(X)
    size = np.bincount(labels, minlength=n_clusters)
    if scales is None:
        scales = _leave_one_out_scales(X, labels, size, sqnorms)
    scales = _mean_one(np.maximum(scales, 0.0), labels, size)
    energy = np.bincount(labels, scales**2, n_clusters)
    energy[size == 0] = 1.0
    weights = scales / energy[labels]
    centers = _weighted_sums(X, labels, weights, n_clusters)
    length = _center_sqnorms(centers, labels, weights, scales, sqnorms)
    left = np.maximum(sqnorms - scales**2 * length[labels], 0.0)
    left[size[labels] == 1] = 0.0
    noise = np.sqrt(left / max(p - 1, 1))
    return Estimates(centers, scales.astype(X.dtype), noise.astype(X.dtype))


def _weighted_sums(
    X: Array, labels: np.ndarray, weights: np.ndarray, n_clusters: int
) -> np.ndarray:
    membership = np.zeros((len(labels), n_clusters), dtype=X.dtype)
    membership[np.arange(len(labels)), labels] = weights
    return transposed_matmul(X, membership).T


def _leave_one_out_scales(
    X: Array, labels: np.ndarray, size: np.ndarray, sqnorms: np.ndarray
) -> np.ndarray:
    """Return scales up to a factor for each cluster."""
    sums = _weighted_sums(X, labels, np.ones(len(labels)), len(size))
    inner = matmul(X, sums.T)[np.arange(len(labels)), labels] - sqnorms
    np.maximum(inner, 0.0, out=inner)
    # Without row i the sum of scales is shorter by that row's own: a fixed point.
    scales = _mean_one(inner, labels, size)
    for _ in range(20):
        others = np.maximum(size[labels] - scales, 0.5)
        scales = _mean_one(inner / others, labels, size)
    return scales


def _mean_one(scales: np.ndarray, labels: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Divide by the mean of each cluster; ones where that is zero."""
    total = np.bincount(labels, scales, len(size))
    unit = np.divide(size, total, out=np.zeros(len(size)), where=total > 0)[labels]
    return np.asarray(np.where(unit > 0, scales * unit, 1.0))


def _center_sqnorms(
    centers: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    scales: np.ndarray,
    sqnorms: np.ndarray,
) -> np.ndarray:
    """Return the squared norms of the true centres, free of the noise in ours.

    ``norm(center)**2`` is a double sum over rows; the terms that pair a row with
    itself carry the noise and are left out.
    """
    k = len(centers)
    squares = np.einsum("ij,ij->i", centers, centers, dtype=np.float64)
    diagonal = np.bincount(labels, weights**2 * sqnorms, k)
    kept = 1.0 - np.bincount(labels, (weights * scales) ** 2, k)
    kept[kept <= 1e-12] = 1.0
    return np.asarray(np.clip((squares - diagonal) / kept, 0.0, squares))
