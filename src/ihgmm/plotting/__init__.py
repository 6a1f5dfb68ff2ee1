"""Pictures of a clustering. They need matplotlib, the extra ``plot``.

Every function draws on the axes ``ax``, or in a new figure, and returns the axes.
:doc:`/pictures` says how to read them.
"""

from ihgmm.plotting.clusters import (
    plot_confidence,
    plot_confusion,
    plot_scales,
    plot_top_features,
)
from ihgmm.plotting.counts import plot_count, plot_scree
from ihgmm.plotting.embedding import plot_embedding
from ihgmm.plotting.tree import plot_tree

__all__ = [
    "plot_confidence",
    "plot_confusion",
    "plot_count",
    "plot_embedding",
    "plot_scales",
    "plot_scree",
    "plot_top_features",
    "plot_tree",
]
