"""The paper's table of real data: errors counted beside the paper's own."""

from __future__ import annotations

import csv
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path
from statistics import median

from ihgmm._files import atomic_write, sole_writer
from ihgmm.datasets import load_dataset
from ihgmm.datasets._catalog import CATALOG
from ihgmm.matrix.threads import one_thread
from ihgmm.metrics import misclassification_loss
from ihgmm.paper.methods import TABLE_METHODS
from ihgmm.paper.runner import read_rows

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
Counts = dict[tuple[str, str, int], int]  # wrong rows by data set, method and seed


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

    def __str__(self) -> str:
        low, high = min(self.counts), max(self.counts)
        return f"{self.median:g}" + ("" if low == high else f" ({low}-{high})")


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

    Examples
    --------
    >>> from ihgmm.paper.table import real_data_table
    >>> cells = real_data_table(seeds=1, only=["iris"])
    >>> [(cell.method, cell.median) for cell in cells][:1]
    [('IhSC', 10)]
    """
    report = progress or (lambda done, wanted: None)
    names = list(PAPER_COUNTS) if only is None else only
    # All data first: what is missing is better known before an hour than after.
    data = {name: load_dataset(name, data_home=data_home) for name in names}
    wanted = list(product(names, TABLE_METHODS, range(seeds)))
    with nullcontext() if path is None else sole_writer(path):
        counts = {} if path is None else _read(path)
        missing = [key for key in wanted if key not in counts]
        for done, key in enumerate(missing, len(wanted) - len(missing)):
            report(done, len(wanted))
            name, method, seed = key
            X, target = data[name].X, data[name].target
            with one_thread():
                labels = TABLE_METHODS[method](X, len(set(target)), seed)
            counts[key] = misclassification_loss(target, labels)
            if path is not None:
                _write(path, counts)
    report(len(wanted), len(wanted))
    return _cells(counts)


def _sorted(counts: Counts) -> list[tuple[str, str, int]]:
    """Return the keys of counts in the order of the paper, seed by seed."""
    places = list(product(PAPER_COUNTS, TABLE_METHODS))
    known = [key for key in counts if key[:2] in places]
    return sorted(known, key=lambda key: (places.index(key[:2]), key[2]))


def _cells(counts: Counts) -> list[Cell]:
    """Gather counts by data set and method."""
    cells = []
    for (name, method), keys in groupby(_sorted(counts), key=lambda key: key[:2]):
        n, paper = sum(CATALOG[name].counts), PAPER_COUNTS[name].get(method)
        errors = tuple(counts[key] for key in keys)
        cells.append(Cell(name, method, n, errors, paper))
    return cells


def _read(path: Path) -> Counts:
    """Return the counts of a file that an earlier run has left, if there is one."""
    rows = read_rows(path, COLUMNS, "counts")
    return {(name, m, int(seed)): int(errors) for name, _, m, seed, errors, _ in rows}


def _write(path: Path, counts: Counts) -> None:
    """Write one line for each data set, method and seed."""
    with atomic_write(path, "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name, method, seed in _sorted(counts):
            n, paper = sum(CATALOG[name].counts), PAPER_COUNTS[name].get(method)
            writer.writerow([name, n, method, seed, counts[name, method, seed], paper])


def _rows(cells: list[Cell]) -> list[list[str]]:
    """Return the head and a row for each data set: median (range), the paper's count.

    What an interrupted run has not counted yet is left empty.
    """
    table = {(c.dataset, c.method): c for c in cells}
    methods = {c.method: c.paper is not None for c in cells}
    rows = [["data", "n"]]
    for method, in_paper in methods.items():
        rows[0] += [method, "paper"] if in_paper else [method]
    for name, n in dict.fromkeys((c.dataset, c.n_samples) for c in cells):
        rows.append([name, str(n)])
        for method, in_paper in methods.items():
            rows[-1].append(str(table.get((name, method), "")))
            if in_paper:
                rows[-1].append(str(PAPER_COUNTS[name][method]))
    return rows


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
