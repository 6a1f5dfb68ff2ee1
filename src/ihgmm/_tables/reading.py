"""Reading data: what is built in, and files in every format."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets as bundled

from ihgmm._tables.columns import read_columns
from ihgmm._tables.matrices import MATRICES, read_matrix
from ihgmm._tables.missing import without_missing
from ihgmm._tables.table import Table, TableError, listed, plain
from ihgmm._tables.wanted import Wanted
from ihgmm._tables.writing import TEXT
from ihgmm.datasets import list_datasets, load_dataset
from ihgmm.model import make_ihgmm

__all__ = ["BUILT_IN", "FORMATS", "read_table"]

FORMATS = (*TEXT, ".parquet", *MATRICES)
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers")

DAMAGED = (
    ValueError,
    TypeError,
    KeyError,
    OSError,
    EOFError,
    NotImplementedError,
    SyntaxError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What readers of files raise where a file is not what its name says."""


def _bunch(load: Callable[..., Any]) -> Table:
    bunch = load()
    labels = np.asarray(bunch.target_names)[bunch.target]
    names = [str(name) for name in bunch.feature_names]
    return plain(np.asarray(bunch.data, dtype=np.float64), labels, names)


def _demo() -> Table:
    X, labels = make_ihgmm(600, 200, 4, scale_ratio=20.0, random_state=0)
    return plain(X, labels)


BUILT_IN: dict[str, Callable[[], Table]] = {
    "iris": lambda: _bunch(bundled.load_iris),
    "wine": lambda: _bunch(bundled.load_wine),
    "digits": lambda: _bunch(bundled.load_digits),
    "demo": _demo,
}


def read_table(
    source: str,
    *,
    label_column: str | None = None,
    id_column: str | None = None,
    columns: Sequence[str] = (),
    drop_columns: Sequence[str] = (),
    drop_missing: bool = False,
    features: Sequence[str] | None = None,
    usual_label: str | None = None,
    usual_ids: str | None = None,
) -> Table:
    """Read a built-in data set or a file.

    Parameters
    ----------
    source : str
        A name in :data:`BUILT_IN` or of the paper's data sets, or the path of a file:
        CSV or TSV (also gzipped), Parquet, NPY, NPZ (one array, or a scipy.sparse
        matrix) or MTX.
    label_column, id_column : str, optional
        Columns of a table that hold known labels and names of rows; the first may also
        name an array of an NPZ file.
    columns : sequence of str
        Columns to use; all that hold numbers, if empty.
    drop_columns : sequence of str
        Columns to leave out.
    drop_missing : bool
        Leave out rows with missing cells instead of refusing them.
    features : sequence of str, optional
        Columns that a model was fitted on. They are taken in that order, whatever
        their order in the file. Data without names pass as they are.
    usual_label, usual_ids : str, optional
        Columns with labels and names of rows that are taken where the data have them
        and no others are given.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        If the file is missing, empty or malformed, or has no numeric columns.
    """
    wanted = Wanted(
        label_column, id_column, columns, drop_columns, features, usual_label, usual_ids
    )
    path = Path(source)
    if not path.exists():
        wanted.refuse_names(source, also_label=True)
        return _ordered(source, _named(source), features)
    if path.is_dir():
        raise TableError(f"{source} is a folder; give one file.")
    if path.stat().st_size == 0:
        raise TableError(f"{source} is empty.")
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix in SPREADSHEETS:
        raise TableError(
            f"{source} is a spreadsheet; save the sheet with the data as CSV "
            "(UTF-8) and give that file."
        )
    if suffix not in FORMATS:
        raise TableError(
            f"{source}: unknown format {path.suffix or '(no suffix)'!r}; give one of "
            f"{', '.join(FORMATS)}."
        )
    try:
        if suffix in MATRICES:
            wanted.refuse_names(source, also_label=suffix != ".npz")
            table = read_matrix(source, path, suffix, wanted)
        else:
            table = read_columns(source, path, suffix, wanted)
    except DAMAGED as error:
        reason = " ".join(str(error).split())[:300]
        if "pickle" in reason:
            reason = "it does not hold an array of numbers"
        raise TableError(
            f"{source} cannot be read as {suffix[1:]}: {reason}"
        ) from error
    return without_missing(source, table, drop_missing, fixed=features is not None)


def _named(source: str) -> Table:
    """Return a data set that is known by its name."""
    if source in BUILT_IN:
        return BUILT_IN[source]()
    if source in list_datasets():
        return _bunch(lambda: load_dataset(source))
    raise TableError(
        f"{source}: no such file, nor a built-in data set "
        f"({', '.join(dict.fromkeys([*BUILT_IN, *list_datasets()]))})."
    )


def _ordered(source: str, table: Table, features: Sequence[str] | None) -> Table:
    """Return a data set with its columns in the order of a model."""
    if features is None or table.names is None:
        return table
    missing = [name for name in features if name not in table.names]
    if missing:
        raise TableError(
            f"{source} lacks {len(missing)} of the {len(features)} columns that the "
            f"model was fitted on: {listed(missing)}."
        )
    places = [table.names.index(name) for name in features]
    return replace(table, X=table.X[:, places], names=list(features))
