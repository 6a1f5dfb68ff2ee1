"""Options that commands share, one by one and in groups, and how they are declared."""

import csv
import shlex
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import typer

from ihgmm.cli.tables.reading import BUILT_IN, read_table
from ihgmm.cli.tables.table import Table, as_option
from ihgmm.datasets import list_datasets


def option(text: str, default: Any = None, names: str = "", **more: Any) -> Any:
    """Return an option: its help, its default (... if it has none), "-o --output"."""
    if default is False:  # a flag: it takes no value, whose type would be shown
        more["metavar"] = ""
    return typer.Option(default, *names.split(), help=text, **more)


def argument(metavar: str, text: str) -> Any:
    """Return what is given without the name of an option."""
    return typer.Argument(..., metavar=metavar, help=text)


# The panels of the help.
reading_option = partial(option, rich_help_panel="Reading the data")
names_option = partial(reading_option, metavar="NAME,...")
output_option = partial(option, rich_help_panel="Output")

FETCHED = [name for name in list_datasets() if name not in BUILT_IN]
DATA = argument(
    "DATA",
    "A CSV, TSV, XLSX, XLS, ODS, Parquet, JSONL, H5AD, NPY or NPZ file with a row for "
    "each observation; - for standard input; or a built-in data set: "
    f"{', '.join(BUILT_IN)}, or one that is downloaded: {', '.join(FETCHED)}.",
)
MODEL = argument("MODEL", "A model of ihgmm fit --save; loading it runs no code.")
LABELS_FILE = output_option(
    "Write a line for each row to this CSV or TSV file, or to - (standard output).",
    names="-o --output",
)
RAW_CELLS = output_option(
    "Put no apostrophe before text that spreadsheets could run.", False, "--raw-cells"
)
SEED = option("Seed of the random numbers.", 0, "--seed")
WHITEN = option(
    "Even out the noise of rows and columns first. counts: for counts; learned: by "
    "what a low-rank fit leaves; auto: the one that the data ask for, or none."
)


@dataclass(frozen=True)
class RowReading:
    """The options that say which rows to read, and what is known about them."""

    label_column: str | None = reading_option("Column with known labels, to compare.")
    id_column: str | None = reading_option("Column with names of rows, for the output.")
    batch_column: str | None = reading_option(
        "Column with the batch of each row, whose effect is taken out. For IhSC; "
        "choose-k does not."
    )
    text_column: str | None = reading_option(
        "Column with texts, to cluster by their words; predict takes that of the fit."
    )
    layer: str | None = reading_option("Layer of an H5AD file, or raw; by default X.")
    sheet: str | None = reading_option("Sheet of a workbook; by default the largest.")
    missing: str = reading_option(
        "What to do with missing cells: fit (fill them in by a low-rank model), zero, "
        "drop (leave out their rows), error (stop), auto (fit if the method can, "
        "otherwise drop; predict does as the fit did, but leaves out no row).",
        "auto",
    )
    transpose: bool = reading_option(
        "Cluster columns; names of features come first.", False, "--transpose"
    )
    memory: float | None = reading_option(
        "How many GB of memory the data may take, by default a quarter of what is "
        "free; larger Parquet, H5AD and NPY files are read block by block."
    )

    def load(self, data: str, **more: Any) -> Table:
        """Return the data; further options are those of :func:`read_table`."""
        given = {name: v for name, v in vars(self).items() if v is not None}
        for name in {"columns", "drop_columns"} & given.keys():
            # Names in lists such as ``a,b`` or ``"a,b",c``.
            given[name] = [column for row in csv.reader(given[name]) for column in row]
        return read_table(data, **given | more)

    def command(self, name: str, data: str, **more: str | None) -> str:
        """Return a command with the options that were given for reading the data."""
        words = ["ihgmm", name, data]
        for key, value in (vars(self) | more).items():
            usual = "auto" if key in ("missing", "prepare") else None
            for one in value if isinstance(value, list) else [value]:
                if one not in (usual, None, False):
                    words += [as_option(key), *[str(one)] * (one is not True)]
        return shlex.join(words)


@dataclass(frozen=True)
class Reading(RowReading):
    """The options that say how to read the data."""

    known_column: str | None = reading_option(
        "Column with classes of some rows, which teach the clusters. For IhSC."
    )
    columns: list[str] | None = names_option(
        "Columns to use, such as 'a,\"b,c\"'; by default all that measure something."
    )
    drop_columns: list[str] | None = names_option("Columns to leave out.")
    use_categories: bool = reading_option(
        "Use text with few values, as one column each.", False, "--use-categories"
    )
    prepare: str = reading_option(
        "What to do with columns in different units: none, scale (divide each by its "
        "deviation; rows stay multiples of a pattern), standardize (also subtract all "
        "means), auto (scale if deviations differ, unless --whiten evens out their "
        "noise; standardize columns whose zero means nothing; weigh words by tf-idf).",
        "auto",
    )


# By the names that they have in Python.
METHODS = ("IhSC", "IhGMM", "SphericalKMeans")


@dataclass(frozen=True)
class Fitting:
    """The options of the model; those that were not given are None or False."""

    n_clusters: str | None = option(
        'Number of clusters, or "auto" to let the data decide. Required.',
        names="-k --n-clusters",
    )
    method: str = option(
        f"How to cluster: {', '.join(METHODS)}. The options below are for IhSC unless "
        "they say otherwise.",
        "IhSC",
    )
    whiten: str | None = WHITEN
    signed: bool = option(
        "Take rows that point opposite ways for one kind.", False, "--signed"
    )
    outliers: str | None = option(
        'Give rows that fit no cluster the label -1: "auto", or a share such as 0.05. '
        '"cells": treat single cells that fit no row as missing. For IhSC and IhGMM.'
    )
    paper: bool = option(
        "Use the settings of the paper's Algorithm 1.", False, "--paper"
    )
    random_state: int = SEED

    def model(self, missing: str) -> Any:
        """Return the model for data whose missing cells are so handled, if it can."""
        from ihgmm import estimators  # not for the help

        name = {known.lower(): known for known in METHODS}.get(self.method.lower())
        k, wrong = _number(self.n_clusters), ""
        if name is None:
            wrong = f"--method {self.method}: give one of {', '.join(METHODS)}."
        elif k == "auto" and name not in ("IhSC", "IhGMM"):
            wrong = f"-k auto: {name} does not count clusters; ihgmm choose-k does."
        elif not (k == "auto" or isinstance(k, int)):
            wrong = "" if k is None else f"-k {k}: "
            wrong += "Give the number of clusters, such as -k 5, or -k auto."
        if wrong:
            raise ValueError(wrong)
        kind = getattr(estimators, str(name))
        given = {"whiten": self.whiten, "signed": self.signed}
        given |= {"outliers": _number(self.outliers), "recipe": self.paper and "paper"}
        given |= {"missing": missing == "fit" and "fit"}
        given = {key: v for key, v in given.items() if not (v is None or v is False)}
        able = {*kind().get_params()} - ({"recipe"} if name != "IhSC" else set())
        for key in given.keys() - able:
            asked = "paper" if key == "recipe" else key
            raise ValueError(f"--{asked}: {name} has no such option; leave it out.")
        return kind(k, random_state=self.random_state, **given)


def _number(word: str | None) -> Any:
    """Return the number that a word is, or the word."""
    for kind in (int, float):
        with suppress(ValueError, TypeError):
            return kind(word)  # type: ignore[arg-type]
    return word
