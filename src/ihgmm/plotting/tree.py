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
    """Draw the leading eigenvalues and their gap; for a ClusterCount, noise as well.

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
    count = source
    if not isinstance(source, ClusterCount):
        count = getattr(source, "selection_", None)
    ax = draw.given_or_new(ax, (6.0, 4.0))

    if count is not None:
        # A count may have many more eigenvalues, which are all noise.
        n_shown = max(count.rank + 5, 10)
        values = count.eigenvalues[:n_shown]
        n_leading = count.rank
        _draw_noise(ax, count)
        _draw_eigenvalues(ax, values, n_leading, "above", "not above")
    else:
        values = fitted(source, "eigenvalues_", "plot_scree").astype(np.float64)
        centers = getattr(source, "cluster_centers_", values)
        n_leading = int(centers.shape[0])
        _title_of_model(ax, len(values))
        _draw_eigenvalues(ax, values, n_leading, "clusters", "the next")

    n_further = len(values) - n_leading
    if n_leading and n_further > 0 and values[n_leading] > 0:
        _draw_gap(ax, values, n_leading)
    edge = None if count is None else count.edge
    _scale_eigenvalue_axis(ax, values, edge)

    ax.locator_params("x", integer=True, min_n_ticks=1)
    ax.set_xlim(0.4, len(values) + 0.6)
    ax.set_xlabel("eigenvalue number")
    ax.set_ylabel("eigenvalue")
    marks, _ = ax.get_legend_handles_labels()
    if len(marks) > 1:
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
    n_values = len(values)
    number = np.arange(1, n_values + 1)
    mark_size = 7 if n_values <= 25 else 4

    ax.plot(
        number[:n_leading],
        values[:n_leading],
        "o",
        color=draw.color(0, ax),
        ms=mark_size,
        label=f"{leading_name}: {n_leading}" if n_leading else None,
    )
    if n_values > n_leading:
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
    upper = values[n_leading - 1]
    lower = values[n_leading]
    ax.plot(
        [n_leading + 0.5, n_leading + 0.5],
        [upper, lower],
        "_-",
        color=draw.ink(ax),
        lw=1.2,
        ms=8,
        label=f"gap: {upper / lower:.1f}-fold",
    )


def _scale_eigenvalue_axis(ax: Axes, values: np.ndarray, edge: float | None) -> None:
    """Use a log axis where the largest eigenvalue would dwarf all others."""
    largest = values.max()
    smallest = values.min()
    threshold = smallest if edge is None else edge

    if threshold > 0 and largest > 20 * threshold:
        ax.set_yscale("symlog", linthresh=threshold)  # straight near 0, as noise is
        bottom, top = ax.get_ylim()
        ticks = np.asarray(ax.get_yticks())
        is_in_view = (ticks >= bottom) & (ticks <= top)
        # Powers of ten within the threshold would overlap.
        is_outside = np.abs(ticks) > 1.5 * threshold
        is_shown = is_in_view & (is_outside | (ticks == 0))
        ax.set_yticks(ticks[is_shown])
    elif edge is None:
        ax.set_ylim(bottom=min(0.0, 1.1 * smallest))
        if largest > 0:
            ax.set_ylim(top=1.08 * largest)


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

    title = tree_headline(tree)
    if isinstance(source, ClusterCount):
        title = f"{count_headline(source)} (confidence {source.confidence.value})"
    draw.wrap_title(ax, title)
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


def plot_result(result: ClusterTree | ClusterCount, ax: Axes | None = None) -> Axes:
    """Draw a tree; for a ClusterCount in a new figure, its eigenvalues as well."""
    if isinstance(result, ClusterTree):
        return plot_tree(result, ax=ax)
    if result.tree is None or not result.tree.splits:
        return plot_scree(result, ax=ax)
    if ax is None:
        ax = draw.given_or_new(None, (draw.WIDEST, 3.4), 1, 2, 1)
        plot_scree(result, ax=ax.figure.add_subplot(1, 2, 2))
    return plot_tree(result, ax=ax)
