"""Numbers that describe labels, scales, centres and noise, each on its own."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq
from scipy.spatial.distance import pdist
from scipy.special import erfi

from ihgmm._checks.parameters import check_choice, check_number
from ihgmm._checks.rows import check_labels
from ihgmm.model import NOISES

__all__ = [
    "balance",
    "check_centers",
    "check_scales",
    "condition_number",
    "index_labels",
    "scale_ratio",
    "separation",
    "singular_ratio",
    "size_ratio",
    "sub_gaussian_norm",
    "weighted_sizes",
]


def separation(centers: Any) -> float:
    """Return the smallest distance between two centres, Delta in section 2.

    Parameters
    ----------
    centers : array-like of shape (n_clusters, n_features)
        The centres, one in each row.

    Returns
    -------
    float
        ``inf`` for a single centre.

    Notes
    -----
    In this model a large separation does not make clusters distinct: centres ``t`` and
    ``2 * t`` are far apart, yet a row of either cluster may come from the other with
    another scale. What the paper's conditions ask in addition is a small
    :func:`condition_number`. Nor is the separation fixed by the distribution of X:
    dividing the scales of a cluster by a number that multiplies its centre changes
    the separation and nothing else.

    Examples
    --------
    >>> separation([[0.0, 0.0], [3.0, 4.0], [9.0, 0.0]])
    5.0
    """
    theta = check_centers(centers)
    return float(pdist(theta).min()) if len(theta) > 1 else np.inf


def balance(labels: Any) -> float:
    """Return the smallest cluster size over ``n / K``, beta in section 2.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Labels of any kind; clusters are the labels that occur.

    Returns
    -------
    float
        Above 0 and at most 1; 1 only if all clusters have the same size.

    Notes
    -----
    It is at least ``1 / size_ratio(labels)``. The proof of Corollary 1 concludes
    ``beta = O(1)`` from ``tau = O(1)``, which always holds; what it needs, and what
    follows, is that beta is bounded away from zero.

    Examples
    --------
    >>> balance(["a", "a", "a", "b"])
    0.5
    """
    sizes = _sizes(labels)
    return float(sizes.min() * len(sizes) / sizes.sum())


def size_ratio(labels: Any) -> float:
    """Return the largest cluster size over the smallest, tau in section 4.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Labels of any kind; clusters are the labels that occur.

    Returns
    -------
    float

    Examples
    --------
    >>> size_ratio(["a", "a", "a", "b"])
    3.0
    """
    sizes = _sizes(labels)
    return float(sizes.max() / sizes.min())


def scale_ratio(scales: Any) -> float:
    """Return the largest scale over the smallest, R in section 5.

    Parameters
    ----------
    scales : array-like of shape (n_samples,)
        Positive scales, omega_i in the paper.

    Returns
    -------
    float

    Notes
    -----
    Section 2 says that equal scales make the noise homoskedastic. They do not: the
    noise of a row does not depend on its scale. With a ratio of 1 the model is a
    sub-Gaussian mixture whose noise levels may still differ between rows.

    Examples
    --------
    >>> scale_ratio([1.0, 4.0, 2.0])
    4.0
    """
    omega = check_scales(scales)
    return float(omega.max() / omega.min())


def condition_number(centers: Any) -> float:
    """Return ``sigma_1 / sigma_K`` of the centres, kappa in section 4.

    Parameters
    ----------
    centers : array-like of shape (n_clusters, n_features)
        The centres, one in each row.

    Returns
    -------
    float
        ``inf`` for linearly dependent centres, in particular for more centres than
        features.

    Notes
    -----
    Section 4 compares with the sharp result for two symmetric components, and with
    others that allow any centres. Centres ``t`` and ``-t`` are dependent, so kappa is
    infinite and the paper's theorem says nothing about them, however far apart.

    Examples
    --------
    >>> condition_number([[3.0, 0.0], [0.0, 1.0]])
    3.0
    >>> condition_number([[1.0, 2.0], [-1.0, -2.0]])
    inf
    """
    return singular_ratio(check_centers(centers))


def weighted_sizes(labels: Any, scales: Any) -> np.ndarray:
    """Return the sum of squared scales in each cluster, n tilde in section 3.1.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Labels of any kind.
    scales : array-like of shape (n_samples,)
        Positive scales.

    Returns
    -------
    ndarray of shape (n_clusters,)
        In the order of the sorted labels.

    Examples
    --------
    >>> weighted_sizes([0, 0, 1], [1.0, 2.0, 3.0])
    array([5., 9.])
    """
    _, code = np.unique(check_labels("labels", labels), return_inverse=True)
    omega = check_scales(scales, len(code))
    return np.bincount(code, omega**2)


def sub_gaussian_norm(
    noise_level: float = 1.0,
    noise: Literal["gaussian", "rademacher", "uniform"] = "gaussian",
) -> float:
    """Return the psi_2 norm of one entry of the noise, whose bound is eta (section 2).

    Parameters
    ----------
    noise_level : float
        Standard deviation of the entry.
    noise : {"gaussian", "rademacher", "uniform"}
        Its distribution.

    Returns
    -------
    float
        The smallest t with ``E exp(x**2 / t**2) <= 2``.

    Notes
    -----
    Section 5 gives sigma as the norm of Rademacher noise; with this standard definition
    it is ``sigma / sqrt(log 2)``, 20% more. Sigma is its variance proxy, as it is for
    all three distributions, and the tail bound in the proof of Theorem 1 holds for that
    as well as for the norm. So the largest noise level may serve as eta.

    Examples
    --------
    >>> round(sub_gaussian_norm(1.0, "rademacher"), 4)
    1.2011
    """
    sigma = check_number("noise_level", noise_level, least=0)
    check_choice("noise", noise, NOISES)
    if noise == "gaussian":
        return float(sigma * np.sqrt(8 / 3))
    if noise == "rademacher":
        return float(sigma / np.sqrt(np.log(2)))
    width = np.sqrt(3.0)

    def excess(t: float) -> float:
        return float(t / width * np.sqrt(np.pi) / 2 * erfi(width / t) - 2)

    return float(sigma * brentq(excess, 1.0, 2.0, xtol=1e-14))


def check_centers(centers: Any) -> np.ndarray:
    """Return the centres as a finite float64 matrix."""
    theta = np.asarray(centers, dtype=np.float64)
    if theta.ndim != 2 or theta.size == 0:
        raise ValueError(
            f"centers has shape {theta.shape}; give a matrix with a centre in each row."
        )
    if not np.isfinite(theta).all():
        raise ValueError("centers contains NaN or infinity; give finite numbers.")
    return theta


def check_scales(scales: Any, n: int | None = None) -> np.ndarray:
    """Return the scales as positive float64 numbers, one for each of n rows."""
    omega = np.asarray(scales, dtype=np.float64)
    if omega.ndim != 1 or omega.size == 0 or (n is not None and len(omega) != n):
        wanted = "one number for each row" if n is None else f"{n} numbers"
        raise ValueError(f"scales has shape {omega.shape}; give {wanted}.")
    if not (np.isfinite(omega) & (omega > 0)).all():
        raise ValueError(
            f"scales has smallest value {omega.min():g} and largest {omega.max():g}; "
            "give positive, finite numbers."
        )
    return omega


def index_labels(labels: Any, n_clusters: int) -> np.ndarray:
    """Return labels that number the rows of the centres, none of them without rows."""
    code = check_labels("labels", labels)
    if code.dtype.kind not in "iu":
        raise TypeError(
            f"labels are of type {code.dtype}; give whole numbers, the row of centers "
            "that each sample belongs to."
        )
    if code.min() < 0 or code.max() >= n_clusters:
        raise ValueError(
            f"labels run from {code.min()} to {code.max()}; with {n_clusters} centers "
            f"give numbers from 0 to {n_clusters - 1}."
        )
    empty = np.flatnonzero(np.bincount(code, minlength=n_clusters) == 0)
    if empty.size:
        raise ValueError(
            f"No label is {empty[0]}; leave out centers without rows and number the "
            "others afresh."
        )
    return code


def singular_ratio(matrix: np.ndarray) -> float:
    """Return the largest singular value over that of the last row, or ``inf``."""
    rows, columns = matrix.shape
    values = np.linalg.svd(matrix, compute_uv=False)
    rounding = values[0] * max(rows, columns) * np.finfo(np.float64).eps
    if columns < rows or values[-1] <= rounding:
        return np.inf
    return float(values[0] / values[-1])


def _sizes(labels: Any) -> np.ndarray:
    _, sizes = np.unique(check_labels("labels", labels), return_counts=True)
    return np.asarray(sizes)
