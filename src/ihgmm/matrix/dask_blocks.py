"""Blocks of rows of dask arrays: how they are made, worked on and waited for.

Rows are in blocks, columns are not. What is made of blocks stays on the workers; sums
are made there too, in a tree, and only what is small comes to the client.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import pairwise
from operator import getitem
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask.base import compute as dask_compute
from dask.base import persist as dask_persist
from dask.delayed import Delayed, delayed

if TYPE_CHECKING:
    from ihgmm.matrix.arrays import AnyArray

Chunks = tuple[int, ...]
"""How many rows are in each block."""


def from_host(values: np.ndarray, chunks: Chunks, like: AnyArray) -> da.Array:
    """Return an array of the client in blocks on workers, of the library of another."""
    columns = ((size,) for size in values.shape[1:])
    array = da.from_array(values, (chunks, *columns), name=False)
    if not isinstance(like, np.ndarray):
        array = array.map_blocks(np.asarray, like=like, dtype=values.dtype, meta=like)
    return persist(array)


def row_numbers(chunks: Chunks) -> da.Array:
    """Return the first row of each block and the one after its last, as objects."""
    name = f"rows-{uuid4().hex}"
    edges = np.cumsum([0, *chunks]).tolist()
    graph = {(name, i): ends for i, ends in enumerate(pairwise(edges))}
    return da.Array(graph, name, (chunks,), dtype=object)


def persist(array: da.Array) -> da.Array:
    """Return an array whose blocks are made now, once, and stay on the workers."""
    with _explained_errors():
        return dask_persist(array)[0]


def compute(*collections: Any) -> tuple[Any, ...]:
    """Return the values of dask collections, on the client."""
    with _explained_errors():
        return tuple(dask_compute(*collections))


@contextmanager
def _explained_errors() -> Iterator[None]:
    """Say what an error of a cluster, not of the work, means."""
    # Arrays that have to be sent are no reason to warn. Without the module there is no
    # cluster, nor a place for its settings.
    settings = {}
    if "distributed" in sys.modules:
        settings["distributed.admin.large-graph-warning-threshold"] = "1 TB"

    try:
        with dask.config.set(settings):
            yield
    except (Exception, CancelledError) as error:
        if not _is_of_cluster(error):
            error.add_note("dask raised this error while it computed the blocks of X.")
            raise

        raise RuntimeError(
            f"dask lost X or its results ({type(error).__name__}: {error}). If the "
            "cluster was closed, start another and create X again: a persisted X is "
            "gone with its cluster. If the cluster is running, give its workers memory "
            "for several chunks each."
        ) from error


def _is_of_cluster(error: BaseException) -> bool:
    """Tell whether an error says that work or data were lost with their workers."""
    if isinstance(error, CancelledError):
        return True
    # What a closed client kept is no longer there for dask without a cluster.
    if isinstance(error, ValueError) and "Missing dependency" in str(error):
        return True
    return type(error).__module__.partition(".")[0] == "distributed"


def blockwise(
    work: Callable[..., Any],
    arguments: tuple[Any, ...],
    meta: AnyArray,
    new_shape: tuple[int, ...] = (),
    chunks: Chunks | None = None,
) -> da.Array:
    """Return a dask array of what work makes of blocks of rows.

    Parameters
    ----------
    work : callable
        What makes a block of the result. It gets the arguments, of those that are dask
        arrays one block each.
    arguments : tuple
        Dask arrays in the same blocks of rows, and anything else.
    meta : array
        An empty array of the kind that the blocks of the result are.
    new_shape : tuple of int
        The shape of a line of the result.
    chunks : tuple of int, optional
        Rows in each block of the result; those of the arguments by default.
    """
    # Each further dimension is one chunk: dask hands it over as a list of one block.
    arguments_and_axes: list[Any] = []
    for number, argument in enumerate(arguments):
        if not isinstance(argument, da.Array):
            arguments_and_axes += [argument, None]
            continue

        one_chunk = dict.fromkeys(range(1, argument.ndim), -1)
        if one_chunk:
            argument = argument.rechunk(one_chunk)

        axes = ("row", *(f"{number}.{axis}" for axis in one_chunk))
        arguments_and_axes += [argument, axes]

    new_axes = {f"new{axis}": size for axis, size in enumerate(new_shape)}

    # What the work carries is one node of the graph, not sent with every task.
    shared_work = delayed(work, pure=False, traverse=False)
    return da.blockwise(
        _call_on_blocks,
        ("row", *new_axes),
        shared_work,
        None,
        *arguments_and_axes,
        new_axes=new_axes,
        adjust_chunks=None if chunks is None else {"row": tuple(chunks)},
        align_arrays=False,
        dtype=meta.dtype,
        meta=meta,
    )


def _call_on_blocks(work: Callable[..., Any], *arguments: Any) -> Any:
    return work(*map(_unwrapped, arguments))


def _unwrapped(block: Any) -> Any:
    """Return a block out of the lists of one in which dask hands it over."""
    while isinstance(block, list):
        (block,) = block
    return block


def map_blocks(
    work: Callable[..., AnyArray], *arguments: Any, chunks: Chunks | None = None
) -> da.Array:
    """Return the lines, one a row or so many a chunk, that work makes of blocks."""
    # One row of zeros shows what is made of a row.
    with np.errstate(all="ignore"):
        example = work(*map(_row_of_zeros, arguments))
    return blockwise(work, arguments, example[:0], example.shape[1:], chunks)


def _row_of_zeros(argument: Any) -> Any:
    """Return a row of zeros of the kind a dask array has; all else as it is."""
    if not isinstance(argument, da.Array):
        return argument
    shape = (1, *argument.shape[1:])
    return np.zeros_like(argument._meta, shape=shape, dtype=argument.dtype)


def rows_where(array: da.Array, is_member: da.Array, chunks: Chunks) -> da.Array:
    """Return the rows where a mask is true, so many of each block."""
    arguments = (array, is_member)
    rows = blockwise(getitem, arguments, array._meta, array.shape[1:], chunks)

    # A comparison repeats a single row for each block that has none beside it.
    return rows.rechunk({0: -1}) if sum(chunks) == 1 else rows


def take(array: da.Array, rows: np.ndarray | slice) -> da.Array:
    """Return some rows of an array, which dask fails to take where blocks are empty."""
    heights = array.chunks[0]
    if 0 in heights and any(heights):
        array = array.rechunk({0: tuple(filter(None, heights))})
    return array[rows]


def objects(work: Callable[..., Any], *arguments: Any) -> da.Array:
    """Return what some work makes of each block that has rows; as a dask array."""

    def work_unless_empty(block: Any, *others: Any) -> Any:
        return work(block, *others) if block.shape[0] else None

    return blockwise(work_unless_empty, arguments, np.empty(0, dtype=object))


def gather(results: da.Array) -> list[Any]:
    """Return the objects of blocks, which should be small, on the client."""
    # The graphs of single blocks do not hold what is on the workers. The array does,
    # and here it lives until all is computed.
    values = compute(*results.to_delayed().ravel())
    return [value for value in values if value is not None]


def sum_objects(results: da.Array) -> Delayed:
    """Return the sum, delayed, of the objects of blocks: arrays, or tuples of them."""
    parts = [*results.to_delayed().ravel()]
    while True:
        parts = [
            delayed(_add, pure=False)(parts[i : i + 8]) for i in range(0, len(parts), 8)
        ]
        if len(parts) == 1:
            return parts[0]


def _add(objects: list[Any]) -> Any:
    """Return the sum of arrays, or of tuples of arrays one by one; None of none."""
    parts = [part for part in objects if part is not None]
    if not parts:
        return None

    if isinstance(parts[0], tuple):
        return tuple(sum(terms) for terms in zip(*parts, strict=True))
    return sum(parts)


def sum_blocks(work: Callable[..., AnyArray], *arguments: Any) -> AnyArray:
    """Return the sum, on the client, of what some work makes of each block."""
    results = objects(work, *arguments)  # holds what is on the workers, until the end
    return compute(sum_objects(results))[0]


def peak_of_blocks(work: Callable[..., AnyArray], *arguments: Any) -> np.ndarray:
    """Return the largest, on the client, of what some work makes of each block."""
    peaks: np.ndarray = np.max(gather(objects(work, *arguments)), axis=0)
    return peaks


def on_one_block(work: Callable[..., Any], *arguments: Any) -> Any:
    """Return what some work makes of all rows, on one worker."""
    in_one_block = [
        argument.rechunk({0: -1}) if hasattr(argument, "rechunk") else argument
        for argument in arguments
    ]
    return gather(objects(work, *in_one_block))[0]
