"""What a fit will take: passes, memory and traffic, before there are data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ihgmm._checks import check_row_count
from ihgmm._parameters import check_choice, check_count, check_number
from ihgmm.matrix.stored import Stored
from ihgmm.numerics.eigen import check_size, sample_size
from ihgmm.numerics.krylov import MAX_PRODUCTS, block_width, most_blocks
from ihgmm.numerics.labels import sample_positions
from ihgmm.numerics.spectral import direction_counts

__all__ = ["Need", "Plan", "Workers", "plan", "size"]


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

    Examples
    --------
    >>> from ihgmm.planning import plan
    >>> need = plan(10**6, 100, 10).needs["on disk"]
    >>> need.passes, need.fits
    (3, True)
    """

    passes: int
    passes_bound: int
    memory: float
    memory_bound: float
    fits: bool = True
    sample_rows: int | None = None


@dataclass(frozen=True)
class Workers:
    """What a fit takes of the workers of a cluster, or of GPUs, that share the rows.

    Attributes
    ----------
    count : int
        How many there are.
    memory, network, reading : float
        What each was taken to have: bytes of memory, bytes a second of its link to the
        others, and bytes a second at which it goes through its rows.
    rows : int
        Rows of each, at most.
    held, streamed : float
        Bytes that each needs: with its rows in memory, and where it reads them anew in
        every pass.
    enough : int or None
        How many workers hold all rows in memory; None if no number of them does.
    traffic, traffic_bound : float
        Bytes that go over the network in a fit, all links together: expected, and when
        the solver gives up.
    seconds : float
        Time that a fit takes at least, by these rates.

    Examples
    --------
    >>> from ihgmm.planning import plan
    >>> workers = plan(10**9, 1_000, 10, workers=64, worker_memory=96e9).workers
    >>> workers.rows, workers.enough
    (15625000, 46)
    """

    count: int
    memory: float
    network: float
    reading: float
    rows: int
    held: float
    streamed: float
    enough: int | None
    traffic: float
    traffic_bound: float
    seconds: float

    @property
    def fit(self) -> bool:
        """Whether there is room for a fit, if rows are read anew in every pass."""
        return self.streamed <= self.memory

    @property
    def hold(self) -> bool:
        """Whether each has room for its rows as well."""
        return self.held <= self.memory


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
        dask", where it is the client's memory, which holds nothing for each row.
    workers : Workers or None
        What a fit takes of the workers of dask, where their number was given.

    Examples
    --------
    >>> from ihgmm.planning import plan
    >>> planned = plan(10**9, 1_000, 10, memory=64e9, gpu_memory=141e9)
    >>> [place for place, need in planned.needs.items() if need.fits]
    ['on dask']
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
    workers: Workers | None = None

    def __repr__(self) -> str:
        fits = (
            f"{place} {'fits' if need.fits else 'does not fit'}"
            for place, need in self.needs.items()
        )
        return f"<Plan {plan_heading(self)}; {', '.join(fits)}>"

    def __str__(self) -> str:
        lines = [plan_heading(self), *_lines(plan_table(self))]
        if self.workers is not None:
            lines += _lines(workers_table(self.workers))
        return "\n".join([*lines, *plan_advice(self)])


def _lines(table: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]


