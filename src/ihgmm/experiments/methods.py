"""The methods that the experiments compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from ihgmm.cluster import PSC, IhSC, SphericalKMeans
from ihgmm.experiments.oracles import center_oracle, label_oracle
from ihgmm.mixture import IhGMM
from ihgmm.model import IhGMMSample

__all__ = ["METHODS", "TABLE_METHODS"]

Clusterer = Callable[[np.ndarray, int, int], np.ndarray]
Method = Callable[[IhGMMSample, int], np.ndarray]


def _ihsc(**options: Any) -> Clusterer:
    return lambda X, k, seed: IhSC(k, random_state=seed, **options).fit_predict(X)


def _ihgmm(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    return np.asarray(IhGMM(k, random_state=seed).fit_predict(X))


def _kmeans(n_init: int) -> Clusterer:
    return lambda X, k, seed: KMeans(k, n_init=n_init, random_state=seed).fit_predict(X)


def _spherical(n_init: int) -> Clusterer:
    return lambda X, k, seed: SphericalKMeans(
        k, n_init=n_init, random_state=seed
    ).fit_predict(X)


def _psc(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    return PSC(k, random_state=seed).fit_predict(X)


def _psc_once(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Run PSC with a single, random start of k-means, as k-means itself is run."""
    rows = PSC(k, n_init=1, random_state=seed).fit(X).embedding_
    return np.asarray(KMeans(k, n_init=1, random_state=seed).fit_predict(rows))


def _blind(method: Clusterer) -> Method:
    """Show a method nothing of the sample but the data and the number of clusters."""
    return lambda sample, seed: method(sample.X, len(sample.centers), seed)


METHODS: dict[str, Method] = {
    "IhSC": _blind(_ihsc()),
    "IhSC, magnitude": _blind(_ihsc(order="magnitude")),
    "IhSC, cosine": _blind(_ihsc(gram="cosine")),
    "IhSC, refined": _blind(_ihsc(refine=True)),
    "IhGMM": _blind(_ihgmm),
    "PSC": _blind(_psc_once),
    "PSC, restarts": _blind(_psc),
    "k-means": _blind(_kmeans(1)),
    "spherical k-means": _blind(_spherical(1)),
    "spherical, restarts": _blind(_spherical(10)),
    "label oracle": lambda sample, seed: label_oracle(sample),
    "centre oracle": lambda sample, seed: center_oracle(sample),
}
"""What is run on simulated data: a sample and a seed to labels."""

TABLE_METHODS: dict[str, Clusterer] = {
    "IhSC": _ihsc(),
    "PSC": _psc,
    "k-means": _kmeans(10),
    "spherical k-means": _spherical(10),
}
"""What is run on real data, with restarts."""
