"""A dask array on a cluster of processes: IhSC, dask-ml, and one process for scale."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measure import measured, peak, reset_peak, resident
from on_disk import WARM
from out_of_core import K

from ihgmm import IhSC
from ihgmm.metrics import misclassification_rate

WORKERS = max(2, min(8, os.cpu_count() or 2))
CHUNK_BYTES = 2**26
ONE_PROCESS = "IhSC in one process"


def ihsc(X: Any, seed: int) -> np.ndarray:
    return np.asarray(IhSC(K, random_state=seed).fit(X).labels_)


def dask_ml(X: Any, seed: int) -> np.ndarray:
    import dask.array as da
    from dask_ml.cluster import KMeans

    # Kept on the workers, as dask-ml advises: k-means goes over the rows many times.
    unit = (X / da.linalg.norm(X, axis=1, keepdims=True)).persist()
    return np.asarray(KMeans(K, random_state=seed).fit(unit).labels_)


METHODS: dict[str, Callable[[Any, int], np.ndarray]] = {
    "IhSC on the cluster": ihsc,
    "dask-ml KMeans on unit rows": dask_ml,
    ONE_PROCESS: ihsc,
}
PACKAGES = ("ihgmm", "numpy", "scikit-learn", "dask", "distributed", "dask-ml")
NOTE = (
    "The data are in memory, of the workers or of the one process, when the clock "
    "starts, and labels are on the client when it stops; the start of the cluster is "
    "not counted. The one process has all threads, a worker one."
)


def limit(gigabytes: float) -> float:
    """Return the memory of a worker, in GB: its data four times, and 1 for Python."""
    return round(4 * gigabytes / WORKERS + 1, 2)


def measure(name: str, folder: Path, seed: int) -> dict[str, float]:
    method = METHODS[name]
    labels = np.load(folder / "labels.npy")
    if name == ONE_PROCESS:
        X = np.load(folder / "x.npy")
        method(X[:WARM], seed)
        figures, found = measured(lambda: method(X, seed))
    else:
        figures, found = _on_cluster(method, folder, seed)
    return figures | {"error": misclassification_rate(labels, found)}


def _on_cluster(
    method: Callable[[Any, int], np.ndarray], folder: Path, seed: int
) -> tuple[dict[str, float], np.ndarray]:
    from distributed import Client, LocalCluster, wait

    size = (folder / "x.npy").stat().st_size
    with (
        LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            processes=True,
            memory_limit=f"{limit(size / 1e9)}GB",
            dashboard_address=":0",  # any free port
            host="127.0.0.1",
        ) as cluster,
        Client(cluster) as client,
    ):
        small = stored(folder / "small.npy", WARM * 1_000)
        method(small, seed)  # workers import what they need
        X = stored(folder / "x.npy", CHUNK_BYTES).persist()
        wait(X)
        client.run(reset_peak)
        before = max(client.run(resident).values()) / 1e9
        figures, found = measured(lambda: method(X, seed))
        most = max(client.run(peak).values()) / 1e9
    return figures | {"client": figures["peak"], "before": before, "peak": most}, found


def stored(path: Path, chunk_bytes: int) -> Any:
    """Return a dask array whose chunks are read from a file by the workers."""
    import dask.array as da
    from dask.delayed import delayed

    X = np.load(path, mmap_mode="r")
    n, p = X.shape
    step = max(1, chunk_bytes // (p * X.itemsize))
    parts = [(start, min(start + step, n)) for start in range(0, n, step)]
    return da.concatenate(
        [
            da.from_delayed(delayed(_read)(str(path), *ends), (ends[1] - ends[0], p),
                            X.dtype)
            for ends in parts
        ]
    )  # fmt: skip


def _read(path: str, start: int, stop: int) -> np.ndarray:
    return np.array(np.load(path, mmap_mode="r")[start:stop])
