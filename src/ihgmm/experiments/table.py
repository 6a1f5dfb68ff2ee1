"""The paper's table of real data: errors counted beside the paper's own."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from threadpoolctl import threadpool_limits

from ihgmm._files import atomic_write
from ihgmm.datasets import load_dataset
from ihgmm.experiments.methods import TABLE_METHODS
from ihgmm.metrics import misclassification_loss

__all__ = [
    "PAPER_COUNTS",
    "Cell",
    "real_data_table",
    "to_csv",
    "to_latex",
    "to_markdown",
]

PAPER_COUNTS: dict[str, dict[str, int]] = {
    "iris": {"IhSC": 7, "PSC": 16, "k-means": 16},
    "wine": {"IhSC": 9, "PSC": 7, "k-means": 6},
    "seeds": {"IhSC": 20, "PSC": 16, "k-means": 17},
    "dermatology": {"IhSC": 20, "PSC": 30, "k-means": 95},
    "dna": {"IhSC": 353, "PSC": 580, "k-means": 566},
    "segment": {"IhSC": 735, "PSC": 770, "k-means": 773},
    "satimage": {"IhSC": 1381, "PSC": 1468, "k-means": 1471},
    "usps": {"IhSC": 2027, "PSC": 2360, "k-means": 2316},
    "pendigits": {"IhSC": 1922, "PSC": 2443, "k-means": 2262},
}
"""Misclassified rows by data set and method, as the paper's table prints them."""

SIZES = {
    "iris": 150,
    "wine": 178,
    "seeds": 210,
    "dermatology": 358,
    "dna": 2000,
    "segment": 2310,
    "satimage": 4435,
    "usps": 7291,
    "pendigits": 7494,
}
"""Rows of the data sets."""

HEAD = ["dataset", "n_samples", "method", "seed", "errors", "paper"]

Counts = dict[tuple[str, str, int], int]
"""Misclassified rows by data set, method and seed."""


@dataclass(frozen=True)
class Cell:
    """One entry of the table.

    Attributes
    ----------
    dataset, method : str
        What was run on what.
    n_samples : int
        Rows of the data set.
    counts : tuple of int
        Misclassified rows, seed by seed.
    paper : int or None
        The paper's count, where it has one.
    """

    dataset: str
    method: str
    n_samples: int
    counts: tuple[int, ...]
    paper: int | None

    @property
    def median(self) -> float:
        """The median count."""
        return median(self.counts)

    @property
    def range(self) -> str:
        """Smallest and largest count."""
        low, high = min(self.counts), max(self.counts)
        return f"{low}" if low == high else f"{low}-{high}"


def real_data_table(
    path: Path | None = None,
    *,
    seeds: int = 10,
    data_home: str | Path | None = None,
    only: list[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Cell]:
    """Count the errors of every method on the paper's nine data sets.

    Parameters
    ----------
    path : Path, optional
        A CSV file in which every count is kept as soon as it is there. Counts that it
        holds already are not made again.
    seeds : int
        How many seeds to run each method with.
    data_home : path, optional
        Where downloaded data are kept; see :func:`ihgmm.datasets.load_dataset`.
    only : list of str, optional
        Names of data sets, if not all.
    progress : callable, optional
        Called with the numbers of fits done and wanted.

    Returns
    -------
    list of Cell
        For every data set and method with counts, those there were before included.
    """
    names = list(PAPER_COUNTS) if only is None else only
    # All data first: what is missing is better known before an hour than after.
    data = {name: load_dataset(name, data_home=data_home) for name in names}
    counts = {} if path is None else _read(path)
    wanted = [
        (name, method, seed)
        for name in names
        for method in TABLE_METHODS
        for seed in range(seeds)
    ]
    done = sum(key in counts for key in wanted)
    if progress:
        progress(done, len(wanted))
    for key in wanted:
        if key in counts:
            continue
        name, method, seed = key
        bunch = data[name]
        with threadpool_limits(1):
            labels = TABLE_METHODS[method](bunch.X, len(set(bunch.target)), seed)
        counts[key] = misclassification_loss(bunch.target, labels)
        done += 1
        if path is not None:
            with atomic_write(path, "w") as file:
                file.write(to_csv(_cells(counts)))
        if progress:
            progress(done, len(wanted))
    return _cells(counts)


def _cells(counts: Counts) -> list[Cell]:
    """Gather counts by data set and method, in the order of the paper."""
    cells = []
    for name, paper in PAPER_COUNTS.items():
        for method in TABLE_METHODS:
            mine = {s: c for (d, m, s), c in counts.items() if (d, m) == (name, method)}
            if mine:
                values = tuple(mine[seed] for seed in sorted(mine))
                cells.append(Cell(name, method, SIZES[name], values, paper.get(method)))
    return cells


def _read(path: Path) -> Counts:
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        if rows.fieldnames != HEAD:
            raise ValueError(
                f"{path} is not a table of counts: its columns are "
                f"{', '.join(rows.fieldnames or [])}. Move it away, or give another "
                "folder."
            )
        return {
            (row["dataset"], row["method"], int(row["seed"])): int(row["errors"])
            for row in rows
        }


def to_csv(cells: list[Cell]) -> str:
    """Write one line for each data set, method and seed."""
    lines = [",".join(HEAD)]
    for c in cells:
        paper = "" if c.paper is None else str(c.paper)
        lines += [
            f"{c.dataset},{c.n_samples},{c.method},{seed},{count},{paper}"
            for seed, count in enumerate(c.counts)
        ]
    return "\n".join(lines) + "\n"


def _rows(cells: list[Cell]) -> list[list[str]]:
    """Return a row for each data set: median (range) and the paper's count."""
    methods = list(dict.fromkeys(c.method for c in cells))
    rows = []
    for name in dict.fromkeys(c.dataset for c in cells):
        mine = {c.method: c for c in cells if c.dataset == name}
        row = [name, str(next(iter(mine.values())).n_samples)]
        for method in methods:
            cell = mine[method]
            spread = f" ({cell.range})" if "-" in cell.range else ""
            row.append(f"{cell.median:g}{spread}")
            if cell.paper is not None:
                row.append(str(cell.paper))
        rows.append(row)
    return rows


def _head(cells: list[Cell]) -> list[str]:
    head = ["data", "n"]
    first = cells[0].dataset
    for cell in cells:
        if cell.dataset == first:
            head += [cell.method] + (["paper"] if cell.paper is not None else [])
    return head


def to_markdown(cells: list[Cell]) -> str:
    """Write the table: medians over seeds, ranges in brackets, the paper beside."""
    head = _head(cells)
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in _rows(cells)]
    return "\n".join(lines) + "\n"


def to_latex(cells: list[Cell]) -> str:
    """Write the table for LaTeX with booktabs."""
    head = _head(cells)
    lines = [
        rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule",
        *(" & ".join(row).replace("-", "--") + r" \\" for row in _rows(cells)),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"
