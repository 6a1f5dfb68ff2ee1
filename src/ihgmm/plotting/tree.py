"""A tree of clusters, drawn."""

from collections.abc import Sequence

import numpy as np

from ihgmm.plotting import _axes as draw
from ihgmm.plotting._axes import Axes
from ihgmm.statistics.tree import Bracket, ClusterTree
from ihgmm.words.counts import tree_headline


def plot_tree(tree: ClusterTree, *, ax: Axes | None = None) -> Axes:
    """Draw clusters that merge step by step, and the levels at which they are stable.

    Parameters
    ----------
    tree : ClusterTree
        What :func:`ihgmm.cluster_tree` returned.
    ax : matplotlib axes, optional
        Where to draw.

    Examples
    --------
    >>> from ihgmm import cluster_tree, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> plot_tree(cluster_tree(X, random_state=0)).get_title()
    'the tree is stable at 3 clusters'
    """
    if not isinstance(tree, ClusterTree):
        raise TypeError(
            f"plot_tree draws a tree, not a {type(tree).__name__}; give "
            "cluster_tree(X) or cluster_tree(model)."
        )
    ax = draw.given_or_new(ax, (6.0, 4.0))
    order, brackets = tree.drawn()
    # How many clusters are named and coloured: those of the model, or of the level with
    # most clusters.
    n_named = tree.n_leaves if tree.of_model else max(tree.levels, default=1)

    lowest_cost = float(tree.costs.min()) if len(tree.costs) else 1.0
    base = 0.6 * lowest_cost
    _draw_brackets(ax, tree, brackets, n_named, base)

    right_edge = _name_clusters(ax, tree, order, n_named)
    ends = (-0.5, len(order) - 0.5)
    for n_clusters, height in level_heights(tree, base):
        ax.plot(ends, (height, height), color=draw.color(1, ax), ls="--", lw=1.2)
        ax.text(
            right_edge,
            height,
            f"{n_clusters} clusters",
            ha="right",
            va="center",
            size="small",
        )

    highest_cost = brackets[-1].height if brackets else 1.0
    top = 1.3 * highest_cost
    ax.set(xlim=(-0.5, right_edge), ylim=(base, top))
    ax.set_ylabel("cost of merging, per row")
    draw.plain_log_axis(ax)

    draw.wrap_title(ax, tree_headline(tree))
    return draw.quiet(ax)


def _draw_brackets(
    ax: Axes, tree: ClusterTree, brackets: Sequence[Bracket], n_named: int, base: float
) -> None:
    """Draw each merger as a bracket, whose height is its cost."""
    cluster_of_leaf = tree.numbers(n_named)
    for bracket in brackets:
        stroke = draw.ink(ax)
        if bracket.n_clusters > n_named > 1:  # within one of the named clusters
            cluster = int(cluster_of_leaf[bracket.leaf])
            stroke = draw.color(cluster, ax)

        first_place, first_height = bracket.left
        last_place, last_height = bracket.right
        places = [first_place, first_place, last_place, last_place]
        heights = [
            max(first_height, base),
            bracket.height,
            bracket.height,
            max(last_height, base),
        ]
        ax.plot(places, heights, color=stroke, lw=1.4)


def _name_clusters(
    ax: Axes, tree: ClusterTree, order: np.ndarray, n_named: int
) -> float:
    """Write numbers of clusters below the tree; return the right end of the axis.

    Sizes stand below the numbers where there is room for them. Numbers stand upright
    where they would overlap, and are smaller if even so.
    """
    is_in_cluster = tree.leaves >= 0  # rows that are no outliers
    labels = tree.labels(n_named)[is_in_cluster]
    sizes = np.bincount(labels, minlength=n_named)
    middles = _middles_of_clusters(tree, order, n_named)

    right_edge = _right_edge(ax, tree, len(order), n_named)
    smallest_gap = _smallest_gap(ax, middles, len(order), right_edge)

    letter = draw.font_size(ax)
    digit_width = 0.65 * letter
    names = [str(cluster) for cluster in range(n_named)]
    ax.set_xlabel("cluster")
    longest_size = f"{sizes.max():,}"
    if digit_width * len(longest_size) < smallest_gap:
        names = [f"{cluster}\n{size:,}" for cluster, size in enumerate(sizes)]
        ax.set_xlabel("cluster and its rows")

    shrinkage = 1.0
    longest_number = str(n_named - 1)
    is_upright = digit_width * len(longest_number) >= smallest_gap
    if is_upright:
        shrinkage = min(1.0, 0.9 * smallest_gap / letter)
    ax.set_xticks(
        middles,
        names,
        fontsize=draw.to_points(shrinkage * letter, ax),
        rotation=90 if is_upright else 0,
    )
    return right_edge


def _middles_of_clusters(
    tree: ClusterTree, order: np.ndarray, n_named: int
) -> list[float]:
    """Return the middle of the leaves of each cluster, from left to right."""
    cluster_in_place = tree.numbers(n_named)[order]

    middles = []
    for cluster in range(n_named):
        places = np.flatnonzero(cluster_in_place == cluster)
        middles.append(float(places.mean()))
    return middles


def _smallest_gap(
    ax: Axes, middles: list[float], n_places: int, right_edge: float
) -> float:
    """Return how many pixels are between the two nearest middles."""
    gaps = np.diff(np.sort(middles))
    smallest = gaps.min(initial=n_places)
    width = ax.get_window_extent().width
    return float(smallest * width / (right_edge + 0.5))


def _right_edge(ax: Axes, tree: ClusterTree, n_places: int, n_named: int) -> float:
    """Return where the axis ends, with room for the names of levels, if it has some."""
    width = ax.get_window_extent().width
    text_width = 0.0
    if tree.levels:
        longest_name = f"{n_named:,} clusters"
        text_width = 0.55 * draw.font_size(ax) * len(longest_name)

    width_of_tree = max(width - text_width, 1)
    return n_places * width / width_of_tree - 0.5


def level_heights(tree: ClusterTree, base: float) -> list[tuple[int, float]]:
    """Return each level of a tree, and the height in its picture at which it stands."""
    # No merger is drawn lower than those within it.
    costs_from_below = np.maximum.accumulate(tree.costs[::-1])
    heights = np.append(costs_from_below[::-1], base)

    levels = []
    for n_clusters in tree.levels:
        # Between the merger that ends so many clusters and the one that makes them.
        end = heights[n_clusters - 2]
        beginning = heights[n_clusters - 1]
        middle = float(np.sqrt(end * beginning))
        levels.append((n_clusters, middle))
    return levels
