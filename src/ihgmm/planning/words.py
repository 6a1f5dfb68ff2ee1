"""A plan in words: a table, what to do, and what was taken for granted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ihgmm.planning.estimates import Estimate, size

if TYPE_CHECKING:
    from ihgmm.planning.overview import Plan

__all__ = ["MACHINES", "assumptions", "heading", "notes", "table"]

MACHINES = ("", "laptop", "one GPU", "cluster")
"""The heads of the table."""


def heading(plan: Plan) -> str:
    """Return what is to be fitted."""
    kind = "" if plan.density is None else f"sparse ({plan.density:.3g}) "
    return (
        f"{plan.n_samples:,} x {plan.n_features:,} {kind}{plan.dtype}, "
        f"{plan.n_clusters:,} clusters: {size(plan.data_bytes)}"
    )


def table(plan: Plan) -> list[tuple[str, ...]]:
    """Return the figures, a row for each, a column for each kind of machine."""
    estimates = (plan.laptop, plan.gpu, plan.cluster)
    return [(name, *(cell(estimate) for estimate in estimates)) for name, cell in ROWS]


def notes(plan: Plan) -> list[tuple[str, bool]]:
    """Return what to mind and what to do, and whether it is about a fit with room."""
    found = []
    estimates = (plan.laptop, plan.gpu, plan.cluster)
    for name, estimate in zip(MACHINES[1:], estimates, strict=True):
        if estimate.note:
            text = f"{name}: {estimate.note}"
            if estimate.sample_seconds is not None:
                text += f" Together about {_time(estimate.sample_seconds)}."
            found.append((text, estimate.fits))
    return found


def assumptions(plan: Plan) -> str:
    """Return what the figures rest on."""
    m = plan.machines
    return (
        f"Taken for granted: laptop {m.cores} cores, {size(m.memory)}, reads "
        f"{size(m.disk)}/s; GPU like an H200, {size(m.gpu_memory)}, data already "
        f"there; cluster {m.workers:,} workers of {m.cores} cores and "
        f"{size(m.worker_memory)}, a client of {size(m.worker_memory)}, network "
        f"{size(m.network)}/s. The bound is a solver that gives up. Times where "
        "memory does not suffice are what they would be if it did. On one machine "
        "measured times were within a factor of 1.5; those of a cluster, of more "
        "cores than two and of a GPU beyond fifty clusters are extrapolated."
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
