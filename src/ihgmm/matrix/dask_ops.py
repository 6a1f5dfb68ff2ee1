"""Tall arrays of dask: work on their blocks, on the workers that have them.

Rows are in blocks, columns are not. What is made of blocks stays on the workers; sums
are made there too, in a tree, and only what is small comes to the client. Everything
that waits for a cluster waits here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from itertools import pairwise
from typing import Any
from uuid import uuid4

import array_api_compat as compat
import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.base import compute as dask_compute
from dask.base import get_scheduler
from dask.base import persist as dask_persist
from dask.delayed import delayed
from dask.utils import parse_timedelta

from ihgmm.matrix.ops import HOST, Ops, Tall, is_lazy, ops_of, to_host

TIMEOUT = "ihgmm.no-workers-timeout"
"""The setting of dask that says how long to wait for a cluster without workers."""


# Blocks: how they are made, worked on, added up and waited for


def from_host(values: np.ndarray, chunks: tuple[int, ...], kind: Any) -> Any:
    """Return an array of the client in blocks of so many rows, on the workers.

    Its blocks are arrays of the library that ``kind`` is of, NumPy's or that of a GPU.
    """
    shape = (chunks, *((size,) for size in values.shape[1:]))
    array = da.from_array(values, shape, name=False)  # type: ignore[no-untyped-call]
    if not isinstance(kind, np.ndarray):
        array = array.map_blocks(np.asarray, like=kind, dtype=values.dtype, meta=kind)
    return keep(array)


def from_shapes(chunks: tuple[int, ...], width: int) -> Any:
    """Return the shape of each block, of so many rows, as a dask array of objects."""
    name = f"shapes-{uuid4().hex}"
    graph = {(name, i): (int(rows), width) for i, rows in enumerate(chunks)}
    return da.Array(graph, name, (chunks,), dtype=object)  # type: ignore[no-untyped-call]


def keep(array: Any) -> Any:
    """Return an array whose blocks are made now, once, and stay on the workers."""
    with _explained(), _large_graphs():
        return dask_persist(array)[0]  # type: ignore[no-untyped-call]


def compute(*collections: Any) -> tuple[Any, ...]:
    """Return the values of dask collections, on the client.

    A cluster that has no workers for longer than the setting ``TIMEOUT`` says, by
    default a minute, is given up with an error.
    """
    with _explained(), _large_graphs():
        client = _client(collections)
        if client is None:
            return tuple(dask_compute(*collections))  # type: ignore[no-untyped-call]
        futures = client.compute(collections)
        try:
            return tuple(_wait(client, futures))
        except BaseException:  # nobody waits for them any more: Ctrl-C, for example
            client.cancel(futures)
            raise


def map_blocks(
    work: Callable[..., Any], *given: Any, chunks: tuple[int, ...] | None = None
) -> Any:
    """Return what some work makes of the blocks of tall arrays, line by line.

    ``chunks`` says how many lines come of each block; by default one for each row.
    """
    alike = [_one_row(each) if isinstance(each, da.Array) else each for each in given]
    with np.errstate(all="ignore"):
        example = work(*alike)
    return _blockwise(work, given, example[:0], tuple(example.shape[1:]), chunks)


def objects(work: Callable[..., Any], *given: Any) -> Any:
    """Return what some work makes of each block, whatever it is; as a dask array."""
    return _blockwise(work, given, np.empty(0, dtype=object), (), None)


def lines_of(results: Any, number: int, chunks: tuple[int, ...], like: Any) -> Any:
    """Return one of the arrays that sweeps have made, second, of each block.

    ``like`` is an empty array of its kind.
    """
    work = partial(_line, number, like)
    return _blockwise(work, (results,), like, tuple(like.shape[1:]), chunks)


def blocks_of(results: Any) -> list[Any]:
    """Return the blocks of a dask array, one after the other, as delayed objects."""
    return list(results.to_delayed().ravel())


def in_one_block(array: Any) -> Any:
    """Return an array whose blocks are put together, on one worker."""
    whole = delayed(_stacked)(blocks_of(array))
    return da.from_delayed(whole, array.shape, meta=array._meta)  # type: ignore[no-untyped-call]


def _stacked(blocks: list[Any]) -> Any:
    if sp.issparse(blocks[0]):
        return sp.vstack(blocks, format="csr")
    return ops_of(blocks[0]).stack(blocks)


def sum_blocks(work: Callable[..., Any], *given: Any) -> Any:
    """Return the sum, on the client, of what some work makes of each block."""
    # Until all is computed this holds on to what is on the workers.
    results = objects(partial(_unless_empty, work), *given)
    return compute(tree_sum(blocks_of(results)))[0]


def gather(work: Callable[..., Any], *given: Any) -> list[Any]:
    """Return what some work makes of each block, which should be little.

    It is None for a block without rows.
    """
    results = objects(partial(_unless_empty, work), *given)
    return list(compute(*blocks_of(results)))


def tree_sum(parts: list[Any]) -> Any:
    """Add up parts eight at a time, each where some of them are.

    A part is an array or a tuple of arrays; None where a block has no rows.
    """
    while True:
        few = [parts[i : i + 8] for i in range(0, len(parts), 8)]
        parts = [delayed(_add, pure=False)(some) for some in few]
        if len(parts) == 1:
            return parts[0]


def _add(parts: list[Any]) -> Any:
    parts = [part for part in parts if part is not None]
    if not parts or not isinstance(parts[0], tuple):
        return sum(parts) if parts else None
    return tuple(sum(each) for each in zip(*parts, strict=True))


def _line(number: int, like: Any, result: Any) -> Any:
    return like if result is None else result[1][number]


def _blockwise(
    work: Callable[..., Any],
    given: tuple[Any, ...],
    meta: Any,
    trailing: tuple[int, ...],
    chunks: tuple[int, ...] | None,
) -> Any:
    """Return a dask array of work on blocks of those among what is given."""
    # Each further dimension is one chunk: dask hands it over as a list of one block.
    pairs: list[Any] = []
    for number, each in enumerate(given):
        index = None
        if isinstance(each, da.Array):
            if each.numblocks[1:] != (1,) * (each.ndim - 1):
                whole = dict.fromkeys(range(1, each.ndim), -1)
                each = each.rechunk(whole)  # type: ignore[no-untyped-call]
            index = ("row", *(f"{number}.{axis}" for axis in range(1, each.ndim)))
        pairs += [each, index]
    new = {f"new{axis}": size for axis, size in enumerate(trailing)}
    # What the work carries is one node of the graph, not sent with every task.
    shared = delayed(work, pure=False, traverse=False)
    return da.blockwise(  # type: ignore[no-untyped-call]
        _call,
        ("row", *new),
        shared,
        None,
        *pairs,
        new_axes=new,
        adjust_chunks=None if chunks is None else {"row": tuple(chunks)},
        align_arrays=False,
        dtype=meta.dtype,
        meta=meta,
    )


def _unless_empty(work: Callable[..., Any], block: Any, *others: Any) -> Any:
    return work(block, *others) if block.shape[0] else None


def _call(work: Callable[..., Any], *blocks: Any) -> Any:
    return work(*map(_whole, blocks))


def _whole(block: Any) -> Any:
    while isinstance(block, list):
        (block,) = block
    return block


def _one_row(array: Any) -> Any:
    """Return one row of zeros, as an array of the blocks' kind."""
    shape = (1, *array.shape[1:])
    return np.zeros_like(array._meta, shape=shape, dtype=array.dtype)


