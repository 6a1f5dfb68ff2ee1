"""The picture of a result, by its type."""

from ihgmm.plotting._axes import Axes
from ihgmm.plotting.counts import plot_count
from ihgmm.plotting.tree import plot_tree
from ihgmm.statistics.selection import ClusterCount
from ihgmm.statistics.tree import ClusterTree


def plot_result(result: ClusterTree | ClusterCount, ax: Axes | None = None) -> Axes:
    """Draw a tree, or what speaks for each number of clusters."""
    if isinstance(result, ClusterTree):
        return plot_tree(result, ax=ax)
    return plot_count(result, ax=ax)
