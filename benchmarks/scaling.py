"""Measure IhSC over a grid of sizes: time, memory, passes, and bytes that are sent.

    python benchmarks/scaling.py --save         # all tables, minutes; to scaling.md
    python benchmarks/scaling.py sizes options  # some of: sizes, options, dask

Each size runs in a process of its own, so that its largest resident memory is its own.
On a shared machine the time that the processor was busy, with one thread, tells more
than the clock. Passes are counted over rows in blocks, as they come from a memory map.
A cluster of dask has two worker processes on this machine. Files go to the temporary
folder and are deleted. ``HEAD`` says what figures are.
"""

import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy starts its threads

import measure
import numpy as np
from backends import chunked, cluster
from cases import counts, dense
from measure import Table, arguments, in_process, markdown, publish, readings

from ihgmm import IhSC
from ihgmm.matrix import as_matrix

SIZES = [
    ("memory", 100_000, 100, 10),
    ("memory", 1_000_000, 100, 10),
    ("memory", 1_000_000, 100, 50),
    ("memory", 500_000, 400, 20),
    ("memory", 200_000, 1_000, 10),
    ("memory", 200_000, 1_000, 50),
    ("memory", 20_000, 2_000, 20),
    ("memory", 2_000, 20_000, 8),
    ("memory, 1.3% filled", 50_000, 20_000, 10),
    ("disk", 1_000_000, 100, 50),
    ("disk", 400_000, 1_000, 10),
]
CLUSTER = [  # rows, features, clusters, rows in a chunk
    (100_000, 100, 10, 50_000),
    (100_000, 100, 10, 5_000),
    (120_000, 200, 10, 15_000),
    (240_000, 200, 50, 30_000),
]
OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {  # what to fit, and how
    "no option": ("", {}),
    'columns="noise"': ("", {"columns": "noise"}),
    "counts": ("counts", {}),
    'counts, columns="counts"': ("counts", {"columns": "counts"}),
    '2% of cells missing, missing="fit"': ("missing", {"missing": "fit"}),
    'outliers="auto", none planted': ("", {"outliers": "auto"}),
    'outliers="auto", 2% planted': ("outliers", {"outliers": "auto"}),
}
HEAD = """# Sizes, time and memory

`python benchmarks/scaling.py`; float32, centres of length 4. Of sizes: one thread, the
time of the processor (with data on disk: of reading as well), the least of two fits;
memory is what a fit takes beyond the process and the data. On dask: time by the clock;
MB sent are all that is written to a connection in a fit, messages of the scheduler too,
and what passes it is written twice; memory is what a fit adds to a worker, which holds
its rows. If the machine is busy, the scheduler moves rows between workers, and two runs
differ by a factor of two.
"""


def be_process(where: str, n: int, p: int, k: int) -> None:
    """Fit one size; print the least times, the passes and the memory."""
    with tempfile.TemporaryDirectory() as folder:
        if "filled" in where:
            X = counts(n, p, k).X
        elif where == "memory":
            X = dense(n, p, k, length=4.0).X
        else:
            path = Path(folder) / "x.npy"
            out = np.lib.format.open_memmap(path, "w+", np.float32, (n, p))
            dense(n, p, k, length=4.0, out=out)
            del out  # what was written does not count as memory of the fit
            X = np.load(path, mmap_mode="r")

        IhSC(k).fit(X[:2_000])  # load what is loaded late
        measure.reset_peak()
        memory_before = measure.resident()
        times = []

        for seed in range(2):
            start = time.process_time()
            IhSC(k, random_state=seed).fit(X)
            times.append(time.process_time() - start)

        figures = {"seconds": min(times), "beyond": measure.peak() - memory_before}
        figures["passes"] = readings(X, IhSC(k, random_state=0).fit)

    print(json.dumps(figures))


