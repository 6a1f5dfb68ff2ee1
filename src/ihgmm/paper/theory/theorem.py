"""The paper's assumptions, Lemmas 2 to 4, Theorem 1 and Corollary 1.

A condition "left side much larger than right side" is returned as the ratio of the two.
The constants behind "much larger" are unknown: a ratio far below 1 says that the paper
promises nothing, one above 1 that it may.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from ihgmm._parameters import check_number
from ihgmm.paper.theory.definitions import (
    Incoherence,
    ModelParameters,
    balance,
    condition_number,
    independent_svd,
    scale_ratio,
    separation,
    size_ratio,
)
from ihgmm.statistics.model import check_model


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
    >>> from ihgmm.paper.theory import model_parameters
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
    >>> from ihgmm.paper.theory import model_parameters
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
    >>> from ihgmm.paper.theory import model_parameters
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
    >>> from ihgmm.paper.theory import model_parameters
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
    solution is the true clustering.

    Parameters
    ----------
    size_ratio : float
        Largest cluster size over the smallest, tau.

    Examples
    --------
    >>> round(kmeans_radius(1.0), 4)
    0.1602
    """
    tau = check_number("size_ratio", size_ratio, least=1)
    return float(1 / (np.sqrt(2) * (3 + np.sqrt(1 + tau))))
