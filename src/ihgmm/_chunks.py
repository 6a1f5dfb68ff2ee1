"""Data that is not in memory: rows that are read, or worked on elsewhere, in blocks.

A :class:`RowBlocks` stands in for the matrix X. It hands blocks of rows to some work,
in order, and knows its shape and type; the functions of ``_arrays`` need no more.
"""

from __future__ import annotations

import mmap
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

__all__ = ["RowBlocks", "StoredRows", "check_kind", "in_unit", "open_rows"]

BLOCK_BYTES = 2**25
"""Bytes of a block that is read at a time; two are in memory at once."""

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))

T = TypeVar("T")
Block = Any
"""Some rows in memory: a NumPy array or a scipy.sparse CSR array."""


class RowBlocks(ABC):
    """Rows in blocks.

    Attributes
    ----------
    shape : tuple of int
        (n_samples, n_features).
    dtype : numpy.dtype
        float32 or float64, what blocks are converted to.
    ranges : list of slice
        The rows of each block.
    sparse : bool
        Whether blocks are sparse.
    nnz : int
        Numbers stored.
    passes : int
        How often all blocks were gone through so far.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    ranges: list[slice]
    sparse: bool
    nnz: int
    passes: int = 0
    factor: float = 1.0
    verbose: bool = False

    @property
    def size(self) -> int:
        """Numbers stored."""
        return self.nnz

    @abstractmethod
    def map(self, work: Callable[..., T], *tall: np.ndarray) -> Iterator[T]:
        """Yield the results of some work on each block, in order.

        The work gets the block and, of each tall array, the part that belongs to the
        rows of the block.
        """

    @abstractmethod
    def take(self, index: np.ndarray | slice) -> Block:
        """Return some rows, in memory."""

    def tocsr(self) -> RowBlocks:
        """Return the rows as they are: blocks that are sparse are CSR."""
        return self

    def toarray(self) -> np.ndarray:
        """Return all rows in memory; for few rows only."""
        return _dense(self.take(slice(0, self.shape[0])))

    def _prepared(self, block: Any) -> Block:
        """Return a block of the right type, in the unit asked for."""
        return in_unit(block, self.dtype, self.factor)


def in_unit(block: Any, dtype: np.dtype, factor: float) -> Block:
    """Return some rows in a type of float, times a factor."""
    block = block.astype(dtype, copy=False)
    if factor == 1.0:
        return block
    if abs(factor) <= float(np.finfo(dtype).max):
        return block * dtype.type(factor)
    most = 2.0**100  # the factor itself is more than the type can hold
    return in_unit(block * dtype.type(most), dtype, factor / most)


def check_kind(dtype: Any) -> np.dtype:
    """Return float32 or float64, what numbers of some type are converted to."""
    kind = np.dtype(dtype)
    if kind.kind not in "fiub":
        raise ValueError(
            f"X holds entries of type {kind}, not real numbers; store it as float32 "
            "or float64."
        )
    return kind if kind in FLOATS else np.dtype(np.float64)


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
        Called before each pass; raises if the file is not what it was.
    name : str
        What is read, for messages.
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
        name: str = "X",
    ) -> None:
        self._read = read
        self._check = check
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
        if self._check is not None:
            self._check()
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(self._get, self.ranges[0])
            for i, rows in enumerate(self.ranges):
                block = ahead.result()
                if i + 1 < len(self.ranges):
                    ahead = reader.submit(self._get, self.ranges[i + 1])
                yield work(block, *(array[rows] for array in tall))
                if self.verbose:
                    _show(self.passes, i + 1, len(self.ranges), started)

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
        parts = [
            self._some(index[order[first:last]])
            for first, last in pairwise(cuts)
            if first < last
        ]
        if not parts:
            return self._get(slice(0, 0))
        back = np.empty(len(index), dtype=np.intp)
        back[order] = np.arange(len(index))
        return _stacked(parts)[back]

    def _some(self, wanted: np.ndarray) -> Block:
        """Return rows of one block: by chunks where they are in few, else from all."""
        chunk = wanted // self._step
        chunks = np.unique(chunk)
        if len(chunks) * 16 >= chunks[-1] - chunks[0] + 1:
            return self._within(wanted)
        return _stacked([self._within(wanted[chunk == c]) for c in chunks])

    def _within(self, wanted: np.ndarray) -> Block:
        """Return rows out of what is between the first and the last of them."""
        first, last = int(wanted[0]), int(wanted[-1]) + 1
        return self._get(slice(first, last))[wanted - first]


def _stacked(parts: list[Block]) -> Block:
    if sp.issparse(parts[0]):
        return sp.vstack(parts, format="csr")
    return np.concatenate(parts)


def _dense(block: Block) -> np.ndarray:
    return np.asarray(block.toarray() if sp.issparse(block) else block)


def _show(number: int, done: int, total: int, started: float) -> None:
    """Draw how far a pass has come, on one line of the terminal."""
    spent = time.monotonic() - started
    bar = "█" * (20 * done // total)
    left = spent * (total - done) / done
    end = "\n" if done == total else "\r"
    text = f"pass {number} {bar:<20} {done / total:4.0%}  {left:4.0f} s left"
    sys.stderr.write(text + end)
    sys.stderr.flush()


def open_rows(X: Any) -> RowBlocks | None:
    """Return X as blocks of rows if it is not in memory, and None if it is.

    Recognised without importing their libraries: NumPy memory maps, HDF5 data sets,
    zarr arrays, CSR matrices in HDF5 or zarr groups as AnnData stores them, Parquet
    data sets of pyarrow, and dask arrays.
    """
    if isinstance(X, RowBlocks):
        return X
    if isinstance(X, np.memmap):
        return _from_memmap(X)
    home = type(X).__module__.partition(".")[0]
    if home == "h5py" and not X:
        raise ValueError(
            "X is in an HDF5 file that is closed; open the file, and close it when "
            "the work is done."
        )
    if home in ("h5py", "zarr"):
        return _from_group(X) if hasattr(X, "keys") else _from_dataset(X)
    if home == "anndata" and hasattr(X, "group"):
        return _from_group(X.group)
    if home == "pyarrow" and hasattr(X, "to_batches"):
        return _from_parquet(X)
    if home == "dask":
        from ihgmm._dask import from_dask

        return from_dask(X)
    return None


def _from_memmap(X: np.memmap) -> StoredRows | None:
    pages = getattr(X, "_mmap", None)  # None for a copy, which is in memory
    if pages is None or X.ndim != 2 or X.size == 0 or not X.flags.c_contiguous:
        return None
    row = X.strides[0]
    at = X.ctypes.data - np.frombuffer(pages, np.uint8).ctypes.data
    offset = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    name = f"memory map {X.filename}" if X.filename else "memory map"

    def read(start: int, stop: int) -> np.ndarray:
        # To touch pages beyond the end of a file would end the process.
        end, size = offset + at + stop * row, pages.size()
        if size < end:
            raise EOFError(f"the file now ends at byte {size}, these rows at {end}")
        block = np.array(X[start:stop])
        # Pages that were read would count as ours; dropped, they stay in the cache of
        # the system. Copies on write must stay: they are changes nobody else has.
        if X.mode != "c" and hasattr(mmap, "MADV_DONTNEED"):
            first = (at + start * row) // mmap.PAGESIZE * mmap.PAGESIZE
            pages.madvise(mmap.MADV_DONTNEED, first, at + stop * row - first)
        return block

    return StoredRows(read, X.shape, X.dtype, name=name)


def _from_dataset(X: Any) -> StoredRows:
    if len(X.shape) != 2:
        raise ValueError(
            f"X is a stored array of shape {tuple(X.shape)}; give one with two "
            "dimensions, rows by features."
        )
    return StoredRows(
        lambda start, stop: np.asarray(X[start:stop]),
        X.shape,
        X.dtype,
        step=_chunk(X),
        check=_still_there(X),
        name=_named("stored array", X),
    )


def _chunk(X: Any) -> int:
    return int(X.chunks[0]) if getattr(X, "chunks", None) else 1


def _named(what: str, X: Any) -> str:
    """Name a data set or group by its file, if it has one, and its place in it."""
    file = getattr(getattr(X, "file", None), "filename", None)
    if file is None:
        file = getattr(X, "store", "")
    return f"{what} {getattr(X, 'name', '') or ''} in {file}"


def _still_there(*arrays: Any) -> Callable[[], None] | None:
    """Return a check that no chunk of zarr arrays is lost: they would read as zeros."""
    if not all(hasattr(array, "nchunks_initialized") for array in arrays):
        return None
    before = [array.nchunks_initialized for array in arrays]

    def check() -> None:
        for array, count in zip(arrays, before, strict=True):
            now = array.nchunks_initialized
            if now < count:
                raise OSError(
                    f"The {_named('zarr array', array)} now has {now} chunks; it had "
                    f"{count} before. Leave it unchanged until the work is done."
                )

    return check


def _from_group(group: Any) -> StoredRows:
    """Return the rows of a CSR matrix in a group of three arrays."""
    kind = group.attrs.get("encoding-type", group.attrs.get("h5sparse_format", ""))
    parts = sorted(group.keys())
    if "csc" in str(kind):
        raise ValueError(
            f"X is a group of kind {str(kind)!r}, which is stored by columns; store it "
            "by rows: X.tocsr()."
        )
    if "csr" not in str(kind) or not {"data", "indices", "indptr"} <= set(parts):
        raise ValueError(
            f"X is a group of kind {str(kind)!r} with {parts[:5]}; give a data set, or "
            "a CSR matrix as AnnData stores it (data, indices, indptr)."
        )
    n, p = group.attrs.get("shape", group.attrs.get("h5sparse_shape"))
    data, indices = group["data"], group["indices"]
    indptr = np.asarray(group["indptr"][:], dtype=np.int64)
    nnz = data.shape[0]
    whole = len(indptr) == n + 1 and indptr[0] == 0 and indptr[-1] == nnz
    if not whole or indices.shape[0] != nnz or (np.diff(indptr) < 0).any():
        raise ValueError(
            f"X is a CSR matrix of {n} rows whose parts do not fit: {nnz} data, "
            f"{indices.shape[0]} indices, {len(indptr)} row pointers up to "
            f"{indptr[-1] if len(indptr) else 'none'}. Write it again."
        )

    def read(start: int, stop: int) -> Any:
        first, last = int(indptr[start]), int(indptr[stop])
        columns = np.asarray(indices[first:last])
        # Products trust the columns, and would read anywhere in memory.
        if len(columns) and not (columns.min() >= 0 and columns.max() < p):
            raise IndexError(
                f"columns from {columns.min()} to {columns.max()}, with {p} features"
            )
        values = np.asarray(data[first:last])
        pointers = indptr[start : stop + 1] - first
        return sp.csr_array((values, columns, pointers), shape=(stop - start, int(p)))

    return StoredRows(
        read,
        (n, p),
        data.dtype,
        nnz=nnz,
        sparse=True,
        step=max(1, int(_chunk(data) * int(n) // max(nnz, 1))),
        check=_still_there(data, indices),
        name=_named("CSR matrix", group),
    )


def _from_parquet(X: Any) -> StoredRows:
    """Return the rows of a Parquet data set, one row group after another."""
    import pyarrow as pa

    names = list(X.schema.names)
    wrong = [
        field.name
        for field in X.schema
        if not (pa.types.is_floating(field.type) or pa.types.is_integer(field.type))
    ]
    if wrong:
        raise ValueError(
            f"X has columns that are not numbers: {', '.join(wrong[:5])}. Write it to "
            "Parquet without these."
        )
    narrow = all(pa.types.is_float32(field.type) for field in X.schema)
    kind = np.dtype(np.float32 if narrow else np.float64)
    pieces = [
        (piece, rows)
        for fragment in X.get_fragments()
        for piece in fragment.split_by_row_group()
        if (rows := sum(group.num_rows for group in piece.row_groups))
    ]
    edges = np.concatenate([[0], np.cumsum([count for _, count in pieces])]).astype(int)
    last: tuple[int, Any] = (-1, None)

    def decoded(i: int) -> np.ndarray:
        """Return a row group; the last one is kept, since blocks may be smaller."""
        nonlocal last
        if last[0] != i:
            last = (-1, None)  # not two at a time
            (batch,) = (
                pieces[i][0].to_table(columns=names).combine_chunks().to_batches()
            )
            # Nothing in a place is NaN, which the checks of the data will name.
            tensor = batch.to_tensor(null_to_nan=True, row_major=True)
            last = (i, tensor.to_numpy().astype(kind, copy=False))
        return np.asarray(last[1])

    def read(start: int, stop: int) -> np.ndarray:
        parts = []
        first = int(np.searchsorted(edges, start, side="right")) - 1
        for i in range(first, len(pieces)):
            if edges[i] >= stop:
                break
            rows = slice(max(start - edges[i], 0), min(stop, edges[i + 1]) - edges[i])
            # A copy, unless all is asked for: a view would keep the whole group.
            whole = rows == slice(0, pieces[i][1])
            parts.append(decoded(i) if whole else decoded(i)[rows].copy())
        if not parts:
            return np.empty((0, len(names)), dtype=kind)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    return StoredRows(
        read,
        (int(edges[-1]), len(names)),
        kind,
        step=max((count for _, count in pieces), default=1),
        name=f"Parquet data set {', '.join(map(str, X.files[:2]))}",
    )
