"""Tall arrays of dask: what is done with them is done to their blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import array_api_compat as compat
import dask.array as da
import numpy as np
from dask.delayed import delayed

from ihgmm.matrix import dask_blocks as blocks
from ihgmm.matrix.ops import HOST, Ops, Tall, is_lazy, to_host


class BlockOps(Ops):
    """Tall arrays of dask: what ``inner`` does is done to their blocks of rows."""

    def __init__(self, inner: Ops) -> None:
        super().__init__(compat.array_namespace(da.empty(0)))
        self.inner, self.few_ops = inner, HOST

    def __reduce__(self) -> Any:
        return block_ops, (self.inner,)

    def persist(self, a: Tall) -> Tall:
        return blocks.persist(a) if is_lazy(a) else a

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
            a = np.asarray(to_host(a), dtype=self.host_dtype(like))
            a = self.to_device(a, like)
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
        counts = map(delayed(lambda part: int(part.sum())), mask.to_delayed().ravel())
        return blocks.rows_where(tall, mask, blocks.compute(*counts))

    def place(self, values: Tall, where: Tall, others: Tall | None = None) -> Tall:
        given = [values, where] if others is None else [values, where, others]
        return blocks.map_blocks(self.inner.place, *given, chunks=where.chunks[0])

    def take_lines(self, table: np.ndarray, labels: Tall) -> Tall:
        return blocks.map_blocks(partial(self.inner.take_lines, table), labels)


def _on_blocks(name: str, way: str) -> Callable[..., Any]:
    """Return a method of blocks: what the inner one makes of them."""
    over = getattr(blocks, way)

    def method(self: BlockOps, *given: Any) -> Any:
        like = next((array for array in given if is_lazy(array)), None)
        if like is None:  # sums over rows, which are on the host
            return getattr(HOST, name)(*given)
        # Arrays of the host with a line for each row go to the blocks.
        aligned = [
            self.to_device(array, like) if isinstance(array, np.ndarray) else array
            for array in given
        ]
        return over(getattr(self.inner, name), *aligned)

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
