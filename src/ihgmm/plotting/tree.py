"""A tree of clusters, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ihgmm.plotting._axes import color, font_size, given_or_new, ink, quiet
from ihgmm.plotting.eigenvalues import plot_scree
from ihgmm.statistics.selection import ClusterCount
from ihgmm.statistics.tree import ClusterTree
from ihgmm.words.counts import count_headline
from ihgmm.words.phrases import listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_tree(source: ClusterTree | ClusterCount, *, ax: Axes | None = None) -> Axes:
    """Draw clusters that merge step by step, and the levels at which they are stable.

    How to read it: :doc:`/pictures`.

    Parameters
    ----------
    source : ClusterTree or ClusterCount
        What :func:`ihgmm.cluster_tree` or :func:`ihgmm.select_n_clusters` returned.
    ax : matplotlib axes, optional
        Where to draw.

    Examples
    --------
    >>> from ihgmm import cluster_tree, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> plot_tree(cluster_tree(X, random_state=0)).get_title()
    'stable at 3 clusters'
    """
    tree = source.tree if isinstance(source, ClusterCount) else source
    if tree is None:
        raise ValueError("This count has no tree: there were too few rows.")
    ax = given_or_new(ax, (6.0, 4.0))
    order, brackets = tree.drawn()
    # A model's own clusters are named, and else those of the last level.
    level = tree.n_leaves if tree.of_model else max(tree.levels, default=1)
    numbers, costs = tree.numbers(level), tree.costs
    ax.set_yscale("log")
    base = 0.6 * float(costs.min(initial=1.0))
    for bracket in brackets:
        stroke = ink(ax)
        if bracket.n_clusters > level > 1:  # within a cluster of the last level
            stroke = color(int(numbers[bracket.leaf]), ax)
        (x, low), (other, other_low) = bracket.left, bracket.right
        corners = [max(low, base), *2 * [bracket.height], max(other_low, base)]
        ax.plot([x, x, other, other], corners, color=stroke, lw=1.4)
    sizes = np.bincount(tree.labels(level)[tree.leaves >= 0], minlength=level)
    middles = [float(np.flatnonzero(numbers[order] == c).mean()) for c in range(level)]
    size, wide = font_size(ax), ax.get_window_extent().width
    # Beside the tree is room for the names of its levels.
    label = 0.55 * size * len(f"{level:,} clusters")
    right = len(order) * wide / max(wide - label * bool(tree.levels), 1) - 0.5
    closest = np.diff(np.sort(middles)).min(initial=len(order)) * wide / (right + 0.5)
    roomy = 0.65 * size * len(f"{sizes.max():,}") < closest
    names = [f"{c}\n{sizes[c]:,}" if roomy else f"{c}" for c in range(level)]
    ax.set_xticks(middles, names)
    ax.set_xlabel("cluster" + (" and its rows" if roomy else ""))
    heights = np.maximum.accumulate(costs[::-1])[::-1]
    for k in tree.levels:
        # Between the merger that ends so many clusters and the one that makes them.
        below = heights[k - 1] if k - 1 < len(heights) else base
        place = float(np.sqrt(heights[k - 2] * below))
        ends = (-0.5, len(order) - 0.5)
        ax.plot(ends, (place, place), color=color(1, ax), ls="--", lw=1.2)
        ax.text(
            right, place, f"{k} clusters", ha="right", va="center", fontsize="small"
        )
    top = float(heights[0]) if len(heights) else 1.0
    ax.set(xlim=(-0.5, right), ylim=(base, 1.3 * top))
    ax.set_ylabel("cost of merging, per row")
    if isinstance(source, ClusterCount):
        confidence = f" (confidence {source.confidence.value})"
        ax.set_title(count_headline(source) + confidence)
    elif tree.of_model and not tree.levels:
        ax.set_title("no smaller number of clusters stands out")
    else:
        levels = listed([f"{k}" for k in tree.levels] or ["any number of"], "and")
        stable = "stable" if tree.levels else "not stable"
        ax.set_title(f"{stable} at {levels} clusters")
    return quiet(ax)


def plot_result(result: ClusterTree | ClusterCount, ax: Axes | None = None) -> Axes:
    """Draw a tree; of a count, in a new figure, with its eigenvalues beside it."""
    if isinstance(result, ClusterTree):
        return plot_tree(result, ax=ax)
    if result.tree is None or not result.tree.splits:
        return plot_scree(result, ax=ax)
    if ax is None:
        ax = given_or_new(None, (10.0, 4.0), 1, 2, 1)
        plot_scree(result, ax=ax.figure.add_subplot(1, 2, 2))
    return plot_tree(result, ax=ax)
