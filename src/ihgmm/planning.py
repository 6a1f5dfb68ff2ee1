"""What a fit will take: passes over the data and memory, before there are data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ihgmm._checks import check_count, check_number
from ihgmm.matrix.stored import Stored
from ihgmm.numerics.eigen import MAX_PRODUCTS, may_accept_start, sample_size
from ihgmm.numerics.krylov import block_width, most_blocks

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
        return f"<Plan {self.heading()}; {', '.join(fits)}>"

    def __str__(self) -> str:
        rows = self.table()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([self.heading(), *lines, *self.advice()])

    def heading(self) -> str:
        """Return what is to be fitted, in words."""
        kind = "" if self.density is None else f"sparse ({self.density:.3g}) "
        return (
            f"{self.n_samples:,} x {self.n_features:,} {kind}{self.dtype}, "
            f"{self.n_clusters:,} clusters: {size(self.data_bytes)}"
        )

    def table(self) -> list[tuple[str, ...]]:
        """Return the head and the rows of a table, a column for each place."""
        needs = self.needs.values()
        return [
            ("", *self.needs),
            ("fits", *("yes" if need.fits else "no" for need in needs)),
            ("passes", *(f"{need.passes}" for need in needs)),
            ("  at most", *(f"{need.passes_bound}" for need in needs)),
            ("memory", *(size(need.memory) for need in needs)),
            ("  at most", *(size(need.memory_bound) for need in needs)),
        ]

    def advice(self) -> list[str]:
        """Return sentences: what to do where a fit has no room, and what to mind."""
        sentences = []
        for place, need in self.needs.items():
            if need.fits:
                continue
            room = self.gpu_memory if place == "on a GPU" else self.memory
            text = f"{place}: a fit takes {size(need.memory)}, more than {size(room)}."
            if place == "on a GPU" and self.density is not None:
                text += " A device takes dense data only."
            if place == "on dask":
                text += " It is the client that lacks room; more workers do not help."
            if place == "in memory" and self.needs["on disk"].fits:
                text += " Leave X on disk: a memory map, HDF5, zarr or Parquet."
            elif need.sample_rows is None:
                text += " No sample of rows worth a fit has room either."
            else:
                text += (
                    f" Fit a random sample of at most {need.sample_rows:,} rows and "
                    "place the others by predict, block by block."
                )
            sentences.append(text)
        if self.chunk_passes:
            sentences.append(
                "on disk: HDF5, zarr and Parquet are read by whole chunks, which is up "
                f"to {self.chunk_passes} pass{'es' * (self.chunk_passes > 1)} more."
            )
        sentences.append(
            f"Taken for granted: {size(self.memory)} of memory, on a GPU "
            f"{size(self.gpu_memory)}. At most: what a solver takes that gives up."
        )
        return sentences


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
    The expected case is that of clusters which a sample of the rows shows; the bound is
    that of a solver which gives up. Time is not planned: docs/scaling.md has what was
    measured.

    Examples
    --------
    >>> from ihgmm.planning import plan
    >>> small = plan(10_000_000, 1_000, 10)
    >>> small.needs["in memory"].fits, small.needs["on disk"].fits
    (False, True)
    >>> large = plan(10**9, 2_000, 50)
    >>> large.needs["on disk"].fits, large.needs["on disk"].sample_rows
    (False, 31378673)
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
    for name, value in {"memory": memory, "gpu_memory": gpu_memory}.items():
        check_number(name, value, above=0)
        if value < 1e6:  # no machine has less: another unit must be meant
            raise ValueError(
                f"{name}={value} is given in bytes; for gigabytes write {value:g}e9."
            )
    kind = _float(dtype)
    problem = _Problem(n, p, k, density, kind.itemsize)
    rooms = {
        "in memory": memory,
        "on disk": memory,
        "on a GPU": gpu_memory,
        "on dask": memory,
    }
    return Plan(
        n_samples=n,
        n_features=p,
        n_clusters=k,
        density=density,
        dtype=kind.name,
        memory=memory,
        gpu_memory=gpu_memory,
        data_bytes=problem.data_bytes,
        chunk_passes=problem.samplings,
        needs={place: _need(problem, place, room) for place, room in rooms.items()},
    )


@dataclass(frozen=True)
class _Problem:
    """The sizes of a problem, and what the solver does with them."""

    n_samples: int
    n_features: int
    n_clusters: int
    density: float | None
    itemsize: int

    @property
    def entries(self) -> int:
        """Numbers stored."""
        entries = self.n_samples * self.n_features
        return entries if self.density is None else round(entries * self.density)

    @property
    def data_bytes(self) -> float:
        """Bytes of the data: sparse ones have a column number beside each entry."""
        if self.density is None:
            return float(self.entries * self.itemsize)
        index = 4 if self.entries <= np.iinfo(np.int32).max else 8
        return float(self.entries * (self.itemsize + index) + self.n_samples * index)

    @property
    def sample_rows(self) -> int:
        """Rows that the solver starts from."""
        width = block_width(self.n_clusters)
        return sample_size(self.n_samples, self.n_features, self.entries, width)

    @property
    def may_stop_early(self) -> bool:
        """Whether the first block can be accepted from a sample of rows."""
        return may_accept_start(self.n_samples, self.entries)

    @property
    def samplings(self) -> int:
        """How often rows are drawn: to start from, and to check the first block."""
        return (self.sample_rows > 0) + self.may_stop_early

    @property
    def products(self) -> int:
        """Products with G to expect after the first block."""
        if self.sample_rows == 0:
            return 3  # 2,000 x 20,000 and 50,000 x 20,000 took that many
        return 0 if self.may_stop_early else 1


def _need(problem: _Problem, place: str, room: float) -> Need:
    """Return what a fit takes, or what sample of the rows has room for one."""
    need = _passes_and_memory(problem, place)
    if need.memory <= room:
        return need
    # The largest number of rows that has room, by bisection.
    few, many = 0, problem.n_samples
    while many - few > 1:
        rows = (few + many) // 2
        part = _passes_and_memory(replace(problem, n_samples=rows), place)
        few, many = (rows, many) if part.memory <= room else (few, rows)
    least = max(2 * problem.n_features, 100 * problem.n_clusters)
    return replace(need, fits=False, sample_rows=few if few >= least else None)


def _passes_and_memory(problem: _Problem, place: str) -> Need:
    if place == "on a GPU":
        problem = replace(problem, density=None)  # data are dense there
    n, k, itemsize = problem.n_samples, problem.n_clusters, problem.itemsize
    data, products = problem.data_bytes, problem.products
    in_core = place in ("in memory", "on a GPU")
    # Norms, first block and centres are a pass each. In memory a product is two passes,
    # and the first has one of them behind it; of stored data, a pass gives a product
    # and what the next one needs. At worst it is two, and one for a better first block.
    passes = 3 + (max(2 * products - 1, 0) if in_core else products)
    bound = 3 + 2 * MAX_PRODUCTS
    if place == "on dask":
        passes += problem.samplings
    if not in_core:  # files may be in chunks too
        bound += problem.samplings
    # Numbers kept for each row, from measured runs: benchmarks/results/scaling.md and
    # gpu.md.
    each = (3 * k + 30 if place == "on a GPU" else 2 * k + 25) * itemsize
    sample = data / n * problem.sample_rows
    if place == "on a GPU":
        memory = data + n * each + sample
    else:
        # A process with the package and its libraries takes 210 MB. A sample of rows is
        # gone before there is much for each row; it is there three times while it is
        # gathered from blocks.
        memory = 2.1e8 + max(n * each, (1 if in_core else 3) * sample)
        if place == "in memory":
            memory += data
        elif place == "on disk":  # a block that is worked on, the next one, a copy
            memory += min(3 * Stored.block_bytes, data)
    width = block_width(k)
    basis = (most_blocks(n, width) + 3) * n * width * itemsize
    return Need(passes, bound, memory, memory + basis)


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
