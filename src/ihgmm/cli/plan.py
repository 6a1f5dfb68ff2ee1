"""The command ``ihgmm plan``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ihgmm import planning
from ihgmm.cli.options import (
    DATA_TEXT,
    LAYER,
    N_CLUSTERS,
    N_FEATURES,
    N_SAMPLES,
    SHEET,
    argument,
    option,
)
from ihgmm.cli.screen import Screen
from ihgmm.cli.spelling import in_shell
from ihgmm.cli.tables.memory import free_memory
from ihgmm.cli.tables.reading import open_table
from ihgmm.cli.tables.table import Request
from ihgmm.cli.tables.totals import leave_out_total_columns
from ihgmm.matrix import as_matrix
from ihgmm.planning import (
    PLAN_WORDS,
    plan_advice,
    plan_heading,
    plan_table,
    workers_table,
)


@dataclass(frozen=True)
class Shape:
    """The options that say how large the data are, where no file does."""

    n_samples: str | None = option("Number of rows, such as 1e9.", names=N_SAMPLES)
    n_features: str | None = option(
        "Number of features, such as 2_000.", names=N_FEATURES
    )
    density: float | None = option(
        "Share of entries that are not zero, for sparse data."
    )
    dtype: str | None = option(
        "Type of the numbers: float32, float64. Default: that of DATA, or float32."
    )
    layer: str | None = LAYER
    sheet: str | None = SHEET

    def facts(self, data: str | None, screen: Screen) -> dict[str, Any]:
        """Return what a plan has to know about the data."""
        given = {key: value for key, value in asdict(self).items() if value is not None}
        parts = {part: given.pop(part) for part in ("layer", "sheet") if part in given}
        for part, name in parts.items() if data is None else ():
            raise ValueError(f"--{part} {name}: there is no DATA to have {part}s.")
        if data is None:
            for key, text in (("n_samples", "-n"), ("n_features", "-p")):
                if key not in given:
                    raise ValueError(f"Give DATA, or its shape: {text} is missing.")
                given[key] = _whole(text, given[key])
            return given
        for key in ("n_samples", "n_features", "density"):
            if key in given:
                raise ValueError(
                    f"--{key.replace('_', '-')}: {data} has its own; leave one out."
                )
        with screen.working(f"looking at {data}"):
            # No more memory than none: what can stay on disk does.
            request = Request(data, **parts)
            table = leave_out_total_columns(open_table(request, memory=0), request)
        X = as_matrix(table.X)
        n, p = X.shape
        found = {"n_samples": n, "n_features": p, "dtype": str(X.dtype)}
        if table.is_sparse:
            found["density"] = X.n_entries / (n * p)
        return found | given


def plan(
    *,
    data: str | None = argument(
        "[DATA]", f"What to plan for, unless -n and -p say. {DATA_TEXT}", default=None
    ),
    shape: Shape,
    n_clusters: str = option(
        "Number of clusters; by default 50, the most that -k auto looks for.",
        "50",
        N_CLUSTERS,
    ),
    machine_memory: float | None = option(
        "GB of memory of the machine, or of dask's client. Default: with DATA what is "
        "free here, else 16."
    ),
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

    Of a Parquet, H5AD or NPY file nothing but its shape is read; in a CSV or TSV file
    lines are counted. Other files are read.

    [bold]Examples[/]

      ihgmm plan cells.h5ad -k 20

      ihgmm plan -n 1e9 -p 2000 -k 50

      ihgmm plan -n 2e6 -p 30_000 -k 40 --density 0.05 --machine-memory 64

      ihgmm plan -n 1e9 -p 1000 -k 10 --workers 64 --worker-memory 96
    """
    k = 50 if n_clusters == "auto" else _whole("-k", n_clusters)
    memory = machine_memory
    if memory is None:
        memory = 16 if data is None else free_memory() / 1e9
    made = planning.plan(
        n_clusters=k,
        **shape.facts(data, screen),
        memory=_bytes("--machine-memory", memory),
        gpu_memory=_bytes("--gpu-memory", gpu_memory),
        workers=workers,
        worker_memory=_bytes("--worker-memory", worker_memory),
        network=_bytes("--network", network),
        reading=_bytes("--reading", reading),
    )
    screen.document("plan", {"data": data, **asdict(made)})
    heading = plan_heading(made)
    screen.say(heading if data is None else f"{data}: {heading}", "bold")
    tables = [plan_table(made)]
    if made.workers is not None:
        tables.append(workers_table(made.workers))
    for head, *rows in tables:
        screen.table(dict.fromkeys(head, ""), rows)
    screen.explain(PLAN_WORDS)
    for sentence in plan_advice(made):
        screen.say(in_shell(sentence))


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