def _client(collections: tuple[Any, ...]) -> Any:
    """Return the client of the cluster that computes; None where there is none."""
    if "distributed" not in sys.modules:
        return None
    from distributed import Client

    get = get_scheduler(collections=collections)  # type: ignore[no-untyped-call]
    client = getattr(get, "__self__", None)
    return client if isinstance(client, Client) else None


def _wait(client: Any, futures: list[Any]) -> list[Any]:
    """Return the results of futures, unless the cluster stays without workers."""
    from distributed import wait

    limit = parse_timedelta(dask.config.get(TIMEOUT, "60s"))
    step, seen = min(1.0, limit / 4), time.monotonic()
    while True:
        try:
            wait(futures, timeout=step)  # type: ignore[no-untyped-call]
            # Workers may go away before they have handed over what they made.
            return list(client.sync(_gathered, client, futures, callback_timeout=limit))
        except TimeoutError:
            if client.scheduler_info()["workers"]:
                seen = time.monotonic()
            elif time.monotonic() - seen >= limit:
                raise RuntimeError(
                    f"The dask cluster has had no workers for {limit:g} seconds. Start "
                    "some, or wait for longer: dask.config.set({'" + TIMEOUT + "': "
                    "'10 minutes'}). Then start again."
                ) from None


async def _gathered(client: Any, futures: list[Any]) -> list[Any]:
    found: list[Any] = await client.gather(futures, asynchronous=True)
    return found


