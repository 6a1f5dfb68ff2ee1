"""Files as data, opened by their names."""

from __future__ import annotations

import os
import re
import tokenize
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm.matrix.base import Matrix
from ihgmm.matrix.delimited import layout_of, open_text
from ihgmm.matrix.formats import open_stored
from ihgmm.matrix.parquet import open_parquet
from ihgmm.matrix.stored import Stored

TABLES = (".csv", ".tsv", ".parquet")
HDF5 = (".h5ad", ".h5", ".hdf5")


def open_data(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    drop_columns: Sequence[str] | None = None,
    part: str | None = None,
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
    dtype : {"float32", "float64"} or numpy.dtype, optional
        What numbers are converted to. By default they stay as they are stored, and
        become float64 where they are not floats of either type, as in text.

    Returns
    -------
    Matrix
        The rows; every estimator and function of this package takes them. Nothing is
        read yet, except that text is looked through once, to find where rows begin.

    Notes
    -----
    A table as text has a comma, a semicolon or a tab between cells, which its first
    line shows; with semicolons, numbers may have decimal commas. The first line holds
    names, unless all of it is numbers. A cell that is empty, or NA and the like, is a
    missing value: NaN. Text is parsed anew in each pass; for many passes, write the
    table to Parquet once.

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
    suffix = ".parquet" if path.is_dir() else path.suffix.lower()
    if (columns is not None or drop_columns is not None) and suffix not in TABLES:
        raise ValueError(
            f"{path}: columns and drop_columns are for tables, {', '.join(TABLES)}."
        )
    if part is not None and suffix not in HDF5:
        raise ValueError(f"{path}: part={part!r} is for HDF5, {', '.join(HDF5)}.")
    matrix = _open(path, suffix, columns, drop_columns, "X" if part is None else part)
    return matrix if dtype is None else matrix.in_type(dtype)


def _open(
    path: Path,
    suffix: str,
    columns: Sequence[str] | None,
    dropped: Sequence[str] | None,
    part: str,
) -> Stored:
    if suffix == ".parquet":
        return _open_parquet(path, columns, dropped)
    if suffix in TABLES:
        with explain_lack("pyarrow", "cli", path):
            import pyarrow.csv  # noqa: F401
        names = layout_of(path).names
        return open_text(path, columns=_choose(path, names, columns, dropped))
    if suffix in HDF5:
        return _open_hdf5(path, part)
    if suffix == ".npy":
        return _open_npy(path)
    raise ValueError(
        f"{path}: files of format {suffix or '(no suffix)'!r} cannot be read block by "
        f"block; give one of {', '.join((*TABLES, *HDF5, '.npy'))}, or a folder of "
        "Parquet files."
    )


def _choose(
    path: Path,
    names: list[str],
    columns: Sequence[str] | None,
    dropped: Sequence[str] | None,
) -> list[str]:
    """Return the columns that are asked for, of those that there are."""
    if columns is not None and dropped is not None:
        raise ValueError("Give columns or drop_columns, not both.")
    there = set(names)
    for name in (*(columns or ()), *(dropped or ())):
        if name not in there:
            known = ", ".join(map(repr, names[:8])) + ", ..." * (len(names) > 8)
            raise ValueError(
                f"{path} has no column {name!r}{near(name, names)}; it has {known}."
            )
    left = there - set(dropped or ())
    chosen = [name for name in names if name in left] if columns is None else columns
    if len(chosen) == 0:
        raise ValueError(f"{path}: no column is left; give at least one.")
    return list(chosen)


def near(name: str, names: Sequence[str]) -> str:
    """Return what to add to the message that there is no such name: the nearest one."""
    lower = {other.lower(): other for other in names}
    # At 0.6, the default, 'cluster' is near 'customer no.', which helps nobody.
    found = get_close_matches(name.lower(), lower, n=1, cutoff=0.7)
    return f" (did you mean {lower[found[0]]!r}?)" if found else ""


def _open_parquet(
    path: Path, columns: Sequence[str] | None, dropped: Sequence[str] | None
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
        file, reason = last.groups() if last else (path, error)
        raise ValueError(f"{file} cannot be read as Parquet: {reason}") from error
    names = _choose(path, schema.names, columns, dropped)
    chosen = pa.schema([schema.field(name) for name in names])
    return open_parquet(files.replace_schema(chosen))


def _open_npy(path: Path) -> Stored:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    # A header that is cut or altered fails in the ways of Python's own parser.
    except (ValueError, EOFError, OSError, SyntaxError, tokenize.TokenError) as error:
        raise ValueError(f"{path} cannot be read as an array: {error}") from error
    opened = open_stored(array)
    if opened is None:
        raise ValueError(
            f"{path} holds an array of shape {array.shape} that is not stored row by "
            "row; save numpy.ascontiguousarray(X), with two dimensions."
        )
    return opened


def _open_hdf5(path: Path, part: str) -> Stored:
    with explain_lack("h5py", "large", path):
        import h5py
    with _explain_damage(path):
        file = h5py.File(path, "r")
        known = None if part in file else _parts(file)
    if known is not None:
        raise ValueError(
            f"{path} has no part {part!r}; those that may hold data are "
            f"{', '.join(map(repr, known)) or 'none'}."
        )
    with _explain_damage(path):
        matrix = open_stored(file[part])
    assert matrix is not None  # all of h5py is known
    # Raw data have variables of their own.
    variables = Frame(path, "raw/var" if part.startswith("raw/") else "var")
    if variables.index is not None:
        names = [str(name) for name in variables.read(variables.index)]
        if len(names) == matrix.shape[1]:
            return matrix.named(names)
    return matrix


@contextmanager
def _explain_damage(path: Path) -> Iterator[None]:
    """Say that an HDF5 file is damaged where h5py fails at it."""
    try:
        yield
    except (OSError, RuntimeError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{path} cannot be read as HDF5: {error}") from error


def _parts(file: Any) -> list[str]:
    """Return where an AnnData file, or another one, may hold a matrix."""
    layers = [f"layers/{name}" for name in file.get("layers", ())]
    raw = ["raw/X"] * ("raw/X" in file)
    arrays = [
        name for name, item in file.items() if len(getattr(item, "shape", ())) == 2
    ]
    return [*dict.fromkeys(["X"] * ("X" in file) + arrays + layers + raw)]


def anndata_layers(path: Path) -> dict[str, str]:
    """Return the names of X, of the raw data and of layers, with their places."""
    with explain_lack("h5py", "large", path):
        import h5py
    with _explain_damage(path), h5py.File(path, "r") as file:
        places = {"X": "X", "raw": "raw/X"}
        there = {name: place for name, place in places.items() if place in file}
        return there | {name: f"layers/{name}" for name in file.get("layers", ())}


def says_logarithms(path: Path) -> bool:
    """Return whether an AnnData file says that its X holds logarithms."""
    import h5py  # the file was opened before

    with _explain_damage(path), h5py.File(path, "r") as file:
        return "uns/log1p" in file


class Frame:
    """A data frame in an AnnData file, such as ``obs``.

    ``index`` is the name of the column that names its rows, None where there is no
    frame; ``names`` are those of all other columns.
    """

    def __init__(self, path: Path, place: str) -> None:
        self.path, self.place = path, place
        with self._open() as frame:
            columns = list(frame) if hasattr(frame, "keys") else []
            found = frame.attrs.get("_index") if columns else None
        self.index = str(found) if found in columns else None
        self.names = [name for name in columns if name != self.index]

    @contextmanager
    def _open(self) -> Iterator[Any]:
        import h5py

        with _explain_damage(self.path), h5py.File(self.path, "r") as file:
            yield file.get(self.place)

    def read(self, name: str) -> np.ndarray:
        """Return a column, of objects; None stands for what is missing."""
        with self._open() as frame:
            return _column(frame[name])


def _column(stored: Any) -> np.ndarray:
    if not hasattr(stored, "keys"):
        text = stored.dtype.kind in "OS"
        return np.asarray(stored.asstr()[:] if text else stored[:], dtype=object)
    if "codes" in stored:
        # The code -1 is that of the last value, None.
        return np.append(_column(stored["categories"]), [None])[stored["codes"][:]]
    values = _column(stored["values"])
    values[stored["mask"][:]] = None
    return values


@contextmanager
def explain_lack(package: str, extra: str, path: Path) -> Iterator[None]:
    """Name the extra of this package that a file needs."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{path} needs the package {package}: pip install 'ihgmm[{extra}]'."
        ) from error
