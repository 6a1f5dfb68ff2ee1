"""The paper's table of real data: errors counted beside the paper's own."""

from __future__ import annotations

import csv
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from threadpoolctl import threadpool_limits

from ihgmm._files import atomic_write
from ihgmm.datasets import load_dataset
from ihgmm.datasets._catalog import CATALOG
from ihgmm.experiments.methods import TABLE_METHODS
from ihgmm.experiments.runner import sole_writer
from ihgmm.metrics import misclassification_loss

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

COLUMNS = ["dataset", "n_samples", "method", "seed", "errors", "paper"]

Counts = dict[tuple[str, str, int], int]
"""Misclassified rows by data set, method and seed."""


@dataclass(frozen=True)
class Cell:
    """One entry of the table: errors of a method, seed by seed, and the paper's."""

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

    Raises
    ------
    BlockingIOError
        If another run is at work on the same file.
    """
    names = list(PAPER_COUNTS) if only is None else only
    # All data first: what is missing is better known before an hour than after.
    data = {name: load_dataset(name, data_home=data_home) for name in names}
    wanted = [
        (name, method, seed)
        for name in names
        for method in TABLE_METHODS
        for seed in range(seeds)
    ]
    with nullcontext() if path is None else sole_writer(path):
        counts = {} if path is None else _read(path)
        missing = [key for key in wanted if key not in counts]
        for done, key in enumerate(missing, len(wanted) - len(missing)):
            if progress:
                progress(done, len(wanted))
            name, method, seed = key
            X, target = data[name].X, data[name].target
            with threadpool_limits(1):
                labels = TABLE_METHODS[method](X, len(set(target)), seed)
            counts[key] = misclassification_loss(target, labels)
            if path is not None:
                with atomic_write(path) as file:
                    file.write(to_csv(_cells(counts)).encode())
    if progress:
        progress(len(wanted), len(wanted))
    return _cells(counts)


def _cells(counts: Counts) -> list[Cell]:
    """Gather counts by data set and method, in the order of the paper."""
    cells = []
    for name, paper in PAPER_COUNTS.items():
        n = sum(CATALOG[name].counts)
        for method in TABLE_METHODS:
            mine = {s: c for (d, m, s), c in counts.items() if (d, m) == (name, method)}
            if mine:
                values = tuple(mine[seed] for seed in sorted(mine))
                cells.append(Cell(name, method, n, values, paper.get(method)))
    return cells


def _read(path: Path) -> Counts:
    """Return the counts of a file that an earlier run has left, if there is one."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        if rows.fieldnames != COLUMNS:
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
    lines = [",".join(COLUMNS)]
    for c in cells:
        paper = "" if c.paper is None else str(c.paper)
        lines += [
            f"{c.dataset},{c.n_samples},{c.method},{seed},{count},{paper}"
            for seed, count in enumerate(c.counts)
        ]
    return "\n".join(lines) + "\n"


def _rows(cells: list[Cell]) -> list[list[str]]:
    """Return the head and a row for each data set: median (range), the paper's count.

    What an interrupted run has not counted yet is left empty.
    """
    methods = {c.method: c.paper is not None for c in cells}
    rows = [["data", "n"]]
    for method, in_paper in methods.items():
        rows[0] += [method, "paper"] if in_paper else [method]
    for name, n in dict.fromkeys((c.dataset, c.n_samples) for c in cells):
        row = [name, str(n)]
        for method, in_paper in methods.items():
            cell = next(
                (c for c in cells if (c.dataset, c.method) == (name, method)), None
            )
            span = f" ({cell.range})" if cell and "-" in cell.range else ""
            row.append(f"{cell.median:g}{span}" if cell else "")
            if in_paper:
                row.append(str(PAPER_COUNTS[name][method]))
        rows.append(row)
    return rows


def to_markdown(cells: list[Cell]) -> str:
    """Write the table: medians over seeds, ranges in brackets, the paper beside."""
    head, *rows = ["| " + " | ".join(row) + " |" for row in _rows(cells)]
    rule = "|---|" + "---:|" * (head.count("|") - 2)
    return "\n".join([head, rule, *rows]) + "\n"


def to_latex(cells: list[Cell]) -> str:
    """Write the table for LaTeX with booktabs."""
    head, *rows = [" & ".join(row).replace("-", "--") + r" \\" for row in _rows(cells)]
    columns = "l" + "r" * head.count("&")
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        head.replace("--", "-"),
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"
