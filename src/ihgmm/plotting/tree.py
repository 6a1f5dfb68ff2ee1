"""How many clusters there are, drawn: eigenvalues, and a tree of clusters."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ihgmm.plotting import _axes as draw
from ihgmm.plotting._axes import Axes
from ihgmm.plotting._clusters import fitted
from ihgmm.statistics.selection import ClusterCount
from ihgmm.statistics.tree import Bracket, ClusterTree
from ihgmm.words.counts import count_headline, tree_headline
from ihgmm.words.phrases import counted


def plot_scree(source: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the leading eigenvalues; of a count, with noise and gap as well.

    Parameters
    ----------
    source : fitted estimator or ClusterCount
        What :func:`ihgmm.select_n_clusters` returned, or a model, which has such a
        count if it was fitted with ``n_clusters="auto"``. Other models know few
        ``eigenvalues_`` beyond those of their clusters, and no noise.
    ax : matplotlib axes, optional
        Where to draw.

    Examples
    --------
    >>> from ihgmm import make_ihgmm, select_n_clusters
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> plot_scree(select_n_clusters(X, random_state=0)).get_title()
    '3 eigenvalues above noise'
    """
    is_count = isinstance(source, ClusterCount)
    count = source if is_count else getattr(source, "selection_", None)
    ax = draw.given_or_new(ax, (6.0, 4.0))

    if count is not None:
        # Far more may be known, which are all noise.
        values = count.eigenvalues[: max(count.rank + 5, 10)]
        _draw_noise(ax, count)
        n_leading = count.rank
        leading_name, further_name = "above", "not above"
    else:
        values = fitted(source, "eigenvalues_", "plot_scree").astype(np.float64)
        _title_of_model(ax, len(values))
        n_leading = int(getattr(source, "cluster_centers_", values).shape[0])
        leading_name, further_name = "clusters", "the next"

    _draw_eigenvalues(ax, values, n_leading, leading_name, further_name)
    if 0 < n_leading < len(values) and values[n_leading] > 0:
        _draw_gap(ax, values, n_leading)
    _scale_eigenvalue_axis(ax, values, edge=None if count is None else count.edge)

    ax.locator_params("x", integer=True, min_n_ticks=1)
    ax.set_xlim(0.4, len(values) + 0.6)
    ax.set_xlabel("eigenvalue number")
    ax.set_ylabel("eigenvalue")
    if len(ax.get_legend_handles_labels()[0]) > 1:
        # In a frame no mark passes for an eigenvalue. Where there is one series and no
        # gap, the title says all.
        legend = ax.legend(fontsize="small", framealpha=0.9, edgecolor="#aaaaaa")
        legend.set_zorder(6)
    return draw.quiet(ax)


def _draw_noise(ax: Axes, count: ClusterCount) -> None:
    """Draw where eigenvalues of noise lie, and how many of the data are above."""
    lowest = count.null.min(initial=count.edge)
    noise_color = draw.color(1, ax)

    copies = ax.axhspan(lowest, count.edge, color=noise_color, alpha=0.25, lw=0)
    copies.set_label("sign-flipped copies")
    ax.axhline(count.edge, color=noise_color, lw=1.2, label="edge of noise")
    number = counted(count.rank, "eigenvalue") if count.rank else "none"
    ax.set_title(f"{number} above noise")


def _title_of_model(ax: Axes, n_values: int) -> None:
    """Say above the picture that a model knows few eigenvalues, and no noise."""
    note = f"the model's own {counted(n_values, 'eigenvalue')} only;\n"
    note += "pass select_n_clusters(X) to see noise beside them"
    ax.set_title(note, fontsize="small", color=draw.ink(ax), alpha=0.75)


def _draw_eigenvalues(
    ax: Axes,
    values: np.ndarray,
    n_leading: int,
    leading_name: str,
    further_name: str,
) -> None:
    """Draw filled marks for the leading eigenvalues, and hollow ones for the others."""
    number = np.arange(1, len(values) + 1)
    mark_size = 7 if len(values) <= 25 else 4

    ax.plot(
        number[:n_leading],
        values[:n_leading],
        "o",
        color=draw.color(0, ax),
        ms=mark_size,
        label=f"{leading_name}: {n_leading}" if n_leading else None,
    )
    if len(values) > n_leading:
        ax.plot(
            number[n_leading:],
            values[n_leading:],
            "o",
            mfc="none",
            color="#777777",  # a grey that can be seen on white and on black
            ms=mark_size,
            label=further_name,
        )


def _draw_gap(ax: Axes, values: np.ndarray, n_leading: int) -> None:
    """Draw a line from the last leading eigenvalue down to the next."""
    ends = values[n_leading - 1 : n_leading + 1]
    ax.plot(
        [n_leading + 0.5, n_leading + 0.5],
        ends,
        "_-",
        color=draw.ink(ax),
        lw=1.2,
        ms=8,
        label=f"gap: {ends[0] / ends[1]:.1f}-fold",
    )


def _scale_eigenvalue_axis(ax: Axes, values: np.ndarray, edge: float | None) -> None:
    """Use a log axis where the largest eigenvalue would dwarf all others."""
    largest = values.max()
    smallest = values.min()
    threshold = smallest if edge is None else edge

    if threshold > 0 and largest > 20 * threshold:
        ax.set_yscale("symlog", linthresh=threshold)  # straight near 0, as noise is
        bottom, top = ax.get_ylim()
        # Powers of ten within the threshold would overlap.
        ticks = [t for t in ax.get_yticks() if t == 0 or abs(t) > 1.5 * threshold]
        ax.set_yticks([tick for tick in ticks if bottom <= tick <= top])
    elif edge is None:
        ax.set_ylim(min(0.0, 1.1 * smallest), 1.08 * max(largest, 0) or None)


