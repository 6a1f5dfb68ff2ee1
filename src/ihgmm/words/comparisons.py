"""Two clusterings side by side in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ihgmm.metrics import ClassAgreement
from ihgmm.policy import Trust
from ihgmm.words.phrases import percent


def class_words(agreement: ClassAgreement, n: int) -> str:
    """Return how many of n rows are in another class than their cluster stands for."""
    rows, share = f"{agreement.misplaced:,} of {n:,} rows", percent(agreement.rate)
    words = f"{rows} differ ({share})"
    if agreement.by_majority:
        words = f"{rows} ({share}) are in another class than most rows of their cluster"
    return f"{words}, adjusted Rand index {agreement.adjusted_rand_index:.2f}"


def agreement_words(rand: float, n_moved: int) -> str:
    """Return how far two clusterings agree, by their adjusted Rand index.

    The steps are those of Steinley (2004), Psychological Methods 9: 0.9, 0.8 and 0.65
    stand for excellent, good and moderate recovery.
    """
    if n_moved == 0:
        return "They are the same clusters"
    steps = {
        0.9: "They are nearly the same clusters",
        0.8: "They agree on most rows",
        0.65: "They agree in part",
        0.1: "They are different clusterings",
    }
    return next(
        (words for least, words in steps.items() if rand >= least),
        "They have almost nothing in common",
    )


def stability_text(
    names: Sequence[str],
    stability: tuple[float, float] | None,
    n_clusters: Sequence[int],
) -> str:
    """Return which of two clusterings of the same data is more stable, if any."""
    if stability is None or np.isnan(stability).any():
        return (
            "It is not known which one is more stable: that takes the data that both "
            "were made from, and enough rows."
        )
    more = int(stability[1] > stability[0])
    figures = [f"{percent(stability[i])} of the labels of {names[i]}" for i in (0, 1)]
    text = (
        f"{figures[more]} stay the same in fits to other rows, against "
        f"{figures[1 - more]}."
    )
    if abs(stability[0] - stability[1]) < Trust.AS_STABLE:
        return f"Both are about equally stable: {text}"
    text = f"On these data {names[more]} is more stable: {text}"
    if n_clusters[more] < n_clusters[1 - more]:
        return (
            f"{text} But it has fewer clusters, and rows are easier to place in few "
            "clusters. To choose the number of clusters, use ihgmm choose-k, or "
            "select_n_clusters in Python."
        )
    return f"{text} Stable labels are right more often, but not always."
