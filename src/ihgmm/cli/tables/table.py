"""A data matrix with what came beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Note:
    """What people should know about the data.

    Attributes
    ----------
    text : str
        The note at a terminal, where it may name options.
    on_page : str or None
        The same without options, for pages that are read elsewhere.
    loud : bool
        Whether it is also said where little is said.
    """

    text: str
    on_page: str | None = None
    loud: bool = False

    def __str__(self) -> str:
        return self.text


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
    notes : list of Note
        What was done to the data and what was left out.
    is_sparse : bool
        Whether X is a sparse matrix, as its reader knows.
    """

    X: Any
    ids: np.ndarray
    id_name: str = "row"
    labels: np.ndarray | None = None
    names: list[str] | None = None
    notes: list[Note] = field(default_factory=list)
    is_sparse: bool = False


def numbered_table(X: Any, **beside: Any) -> Table:
    """Return a table whose rows are known by their number."""
    return Table(X, np.arange(1, X.shape[0] + 1), **beside)


def shorten(text: str, longest: int = 40) -> str:
    """Return a text that fits into a cell or a message."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def quote(name: object) -> str:
    """Return a name for a message: in quotes, short, nothing in it invisible."""
    return repr(shorten(str(name)))


def quote_all(names: Sequence[str], most: int = 8) -> str:
    """Return the first few of many names, for a message."""
    shown = ", ".join(quote(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
