"""What the page says in sentences."""

from __future__ import annotations

from typing import Any

from ihgmm._text import counted
from ihgmm.report.facts import Facts

__all__ = ["THEORY", "parameter_words", "story", "thinning_note"]

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


THEORY = (
    "“Over theory” divides the separation by what a theorem asks for. That is a "
    "sufficient condition, up to constants: above 1, and with features enough, the "
    "theorem promises that all labels are right, if the data follow the model. Below 1 "
    "it promises nothing, and the data decide: labels may be right all the same. The "
    "verdict rests on the expected error, not on this figure."
)


def story(facts: Facts) -> list[str]:
    """Return what was done, a paragraph each."""
    n, p, k = len(facts.labels), len(facts.features), facts.n_clusters
    first = (
        f"{facts.method} sorted {counted(n, 'row')} of {counted(p, 'feature')} into "
        f"{counted(k, 'cluster')}"
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
    if facts.zero_rows:
        are = "row is" if facts.zero_rows == 1 else "rows are"
        paragraphs.append(
            f"{facts.zero_rows:,} {are} zero throughout and show no pattern. They have "
            "scale 0 and are counted in cluster 0."
        )
    empty = int((facts.sizes == 0).sum())
    if empty:
        paragraphs.append(f"{counted(empty, 'cluster')} ended without rows.")
    return paragraphs


def parameter_words(facts: Facts) -> str:
    """Return the call that gives this model again."""
    items = ", ".join(f"{name}={_value(v)}" for name, v in facts.parameters.items())
    return f"{facts.method}({items})"


def thinning_note(n_kept: int, n_samples: int) -> str:
    """Return what is left out of the picture and the table of rows, if anything."""
    if n_kept == n_samples:
        return ""
    return (
        f"The map and the table of rows hold {n_kept:,} of {n_samples:,} rows, drawn "
        "at random, so that the page stays fast. All other figures are of all rows, "
        "and the model that this page is about has a label for each of them."
    )


def _value(value: Any) -> str:
    plain = value is None or isinstance(value, bool | int | float | str)
    return repr(value) if plain else f"<{type(value).__name__}>"
