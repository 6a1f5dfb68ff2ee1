"""The kinds of data that are not in memory, and how their rows are read."""

from __future__ import annotations

import mmap
import os
import tokenize
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm._files import plain_path
from ihgmm._warnings import warn
from ihgmm.matrix.base import Matrix, float_type
from ihgmm.matrix.stored import Stored, in_temporary_file, unchanged

HDF5 = (".h5ad", ".h5", ".hdf5")


def open_data(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    part: str | None = None,
    external: bool = False,
    dtype: Any = None,
) -> Matrix:
    """Open a file that need not fit in memory, to be read block by block.

    Parameters
    ----------
    path : str or path
        A Parquet file or a folder of such files, an AnnData file (``.h5ad``) or other
        HDF5 file (``.h5``), or an array of NumPy (``.npy``). It stays open while the
        result is in use, and is never written to.
    columns : sequence of str, optional
        The columns of a Parquet file to take, in this order; all by default. They have
        to hold numbers.
    part : str, optional
        The place of the data in an HDF5 file: ``"X"`` by default, or for example
        ``"layers/counts"`` or ``"raw/X"``. A dense array is read there, or a matrix in
        CSR format.
    external : bool, default=False
        Whether an HDF5 file may take data from other files that it names, by external
        links, virtual data sets or raw storage. Otherwise such a file is refused: one
        from a stranger could name any file of yours.
    dtype : {"float32", "float64"} or numpy.dtype, optional
        What numbers are converted to. By default they stay as they are stored, and
        become float64 where they are not floats of either type.

    Returns
    -------
    Matrix
        The rows; every estimator and function of this package takes them. Nothing is
        read yet, except that Parquet is converted once, to a temporary file of numbers
        that is removed when the matrix goes. It takes 8 bytes for each number, or 4 in
        float32, in the folder that the environment variable TMPDIR names, ``/var/tmp``
        by default.

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
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file.")
    suffix = ".parquet" if path.is_dir() else path.suffix.lower()
    if suffix not in (".parquet", *HDF5, ".npy"):
        raise ValueError(
            f"{path}: files of format {suffix or '(no suffix)'!r} cannot be read block "
            f"by block; give one of .parquet, {', '.join(HDF5)}, .npy, or a folder of "
            "Parquet files. A table of text becomes one by "
            "pyarrow.dataset.write_dataset(pyarrow.dataset.dataset(path, "
            "format='csv'), folder, format='parquet')."
        )
    if columns is not None and suffix != ".parquet":
        raise ValueError(f"{path}: columns are for .parquet.")
    if part is not None and suffix not in HDF5:
        raise ValueError(f"{path}: part={part!r} is for HDF5, {', '.join(HDF5)}.")
    if suffix == ".parquet":
        matrix = _open_parquet_files(path, columns, dtype)
    elif suffix in HDF5:
        matrix = _open_hdf5(path, "X" if part is None else part, external)
    else:
        matrix = _open_npy(path)
    return matrix if dtype is None else matrix.in_type(dtype)


@contextmanager
def explain_damage(path: Path, *errors: Any) -> Iterator[None]:
    """Say that a file is damaged where a library raises one of these errors.

    An OSError of a library is one too, unless it is the system's, which has a number:
    then the disk is at fault, or a permission.
    """
    try:
        yield
    except (OSError, *errors) as error:
        number = getattr(error, "errno", None)
        if isinstance(error, MemoryError) or number is not None:
            raise
        kind, reason = path.suffix[1:] or "data", " ".join(str(error).split())[:300]
        raise ValueError(f"{path} cannot be read as {kind}: {reason}") from error


@contextmanager
def _needing(package: str, extra: str) -> Iterator[None]:
    """Name the extra of this package that has a missing one."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"Such a file needs the package {package}: pip install 'ihgmm[{extra}]'."
        ) from error


def _open_npy(path: Path) -> Stored:
    # A header that is cut or altered fails in the ways of Python's own parser.
    errors = (ValueError, EOFError, OverflowError, SyntaxError, TypeError)
    with explain_damage(path, *errors, tokenize.TokenError):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    matrix = open_stored(array)
    if matrix is None:
        raise ValueError(
            f"{path} holds an array of shape {array.shape} that is not stored row by "
            "row; save numpy.ascontiguousarray(X), with two dimensions."
        )
    return matrix


