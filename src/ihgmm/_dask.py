"""Rows of a dask array: work goes to where the blocks are, small results come back."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from itertools import pairwise
from typing import Any

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.base import compute
from dask.delayed import delayed

from ihgmm._chunks import Block, RowBlocks, T, check_kind, in_unit

__all__ = ["DaskRows", "from_dask"]

MANY, TINY = 200, 2**20
"""Chunks that are many, and bytes of a chunk that are few."""

LARGE_GRAPHS = {"distributed.admin.large-graph-warning-threshold": "1 TB"}
"""A block of vectors is as long as X. It is in the graph on purpose: from there it is
sent again to another worker when one is lost."""


def from_dask(X: Any) -> DaskRows:
    """Return the blocks of a dask array or data frame, checked for their shape."""
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
    size = rows.shape[0] * rows.shape[1] * rows.dtype.itemsize / len(rows.ranges)
    if len(rows.ranges) > MANY and size < TINY:
        warnings.warn(
            f"X is a dask array in {len(rows.ranges)} chunks of {size / 1e3:.0f} kB; "
            "dask takes longer for each than the work on it. Make them larger: "
            "X.rechunk({0: 'auto', 1: -1}).",
            UserWarning,
            stacklevel=2,
        )
    return rows


class DaskRows(RowBlocks):
    """Rows of a dask array, one block for each chunk.

    The work on a block is a task of dask: with a cluster it runs on the worker that
    has the block, and what is lost with a worker is done again elsewhere. How many
    numbers sparse blocks store is known after the first pass.
    """

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape = (int(X.shape[0]), int(X.shape[1]))
        self.dtype = check_kind(X.dtype)
        self.sparse = sp.issparse(X._meta)
        self.nnz = self.shape[0] * self.shape[1]
        edges = np.concatenate([[0], np.cumsum(X.chunks[0])]).astype(int).tolist()
        self.ranges = [slice(*edge) for edge in pairwise(edges)]

    def map(self, work: Callable[..., T], *tall: np.ndarray) -> Iterator[T]:
        """Yield the results of some work on each block, in order."""
        self.passes += 1
        # One node of the graph: what the work carries is not sent with every task.
        shared = delayed(work, pure=False, traverse=False)
        stored = 0
        for result, count in self._compute(
            (i, shared, *(array[rows] for array in tall))
            for i, rows in enumerate(self.ranges)
        ):
            stored += count
            yield result
        self.nnz = stored

    def take(self, index: np.ndarray | slice) -> Block:
        """Return some rows, in memory; other blocks than theirs are left alone."""
        index = np.arange(self.shape[0])[index]
        order = np.argsort(index, kind="stable")
        edges = [rows.start for rows in self.ranges] + [self.shape[0]]
        cuts = np.searchsorted(index[order], edges)
        wanted = [
            (i, _pick, index[order[first:last]] - edges[i])
            for i, (first, last) in enumerate(pairwise(cuts))
            if first < last
        ]
        # Each of these blocks is made again, or read again, as a whole.
        self.passes += round(len(wanted) / len(self.ranges))
        parts = [part for part, _ in self._compute(wanted or [(0, _pick, index)])]
        back = np.empty(len(index), dtype=np.intp)
        back[order] = np.arange(len(index))
        if self.sparse:
            return sp.vstack(parts, format="csr")[back]
        return np.concatenate(parts)[back]

    def _compute(self, work: Any) -> Iterator[tuple[Any, int]]:
        """Yield the results of work on blocks, given as (block, work, arguments).

        With each comes how many numbers the block stores.
        """
        blocks = self.X.to_delayed().ravel()
        task = delayed(_call, pure=False)
        tasks = []
        for i, function, *tall in work:
            shape = (self.X.chunks[0][i], self.shape[1])
            form = (shape, self.sparse, self.dtype, self.factor)
            tasks.append(task(function, blocks[i], form, *tall))
        try:
            # Without its module there is no cluster, nor a place for its settings.
            settings = LARGE_GRAPHS if "distributed" in sys.modules else {}
            with dask.config.set(settings):
                results = compute(*tasks)  # type: ignore[no-untyped-call]
        except (Exception, CancelledError) as error:
            if not _is_lost(error):
                raise
            size = max(self.X.chunks[0]) * self.shape[1] * self.dtype.itemsize
            raise RuntimeError(
                f"dask lost X, in pass {self.passes} over it ({type(error).__name__}: "
                f"{error}). Check that the cluster runs and that its workers have "
                f"memory for some chunks of {size / 1e6:.1f} MB, then start again."
            ) from error
        yield from results

    def like_rows(self, values: np.ndarray) -> Any:
        """Return one figure for each row as a dask array in the chunks of X."""
        chunks = (self.X.chunks[0],)
        return da.from_array(values, chunks=chunks)  # type: ignore[no-untyped-call]

    def lazily(self, work: Callable[[Any], np.ndarray], dtype: Any) -> Any:
        """Return what some work makes of each block, when it is asked for."""
        shared = delayed(work, pure=False, traverse=False)
        meta = np.empty(0, dtype=dtype)
        return self.X.map_blocks(
            _unless_empty, shared, drop_axis=1, dtype=dtype, meta=meta
        )


def _is_lost(error: BaseException) -> bool:
    """Tell whether an error is that of a cluster, not of the work."""
    home = type(error).__module__.partition(".")[0]
    # What a closed client kept is no longer there for dask without a cluster.
    missing = isinstance(error, ValueError) and "Missing dependency" in str(error)
    return missing or isinstance(error, CancelledError) or home == "distributed"


def _unless_empty(
    block: Any, work: Callable[[Any], np.ndarray], block_info: Any = None
) -> np.ndarray:
    first, last = block_info[0]["array-location"][0]
    if block.shape[0] != last - first:
        raise ValueError(
            f"The chunk of rows {first} to {last - 1} of the dask array X has "
            f"{block.shape[0]} rows; call X.compute_chunk_sizes() first."
        )
    if first == last:
        return np.empty(0, dtype=np.intp)
    try:
        return work(block)
    except ValueError as error:
        raise ValueError(
            f"In the chunk of rows {first} to {last - 1}: {error}"
        ) from error


def _pick(block: Block, index: np.ndarray) -> Block:
    return block[index]


def _call(
    work: Callable[..., T],
    block: Any,
    form: tuple[tuple[int, int], bool, np.dtype, float],
    *tall: Any,
) -> tuple[T, int]:
    """Do some work on a block once it has the form that was promised."""
    shape, sparse, dtype, factor = form
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
    return work(in_unit(block, dtype, factor), *tall), int(block.size)
