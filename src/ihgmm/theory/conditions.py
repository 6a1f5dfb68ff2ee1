"""The conditions for exact recovery, in the theorem, its proof and the corollary.

A condition "left side much larger than right side" is returned as the ratio of the two.
The constants behind "much larger" are unknown: a ratio far below 1 says that the paper
promises nothing, one above 1 that it may.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

from ihgmm._checks.parameters import check_count, check_number
from ihgmm.model import default_separation
from ihgmm.theory.parameters import ModelParameters, check_size

__all__ = [
    "CorollaryConditions",
    "PerturbationConditions",
    "TheoremConditions",
    "corollary_conditions",
    "perturbation_conditions",
    "theorem_conditions",
]


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


def theorem_conditions(parameters: ModelParameters) -> TheoremConditions:
    """Return how far the conditions of Theorem 1 are met (MainNPKCond, MainDeltaCond).

    Parameters
    ----------
    parameters : ModelParameters
        From :func:`model_parameters`.

    Returns
    -------
    TheoremConditions

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
    >>> found = model_parameters(sample.labels, sample.scales, sample.centers, 1.5)
    >>> theorem_conditions(found).smallest < 1e-8
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


def perturbation_conditions(parameters: ModelParameters) -> PerturbationConditions:
    """Return how far the conditions behind the proof of Theorem 1 are met (cai15).

    They are those of the subspace perturbation theorem of Cai, Li, Chi, Poor and Chen
    (2021) when nothing is missing, in the true kappa_P, sigma_K and mu_1.

    Parameters
    ----------
    parameters : ModelParameters
        From :func:`model_parameters`.

    Returns
    -------
    PerturbationConditions
        All at least 1/2 where those of Theorem 1 are at least 1.

    Examples
    --------
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.theory import model_parameters
    >>> sample = make_ihgmm(100, 50, 2, random_state=0, return_params=True)
    >>> found = model_parameters(sample.labels, sample.scales, sample.centers, 1.5)
    >>> round(perturbation_conditions(found).signal_floor, 1)
    13.0
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

    Returns
    -------
    CorollaryConditions

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
    >>> from ihgmm.model import default_separation
    >>> found = corollary_conditions(2500, 200, 4, default_separation(2500, 200, 4))
    >>> round(found.separation, 6), round(found.features, 2)
    (3.0, 0.82)
    """
    n = check_count("n_samples", n_samples)
    p = check_count("n_features", n_features)
    k = check_count("n_clusters", n_clusters)
    delta = check_number("separation", separation, least=0)
    check_size(n, p)
    log = float(np.log(max(n, p)))
    return CorollaryConditions(
        product=n * p / (k**2 * log**4),
        features=p / (k * log**2),
        samples=n / k,
        separation=delta / default_separation(n, p, k, 1.0),
    )
