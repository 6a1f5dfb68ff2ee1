"""A data matrix with what came beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["Table", "TableError", "listed", "plain", "quoted", "without_missing"]

LONGEST = 40
"""Characters of a name that messages show."""


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
    names : list of str or None
        Names of the columns of X, where they have any.
    notes : list of str
        What was left out, for people to read.
    """

    X: Any
    ids: np.ndarray
    id_name: str = "row"
    labels: np.ndarray | None = None
    names: list[str] | None = None
    notes: list[str] = field(default_factory=list)


def plain(
    X: Any, labels: np.ndarray | None = None, names: list[str] | None = None
) -> Table:
    """Return a table whose rows are known by their number."""
    return Table(X, np.arange(1, X.shape[0] + 1), labels=labels, names=names)


def without_missing(source: str, table: Table, drop: bool) -> Table:
    """Refuse missing cells, or leave out the rows that have them."""
    if sp.issparse(table.X):
        return table  # the estimator names the place of a NaN
    missing = np.isnan(table.X)
    rows = missing.any(axis=1)
    count = int(rows.sum())
    if count == 0:
        return table
    cells = missing.sum(axis=0)
    column = int(cells.argmax())
    names = table.names
    where = quoted(names[column]) if names else f"number {column + 1}"
    most = "all of them" if cells[column] == cells.sum() else "most of them"
    other = "" if names is None else f", --drop-columns to leave out {where}"
    if not drop:
        raise TableError(
            f"{source}: {count:,} of {len(rows):,} rows have missing cells, {most} in "
            f"column {where}, the first in row {int(rows.argmax()) + 1}. Add "
            f"--drop-missing to leave those rows out{other}, or fill them in."
        )
    if count == len(rows):
        raise TableError(
            f"{source}: every row has a missing cell, {most} in column {where}; leave "
            f"that column out{'' if names is None else ' with --drop-columns'}."
        )
    keep = ~rows
    return replace(
        table,
        X=table.X[keep],
        ids=table.ids[keep],
        labels=None if table.labels is None else table.labels[keep],
        notes=[
            *table.notes,
            f"Left out {count:,} row{'s' * (count != 1)} with missing cells.",
        ],
    )


def quoted(name: object) -> str:
    """Return a name for a message: in quotes, short, nothing in it invisible."""
    text = str(name)
    return repr(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return the first few of many names, for a message."""
    shown = ", ".join(quoted(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
