"""The commands: loaded when they are run, and ended with a line and an exit code."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from ihgmm.cli.messages import print_message, print_warning

STYLE: dict[str, Any] = {"add_completion": False, "rich_markup_mode": "rich"}

# What each does: so --help need not load them. Module and function have their names.
COMMANDS = {
    "fit": "Cluster the rows of DATA with IhSC.",
    "predict": "Place the rows of DATA in the clusters of a saved model.",
    "choose-k": "Find the number of clusters in DATA, and show on what evidence.",
    "report": "Cluster the rows of DATA with IhSC and write a page of HTML about it.",
    "sample": "Write a sample of the model, with its labels and parameters.",
    "test-scales": "Test whether the rows of a cluster differ in scale at all.",
    "plan": "Say how often a fit will read the data, and what memory it will take.",
    "reproduce": "Run the experiments of the paper, or its table of real data.",
    "bench": "Compare IhSC with k-means on your data or on a sample: time and error.",
    "datasets": "List the paper's data sets and where they are kept, or download one.",
}


class _PlainFlags:
    """Help in which an option that takes no value shows no type."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, the one for help too."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(_PlainFlags, TyperCommand):
    """A command."""


class Group(_PlainFlags, TyperGroup):
    """A command with others below it."""


class Commands(Group):
    """All commands: each is loaded when it is run."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: Command(name, help=COMMANDS[name]) for name in COMMANDS}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command to run."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, _load(name) if name and listed else listed, rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; errors and warnings are told in one line each."""
        with warnings.catch_warnings():
            warnings.showwarning = print_warning
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                print_message("stopped", "no file was left half written.", "yellow")
                raise typer.Exit(130) from None
            except BrokenPipeError:
                raise  # the reader has gone: nobody to tell
            except (MemoryError, ArithmeticError, ImportError, OSError) as error:
                cause = "not enough memory: " * isinstance(error, MemoryError)
                print_message("error", f"{cause}{error}")
                raise typer.Exit(1) from None
            except ValueError as error:
                from numpy.linalg import LinAlgError

                # The package says so what is wrong with parameters and data. Anything
                # else, such as a TypeError, is a defect: its traceback is wanted.
                print_message("error", str(error))
                raise typer.Exit(1 if isinstance(error, LinAlgError) else 2) from None


def _load(name: str) -> Any:
    """Import a command and return it."""
    # A module test_*.py would be taken for tests.
    function = name.removeprefix("test-").replace("-", "_")
    command = getattr(import_module(f"ihgmm.cli.{function}"), function)
    if not isinstance(command, typer.Typer):
        single = typer.Typer(**STYLE)
        add_command(single, name, command)
        command = single
    return typer.main.get_command(command)


def add_command(parent: typer.Typer, name: str, function: Callable[..., None]) -> None:
    """Make a function a command; its docstring is the help."""
    from ihgmm.cli.options import spell_out

    # Lines of a paragraph are joined: they break where the terminal ends.
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    text = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    no_args_is_help = name not in ("bench", "list")  # which run without arguments
    add = parent.command(name, cls=Command, help=text, no_args_is_help=no_args_is_help)
    add(spell_out(function))


def _show_version(wanted: bool) -> None:
    if wanted:
        from ihgmm import __version__

        typer.echo(f"ihgmm {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Cluster observations that share a pattern but differ in scale.",
    epilog="Exit codes: 0 success; 1 the work could not be done: a download, a disk, "
    "memory, a package that is not installed; 2 wrong use, or data that cannot be "
    "used; 130 interrupted.",
)
VERSION = typer.Option(
    False, "--version", callback=_show_version, is_eager=True, help="Show the version."
)


@app.callback()
def _root(version: bool = VERSION) -> None:
    pass
