"""Count what a fit takes beside time: passes over the data, bytes sent, memory.

    python benchmarks/plan.py    # about two minutes; writes results/plan.md

- A cluster of dask, of two worker processes on this machine: every byte that any of its
  processes, the client or the scheduler writes to a connection.
- Passes of fits with options, over rows in blocks as they come from a memory map.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from measure import environment, markdown, peak, reset_peak, resident
from scaling import dense, in_blocks

from ihgmm import IhSC
from ihgmm.matrix import as_matrix

RESULTS = Path(__file__).parent / "results"
SIZES = [(120_000, 100, 10), (120_000, 200, 10), (240_000, 200, 50)]
"""Rows, features, clusters; as for a thousand million rows, n is over 512 p."""
PROCESSES, CHUNKS = 2, 8
NOTE = (
    "MB sent are all that is written to a connection in a fit, messages of the "
    "scheduler too; what passes it is written twice. If the machine is busy, the "
    "scheduler moves rows between workers too, and two runs differ by a factor of two. "
    "Memory is what a fit adds to a worker, which holds its rows; "
    "`benchmarks/on_client.py` has that of the client."
)
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


def sample(n: int, p: int, k: int, kind: str = "") -> np.ndarray:
    """Return rows of the model, or those that call for an option."""
    rng = np.random.default_rng(1)
    X = dense(n, p, k, np.empty((n, p), np.float32))
    if kind == "missing":
        X[rng.random(X.shape) < 0.02] = np.nan
    elif kind == "counts":
        profiles = np.exp(rng.standard_normal((k, p)))[rng.integers(k, size=n)]
        means = profiles * rng.uniform(0.2, 2, n)[:, None]
        X = rng.poisson(means).astype(np.float32)
    elif kind == "outliers":
        X[::50] = 60 * rng.standard_normal(X[::50].shape)
    return X


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


def on_cluster(X: np.ndarray, k: int, client: Any) -> list[str]:
    """Return passes, MB sent, and MB that a worker adds to its rows."""
    import dask.array as da
    from distributed import wait

    rows = da.from_array(X, chunks=(-(-len(X) // CHUNKS), -1)).persist()
    wait(rows)
    client.run(reset_peak)
    before = sum(client.run(written).values()) + written()
    held = client.run(resident)
    data = as_matrix(rows)
    IhSC(k, random_state=0).fit(data)
    most = client.run(peak)
    sent = sum(client.run(written).values()) + written() - before
    worker = max(most[name] - held[name] for name in most)
    return [f"{data.passes}", f"{sent / 1e6:,.3g}", f"{worker / 1e6:,.3g}"]


def cluster() -> list[list[str]]:
    from distributed import Client, LocalCluster

    head = ["n x p, K", "passes", "MB sent", "MB, worker"]
    table = [[f"{PROCESSES} processes of dask"], head]
    count_writes()
    options = {"threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(PROCESSES, **options) as local, Client(local) as client:
        client.run(count_writes)
        on_cluster(sample(20_000, 50, 3), 3, client)  # workers import what they need
        for n, p, k in SIZES:
            figures = on_cluster(sample(n, p, k), k, client)
            table.append([f"{n:,} x {p:,}, {k}", *figures])
    return table


def options() -> list[list[str]]:
    n, p, k = SIZES[1]
    table = [[f"Passes over {n:,} x {p:,}, {k} clusters"], ["", "passes"]]
    for name, (kind, given) in OPTIONS.items():
        rows = in_blocks(sample(n, p, k, kind))
        IhSC(k, random_state=0, **given).fit(rows)
        table.append([name, f"{rows.passes}"])
    return table


def main() -> None:
    text = "\n".join(markdown(table) for table in (cluster(), options()))
    packages = ("ihgmm", "numpy", "dask", "distributed")
    RESULTS.joinpath("plan.md").write_text(
        "# Passes, bytes and memory\n\n`python benchmarks/plan.py`; "
        f"{environment(packages)}.\n\n{NOTE}\n\n{text}",
        encoding="utf-8",
    )
    print(text)


if __name__ == "__main__":
    main()
