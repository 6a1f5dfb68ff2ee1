"""The methods that are compared: each takes data and K, and returns labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.preprocessing import normalize

from ihgmm import IhSC, SphericalKMeans

SEED = 1


def ihsc(X: Any, k: int) -> np.ndarray:
    return IhSC(k, random_state=SEED).fit(X).labels_


def spherical(X: Any, k: int) -> np.ndarray:
    return SphericalKMeans(k, n_init=1, random_state=SEED).fit(X).labels_


def naive(X: Any, k: int) -> np.ndarray:
    """The algorithm as it is written: the n by n matrix, a full eigendecomposition."""
    G = X @ X.T
    G = G.toarray() if sp.issparse(G) else G
    np.fill_diagonal(G, 0)
    _, vectors = np.linalg.eigh(G)
    rows = vectors[:, -k:]
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return KMeans(k, n_init=10, random_state=SEED).fit(rows).labels_


def kmeans(X: Any, k: int) -> np.ndarray:
    return KMeans(k, n_init=1, random_state=SEED).fit(X).labels_


def kmeans_unit(X: Any, k: int) -> np.ndarray:
    return KMeans(k, n_init=1, random_state=SEED).fit(normalize(X)).labels_


def spectral_cosine(X: Any, k: int) -> np.ndarray:
    model = SpectralClustering(k, affinity="precomputed", random_state=SEED)
    unit = normalize(X)
    return model.fit(np.maximum(unit @ unit.T, 0)).labels_


def faiss_spherical(
    X: np.ndarray, k: int, rows_per_center: int, *, seed: int = SEED, starts: int = 1
) -> np.ndarray:
    import faiss

    unit = X.copy()  # the caller normalises: faiss does not
    faiss.normalize_L2(unit)
    model = faiss.Kmeans(
        X.shape[1], k, niter=20, nredo=starts, spherical=True, seed=seed, verbose=False,
        min_points_per_centroid=1,  # else a warning where clusters are small
        max_points_per_centroid=rows_per_center,
    )  # fmt: skip
    model.train(unit)
    return model.index.search(unit, 1)[1][:, 0]


def faiss_all(X: np.ndarray, k: int) -> np.ndarray:
    return faiss_spherical(X, k, len(X))


def faiss_default(X: np.ndarray, k: int) -> np.ndarray:
    return faiss_spherical(X, k, 256)


@dataclass(frozen=True)
class Method:
    """A method, and the data it can take."""

    name: str
    run: Callable[[Any, int], np.ndarray]
    largest: int = 10**9
    sparse: bool = True


METHODS = [
    Method("IhSC", ihsc),
    Method("SphericalKMeans", spherical),
    Method("IhSC, naive n x n", naive, largest=3_000),
    Method("KMeans", kmeans),
    Method("KMeans on unit rows", kmeans_unit),
    Method("SpectralClustering, cosine", spectral_cosine, largest=3_000),
    Method("faiss spherical, all rows", faiss_all, sparse=False),
    Method("faiss spherical, 256 rows a centre", faiss_default, sparse=False),
]
