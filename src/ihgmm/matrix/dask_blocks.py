"""Blocks of rows of dask arrays: how they are made, worked on and waited for.

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
from functools import partial
from operator import getitem
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask.base import compute as dask_compute
from dask.base import get_scheduler
from dask.base import persist as dask_persist
from dask.delayed import delayed
from dask.utils import parse_timedelta

TIMEOUT = "ihgmm.no-workers-timeout"
"""The setting of dask that says how long to wait for a cluster without workers."""


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
    # One row of zeros shows what is made of a row.
    rows = [
        np.zeros_like(array._meta, shape=(1, *array.shape[1:]), dtype=array.dtype)
        if isinstance(array, da.Array)
        else array
        for array in given
    ]
    with np.errstate(all="ignore"):
        example = work(*rows)
    return _blockwise(work, given, example[:0], tuple(example.shape[1:]), chunks)


def rows_where(array: Any, mask: Any, chunks: tuple[int, ...]) -> Any:
    """Return the rows where a mask is true, so many of each block."""
    return _blockwise(getitem, (array, mask), array._meta, array.shape[1:], chunks)


def objects(work: Callable[..., Any], *given: Any) -> Any:
    """Return what some work makes of each block, whatever it is; as a dask array."""
    return _blockwise(work, given, np.empty(0, dtype=object), (), None)


def lines_of(results: Any, number: int, like: Any) -> Any:
    """Return one of the arrays that sweeps have made, second, of each block.

    ``like`` is an empty array of its kind.
    """
    work = partial(_line, number, like)
    return _blockwise(work, (results,), like, tuple(like.shape[1:]), None)


def blocks_of(results: Any) -> list[Any]:
    """Return the blocks of a dask array, one after the other, as delayed objects."""
    return list(results.to_delayed().ravel())


def values_of(results: Any) -> list[Any]:
    """Return the values of the blocks of a dask array, on the client.

    The graphs of single blocks do not hold what is on the workers. The array does,
    and here it lives until all is computed.
    """
    return list(compute(*blocks_of(results)))


def sum_blocks(work: Callable[..., Any], *given: Any) -> Any:
    """Return the sum, on the client, of what some work makes of each block."""
    # Until all is computed this holds on to what is on the workers.
    results = objects(partial(_unless_empty, work), *given)
    return compute(tree_sum(blocks_of(results)))[0]


def gather(work: Callable[..., Any], *given: Any) -> list[Any]:
    """Return what some work makes of each block, which should be little.

    It is None for a block without rows.
    """
    return values_of(objects(partial(_unless_empty, work), *given))


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
    whole = list(blocks)
    for i, block in enumerate(blocks):
        while isinstance(block, list):
            (block,) = block
        whole[i] = block
    return work(*whole)


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
            gather = partial(client.gather, asynchronous=True)
            return list(client.sync(gather, futures, callback_timeout=limit))
        except TimeoutError:
            if client.scheduler_info()["workers"]:
                seen = time.monotonic()
            elif time.monotonic() - seen >= limit:
                raise RuntimeError(
                    f"The dask cluster has had no workers for {limit:g} seconds. Start "
                    "some, or wait for longer: dask.config.set({'" + TIMEOUT + "': "
                    "'10 minutes'}). Then start again."
                ) from None


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
        home = type(error).__module__.partition(".")[0]
        # What a closed client kept is no longer there for dask without a cluster.
        missing = isinstance(error, ValueError) and "Missing dependency" in str(error)
        if not (missing or isinstance(error, CancelledError) or home == "distributed"):
            raise
        raise RuntimeError(
            f"dask lost X or its results ({type(error).__name__}: {error}). If the "
            "cluster was closed, start another and create X again: a persisted X is "
            "gone with its cluster. If the cluster is running, give its workers memory "
            "for several chunks each."
        ) from error
