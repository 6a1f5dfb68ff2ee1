"""Files that commands write, and how labels compare with those known."""

from __future__ import annotations

import csv
import re
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm._files import atomic_write, regular_target
from ihgmm._text import counted
from ihgmm.cli.screen import Screen, print_message
from ihgmm.cli.tables.table import Table, quote
from ihgmm.matrix.delimited import DELIMITERS
from ihgmm.matrix.faults import explain_lack
from ihgmm.metrics import misclassification_loss

LABELS_SUFFIXES = (*DELIMITERS, ".xlsx")


def check_output(
    path: Path | None,
    option: str,
    suffixes: Collection[str] = (),
    sources: Iterable[str | Path] = (),
) -> None:
    """Refuse an output that could not be written, before any work is done.

    Its name may end in one of the suffixes, or in anything if there are none; the
    sources are files that are read and must not be written over. Standard output is
    called ``-``.
    """
    if path is None or str(path) == "-":
        return
    if suffixes and path.suffix.lower() not in suffixes:
        allowed = " or ".join(suffixes)
        raise ValueError(f"{option} {path}: give a name that ends in {allowed}.")
    if not path.parent.is_dir():
        raise ValueError(f"{option} {path}: there is no folder {path.parent}.")
    try:
        regular_target(path)
    except ValueError as error:
        raise ValueError(f"{option} {error}") from None
    for source in map(Path, sources):
        if path.exists() and source.exists() and path.samefile(source):
            raise ValueError(
                f"{option} {path} is a file that is read; give another name."
            )


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


def write_csv(path: Path, names: Iterable[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV or TSV file, whole or not at all."""
    delimiter = DELIMITERS.get(path.suffix.lower(), ",")
    with real_file(path) as target, atomic_write(target, "w") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)


def write_sheet(
    path: Path, names: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
    """Write an XLSX file, whole or not at all: numbers as numbers, text as text."""
    with explain_lack("openpyxl", "cli", path):
        import openpyxl
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    most = 2**20 - 1
    if len(rows) > most:
        raise ValueError(
            f"-o {path}: a sheet has room for {most:,} rows below the names, and there "
            f"are {len(rows):,}; give a name that ends in .csv."
        )
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("labels")
    for row in (names, *rows):
        cells = []
        for value in row:
            text = isinstance(value, str)
            # A sheet cannot hold some invisible characters.
            kept = ILLEGAL_CHARACTERS_RE.sub("", value) if text else value
            cell = WriteOnlyCell(sheet, kept if kept != "" else None)
            if text and kept:  # also if it begins like a formula
                cell.data_type = "s"
            cells.append(cell)
        sheet.append(cells)
    with real_file(path) as target, atomic_write(target) as file:
        book.save(file)


def write_labels(
    path: Path | None,
    table: Table,
    labels: np.ndarray,
    figures: Any,
    names: list[str] | None = None,
) -> list[str]:
    """Write cluster and figures of each row; return remarks on the file.

    ``figures`` is a dataclass with an array for each column, or None for one that is
    left out; cells of what is not known stay empty. ``names`` are those of the
    clusters. Ids and names stay as they are, so that the file can be joined with the
    data.
    """
    if path is None:
        return []
    is_sheet = path.suffix.lower() == ".xlsx"
    columns: dict[str, Any] = {"cluster": labels.tolist()}
    if names is not None:
        columns["name"] = [names[k] if k >= 0 else "" for k in labels.tolist()]
    for name, values in asdict(figures).items():
        if values is not None:
            columns[name] = ["" if v != v else f"{v:.6g}" for v in values.tolist()]
            if is_sheet:
                columns[name] = [
                    float(cell) if cell else None for cell in columns[name]
                ]
    # A name stands for one column only, and "name" for that of the cluster.
    taken = {*columns, "name"}
    heading = f"id_{table.id_name}" if table.id_name in taken else table.id_name
    rows = list(zip(table.ids.tolist(), *columns.values(), strict=True))
    if is_sheet:
        write_sheet(path, [heading, *columns], rows)
        return []
    write_csv(path, [heading, *columns], rows)
    remarks = []
    texts = {"Ids": (heading, table.ids), "Names": ("name", columns.get("name", ()))}
    for what, (head, cells) in texts.items():
        risky = [cell for cell in (head, *cells) if is_like_a_formula(cell)]
        if risky:
            begin = "begins" if len(risky) == 1 else "begin"
            remarks.append(
                f"{counted(len(risky), 'cell')} of column {quote(head)} in {path} "
                f"{begin} like a formula, the first is {quote(risky[0])}. {what} are "
                "written as they are: in a spreadsheet, import that column as text."
            )
    return remarks


def is_like_a_formula(cell: object) -> bool:
    """Return whether a spreadsheet could take a cell for a formula and run it."""
    # Formulas begin so, also in the wide letters of East Asia; numbers are none.
    number = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
    formula = rf"(?!{number}\Z)[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]"
    return isinstance(cell, str) and re.match(formula, cell, re.ASCII) is not None


def compare_labels(known: Any, labels: np.ndarray) -> dict[str, Any] | None:
    """Return how labels differ from those known; None where none are."""
    if known is None:
        return None
    names = np.asarray(known).astype(str)
    wrong = misclassification_loss(names, labels)
    return {"classes": len(set(names)), "misplaced": wrong, "rate": wrong / len(names)}


def print_labels(
    screen: Screen,
    n: int,
    comparison: dict[str, Any] | None,
    path: Path | None,
    remarks: Iterable[str],
) -> None:
    """Print how labels compare with those known, and where they are."""
    if comparison is not None:
        classes = comparison["classes"]
        screen.say(
            f"against the known labels ({classes} class{'es' * (classes != 1)}): "
            f"{comparison['misplaced']:,} of {n:,} rows differ "
            f"({comparison['rate']:.1%})"
        )
    written = f"labels written to {path}"
    screen.say(written if path else "labels were not saved; add -o labels.csv")
    for text in remarks if not screen.silent else ():
        print_message("note", text, "yellow")
