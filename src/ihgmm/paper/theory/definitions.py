"""Quantities of the model: its labels, scales, centres, noise and signal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfi

from ihgmm._parameters import check_choice, check_number
from ihgmm.statistics.model import (
    NOISE_DISTRIBUTIONS,
    check_model,
    log_size,
    smallest_distance,
)


def separation(centers: Any) -> float:
    """Return the smallest distance between two centres, Delta in section 2.

    It is ``inf`` for a single centre.

    Examples
    --------
    >>> separation([[0.0, 0.0], [3.0, 4.0], [9.0, 0.0]])
    5.0
    """
    (theta,) = check_model(centers=centers)
    return smallest_distance(theta)


def balance(labels: Any) -> float:
    """Return the smallest cluster size over ``n / K``, beta in section 2.

    Examples
    --------
    >>> balance(["a", "a", "a", "b"])
    0.5
    """
    (code,) = check_model(labels=labels)
    sizes = np.bincount(code)
    return float(sizes.min() * len(sizes) / len(code))


def size_ratio(labels: Any) -> float:
    """Return the largest cluster size over the smallest, tau in section 4.

    Examples
    --------
    >>> size_ratio(["a", "a", "a", "b"])
    3.0
    """
    (code,) = check_model(labels=labels)
    sizes = np.bincount(code)
    return float(sizes.max() / sizes.min())


def scale_ratio(scales: Any) -> float:
    """Return the largest scale over the smallest, R in section 5.

    Examples
    --------
    >>> scale_ratio([1.0, 4.0, 2.0])
    4.0
    """
    (omega,) = check_model(scales=scales)
    return float(omega.max() / omega.min())


def condition_number(centers: Any) -> float:
    """Return ``sigma_1 / sigma_K`` of the centres, kappa in section 4.

    It is ``inf`` for linearly dependent centres, so for more centres than features.

    Examples
    --------
    >>> condition_number([[3.0, 0.0], [0.0, 1.0]])
    3.0
    >>> condition_number([[1.0, 2.0], [-1.0, -2.0]])
    inf
    """
    (theta,) = check_model(centers=centers)
    return _singular_ratio(theta)


def weighted_sizes(labels: Any, scales: Any) -> np.ndarray:
    """Return the sum of squared scales in each cluster, n tilde in section 3.1.

    The sums are in the order of the sorted labels.

    Examples
    --------
    >>> weighted_sizes([0, 0, 1], [1.0, 2.0, 3.0])
    array([5., 9.])
    """
    code, omega = check_model(labels=labels, scales=scales)
    return np.bincount(code, omega**2)


def sub_gaussian_norm(
    noise_level: float = 1.0,
    noise: Literal["gaussian", "rademacher", "uniform"] = "gaussian",
) -> float:
    """Return the psi_2 norm of one entry of the noise, whose bound is eta (section 2).

    It is the smallest t with ``E exp(x**2 / t**2) <= 2``.

    Parameters
    ----------
    noise_level, noise
        Standard deviation and distribution of the entry.

    Examples
    --------
    >>> round(sub_gaussian_norm(1.0, "rademacher"), 4)
    1.2011
    """
    sigma = check_number("noise_level", noise_level, least=0)
    check_choice("noise", noise, NOISE_DISTRIBUTIONS)
    if noise == "gaussian":
        return float(sigma * np.sqrt(8 / 3))
    if noise == "rademacher":
        return float(sigma / np.sqrt(np.log(2)))
    width = np.sqrt(3.0)

    def excess(t: float) -> float:
        return float(t / width * np.sqrt(np.pi) / 2 * erfi(width / t) - 2)

    return float(sigma * brentq(excess, 1.0, 2.0, xtol=1e-14))


def signal(labels: Any, scales: Any, centers: Any) -> np.ndarray:
    """Return the expectation of X, n_samples by n_features; P in section 2 is its .T.

    Parameters
    ----------
    labels, scales : array-like of shape (n_samples,)
        The row of ``centers`` that each sample belongs to, and positive numbers.
    centers : array-like of shape (n_clusters, n_features)
        The centres, one in each row.

    Examples
    --------
    >>> signal([0, 1, 1], [1.0, 1.0, 2.0], [[1.0, 0.0], [2.0, 3.0]])
    array([[1., 0.],
           [2., 3.],
           [4., 6.]])
    """
    code, omega, theta = check_model(labels=labels, scales=scales, centers=centers)
    return np.asarray(omega[:, None] * theta[code])


def signal_singular_values(labels: Any, scales: Any, centers: Any) -> np.ndarray:
    """Return the K leading singular values of the signal (proof of Lemma 1).

    They decrease, to zeros at the end where the centres are dependent. They are those
    of the small matrix with rows ``sqrt(weighted size) * center``; the signal itself is
    never formed. Values below 1e-16 times the largest are rounding errors.

    Examples
    --------
    >>> signal_singular_values([0, 0, 1], [3.0, 4.0, 1.0], [[1.0, 0.0], [0.0, 2.0]])
    array([5., 2.])
    """
    weighted = _weighted_centers(labels, scales, centers)
    values = np.linalg.svd(weighted, compute_uv=False)
    return np.pad(values, (0, len(weighted) - len(values)))


def signal_condition_number(labels: Any, scales: Any, centers: Any) -> float:
    """Return ``sigma_1 / sigma_K`` of the signal, kappa_P in Lemma 4.

    It is ``inf`` for linearly dependent centres.

    Examples
    --------
    >>> signal_condition_number([0, 0, 1], [3.0, 4.0, 1.0], [[1.0, 0.0], [0.0, 2.0]])
    2.5
    """
    return _singular_ratio(_weighted_centers(labels, scales, centers))


@dataclass(frozen=True, eq=False)
class IdealEmbedding:
    """What the spectral algorithm would see without noise (Lemma 1).

    Examples
    --------
    >>> ideal = ideal_embedding([0, 0, 1], [3.0, 4.0, 1.0], [[1.0, 0.0], [0.0, 2.0]])
    >>> ideal.singular_vectors.shape, ideal.rotation.shape
    ((3, 2), (2, 2))
    """

    #: U, n by K; row i is ``scale_i / sqrt(weighted size)`` times one of ``rotation``.
    singular_vectors: np.ndarray
    #: U_*, the same with rows of norm 1: equal within clusters, orthogonal between.
    normalized: np.ndarray
    #: H, K by K, orthogonal; row k is the normalized row of cluster k.
    rotation: np.ndarray


def ideal_embedding(labels: Any, scales: Any, centers: Any) -> IdealEmbedding:
    """Return the singular vectors of the signal and their unit rows (Lemma 1).

    Examples
    --------
    >>> ideal = ideal_embedding([0, 0, 1], [3.0, 4.0, 1.0], [[1.0, 0.0], [0.0, 2.0]])
    >>> abs(ideal.singular_vectors).round(2)
    array([[0.6, 0. ],
           [0.8, 0. ],
           [0. , 1. ]])
    """
    code, omega, theta = check_model(labels=labels, scales=scales, centers=centers)
    rotation, _ = independent_svd(_weighted_centers(code, omega, theta))
    length = np.sqrt(weighted_sizes(code, omega))[code]
    vectors = (omega / length)[:, None] * rotation[code]
    return IdealEmbedding(vectors, rotation[code], rotation)


@dataclass(frozen=True)
class Incoherence:
    """The incoherence parameters of a signal (section 4, Definition 1).

    Examples
    --------
    >>> Incoherence(entries=3.3, samples=1.5, features=1.0).largest
    3.3
    """

    #: mu_0, the largest squared entry over the mean squared entry.
    entries: float
    #: mu_1, the same for squared row norms of the singular vectors of the samples.
    samples: float
    #: mu_2, that for the singular vectors of the features.
    features: float

    @property
    def largest(self) -> float:
        """The largest of the three, mu; at least 1."""
        return max(self.entries, self.samples, self.features)


def incoherence(labels: Any, scales: Any, centers: Any) -> Incoherence:
    """Return mu_0, mu_1, mu_2 and mu of the signal (section 4, Definition 1).

    The centres must be linearly independent.

    Examples
    --------
    >>> mu = incoherence([0, 0, 1], [3.0, 4.0, 1.0], [[1.0, 0.0], [0.0, 2.0]])
    >>> mu.entries, mu.samples, mu.features, mu.largest
    (3.31..., 1.5, 1.0, 3.31...)
    """
    code, omega, theta = check_model(labels=labels, scales=scales, centers=centers)
    _, features = independent_svd(_weighted_centers(code, omega, theta))
    n, (k, p) = len(code), theta.shape
    row_norms = omega**2 / weighted_sizes(code, omega)[code]  # squared, by Lemma 1
    largest = (omega**2 * (theta**2).max(axis=1)[code]).max()
    total = (omega**2 * (theta**2).sum(axis=1)[code]).sum()
    return Incoherence(
        float(p * n * largest / total),
        float(n / k * row_norms.max()),
        float(p / k * (features**2).sum(axis=0).max()),
    )


@dataclass(frozen=True)
class ModelParameters:
    """All numbers that the theorem depends on.

    Use :func:`dataclasses.replace` to see what a change of one of them does.

    Examples
    --------
    >>> q = model_parameters([0, 0, 1], [3.0, 4.0, 1.0], [[1.0, 0.0], [0.0, 2.0]])
    >>> q.n_samples, q.scale_ratio, q.condition_number
    (3, 4.0, 2.0)
    """

    n_samples: int  #: n
    n_features: int  #: p
    n_clusters: int  #: K
    largest_cluster: int  #: n_max, the size of the largest cluster
    separation: float  #: Delta
    balance: float  #: beta
    size_ratio: float  #: tau
    smallest_scale: float  #: omega_min
    largest_scale: float  #: omega_max
    noise_bound: float  #: eta
    condition_number: float  #: kappa
    signal_condition_number: float  #: kappa_P
    smallest_singular_value: float  #: sigma_K of the signal
    incoherence: float  #: mu
    sample_incoherence: float  #: mu_1

    @property
    def scale_ratio(self) -> float:
        """The largest scale over the smallest, R."""
        return self.largest_scale / self.smallest_scale

    @property
    def log_size(self) -> float:
        """The logarithm of d, the larger of n and p."""
        return log_size(self.n_samples, self.n_features)


def model_parameters(
    labels: Any, scales: Any, centers: Any, noise_bound: float = 1.0
) -> ModelParameters:
    """Compute all numbers that the theorem depends on.

    Parameters
    ----------
    labels, scales, centers
        The model; its centres must be linearly independent.
    noise_bound : float
        eta, the bound of the sub-Gaussian norm of the noise. The largest noise level
        will do, see :func:`sub_gaussian_norm`.

    Examples
    --------
    >>> from ihgmm import make_ihgmm
    >>> sample = make_ihgmm(100, 50, 2, random_state=0, return_params=True)
    >>> q = model_parameters(sample.labels, sample.scales, sample.centers, 1.5)
    >>> q.n_clusters, q.balance, round(q.condition_number, 6)
    (2, 1.0, 1.0)
    """
    model = check_model(labels=labels, scales=scales, centers=centers)
    code, omega, theta = model
    eta = check_number("noise_bound", noise_bound, above=0)
    log_size(len(code), theta.shape[1])  # raises where it is 0
    mu = incoherence(*model)
    return ModelParameters(
        n_samples=len(code),
        n_features=theta.shape[1],
        n_clusters=len(theta),
        largest_cluster=int(np.bincount(code).max()),
        separation=separation(theta),
        balance=balance(code),
        size_ratio=size_ratio(code),
        smallest_scale=float(omega.min()),
        largest_scale=float(omega.max()),
        noise_bound=eta,
        condition_number=condition_number(theta),
        signal_condition_number=signal_condition_number(*model),
        smallest_singular_value=float(signal_singular_values(*model)[-1]),
        incoherence=mu.largest,
        sample_incoherence=mu.samples,
    )


def independent_svd(centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the singular vectors of independent rows; raise where there are none."""
    if not np.isfinite(_singular_ratio(centers)):
        rank = np.linalg.matrix_rank(centers)
        raise ValueError(
            f"centers has {len(centers)} rows but rank {rank}; give linearly "
            "independent centers, no more of them than features."
        )
    left, _, right = np.linalg.svd(centers, full_matrices=False)
    return left, right


def _singular_ratio(matrix: np.ndarray) -> float:
    """Return the largest singular value over that of the last row, or ``inf``."""
    rows, columns = matrix.shape
    values = np.linalg.svd(matrix, compute_uv=False)
    rounding = values[0] * max(rows, columns) * np.finfo(np.float64).eps
    if columns < rows or values[-1] <= rounding:
        return np.inf
    return float(values[0] / values[-1])


def _weighted_centers(labels: Any, scales: Any, centers: Any) -> np.ndarray:
    """Return rows ``sqrt(weighted size) * center``, with the signal's spectrum."""
    code, omega, theta = check_model(labels=labels, scales=scales, centers=centers)
    return np.asarray(np.sqrt(np.bincount(code, omega**2))[:, None] * theta)