@contextmanager
def opened_hdf5(path: Path, *, external: bool) -> Iterator[Any]:
    """Open an HDF5 file for as long as it is used; say so if it is damaged.

    One that takes data from other files is refused, unless it may: ``external``.
    """
    with _needing("h5py", "anndata" if path.suffix.lower() == ".h5ad" else "large"):
        import h5py
    with explain_damage(path, RuntimeError, KeyError, TypeError, IndexError):
        file = h5py.File(path, "r")

        def lies_outside(name: str) -> bool:
            link = file.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                return isinstance(link, h5py.ExternalLink)
            stored = file[name]
            return isinstance(stored, h5py.Dataset) and bool(
                stored.is_virtual or stored.external
            )

        places: list[str] = []
        file.visit_links(places.append)
        outside = next(filter(lies_outside, places), None)
        if outside is not None and not external:
            raise ValueError(
                f"{path} takes {outside!r} from other files, and could name any of "
                "yours. If you trust it, allow that: external=True."
            )
        yield file


def _open_hdf5(path: Path, part: str, external: bool) -> Stored:
    with opened_hdf5(path, external=external) as file:
        if part not in file:
            parts = [n for n in file if len(getattr(file[n], "shape", ())) == 2]
            parts += [f"layers/{name}" for name in file.get("layers", ())]
            parts += ["raw/X"] * ("raw/X" in file)
            raise ValueError(
                f"{path} has no part {part!r}; those that may hold data are "
                f"{', '.join(map(repr, parts)) or 'none'}."
            )
        # Raw data have variables of their own.
        variables = file.get("raw/var" if part.startswith("raw/") else "var")
        index = frame_index(variables)
        names = None if index is None else map(str, hdf5_column(variables[index]))
        matrix = open_stored(file[part], None if names is None else list(names))
    assert matrix is not None  # all of h5py is known
    return matrix


def frame_index(frame: Any) -> str | None:
    """Return the column of a frame in an AnnData file that names its rows, if any."""
    index = frame.attrs.get("_index") if hasattr(frame, "keys") else None
    return str(index) if index is not None and index in frame else None


def hdf5_column(stored: Any) -> np.ndarray:
    """Return a column of such a frame, of objects; None stands for what is missing."""
    if not hasattr(stored, "keys"):
        text = stored.dtype.kind in "OS"
        return np.asarray(stored.asstr()[:] if text else stored[:], dtype=object)
    if "codes" in stored:
        # The code -1 is that of the last value, None.
        values = np.append(hdf5_column(stored["categories"]), [None])
        return np.asarray(values[stored["codes"][:]])
    values = hdf5_column(stored["values"])
    values[stored["mask"][:]] = None
    return values


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
    at = X.ctypes.data - np.frombuffer(pages, np.uint8).ctypes.data
    begin = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY + at
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
        place, end = begin + start * X.strides[0], begin + stop * X.strides[0]
        # To touch pages beyond the end of a file would end the process.
        if pages.size() < end:
            raise EOFError(
                f"the file now ends at byte {pages.size()}, these rows at {end}"
            )
        if mapped is None or identity() != mapped:
            return np.array(X[start:stop])
        # From the file, which may be cut short meanwhile.
        count = (stop - start) * X.shape[1]
        rows = np.fromfile(str(X.filename), X.dtype, count, offset=place)
        check()
        return rows.reshape(stop - start, X.shape[1])

    name = f"memory map {X.filename}" if X.filename else "memory map"
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

    more = {"step": _chunk(X), "check": _chunk_check(X), "names": names}
    return Stored(read, X.shape, X.dtype, source=_named("stored array", X), **more)


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


