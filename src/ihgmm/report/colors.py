"""A colour for each cluster, on light and on dark ground, as style rules."""

from __future__ import annotations

from ihgmm.plotting._colors import DARK, LIGHT

__all__ = ["GROUND", "cluster_style"]

GROUND = {"light": "#ffffff", "dark": "#16191f"}
"""The ground that charts are drawn on."""


def cluster_style(n_clusters: int) -> str:
    """Return rules that define ``--c0``, ``--c1`` ... in both themes.

    Clusters have the colours of :mod:`ihgmm.plotting`, which come back after fifty.
    """
    rules = {
        theme: "".join(f"--c{i}:{named[i % len(named)]};" for i in range(n_clusters))
        for theme, named in (("light", LIGHT), ("dark", DARK))
    }
    marks = "".join(f".c{i}{{--c:var(--c{i})}}" for i in range(n_clusters))
    return (
        f":root{{{rules['light']}}}\n"
        "@media screen and (prefers-color-scheme:dark)"
        f"{{:root:not([data-theme=light]){{{rules['dark']}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{{rules['dark']}}}}}\n{marks}\n"
    )
