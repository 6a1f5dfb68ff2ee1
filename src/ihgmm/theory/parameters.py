"""All numbers that the conditions and error bounds of the paper depend on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ihgmm._checks.parameters import check_number
from ihgmm.theory.quantities import balance, condition_number, separation, size_ratio
from ihgmm.theory.signals import (
    check_model,
    incoherence,
    signal_condition_number,
    signal_singular_values,
)

__all__ = ["ModelParameters", "check_size", "model_parameters"]


@dataclass(frozen=True)
class ModelParameters:
    """All numbers that the theorem depends on.

    Use :func:`dataclasses.replace` to see what a change of one of them does.

    Attributes
    ----------
    n_samples, n_features, n_clusters : int
        n, p and K.
    largest_cluster : int
        n_max, the size of the largest cluster.
    separation, balance, size_ratio : float
        Delta, beta and tau.
    smallest_scale, largest_scale : float
        omega_min and omega_max.
    noise_bound : float
        eta.
    condition_number, signal_condition_number : float
        kappa and kappa_P.
    smallest_singular_value : float
        sigma_K of the signal.
    incoherence, sample_incoherence : float
        mu and mu_1.
    """

    n_samples: int
    n_features: int
    n_clusters: int
    largest_cluster: int
    separation: float
    balance: float
    size_ratio: float
    smallest_scale: float
    largest_scale: float
    noise_bound: float
    condition_number: float
    signal_condition_number: float
    smallest_singular_value: float
    incoherence: float
    sample_incoherence: float

    @property
    def scale_ratio(self) -> float:
        """The largest scale over the smallest, R."""
        return self.largest_scale / self.smallest_scale

    @property
    def log_size(self) -> float:
        """The logarithm of d, the larger of n and p."""
        return float(np.log(max(self.n_samples, self.n_features)))


def model_parameters(
    labels: Any, scales: Any, centers: Any, noise_bound: float = 1.0
) -> ModelParameters:
    """Compute all numbers that the theorem depends on.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Whole numbers, the row of ``centers`` that each sample belongs to.
    scales : array-like of shape (n_samples,)
        Positive scales.
    centers : array-like of shape (n_clusters, n_features)
        The centres; they must be linearly independent.
    noise_bound : float
        eta, the bound of the sub-Gaussian norm of the noise. The largest noise level
        will do, see :func:`sub_gaussian_norm`.

    Returns
    -------
    ModelParameters

    Examples
    --------
    >>> from ihgmm import make_ihgmm
    >>> sample = make_ihgmm(100, 50, 2, random_state=0, return_params=True)
    >>> found = model_parameters(sample.labels, sample.scales, sample.centers, 1.5)
    >>> found.n_clusters, found.balance, round(found.condition_number, 6)
    (2, 1.0, 1.0)
    """
    code, omega, theta = check_model(labels, scales, centers)
    eta = check_number("noise_bound", noise_bound, above=0)
    check_size(len(code), theta.shape[1])
    spread = incoherence(code, omega, theta)
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
        signal_condition_number=signal_condition_number(code, omega, theta),
        smallest_singular_value=float(signal_singular_values(code, omega, theta)[-1]),
        incoherence=spread.largest,
        sample_incoherence=spread.samples,
    )


def check_size(n: int, p: int) -> None:
    """Raise when the logarithm of max(n, p), which conditions divide by, is 0."""
    if max(n, p) < 2:
        raise ValueError(
            "n_samples=1 and n_features=1 leave log(max(n, p)) = 0 in the conditions; "
            "give at least 2 of one."
        )
