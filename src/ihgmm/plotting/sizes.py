"""How many rows each cluster has."""

from __future__ import annotations

from typing import Any

from ihgmm.plotting._colors import color
from ihgmm.plotting._fitted import clusters_of
from ihgmm.plotting._frame import axes, cluster_ticks, font_size, quiet, width_for

__all__ = ["plot_sizes"]


def plot_sizes(model: Any, *, ax: Any = None) -> Any:
    """Draw the number of rows of each cluster as bars.

    Parameters
    ----------
    model : fitted estimator, or array-like of shape (n_samples,)
        A model with ``labels_``, or labels of any kind. Clusters without rows are
        shown for models.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> ax = plot_sizes(["cat", "dog", "dog"])
    >>> [text.get_text() for text in ax.texts]
    ['1', '2']
    """
    clusters = clusters_of(model, "plot_sizes")
    sizes, count = clusters.sizes, len(clusters.names)
    ax = axes(ax, (width_for(count), 4.0))
    bars = ax.bar(
        range(count), sizes, color=[color(k, ax) for k in range(count)], width=0.75
    )
    words = [f"{size:,}" for size in sizes]
    size = font_size(ax)
    room = ax.get_window_extent().width / count
    upright = max(len(word) for word in words) * 0.65 * size > room
    if size < room or not upright:
        ax.bar_label(bars, words, padding=2, rotation=90 if upright else 0)
    # Room for the figures above the bars.
    longest = max(len(word) for word in words) if upright else 1
    share = (0.7 * longest + 1.2) * size / ax.get_window_extent().height
    ax.set_ylim(0, sizes.max() / (1 - min(share, 0.5)))
    ax.set_xlim(-0.6, count - 0.4)
    cluster_ticks(ax, clusters.names)
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.yaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel("cluster")
    ax.set_ylabel("rows")
    quiet(ax)
    return ax
