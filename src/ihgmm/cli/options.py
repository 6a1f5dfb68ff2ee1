"""Options that several commands share, each declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ihgmm.cli.tables import BUILT_IN
from ihgmm.datasets import list_datasets

FETCHED = [name for name in list_datasets() if name not in BUILT_IN]
# Panels of the help.
READING, OUTPUT = "Reading the data", "Output"


def spell_out(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has an option for each field of its groups of options.

    A group is a dataclass whose fields are annotated as options are. A command that
    has a parameter of that class gets it made of the options that were given.
    """
    groups: dict[str, list[str]] = {}
    options: list[inspect.Parameter] = []
    parameters = inspect.signature(command, eval_str=True).parameters
    for parameter in parameters.values():
        group = parameter.annotation
        if not is_dataclass(group):
            options.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
            continue
        hints = get_type_hints(group, include_extras=True)
        groups[parameter.name] = [field.name for field in fields(group)]
        for field in fields(group):
            default = parameter.empty if field.default is MISSING else field.default
            options.append(
                inspect.Parameter(
                    field.name,
                    parameter.KEYWORD_ONLY,
                    default=default,
                    annotation=hints[field.name],
                )
            )

    def run(**values: Any) -> None:
        for name, members in groups.items():
            group = parameters[name].annotation
            values[name] = group(**{member: values.pop(member) for member in members})
        command(**values)

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


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
DropMissing = Annotated[
    bool,
    typer.Option(
        "--drop-missing",
        rich_help_panel=READING,
        help="Leave out rows with missing cells.",
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
DataHome = Annotated[
    Path | None, typer.Option(help="Folder with the downloaded data sets.")
]
