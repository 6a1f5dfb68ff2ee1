"""Memory, traffic and time of a fit on one kind of machine."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ihgmm.planning.counts import Problem, Work
from ihgmm.planning.machines import Machines
from ihgmm.planning.rates import (
    CHUNK_BYTES,
    GPU,
    HOPS,
    HOST,
    PROCESS_BYTES,
    STORED_READ,
    TASK_SECONDS,
    Rates,
)

__all__ = ["Estimate", "on_cluster", "on_gpu", "on_laptop", "size"]

COPIES = 3
"""Times that a sample of rows is in memory while it is gathered from blocks."""


@dataclass(frozen=True)
class Estimate:
    """What a fit takes on one kind of machine.

    Attributes
    ----------
    machine : str
        "laptop", "gpu" or "cluster".
    data : str
        Where the data are during the fit.
    fits : bool
        Whether memory suffices in the expected case.
    passes, passes_bound : int
        Times the data are gone through: expected, and when the solver gives up. On a
        cluster, and in the bound of data on disk, with the samples of rows, which are
        in most chunks.
    memory, memory_bound : float
        Bytes of the process that fits: on the laptop with the data if they are in
        memory, on the GPU of the device with the data, on the cluster of the client.
    worker_memory : float or None
        Bytes of each worker; None but on the cluster.
    traffic, traffic_bound : float or None
        Bytes over the network; None but on the cluster.
    seconds, seconds_bound : float
        Time, were there memory enough.
    sample_rows : int or None
        The largest sample of the rows whose fit has room, where that of all has not;
        None also where no sample worth a fit has room.
    sample_seconds : float or None
        Time to fit that sample and to place all rows by ``predict``.
    note : str
        What does not fit, what to mind and what to do.
    """

    machine: str
    data: str
    fits: bool
    passes: int
    passes_bound: int
    memory: float
    memory_bound: float
    seconds: float
    seconds_bound: float
    worker_memory: float | None = None
    traffic: float | None = None
    traffic_bound: float | None = None
    sample_rows: int | None = None
    sample_seconds: float | None = None
    note: str = ""


def row_bytes(problem: Problem, rates: Rates = HOST) -> float:
    """Return the bytes a fit keeps for each row, beside the data."""
    numbers = rates.row_numbers_per_cluster * problem.n_clusters + rates.row_numbers
    return numbers * problem.itemsize


def _beside(problem: Problem, copies: int) -> float:
    """Return the bytes of a process beside the data.

    The sample of rows is gone before there is much for each row.
    """
    tall = problem.n_samples * row_bytes(problem)
    return PROCESS_BYTES + max(tall, copies * problem.sample_bytes)


def on_laptop(problem: Problem, machines: Machines) -> Estimate:
    """Estimate a fit in one process, from memory or else from disk."""
    held = problem.data_bytes + _beside(problem, 1) <= machines.memory
    tall = _beside(problem, 1 if held else COPIES)
    memory = tall + (problem.data_bytes if held else problem.block_bytes)
    disk = min(machines.disk, STORED_READ)

    def seconds(problem: Problem, work: Work) -> float:
        busy = _busy(problem, work, HOST, machines.cores)
        # One block is read while the last is worked on.
        read = 0.0 if held else work.passes * problem.data_bytes / disk
        return max(busy, read) + _alone(work, HOST)

    work, bound = problem.work(stored=not held), problem.bound
    if not held:  # a file may be in chunks
        bound = replace(bound, passes=bound.passes + problem.readings)
    estimate = Estimate(
        machine="laptop",
        data="in memory" if held else "on disk, in blocks",
        fits=memory <= machines.memory,
        passes=work.passes,
        passes_bound=bound.passes,
        memory=memory,
        memory_bound=memory + problem.basis_bytes,
        seconds=seconds(problem, work),
        seconds_bound=seconds(problem, bound),
    )
    if held:
        return estimate
    if estimate.fits:
        more = problem.readings
        chunks = (
            f", which are read by whole chunks: up to {more} pass"
            f"{'es' * (more > 1)} more"
        )
        return replace(
            estimate,
            note=f"X ({size(problem.data_bytes)}) stays on disk: give fit a memory "
            f"map, or HDF5, zarr or Parquet{chunks * (more > 0)}.",
        )
    free = machines.memory - PROCESS_BYTES - problem.block_bytes
    few = _sample(problem, free, row_bytes(problem))
    return _sampled(
        estimate,
        few,
        f"Beside the data a fit takes {size(tall)}, more than "
        f"{size(machines.memory)} of memory.",
        0.0 if few is None else seconds(few, few.work(stored=True)),
        max(problem.data_bytes / disk, _placing(problem, HOST, machines.cores)),
    )


def on_gpu(problem: Problem, machines: Machines) -> Estimate:
    """Estimate a fit of a dense array on one device."""
    dense = replace(problem, density=None)
    each = row_bytes(dense, GPU)
    memory = dense.data_bytes + dense.n_samples * each + dense.sample_bytes

    def seconds(problem: Problem, work: Work) -> float:
        return _busy(problem, work, GPU) + _alone(work, GPU)

    work, bound = dense.work(), dense.bound
    estimate = Estimate(
        machine="gpu",
        data="on the device" if problem.density is None else "on the device, dense",
        fits=memory <= machines.gpu_memory,
        passes=work.passes,
        passes_bound=bound.passes,
        memory=memory,
        memory_bound=memory + dense.basis_bytes,
        seconds=seconds(dense, work),
        seconds_bound=seconds(dense, bound),
    )
    if estimate.fits:
        if problem.density is None:
            return estimate
        return replace(estimate, note="A device takes dense data only.")
    one = dense.n_features * dense.itemsize + each
    few = _sample(dense, machines.gpu_memory - dense.sample_bytes, one)
    kind = "" if problem.density is None else " as a dense array"
    return _sampled(
        estimate,
        few,
        f"X takes {size(dense.data_bytes)}{kind}, with what is kept for each row "
        f"{size(memory)}, more than {size(machines.gpu_memory)} on the device.",
        0.0 if few is None else seconds(few, few.work()),
        max(problem.data_bytes / machines.disk, _placing(dense, GPU)),
    )


def on_cluster(problem: Problem, machines: Machines) -> Estimate:
    """Estimate a fit of a dask array, its chunks spread over workers."""
    share = problem.data_bytes / machines.workers
    working = PROCESS_BYTES + 2 * CHUNK_BYTES * machines.cores
    held = share + working <= machines.worker_memory
    client = _beside(problem, COPIES)

    def seconds(problem: Problem, work: Work) -> float:
        chunks = problem.chunks(CHUNK_BYTES)
        # Rows picked here and there are in most chunks: reading them is a pass.
        rounds = work.passes + problem.readings
        busy = _busy(problem, work, HOST, machines.cores * machines.workers)
        if not held:
            read = rounds * problem.data_bytes / (machines.disk * machines.workers)
            busy = max(busy, read)
        sent = HOPS * problem.sent(work, chunks, machines.workers)
        tasks = rounds * chunks * TASK_SECONDS
        return busy + tasks + sent / machines.network + _alone(work, HOST)

    def traffic(work: Work) -> float:
        chunks = problem.chunks(CHUNK_BYTES)
        return HOPS * problem.sent(work, chunks, machines.workers)

    work, bound = problem.work(stored=True), problem.bound
    estimate = Estimate(
        machine="cluster",
        data="in workers' memory" if held else "in storage, read by workers",
        fits=client <= machines.worker_memory and working <= machines.worker_memory,
        passes=work.passes + problem.readings,
        passes_bound=bound.passes + problem.readings,
        memory=client,
        memory_bound=client + problem.basis_bytes,
        seconds=seconds(problem, work),
        seconds_bound=seconds(problem, bound),
        worker_memory=working + (share if held else 0.0),
        traffic=traffic(work),
        traffic_bound=traffic(bound),
    )
    room = machines.worker_memory - working
    if room <= 0:
        return replace(
            estimate,
            note=f"A worker needs {size(working)} to work on chunks of "
            f"{size(CHUNK_BYTES)}, more than it has ({size(machines.worker_memory)}).",
        )
    needed = math.ceil(problem.data_bytes / room)
    more = "" if held else f" {needed:,} workers would hold X in memory."
    if estimate.fits:
        return replace(estimate, note=more.strip())
    few = _sample(problem, machines.worker_memory - PROCESS_BYTES, row_bytes(problem))
    placing = _placing(problem, HOST, machines.cores * machines.workers)
    reading = problem.data_bytes / (machines.disk * machines.workers)
    return _sampled(
        estimate,
        few,
        f"The client gathers what is kept for rows: {size(client)}, more than its "
        f"{size(machines.worker_memory)}; more workers do not change that.",
        0.0 if few is None else seconds(few, few.work(stored=True)),
        placing if held else max(placing, reading),
    )


def size(count: float) -> str:
    """Return a number of bytes for people to read.

    Examples
    --------
    >>> size(5e6), size(1.24e10), size(8e12)
    ('5 MB', '12 GB', '8 TB')
    """
    for unit, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if count >= 0.9995 * unit or name == "MB":
            value = count / unit
            return f"{value:.0f} {name}" if value >= 99.5 else f"{value:.2g} {name}"
    raise AssertionError


def _busy(problem: Problem, work: Work, rates: Rates, cores: int = 1) -> float:
    """Return the time of the products with the data, which all cores share."""
    sparse = problem.density is not None
    rate = rates.multiply_sparse if sparse else rates.multiply
    multiplied = work.multiplied * problem.itemsize / 4  # rates are for float32
    return (work.read / rates.read + multiplied / rate) / cores


def _alone(work: Work, rates: Rates) -> float:
    """Return the time of what one core does whatever the machine has."""
    return rates.start + work.tall * rates.tall + work.kmeans * rates.kmeans


def _placing(problem: Problem, rates: Rates, cores: int = 1) -> float:
    """Return the time that ``predict`` takes for all rows."""
    once = Work(1, problem.data_bytes, 2 * problem.entries * problem.n_clusters, 0, 0)
    return _busy(problem, once, rates, cores)


def _sample(problem: Problem, free: float, each: float) -> Problem | None:
    """Return the problem of as many rows as have room; None if too few for a fit."""
    rows = int(max(free, 0) / each)
    few = replace(problem, n_samples=max(rows, 1))
    if COPIES * few.sample_bytes > free:  # of fewer rows than 32 p an eighth is drawn
        rows = int(8 * free / COPIES / (problem.data_bytes / problem.n_samples))
    least = max(2 * problem.n_features, 100 * problem.n_clusters)
    return replace(problem, n_samples=rows) if rows >= least else None


def _sampled(
    estimate: Estimate, few: Problem | None, why: str, fit: float, rest: float
) -> Estimate:
    """Add why a fit does not fit, and what a sample of the rows would take."""
    if few is None:
        return replace(
            estimate, note=f"{why} No sample of rows worth a fit has room either."
        )
    return replace(
        estimate,
        sample_rows=few.n_samples,
        sample_seconds=fit + rest,
        note=f"{why} Fit a random sample of at most {few.n_samples:,} rows and place "
        "the others by predict, block by block.",
    )
