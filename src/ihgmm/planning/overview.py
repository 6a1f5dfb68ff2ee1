"""The plan of a fit: what it takes on a laptop, on a GPU and on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ihgmm._checks.parameters import check_count, check_number
from ihgmm.planning import words
from ihgmm.planning.counts import Problem
from ihgmm.planning.estimates import Estimate, on_cluster, on_gpu, on_laptop
from ihgmm.planning.machines import Machines

__all__ = ["Plan", "plan"]


@dataclass(frozen=True, repr=False)
class Plan:
    """What a fit of IhSC takes, by kind of machine.

    Print it for a table, what to do, and what was taken for granted.

    Attributes
    ----------
    n_samples, n_features, n_clusters : int
        The sizes.
    density : float or None
        Share of entries stored, of sparse data.
    dtype : str
        "float32" or "float64".
    data_bytes : float
        Bytes of the data.
    machines : Machines
        What the machines were taken to be.
    laptop, gpu, cluster : Estimate
        Memory, traffic, time, and what to do where it does not fit.
    """

    n_samples: int
    n_features: int
    n_clusters: int
    density: float | None
    dtype: str
    data_bytes: float
    machines: Machines
    laptop: Estimate
    gpu: Estimate
    cluster: Estimate

    def __repr__(self) -> str:
        fits = ", ".join(
            f"{name} {'fits' if estimate.fits else 'does not fit'}"
            for name, estimate in zip(
                words.MACHINES[1:], (self.laptop, self.gpu, self.cluster), strict=True
            )
        )
        return f"<Plan {words.heading(self)}; {fits}>"

    def __str__(self) -> str:
        rows = [words.MACHINES, *words.table(self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        notes = [text for text, _ in words.notes(self)]
        return "\n".join([words.heading(self), *lines, *notes, words.assumptions(self)])


def plan(
    n_samples: int,
    n_features: int,
    n_clusters: int,
    *,
    density: float | None = None,
    dtype: Any = np.float32,
    machines: Machines | None = None,
) -> Plan:
    """Tell what ``IhSC(n_clusters).fit(X)`` will take, before there is an X.

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
        The sizes.
    density : float, optional
        Share of the entries that are not zero, for sparse data; dense by default.
    dtype : {"float32", "float64"} or numpy.dtype
        Type of the numbers.
    machines : Machines, optional
        Memory, cores, bandwidths and number of workers.

    Returns
    -------
    Plan

    Notes
    -----
    Passes, products, memory and traffic are counted from the algorithm; time comes
    from a few rates that were fitted to measured runs, see :mod:`ihgmm.planning.rates`.
    The expected case is that of clusters which a sample of the rows shows; the bound is
    that of a solver which gives up after 100 products. Times are for float32; float64
    is taken to need twice as long for all that goes through memory or is multiplied.

    Examples
    --------
    >>> from ihgmm.planning import plan
    >>> found = plan(10_000_000, 1_000, 10)
    >>> found.laptop.fits, found.laptop.data, found.laptop.passes
    (True, 'on disk, in blocks', 3)
    >>> found.gpu.fits
    True
    >>> large = plan(10**9, 2_000, 50)
    >>> large.gpu.fits, large.laptop.fits
    (False, False)
    """
    n = _count("n_samples", n_samples)
    p = _count("n_features", n_features)
    if isinstance(n_clusters, str) and n_clusters == "auto":
        raise ValueError(
            "n_clusters='auto' is found from data, of which a plan has none; give the "
            "most you expect."
        )
    k = _count("n_clusters", n_clusters)
    if k > n:
        raise ValueError(
            f"n_clusters={k} is more than n_samples={n}; ask for fewer clusters."
        )
    if density is not None:
        density = check_number("density", density, above=0, most=1)
    kind = _float(dtype)
    problem = Problem(n, p, k, density, kind.itemsize)
    machines = _machines(machines)
    return Plan(
        n_samples=n,
        n_features=p,
        n_clusters=k,
        density=density,
        dtype=kind.name,
        data_bytes=problem.data_bytes,
        machines=machines,
        laptop=on_laptop(problem, machines),
        gpu=on_gpu(problem, machines),
        cluster=on_cluster(problem, machines),
    )


def _machines(machines: Any) -> Machines:
    """Return the machines to plan for, the usual ones if none are given."""
    if machines is None:
        return Machines()
    if not isinstance(machines, Machines):
        raise TypeError(
            f"machines={machines!r} is a {type(machines).__name__}; give "
            "ihgmm.planning.Machines(memory=64e9, workers=50), in bytes."
        )
    return machines


def _float(dtype: Any) -> np.dtype:
    """Return float32 or float64, or say that it must be one of them."""
    for kind in (np.float32, np.float64):
        if dtype in (kind, kind.__name__, np.dtype(kind)):
            return np.dtype(kind)
    raise ValueError(f"dtype={dtype!r} is not known; give float32 or float64.")


def _count(name: str, value: Any) -> int:
    """Return a whole number, also if it is written as 1e9."""
    whole = isinstance(value, float) and value.is_integer()
    return check_count(name, int(value) if whole else value)
