"""The command ``ihgmm plan``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ihgmm.cli._options import AsJson, Quiet
from ihgmm.cli._screen import Screen
from ihgmm.planning import Estimate, Machines, Plan, size
from ihgmm.planning import plan as planned
from ihgmm.planning.machines import GB

__all__ = ["plan"]

USUAL = Machines()


def plan(
    n: Annotated[str, typer.Option("--n", help="Number of rows, such as 1e9.")],
    p: Annotated[str, typer.Option("--p", help="Number of features, such as 2_000.")],
    n_clusters: Annotated[
        str, typer.Option("-k", "--n-clusters", help="Number of clusters.")
    ],
    density: Annotated[
        float | None,
        typer.Option(help="Share of entries that are not zero, for sparse data."),
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="Type of the numbers: float32, float64.")
    ] = "float32",
    memory: Annotated[
        float, typer.Option(help="GB of memory of the laptop.")
    ] = USUAL.memory / GB,
    cores: Annotated[
        int, typer.Option(help="Cores of the laptop and of each worker.")
    ] = USUAL.cores,
    disk: Annotated[
        float,
        typer.Option(help="GB a second that the laptop and each worker read."),
    ] = USUAL.disk / GB,
    gpu_memory: Annotated[
        float, typer.Option(help="GB of memory of the GPU.")
    ] = USUAL.gpu_memory / GB,
    workers: Annotated[
        int, typer.Option(help="Workers of the cluster.")
    ] = USUAL.workers,
    worker_memory: Annotated[
        float, typer.Option(help="GB of memory of the client and of each worker.")
    ] = USUAL.worker_memory / GB,
    network: Annotated[
        float, typer.Option(help="GB a second between client and cluster.")
    ] = USUAL.network / GB,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Tell what a fit will take on a laptop, on one GPU and on a cluster.

    [bold]Examples[/]

      ihgmm plan --n 1e9 --p 2000 -k 50

      ihgmm plan --n 2e6 --p 30_000 -k 40 --density 0.05 --memory 64

      ihgmm plan --n 1e8 --p 500 -k 20 --workers 50 --json
    """
    found = planned(
        _whole("--n", n),
        _whole("--p", p),
        _whole("-k", n_clusters),
        density=density,
        dtype=dtype,
        machines=Machines(
            memory=memory * GB,
            cores=cores,
            disk=disk * GB,
            gpu_memory=gpu_memory * GB,
            workers=workers,
            worker_memory=worker_memory * GB,
            network=network * GB,
        ),
    )
    screen = Screen(as_json=as_json, quiet=quiet)
    screen.document({"command": "plan", **asdict(found)})
    _show(screen, found)


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


def _show(screen: Screen, found: Plan) -> None:
    """Print the plan as a table, what it rests on, and what to do."""
    kind = "" if found.density is None else f"sparse ({found.density:.3g}) "
    screen.say(
        f"{found.n_samples:,} x {found.n_features:,} {kind}{found.dtype}, "
        f"{found.n_clusters:,} clusters: {size(found.data_bytes)}",
        "bold",
    )
    estimates = (found.laptop, found.gpu, found.cluster)
    screen.grid(
        ("", "laptop", "one GPU", "cluster"),
        [(name, *(cell(estimate) for estimate in estimates)) for name, cell in ROWS],
    )
    for name, estimate in zip(("laptop", "one GPU", "cluster"), estimates, strict=True):
        if estimate.note:
            style = "yellow" if not estimate.fits else ""
            text = f"{name}: {estimate.note}"
            if estimate.sample_seconds is not None:
                text += f" Together about {_time(estimate.sample_seconds)}."
            screen.say(text, style)
    m = found.machines
    screen.say(
        f"Taken for granted: laptop {m.cores} cores, {size(m.memory)}, reads "
        f"{size(m.disk)}/s; GPU like an H200, {size(m.gpu_memory)}, data already "
        f"there; cluster {m.workers:,} workers of {m.cores} cores and "
        f"{size(m.worker_memory)}, a client of {size(m.worker_memory)}, network "
        f"{size(m.network)}/s. The bound is a solver that gives up. Times where "
        "memory does not suffice are what they would be if it did. On one machine "
        "measured times were within a factor of 1.5; those of a cluster, of more "
        "cores than two and of a GPU beyond fifty clusters are extrapolated.",
        "dim",
    )


def _time(seconds: float) -> str:
    """Return a time for people to read."""
    if seconds < 1:
        return f"{seconds:.1g} s"
    for unit, name, upto in ((1, "s", 100), (60, "min", 100), (3600, "hours", 72)):
        if seconds < upto * unit:
            return f"{seconds / unit:.2g} {name}"
    return f"{seconds / 86400:,.3g} days"


def _maybe(bytes_: float | None) -> str:
    return "-" if bytes_ is None else size(bytes_)


def _fits(estimate: Estimate) -> str:
    return "yes" if estimate.fits else "no"


ROWS = (
    ("data", lambda e: e.data),
    ("fits", _fits),
    ("time", lambda e: _time(e.seconds)),
    ("  bound", lambda e: _time(e.seconds_bound)),
    ("passes", lambda e: f"{e.passes}"),
    ("  bound", lambda e: f"{e.passes_bound}"),
    ("memory", lambda e: size(e.memory)),
    ("  bound", lambda e: size(e.memory_bound)),
    ("each worker", lambda e: _maybe(e.worker_memory)),
    ("traffic", lambda e: _maybe(e.traffic)),
    ("  bound", lambda e: _maybe(e.traffic_bound)),
)
