"""Reading data for the command line, and writing labels whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp
from sklearn import datasets as bundled

from ihgmm.datasets import list_datasets, load_dataset, zscore
from ihgmm.model import make_ihgmm

__all__ = [
    "BUILT_IN",
    "Table",
    "TableError",
    "read_table",
    "standardize",
    "write_csv",
    "write_whole",
]

TEXT = {".csv": ",", ".tsv": "\t"}
FORMATS = (*TEXT, ".parquet", ".npy", ".npz", ".mtx")


class TableError(Exception):
    """Data that cannot be used as it is; the message says what to do."""


@dataclass(frozen=True)
class Table:
    """A data matrix with what came beside it.

    Attributes
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        The numeric columns.
    ids : ndarray of shape (n_samples,)
        A name for each row; its number in the data, from 1, unless given.
    id_name : str
        What the ids are called.
    labels : ndarray of shape (n_samples,) or None
        Known labels.
    notes : list of str
        What was left out, for people to read.
    """

    X: Any
    ids: np.ndarray
    id_name: str = "row"
    labels: np.ndarray | None = None
    notes: list[str] = field(default_factory=list)


def _bunch(load: Callable[..., Any]) -> Table:
    bunch = load()
    labels = np.asarray(bunch.target_names)[bunch.target]
    return _plain(np.asarray(bunch.data, dtype=np.float64), labels)


def _demo() -> Table:
    X, labels = make_ihgmm(600, 200, 4, scale_ratio=20.0, random_state=0)
    return _plain(X, labels)


def _plain(X: Any, labels: np.ndarray | None = None) -> Table:
    return Table(X, np.arange(1, X.shape[0] + 1), labels=labels)


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
    drop_missing: bool = False,
) -> Table:
    """Read a built-in data set or a file.

    Parameters
    ----------
    source : str
        A name in :data:`BUILT_IN` or of the paper's data sets, or the path of a file:
        CSV or TSV (also gzipped), Parquet, NPY, NPZ (one array, or a scipy.sparse
        matrix) or MTX.
    label_column, id_column : str, optional
        Columns of a table that hold known labels and names of rows.
    drop_missing : bool
        Leave out rows with missing cells instead of refusing them.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        If the file is missing, empty or malformed, or has no numeric columns.
    """
    path = Path(source)
    if not path.exists():
        _no_columns(source, label_column, id_column)
        if source in BUILT_IN:
            return BUILT_IN[source]()
        if source in list_datasets():
            return _bunch(lambda: load_dataset(source))
        raise TableError(
            f"{source}: no such file, nor a built-in data set "
            f"({', '.join(dict.fromkeys([*BUILT_IN, *list_datasets()]))})."
        )
    if path.is_dir():
        raise TableError(f"{source} is a folder; give one file.")
    if path.stat().st_size == 0:
        raise TableError(f"{source} is empty.")
    suffix = _suffix(path)
    if suffix not in FORMATS:
        raise TableError(
            f"{source}: unknown format {path.suffix or '(no suffix)'!r}; give one of "
            f"{', '.join(FORMATS)}."
        )
    try:
        if suffix in TEXT or suffix == ".parquet":
            arrow = _read_columns(path, suffix)
            return _from_columns(source, arrow, label_column, id_column, drop_missing)
        _no_columns(source, label_column, id_column)
        table = _plain(_read_matrix(source, path, suffix))
    except TableError:
        raise
    except (ValueError, OSError, EOFError, KeyError) as error:
        reason = " ".join(str(error).split())[:300]
        if "pickle" in reason:
            reason = "it does not hold an array of numbers"
        raise TableError(
            f"{source} cannot be read as {suffix[1:]}: {reason}"
        ) from error
    return _without_missing(source, table, drop_missing)


def standardize(X: Any) -> np.ndarray:
    """Return the z-scores of the columns of dense data."""
    if sp.issparse(X):
        raise TableError(
            "--standardize subtracts column means, which fills sparse data up; leave "
            "it out, or store the data as a dense array."
        )
    return zscore(X)


def write_csv(path: Path, names: Sequence[str], columns: Sequence[Any]) -> None:
    """Write columns to a CSV or TSV file, whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=TEXT.get(path.suffix, ","), lineterminator="\n")
    writer.writerow(names)
    writer.writerows(zip(*columns, strict=True))
    write_whole(path, text.getvalue())


