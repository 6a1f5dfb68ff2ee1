"""Arrays of HDF5 and zarr: dense ones, and groups of three that are a CSR matrix."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from ihgmm.matrix.stored import Stored, check_unchanged

CSR_PARTS = ("data", "indices", "indptr")


class StoredArray(Protocol):
    """An array of h5py or zarr."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...

    def __getitem__(self, part: slice, /) -> Any: ...


class StoredGroup(Protocol):
    """A group of arrays of h5py or zarr."""

    @property
    def name(self) -> str: ...

    @property
    def attrs(self) -> Any: ...

    def keys(self) -> Any: ...

    def __getitem__(self, name: str, /) -> Any: ...


def open_array(X: StoredArray, names: list[str] | None) -> Stored:
    """Return the rows of a dense array, with names of its columns if there are some."""
    if len(X.shape) != 2:
        raise ValueError(
            f"X is a stored array of shape {tuple(X.shape)}; give one with two "
            "dimensions, rows by features."
        )

    n, p = X.shape
    check_claim(X)

    def read(start: int, stop: int) -> np.ndarray:
        return np.asarray(X[start:stop])

    return Stored(
        read,
        (n, p),
        X.dtype,
        step=_chunk_length(X),
        check=_check_unchanged(X, [X]),
        names=names,
        source=_with_place("stored array", X),
    )


def open_csr_group(group: StoredGroup, names: list[str] | None) -> Stored:
    """Return the rows of a CSR matrix in a group of three arrays."""
    n, p = _shape_of_csr(group)
    data, indices, indptr = (group[name] for name in CSR_PARTS)
    row_pointers = _row_pointers(n, data, indices, indptr)
    n_entries = int(row_pointers[-1])

    def read(start: int, stop: int) -> sp.csr_array:
        first = int(row_pointers[start])
        last = int(row_pointers[stop])

        columns = np.asarray(indices[first:last])
        # Products trust the columns, and would read anywhere in memory.
        if len(columns) and not (columns.min() >= 0 and columns.max() < p):
            raise IndexError(
                f"columns from {columns.min()} to {columns.max()}, with {p} features"
            )

        values = np.asarray(data[first:last])
        pointers = row_pointers[start : stop + 1] - first
        return sp.csr_array((values, columns, pointers), shape=(stop - start, p))

    rows_in_chunk = _chunk_length(data) * n // max(n_entries, 1)
    return Stored(
        read,
        (n, p),
        data.dtype,
        n_entries=n_entries,
        sparse=True,
        step=max(1, rows_in_chunk),
        check=_check_unchanged(group, [data, indices]),
        names=names,
        source=_with_place("CSR matrix", group),
    )


def _shape_of_csr(group: StoredGroup) -> tuple[int, int]:
    """Return the shape of the matrix in a group; raise where it is not one by rows."""
    kind = str(group.attrs.get("encoding-type", ""))
    parts = sorted(group.keys())
    shape = group.attrs.get("shape")

    if "csc" in kind:
        raise ValueError(
            f"The matrix {group.name} is stored by columns (CSC), so that no row can "
            "be read alone. Write it again by rows (CSR): adata.X = adata.X.tocsr(), "
            "then adata.write_h5ad(path)."
        )

    is_csr = "csr" in kind and set(CSR_PARTS) <= set(parts)
    if not is_csr or shape is None or len(shape) != 2:
        raise ValueError(
            f"X is a group of kind {kind!r} with {parts[:5]} whose attribute 'shape' "
            f"is {shape}; give a data set, or a CSR matrix as AnnData stores it: data, "
            "indices, indptr, and group.attrs['shape'] = (n, p)."
        )

    n, p = map(int, shape)
    return n, p


def _row_pointers(
    n: int, data: StoredArray, indices: StoredArray, indptr: StoredArray
) -> np.ndarray:
    """Return where the entries of each of n rows begin, and where the last ones end.

    Raises
    ------
    ValueError
        If the three arrays do not fit together.
    """
    arrays = (data, indices, indptr)
    shapes = [getattr(array, "shape", None) for array in arrays]
    n_entries = math.prod(shapes[0] or ())

    if shapes == [(n_entries,), (n_entries,), (n + 1,)]:
        for array in arrays:
            check_claim(array)

        pointers = np.asarray(indptr[:], dtype=np.int64)
        is_rising = bool((np.diff(pointers) >= 0).all())
        if is_rising and (pointers[0], pointers[-1]) == (0, n_entries):
            return pointers

    raise ValueError(
        f"X is a CSR matrix of {n} rows whose parts do not fit: data, indices and "
        f"row pointers have the shapes {shapes}, and pointers have to rise from 0 "
        "to the number of entries. Write it again."
    )


def check_claim(X: Any) -> None:
    """Raise if an array of HDF5 or zarr is far larger than what its file stores of it.

    Entries that are not stored read as zeros, so that a file of 2 kB can claim to hold
    more than any memory.
    """
    # HDF5 has arrays without a shape, in which AnnData keeps None.
    claimed = math.prod(map(int, X.shape or ())) * X.dtype.itemsize
    is_elsewhere = getattr(X, "is_virtual", False) or getattr(X, "external", None)
    if claimed <= 2**30 or is_elsewhere:  # so much does no harm
        return

    stored = X.id.get_storage_size() if hasattr(X, "id") else X.nbytes_stored()
    max_expansion = float(os.environ.get("IHGMM_MAX_EXPANSION", "1000"))

    if claimed > max_expansion * max(stored, 1):
        raise ValueError(
            f"The {_with_place('array', X)} claims {claimed:,} bytes, shape {X.shape}, "
            f"and {stored:,} bytes of it are stored: it is damaged, or nearly all "
            f"zeros. Data may be {max_expansion:,.0f} times as large as their file. If "
            "you trust it, set the environment variable IHGMM_MAX_EXPANSION to a "
            "larger number."
        )


def _chunk_length(X: StoredArray) -> int:
    """Return how many rows, or entries, are stored together."""
    chunks = getattr(X, "chunks", None)
    return int(chunks[0]) if chunks else 1


def _with_place(what: str, X: Any) -> str:
    """Name a data set or group by its file, if it has one, and its place in it."""
    file_name = getattr(getattr(X, "file", None), "filename", getattr(X, "store", ""))
    name_in_file = getattr(X, "name", "") or ""
    return f"{what} {name_in_file} in {file_name}"


def _check_unchanged(X: Any, arrays: list[Any]) -> Callable[[], None]:
    """Return a check that a data set or group, made of arrays, is what it is now."""
    file = getattr(X, "file", None)
    if file is not None and getattr(file, "driver", None) == "sec2":  # not in memory
        is_settled = file.mode == "r" and not file.swmr_mode
        source = _with_place("data", X)
        return check_unchanged(file.id.get_vfd_handle(), source, settled=is_settled)

    def chunk_counts() -> list[int]:
        return [getattr(array, "nchunks_initialized", 0) for array in arrays]

    counts_before = chunk_counts()

    def check_that_no_chunk_is_lost() -> None:  # it would read as zeros
        counts = chunk_counts()
        pairs = zip(counts, counts_before, strict=True)
        if any(count < count_before for count, count_before in pairs):
            raise OSError(
                f"The {_with_place('zarr array', X)} now has {sum(counts)} chunks; it "
                f"had {sum(counts_before)} before. Leave it unchanged until the work "
                "is done."
            )

    return check_that_no_chunk_is_lost
