"""The error bounds in the proof of Theorem 1, and what k-means can bear."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm._checks.parameters import check_number
from ihgmm.theory.parameters import ModelParameters

__all__ = ["ErrorTerms", "error_bound", "explicit_error_bound", "kmeans_radius"]


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

    Parameters
    ----------
    parameters : ModelParameters
        From :func:`model_parameters`.

    Returns
    -------
    ErrorTerms

    Examples
    --------
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.theory import model_parameters
    >>> sample = make_ihgmm(100, 50, 2, random_state=0, return_params=True)
    >>> found = model_parameters(sample.labels, sample.scales, sample.centers, 1.5)
    >>> round(error_bound(found).diagonal, 3)
    0.066
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

    Parameters
    ----------
    parameters : ModelParameters
        From :func:`model_parameters`.

    Returns
    -------
    ErrorTerms

    Examples
    --------
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.theory import model_parameters
    >>> sample = make_ihgmm(100, 50, 2, scale_ratio=1.0, random_state=0,
    ...                     return_params=True)
    >>> found = model_parameters(sample.labels, sample.scales, sample.centers, 1.5)
    >>> round(explicit_error_bound(found).diagonal, 3)
    0.05
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

    Returns
    -------
    float

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
