"""Labels files: those that commands write, and those that a report lets people save."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ihgmm.cli.output import is_like_a_formula
from ihgmm.cli.screen import print_warning
from ihgmm.cli.tables.reading import load_text
from ihgmm.cli.tables.table import Table, quote, quote_all
from ihgmm.matrix.delimited import parse_numbers
from ihgmm.matrix.faults import near


class Labels(NamedTuple):
    """What a labels file says about each row."""

    ids: list[str]
    clusters: list[str]
    names: dict[str, str]  # of clusters that have one
    path: Path
    certainty_cells: list[str]  # as they are written; empty where the file has none

    @property
    def certainty(self) -> list[float]:
        """The certainty of each row, NaN where the file has none."""
        import pyarrow as pa

        cells = [cell.strip() or None for cell in self.certainty_cells]
        column = pa.array(cells, pa.string())
        # No certainty has thousands, so that a comma is a decimal one.
        comma = any("," in cell for cell in self.certainty_cells)
        numbers = parse_numbers(column, "," if comma else ".")
        if len(numbers.bad_rows):
            bad = int(numbers.bad_rows[0])
            raise ValueError(
                f"{self.path}: column 'certainty' holds {quote(cells[bad])} in row "
                f"{bad + 1}; give numbers from 0 to 1, or leave the column out."
            )
        return [float(value) for value in numbers.values]

    def called(self, cluster: str) -> str:
        """Return a cluster by its number, and its name where it has one."""
        if cluster == "-1":
            return "outliers"
        return f"{cluster} {self.names.get(cluster, '')}".strip()


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
        ids = [_as_it_was(cell) for cell in columns[head[0]]]
    named = [_as_it_was(cell).strip() for cell in columns.get("name", [""] * n)]
    names = {k: name for k, name in zip(clusters, named, strict=True) if name}
    return Labels(ids, clusters, names, path, columns.get("certainty", [""] * n))


class ClusterNames(NamedTuple):
    """Names of clusters, and the file that gives them."""

    path: Path
    file: Labels

    @classmethod
    def read(cls, path: Path) -> ClusterNames:
        """Read the columns ``cluster`` and ``name`` of a table."""
        file = read_labels(path)
        if not file.names:
            raise ValueError(
                f"--names {path}: there is no column 'name' beside 'cluster', or it is "
                "empty; give a file with both, such as the labels that a report saves."
            )
        for number in file.names:
            if not number.isdecimal():
                raise ValueError(
                    f"--names {path}: {quote(number)} is no number of a cluster; give "
                    "numbers from 0."
                )
        return cls(path, file)

    def of(self, table: Table, labels: np.ndarray, n_clusters: int) -> list[str]:
        """Return a name for each cluster of these rows, "" where there is none.

        Names go by the numbers of clusters. If the file has the same rows, and most of
        those of a name are in another cluster now, a warning says so.
        """
        names = [""] * n_clusters
        for cluster, name in self.file.names.items():
            if int(cluster) >= n_clusters:
                raise ValueError(
                    f"--names {self.path} has cluster {cluster} ({quote(name)}), and "
                    f"the clusters are 0 to {n_clusters - 1}; give names for these."
                )
            names[int(cluster)] = name
        now = dict(zip(map(str, table.ids), labels.tolist(), strict=True))
        for cluster, name in self.file.names.items():
            rows = zip(self.file.ids, self.file.clusters, strict=True)
            found = [now[i] for i, k in rows if k == cluster and i in now]
            place = max(set(found), key=found.count, default=int(cluster))
            # Of fewer rows a majority says little; a table of names has one for each.
            if len(found) >= 5 and place != int(cluster):
                print_warning(
                    f"--names {self.path}: most rows that it calls {quote(name)} are "
                    f"in cluster {place} now, and names go by number: cluster "
                    f"{cluster} gets that name. Look whether the names still fit."
                )
        return names


def _as_it_was(cell: str) -> str:
    """Return a cell without the apostrophe that keeps spreadsheets from running it."""
    bare = cell.lstrip("'")
    return cell[1:] if bare != cell and is_like_a_formula(bare) else cell
