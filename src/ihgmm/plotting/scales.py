"""How the scales of rows are spread within each cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from ihgmm.plotting._colors import color
from ihgmm.plotting._fitted import clusters_of, fitted
from ihgmm.plotting._frame import axes, cluster_ticks, ink, quiet, width_for

__all__ = ["plot_scales"]

ENOUGH = 10
"""Rows from which a cluster is drawn as a violin; fewer are drawn as points."""

QUANTILES = 1000
"""A larger cluster is drawn from so many of its quantiles, which look the same."""


def plot_scales(model: Any, *, ax: Any = None) -> Any:
    """Draw how scales are spread within each cluster, as violins on a log axis.

    Parameters
    ----------
    model : fitted estimator
        A model with ``scales_``: :class:`ihgmm.IhSC` or :class:`ihgmm.IhGMM`.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes

    Notes
    -----
    The scales of a cluster have mean 1, the dotted line. The bar in a violin goes from
    the 25% to the 75% quantile, the dot is the median. Clusters of fewer than ten rows
    are drawn as points. Rows of scale 0 have no place on a log axis; they are counted
    below it.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> ax = plot_scales(IhSC(3, random_state=0).fit(X))
    >>> ax.get_yscale()
    'log'
    """
    scales = fitted(model, "scales_", "plot_scales").astype(np.float64)
    clusters = clusters_of(model, "plot_scales")
    count = len(clusters.names)
    ax = axes(ax, (width_for(count), 4.0))
    positive = scales > 0
    ax.axhline(1.0, color=ink(ax), lw=0.8, ls=":", zorder=0)
    for k, rows in enumerate(clusters.rows()):
        values = np.sort(scales[rows[positive[rows]]])
        if len(values) < ENOUGH or values[0] == values[-1]:
            ax.plot(np.full(len(values), k), values, "o", ms=4, color=color(k, ax))
        else:
            _violin(ax, k, values, count)
    ax.set_yscale("log")
    ax.set_xlim(-0.6, count - 0.4)
    cluster_ticks(ax, clusters.names)
    low, high = ax.get_ylim()
    if high < 300 * low:
        ax.yaxis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0))
        ax.yaxis.set_minor_formatter("")
    ax.yaxis.set_major_formatter("{x:g}")
    zero = int((~positive).sum())
    rows_are = "1 row of scale 0 is" if zero == 1 else f"{zero:,} rows of scale 0 are"
    ax.set_xlabel("cluster" + (f"\n{rows_are} not shown" if zero else ""))
    ax.set_ylabel("scale (cluster mean 1)")
    quiet(ax)
    return ax


def _violin(ax: Any, k: int, values: np.ndarray, n_clusters: int) -> None:
    from scipy.stats import gaussian_kde

    share = np.linspace(0, 1, min(len(values), QUANTILES))
    # The density is that of the logarithms, which is what a log axis shows.
    logs = np.log(np.quantile(values, share))
    grid = np.linspace(logs[0], logs[-1], 100)
    width = gaussian_kde(logs)(grid)
    width *= 0.4 / width.max()
    y = np.exp(grid)
    ax.fill_betweenx(y, k - width, k + width, color=color(k, ax), alpha=0.55, lw=0)
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    # Thinner where many clusters share little room.
    room = ax.get_window_extent().width * 72 / ax.figure.dpi / n_clusters
    part = min(1.0, room / 12)
    ax.plot([k, k], [low, high], color=ink(ax), lw=2.5 * part, solid_capstyle="butt")
    dot = {"ms": 4.5 * part, "mew": 1.2 * part, "mec": ink(ax)}
    ax.plot(k, middle, "o", mfc=ax.get_facecolor(), **dot)
