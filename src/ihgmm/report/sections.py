"""The parts of the page that are written out: words, figures, tables, charts."""

from __future__ import annotations

import numpy as np

from ihgmm._text import figure_table, percent
from ihgmm.report.charts import ScaleAxis, bar, compact, scree
from ihgmm.report.facts import Facts
from ihgmm.report.markup import Element, child, chip, isolated, node, shown
from ihgmm.report.words import THEORY, parameter_words, story
from ihgmm.statistics.diagnosis import Diagnosis

__all__ = [
    "cluster_table",
    "diagnosis_part",
    "done_part",
    "eigenvalue_part",
    "feature_cards",
    "method_part",
]

MANY_CLUSTERS, FEWER_FEATURES = 12, 4
"""With more clusters than this, fewer features of each are shown."""

FOR_EXPERTS = ("eigenvalue gap", "separation", "over theory")
"""Figures of a diagnosis that are folded away."""

MINUS = "\N{MINUS SIGN}"

TONES = {
    "well": "good",
    "separated": "good",
    "at": "fair",
    "no": "bad",
    "one": "plain",
}
"""What the verdict looks like, by its first word."""


def done_part(facts: Facts) -> list[Element]:
    """Return what was done, in paragraphs, and what was done to the data before."""
    parts = [node("p", text) for text in story(facts)]
    if facts.notes:
        notes = node("ul", class_="notes")
        for text in facts.notes:
            notes.append(isolated("li", text, dir="auto"))
        parts += [node("h3", "The data"), notes]
    return parts


def diagnosis_part(facts: Facts) -> list[Element]:
    """Return the verdict, its figures with their meaning, and what to look at."""
    found = facts.diagnosis
    tone = TONES[found.verdict.replace(",", " ").split()[0]]
    words = f"{found.verdict[0].upper()}{found.verdict[1:]}."
    table = figure_table(found)
    parts = [
        node("p", words, class_=f"verdict {tone}"),
        _figures([line for line in table if line[0] not in FOR_EXPERTS]),
    ]
    folded = [line for line in table if line[0] in FOR_EXPERTS]
    if folded:
        more = node("details", class_="more")
        child(more, "summary", "For statisticians")
        more.append(_figures(folded))
        if found.n_clusters > 1:
            child(more, "p", THEORY)
        parts.append(more)
    if found.warnings:
        notes = node("ul", class_="cautions")
        for text in found.warnings:
            child(notes, "li", text)
        parts += [node("h3", "To look at"), notes]
    return parts


def _figures(table: list[tuple[str, str, str]]) -> Element:
    """Return figures with their names and meanings."""
    figures = node("dl", class_="figures")
    for name, figure, meaning in table:
        group = child(figures, "div")
        child(group, "dt", name[0].upper() + name[1:])
        child(group, "dd", figure.replace("inf", "∞"), class_="figure")
        child(group, "dd", meaning, class_="meaning")
    return figures


def cluster_table(facts: Facts) -> Element:
    """Return sizes, confidence and scales of the clusters as a table."""
    axis = ScaleAxis(facts.scales)
    table = node("table", class_="clusters")
    child(table, "caption", "Size, confidence and scales of each cluster")
    head = child(child(table, "thead"), "tr")
    for name, kind in (("Cluster", ""), ("Rows", "number"), ("Share", "share")):
        child(head, "th", name, scope="col", class_=kind)
    child(head, "th", "Sure rows", scope="col", class_="number sure")
    child(head, "th", "Median scale", scope="col", class_="number")
    child(head, "th", "5% to 95%", scope="col", class_="number range")
    last = child(head, "th", "Scales", scope="col", class_="scales")
    last.append(axis.header())
    body = child(table, "tbody")
    sizes = facts.sizes
    for k in range(facts.n_clusters):
        mine = facts.labels == k
        _cluster_row(body, k, facts, mine, float(sizes[k] / sizes.max()), axis)
    return table


