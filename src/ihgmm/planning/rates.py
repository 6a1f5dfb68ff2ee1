"""How fast machines are and what they keep: constants fitted to measured runs.

Those of the host and of dask come from ``benchmarks/scaling.py``, those of the GPU from
``benchmarks/results/gpu.md``; docs/scaling.md tells how well they agree with what was
measured, and what is extrapolated.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "CHUNK_BYTES",
    "GPU",
    "HOPS",
    "HOST",
    "PROCESS_BYTES",
    "STORED_READ",
    "TASK_SECONDS",
    "Rates",
]

PROCESS_BYTES = 2.1e8
"""Memory of a process that has loaded the package and its libraries."""

CHUNK_BYTES = 1.28e8
"""Bytes of a chunk of a dask array, as dask itself chooses."""

TASK_SECONDS = 4e-3
"""Time that dask takes for a task beside its work, one after the other; from one pair
of runs with two and with twenty chunks."""

STORED_READ = 1.2e9
"""Bytes a second from a memory map however fast the disk is: 8 GB in the cache of the
system were gone through three times in 20 s."""

HOPS = 2
"""What goes between client and workers passes the scheduler, and so is sent twice."""


@dataclass(frozen=True)
class Rates:
    """Constants of one kind of machine, float32.

    Attributes
    ----------
    start : float
        Seconds of every fit.
    read : float
        Bytes of the data a second, for one core or the device.
    multiply, multiply_sparse : float
        Multiplications and additions a second, of dense and of sparse data.
    tall : float
        Seconds for a number of a tall block, in all that is done to it.
    kmeans : float
        Seconds for a multiplication or addition of one round of k-means, in all
        rounds.
    row_numbers, row_numbers_per_cluster : float
        Numbers kept for each row beside the data.
    """

    start: float
    read: float
    multiply: float
    multiply_sparse: float
    tall: float
    kmeans: float
    row_numbers: float
    row_numbers_per_cluster: float


HOST = Rates(
    start=0.043,
    read=8.6e9,
    multiply=1.4e11,
    multiply_sparse=8.1e9,
    tall=2e-8,
    kmeans=1.7e-9,
    row_numbers=25,
    row_numbers_per_cluster=2,
)
"""One core of an Intel Xeon."""

GPU = Rates(
    start=0.04,
    read=2e12,
    multiply=4e13,
    multiply_sparse=4e13,
    tall=0.0,
    kmeans=4e-9,
    row_numbers=30,
    row_numbers_per_cluster=3,
)
"""An NVIDIA H200, from three runs, two with ten clusters and one with fifty: ``start``,
``read`` and ``kmeans``, which runs on the host of that machine, explain them.
``multiply`` is 60% of what the device is said to do, not measured. Tall work is part
of ``read``. Data are dense there."""
