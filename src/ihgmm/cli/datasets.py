"""The commands ``ihgmm datasets list`` and ``ihgmm datasets fetch``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import typer

from ihgmm.cli.declaring import Group, add_command, spell_out
from ihgmm.cli.options import DATA_HOME, argument, option
from ihgmm.cli.screen import Screen
from ihgmm.datasets import list_datasets, load_dataset
from ihgmm.datasets._cache import cache_folder
from ihgmm.datasets._catalog import CATALOG


def show(
    *, context: typer.Context, data_home: Path | None = DATA_HOME, screen: Screen
) -> None:
    """List the paper's data sets and where they are kept, or download one.

    [bold]Examples[/]

      ihgmm datasets

      ihgmm datasets list --json

      ihgmm datasets fetch dna
    """
    if context.invoked_subcommand is None:
        list_all(data_home=data_home, screen=screen)
    elif data_home or screen.silent:
        raise ValueError(f"Give options after {context.invoked_subcommand}.")


def list_all(*, data_home: Path | None = DATA_HOME, screen: Screen) -> None:
    """List the paper's data sets and where they are kept.

    [bold]Examples[/]

      ihgmm datasets list

      ihgmm datasets list --json
    """
    entries = [_describe(name, data_home) for name in list_datasets()]
    home = str(cache_folder(data_home))
    screen.document("datasets", {"folder": home, "datasets": entries})
    screen.table(
        {"name": "", "rows": ",", "features": ",", "classes": ",", "where": ""},
        [(entry | {"where": Path(entry["where"]).name}).values() for entry in entries],
    )
    screen.say(f"folder: {home}")
    screen.say("to have one downloaded: ihgmm datasets fetch NAME")


def fetch(
    *,
    name: str = argument(
        "NAME", f"One of {', '.join(list_datasets())}.", list_datasets()
    ),
    data_home: Path | None = DATA_HOME,
    timeout: float = option("Seconds without a byte after which to give up.", 30.0),
    screen: Screen,
) -> None:
    """Download a data set, unless it is there, and check what it holds.

    [bold]Examples[/]

      ihgmm datasets fetch dna

      ihgmm datasets fetch usps --data-home data --timeout 120
    """
    start = time.perf_counter()
    loaded = load_dataset(name, data_home=data_home, timeout=timeout)
    seconds = time.perf_counter() - start
    entry = _describe(loaded.name, data_home)
    screen.document("datasets fetch", entry, seconds=seconds)
    screen.say(loaded.DESCR.strip())
    screen.say(f"kept in {entry['where']}")


def _describe(name: str, data_home: Path | None) -> dict[str, Any]:
    """Return the figures of a data set, and where it is."""
    entry = CATALOG[name]
    if entry.home is None:
        where, p = "scikit-learn", load_dataset(name).data.shape[1]
    else:
        path, p = cache_folder(data_home) / entry.file, len(entry.feature_names)
        where = str(path) if path.exists() else "not downloaded"
    n, classes = sum(entry.counts), len(entry.counts)
    return {"name": name, "rows": n, "features": p, "classes": classes, "where": where}


datasets = typer.Typer(cls=Group, invoke_without_command=True, add_completion=False)
datasets.callback(help=show.__doc__)(spell_out(show))
add_command(datasets, "list", list_all)
add_command(datasets, "fetch", fetch)
