"""Files as data, opened by their names."""

from __future__ import annotations

import os
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm._files import plain_path
from ihgmm.matrix.base import Matrix, float_type
from ihgmm.matrix.delimited import open_text
from ihgmm.matrix.faults import damaged, explain_damage, explain_lack, near
from ihgmm.matrix.formats import open_parquet, open_stored
from ihgmm.matrix.stored import Stored

TABLES = (".csv", ".tsv", ".parquet")
HDF5 = (".h5ad", ".h5", ".hdf5")
# An array whose header is cut or altered fails in the ways of Python's own parser.
HEADER_ERRORS = (
    *(ValueError, EOFError, OverflowError, SyntaxError, TypeError),
    tokenize.TokenError,
)


def open_data(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    drop_columns: Sequence[str] | None = None,
    part: str | None = None,
    external: bool = False,
    dtype: Any = None,
) -> Matrix:
    r"""Open a file that need not fit in memory, to be read block by block.

    Parameters
    ----------
    path : str or path
        A table as text (``.csv``, ``.tsv``), a Parquet file or a folder of such files,
        an AnnData file (``.h5ad``) or other HDF5 file (``.h5``), or an array of NumPy
        (``.npy``). It stays open while the result is in use, and is never written to.
    columns : sequence of str, optional
        The columns of a table to take, in this order; all by default. They have to
        hold numbers.
    drop_columns : sequence of str, optional
        The columns of a table to leave out, instead.
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
        become float64 where they are not floats of either type, as in text.

    Returns
    -------
    Matrix
        The rows; every estimator and function of this package takes them. Nothing is
        read yet, except that tables are converted to numbers.

    Notes
    -----
    A table as text has a comma, a semicolon or a tab between cells, which its first
    lines show; with semicolons, numbers may have decimal commas. Its first line, or the
    first one below titles, holds names, unless all of it is numbers. A cell that is
    empty, or NA and the like, is a missing value: NaN. Tables are converted once, to a
    temporary file of numbers that is removed when the matrix goes. The file takes 8
    bytes for each number, or 4 in float32, in the folder that the environment variable
    TMPDIR names, ``/var/tmp`` by default.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ihgmm import open_data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "x.csv"
    ...     _ = path.write_text("name,a,b\nAnn,1,2\nBob,3,\n")
    ...     X = open_data(path, drop_columns=["name"])
    ...     X.names, X.toarray()
    (['a', 'b'], array([[ 1.,  2.], [ 3., nan]]))
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file.")
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    suffix = ".parquet" if path.is_dir() else suffix
    if suffix not in (*TABLES, *HDF5, ".npy"):
        raise ValueError(
            f"{path}: files of format {suffix or '(no suffix)'!r} cannot be read block "
            f"by block; give one of {', '.join((*TABLES, *HDF5, '.npy'))}, or a folder "
            "of Parquet files."
        )
    if (columns is not None or drop_columns is not None) and suffix not in TABLES:
        raise ValueError(
            f"{path}: columns and drop_columns are for tables, {', '.join(TABLES)}."
        )
    if columns is not None and drop_columns is not None:
        raise ValueError("Give columns or drop_columns, not both.")
    if part is not None and suffix not in HDF5:
        raise ValueError(f"{path}: part={part!r} is for HDF5, {', '.join(HDF5)}.")

    def choose(names: list[str]) -> list[str]:
        """Return the columns that are asked for, of those that there are."""
        there, left_out = set(names), set(drop_columns or ())
        for name in (*(columns or ()), *left_out):
            if name not in there:
                known = ", ".join(map(repr, names[:8])) + ", ..." * (len(names) > 8)
                raise ValueError(
                    f"{path} has no column {name!r}{near(name, names)}; it has {known}."
                )
        kept = [name for name in names if name not in left_out]
        kept = kept if columns is None else list(columns)
        if not kept:
            raise ValueError(f"{path}: no column is left; give at least one.")
        return kept

    if suffix == ".parquet":
        with plain_path(path) as plain:
            matrix = _open_parquet(plain, choose, dtype)
    elif suffix in TABLES:
        with explain_lack("pyarrow", "cli", path):
            import pyarrow.csv  # noqa: F401
        numbers = float_type(np.float64 if dtype is None else dtype)
        with plain_path(path) as plain:
            matrix = open_text(plain, choose, numbers)
    elif suffix in HDF5:
        matrix = _open_hdf5(path, "X" if part is None else part, external)
    else:
        matrix = _open_npy(path)
    return matrix if dtype is None else matrix.in_type(dtype)


def _open_parquet(
    path: Path, choose: Callable[[list[str]], list[str]], dtype: Any
) -> Stored:
    with explain_lack("pyarrow", "cli", path):
        import pyarrow as pa
        from pyarrow import dataset
    try:
        files = dataset.dataset(path, format="parquet")
        schema = files.schema
    except (pa.ArrowException, OSError) as error:
        # pyarrow says so three times, and the file of a folder in the last.
        last = re.search(
            r"Could not open Parquet input source '(.*)': (.*)", f"{error}"
        )
        file, reason = last.groups() if last else (path, f"{error}")
        if "duplicate field names" in reason:
            reason = "two columns have one name; write it again with others."
        raise damaged(Path(file), reason) from error
    chosen = pa.schema([schema.field(name) for name in choose(schema.names)])
    return open_parquet(files.replace_schema(chosen), dtype)


def _open_npy(path: Path) -> Stored:
    with explain_damage(path, *HEADER_ERRORS):
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
    extra = "anndata" if path.suffix.lower() == ".h5ad" else "large"
    with explain_lack("h5py", extra, path):
        import h5py
    errors = (RuntimeError, KeyError, TypeError, IndexError)
    with explain_damage(path, *errors):
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
        if not external:
            file.visit_links(places.append)
        outside = next(filter(lies_outside, places), None)
        if outside is not None:
            raise ValueError(
                f"{path} takes {outside!r} from other files, and could name any of "
                "yours. If you trust it, allow that: external=True."
            )
        yield file


def _open_hdf5(path: Path, part: str, external: bool) -> Stored:
    with opened_hdf5(path, external=external) as file:
        if part not in file:
            arrays = [
                name for name in file if len(getattr(file[name], "shape", ())) == 2
            ]
            layers = [f"layers/{name}" for name in file.get("layers", ())]
            parts = [*arrays, *layers, *["raw/X"] * ("raw/X" in file)]
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
