"""The rows on the sphere where the clusters are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from ihgmm._checks import check_labels, complete_matrix
from ihgmm.matrix import HOST, to_host
from ihgmm.plotting._axes import NEUTRAL, color, font_size, given_or_new, ink, quiet
from ihgmm.plotting._clusters import (
    Clusters,
    clusters_of,
    data_and_model,
    embedding_of,
    fitted,
)
from ihgmm.plotting._view import View, coordinate_view

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BETWEEN = "a row between two clusters resembles both"


def plot_embedding(
    X: Any = None,
    model: Any = None,
    *,
    dims: Sequence[int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the rows as points on the sphere of the embedding, by cluster.

    Views, colours, and which of very many rows are shown: :doc:`/pictures`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        The data that was clustered, for models without an embedding: rows are drawn by
        their cosines with the centres, at unit length. Otherwise give the model alone.
    model : fitted estimator
        A model with ``embedding_``, such as :class:`ihgmm.IhSC`; with X, any that has
        ``labels_`` and ``cluster_centers_``.
    dims : pair of int, optional
        Two coordinates of the embedding to draw. Default: the view that spreads the
        clusters.
    ax : matplotlib axes, optional
        Where to draw.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 5, random_state=0)
    >>> ax = plot_embedding(IhSC(5, random_state=0).fit(X))
    >>> [text.get_text() for text in ax.texts]
    ['0', '1', '2', '3', '4']
    """
    rows, clusters = _rows_of(X, model, "plot_embedding")
    view = coordinate_view(rows, clusters, 2, dims)
    ax = given_or_new(ax, (6.0, 5.6))
    shown, note = _scatter(ax, view, clusters)
    if view.corners is None:
        x, y = (f"coordinate {dim}" for dim in view.dims)
        ax.set(xlabel=x + note, ylabel=y)
        ax.set_aspect("equal", adjustable="datalim")
        _label_groups(quiet(ax), view.means)
        return ax
    ring = 1.09 * max(float(np.linalg.norm(shown, axis=1).max()), 1.0)
    limits = (-1.06 * ring, 1.06 * ring)
    ax.set(xlim=limits, ylim=limits, xticks=[], yticks=[], xlabel=_BETWEEN + note)
    ax.set_aspect("equal", adjustable="box")
    ax.spines[:].set_visible(False)
    box = ax.get_window_extent()
    # Two digits are 1.3 times as wide as they are high, and want a gap.
    room = np.pi * 0.85 * min(box.width, box.height) / (1.6 * len(view.corners))
    size = min(font_size(ax), room) * 72 / ax.figure.dpi
    # Numbers are on a circle around the rows, with a line to each cluster.
    for k in np.flatnonzero(clusters.sizes).tolist():
        place = ring * view.corners[k]
        ends = np.column_stack([view.means[k], 0.965 * place])
        ax.plot(*ends, color=color(k, ax), lw=0.7, zorder=1.5)
        _label(ax, place, str(k), color=ink(ax), size=size, path_effects=[])
    return ax


