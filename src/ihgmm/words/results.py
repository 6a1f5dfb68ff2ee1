"""What shells and notebooks show of a result, by its type."""

from collections.abc import Callable
from textwrap import fill
from typing import Any

from ihgmm.statistics.contrasts import TopFeatures
from ihgmm.statistics.diagnosis import Caution, Diagnosis
from ihgmm.statistics.scale_heterogeneity import ScaleTest
from ihgmm.statistics.selection import ClusterCount
from ihgmm.statistics.tree import ClusterTree
from ihgmm.words.counts import count_text, tree_text
from ihgmm.words.diagnoses import caution_text, diagnosis_text
from ihgmm.words.phrases import counted, shorten
from ihgmm.words.scales import scale_text


def features_text(top: TopFeatures) -> str:
    """Return what each cluster has more and less of, where that is no chance."""
    is_clear = top.p_values * len(top.names) < 0.05  # also for the largest of them all
    lines = ["What sets clusters apart from all other rows, the clearest first:"]
    for i, cluster in enumerate(top.clusters):
        parts = [
            f"{word} {', '.join(names)}"
            for word, listed in (("more", top.more[i]), ("less", top.less[i]))
            if (names := [shorten(top.names[j]) for j in listed if is_clear[i, j]])
        ]
        text = "; ".join(parts) or "nothing that could not be chance"
        text = f"{cluster} ({counted(int(top.sizes[i]), 'row')}): {text}"
        lines.append(fill(text, 80, initial_indent="  ", subsequent_indent="      "))
    return "\n".join(lines)


_SENTENCES: dict[type, Callable[[Any], str]] = {
    Caution: caution_text,
    ClusterCount: count_text,
    ClusterTree: tree_text,
    Diagnosis: diagnosis_text,
    ScaleTest: scale_text,
    TopFeatures: features_text,
}


def text(result: Any) -> str:
    """Return the sentences of a result."""
    return _SENTENCES[type(result)](result)
