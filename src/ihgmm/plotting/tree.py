"""How many clusters there are, drawn: eigenvalues, and a tree of clusters."""

from typing import Any

import numpy as np

from ihgmm.plotting import _axes as draw
from ihgmm.plotting._axes import Axes
from ihgmm.plotting._clusters import fitted
from ihgmm.statistics.selection import ClusterCount
from ihgmm.statistics.tree import ClusterTree
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
        k, names = count.rank, ("above", "not above")
        # Far more may be known, which are all noise.
        values = count.eigenvalues[: max(k + 5, 10)]
        lowest, noise = count.null.min(initial=count.edge), draw.color(1, ax)
        copies = ax.axhspan(lowest, count.edge, color=noise, alpha=0.25, lw=0)
        copies.set_label("sign-flipped copies")
        ax.axhline(count.edge, color=noise, lw=1.2, label="edge of noise")
        ax.set_title(f"{counted(k, 'eigenvalue') if k else 'none'} above noise")
    else:
        values = fitted(source, "eigenvalues_", "plot_scree").astype(np.float64)
        k = int(getattr(source, "cluster_centers_", values).shape[0])
        names = ("clusters", "the next")
        note = f"the model's own {counted(len(values), 'eigenvalue')} only;\n"
        note += "pass select_n_clusters(X) to see noise beside them"
        ax.set_title(note, fontsize="small", color=draw.ink(ax), alpha=0.75)
    place, size = np.arange(1, len(values) + 1), 7 if len(values) <= 25 else 4
    label = f"{names[0]}: {k}" if k else None
    ax.plot(place[:k], values[:k], "o", color=draw.color(0, ax), ms=size, label=label)
    if len(values) > k:
        # A grey that can be seen on white and on black.
        grey: dict[str, Any] = {"mfc": "none", "color": "#777777", "ms": size}
        ax.plot(place[k:], values[k:], "o", label=names[1], **grey)
    if 0 < k < len(values) and values[k] > 0:
        between, ends = [k + 0.5] * 2, values[k - 1 : k + 1]
        label = f"gap: {ends[0] / ends[1]:.1f}-fold"
        ax.plot(between, ends, "_-", color=draw.ink(ax), lw=1.2, ms=8, label=label)
    top, bottom = values.max(), values.min()
    least = bottom if count is None else count.edge
    if least > 0 and top > 20 * least:  # the largest would dwarf all others
        ax.set_yscale("symlog", linthresh=least)  # straight around 0, where noise lies
        low, high = ax.get_ylim()
        # Powers of ten within the edge would overlap.
        ticks = [t for t in ax.get_yticks() if t == 0 or abs(t) > 1.5 * least]
        ax.set_yticks([tick for tick in ticks if low <= tick <= high])
    elif count is None:
        ax.set_ylim(min(0.0, 1.1 * bottom), 1.08 * max(top, 0) or None)
    ax.locator_params("x", integer=True, min_n_ticks=1)
    ax.set(xlim=(0.4, len(values) + 0.6), xlabel="eigenvalue number")
    ax.set_ylabel("eigenvalue")
    if len(ax.get_legend_handles_labels()[0]) > 1:
        # In a frame no mark passes for an eigenvalue. Where there is one series and no
        # gap, the title says all.
        ax.legend(fontsize="small", framealpha=0.9, edgecolor="#aaaaaa").set_zorder(6)
    return draw.quiet(ax)


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
    numbers = tree.numbers(level)
    base = 0.6 * float(tree.costs.min() if len(tree.costs) else 1.0)
    for bracket in brackets:
        stroke = draw.ink(ax)
        if bracket.n_clusters > level > 1:  # within a cluster of the last level
            stroke = draw.color(int(numbers[bracket.leaf]), ax)
        (x, low), (other, other_low) = bracket.left, bracket.right
        corners = [max(low, base), *2 * [bracket.height], max(other_low, base)]
        ax.plot([x, x, other, other], corners, color=stroke, lw=1.4)
    sizes = np.bincount(tree.labels(level)[tree.leaves >= 0], minlength=level)
    middles = [float(np.flatnonzero(numbers[order] == c).mean()) for c in range(level)]
    size, wide = draw.font_size(ax), ax.get_window_extent().width
    # Beside the tree is room for the names of its levels.
    label = 0.55 * size * len(f"{level:,} clusters")
    right = len(order) * wide / max(wide - label * bool(tree.levels), 1) - 0.5
    closest = np.diff(np.sort(middles)).min(initial=len(order)) * wide / (right + 0.5)
    roomy = 0.65 * size * len(f"{sizes.max():,}") < closest
    names = [f"{c}\n{sizes[c]:,}" if roomy else f"{c}" for c in range(level)]
    # Numbers stand upright where they would overlap, and are smaller if even so.
    upright = 0.65 * size * len(str(level - 1)) >= closest
    small = min(1.0, 0.9 * closest / size) if upright else 1.0
    points = small * size * 72 / ax.figure.dpi
    ax.set_xticks(middles, names, fontsize=points, rotation=90 if upright else 0)
    ax.set_xlabel("cluster" + (" and its rows" if roomy else ""))
    for k, height in level_heights(tree, base):
        ends = (-0.5, len(order) - 0.5)
        ax.plot(ends, (height, height), color=draw.color(1, ax), ls="--", lw=1.2)
        ax.text(right, height, f"{k} clusters", ha="right", va="center", size="small")
    top = 1.3 * (brackets[-1].height if brackets else 1.0)
    ax.set(xlim=(-0.5, right), ylim=(base, top), ylabel="cost of merging, per row")
    draw.plain_log_axis(ax)
    title = tree_headline(tree)
    if isinstance(source, ClusterCount):
        title = f"{count_headline(source)} (confidence {source.confidence.value})"
    draw.wrap_title(ax, title)
    return draw.quiet(ax)


def level_heights(tree: ClusterTree, base: float) -> list[tuple[int, float]]:
    """Return each level of a tree, and the height in its picture at which it stands."""
    # Between the merger that ends so many clusters and the one that makes them.
    heights = np.append(np.maximum.accumulate(tree.costs[::-1])[::-1], base)
    return [(k, float(np.sqrt(heights[k - 2] * heights[k - 1]))) for k in tree.levels]


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