def write_whole(path: Path, text: str) -> None:
    """Write a text file so that no reader ever sees, or is left with, a part of it."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, "w", newline="", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _suffix(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def _no_columns(source: str, label: str | None, ids: str | None) -> None:
    for option, column in (("--label-column", label), ("--id-column", ids)):
        if column is not None:
            raise TableError(
                f"{option} {column!r}: {source} has no named columns; that option is "
                "for CSV, TSV and Parquet files."
            )


def _read_matrix(source: str, path: Path, suffix: str) -> Any:
    if suffix == ".mtx":
        X = scipy.io.mmread(path)
        X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    elif suffix == ".npy":
        X = np.load(path, allow_pickle=False)
    else:
        with np.load(path, allow_pickle=False) as archive:
            names = list(archive)
            if "format" in names:
                X = sp.csr_array(sp.load_npz(path))
            elif len(names) == 1 or "X" in names:
                X = archive["X" if "X" in names else names[0]]
            else:
                raise TableError(
                    f"{source} holds several arrays ({', '.join(names)}); name the "
                    "data X, or save it alone."
                )
    if X.ndim != 2:
        raise TableError(f"{source} has shape {X.shape}; give rows by columns.")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise TableError(f"{source} has shape {X.shape}: there is nothing to cluster.")
    if X.dtype.kind not in "fiub":
        raise TableError(f"{source} holds {X.dtype} entries; give real numbers.")
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _read_columns(path: Path, suffix: str) -> Any:
    """Read a table with pyarrow; columns of a file without a header are col1, ..."""
    import pyarrow as pa

    if suffix == ".parquet":
        import pyarrow.parquet

        return pa.parquet.read_table(path)
    import pyarrow.csv

    delimiter = _delimiter(path, TEXT[suffix])
    parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    convert = pa.csv.ConvertOptions(strings_can_be_null=True)
    read = pa.csv.ReadOptions()
    arrow = pa.csv.read_csv(path, read, parse, convert)
    if all(_is_number(name) for name in arrow.column_names):
        names = [f"col{i}" for i in range(1, arrow.num_columns + 1)]
        read = pa.csv.ReadOptions(column_names=names)
        arrow = pa.csv.read_csv(path, read, parse, convert)
    return arrow


def _delimiter(path: Path, usual: str) -> str:
    """Return ``";"`` where the first line has that and not the usual delimiter."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    with opened(path, "rb") as file:
        first = file.readline(2**16)
    return ";" if b";" in first and usual.encode() not in first else usual


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _from_columns(
    source: str,
    arrow: Any,
    label_column: str | None,
    id_column: str | None,
    drop_missing: bool,
) -> Table:
    names = arrow.column_names
    if arrow.num_rows == 0:
        raise TableError(f"{source} has a header but no rows.")
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise TableError(f"{source} has several columns named {sorted(twice)[0]!r}.")
    special = {}
    for option, column in (
        ("--label-column", label_column),
        ("--id-column", id_column),
    ):
        if column is None:
            continue
        if column not in names:
            raise TableError(
                f"{option} {column!r}: {source} has no such column; it has "
                f"{_listed(names)}."
            )
        special[column] = np.array(arrow.column(column).to_pylist(), dtype=object)
    columns, text = {}, []
    for name in names:
        if name in special:
            continue
        values = _numbers(arrow.column(name))
        if values is None:
            text.append(name)
        else:
            columns[name] = values
    if not columns:
        raise TableError(
            f"{source} has no numeric columns beside those named; it has "
            f"{_listed(names)}."
        )
    notes = [f"Clustered by {len(columns)} columns: {_listed(list(columns))}."]
    notes += [_left_out(name, arrow.column(name)) for name in text[:8]]
    if len(text) > 8:
        notes.append(f"Left out {len(text) - 8} more columns that are not numbers.")
    table = Table(
        np.column_stack(list(columns.values())),
        special[id_column] if id_column else np.arange(1, arrow.num_rows + 1),
        id_column or "row",
        special[label_column] if label_column else None,
        notes,
    )
    return _without_missing(source, table, drop_missing, list(columns))


def _left_out(name: str, column: Any) -> str:
    """Say why a column is not used; a few bad cells among numbers are named."""
    cells = [(i, c) for i, c in enumerate(column.to_pylist(), 1) if c is not None]
    bad = [(i, c) for i, c in cells if not _is_number(str(c))]
    if 0 < len(bad) <= len(cells) // 2:
        row, cell = bad[0]
        return (
            f"Left out column {name[:40]!r}: {len(bad)} of {len(cells)} cells are not "
            f"numbers, the first is {str(cell)[:40]!r} in row {row}."
        )
    return f"Left out column {name[:40]!r}: it does not hold numbers."


def _numbers(column: Any) -> np.ndarray | None:
    """Return a column as float64 with NaN for missing cells; None if not numeric."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    ):
        return None
    return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)


def _without_missing(
    source: str, table: Table, drop: bool, names: list[str] | None = None
) -> Table:
    if sp.issparse(table.X):
        return table  # the estimator names the place of a NaN
    missing = np.isnan(table.X)
    rows = missing.any(axis=1)
    count = int(rows.sum())
    if count == 0:
        return table
    column = int(missing.sum(axis=0).argmax())
    where = repr(names[column]) if names else f"number {column + 1}"
    if not drop:
        raise TableError(
            f"{source}: {count} of {len(rows)} rows have missing cells, most of them "
            f"in column {where}, the first in row {int(rows.argmax()) + 1}. Add "
            "--drop-missing to leave those rows out, or fill them in."
        )
    if count == len(rows):
        raise TableError(
            f"{source}: every row has a missing cell, most of them in column {where}; "
            "leave that column out of the file."
        )
    keep = ~rows
    return replace(
        table,
        X=table.X[keep],
        ids=table.ids[keep],
        labels=None if table.labels is None else table.labels[keep],
        notes=[*table.notes, f"Left out {count} rows with missing cells."],
    )


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
