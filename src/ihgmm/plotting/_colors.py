"""How clusters are told apart: by colour, marker and number, and how rows are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from ihgmm.plotting._fitted import Clusters
from ihgmm.plotting._palette import DARK, LIGHT, luminance

__all__ = [
    "MARKERS",
    "color",
    "halo",
    "marker",
    "point_size",
    "shown_note",
    "thin",
]

MARKERS = ("o", "s", "^", "D", "v", "<", ">")
"""Seven of them: with fifty colours, a cluster's colour and marker are its own up to
350 clusters, and in grey print the marker is left."""

MOST_POINTS = 20_000
"""Rows that are drawn, one point each; of more, a random share of each cluster."""

FEWEST = 30
"""Rows of each cluster that are drawn in any case, if it has as many."""


def color(cluster: int, ax: Any) -> str:
    """Return the colour of a cluster on the ground of the axes, as in the report."""
    named = DARK if luminance(_ground(ax)) < 0.18 else LIGHT
    return named[cluster % len(named)]


def _ground(ax: Any) -> str:
    """Return what is behind the axes; white where nothing is painted."""
    from matplotlib.colors import to_hex

    for face in (ax.get_facecolor(), ax.figure.get_facecolor()):
        if face[3] > 0:
            return str(to_hex(face))
    return "#ffffff"


def marker(cluster: int) -> str:
    """Return the marker of a cluster; they come back after seven."""
    return MARKERS[cluster % len(MARKERS)]


def thin(clusters: Clusters, most: int = MOST_POINTS) -> list[np.ndarray]:
    """Return the rows of each cluster that are drawn, always the same ones."""
    rows = clusters.rows()
    total = len(clusters.codes)
    if total <= most:
        return rows
    rng = np.random.default_rng(0)
    kept = []
    for one in rows:
        count = min(len(one), max(FEWEST, round(len(one) * most / total)))
        kept.append(np.sort(rng.choice(one, count, replace=False, shuffle=False)))
    return kept


def shown_note(kept: list[np.ndarray], total: int) -> str:
    """Return how many rows are drawn, where they are not all."""
    shown = sum(len(rows) for rows in kept)
    return "" if shown == total else f"{shown:,} of {total:,} rows shown"


def point_size(n_points: int) -> float:
    """Return the area of a marker: smaller where there are many."""
    return float(np.clip(6000 / max(n_points, 1), 2.5, 26.0))


def halo(ax: Any) -> Any:
    """Return an outline in the background's colour, which sets text off from points."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.5, foreground=ax.get_facecolor())]
