"""Two clusterings side by side in words."""

from __future__ import annotations

from collections.abc import Sequence

from ihgmm.words.phrases import chance


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
        "They have nothing to do with each other",
    )


_PREFERENCES = {
    "not_known": "Nothing here says which of them is better: the certainty of rows is "
    "not known for both.",
    "surer": "The data speak for {better}: {few} of its labels are expected to be "
    "wrong, and {more} of those of {other}.",
    "none": "The data prefer neither: {figures}. That is no clear difference.",
    "coarser": "The data do not say which is better: {figures}. But {better} has fewer "
    "clusters, in which it is easier to place rows. To choose between numbers of "
    "clusters, ask ihgmm choose-k, or select_n_clusters in Python.",
}


def preference_text(
    preference: str, names: Sequence[str], errors: Sequence[float], surer: int
) -> str:
    """Return which of two clusterings the data speak for, with the reason.

    ``names`` and ``errors``, the shares of labels expected to be wrong, are those of
    both; ``surer`` is the place of the one with fewer.
    """
    better, other = names[surer], names[1 - surer]
    few, more = chance(errors[surer]), chance(errors[1 - surer])
    figures = (
        f"{few} of the labels of {better} are expected to be wrong, and {more} of "
        f"those of {other}"
    )
    words = {"better": better, "other": other, "few": few, "more": more}
    return _PREFERENCES[preference].format(figures=figures, **words)