def _cluster_row(
    body: Element,
    k: int,
    facts: Facts,
    mine: np.ndarray,
    length: float,
    axis: ScaleAxis,
) -> None:
    scales, n = facts.scales[mine], int(mine.sum())
    row = child(body, "tr")
    name = child(row, "th", scope="row")
    name.append(chip(k))
    child(row, "td", f"{n:,}", class_="number")
    share = child(row, "td", class_="share")
    child(share, "span", percent(n / len(mine)))
    share.append(bar(length, k))
    if n == 0:
        for kind in ("number sure", "number", "number range", "scales"):
            child(row, "td", "-", class_=kind)
        return
    low, middle, high = np.quantile(scales, [0.05, 0.5, 0.95])
    sure = float((facts.certainty[mine] >= Diagnosis.certain_from).mean())
    child(row, "td", percent(sure), class_="number sure")
    child(row, "td", f"{middle:.2f}", class_="number")
    child(row, "td", f"{low:.2f} to {high:.2f}", class_="number range")
    child(row, "td", class_="scales").append(axis.spread(scales, k))


def feature_cards(facts: Facts) -> list[Element]:
    """Return the most telling features of each cluster, a card each."""
    found = facts.telling
    count = found.features.shape[1]
    if facts.n_clusters > MANY_CLUSTERS:
        count = min(count, FEWER_FEATURES)
    finite = np.abs(found.scores[np.isfinite(found.scores)])
    longest = float(finite.max(initial=0.0)) or 1.0
    cards = []
    for k in np.flatnonzero(facts.sizes):
        card = node("article", class_="card")
        child(card, "h3").append(chip(int(k), f"Cluster {k}"))
        rows = child(card, "ol")
        for feature, score in zip(
            found.features[k, :count], found.scores[k, :count], strict=True
        ):
            item = child(rows, "li")
            name = shown(facts.features[feature])
            child(item, "bdi", name, class_="name", title=name)
            item.append(_diverging(float(np.clip(score / longest, -1, 1)), int(k)))
            child(item, "span", _signed(float(score)), class_="number")
        cards.append(card)
    return cards


def _diverging(share: float, k: int) -> Element:
    svg = node(
        "svg",
        class_=f"diverging c{k}",
        viewBox="-50 0 100 10",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
    child(svg, "line", class_="grid", x1=0, x2=0, y1=0, y2=10)
    wide = max(abs(share) * 49, 0.5)
    child(
        svg,
        "rect",
        class_="fill" if share >= 0 else "fill less",
        x=0 if share >= 0 else -wide,
        y=2,
        width=wide,
        height=6,
    )
    return svg


def _signed(score: float) -> str:
    size = abs(score)
    if size == np.inf:
        text = "∞"
    elif size >= 9999.5:
        text = compact(size)
    elif size >= 99.5:  # from where two digits are not enough
        text = f"{size:,.0f}"
    else:
        text = f"{size:.{2 if size >= 0.01 else 1}g}"
    return ("+" if score >= 0 else MINUS) + text


def eigenvalue_part(facts: Facts) -> list[Element]:
    """Return the chart of the eigenvalues and what to look for in it."""
    k, values = facts.n_clusters, facts.eigenvalues
    text = "The eigenvalues of the similarities of rows, largest first. "
    if k < len(values):
        text += (
            f"{'The first one belongs' if k == 1 else f'The first {k} belong'} to the "
            "clusters, noise begins beyond: the sharper the drop at the dashed line, "
            "the clearer the clusters."
        )
    else:
        text += "There are no more of them than clusters."
    if facts.edge is not None:
        text += " Those above the edge of noise stand out from sign-flipped data."
    return [node("p", text), scree(facts)]


def method_part(facts: Facts, version: str) -> list[Element]:
    """Return the call and the version that made the clusters."""
    code = node("pre")
    child(code, "code", parameter_words(facts))
    return [node("p", f"ihgmm {version}, with the model"), code]
