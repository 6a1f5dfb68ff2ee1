"""The paper's table of real data: errors counted beside the paper's own."""

import functools
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import NamedTuple

from ihgmm.datasets import load_dataset
from ihgmm.paper.methods import TABLE_METHODS
from ihgmm.paper.runner import Run
from ihgmm.paper.studies import Study

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


class RealData(NamedTuple):
    """A data set of the table; a repetition is another seed."""

    name: str
    data_home: str | Path | None = None
    n_entries: int = 0  # all sets are small

    @property
    def key(self) -> str:
        """A name that is the same in every run and on every machine."""
        return f"table/{self.name}"

    def draw(self, rep: int) -> tuple[SimpleNamespace, int]:
        """Return the data, prepared as the paper's were, and the seed."""
        data = _load(self.name, data_home=self.data_home)
        return SimpleNamespace(X=data.X, labels=data.target), rep


_load = functools.cache(load_dataset)


def real_data_study(data_home: str | Path | None = None) -> Study:
    """Return the study behind the table: six methods, nine data sets, ten seeds.

    ``data_home`` is that of :func:`ihgmm.datasets.load_dataset`.
    """
    settings = tuple(RealData(name, data_home) for name in PAPER_COUNTS)
    return Study(
        name="table",
        title="Table of real data",
        settings=settings,
        methods=TABLE_METHODS,
        reps=10,
        quick_reps=3,
    )


class Cell(NamedTuple):
    """One entry of the table: errors of a method, seed by seed, and the paper's."""

    dataset: str
    method: str
    n_samples: int
    counts: tuple[int, ...]
    paper: int | None

    def __str__(self) -> str:
        middle = f"{median(self.counts):g}"
        minimum = min(self.counts)
        maximum = max(self.counts)
        if minimum == maximum:
            return middle
        return f"{middle} ({minimum}-{maximum})"


def table_cells(results: Iterable[Run]) -> list[Cell]:
    """Gather the results of runs by data set and method, in the paper's order."""
    runs: dict[tuple[str, str], list[Run]] = {}
    for result in sorted(results, key=lambda result: result.rep):
        runs.setdefault((result.setting, result.method), []).append(result)

    cells = []
    for name, method in product(PAPER_COUNTS, TABLE_METHODS):
        runs_of_cell = runs.get((f"table/{name}", method))
        if runs_of_cell:
            cell = Cell(
                dataset=name,
                method=method,
                n_samples=runs_of_cell[0].n_samples,
                counts=tuple(run.errors for run in runs_of_cell),
                paper=PAPER_COUNTS[name].get(method),
            )
            cells.append(cell)
    return cells


def _rows(cells: list[Cell]) -> list[list[str]]:
    """Return the head and a row for each data set: median (range), the paper's."""
    rows: dict[str, list[str]] = {"": ["data", "n"]}
    for cell in cells:
        if cell.dataset not in rows:
            rows[cell.dataset] = [cell.dataset, str(cell.n_samples)]

        is_first_dataset = len(rows) == 2  # where methods name the columns
        rows[cell.dataset].append(str(cell))
        if is_first_dataset:
            rows[""].append(cell.method)
        if cell.paper is not None:
            rows[cell.dataset].append(str(cell.paper))
            if is_first_dataset:
                rows[""].append("paper")
    return list(rows.values())


def to_markdown(cells: list[Cell]) -> str:
    """Write the table: medians over seeds, ranges in brackets, the paper beside."""
    names, *rows = _rows(cells)
    rule = "|---|" + "---:|" * (len(names) - 1)
    lines = [_markdown_line(names), rule, *map(_markdown_line, rows)]
    return "\n".join(lines) + "\n"


def _markdown_line(row: list[str]) -> str:
    return f"| {' | '.join(row)} |"


def to_latex(cells: list[Cell]) -> str:
    """Write the table for LaTeX with booktabs."""
    head, *rows = [" & ".join(row) + r" \\" for row in _rows(cells)]
    body = "\n".join(rows).replace("-", "--")
    return rf"""\begin{{tabular}}{{l{"r" * head.count("&")}}}
\toprule
{head}
\midrule
{body}
\bottomrule
\end{{tabular}}
"""
