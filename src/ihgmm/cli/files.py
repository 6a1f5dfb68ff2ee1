"""Files that commands write."""

import csv
import re
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from math import isnan
from pathlib import Path
from typing import IO, Any

import numpy as np

from ihgmm._files import atomic_write, regular_target
from ihgmm.cli.tables.files.raw_table import DELIMITERS
from ihgmm.cli.tables.names import quote
from ihgmm.cli.tables.table import RowFacts
from ihgmm.words.phrases import counted

LABELS_SUFFIXES = tuple(DELIMITERS)
# Rows that are texts at one time: those of all would take more memory than a fit.
ROWS_AT_ONCE = 2**14

_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
# Formulas begin so, also in the wide letters of East Asia; numbers are none. A cell
# that has apostrophes already gets another, so that it can be undone.
_FORMULA = re.compile(
    rf"'*(?!{_NUMBER}\Z)[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]", re.ASCII
)


def check_output(
    path: Path | None,
    option: str,
    suffixes: Collection[str] = (),
    others: Iterable[str | Path] = (),
    *,
    may_stream: bool = False,
) -> None:
    """Refuse an output that could not be written, or is one of the others.

    What ``may_stream`` may go to standard output, ``-``.
    """
    if path is None or (may_stream and str(path) == "-"):
        return

    fault = ""
    try:
        regular_target(path, suffixes)
    except ValueError as error:
        fault = str(error)

    if str(path) == "-":
        fault = "-: this cannot go to standard output; give the name of a file."
    elif not path.parent.is_dir():
        fault = f"{path}: there is no folder {path.parent}."
    elif path.resolve() in [Path(file).resolve() for file in others]:
        fault = f"{path} is also an input file, or another output; give another name."

    if fault:
        raise ValueError(f"{option} {fault}")


@contextmanager
def real_file(path: Path, suffix: str = "") -> Iterator[Path]:
    """Yield a file to write; what is written for ``-`` goes to standard output."""
    if str(path) != "-":
        yield path
        return

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"output{suffix}"
        yield file
        sys.stdout.flush()
        sys.stdout.buffer.write(file.read_bytes())
        sys.stdout.buffer.flush()


class _UnixLines:
    """A file for a CSV writer, with lines that end in a line feed alone.

    A writer that ended its lines so would leave a carriage return in a cell without
    quotes.
    """

    def __init__(self, file: IO[str]) -> None:
        self.file = file

    def write(self, line: str) -> int:
        """Write a line that ends in a carriage return and a line feed."""
        return self.file.write(line.removesuffix("\r\n") + "\n")


def write_csv(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV or TSV file, whole or not at all."""
    delimiter = DELIMITERS.get(path.suffix.lower(), ",")
    with real_file(path) as target, atomic_write(target, "w") as file:
        csv.writer(_UnixLines(file), delimiter=delimiter).writerows(rows)


def write_labels(
    path: Path,
    rows: RowFacts,
    labels: np.ndarray,
    figures: dict[str, np.ndarray],
    *,
    classes: np.ndarray | None = None,
    raw_cells: bool = False,
) -> list[str]:
    """Write cluster, class and figures of each row; return remarks on the file.

    ``classes`` are those that clusters stand for, if known labels have taught them.
    Cells that spreadsheets could run are guarded, but for ``raw_cells``.
    """
    columns = {"cluster": labels}
    if classes is not None:
        names = [*map(str, classes), "outlier"]  # -1 takes the last
        columns["class"] = np.array(names, dtype=object)[labels]

    # A name stands for one column only.
    is_taken = rows.id_name in columns | figures
    id_name = f"id_{rows.id_name}" if is_taken else rows.id_name

    def lines() -> Iterator[Sequence[Any]]:
        yield _guarded(id_name, raw_cells), *columns, *figures

        for start in range(0, len(labels), ROWS_AT_ONCE):
            block = slice(start, start + ROWS_AT_ONCE)
            ids = [_guarded(cell, raw_cells) for cell in rows.ids[block].tolist()]
            plain_cells = [values[block].tolist() for values in columns.values()]
            figure_cells = [_figure_cells(values[block]) for values in figures.values()]
            yield from zip(ids, *plain_cells, *figure_cells, strict=True)

    write_csv(path, lines())

    cells = chain([id_name], rows.ids)
    risky = [cell for cell in cells if _guarded(cell, raw_cells) is not cell]
    if not risky:
        return []
    return [
        f"{counted(len(risky), 'cell')} of {path} begin like a formula, the first is "
        f"{quote(risky[0])}: with an apostrophe in front no spreadsheet runs it. "
        "--raw-cells writes cells as they are."
    ]


def _guarded(cell: Any, raw_cells: bool) -> Any:
    """Return a cell with an apostrophe in front if a spreadsheet could run it."""
    is_formula = isinstance(cell, str) and _FORMULA.match(cell)
    return f"'{cell}" if is_formula and not raw_cells else cell


def _figure_cells(values: np.ndarray) -> list[str]:
    """Return numbers as cells of a file, empty where they are NaN."""
    return ["" if isnan(value) else f"{value:.6g}" for value in values.tolist()]
