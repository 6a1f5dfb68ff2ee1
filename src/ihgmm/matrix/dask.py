"""Rows of a dask array: work goes to where the blocks are, small results come back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.base import compute
from dask.delayed import delayed

from ihgmm._warnings import warn
from ihgmm.matrix.base import T, float_type, in_unit, parts_of
from ihgmm.matrix.blocks import Blocks
from ihgmm.matrix.memory import Dense, Sparse


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
    if any(np.isnan(length) for length in (*X.chunks[0], *X.chunks[1])):
        raise ValueError(
            f"X is a dask array of unknown chunk sizes (shape {X.shape}); call "
            "X.compute_chunk_sizes() first."
        )
    if len(X.chunks[1]) > 1:
        raise ValueError(
            f"X is a dask array with its columns in {len(X.chunks[1])} chunks; put "
            "whole rows in a chunk: X.rechunk({1: -1})."
        )
    rows = DaskRows(X)
    if hasattr(given, "columns"):
        rows.names = [str(name) for name in given.columns]
    chunks = len(rows.row_blocks)
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

    The work on a block is a task of dask: with a cluster it runs on the worker that
    has the block, and what is lost with a worker is done again elsewhere. Sums are made
    there too. How many numbers sparse blocks store is known after the first pass.
    """

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape = (int(X.shape[0]), int(X.shape[1]))
        self.dtype, self.has_gaps = float_type(X.dtype), sp.issparse(X._meta)
        ends = np.cumsum(X.chunks[0]).tolist()
        starts = [0, *ends[:-1]]
        self.row_blocks = [slice(*edge) for edge in zip(starts, ends, strict=True)]

    def map(self, work: Callable[..., T], *tall: np.ndarray | None) -> Iterator[T]:
        results, counts = self._tasks(work, tall)
        found, counts = self._compute(results, counts)
        self.n_entries = sum(counts)
        yield from found

    def map_sum(self, work: Callable[..., Any], *tall: np.ndarray | None) -> Any:
        results, _ = self._tasks(work, tall)
        return self._compute(_tree_sum(results))[0]

    def map_both(self, work: Callable[..., Any], *tall: np.ndarray | None) -> Any:
        results, _ = self._tasks(work, tall)
        total = _tree_sum([result[1] for result in results])
        parts, total = self._compute([result[0] for result in results], total)
        return np.concatenate(parts), total

    def fetch(self, wanted: list[tuple[int, np.ndarray]]) -> list[Any]:
        # Each of these blocks is made anew, or read anew, as a whole.
        self.passes += round(len(wanted) / len(self.row_blocks))
        blocks = [(i, rows - self.row_blocks[i].start) for i, rows in wanted]
        parts = [self._task(i, partial(_pick, rows))[0] for i, rows in blocks]
        return list(self._compute(parts)[0])

    def _tasks(
        self, work: Callable[..., Any], tall: tuple[np.ndarray | None, ...]
    ) -> tuple[list[Any], list[Any]]:
        """Return what some work on all blocks will give, and the entries of each."""
        self.passes += 1
        # One node of the graph: what the work carries is not sent with every task.
        shared = delayed(work, pure=False, traverse=False)
        tasks = [
            self._task(i, shared, *parts_of(tall, rows))
            for i, rows in enumerate(self.row_blocks)
        ]
        return [result for result, _ in tasks], [count for _, count in tasks]

    def _task(self, i: int, work: Any, *tall: Any) -> Any:
        block = self.X.to_delayed().ravel()[i]
        form = (self.X.chunks[0][i], self.shape[1])
        call = partial(_call, form, self.has_gaps, self.dtype, self.factor)
        return delayed(call, pure=False, nout=2)(work, block, *tall)

    def _compute(self, *tasks: Any) -> tuple[Any, ...]:
        # A block of vectors is as long as X. It is in the graph on purpose: from there
        # it is sent to another worker when one is lost.
        large_graphs = {"distributed.admin.large-graph-warning-threshold": "1 TB"}
        try:
            # Without its module there is no cluster, nor a place for its settings.
            settings = large_graphs if "distributed" in sys.modules else {}
            with dask.config.set(settings):
                return tuple(compute(*tasks))  # type: ignore[no-untyped-call]
        except (Exception, CancelledError) as error:
            if not _is_lost(error):
                raise
            size = max(self.X.chunks[0]) * self.shape[1] * self.dtype.itemsize
            raise RuntimeError(
                f"dask lost X, in pass {self.passes} over it ({type(error).__name__}: "
                f"{error}). Check that the cluster runs and that its workers have "
                f"memory for some chunks of {size / 1e6:.1f} MB, then start again."
            ) from error

    def per_row(self, values: np.ndarray) -> Any:
        chunks = (self.X.chunks[0],)
        return da.from_array(values, chunks=chunks)  # type: ignore[no-untyped-call]

    def map_rows(
        self, work: Callable[[Any], Any], dtype: Any, *, whole: bool = False
    ) -> Any:
        shared = delayed(work, pure=False, traverse=False)
        empty = self.X._meta[:0].astype(dtype) if whole else np.empty(0, dtype=dtype)
        return self.X.map_blocks(
            _unless_empty,
            shared,
            empty,
            drop_axis=None if whole else 1,
            dtype=dtype,
            meta=empty,
        )


