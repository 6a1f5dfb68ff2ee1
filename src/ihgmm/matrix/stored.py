"""Rows that are not in memory: read from disk, or worked on elsewhere, in blocks."""

from __future__ import annotations

import os
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise, zip_longest
from threading import Lock
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ihgmm.matrix.base import NOTHING, About, Index, Matrix, T, float_type, parts_of
from ihgmm.matrix.device import Device, as_floats
from ihgmm.matrix.memory import Dense
from ihgmm.matrix.ops import is_foreign
from ihgmm.matrix.sparse import Sparse, without_duplicates


def held(rows: Any, dtype: Any, factor: float = 1.0, about: About = NOTHING) -> Matrix:
    """Return rows that are in memory, or on a device, as a matrix, times a factor."""
    matrix: Any
    if is_foreign(rows):
        matrix = Device(as_floats(rows))
    elif sp.issparse(rows):
        matrix = Sparse(without_duplicates(rows.tocsr().astype(dtype, copy=False)))
    else:
        matrix = Dense(np.asarray(rows, dtype=dtype))
    matrix = matrix if factor == 1.0 else matrix.rescaled(factor)
    return matrix.with_about(about)


class Blocks(Matrix):
    """Rows in blocks that are not in memory. A kind needs ``row_blocks``."""

    row_blocks: Any
    streamed = True
    on_host = False
    factor = 1.0  # what entries are multiplied by when they are read

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.n_stored = self.shape[0]  # rows, whether they are kept or not
        self.read: Counter[str] = Counter()  # rows, each time; copies share it

    @property
    def passes(self) -> int:
        """How often the rows have been read so far."""
        return round(self.read["rows"] / max(self.n_stored, 1))

    def wrap(self, rows: Any) -> Matrix:
        """Return rows in memory as a matrix."""
        return held(rows, self.dtype, self.factor, self.about.of_taken_rows())

    def rescaled(self, factor: float) -> Self:
        other = self._anew(factor=self.factor * factor)
        return other.with_about(self.about.rescaled(factor))

    def _anew(self, **changes: Any) -> Self:
        """Return a copy with other entries, of which nothing is known yet."""
        other = self._but(**changes)
        for known in ("sqnorms", "_height", "row_blocks"):
            vars(other).pop(known, None)
        return other


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

    def __init__(
        self,
        read: Callable[[int, int], Any],
        shape: tuple[int, int],
        dtype: Any,
        *,
        n_entries: int | None = None,
        sparse: bool = False,
        step: int = 1,
        check: Callable[[], None] = lambda: None,
        names: list[str] | None = None,
        source: str = "X",
    ) -> None:
        n, p = int(shape[0]), int(shape[1])
        names = names if names and len(names) == p else None
        super().__init__((n, p), float_type(dtype), About(names=names))
        self.sparse, self.source = sparse, source
        self._read, self._step, self._check = read, step, check
        self.n_entries = n * p if n_entries is None else int(n_entries)
        self._places = np.arange(n)  # of rows in the file

    def __repr__(self) -> str:
        n, p = self.shape
        return f"<{self.source}: {n:,} rows, {p:,} features, {self.dtype}>"

    def in_type(self, dtype: Any) -> Stored:
        """Return the same rows, their numbers converted to float32 or float64."""
        return self._anew(dtype=float_type(dtype))

    def _kept(self, rows: np.ndarray) -> Stored:
        # No work is done on the others, which may hold NaN.
        n, p = self.shape
        size, places = round(self.n_entries * len(rows) / max(n, 1)), self._places[rows]
        some = self._anew(shape=(len(rows), p), n_entries=size, _places=places)
        return some.with_about(self.about.of_taken_rows())

    def keep_columns(self, places: np.ndarray) -> Stored:
        """Return some columns, in this order, as if no others were stored."""
        read, (n, p) = self._read, self.shape
        names = None if self.names is None else [self.names[j] for j in places]
        return self._anew(
            shape=(n, len(places)),
            n_entries=round(self.n_entries * len(places) / max(p, 1)),
            _read=lambda start, stop: read(start, stop)[:, places],
        ).with_about(replace(self.about, names=names))

    @cached_property
    def _height(self) -> int:
        """How many rows of the file are in a block."""
        size = (1 + self.sparse) * self.n_entries * self.dtype.itemsize
        row = max(1, size // max(self.shape[0], 1))
        height = max(1, self.block_bytes // row // self._step) * self._step
        is_too_tall = height * row > 4 * self.block_bytes  # for chunks to be held whole
        return max(1, self.block_bytes // row) if is_too_tall else height

    @cached_property
    def row_blocks(self) -> list[slice]:
        ends = range(0, self.n_stored + self._height, self._height)
        cuts = pairwise(np.searchsorted(self._places, ends).tolist())
        return [slice(*cut) for cut in cuts if cut[0] < cut[1]]

    def map(self, work: Callable[..., T], *tall: np.ndarray | None) -> Iterator[T]:
        places = [self._places[rows] for rows in self.row_blocks]
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(self._get, places[0])
            for rows, following in zip_longest(self.row_blocks, places[1:]):
                block = ahead.result()
                if following is not None:
                    ahead = reader.submit(self._get, following)
                yield work(self.wrap(block), *parts_of(tall, rows))
        self._check()

    def take(self, rows: Index) -> Matrix:
        wanted = self._places[rows]
        places, order = np.unique(wanted, return_inverse=True)
        # Places that are near are read together, with all that is between them.
        far = np.diff(places // self._step) > 16
        far |= (np.diff(places) > 1) & (np.diff(places // self._height) > 0)
        parts = [self._get(run) for run in np.split(places, np.flatnonzero(far) + 1)]
        self._check()
        stack = partial(sp.vstack, format="csr") if self.sparse else np.concatenate
        block = parts[0] if len(parts) == 1 else stack(parts)
        return self.wrap(block if np.array_equal(wanted, places) else block[order])

    def _get(self, places: np.ndarray) -> Any:
        """Return rows by their places in the file, each once and in order."""
        start, stop = (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)
        which = f"Rows {start} to {stop - 1} of the {self.source}"
        try:
            block = self._read(start, stop).astype(self.dtype, copy=False)
        except MemoryError:
            raise
        # Whatever a library raises when its file is cut, closed or not what it was.
        except Exception as error:
            raise OSError(
                f"{which} could not be read ({type(error).__name__}: {error}). Check "
                "that the file is whole and stays open and unchanged until the work is "
                "done."
            ) from error
        if block.shape != (stop - start, self.shape[1]):
            raise OSError(
                f"{which} came in shape {block.shape}; it had {self.n_stored} rows "
                f"and {self.shape[1]} features before. Leave the file unchanged until "
                "the work is done."
            )
        decoded = min(-(-stop // self._step) * self._step, self.n_stored)
        self.read["rows"] += decoded - start // self._step * self._step
        return block if len(places) == stop - start else block[places - start]


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


def unchanged(file: int, source: str, *, settled: bool) -> Callable[[], None]:
    """Return a check that a file, by its number, is what it is now.

    Libraries that read beyond the end of a file may give zeros. The check raises if the
    file has become shorter or, where it is ``settled``, was written to. A file that
    this process may write to is not: the system may do that at any time.
    """
    before = os.stat(file)

    def check() -> None:
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

    return check
