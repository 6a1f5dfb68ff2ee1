"""How work on the rows of X is shared among threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from ihgmm._arrays import Array, is_sparse, n_entries

__all__ = [
    "LARGE",
    "SHORT",
    "Work",
    "in_parts",
    "is_large",
    "is_read_once",
    "one_thread",
    "own_threads",
    "sized_threads",
    "sum_of",
]

PARTS = 8
"""Ranges of rows that large work is cut into; fixed, so that sums never depend on how
many threads there are."""

SMALL = 2**22
"""Entries up to which one thread does best."""

LARGE, SHORT = 10**7, 512
"""Entries from which dense data is large, and features up to which a row is short."""

Work = Callable[[slice], Any]


def is_large(X: np.ndarray) -> bool:
    """Tell whether dense data is worth work in threads."""
    return X.size >= LARGE


def is_read_once(X: Array) -> bool:
    """Tell whether dense rows are so many and short that reading them is the cost."""
    if not isinstance(X, np.ndarray) or not X.flags.c_contiguous:
        return False
    return is_large(X) and X.shape[1] <= SHORT


def sized_threads(X: Array) -> AbstractContextManager[Any]:
    """Return a context in which small data is worked on by one thread.

    There the threads of BLAS cost more than they bring, most of all beside other work.
    """
    return one_thread() if n_entries(X) < SMALL else nullcontext()


def own_threads(X: Array) -> AbstractContextManager[Any]:
    """Return a context in which work on ranges of rows of X finds the cores idle.

    After a product of dense blocks the threads of BLAS spin for a while and would hold
    up those of :func:`in_parts`: here BLAS keeps to one.
    """
    if is_sparse(X) or is_read_once(X):
        return _pools().limit(limits=1, user_api="blas")
    return nullcontext()


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which numerical libraries use one thread."""
    return _pools().limit(limits=1)


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def in_parts(n: int, work: Work) -> Iterator[Any]:
    """Yield the results of some work on ranges of rows, done in threads, in order."""
    # As many threads as the user lets numerical libraries have.
    threads = max((lib["num_threads"] for lib in _pools().info()), default=1)
    edges = np.linspace(0, n, PARTS + 1).astype(int).tolist()
    ranges = [slice(*edge) for edge in pairwise(edges)]
    if threads == 1:
        yield from map(work, ranges)
        return
    with ThreadPoolExecutor(min(threads, PARTS)) as pool:
        yield from pool.map(work, ranges)


def sum_of(results: Iterator[np.ndarray]) -> np.ndarray:
    """Add up results, in their order."""
    total = next(results)
    for result in results:
        total += result
    return total
