"""What a command prints: for people on a screen, or for machines as JSON."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, is_dataclass
from threading import Timer
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from ihgmm.cli.options import FLAG, output_option
from ihgmm.cli.tables.table import Table
from ihgmm.words.phrases import figure, shorten

PATIENCE = 5  # seconds until somebody who sees nothing is told what goes on
LONGEST_CELL = 30  # figures beside it have to stay whole on a narrow screen


def clean(text: str) -> str:
    """Return text with control, direction and invisible characters spelled out."""
    allowed = "\u200c\u200d\n"  # Persian and emoji cannot be written without joiners
    return "".join(
        c if c.isprintable() or c in allowed else ascii(c)[1:-1] for c in text
    )


def print_message(kind: str, message: object, style: str = "yellow") -> None:
    """Print one line to standard error."""
    text = clean(" ".join(str(message).split()))
    line = Text.assemble((f"{kind}:", style), " ", text)
    Console(stderr=True).print(line, soft_wrap=True, highlight=False)


@dataclass
class Screen:
    """Where a command prints, and the options that say how much."""

    as_json: Annotated[
        bool, output_option("Print one JSON document only.", "--json", metavar=FLAG)
    ] = False
    quiet: Annotated[
        bool,
        output_option(
            "Print nothing but warnings, errors and the bare answer.",
            "-q",
            "--quiet",
            metavar=FLAG,
        ),
    ] = False

    # Whether words are explained: an option of some commands.
    explains: bool = field(default=False, init=False)
    # Whether people read on standard error, because a file goes to standard output.
    to_stderr: bool = field(default=False, init=False)

    @property
    def silent(self) -> bool:
        """Whether people are told nothing but warnings and errors."""
        return self.as_json or self.quiet

    def leave_room_for(self, output: object) -> None:
        """Leave standard output to a file that is ``-``."""
        self.to_stderr = str(output) == "-"
        if self.to_stderr and self.as_json:
            raise ValueError("--json and -o - both write to standard output; drop one.")

    @property
    def out(self) -> Console:
        """Where people read; a file or a pipe has no width to keep to."""
        out = Console(stderr=self.to_stderr, highlight=False, quiet=self.silent)
        if not out.is_terminal:
            out.width = 500
        return out

    def say(self, text: str, style: str = "") -> None:
        """Print a sentence."""
        out = self.out
        out.print(Text(clean(text), style=style), soft_wrap=not out.is_terminal)

    def explain(self, lines: Iterable[str]) -> None:
        """Print what words mean, a line each, if people want to know."""
        if self.explains:
            for line in lines:
                self.say(f"  {line}", "dim")

    def name_explain(self) -> None:
        """Name the option that explains words, unless it was given."""
        if not self.explains:
            self.say("what the words mean: --explain", "dim")

    def table(self, columns: Mapping[str, str], rows: Iterable[Iterable[Any]]) -> None:
        """Print a table; ``columns`` has the format of numbers below each heading."""
        grid = Grid(box=None, pad_edge=False, header_style="bold")
        for place, name in enumerate(columns):
            justify: Literal["left", "right"] = "right" if place else "left"
            grid.add_column(name, justify=justify, no_wrap=True)

        for row in rows:
            cells = zip(row, columns.values(), strict=False)
            grid.add_row(*(_cell(value, form) for value, form in cells))

        self.out.print(grid)

    def begin(
        self,
        command: str,
        table: Table,
        heading: str,
        facts: Mapping[str, object],
        remarks: Sequence[str] = (),
    ) -> None:
        """Print the document of a command, or a heading and notes on the data.

        The document has ``remarks`` beside the notes; people read them elsewhere.
        """
        n_samples, n_features = table.X.shape
        decisions = getattr(table.scaler, "decisions_", ())  # one for each column

        document = {
            "data": table.source,
            "n_samples": n_samples,
            "n_features": n_features,
            "left_out": table.left_out,
            "prepared": dict(zip(table.column_names, decisions, strict=False)),
            **facts,
            "notes": [*map(str, table.notes), *remarks],
        }

        self.document(command, document)

        self.say(heading, "bold")
        for note in table.notes:
            if note.is_warning:
                print_message("warning", note)
            else:
                self.say(note.text, "yellow")

    def document(self, command: str, facts: Mapping[str, object]) -> None:
        """Print the one JSON document of the command, if it is asked for."""
        if self.as_json:
            text = json.dumps({"command": command, **facts}, default=_for_json)
            # JSON has no word for NaN and infinity.
            content = json.loads(text, parse_constant=lambda name: None)
            typer.echo(json.dumps(content, indent=1))

    @contextmanager
    def working(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """Show that work goes on; yields what to call with (done, total)."""
        err = Console(stderr=True, quiet=self.quiet)
        # A file or a pipe has a line for each step that takes long.
        line = Timer(PATIENCE, err.print, [Text(clean(f"{what} ..."))])
        if not err.is_terminal:
            line.start()

        try:
            with err.status(Text(clean(what))) as status:

                def show(done: int, total: int) -> None:
                    status.update(Text(f"{what}: {done} of {total}"))

                yield show
        finally:
            line.cancel()


@dataclass
class ExplainingScreen(Screen):
    """The screen of a command whose words may need an explanation."""

    explains: Annotated[
        bool, output_option("Explain the words.", "--explain", metavar=FLAG)
    ] = False


def _cell(value: Any, form: str) -> Text:
    """Return what a cell of a table shows, on one line."""
    if value is None or value != value:  # NaN is the one number unlike itself
        return Text("-")
    if not isinstance(value, str):
        value = figure(value, 4) if form == ".4g" else format(value, form)
    return Text(shorten(clean(value).replace("\n", "\\n"), LONGEST_CELL))


def _for_json(value: Any) -> Any:
    """Return what JSON can hold in the place of a result, an array or a path."""
    if is_dataclass(value):
        return asdict(value)  # type: ignore[arg-type]
    # Arrays and numbers of NumPy, kinds of verdicts, and what has a name.
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(getattr(value, "value", value))
