"""A data matrix with what came beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Note:
    """What people should know about the data."""

    text: str  # at a terminal, where it may name options
    on_page: str | None = None  # the same without options, for pages read elsewhere
    loud: bool = False  # whether it is also said where little is said

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Table:
    """A data matrix with what came beside it."""

    source: str  # the file, or the name of the data set
    X: Any  # an array or sparse matrix of shape (n_samples, n_features)
    ids: np.ndarray  # a name for each row; its number, from 1, unless given
    id_name: str = "row"
    labels: np.ndarray | None = None  # those known, one for each row
    names: list[str] | None = None  # of the columns of X
    notes: list[Note] = field(default_factory=list)  # on what was done to the data
    is_sparse: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        """What JSON documents say about the data."""
        n, p = self.X.shape
        sizes = {"n_samples": n, "n_features": p}
        return {"data": self.source, **sizes, "notes": self.notes}

    @property
    def heading(self) -> str:
        """What people are told about the data first."""
        n, p = self.X.shape
        return f"{self.source}: {n:,} rows, {p:,} features"


def numbered_table(source: str, X: Any, **beside: Any) -> Table:
    """Return a table whose rows are known by their number."""
    return Table(source, X, np.arange(1, X.shape[0] + 1), **beside)


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


def plural(number: int, thing: str) -> str:
    """Return a number of things in words."""
    return f"{number:,} {thing}{'s' * (number != 1)}"
