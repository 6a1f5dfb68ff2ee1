"""How options are declared, and those that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, get_type_hints

import typer

from ihgmm.cli.tables.reading import BUILT_IN
from ihgmm.datasets import list_datasets


def spell_out(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has an option for each field of its groups of options.

    A group is a dataclass whose defaults are options. A command that has a parameter of
    that class gets it made of the options that were given.
    """
    groups: dict[str, Any] = {}
    options: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if not is_dataclass(group):
            options.append(parameter)
            continue
        groups[parameter.name] = group
        hints = get_type_hints(group)
        for field in fields(group):
            member = parameter.replace(name=field.name, default=field.default)
            options.append(member.replace(annotation=hints[field.name]))

    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{f.name: values.pop(f.name) for f in fields(group)})
        command(**values)

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def option(
    text: str,
    default: Any = None,
    names: str = "",
    *,
    panel: str | None = None,
    words: Iterable[str] = (),
    metavar: str | None = None,
) -> Any:
    """Return an option: its help, its default (... if it has none), "-o --output"."""
    more: dict[str, Any] = {"rich_help_panel": panel, "metavar": metavar}
    complete = _offer(words) if words else None  # without words the shell offers files
    return typer.Option(
        default, *names.split(), help=text, autocompletion=complete, **more
    )


def choice(text: str, words: tuple[str, ...]) -> Any:
    """Return an option that takes one of these words, by default the first."""
    return option(f"{text}: {', '.join(words)}.", words[0], words=words)


def argument(
    metavar: str, text: str, words: Iterable[str] = (), default: Any = ...
) -> Any:
    """Return what is given without the name of an option."""
    complete = _offer(words) if words else None
    return typer.Argument(default, metavar=metavar, help=text, autocompletion=complete)


def _offer(words: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what the shell offers where one of these words is to be given."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


# The panels of the help.
reading_option = partial(option, panel="Reading the data")
output_option = partial(option, panel="Output")

FETCHED = [name for name in list_datasets() if name not in BUILT_IN]
DATA = argument(
    "DATA",
    "A CSV, TSV, Parquet, NPY, NPZ or MTX file, rows being observations; or a built-in "
    f"data set: {', '.join(BUILT_IN)}, or one of the paper's that are downloaded: "
    f"{', '.join(FETCHED)}.",
    [*BUILT_IN, *FETCHED],
)
LABELS_FILE = output_option(
    "Write a line for each row to this CSV or TSV file; an old one is replaced.",
    names="-o --output",
)
SEED = option("Seed of all that is random.", 0, "--seed")
DATA_HOME = option("Folder with the downloaded data sets.")
