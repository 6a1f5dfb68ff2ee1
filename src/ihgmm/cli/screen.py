"""What a command prints: for people on a screen, or for machines as JSON.

Messages of the library are printed in the spelling of the shell.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from enum import Enum
from typing import Any

import typer
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from ihgmm.cli.options import output_option
from ihgmm.cli.tables.table import Note
from ihgmm.words.phrases import figure, shorten

# Parameters that commands have as options: flags are given or not.
FLAGS = ("refine", "signed", "paper", "external")
OPTIONS = {
    "n_clusters": "-k",
    "random_state": "--seed",
    "max_clusters": "--max-clusters",
    "method": "--method",
    "missing": "--missing",
    "prepare": "--prepare",
    "memory": "--memory",
    "outliers": "--outliers",
    "whiten": "--whiten",
}
_VALUE = r"""=(?:"([^"\s]*)"|'([^'\s]*)'|([\w.+-]*[\w+]))"""
# Calls and names that have a command in their place; the first that fits is taken.
_PHRASES: list[tuple[str, Any]] = [
    (
        r"select_n_clusters\(X, max_clusters=(\d+)\)",
        r"ihgmm choose-k --max-clusters \1",
    ),
    (r"select_n_clusters\(X\)\.plot\(\)", "the evidence (ihgmm choose-k)"),
    (r"select_n_clusters(\(X\))?", "ihgmm choose-k"),
    (r"diagnose\(X, model\)", "ihgmm report"),
    (r"IhSC\.paper", "IhSC --paper"),
    # What only --paper asks for, or no option does.
    (r"\bgram=\S+ shows fewer", "the fit shows fewer"),
    (r"\bRecipe\(gram='cosine'\) or refine=True", "refine=True"),
    (
        r"Use Recipe\(clip=1\.5\), which shortens long rows, or",
        "Leave out --paper, so that long rows are shortened, or use",
    ),
    (r" \(clip=1\.5\)", ""),
    (r'; otherwise raise tol or take (gram|solver)="\w+"', ""),
    (r"\bRaise max_iter or tol, or ask\b", "Ask"),
    (r"\bn_samples=(\d+)", r"the \1 rows"),
    (r"\bn_clusters=(\d+) clusters", r"\1 clusters"),
    (r"\bgive n_clusters\b", "give -k"),
    (r"\bDivide the columns by their deviation", r"\g<0> (--prepare scale)"),
    (r"\bLeave it out\b", r"\g<0> (--drop-columns)"),
    (r"\bSubtract its mean\b", r"\g<0> (--prepare standardize)"),
    (r"; give one of (.*), None\.$", r"; give one of \1."),
    (r"; give 'auto', 'cells', None or", "; give auto, cells or"),
    # People count from 1, and rows of arrays have no other name.
    (r"\bat row (\d+), column ", lambda place: f"in row {int(place[1]) + 1}, column "),
]


def in_shell(text: str) -> str:
    """Return a message of the library as users of the command line would give it.

    Examples
    --------
    >>> in_shell("Fit with whiten='counts' or refine=True; n_clusters=9 is too many.")
    'Fit with --whiten counts or --refine; -k 9 is too many.'
    >>> in_shell("Count them with select_n_clusters(X, max_clusters=500).")
    'Count them with ihgmm choose-k --max-clusters 500.'
    """
    for pattern, phrase in _PHRASES:
        text = re.sub(pattern, phrase, text)
    for name in FLAGS:
        text = re.sub(rf"\b{name}=True\b", f"--{name}", text)
    for name, option in OPTIONS.items():
        text = re.sub(rf"(?<![\w-]){name}{_VALUE}", rf"{option} \1\2\3", text)
    return text


def clean(text: str) -> str:
    """Return text that cannot steer a terminal.

    Control characters, escape sequences, overrides of the direction of writing and
    other invisible characters are spelled out.
    """
    # Joiners are invisible, but harmless: Persian and emoji cannot be written without.
    joiners = "\u200c\u200d"
    return "".join(
        c
        if c.isprintable() or c in joiners or c == "\n"
        else c.encode("unicode_escape", "backslashreplace").decode()
        for c in text
    )


def print_message(kind: str, message: str, style: str = "red") -> None:
    """Print one line to standard error."""
    line = Text.assemble((f"{kind}:", style), " ", clean(message))
    Console(stderr=True).print(line, soft_wrap=True, highlight=False)


def print_warning(message: object, *_: Any, **__: Any) -> None:
    """Print a warning, be it one of Python's with its class and place, or a text."""
    print_message("warning", in_shell(" ".join(str(message).split())), "yellow")


