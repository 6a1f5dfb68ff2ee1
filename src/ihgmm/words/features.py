"""What sets clusters apart, in words."""

from __future__ import annotations

from textwrap import fill

from ihgmm.statistics.contrasts import TopFeatures
from ihgmm.words.phrases import counted, shorten


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
