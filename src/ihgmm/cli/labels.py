"""Labels files: those that commands write, and those that a report lets people save."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

from ihgmm.cli.output import is_like_a_formula
from ihgmm.cli.tables.table import quote, quote_all
from ihgmm.matrix.delimited import DELIMITERS


class Labels(NamedTuple):
    """What a labels file says about each row."""

    ids: list[str]
    clusters: list[str]
    names: dict[str, str]  # of clusters that have one
    certainty: list[float]  # NaN where the file has none

    def called(self, cluster: str) -> str:
        """Return a cluster by its number, and its name where it has one."""
        if cluster == "-1":
            return "outliers"
        return f"{cluster} {self.names.get(cluster, '')}".strip()


def read_labels(path: Path) -> Labels:
    """Read a file that has the column ``cluster``, and the id of each row first."""
    delimiter = DELIMITERS.get(path.suffix.lower(), ",")
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            head, *rows = csv.reader(file, delimiter=delimiter)
    except (csv.Error, UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as a labels file: {error}") from None
    if "cluster" not in head or not rows:
        raise ValueError(
            f"{path} has columns {quote_all(head)} and {len(rows)} rows; give a file "
            "with the column 'cluster', as ihgmm fit -o writes it."
        )
    for number, row in enumerate(rows, 2):
        if len(row) != len(head):
            raise ValueError(
                f"{path}, line {number} has {len(row)} cells and the first line "
                f"{len(head)}; give as many in each."
            )
    at = head.index("cluster")
    clusters = [row[at].strip() for row in rows]
    numbered = [str(number) for number in range(1, len(rows) + 1)]
    ids = numbered if at == 0 else [_as_it_was(row[0]) for row in rows]
    names = {}
    if "name" in head:
        named = [_as_it_was(row[head.index("name")]).strip() for row in rows]
        names = {k: name for k, name in zip(clusters, named, strict=True) if name}
    certainty = [float("nan")] * len(rows)
    if "certainty" in head:
        cells = [row[head.index("certainty")].strip() or "nan" for row in rows]
        try:
            certainty = [float(cell) for cell in cells]
        except ValueError as error:
            raise ValueError(f"{path}: column 'certainty': {error}.") from None
    return Labels(ids, clusters, names, certainty)


def read_names(path: Path) -> dict[int, str]:
    """Return the names of clusters, from the columns ``cluster`` and ``name``."""
    labels = read_labels(path)
    if not labels.names:
        raise ValueError(
            f"--names {path}: there is no column 'name' beside 'cluster', or it is "
            "empty; give a file with both, such as the labels that a report saves."
        )
    try:
        return {int(cluster): name for cluster, name in labels.names.items()}
    except ValueError:
        wrong = next(k for k in labels.names if not k.lstrip("-").isdigit())
        raise ValueError(
            f"--names {path}: {quote(wrong)} is no number of a cluster; give numbers "
            "from 0."
        ) from None


def _as_it_was(cell: str) -> str:
    """Return a cell without the apostrophe that keeps spreadsheets from running it."""
    bare = cell.lstrip("'")
    return cell[1:] if bare != cell and is_like_a_formula(bare) else cell
