"""Clusters side by side: the spread of their scales, and their patterns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ihgmm._parameters import check_count
from ihgmm.matrix import to_host
from ihgmm.plotting._axes import color, column_axes, heatmap, ink, quiet
from ihgmm.plotting._clusters import Clusters, clusters_of, fitted, names_of
from ihgmm.statistics.contrasts import telling_features

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_scales(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how scales are spread within each cluster, as violins on a log axis.

    How to read it: :doc:`/pictures`.

    Parameters
    ----------
    model : fitted estimator
        A model with ``scales_``: :class:`ihgmm.IhSC` or :class:`ihgmm.IhGMM`.
    ax : matplotlib axes, optional
        Where to draw.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> plot_scales(IhSC(3, random_state=0).fit(X)).get_yscale()
    'log'
    """
    scales = fitted(model, "scales_", "plot_scales").astype(np.float64)
    clusters = clusters_of(model, "plot_scales")
    ax = column_axes(ax, clusters.names)
    ax.axhline(1.0, color=ink(ax), lw=0.8, ls=":", zorder=0)
    for k, rows in enumerate(clusters.rows()):
        values = np.sort(scales[rows])
        values = values[values > 0]
        # A density of fewer than ten rows would be a guess.
        if len(values) < 10 or values[0] == values[-1]:
            ax.plot(np.full(len(values), k), values, "o", ms=4, color=color(k, ax))
        else:
            _violin(ax, k, values, len(clusters.names))
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    if high < 300 * low:  # so few powers of ten are too few figures
        subs = (1, 1.2, 1.5, *range(2, 10)) if high < 4 * low else (1, 2, 5)
        ax.locator_params("y", subs=subs)
        ax.yaxis.set_minor_formatter("")
    ax.yaxis.set_major_formatter("{x:g}")
    zero = int((~(scales > 0)).sum())
    rows_are = "1 row of scale 0 is" if zero == 1 else f"{zero:,} rows of scale 0 are"
    label = "cluster; dot: median, bar: middle half of the rows"
    ax.set_xlabel(f"{label}\n{rows_are} not shown" if zero else label)
    ax.set_ylabel("scale (cluster mean 1)")
    ax.set_title("scales of the rows of each cluster")
    return quiet(ax)


def _violin(ax: Axes, k: int, values: np.ndarray, n_clusters: int) -> None:
    """Draw the density of the scales of a cluster, their quartiles and median."""
    from scipy.stats import gaussian_kde

    # The density is that of the logarithms, which is what a log axis shows. A thousand
    # quantiles of a larger cluster look the same, and cost less.
    logs = np.log(np.quantile(values, np.linspace(0, 1, min(len(values), 1000))))
    grid = np.linspace(logs[0], logs[-1], 100)
    width = gaussian_kde(logs)(grid)
    width *= 0.4 / width.max()
    left, right = k - width, k + width
    ax.fill_betweenx(np.exp(grid), left, right, color=color(k, ax), alpha=0.55, lw=0)
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    # Thinner where many clusters share little room.
    room = ax.get_window_extent().width * 72 / ax.figure.dpi / n_clusters
    part = min(1.0, room / 12)
    ax.plot([k, k], [low, high], color=ink(ax), lw=2.5 * part, solid_capstyle="butt")
    sizes = {"ms": 4.5 * part, "mew": 1.2 * part}
    ax.plot(k, middle, "o", mfc=ax.get_facecolor(), mec=ink(ax), **sizes)


def plot_centers(
    model: Any,
    *,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the pattern of each cluster in its most distinctive features, as a heat map.

    How features are chosen and measured: :doc:`/pictures`.

    Parameters
    ----------
    model : fitted estimator
        A model with ``cluster_centers_``.
    n_features : int, optional
        How many features to show. Default: 20, or one for each cluster if these are
        more.
    feature_names : sequence of str, optional
        Names of all features. Default: those of the model, or x0, x1, ...
    ax : matplotlib axes, optional
        Where to draw.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> ax = plot_centers(IhSC(3, random_state=0).fit(X), n_features=6)
    >>> len(ax.get_yticks())
    6
    """
    centers = fitted(model, "cluster_centers_", "plot_centers")
    k, p = centers.shape
    count = check_count("n_features", max(20, k) if n_features is None else n_features)
    clusters = clusters_of(model, "plot_centers")
    if feature_names is None:
        feature_names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(p)])
    names = names_of("feature_names", feature_names, p, "feature")
    # Squares of very large or very small entries would be lost; contrasts have no unit.
    unit = float(np.abs(centers).max()) or 1.0
    noise = _noise_levels(model, clusters, unit)
    ranked = telling_features(centers / unit, noise, n_features=count)
    # The best feature of every cluster, then the second of each, ...
    order = np.argsort(-np.abs(ranked.scores), axis=0, kind="stable")
    best = np.take_along_axis(ranked.features, order, axis=0).T.ravel()
    shown = np.array(list(dict.fromkeys(best.tolist()))[:count])
    # ... by the cluster that they describe best.
    sizes = np.abs(ranked.contrasts[:, shown])
    shown = shown[np.lexsort((-sizes.max(axis=0), sizes.argmax(axis=0)))]
    width = float(np.clip(1.9 + 0.22 * k, 6.4, 13.4))
    height = float(np.clip(1.2 + 0.24 * len(shown), 3.0, 13.5))
    ax, bar = heatmap(
        ax,
        ranked.contrasts[:, shown].T,
        [names[j] for j in shown],
        clusters.names,
        (width, height),
        largest=float(sizes.max()) or 1.0,
        signed=True,
    )
    ax.set_title("features that set clusters apart")
    measure = "share of the centre's length" if noise is None else "noise levels"
    bar.set_label(f"above the other clusters\n({measure})")
    return ax


def _noise_levels(model: Any, clusters: Clusters, unit: float) -> np.ndarray | None:
    """Return the noise level of each cluster, if the model has any noise."""
    if getattr(model, "noise_levels_", None) is None:
        return None
    levels = to_host(model.noise_levels_).astype(np.float64) / unit
    k = len(clusters.names)
    if len(levels) == len(clusters.codes):
        squares = np.nan_to_num(clusters.means(levels[:, None] ** 2)).ravel()
        levels = np.sqrt(squares)
    if len(levels) not in (1, k) or not levels.any():
        return None
    # A row alone has noise level 0: it gets what the others have.
    typical = np.sqrt(np.mean(levels[levels > 0] ** 2))
    return np.where(levels > 0, levels, typical) * np.ones(k)
