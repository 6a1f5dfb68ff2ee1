"""All commands; they end with one line and an exit code where something is wrong."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand

from ihgmm import __version__
from ihgmm.cli.declaring import Group, add_command

# Each command: where its function is, and its line in the help of all. A command is
# imported when it is run, so that the help and the version need nothing but typer.
COMMANDS = {
    "fit": ("fit:fit", "Cluster the rows of DATA and describe the clusters."),
    "predict": ("predict:predict", "Label the rows of DATA with a saved model."),
    "choose-k": (
        "choose_k:choose_k",
        "Find the number of clusters in DATA, and show the evidence.",
    ),
    "report": (
        "report:report",
        "Cluster the rows of DATA and write a report about it.",
    ),
    "compare": (
        "compare:compare",
        "Compare two clusterings of the same rows: how far they agree, what moved "
        "where.",
    ),
    "reproduce": (
        "reproduce:reproduce",
        "Run the experiments of the paper, or its table of real data.",
    ),
}


def load_command(name: str) -> Any:
    """Import a command."""
    module, _, function = COMMANDS[name][0].partition(":")
    loaded = getattr(import_module(f"ihgmm.cli.{module}"), function)
    if not isinstance(loaded, typer.Typer):
        alone = typer.Typer(add_completion=False)
        add_command(alone, name, loaded)
        loaded = alone
    return typer.main.get_command(loaded)


class LateCommand(TyperCommand):
    """A command that is imported when it is run."""

    def make_context(
        self, info_name: Any, args: Any, parent: Any = None, **extra: Any
    ) -> Any:
        """Hand the arguments to the command itself."""
        return load_command(str(self.name)).make_context(
            info_name, args, parent=parent, **extra
        )


class Commands(Group):
    """All commands: errors and warnings are told in one line each."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, (_, summary) in COMMANDS.items():
            self.add_command(LateCommand(name, help=summary))

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        from ihgmm.cli.screen import print_message, print_warning
        from ihgmm.cli.spelling import in_shell

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
                print_message("error", f"{cause}{in_shell(str(error))}")
                raise typer.Exit(1) from None
            except ValueError as error:
                from numpy.linalg import LinAlgError

                # The package says so what is wrong with parameters and data. Anything
                # else, such as a TypeError, is a defect: its traceback is wanted.
                print_message("error", in_shell(str(error)))
                raise typer.Exit(1 if isinstance(error, LinAlgError) else 2) from None


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


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ihgmm {__version__}")
        raise typer.Exit


VERSION = typer.Option(
    False, "--version", callback=_show_version, is_eager=True, help="Show the version."
)


@app.callback()
def _root(version: bool = VERSION) -> None:
    pass
