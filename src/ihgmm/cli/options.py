"""Options that commands share, one by one and in groups, and how they are declared."""

import csv
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from typer.models import ArgumentInfo, OptionInfo

from ihgmm.cli.tables.files.memory import memory_for_data
from ihgmm.cli.tables.names import as_option
from ihgmm.cli.tables.reading import BUILT_IN
from ihgmm.cli.tables.request import Request
from ihgmm.datasets import list_datasets


def option(
    text: str, *names: str, metavar: str | None = None, panel: str | None = None
) -> OptionInfo:
    """Return an option with its help; by default it is called like its parameter."""
    return OptionInfo(
        default=...,  # stands at the parameter
        param_decls=names,
        help=text,
        metavar=metavar,
        rich_help_panel=panel,
    )


def reading_option(text: str, *names: str, metavar: str | None = None) -> OptionInfo:
    """Return an option that stands among those for reading the data in the help."""
    return option(text, *names, metavar=metavar, panel="Reading the data")


def output_option(text: str, *names: str, metavar: str | None = None) -> OptionInfo:
    """Return an option that stands among those for the output in the help."""
    return option(text, *names, metavar=metavar, panel="Output")


def argument(metavar: str, text: str) -> ArgumentInfo:
    """Return what is given without the name of an option."""
    return ArgumentInfo(default=..., metavar=metavar, help=text)


# A flag takes no value, whose type would be shown.
FLAG = ""
FETCHED = [name for name in list_datasets() if name not in BUILT_IN]

Data = Annotated[
    str,
    argument(
        "DATA",
        "A CSV, TSV, XLSX, XLS, ODS, Parquet, JSONL, H5AD, NPY or NPZ file with a row "
        "for each observation; - for standard input; or a built-in data set: "
        f"{', '.join(BUILT_IN)}, or one that is downloaded: {', '.join(FETCHED)}.",
    ),
]
ModelFile = Annotated[
    Path, argument("MODEL", "A model of ihgmm fit --save; loading it runs no code.")
]
LabelsFile = Annotated[
    Path | None,
    output_option(
        "Write a line for each row to this CSV or TSV file, or to - (standard output).",
        "-o",
        "--output",
    ),
]
RawCells = Annotated[
    bool,
    output_option(
        "Put no apostrophe before text that spreadsheets could run.",
        "--raw-cells",
        metavar=FLAG,
    ),
]
Seed = Annotated[int, option("Seed of the random numbers.", "--seed")]
ColumnsAs = Annotated[
    str,
    option(
        "What is done to columns first: given (nothing), roots (of entries, with "
        "columns weighed by their spread), counts or noise (the noise of counts, or "
        "any, is evened out). With auto, roots are taken where most entries are 0, or "
        "where clusters are clearer in them."
    ),
]


@dataclass(frozen=True)
class RowReading:
    """The options that say which rows to read, and what is known about them."""

    label_column: Annotated[
        str | None, reading_option("Column with known labels, to compare.")
    ] = None
    id_column: Annotated[
        str | None, reading_option("Column with names of rows, for the output.")
    ] = None
    batch_column: Annotated[
        str | None,
        reading_option(
            "Column with the batch of each row, whose effect is taken out. For IhSC; "
            "choose-k does not."
        ),
    ] = None
    text_column: Annotated[
        str | None,
        reading_option(
            "Column with texts, to cluster by their words; predict takes that of the "
            "fit."
        ),
    ] = None
    layer: Annotated[
        str | None, reading_option("Layer of an H5AD file, or raw; by default X.")
    ] = None
    sheet: Annotated[
        str | None, reading_option("Sheet of a workbook; by default the largest.")
    ] = None
    missing: Annotated[
        str,
        reading_option(
            "What to do with missing cells: fit (fill them in by a low-rank model), "
            "zero, drop (leave out their rows), error (stop), auto (fit if the method "
            "can, otherwise drop; predict does as the fit did, but leaves out no row)."
        ),
    ] = "auto"
    transpose: Annotated[
        bool,
        reading_option(
            "Cluster columns; names of features come first.",
            "--transpose",
            metavar=FLAG,
        ),
    ] = False
    memory: Annotated[
        float | None,
        reading_option(
            "How many GB of memory the data may take, by default a quarter of what is "
            "free; larger Parquet, H5AD and NPY files are read block by block."
        ),
    ] = None

    def request(self, data: str) -> Request:
        """Return what these options ask of the data."""
        return Request(
            source=data,
            memory=memory_for_data(self.memory),
            label_column=self.label_column,
            id_column=self.id_column,
            batch_column=self.batch_column,
            text_column=self.text_column,
            transpose=self.transpose,
            layer=self.layer,
            sheet=self.sheet,
        )

    def command(self, name: str, data: str, *, columns_as: str) -> str:
        """Return a command with the options that were given for reading the data."""
        words = ["ihgmm", name, data]
        for key, value in (vars(self) | {"columns_as": columns_as}).items():
            is_automatic = key in ("missing", "prepare", "columns_as")
            default = "auto" if is_automatic else None

            for item in value if isinstance(value, list) else [value]:
                if item in (default, None, False):
                    continue
                words.append(as_option(key))
                if item is not True:
                    words.append(str(item))
        return shlex.join(words)


