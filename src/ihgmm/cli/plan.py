"""The command ``ihgmm plan``."""

from __future__ import annotations

from dataclasses import asdict

from ihgmm import planning
from ihgmm.cli.options import option
from ihgmm.cli.screen import Screen
from ihgmm.planning import Machines, words
from ihgmm.planning.machines import GB

USUAL = Machines()


def plan(
    *,
    n: str = option(..., "Number of rows, such as 1e9.", "--n"),
    p: str = option(..., "Number of features, such as 2_000.", "--p"),
    n_clusters: str = option(..., "Number of clusters.", "-k --n-clusters"),
    density: float | None = option(
        None, "Share of entries that are not zero, for sparse data."
    ),
    dtype: str = option("float32", "Type of the numbers: float32, float64."),
    memory: float = option(USUAL.memory / GB, "GB of memory of the laptop."),
    cores: int = option(USUAL.cores, "Cores of the laptop and of each worker."),
    disk: float = option(
        USUAL.disk / GB, "GB a second that the laptop and each worker read."
    ),
    gpu_memory: float = option(USUAL.gpu_memory / GB, "GB of memory of the GPU."),
    workers: int = option(USUAL.workers, "Workers of the cluster."),
    worker_memory: float = option(
        USUAL.worker_memory / GB, "GB of memory of the client and of each worker."
    ),
    network: float = option(
        USUAL.network / GB, "GB a second between client and cluster."
    ),
    screen: Screen,
) -> None:
    """Tell what a fit will take on a laptop, on one GPU and on a cluster.

    [bold]Examples[/]

      ihgmm plan --n 1e9 --p 2000 -k 50

      ihgmm plan --n 2e6 --p 30_000 -k 40 --density 0.05 --memory 64

      ihgmm plan --n 1e8 --p 500 -k 20 --workers 50 --json
    """
    result = planning.plan(
        _whole("--n", n),
        _whole("--p", p),
        _clusters(n_clusters),
        density=density,
        dtype=dtype,
        machines=Machines(
            memory=_bytes("--memory", memory),
            cores=cores,
            disk=_bytes("--disk", disk),
            gpu_memory=_bytes("--gpu-memory", gpu_memory),
            workers=workers,
            worker_memory=_bytes("--worker-memory", worker_memory),
            network=_bytes("--network", network),
        ),
    )
    screen.document({"command": "plan", **asdict(result)})
    screen.say(words.heading(result), "bold")
    screen.table(dict.fromkeys(words.MACHINES, ""), words.table(result))
    for text, fits in words.notes(result):
        screen.say(text, "" if fits else "yellow")
    screen.say(words.assumptions(result), "dim")


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


def _clusters(text: str) -> int:
    if text == "auto":
        raise ValueError(
            "-k auto: the number is found from data, of which a plan has none; give "
            "the most you expect, such as -k 50."
        )
    return _whole("-k", text)


def _bytes(option: str, gigabytes: float) -> float:
    if not 0.001 <= gigabytes < float("inf"):
        raise ValueError(
            f"{option} {gigabytes:g}: give a number of GB from 0.001 on, such as 16."
        )
    return gigabytes * GB
