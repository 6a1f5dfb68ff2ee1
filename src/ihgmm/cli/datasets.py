"""The commands ``ihgmm datasets list`` and ``ihgmm datasets fetch``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ihgmm._tables import TableError
from ihgmm.cli._group import Command, Group
from ihgmm.cli._options import AsJson, DataHome, Quiet, one_of
from ihgmm.cli._screen import Screen
from ihgmm.datasets import list_datasets, load_dataset
from ihgmm.datasets._cache import cache_folder
from ihgmm.datasets._catalog import CATALOG

__all__ = ["datasets"]

datasets = typer.Typer(
    cls=Group,
    invoke_without_command=True,
    rich_markup_mode="rich",
)


@datasets.callback()
def show(
    context: typer.Context,
    data_home: DataHome = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """List the paper's data sets and where they are kept, or download one.

    [bold]Examples[/]

      ihgmm datasets

      ihgmm datasets list --json

      ihgmm datasets fetch dna
    """
    if context.invoked_subcommand is not None:
        if data_home or as_json or quiet:
            raise TableError(f"Give options after {context.invoked_subcommand}.")
        return
    list_all(data_home, as_json, quiet)


@datasets.command("list", cls=Command)
def list_all(
    data_home: DataHome = None, as_json: AsJson = False, quiet: Quiet = False
) -> None:
    """List the paper's data sets and where they are kept.

    [bold]Examples[/]

      ihgmm datasets list

      ihgmm datasets list --json
    """
    screen = Screen(as_json=as_json, quiet=quiet)
    found = [_known(name, data_home) for name in list_datasets()]
    home = str(cache_folder(data_home))
    screen.document({"command": "datasets", "folder": home, "datasets": found})
    screen.grid(
        ("name", "rows", "features", "classes", "where"),
        [
            (
                entry["name"],
                *(f"{entry[key]:,}" for key in ("rows", "features", "classes")),
                Path(entry["where"]).name,
            )
            for entry in found
        ],
    )
    screen.say(f"folder: {home}")
    screen.say("to have one downloaded: ihgmm datasets fetch NAME")


@datasets.command(cls=Command, no_args_is_help=True)
def fetch(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            autocompletion=one_of(list_datasets()),
            help=f"One of {', '.join(list_datasets())}.",
        ),
    ],
    data_home: DataHome = None,
    timeout: Annotated[
        float,
        typer.Option(help="Seconds without a byte after which to give up."),
    ] = 30.0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Download a data set, unless it is there, and check what it holds.

    [bold]Examples[/]

      ihgmm datasets fetch dna

      ihgmm datasets fetch usps --data-home data --timeout 120
    """
    screen = Screen(as_json=as_json, quiet=quiet)
    start = time.perf_counter()
    loaded = load_dataset(name, data_home=data_home, timeout=timeout)
    seconds = time.perf_counter() - start
    known = _known(loaded.name, data_home)
    screen.document({"command": "datasets fetch", **known, "seconds": seconds})
    screen.say(loaded.DESCR.strip())
    screen.say(f"kept in {known['where']}")


def _known(name: str, data_home: Path | None) -> dict[str, Any]:
    """Return the figures of a data set, and where it is."""
    entry = CATALOG[name]
    if entry.home is None:
        n, p = load_dataset(name).data.shape
        return {
            "name": name,
            "rows": n,
            "features": p,
            "classes": 3,
            "where": "scikit-learn",
        }
    path = cache_folder(data_home) / entry.file
    return {
        "name": name,
        "rows": sum(entry.counts),
        "features": len(entry.feature_names),
        "classes": len(entry.target_names),
        "where": str(path) if path.exists() else "not downloaded",
    }
