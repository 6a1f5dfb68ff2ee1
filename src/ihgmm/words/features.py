"""What clusters have more and less of than others, in words."""

from textwrap import fill

import numpy as np

from ihgmm._display import describe
from ihgmm.policy import Contrasts
from ihgmm.statistics.contrasts import TopFeatures
from ihgmm.words.phrases import counted, figure, shorten


@describe.register
def features_text(top: TopFeatures) -> str:
    """Return what each cluster has more of, what may be chance, and what it lacks."""
    comparison = "other rows of the same size" if top.same_size else "all other rows"
    lines = [f"What clusters have more and less of than {comparison}:"]
    for i, cluster in enumerate(top.clusters):
        rows = counted(int(top.sizes[i]), "row")
        text = f"{cluster} ({rows}): {_features_of_cluster(top, i)}"
        lines.append(fill(text, 80, initial_indent="  ", subsequent_indent="      "))

    return "\n".join(lines)


def _features_of_cluster(top: TopFeatures, i: int) -> str:
    """Return the features that set the cluster at position i apart."""
    is_clear = top.is_clear[i]
    scores = top.scores[i]
    candidates = top.more[i]

    clearly_more = [j for j in candidates if is_clear[j]]
    perhaps_more = [j for j in candidates if not is_clear[j] and scores[j] > 0]
    clearly_less = [j for j in top.less[i] if is_clear[j]]
    if clearly_more or perhaps_more:
        clearly_less = _telling_lacks(top, i, clearly_less)

    columns_by_heading = {
        "more": clearly_more,
        "perhaps more": perhaps_more,
        "less": clearly_less,
    }
    parts = []
    for heading, columns in columns_by_heading.items():
        if columns:
            names = ", ".join(shorten(top.names[j]) for j in columns)
            parts.append(f"{heading} {names}")

    return "; ".join(parts) or "nothing that could not be chance"


def _telling_lacks(
    top: TopFeatures, i: int, columns: list[np.integer]
) -> list[np.integer]:
    """Return the columns that the cluster at position i lacks, if worth a word.

    That a rare word is not there tells little: most other rows lack it, too.
    """
    candidates = top.more[i]
    largest_contrast = min(top.contrasts[i, candidates].max(), Contrasts.MOST)
    weak = max(largest_contrast / 4, Contrasts.RARE * top.has_noise)

    telling = [j for j in columns if top.contrasts[i, j] < -weak]
    return telling[: max(len(candidates) // 2, 2)]


def contrast_text(contrast: float) -> str:
    """Return a contrast; beyond 20 noise is next to nothing, such as in constants."""
    sign = "+" if contrast >= 0 else "-"
    if abs(contrast) > Contrasts.MOST:
        direction = "over" if contrast > 0 else "below"
        return f"{direction} {sign}{Contrasts.MOST:g}"
    return sign + figure(abs(contrast), 2)


def feature_words(same_size: bool) -> tuple[str, ...]:
    """Return what the headings of a table of features mean, a line each."""
    other_means: tuple[str, ...]
    if same_size:
        other_means = (
            "others, same size: the mean in the other clusters, if their rows were",
            "    as large as those of this cluster",
        )
    else:
        other_means = ("others: the mean of the rows of all other clusters",)

    return (
        "mean: the mean of the feature in the cluster, in the units of the data",
        *other_means,
        "contrast: how far the one is above (+) or below (-) the other, in noise",
        "    levels: how far cells stray by chance; what is above comes first;",
        f"    over {Contrasts.MOST:g} noise is next to nothing: such columns decide",
    )
