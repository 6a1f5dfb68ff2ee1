"""Count what a fit on several workers takes, beside what ``ihgmm.planning`` says.

    python benchmarks/plan.py    # about two minutes; writes results/plan.md

Three tables, each at sizes that one machine holds, then what the plan says of a
thousand million rows.

- Eight workers, simulated: rows in eight shares, in one process. What is sent to a
  share and what comes back is counted where the solver asks for it. What has a line for
  each row of the share stays there.
- A cluster of dask, of two worker processes on this machine: every byte that any of its
  processes, the client or the scheduler writes to a connection.
- Passes of fits with options that the plan does not count.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from measure import environment, markdown, peak, reset_peak, resident
from scaling import dense

from ihgmm import IhSC
from ihgmm.matrix import Matrix, as_matrix
from ihgmm.matrix.base import ask, parts_of, sum_of
from ihgmm.matrix.memory import Dense
from ihgmm.numerics.labels import sample_positions
from ihgmm.planning import plan, size, workers_table

RESULTS = Path(__file__).parent / "results"
SIZES = [(120_000, 100, 10), (120_000, 200, 10), (240_000, 200, 50)]
"""Rows, features, clusters; as for a thousand million rows, n is over 512 p."""
SHARES, PROCESSES, CHUNKS = 8, 2, 8
NOTE = (
    "MB are those of all that is sent in a fit. Simulated: blocks to each worker, sums "
    "from each, samples of rows, and the rows of the embedding that k-means learns "
    "from; small sums over these are not counted. On dask: all that is written to a "
    "connection, messages of the scheduler too; what passes it is written twice. What "
    "is far beyond the plan are arrays with a line for each row, which were sent. "
    "Memory of a worker is what a fit adds to its rows."
)


class Shares(Matrix):
    """Rows of an array in shares, as if each were with a worker of its own."""

    streamed = True
    on_host = False

    def __init__(self, X: np.ndarray, count: int) -> None:
        self.X, self.shape, self.dtype = X, X.shape, X.dtype
        ends = np.linspace(0, len(X), count + 1).astype(int).tolist()
        self.row_blocks = [slice(*edge) for edge in pairwise(ends)]
        self.sent = self.summed = self.sampled = 0  # bytes: to, from shares, of rows

    def map(self, work: Callable[..., Any], *tall: Any) -> Iterator[Any]:
        self.passes += 1
        order = len(pickle.dumps(work, protocol=5))
        for rows in self.row_blocks:
            found = work(Dense(self.X[rows]), *parts_of(tall, rows))
            self.sent += order
            self.summed += small_bytes(found, rows.stop - rows.start)
            yield found

    def __matmul__(self, W: Any) -> np.ndarray:
        return np.concatenate(list(self.map(ask("__matmul__", self.cast(W)))))

    def adjoint(self, V: Any) -> np.ndarray:
        return np.asarray(sum_of(self.map(ask("adjoint"), self.cast(V))))

    def product_and_adjoint(
        self, W: Any, minus: Any = None, row_scale: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        work = ask("product_and_adjoint", self.cast(W))
        parts, sums = zip(*self.map(work, minus, row_scale), strict=True)
        return np.concatenate(parts), sum_of(iter(sums))

    def take(self, rows: Any) -> Dense:
        few = self.X[rows]
        self.sampled += few.nbytes
        return Dense(few)


def small_bytes(found: Any, n_rows: int) -> int:
    """Return the bytes of what a share sends: all but arrays with a line a row."""
    if isinstance(found, (tuple, list)):
        return sum(small_bytes(part, n_rows) for part in found)
    shape = np.shape(found)
    return 0 if shape and shape[0] == n_rows else np.asarray(found).nbytes


def simulated(X: np.ndarray, k: int) -> tuple[int, float]:
    """Return passes and bytes of a fit in eight shares."""
    shares = Shares(X, SHARES)
    IhSC(k, random_state=0).fit(shares)
    learnt = sample_positions(len(X), k, np.random.default_rng(0))
    shares.sampled += X.itemsize * k * (len(X) if learnt is None else len(learnt))
    return shares.passes, shares.sent + shares.summed + shares.sampled


def count_writes() -> None:
    """Make the connections of this process count the bytes written to them."""
    from distributed.comm.tcp import TCP

    write, TCP.written = TCP.write, 0

    async def counted(self: Any, *given: Any, **options: Any) -> int:
        n_bytes = await write(self, *given, **options)
        TCP.written += n_bytes
        return n_bytes

    TCP.write = counted


def written() -> int:
    from distributed.comm.tcp import TCP

    return TCP.written


def on_cluster(X: np.ndarray, k: int, client: Any) -> dict[str, float]:
    """Return what a fit takes on worker processes of one thread, rows with them."""
    import dask.array as da
    from distributed import wait

    rows = da.from_array(X, chunks=(-(-len(X) // CHUNKS), -1)).persist()
    wait(rows)
    client.run(reset_peak)
    reset_peak()
    before = sum(client.run(written).values()) + written()
    held, own = client.run(resident), resident()
    data = as_matrix(rows)
    IhSC(k, random_state=0).fit(data)
    most = client.run(peak)
    return {
        "passes": data.passes,
        "bytes": sum(client.run(written).values()) + written() - before,
        "worker": max(most[name] - held[name] for name in most),
        "client": peak() - own,
    }


def rows_with(option: str, n: int, p: int, k: int) -> np.ndarray:
    """Return data that call for an option: gaps, counts, or rows in no cluster."""
    rng = np.random.default_rng(1)
    X = dense(n, p, k, np.empty((n, p), np.float32))
    if option == "missing":
        X[rng.random(X.shape) < 0.02] = np.nan
    elif option == "counts":
        profiles = np.exp(rng.standard_normal((k, p)))[rng.integers(k, size=n)]
        means = profiles * rng.uniform(0.2, 2, n)[:, None]
        X = rng.poisson(means).astype(np.float32)
    elif option == "outliers":
        X[::50] = 60 * rng.standard_normal(X[::50].shape)
    return X


OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "no option": ("", {}),
    'whiten="learned"': ("", {"whiten": "learned"}),
    "counts": ("counts", {}),
    'counts, whiten="counts"': ("counts", {"whiten": "counts"}),
    '2% of cells missing, missing="fit"': ("missing", {"missing": "fit"}),
    'outliers="auto", none planted': ("", {"outliers": "auto"}),
    'outliers="auto", 2% planted': ("outliers", {"outliers": "auto"}),
    "refine=True": ("", {"refine": True}),
}
"""What to fit, and by which options."""

LARGE = {
    "64 workers of 96 GB": {"workers": 64, "worker_memory": 96e9},
    "8 GPUs of 141 GB": {
        "workers": 8, "worker_memory": 141e9, "network": 50e9, "reading": 50e9,
    },
}  # fmt: skip
"""A cluster with disks and 10 Gbit/s; GPUs that get their rows over the bus."""


def numbers(*given: float) -> list[str]:
    return [f"{value / 1e6:,.3g}" for value in given]


def named(n: int, p: int, k: int) -> str:
    return f"{n:,} x {p:,}, {k}"


def simulation() -> list[list[str]]:
    head = ["n x p, K", "passes", "planned", "MB", "planned"]
    table = [[f"{SHARES} workers, simulated"], head]
    for n, p, k in SIZES:
        X = dense(n, p, k, np.empty((n, p), np.float32))
        made = plan(n, p, k, workers=SHARES)
        passes, moved = simulated(X, k)
        expected = f"{made.needs['on disk'].passes}"
        row = [f"{passes}", expected, *numbers(moved, made.workers.traffic)]
        table.append([named(n, p, k), *row])
    return table


def cluster() -> list[list[str]]:
    from distributed import Client, LocalCluster

    head = ["n x p, K", "passes", "planned", "MB", "planned"]
    head += ["worker, MB", "planned", "client, MB", "planned"]
    table = [[f"{PROCESSES} processes of dask"], head]
    count_writes()
    options = {"threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(PROCESSES, **options) as local, Client(local) as client:
        client.run(count_writes)
        # Workers import what they need.
        on_cluster(dense(20_000, 50, 3, np.empty((20_000, 50), np.float32)), 3, client)
        for n, p, k in SIZES:
            X = dense(n, p, k, np.empty((n, p), np.float32))
            found = on_cluster(X, k, client)
            made = plan(n, p, k, workers=PROCESSES)
            process = 2.1e8  # what the plan takes for a process without data
            row = numbers(found["bytes"], made.workers.traffic)
            row += numbers(found["worker"], made.workers.streamed - process)
            row += numbers(found["client"], made.needs["on dask"].memory - process)
            passes = [f"{found['passes']}", f"{made.needs['on dask'].passes}"]
            table.append([named(n, p, k), *passes, *row])
    return table


def options() -> list[list[str]]:
    n, p, k = SIZES[1]
    table = [[f"Passes over {named(n, p, k)}, in shares"], ["", "passes"]]
    for name, (kind, given) in OPTIONS.items():
        shares = Shares(rows_with(kind, n, p, k), SHARES)
        IhSC(k, random_state=0, **given).fit(shares)
        table.append([name, f"{shares.passes}"])
    return table


def large() -> list[list[str]]:
    head = ["", "rows of each", "memory, rows held", "rows read anew", "passes"]
    head += ["network", "at most", "time at least", "client"]
    table = [["1,000,000,000 x 1,000 float32 (4 TB), planned"], head]
    for name, machines in LARGE.items():
        for k in (10, 50):
            made = plan(10**9, 1_000, k, **machines)
            (_, *cells) = (value for _, value in workers_table(made.workers))
            need = made.needs["on dask"]
            cells.insert(3, f"{need.passes}")
            table.append([f"{name}, K = {k}", *cells, size(need.memory)])
    return table


def main() -> None:
    tables = [simulation(), cluster(), options(), large()]
    text = "\n".join(markdown(table) for table in tables)
    packages = ("ihgmm", "numpy", "dask", "distributed")
    RESULTS.joinpath("plan.md").write_text(
        "# The plan, checked\n\n`python benchmarks/plan.py`; "
        f"{environment(packages)}.\n\n{NOTE}\n\n{text}",
        encoding="utf-8",
    )
    print(text)


if __name__ == "__main__":
    main()
