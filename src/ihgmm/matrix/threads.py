"""How work on the rows of a matrix is shared among threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

T = TypeVar("T")


class _OneThread:
    """The limit that fits share: the first sets it, and the last takes it back."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_users = 0
        self._restore_limits: Callable[[], None] = lambda: None
        self._libraries_before: list[dict[str, Any]] = []  # as the limit found them

    @cached_property
    def _pools(self) -> ThreadpoolController:
        return ThreadpoolController()

    def __enter__(self) -> None:
        with self._lock:
            if self._n_users == 0:
                self._libraries_before = self._pools.info()
                limit = self._pools.limit(limits=1)
                self._restore_limits = limit.restore_original_limits
            self._n_users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_users -= 1
            if self._n_users == 0:
                self._restore_limits()

    @property
    def n_allowed(self) -> int:
        """How many threads the user lets numerical libraries have."""
        with self._lock:
            libraries = self._libraries_before if self._n_users else self._pools.info()
        return max([library["num_threads"] for library in libraries], default=1)


_one_thread = _OneThread()


def one_thread() -> AbstractContextManager[None]:
    """Return a context in which numerical libraries use one thread.

    Sums then never depend on how many threads there are, and small products are not
    held up by threads that wait for each other.
    """
    return _one_thread


def sized_threads(n_entries: int) -> AbstractContextManager[None]:
    """Return a context for work on so many entries: one thread where they are few."""
    # Up to about two million, threads of BLAS cost more than they bring.
    return one_thread() if n_entries < 2**21 else nullcontext()


def in_parts(n_rows: int, work: Callable[[slice], T]) -> Iterator[T]:
    """Yield the results of work on eight ranges of rows, in threads, in order.

    There are always eight, so that sums never depend on the number of threads.
    """
    edges = np.linspace(0, n_rows, 8 + 1).astype(int).tolist()
    ranges = [slice(start, stop) for start, stop in pairwise(edges)]

    n_threads = min(_one_thread.n_allowed, len(ranges))
    if n_threads == 1:
        yield from map(work, ranges)
        return

    with ThreadPoolExecutor(n_threads) as pool:
        yield from pool.map(work, ranges)


def row_ranges(n_rows: int, step: int, first_row: int = 0) -> list[slice]:
    """Cut rows into ranges of ``step`` rows, at least one; the last may be shorter."""
    step = max(1, step)
    end = first_row + n_rows
    starts = range(first_row, max(end, first_row + 1), step)
    return [slice(start, min(start + step, end)) for start in starts]
