"""Options: how they are declared, and those that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, field, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer

from ihgmm.cli.tables.reading import BUILT_IN
from ihgmm.datasets import list_datasets

FETCHED = [name for name in list_datasets() if name not in BUILT_IN]
# Panels of the help.
READING, OUTPUT = "Reading the data", "Output"


def option(
    default: Any,
    text: str,
    names: str = "",
    *,
    panel: str | None = None,
    words: Iterable[str] = (),
    metavar: str | None = None,
) -> Any:
    """Declare an option of a command, or of a group of options, which is a dataclass.

    A default of ``...`` stands for none: it must be given. The names are such as
    "-o --output", by default that of the parameter. The shell offers the words, or
    files if there are none.
    """
    complete = one_of(words) if words else None
    more: dict[str, Any] = {"metavar": metavar, "autocompletion": complete}
    info = typer.Option(*names.split(), help=text, rich_help_panel=panel, **more)
    return _declare(default, info)


def argument(default: Any, text: str, metavar: str, words: Iterable[str] = ()) -> Any:
    """Declare an argument of a command, as :func:`option` does an option."""
    complete = one_of(words) if words else None
    info = typer.Argument(metavar=metavar, help=text, autocompletion=complete)
    return _declare(default, info)


def _declare(default: Any, info: Any) -> Any:
    default = MISSING if default is ... else default
    return field(default=default, metadata={"typer": info})


def one_of(words: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what the shell offers where one of these words is to be given."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def spell_out(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command as typer wants it, with all options of its groups.

    A command that has a parameter of a dataclass of options gets it made of the
    options that were given.
    """
    parameters = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, list[str]] = {}
    options: list[inspect.Parameter] = []

    def add(parameter: inspect.Parameter, declared: Field, kind: Any) -> None:
        default = declared.default
        default = parameter.empty if default is MISSING else default
        kind = Annotated[kind, declared.metadata["typer"]]
        options.append(parameter.replace(default=default, annotation=kind))

    for name, parameter in parameters.items():
        group = parameter.annotation
        if is_dataclass(group):
            hints = get_type_hints(group)
            groups[name] = [declared.name for declared in fields(group)]
            for declared in fields(group):
                member = parameter.replace(name=declared.name)
                add(member, declared, hints[declared.name])
        elif isinstance(parameter.default, Field):
            add(parameter, parameter.default, group)
        else:
            options.append(parameter)  # typer's context

    def run(**values: Any) -> None:
        for name, members in groups.items():
            group = parameters[name].annotation
            values[name] = group(**{member: values.pop(member) for member in members})
        command(**values)

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


DATA = argument(
    ...,
    "A CSV, TSV, Parquet, NPY, NPZ or MTX file, rows being observations; or a built-in "
    f"data set: {', '.join(BUILT_IN)}, or one of the paper's that are downloaded: "
    f"{', '.join(FETCHED)}.",
    "DATA",
    words=[*BUILT_IN, *FETCHED],
)
LABELS = option(
    None,
    "Write a line for each row to this CSV or TSV file; an old one is replaced.",
    "-o --output",
    panel=OUTPUT,
)
DATA_HOME = option(None, "Folder with the downloaded data sets.")


def seed_option() -> Any:
    """Declare the seed."""
    return option(0, "Seed of all that is random.", "--seed")
