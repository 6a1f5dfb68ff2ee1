"""How options are declared, and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import typer

from ihgmm.cli.tables.reading import BUILT_IN
from ihgmm.datasets import list_datasets


def option(
    text: str,
    default: Any = None,
    names: str = "",
    *,
    words: Iterable[str] = (),
    **more: Any,
) -> Any:
    """Return an option: its help, its default (... if it has none), "-o --output"."""
    complete = _offer(words)
    return typer.Option(
        default, *names.split(), help=text, autocompletion=complete, **more
    )


def argument(
    metavar: str, text: str, words: Iterable[str] = (), default: Any = ...
) -> Any:
    """Return what is given without the name of an option."""
    complete = _offer(words)
    return typer.Argument(default, metavar=metavar, help=text, autocompletion=complete)


def _offer(words: Iterable[str]) -> Callable[[str], list[str]] | None:
    """Return what the shell offers: these words, or files if there are none."""
    if not words:
        return None
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


# The panels of the help.
reading_option = partial(option, rich_help_panel="Reading the data")
output_option = partial(option, rich_help_panel="Output")

LAYER = reading_option(
    "Layer of an H5AD file to use, such as counts; raw for its raw data, and X, which "
    "is the default."
)
SHEET = reading_option(
    "Sheet of an XLSX file to use; by default the first that has two columns of "
    "numbers."
)
# Names of options that commands declare in words of their own.
N_CLUSTERS = "-k --n-clusters"
FETCHED = [name for name in list_datasets() if name not in BUILT_IN]
DATA_TEXT = (
    "A CSV, TSV, XLSX, Parquet, JSONL, H5AD, NPY, NPZ or MTX file with a row for "
    "each observation; - for standard input; or a "
    f"built-in data set: {', '.join(BUILT_IN)}, or one of the paper's that are "
    f"downloaded: {', '.join(FETCHED)}."
)
DATA = argument("DATA", DATA_TEXT, [*BUILT_IN, *FETCHED])
LABELS_FILE = output_option(
    "Write a line for each row to this CSV, TSV or XLSX file; an old one is replaced. "
    "- is standard output.",
    names="-o --output",
)
NAMES_FILE = output_option(
    "Names of clusters: a table with the columns cluster and name, such as the labels "
    "that a report lets you save."
)
SEED = option("Seed of the random numbers.", 0, "--seed")
DATA_HOME = option("Folder with the downloaded data sets.")
