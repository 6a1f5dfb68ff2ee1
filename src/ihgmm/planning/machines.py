"""The machines a plan is made for."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ihgmm._checks.parameters import check_count, check_number

__all__ = ["GB", "Machines"]

GB = 1e9

LEAST = 1e6
"""Bytes, or bytes a second, below which another unit must be meant."""


@dataclass(frozen=True)
class Machines:
    """A laptop, a GPU and a cluster.

    Attributes
    ----------
    memory : float
        Bytes of memory of the laptop.
    cores : int
        Cores of the laptop, and of each worker.
    disk : float
        Bytes a second that the laptop, and each worker, read from where data lie.
    gpu_memory : float
        Bytes of memory of the GPU.
    workers : int
        Workers of the cluster; the client is one more machine of the same kind.
    worker_memory : float
        Bytes of memory of the client and of each worker.
    network : float
        Bytes a second between the client and the cluster.

    Examples
    --------
    >>> Machines(memory=64e9, workers=100).cores
    4
    """

    memory: float = 16 * GB
    cores: int = 4
    disk: float = 1 * GB
    gpu_memory: float = 141 * GB
    workers: int = 16
    worker_memory: float = 64 * GB
    network: float = 1.25 * GB

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("cores", "workers"):
                check_count(field.name, value)
            else:
                check_number(field.name, value, above=0)
                if value < LEAST:
                    raise ValueError(
                        f"{field.name}={value} is given in bytes; for gigabytes write "
                        f"{value:g}e9."
                    )
