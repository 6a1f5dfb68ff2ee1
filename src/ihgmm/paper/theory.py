"""The paper's definitions, lemmas and conditions, one function for each.

The order is that of "Individual-heterogeneous sub-Gaussian mixture models": definitions
and Lemma 1; assumptions, Lemmas 2 to 4, Theorem 1 and Corollary 1; the table of other
methods; at the end what is possible at best, which is not in the paper. The paper keeps
observations in columns; here they are rows, so that its P is the transpose of
:func:`signal`.

Functions of a model take its ``centers``, one in each row, the ``scales`` of its rows,
positive, and their ``labels``: whole numbers, the row of ``centers`` that each belongs
to, or labels of any kind where no centres are asked for. Functions of the theorem take
``parameters``, as :func:`model_parameters` computes them, and thresholds the numbers
n (at least 2), p and K. Where the text has a slip or a bound can be sharper, the page
:doc:`theory </theory>` says so, function by function.

A condition "left side much larger than right side" is returned as the ratio of the two.
The constants behind "much larger" are unknown: a ratio far below 1 says that the paper
promises nothing, one above 1 that it may.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq
from scipy.spatial.distance import cdist
from scipy.special import erfi, ndtr, ndtri

from ihgmm._parameters import check_choice, check_count, check_number
from ihgmm.statistics.model import (
    NOISE_DISTRIBUTIONS,
    check_model,
    default_separation,
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

    It is the smallest t with ``E exp(x**2 / t**2) <= 2``, for an entry of standard
    deviation ``noise_level`` and distribution ``noise``.

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
    rotation, _ = _independent_svd(_weighted_centers(code, omega, theta))
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
    _, features = _independent_svd(_weighted_centers(code, omega, theta))
    n, (k, p) = len(code), theta.shape
    row_norms = omega**2 / weighted_sizes(code, omega)[code]  # squared, by Lemma 1
    largest = (omega**2 * (theta**2).max(axis=1)[code]).max()
    total = (omega**2 * (theta**2).sum(axis=1)[code]).sum()
    return Incoherence(
        float(p * n * largest / total),
        float(n / k * row_norms.max()),
        float(p / k * (features**2).sum(axis=0).max()),
    )


def _log_size(n: int, p: int) -> float:
    """Return ``log(max(n, p))``, which conditions divide by; raise where it is 0."""
    if max(n, p) < 2:
        raise ValueError(
            "n_samples=1 and n_features=1 leave log(max(n, p)) = 0 in the conditions; "
            "give at least 2 of one."
        )
    return float(np.log(max(n, p)))


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
        return _log_size(self.n_samples, self.n_features)


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
    _log_size(len(code), theta.shape[1])  # raises where it is 0
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


def _independent_svd(centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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


@dataclass(frozen=True)
class EntryConstants:
    """The constants of Assumption 1, as sharp as the centres allow.

    Examples
    --------
    >>> EntryConstants(largest_entry=3.0, smallest_norm=1.5).ratio
    2.0
    """

    #: C_Theta, the largest absolute entry of the centres.
    largest_entry: float
    #: c, the smallest norm of a centre over the root of the number of features.
    smallest_norm: float

    @property
    def ratio(self) -> float:
        """The largest entry over the smallest norm; all that Lemma 2 depends on."""
        return self.largest_entry / self.smallest_norm if self.smallest_norm else np.inf


def entry_constants(centers: Any) -> EntryConstants:
    """Return C_Theta and c, the constants of Assumption 1.

    Examples
    --------
    >>> entry_constants([[1.0, -1.0], [0.0, 3.0]])
    EntryConstants(largest_entry=3.0, smallest_norm=1.0)
    """
    (theta,) = check_model(centers=centers)
    norms = np.linalg.norm(theta, axis=1)
    smallest = norms.min() / np.sqrt(theta.shape[1])
    return EntryConstants(float(np.abs(theta).max()), float(smallest))


def subspace_constant(centers: Any) -> float:
    """Return the smallest constant C_inc of Assumption 2, between 1 and ``p / K``.

    It is ``p / K`` times the largest squared norm of a unit vector's projection on the
    span of the centres, which must be linearly independent.

    Examples
    --------
    >>> subspace_constant([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    2.0
    """
    (theta,) = check_model(centers=centers)
    k, p = theta.shape
    _, basis = _independent_svd(theta)
    return float(p / k * (basis**2).sum(axis=0).max())


def incoherence_bounds(
    labels: Any, scales: Any, centers: Any, *, sharp: bool = False
) -> Incoherence:
    """Return upper bounds of the incoherence (Lemma 2; mu_1: proof of Theorem 1).

    ``mu_0 <= R**2 * C_Theta**2 / (beta * c**2)``, ``mu_1 <= R**2 / beta`` and
    ``mu_2 <= C_inc``.

    Parameters
    ----------
    labels, scales, centers
        The model; its centres must be linearly independent.
    sharp : bool
        Leave out beta in the bound of mu_0.

    Examples
    --------
    >>> model = [0, 0, 1], [3.0, 4.0, 1.0], [[1.0, 0.0], [0.0, 2.0]]
    >>> bounds = incoherence_bounds(*model)
    >>> round(bounds.entries), round(bounds.samples), round(bounds.features)
    (192, 24, 1)
    """
    code, omega, theta = check_model(labels=labels, scales=scales, centers=centers)
    beta, ratio = balance(code), scale_ratio(omega) ** 2
    entries = ratio * entry_constants(theta).ratio ** 2 / (1.0 if sharp else beta)
    return Incoherence(entries, ratio / beta, subspace_constant(theta))


def smallest_singular_value_bound(
    labels: Any, scales: Any, centers: Any, *, sharp: bool = False
) -> float:
    """Return a lower bound of sigma_K of the signal (Lemma 3).

    ``omega_min * Delta / (2 * kappa) * sqrt(beta * n / K)``.

    Parameters
    ----------
    labels, scales, centers
        The model; dependent centres give 0.
    sharp : bool
        Put the square root of 2 for 2.

    Examples
    --------
    >>> model = [0, 0, 1, 1], [1.0, 1.0, 1.0, 1.0], [[2.0, 0.0], [0.0, 2.0]]
    >>> round(smallest_singular_value_bound(*model), 3)
    2.0
    """
    code, omega, theta = check_model(labels=labels, scales=scales, centers=centers)
    # A single centre has no separation; its norm takes the place of Delta / sqrt(2).
    one = len(theta) == 1
    delta = np.sqrt(2) * np.linalg.norm(theta) if one else separation(theta)
    factor = np.sqrt(2) if sharp else 2.0
    sigma = omega.min() * delta / (factor * condition_number(theta))
    return float(sigma * np.sqrt(np.bincount(code).min()))


def signal_condition_number_bound(labels: Any, scales: Any, centers: Any) -> float:
    """Return an upper bound of kappa_P, ``kappa * R * sqrt(tau)`` (Lemma 4).

    It is ``inf`` for linearly dependent centres.

    Examples
    --------
    >>> model = [0, 0, 1], [3.0, 4.0, 1.0], [[1.0, 0.0], [0.0, 2.0]]
    >>> round(signal_condition_number_bound(*model), 3)
    11.314
    """
    code, omega, theta = check_model(labels=labels, scales=scales, centers=centers)
    tau = size_ratio(code)
    return float(condition_number(theta) * scale_ratio(omega) * np.sqrt(tau))


def row_norm_bound(labels: Any, scales: Any) -> float:
    """Return ``omega_min / omega_max / sqrt(n_max)``; no row of U has a smaller norm.

    The bound is in the proof of Theorem 1.

    Examples
    --------
    >>> row_norm_bound([0, 0, 0, 0, 1], [1.0, 2.0, 1.0, 1.0, 1.0])
    0.25
    """
    code, omega = check_model(labels=labels, scales=scales)
    return float(omega.min() / omega.max() / np.sqrt(np.bincount(code).max()))


@dataclass(frozen=True)
class _Ratios:
    @property
    def smallest(self) -> float:
        """The smallest ratio, that of the condition which is hardest to meet."""
        return float(min(astuple(self)))


@dataclass(frozen=True)
class TheoremConditions(_Ratios):
    """Left side over right side of each condition of Theorem 1.

    Examples
    --------
    >>> TheoremConditions(2.0, 3.0, 1.5, 0.2, 0.1).smallest  # not all are met
    0.1
    """

    product: float  #: The condition on ``n * p``.
    features: float  #: The condition on p.
    samples: float  #: The condition on n.
    separation_aspect: float  #: The condition on Delta that grows with ``p / n``.
    separation_floor: float  #: The condition on Delta that does not.


def theorem_conditions(parameters: ModelParameters) -> TheoremConditions:
    """Return how far the conditions of Theorem 1 are met (MainNPKCond, MainDeltaCond).

    Examples
    --------
    >>> from ihgmm import make_ihgmm
    >>> s = make_ihgmm(500, 200, 4, random_state=0, return_params=True)
    >>> q = model_parameters(s.labels, s.scales, s.centers, noise_bound=1.5)
    >>> theorem_conditions(q).smallest < 1e-8
    True
    """
    q = parameters
    n, p, k, log = q.n_samples, q.n_features, q.n_clusters, q.log_size
    low, high, ratio = q.smallest_scale, q.largest_scale, q.scale_ratio
    tau, kappa, mu, beta = q.size_ratio, q.condition_number, q.incoherence, q.balance
    hard = tau**4 * kappa**8 * ratio**8
    n_needed = (tau * kappa**2) ** (4 / 3) * ratio ** (14 / 3) * mu ** (1 / 3)
    n_needed *= k * q.largest_cluster ** (1 / 3) / beta ** (2 / 3)
    noise = q.noise_bound / np.sqrt(beta)
    aspect = noise * kappa**2 * high**1.5 * tau**0.5 * mu**0.25 / low**2.5
    aspect *= (k * p * q.largest_cluster / n**2) ** 0.25 * np.sqrt(k * log)
    floor = noise * kappa**4 * high**4 * np.sqrt(tau**3 * mu) / low**5
    floor *= k * np.sqrt(q.largest_cluster * log / n)
    return TheoremConditions(
        product=n * p / (mu**2 * hard * k**2 * log**4),
        features=p / (mu * hard * k * log**2),
        samples=n / n_needed,
        separation_aspect=float(q.separation / aspect),
        separation_floor=float(q.separation / floor),
    )


@dataclass(frozen=True)
class PerturbationConditions(_Ratios):
    """Large side over small side of each condition of the perturbation theorem.

    Examples
    --------
    >>> PerturbationConditions(2.0, 3.0, 1.5, 0.2, 0.1).smallest  # not all are met
    0.1
    """

    product: float  #: The condition on ``sqrt(n * p)``.
    features: float  #: The condition on p.
    signal_aspect: float  #: The condition on ``sigma_K / eta`` that depends on p.
    signal_floor: float  #: The condition on ``sigma_K / eta`` that does not.
    clusters: float  #: The condition on K.


def perturbation_conditions(parameters: ModelParameters) -> PerturbationConditions:
    """Return how far the conditions behind the proof of Theorem 1 are met (cai15).

    They are those of the subspace perturbation theorem of Cai, Li, Chi, Poor and Chen
    (2021) when nothing is missing, in the true kappa_P, sigma_K and mu_1. All are at
    least 1/2 where those of Theorem 1 are at least 1.

    Examples
    --------
    >>> from ihgmm import make_ihgmm
    >>> s = make_ihgmm(500, 200, 4, random_state=0, return_params=True)
    >>> q = model_parameters(s.labels, s.scales, s.centers, noise_bound=1.5)
    >>> round(perturbation_conditions(q).smallest, 4)  # below 1: not all are met
    0.0119
    """
    q = parameters
    n, p, k, log = q.n_samples, q.n_features, q.n_clusters, q.log_size
    kappa, mu = q.signal_condition_number, q.incoherence
    strength = q.smallest_singular_value / q.noise_bound
    return PerturbationConditions(
        product=float(np.sqrt(n * p) / (mu * kappa**4 * k * log**2)),
        features=p / (mu * kappa**8 * k * log**2),
        signal_aspect=float(strength / (kappa * (n * p) ** 0.25 * np.sqrt(log))),
        signal_floor=float(strength / (kappa**3 * np.sqrt(n * log))),
        clusters=n / (q.sample_incoherence * kappa**4 * k),
    )


@dataclass(frozen=True)
class CorollaryConditions(_Ratios):
    """Left side over right side of each condition of Corollary 1.

    Examples
    --------
    >>> conditions = corollary_conditions(500, 200, 4, separation=20.0)
    >>> round(conditions.separation, 1)
    4.0
    """

    product: float  #: The condition on ``n * p``.
    features: float  #: The condition on p.
    samples: float  #: The condition on n.
    separation: float  #: The condition on Delta.


def corollary_conditions(
    n_samples: int, n_features: int, n_clusters: int, separation: float
) -> CorollaryConditions:
    """Return how far the conditions of Corollary 1 are met (cond:cor, cond:delta).

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
        Size of the sample; at least 2 samples or 2 features.
    separation : float
        Smallest distance between two centres, in units of the noise.

    Examples
    --------
    >>> ratios = corollary_conditions(2500, 200, 4, 16.78)
    >>> round(ratios.separation, 2), round(ratios.features, 2)
    (3.0, 0.82)
    """
    n = check_count("n_samples", n_samples)
    p = check_count("n_features", n_features)
    k = check_count("n_clusters", n_clusters)
    delta = check_number("separation", separation, least=0)
    log = _log_size(n, p)
    return CorollaryConditions(
        product=n * p / (k**2 * log**4),
        features=p / (k * log**2),
        samples=n / k,
        separation=delta / default_separation(n, p, k, 1.0),
    )


@dataclass(frozen=True)
class ErrorTerms:
    """The terms of an error bound, up to an unknown constant.

    Examples
    --------
    >>> ErrorTerms(diagonal=0.25, noise_squared=0.5, noise=1.0).total
    1.75
    """

    #: What zeroing the diagonal of the Gram matrix costs; it does not depend on the
    #: noise, and no separation makes it small.
    diagonal: float
    noise_squared: float  #: What the noise costs in the second order.
    noise: float  #: What the noise costs in the first order.

    @property
    def total(self) -> float:
        """The sum of the terms."""
        return self.diagonal + self.noise_squared + self.noise


def error_bound(parameters: ModelParameters) -> ErrorTerms:
    """Return E_gen of the proof of Theorem 1, in the true kappa_P, sigma_K and mu_1.

    Up to a constant, ``kappa_P**2 * sqrt(mu * K / n)`` times the total bounds the
    largest row error of the singular vectors.

    Examples
    --------
    >>> from ihgmm import make_ihgmm
    >>> s = make_ihgmm(500, 200, 4, random_state=0, return_params=True)
    >>> q = model_parameters(s.labels, s.scales, s.centers, noise_bound=1.5)
    >>> round(error_bound(q).total, 2)
    0.11
    """
    q = parameters
    n, log, kappa = q.n_samples, q.log_size, q.signal_condition_number
    weakness = q.noise_bound / q.smallest_singular_value
    return ErrorTerms(
        diagonal=q.sample_incoherence * kappa**2 * q.n_clusters / n,
        noise_squared=float(weakness**2 * np.sqrt(n * q.n_features) * log),
        noise=float(weakness * kappa * np.sqrt(n * log)),
    )


def explicit_error_bound(parameters: ModelParameters) -> ErrorTerms:
    """Return the bound of the normalized rows' error, E_gen with a tilde in the proof.

    It puts the bounds of Lemmas 3 and 4 and of mu_1 into :func:`error_bound`, and
    divides by :func:`row_norm_bound`; each term is ``o(1)`` under Theorem 1.

    Examples
    --------
    >>> q = model_parameters([0, 0, 1, 1], [1.0, 1.0, 1.0, 1.0], [[9, 0], [0, 9]])
    >>> round(explicit_error_bound(q).diagonal, 6)
    0.707107
    """
    # The conditions of the theorem are that these terms be small.
    ratio = theorem_conditions(parameters)
    squared, first = 4 / ratio.separation_aspect**2, 2 / ratio.separation_floor
    return ErrorTerms(ratio.samples**-1.5, squared, first)


def kmeans_radius(size_ratio: float) -> float:
    """Return how far rows may be from their centres for k-means to be right.

    If every row of an embedding is closer than ``1 / (sqrt(2) * (3 + sqrt(1 + tau)))``
    to its cluster's point, and these points are ``sqrt(2)`` apart, the best k-means
    solution is the true clustering; tau is :func:`size_ratio`, at least 1.

    Examples
    --------
    >>> round(kmeans_radius(1.0), 4)
    0.1602
    """
    tau = check_number("size_ratio", size_ratio, least=1)
    return float(1 / (np.sqrt(2) * (3 + np.sqrt(1 + tau))))


def loeffler_threshold(n_samples: int, n_features: int, n_clusters: int) -> float:
    """Return ``max(K**10.5 * sqrt(p / n), sqrt(log n))`` (Löffler et al. 2021).

    Spectral clustering of a Gaussian mixture.

    Examples
    --------
    >>> round(loeffler_threshold(500, 200, 2), 1)
    915.9
    """
    n, p, k = _check_size(n_samples, n_features, n_clusters)
    return float(max(k**10.5 * np.sqrt(p / n), np.sqrt(np.log(n))))


def chen_threshold(n_samples: int, n_features: int, n_clusters: int) -> float:
    """Return ``sqrt((1 + sqrt(1 + K*p / (n log n))) * log n)`` (Chen and Yang 2021).

    The semidefinite relaxation of k-means for a Gaussian mixture.

    Examples
    --------
    >>> round(chen_threshold(500, 200, 4), 2)
    3.63
    """
    n, p, k = _check_size(n_samples, n_features, n_clusters)
    log = np.log(n)
    return float(np.sqrt((1 + np.sqrt(1 + k * p / (n * log))) * log))


def ndaoud_threshold(n_samples: int, n_features: int, n_clusters: int = 2) -> float:
    """Return ``sqrt((1 + sqrt(1 + 2*p / (n log n))) * log n)`` (Ndaoud 2022).

    The method is Lloyd's iterations from the leading eigenvector of the hollow Gram
    matrix, for two symmetric components. The result is NaN unless there are 2 clusters.

    Examples
    --------
    >>> round(ndaoud_threshold(500, 200), 2), ndaoud_threshold(500, 200, 3)
    (3.58, nan)
    """
    n, p, k = _check_size(n_samples, n_features, n_clusters)
    return chen_threshold(n, p, 2) if k == 2 else np.nan


def zhang_threshold(n_samples: int, n_features: int, n_clusters: int) -> float:
    """Return ``max(K * sqrt(p / n), sqrt(log n))`` (Zhang and Zhou 2024).

    Spectral clustering of a sub-Gaussian mixture.

    Examples
    --------
    >>> round(zhang_threshold(500, 200, 4), 2)
    2.53
    """
    n, p, k = _check_size(n_samples, n_features, n_clusters)
    return float(max(k * np.sqrt(p / n), np.sqrt(np.log(n))))


def ihsc_threshold(n_samples: int, n_features: int, n_clusters: int) -> float:
    """Return ``sqrt(K * log d) * max(1, (p / n)**(1/4))``, ``d = max(n, p)``.

    The paper's own, Corollary 1: IhSC for the individual-heterogeneous mixture.

    Examples
    --------
    >>> [round(ihsc_threshold(500, p, 4), 1) for p in (200, 5_000, 50_000)]
    [5.0, 10.4, 20.8]
    """
    return default_separation(*_check_size(n_samples, n_features, n_clusters), 1.0)


def thresholds(n_samples: int, n_features: int, n_clusters: int) -> dict[str, float]:
    """Return all five thresholds of the comparison table, as separations by name.

    They are for balanced clusters and noise of level 1, and hold up to constants, which
    differ between the works (section 4.1).

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
        n, at least 2, p and K; the same for each function that gives one of them.

    Examples
    --------
    >>> for name, value in thresholds(500, 5000, 2).items():
    ...     print(f"{name}: {value:.2f}")
    Löffler et al. 2021: 4579.47
    Chen and Yang 2021: 4.36
    Ndaoud 2022: 4.36
    Zhang and Zhou 2024: 6.32
    IhSC: 7.34
    """
    size = n_samples, n_features, n_clusters
    return {
        "Löffler et al. 2021": loeffler_threshold(*size),
        "Chen and Yang 2021": chen_threshold(*size),
        "Ndaoud 2022": ndaoud_threshold(*size),
        "Zhang and Zhou 2024": zhang_threshold(*size),
        "IhSC": ihsc_threshold(*size),
    }


def cluster_limits(n_samples: int, n_features: int) -> dict[str, float]:
    """Return the orders that K must stay below, by the names of :func:`thresholds`.

    They are those of the comparison table, for n of at least 3.

    Examples
    --------
    >>> limits = cluster_limits(100_000, 1000)
    >>> round(limits["Zhang and Zhou 2024"], 1), round(limits["IhSC"], 1)
    (316.2, 7.5)
    """
    n = check_count("n_samples", n_samples, least=3)
    p = check_count("n_features", n_features)
    log = np.log(n)
    features = min(p, np.sqrt(n * p)) / np.log(max(n, p)) ** 2
    return {
        "Löffler et al. 2021": float(n),
        "Chen and Yang 2021": float(log / np.log(log)),
        "Ndaoud 2022": 2.0,
        "Zhang and Zhou 2024": float(np.sqrt(n)),
        "IhSC": float(min(n, features)),
    }


def _check_size(n: Any, p: Any, k: Any) -> tuple[int, int, int]:
    n = check_count("n_samples", n, least=2)
    return n, check_count("n_features", p), check_count("n_clusters", k)


def oracle_errors(
    labels: Any,
    scales: Any,
    centers: Any,
    noise_levels: Any = 1.0,
    *,
    n_samples: int | None = None,
) -> float:
    """Return a bound on the mean number of rows that known centres misplace.

    Let one who knows the centres place a row of Gaussian noise without knowing its
    scale. The most likely cluster is that of the largest cosine, and centre k beats the
    row's own with probability ``Phi(-omega_i * |theta_z| * |u_z - u_k| / (2 *
    sigma_i))``, where u are the centres brought to unit norm. The bound is the sum over
    rows and other centres, ``(K - 1) * sum(Phi(-omega_i * Delta / (2 * sigma_i)))`` for
    centres of one norm and one distance. A row that is beaten by two centres counts
    twice. All labels are right with a probability of about ``exp(-errors)``, and more
    than that where few, weak rows make most of the errors.

    For centres of one norm to know the scales is of no further use, and no method that
    treats the clusters alike has fewer errors.

    Parameters
    ----------
    labels, scales, centers
        The model; no centre may be zero.
    noise_levels : float or array-like of shape (n_samples,)
        Standard deviation of the noise, sigma_i, of all rows or of each.
    n_samples : int, optional
        Number of rows to count errors of, where the given ones stand for all that
        might be drawn. Default: the given ones.

    Examples
    --------
    >>> model = [0, 0, 1, 1], [1.0, 2.0, 1.0, 2.0], [[3.0, 0.0], [0.0, 3.0]]
    >>> round(oracle_errors(*model), 4)
    0.0339
    """
    distances, weight = _distances(labels, scales, centers, noise_levels, n_samples)
    return float(weight * ndtr(-distances).sum())


def exact_recovery_limit(
    labels: Any,
    scales: Any,
    centers: Any,
    noise_levels: Any = 1.0,
    *,
    n_samples: int | None = None,
) -> float:
    """Return the separation at which known centres give all labels at even odds.

    The centres are multiplied by one number, such that :func:`oracle_errors` is
    ``log 2``. The sum counts some rows twice, so the odds are a little better than
    even: in the designs of the phase study they are even at a separation that is up to
    13 per cent smaller. With Gaussian noise and centres of one norm no method has
    better odds than known centres.

    Parameters
    ----------
    labels, scales, centers, noise_levels, n_samples
        As for :func:`oracle_errors`. Only the shape of the centres counts.

    Returns
    -------
    float
        The smallest distance between two centres, Delta; ``inf`` where two centres have
        the same direction, 0 where nothing can go wrong.

    Examples
    --------
    In units of the paper's condition, for a sample of its first experiment:

    >>> from ihgmm import make_ihgmm
    >>> s = make_ihgmm(500, 200, 4, random_state=0, return_params=True)
    >>> limit = exact_recovery_limit(s.labels, s.scales, s.centers, s.noise_levels)
    >>> round(limit / ihsc_threshold(500, 200, 4), 2)
    0.78
    """
    distances, weight = _distances(labels, scales, centers, noise_levels, n_samples)
    even = np.log(2) / weight
    if distances.size / 2 <= even:
        return 0.0
    if distances.min() == 0:
        return np.inf
    # All distances as small as the smallest: then the errors are at most log 2.
    largest = -ndtri(even / distances.size) / distances.min()
    unit = largest * distances
    factor = brentq(lambda t: ndtr(-t * unit).sum() - even, 0.0, 1.0)
    return float(factor * largest * smallest_distance(check_model(centers=centers)[0]))


def _distances(
    labels: Any, scales: Any, centers: Any, noise_levels: Any, n_samples: int | None
) -> tuple[np.ndarray, float]:
    """Return how far each row is from each border, in noise levels, and a row's weight.

    Rows without noise are left out.
    """
    code, omega, theta = check_model(labels=labels, scales=scales, centers=centers)
    sigma = np.asarray(noise_levels, dtype=np.float64)
    if sigma.shape not in ((), code.shape):
        raise ValueError(
            f"noise_levels has shape {sigma.shape}; give one number, or "
            f"{len(code)} of them."
        )
    if not (np.isfinite(sigma) & (sigma >= 0)).all():
        raise ValueError(
            f"noise_levels has smallest value {sigma.min():g} and largest "
            f"{sigma.max():g}; give finite numbers that are not negative."
        )
    n = len(code) if n_samples is None else check_count("n_samples", n_samples)
    norms = np.linalg.norm(theta, axis=1)
    if not norms.all():
        raise ValueError(
            f"Row {norms.argmin()} of centers is zero; give centres with a direction."
        )
    unit = theta / norms[:, None]
    gaps = cdist(unit, unit)
    gaps[gaps < 10 * np.finfo(np.float64).eps] = 0.0  # parallel, but for rounding
    others = ~np.eye(len(theta), dtype=bool)
    levels = np.broadcast_to(sigma, code.shape)
    noisy = levels > 0
    sizes = (omega * norms[code])[noisy] / (2 * levels[noisy])
    borders = gaps[others].reshape(len(theta), -1)[code[noisy]]
    return sizes[:, None] * borders, n / len(code)
