"""The command line."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Annotated

try:
    import rich  # noqa: F401
    import typer
except ImportError:
    sys.exit("The command line needs typer and rich: pip install typer rich pyarrow")

from ihgmm import __version__
from ihgmm.cli._group import EXIT_CODES, Command, Commands
from ihgmm.cli.bench import bench
from ihgmm.cli.choose_k import choose_k
from ihgmm.cli.datasets import datasets
from ihgmm.cli.fit import fit
from ihgmm.cli.plan import plan
from ihgmm.cli.predict import predict
from ihgmm.cli.report import report
from ihgmm.cli.reproduce import reproduce
from ihgmm.cli.sample import sample
from ihgmm.cli.scales import scale_test

__all__ = ["app", "main"]

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Cluster observations that share a pattern but differ in scale.",
    epilog=EXIT_CODES,
)
COMMANDS: dict[str, Callable[..., None]] = {
    "fit": fit,
    "predict": predict,
    "choose-k": choose_k,
    "report": report,
    "sample": sample,
    "test-scales": scale_test,
    "plan": plan,
    "reproduce": reproduce,
}


def _flowing(command: Callable[..., None]) -> str:
    """Return what a command says of itself, with lines to break at any width."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(text.replace("\n", " ") for text in paragraphs)


for name, command in COMMANDS.items():
    app.command(name, cls=Command, help=_flowing(command), no_args_is_help=True)(
        command
    )
app.command("bench", cls=Command, help=_flowing(bench))(bench)  # runs without arguments
app.add_typer(datasets, name="datasets")


def main() -> None:
    """Run the command line."""
    app()


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ihgmm {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    pass
