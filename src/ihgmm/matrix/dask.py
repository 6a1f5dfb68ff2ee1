"""Rows of a dask array: work goes to where the blocks are, small results come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, cached_property, partial
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import array_api_compat as compat
import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed, delayed

from ihgmm.matrix import dask_blocks as lazy
from ihgmm.matrix.arrays import AnyArray, Tall, is_lazy, to_host
from ihgmm.matrix.base import (
    NO_METADATA,
    Index,
    Lines,
    Matrix,
    Metadata,
    Sums,
    T,
    float_type,
)
from ihgmm.matrix.host_ops import HOST, library_ops
from ihgmm.matrix.materialized import Materialized
from ihgmm.matrix.ops import Ops
from ihgmm.matrix.stored import Blocks, materialize


def open_dask(X: Any) -> DaskRows:
    """Return a dask array or data frame as a matrix, checked for its shape."""
    array = X
    if hasattr(X, "to_dask_array"):
        array = X.to_dask_array().compute_chunk_sizes()

    if not isinstance(array, da.Array):
        raise TypeError(
            f"X is a dask {type(array).__name__}; give a dask array or data frame."
        )
    if array.ndim != 2:
        raise ValueError(
            f"X is a dask array of {array.ndim} dimension(s); give one of two, rows by "
            "features."
        )
    if np.isnan(array.shape).any():
        raise ValueError(
            f"X is a dask array of unknown chunk sizes (shape {array.shape}); call "
            "X.compute_chunk_sizes() first."
        )

    if len(array.chunks[1]) > 1:
        array = array.rechunk({0: "auto", 1: -1})
    if array.shape[0] == 1:  # beside chunks without rows
        array = array.rechunk(-1)

    names = [str(name) for name in getattr(X, "columns", ())]
    return DaskRows(array, Metadata(names=names or None))


class BlockResult(NamedTuple):
    """What work of a sweep makes of a block: lines on its worker, sums on the host."""

    lines: Lines
    sums: Sums


class DaskRows(Blocks):
    """Rows of a dask array, one block for each chunk; tall arrays are in the same."""

    distributed = True

    def __init__(self, X: da.Array, metadata: Metadata = NO_METADATA) -> None:
        shape = (int(X.shape[0]), int(X.shape[1]))
        ops = block_ops(library_ops(X._meta))
        super().__init__(shape, float_type(X.dtype), metadata, ops)
        self.X = X
        self.sparse = sp.issparse(X._meta)

    @cached_property
    def row_blocks(self) -> list[slice]:
        edges = np.cumsum([0, *self.X.chunks[0]]).tolist()
        return [slice(start, stop) for start, stop in pairwise(edges) if start < stop]

    @cached_property
    def n_entries(self) -> int:
        if not self.sparse:
            return self.shape[0] * self.shape[1]
        return sum(self.map(attrgetter("n_entries")))

    def map(self, work: Callable[..., T], *tall: Tall | None) -> Iterator[T]:
        yield from lazy.gather(self._work_on_blocks(work, *tall))

    def sweep(
        self, work: Callable[..., tuple[Lines, Sums]], *tall: Tall | None
    ) -> tuple[Lines, tuple[np.ndarray, ...]]:
        def work_on_block(block: Matrix, *parts: Tall) -> BlockResult:
            lines, sums = work(block, *parts)
            return BlockResult(lines=lines, sums=tuple(map(to_host, sums)))

        # The work is done once; lines and sums are then taken from its results.
        results = lazy.persist(self._work_on_blocks(work_on_block, *tall))

        totals, kinds_of_lines = lazy.compute(
            _total_sums(results), self._kinds_of_lines(results)
        )

        lines = [_lines(results, number, kind) for number, kind in kinds_of_lines]
        return tuple(lines), totals

    def _kinds_of_lines(self, results: da.Array) -> Delayed:
        """Return the number of each array of lines, and an empty array of its kind."""

        def kinds_of_block(result: BlockResult) -> list[tuple[int, AnyArray]]:
            return [(number, lines[:0]) for number, lines in enumerate(result.lines)]

        first_block = next(i for i, n_rows in enumerate(self.X.chunks[0]) if n_rows)
        return delayed(kinds_of_block)(results.to_delayed()[first_block])

    def _work_on_blocks(self, work: Callable[..., Any], *tall: Tall | None) -> da.Array:
        """Return what some work makes of each block, as a dask array of objects."""
        self.read_count.rows += self.n_stored
        # Workers get these, and not the matrix.
        is_sparse = self.sparse
        dtype = self.dtype
        factor = self.factor
        metadata = self.metadata.of_taken_rows()

        def work_on_chunk(chunk: Any, rows: tuple[int, int], *parts: Tall) -> Any:
            _check_chunk(chunk, rows, is_sparse=is_sparse)
            return work(materialize(chunk, dtype, factor, metadata), *parts)

        row_numbers = lazy.row_numbers(self.X.chunks[0])
        return lazy.objects(
            work_on_chunk, self.X, row_numbers, *map(self.to_device, tall)
        )

    def take(self, rows: Index) -> Materialized:
        (entries,) = lazy.compute(lazy.take(self.X, rows))
        return self.materialize(entries if self.sparse else to_host(entries))

    def _select_rows(self, rows: np.ndarray) -> DaskRows:
        edges = np.cumsum([0, *self.X.chunks[0]])
        chunks = tuple(np.diff(np.searchsorted(rows, edges)).tolist())

        is_member = np.zeros(self.shape[0], dtype=bool)
        is_member[rows] = True
        X = lazy.rows_where(self.X, self.to_device(is_member), chunks)

        part = DaskRows(X, self.metadata.of_taken_rows())
        return part._replaced(factor=self.factor)

    def copy_rows(self, rows: np.ndarray) -> DaskRows:
        self.read_count.rows += self.n_stored
        part = self._select_rows(rows)
        return part._replaced(X=lazy.persist(part.X))

    def to_device(self, values: AnyArray) -> Tall:
        if values is None:
            return None
        chunks = self.X.chunks[0]
        if is_lazy(values):
            has_these_chunks = values.chunks[0] == chunks
            return values if has_these_chunks else values.rechunk({0: chunks})

        values = to_host(values)
        if values.shape[:1] != self.shape[:1]:
            return values

        # Beside sparse blocks tall arrays are NumPy's, else of the library of blocks.
        like = np.empty(0) if self.sparse else self.X._meta
        return lazy.from_host(values, chunks, like)

    def cast(self, values: AnyArray) -> AnyArray:
        if is_lazy(values):
            return values.astype(self.dtype)
        return np.asarray(to_host(values), dtype=self.dtype)

    def map_rows(
        self, work: Callable[[Any], Tall], dtype: Any, *, whole: bool = False
    ) -> da.Array:
        line_shape = self.shape[1:] if whole else ()
        no_lines = self.X._meta[:0].astype(dtype) if whole else np.empty(0, dtype=dtype)

        def work_on_chunk(chunk: Any, rows: tuple[int, int]) -> Tall:
            """Do the work on a block, unless it is empty; an error names its rows."""
            try:
                return work(chunk) if chunk.shape[0] else no_lines
            except ValueError as error:
                which = f"rows {rows[0]} to {rows[1] - 1}"
                raise ValueError(f"In the chunk of {which}: {error}") from error

        arguments = (self.X, lazy.row_numbers(self.X.chunks[0]))
        return lazy.blockwise(work_on_chunk, arguments, no_lines, line_shape)


def _check_chunk(chunk: Any, rows: tuple[int, int], *, is_sparse: bool) -> None:
    """Raise unless a chunk is as it was announced, in its height and its kind."""
    start, stop = rows

    if chunk.shape[0] != stop - start:
        raise ValueError(
            f"The chunk of rows {start} to {stop - 1} of the dask array X "
            f"has {chunk.shape[0]} rows; call X.compute_chunk_sizes() first."
        )

    if sp.issparse(chunk) and not is_sparse:
        raise ValueError(
            "A chunk of the dask array X is sparse where a dense one was "
            "announced; give X.map_blocks its "
            "meta=scipy.sparse.csr_array((0, 0))."
        )


def _total_sums(results: da.Array) -> Delayed:
    """Return the sums over all blocks, delayed, of the results of a sweep."""

    def sums_of_block(result: BlockResult | None) -> Sums | None:
        return None if result is None else result.sums

    nothing = np.empty(0, dtype=object)
    return lazy.sum_objects(lazy.blockwise(sums_of_block, (results,), nothing))


def _lines(results: da.Array, number: int, kind: AnyArray) -> da.Array:
    """Return one of the arrays of lines that a sweep makes, on the workers."""

    def lines_of_block(result: BlockResult | None) -> AnyArray:
        return kind if result is None else result.lines[number]

    lines = lazy.blockwise(lines_of_block, (results,), kind, kind.shape[1:])
    return lazy.persist(lines)


def _done_to_blocks(name: str, combine: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of :class:`BlockOps` that other ops do, block by block.

    Parameters
    ----------
    name : str
        The method of the ops of blocks that does it.
    combine : callable
        Takes this method and its arguments, in blocks; does it to all blocks, and
        returns the result for all rows.
    """

    def method(self: BlockOps, *arguments: Any) -> Any:
        like = next((array for array in arguments if is_lazy(array)), None)
        if like is None:  # sums over rows, which are on the host
            return getattr(HOST, name)(*arguments)

        # Arrays of the host with a line for each row go to the blocks.
        in_blocks = [
            self.to_device(argument, like)
            if isinstance(argument, np.ndarray)
            else argument
            for argument in arguments
        ]
        return combine(getattr(self.inner, name), *in_blocks)

    return method