def _large_graphs() -> AbstractContextManager[Any]:
    """Return a context in which dask does not warn of arrays that it has to send."""
    # Without its module there is no cluster, nor a place for its settings.
    name = "distributed.admin.large-graph-warning-threshold"
    return dask.config.set({name: "1 TB"} if "distributed" in sys.modules else {})


@contextmanager
def _explained() -> Iterator[None]:
    """Say what an error of a cluster, not of the work, means."""
    try:
        yield
    except (Exception, CancelledError) as error:
        if not _is_lost(error):
            raise
        raise RuntimeError(
            f"dask lost X or its results ({type(error).__name__}: {error}). If the "
            "cluster was closed, start another and create X again: a persisted X is "
            "gone with its cluster. If the cluster is running, give its workers memory "
            "for several chunks each."
        ) from error


def _is_lost(error: BaseException) -> bool:
    """Tell whether an error is that of a cluster, not of the work."""
    home = type(error).__module__.partition(".")[0]
    # What a closed client kept is no longer there for dask without a cluster.
    missing = isinstance(error, ValueError) and "Missing dependency" in str(error)
    return missing or isinstance(error, CancelledError) or home == "distributed"


class BlockOps(Ops):
    """Tall arrays of dask: what ``inner`` does is done to their blocks of rows."""

    lazy = True

    def __init__(self, inner: Ops) -> None:
        super().__init__(compat.array_namespace(da.empty(0)))
        self.inner, self.few = inner, HOST

    def __reduce__(self) -> Any:
        return block_ops, (self.inner,)

    def keep(self, a: Tall) -> Tall:
        return keep(a) if is_lazy(a) else a

    def to_host(self, a: Any) -> np.ndarray:
        return to_host(compute(a)[0] if is_lazy(a) else a)

    def to_device(self, a: Any, like: Tall) -> Tall:
        if is_lazy(a) or not is_lazy(like):
            return a
        # What has no line for each row goes with every block.
        if np.ndim(a) > 0 and np.shape(a)[0] == like.shape[0] > 1:
            return from_host(to_host(a), like.chunks[0], like._meta)
        return a if self.inner is HOST else self.inner.to_device(a, like._meta)

    def cast_like(self, a: Any, like: Tall) -> Tall:
        if not is_lazy(like):
            return HOST.cast_like(a, like)
        if not is_lazy(a):
            a = self.to_device(
                np.asarray(to_host(a), dtype=self.host_dtype(like)), like
            )
        return ops_of(a).xp.astype(a, like.dtype, copy=False)

    def ranges(self, rows: Tall, width: int = 1) -> list[slice]:
        return [slice(0, rows.shape[0])]

    def row_map(self, work: Callable[..., Tall], *tall: Tall, width: int = 1) -> Tall:
        return map_blocks(partial(work, self.inner), *tall)

    def row_sums(
        self, work: Callable[..., tuple[Any, ...]], *tall: Tall, width: int = 1
    ) -> tuple[np.ndarray, ...]:
        return tuple(sum_blocks(partial(_host_sums, work, self.inner), *tall))

    def few_rows(self, tall: Tall, positions: np.ndarray | slice) -> np.ndarray:
        positions = np.arange(tall.shape[0])[positions]
        order = np.argsort(positions, kind="stable")
        ends = np.cumsum([0, *tall.chunks[0]])
        cuts = np.searchsorted(positions[order], ends)
        empty = to_host(tall._meta)[:0].reshape((0, *tall.shape[1:]))
        blocks = blocks_of(tall)
        wanted = [
            delayed(_host_rows)(
                self.inner, blocks[i], positions[order[first:last]] - ends[i]
            )
            for i, (first, last) in enumerate(pairwise(cuts))
            if first < last
        ]
        rows = np.concatenate([empty, *compute(*wanted)])
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return rows[back]

    def rows_where(self, tall: Tall, mask: Tall) -> Tall:
        counts = tuple(count or 0 for count in gather(_count, mask))
        return map_blocks(self.inner.rows_where, tall, mask, chunks=counts)

    def in_blocks_of(
        self, values: np.ndarray, mask: np.ndarray, tall_mask: Tall
    ) -> Tall:
        ends = np.cumsum([0, *tall_mask.chunks[0]])
        counts = np.diff(np.append(0, np.cumsum(mask))[ends])
        return from_host(values, tuple(counts.tolist()), tall_mask._meta)

    def place(self, values: Tall, where: Tall, others: Tall | None = None) -> Tall:
        given = [values, where] if others is None else [values, where, others]
        return map_blocks(self.inner.place, *given, chunks=where.chunks[0])

    def gather_blocks(self, work: Callable[..., Any], *tall: Tall) -> list[Any]:
        results = gather(partial(work, self.inner), *tall)
        return [result for result in results if result is not None]

    def block_starts(self, tall: Tall) -> list[int]:
        starts = np.cumsum([0, *tall.chunks[0][:-1]]).tolist()
        return [start for start, n in zip(starts, tall.chunks[0], strict=True) if n]

    def take_lines(self, table: np.ndarray, labels: Tall) -> Tall:
        return map_blocks(partial(self.inner.take_lines, table), labels)

    def column_totals(self, values: Tall) -> Tall:
        return sum_blocks(self.inner.column_totals, values)

    def largest(self, values: Tall, count: int) -> np.ndarray:
        parts = self.gather_blocks(partial(_largest_of_block, count), values)
        starts = self.block_starts(values)
        places = [at + start for (at, _), start in zip(parts, starts, strict=True)]
        top = np.concatenate([numbers for _, numbers in parts])
        return np.concatenate(places)[
            np.argsort(top, kind="stable")[len(top) - count :]
        ]

    def median(
        self, values: Tall, weights: Tall | None = None, where: Tall | None = None
    ) -> float:
        # No more than a few numbers of a block move: it is the smallest number with
        # more than half of the weight up to it.
        given = _counted_by(values, weights, where)
        low, high, total = self._extents(given)
        return self._with_more_below(given, low, high, total / 2)

    def in_order(
        self, values: Tall, places: np.ndarray, where: Tall | None = None
    ) -> np.ndarray:
        given = _counted_by(values, None, where)
        low, high, _ = self._extents(given)
        wanted = set(places.tolist())
        at = {i: self._with_more_below(given, low, high, i) for i in wanted}
        return np.array([at[i] for i in places.tolist()])

    def _extents(self, given: list[Tall]) -> tuple[float, float, float]:
        low, high, total = np.array(self.gather_blocks(_extent, *given)).T
        return float(low.min()), float(high.max()), float(total.sum())

    def _with_more_below(
        self, given: list[Tall], low: float, high: float, target: float
    ) -> float:
        """Return the smallest number with more than so much weight up to it.

        Counts in bins show the bin that holds it, until that has few numbers.
        """
        while True:
            edges = np.linspace(low, high, 2**10 + 1)
            mass, rows = sum_blocks(partial(_in_bins, edges), *given)
            at = int(np.searchsorted(np.cumsum(mass), target, side="right"))
            if at >= len(edges):  # only the largest of all
                return high
            low, high = float(edges[at - 1]), float(edges[at])
            if not low < (low + high) / 2 < high:  # no other number lies between
                return low
            if rows[at] <= 2**12:
                break
        parts = self.gather_blocks(partial(_in_bin, low, high), *given)
        numbers, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.argsort(numbers, kind="stable")
        below = mass[:at].sum() + np.cumsum(counts[order])
        at = int(np.searchsorted(below, target, side="right"))
        return float(numbers[order[min(at, len(numbers) - 1)]])


