"""The paper's comparison of separations that allow exact recovery (section 4.1).

The thresholds are those of the paper's comparison table, for balanced clusters and
noise of level 1. They hold up to constants, which differ between the works.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ihgmm._checks import check_count
from ihgmm.statistics.model import default_separation


def loeffler_threshold(n_samples: int, n_features: int, n_clusters: int) -> float:
    """Return ``max(K**10.5 * sqrt(p / n), sqrt(log n))`` (Löffler et al. 2021).

    Spectral clustering of a Gaussian mixture.
    """
    n, p, k = _check_size(n_samples, n_features, n_clusters)
    return float(max(k**10.5 * np.sqrt(p / n), np.sqrt(np.log(n))))


def chen_threshold(n_samples: int, n_features: int, n_clusters: int) -> float:
    """Return ``sqrt((1 + sqrt(1 + K*p / (n log n))) * log n)`` (Chen and Yang 2021).

    The semidefinite relaxation of k-means for a Gaussian mixture.

    Notes
    -----
    The table asks for a separation much larger than this. The result is sharper: the
    cutoff lies at twice this number, and any factor above 1 on top of that is enough.
    The text gives ``psi = (K * p * log n / n)**(1/4)`` as the factor of
    ``sqrt(log n)`` for many features; that is the whole threshold, and the factor is
    ``(K * p / (n * log n))**(1/4)``.
    """
    n, p, k = _check_size(n_samples, n_features, n_clusters)
    log = np.log(n)
    return float(np.sqrt((1 + np.sqrt(1 + k * p / (n * log))) * log))


def ndaoud_threshold(n_samples: int, n_features: int, n_clusters: int = 2) -> float:
    """Return ``sqrt((1 + sqrt(1 + 2*p / (n log n))) * log n)`` (Ndaoud 2022).

    Lloyd's iterations from the leading eigenvector of the hollowed Gram matrix, for two
    symmetric components; NaN unless there are 2 clusters.

    Notes
    -----
    The table asks for a separation much larger than this, "iff". The condition that is
    necessary and sufficient has a constant: half the distance between the two centres
    against this number. As in :func:`chen_threshold`, the text's psi is the whole
    threshold and not a factor of ``sqrt(log n)``. The two symmetric centres are
    linearly dependent and outside the paper's Theorem 1.
    """
    n, p, k = _check_size(n_samples, n_features, n_clusters)
    return chen_threshold(n, p, 2) if k == 2 else np.nan


def zhang_threshold(n_samples: int, n_features: int, n_clusters: int) -> float:
    """Return ``max(K * sqrt(p / n), sqrt(log n))`` (Zhang and Zhou 2024).

    Spectral clustering of a sub-Gaussian mixture.
    """
    n, p, k = _check_size(n_samples, n_features, n_clusters)
    return float(max(k * np.sqrt(p / n), np.sqrt(np.log(n))))


def ihsc_threshold(n_samples: int, n_features: int, n_clusters: int) -> float:
    """Return ``sqrt(K * log d) * max(1, (p / n)**(1/4))``, ``d = max(n, p)``.

    The paper's own, Corollary 1: IhSC for the individual-heterogeneous mixture.


    Notes
    -----
    The text calls its dependence on K far milder than that of other spectral methods.
    That is so for many features; where ``K * p < n * log d`` the table's
    :func:`zhang_threshold` is the smaller, by up to a factor ``sqrt(K)``.
    """
    return default_separation(*_check_size(n_samples, n_features, n_clusters), 1.0)


def thresholds(n_samples: int, n_features: int, n_clusters: int) -> dict[str, float]:
    """Return all five thresholds of the comparison table by name.

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
        n, at least 2, p and K; the same for each function that gives one of them.

    Returns
    -------
    dict of str to float
        The separations of :func:`loeffler_threshold`, :func:`chen_threshold`,
        :func:`ndaoud_threshold` (NaN unless there are 2 clusters),
        :func:`zhang_threshold` and :func:`ihsc_threshold`.

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
    """Return the orders that K must stay below in the comparison table.

    Parameters
    ----------
    n_samples, n_features : int
        n, at least 3, and p.

    Returns
    -------
    dict of str to float
        With the names of :func:`thresholds`.

    Notes
    -----
    For IhSC this is what the sample sizes of Corollary 1 ask for, ``min(n, min(p,
    sqrt(n * p)) / log(d)**2)``. The table has n for many features, which takes p above
    ``n * log(d)**4``, and ``n / log(n)**2`` otherwise, which is wrong for fewer
    features than samples: p takes the place of n there.

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


def _check_size(
    n_samples: Any, n_features: Any, n_clusters: Any
) -> tuple[int, int, int]:
    return (
        check_count("n_samples", n_samples, least=2),
        check_count("n_features", n_features),
        check_count("n_clusters", n_clusters),
    )
