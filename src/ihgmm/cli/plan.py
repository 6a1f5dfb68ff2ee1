"""The command ``ihgmm plan``."""

from __future__ import annotations

from dataclasses import asdict

from ihgmm import planning
from ihgmm._text import plan_advice, plan_heading, plan_table, workers_table
from ihgmm.cli.options import option
from ihgmm.cli.screen import Screen


def plan(
    *,
    n: str = option("Number of rows, such as 1e9.", ..., "--n"),
    p: str = option("Number of features, such as 2_000.", ..., "--p"),
    n_clusters: str = option("Number of clusters.", ..., "-k --n-clusters"),
    density: float | None = option(
        "Share of entries that are not zero, for sparse data."
    ),
    dtype: str = option("Type of the numbers: float32, float64.", "float32"),
    memory: float = option("GB of memory of the machine, or of dask's client.", 16),
    gpu_memory: float = option("GB of memory of the GPU.", 141),
    workers: int | None = option(
        "Number of workers of a dask cluster, or of GPUs with a worker each."
    ),
    worker_memory: float = option("GB of memory of each worker, or its GPU.", 64),
    network: float = option("GB a second between a worker and the others.", 1.25),
    reading: float = option(
        "GB a second at which a worker goes through its rows.", 1.2
    ),
    screen: Screen,
) -> None:
    """Say how often a fit will read the data, and how much memory it needs.

    [bold]Examples[/]

      ihgmm plan --n 1e9 --p 2000 -k 50

      ihgmm plan --n 2e6 --p 30_000 -k 40 --density 0.05 --memory 64

      ihgmm plan --n 1e9 --p 1000 -k 10 --workers 64 --worker-memory 96
    """
    if n_clusters == "auto":
        raise ValueError(
            "-k auto: the number is found from data, of which a plan has none; give "
            "the most you expect, such as -k 50."
        )
    sizes = _whole("--n", n), _whole("--p", p), _whole("-k", n_clusters)
    made = planning.plan(
        *sizes,
        density=density,
        dtype=dtype,
        memory=_bytes("--memory", memory),
        gpu_memory=_bytes("--gpu-memory", gpu_memory),
        workers=workers,
        worker_memory=_bytes("--worker-memory", worker_memory),
        network=_bytes("--network", network),
        reading=_bytes("--reading", reading),
    )
    screen.document("plan", asdict(made))
    screen.say(plan_heading(made), "bold")
    tables = [plan_table(made)]
    if made.workers is not None:
        tables.append(workers_table(made.workers))
    for head, *rows in tables:
        screen.table(dict.fromkeys(head, ""), rows)
    for sentence in plan_advice(made):
        screen.say(sentence)


def _whole(option: str, text: str) -> int:
    """Return a whole number from 1 on, also if it is written as 1e9 or 2_000."""
    try:
        value = float(text)
        if value >= 1 and value == int(value):
            # All digits, where they are given: a float has sixteen.
            return int(text) if text.replace("_", "").isdecimal() else int(value)
    except (ValueError, OverflowError):
        pass
    raise ValueError(
        f"{option} {text}: give a whole number from 1 on, such as 2000, 2_000 or 1e9."
    )


def _bytes(option: str, gigabytes: float) -> float:
    if not 0.001 <= gigabytes < float("inf"):
        raise ValueError(
            f"{option} {gigabytes:g}: give a number of GB from 0.001 on, such as 16."
        )
    return gigabytes * 1e9