def plan(
    n_samples: int,
    n_features: int,
    n_clusters: int,
    *,
    density: float | None = None,
    dtype: Any = np.float32,
    memory: float = 16e9,
    gpu_memory: float = 141e9,
    workers: int | None = None,
    worker_memory: float = 64e9,
    network: float = 1.25e9,
    reading: float = 1.2e9,
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
    workers : int, optional
        Number of workers of a dask cluster, each with an equal share of the rows; or of
        GPUs, each with a worker of its own.
    worker_memory : float
        Bytes of memory of each worker, or of its GPU.
    network : float
        Bytes a second between a worker and the others; the default is 10 Gbit/s.
    reading : float
        Bytes a second at which a worker goes through its rows. The default is what came
        from a memory map; one core went through 8.6e9 in memory. Rows that a GPU does
        not hold come over its bus, at some 50e9.

    Returns
    -------
    Plan

    Notes
    -----
    The expected case is that of clusters which a sample of the rows shows, of so many
    rows that the diagonal of the Gram matrix does not matter. The bound is that of a
    solver which gives up, each time that it is asked. What takes more passes
    (``refine``, ``whiten``, ``missing``, ``outliers``) is not planned; nor is time,
    beyond that of reading and sending: docs/scaling.md has what was measured.

    On workers, whatever has a line for each row stays where the row is. For a product
    with the data a block of p by b numbers goes out to each worker and its sums come
    back, as many again; samples of rows come to the client, where the small problems
    are solved. Each link is taken to carry a block once, as it does where workers pass
    blocks on and add sums up in a tree.

    Examples
    --------
    >>> from ihgmm.planning import plan
    >>> small = plan(10_000_000, 1_000, 10)
    >>> small.needs["in memory"].fits, small.needs["on disk"].fits
    (False, True)
    >>> large = plan(10**9, 2_000, 50)
    >>> large.needs["on disk"].fits, large.needs["on disk"].sample_rows
    (False, 17203220)
    >>> cluster = plan(10**9, 1_000, 10, workers=64, worker_memory=96e9).workers
    >>> cluster.rows, cluster.hold, size(cluster.held), size(cluster.traffic)
    (15625000, True, '68 GB', '148 MB')
    """
    if isinstance(n_clusters, str) and n_clusters == "auto":
        raise ValueError(
            "n_clusters='auto' needs the data, which a plan does not have; give the "
            "largest number you expect."
        )
    n = _count("n_samples", n_samples)
    p = _count("n_features", n_features)
    k = _count("n_clusters", n_clusters)
    check_row_count(n, k)
    if density is not None:
        density = check_number("density", density, above=0, most=1)
    if workers is not None:
        workers = _count("workers", workers)
    machine = {"memory": memory, "gpu_memory": gpu_memory}
    machine |= {"worker_memory": worker_memory}
    machine |= {"network": network, "reading": reading}
    for name, value in machine.items():
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
    made = Plan(*numbers, work.data_bytes, work.samplings, needs)
    if workers is None:
        return made
    given = (workers, worker_memory, network, reading)
    return replace(made, workers=_workers(needs["on dask"], work, *given, n, *shape))


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
    passes = len(work.passes)
    if in_core:  # a product is two passes
        passes += work.products
    bound = 3 + work.runs * (1 + 2 * MAX_PRODUCTS)
    if place == "on dask":
        passes += work.samplings
    if not in_core:  # files may be in chunks too
        bound += work.runs * work.samplings
    tall = n * itemsize * _numbers_per_row(k, on_gpu)
    sample = work.data_bytes / n * work.sample_rows
    basis = (most_blocks(n, work.most_wide) + 3) * work.most_wide * itemsize
    if on_gpu:
        memory = work.data_bytes + tall + sample
    else:
        # A process with the package and its libraries takes 210 MB. A sample of rows is
        # gone before there is much for each row; it is there twice while its rows are
        # shortened, and three times while it is gathered from blocks. On dask the
        # client has blocks of p rows, and what is as long as X stays with the workers.
        long = p * work.most_wide * itemsize if place == "on dask" else tall
        memory = 2.1e8 + max(long, (2 if in_core else 3) * sample)
        if place == "in memory":
            memory += work.data_bytes
        elif place == "on disk":  # a block that is worked on, the next one, a copy
            memory += min(3 * Stored.block_bytes, work.data_bytes)
    rows = p if place == "on dask" else n
    return Need(passes, bound, memory, memory + rows * basis)


def _numbers_per_row(k: int, on_gpu: bool) -> int:
    """Return how many numbers are kept for each row.

    They are from measured runs: benchmarks/results/scaling.md. On a GPU blocks are
    copied once more, by a run of version 0.1: gpu.md.
    """
    return 5 * k + 33 if on_gpu else 4 * k + 28


def _workers(
    client: Need,
    work: _Work,
    count: int,
    memory: float,
    network: float,
    reading: float,
    n: int,
    p: int,
    k: int,
    density: float | None,
    itemsize: int,
) -> Workers:
    def needed(count: int) -> tuple[int, float, float]:
        """Return rows of a worker, and its memory with and without them."""
        rows = -(-n // count)
        share = work.data_bytes / n * rows
        # A worker may be a GPU, which keeps more. It has three chunks of 100 MB: one
        # that is worked on, the next one, a copy.
        streamed = 2.1e8 + rows * itemsize * _numbers_per_row(k, on_gpu=True)
        streamed += 3 * min(share, 1e8)
        return rows, share + streamed, streamed

    rows, held, streamed = needed(count)
    # By bisection: more workers than rows are of no use.
    few, enough = 0, n
    while enough - few > 1:
        some = (few + enough) // 2
        few, enough = (few, some) if needed(some)[1] <= memory else (some, enough)
    # Of a sample of rows each is sent once, and a part of the embedding too.
    row_bytes = work.data_bytes / n
    labelled = sample_positions(n, k, np.random.default_rng(0))
    sample = (work.sample_rows + work.checked_rows) * row_bytes
    sample += (n if labelled is None else len(labelled)) * k * itemsize
    # A block goes out to each worker, and sums come back from each.
    blocks = sum(sent + summed for sent, summed in work.passes) * p * itemsize
    most = 2 * work.most_wide * p * itemsize * client.passes_bound
    return Workers(
        count,
        memory,
        network,
        reading,
        rows,
        held,
        streamed,
        enough if needed(enough)[1] <= memory else None,
        count * blocks + sample,
        count * most + work.runs * sample,
        client.passes * row_bytes * rows / reading + (blocks + sample) / network,
    )


class _Work(NamedTuple):
    data_bytes: float
    sample_rows: int  # that the solver starts from
    checked_rows: int  # by which it checks the first block
    passes: list[tuple[int, int]]  # columns of the block sent to all rows, and of sums
    products: int  # with G, to expect after the first block
    most_wide: int  # columns of a block with all eigenvectors that may be asked for
    runs: int  # of the solver, at most

    @property
    def samplings(self) -> int:
        """How often rows are sampled."""
        return (self.sample_rows > 0) + (self.checked_rows > 0)


def _work(n: int, p: int, k: int, density: float | None, itemsize: int) -> _Work:
    """Return what the solver does with data of a shape, asked of the solver itself."""
    entries, index = n * p, 0
    if density is not None:  # a column number beside each entry, and where rows begin
        entries = round(entries * density)
        index = 4 if entries <= np.iinfo(np.int32).max else 8
    data_bytes = float(entries * (itemsize + index) + n * index)
    lead, extra = direction_counts(k, n, p)
    # One run, the same once more where the diagonal is filled in, by another run.
    runs = 3
    width = block_width(lead)
    # In memory they may be a few more.
    rows = sample_size(n, p, entries, width, streamed=True)
    checked = check_size(n, entries)
    # Without a sample it took three, at 2,000 x 20,000 and at 50,000 x 20,000.
    products = 3 if rows == 0 else 0 if checked else 1
    # Norms, first block and centres are a pass each; so are coordinates, unless the
    # first block will do. Of stored data, a pass gives a product and what the next one
    # needs. In memory a product is two passes, the first of all has one of them behind
    # it, and the directions of eigenvectors are one more. At worst it is two, and one
    # for a better first block.
    passes = [(0, 0), *[(width, width)] * (1 + products)]
    passes += [(lead, 0)] * (products > 0) + [(0, k)]
    most_wide = max(width, lead + extra)
    return _Work(data_bytes, rows, checked, passes, products, most_wide, runs)


def size(count: float) -> str:
    """Return a number of bytes for people to read.

    Examples
    --------
    >>> size(5e6), size(1.24e10), size(8e12)
    ('5 MB', '12 GB', '8 TB')
    """
    units = {"PB": 1e15, "TB": 1e12, "GB": 1e9, "MB": 1e6}
    name = next((name for name in units if count >= 0.9995 * units[name]), "MB")
    value = count / units[name]
    return f"{value:.0f} {name}" if value >= 99.5 else f"{value:.2g} {name}"


def plan_heading(plan: Plan) -> str:
    """Return what is to be fitted."""
    kind = "" if plan.density is None else f"sparse ({plan.density:.3g}) "
    return (
        f"{plan.n_samples:,} x {plan.n_features:,} {kind}{plan.dtype}, "
        f"{plan.n_clusters:,} clusters: {size(plan.data_bytes)}"
    )


PLAN_WORDS = (
    "passes: how often a fit goes through the data",
    "memory: what it needs, the data included where they are held",
)


def plan_table(plan: Plan) -> list[tuple[str, ...]]:
    """Return the head and the rows of a table, a column for each place."""
    needs = plan.needs.values()
    return [
        ("", *plan.needs),
        ("fits", *("yes" if need.fits else "no" for need in needs)),
        ("passes", *(f"{need.passes}" for need in needs)),
        ("  at most", *(f"{need.passes_bound}" for need in needs)),
        ("memory", *(size(need.memory) for need in needs)),
        ("  at most", *(size(need.memory_bound) for need in needs)),
    ]


def workers_table(workers: Workers) -> list[tuple[str, ...]]:
    """Return the head and the rows of a table on workers that share the rows."""
    return [
        ("", f"{workers.count:,} workers of {size(workers.memory)}"),
        ("rows of each", f"{workers.rows:,}"),
        ("memory of each, rows held", _if_room(workers.held, workers.hold)),
        ("  rows read anew in every pass", _if_room(workers.streamed, workers.fit)),
        ("over the network", size(workers.traffic)),
        ("  at most", size(workers.traffic_bound)),
        ("time at least", duration(workers.seconds)),
    ]


def _if_room(count: float, fits: bool) -> str:
    return size(count) + ("" if fits else ": too much")


def duration(seconds: float) -> str:
    """Return a time for people to read, from seconds to days.

    Examples
    --------
    >>> duration(0.0412), duration(59.0), duration(5400.0), duration(2e5)
    ('0.041 s', '59 s', '1.5 h', '2.3 days')
    """
    units = {"days": 86400.0, "h": 3600.0, "min": 60.0, "s": 1.0}
    name = next((name for name in units if seconds >= units[name]), "s")
    value = seconds / units[name]
    return f"{value:.0f} {name}" if value >= 9.95 else f"{value:.2g} {name}"


def plan_advice(plan: Plan) -> Iterator[str]:
    """Yield what to do where a fit has no room, and what to mind."""
    for place, need in plan.needs.items():
        if need.fits:
            continue
        room = plan.gpu_memory if place == "on a GPU" else plan.memory
        text = f"{place}: a fit takes {size(need.memory)}, more than {size(room)}."
        if place == "on dask":
            text += " The client lacks memory; more workers do not help."
        if place == "in memory" and plan.needs["on disk"].fits:
            text += " Leave X on disk: a memory map, HDF5, zarr or Parquet."
        elif need.sample_rows is None:
            text += " Not even a useful sample of rows fits."
        else:
            text += (
                f" Fit a random sample of at most {need.sample_rows:,} rows and "
                "label the others with predict, block by block."
            )
        yield text
    if plan.workers is not None:
        yield from _workers_advice(plan.workers)
    if plan.chunk_passes:
        yield (
            "on disk: HDF5, zarr and Parquet are read by whole chunks, which takes up "
            f"to {plan.chunk_passes} more pass{'es' * (plan.chunk_passes > 1)}."
        )
    yield (
        f"Assumed: {size(plan.memory)} of memory, on a GPU "
        f"{size(plan.gpu_memory)}. The lines 'at most' are for a solver that does not "
        "converge and gives up."
    )


def _workers_advice(workers: Workers) -> Iterator[str]:
    """Yield what to do where workers lack room, and what was taken for granted."""
    if not workers.hold:
        text = f"on dask: {workers.count:,} workers of {size(workers.memory)} "
        text += "do" if workers.count > 1 else "does"
        text += " not hold the rows."
        if workers.fit:
            text += (
                " Each pass reads them from disk, or from the memory of a GPU's host"
            )
            text += f"; {workers.enough:,} would hold them." if workers.enough else "."
        elif workers.enough:
            text += f" Use {workers.enough:,}."
        yield text
    yield (
        f"on dask, assumed for each worker: {size(workers.network)} a second over the "
        f"network, and {size(workers.reading)} a second when it goes through its rows."
    )
