"""The command line."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

try:
    import typer
    from rich.markup import escape
except ImportError:
    sys.exit('The command line needs its extra: pip install "ihgmm[cli]"')

from rich.console import Console

from ihgmm import __version__
from ihgmm._tables import TableError
from ihgmm.cli.fit import fit
from ihgmm.cli.reproduce import reproduce

__all__ = ["app", "main"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Cluster observations that share a pattern but differ in scale.",
)
app.command(no_args_is_help=True)(fit)
app.command(no_args_is_help=True)(reproduce)


def main() -> None:
    """Run the command line; errors in the input end it with one line and status 2."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        console.print(f"[yellow]warning:[/] {escape(str(message))}")

    warnings.showwarning = show
    try:
        app()
    except (TableError, ValueError, TypeError, ImportError, OSError) as error:
        console.print(f"[red]error:[/] {escape(str(error))}")
        sys.exit(2)


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
