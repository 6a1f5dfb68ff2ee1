"""A data matrix with what came beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = [
    "Note",
    "Table",
    "TableError",
    "listed",
    "plain",
    "quoted",
    "without_missing",
]

LONGEST = 40
"""Characters of a name that messages show."""

MOST_COLUMNS = 3
"""Columns with missing cells that messages name."""


class TableError(Exception):
    """Data that cannot be used as it is; the message says what to do."""


class Note(str):
    """What is said of data at a terminal, where it may name options.

    Attributes
    ----------
    in_words : str
        The same without options, for pages that are read elsewhere.
    """

    in_words: str

    def __new__(cls, text: str, in_words: str | None = None) -> Note:
        made = super().__new__(cls, text)
        made.in_words = text if in_words is None else in_words
        return made


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

    @property
    def notes_in_words(self) -> list[str]:
        """The notes without options of the command line."""
        return [n.in_words if isinstance(n, Note) else n for n in self.notes]


def plain(
    X: Any, labels: np.ndarray | None = None, names: list[str] | None = None
) -> Table:
    """Return a table whose rows are known by their number."""
    return Table(X, np.arange(1, X.shape[0] + 1), labels=labels, names=names)


def without_missing(
    source: str, table: Table, drop: bool, *, fixed: bool = False
) -> Table:
    """Refuse missing cells, or leave out the rows that have them.

    Where the columns are ``fixed``, none can be left out.
    """
    if sp.issparse(table.X):
        return table  # the estimator names the place of a NaN
    missing = np.isnan(table.X)
    rows = missing.any(axis=1)
    count = int(rows.sum())
    if count == 0:
        return table
    where, cure = _missing_words(table.names, missing.sum(axis=0))
    remedy = "" if fixed or not cure else f", {cure}"
    if not drop:
        raise TableError(
            f"{source}: {count:,} of {len(rows):,} rows have missing cells, {where}; "
            f"the first is in row {int(rows.argmax()) + 1}. Add --drop-missing to "
            f"leave those rows out{remedy}, or fill them in."
        )
    if count == len(rows):
        raise TableError(
            f"{source}: every row has a missing cell, {where}. Fill them in{remedy}."
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


def _missing_words(names: list[str] | None, cells: np.ndarray) -> tuple[str, str]:
    """Return where cells are missing, and the option that cures it, if one does."""
    total = int(cells.sum())
    worst = np.argsort(-cells, kind="stable")[:MOST_COLUMNS]
    worst = worst[cells[worst] > 0]
    if 2 * cells[worst[0]] > total:
        worst = worst[:1]

    def name(column: int) -> str:
        return quoted(names[column]) if names else f"number {column + 1}"

    if len(worst) == 1:
        share = "all" if cells[worst[0]] == total else "most"
        where = f"{share} of them in column {name(worst[0])}"
    else:
        counts = ", ".join(f"{name(j)} ({cells[j]:,})" for j in worst)
        where = f"the most of them in columns {counts}"
    # Columns without a name cannot be left out, nor can all of them.
    if names is None or cells[worst].sum() < total or len(worst) == len(cells):
        return where, ""
    return where, f"--drop-columns to leave out {', '.join(map(name, worst))}"


def quoted(name: object) -> str:
    """Return a name for a message: in quotes, short, nothing in it invisible."""
    text = str(name)
    return repr(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return the first few of many names, for a message."""
    shown = ", ".join(quoted(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
