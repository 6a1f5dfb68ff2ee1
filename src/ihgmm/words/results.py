"""What shells and notebooks show of a result, by its type."""

from collections.abc import Callable
from textwrap import fill
from typing import Any

import numpy as np

from ihgmm.policy import Contrasts, Scales
from ihgmm.statistics.contrasts import TopFeatures
from ihgmm.statistics.diagnosis import Caution, Diagnosis
from ihgmm.statistics.scale_heterogeneity import ScaleTest
from ihgmm.statistics.selection import ClusterCount
from ihgmm.statistics.tree import ClusterTree
from ihgmm.words.counts import count_text, tree_text
from ihgmm.words.diagnoses import caution_text, diagnosis_text
from ihgmm.words.phrases import counted, shorten


def features_text(top: TopFeatures) -> str:
    """Return what each cluster has more of, what may be chance, and what it lacks."""
    rest = "other rows of the same size" if top.same_size else "all other rows"
    lines, scores = [f"What clusters have more and less of than {rest}:"], top.scores
    for i, cluster in enumerate(top.clusters):
        clear, more = top.is_clear[i], top.more[i]
        lists = {"more": [j for j in more if clear[j]]}
        lists["perhaps more"] = [j for j in more if not clear[j] and scores[i, j] > 0]
        lists["less"] = [j for j in top.less[i] if clear[j]]
        if any([*lists.values()][:2]):
            # That a rare word is not there tells little: most other rows lack it, too.
            most = min(top.contrasts[i, more].max(), Contrasts.MOST)
            weak = max(most / 4, Contrasts.RARE * top.has_noise)
            strong = [j for j in lists["less"] if top.contrasts[i, j] < -weak]
            lists["less"] = strong[: max(len(more) // 2, 2)]
        parts = [
            f"{word} {', '.join(shorten(top.names[j]) for j in listed)}"
            for word, listed in lists.items()
            if listed
        ]
        text = "; ".join(parts) or "nothing that could not be chance"
        text = f"{cluster} ({counted(int(top.sizes[i]), 'row')}): {text}"
        lines.append(fill(text, 80, initial_indent="  ", subsequent_indent="      "))
    return "\n".join(lines)


def recommendation(test: ScaleTest) -> str:
    """Return which mixture to use, with the figures behind it."""
    spread, most, unknown = test.spread, test.spread_interval[1], np.isnan(test.spread)
    p = "p < 0.0001" if test.p_value < 1e-4 else f"p = {test.p_value:.2g}"
    if np.isnan(test.p_value):
        return "no recommendation: no cluster has 4 different rows to compare."
    if test.p_value >= Scales.LEVEL:
        none = f"there is no sign of individual scales ({p})"
        if unknown or most >= Scales.WEAK_SPREAD:
            return (
                f"no recommendation: {none}, but the signal is too weak, or there are "
                "too few rows or features, to be sure."
            )
        return f"classical mixture: {none}, and their spread is at most {most:.1%}."
    differ = "rows of a cluster differ in scale"
    if unknown:
        return f"Ih-GMM: {differ} ({p}); the signal is too weak to say by how much."
    if spread < Scales.SLIGHT_SPREAD:
        return f"classical mixture: {differ} ({p}), but only by about {spread:.1%}."
    at = int(np.nan_to_num(test.spreads).argmax())
    if test.spreads[at] > Scales.UNLIKE * spread:
        differ += f" ({test.spreads[at]:.0%} in cluster {test.clusters[at]})"
    return f"Ih-GMM: {differ} by about {spread:.0%} ({p})."


def scale_text(test: ScaleTest) -> str:
    """Return the figures of each cluster in a table, and the recommendation."""
    rows = [*zip(test.clusters, test.sizes, test.spreads, test.p_values, strict=True)]
    rows.append(("all", test.sizes.sum(), test.spread, test.p_value))
    width = max(len(str(name)) for name in (*test.clusters, "cluster"))
    lines = [f"{'cluster':<{width}}     rows  spread  p-value"]
    for name, size, spread, p in rows:
        shown = "-" if np.isnan(spread) else f"{spread:.1%}"
        # A smaller one says no more: it depends on the last digits of the data.
        p_value = "-" if np.isnan(p) else "<1e-16" if p < 1e-16 else f"{p:.2g}"
        lines.append(f"{name!s:<{width}}  {int(size):>7}  {shown:>6}  {p_value:>7}")
    lines.append(recommendation(test))
    n_tested = np.count_nonzero(~np.isnan(test.p_values))
    if n_tested == 1:
        lines.append(
            "This assumes that entries of the noise are independent; one cluster alone "
            "cannot show whether they are."
        )
    elif n_tested:
        lines.append("This assumes that noise is correlated alike in all clusters.")
    return "\n".join(lines)


SENTENCES: dict[type, Callable[[Any], str]] = {
    Caution: caution_text,
    ClusterCount: count_text,
    ClusterTree: tree_text,
    Diagnosis: diagnosis_text,
    ScaleTest: scale_text,
    TopFeatures: features_text,
}
