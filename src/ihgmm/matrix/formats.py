"""The kinds of data that are not in memory: files by path, or objects of libraries."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm._files import check_path, regular_target
from ihgmm.matrix.base import Matrix
from ihgmm.matrix.hdf5_zarr import check_claim, open_array, open_csr_group
from ihgmm.matrix.memory_map import open_memory_map
from ihgmm.matrix.parquet import open_parquet
from ihgmm.matrix.stored import Stored

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
        The rows, with names of columns where Parquet or AnnData have them; every
        function of this package takes them. Nothing is read yet, except that Parquet is
        converted, to a temporary file in the folder that the environment variable
        TMPDIR names, ``/var/tmp`` by default; it is deleted with the matrix.

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
        regular_target(path)  # raises for a device

    suffix = path.suffix.lower()
    if not suffix and path.is_dir():
        suffix = ".parquet"

    if suffix not in SUFFIXES:
        raise ValueError(
            f"{path}: files of format {suffix or '(no suffix)'!r} cannot be read block "
            f"by block; give one of {', '.join(SUFFIXES)}, or a folder of Parquet "
            "files. A table of text becomes one by pyarrow.dataset.write_dataset("
            "pyarrow.dataset.dataset(path, format='csv'), folder, format='parquet')."
        )

    try:
        matrix = _open_file(path, suffix, columns, part)
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # whatever a library raises when its file is damaged
        if getattr(error, "errno", None):  # the system failed: a disk, a permission
            raise
        raise ValueError(f"{path} cannot be read as {suffix[1:]}: {error}") from error

    if matrix is None:  # a memory map that is not by rows
        raise ValueError(
            f"{path} is not stored row by row; save numpy.ascontiguousarray(X), with "
            "two dimensions."
        )

    return matrix if dtype is None else matrix.in_type(dtype)


def open_stored(X: Any, names: list[str] | None = None) -> Stored | None:
    """Return rows on disk; None for all else.

    Objects are known by the name of their library, so that none need be imported.
    """
    if isinstance(X, np.memmap):
        return open_memory_map(X)

    library = type(X).__module__.partition(".")[0]
    if library == "h5py" and not X:  # what is in a closed file is false
        raise ValueError(
            "X is in an HDF5 file that is closed; open the file, and close it when "
            "the work is done."
        )

    if library == "anndata" and hasattr(X, "group"):  # sparse X in backed mode
        X = X.group
        library = "h5py"

    if library in ("h5py", "zarr"):
        is_group = hasattr(X, "keys")
        return open_csr_group(X, names) if is_group else open_array(X, names)

    if library == "pyarrow" and hasattr(X, "get_fragments"):  # a data set
        return open_parquet(X)
    return None


def _open_file(
    path: Path, suffix: str, columns: Sequence[str] | None, part: str
) -> Stored | None:
    """Return the rows of a file, whose suffix says how it is stored."""
    match suffix:
        case ".npy":
            return open_stored(_array_of_npy(path))
        case ".zarr":
            return _open_zarr(path, part)
        case ".parquet":
            return open_stored(_data_set_of_parquet(path, columns))
        case _:
            return _open_hdf5(path, part)


def _array_of_npy(path: Path) -> np.memmap:
    array = np.load(path, mmap_mode="r", allow_pickle=False)

    if hasattr(array, "files"):
        array.close()
        raise ValueError(
            f"it is an archive of arrays, {array.files[:5]}, as .npz files are; "
            "give numpy.load(path)[name], or save one array alone."
        )

    return array


def _data_set_of_parquet(path: Path, columns: Sequence[str] | None) -> Any:
    import pyarrow as pa
    from pyarrow import dataset

    data_set = dataset.dataset(path, format="parquet")
    if columns is None:
        return data_set

    fields = [data_set.schema.field(name) for name in columns]
    return data_set.replace_schema(pa.schema(fields))


def _open_zarr(path: Path, part: str) -> Stored | None:
    """Return a zarr array, or a part of a group with the names of its columns."""
    import zarr

    stored = zarr.open(path, mode="r")
    if not isinstance(stored, zarr.Group):
        return open_stored(stored)
    return open_stored(stored[part], _names_of_variables(stored, part))


def _open_hdf5(path: Path, part: str) -> Stored | None:
    """Return a part of an HDF5 file with the names of its columns."""
    import h5py

    file = h5py.File(path, "r")  # open as long as something of it is in use
    return open_stored(file[part], _names_of_variables(file, part))


def _names_of_variables(file: Any, part: str) -> list[str] | None:
    """Return the names that AnnData gives the columns of a part; None of other files.

    They are a column of a frame, ``var``, whose attribute says which.
    """
    # Raw data have variables of their own.
    variables = file.get("raw/var" if part.startswith("raw/") else "var")
    if not hasattr(variables, "keys"):
        return None

    index = variables.get(variables.attrs.get("_index", "_index"))
    if index is None:
        return None
    if hasattr(index, "keys"):
        index = index["values"]  # beside a mask of the names that are missing
    check_claim(index)
    names = index.asstr()[:] if hasattr(index, "asstr") else index[:]  # bytes of h5py
    return list(map(str, names))
