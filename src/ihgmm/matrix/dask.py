"""Rows of a dask array: work goes to where the blocks are, small results come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import pairwise
from operator import attrgetter
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.delayed import delayed

from ihgmm._warnings import warn
from ihgmm.matrix import dask_blocks as lazy
from ihgmm.matrix.base import NOTHING, About, Index, Matrix, T, float_type, in_unit
from ihgmm.matrix.dask_ops import block_ops
from ihgmm.matrix.device import Device, as_floats
from ihgmm.matrix.memory import Dense
from ihgmm.matrix.ops import Tall, is_foreign, is_lazy, library_ops, to_host
from ihgmm.matrix.sparse import Sparse, without_duplicates
from ihgmm.matrix.stored import Blocks


def open_dask(X: Any) -> DaskRows:
    """Return a dask array or data frame as a matrix, checked for its shape."""
    given = X
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array(lengths=True)
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
        raise ValueError(
            f"X is a dask array with its columns in {len(X.chunks[1])} chunks; put "
            "whole rows in a chunk: X.rechunk({1: -1})."
        )
    if X.shape[0] == 1:  # beside chunks without rows
        X = X.rechunk(-1)  # type: ignore[no-untyped-call]
    names = [str(name) for name in getattr(given, "columns", ())] or None
    rows, chunks = DaskRows(X, About(names=names)), X.numblocks[0]
    size = rows.shape[0] * rows.shape[1] * rows.dtype.itemsize / chunks
    # dask spends about a millisecond on a task, in which a core multiplies a megabyte.
    if chunks > 200 and size < 2**20:
        warn(
            f"X is a dask array in {chunks} chunks of {size / 1e3:.0f} kB; "
            "dask takes longer for each than the work on it. Make them larger: "
            "X.rechunk({0: 'auto', 1: -1}).",
            UserWarning,
        )
    return rows


class DaskRows(Blocks):
    """Rows of a dask array, one block for each chunk.

    The work on a block is a task of dask, and what is lost with a worker is done again
    elsewhere. Tall arrays are dask arrays in the same blocks, sums are made on the
    workers.
    """

    distributed = True

    def __init__(self, X: Any, about: About = NOTHING) -> None:
        shape = (int(X.shape[0]), int(X.shape[1]))
        super().__init__(
            shape, float_type(X.dtype), about, block_ops(library_ops(X._meta))
        )
        self.X, self.sparse = X, sp.issparse(X._meta)
        edges = pairwise(np.cumsum([0, *X.chunks[0]]).tolist())
        self.row_blocks = [slice(*edge) for edge in edges if edge[0] < edge[1]]

    @cached_property
    def n_entries(self) -> int:
        """How many numbers are stored; sparse blocks are asked."""
        if not self.sparse:
            return self.shape[0] * self.shape[1]
        return sum(self.map(attrgetter("n_entries")))

    def map(self, work: Callable[..., T], *tall: Tall | None) -> Iterator[T]:
        yield from lazy.gather(self._results(work, *tall))

    def sweep(self, work: Callable[..., Any], *tall: Any) -> tuple[Any, Any]:
        results = lazy.persist(self._results(partial(_summed, work), *tall))
        some = next(i for i, rows in enumerate(self.X.chunks[0]) if rows)
        kinds = delayed(_empty_lines)(results.to_delayed()[some])
        sums, kinds = lazy.compute(lazy.sum_objects(results, _sums), kinds)
        lines = []
        for number, like in enumerate(kinds):
            one = partial(_line, number, like)
            lines.append(lazy.blockwise(one, (results,), like, like.shape[1:]))
        return tuple(map(lazy.persist, lines)), sums

    def _results(self, work: Callable[..., Any], *tall: Any) -> Any:
        """Return what some work makes of each block, as a dask array of objects."""
        self.read["rows"] += self.n_stored
        about = self.about.of_taken_rows()
        call = partial(_call, work, self.sparse, self.dtype, self.factor, about)
        given = self.X, lazy.row_numbers(self.X.chunks[0]), *map(self.to_device, tall)
        return lazy.blockwise(partial(_checked, None, call), given, np.empty(0, object))

    def take(self, rows: Index) -> Dense | Sparse:
        # Each block that has some of them is made anew, or read anew, as a whole.
        index = np.arange(self.shape[0])[rows]
        for block in self.row_blocks:
            if ((index >= block.start) & (index < block.stop)).any():
                self.read["rows"] += block.stop - block.start
        X, heights = self.X, self.X.chunks[0]
        if 0 in heights and any(heights):  # where dask fails to take single rows
            X = X.rechunk({0: tuple(filter(None, heights))})
        (entries,) = lazy.compute(X[rows])
        entries = sp.csr_array(entries) if self.sparse else to_host(entries)
        return self.wrap(in_unit(entries, self.dtype, self.factor))

    def _kept(self, rows: np.ndarray) -> DaskRows:
        # dask takes a line that is alone for a number that goes with every block.
        if len(rows) == 1 and self.X.numblocks[0] > 1:
            raise ValueError(
                f"Of the rows of X, only row {int(rows[0])} counts, and X is a dask "
                "array in several chunks; give X.compute(), a NumPy array."
            )
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

    def map_rows(
        self, work: Callable[[Any], Any], dtype: Any, *, whole: bool = False
    ) -> Any:
        empty = self.X._meta[:0].astype(dtype) if whole else np.empty(0, dtype=dtype)
        given = self.X, lazy.row_numbers(self.X.chunks[0])
        work = partial(_checked, empty, partial(_named, work))
        return lazy.blockwise(work, given, empty, self.shape[1:] if whole else ())


def _summed(work: Callable[..., Any], block: Matrix, *tall: Any) -> Any:
    """Do the work of a sweep on a block; its sums come to the host."""
    lines, sums = work(block, *tall)
    return tuple(map(to_host, sums)), lines


def _sums(result: Any) -> Any:
    return None if result is None else result[0]


def _line(number: int, like: Any, result: Any) -> Any:
    return like if result is None else result[1][number]


def _empty_lines(result: Any) -> list[Any]:
    """Return empty arrays of the kinds that lines of a block are."""
    return [lines[:0] for lines in result[1]]


def _checked(
    empty: Any, work: Callable[..., T], block: Any, rows: tuple[int, int], *tall: Any
) -> T:
    """Do some work on a block of rows, unless it is empty, of the height announced."""
    first, last = rows
    if block.shape[0] != last - first:
        raise ValueError(
            f"The chunk of rows {first} to {last - 1} of the dask array X has "
            f"{block.shape[0]} rows; call X.compute_chunk_sizes() first."
        )
    return work(block, rows, *tall) if first < last else empty


def _named(work: Callable[[Any], T], block: Any, rows: tuple[int, int]) -> T:
    """Do some work on a block; an error names its rows."""
    try:
        return work(block)
    except ValueError as error:
        where = f"rows {rows[0]} to {rows[1] - 1}"
        raise ValueError(f"In the chunk of {where}: {error}") from error


def _call(
    work: Callable[..., T],
    sparse: bool,
    dtype: np.dtype,
    factor: float,
    about: About,
    block: Any,
    _: tuple[int, int],
    *tall: Any,
) -> T:
    """Do some work on a block as a matrix."""
    if sp.issparse(block) and not sparse:
        raise ValueError(
            f"A chunk of the dask array X is a {type(block).__name__} where a dense "
            "one was announced; say so: X.map_blocks(scipy.sparse.csr_array, "
            "dtype=X.dtype, meta=scipy.sparse.csr_array((0, 0)))."
        )
    matrix: Any
    if is_foreign(block):  # of a GPU, for example
        matrix = Device(as_floats(block))
    elif sparse:
        csr = sp.csr_array(block).astype(dtype, copy=False)
        matrix = Sparse(without_duplicates(csr))
    else:
        matrix = Dense(np.asarray(block, dtype=dtype))
    matrix = matrix if factor == 1.0 else matrix.rescaled(factor)
    return work(matrix.with_about(about), *tall)
