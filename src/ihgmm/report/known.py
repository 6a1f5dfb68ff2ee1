"""How clusters and known labels agree."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ihgmm._text import percent
from ihgmm.report.facts import Facts
from ihgmm.report.markup import Element, child, chip, node, shown

__all__ = ["classes_of", "known_part"]

MOST_CLASSES = 60
"""Columns of the table; if there are more classes, the last counts the others."""

MANY_CLASSES = 20
"""With more columns than this, they are set closer."""


def classes_of(known: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Return the classes, numbers in order of size, and the class of each row.

    Examples
    --------
    >>> classes_of(np.array(["10", "9", "b", "a 10", "a 9", "9"], dtype=object))
    (['9', '10', 'a 9', 'a 10', 'b'], array([1, 0, 4, 3, 2, 0]))
    """
    names, codes = np.unique(known.astype(str), return_inverse=True)
    order = sorted(range(len(names)), key=lambda j: _as_read(str(names[j])))
    place = np.empty(len(names), dtype=np.intp)
    place[order] = np.arange(len(names))
    return [str(names[j]) for j in order], place[np.ravel(codes)]


def known_part(facts: Facts) -> list[Element]:
    """Return how clusters and known labels agree; nothing without such labels."""
    if facts.known is None:
        return []
    names, codes = classes_of(facts.known)
    counts = np.zeros((facts.n_clusters, len(names)), dtype=np.intp)
    np.add.at(counts, (facts.labels, codes), 1)
    clusters, partners = linear_sum_assignment(counts, maximize=True)
    n = len(facts.labels)
    wrong = n - int(counts[clusters, partners].sum())
    text = (
        f"With each cluster matched to the class that fits best, {wrong:,} of {n:,} "
        f"rows ({percent(wrong / n)}) are in another one. Known labels were not used "
        "to find the clusters."
    )
    columns, others = _columns(counts, partners)
    if len(others):
        text += (
            f" Of {len(names):,} classes, {len(columns)} have a column; the last one "
            "counts the rows of all others."
        )
    wrap = node(
        "div",
        class_="wide",
        tabindex="0",
        role="region",
        aria_label="Table of known labels",
    )
    wrap.append(_table([names[j] for j in columns], counts, columns, others))
    return [node("p", text), wrap]


def _columns(counts: np.ndarray, partners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes that have a column, and the others.

    First come the partners of the clusters, in the order of these. Then come classes
    without one; if not all find room, the largest.
    """
    alone = np.setdiff1d(np.arange(counts.shape[1]), partners)
    room = counts.shape[1]
    if room > MOST_CLASSES:
        room = MOST_CLASSES - 1  # and one for the others
    free = max(room - len(partners), 0)
    sizes = counts[:, alone].sum(axis=0)
    largest = np.sort(alone[np.argsort(-sizes, kind="stable")[:free]])
    columns = np.concatenate([partners[:room], largest])
    return columns, np.setdiff1d(np.arange(counts.shape[1]), columns)


def _table(
    names: list[str], counts: np.ndarray, columns: np.ndarray, others: np.ndarray
) -> Element:
    table = node("table", class_="known many" if len(names) > MANY_CLASSES else "known")
    child(table, "caption", "Rows of each cluster by known label")
    head = child(child(table, "thead"), "tr")
    child(head, "th", "Cluster", scope="col")
    for name in map(shown, names):
        cell = child(head, "th", scope="col", class_="number")
        child(cell, "bdi", name, title=name)
    if len(others):
        child(head, "th", f"{len(others):,} others", scope="col", class_="number other")
    body = child(table, "tbody")
    for k, line in enumerate(counts):
        row = child(body, "tr")
        child(row, "th", scope="row").append(chip(k))
        for count in line[columns]:
            most = count > 0 and 2 * count >= line.sum()
            child(row, "td", _count(count), class_="number most" if most else "number")
        if len(others):
            child(row, "td", _count(line[others].sum()), class_="number other")
    return table


def _count(count: int) -> str:
    return f"{count:,}" if count else "·"


def _as_read(name: str) -> tuple[Any, ...]:
    """Return a key that sorts numbers by size, before and within texts."""
    try:
        value = float(name)
    except ValueError:
        value = math.nan
    if math.isfinite(value):
        return (0, value, name)
    pieces = re.split("0*([0-9]+)", name)  # texts and numbers in turn
    return (1, [(len(s), s) if i % 2 else s for i, s in enumerate(pieces)], name)
