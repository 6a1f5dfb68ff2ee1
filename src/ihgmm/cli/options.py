"""Options that several commands share, each declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ihgmm.cli.tables.reading import BUILT_IN
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
            options.append(parameter)
            continue
        hints = get_type_hints(group, include_extras=True)
        groups[parameter.name] = [field.name for field in fields(group)]
        for field in fields(group):
            default = parameter.empty if field.default is MISSING else field.default
            hint = hints[field.name]
            options.append(
                parameter.replace(name=field.name, default=default, annotation=hint)
            )

    def run(**values: Any) -> None:
        for name, members in groups.items():
            group = parameters[name].annotation
            values[name] = group(**{member: values.pop(member) for member in members})
        command(**values)

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def option(
    text: str,
    names: str = "",
    *,
    panel: str | None = None,
    words: Iterable[str] = (),
    metavar: str | None = None,
) -> Any:
    """Return an option: its help, its names ("-o --output"), the words it takes."""
    return typer.Option(
        *names.split(),
        help=text,
        rich_help_panel=panel,
        metavar=metavar,
        # Without words the shell offers files.
        autocompletion=one_of(words) if words else None,
    )


def one_of(words: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what the shell offers where one of these words is to be given."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


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
    option(
        "Write a line for each row to this CSV or TSV file; an old one is replaced.",
        "-o --output",
        panel=OUTPUT,
    ),
]
LabelColumn = Annotated[
    str | None,
    option(
        "Column with known labels (or array of an NPZ file): not used, but compared "
        "with.",
        panel=READING,
    ),
]
IdColumn = Annotated[
    str | None, option("Column with names of rows, for the output.", panel=READING)
]
DropMissing = Annotated[
    bool, option("Leave out rows with missing cells.", "--drop-missing", panel=READING)
]
Seed = Annotated[int, option("Seed of all that is random.", "--seed")]
AsJson = Annotated[
    bool, option("Print one JSON document and nothing else.", "--json", panel=OUTPUT)
]
Quiet = Annotated[
    bool, option("Print nothing but warnings and errors.", "-q --quiet", panel=OUTPUT)
]
DataHome = Annotated[Path | None, option("Folder with the downloaded data sets.")]
