"""Options that several commands share, each defined once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer

from ihgmm._tables import BUILT_IN
from ihgmm.datasets import list_datasets
from ihgmm.eigen import ORDERS
from ihgmm.gram import GRAMS

__all__ = [
    "FETCHED",
    "OUTPUT",
    "READING",
    "AsJson",
    "Bare",
    "Columns",
    "Data",
    "DataHome",
    "DropColumns",
    "DropMissing",
    "Gram",
    "IdColumn",
    "LabelColumn",
    "Labels",
    "NClusters",
    "Order",
    "Quiet",
    "Refine",
    "ScaleColumns",
    "Seed",
    "Standardize",
    "one_of",
]

FETCHED = [name for name in list_datasets() if name not in BUILT_IN]
READING, OUTPUT = "Reading the data", "Output"
"""Panels of the help."""


def one_of(words: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what the shell offers for an option that takes one of these words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        autocompletion=one_of([*BUILT_IN, *FETCHED]),
        help="A CSV, TSV, Parquet, NPY, NPZ or MTX file, rows being observations; "
        f"or a built-in data set: {', '.join(BUILT_IN)}, or one of the paper's "
        f"that are downloaded: {', '.join(FETCHED)}.",
    ),
]
NClusters = Annotated[
    str,
    typer.Option(
        "-k",
        "--n-clusters",
        autocompletion=one_of(["auto"]),
        help='Number of clusters, or "auto" to count the directions in the data.',
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        rich_help_panel=OUTPUT,
        help="Write a line for each row to this CSV or TSV file; an old one is "
        "replaced.",
    ),
]
Standardize = Annotated[
    bool,
    typer.Option(
        "--standardize",
        rich_help_panel=READING,
        help="Give every column mean 0 and deviation 1, for columns whose zero means "
        "nothing; rows are then no multiples of a pattern any more.",
    ),
]
ScaleColumns = Annotated[
    bool,
    typer.Option(
        "--scale-columns",
        rich_help_panel=READING,
        help="Divide every column by its deviation, for columns in different units; "
        "zero stays zero, so rows stay multiples of a pattern.",
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=READING,
        help="Column with known labels (or array of an NPZ file): not used, but "
        "compared with.",
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=READING, help="Column with names of rows, for the output."
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        rich_help_panel=READING,
        metavar="NAME,...",
        help="Columns to use; all that hold numbers by default. Names with a comma "
        "in double quotes: '\"a,b\",c'.",
    ),
]
DropColumns = Annotated[
    list[str] | None,
    typer.Option(
        rich_help_panel=READING, metavar="NAME,...", help="Columns to leave out."
    ),
]
DropMissing = Annotated[
    bool,
    typer.Option(
        "--drop-missing",
        rich_help_panel=READING,
        help="Leave out rows with missing cells.",
    ),
]
Gram = Annotated[
    str,
    typer.Option(
        autocompletion=one_of(GRAMS), help=f"Similarity of rows: {', '.join(GRAMS)}."
    ),
]
Order = Annotated[
    str,
    typer.Option(
        autocompletion=one_of(ORDERS),
        help=f"Which eigenvalues lead: {', '.join(ORDERS)}.",
    ),
]
Refine = Annotated[
    bool,
    typer.Option(
        "--refine", help="Reassign rows to the centres that the other rows give."
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of all that is random.")]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        rich_help_panel=OUTPUT,
        help="Print one JSON document and nothing else.",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "-q",
        "--quiet",
        rich_help_panel=OUTPUT,
        help="Print nothing but warnings and errors.",
    ),
]
Bare = Annotated[
    bool,
    typer.Option(
        "-q",
        "--quiet",
        rich_help_panel=OUTPUT,
        help="Print nothing but the bare answer, warnings and errors.",
    ),
]
DataHome = Annotated[
    Path | None, typer.Option(help="Folder with the downloaded data sets.")
]