def _on_blocks(name: str, kind: str) -> Callable[..., Any]:
    """Return a method of blocks: what the inner one makes of each, or their sum."""
    over = map_blocks if kind == "rows" else sum_blocks

    def method(self: BlockOps, *given: Any) -> Any:
        like = next((array for array in given if is_lazy(array)), None)
        if like is None:  # sums over rows, which are on the host
            return getattr(HOST, name)(*given)
        inner = getattr(self.inner, name)
        # Arrays of the host with a line for each row go to the blocks.
        aligned = [
            self.to_device(array, like) if isinstance(array, np.ndarray) else array
            for array in given
        ]
        return over(inner, *aligned)

    method.__doc__ = getattr(Ops, name).__doc__
    return method


for _name, _method in vars(Ops).items():
    if hasattr(_method, "over_blocks") and _name not in vars(BlockOps):
        setattr(BlockOps, _name, _on_blocks(_name, _method.over_blocks))


@cache
def block_ops(inner: Ops) -> BlockOps:
    """Return what serves dask arrays whose blocks another object serves."""
    return BlockOps(inner)


def _host_sums(work: Callable[..., Any], ops: Ops, *tall: Tall) -> tuple[Any, ...]:
    return tuple(map(ops.to_host, work(ops, *tall)))


def _host_rows(ops: Ops, block: Tall, positions: np.ndarray) -> np.ndarray:
    return ops.to_host(ops.few_rows(block, positions))


