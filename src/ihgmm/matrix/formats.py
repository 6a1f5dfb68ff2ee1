"""The kinds of data that are not in memory, and how their rows are read."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm._warnings import warn
from ihgmm.matrix.base import float_type
from ihgmm.matrix.faults import explain_damage
from ihgmm.matrix.stored import Stored, in_temporary_file, unchanged


def open_stored(X: Any, names: list[str] | None = None) -> Stored | None:
    """Return rows on disk as a matrix, and None for all else.

    They are recognised by the name of their library, which is not imported.
    """
    if isinstance(X, np.memmap):
        return _from_memmap(X)
    home = type(X).__module__.partition(".")[0]
    if home == "h5py" and not X:
        raise ValueError(
            "X is in an HDF5 file that is closed; open the file, and close it when "
            "the work is done."
        )
    if home in ("h5py", "zarr"):
        return (_from_group if hasattr(X, "keys") else _from_dataset)(X, names)
    if home == "anndata" and hasattr(X, "group"):
        return _from_group(X.group, names)
    if home != "pyarrow":
        return None
    if not hasattr(X, "get_fragments"):
        raise TypeError(
            f"X is a {type(X).__name__} of pyarrow; give the data set, "
            "pyarrow.dataset.dataset(path), or a data frame, X.to_pandas()."
        )
    return open_parquet(X)


def _from_memmap(X: np.memmap) -> Stored | None:
    pages = getattr(X, "_mmap", None)  # None for a copy, which is in memory
    if pages is None or X.ndim != 2 or X.size == 0 or not X.flags.c_contiguous:
        return None
    row = X.strides[0]
    at = X.ctypes.data - np.frombuffer(pages, np.uint8).ctypes.data
    begin = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY + at
    name = f"memory map {X.filename}" if X.filename else "memory map"
    check = unchanged(X.filename, settled=X.mode == "r")

    def identity() -> tuple[int, int] | None:
        """Tell which file has the name of the map, if it can be the mapped one."""
        try:
            file = os.stat(X.filename or "")
        except OSError:  # a file that was deleted, or has no name
            return None
        return (file.st_dev, file.st_ino) if file.st_size == pages.size() else None

    mapped = identity() if X.mode in ("r", "r+") else None

    def read(start: int, stop: int) -> np.ndarray:
        if mapped is not None and identity() == mapped:
            # From the file, which may be cut short meanwhile.
            count = (stop - start) * X.shape[1]
            path, place = str(X.filename), begin + start * row
            rows = np.fromfile(path, X.dtype, count, offset=place)
            if rows.size < count:
                lost = count - rows.size
                raise EOFError(f"the file now ends {lost} numbers too early")
            check()
            return rows.reshape(stop - start, X.shape[1])
        # To touch pages beyond the end of a file would end the process.
        end, size = begin + stop * row, pages.size()
        if size < end:
            raise EOFError(f"the file now ends at byte {size}, these rows at {end}")
        return np.array(X[start:stop])

    return Stored(read, X.shape, X.dtype, source=name)


def _from_dataset(X: Any, names: list[str] | None) -> Stored:
    if len(X.shape) != 2:
        raise ValueError(
            f"X is a stored array of shape {tuple(X.shape)}; give one with two "
            "dimensions, rows by features."
        )
    check = _file_check(X)

    def read(start: int, stop: int) -> np.ndarray:
        rows = np.asarray(X[start:stop])
        check()
        return rows

    return Stored(
        read,
        X.shape,
        X.dtype,
        step=_chunk(X),
        check=_chunk_check(X),
        names=names,
        source=_named("stored array", X),
    )


def _chunk(X: Any) -> int:
    return int(X.chunks[0]) if getattr(X, "chunks", None) else 1


def _named(what: str, X: Any) -> str:
    """Name a data set or group by its file, if it has one, and its place in it."""
    file = getattr(getattr(X, "file", None), "filename", getattr(X, "store", ""))
    return f"{what} {getattr(X, 'name', '') or ''} in {file}"


def _file_check(X: Any) -> Callable[[], None]:
    """Return a check of the file of an HDF5 data set or group, if it has one."""
    file: Any = getattr(X, "file", None)
    if getattr(file, "driver", None) != "sec2":  # zarr, or a file in memory
        return unchanged(None, settled=False)
    settled = file.mode == "r" and not file.swmr_mode
    return unchanged(file.id.get_vfd_handle(), settled=settled)


def _chunk_check(*arrays: Any, whole: bool = False) -> Callable[[], None] | None:
    """Return a check that no chunk of zarr arrays is lost: they would read as zeros.

    Of arrays that are ``whole``, those that are not stored now are warned of.
    """
    if not all(hasattr(array, "nchunks_initialized") for array in arrays):
        return None
    before = [array.nchunks_initialized for array in arrays]
    for array, count in zip(arrays, before, strict=True):
        if whole and count < array.nchunks:
            warn(
                f"{array.nchunks - count} of {array.nchunks} chunks of the "
                f"{_named('zarr array', array)} are not stored and read as zeros. If "
                "it was written whole, they are lost: write it again.",
                UserWarning,
            )

    def check() -> None:
        for array, count in zip(arrays, before, strict=True):
            now = array.nchunks_initialized
            if now < count:
                raise OSError(
                    f"The {_named('zarr array', array)} now has {now} chunks; it had "
                    f"{count} before. Leave it unchanged until the work is done."
                )

    return check


def _from_group(group: Any, names: list[str] | None) -> Stored:
    """Return the rows of a CSR matrix in a group of three arrays."""
    kind = group.attrs.get("encoding-type", group.attrs.get("h5sparse_format", ""))
    parts = sorted(group.keys())
    if "csc" in str(kind):
        raise ValueError(
            f"The {_named('matrix', group)} is stored by columns (CSC), so that no row "
            "can be read alone. Write the file again by rows (CSR): adata.X = "
            "adata.X.tocsr(), then adata.write_h5ad(path)."
        )
    if "csr" not in str(kind) or not {"data", "indices", "indptr"} <= set(parts):
        raise ValueError(
            f"X is a group of kind {str(kind)!r} with {parts[:5]}; give a data set, or "
            "a CSR matrix as AnnData stores it (data, indices, indptr)."
        )
    shape = group.attrs.get("shape", group.attrs.get("h5sparse_shape"))
    if shape is None or len(shape) != 2:
        raise ValueError(
            f"X is a CSR matrix in a group whose attribute 'shape' is {shape}; say how "
            "many rows and features it has: group.attrs['shape'] = (n, p)."
        )
    n, p = map(int, shape)
    data, indices = group["data"], group["indices"]
    for name in ("data", "indices", "indptr"):
        if len(getattr(group[name], "shape", ())) != 1:
            raise ValueError(
                f"X is a CSR matrix whose part {name!r} is no array of one dimension. "
                "Write it again."
            )
    indptr, nnz = np.asarray(group["indptr"][:], dtype=np.int64), data.shape[0]
    whole = len(indptr) == n + 1 and indptr[0] == 0 and indptr[-1] == nnz
    if not whole or indices.shape[0] != nnz or (np.diff(indptr) < 0).any():
        raise ValueError(
            f"X is a CSR matrix of {n} rows whose parts do not fit: {nnz} data, "
            f"{indices.shape[0]} indices, {len(indptr)} row pointers up to "
            f"{indptr[-1] if len(indptr) else 'none'}. Write it again."
        )
    check = _file_check(group)

    def read(start: int, stop: int) -> Any:
        first, last = int(indptr[start]), int(indptr[stop])
        columns = np.asarray(indices[first:last])
        # Products trust the columns, and would read anywhere in memory.
        if len(columns) and not (columns.min() >= 0 and columns.max() < p):
            raise IndexError(
                f"columns from {columns.min()} to {columns.max()}, with {p} features"
            )
        values = np.asarray(data[first:last])
        check()
        pointers = indptr[start : stop + 1] - first
        return sp.csr_array((values, columns, pointers), shape=(stop - start, p))

    return Stored(
        read,
        (n, p),
        data.dtype,
        n_entries=nnz,
        sparse=True,
        step=max(1, _chunk(data) * n // max(nnz, 1)),
        check=_chunk_check(data, indices, whole=True),
        names=names,
        source=_named("CSR matrix", group),
    )


def open_parquet(X: Any, dtype: Any = None, *, batch_bytes: int = 2**24) -> Stored:
    """Return the rows of a Parquet data set of pyarrow; float32 if all columns are.

    They are converted once to a temporary file of numbers.
    About ``batch_bytes`` are decoded together: many small row groups, or a small part
    of a large one.
    """
    import pyarrow as pa
    from pyarrow import types

    fragments = list(X.get_fragments())
    if not all(hasattr(fragment, "split_by_row_group") for fragment in fragments):
        raise TypeError(
            f"X is of type {type(X).__name__} of pyarrow, not in Parquet files; open "
            "CSV files by ihgmm.open_data(path), and write others to Parquet: "
            "pyarrow.dataset.write_dataset(X, path, format='parquet')."
        )
    if not fragments:
        raise ValueError(
            "X is a Parquet data set without files; check the path it was opened by."
        )
    numbers = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)
    wrong = [
        field.name
        for field in X.schema
        if not any(is_kind(field.type) for is_kind in numbers)
    ]
    if wrong:
        raise ValueError(
            f"X has columns that are not numbers: {', '.join(wrong[:5])}. Leave them "
            f"out: ihgmm.open_data(path, drop_columns={wrong[:5]})."
        )
    for fragment in fragments:
        with explain_damage(Path(fragment.path), pa.ArrowException):
            schema = fragment.physical_schema
        columns = {field.name: field.type for field in schema}
        for field in X.schema:
            if columns.get(field.name) != field.type:
                raise ValueError(
                    f"X is a Parquet data set whose files differ: column {field.name!r}"
                    f" is {field.type} in the first and "
                    f"{columns.get(field.name, 'not there')} in {fragment.path}. Write "
                    "it again with the same columns."
                )
    names = list(X.schema.names)
    if dtype is None:
        is_single = all(types.is_float32(field.type) for field in X.schema)
        dtype = np.float32 if is_single else np.float64
    others = " and others" * (len(fragments) > 1)
    source = f"Parquet data set {fragments[0].path}{others}"
    batches = _batches(fragments, names, max(1, batch_bytes // (8 * len(names))))
    return in_temporary_file(batches, names, float_type(dtype), source)


def _batches(
    fragments: list[Any], names: list[str], n_rows: int
) -> Iterator[np.ndarray]:
    """Yield rows of the files, so many at a time."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    for fragment in fragments:
        with (
            explain_damage(Path(fragment.path), pa.ArrowException),
            fragment.open() as source,
        ):
            # With a small buffer no column of a row group is read whole.
            file = ParquetFile(
                source, metadata=fragment.metadata, buffer_size=2**16, pre_buffer=False
            )
            for batch in file.iter_batches(n_rows, columns=names):
                # Tensors know floats and integers only.
                columns = [
                    column.cast(pa.float64(), safe=False)
                    if pa.types.is_boolean(column.type)
                    or pa.types.is_decimal(column.type)
                    else column
                    for column in batch.select(names).columns
                ]
                table = pa.RecordBatch.from_arrays(columns, names=names)
                # Nothing in a place is NaN, which the checks of the data will name.
                yield table.to_tensor(null_to_nan=True, row_major=True).to_numpy()
