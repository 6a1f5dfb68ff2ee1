"""The constants of the paper's assumptions and the bounds of its lemmas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ihgmm._checks.rows import check_labels
from ihgmm.theory.quantities import (
    balance,
    check_centers,
    check_scales,
    condition_number,
    scale_ratio,
    separation,
    size_ratio,
)
from ihgmm.theory.signals import Incoherence, check_model

__all__ = [
    "EntryConstants",
    "entry_constants",
    "incoherence_bounds",
    "row_norm_bound",
    "signal_condition_number_bound",
    "smallest_singular_value_bound",
    "subspace_constant",
]


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

    Parameters
    ----------
    centers : array-like of shape (n_clusters, n_features)
        The centres, one in each row.

    Returns
    -------
    EntryConstants

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
    >>> found = entry_constants([[1.0, -1.0], [0.0, 3.0]])
    >>> found.largest_entry, found.smallest_norm
    (3.0, 1.0)
    """
    theta = check_centers(centers)
    norms = np.linalg.norm(theta, axis=1)
    return EntryConstants(
        float(np.abs(theta).max()), float(norms.min() / np.sqrt(theta.shape[1]))
    )


def subspace_constant(centers: Any) -> float:
    """Return the smallest constant C_inc of Assumption 2.

    It is ``p / K`` times the largest squared norm of a unit vector's projection on the
    span of the centres.

    Parameters
    ----------
    centers : array-like of shape (n_clusters, n_features)
        The centres; they must be linearly independent.

    Returns
    -------
    float
        Between 1 and ``p / K``.

    Examples
    --------
    >>> round(subspace_constant([[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0]]), 12)
    1.0
    >>> subspace_constant([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    2.0
    """
    theta = check_centers(centers)
    k, p = theta.shape
    if not np.isfinite(condition_number(theta)):
        raise ValueError(
            f"centers has {k} rows but rank {np.linalg.matrix_rank(theta)}; give "
            "linearly independent centers, no more of them than features."
        )
    _, _, basis = np.linalg.svd(theta, full_matrices=False)
    return float(p / k * (basis**2).sum(axis=0).max())


def incoherence_bounds(
    labels: Any, scales: Any, centers: Any, *, sharp: bool = False
) -> Incoherence:
    """Return upper bounds of the incoherence (Lemma 2; mu_1: proof of Theorem 1).

    ``mu_0 <= R**2 * C_Theta**2 / (beta * c**2)``, ``mu_1 <= R**2 / beta`` and
    ``mu_2 <= C_inc``.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Whole numbers, the row of ``centers`` that each sample belongs to.
    scales : array-like of shape (n_samples,)
        Positive scales.
    centers : array-like of shape (n_clusters, n_features)
        The centres; they must be linearly independent.
    sharp : bool
        Leave out beta in the bound of mu_0.

    Returns
    -------
    Incoherence

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
    code, omega, theta = check_model(labels, scales, centers)
    size = balance(code)
    ratio = scale_ratio(omega) ** 2
    entries = ratio * entry_constants(theta).ratio ** 2
    return Incoherence(
        entries if sharp else entries / size, ratio / size, subspace_constant(theta)
    )


def smallest_singular_value_bound(
    labels: Any, scales: Any, centers: Any, *, sharp: bool = False
) -> float:
    """Return a lower bound of sigma_K of the signal (Lemma 3).

    ``omega_min * Delta / (2 * kappa) * sqrt(beta * n / K)``.

    Parameters
    ----------
    labels, scales, centers
        As in :func:`incoherence_bounds`; dependent centres give 0.
    sharp : bool
        Put the square root of 2 for 2.

    Returns
    -------
    float

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
    code, omega, theta = check_model(labels, scales, centers)
    smallest = np.bincount(code).min()
    kappa = condition_number(theta)
    # A single centre has no separation; its norm takes the place of Delta / sqrt(2).
    distance = separation(theta) if len(theta) > 1 else np.sqrt(2) * _norm(theta)
    factor = np.sqrt(2) if sharp else 2.0
    return float(omega.min() * distance / (factor * kappa) * np.sqrt(smallest))


def signal_condition_number_bound(labels: Any, scales: Any, centers: Any) -> float:
    """Return an upper bound of kappa_P, ``kappa * R * sqrt(tau)`` (Lemma 4).

    Parameters
    ----------
    labels, scales, centers
        As in :func:`incoherence_bounds`; dependent centres give ``inf``.

    Returns
    -------
    float

    Examples
    --------
    >>> model = [0, 0, 1], [3.0, 4.0, 1.0], [[1.0, 0.0], [0.0, 2.0]]
    >>> round(signal_condition_number_bound(*model), 3)
    11.314
    """
    code, omega, theta = check_model(labels, scales, centers)
    return float(
        condition_number(theta) * scale_ratio(omega) * np.sqrt(size_ratio(code))
    )


def row_norm_bound(labels: Any, scales: Any) -> float:
    """Return a lower bound of the row norms of U (proof of Theorem 1).

    ``omega_min / omega_max / sqrt(n_max)``.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Labels of any kind.
    scales : array-like of shape (n_samples,)
        Positive scales.

    Returns
    -------
    float

    Examples
    --------
    >>> row_norm_bound([0, 0, 0, 0, 1], [1.0, 2.0, 1.0, 1.0, 1.0])
    0.25
    """
    members = check_labels("labels", labels)
    omega = check_scales(scales, len(members))
    largest = np.unique(members, return_counts=True)[1].max()
    return float(omega.min() / omega.max() / np.sqrt(largest))


def _norm(matrix: np.ndarray) -> float:
    return float(np.linalg.norm(matrix, 2))