def _count(mask: Tall) -> int:
    return int(ops_of(mask).xp.count_nonzero(mask))


def _largest_of_block(
    count: int, ops: Ops, block: Tall
) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and values of the largest of a block."""
    places = ops.largest(block, min(count, block.shape[0]))
    return places, ops.to_host(ops.few_rows(block, places))


def _counted_by(values: Tall, weights: Tall | None, where: Tall | None) -> list[Tall]:
    """Return numbers and how much they count, unless all count alike."""
    if weights is None and where is None:
        return [values]
    counts = 1.0 if weights is None else weights
    return [values, counts * (1.0 if where is None else where)]


def _that_count(values: Tall, counts: Tall | None) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers that count, and how much, on the host of the block."""
    values = to_host(values).astype(np.float64, copy=False)
    if counts is None:
        return values, np.ones(len(values))
    counts = to_host(counts)
    return values[counts > 0], counts[counts > 0]


def _extent(_: Ops, values: Tall, counts: Tall = None) -> tuple[float, float, float]:
    """Return the ends and the weight of the numbers of a block."""
    values, counts = _that_count(values, counts)
    least, most = values.min(initial=np.inf), values.max(initial=-np.inf)
    return float(least), float(most), float(counts.sum())


def _in_bins(edges: np.ndarray, values: Tall, counts: Tall | None = None) -> Any:
    """Return the weight and the number of numbers up to, between and from edges on."""
    values, counts = _that_count(values, counts)
    bins, size = np.searchsorted(edges, values, side="right"), len(edges) + 1
    return np.bincount(bins, counts, size), np.bincount(bins, minlength=size)


def _in_bin(low: float, high: float, _: Ops, values: Tall, counts: Tall = None) -> Any:
    """Return the numbers between two edges, and how much they count."""
    values, counts = _that_count(values, counts)
    inside = (values >= low) & (values < high)
    return values[inside], counts[inside]
