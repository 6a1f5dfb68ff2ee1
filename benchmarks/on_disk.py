"""A memory map that is read block by block: IhSC and what others do with one.

All methods but the last read through the same blocks of 32 MB, so that passes are
counted and pages that were read do not count as theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from measure import measured
from out_of_core import K
from sklearn.cluster import MiniBatchKMeans
from sklearn.preprocessing import normalize

from ihgmm import IhSC
from ihgmm.matrix import Matrix, as_matrix
from ihgmm.metrics import misclassification_rate

PASSES = 3
"""Passes of mini-batch k-means over the data before the one that assigns."""

BATCH = 1_024
"""Rows of a batch, scikit-learn's default."""

WARM = 2_000
"""Rows of a first fit that is not measured: it loads what is loaded late."""


def ihsc(path: Path, seed: int) -> tuple[np.ndarray, int]:
    rows = _open(path)
    return IhSC(K, random_state=seed).fit(rows).labels_, rows.passes


def mini_batch(path: Path, seed: int) -> tuple[np.ndarray, int]:
    rows = _open(path)
    model = MiniBatchKMeans(K, random_state=seed)

    def learn(block: Matrix) -> None:
        unit = normalize(block.array, copy=False)
        for batch in np.array_split(unit, max(1, len(unit) // BATCH)):
            model.partial_fit(batch)

    for _ in range(PASSES):
        for _ in rows.map(learn):
            pass
    found = rows.map(lambda block: model.predict(normalize(block.array, copy=False)))
    return np.concatenate(list(found)), rows.passes


def faiss_sample(path: Path, seed: int) -> tuple[np.ndarray, int]:
    import faiss

    rows = _open(path)
    n, p = rows.shape
    model = faiss.Kmeans(p, K, spherical=True, seed=seed)
    count = min(n, K * model.cp.max_points_per_centroid)
    index = np.random.default_rng(seed).choice(n, count, replace=False)
    sample = rows.take(np.sort(index)).array
    faiss.normalize_L2(sample)
    model.train(sample)
    # The largest inner product with a centre is the largest cosine: rows stay as read.
    found = rows.map(lambda block: model.index.search(block.array, 1)[1][:, 0])
    return np.concatenate(list(found)), rows.passes


def in_memory(path: Path, seed: int) -> tuple[np.ndarray, int]:
    if 2 * path.stat().st_size > available():
        raise MemoryError
    return IhSC(K, random_state=seed).fit(np.load(path)).labels_, 1


METHODS: dict[str, Callable[[Path, int], tuple[np.ndarray, int]]] = {
    "IhSC on the memory map": ihsc,
    f"MiniBatchKMeans, {PASSES} passes and predict": mini_batch,
    "faiss spherical, sample, then assignment": faiss_sample,
    "IhSC in memory, reading included": in_memory,
}
PACKAGES = ("ihgmm", "numpy", "scipy", "scikit-learn", "faiss-cpu")
NOTE = (
    "From the file, in the page cache, to labels; each time in a fresh process. "
    "Sampled rows are no pass. Unit rows for k-means are made block by block."
)


def measure(name: str, folder: Path, seed: int) -> dict[str, float]:
    method = METHODS[name]
    method(folder / "small.npy", seed)
    figures, (found, passes) = measured(lambda: method(folder / "x.npy", seed))
    labels = np.load(folder / "labels.npy")
    error = misclassification_rate(labels, found)
    return figures | {"passes": passes, "error": error}


def available() -> int:
    """Return the bytes of memory that could be had without swapping."""
    info = Path("/proc/meminfo").read_text()
    return int(info.partition("MemAvailable:")[2].split()[0]) * 1024


def _open(path: Path) -> Matrix:
    return as_matrix(np.load(path, mmap_mode="r"))
