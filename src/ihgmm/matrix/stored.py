"""Rows that are not in memory: read from disk, or worked on elsewhere, in blocks."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from itertools import pairwise, zip_longest
from threading import Lock
from typing import Any, BinaryIO, Self

import numpy as np
import scipy.sparse as sp

from ihgmm.matrix.arrays import AnyArray, Tall, is_foreign
from ihgmm.matrix.base import (
    NO_METADATA,
    Index,
    Matrix,
    Metadata,
    T,
    float_type,
    parts_of,
)
from ihgmm.matrix.device import Device, as_floats
from ihgmm.matrix.host_ops import HOST
from ihgmm.matrix.materialized import Materialized
from ihgmm.matrix.memory import Dense
from ihgmm.matrix.ops import Ops
from ihgmm.matrix.sparse import Sparse, without_duplicates


def materialize(
    rows: AnyArray,
    dtype: Any,
    factor: float = 1.0,
    metadata: Metadata = NO_METADATA,
) -> Dense | Sparse | Device:
    """Return rows that are in memory, or on a device, as a matrix, times a factor."""
    matrix: Dense | Sparse | Device
    if is_foreign(rows):
        matrix = Device(as_floats(rows))
    elif sp.issparse(rows):
        csr = rows.tocsr().astype(dtype, copy=False)
        matrix = Sparse(without_duplicates(csr))
    else:
        matrix = Dense(np.asarray(rows, dtype=dtype))

    if factor != 1.0:
        matrix = matrix.rescaled(factor)
    return matrix.with_metadata(metadata)


class ReadCount:
    """How many rows have been read so far, each as often as it was."""

    def __init__(self) -> None:
        self.rows = 0


class Blocks(Matrix):
    """Rows in blocks that are not in memory. A kind needs ``row_blocks``."""

    row_blocks: Any
    streamed = True
    on_host = False
    factor = 1.0  # what entries are multiplied by when they are read

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: Any,
        metadata: Metadata = NO_METADATA,
        ops: Ops = HOST,
    ) -> None:
        super().__init__(shape, dtype, metadata, ops)
        self.n_stored = self.shape[0]  # rows, whether they are kept or not
        self.read_count = ReadCount()  # copies share it

    @property
    def passes(self) -> int:
        """How often the rows have been read so far."""
        return round(self.read_count.rows / max(self.n_stored, 1))

    def materialize(self, rows: AnyArray) -> Dense | Sparse | Device:
        """Return rows that were read as a matrix."""
        metadata = self.metadata.of_taken_rows()
        return materialize(rows, self.dtype, self.factor, metadata)

    def rescaled(self, factor: float) -> Self:
        rescaled_rows = self._with_other_entries(factor=self.factor * factor)
        return rescaled_rows.with_metadata(self.metadata.rescaled(factor))

    def _with_other_entries(self, **changes: Any) -> Self:
        """Return a copy with other attributes, of whose entries nothing is known."""
        other = self._replaced(**changes)
        for name in ("sqnorms", "_block_height", "row_blocks"):
            vars(other).pop(name, None)

        return other


class Stored(Blocks):
    """Rows on disk, read one block after the other while the last one is worked on.

    Parameters
    ----------
    read : callable
        ``read(start, stop)`` returns some rows as a new array, or as a CSR matrix if
        the data are ``sparse``.
    shape : tuple of int
        Number of samples and of features.
    dtype : numpy.dtype
        Type of what is read.
    n_entries : int, optional
        How many numbers are stored; by default all.
    sparse : bool
        Whether zeros are not stored.
    step : int
        The file decodes so many rows together.
    check : callable
        Raises if the file is not what it was; called after each pass and sample.
    names : list of str, optional
        Names of the features.
    source : str
        What messages call the data.
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
        n = int(shape[0])
        p = int(shape[1])
        if names is not None and len(names) != p:
            names = None

        super().__init__((n, p), float_type(dtype), Metadata(names=names or None))

        self.sparse = sparse
        self.source = source
        self.n_entries = n * p if n_entries is None else int(n_entries)
        self._read = read
        self._step = step
        self._check = check
        self._file_rows = np.arange(n)  # (n_samples,): where rows are in the file

    def __repr__(self) -> str:
        n, p = self.shape
        return f"<{self.source}: {n:,} rows, {p:,} features, {self.dtype}>"

    def in_type(self, dtype: Any) -> Stored:
        """Return the same rows, their numbers converted to float32 or float64."""
        return self._with_other_entries(dtype=float_type(dtype))

    def _select_rows(self, rows: np.ndarray) -> Stored:
        # No work is done on the others, which may hold NaN.
        n, p = self.shape

        part = self._with_other_entries(
            shape=(len(rows), p),
            n_entries=round(self.n_entries * len(rows) / max(n, 1)),
            _file_rows=self._file_rows[rows],
        )
        return part.with_metadata(self.metadata.of_taken_rows())

    def keep_columns(self, columns: np.ndarray) -> Stored:
        """Return some columns, in this order, as if no others were stored."""
        read_all = self._read
        n, p = self.shape

        def read(start: int, stop: int) -> Any:
            return read_all(start, stop)[:, columns]

        part = self._with_other_entries(
            shape=(n, len(columns)),
            n_entries=round(self.n_entries * len(columns) / max(p, 1)),
            _read=read,
        )

        names = None if self.names is None else [self.names[j] for j in columns]
        return part.with_metadata(replace(self.metadata, names=names))

    @cached_property
    def _block_height(self) -> int:
        """How many rows of the file are in a block."""
        # Of sparse rows the columns are read as well.
        n_bytes = (1 + self.sparse) * self.n_entries * self.dtype.itemsize
        row_bytes = max(1, n_bytes // max(self.shape[0], 1))

        rows_that_fit = max(1, self.block_bytes // row_bytes)
        steps_that_fit = max(1, self.block_bytes // row_bytes // self._step)
        height = steps_that_fit * self._step
        is_too_tall = height * row_bytes > 4 * self.block_bytes  # to hold whole steps
        return rows_that_fit if is_too_tall else height

    @cached_property
    def row_blocks(self) -> list[slice]:
        file_edges = range(0, self.n_stored + self._block_height, self._block_height)
        edges = np.searchsorted(self._file_rows, file_edges).tolist()
        return [slice(start, stop) for start, stop in pairwise(edges) if start < stop]

    def map(self, work: Callable[..., T], *tall: Tall | None) -> Iterator[T]:
        file_rows = [self._file_rows[rows] for rows in self.row_blocks]

        with ThreadPoolExecutor(1) as reader:
            next_block = reader.submit(self._read_rows, file_rows[0])

            for rows, following in zip_longest(self.row_blocks, file_rows[1:]):
                block = next_block.result()
                if following is not None:
                    next_block = reader.submit(self._read_rows, following)
                yield work(self.materialize(block), *parts_of(tall, rows))

        self._check()

    def take(self, rows: Index) -> Materialized:
        file_rows = self._file_rows[rows]
        sorted_rows, order = np.unique(file_rows, return_inverse=True)

        # Rows that are near are read together, with all that is between them.
        is_far = np.diff(sorted_rows // self._step) > 16
        is_in_other_block = np.diff(sorted_rows // self._block_height) > 0
        is_next = np.diff(sorted_rows) == 1
        is_cut = is_far | (is_in_other_block & ~is_next)
        runs = np.split(sorted_rows, np.flatnonzero(is_cut) + 1)
        parts = [self._read_rows(run) for run in runs]
        self._check()

        if len(parts) == 1:
            block = parts[0]
        elif self.sparse:
            block = sp.vstack(parts, format="csr")
        else:
            block = np.concatenate(parts)
        if not np.array_equal(file_rows, sorted_rows):
            block = block[order]

        return self.materialize(block)

    def _read_rows(self, file_rows: np.ndarray) -> Any:
        """Return rows by where they are in the file, each once and in order."""
        start = int(file_rows[0]) if len(file_rows) else 0
        stop = int(file_rows[-1]) + 1 if len(file_rows) else 0
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

        # Whole steps were decoded.
        first_decoded = start // self._step * self._step
        last_decoded = min(-(-stop // self._step) * self._step, self.n_stored)
        self.read_count.rows += last_decoded - first_decoded
        return block if len(file_rows) == stop - start else block[file_rows - start]


def rows_of_file(
    file: BinaryIO, begin: int, n_features: int, dtype: np.dtype
) -> Callable[[int, int], np.ndarray]:
    """Return a function that reads rows of numbers, the first of them at a place.

    The file is closed when the function goes. From a file that was cut fewer rows come.
    """
    lock = Lock()  # two threads may share the matrix

    def read(start: int, stop: int) -> np.ndarray:
        with lock:
            file.seek(begin + start * n_features * dtype.itemsize)
            numbers = np.fromfile(file, dtype, (stop - start) * n_features)

        n_rows = len(numbers) // n_features
        return numbers[: n_rows * n_features].reshape(-1, n_features)

    weakref.finalize(read, file.close)
    return read


def check_unchanged(file: int, source: str, *, settled: bool) -> Callable[[], None]:
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

        is_of_same_size = now.st_size == before.st_size
        was_written = is_of_same_size and now.st_mtime_ns != before.st_mtime_ns
        if now.st_size < before.st_size:
            change = f"now ends at byte {now.st_size}, not {before.st_size}"
        elif settled and was_written:
            change = "was written to after the work began"
        else:
            return

        raise OSError(
            f"The file of the {source} {change}. Leave it unchanged until the work "
            "is done."
        )

    return check