def _chunk_check(*arrays: Any) -> Callable[[], None] | None:
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
    data, indices, indptr = (group[name] for name in ("data", "indices", "indptr"))
    flat = all(len(getattr(part, "shape", ())) == 1 for part in (data, indices, indptr))
    indptr = np.asarray(indptr[:], dtype=np.int64) if flat else np.empty(0, np.int64)
    ends = (*indptr[:1], *indptr[-1:])
    if (
        not (flat and len(indptr) == n + 1 and ends == (0, data.shape[0]))
        or indices.shape != data.shape
        or (np.diff(indptr) < 0).any()
    ):
        raise ValueError(
            f"X is a CSR matrix of {n} rows whose parts do not fit: data and indices "
            f"have the shapes {getattr(data, 'shape', None)} and "
            f"{getattr(indices, 'shape', None)}, {len(indptr)} row pointers go up to "
            f"{ends[-1] if ends else 'none'}. Write it again."
        )
    for array in (data, indices):
        lost = getattr(array, "nchunks", 0) - getattr(array, "nchunks_initialized", 0)
        if lost:
            warn(
                f"{lost} of {array.nchunks} chunks of the "
                f"{_named('zarr array', array)} are not stored and read as zeros. If "
                "it was written whole, they are lost: write it again.",
                UserWarning,
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
        n_entries=data.shape[0],
        sparse=True,
        step=max(1, _chunk(data) * n // max(data.shape[0], 1)),
        check=_chunk_check(data, indices),
        names=names,
        source=_named("CSR matrix", group),
    )


def _open_parquet_files(
    path: Path, columns: Sequence[str] | None, dtype: Any
) -> Stored:
    with _needing("pyarrow", "cli"):
        import pyarrow as pa
        from pyarrow import dataset
    with plain_path(path) as plain:
        with explain_damage(path, pa.ArrowException):
            files = dataset.dataset(plain, format="parquet")
        if columns is not None:
            lacking = [name for name in columns if name not in files.schema.names]
            if lacking or not columns:
                known = ", ".join(map(repr, files.schema.names[:8]))
                raise ValueError(
                    f"{path} has no column {', '.join(map(repr, lacking))}; "
                    f"it has {known}."
                )
            chosen = [files.schema.field(name) for name in columns]
            files = files.replace_schema(pa.schema(chosen))
        return open_parquet(files, dtype)


def open_parquet(X: Any, dtype: Any = None, *, batch_bytes: int = 2**24) -> Stored:
    """Return the rows of a Parquet data set of pyarrow; float32 if all columns are.

    They are converted once, about ``batch_bytes`` at a time, to a temporary file.
    """
    import pyarrow as pa
    from pyarrow import types

    fragments = list(X.get_fragments())
    if not all(hasattr(fragment, "split_by_row_group") for fragment in fragments):
        raise TypeError(
            f"X is of type {type(X).__name__} of pyarrow, not in Parquet files; write "
            "it to some: pyarrow.dataset.write_dataset(X, path, format='parquet')."
        )
    if not fragments:
        raise ValueError(
            "X is a Parquet data set without files; check the path it was opened by."
        )
    kinds = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)
    numbers = [f.name for f in X.schema if any(is_kind(f.type) for is_kind in kinds)]
    others = [name for name in X.schema.names if name not in numbers]
    if others:
        raise ValueError(
            f"X has columns that are not numbers: {', '.join(others[:5])}. Take the "
            f"others: ihgmm.open_data(path, columns={numbers[:5]})."
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
    if dtype is None:
        is_single = all(types.is_float32(field.type) for field in X.schema)
        dtype = np.float32 if is_single else np.float64
    source = f"Parquet data set {fragments[0].path}"
    source += " and others" * (len(fragments) > 1)
    batches = _batches(fragments, numbers, max(1, batch_bytes // (8 * len(numbers))))
    return in_temporary_file(batches, numbers, float_type(dtype), source)


def _batches(
    fragments: list[Any], names: list[str], n_rows: int
) -> Iterator[np.ndarray]:
    """Yield rows of the files, so many at a time; NaN where nothing is in a place."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    def as_number(column: Any) -> Any:
        """Tensors know floats and integers only."""
        kind = column.type
        odd = pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
        return column.cast(pa.float64(), safe=False) if odd else column

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
                columns = [as_number(column) for column in batch.select(names).columns]
                table = pa.RecordBatch.from_arrays(columns, names=names)
                yield table.to_tensor(null_to_nan=True, row_major=True).to_numpy()
