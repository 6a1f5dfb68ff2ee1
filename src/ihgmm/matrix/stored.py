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

from ihgmm.matrix.base import Blocks, Index, T, float_type, in_unit, row_ranges
from ihgmm.matrix.memory import Dense, Sparse


class Stored(Blocks):
    """Rows on disk, read one block after the other while the last one is worked on.

    Parameters
    ----------
    read : callable
        Returns the rows from start to stop, as a new array or CSR matrix.
    shape, dtype, n_entries
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
    source : str
        What is read, for messages.

    Attributes
    ----------
    block_bytes : int
        Bytes of a block that is read at a time; two are in memory at once.

    Notes
    -----
    Rows here and there are in most chunks of a file, so that to take them is to decode
    all of it. Such a sample counts as a pass.
    """

    block_bytes = 2**25

    def __init__(
        self,
        read: Callable[[int, int], Any],
        shape: tuple[int, int],
        dtype: Any,
        *,
        n_entries: int | None = None,
        sparse: bool = False,
        step: int = 1,
        check: Callable[[], None] | None = None,
        names: list[str] | None = None,
        source: str = "X",
    ) -> None:
        n, p = self.shape = (int(shape[0]), int(shape[1]))
        self.dtype = float_type(dtype)
        self.names, self.source = names, source
        self._read, self._check, self._step = read, check or _nothing, step
        self._sparse = sparse
        self._n_entries = n * p if n_entries is None else int(n_entries)
        width = (2 if sparse else 1) * self._n_entries * self.dtype.itemsize
        row = max(1, width // max(n, 1))
        rows = max(1, self.block_bytes // row // step) * step
        if rows * row > 4 * self.block_bytes:  # chunks too tall to be held whole
            rows = max(1, self.block_bytes // row)
        self.row_blocks = row_ranges(n, rows)

    @property
    def n_entries(self) -> int:
        return self._n_entries

    @property
    def has_gaps(self) -> bool:
        return self._sparse

    def map(self, work: Callable[..., T], *tall: np.ndarray) -> Iterator[T]:
        self.passes += 1
        started, blocks = time.monotonic(), self.row_blocks
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(self._get, blocks[0])
            for i, rows in enumerate(blocks):
                block = ahead.result()
                if i + 1 < len(blocks):
                    ahead = reader.submit(self._get, blocks[i + 1])
                yield work(self._wrap(block), *(array[rows] for array in tall))
                self._show(i + 1, len(blocks), started)
        self._check()

    def _wrap(self, block: Any) -> Dense | Sparse:
        return Sparse(block, self.unit) if self._sparse else Dense(block, self.unit)

    def _get(self, rows: slice) -> Any:
        try:
            block = self._read(rows.start, rows.stop)
            block = in_unit(block, self.dtype, self.factor)
        except MemoryError:
            raise
        # Whatever a library raises when its file is cut, closed or not what it was.
        except Exception as error:
            raise OSError(
                f"Rows {rows.start} to {rows.stop - 1} of the {self.source} could not "
                f"be read ({type(error).__name__}: {error}). Check that the file is "
                "whole and stays open and unchanged until the work is done."
            ) from error
        if block.shape != (rows.stop - rows.start, self.shape[1]):
            raise OSError(
                f"Rows {rows.start} to {rows.stop - 1} of the {self.source} came in "
                f"shape {block.shape}; it had {self.shape[0]} rows and "
                f"{self.shape[1]} features before. Leave the file unchanged until the "
                "work is done."
            )
        return block

    def take(self, rows: Index) -> Dense | Sparse:
        n = self.shape[0]
        if isinstance(rows, slice) and rows.indices(n)[2] == 1:
            start, stop, _ = rows.indices(n)
            return self._wrap(self._get(slice(start, max(start, stop))))
        index = np.arange(n)[rows]
        order = np.argsort(index, kind="stable")
        edges = [block.start for block in self.row_blocks] + [n]
        cuts = np.searchsorted(index[order], edges)
        runs = [
            run
            for first, last in pairwise(cuts)
            if first < last
            for run in self._runs(index[order[first:last]])
        ]
        if not runs:
            return self._wrap(self._get(slice(0, 0)))
        parts = self._sample(runs)
        back = np.empty(len(index), dtype=np.intp)
        back[order] = np.arange(len(index))
        stacked = (
            sp.vstack(parts, format="csr") if self._sparse else np.concatenate(parts)
        )
        return self._wrap(stacked[back])

    def _runs(self, wanted: np.ndarray) -> list[np.ndarray]:
        """Cut rows of one block into those that are read together.

        They are read by chunks where they are in few, else all between them is.
        """
        chunk = wanted // self._step
        chunks = np.unique(chunk)
        if len(chunks) * 16 >= chunks[-1] - chunks[0] + 1:
            return [wanted]
        return [wanted[chunk == c] for c in chunks]

    def _sample(self, runs: list[np.ndarray]) -> list[Any]:
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
            first, last = int(run[0]), int(run[-1]) + 1
            parts.append(self._get(slice(first, last))[run - first])
            if passes:
                self._show(i + 1, len(runs), started)
        self._check()
        return parts

    def _show(self, done: int, total: int, started: float) -> None:
        """Draw how far a pass has come on one line, for those who asked."""
        # A line that will be overwritten is of no use in a file.
        if not self.verbose or not (done == total or sys.stderr.isatty()):
            return
        left = (time.monotonic() - started) * (total - done) / done
        bar = "█" * (20 * done // total)
        text = f"pass {self.passes} {bar:<20} {done / total:4.0%}  {left:4.0f} s left"
        sys.stderr.write(text + ("\n" if done == total else "\r"))
        sys.stderr.flush()


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
