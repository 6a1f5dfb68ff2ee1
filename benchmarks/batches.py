"""Errors on data that come in batches, with and without factors of these.

    python benchmarks/batches.py FOLDER       # sets of a folder, below
    python benchmarks/batches.py              # designs alone

A set is ``NAME.npz`` with rows ``X`` (or ``data``, ``indices``, ``indptr`` and
``shape`` of a sparse matrix), classes ``y`` and ``batch``. Each is taken as it is and
as the logarithm of rows of equal size. Beside the error stands the adjusted Rand index
of clusters and batches: 0 where batches are mixed in all clusters. ComBat (``pip
install inmoose``) and Harmony (``harmonypy``), where they are there, correct the
logarithm, or its 20 leading components, for k-means; "once" divides columns by their
means in each batch.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from measure import markdown
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from ihgmm import IhSC
from ihgmm.metrics import misclassification_rate

Data = tuple[np.ndarray, np.ndarray, np.ndarray]


def design(kind: str, seed: int = 0) -> Data:
    """Return rows of four clusters in three batches."""
    rng = np.random.default_rng(seed)
    n, p, k = 900, 200, 4
    centers = 1 + 0.35 * rng.gamma(1.5, 1, (k, p))
    y, batch = rng.integers(k, size=n), rng.integers(3, size=n)
    if "unequal" in kind:
        shares = np.array([[60, 36, 2, 2], [2, 60, 36, 2], [2, 2, 60, 36]]) / 100
        y = np.array([rng.choice(k, p=shares[b]) for b in batch])
    if "alone" in kind:
        y[(batch > 0) & (y == 3)] = 0
    effect = 0.0 if "none" in kind else 0.6
    factors = np.exp(effect * rng.standard_normal((3, p)))
    scales = np.exp(0.5 * rng.standard_normal((n, 1)))
    means = scales * centers[y] * factors[batch]
    if "counts" in kind:
        return rng.poisson(0.3 * means).astype(float), y, batch
    return np.maximum(means + scales * rng.standard_normal((n, p)), 0), y, batch


def read(path: Path) -> Data:
    z = np.load(path)
    parts = "data", "indices", "indptr"
    if "X" in z:
        X = z["X"]
    else:
        stored = tuple(z[one] for one in parts)
        X = sp.csr_array(stored, shape=tuple(z["shape"])).toarray()
    X = X[:, X.any(axis=0)].astype(float)
    return X, *(np.unique(z[one], return_inverse=True)[1] for one in ("y", "batch"))


def logarithm(X: np.ndarray) -> np.ndarray:
    sums = X.sum(axis=1, keepdims=True)
    return np.log1p(X / sums * np.median(sums))


def labellings(X: np.ndarray, batch: np.ndarray, k: int) -> Iterator[np.ndarray | None]:
    """Yield labels without batches, once, by turns, and of peers."""
    yield IhSC(k).fit(X).labels_
    units = normalize(X)
    least = 0.1 * units.mean(axis=0)
    means = np.array([units[batch == b].mean(axis=0) for b in np.unique(batch)])
    ratio = (means + least) / (units.mean(axis=0) + least + 1e-300)
    yield IhSC(k).fit(X / np.maximum(ratio, 1e-9)[batch]).labels_
    yield IhSC(k).fit(X, batch=batch).labels_
    logs = logarithm(X)
    kmeans = KMeans(k, n_init=10, random_state=0)
    try:
        from inmoose.pycombat import pycombat_norm

        yield kmeans.fit_predict(normalize(np.asarray(pycombat_norm(logs.T, batch)).T))
    except ImportError:
        yield None
    try:
        import harmonypy
        import pandas as pd

        scores = PCA(min(20, *logs.shape)).fit_transform(logs)
        about = pd.DataFrame({"batch": batch.astype(str)})
        fit = harmonypy.run_harmony(scores, about, ["batch"], verbose=False)
        Z = np.asarray(fit.Z_corr)
        yield kmeans.fit_predict(Z if len(Z) == len(X) else Z.T)
    except ImportError:
        yield None


def main(folder: str | None = None) -> None:
    warnings.simplefilter("ignore")  # real data are not what methods hope
    data: list[tuple[str, Data]] = []
    for path in sorted(Path(folder).glob("*.npz")) if folder else ():
        X, y, batch = read(path)
        data.append((path.stem, (X, y, batch)))
        data.append((f"{path.stem}, log", (logarithm(X), y, batch)))
    kinds = "mixed", "unequal", "alone", "counts", "none", "none, unequal"
    data += [(kind, design(kind)) for kind in kinds]
    head = ["", "nothing", "once", "by turns", "ComBat", "Harmony", "seconds by turns"]
    table = [["Error, and index of clusters with batches"], head]
    for name, (X, y, batch) in data:
        row, took, before = [name], 0.0, time.perf_counter()
        for i, labels in enumerate(labellings(X, batch, len(np.unique(y)))):
            took = time.perf_counter() - before if i == 2 else took
            before = time.perf_counter()
            if labels is None:
                row.append("-")
                continue
            index = adjusted_rand_score(batch, labels)
            row.append(f"{misclassification_rate(y, labels):.3f} ({index:.2f})")
        table.append([*row, f"{took:.1f}"])
    print(markdown(table))


if __name__ == "__main__":
    main(*sys.argv[1:2])
