"""The kinds of data that are not in memory, and how their rows are read."""

import math
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm._files import check_path, regular_target
from ihgmm.matrix.base import Matrix
from ihgmm.matrix.stored import Stored, rows_of_file, unchanged

CSR = ("data", "indices", "indptr")
SUFFIXES = (".parquet", ".h5ad", ".h5", ".hdf5", ".zarr", ".npy")


def open_data(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    part: str = "X",
    dtype: Any = None,
) -> Matrix:
    """Open a file that need not fit in memory, to be read block by block.

    Parameters
    ----------
    path : str or path
        A Parquet file or a folder of such files, AnnData (``.h5ad``) or other HDF5
        (``.h5``, ``.hdf5``), zarr (``.zarr``), or NumPy (``.npy``).
    columns : sequence of str, optional
        The columns of Parquet files to take, in this order; all by default.
    part : str, default="X"
        The place of the data in an HDF5 file or a zarr group, such as
        ``"layers/counts"``: a dense array, or a matrix in CSR format.
    dtype : {"float32", "float64"} or numpy.dtype, optional
        What numbers are converted to; by default, float64 unless stored as float32.

    Returns
    -------
    Matrix
        The rows, which every function of this package takes. Nothing is read yet, but
        Parquet is converted, to a temporary file in the folder that the environment
        variable TMPDIR names, ``/var/tmp`` by default. It goes with the matrix.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from ihgmm import open_data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.eye(2))
    ...     open_data(f"{folder}/x.npy", dtype="float32").toarray()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    path = Path(check_path(path))
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file.")
    if not path.is_dir():
        regular_target(path)
    suffix = path.suffix.lower() or ".parquet" * path.is_dir()
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{path}: files of format {suffix or '(no suffix)'!r} cannot be read block "
            f"by block; give one of {', '.join(SUFFIXES)}, or a folder of Parquet "
            "files. A table of text becomes one by pyarrow.dataset.write_dataset("
            "pyarrow.dataset.dataset(path, format='csv'), folder, format='parquet')."
        )
    try:
        matrix = _opened(path, suffix, columns, part)
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # whatever a library raises when its file is damaged
        if getattr(error, "errno", None):  # of the system: a disk, or a permission
            raise
        raise ValueError(f"{path} cannot be read as {suffix[1:]}: {error}") from error
    if matrix is None:
        raise ValueError(
            f"{path} is not stored row by row; save numpy.ascontiguousarray(X), with "
            "two dimensions."
        )
    return matrix if dtype is None else matrix.in_type(dtype)


def _opened(
    path: Path, suffix: str, columns: Sequence[str] | None, part: str
) -> Stored | None:
    """Return the rows of a file, whose suffix says how it is stored."""
    names: list[str] | None = None
    stored: Any
    if suffix == ".npy":
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
        if hasattr(stored, "files"):
            stored.close()
            raise ValueError(
                f"it is an archive of arrays, {stored.files[:5]}, as .npz files are; "
                "give numpy.load(path)[name], or save one array alone."
            )
    elif suffix == ".zarr":
        import zarr

        stored = zarr.open(path, mode="r")
        stored = stored[part] if hasattr(stored, "keys") else stored
    elif suffix == ".parquet":
        import pyarrow as pa
        from pyarrow import dataset

        stored = dataset.dataset(path, format="parquet")
        if columns is not None:
            chosen = [stored.schema.field(name) for name in columns]
            stored = stored.replace_schema(pa.schema(chosen))
    else:
        import h5py

        file = h5py.File(path, "r")
        # Raw data of AnnData have variables of their own.
        frame = file.get("raw/var" if part.startswith("raw/") else "var", {})
        index = frame.get(getattr(frame, "attrs", {}).get("_index", ""))
        if index is not None:
            check_claim(index)
            names = list(map(str, index.asstr()[:]))
        stored = file[part]
    return open_stored(stored, names)


def open_stored(X: Any, names: list[str] | None = None) -> Stored | None:
    """Return rows on disk, known by the name of their library; None for all else."""
    if isinstance(X, np.memmap):
        return _from_memmap(X)
    home = type(X).__module__.partition(".")[0]
    if home == "h5py" and not X:
        raise ValueError(
            "X is in an HDF5 file that is closed; open the file, and close it when "
            "the work is done."
        )
    if home == "anndata" and hasattr(X, "group"):
        X, home = X.group, "h5py"
    if home in ("h5py", "zarr"):
        return (_from_group if hasattr(X, "keys") else _from_dataset)(X, names)
    is_dataset = home == "pyarrow" and hasattr(X, "get_fragments")
    return open_parquet(X) if is_dataset else None


def _from_memmap(X: np.memmap) -> Stored | None:
    """Return the rows of a map as its file has them; None for what is in memory."""
    pages: Any = getattr(X, "_mmap", None)
    if pages is None:
        return None
    begin = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    if pages.size() < begin + len(pages):
        raise OSError(
            f"The file of the memory map {X.filename} now ends at byte {pages.size()}, "
            f"not {begin + len(pages)}; write it and open it again."
        )
    in_rows = X.ndim == 2 and X.size > 0 and X.flags.c_contiguous
    if X.mode not in ("r", "r+") or not in_rows:
        return None
    try:  # a file may be cut short: to touch its pages would then end the process
        file = open(X.filename or "", "rb", buffering=0)  # noqa: SIM115
    except OSError:  # it was deleted, or has no name
        return None
    if os.fstat(file.fileno()).st_size != pages.size():  # another has its name
        file.close()
        return None
    at = X.ctypes.data - np.frombuffer(pages, np.uint8).ctypes.data
    read = rows_of_file(file, begin + at, X.shape[1], X.dtype)
    source = f"memory map {X.filename}"
    check = unchanged(file.fileno(), source, settled=X.mode == "r")
    return Stored(read, X.shape, X.dtype, check=check, source=source)


def _from_dataset(X: Any, names: list[str] | None) -> Stored:
    if len(X.shape) != 2:
        raise ValueError(
            f"X is a stored array of shape {tuple(X.shape)}; give one with two "
            "dimensions, rows by features."
        )
    check_claim(X)
    about: Any = {"names": names, "source": _named("stored array", X)}
    about |= {"step": _chunk(X), "check": _check_of(X, X)}
    return Stored(lambda i, j: np.asarray(X[i:j]), X.shape, X.dtype, **about)


def check_claim(X: Any) -> None:
    """Raise if an array of HDF5 or zarr is far larger than what its file stores of it.

    Entries that are not stored read as zeros, so that a file of 2 kB can claim to hold
    more than any memory.
    """
    # HDF5 has arrays without a shape, in which AnnData keeps None.
    claimed = math.prod(map(int, X.shape or ())) * X.dtype.itemsize
    elsewhere = getattr(X, "is_virtual", False) or getattr(X, "external", None)
    if claimed <= 2**30 or elsewhere:  # so much does no harm
        return
    stored = X.id.get_storage_size() if hasattr(X, "id") else X.nbytes_stored()
    most = float(os.environ.get("IHGMM_MAX_EXPANSION", "1000"))
    if claimed > most * max(stored, 1):
        raise ValueError(
            f"The {_named('array', X)} claims {claimed:,} bytes, shape {X.shape}, and "
            f"{stored:,} bytes of it are stored: it is damaged, or nearly all zeros. "
            f"Data may be {most:,.0f} times as large as their file. If you trust it, "
            "set the environment variable IHGMM_MAX_EXPANSION to a larger number."
        )


def _chunk(X: Any) -> int:
    return int(X.chunks[0]) if getattr(X, "chunks", None) else 1


def _named(what: str, X: Any) -> str:
    """Name a data set or group by its file, if it has one, and its place in it."""
    file = getattr(getattr(X, "file", None), "filename", getattr(X, "store", ""))
    return f"{what} {getattr(X, 'name', '') or ''} in {file}"


def _check_of(X: Any, *arrays: Any) -> Callable[[], None]:
    """Return a check that a data set or group, made of arrays, is what it is now."""
    file: Any = getattr(X, "file", None)
    if getattr(file, "driver", None) == "sec2":  # else the file is in memory
        settled = file.mode == "r" and not file.swmr_mode
        return unchanged(file.id.get_vfd_handle(), _named("data", X), settled=settled)

    def chunks() -> list[int]:
        return [getattr(array, "nchunks_initialized", 0) for array in arrays]

    before = chunks()

    def no_chunk_is_lost() -> None:  # it would read as zeros
        if any(now < count for now, count in zip(chunks(), before, strict=True)):
            raise OSError(
                f"The {_named('zarr array', X)} now has {sum(chunks())} chunks; it had "
                f"{sum(before)} before. Leave it unchanged until the work is done."
            )

    return no_chunk_is_lost


def _from_group(group: Any, names: list[str] | None) -> Stored:
    """Return the rows of a CSR matrix in a group of three arrays."""
    kind, parts = str(group.attrs.get("encoding-type", "")), sorted(group.keys())
    shape = group.attrs.get("shape")
    if "csc" in kind:
        raise ValueError(
            f"The matrix {group.name} is stored by columns (CSC), so that no row can "
            "be read alone. Write it again by rows (CSR): adata.X = adata.X.tocsr(), "
            "then adata.write_h5ad(path)."
        )
    is_csr = "csr" in kind and set(CSR) <= set(parts)
    if not is_csr or shape is None or len(shape) != 2:
        raise ValueError(
            f"X is a group of kind {kind!r} with {parts[:5]} whose attribute 'shape' "
            f"is {shape}; give a data set, or a CSR matrix as AnnData stores it: data, "
            "indices, indptr, and group.attrs['shape'] = (n, p)."
        )
    n, p = map(int, shape)
    data, indices, indptr = arrays = [group[name] for name in CSR]
    shapes = [getattr(array, "shape", None) for array in arrays]
    entries = math.prod(shapes[0] or ())
    fits = shapes == [(entries,), (entries,), (n + 1,)]
    if fits:
        for array in arrays:
            check_claim(array)
        indptr = np.asarray(indptr[:], dtype=np.int64)
        is_rising = bool((np.diff(indptr) >= 0).all())
        fits = is_rising and (indptr[0], indptr[-1]) == (0, entries)
    if not fits:
        raise ValueError(
            f"X is a CSR matrix of {n} rows whose parts do not fit: data, indices and "
            f"row pointers have the shapes {shapes}, and pointers have to rise from 0 "
            "to the number of entries. Write it again."
        )

    def read(start: int, stop: int) -> Any:
        first, last = int(indptr[start]), int(indptr[stop])
        columns = np.asarray(indices[first:last])
        # Products trust the columns, and would read anywhere in memory.
        if len(columns) and not (columns.min() >= 0 and columns.max() < p):
            raise IndexError(
                f"columns from {columns.min()} to {columns.max()}, with {p} features"
            )
        pointers = indptr[start : stop + 1] - first
        values = np.asarray(data[first:last])
        return sp.csr_array((values, columns, pointers), shape=(stop - start, p))

    about: Any = {"names": names, "source": _named("CSR matrix", group)}
    about |= {"step": max(1, _chunk(data) * n // max(entries, 1))}
    about |= {"check": _check_of(group, data, indices)}
    return Stored(read, (n, p), data.dtype, n_entries=entries, sparse=True, **about)


def open_parquet(X: Any, *, batch_bytes: int = 2**24) -> Stored:
    """Return the rows of a Parquet data set of pyarrow; float32 if all columns are.

    They are converted once, about ``batch_bytes`` at a time, to a temporary file
    without a name. The system removes it when the matrix goes or the process ends.
    """
    from pyarrow import types

    fragments, names = list(X.get_fragments()), X.schema.names
    if not fragments or not hasattr(fragments[0], "split_by_row_group"):
        raise TypeError(
            f"X is of type {type(X).__name__} of pyarrow, not in Parquet files; check "
            "its path, or write it to some: pyarrow.dataset.write_dataset(X, path, "
            "format='parquet')."
        )
    kinds = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)
    numbers = [f.name for f in X.schema if any(is_kind(f.type) for is_kind in kinds)]
    others = [name for name in names if name not in numbers]
    if others:
        numbers = [name for name in numbers if not name.startswith("__index_level_")]
        shown = ", ".join(map(repr, numbers[:30])) + ", ..." * (len(numbers) > 30)
        raise ValueError(
            f"X has columns that are not numbers: {', '.join(others[:5])}. Name those "
            "that measure something, no ids, dates or codes, as in "
            f"ihgmm.open_data(path, columns=[...]). Numbers are in {shown}."
        )
    for fragment in fragments:
        columns = {field.name: field.type for field in fragment.physical_schema}
        wrong = [f.name for f in X.schema if columns.get(f.name) != f.type]
        if wrong:
            raise ValueError(
                f"X is a Parquet data set whose files differ: column {wrong[0]!r} of "
                f"{fragment.path} is not as in the first. Write them again alike."
            )
    is_single = all(types.is_float32(field.type) for field in X.schema)
    dtype = np.dtype(np.float32 if is_single else np.float64)
    folder = tempfile.gettempdir()
    if folder == "/tmp" and os.path.isdir("/var/tmp"):
        folder = "/var/tmp"  # on a disk, where /tmp may be in memory
    n_bytes, file = 0, tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
    read = rows_of_file(file, 0, len(names), dtype)
    try:
        for rows in _batches(fragments, names, max(1, batch_bytes // (8 * len(names)))):
            n_bytes += file.write(np.ascontiguousarray(rows, dtype).data)
        file.flush()
    except OSError as error:
        raise OSError(
            error.errno,
            f"{folder} has no room for a table of numbers; name another folder in the "
            "environment variable TMPDIR",
        ) from error
    shape = n_bytes // (dtype.itemsize * len(names)), len(names)
    source = f"Parquet data set {fragments[0].path}" + ", ..." * (len(fragments) > 1)
    return Stored(read, shape, dtype, names=names, source=source)


def _batches(fragments: list[Any], names: list[str], size: int) -> Iterator[np.ndarray]:
    """Yield rows of the files, so many at a time; NaN where nothing is in a place."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile
    from pyarrow.types import is_boolean, is_decimal

    # With a small buffer no column of a row group is read whole.
    options = {"buffer_size": 2**16, "pre_buffer": False}
    for fragment in fragments:
        try:
            with fragment.open() as source:
                file = ParquetFile(source, metadata=fragment.metadata, **options)
                for batch in file.iter_batches(size, columns=names):
                    columns = batch.select(names).columns
                    for i, column in enumerate(columns):
                        # Tensors know floats and integers only.
                        if is_boolean(column.type) or is_decimal(column.type):
                            columns[i] = column.cast(pa.float64(), safe=False)
                    table = pa.RecordBatch.from_arrays(columns, names=names)
                    yield table.to_tensor(null_to_nan=True, row_major=True).to_numpy()
        except (OSError, pa.ArrowException) as error:
            raise ValueError(f"{fragment.path} cannot be read: {error}") from error
