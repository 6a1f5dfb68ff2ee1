"""Rows that are not in memory: read from disk, or worked on elsewhere, in blocks."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ihgmm._progress import passes_shown
from ihgmm.matrix.base import About, Index, T, float_type, in_unit, parts_of
from ihgmm.matrix.memory import Dense
from ihgmm.matrix.sparse import Sparse, without_duplicates
from ihgmm.matrix.threads import row_ranges
from ihgmm.matrix.views import ByBlocks


class Blocks(ByBlocks):
    """Rows in blocks that are not in memory. A kind needs ``row_blocks``."""

    row_blocks: list[slice]
    streamed = True
    on_host = False
    n_stored: int  # rows, whether they are kept or not

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.factor = 1.0  # what entries are multiplied by when they are read
        self.n_stored = self.shape[0]
        self.read: Counter[str] = Counter()  # rows, each time; copies share it

    @property
    def passes(self) -> int:
        """How often the rows have been read so far."""
        return round(self.read["rows"] / max(self.n_stored, 1))

    def wrap(self, block: Any) -> Dense | Sparse:
        """Return rows in memory as a matrix."""
        about = self.about.of_taken_rows()
        if self.sparse:
            return Sparse(without_duplicates(block), about)
        return Dense(block, about)

    def rescaled(self, factor: float) -> Self:
        other = self._anew(factor=self.factor * factor)
        return other.with_about(self.about.rescaled(factor))

    def _anew(self, **changes: Any) -> Self:
        """Return a copy with other entries, of which nothing is known yet."""
        other = self._but(**changes)
        vars(other).pop("sqnorms", None)
        return other


def nothing() -> None:
    """Check nothing."""


class Stored(Blocks):
    """Rows on disk, read one block after the other while the last one is worked on.

    ``read(start, stop)`` returns some rows as a new array, or as a CSR matrix if the
    data are ``sparse``. The file decodes ``step`` rows together. After each pass and
    sample, ``check`` raises if the file is not what it was. ``source`` is what messages
    call the data.
    """

    # Two blocks are in memory at once. Of these sizes files are read at full speed, and
    # a block is small beside what is kept for each row.
    block_bytes = 2**25
    _height: int  # of blocks, in rows of the file

    def __init__(
        self,
        read: Callable[[int, int], Any],
        shape: tuple[int, int],
        dtype: Any,
        *,
        n_entries: int | None = None,
        sparse: bool = False,
        step: int = 1,
        check: Callable[[], None] = nothing,
        names: list[str] | None = None,
        source: str = "X",
    ) -> None:
        n, p = int(shape[0]), int(shape[1])
        names = names if names and len(names) == p else None
        super().__init__((n, p), float_type(dtype), About(names=names))
        self.sparse, self.source = sparse, source
        self._read, self._step, self._check = read, step, check
        self.n_entries = n * p if n_entries is None else int(n_entries)
        self._positions = None  # or the places of rows in the file, if not all are kept
        vars(self).update(self._cut())

    def __repr__(self) -> str:
        n, p = self.shape
        return f"<{self.source}: {n:,} rows, {p:,} features, {self.dtype}>"

    def in_blocks(self, n_bytes: int) -> Stored:
        """Return the same rows, to be read in blocks of about so many bytes."""
        return self._recut(block_bytes=n_bytes)

    def in_type(self, dtype: Any) -> Stored:
        """Return the same rows, their numbers converted to float32 or float64."""
        return self._recut(dtype=float_type(dtype))

    def _recut(self, **changes: Any) -> Stored:
        """Return other rows, cut into blocks of their own."""
        other = self._anew(**changes)
        return other._but(**other._cut())

    def _kept(self, rows: np.ndarray) -> Stored:
        # No work is done on the others, which may hold NaN.
        n, p = self.shape
        return self._recut(
            shape=(len(rows), p),
            n_entries=round(self.n_entries * len(rows) / max(n, 1)),
            _positions=rows if self._positions is None else self._positions[rows],
        ).with_about(self.about.of_taken_rows())

    def keep_columns(self, places: np.ndarray) -> Stored:
        """Return some columns, in this order, as if no others were stored."""
        read, (n, p) = self._read, self.shape
        names = None if self.names is None else [self.names[j] for j in places]
        return self._recut(
            shape=(n, len(places)),
            n_entries=round(self.n_entries * len(places) / max(p, 1)),
            _read=lambda start, stop: read(start, stop)[:, places],
        ).with_about(replace(self.about, names=names))

    def _cut(self) -> dict[str, Any]:
        """Return the height of blocks in the file, and the rows that each holds."""
        n, step = self.shape[0], self._step
        size = (2 if self.sparse else 1) * self.n_entries * self.dtype.itemsize
        row = max(1, size // max(n, 1))
        height = max(1, self.block_bytes // row // step) * step
        if height * row > 4 * self.block_bytes:  # chunks too tall to be held whole
            height = max(1, self.block_bytes // row)
        blocks = row_ranges(self.n_stored, height)
        if self._positions is not None:
            ends = [0, *(block.stop for block in blocks)]
            cuts = pairwise(np.searchsorted(self._positions, ends).tolist())
            blocks = [slice(*cut) for cut in cuts if cut[0] < cut[1]]
        return {"row_blocks": blocks, "_height": height}

    def map(self, work: Callable[..., T], *tall: np.ndarray | None) -> Iterator[T]:
        started, blocks = time.monotonic(), self.row_blocks
        self.read["rows"] += self.n_stored
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(self._block, blocks[0])
            for i, rows in enumerate(blocks):
                block = ahead.result()
                if i + 1 < len(blocks):
                    ahead = reader.submit(self._block, blocks[i + 1])
                yield work(self.wrap(block), *parts_of(tall, rows))
                self._show(i + 1, len(blocks), started)
        self._check()

    def _block(self, rows: slice) -> Any:
        """Return the rows of a block, of which there are some."""
        places = self._positions
        return self._get(rows) if places is None else self._get_run(places[rows])

    def _get_run(self, places: np.ndarray) -> Any:
        """Return rows by their places in the file, which are in order."""
        first = int(places[0])
        return self._get(slice(first, int(places[-1]) + 1))[places - first]

    def _get(self, rows: slice) -> Any:
        """Return a range of rows of the file."""
        which = f"Rows {rows.start} to {rows.stop - 1} of the {self.source}"
        try:
            block = self._read(rows.start, rows.stop)
            block = in_unit(block, self.dtype, self.factor)
        except MemoryError:
            raise
        # Whatever a library raises when its file is cut, closed or not what it was.
        except Exception as error:
            raise OSError(
                f"{which} could not be read ({type(error).__name__}: {error}). Check "
                "that the file is whole and stays open and unchanged until the work is "
                "done."
            ) from error
        if block.shape != (rows.stop - rows.start, self.shape[1]):
            raise OSError(
                f"{which} came in shape {block.shape}; it had {self.n_stored} rows "
                f"and {self.shape[1]} features before. Leave the file unchanged until "
                "the work is done."
            )
        return block

    def take(self, rows: Index) -> Dense | Sparse:
        places = self._positions
        if places is None and isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(self.shape[0])
            block = self._get(slice(start, max(start, stop)))  # without a copy
            self.read["rows"] += block.shape[0]
            self._check()
            return self.wrap(block)
        index = np.arange(self.shape[0])[rows] if places is None else places[rows]
        if len(index) == 0:
            return self.wrap(self._get(slice(0, 0)))
        order, started = np.argsort(index, kind="stable"), time.monotonic()
        runs, before, parts = self._runs(index[order]), self.passes, []
        for i, run in enumerate(runs):
            parts.append(self._get_run(run))
            n_chunks = run[-1] // self._step - run[0] // self._step + 1
            self.read["rows"] += int(n_chunks) * self._step
            if self.passes > before:
                self._show(i + 1, len(runs), started)
        self._check()
        stack = partial(sp.vstack, format="csr") if self.sparse else np.concatenate
        return self.wrap(stack(parts)[np.argsort(order)])

    def _runs(self, index: np.ndarray) -> list[np.ndarray]:
        """Cut places, in order, into those read together, with all that is between."""
        far = np.diff(index // self._step) > 16
        apart = far | (np.diff(index // self._height) > 0)
        return np.split(index, np.flatnonzero(apart) + 1)

    def _show(self, done: int, total: int, started: float) -> None:
        """Draw how far a pass has come on one line, for those who asked."""
        # A line that will be overwritten is of no use in a file.
        if not passes_shown.get() or not (done == total or sys.stderr.isatty()):
            return
        left = (time.monotonic() - started) * (total - done) / done
        bar, share = "█" * (20 * done // total), done / total
        text = f"pass {max(self.passes, 1)} {bar:<20} {share:4.0%}  {left:4.0f} s left"
        sys.stderr.write(text + ("\n" if done == total else "\r"))
        sys.stderr.flush()


def in_temporary_file(
    batches: Iterable[np.ndarray], names: list[str], dtype: np.dtype, source: str
) -> Stored:
    """Return rows that come in batches, from a file of numbers without a name.

    The system removes the file when the matrix goes or the process ends.
    """
    folder = tempfile.gettempdir()
    if folder == "/tmp" and os.path.isdir("/var/tmp"):
        folder = "/var/tmp"  # on a disk, where /tmp may be in memory
    n, file = 0, tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
    read = rows_of_file(file, 0, len(names), dtype)
    try:
        for rows in batches:
            n += file.write(np.ascontiguousarray(rows, dtype).data)
        file.flush()
    except OSError as error:
        raise OSError(
            error.errno,
            f"{folder} has no room for a table of numbers; name another folder in the "
            "environment variable TMPDIR",
        ) from error
    shape = (n // (dtype.itemsize * len(names)), len(names))
    return Stored(read, shape, dtype, names=names, source=source)


def rows_of_file(
    file: Any, begin: int, n_features: int, dtype: np.dtype
) -> Callable[[int, int], np.ndarray]:
    """Return a function that reads rows of numbers, the first of them at a place.

    The file is closed when the function goes. From a file that was cut fewer rows come.
    """
    lock = Lock()  # two threads may share the matrix

    def read(start: int, stop: int) -> np.ndarray:
        with lock:
            file.seek(begin + start * n_features * dtype.itemsize)
            numbers = np.fromfile(file, dtype, (stop - start) * n_features)
        whole = len(numbers) // n_features * n_features
        return numbers[:whole].reshape(-1, n_features)

    weakref.finalize(read, file.close)
    return read


def unchanged(file: Any, source: str, *, settled: bool) -> Callable[[], None]:
    """Return a check that a file, by its number, is what it is now.

    Libraries that read beyond the end of a file may give zeros. The check raises if the
    file has become shorter or, where it is ``settled``, was written to. A file that
    this process may write to is not: the system may do that at any time.
    """
    before = os.stat(file)

    def check() -> None:
        nonlocal before
        try:
            now = os.stat(file)
        except OSError:  # closed: what reads it says so
            return
        what = ""
        if now.st_size < before.st_size:
            what = f"now ends at byte {now.st_size}, not {before.st_size}"
        elif now.st_size == before.st_size and now.st_mtime_ns != before.st_mtime_ns:
            what = "was written to after the work began" * settled
        if what:
            raise OSError(
                f"The file of the {source} {what}. Leave it unchanged until the work "
                "is done."
            )
        before = now

    return check