def plot_embedding_3d(
    X: Any = None,
    model: Any = None,
    *,
    dims: Sequence[int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the rows as points on the sphere of the embedding, in three dimensions.

    Views, colours, and which of very many rows are shown: :doc:`/pictures`.

    Parameters
    ----------
    X, model
        As :func:`plot_embedding` takes them; the model has three clusters or more.
    dims : three int, optional
        Coordinates to draw; ``(0, 1, 2)`` are the leading directions. Default: the
        three there are, or the view that spreads the clusters over a sphere.
    ax : matplotlib axes, optional
        Where to draw, made with ``projection="3d"``.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> plot_embedding_3d(IhSC(3, random_state=0).fit(X)).name
    '3d'
    """
    if ax is not None and getattr(ax, "name", "") != "3d":
        raise TypeError(
            "plot_embedding_3d draws on axes with three dimensions; make them with "
            "projection='3d'."
        )
    rows, clusters = _rows_of(X, model, "plot_embedding_3d")
    view = coordinate_view(rows, clusters, 3, dims)
    # Of axes with three dimensions matplotlib has no types.
    deep: Any = given_or_new(ax, (6.4, 5.8), projection="3d")
    # Shades of depth would hide the far side in a dark style.
    _, note = _scatter(deep, view, clusters, depthshade=False)
    out = view.means if view.corners is None else view.corners
    style = {"zorder": 10, "size": "medium" if len(out) <= 12 else "x-small"}
    for k in np.flatnonzero(clusters.sizes).tolist():
        _label(deep, 1.15 * out[k], str(k), **style)
    if view.corners is None:
        # With room around them inside, no number lies among those of the axes.
        deep.auto_scale_xyz(*(1.3 * out[clusters.sizes > 0]).T, had_data=True)
        for axis in (deep.xaxis, deep.yaxis, deep.zaxis):
            axis.get_major_locator().set_params(nbins=5)
        x, y, z = (f"coordinate {dim}" for dim in view.dims)
        deep.set(xlabel=x, ylabel=y, zlabel=z)
    else:
        deep.set_axis_off()
        note = _BETWEEN + note
    place = {"transform": deep.transAxes, "ha": "center", "va": "bottom"}
    deep.text2D(0.5, 0.0, note.lstrip(), **place)
    deep.set_box_aspect((1, 1, 1), zoom=0.95 if view.corners is None else 1.35)
    return deep


def _rows_of(X: Any, model: Any, picture: str) -> tuple[np.ndarray, Clusters]:
    """Return what is drawn of each row, and the clusters."""
    X, model = data_and_model(X, model)
    clusters = clusters_of(model, picture)
    if X is not None:
        centers = fitted(model, "cluster_centers_", picture)
        data = complete_matrix(X, model)
        check_labels("labels", clusters.codes, data.shape[0])
        # At unit length, products with the centres are what cosines are.
        products = to_host(data @ HOST.unit_rows(centers.astype(np.float64)).T)
        return HOST.unit_rows(products.astype(np.float64)), clusters
    return embedding_of(model, picture), clusters


def _scatter(
    ax: Axes, view: View, clusters: Clusters, **options: Any
) -> tuple[np.ndarray, str]:
    """Draw the rows; return the points shown, and a line on how many if not all."""
    kept = clusters.thinned(20_000, 30)  # more points would be slow and hide others
    shown = view.points[np.concatenate(kept)]
    many = len(shown) > 2000
    size = float(np.clip(6000 / len(shown), 2.5, 26.0))  # smaller where there are many
    draw: Any = ax.scatter  # takes two coordinates or three
    options |= {"s": size, "alpha": 0.5 if many else 0.85, "rasterized": many}
    for k, rows in enumerate(kept):  # the smallest clusters last, on top
        if len(rows):
            # With seven markers and fifty colours, the pair is a cluster's own up to
            # 350 clusters; in grey print the marker is left.
            look = {"c": color(k, ax), "marker": "os^Dv<>"[k % 7], "linewidths": 0}
            draw(*view.points[rows].T, **look, **options)
    outliers = view.points[clusters.outliers][:2000]
    if len(outliers):
        look = {"c": NEUTRAL, "marker": "x", "linewidths": 0.8, "zorder": 1}
        draw(*outliers.T, **options | look, label="outlier")
        shown = np.concatenate([shown, outliers])
        ax.legend(loc="upper right", frameon=False)
    ax.set_title(str(clusters))
    total, n = len(shown), len(view.points)
    return shown, "" if total == n else f"\n{total:,} of {n:,} rows shown"


def _label_groups(ax: Axes, means: np.ndarray) -> None:
    """Write each cluster's number at its mean; one label for those that coincide."""
    shown = np.flatnonzero(~np.isnan(means).any(axis=1))
    ax.apply_aspect()
    places = ax.transData.transform(means[shown])
    group = np.zeros(1, dtype=int)
    if len(shown) > 1:
        group = fcluster(linkage(places, "single"), 2.5 * font_size(ax), "distance")
    for one in np.unique(group):
        members = shown[group == one]
        text = ", ".join(str(k) for k in members)
        text = text if len(members) <= 4 else f"{len(members)} clusters"
        _label(ax, means[members].mean(axis=0), text)


def _label(ax: Axes, place: np.ndarray, text: str, **style: Any) -> None:
    """Write a number, with an outline that sets it off from points around it."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground=ax.get_facecolor())]
    style = {"weight": "bold", "path_effects": halo, **style}
    write: Any = ax.text  # takes two coordinates or three
    write(*place, text, ha="center", va="center", **style)
