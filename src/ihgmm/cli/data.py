"""The group of options that says how to read the data."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass

from ihgmm._parameters import check_choice
from ihgmm.cli.options import LAYER, SHEET, reading_option
from ihgmm.cli.screen import Screen
from ihgmm.cli.tables.missing import HANDLING
from ihgmm.cli.tables.preparation import PREPARATIONS, prepare
from ihgmm.cli.tables.reading import read_table
from ihgmm.cli.tables.table import Request, Table


@dataclass(frozen=True)
class RowReading:
    """The options that say which rows to read, and what is known about them."""

    label_column: str | None = reading_option(
        "Column with known labels (or array of an NPZ file), which are compared with "
        "the clusters."
    )
    id_column: str | None = reading_option("Column with names of rows, for the output.")
    layer: str | None = LAYER
    sheet: str | None = SHEET
    missing: str = reading_option(
        "Missing cells: auto (as in the fit: fill them in, or take them for 0; a model "
        "that was fitted to complete rows refuses them), fit (fill them in), zero (an "
        "empty cell means none), drop (leave out their rows), error (refuse them).",
        "auto",
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

    missing: str = reading_option(
        "Missing cells: auto (fill them in where the method can, and else leave out "
        "their rows), fit (fill them in by a low-rank model of the data), zero (an "
        "empty cell means none), drop (leave out their rows), error (refuse them).",
        "auto",
        words=HANDLING,
    )
    columns: list[str] | None = reading_option(
        "Columns to use; all that hold numbers by default. Names with a comma in "
        "double quotes: '\"a,b\",c'.",
        metavar="NAME,...",
    )
    drop_columns: list[str] | None = reading_option(
        "Columns to leave out.", metavar="NAME,..."
    )
    prepare: str = reading_option(
        "Columns in different units: auto (do nothing where deviations are alike; else "
        "divide each column by its deviation, and subtract the mean where zero means "
        "nothing), none, scale (divide all: zero stays zero, so that rows stay "
        "multiples of a pattern), standardize (subtract all means, too).",
        "auto",
        words=PREPARATIONS,
    )

    def __post_init__(self) -> None:
        """Refuse what is not known, before any work is done."""
        super().__post_init__()
        check_choice("--prepare", self.prepare, PREPARATIONS)

    def load(self, data: str, screen: Screen, *, fills: bool = True) -> Table:
        """Return the data with its columns prepared.

        Missing cells can be left to the model if it ``fills`` them in.
        """
        with screen.working(f"reading {data}"):
            table = read_table(
                self.request(data),
                missing=self.missing,
                memory=self.memory_bytes,
                fills=fills,
            )
            return prepare(table, self.prepare)

    def request(self, data: str) -> Request:
        """Return what is asked of the columns of the data."""
        columns, dropped = _names(self.columns), _names(self.drop_columns)
        beside = (self.label_column, self.id_column)
        return Request(data, *beside, columns, dropped, self.layer, self.sheet)


def _names(lists: Sequence[str] | None) -> list[str]:
    """Return the names in lists such as ``a,b`` or ``"a,b",c``."""
    return [name for row in csv.reader(lists or ()) for name in row]
