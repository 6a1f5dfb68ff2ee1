"""The methods that the experiments compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from ihgmm.cluster import PSC, IhSC, SphericalKMeans

__all__ = ["METHODS", "PAPER_METHODS", "TABLE_METHODS"]

Method = Callable[[np.ndarray, int, int], np.ndarray]


def _ihsc(**options: Any) -> Method:
    return lambda X, k, seed: IhSC(k, random_state=seed, **options).fit_predict(X)


METHODS: dict[str, Method] = {
    "IhSC": _ihsc(),
    "IhSC, magnitude": _ihsc(order="magnitude"),
    "IhSC, cosine": _ihsc(gram="cosine"),
    "PSC": lambda X, k, seed: PSC(k, random_state=seed).fit_predict(X),
    "k-means": lambda X, k, seed: KMeans(k, n_init=1, random_state=seed).fit_predict(X),
    "spherical k-means": lambda X, k, seed: SphericalKMeans(
        k, random_state=seed
    ).fit_predict(X),
}
"""What is run on simulated data: data, number of clusters and seed to labels."""

TABLE_METHODS: dict[str, Method] = {
    "IhSC": METHODS["IhSC"],
    "PSC": METHODS["PSC"],
    "k-means": lambda X, k, seed: KMeans(k, n_init=10, random_state=seed).fit_predict(
        X
    ),
    "spherical k-means": lambda X, k, seed: SphericalKMeans(
        k, n_init=10, random_state=seed
    ).fit_predict(X),
}
"""What is run on real data, with restarts."""

PAPER_METHODS = ("IhSC", "PSC", "k-means")
"""The methods of the paper's own figures and table."""
