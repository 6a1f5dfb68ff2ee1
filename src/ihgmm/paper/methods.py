"""The methods that the experiments compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from ihgmm.estimators import PSC, IhGMM, IhSC, SphericalKMeans
from ihgmm.paper.oracles import center_oracle, label_oracle
from ihgmm.statistics.model import IhGMMSample

Clusterer = Callable[[np.ndarray, int, int], np.ndarray]
Method = Callable[[IhGMMSample, int], np.ndarray]


def _labels(estimator: Any, **options: Any) -> Clusterer:
    """Return a function of data, number of clusters and seed that gives labels."""
    return lambda X, k, seed: np.asarray(
        estimator(k, random_state=seed, **options).fit_predict(X)
    )


def _psc_once(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Run PSC with a single, random start of k-means, as k-means itself is run."""
    rows = PSC(k, random_state=seed).fit(X).embedding_
    return _labels(KMeans, n_init=1)(rows, k, seed)


def _blind(method: Clusterer) -> Method:
    """Show a method nothing of the sample but the data and the number of clusters."""
    return lambda sample, seed: method(sample.X, len(sample.centers), seed)


METHODS: dict[str, Method] = {
    "IhSC": _blind(_labels(IhSC.paper)),
    "IhSC, magnitude": _blind(_labels(IhSC.paper, order="magnitude")),
    "IhSC, cosine": _blind(_labels(IhSC.paper, gram="cosine")),
    "IhSC, refined": _blind(_labels(IhSC.paper, refine=True)),
    "IhGMM": _blind(_labels(IhGMM)),
    "PSC": _blind(_psc_once),
    "PSC, restarts": _blind(_labels(PSC)),
    "k-means": _blind(_labels(KMeans, n_init=1)),
    "spherical k-means": _blind(_labels(SphericalKMeans, n_init=1)),
    "spherical, restarts": _blind(_labels(SphericalKMeans, n_init=10)),
    "label oracle": lambda sample, seed: label_oracle(sample),
    "centre oracle": lambda sample, seed: center_oracle(sample),
}
"""What is run on simulated data: a sample and a seed to labels."""

TABLE_METHODS: dict[str, Clusterer] = {
    "IhSC": _labels(IhSC.paper),
    "IhSC, magnitude": _labels(IhSC.paper, order="magnitude"),
    "IhSC, default": _labels(IhSC),
    "PSC": _labels(PSC),
    "k-means": _labels(KMeans, n_init=10),
    "spherical k-means": _labels(SphericalKMeans, n_init=10),
}
"""What is run on real data, with restarts."""
