"""What the page says in sentences and figures, in one place."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ihgmm.diagnostics.verdict import counted, percent
from ihgmm.report.facts import Agreement, Facts

METHODS = {
    "IhSC": "Individual-heterogeneity spectral clustering compares rows by {gram}, "
    "takes as many leading eigenvectors of these similarities as there are clusters, "
    "brings their rows to the same length, and groups them. Rows that share a pattern "
    "end up together, whatever their scale.",
    "IhGMM": "A mixture of patterns, each row at its own scale, was fitted by "
    "likelihood. Each row is in the cluster that is most probable for it.",
    "PSC": "Projected spectral clustering projects rows on their leading "
    "directions and groups them by distance. Rows of different scale are different to "
    "this method, even if they share a pattern.",
    "SphericalKMeans": "Spherical k-means groups rows by their cosine with the centre "
    "of a cluster. Rows that share a pattern end up together, whatever their scale.",
}

GRAMS = {
    "hollow": "their inner products, leaving out each row with itself",
    "full": "their inner products",
    "cosine": "their cosines",
    "hetero": "their inner products, each row's own filled in from the others",
}

TONES = {
    "one cluster: nothing to separate": "plain",
    "well separated": "good",
    "separated, a few rows uncertain": "good",
    "at the threshold: expect errors": "fair",
    "no separation: do not trust these labels": "bad",
}
"""What a verdict looks like."""

FOR_STATISTICIANS = ("eigenvalue gap", "separation", "over theory")
"""Figures of a diagnosis that are folded away."""

THEORY = (
    "“Over theory” divides the separation by what a theorem asks for. That is a "
    "sufficient condition, up to constants: above 1, and with features enough, the "
    "theorem promises that all labels are right, if the data follow the model. Below 1 "
    "it promises nothing, and the data decide: labels may be right all the same. The "
    "verdict rests on the expected error, not on this figure."
)

MAPS = {
    "unit rows": "Rows as the method sees them, whatever their scale.",
    "rows of all sizes": "Rows as the method sees them, large ones further out.",
    "cosines": "Rows by their cosines with the centres, whatever their scale.",
    "scale and fit": "With one cluster there is nothing to tell apart: a row lies "
    "further right the larger its scale is, and higher the better it fits the common "
    "pattern.",
}


def story(facts: Facts) -> list[str]:
    """Return what was done, a paragraph each."""
    first = (
        f"{facts.method} sorted {counted(facts.n_samples, 'row')} of "
        f"{counted(len(facts.features), 'feature')} into "
        f"{counted(facts.n_clusters, 'cluster')}"
    )
    how = facts.parameters.get("n_clusters")
    first += ", a number it found by itself." if how == "auto" else "."
    text = METHODS.get(facts.method, "")
    gram = GRAMS.get(str(facts.parameters.get("gram", "hollow")), "")
    paragraphs = [f"{first} {text.format(gram=gram)}".strip()]
    if facts.parameters.get("refine") is True:
        paragraphs.append(
            "Afterwards rows were reassigned to the centres that the other rows give."
        )
    paragraphs.append(
        "A row is modelled as its scale times the centre of its cluster, plus noise. "
        "The mean scale of a cluster is 1: a row of scale 2 shows the pattern twice as "
        "strongly as the average. Clusters are numbered from 0, the largest first."
    )
    if facts.n_zero_rows:
        are = "row is" if facts.n_zero_rows == 1 else "rows are"
        paragraphs.append(
            f"{facts.n_zero_rows:,} {are} zero throughout and show no pattern. They "
            "have scale 0 and are counted in cluster 0."
        )
    empty = int((facts.clusters.sizes == 0).sum())
    if empty:
        paragraphs.append(f"{counted(empty, 'cluster')} ended without rows.")
    return paragraphs


def map_words(facts: Facts) -> str:
    """Return how to read the map."""
    used = np.count_nonzero(facts.clusters.sizes)
    if used == 1:
        return MAPS[facts.basis]
    where = (
        "The horizontal axis runs from one cluster to the other."
        if used == 2
        else "Each cluster has its place; like clusters are neighbours."
    )
    return f"{MAPS[facts.basis]} {where} A row between two clusters resembles both."


def contrast_words(facts: Facts) -> str:
    """Return what the figures of features mean."""
    if facts.has_noise:
        return (
            "how many noise levels a row of scale 1 stands out from rows of the other "
            "clusters that are as large"
        )
    return (
        "how far the pattern of a cluster is from those of the others, all at length 1"
    )


def eigenvalue_words(facts: Facts) -> str:
    """Return what to look for in the eigenvalues."""
    k = facts.n_clusters
    text = "The eigenvalues of the similarities of rows, largest first. "
    if not np.isfinite(facts.scree.values).all():
        return text + "Those of these data are too large for floating-point numbers."
    if k < len(facts.scree.values):
        text += (
            f"{'The first one belongs' if k == 1 else f'The first {k} belong'} to the "
            "clusters, noise begins beyond: the sharper the drop at the dashed line, "
            "the clearer the clusters."
        )
    else:
        text += "There are no more of them than clusters."
    if facts.scree.edge is not None:
        text += " Those above the edge of noise stand out from sign-flipped data."
    return text


def eigenvalue_list(facts: Facts) -> str:
    """Return the eigenvalues for those who cannot see the chart."""
    values = ", ".join(f"{value:.3g}" for value in facts.scree.values[:60])
    return f"Leading eigenvalues, largest first: {values}."


def agreement_words(found: Agreement, n_samples: int) -> str:
    """Return how many rows are not where their known label is."""
    text = (
        f"With each cluster matched to the class that fits best, {found.n_wrong:,} of "
        f"{n_samples:,} rows ({percent(found.n_wrong / n_samples)}) are in another "
        "one. Known labels were not used to find the clusters."
    )
    if found.n_classes > len(found.columns):
        text += (
            f" Of {found.n_classes:,} classes, {len(found.columns)} have a column; the "
            "last one counts the rows of all others."
        )
    return text


def thinning_note(n_kept: int, n_samples: int) -> str:
    """Return what is left out of the picture and the table of rows, if anything."""
    if n_kept == n_samples:
        return ""
    return (
        f"The map and the table of rows hold {n_kept:,} of {n_samples:,} rows, drawn "
        "at random, so that the page stays fast. All other figures are of all rows, "
        "and the model that this page is about has a label for each of them."
    )


def model_call(facts: Facts) -> str:
    """Return the call that makes this model."""

    def text(value: Any) -> str:
        plain = value is None or isinstance(value, bool | int | float | str)
        return repr(value) if plain else f"<{type(value).__name__}>"

    items = (f"{name}={text(value)}" for name, value in facts.parameters.items())
    return f"{facts.method}({', '.join(items)})"


def around_names(text: str) -> list[str]:
    """Return a sentence in pieces, every second one a name as Python quotes it.

    A name that is read from right to left would turn the words around it, unless it
    has a direction of its own. An apostrophe within a word quotes nothing.
    """
    return re.split(r"""(?<!\w)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?!\w)""", text)


def shown(name: str, longest: int = 120) -> str:
    """Return a name, shortened if it is very long."""
    return name if len(name) <= longest else name[: longest - 1] + "…"


def compact(value: float) -> str:
    """Return a number of three digits, with k, M or G for thousands and so on.

    Examples
    --------
    >>> compact(1234567), compact(12), compact(1e-5)
    ('1.23M', '12', '1e-05')
    """
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if unit <= abs(value) < 1e3 * unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def signed(score: float) -> str:
    """Return a score in two digits or few more."""
    size = abs(score)
    if size == np.inf:
        text = "∞"
    elif size >= 9999.5:
        text = compact(size)
    elif size >= 99.5:  # from where two digits are not enough
        text = f"{size:,.0f}"
    else:
        text = f"{size:.{2 if size >= 0.01 else 1}g}"
    return ("+" if score >= 0 else "\N{MINUS SIGN}") + text
