"""The methods that are compared: each takes data, K and a seed, and returns labels.

"before" is the IhSC of another version, whose folder ``src`` the variable IHGMM_BEFORE
names: ``IHGMM_BEFORE=/path/to/old/src python benchmarks/real.py``.

Peers come twice more, so that their rows are prepared as ours: with "-roots" they get
roots wherever there are any, with "-prepared" where the fit of IhSC took them.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from operator import attrgetter
from typing import Any

import numpy as np
import rival
import scipy.sparse as sp
from measure import timed
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import normalize

import ihgmm

Method = Callable[[Any, int, int], np.ndarray]


SERVER = """
import pickle, sys, time, warnings
from ihgmm import IhSC
warnings.simplefilter("ignore")
given, answers = sys.stdin.buffer, sys.stdout.buffer
sys.stdout = sys.stderr
while given.peek(1):
    X, k, options = pickle.load(given)
    start = time.perf_counter()
    try:
        labels = IhSC(k, **options).fit(X).labels_
    except ValueError as error:
        labels = str(error)
    pickle.dump((time.perf_counter() - start, labels), answers)
    answers.flush()
"""


def with_before(names: list[str]) -> list[str]:
    """Return names with "before" in second place, if there is such a version."""
    return [*names[:1], *(["before"] * ("IHGMM_BEFORE" in os.environ)), *names[1:]]


def before_environment() -> dict[str, str]:
    """Return the variables of a process that imports the other version."""
    return os.environ | {"PYTHONPATH": os.environ["IHGMM_BEFORE"]}


@cache
def server() -> subprocess.Popen[bytes]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = [sys.executable, "-c", SERVER]
    return subprocess.Popen(command, env=before_environment(), **pipes)


def timed_before(X: Any, k: int, **options: Any) -> tuple[float, np.ndarray]:
    """Return the seconds of a fit by the other version, and its labels."""
    process = server()
    assert process.stdin is not None
    assert process.stdout is not None
    pickle.dump((X, k, options), process.stdin)
    process.stdin.flush()
    seconds, labels = pickle.load(process.stdout)
    if isinstance(labels, str):
        raise ValueError(labels)

    return seconds, labels


def estimator(name: str, **options: Any) -> Method:
    """Return an estimator of the package as a method."""

    def labels(X: Any, k: int, seed: int) -> np.ndarray:
        model = attrgetter(name)(ihgmm)(k, random_state=seed, **options)
        return model.fit(X).labels_

    return labels


def naive(X: Any, k: int, seed: int) -> np.ndarray:
    """The algorithm as it is written: the n by n matrix, a full eigendecomposition."""
    G = X @ X.T
    G = G.toarray() if sp.issparse(G) else G
    np.fill_diagonal(G, 0)
    rows = normalize(np.linalg.eigh(G)[1][:, -k:])

    return KMeans(k, n_init=10, random_state=seed).fit(rows).labels_


def kmeans(X: Any, k: int, seed: int, starts: int = 10, unit: bool = True) -> Any:
    rows = normalize(X) if unit else X
    return KMeans(k, n_init=starts, random_state=seed).fit(rows).labels_


def faiss_spherical(
    X: np.ndarray, k: int, seed: int, starts: int = 10, rows_per_center: int = 10**9
) -> np.ndarray:
    import faiss

    # The caller normalises, since faiss does not; before squares of large values
    # overflow in single precision.
    X = X if X.dtype == np.float32 else normalize(X).astype(np.float32)
    unit = np.array(X, order="C")
    faiss.normalize_L2(unit)
    model = faiss.Kmeans(
        X.shape[1], k, niter=20, nredo=starts, spherical=True, seed=seed, verbose=False,
        min_points_per_centroid=1,  # else a warning where clusters are small
        max_points_per_centroid=min(rows_per_center, len(X)),
    )  # fmt: skip
    model.train(unit)

    return model.index.search(unit, 1)[1][:, 0]


def spectral_cosine(X: Any, k: int, seed: int) -> np.ndarray:
    model = SpectralClustering(k, affinity="precomputed", random_state=seed)
    unit = normalize(X)
    return model.fit(np.maximum(unit @ unit.T, 0)).labels_


def neighbours(X: Any, k: int, seed: int) -> np.ndarray:
    model = SpectralClustering(k, affinity="nearest_neighbors", random_state=seed)
    return model.fit(normalize(X)).labels_


def mixture(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    width = min(2 * k + 2, X.shape[0] - 1, X.shape[1])
    scores = PCA(width, random_state=seed).fit_transform(normalize(X))
    # To unit size: the small constant that keeps covariances regular is absolute.
    scores /= scores[:, 0].std()
    model = GaussianMixture(k, covariance_type="tied", n_init=10, random_state=seed)
    return model.fit_predict(scores)


def diagonal_mixture(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    model = GaussianMixture(k, covariance_type="diag", n_init=3, random_state=seed)
    return model.fit_predict(X)


def roots(X: np.ndarray) -> np.ndarray:
    """Return roots with weights of columns, as the fit of IhSC would take them.

    Where an entry is negative there are none, and rows stay as they are.
    """
    return X if X.min() < 0 else np.sqrt(X) * rival.root_weights(X)


def on_roots(method: Method) -> Method:
    """Return a method that is given roots of the rows, wherever there are any."""

    def labels(X: np.ndarray, k: int, seed: int) -> np.ndarray:
        return method(roots(X), k, seed)

    return labels


def prepared(method: Method) -> Method:
    """Return a method that is given roots where the fit of IhSC chooses them."""

    def labels(X: np.ndarray, k: int, seed: int) -> np.ndarray:
        choice = ihgmm.IhSC(k, random_state=seed).fit(X).columns_
        return method(roots(X) if choice.roots else X, k, seed)

    return labels


PEERS: dict[str, Method] = {
    "k-means": kmeans,
    "neighbours": neighbours,
    "mixture": mixture,
}
METHODS: dict[str, Method] = {
    "IhSC": estimator("IhSC"),
    "before": lambda X, k, seed: timed_before(X, k, random_state=seed)[1],
    "rival": lambda X, k, seed: rival.fit(X, k)(X),
    "rival-prepared": lambda X, k, seed: rival.fit_prepared(X, k)(X),
    "paper": estimator("IhSC.paper"),
    "paper-magnitude": estimator("IhSC.paper", order="magnitude"),
    "cells": estimator("IhSC", outliers="cells"),
    "given": estimator("IhSC", columns="given"),
    "counts": estimator("IhSC", columns="counts"),
    "noise": estimator("IhSC", columns="noise"),
    "IhGMM": estimator("IhGMM"),
    "IhGMM-auto": estimator("IhGMM", noise="auto"),
    "PSC": estimator("IhSC", recipe="psc"),
    "SphericalKMeans": estimator("SphericalKMeans"),
    "naive": naive,
    **PEERS,
    **{f"{name}-roots": on_roots(method) for name, method in PEERS.items()},
    **{f"{name}-prepared": prepared(method) for name, method in PEERS.items()},
    "k-means-1": partial(kmeans, starts=1),
    "k-means-raw": partial(kmeans, starts=1, unit=False),
    "faiss": faiss_spherical,
    "faiss-1": partial(faiss_spherical, starts=1),
    "faiss-sample": partial(faiss_spherical, starts=1, rows_per_center=256),
    "spectral": spectral_cosine,
    "mixture-diagonal": diagonal_mixture,
}
LEGEND = """\
"IhSC" has its defaults, "before" is that of the version before. "rival" is its mixture
in a short script (`rival.py`), "rival-prepared" has neighbours and roots beside it.
"paper" has the paper's settings, "paper-magnitude" with the largest eigenvalues of
either sign. "cells" is IhSC with `outliers="cells"`, "given", "counts" and "noise" have
these `columns`, "IhGMM-auto" is IhGMM with `noise="auto"`. "PSC" is IhSC with
`recipe="psc"`. "naive" forms the n by n matrix. "k-means" runs on unit rows from ten
starts ("k-means-1": from one, "k-means-raw": from one, on rows as they are). "faiss" is
its spherical k-means from ten starts ("faiss-1": from one, "faiss-sample": from one, on
256 rows a centre). "spectral" and "neighbours" are scikit-learn's SpectralClustering by
cosines and by ten nearest neighbours of unit rows. "mixture" is a Gaussian mixture with
one covariance, from ten starts, on 2K + 2 principal directions of unit rows;
"mixture-diagonal" has diagonal covariances, on rows as they are. "-roots" behind a peer
gives it the roots of rows, with weights of columns, wherever no entry is negative;
"-prepared" does so where the fit of IhSC chose them, so that it has what IhSC had.
"""
DENSE_ONLY = {"rival", "rival-prepared", "faiss", "faiss-1", "faiss-sample", "mixture"}
DENSE_ONLY |= {f"{name}-{rows}" for name in PEERS for rows in ("roots", "prepared")}


def timed_labels(name: str, X: Any, k: int, seed: int) -> tuple[float, np.ndarray]:
    """Return the seconds that a method takes, and labels."""
    if name == "before":
        return timed_before(X, k, random_state=seed)
    return timed(partial(METHODS[name], X, k, seed))
