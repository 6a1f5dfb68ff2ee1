"""Compare IhSC with its peers on data on disk and on a dask cluster.

    python benchmarks/backends.py                  # everything that is installed
    python benchmarks/backends.py disk --gigabytes 8 --rounds 1 --methods IhSC
    python benchmarks/backends.py dask --save

The data are float32 rows of the model, 1,000 features in ten clusters. Methods take
turns, several rounds, each time in a process of its own; times are medians, shown as
ratios to IhSC, and errors the median and the worst over seeds. Memory is what is in
use before the work and at most during it. With ``--save`` tables go to
results/backends.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cases import dense
from measure import markdown, measured, names_asked, peak, reset_peak, resident, save
from sklearn.cluster import MiniBatchKMeans
from sklearn.preprocessing import normalize

from ihgmm import IhGMM, IhSC
from ihgmm.matrix import Matrix, as_matrix
from ihgmm.metrics import misclassification_rate

P, K, WARM = 1_000, 10, 2_000
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


# -- a memory map ----------------------------------------------------------------------


def opened(path: Path) -> Matrix:
    return as_matrix(np.load(path, mmap_mode="r"))


def on_map(path: Path, seed: int) -> tuple[np.ndarray, int]:
    rows = opened(path)
    return IhSC(K, random_state=seed).fit(rows).labels_, rows.passes


def mini_batch(path: Path, seed: int) -> tuple[np.ndarray, int]:
    rows, model = opened(path), MiniBatchKMeans(K, random_state=seed)

    def learn(block: Matrix) -> None:
        unit = normalize(block.array, copy=False)
        for batch in np.array_split(unit, max(1, len(unit) // 1_024)):
            model.partial_fit(batch)

    for _ in range(3):
        for _ in rows.map(learn):
            pass
    labels = rows.map(lambda block: model.predict(normalize(block.array, copy=False)))
    return np.concatenate(list(labels)), rows.passes


def faiss_sample(path: Path, seed: int) -> tuple[np.ndarray, int]:
    import faiss

    rows = opened(path)
    n, p = rows.shape
    model = faiss.Kmeans(p, K, spherical=True, seed=seed)
    count = min(n, K * model.cp.max_points_per_centroid)
    index = np.random.default_rng(seed).choice(n, count, replace=False)
    sample = rows.take(np.sort(index)).array
    faiss.normalize_L2(sample)
    model.train(sample)
    # The largest inner product with a centre is the largest cosine: rows stay as read.
    labels = rows.map(lambda block: model.index.search(block.array, 1)[1][:, 0])
    return np.concatenate(list(labels)), rows.passes


def in_memory(path: Path, seed: int) -> tuple[np.ndarray, int]:
    info = Path("/proc/meminfo").read_text()
    available = int(info.partition("MemAvailable:")[2].split()[0]) * 1024
    if 2 * path.stat().st_size > available:
        raise MemoryError
    return IhSC(K, random_state=seed).fit(np.load(path)).labels_, 1


def measure_disk(
    method: Callable[[Path, int], tuple[np.ndarray, int]], folder: Path, seed: int
) -> tuple[Figures, np.ndarray]:
    method(folder / "small.npy", seed)  # load what is loaded late
    figures, (labels, passes) = measured(lambda: method(folder / "x.npy", seed))
    return figures | {"passes": passes}, labels


# -- a cluster of dask -----------------------------------------------------------------


def ihsc(X: Any, seed: int) -> np.ndarray:
    return np.asarray(IhSC(K, random_state=seed).fit(X).labels_)


def ihgmm(X: Any, seed: int) -> np.ndarray:
    return np.asarray(IhGMM(K, random_state=seed).fit(X).labels_)


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
    ends = [(start, min(start + rows, n)) for start in range(0, n, rows)]
    parts = [
        da.from_delayed(delayed(rows_of)(str(path), a, b), (b - a, p), np.float32)
        for a, b in ends
    ]
    return da.concatenate(parts)


@contextmanager
def cluster(workers: int, limit: str) -> Iterator[Any]:
    """Start a scheduler and workers, each in a process of its own; yield a client."""
    from distributed import Client
    from distributed.deploy.subprocess import SubprocessCluster

    # Workers import functions of these scripts.
    here, there = str(Path(__file__).parent), os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([here, there] if there else [here])
    given = {"memory_limit": limit, "dashboard_address": None}
    with (
        SubprocessCluster(
            host="127.0.0.1", n_workers=workers, threads_per_worker=1,
            dashboard_address=":0", worker_kwargs=given,
        ) as local,
        Client(local) as client,
    ):  # fmt: skip
        client.wait_for_workers(workers, timeout=60)
        yield client


def worker_limit(gigabytes: float) -> float:
    """Return the memory of a worker, in GB: its data four times, and 1 for Python."""
    return round(4 * gigabytes / WORKERS + 1, 2)


def measure_dask(
    method: Callable[[Any, int], np.ndarray], folder: Path, seed: int
) -> tuple[Figures, np.ndarray]:
    from distributed import wait

    size = (folder / "x.npy").stat().st_size / 1e9
    with cluster(WORKERS, f"{worker_limit(size)}GB") as client:
        method(
            chunked(folder / "small.npy", 500), seed
        )  # workers import what they need
        X = chunked(folder / "x.npy", 2**26 // (4 * P)).persist()
        wait(X)
        client.run(reset_peak)
        before = max(client.run(resident).values()) / 1e9
        figures, labels = measured(lambda: method(X, seed))
        most = max(client.run(peak).values()) / 1e9
    grown = figures["peak"] - figures["before"]
    return figures | {"client": grown, "before": before, "peak": most}, labels


def one_process(folder: Path, seed: int) -> tuple[Figures, np.ndarray]:
    X = np.load(folder / "x.npy")
    ihsc(X[:WARM], seed)
    return measured(lambda: ihsc(X, seed))


METHODS: dict[str, dict[str, Callable[[Path, int], tuple[Figures, np.ndarray]]]] = {
    "disk": {
        "IhSC": partial(measure_disk, on_map),
        "MiniBatchKMeans, 3 passes and predict": partial(measure_disk, mini_batch),
        "faiss spherical, sample, then assignment": partial(measure_disk, faiss_sample),
        "IhSC in memory, reading included": partial(measure_disk, in_memory),
    },
    "dask": {
        "IhSC": partial(measure_dask, ihsc),
        "IhGMM": partial(measure_dask, ihgmm),
        "dask-ml KMeans on unit rows": partial(measure_dask, dask_ml),
        "IhSC in one process": one_process,
    },
}


# -- turns and tables ------------------------------------------------------------------


def be_process(part: str, name: str, seed: str, folder: str) -> None:
    """Measure one method and print figures, or why there are none."""
    warnings.simplefilter("ignore")
    try:
        figures, labels = METHODS[part][name](Path(folder), int(seed))
        truth = np.load(Path(folder) / "labels.npy")
        figures["error"] = misclassification_rate(truth, labels)
    except ModuleNotFoundError as error:
        figures = {"missing": f"{error.name} is not installed"}
    except MemoryError:
        figures = {"missing": "does not fit in memory"}
    print(json.dumps(figures))


def process_figures(part: str, name: str, seed: int, folder: str) -> Figures:
    command = [sys.executable, __file__, "--process", part, name, str(seed), folder]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures = json.loads(done.stdout.splitlines()[-1])
    print(part, name, figures, file=sys.stderr, flush=True)
    return figures


def summary(turns: list[Figures]) -> Figures:
    """Return medians, and the largest error of a method whose seed was unlucky."""
    if "missing" in turns[0]:
        return turns[0]
    medians = {key: statistics.median(turn[key] for turn in turns) for key in turns[0]}
    return medians | {"worst": max(turn["error"] for turn in turns)}


FORMATS = {
    "seconds": "{:#.3g}", "x IhSC": "{:.2f}", "before": "{:.2f}", "peak": "{:.2f}",
    "passes": "{:.0f}", "client": "{:.3f}", "error": "{:.5f}", "worst": "{:.5f}",
}  # fmt: skip


def table(title: str, figures: dict[str, Figures]) -> str:
    """Lay out figures, the first method being the one others are compared with."""
    first = next(iter(figures.values())).get("seconds", np.nan)
    rows = []
    for name, own in figures.items():
        own = {"x IhSC": own.get("seconds", np.nan) / first} | own
        cells = [FORMATS[key].format(own[key]) if key in own else "" for key in FORMATS]
        missing = "missing" in own
        rows.append([name, own["missing"], *cells[1:]] if missing else [name, *cells])
    return markdown([[title], ["method", *FORMATS], *rows])


def compare(part: str, options: argparse.Namespace) -> str:
    """Compare on a file that is written for it and deleted afterwards."""
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder, n = Path(name), int(options.gigabytes * 1e9 / 4 / P)
        X = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (n, P))
        _, labels, oracle = dense(n, P, K, length=3.0, out=X)
        X.flush()
        np.save(folder / "small.npy", X[:WARM])
        np.save(folder / "labels.npy", labels)
        del X
        names = [m for m in METHODS[part] if m in (options.methods or [m])]
        turns: dict[str, list[Figures]] = {method: [] for method in names}
        for seed in range(options.rounds):
            for method, figures in turns.items():
                if not figures or "missing" not in figures[0]:
                    figures.append(process_figures(part, method, seed, name))
    title = f"{n:,} x {P:,}, K {K}, {options.gigabytes:g} GB"
    if part == "dask":
        title += f", {WORKERS} workers of {worker_limit(options.gigabytes):g} GB"
    summaries = {method: summary(figures) for method, figures in turns.items()}
    text = table(f"{title} (oracle's error {oracle:.5f})", summaries)
    runs = f"{options.rounds} round{'s' * (options.rounds > 1)}, a seed each."
    return f"## {part}\n\n{text}\n{NOTES[part]} {runs}\n"


def main() -> None:
    if sys.argv[1:2] == ["--process"]:
        return be_process(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=", ".join(METHODS))
    parser.add_argument("--methods", nargs="+", help="as the tables name them")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (3)")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of data (1)")
    parser.add_argument("--folder", type=Path, help="where the file goes")
    parser.add_argument("--save", action="store_true", help="to backends.md")
    options = parser.parse_args()
    free = shutil.disk_usage(options.folder or tempfile.gettempdir()).free / 1e9
    if free < 1.1 * options.gigabytes:
        parser.error(f"{free:.1f} GB are free, too few; name another --folder.")
    parts = []
    for part in names_asked(parser, options.parts, METHODS):
        parts.append(compare(part, options))
        print(parts[-1], flush=True)
    if options.save:
        save("backends.md", "\n".join([INTRO, *parts]))
    return None


if __name__ == "__main__":
    main()
