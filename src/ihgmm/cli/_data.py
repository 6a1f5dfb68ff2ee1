"""What commands do with the options that tell how to read the data."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from ihgmm._tables import Table, TableError, read_table
from ihgmm.cli._screen import Screen

__all__ = ["Source", "parse_n_clusters"]


@dataclass(frozen=True)
class Source:
    """DATA, and the options that tell how to read it."""

    data: str
    label_column: str | None
    id_column: str | None
    columns: Sequence[str] | None
    drop_columns: Sequence[str] | None
    drop_missing: bool
    standardize: bool
    scale_columns: bool

    def __post_init__(self) -> None:
        """Refuse options that contradict each other, before any work is done."""
        if self.standardize and self.scale_columns:
            raise TableError(
                "--standardize and --scale-columns exclude each other: the first "
                "subtracts column means, the second leaves zero where it is. Give one "
                "of them."
            )

    def load(self, screen: Screen) -> tuple[Table, StandardScaler | None]:
        """Return the data with its columns scaled, and what scaled them."""
        with screen.working(f"reading {self.data}"):
            table = read_table(
                self.data,
                label_column=self.label_column,
                id_column=self.id_column,
                columns=_names(self.columns),
                drop_columns=_names(self.drop_columns),
                drop_missing=self.drop_missing,
            )
        return self.scaled(table)

    def scaled(self, table: Table) -> tuple[Table, StandardScaler | None]:
        """Return a table with its columns scaled, which a note then says."""
        if not (self.standardize or self.scale_columns):
            return table, None
        if self.scale_columns:
            note = "Divided every column by its deviation."
        elif sp.issparse(table.X):
            raise TableError(
                "--standardize subtracts column means, which fills sparse data up; "
                "take --scale-columns, or store the data as a dense array."
            )
        else:
            note = "Gave every column mean 0 and deviation 1."
        scaler = StandardScaler(with_mean=self.standardize)
        X = scaler.fit_transform(table.X)
        return replace(table, X=X, notes=[*table.notes, note]), scaler


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