@dataclass(frozen=True)
class Reading(RowReading):
    """The options that say how to read the data."""

    known_column: Annotated[
        str | None,
        reading_option(
            "Column with classes of some rows, which teach the clusters. For IhSC."
        ),
    ] = None
    columns: Annotated[
        list[str] | None,
        reading_option(
            "Columns to use, such as 'a,\"b,c\"'; by default all that measure "
            "something.",
            metavar="NAME,...",
        ),
    ] = None
    drop_columns: Annotated[
        list[str] | None,
        reading_option("Columns to leave out.", metavar="NAME,..."),
    ] = None
    use_categories: Annotated[
        bool,
        reading_option(
            "Use text with few values, as one column each.",
            "--use-categories",
            metavar=FLAG,
        ),
    ] = False
    prepare: Annotated[
        str,
        reading_option(
            "What to do with columns in different units: none, scale (divide each by "
            "its deviation; rows stay multiples of a pattern), standardize (also "
            "subtract all means), auto (scale if deviations differ, unless the model "
            "evens out their noise; standardize columns whose zero means nothing; "
            "weigh words by tf-idf)."
        ),
    ] = "auto"

    def request(self, data: str) -> Request:
        """Return what these options ask of the data."""
        return replace(
            super().request(data),
            known_column=self.known_column,
            columns=names_in_lists(self.columns),
            drop_columns=names_in_lists(self.drop_columns),
            use_categories=self.use_categories,
        )


def names_in_lists(lists: Sequence[str] | None) -> list[str]:
    """Return the names in lists such as ``a,b`` or ``"a,b",c``."""
    return [name for row in csv.reader(lists or []) for name in row]


# Options with another name than the parameter that they give.
OPTION_OF_PARAMETER = {"recipe": "paper", "columns": "columns-as"}

# By the names that they have in Python.
METHODS = ("IhSC", "IhGMM", "SphericalKMeans")


@dataclass(frozen=True)
class Fitting:
    """The options of the model; those that were not given are None or False."""

    n_clusters: Annotated[
        str | None,
        option(
            'Number of clusters, or "auto" to let the data decide. Required.',
            "-k",
            "--n-clusters",
        ),
    ] = None
    method: Annotated[
        str,
        option(
            f"How to cluster: {', '.join(METHODS)}. The options below are for IhSC "
            "unless they say otherwise."
        ),
    ] = "IhSC"
    columns_as: ColumnsAs = "auto"
    signed: Annotated[
        bool,
        option(
            "Take rows that point opposite ways for one kind.",
            "--signed",
            metavar=FLAG,
        ),
    ] = False
    outliers: Annotated[
        str | None,
        option(
            'Give rows that fit no cluster the label -1: "auto", or a share such as '
            '0.05. "cells": treat single cells that fit no row as missing. For IhSC '
            "and IhGMM."
        ),
    ] = None
    paper: Annotated[
        bool,
        option("Use the settings of the paper's Algorithm 1.", "--paper", metavar=FLAG),
    ] = False
    random_state: Seed = 0

    def model(self, missing: str) -> Any:
        """Return the model for data whose missing cells are so handled, if it can."""
        from ihgmm import estimators  # not for the help

        name = self._method_name()
        n_clusters = self._cluster_number(name)
        kind = getattr(estimators, name)
        model = kind(n_clusters, random_state=self.random_state)

        able = set(model.get_params())
        if name != "IhSC":  # whose recipe the options name
            able -= {"recipe"}
        for parameter, value in self._given(missing).items():
            if parameter not in able:
                option_name = OPTION_OF_PARAMETER.get(parameter, parameter)
                raise ValueError(
                    f"--{option_name}: {name} has no such option; leave it out."
                )
            model.set_params(**{parameter: value})
        return model

    def _method_name(self) -> str:
        """Return the name of the estimator; how it is written does not matter."""
        by_lower_case = {name.lower(): name for name in METHODS}
        name = by_lower_case.get(self.method.lower())

        if name is None:
            raise ValueError(
                f"--method {self.method}: give one of {', '.join(METHODS)}."
            )
        return name

    def _cluster_number(self, method: str) -> int | str:
        """Return the number of clusters, or "auto" if the method counts them."""
        number = as_number(self.n_clusters)
        if number == "auto":
            if method not in ("IhSC", "IhGMM"):
                raise ValueError(
                    f"-k auto: {method} does not count clusters; ihgmm choose-k does."
                )
            return "auto"

        if not isinstance(number, int):
            start = "" if number is None else f"-k {number}: "
            raise ValueError(
                f"{start}Give the number of clusters, such as -k 5, or -k auto."
            )

        return number

    def _given(self, missing: str) -> dict[str, Any]:
        """Return the parameters that options give, by their names in Python."""
        options = {
            "columns": None if self.columns_as == "auto" else self.columns_as,
            "signed": self.signed,
            "outliers": as_number(self.outliers),
            "recipe": "paper" if self.paper else None,
            "missing": "fit" if missing == "fit" else None,
        }

        return {
            name: value
            for name, value in options.items()
            if value is not None and value is not False
        }


def as_number(word: str | None) -> int | float | str | None:
    """Return the number that a word is, or the word."""
    if word is None:
        return None

    for kind in (int, float):
        with suppress(ValueError):
            return kind(word)
    return word
