"""The group of options that says how to read the data."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.preprocessing import StandardScaler

from ihgmm._checks import check_choice
from ihgmm.cli.options import reading_option
from ihgmm.cli.screen import Screen
from ihgmm.cli.tables.missing import HANDLING
from ihgmm.cli.tables.reading import read_table
from ihgmm.cli.tables.table import Note, Request, Table
from ihgmm.matrix import Scaled


@dataclass(frozen=True)
class RowReading:
    """The options that say which rows to read, and what is known about them."""

    label_column: str | None = reading_option(
        "Column with known labels (or array of an NPZ file): not used, but compared "
        "with."
    )
    id_column: str | None = reading_option("Column with names of rows, for the output.")
    missing: str = reading_option(
        "Missing cells: error (refuse them), drop (leave out their rows) or fit (fill "
        "them in by a low-rank model of the data).",
        "error",
        words=HANDLING,
    )

    memory: float | None = reading_option(
        "GB that the data may take in memory; CSV, TSV, Parquet, H5AD and NPY files "
        "that need more are read block by block. A quarter of what is free by default."
    )

    def __post_init__(self) -> None:
        """Refuse what is not known, before any work is done."""
        check_choice("--missing", self.missing, HANDLING)
        if self.memory is not None and not 0 <= self.memory < float("inf"):
            raise ValueError(
                f"--memory {self.memory:g}: give a number of GB from 0 on."
            )

    @property
    def memory_bytes(self) -> float | None:
        """The bytes that the data may take; None for the default."""
        return None if self.memory is None else self.memory * 1e9


@dataclass(frozen=True)
class Reading(RowReading):
    """The options that say how to read the data."""

    columns: list[str] | None = reading_option(
        "Columns to use; all that hold numbers by default. Names with a comma in "
        "double quotes: '\"a,b\",c'.",
        metavar="NAME,...",
    )
    drop_columns: list[str] | None = reading_option(
        "Columns to leave out.", metavar="NAME,..."
    )
    standardize: bool = reading_option(
        "Give every column mean 0 and deviation 1, for columns whose zero means "
        "nothing; rows are then no multiples of a pattern any more.",
        False,
        "--standardize",
    )
    scale_columns: bool = reading_option(
        "Divide every column by its deviation, for columns in different units; "
        "zero stays zero, so rows stay multiples of a pattern.",
        False,
        "--scale-columns",
    )

    def __post_init__(self) -> None:
        """Refuse options that contradict each other, before any work is done."""
        super().__post_init__()
        if self.standardize and self.scale_columns:
            raise ValueError(
                "--standardize and --scale-columns exclude each other: the first "
                "subtracts column means, the second leaves zero where it is. Give one "
                "of them."
            )

    def load(self, data: str, screen: Screen) -> Table:
        """Return the data with its columns scaled."""
        with screen.working(f"reading {data}"):
            table = read_table(
                self.request(data), missing=self.missing, memory=self.memory_bytes
            )
        return self.scale(table)

    def request(self, data: str) -> Request:
        """Return what is asked of the columns of the data."""
        columns, dropped = _names(self.columns), _names(self.drop_columns)
        return Request(data, self.label_column, self.id_column, columns, dropped)

    def scale(self, table: Table) -> Table:
        """Return a table with its columns scaled, and a note of it."""
        if not (self.standardize or self.scale_columns):
            return table
        if self.standardize and table.is_sparse:
            raise ValueError(
                "--standardize subtracts column means, which fills sparse data up; "
                "take --scale-columns, or store the data as a dense array."
            )
        done = "Divided every column by its deviation."
        if self.standardize:
            done = "Gave every column mean 0 and deviation 1."
        scaler = StandardScaler(with_mean=self.standardize)
        if not table.on_disk:
            scaler.fit(table.X)
        elif not self.standardize:  # which is refused below
            for rows in table.X.map(lambda block: block.array):
                scaler.partial_fit(rows)
        X, notes = scaled_columns(table, scaler), [*table.notes, Note(done)]
        return replace(table, X=X, scaler=scaler, notes=notes)


def scaled_columns(table: Table, scaler: StandardScaler) -> Any:
    """Return the data with its columns scaled as for the fit."""
    if not table.on_disk:
        return scaler.transform(table.X)
    if scaler.with_mean:
        raise ValueError(
            f"{table.source} is read block by block, and --standardize subtracts "
            "column means, which only data in memory take; fit with --scale-columns, "
            "or give more --memory."
        )
    return Scaled(table.X, columns=1 / scaler.scale_)


def _names(lists: Sequence[str] | None) -> list[str]:
    """Return the names in lists such as ``a,b`` or ``"a,b",c``."""
    return [name for row in csv.reader(lists or ()) for name in row]
