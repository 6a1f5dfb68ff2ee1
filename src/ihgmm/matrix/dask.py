"""Rows of a dask array: work goes to where the blocks are, small results come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, cached_property, partial
from itertools import pairwise
from operator import attrgetter
from typing import Any

import array_api_compat as compat
import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.delayed import delayed

from ihgmm.matrix import dask_blocks as lazy
from ihgmm.matrix.base import NOTHING, About, Index, Matrix, T, Work, float_type
from ihgmm.matrix.ops import HOST, Ops, Tall, is_lazy, library_ops, to_host
from ihgmm.matrix.stored import Blocks, held


def open_dask(X: Any) -> DaskRows:
    """Return a dask array or data frame as a matrix, checked for its shape."""
    given = X
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array().compute_chunk_sizes()
    if not isinstance(X, da.Array):
        raise TypeError(
            f"X is a dask {type(X).__name__}; give a dask array or data frame."
        )
    if X.ndim != 2:
        raise ValueError(
            f"X is a dask array of {X.ndim} dimension(s); give one of two, rows by "
            "features."
        )
    if np.isnan(X.shape).any():
        raise ValueError(
            f"X is a dask array of unknown chunk sizes (shape {X.shape}); call "
            "X.compute_chunk_sizes() first."
        )
    if len(X.chunks[1]) > 1:
        X = X.rechunk({0: "auto", 1: -1})  # type: ignore[no-untyped-call]
    if X.shape[0] == 1:  # beside chunks without rows
        X = X.rechunk(-1)
    names = [str(name) for name in getattr(given, "columns", ())] or None
    return DaskRows(X, About(names=names))


class DaskRows(Blocks):
    """Rows of a dask array, one block for each chunk; tall arrays are in the same."""

    distributed = True

    def __init__(self, X: Any, about: About = NOTHING) -> None:
        shape = (int(X.shape[0]), int(X.shape[1]))
        ops = block_ops(library_ops(X._meta))
        super().__init__(shape, float_type(X.dtype), about, ops)
        self.X, self.sparse = X, sp.issparse(X._meta)

    @cached_property
    def row_blocks(self) -> list[slice]:
        edges = pairwise(np.cumsum([0, *self.X.chunks[0]]).tolist())
        return [slice(*edge) for edge in edges if edge[0] < edge[1]]

    @cached_property
    def n_entries(self) -> int:
        if not self.sparse:
            return self.shape[0] * self.shape[1]
        return sum(self.map(attrgetter("n_entries")))

    def map(self, work: Callable[..., T], *tall: Tall | None) -> Iterator[T]:
        yield from lazy.gather(self._results(work, *tall))

    def sweep(self, work: Callable[..., Any], *tall: Any) -> tuple[Any, Any]:
        def with_sums_here(block: Matrix, *tall: Any) -> Any:
            lines, sums = work(block, *tall)
            return tuple(map(to_host, sums)), lines

        results = lazy.persist(self._results(with_sums_here, *tall))
        nothing = np.empty(0, object)
        sums = lazy.blockwise(lambda result: result and result[0], (results,), nothing)
        some = next(i for i, rows in enumerate(self.X.chunks[0]) if rows)
        # Empty arrays of the kinds that lines of a block are.
        kinds = delayed(lambda result: [line[:0] for line in result[1]])
        kinds = kinds(results.to_delayed()[some])
        totals, kinds = lazy.compute(lazy.sum_objects(sums), kinds)

        def line(number: int, like: Any) -> Any:
            def of_block(result: Any) -> Any:
                return like if result is None else result[1][number]

            made = lazy.blockwise(of_block, (results,), like, like.shape[1:])
            return lazy.persist(made)

        return tuple(line(*kind) for kind in enumerate(kinds)), totals

    def _results(self, work: Callable[..., Any], *tall: Any) -> Any:
        """Return what some work makes of each block, as a dask array of objects."""
        self.read["rows"] += self.n_stored
        given = self.X, lazy.row_numbers(self.X.chunks[0]), *map(self.to_device, tall)
        sparse = self.sparse
        kind = self.dtype, self.factor, self.about.of_taken_rows()

        def on_matrix(block: Any, rows: tuple[int, int], *tall: Any) -> Any:
            """Do the work on a block, which is as it was announced, as a matrix."""
            if block.shape[0] != rows[1] - rows[0]:
                raise ValueError(
                    f"The chunk of rows {rows[0]} to {rows[1] - 1} of the dask array X "
                    f"has {block.shape[0]} rows; call X.compute_chunk_sizes() first."
                )
            if sp.issparse(block) and not sparse:
                raise ValueError(
                    "A chunk of the dask array X is sparse where a dense one was "
                    "announced; give X.map_blocks its "
                    "meta=scipy.sparse.csr_array((0, 0))."
                )
            return work(held(block, *kind), *tall)

        return lazy.objects(on_matrix, *given)

    def take(self, rows: Index) -> Matrix:
        (entries,) = lazy.compute(lazy.take(self.X, rows))
        return self.wrap(entries if self.sparse else to_host(entries))

    def _kept(self, rows: np.ndarray) -> DaskRows:
        ends = np.cumsum([0, *self.X.chunks[0]])
        chunks = tuple(np.diff(np.searchsorted(rows, ends)).tolist())
        mask = np.zeros(self.shape[0], dtype=bool)
        mask[rows] = True
        kept = lazy.rows_where(self.X, self.to_device(mask), chunks)
        return DaskRows(kept, self.about.of_taken_rows())._but(factor=self.factor)

    def drawn(self, rows: np.ndarray) -> DaskRows:
        self.read["rows"] += self.n_stored
        kept = self._kept(rows)
        return kept._but(X=lazy.persist(kept.X))

    def to_device(self, values: Any) -> Tall:
        if values is None:
            return None
        if is_lazy(values):
            same = values.chunks[0] == self.X.chunks[0]
            return values if same else values.rechunk({0: self.X.chunks[0]})
        values = to_host(values)
        if values.shape[:1] != self.shape[:1]:
            return values
        # Beside sparse blocks tall arrays are NumPy's, else of the library of blocks.
        like = np.empty(0) if self.sparse else self.X._meta
        return lazy.from_host(values, self.X.chunks[0], like)

    def cast(self, values: Any) -> Tall:
        if is_lazy(values):
            return values.astype(self.dtype)
        return np.asarray(to_host(values), dtype=self.dtype)

    def map_rows(self, work: Work, dtype: Any, *, whole: bool = False) -> Any:
        empty = self.X._meta[:0].astype(dtype) if whole else np.empty(0, dtype=dtype)
        given = self.X, lazy.row_numbers(self.X.chunks[0])

        def named(block: Any, rows: tuple[int, int]) -> Any:
            """Do the work on a block, unless it is empty; an error names its rows."""
            try:
                return work(block) if block.shape[0] else empty
            except ValueError as error:
                where = f"rows {rows[0]} to {rows[1] - 1}"
                raise ValueError(f"In the chunk of {where}: {error}") from error

        return lazy.blockwise(named, given, empty, self.shape[1:] if whole else ())


class BlockOps(Ops):
    """Tall arrays of dask: what ``inner`` does is done to their blocks of rows."""

    def __init__(self, inner: Ops) -> None:
        super().__init__(compat.array_namespace(da.empty(0)))
        self.inner, self.taken_ops = inner, HOST

    def __reduce__(self) -> Any:
        return block_ops, (self.inner,)

    def persist(self, a: Tall) -> Tall:
        return lazy.persist(a) if is_lazy(a) else a

    def to_device(self, a: Any, like: Tall) -> Tall:
        if is_lazy(a) or not is_lazy(like):
            return a
        # What has no line for each row goes with every block.
        if np.ndim(a) > 0 and np.shape(a)[0] == like.shape[0] > 1:
            return lazy.from_host(to_host(a), like.chunks[0], like._meta)
        return a if self.inner is HOST else self.inner.to_device(a, like._meta)

    def cast_like(self, a: Any, like: Tall) -> Tall:
        if not is_lazy(like):
            return HOST.cast_like(a, like)
        if not is_lazy(a):
            a = np.asarray(to_host(a), dtype=self.host_dtype(like))
            a = self.to_device(a, like)
        xp = self.xp if is_lazy(a) else self.inner.xp
        return xp.astype(a, like.dtype, copy=False)

    def row_map(self, work: Callable[..., Any], *tall: Tall, width: int = 1) -> Tall:
        return lazy.map_blocks(partial(work, self.inner), *tall)

    def take_rows(self, tall: Tall, positions: np.ndarray | slice) -> np.ndarray:
        return self.to_host(lazy.take(tall, positions))

    def rows_where(self, tall: Tall, mask: Tall) -> Tall:
        counts = map(delayed(lambda part: int(part.sum())), mask.to_delayed().ravel())
        return lazy.rows_where(tall, mask, lazy.compute(*counts))

    def place(self, values: Tall, where: Tall, others: Tall | None = None) -> Tall:
        given = [values, where] if others is None else [values, where, others]
        return lazy.map_blocks(self.inner.place, *given, chunks=where.chunks[0])

    def take_lines(self, table: np.ndarray, labels: Tall) -> Tall:
        return lazy.map_blocks(partial(self.inner.take_lines, table), labels)


def _on_blocks(name: str, over: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of blocks: what the inner one makes of them."""

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


BY_ROW = """beside row_dots row_norms unit_rows row_max ratio clip softmax logsumexp
    log_ndtr sign_of pick"""
SUMS = "tall_dot basis_dot group_sums sums_of_rows many_group_sums"
for _over, _names in (
    (lazy.map_blocks, BY_ROW),
    (lazy.sum_blocks, SUMS),
    (lazy.peak_of_blocks, "column_peaks group_maxima"),
    (lazy.on_one_block, "largest in_order"),
):
    for _name in _names.split():
        setattr(BlockOps, _name, _on_blocks(_name, _over))


@cache
def block_ops(inner: Ops) -> BlockOps:
    """Return what serves dask arrays whose blocks another object serves."""
    return BlockOps(inner)