def plot_tree(source: ClusterTree | ClusterCount, *, ax: Axes | None = None) -> Axes:
    """Draw clusters that merge step by step, and the levels at which they are stable.

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
    'the tree is stable at 3 clusters'
    """
    tree = source.tree if isinstance(source, ClusterCount) else source
    if tree is None:
        raise ValueError("This count has no tree: there were too few rows.")
    ax = draw.given_or_new(ax, (6.0, 4.0))
    order, brackets = tree.drawn()
    # A model's own clusters are named, and else those of the last level.
    level = tree.n_leaves if tree.of_model else max(tree.levels, default=1)

    lowest_cost = float(tree.costs.min()) if len(tree.costs) else 1.0
    base = 0.6 * lowest_cost
    _draw_brackets(ax, tree, brackets, level, base)

    right_edge = _name_clusters(ax, tree, order, level)
    for n_clusters, height in level_heights(tree, base):
        ends = (-0.5, len(order) - 0.5)
        ax.plot(ends, (height, height), color=draw.color(1, ax), ls="--", lw=1.2)
        ax.text(
            right_edge,
            height,
            f"{n_clusters} clusters",
            ha="right",
            va="center",
            size="small",
        )

    top = 1.3 * (brackets[-1].height if brackets else 1.0)
    ax.set(xlim=(-0.5, right_edge), ylim=(base, top))
    ax.set_ylabel("cost of merging, per row")
    draw.plain_log_axis(ax)

    title = tree_headline(tree)
    if isinstance(source, ClusterCount):
        title = f"{count_headline(source)} (confidence {source.confidence.value})"
    draw.wrap_title(ax, title)
    return draw.quiet(ax)


def _draw_brackets(
    ax: Axes, tree: ClusterTree, brackets: Sequence[Bracket], level: int, base: float
) -> None:
    """Draw each merger as a bracket, whose height is its cost."""
    cluster_of_leaf = tree.numbers(level)
    for bracket in brackets:
        stroke = draw.ink(ax)
        if bracket.n_clusters > level > 1:  # within a cluster of the last level
            stroke = draw.color(int(cluster_of_leaf[bracket.leaf]), ax)

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


def _name_clusters(ax: Axes, tree: ClusterTree, order: np.ndarray, level: int) -> float:
    """Write numbers of clusters below the tree; return the right end of the axis.

    Sizes stand below the numbers where there is room for them. Numbers stand upright
    where they would overlap, and are smaller if even so.
    """
    in_clusters = tree.leaves >= 0
    sizes = np.bincount(tree.labels(level)[in_clusters], minlength=level)
    cluster_in_place = tree.numbers(level)[order]
    middles = [
        float(np.flatnonzero(cluster_in_place == cluster).mean())
        for cluster in range(level)
    ]

    # Beside the tree is room for the names of its levels, in pixels.
    letter = draw.font_size(ax)
    width = ax.get_window_extent().width
    level_name = 0.55 * letter * len(f"{level:,} clusters") * bool(tree.levels)
    right_edge = len(order) * width / max(width - level_name, 1) - 0.5
    gaps = np.diff(np.sort(middles))
    smallest_gap = gaps.min(initial=len(order)) * width / (right_edge + 0.5)

    has_room_for_sizes = 0.65 * letter * len(f"{sizes.max():,}") < smallest_gap
    names = [str(cluster) for cluster in range(level)]
    if has_room_for_sizes:
        names = [f"{cluster}\n{sizes[cluster]:,}" for cluster in range(level)]

    is_upright = 0.65 * letter * len(str(level - 1)) >= smallest_gap
    shrinkage = min(1.0, 0.9 * smallest_gap / letter) if is_upright else 1.0
    ax.set_xticks(
        middles,
        names,
        fontsize=shrinkage * letter * 72 / ax.figure.dpi,
        rotation=90 if is_upright else 0,
    )
    ax.set_xlabel("cluster and its rows" if has_room_for_sizes else "cluster")
    return right_edge


def level_heights(tree: ClusterTree, base: float) -> list[tuple[int, float]]:
    """Return each level of a tree, and the height in its picture at which it stands."""
    heights = np.append(np.maximum.accumulate(tree.costs[::-1])[::-1], base)

    def middle(n_clusters: int) -> float:
        """Between the merger that ends so many clusters and the one that makes them."""
        return float(np.sqrt(heights[n_clusters - 2] * heights[n_clusters - 1]))

    return [(n_clusters, middle(n_clusters)) for n_clusters in tree.levels]


def plot_result(result: ClusterTree | ClusterCount, ax: Axes | None = None) -> Axes:
    """Draw a tree; of a count, in a new figure, with its eigenvalues beside it."""
    if isinstance(result, ClusterTree):
        return plot_tree(result, ax=ax)
    if result.tree is None or not result.tree.splits:
        return plot_scree(result, ax=ax)
    if ax is None:
        ax = draw.given_or_new(None, (draw.WIDEST, 3.4), 1, 2, 1)
        plot_scree(result, ax=ax.figure.add_subplot(1, 2, 2))
    return plot_tree(result, ax=ax)
