"""Blocks of rows of dask arrays: how they are made, worked on and waited for.

Rows are in blocks, columns are not. What is made of blocks stays on the workers; sums
are made there too, in a tree, and only what is small comes to the client.
"""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import pairwise
from operator import getitem
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask.base import compute as dask_compute
from dask.base import persist as dask_persist
from dask.delayed import delayed

Work = Callable[..., Any]


def from_host(values: np.ndarray, chunks: tuple[int, ...], kind: Any) -> Any:
    """Return an array of the client in blocks on workers, of the library of kind."""
    shape = (chunks, *((size,) for size in values.shape[1:]))
    array = da.from_array(values, shape, name=False)  # type: ignore[no-untyped-call]
    if not isinstance(kind, np.ndarray):
        array = array.map_blocks(np.asarray, like=kind, dtype=values.dtype, meta=kind)
    return persist(array)


def row_numbers(chunks: tuple[int, ...]) -> Any:
    """Return the first row of each block and the one after its last, as objects."""
    name, ends = f"rows-{uuid4().hex}", np.cumsum([0, *chunks]).tolist()
    graph = {(name, i): edges for i, edges in enumerate(pairwise(ends))}
    return da.Array(graph, name, (chunks,), dtype=object)  # type: ignore[no-untyped-call]


def persist(array: Any) -> Any:
    """Return an array whose blocks are made now, once, and stay on the workers."""
    with _explained():
        return dask_persist(array)[0]  # type: ignore[no-untyped-call]


def compute(*collections: Any) -> tuple[Any, ...]:
    """Return the values of dask collections, on the client."""
    with _explained():
        return tuple(dask_compute(*collections))  # type: ignore[no-untyped-call]


@contextmanager
def _explained() -> Iterator[None]:
    """Say what an error of a cluster, not of the work, means."""
    # Arrays that have to be sent are no reason to warn. Without the module there is no
    # cluster, nor a place for its settings.
    name = "distributed.admin.large-graph-warning-threshold"
    quiet = {name: "1 TB"} if "distributed" in sys.modules else {}
    try:
        with dask.config.set(quiet):
            yield
    except (Exception, CancelledError) as error:
        home = type(error).__module__.partition(".")[0]
        # What a closed client kept is no longer there for dask without a cluster.
        missing = isinstance(error, ValueError) and "Missing dependency" in str(error)
        if not (missing or isinstance(error, CancelledError) or home == "distributed"):
            error.add_note("dask raised this error while it computed the blocks of X.")
            raise
        raise RuntimeError(
            f"dask lost X or its results ({type(error).__name__}: {error}). If the "
            "cluster was closed, start another and create X again: a persisted X is "
            "gone with its cluster. If the cluster is running, give its workers memory "
            "for several chunks each."
        ) from error


def blockwise(
    work: Work,
    given: tuple[Any, ...],
    meta: Any,
    trailing: tuple[int, ...] = (),
    chunks: tuple[int, ...] | None = None,
) -> Any:
    """Return a dask array of work on blocks of those among what is given."""
    # Each further dimension is one chunk: dask hands it over as a list of one block.
    pairs: list[Any] = []
    for number, array in enumerate(given):
        index = None
        if isinstance(array, da.Array):
            whole = dict.fromkeys(range(1, array.ndim), -1)
            array = array.rechunk(whole) if whole else array  # type: ignore[no-untyped-call]
            index = ("row", *(f"{number}.{axis}" for axis in whole))
        pairs += [array, index]
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


def _call(work: Work, *blocks: Any) -> Any:
    whole = list(blocks)
    for i, block in enumerate(blocks):
        while isinstance(block, list):
            (block,) = block
        whole[i] = block
    return work(*whole)


def map_blocks(work: Work, *given: Any, chunks: tuple[int, ...] | None = None) -> Any:
    """Return the lines, one a row or so many a chunk, that work makes of blocks."""
    # One row of zeros shows what is made of a row.
    rows = [
        np.zeros_like(array._meta, shape=(1, *array.shape[1:]), dtype=array.dtype)
        if isinstance(array, da.Array)
        else array
        for array in given
    ]
    with np.errstate(all="ignore"):
        example = work(*rows)
    return blockwise(work, given, example[:0], example.shape[1:], chunks)


def rows_where(array: Any, mask: Any, chunks: tuple[int, ...]) -> Any:
    """Return the rows where a mask is true, so many of each block."""
    kept = blockwise(getitem, (array, mask), array._meta, array.shape[1:], chunks)
    # A comparison repeats a single row for each block that has none beside it.
    return kept.rechunk({0: -1}) if sum(chunks) == 1 else kept


def take(array: Any, rows: Any) -> Any:
    """Return some rows of an array, which dask fails to take where blocks are empty."""
    heights = array.chunks[0]
    if 0 in heights and any(heights):
        array = array.rechunk({0: tuple(filter(None, heights))})
    return array[rows]


def objects(work: Work, *given: Any) -> Any:
    """Return what some work makes of each block that has rows; as a dask array."""

    def unless_empty(block: Any, *others: Any) -> Any:
        return work(block, *others) if block.shape[0] else None

    return blockwise(unless_empty, given, np.empty(0, dtype=object))


def gather(results: Any) -> list[Any]:
    """Return the objects of blocks, which should be small, on the client."""
    # The graphs of single blocks do not hold what is on the workers. The array does,
    # and here it lives until all is computed.
    values = compute(*results.to_delayed().ravel())
    return [value for value in values if value is not None]


def sum_objects(results: Any) -> Any:
    """Return the sum, delayed, of the objects of blocks: arrays, or tuples of them."""
    parts = [*results.to_delayed().ravel()]
    while True:
        few = [parts[i : i + 8] for i in range(0, len(parts), 8)]
        parts = [delayed(_add, pure=False)(some) for some in few]
        if len(parts) == 1:
            return parts[0]


def _add(parts: list[Any]) -> Any:
    parts = [part for part in parts if part is not None]
    if not parts or not isinstance(parts[0], tuple):
        return sum(parts) if parts else None
    return tuple(sum(terms) for terms in zip(*parts, strict=True))


def sum_blocks(work: Work, *given: Any) -> Any:
    """Return the sum, on the client, of what some work makes of each block."""
    results = objects(work, *given)  # holds on to what is on the workers, until the end
    return compute(sum_objects(results))[0]


def peak_of_blocks(work: Work, *given: Any) -> Any:
    """Return the largest, on the client, of what some work makes of each block."""
    return np.max(gather(objects(work, *given)), axis=0)


def on_one_block(work: Work, *given: Any) -> Any:
    """Return what some work makes of all rows, on one worker."""
    whole = [a.rechunk({0: -1}) if hasattr(a, "rechunk") else a for a in given]
    return gather(objects(work, *whole))[0]
