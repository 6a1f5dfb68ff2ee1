"""A figure for every row, sorted within each cluster, clusters side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from ihgmm.plotting._colors import color
from ihgmm.plotting._fitted import Clusters
from ihgmm.plotting._frame import cluster_ticks, ink, quiet

__all__ = ["draw_profiles"]

MOST_STEPS = 400
"""Steps a cluster is drawn with; a larger one by so many of its sorted values."""


def draw_profiles(ax: Any, values: np.ndarray, clusters: Clusters) -> None:
    """Draw one figure for each row, the largest first, a column for each cluster.

    All columns are equally wide, so that small clusters can be seen; across a column
    goes the share of its rows. NaN is left out.
    """
    for k, rows in enumerate(clusters.rows()):
        one = values[rows]
        one = -np.sort(-one[~np.isnan(one)])
        if len(one) == 0:
            continue
        if len(one) > MOST_STEPS:
            one = one[np.linspace(0, len(one) - 1, MOST_STEPS).round().astype(int)]
        edges = np.linspace(k - 0.42, k + 0.42, len(one) + 1)
        ax.stairs(one, edges, fill=True, color=color(k, ax), alpha=0.55, lw=0)
        ax.stairs(one, edges, baseline=None, color=color(k, ax), lw=1.2)
    ax.axhline(0, color=ink(ax), lw=0.8)
    ax.set_xlim(-0.6, len(clusters.names) - 0.4)
    cluster_ticks(ax, clusters.names)
    quiet(ax)
