"""Files that commands write, and labels files that they read again."""

from __future__ import annotations

import csv
import re
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ihgmm._files import atomic_write, regular_target
from ihgmm.cli.screen import print_warning
from ihgmm.cli.tables.reading import load_text
from ihgmm.cli.tables.table import Table, quote, quote_all
from ihgmm.matrix.delimited import DELIMITERS
from ihgmm.matrix.faults import explain_lack, near
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


def write_csv(path: Path, names: Iterable[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV or TSV file, whole or not at all."""
    delimiter = DELIMITERS.get(path.suffix.lower(), ",")
    with real_file(path) as target, atomic_write(target, "w") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)


def _write_sheet(
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

    def cell(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        # A sheet cannot hold some invisible characters.
        text = ILLEGAL_CHARACTERS_RE.sub("", value)
        made = WriteOnlyCell(sheet, text or None)
        if text:  # also if it begins like a formula
            made.data_type = "s"
        return made

    for row in (names, *rows):
        sheet.append([cell(value) for value in row])
    with atomic_write(path) as file:
        book.save(file)


def write_labels(
    path: Path | None,
    table: Table,
    labels: np.ndarray,
    figures: dict[str, np.ndarray],
    names: list[str] | None = None,
    *,
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
    taken = {*columns, "name"}
    heading = f"id_{table.id_name}" if table.id_name in taken else table.id_name
    table_rows = [
        (heading, *columns),
        *zip(table.ids.tolist(), *columns.values(), strict=True),
    ]
    safe = table_rows
    if not raw_cells:
        safe = [tuple(map(_guarded, row)) for row in table_rows]
    (_write_sheet if is_sheet else write_csv)(path, safe[0], safe[1:])
    pairs = zip(table_rows, safe, strict=True)
    risky = [
        old for row in pairs for old, new in zip(*row, strict=True) if old is not new
    ]
    if not risky:
        return []
    begin, them = ("begins", "it") if len(risky) == 1 else ("begin", "them")
    return [
        f"{counted(len(risky), 'cell')} of {path} {begin} like a formula, the first is "
        f"{quote(risky[0])}: with an apostrophe in front no spreadsheet runs {them}. "
        "--raw-cells writes cells as they are."
    ]


def is_like_a_formula(text: str) -> bool:
    """Return whether a spreadsheet could take text for a formula and run it."""
    # Formulas begin so, also in the wide letters of East Asia; numbers are none.
    number = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
    formula = rf"(?!{number}\Z)[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]"
    return re.match(formula, text, re.ASCII) is not None


class Labels(NamedTuple):
    """What a labels file says about each row.

    Commands write such files, and a report lets people save one.
    """

    path: Path
    ids: list[str]
    clusters: list[str]
    names: dict[str, str]  # of clusters that have one

    def called(self, cluster: str) -> str:
        """Return a cluster by its number, and its name where it has one."""
        if cluster == "-1":
            return "outliers"
        return f"{cluster} {self.names.get(cluster, '')}".strip()

    def names_for(self, table: Table, labels: np.ndarray, n_clusters: int) -> list[str]:
        """Return a name for each cluster of these rows, "" where there is none.

        Names go by the numbers of clusters. If the file has the same rows, and most of
        those of a name are in another cluster now, a warning says so.
        """
        names = [""] * n_clusters
        labels_now = dict(zip(map(str, table.ids), labels.tolist(), strict=True))
        for cluster, name in self.names.items():
            if int(cluster) >= n_clusters:
                raise ValueError(
                    f"--names {self.path} has cluster {cluster} ({quote(name)}), and "
                    f"the clusters are 0 to {n_clusters - 1}; give names for these."
                )
            names[int(cluster)] = name
            places = [
                labels_now[row]
                for row, before in zip(self.ids, self.clusters, strict=True)
                if before == cluster and row in labels_now
            ]
            place = max(set(places), key=places.count, default=int(cluster))
            # Of fewer rows a majority says little; a table of names has one for each.
            if len(places) >= 5 and place != int(cluster):
                print_warning(
                    f"--names {self.path}: most rows that it calls {quote(name)} are "
                    f"in cluster {place} now. Names go by number, so cluster "
                    f"{cluster} gets that name; check that the names still fit."
                )
        return names


def read_labels(path: Path) -> Labels:
    """Read a file that has the column ``cluster``, and the id of each row first."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file; ihgmm fit -o writes labels files.")
    columns = load_text(path)
    head, n = list(columns), len(next(iter(columns.values()), ()))
    if "cluster" not in columns or n == 0:
        raise ValueError(
            f"{path} has columns {quote_all(head)} and {n} rows; give a file with the "
            f"column 'cluster'{near('cluster', head)}, as ihgmm fit -o writes it."
        )
    clusters = [cell.strip() for cell in columns["cluster"]]
    ids = [str(number) for number in range(1, n + 1)]
    if head[0] != "cluster":
        ids = [_without_guard(cell) for cell in columns[head[0]]]
    named = [_without_guard(cell).strip() for cell in columns.get("name", [""] * n)]
    names = {k: name for k, name in zip(clusters, named, strict=True) if name}
    return Labels(path, ids, clusters, names)


def read_names(path: Path) -> Labels:
    """Read the columns ``cluster`` and ``name`` of a table."""
    labels = read_labels(path)
    if not labels.names:
        raise ValueError(
            f"--names {path}: there is no column 'name' beside 'cluster', or it is "
            "empty; give a file with both, such as the labels that a report saves."
        )
    for number in labels.names:
        if not number.isdecimal():
            raise ValueError(
                f"--names {path}: {quote(number)} is not the number of a cluster; "
                "give numbers from 0."
            )
    return labels


def _guarded(cell: Any) -> Any:
    """Return a cell with an apostrophe if a spreadsheet could run it.

    One that has apostrophes already gets another, so that it can be undone.
    """
    risky = isinstance(cell, str) and is_like_a_formula(cell.lstrip("'"))
    return f"'{cell}" if risky else cell


def _without_guard(cell: str) -> str:
    """Return a cell without the apostrophe that keeps spreadsheets from running it."""
    return cell[1:] if cell[:1] == "'" and _guarded(cell) is not cell else cell