def _tree_sum(parts: list[Any]) -> Any:
    """Add up parts eight at a time, each where some of them are.

    They are not made dask arrays, which have reductions of their own: computed together
    with delayed results, some of those came out in place of the sum.
    """
    while len(parts) > 1:
        few = [parts[i : i + 8] for i in range(0, len(parts), 8)]
        parts = [delayed(sum, pure=False)(some) for some in few]
    return parts[0]


def _is_lost(error: BaseException) -> bool:
    """Tell whether an error is that of a cluster, not of the work."""
    home = type(error).__module__.partition(".")[0]
    # What a closed client kept is no longer there for dask without a cluster.
    missing = isinstance(error, ValueError) and "Missing dependency" in str(error)
    return missing or isinstance(error, CancelledError) or home == "distributed"


def _unless_empty(
    block: Any, work: Callable[[Any], Any], empty: Any, block_info: Any = None
) -> Any:
    first, last = block_info[0]["array-location"][0]
    if block.shape[0] != last - first:
        raise ValueError(
            f"The chunk of rows {first} to {last - 1} of the dask array X has "
            f"{block.shape[0]} rows; call X.compute_chunk_sizes() first."
        )
    if first == last:
        return empty
    try:
        return work(block)
    except ValueError as error:
        raise ValueError(
            f"In the chunk of rows {first} to {last - 1}: {error}"
        ) from error


def _pick(rows: np.ndarray, block: Any) -> Any:
    return block.array[rows]


def _call(
    shape: tuple[int, int],
    sparse: bool,
    dtype: np.dtype,
    factor: float,
    work: Callable[..., T],
    block: Any,
    *tall: Any,
) -> tuple[T, int]:
    """Do some work on a block, once it has the form that was promised."""
    if sp.issparse(block) and not sparse:
        raise ValueError(
            f"A chunk of the dask array X is a {type(block).__name__} where a dense "
            "one was announced; say so: X.map_blocks(scipy.sparse.csr_array, "
            "dtype=X.dtype, meta=scipy.sparse.csr_array((0, 0)))."
        )
    block = sp.csr_array(block) if sparse else np.asarray(block)
    if block.shape != shape:
        raise ValueError(
            f"A chunk of the dask array X has shape {block.shape} where {shape} was "
            "announced; call X.compute_chunk_sizes() first."
        )
    rows = in_unit(block, dtype, factor)
    matrix = Sparse(rows) if sparse else Dense(rows)
    return work(matrix, *tall), int(block.size)
