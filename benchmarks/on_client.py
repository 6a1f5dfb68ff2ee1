"""How much memory a client needs while workers of a dask cluster do the work.

The scheduler and three workers are processes of their own. Data come to be on the
workers; the table shows by how much the memory of the client grows, at most, and which
share of the data that is::

    python benchmarks/on_client.py --megabytes 800
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from measure import measured

from ihgmm import IhGMM, IhSC, Recipe, select_n_clusters

P, K, ROWS = 500, 4, 25_000


def block(number: np.ndarray, rows: int) -> np.ndarray:
    """Return rows of K clusters; they differ between blocks, the centres do not."""
    rng = np.random.default_rng(int(number[0, 0]))
    centers = np.random.default_rng(99).standard_normal((K, P), dtype=np.float32)
    scales = rng.uniform(1, 4, (rows, 1)).astype(np.float32)
    own = centers[rng.integers(K, size=rows)] * scales
    return own + 2 * rng.standard_normal((rows, P), dtype=np.float32)


def data(n_blocks: int, rows: int) -> Any:
    import dask.array as da
    from distributed import wait

    numbers = da.arange(n_blocks, chunks=1)[:, None]
    shape = ((rows,) * n_blocks, P)
    X = numbers.map_blocks(block, rows=rows, chunks=shape, dtype=np.float32).persist()
    wait(X)
    return X


def transform(X: Any) -> Any:
    model = IhSC(K, recipe=Recipe(gram="hollow"), random_state=0).fit(X)
    return model.transform(X).persist()


WORK: dict[str, Callable[[Any], Any]] = {
    "IhSC": lambda X: IhSC(K, random_state=0).fit(X),
    "IhSC and transform": transform,
    "IhGMM": lambda X: IhGMM(K, random_state=0).fit(X),
    "select_n_clusters": lambda X: select_n_clusters(X, random_state=0),
}


@contextmanager
def cluster() -> Iterator[str]:
    """Start a scheduler and three workers; yield the file that says where they are."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "scheduler.json")
        dask = [sys.executable, "-m", "dask"]
        where = ["--scheduler-file", file, "--host", "127.0.0.1"]
        local = ["--local-directory", folder, "--no-dashboard"]
        commands = [
            [*dask, "scheduler", *where, "--port", "0", "--dashboard-address", ":0"],
            [*dask, "worker", *where, "--nworkers", "3", "--nthreads", "1", *local],
        ]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        running = [subprocess.Popen(command, **silent) for command in commands]
        try:
            yield file
        finally:
            for process in running[::-1]:
                process.terminate()
                process.wait()


def main() -> None:
    from distributed import Client

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=800)
    n_blocks = -(-parser.parse_args().megabytes * 10**6 // (ROWS * P * 4))
    warnings.simplefilter("ignore")
    with cluster() as file, Client(scheduler_file=file, timeout=60) as client:
        client.wait_for_workers(3, timeout=60)
        small, X = data(3, 400), data(n_blocks, ROWS)
        print(f"{X.shape[0]:,} x {P}, float32: {X.nbytes / 1e6:.0f} MB")
        for name, work in WORK.items():
            work(small)  # all that is needed is imported
            figures, _ = measured(lambda work=work: work(X))
            grown = (figures["peak"] - figures["before"]) * 1e9
            print(
                f"{name:<20}{figures['seconds']:6.1f} s, client "
                f"{grown / 1e6:+6.1f} MB, {grown / X.nbytes:.2%} of the data",
                flush=True,
            )


if __name__ == "__main__":
    main()
