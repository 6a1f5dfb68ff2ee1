"""The paper's assumptions, Lemmas 2 to 4, Theorem 1 and Corollary 1.

A condition "left side much larger than right side" is returned as the ratio of the two.
The constants behind "much larger" are unknown: a ratio far below 1 says that the paper
promises nothing, one above 1 that it may.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from ihgmm._checks import check_count, check_number
from ihgmm.statistics.model import check_model, default_separation
from ihgmm.theory.definitions import (
    Incoherence,
    ModelParameters,
    balance,
    condition_number,
    independent_svd,
    log_size,
    scale_ratio,
    separation,
    size_ratio,
)


@dataclass(frozen=True)
class EntryConstants:
    """The constants of Assumption 1, as sharp as the centres allow.

    Attributes
    ----------
    largest_entry : float
        C_Theta, the largest absolute entry of the centres.
    smallest_norm : float
        c, the smallest norm of a centre over the root of the number of features.
    """

    largest_entry: float
    smallest_norm: float

    @property
    def ratio(self) -> float:
        """The largest entry over the smallest norm; all that Lemma 2 depends on."""
        return self.largest_entry / self.smallest_norm if self.smallest_norm else np.inf


def entry_constants(centers: Any) -> EntryConstants:
    """Return C_Theta and c, the constants of Assumption 1.

    Notes
    -----
    With c fixed the assumption is not mild: ``separation >= sqrt(2) * sigma_K >=
    sqrt(2) * c * sqrt(p) / kappa``, which with bounded kappa and the sample sizes of
    Corollary 1 already implies the corollary's separation condition. The centres of the
    paper's simulations have norm ``separation / sqrt(2)`` and a c that vanishes as p
    grows. Lemma 2 uses only the ratio ``C_Theta / c``; to bound that is enough, and
    restricts no separation.

    Examples
    --------
    >>> entry_constants([[1.0, -1.0], [0.0, 3.0]])
    EntryConstants(largest_entry=3.0, smallest_norm=1.0)
    """
    (theta,) = check_model(centers=centers)
    norms = np.linalg.norm(theta, axis=1)
    return EntryConstants(
        float(np.abs(theta).max()), float(norms.min() / np.sqrt(theta.shape[1]))
    )


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
    _, basis = independent_svd(theta)
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

    Notes
    -----
    The bound of mu_0 holds without beta: every row of the signal has norm at least
    ``omega_min * c * sqrt(p)``, whatever its cluster. The bound of mu_2 is an equality
    for the smallest C_inc. The text then asks that ``omega_min / omega_max`` and beta
    be O(1), which they always are; mu is bounded when their inverses are, with
    ``C_Theta / c`` and C_inc.

    Examples
    --------
    >>> model = [0, 0, 1], [3.0, 4.0, 1.0], [[1.0, 0.0], [0.0, 2.0]]
    >>> bounds = incoherence_bounds(*model)
    >>> round(bounds.entries), round(bounds.samples), round(bounds.features)
    (192, 24, 1)
    """
    code, omega, theta = check_model(labels=labels, scales=scales, centers=centers)
    beta, ratio = balance(code), scale_ratio(omega) ** 2
    entries = ratio * entry_constants(theta).ratio ** 2
    return Incoherence(
        entries if sharp else entries / beta, ratio / beta, subspace_constant(theta)
    )


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

    Notes
    -----
    The lemma holds, and with ``sqrt(2)`` in place of 2: a difference of two centres is
    the matrix of centres times a vector of norm ``sqrt(2)``. Orthogonal centres of one
    norm, equal scales and equal sizes then give equality.

    Examples
    --------
    >>> model = [0, 0, 1, 1], [1.0, 1.0, 1.0, 1.0], [[2.0, 0.0], [0.0, 2.0]]
    >>> round(smallest_singular_value_bound(*model), 3)
    2.0
    >>> round(smallest_singular_value_bound(*model, sharp=True), 3)
    2.828
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

    Attributes
    ----------
    product, features, samples : float
        The conditions on ``n * p``, p and n.
    separation_aspect, separation_floor : float
        The conditions on Delta: the first grows with ``p / n``, the second does not.
    """

    product: float
    features: float
    samples: float
    separation_aspect: float
    separation_floor: float


def theorem_conditions(parameters: ModelParameters) -> TheoremConditions:
    """Return how far the conditions of Theorem 1 are met (MainNPKCond, MainDeltaCond).

    Notes
    -----
    The proof has two slips. Its own requirement on n lacks a factor ``1 / beta``; the
    theorem's condition on n implies the requirement with that factor too. And its last
    step, that k-means is right once every row is within ``sqrt(2) / 2`` of its centre,
    is wrong: :func:`kmeans_radius` shrinks like ``1 / sqrt(tau)``, so that for a
    growing size ratio the bound on n needs another factor ``tau**(1/3)`` and those on
    Delta ``tau**(1/4)`` and ``tau**(1/2)``. The eighth power of the scale ratio in the
    first two conditions puts the paper's simulations, with a ratio of 20, far outside
    the theorem.

    Examples
    --------
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.theory import model_parameters
    >>> sample = make_ihgmm(100, 50, 2, random_state=0, return_params=True)
    >>> q = model_parameters(sample.labels, sample.scales, sample.centers, 1.5)
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

    Attributes
    ----------
    product, features : float
        The conditions on ``sqrt(n * p)`` and p.
    signal_aspect, signal_floor : float
        The conditions on ``sigma_K / eta``.
    clusters : float
        The condition on K.
    """

    product: float
    features: float
    signal_aspect: float
    signal_floor: float
    clusters: float


def perturbation_conditions(parameters: ModelParameters) -> PerturbationConditions:
    """Return how far the conditions behind the proof of Theorem 1 are met (cai15).

    They are those of the subspace perturbation theorem of Cai, Li, Chi, Poor and Chen
    (2021) when nothing is missing, in the true kappa_P, sigma_K and mu_1. All are at
    least 1/2 where those of Theorem 1 are at least 1.
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

    Attributes
    ----------
    product, features, samples : float
        The conditions on ``n * p``, p and n.
    separation : float
        The condition on Delta.
    """

    product: float
    features: float
    samples: float
    separation: float


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

    Notes
    -----
    The corollary asks that the scales be O(1); they must also be bounded away from
    zero, or both the ratio of scales and ``1 / omega_min`` in Theorem 1 may grow. The
    condition on p excludes a fixed number of features, so that the "classical
    low-dimensional regime" after the corollary is one where p grows faster than
    ``log(n)**2``. A constant factor such as the 3 of the simulations does not meet a
    condition "much larger" for certain.

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
    log = log_size(n, p)
    return CorollaryConditions(
        product=n * p / (k**2 * log**4),
        features=p / (k * log**2),
        samples=n / k,
        separation=delta / default_separation(n, p, k, 1.0),
    )


@dataclass(frozen=True)
class ErrorTerms:
    """The terms of an error bound, up to an unknown constant.

    Attributes
    ----------
    diagonal : float
        What zeroing the diagonal of the Gram matrix costs; it does not depend on the
        noise, and no separation makes it small.
    noise_squared, noise : float
        What the noise costs, in the second and the first order.
    """

    diagonal: float
    noise_squared: float
    noise: float

    @property
    def total(self) -> float:
        """The sum of the terms."""
        return self.diagonal + self.noise_squared + self.noise


def error_bound(parameters: ModelParameters) -> ErrorTerms:
    """Return E_gen of the proof of Theorem 1, in the true kappa_P, sigma_K and mu_1.

    Up to a constant, ``kappa_P**2 * sqrt(mu * K / n)`` times the total bounds the
    largest row error of the singular vectors.
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
    >>> from ihgmm.theory import model_parameters
    >>> q = model_parameters([0, 0, 1, 1], [1.0, 1.0, 1.0, 1.0], [[9, 0], [0, 9]])
    >>> round(explicit_error_bound(q).diagonal, 6)
    0.707107
    """
    q = parameters
    n, p, k, log = q.n_samples, q.n_features, q.n_clusters, q.log_size
    tau, kappa, beta, eta = q.size_ratio, q.condition_number, q.balance, q.noise_bound
    low, high, largest = q.smallest_scale, q.largest_scale, q.largest_cluster
    common = kappa**4 * np.sqrt(q.incoherence)
    diagonal = tau**2 * q.scale_ratio**7 / beta * np.sqrt(k**3 * largest / n**3)
    squared = 4 * tau * eta**2 * high**3 / (low**5 * beta * q.separation**2)
    squared *= log * np.sqrt(k**3 * p * largest) / n
    first = 2 * high**4 * eta * tau**1.5 / (low**5 * np.sqrt(beta) * q.separation)
    first *= k * np.sqrt(largest * log / n)
    return ErrorTerms(
        float(common * diagonal), float(common * squared), float(common * first)
    )


def kmeans_radius(size_ratio: float) -> float:
    """Return how far rows may be from their centres for k-means to be right.

    If every row of an embedding is closer than ``1 / (sqrt(2) * (3 + sqrt(1 + tau)))``
    to its cluster's point, and these points are ``sqrt(2)`` apart, the best k-means
    solution is the true clustering.

    Parameters
    ----------
    size_ratio : float
        Largest cluster size over the smallest, tau.

    Notes
    -----
    The proof of Theorem 1 says that ``sqrt(2) / 2`` is enough. It is enough to be
    closest to one's own point, but k-means chooses its own centres: with four rows at
    distance 0.7 on two sides of one point, and one row each at two others, it splits
    the four and merges the two. Why this radius is enough: suppose s points have no
    k-means centre within ``delta = sqrt(2) / 2 - 2 * r``. Each costs at least
    ``n_min * (delta - r)**2``, at most s clusters gain from a second centre, each at
    most ``n_max * r**2``, and the rest cost no less than in the true clustering. So s
    is zero, and then all rows go where they belong.

    Examples
    --------
    >>> round(kmeans_radius(1.0), 4)
    0.1602
    """
    tau = check_number("size_ratio", size_ratio, least=1)
    return float(1 / (np.sqrt(2) * (3 + np.sqrt(1 + tau))))
