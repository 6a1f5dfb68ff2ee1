"""The rows on the sphere where the clusters are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from ihgmm.plotting._colors import color, halo, marker, point_size, shown_note, thin
from ihgmm.plotting._fitted import clusters_of, directions_of
from ihgmm.plotting._frame import axes, font_size, ink, quiet
from ihgmm.plotting._views import View, view_of

__all__ = ["plot_embedding", "plot_embedding_3d"]


def plot_embedding(
    model: Any, X: Any = None, *, dims: Sequence[int] | None = None, ax: Any = None
) -> Any:
    """Draw the rows as points on the sphere of the embedding, by cluster.

    Parameters
    ----------
    model : fitted estimator
        A model with ``embedding_``, such as :class:`ihgmm.IhSC`; with X, any that has
        ``labels_`` and ``cluster_centers_``.
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        The data that was clustered: rows are then drawn by their cosines with the
        centres, at unit length, instead of the embedding. For models that have none.
    dims : pair of int, optional
        Two coordinates of the embedding to draw. Default: the view that spreads the
        clusters.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes

    Notes
    -----
    The default view sets the clusters evenly on a circle, those that are alike side by
    side, and puts a row at the sum of these places, each times the row's inner product
    with the unit mean of that cluster. It is linear: rows between two clusters lie
    between them. With two coordinates in use, these are drawn. The embedding of
    :class:`ihgmm.PSC` keeps the size of rows: there, large rows are far out.

    Of more than 20,000 rows a random share of each cluster is drawn, of small clusters
    at least 30 rows; the axes say how many. There are fifty colours and seven markers,
    which both come round again; each cluster's number is written beside it. In the view
    of two given coordinates, clusters that coincide share a label.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 5, random_state=0)
    >>> ax = plot_embedding(IhSC(5, random_state=0).fit(X))
    >>> [text.get_text() for text in ax.texts]
    ['0', '1', '2', '3', '4']
    """
    clusters = clusters_of(model, "plot_embedding")
    rows = directions_of(model, X, clusters, "plot_embedding")
    view = view_of(rows, clusters, dims, 2)
    ax = axes(ax, (6.0, 5.6))
    kept = thin(clusters)
    reach = _scatter(ax, rows, view, kept)
    ax.set_aspect("equal", adjustable="datalim" if view.corners is None else "box")
    note = shown_note(kept, len(rows))
    if view.corners is None:
        _name_axes(ax, view.dims, note)
        quiet(ax)
        _labels_beside(ax, view.means)
    else:
        ring = 1.09 * max(reach, 1.0)
        ax.set_xlim(-1.06 * ring, 1.06 * ring)
        ax.set_ylim(-1.06 * ring, 1.06 * ring)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines[:].set_visible(False)
        ax.set_xlabel(_lines("a row between two clusters resembles both", note))
        _labels_on_ring(ax, view, ring)
    return ax


def plot_embedding_3d(
    model: Any, X: Any = None, *, dims: Sequence[int] | None = None, ax: Any = None
) -> Any:
    """Draw the rows as points on the sphere of the embedding, in three dimensions.

    Parameters
    ----------
    model : fitted estimator
        A model of three clusters or more, with ``embedding_``, such as
        :class:`ihgmm.IhSC`; with X, any that has ``labels_`` and
        ``cluster_centers_``.
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        The data that was clustered, as in :func:`plot_embedding`.
    dims : three int, optional
        Coordinates to draw; ``(0, 1, 2)`` are the leading directions. Default: the
        three there are, or the view that spreads the clusters over a sphere.
    ax : matplotlib axes, optional
        Where to draw, made with ``projection="3d"``; a new figure by default.

    Returns
    -------
    matplotlib axes

    Notes
    -----
    Views, thinning, colours and markers are those of :func:`plot_embedding`.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> ax = plot_embedding_3d(IhSC(3, random_state=0).fit(X))
    >>> ax.name
    '3d'
    """
    if ax is not None and getattr(ax, "name", "") != "3d":
        raise TypeError(
            "plot_embedding_3d draws on axes with three dimensions; make them with "
            "projection='3d'."
        )
    clusters = clusters_of(model, "plot_embedding_3d")
    rows = directions_of(model, X, clusters, "plot_embedding_3d")
    view = view_of(rows, clusters, dims, 3)
    ax = axes(ax, (6.4, 5.8), projection="3d")
    kept = thin(clusters)
    _scatter(ax, rows, view, kept)
    out = view.means if view.corners is None else view.corners
    size = "medium" if len(out) <= 12 else "x-small"
    for k, place in enumerate(out):
        if not np.isnan(place).any():
            ax.text(
                *(1.15 * place), str(k), ha="center", va="center", weight="bold",
                path_effects=halo(ax), zorder=10, size=size,
            )  # fmt: skip
    note = shown_note(kept, len(rows))
    if view.corners is None:
        # With room around them inside, no number lies among those of the axes.
        ax.auto_scale_xyz(*(1.3 * out[~np.isnan(out).any(axis=1)]).T, had_data=True)
        for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
            axis.get_major_locator().set_params(nbins=5)
        _name_axes(ax, view.dims[:2], "")
        ax.set_zlabel(f"coordinate {view.dims[2]}")
        ax.text2D(0.5, 0.0, note, transform=ax.transAxes, ha="center", va="bottom")
    else:
        ax.set_axis_off()
        ax.text2D(
            0.5, 0.0, _lines("a row between two clusters resembles both", note),
            transform=ax.transAxes, ha="center", va="bottom",
        )  # fmt: skip
    ax.set_box_aspect((1, 1, 1), zoom=0.95 if view.corners is None else 1.35)
    return ax


def _scatter(ax: Any, rows: np.ndarray, view: View, kept: list[np.ndarray]) -> float:
    """Draw the rows; the smallest clusters last, on top. Return how far they reach."""
    total = sum(len(one) for one in kept)
    many = total > 2000
    # Fading with depth would hide the far side in a dark style.
    flat = {"depthshade": False} if ax.name == "3d" else {}
    reach = 0.0
    for k, one in enumerate(kept):
        if len(one) == 0:
            continue
        points = rows[one] @ view.project
        reach = max(reach, float(np.sqrt(np.square(points).sum(axis=1).max())))
        ax.scatter(
            *points.T,
            s=point_size(total),
            c=color(k, ax),
            marker=marker(k),
            alpha=0.5 if many else 0.85,
            linewidths=0,
            rasterized=many,
            **flat,
        )
    return reach


def _labels_on_ring(ax: Any, view: View, ring: float) -> None:
    """Write numbers on a circle around the rows, with a line to each cluster."""
    assert view.corners is not None
    box = ax.get_window_extent()
    # Two digits are 1.3 times as wide as they are high, and want a gap.
    room = np.pi * 0.85 * min(box.width, box.height) / (1.6 * len(view.corners))
    size = min(font_size(ax), room) * 72 / ax.figure.dpi
    for k, (corner, mean) in enumerate(zip(view.corners, view.means, strict=True)):
        if np.isnan(corner).any():
            continue
        ends = np.column_stack([mean, 0.965 * ring * corner])
        ax.plot(*ends, color=color(k, ax), lw=0.7, zorder=1.5)
        ax.text(
            *(ring * corner), str(k), ha="center", va="center", weight="bold",
            color=ink(ax), size=size,
        )  # fmt: skip


def _labels_beside(ax: Any, means: np.ndarray) -> None:
    """Write each cluster's number at its mean; one label for those that coincide."""
    shown = np.flatnonzero(~np.isnan(means).any(axis=1))
    ax.apply_aspect()
    places = ax.transData.transform(means[shown])
    group = np.zeros(1, dtype=int)
    if len(shown) > 1:
        group = fcluster(linkage(places, "single"), 2.5 * font_size(ax), "distance")
    for one in np.unique(group):
        members = shown[group == one]
        together = ", ".join(str(k) for k in members)
        ax.text(
            *means[members].mean(axis=0),
            together if len(members) <= 4 else f"{len(members)} clusters",
            ha="center", va="center", weight="bold", path_effects=halo(ax),
        )  # fmt: skip


def _name_axes(ax: Any, dims: tuple[int, ...], note: str) -> None:
    ax.set_xlabel(_lines(f"coordinate {dims[0]}", note))
    ax.set_ylabel(f"coordinate {dims[1]}")


def _lines(*parts: str) -> str:
    return "\n".join(part for part in parts if part)
