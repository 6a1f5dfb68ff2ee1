"""What a fit will take: passes over the data and memory, before there are data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ihgmm._checks import check_choice, check_count, check_number, check_row_count
from ihgmm._text import plan_advice, plan_heading, plan_table, size
from ihgmm.matrix.stored import Stored
from ihgmm.numerics.eigen import may_accept_start, sample_size
from ihgmm.numerics.krylov import MAX_PRODUCTS, block_width, most_blocks
from ihgmm.numerics.spectral import direction_counts, free_directions

__all__ = ["Need", "Plan", "plan", "size"]


@dataclass(frozen=True)
class Need:
    """What a fit takes where the data are in one place.

    Attributes
    ----------
    passes, passes_bound : int
        Times the data are gone through: expected, and when the solver gives up.
    memory, memory_bound : float
        Bytes that the process needs, on a GPU those on the device; with the data,
        where they are in memory or on the device. Expected, and with all the blocks of
        vectors that the solver keeps when it takes many products.
    fits : bool
        Whether the expected memory is there.
    sample_rows : int or None
        If not: the largest sample of the rows whose fit has room; None if that is too
        few for a fit.
    """

    passes: int
    passes_bound: int
    memory: float
    memory_bound: float
    fits: bool = True
    sample_rows: int | None = None


@dataclass(frozen=True, repr=False)
class Plan:
    """What a fit of IhSC takes, by where the data are; print it for a table and advice.

    Attributes
    ----------
    n_samples, n_features, n_clusters : int
        The sizes.
    density : float or None
        Share of entries stored, of sparse data.
    dtype : str
        "float32" or "float64".
    memory, gpu_memory : float
        Bytes that were taken to be there.
    data_bytes : float
        Bytes of the data.
    chunk_passes : int
        Passes more where files are read by whole chunks (HDF5, zarr, Parquet): rows
        that are drawn at random lie in most of them. On dask they are counted already.
    needs : dict of str to Need
        Passes and memory with the data "in memory", "on disk", "on a GPU" and "on
        dask", where it is the client's memory, which holds no data.
    """

    n_samples: int
    n_features: int
    n_clusters: int
    density: float | None
    dtype: str
    memory: float
    gpu_memory: float
    data_bytes: float
    chunk_passes: int
    needs: dict[str, Need]

    def __repr__(self) -> str:
        fits = (
            f"{place} {'fits' if need.fits else 'does not fit'}"
            for place, need in self.needs.items()
        )
        return f"<Plan {plan_heading(self)}; {', '.join(fits)}>"

    def __str__(self) -> str:
        rows = plan_table(self)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([plan_heading(self), *lines, *plan_advice(self)])


def plan(
    n_samples: int,
    n_features: int,
    n_clusters: int,
    *,
    density: float | None = None,
    dtype: Any = np.float32,
    memory: float = 16e9,
    gpu_memory: float = 141e9,
) -> Plan:
    """Say what ``IhSC(n_clusters).fit(X)`` will take, before there is an X.

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
        The sizes.
    density : float, optional
        Share of the entries that are not zero, for sparse data; dense by default.
    dtype : {"float32", "float64"} or numpy.dtype
        Type of the numbers.
    memory : float
        Bytes of memory of the process that fits, which is dask's client on a cluster.
    gpu_memory : float
        Bytes of memory of the GPU; the default is that of an H200.

    Returns
    -------
    Plan

    Notes
    -----
    The expected case is that of clusters which a sample of the rows shows, of so many
    rows that the diagonal of the Gram matrix does not matter. The bound is that of a
    solver which gives up, each time that it is asked. Time is not planned:
    docs/scaling.md has what was measured.

    Examples
    --------
    >>> from ihgmm.planning import plan
    >>> small = plan(10_000_000, 1_000, 10)
    >>> small.needs["in memory"].fits, small.needs["on disk"].fits
    (False, True)
    >>> large = plan(10**9, 2_000, 50)
    >>> large.needs["on disk"].fits, large.needs["on disk"].sample_rows
    (False, 17203220)
    """
    if isinstance(n_clusters, str) and n_clusters == "auto":
        raise ValueError(
            "n_clusters='auto' is found from data, of which a plan has none; give the "
            "most you expect."
        )
    n = _count("n_samples", n_samples)
    p = _count("n_features", n_features)
    k = _count("n_clusters", n_clusters)
    check_row_count(n, k)
    if density is not None:
        density = check_number("density", density, above=0, most=1)
    for name, value in {"memory": memory, "gpu_memory": gpu_memory}.items():
        check_number(name, value, above=0)
        if value < 1e6:  # no machine has less: another unit must be meant
            raise ValueError(
                f"{name}={value} is given in bytes; for gigabytes write {value:g}e9."
            )
    try:
        number = np.dtype(dtype).name
    except TypeError:
        number = str(dtype)
    check_choice("dtype", number, ("float32", "float64"))
    shape = (p, k, density, np.dtype(number).itemsize)
    rooms = dict.fromkeys(("in memory", "on disk", "on a GPU", "on dask"), memory)
    rooms["on a GPU"] = gpu_memory
    needs = {place: _need(place, room, n, *shape) for place, room in rooms.items()}
    work = _work(n, *shape)
    numbers = (n, p, k, density, number, memory, gpu_memory)
    return Plan(*numbers, work.data_bytes, work.samplings, needs)


def _count(name: str, value: Any) -> int:
    """Return a whole number, also if it is written as 1e9."""
    whole = isinstance(value, float) and value.is_integer()
    return check_count(name, int(value) if whole else value)


def _need(place: str, room: float, n: int, p: int, k: int, *kind: Any) -> Need:
    """Return what a fit takes, or what sample of the rows has room for one."""
    need = _passes_and_memory(place, n, p, k, *kind)
    if need.memory <= room:
        return need
    # The largest number of rows that has room, by bisection.
    few, many = 0, n
    while many - few > 1:
        rows = (few + many) // 2
        fits = _passes_and_memory(place, rows, p, k, *kind).memory <= room
        few, many = (rows, many) if fits else (few, rows)
    least = max(2 * p, 100 * k)
    return replace(need, fits=False, sample_rows=few if few >= least else None)


def _passes_and_memory(
    place: str, n: int, p: int, k: int, density: float | None, itemsize: int
) -> Need:
    on_gpu, in_core = place == "on a GPU", place in ("in memory", "on a GPU")
    work = _work(n, p, k, density, itemsize)
    # Norms, first block and centres are a pass each; so are coordinates, unless the
    # first block will do. In memory a product is two passes, the first of all has one
    # of them behind it, and the directions of eigenvectors are one more; of stored
    # data, a pass gives a product and what the next one needs. At worst it is two, and
    # one for a better first block.
    passes = 3 + (work.products > 0) + (2 if in_core else 1) * work.products
    bound = 3 + work.runs * (1 + 2 * MAX_PRODUCTS)
    if place == "on dask":
        passes += work.samplings
    if not in_core:  # files may be in chunks too
        bound += work.runs * work.samplings
    # Numbers kept for each row, from measured runs: benchmarks/results/scaling.md. On a
    # GPU blocks are copied once more, by a run of version 0.1: gpu.md.
    tall = n * itemsize * (5 * k + 33 if on_gpu else 4 * k + 28)
    sample = work.data_bytes / n * work.sample_rows
    if on_gpu:
        memory = work.data_bytes + tall + sample
    else:
        # A process with the package and its libraries takes 210 MB. A sample of rows is
        # gone before there is much for each row; it is there twice while its rows are
        # shortened, and three times while it is gathered from blocks.
        memory = 2.1e8 + max(tall, (2 if in_core else 3) * sample)
        if place == "in memory":
            memory += work.data_bytes
        elif place == "on disk":  # a block that is worked on, the next one, a copy
            memory += min(3 * Stored.block_bytes, work.data_bytes)
    width = block_width(k, work.extra)
    basis = (most_blocks(n, width) + 3) * n * width * itemsize
    return Need(passes, bound, memory, memory + basis)


class _Work(NamedTuple):
    data_bytes: float
    sample_rows: int  # that the solver starts from
    samplings: int  # of rows: to start from, and to check the first block by
    products: int  # with G, to expect after the first block
    extra: int  # eigenvectors beyond the number of clusters, at most
    runs: int  # of the solver, at most


def _work(n: int, p: int, k: int, density: float | None, itemsize: int) -> _Work:
    """Return what the solver does with data of a shape, asked of the solver itself."""
    entries, index = n * p, 0
    if density is not None:  # a column number beside each entry, and where rows begin
        entries = round(entries * density)
        index = 4 if entries <= np.iinfo(np.int32).max else 8
    data_bytes = float(entries * (itemsize + index) + n * index)
    lead, extra = direction_counts(k, n, p)
    free = free_directions(lead, extra)
    # One run finds the directions that come for free, another all where these show
    # that it pays; the same once more where the diagonal is filled in, by another run.
    runs = 2 * (1 + (free < extra)) + 1
    rows = sample_size(n, p, entries, block_width(lead, free))
    may_stop_early = may_accept_start(n, entries)
    # Without a sample it took three, at 2,000 x 20,000 and at 50,000 x 20,000.
    products = 3 if rows == 0 else 0 if may_stop_early else 1
    samplings = (rows > 0) + may_stop_early
    return _Work(data_bytes, rows, samplings, products, extra, runs)
