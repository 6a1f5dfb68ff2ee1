"""What commands do with the options that tell how to read the data."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from ihgmm._tables import Table, TableError, read_table

__all__ = ["column_scaler", "load", "parse_n_clusters", "scaled"]


def load(
    data: str,
    *,
    label_column: str | None = None,
    id_column: str | None = None,
    columns: Sequence[str] | None = None,
    drop_columns: Sequence[str] | None = None,
    drop_missing: bool = False,
    features: Sequence[str] | None = None,
) -> Table:
    """Read DATA as the shared options say, see :func:`ihgmm._tables.read_table`."""
    return read_table(
        data,
        label_column=label_column,
        id_column=id_column,
        columns=_names(columns),
        drop_columns=_names(drop_columns),
        drop_missing=drop_missing,
        features=features,
    )


def _names(given: Sequence[str] | None) -> list[str]:
    """Return the names in lists such as ``a,b`` or ``"a,b",c``."""
    return [name for row in csv.reader(given or ()) for name in row]


def parse_n_clusters(text: str) -> Any:
    """Return the number of clusters as it is written on the command line."""
    try:
        return int(text)
    except ValueError:
        if text.lower() == "auto":
            return "auto"
        raise TableError(f"-k {text}: give a whole number, or auto.") from None


def column_scaler(standardize: bool, scale_columns: bool) -> StandardScaler | None:
    """Return what is to be done to the columns; None if nothing."""
    if standardize and scale_columns:
        raise TableError(
            "--standardize and --scale-columns exclude each other: the first subtracts "
            "column means, the second leaves zero where it is. Give one of them."
        )
    if not (standardize or scale_columns):
        return None
    return StandardScaler(with_mean=standardize)


def scaled(table: Table, scaler: StandardScaler | None) -> Table:
    """Return the table with its columns scaled, which a note then says."""
    if scaler is None:
        return table
    if not scaler.with_mean:
        note = "Divided every column by its deviation."
    elif sp.issparse(table.X):
        raise TableError(
            "--standardize subtracts column means, which fills sparse data up; take "
            "--scale-columns, or store the data as a dense array."
        )
    else:
        note = "Gave every column mean 0 and deviation 1."
    X = scaler.fit_transform(table.X)
    return replace(table, X=X, notes=[*table.notes, note])
