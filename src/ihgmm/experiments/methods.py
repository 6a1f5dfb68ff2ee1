"""The methods that the experiments compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from ihgmm.cluster import PSC, IhSC, SphericalKMeans

__all__ = ["METHODS", "TABLE_METHODS"]

Method = Callable[[np.ndarray, int, int], np.ndarray]


def _ihsc(**options: Any) -> Method:
    return lambda X, k, seed: IhSC(k, random_state=seed, **options).fit_predict(X)


def _kmeans(n_init: int) -> Method:
    return lambda X, k, seed: KMeans(k, n_init=n_init, random_state=seed).fit_predict(X)


def _spherical(n_init: int) -> Method:
    return lambda X, k, seed: SphericalKMeans(
        k, n_init=n_init, random_state=seed
    ).fit_predict(X)


def _psc(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    return PSC(k, random_state=seed).fit_predict(X)


def _psc_once(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Run PSC with a single, random start of k-means, as k-means itself is run."""
    rows = PSC(k, n_init=1, random_state=seed).fit(X).embedding_
    return np.asarray(KMeans(k, n_init=1, random_state=seed).fit_predict(rows))


METHODS: dict[str, Method] = {
    "IhSC": _ihsc(),
    "IhSC, magnitude": _ihsc(order="magnitude"),
    "IhSC, cosine": _ihsc(gram="cosine"),
    "PSC": _psc_once,
    "PSC, restarts": _psc,
    "k-means": _kmeans(1),
    "spherical k-means": _spherical(1),
}
"""What is run on simulated data: data, number of clusters and seed to labels."""

TABLE_METHODS: dict[str, Method] = {
    "IhSC": _ihsc(),
    "PSC": _psc,
    "k-means": _kmeans(10),
    "spherical k-means": _spherical(10),
}
"""What is run on real data, with restarts."""
