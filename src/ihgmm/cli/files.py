"""Files that commands write, and names of clusters that they read again."""

from __future__ import annotations

import csv
import re
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm._files import atomic_write, regular_target
from ihgmm.cli.screen import print_message
from ihgmm.cli.tables.loading import DELIMITERS
from ihgmm.cli.tables.reading import load_text
from ihgmm.cli.tables.table import Table, near, quote, quote_all
from ihgmm.words.phrases import counted

LABELS_SUFFIXES = (*DELIMITERS, ".xlsx")


def check_output(
    path: Path | None,
    option: str,
    suffixes: Collection[str] = (),
    sources: Iterable[str | Path] = (),
    *,
    streams: bool = False,
) -> None:
    """Refuse an output that could not be written, before any work is done.

    Its name may end in one of the suffixes, or in anything if there are none; the
    sources are files that are read and must not be written over. What ``streams`` may
    go to standard output, which is called ``-``.
    """
    if path is None or (streams and str(path) == "-"):
        return
    if str(path) == "-":
        raise ValueError(
            f"{option} -: this cannot go to standard output; give a file name, such as "
            f"output{next(iter(suffixes), '.npz')}."
        )
    if not path.parent.is_dir():
        raise ValueError(f"{option} {path}: there is no folder {path.parent}.")
    try:
        regular_target(path, suffixes)
    except ValueError as error:
        raise ValueError(f"{option} {error}") from None
    for source in map(Path, sources):
        if path.exists() and source.exists() and path.samefile(source):
            raise ValueError(
                f"{option} {path} is also an input file; give another name."
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


def write_csv(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV or TSV file, whole or not at all."""
    delimiter = DELIMITERS.get(path.suffix.lower(), ",")
    with real_file(path) as target, atomic_write(target, "w") as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)


def _write_sheet(path: Path, rows: Sequence[Sequence[Any]]) -> None:
    """Write an XLSX file, whole or not at all: numbers as numbers, text as text."""
    import pandas as pd
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    most = 2**20 - 1
    if len(rows) - 1 > most:
        raise ValueError(
            f"-o {path}: a sheet has room for {most:,} rows below the names, and there "
            f"are {len(rows) - 1:,}; give a name that ends in .csv."
        )
    # A sheet cannot hold some invisible characters.
    cells = [
        [ILLEGAL_CHARACTERS_RE.sub("", c) if isinstance(c, str) else c for c in row]
        for row in rows
    ]
    frame = pd.DataFrame(cells[1:], columns=cells[0], dtype=object)
    with atomic_write(path) as file:
        frame.to_excel(file, index=False, sheet_name="labels", engine="openpyxl")


def write_labels(
    path: Path | None,
    table: Table,
    labels: np.ndarray,
    figures: dict[str, np.ndarray],
    names: list[str] | None,
    raw_cells: bool,
) -> list[str]:
    """Write cluster and figures of each row; return remarks on the file.

    Cells of what is not known stay empty. ``names`` are those of the clusters. Text
    that a spreadsheet could run gets an apostrophe in front, unless cells are ``raw``.
    """
    if path is None:
        return []
    is_sheet = path.suffix.lower() == ".xlsx"
    columns: dict[str, list[Any]] = {"cluster": labels.tolist()}
    if names is not None:
        columns["name"] = [names[k] if k >= 0 else "" for k in labels.tolist()]
    for name, values in figures.items():
        cells = ["" if v != v else f"{v:.6g}" for v in values.tolist()]
        columns[name] = [float(c) if c else c for c in cells] if is_sheet else cells
    # A name stands for one column only, and "name" for that of the cluster.
    is_taken = table.id_name in {*columns, "name"}
    heading = f"id_{table.id_name}" if is_taken else table.id_name
    ids = table.ids.tolist()
    rows = [(heading, *columns), *zip(ids, *columns.values(), strict=True)]
    risky = [c for row in rows for c in row if _guarded(c) is not c]
    if raw_cells and not is_sheet:  # where pandas would write formulas
        risky = []
    if risky:
        rows = [tuple(map(_guarded, row)) for row in rows]
    (_write_sheet if is_sheet else write_csv)(path, rows)
    if not risky:
        return []
    begin, them = ("begins", "it") if len(risky) == 1 else ("begin", "them")
    return [
        f"{counted(len(risky), 'cell')} of {path} {begin} like a formula, the first is "
        f"{quote(risky[0])}: with an apostrophe in front no spreadsheet runs {them}. "
        "--raw-cells writes CSV and TSV cells as they are."
    ]


def is_like_a_formula(text: str) -> bool:
    """Return whether a spreadsheet could take text for a formula and run it."""
    # Formulas begin so, also in the wide letters of East Asia; numbers are none.
    number = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
    formula = rf"(?!{number}\Z)[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]"
    return re.match(formula, text, re.ASCII) is not None


def _guarded(cell: Any) -> Any:
    """Return a cell with an apostrophe if a spreadsheet could run it.

    One that has apostrophes already gets another, so that it can be undone.
    """
    risky = isinstance(cell, str) and is_like_a_formula(cell.lstrip("'"))
    return f"'{cell}" if risky else cell


def _without_guard(cell: str) -> str:
    """Return a cell without the apostrophe that keeps spreadsheets from running it."""
    return cell[1:] if cell[:1] == "'" and _guarded(cell) is not cell else cell


def read_names(path: Path | None) -> list[tuple[str, str, str]]:
    """Return cluster, name and id of each row of a table; ids are its first column."""
    if path is None:
        return []
    if not path.is_file():
        raise ValueError(f"--names {path}: no such file; ihgmm fit -o writes labels.")
    columns = load_text(path)
    head = list(columns)
    for name in ("cluster", "name"):
        if name not in columns or not any(columns[name]):
            raise ValueError(
                f"--names {path} has columns {quote_all(head)}; give a file with the "
                f"column {name!r}{near(name, head)}, such as the labels that a report "
                "saves."
            )
    rows = zip(columns["cluster"], columns["name"], columns[head[0]], strict=True)
    return [(k, _without_guard(name).strip(), _without_guard(i)) for k, name, i in rows]


def names_for(
    path: Path | None,
    rows: list[tuple[str, str, str]],
    table: Table,
    labels: np.ndarray,
    n_clusters: int,
) -> list[str] | None:
    """Return a name for each cluster of the table, "" where a file has none.

    The rows are those of the file. Names go by the numbers of clusters. If the file has
    the same rows as the table, and most of those of a name are in another cluster now,
    a warning says so.
    """
    if path is None:
        return None
    names = [""] * n_clusters
    for number, name in {number: name for number, name, _ in rows if name}.items():
        if not number.isdecimal() or int(number) >= n_clusters:
            raise ValueError(
                f"--names {path} has cluster {quote(number)} ({quote(name)}), and the "
                f"clusters are 0 to {n_clusters - 1}; give names for these."
            )
        names[int(number)] = name
    labels_now = dict(zip(map(str, table.ids), labels.tolist(), strict=True))
    for cluster, name in enumerate(names):
        mine = [row for number, _, row in rows if number == str(cluster)]
        places = [labels_now[row] for row in mine if row in labels_now]
        place = max(set(places), key=places.count, default=cluster)
        # Of fewer rows a majority says little; a table of names has one for each.
        if name and len(places) >= 5 and place != cluster:
            print_message(
                "warning",
                f"--names {path}: most rows that it calls {quote(name)} are in cluster "
                f"{place} now. Names go by number, so cluster {cluster} gets that "
                "name; check that the names still fit.",
            )
    return names
