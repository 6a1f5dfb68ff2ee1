"""Tall arrays of dask: what is done with them is done to their blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import array_api_compat as compat
import dask.array as da
import numpy as np

from ihgmm.matrix import dask_blocks as blocks
from ihgmm.matrix.ops import HOST, Ops, Tall, is_lazy, library_ops, to_host


class BlockOps(Ops):
    """Tall arrays of dask: what ``inner`` does is done to their blocks of rows."""

    def __init__(self, inner: Ops) -> None:
        super().__init__(compat.array_namespace(da.empty(0)))
        self.inner, self.few = inner, HOST

    def __reduce__(self) -> Any:
        return block_ops, (self.inner,)

    def keep(self, a: Tall) -> Tall:
        return blocks.keep(a) if is_lazy(a) else a

    def to_device(self, a: Any, like: Tall) -> Tall:
        if is_lazy(a) or not is_lazy(like):
            return a
        # What has no line for each row goes with every block.
        if np.ndim(a) > 0 and np.shape(a)[0] == like.shape[0] > 1:
            return blocks.from_host(to_host(a), like.chunks[0], like._meta)
        return a if self.inner is HOST else self.inner.to_device(a, like._meta)

    def cast_like(self, a: Any, like: Tall) -> Tall:
        if not is_lazy(like):
            return HOST.cast_like(a, like)
        if not is_lazy(a):
            a = self.to_device(
                np.asarray(to_host(a), dtype=self.host_dtype(like)), like
            )
        xp = self.xp if is_lazy(a) else self.inner.xp
        return xp.astype(a, like.dtype, copy=False)

    def row_map(self, work: Callable[..., Tall], *tall: Tall, width: int = 1) -> Tall:
        return blocks.map_blocks(partial(work, self.inner), *tall)

    def row_sums(
        self, work: Callable[..., tuple[Any, ...]], *tall: Tall, width: int = 1
    ) -> tuple[np.ndarray, ...]:
        return tuple(blocks.sum_blocks(partial(_host_sums, work, self.inner), *tall))

    def few_rows(self, tall: Tall, positions: np.ndarray | slice) -> np.ndarray:
        return self.to_host(tall[positions])

    def rows_where(self, tall: Tall, mask: Tall) -> Tall:
        counts = tuple(count or 0 for count in blocks.gather(_count, mask))
        return blocks.map_blocks(self.inner.rows_where, tall, mask, chunks=counts)

    def place(self, values: Tall, where: Tall, others: Tall | None = None) -> Tall:
        given = [values, where] if others is None else [values, where, others]
        return blocks.map_blocks(self.inner.place, *given, chunks=where.chunks[0])

    def gather_blocks(self, work: Callable[..., Any], *tall: Tall) -> list[Any]:
        results = blocks.gather(partial(work, self.inner), *tall)
        return [result for result in results if result is not None]

    def block_starts(self, tall: Tall) -> list[int]:
        starts = np.cumsum([0, *tall.chunks[0][:-1]]).tolist()
        return [start for start, n in zip(starts, tall.chunks[0], strict=True) if n]

    def take_lines(self, table: np.ndarray, labels: Tall) -> Tall:
        return blocks.map_blocks(partial(self.inner.take_lines, table), labels)

    def column_totals(self, values: Tall) -> Tall:
        return blocks.sum_blocks(self.inner.column_totals, values)

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

    def in_order(self, values: Tall, places: np.ndarray) -> np.ndarray:
        low, high, _ = self._extents([values])
        found = [self._with_more_below([values], low, high, i) for i in places.tolist()]
        return np.array(found)

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
            mass, rows = blocks.sum_blocks(partial(_in_bins, edges), *given)
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
    over = blocks.map_blocks if kind == "rows" else blocks.sum_blocks

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


def _count(mask: Tall) -> int:
    return int(library_ops(mask).xp.count_nonzero(mask))


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
