"""What commands do with the options that tell how to read the data."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ihgmm._tables import Table, TableError, read_table

__all__ = ["load", "parse_n_clusters", "standardized", "with_scaler"]


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


def with_scaler(model: Any, table: Table, standardize: bool) -> Any:
    """Return the model, after a scaler of the columns where one is asked for."""
    if not standardize:
        return model
    _check_dense(table)
    return make_pipeline(StandardScaler(), model)


def standardized(table: Table, standardize: bool) -> Any:
    """Return X, its columns with mean 0 and deviation 1 where that is asked for."""
    if not standardize:
        return table.X
    _check_dense(table)
    return StandardScaler().fit_transform(table.X)


def _check_dense(table: Table) -> None:
    if sp.issparse(table.X):
        raise TableError(
            "--standardize subtracts column means, which fills sparse data up; leave "
            "it out, or store the data as a dense array."
        )
