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
        fewest = min(self.counts)
        most = max(self.counts)
        return middle if fewest == most else f"{middle} ({fewest}-{most})"


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
        has_paper = cell.paper is not None
        rows[cell.dataset] += [str(cell), str(cell.paper)] if has_paper else [str(cell)]
        if len(rows) == 2:  # the first data set: methods name the columns
            rows[""] += [cell.method, "paper"] if has_paper else [cell.method]
    return list(rows.values())


def to_markdown(cells: list[Cell]) -> str:
    """Write the table: medians over seeds, ranges in brackets, the paper beside."""
    head, *rows = ["| " + " | ".join(row) + " |" for row in _rows(cells)]
    rule = "|---|" + "---:|" * (head.count("|") - 2)
    return "\n".join([head, rule, *rows]) + "\n"


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
