"""Files that commands write."""

import csv
import re
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ihgmm._files import atomic_write, regular_target
from ihgmm.cli.tables.loading import DELIMITERS
from ihgmm.cli.tables.table import Table, quote
from ihgmm.words.phrases import counted


def check_output(
    path: Path | None,
    option: str,
    suffixes: Collection[str] = (),
    others: Iterable[str | Path] = (),
    *,
    streams: bool = False,
) -> None:
    """Refuse an output that could not be written, or is one of the others."""
    # What streams may go to standard output.
    if path is None or (streams and str(path) == "-"):
        return
    wrong = ""
    try:
        regular_target(path, suffixes)
    except ValueError as error:
        wrong = str(error)
    if str(path) == "-":
        wrong = "-: this cannot go to standard output; give the name of a file."
    elif not path.parent.is_dir():
        wrong = f"{path}: there is no folder {path.parent}."
    elif path.resolve() in [Path(other).resolve() for other in others]:
        wrong = f"{path} is also an input file, or another output; give another name."
    if wrong:
        raise ValueError(f"{option} {wrong}")


@contextmanager
def real_file(path: Path, suffix: str = "") -> Iterator[Path]:
    """Yield a file to write; what is written for ``-`` goes to standard output."""
    with tempfile.TemporaryDirectory() as folder:
        is_stream = str(path) == "-"
        file = Path(folder) / f"output{suffix}" if is_stream else path
        yield file
        if is_stream:
            sys.stdout.flush()
            sys.stdout.buffer.write(file.read_bytes())
            sys.stdout.buffer.flush()


def write_csv(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV or TSV file, whole or not at all."""
    delimiter = DELIMITERS.get(path.suffix.lower(), ",")
    with real_file(path) as target, atomic_write(target, "w") as file:
        # A writer whose lines end in \n alone would leave \r in a cell without quotes.
        lines: Any = SimpleNamespace(write=lambda line: file.write(line[:-2] + "\n"))
        csv.writer(lines, delimiter=delimiter).writerows(rows)


def write_labels(
    path: Path | None,
    table: Table,
    labels: np.ndarray,
    figures: dict[str, np.ndarray],
    raw_cells: bool,
    model: Any,
) -> list[str]:
    """Write cluster, class and figures of each row; return remarks on the file."""
    if path is None:
        return []
    columns = {"cluster": labels}
    if hasattr(model, "classes_"):  # which known labels have taught
        names = [*map(str, model.classes_), "outlier"]  # -1 takes the last
        columns["class"] = np.array(names, dtype=object)[labels]
    # A name stands for one column only.
    head = "id_" * (table.id_name in columns | figures) + table.id_name

    def guard(cell: Any) -> Any:
        # Formulas begin so, also in the wide letters of East Asia; numbers are none. A
        # cell that has apostrophes already gets another, so that it can be undone.
        number = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
        formula = rf"'*(?!{number}\Z)[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]"
        kept = raw_cells or not isinstance(cell, str)
        return cell if kept or not re.match(formula, cell, re.ASCII) else f"'{cell}"

    risky = [cell for cell in chain([head], table.ids) if guard(cell) is not cell]

    def lines() -> Iterator[Sequence[Any]]:
        yield guard(head), *columns, *figures
        # The cells of all rows, as texts, would take more memory than a fit.
        for start in range(0, len(labels), 2**14):
            ids, *others = (
                values[start : start + 2**14].tolist()
                for values in (table.ids, *columns.values(), *figures.values())
            )
            for values in others[len(columns) :]:
                values[:] = ["" if v != v else f"{v:.6g}" for v in values]
            yield from zip(map(guard, ids), *others, strict=True)

    write_csv(path, lines())
    return [
        f"{counted(len(risky), 'cell')} of {path} begin like a formula, the first is "
        f"{quote(cell)}: with an apostrophe in front no spreadsheet runs it. "
        "--raw-cells writes cells as they are."
        for cell in risky[:1]
    ]
