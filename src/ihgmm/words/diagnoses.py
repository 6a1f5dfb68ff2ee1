"""A diagnosis in words: the verdict, what figures mean, and what to look at."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

import numpy as np

from ihgmm.metrics import ClassAgreement
from ihgmm.statistics.diagnosis import Caution, Diagnosis, Verdict
from ihgmm.words.phrases import bullets, counted, page, percent, sentence, table


def diagnosis_text(diagnosis: Diagnosis) -> str:
    """Return the verdict, each figure with its meaning, and the cautions."""
    figures = figure_table(diagnosis)
    wide = max(len(name) for name, _, _ in figures)
    deep = max(len(figure) for _, figure, _ in figures)
    lines = [
        f"{sentence(diagnosis.verdict)}.",
        *(f"  {name:<{wide}}  {fig:>{deep}}  {means}" for name, fig, means in figures),
        *([_OTHER_CLASSES] if has_range(diagnosis) else ()),
        *(
            fill(caution_text(caution), 80, initial_indent="! ", subsequent_indent="  ")
            for caution in diagnosis.cautions
        ),
    ]
    return "\n".join(lines)


def diagnosis_html(diagnosis: Diagnosis) -> str:
    """Return the same for a notebook."""
    figures = table(("", "", ""), figure_table(diagnosis), words=(2,))
    other = [_OTHER_CLASSES] if has_range(diagnosis) else []
    cautions = bullets([*other, *map(caution_text, diagnosis.cautions)])
    return page(f"{sentence(diagnosis.verdict)}.", figures, cautions)


def trust_sentence(diagnosis: Diagnosis) -> str:
    """Return how far labels can be trusted, in two sentences at most."""
    verdict = sentence(diagnosis.verdict)
    if diagnosis.n_clusters == 1 or np.isnan(diagnosis.stability):
        return f"{verdict}."
    stays = f"{verdict}. {percent(diagnosis.stability)} of the labels would stay"
    stays = f"{stays} the same with other rows"
    if not has_range(diagnosis):
        largest = percent(diagnosis.sizes.max() / diagnosis.sizes.sum())
        return f"{stays}; {largest} of the rows are in the largest cluster anyway."
    return (
        f"{stays}; on real data with as much doubt ({percent(diagnosis.doubt)}), "
        f"usually {error_words(diagnosis)} of the labels were wrong."
    )


_OTHER_CLASSES = "Stable clusters need not be the classes that you have in mind."


def has_range(diagnosis: Diagnosis) -> bool:
    """Tell whether real data say how many labels are wrong."""
    hopeless = diagnosis.verdict is Verdict.NO_SEPARATION
    judged = diagnosis.n_clusters > 1 and not np.isnan(diagnosis.stability)
    return judged and not hopeless


def error_words(diagnosis: Diagnosis) -> str:
    """Return the range of the share of labels that may be wrong."""
    low, high = diagnosis.error_range
    if high < 0.01:
        return "less than 1%"
    return f"{100 * low:.0f}% to {100 * high:.0f}%"


def figure_table(diagnosis: Diagnosis) -> list[tuple[str, str, str]]:
    """Return a name, a figure and its meaning for each line of the summary."""
    d = diagnosis
    small, large = int(d.sizes.min()), int(d.sizes.max())
    sizes = counted(large, "row") if small == large else f"{small:,} to {large:,} rows"
    shape = f"{d.n_samples:,} x {d.n_features:,}"
    data = f"rows x features; {counted(d.n_clusters, 'cluster')} of {sizes}"
    left_out = "are outliers and were left out"
    stays = "of labels stay the same in fits to other rows"
    wrong = "of labels were wrong on most real data with as much doubt"
    sure = f"have a label that is less than {d.certain_from:.0%} certain"
    judged = d.n_clusters > 1 and not np.isnan(d.stability)
    few = [str(name) for name in d.classes[np.isnan(d.cluster_stability)]]
    names = ", ".join([*few[:5], *["..."] * (len(few) > 5)])
    other = "is the mean probability of another label in these fits"
    unjudged = f"of the clusters have too few rows to judge: {names}"
    lines = [
        (True, "data", shape, data),
        (d.n_outliers > 0, "outliers", f"{d.n_outliers:,}", left_out),
        (judged, "stability", percent(d.stability), stays),
        (judged, "doubt", percent(d.doubt), other),
        (judged and len(few) > 0, "not judged", f"{len(few):,}", unjudged),
        (has_range(d), "wrong labels", error_words(d), wrong),
        (judged, "uncertain rows", percent(d.uncertain_share), sure),
    ]
    return [line[1:] for line in lines if line[0]]


_CAUTIONS = {
    "OTHER_CLUSTERS": "Fits to halves of the rows agree with each other on "
    "{agreement:.0%} of the rows, but with these labels on {share:.0%} only: the data "
    "show other clusters. {order}IhSC finds them with its default settings.",
    "RULING_COLUMN": "Column {column} holds {percent} of the sum of squares and "
    "decides the clusters. {remedy}",
    "ZERO_ROWS": "{rows} {lack}: {labels}.",
}


def caution_text(
    caution: Caution, names: Sequence[str] | None = None, *, prepared: bool = False
) -> str:
    """Return a caution in a sentence or two, with what to do about it.

    ``names`` are those of the columns, which otherwise go by their number. Whether they
    were ``prepared`` says what is left to do about one of them.
    """
    f = caution.figures
    column = f.get("column")
    if names is not None and isinstance(column, int):
        column = names[column]
    if isinstance(column, str):
        f = f | {"column": repr(column)}
    rows = f.get("rows", 0)
    words = {
        "rows": counted(rows, "row"),
        "lack": "is zero" if rows == 1 else "are zero",
        "labels": "its label means nothing"
        if rows == 1
        else "their labels mean nothing",
        "percent": percent(f.get("share", 0)),
        "remedy": "Leave it out to see what the others show."
        if prepared
        else "Divide the columns by their deviation.",
        "order": "Are rows and labels in the same order? "
        if f.get("by_chance")
        else "",
    }
    if f.get("unobserved"):
        words["lack"] = "has no observed cell" if rows == 1 else "have no observed cell"
        words["lack"] += " but zeros" * (f["unobserved"] < rows)
    return _CAUTIONS[caution.kind.name].format(**{**f, **words})


# What the headings of tables of clusters and of features mean, a line each.
CLUSTER_WORDS = (
    "size: how much a row has of the pattern of its cluster: the root of a sum of",
    "    squares, not the sum of its columns; the median is shown",
    "scales: sizes over their mean in the cluster, for the middle 90% of its rows",
    "certainty: how probable it is that a label is right, judged by other rows",
    "typical: the row of ordinary size whose pattern is nearest to the cluster's",
)


def feature_words(same_size: bool) -> tuple[str, ...]:
    """Return what the words of a table of features mean."""
    others = ["others: the mean of the rows of all other clusters"]
    beside = [
        "    It compares the prepared rows, so its sign can differ from that of the",
        "    difference of the two means.",
    ]
    if same_size:
        beside = []
        others = [
            "others, same size: the mean in the other clusters, if their rows were as",
            "    large as those of this cluster",
        ]
    return (
        "mean: the mean of the feature in the cluster, in the units of the data",
        *others,
        "contrast: how far the cluster is above (+) or below (-) others of its size,",
        "    in noise levels of the feature: how far its cells stray by chance",
        *beside,
    )


def wild_cells_note(n_cells: int, shape: tuple[int, int]) -> str:
    """Return how many cells fit no row."""
    share = percent(n_cells / (shape[0] * shape[1]))
    return (
        f"Treated {counted(n_cells, 'wild cell')} ({share}) as missing: the other "
        "cells of the row and the column do not explain such values."
    )


def outlier_note(n_outliers: int, n_samples: int) -> str:
    """Return how many rows are in no cluster, beside those that are."""
    share = percent(n_outliers / (n_outliers + n_samples))
    return (
        f"Left out {counted(n_outliers, 'row')} ({share}) that "
        f"{'fit' if n_outliers > 1 else 'fits'} no cluster (label -1)."
    )


def class_words(agreement: ClassAgreement, n: int) -> str:
    """Return how many of n rows are in another class than their cluster stands for."""
    rows, share = f"{agreement.misplaced:,} of {n:,} rows", percent(agreement.rate)
    words = f"{rows} differ ({share})"
    if agreement.by_majority:
        words = f"{rows} ({share}) are in another class than most rows of their cluster"
    return f"{words}, adjusted Rand index {agreement.adjusted_rand_index:.2f}"
