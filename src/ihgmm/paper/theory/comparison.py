"""The paper's comparison of separations that allow exact recovery (section 4.1).

The thresholds are those of the paper's comparison table, for balanced clusters and
noise of level 1. They hold up to constants, which differ between the works.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ihgmm._parameters import check_count
from ihgmm.statistics.model import default_separation


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
