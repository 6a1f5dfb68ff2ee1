"""Rows on disk, read in blocks."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm._chunks import Block, RowBlocks, T, check_kind

__all__ = ["StoredRows", "unchanged"]

BLOCK_BYTES = 2**25
"""Bytes of a block that is read at a time; two are in memory at once."""


class StoredRows(RowBlocks):
    """Rows on disk, read one block after the other while the last one is worked on.

    Parameters
    ----------
    read : callable
        Returns the rows from start to stop, as a new array or CSR matrix.
    shape, dtype, nnz
        What there is to read.
    sparse : bool
        Whether ``read`` gives sparse rows.
    step : int, optional
        Rows of a chunk of the file, which are decoded together.
    check : callable, optional
        Called after each pass and each sample; raises if what was read is not what
        was there before.
    names : list of str, optional
        Names of features.
    name : str
        What is read, for messages.

    Notes
    -----
    Rows here and there are in most chunks of a file, so that to take them is to decode
    all of it. Such a sample counts as a pass.
    """

    def __init__(
        self,
        read: Callable[[int, int], Any],
        shape: tuple[int, int],
        dtype: Any,
        *,
        nnz: int | None = None,
        sparse: bool = False,
        step: int = 1,
        check: Callable[[], None] | None = None,
        names: list[str] | None = None,
        name: str = "X",
    ) -> None:
        self._read = read
        self._check = check or _nothing
        self.names = names
        self.name = name
        self.shape = (int(shape[0]), int(shape[1]))
        self.dtype = check_kind(dtype)
        self.sparse = sparse
        self._step = step
        n, p = self.shape
        self.nnz = n * p if nnz is None else int(nnz)
        row = max(1, (2 if sparse else 1) * self.nnz * self.dtype.itemsize // max(n, 1))
        rows = max(1, BLOCK_BYTES // row // step) * step
        if rows * row > 4 * BLOCK_BYTES:  # chunks too tall to be held whole
            rows = max(1, BLOCK_BYTES // row)
        self.ranges = [slice(*e) for e in pairwise([*range(0, n, rows), n])]

    def map(self, work: Callable[..., T], *tall: np.ndarray) -> Iterator[T]:
        """Yield the results of some work on each block, reading one ahead."""
        self.passes += 1
        started = time.monotonic()
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(self._get, self.ranges[0])
            for i, rows in enumerate(self.ranges):
                block = ahead.result()
                if i + 1 < len(self.ranges):
                    ahead = reader.submit(self._get, self.ranges[i + 1])
                yield work(block, *(array[rows] for array in tall))
                self._show(i + 1, len(self.ranges), started)
        self._check()

    def _get(self, rows: slice) -> Block:
        try:
            block = self._prepared(self._read(rows.start, rows.stop))
        except Exception as error:
            if isinstance(error, MemoryError):
                raise
            raise OSError(
                f"Rows {rows.start} to {rows.stop - 1} of the {self.name} could not be "
                f"read ({type(error).__name__}: {error}). Check that the file is whole "
                "and stays open and unchanged until the work is done."
            ) from error
        if block.shape != (rows.stop - rows.start, self.shape[1]):
            raise OSError(
                f"Rows {rows.start} to {rows.stop - 1} of the {self.name} came in "
                f"shape {block.shape}; it had {self.shape[0]} rows and "
                f"{self.shape[1]} features before. Leave the file unchanged until the "
                "work is done."
            )
        return block

    def take(self, index: np.ndarray | slice) -> Block:
        """Return some rows, reading only around them."""
        n = self.shape[0]
        if isinstance(index, slice) and index.indices(n)[2] == 1:
            start, stop, _ = index.indices(n)
            return self._get(slice(start, max(start, stop)))
        index = np.arange(n)[index]
        order = np.argsort(index, kind="stable")
        edges = [rows.start for rows in self.ranges] + [n]
        cuts = np.searchsorted(index[order], edges)
        runs = [
            run
            for first, last in pairwise(cuts)
            if first < last
            for run in self._runs(index[order[first:last]])
        ]
        if not runs:
            return self._get(slice(0, 0))
        parts = self._sample(runs)
        back = np.empty(len(index), dtype=np.intp)
        back[order] = np.arange(len(index))
        return _stacked(parts)[back]

    def _runs(self, wanted: np.ndarray) -> list[np.ndarray]:
        """Cut rows of one block into those that are read together.

        They are read by chunks where they are in few, else all between them is.
        """
        chunk = wanted // self._step
        chunks = np.unique(chunk)
        if len(chunks) * 16 >= chunks[-1] - chunks[0] + 1:
            return [wanted]
        return [wanted[chunk == c] for c in chunks]

    def _sample(self, runs: list[np.ndarray]) -> list[Block]:
        """Read rows here and there, which may come to a pass or more."""
        started = time.monotonic()
        passes = 0
        if self._step > 1:
            ends = np.array([(run[0], run[-1]) for run in runs]) // self._step
            decoded = self._step * int((ends[:, 1] - ends[:, 0] + 1).sum())
            passes = round(decoded / self.shape[0])
        self.passes += passes
        parts = []
        for i, run in enumerate(runs):
            parts.append(self._within(run))
            if passes:
                self._show(i + 1, len(runs), started)
        self._check()
        return parts

    def _show(self, done: int, total: int, started: float) -> None:
        """Draw how far a pass has come, for those who asked."""
        # A line that will be overwritten is of no use in a file.
        if self.verbose and (done == total or sys.stderr.isatty()):
            _draw(self.passes, done, total, started)

    def _within(self, wanted: np.ndarray) -> Block:
        """Return rows out of what is between the first and the last of them."""
        first, last = int(wanted[0]), int(wanted[-1]) + 1
        return self._get(slice(first, last))[wanted - first]


def _stacked(parts: list[Block]) -> Block:
    if sp.issparse(parts[0]):
        return sp.vstack(parts, format="csr")
    return np.concatenate(parts)


def _nothing() -> None:
    """Check nothing."""


def unchanged(file: Any, *, settled: bool) -> Callable[[], None]:
    """Return a check that a file, by its path or its number, is what it is now.

    Libraries that read beyond the end of a file may give zeros. The check raises if the
    file has become shorter or, where it is ``settled``, was written to in its length. A
    file that this process may write to is not: the system may do that at any time.
    """
    try:
        before = os.stat(file)
    except (OSError, TypeError, ValueError):  # deleted, or has no name
        return _nothing

    def check() -> None:
        nonlocal before
        try:
            now = os.stat(file)
        except OSError:  # deleted or closed; what is open can be read, or says so
            return
        if now.st_size < before.st_size:
            raise EOFError(
                f"the file now ends at byte {now.st_size}, not {before.st_size}"
            )
        same_size = now.st_size == before.st_size
        if settled and same_size and now.st_mtime_ns != before.st_mtime_ns:
            raise OSError("the file was written to after the work began")
        before = now

    return check


def _draw(number: int, done: int, total: int, started: float) -> None:
    """Draw how far a pass has come, on one line of the terminal."""
    spent = time.monotonic() - started
    bar = "█" * (20 * done // total)
    left = spent * (total - done) / done
    end = "\n" if done == total else "\r"
    text = f"pass {number} {bar:<20} {done / total:4.0%}  {left:4.0f} s left"
    sys.stderr.write(text + end)
    sys.stderr.flush()
