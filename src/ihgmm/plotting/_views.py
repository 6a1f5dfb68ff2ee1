"""Views of many coordinates in two or three, chosen so that clusters stand apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from ihgmm._checks.parameters import check_count
from ihgmm.groups import Groups
from ihgmm.plotting._fitted import Clusters
from ihgmm.rounding import normalize_rows

__all__ = ["View", "view_of"]


@dataclass(frozen=True, eq=False)
class View:
    """A linear view of coordinates.

    Attributes
    ----------
    project : ndarray of shape (n_coordinates, 2 or 3)
        Coordinates times this are what is drawn.
    means : ndarray of shape (n_clusters, 2 or 3)
        Where the mean of each cluster is drawn; NaN for an empty cluster.
    corners : ndarray of shape (n_clusters, 2 or 3) or None
        The unit vector each cluster is drawn towards; None for plain coordinates.
    dims : tuple of int
        The coordinates drawn, if they are plain.
    """

    project: np.ndarray
    means: np.ndarray
    corners: np.ndarray | None
    dims: tuple[int, ...] = ()


def view_of(
    rows: np.ndarray, clusters: Clusters, dims: Sequence[int] | None, n_axes: int
) -> View:
    """Return the view of given coordinates, or the one that spreads the clusters."""
    width, count = rows.shape[1], len(clusters.names)
    sums = Groups.of(clusters.codes, count).weighted_sums(rows, np.ones(len(rows)))
    with np.errstate(invalid="ignore"):
        means = sums.astype(np.float64) / clusters.sizes[:, None]
    if dims is None:
        used = np.flatnonzero(np.nan_to_num(means).any(axis=0))
        if len(used) > n_axes:
            return _spread(means, n_axes)
        dims = _first(used, width, n_axes)
    chosen = _check_dims(dims, width, n_axes)
    project = np.eye(width)[:, chosen]
    return View(project, means[:, chosen], None, chosen)


def _spread(means: np.ndarray, n_axes: int) -> View:
    """Return the view in which each cluster is drawn towards a corner of its own."""
    live = ~np.isnan(means).any(axis=1)
    unit = normalize_rows(means[live])
    corners = np.full((len(means), n_axes), np.nan)
    even = _circle(len(unit)) if n_axes == 2 else _sphere(len(unit))
    order = np.empty_like(even)
    order[_alike_together(means[live], unit)] = even
    corners[live] = order
    project = unit.T @ order
    found = means @ project
    reach = np.sqrt(np.nanmax(np.square(found).sum(axis=1)))
    return View(project / reach, found / reach, corners)


def _alike_together(means: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Return an order of clusters in which neighbours are alike."""
    if len(unit) < 4:
        return np.arange(len(unit))
    cosines = means @ unit.T
    apart = cosines.max() - (cosines + cosines.T) / 2
    np.fill_diagonal(apart, 0)
    pairs = np.maximum(squareform(apart, checks=False), 0)
    return leaves_list(linkage(pairs, "average", optimal_ordering=True))


def _circle(count: int) -> np.ndarray:
    """Return points evenly on a circle, clockwise from the top."""
    angle = np.pi / 2 - 2 * np.pi * np.arange(count) / count
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _sphere(count: int) -> np.ndarray:
    """Return points nearly evenly on a sphere, along a spiral."""
    place = np.arange(count) + 0.5
    height = 1 - 2 * place / count
    angle = np.pi * (1 + np.sqrt(5)) * place
    radius = np.sqrt(1 - height**2)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), height])


def _first(used: np.ndarray, width: int, n_axes: int) -> list[int]:
    """Return coordinates in use, and others where these are too few."""
    if width < n_axes:
        raise ValueError(
            f"The rows have {width} coordinate{'s' * (width != 1)}, too few for "
            f"{n_axes} axes; fit more clusters"
            + (", or call plot_embedding." if n_axes == 3 else ".")
        )
    others = np.setdiff1d(np.arange(width), used)
    return np.sort(np.r_[used, others[: n_axes - len(used)]]).tolist()


def _check_dims(dims: Any, width: int, n_axes: int) -> tuple[int, ...]:
    example = "(0, 1)" if n_axes == 2 else "(0, 1, 2)"
    try:
        chosen = tuple(check_count("dims", dim, least=0) for dim in dims)
    except TypeError as error:
        raise TypeError(
            f"dims={dims!r} is not known; give {n_axes} whole numbers, such as "
            f"{example}."
        ) from error
    if len(set(chosen)) != n_axes or len(chosen) != n_axes or max(chosen) >= width:
        raise ValueError(
            f"dims={dims!r} does not fit; give {n_axes} different numbers from 0 to "
            f"{width - 1}, such as {example}."
        )
    return chosen
