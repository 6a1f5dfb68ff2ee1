"""The signal, its singular values and vectors, and how spread out they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ihgmm.theory.quantities import (
    check_centers,
    check_scales,
    index_labels,
    singular_ratio,
)

__all__ = [
    "IdealEmbedding",
    "Incoherence",
    "check_model",
    "ideal_embedding",
    "incoherence",
    "signal",
    "signal_condition_number",
    "signal_singular_values",
]


@dataclass(frozen=True)
class Incoherence:
    """The incoherence parameters of a signal (section 4, Definition 1).

    Attributes
    ----------
    entries : float
        mu_0, the largest squared entry over the mean squared entry.
    samples : float
        mu_1, the largest squared row norm of the singular vectors of the samples over
        their mean.
    features : float
        mu_2, the same for the singular vectors of the features.
    """

    entries: float
    samples: float
    features: float

    @property
    def largest(self) -> float:
        """The largest of the three, mu; at least 1."""
        return max(self.entries, self.samples, self.features)


@dataclass(frozen=True, eq=False)
class IdealEmbedding:
    """What the spectral algorithm would see without noise (Lemma 1).

    Attributes
    ----------
    singular_vectors : ndarray of shape (n_samples, n_clusters)
        U; row i is ``scale_i / sqrt(weighted size)`` times a row of ``rotation``.
    normalized : ndarray of shape (n_samples, n_clusters)
        U_*, the same with rows of norm 1: equal within clusters, orthogonal between.
    rotation : ndarray of shape (n_clusters, n_clusters)
        H, orthogonal; row k is the normalized row of cluster k.
    """

    singular_vectors: np.ndarray
    normalized: np.ndarray
    rotation: np.ndarray


def signal(labels: Any, scales: Any, centers: Any) -> np.ndarray:
    """Return the expectation of X, the transpose of P in section 2.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Whole numbers, the row of ``centers`` that each sample belongs to.
    scales : array-like of shape (n_samples,)
        Positive scales.
    centers : array-like of shape (n_clusters, n_features)
        The centres.

    Returns
    -------
    ndarray of shape (n_samples, n_features)

    Examples
    --------
    >>> signal([0, 1, 1], [1.0, 1.0, 2.0], [[1.0, 0.0], [2.0, 3.0]])
    array([[1., 0.],
           [2., 3.],
           [4., 6.]])
    """
    code, omega, theta = check_model(labels, scales, centers)
    return np.asarray(omega[:, None] * theta[code])


def signal_singular_values(labels: Any, scales: Any, centers: Any) -> np.ndarray:
    """Return the K leading singular values of the signal (proof of Lemma 1).

    Parameters
    ----------
    labels, scales, centers
        As in :func:`signal`.

    Returns
    -------
    ndarray of shape (n_clusters,)
        In decreasing order; zeros at the end where the centres are dependent.

    Notes
    -----
    They are those of the small matrix with rows ``sqrt(weighted size) * center``, and
    the signal itself is never formed. Values below 1e-16 times the largest are
    rounding errors.

    Examples
    --------
    >>> signal_singular_values([0, 0, 1], [3.0, 4.0, 1.0], [[1.0, 0.0], [0.0, 2.0]])
    array([5., 2.])
    """
    weighted = _weighted_centers(*check_model(labels, scales, centers))
    values = np.linalg.svd(weighted, compute_uv=False)
    return np.pad(values, (0, len(weighted) - len(values)))


def signal_condition_number(labels: Any, scales: Any, centers: Any) -> float:
    """Return ``sigma_1 / sigma_K`` of the signal, kappa_P in Lemma 4.

    Parameters
    ----------
    labels, scales, centers
        As in :func:`signal`.

    Returns
    -------
    float
        ``inf`` for linearly dependent centres.

    Examples
    --------
    >>> signal_condition_number([0, 0, 1], [3.0, 4.0, 1.0], [[1.0, 0.0], [0.0, 2.0]])
    2.5
    """
    return singular_ratio(_weighted_centers(*check_model(labels, scales, centers)))


def ideal_embedding(labels: Any, scales: Any, centers: Any) -> IdealEmbedding:
    """Return the singular vectors of the signal and their unit rows (Lemma 1).

    Parameters
    ----------
    labels, scales, centers
        As in :func:`signal`; the centres must be linearly independent.

    Returns
    -------
    IdealEmbedding

    Notes
    -----
    The lemma does not say so, but it needs linearly independent centres: otherwise the
    signal has fewer than K singular vectors, and centres ``t`` and ``-t`` or ``2 * t``
    leave a single one. The proof also writes the index j for k in one line.

    Examples
    --------
    >>> ideal = ideal_embedding([0, 0, 1], [3.0, 4.0, 1.0], [[1.0, 0.0], [0.0, 2.0]])
    >>> abs(ideal.singular_vectors).round(2)
    array([[0.6, 0. ],
           [0.8, 0. ],
           [0. , 1. ]])
    """
    code, omega, theta = check_model(labels, scales, centers)
    vectors, rotation, _ = _singular_vectors(code, omega, theta)
    return IdealEmbedding(vectors, rotation[code], rotation)


def incoherence(labels: Any, scales: Any, centers: Any) -> Incoherence:
    """Return mu_0, mu_1, mu_2 and mu of the signal (section 4, Definition 1).

    Parameters
    ----------
    labels, scales, centers
        As in :func:`signal`; the centres must be linearly independent.

    Returns
    -------
    Incoherence

    Examples
    --------
    >>> found = incoherence([0, 0, 1], [3.0, 4.0, 1.0], [[1.0, 0.0], [0.0, 2.0]])
    >>> found.entries, found.samples, found.features, found.largest
    (3.31..., 1.5, 1.0, 3.31...)
    """
    code, omega, theta = check_model(labels, scales, centers)
    vectors, _, features = _singular_vectors(code, omega, theta)
    n, (k, p) = len(code), theta.shape
    peaks = np.zeros(k)
    np.maximum.at(peaks, code, omega)
    largest = (peaks**2 * (theta**2).max(axis=1)).max()
    total = (omega**2 * (theta**2).sum(axis=1)[code]).sum()
    return Incoherence(
        float(p * n * largest / total),
        float(n / k * (vectors**2).sum(axis=1).max()),
        float(p / k * (features**2).sum(axis=1).max()),
    )


def check_model(
    labels: Any, scales: Any, centers: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, scales and centres that fit together."""
    theta = check_centers(centers)
    code = index_labels(labels, len(theta))
    return code, check_scales(scales, len(code)), theta


def _weighted_centers(
    code: np.ndarray, omega: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    return np.asarray(np.sqrt(np.bincount(code, omega**2))[:, None] * theta)


def _singular_vectors(
    code: np.ndarray, omega: np.ndarray, theta: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return U, H and V of Lemma 1 and Definition 1."""
    weighted = _weighted_centers(code, omega, theta)
    if not np.isfinite(singular_ratio(weighted)):
        rank = np.linalg.matrix_rank(weighted)
        raise ValueError(
            f"centers has {len(theta)} rows but rank {rank}; give linearly independent "
            "centers, no more of them than features."
        )
    rotation, _, features = np.linalg.svd(weighted, full_matrices=False)
    length = np.sqrt(np.bincount(code, omega**2))[code]
    return (omega / length)[:, None] * rotation[code], rotation, features.T
