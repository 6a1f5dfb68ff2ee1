"""The rows on the sphere where the clusters are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from ihgmm.matrix.tall import unit_rows
from ihgmm.plotting._axes import font_size, halo, ink, new_axes, quiet
from ihgmm.plotting._clusters import check_rows, clusters_of, cosines, fitted
from ihgmm.plotting._colors import color, marker
from ihgmm.plotting._view import View, coordinate_view

BETWEEN = "a row between two clusters resembles both"


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
    The default view is that of the report's map. It gives each cluster a place on a
    circle, those that are alike side by side, and is the least-squares fit of these
    places, each cluster counting the same, by a linear function of the embedding: rows
    between two clusters lie between them. With two coordinates in use, these are drawn.
    The embedding of :class:`ihgmm.PSC` keeps the size of rows: there, large rows are
    far out.

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
    view, reach, note, ax = _scatter(model, X, dims, ax, "plot_embedding")
    ax.set_aspect("equal", adjustable="datalim" if view.corners is None else "box")
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
        ax.set_xlabel(_lines(BETWEEN, note))
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
    view, _, note, ax = _scatter(model, X, dims, ax, "plot_embedding_3d", 3)
    out = view.means if view.corners is None else view.corners
    size = "medium" if len(out) <= 12 else "x-small"
    for k, place in enumerate(out):
        if not np.isnan(place).any():
            ax.text(
                *(1.15 * place), str(k), ha="center", va="center", weight="bold",
                path_effects=halo(ax), zorder=10, size=size,
            )  # fmt: skip
    if view.corners is None:
        # With room around them inside, no number lies among those of the axes.
        ax.auto_scale_xyz(*(1.3 * out[~np.isnan(out).any(axis=1)]).T, had_data=True)
        for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
            axis.get_major_locator().set_params(nbins=5)
        _name_axes(ax, view.dims[:2], "")
        ax.set_zlabel(f"coordinate {view.dims[2]}")
    else:
        ax.set_axis_off()
        note = _lines(BETWEEN, note)
    ax.text2D(0.5, 0.0, note, transform=ax.transAxes, ha="center", va="bottom")
    ax.set_box_aspect((1, 1, 1), zoom=0.95 if view.corners is None else 1.35)
    return ax


def _scatter(
    model: Any,
    X: Any,
    dims: Sequence[int] | None,
    ax: Any,
    picture: str,
    n_axes: int = 2,
    *,
    most_points: int = 20_000,
) -> tuple[View, float, str, Any]:
    """Draw the rows, and return the view, how far they reach, a note, and the axes.

    The note says how many rows are drawn, where they are not all.
    """
    clusters = clusters_of(model, picture)
    if X is not None:
        centers = fitted(model, "cluster_centers_", picture)
        rows = unit_rows(cosines(check_rows(X, clusters), centers))
    elif hasattr(model, "labels_") and not hasattr(model, "embedding_"):
        raise TypeError(
            f"{type(model).__name__} has no embedding_; give the data as well, "
            f"{picture}(model, X), to see its rows by their cosines with the centres."
        )
    else:
        rows = fitted(model, "embedding_", picture).astype(np.float64)
    view = coordinate_view(rows, clusters.codes, len(clusters.names), n_axes, dims)
    flat: dict[str, Any] = {}
    if n_axes == 3:
        ax = new_axes((6.4, 5.8), projection="3d") if ax is None else ax
        flat["depthshade"] = False  # which would hide the far side in a dark style
    ax = new_axes((6.0, 5.6)) if ax is None else ax
    kept = clusters.thinned(most_points, 30)
    total, reach = sum(len(one) for one in kept), 0.0
    many = total > 2000
    for k, one in enumerate(kept):  # the smallest clusters last, on top
        if len(one) == 0:
            continue
        points = view(rows[one])
        reach = max(reach, float(np.sqrt(np.square(points).sum(axis=1).max())))
        ax.scatter(
            *points.T,
            s=float(np.clip(6000 / total, 2.5, 26.0)),  # smaller where there are many
            c=color(k, ax), marker=marker(k), alpha=0.5 if many else 0.85,
            linewidths=0, rasterized=many, **flat,
        )  # fmt: skip
    note = "" if total == len(rows) else f"{total:,} of {len(rows):,} rows shown"
    return view, reach, note, ax


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
