"""Compare IhSC with its peers on data on disk and on a dask cluster.

    python benchmarks/backends.py                  # everything that is installed
    python benchmarks/backends.py disk --gigabytes 8 --rounds 1 --methods IhSC
    python benchmarks/backends.py dask --save

The data are float32 rows of the model, 1,000 features in ten clusters. Methods take
turns, several rounds, each time in a process of its own. ``INTRO`` has the figures.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import measure
import numpy as np
from cases import dense
from measure import Table, arguments, in_process, markdown, measured, publish
from sklearn.cluster import MiniBatchKMeans
from sklearn.preprocessing import normalize

from ihgmm import IhGMM, IhSC
from ihgmm.matrix import Matrix, as_matrix
from ihgmm.metrics import misclassification_rate

P = 1_000
K = 10
WARM = 2_000
WORKERS = max(2, min(8, os.cpu_count() or 2))
INTRO = """# Benchmark on disk and on a dask cluster

`pip install ".[bench,large]"`, then `python benchmarks/backends.py --save`. Seconds are
medians, and `x IhSC` is the time relative to IhSC in the first row; `error` is the
median share of rows misplaced, `worst` that of the worst seed; `before` and `peak` are
the memory in use before the work and at most during it, in GB: of the process, or of
the largest worker. `client` is by how much the memory of the client grows, in GB.
"""
NOTES = {
    "disk": "From the file, in the page cache, to labels; each time in a new process. "
    "Sampled rows are no pass. Unit rows for k-means are made block by block.",
    "dask": "The data are in memory, of the workers or of the one process, when the "
    "clock starts, and labels are on the client when it stops; the start of the "
    "cluster is not counted. Scheduler and workers are processes of their own. The one "
    "process has all threads, a worker one.",
}
Figures = dict[str, Any]
Measured = tuple[Figures, np.ndarray]  # with labels
Method = Callable[[Any, int], np.ndarray]  # of rows and a seed


def ihsc(X: Any, seed: int) -> np.ndarray:
    return np.asarray(IhSC(K, random_state=seed).fit(X).labels_)


def ihgmm(X: Any, seed: int) -> np.ndarray:
    return np.asarray(IhGMM(K, random_state=seed).fit(X).labels_)


def mini_batch(rows: Matrix, seed: int) -> np.ndarray:
    model = MiniBatchKMeans(K, random_state=seed)

    def learn(block: Matrix) -> None:
        unit = normalize(block.array, copy=False)
        for batch in np.array_split(unit, max(1, len(unit) // 1_024)):
            model.partial_fit(batch)

    for _ in range(3):
        for _ in rows.map(learn):
            pass

    labels = rows.map(lambda block: model.predict(normalize(block.array, copy=False)))
    return np.concatenate(list(labels))


def faiss_sample(rows: Matrix, seed: int) -> np.ndarray:
    import faiss

    n, p = rows.shape
    model = faiss.Kmeans(p, K, spherical=True, seed=seed)
    count = min(n, K * model.cp.max_points_per_centroid)
    positions = np.random.default_rng(seed).choice(n, count, replace=False)
    sample = rows.take(np.sort(positions)).array
    faiss.normalize_L2(sample)
    model.train(sample)
    # The largest inner product with a centre is the largest cosine: rows stay as read.
    labels = rows.map(lambda block: model.index.search(block.array, 1)[1][:, 0])

    return np.concatenate(list(labels))


def opened(path: Path) -> Matrix:
    return as_matrix(np.load(path, mmap_mode="r"))


def measure_disk(method: Method, folder: Path, seed: int) -> Measured:
    method(opened(folder / "small.npy"), seed)  # load what is loaded late
    rows = opened(folder / "x.npy")
    figures, labels = measured(lambda: method(rows, seed))
    return figures | {"passes": rows.passes}, labels


def in_memory(folder: Path, seed: int) -> Measured:
    memory_info = Path("/proc/meminfo").read_text()
    available = int(memory_info.partition("MemAvailable:")[2].split()[0]) * 1024

    if 2 * (folder / "x.npy").stat().st_size > available:
        raise MemoryError

    ihsc(np.load(folder / "small.npy"), seed)
    figures, labels = measured(lambda: ihsc(np.load(folder / "x.npy"), seed))

    return figures | {"passes": 1}, labels


def dask_ml(X: Any, seed: int) -> np.ndarray:
    import dask.array as da
    from dask_ml.cluster import KMeans

    # Kept on the workers, as dask-ml advises: k-means goes over the rows many times.
    unit = (X / da.linalg.norm(X, axis=1, keepdims=True)).persist()
    return np.asarray(KMeans(K, random_state=seed).fit(unit).labels_)


def rows_of(path: str, start: int, stop: int) -> np.ndarray:
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def chunked(path: Path, rows: int) -> Any:
    """Return a dask array whose chunks are read from a file by the workers."""
    import dask.array as da
    from dask.delayed import delayed

    n, p = np.load(path, mmap_mode="r").shape
    chunks = []

    for start in range(0, n, rows):
        stop = min(start + rows, n)
        chunk = delayed(rows_of)(str(path), start, stop)
        chunks.append(da.from_delayed(chunk, (stop - start, p), np.float32))

    return da.concatenate(chunks)


@contextmanager
def cluster(workers: int, limit: str) -> Iterator[Any]:
    """Start a scheduler and workers, each in a process of its own; yield a client."""
    from distributed import Client
    from distributed.deploy.subprocess import SubprocessCluster

    # Workers import functions of these scripts.
    folders = [str(Path(__file__).parent)]
    if python_path := os.environ.get("PYTHONPATH"):
        folders.append(python_path)
    os.environ["PYTHONPATH"] = os.pathsep.join(folders)
    options = {"memory_limit": limit, "dashboard_address": None}

    with (
        SubprocessCluster(
            host="127.0.0.1", n_workers=workers, threads_per_worker=1,
            dashboard_address=":0", worker_kwargs=options,
        ) as processes,
        Client(processes) as client,
    ):  # fmt: skip
        client.wait_for_workers(workers, timeout=60)
        yield client


def worker_limit(gigabytes: float) -> float:
    """Return the memory of a worker, in GB: its data four times, and 1 for Python."""
    return round(4 * gigabytes / WORKERS + 1, 2)


def measure_dask(method: Method, folder: Path, seed: int) -> Measured:
    from distributed import wait

    size = (folder / "x.npy").stat().st_size / 1e9
    with cluster(WORKERS, f"{worker_limit(size)}GB") as client:
        method(chunked(folder / "small.npy", 500), seed)  # workers import things
        X = chunked(folder / "x.npy", 2**26 // (4 * P)).persist()
        wait(X)
        client.run(measure.reset_peak)
        before = max(client.run(measure.resident).values()) / 1e9
        figures, labels = measured(lambda: method(X, seed))
        peak = max(client.run(measure.peak).values()) / 1e9

    grown = figures["peak"] - figures["before"]
    return figures | {"client": grown, "before": before, "peak": peak}, labels


def one_process(folder: Path, seed: int) -> Measured:
    X = np.load(folder / "x.npy")
    ihsc(X[:WARM], seed)
    return measured(lambda: ihsc(X, seed))


METHODS: dict[str, dict[str, Callable[[Path, int], Measured]]] = {
    "disk": {
        "IhSC": partial(measure_disk, ihsc),
        "MiniBatchKMeans, 3 passes and predict": partial(measure_disk, mini_batch),
        "faiss spherical, sample, then assignment": partial(measure_disk, faiss_sample),
        "IhSC in memory, reading included": in_memory,
    },
    "dask": {
        "IhSC": partial(measure_dask, ihsc),
        "IhGMM": partial(measure_dask, ihgmm),
        "dask-ml KMeans on unit rows": partial(measure_dask, dask_ml),
        "IhSC in one process": one_process,
    },
}


def be_process(part: str, name: str, seed: str, folder: str) -> None:
    """Measure one method and print figures, or why there are none."""
    warnings.simplefilter("ignore")
    try:
        figures, labels = METHODS[part][name](Path(folder), int(seed))
        true_labels = np.load(Path(folder) / "labels.npy")
        figures["error"] = misclassification_rate(true_labels, labels)
    except ModuleNotFoundError as error:
        figures = {"missing": f"{error.name} is not installed"}
    except MemoryError:
        figures = {"missing": "does not fit in memory"}

    print(json.dumps(figures))


FORMATS = {
    "seconds": "{:#.3g}", "x IhSC": "{:.2f}", "before": "{:.2f}", "peak": "{:.2f}",
    "passes": "{:.0f}", "client": "{:.3f}", "error": "{:.5f}", "worst": "{:.5f}",
}  # fmt: skip


def table(title: str, turns: dict[str, list[Figures]]) -> Table:
    """Yield medians; the first method is the one others are compared with."""
    yield [title]
    yield ["method", *FORMATS]
    ihsc_seconds = np.nan

    for name, runs in turns.items():
        if "missing" in runs[0]:
            yield [name, runs[0]["missing"], *[""] * (len(FORMATS) - 1)]
            continue

        row = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        row["worst"] = max(run["error"] for run in runs)  # an unlucky seed
        if np.isnan(ihsc_seconds):
            ihsc_seconds = row["seconds"]
        row["x IhSC"] = row["seconds"] / ihsc_seconds

        cells = (FORMATS[key].format(row[key]) if key in row else "" for key in FORMATS)
        yield [name, *cells]


def compare(part: str, options: argparse.Namespace) -> str:
    """Compare on a file that is written for it and deleted afterwards."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder_name:
        folder = Path(folder_name)
        n = int(options.gigabytes * 1e9 / 4 / P)
        X = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (n, P))
        _, labels, oracle = dense(n, P, K, length=3.0, out=X)
        X.flush()
        np.save(folder / "small.npy", X[:WARM])
        np.save(folder / "labels.npy", labels)
        del X
        names = [name for name in METHODS[part] if name in (options.methods or [name])]
        turns: dict[str, list[Figures]] = {name: [] for name in names}

        for seed in range(options.rounds):
            for name, runs in turns.items():
                if runs and "missing" in runs[0]:
                    continue
                runs.append(in_process(__file__, part, name, seed, folder_name))
                print(part, name, runs[-1], file=sys.stderr, flush=True)

    title = f"{n:,} x {P:,}, K {K}, {options.gigabytes:g} GB"
    if part == "dask":
        title += f", {WORKERS} workers of {worker_limit(options.gigabytes):g} GB"
    text = markdown(table(f"{title} (oracle's error {oracle:.5f})", turns))
    rounds = f"{options.rounds} round{'s' * (options.rounds > 1)}, a seed each."

    return f"## {part}\n\n{text}\n{NOTES[part]} {rounds}\n"


def main() -> None:
    if sys.argv[1:2] == ["--process"]:
        return be_process(*sys.argv[2:])
    parser = arguments(__doc__, "backends.md", METHODS, rounds=3)
    parser.add_argument("--methods", nargs="+", help="as the tables name them")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of data (1)")
    parser.add_argument("--folder", type=Path, help="where the file goes")
    options = parser.parse_args()
    free_space = shutil.disk_usage(options.folder or tempfile.gettempdir()).free / 1e9
    if free_space < 1.1 * options.gigabytes:
        parser.error(f"{free_space:.1f} GB are free, too few; name another --folder.")

    parts = [compare(part, options) for part in options.names]
    publish(options, "\n".join([INTRO, *parts]))


if __name__ == "__main__":
    main()