class BlockOps(Ops):
    """Tall arrays of dask: what ``inner`` does is done to their blocks of rows."""

    def __init__(self, inner: Ops) -> None:
        super().__init__(compat.array_namespace(da.empty(0)))
        self.inner = inner
        self.taken_ops = HOST

    def __reduce__(self) -> tuple[Any, ...]:
        return block_ops, (self.inner,)

    def persist(self, a: Tall) -> Tall:
        return lazy.persist(a) if is_lazy(a) else a

    def to_device(self, a: AnyArray, like: Tall) -> AnyArray:
        if is_lazy(a) or not is_lazy(like):
            return a

        # What has no line for each row goes with every block.
        if np.ndim(a) > 0 and np.shape(a)[0] == like.shape[0] > 1:
            return lazy.from_host(to_host(a), like.chunks[0], like._meta)

        return a if self.inner is HOST else self.inner.to_device(a, like._meta)

    def cast_like(self, a: AnyArray, like: Tall) -> AnyArray:
        if not is_lazy(like):
            return HOST.cast_like(a, like)

        if not is_lazy(a):
            a = np.asarray(to_host(a), dtype=self.host_dtype(like))
            a = self.to_device(a, like)

        xp = self.xp if is_lazy(a) else self.inner.xp
        return xp.astype(a, like.dtype, copy=False)

    def row_map(self, work: Callable[..., Tall], *tall: Tall, width: int = 1) -> Tall:
        return lazy.map_blocks(partial(work, self.inner), *tall)

    def take_rows(self, tall: Tall, positions: np.ndarray | slice) -> np.ndarray:
        return self.to_host(lazy.take(tall, positions))

    def rows_where(self, tall: Tall, is_member: Tall) -> Tall:
        def count(part: AnyArray) -> int:
            return int(part.sum())

        parts = is_member.to_delayed().ravel()
        chunks = lazy.compute(*map(delayed(count), parts))
        return lazy.rows_where(tall, is_member, chunks)

    def place(self, lines: Tall, is_member: Tall, others: Tall | None = None) -> Tall:
        arguments = [lines, is_member]
        if others is not None:
            arguments.append(others)
        return lazy.map_blocks(self.inner.place, *arguments, chunks=is_member.chunks[0])

    def take_lines(self, table: np.ndarray, labels: Tall) -> Tall:
        return lazy.map_blocks(partial(self.inner.take_lines, table), labels)

    # Made of each row alone: lines stay on the workers, in the blocks of the rows.
    beside = _done_to_blocks("beside", lazy.map_blocks)
    row_dots = _done_to_blocks("row_dots", lazy.map_blocks)
    row_norms = _done_to_blocks("row_norms", lazy.map_blocks)
    unit_rows = _done_to_blocks("unit_rows", lazy.map_blocks)
    row_max = _done_to_blocks("row_max", lazy.map_blocks)
    ratio = _done_to_blocks("ratio", lazy.map_blocks)
    clip = _done_to_blocks("clip", lazy.map_blocks)
    softmax = _done_to_blocks("softmax", lazy.map_blocks)
    logsumexp = _done_to_blocks("logsumexp", lazy.map_blocks)
    log_ndtr = _done_to_blocks("log_ndtr", lazy.map_blocks)
    sign_of = _done_to_blocks("sign_of", lazy.map_blocks)
    pick = _done_to_blocks("pick", lazy.map_blocks)

    # Sums over rows: those of blocks are added up, and the total comes to the client.
    tall_dot = _done_to_blocks("tall_dot", lazy.sum_blocks)
    basis_dot = _done_to_blocks("basis_dot", lazy.sum_blocks)
    group_sums = _done_to_blocks("group_sums", lazy.sum_blocks)
    many_group_sums = _done_to_blocks("many_group_sums", lazy.sum_blocks)
    sums_of_rows = _done_to_blocks("sums_of_rows", lazy.sum_blocks)

    # Largest entries: the larger of those of blocks come to the client.
    column_peaks = _done_to_blocks("column_peaks", lazy.peak_of_blocks)
    group_maxima = _done_to_blocks("group_maxima", lazy.peak_of_blocks)

    # Order: all rows have to be on one worker.
    largest = _done_to_blocks("largest", lazy.on_one_block)
    in_order = _done_to_blocks("in_order", lazy.on_one_block)


@cache
def block_ops(inner: Ops) -> BlockOps:
    """Return what serves dask arrays whose blocks another object serves."""
    return BlockOps(inner)
