"""Groups of options: how to read the data, and how to cluster them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ihgmm import IhSC
from ihgmm._checks import check_choice, check_outliers
from ihgmm.cli.options import SEED, choice, option, reading_option
from ihgmm.cli.screen import Screen
from ihgmm.cli.tables.missing import HANDLING
from ihgmm.cli.tables.preparation import PREPARATIONS, prepare
from ihgmm.cli.tables.reading import read_table
from ihgmm.cli.tables.table import Request, Table
from ihgmm.numerics.eigen import ORDERS
from ihgmm.numerics.gram import GRAMS
from ihgmm.numerics.whitening import NOISES

GRAM = choice("Similarity of rows", GRAMS, default=IhSC().gram)
WHITEN = option(
    "Make noise alike in rows and columns first. counts: its variance grows with the "
    "mean of an entry; learned: it is learnt from what a low-rank fit leaves; auto: "
    "the first where the data look like counts.",
    words=("auto", *NOISES),
)


@dataclass(frozen=True)
class RowReading:
    """The options that say which rows to read, and what is known about them."""

    label_column: str | None = reading_option(
        "Column with known labels (or array of an NPZ file): not used, but compared "
        "with."
    )
    id_column: str | None = reading_option("Column with names of rows, for the output.")
    missing: str = reading_option(
        "Missing cells: auto (fill them in where the method can, and else leave out "
        "their rows), fit (fill them in by a low-rank model of the data), drop (leave "
        "out their rows), error (refuse them).",
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
        return Request(data, self.label_column, self.id_column, columns, dropped)


@dataclass(frozen=True)
class Fitting:
    """The options of the model."""

    n_clusters: str = option(
        'Number of clusters, or "auto" to let the data say.',
        ...,
        "-k --n-clusters",
        words=["auto"],
    )
    gram: str = GRAM
    order: str = choice("Which eigenvalues lead", ORDERS)
    refine: bool = option(
        "Reassign rows to the centres that the other rows give.", False, "--refine"
    )
    whiten: str | None = WHITEN
    signed: bool = option(
        "Rows that point opposite ways are of one kind; scales have both signs.",
        False,
        "--signed",
    )
    outliers: str | None = option(
        'Give rows that fit no cluster the label -1: "auto", or a share such as 0.05.',
        None,
        "--outliers",
        words=["auto"],
    )
    paper: bool = option(
        "Take the settings of the paper's Algorithm 1.", False, "--paper"
    )
    random_state: int = SEED

    def model(self, missing: str) -> IhSC:
        """Return the model, to be fitted to data whose missing cells are so handled."""
        options: dict[str, Any] = asdict(self)
        options["missing"] = "fit" if missing == "fit" else "error"
        options["n_clusters"] = parse_n_clusters(self.n_clusters)
        options["outliers"] = parse_outliers(self.outliers)
        if not options.pop("paper"):
            return IhSC(**options)
        if self.gram == IhSC().gram:  # which need not be asked for
            del options["gram"]
        return IhSC.paper(**options)


def parse_n_clusters(text: str) -> Any:
    """Return the number of clusters as it is written on the command line."""
    try:
        return "auto" if text.lower() == "auto" else int(text)
    except ValueError:
        raise ValueError(f"-k {text}: give a whole number, or auto.") from None


def parse_outliers(text: str | None) -> Any:
    """Return the share of outliers as it is written on the command line."""
    try:
        value = text if text in (None, "auto") else float(text)
        check_outliers("outliers", value)
    except ValueError:
        raise ValueError(
            f"--outliers {text}: give auto, or a share above 0 and at most 0.5."
        ) from None
    return value


def _names(lists: Sequence[str] | None) -> list[str]:
    """Return the names in lists such as ``a,b`` or ``"a,b",c``."""
    return [name for row in csv.reader(lists or ()) for name in row]