def sizes() -> Table:
    yield ["One process"]
    yield ["X", "n x p, K", "time", "memory", "passes"]
    for where, n, p, k in SIZES:
        figures = in_process(__file__, json.dumps([where, n, p, k]))
        seconds = f"{figures['seconds']:.2f} s"
        memory = f"{figures['beyond'] / 1e6:.0f} MB"
        yield [where, f"{n:,} x {p:,}, {k}", seconds, memory, figures["passes"]]


def sample(n: int, p: int, k: int, kind: str) -> np.ndarray:
    """Return rows of the model, or those that call for an option."""
    rng = np.random.default_rng(1)
    X = dense(n, p, k, length=4.0).X
    if kind == "missing":
        X[rng.random(X.shape) < 0.02] = np.nan
    elif kind == "counts":
        profiles = np.exp(rng.standard_normal((k, p)))[rng.integers(k, size=n)]
        means = profiles * rng.uniform(0.2, 2, n)[:, None]
        X = rng.poisson(means).astype(np.float32)
    elif kind == "outliers":
        X[::50] = 60 * rng.standard_normal(X[::50].shape)

    return X


def options() -> Table:
    n = 120_000
    p = 200
    k = 10
    yield [f"Passes over {n:,} x {p:,}, {k} clusters"]
    yield ["option", "passes"]
    for name, (kind, parameters) in OPTIONS.items():
        model = IhSC(k, random_state=0, **parameters)
        yield [name, readings(sample(n, p, k, kind), model.fit)]


def count_writes() -> None:
    """Make the connections of this process count the bytes written to them."""
    from distributed.comm.tcp import TCP

    write = TCP.write
    TCP.written = 0

    async def counted(self: Any, *values: Any, **options: Any) -> int:
        n_bytes = await write(self, *values, **options)
        TCP.written += n_bytes
        return n_bytes

    TCP.write = counted


def written() -> int:
    from distributed.comm.tcp import TCP

    return TCP.written


def all_written(client: Any) -> int:
    workers = sum(client.run(written).values())
    return workers + client.run_on_scheduler(written) + written()


def on_cluster(path: Path, k: int, rows: int, client: Any) -> list[str]:
    """Return seconds, passes, MB sent, and MB that a worker adds to its rows."""
    from distributed import wait

    X = chunked(path, rows).persist()
    wait(X)
    client.run(measure.reset_peak)
    bytes_before = all_written(client)
    resident = client.run(measure.resident)
    data = as_matrix(X)

    start = time.perf_counter()
    IhSC(k, random_state=0).fit(data)
    seconds = time.perf_counter() - start

    peaks = client.run(measure.peak)
    megabytes_sent = (all_written(client) - bytes_before) / 1e6
    megabytes_grown = max(peaks[name] - resident[name] for name in peaks) / 1e6

    return [
        f"{seconds:.2f} s",
        f"{data.passes}",
        f"{megabytes_sent:,.3g}",
        f"{megabytes_grown:,.3g}",
    ]


def dask() -> Table:
    yield ["Two processes of dask"]
    yield ["n x p, K", "rows in a chunk", "time", "passes", "MB sent", "MB, worker"]
    count_writes()

    with tempfile.TemporaryDirectory() as folder, cluster(2, "4GB") as client:
        path = Path(folder) / "x.npy"
        client.run(count_writes)
        client.run_on_scheduler(count_writes)
        np.save(path, dense(20_000, 50, 3).X)
        on_cluster(path, 3, 10_000, client)  # workers import what they need

        for n, p, k, rows in CLUSTER:
            np.save(path, dense(n, p, k, length=4.0).X)
            cells = on_cluster(path, k, rows, client)
            yield [f"{n:,} x {p:,}, {k}", f"{rows:,}", *cells]


TABLES = {f.__name__: f for f in (sizes, options, dask)}


def main() -> None:
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["--process"]:
        return be_process(*json.loads(sys.argv[2]))
    parsed = arguments(__doc__, "scaling.md", TABLES).parse_args()
    parts = [markdown(TABLES[name]()) for name in parsed.names]
    publish(parsed, "\n".join([HEAD, *parts]))


if __name__ == "__main__":
    main()
