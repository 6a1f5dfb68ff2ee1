"""Measure IhSC over a grid of sizes: time, memory and passes.

    python benchmarks/scaling.py measure   # minutes; writes results/scaling.json
    python benchmarks/scaling.py report    # writes results/scaling.md

Each case runs in a process of its own, so that its largest resident memory is its own,
and is fitted several times; the shortest time counts. On a shared machine the time that
the processor was busy, with one thread, tells more than the clock; both are stored.
Files go to the temporary folder and are deleted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"
STORE = RESULTS / "scaling.json"

GRID = [
    ("memory", 100_000, 100, 10, None),
    ("memory", 1_000_000, 100, 10, None),
    ("memory", 1_000_000, 100, 50, None),
    ("memory", 500_000, 400, 20, None),
    ("memory", 200_000, 1_000, 10, None),
    ("memory", 200_000, 1_000, 50, None),
    ("memory", 20_000, 2_000, 20, None),
    ("memory", 2_000, 20_000, 8, None),
    ("memory", 50_000, 20_000, 10, 0.01),
    ("disk", 1_000_000, 100, 50, None),
    ("dask", 200_000, 200, 10, None),
    ("dask", 100_000, 100, 10, None),
]
"""Where the data are, rows, features, clusters, and the density of sparse data."""

ROUNDS, PIECE, CHUNKS = 2, 50_000, (50_000, 5_000)
"""Fits of a case, rows made at a time, and rows in a chunk of dask."""


def centers(p: int, k: int, rng: np.random.Generator) -> np.ndarray:
    Q, _ = np.linalg.qr(rng.standard_normal((p, k)))
    return (4.0 * Q.T).astype(np.float32)


def dense(n: int, p: int, k: int, out: np.ndarray) -> np.ndarray:
    """Fill an array with rows of the model: centres of length 4, noise of level 1."""
    rng = np.random.default_rng(0)
    theta = centers(p, k, rng)
    for start in range(0, n, PIECE):
        few = out[start : start + PIECE]
        scales = rng.uniform(1, 20, len(few)).astype(np.float32)
        part = rng.standard_normal(few.shape, dtype=np.float32)
        part += scales[:, None] * theta[rng.integers(k, size=len(few))]
        few[:] = part
    return out


def sparse(n: int, p: int, k: int, density: float) -> Any:
    """Return counts of words: topics prefer a share of the words tenfold."""
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    drawn = int(n * p * density)
    rows = np.sort(rng.integers(n, size=drawn))
    labels = rng.integers(k, size=n)
    share = max(p // k, 1)
    own = labels[rows] * share + rng.integers(share, size=drawn)
    columns = np.where(rng.random(drawn) < 0.5, own, rng.integers(p, size=drawn))
    X = sp.csr_array((np.ones(drawn, np.float32), (rows, columns)), shape=(n, p))
    X.sum_duplicates()
    return X


def memory(kind: str) -> int:
    """Return the resident memory ("VmRSS") or its peak ("VmHWM"), in bytes; Linux."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition(f"{kind}:")[2].split()[0]) * 1024


def fitted(X: Any, k: int) -> dict[str, Any]:
    """Fit some rounds; return the least times, the passes and the memory."""
    from ihgmm import IhSC
    from ihgmm.matrix import as_matrix

    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = memory("VmRSS")
    times, busy = [], []
    for seed in range(ROUNDS):
        started, worked = time.perf_counter(), time.process_time()
        IhSC(k, random_state=seed).fit(X)
        busy.append(time.process_time() - worked)
        times.append(time.perf_counter() - started)
    found = {
        "seconds": min(times),
        "busy": min(busy),
        "beyond": memory("VmHWM") - before,
        "before": before,
    }
    rows = as_matrix(X)
    if not rows.streamed:
        rows = in_blocks(X)
    IhSC(k, random_state=0).fit(rows)
    return found | {"passes": rows.passes}


def in_blocks(X: Any) -> Any:
    """Return data in memory as blocks that count passes."""
    import scipy.sparse as sp

    from ihgmm.matrix.stored import Stored

    def read(start: int, stop: int) -> Any:
        return X[start:stop]

    return Stored(read, X.shape, X.dtype, n_entries=X.size, sparse=sp.issparse(X))


