"""A data matrix with what came beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = [
    "Note",
    "Table",
    "TableError",
    "listed",
    "plain",
    "quoted",
]

LONGEST = 40
"""Characters of a name that messages show."""


class TableError(Exception):
    """Data that cannot be used as it is; the message says what to do."""


class Note(str):
    """What is said of data at a terminal, where it may name options.

    Attributes
    ----------
    in_words : str
        The same without options, for pages that are read elsewhere.
    loud : bool
        Whether it is to be said where little is said, too.
    """

    in_words: str
    loud: bool

    def __new__(
        cls, text: str, in_words: str | None = None, *, loud: bool = False
    ) -> Note:
        made = super().__new__(cls, text)
        made.in_words = text if in_words is None else in_words
        made.loud = loud
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


def quoted(name: object) -> str:
    """Return a name for a message: in quotes, short, nothing in it invisible."""
    text = str(name)
    return repr(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return the first few of many names, for a message."""
    shown = ", ".join(quoted(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
