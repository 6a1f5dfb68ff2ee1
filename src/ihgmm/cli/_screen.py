"""What a command says: to people on a screen, or to machines as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as Grid
from rich.text import Text

from ihgmm._tables import Note

__all__ = ["Screen", "clean", "tell"]

LONGEST = 40
"""Characters of a cell in a table."""

JOINERS = "\u200c\u200d"
"""Invisible, but harmless and needed to write Persian, and in emoji."""


def clean(text: str) -> str:
    """Return text that cannot steer a terminal.

    Control characters, escape sequences, overrides of the direction of writing and
    other invisible characters are spelled out.
    """
    return "".join(
        c
        if c.isprintable() or c in JOINERS or c == "\n"
        else c.encode("unicode_escape", "backslashreplace").decode()
        for c in text
    )


def tell(kind: str, message: str, style: str = "red") -> None:
    """Print one line to standard error."""
    line = Text.assemble((f"{kind}:", style), " ", clean(message))
    Console(stderr=True).print(line, soft_wrap=True, highlight=False)


class Screen:
    """Where a command prints.

    Sentences and tables go to standard output, notes to standard error, unless
    ``--json`` or ``--quiet`` is given; progress goes to standard error, and only to a
    terminal.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.silent = as_json or quiet
        self._out = Console(highlight=False)
        self._quiet = quiet

    def say(self, text: str, style: str = "") -> None:
        """Print a sentence."""
        if not self.silent:
            line = Text(clean(text), style=style)
            self._out.print(line, soft_wrap=not self._out.is_terminal)

    def note(self, text: str) -> None:
        """Print a sentence about a file that was written, beside what was found."""
        if not self.silent:
            tell("note", text, "yellow")

    def notes(self, notes: Iterable[str]) -> None:
        """Print what was done to the data; what must not be missed as a warning."""
        for note in notes:
            if isinstance(note, Note) and note.loud:
                tell("warning", note, "yellow")
            else:
                self.say(note, "yellow")

    def caution(self, text: str) -> None:
        """Print a sentence that is a warning where no others are printed."""
        if self.silent:
            tell("warning", text, "yellow")
        else:
            self.say(text, "yellow")

    def answer(self, text: str) -> None:
        """Print the answer alone, where ``--quiet`` asks for nothing else."""
        if self._quiet and not self.as_json:
            typer.echo(clean(text))

    def grid(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table; the first column is on the left, the others on the right."""
        if self.silent:
            return
        grid = Grid(box=None, pad_edge=False, header_style="bold")
        for i, name in enumerate(names):
            grid.add_column(name, justify="right" if i else "left", no_wrap=True)
        for row in rows:
            grid.add_row(*(Text(_short(cell)) for cell in row))
        # Cells are short, and a file or a pipe has no width to keep to.
        wide = None if self._out.is_terminal else 500
        self._out.print(grid, width=wide)

    def document(self, content: dict[str, Any]) -> None:
        """Print the one JSON document of the command, if it is asked for."""
        if self.as_json:
            typer.echo(json.dumps(_plain(content), indent=1, allow_nan=False))

    @contextmanager
    def working(
        self, what: str, total: int | None = None
    ) -> Iterator[Callable[[int, int | None], None]]:
        """Show that work goes on; yields what to call with (done, total)."""
        err = Console(stderr=True)
        columns: list[ProgressColumn] = [
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
        ]
        if total is None:
            columns.append(TimeElapsedColumn())
        else:
            columns += [MofNCompleteColumn(), TimeRemainingColumn()]
        with Progress(
            *columns,
            console=err,
            transient=True,
            disable=self._quiet or not err.is_terminal,
            redirect_stdout=False,
            redirect_stderr=False,
        ) as progress:
            task = progress.add_task(clean(what), total=total or None)

            def update(done: int, total: int | None = None) -> None:
                progress.update(task, completed=done, total=total)

            yield update


def _short(cell: str) -> str:
    text = clean(cell).replace("\n", "\\n")
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _plain(value: Any) -> Any:
    """Return what JSON can hold; numbers it has no word for become null."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