def one(where: str, n: int, p: int, k: int, density: float | None) -> list[dict]:
    """Measure one case; on dask it is several, by the size of chunks."""
    if where == "memory":
        if density is None:
            X = dense(n, p, k, np.empty((n, p), np.float32))
        else:
            X = sparse(n, p, k, density)
            density = X.nnz / (n * p)
        return [{"density": density} | fitted(X, k)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        X = np.lib.format.open_memmap(path, "w+", np.float32, (n, p))
        dense(n, p, k, X).flush()
        del X
        if where == "disk":
            # What was written does not count as memory of the fit.
            code = [sys.executable, __file__, "stored", str(path), str(k)]
            done = subprocess.run(code, check=True, stdout=subprocess.PIPE)
            return [json.loads(done.stdout)]
        return [on_cluster(path, k, rows) for rows in CHUNKS]


def on_cluster(path: Path, k: int, rows: int) -> dict[str, Any]:
    """Measure two worker processes of one thread, chunks in their memory."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    from ihgmm import IhSC
    from ihgmm.matrix import as_matrix

    X = np.load(path, mmap_mode="r")
    n = X.shape[0]
    with (
        LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        parts = [
            da.from_delayed(
                _read(str(path), i, min(i + rows, n)), (min(rows, n - i), X.shape[1]),
                X.dtype,
            )
            for i in range(0, n, rows)
        ]  # fmt: skip
        stored = da.concatenate(parts).persist()
        wait(stored)
        times, sent = [], []
        for seed in range(ROUNDS):
            data = as_matrix(stored)
            moved = traffic()
            started = time.perf_counter()
            IhSC(k, random_state=seed).fit(data)
            times.append(time.perf_counter() - started)
            sent.append(traffic() - moved)
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        held = max(worker["metrics"]["memory"] for worker in workers)
    return {
        "chunk": rows,
        "seconds": min(times),
        "passes": data.passes,
        "traffic": float(np.median(sent)),
        "worker": held,
    }


def _read(path: str, start: int, stop: int) -> Any:
    from dask.delayed import delayed

    def read() -> np.ndarray:
        return np.array(np.load(path, mmap_mode="r")[start:stop])

    return delayed(read)()


def traffic() -> int:
    """Return the bytes that went over this machine's own network so far."""
    for line in Path("/proc/net/dev").read_text(encoding="utf-8").splitlines():
        name, _, figures = line.partition(":")
        if name.strip() == "lo":
            return int(figures.split()[0])
    return 0


def measure() -> None:
    """Measure the grid and store what was found."""
    runs = []
    for where, n, p, k, density in GRID:
        case = {"where": where, "n": n, "p": p, "k": k, "density": density}
        code = [sys.executable, __file__, "one", json.dumps(list(case.values()))]
        done = subprocess.run(code, check=True, stdout=subprocess.PIPE)
        for found in json.loads(done.stdout):
            runs.append(case | found)
            print(json.dumps(runs[-1]), flush=True)
    STORE.write_text("[\n" + ",\n".join(map(json.dumps, runs)) + "\n]\n")


def stored_runs() -> list[dict[str, Any]]:
    return json.loads(STORE.read_text(encoding="utf-8"))


def report() -> None:
    """Write the table of what was measured."""
    lines = [
        "# Sizes, time and memory",
        "",
        "`python benchmarks/scaling.py measure`, then `report`. "
        "One thread, float32; the least of two or three rounds on a shared machine, so "
        "that time is that of the processor (with data on disk: of reading as well), "
        "not of the clock. The stored runs come from several calls, with other work on "
        "both cores. "
        "Memory is what the fit takes beyond the process and the data.",
        "",
        "| X | n x p, K | time | memory | passes |",
        "|---|---|---:|---:|---:|",
    ]
    for run in stored_runs():
        if run["where"] == "dask":
            continue
        kind = "" if run["density"] is None else f", {run['density']:.1%} filled"
        lines.append(
            f"| {run['where']}{kind} | {run['n']:,} x {run['p']:,}, {run['k']} "
            f"| {run['busy']:.2f} s | {run['beyond'] / 1e6:.0f} MB | {run['passes']} |"
        )
    lines += [
        "",
        "dask, two worker processes of one thread on the same machine, chunks in their "
        "memory; time by the clock. While the larger one ran, others kept the machine "
        "busy (load of 10 to 15 on two cores): only its traffic says something.",
        "",
        "| n x p, K | rows in a chunk | time | traffic |",
        "|---|---:|---:|---:|",
    ]
    for run in stored_runs():
        if run["where"] == "dask":
            lines.append(
                f"| {run['n']:,} x {run['p']:,}, {run['k']} | {run['chunk']:,} "
                f"| {run['seconds']:.2f} s | {run['traffic'] / 1e6:.0f} MB |"
            )
    (RESULTS / "scaling.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    tasks = {"measure": measure, "report": report}
    parser.add_argument("what", choices=[*tasks, "one", "stored"])
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.what == "one":
        print(json.dumps(one(*json.loads(options.rest[0]))))
    elif options.what == "stored":
        path, k = options.rest
        print(json.dumps(fitted(np.load(path, mmap_mode="r"), int(k))))
    else:
        tasks[options.what]()


if __name__ == "__main__":
    main()