@dataclass(frozen=True)
class Screen:
    """Where a command prints, and the options that say how much.

    Sentences and tables go to standard output, unless ``--json`` or ``--quiet`` is
    given; progress goes to standard error, and only to a terminal.
    """

    as_json: bool = output_option(
        "Print one JSON document and nothing else.", False, "--json"
    )
    quiet: bool = output_option(
        "Print nothing but warnings, errors and the bare answer.", False, "-q --quiet"
    )

    @property
    def explains(self) -> bool:
        """Whether people want to know what words mean."""
        return False

    @property
    def silent(self) -> bool:
        """Whether people are told nothing but warnings and errors."""
        return self.as_json or self.quiet

    def beside(self, output: object) -> Screen:
        """Return a screen that leaves standard output to a file that is ``-``."""
        if str(output) != "-":
            return self
        if self.as_json:
            raise ValueError(
                "--json and -o - both write to standard output; give -o a file name."
            )
        return _ErrorScreen(self.as_json, self.quiet, self.explains)

    def _console(self) -> Console:
        return Console(highlight=False)

    def say(self, text: str, style: str = "") -> None:
        """Print a sentence."""
        if not self.silent:
            out = self._console()
            out.print(Text(clean(text), style=style), soft_wrap=not out.is_terminal)

    def explain(self, lines: Iterable[str]) -> None:
        """Print what words mean, a line each, if people want to know."""
        for line in lines if self.explains else ():
            self.say(f"  {line}", "dim")

    def notes(self, notes: Iterable[Note]) -> None:
        """Print what was done to the data, some of it also if little is said."""
        for note in notes:
            if note.loud:
                print_warning(note)
            elif note.in_quiet and self.quiet and not self.as_json:
                print_message("note", str(note), "yellow")
            else:
                self.say(str(note), "yellow")

    def table(self, columns: Mapping[str, str], rows: Iterable[Iterable[Any]]) -> None:
        """Print a table; the first column is on the left, the others on the right.

        ``columns`` has the format of the numbers below each heading. Text is printed
        as it is, and a number that is not known (None, NaN) as a dash.
        """
        if self.silent:
            return
        grid = Grid(box=None, pad_edge=False, header_style="bold")
        for name in columns:
            justify: Any = "right" if grid.columns else "left"
            grid.add_column(name, justify=justify, no_wrap=True)
        for row in rows:
            grid.add_row(*map(_cell, row, columns.values()))
        out = self._console()
        if not out.is_terminal:  # a file or a pipe has no width to keep to
            out.width = 500
        out.print(grid)

    def document(self, command: str, facts: Mapping[str, Any], **more: Any) -> None:
        """Print the one JSON document of the command, if it is asked for."""
        if self.as_json:
            content = _for_json({"command": command, **facts, **more})
            typer.echo(json.dumps(content, indent=1, allow_nan=False))

    @contextmanager
    def working(
        self, what: str, total: int | None = None
    ) -> Iterator[Callable[[int, int | None], None]]:
        """Show that work goes on; yields what to call with (done, total)."""
        err = Console(stderr=True)
        if self.quiet or not err.is_terminal:
            yield lambda done, total: None
            return
        from rich import progress as bars

        text = bars.TextColumn("{task.description}")
        columns = [bars.SpinnerColumn(), text, bars.BarColumn()]
        if total is None:
            columns += [bars.TimeElapsedColumn()]
        else:
            columns += [bars.MofNCompleteColumn(), bars.TimeRemainingColumn()]
        options: dict[str, Any] = {"redirect_stdout": False, "redirect_stderr": False}
        with bars.Progress(
            *columns, console=err, transient=True, **options
        ) as progress:
            task = progress.add_task(clean(what), total=total)
            yield lambda done, total: progress.update(task, completed=done, total=total)


@dataclass(frozen=True)
class ExplainingScreen(Screen):
    """The screen of a command whose words may need an explanation."""

    explained: bool = output_option(
        "Explain the words, and after a fit show how to do it in Python.",
        False,
        "--explain",
    )

    @property
    def explains(self) -> bool:
        """Whether people want to know what words mean."""
        return self.explained


class _ErrorScreen(ExplainingScreen):
    """A screen whose sentences and tables go to standard error."""

    def _console(self) -> Console:
        return Console(stderr=True, highlight=False)


def _cell(value: Any, form: str) -> Text:
    """Return what a cell of a table shows, on one line."""
    if value is None or value != value:  # NaN is the one number unlike itself
        return Text("-")
    if isinstance(value, str):
        text = value
    else:
        text = figure(value, 4) if form == ".4g" else format(value, form)
    # Figures beside it have to stay whole on a narrow screen.
    return Text(shorten(clean(text).replace("\n", "\\n"), 30))


def _for_json(value: Any) -> Any:
    """Return what JSON can hold; numbers it has no word for become null."""
    if is_dataclass(value) and not isinstance(value, (Note, type)):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): _for_json(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):  # arrays, and numbers of NumPy
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_for_json(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Enum):
        value = value.value
    is_plain = value is None or isinstance(value, (bool, int, float, str))
    return value if is_plain else str(value)  # paths, notes
