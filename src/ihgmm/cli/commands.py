"""All commands; they end with one line and an exit code where something is wrong."""

from __future__ import annotations

import warnings
from typing import Any

import typer
from numpy.linalg import LinAlgError

from ihgmm import __version__
from ihgmm.cli.bench import bench
from ihgmm.cli.choose_k import choose_k
from ihgmm.cli.compare import compare
from ihgmm.cli.datasets import datasets
from ihgmm.cli.fit import fit
from ihgmm.cli.options import Group, add_command
from ihgmm.cli.plan import plan
from ihgmm.cli.predict import predict
from ihgmm.cli.report import report
from ihgmm.cli.reproduce import reproduce
from ihgmm.cli.sample import sample
from ihgmm.cli.scales import scales
from ihgmm.cli.screen import print_message, print_warning


class Commands(Group):
    """All commands: errors and warnings are told in one line each."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
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
                # The package says so what is wrong with parameters and data. Anything
                # else, such as a TypeError, is a defect: its traceback is wanted.
                print_message("error", str(error))
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
for function in (
    fit,
    predict,
    choose_k,
    report,
    compare,
    sample,
    scales,
    plan,
    reproduce,
    bench,
):
    # What is called test_* in Python is taken for a test.
    name = "test-scales" if function is scales else function.__name__
    add_command(app, name.replace("_", "-"), function)
app.add_typer(datasets, name="datasets")


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
