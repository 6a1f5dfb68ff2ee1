"""A linear view of many coordinates in two or three, in which clusters stand apart."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ihgmm.plotting._clusters import Clusters


@dataclass(frozen=True, eq=False)
class View:
    """Where rows and clusters are drawn."""

    points: np.ndarray  # of the rows, of shape (n_samples, n_axes)
    means: np.ndarray  # of the clusters; NaN for empty ones
    corners: np.ndarray | None = None  # where clusters are drawn towards, if anywhere
    dims: tuple[int, ...] = ()  # the coordinates drawn, if they are plain


def circle_view(
    rows: np.ndarray,
    clusters: Clusters,
    n_axes: int = 2,
    most_on_circle: float = np.inf,
) -> View:
    """Return the view that sends each cluster to a place of its own.

    It is the least-squares fit of these places, each cluster counting the same, by a
    linear function of the coordinates: rows between two clusters lie between them.
    """
    rows = rows / (np.abs(rows).max(initial=0.0) or 1.0)  # squares may overflow
    sizes, codes, means = clusters.sizes, clusters.codes, clusters.means(rows)
    used = np.flatnonzero(sizes)
    corners = np.full((len(sizes), n_axes), np.nan)
    places = _even_places(len(used), n_axes, most_on_circle)
    corners[used] = _arranged(means[used], places)
    inside, codes = rows[codes >= 0], codes[codes >= 0]  # without outliers
    weights = np.sqrt(1 / (sizes[codes] * len(used)))[:, None]
    weighted = np.column_stack([inside, np.ones(len(inside))]) * weights
    target = weighted.T @ (corners[codes] * weights)
    # Solved by the small matrix of products, whose smallest directions are noise.
    fit = np.linalg.lstsq(weighted.T @ weighted, target, rcond=1e-9)[0]
    slopes, shift = fit[:-1], fit[-1]
    if len(used) <= n_axes:  # so few places leave axes free
        _fill_axes(slopes, shift, rows, len(used) - 1)
    return View(rows @ slopes + shift, means @ slopes + shift, corners)


def coordinate_view(
    rows: np.ndarray, clusters: Clusters, n_axes: int, dims: Any = None
) -> View:
    """Return the view of given coordinates, of all that are in use, or of a circle."""
    means, width = clusters.means(rows), rows.shape[1]
    if dims is None:
        in_use = np.nan_to_num(means).any(axis=0)
        if in_use.sum() > n_axes and np.count_nonzero(clusters.sizes) > 1:
            view = circle_view(rows, clusters, n_axes)
            # The mean that is furthest out is drawn at distance 1.
            unit = np.sqrt(np.nanmax(np.square(view.means).sum(axis=1))) or 1.0
            return View(view.points / unit, view.means / unit, view.corners)
        if width < n_axes:
            raise ValueError(
                f"The rows have {width} coordinate{'s' * (width != 1)}, too few for "
                f"{n_axes} axes; fit more clusters"
                + (", or call plot_embedding." if n_axes == 3 else ".")
            )
        dims = np.sort(np.argsort(~in_use, kind="stable")[:n_axes])
    chosen: tuple[int, ...] = ()
    with suppress(TypeError):
        chosen = tuple(index(dim) for dim in dims)
    if not len(chosen) == len(set(chosen) & set(range(width))) == n_axes:
        raise ValueError(
            f"dims={dims!r} does not fit; give {n_axes} different numbers from 0 to "
            f"{width - 1}, such as {tuple(range(n_axes))}."
        )
    return View(rows[:, chosen], means[:, chosen], None, chosen)


def _even_places(count: int, n_axes: int, most_on_circle: float) -> np.ndarray:
    """Return places evenly on a circle, over a disc, or nearly so on a sphere."""
    place, height = np.arange(count), np.zeros(count)
    radius, angle = np.ones(count), 2 * np.pi / count * place
    golden = np.pi * (3 - np.sqrt(5))  # turns of a sunflower's seeds, which are even
    if n_axes == 3 and count > 3:
        height = 1 - (2 * place + 1) / count
        radius, angle = np.sqrt(1 - height**2), golden * place
    elif count > most_on_circle:
        radius, angle = np.sqrt((place + 0.5) / (count - 0.5)), golden * place
    places = [radius * np.cos(angle), radius * np.sin(angle), height]
    return np.column_stack(places[:n_axes])


def _arranged(means: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return a place for each cluster, like ones close to each other."""
    left, values, _ = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
    seen = (left * values)[:, : places.shape[1]]
    fit = seen @ places[:, : seen.shape[1]].T
    return places[linear_sum_assignment(fit, maximize=True)[1]]


def _fill_axes(
    slopes: np.ndarray, shift: np.ndarray, rows: np.ndarray, n_taken: int
) -> None:
    """Show on free axes the directions of largest spread beside those taken."""
    lengths = np.linalg.norm(slopes[:, :n_taken], axis=0)
    if not lengths.all():
        return
    taken = np.linalg.qr(slopes[:, :n_taken])[0]
    middle = rows.mean(axis=0)
    rest = rows - middle
    rest = rest - (rest @ taken) @ taken.T
    n_free = slopes.shape[1] - n_taken
    free = np.linalg.eigh(rest.T @ rest)[1][:, : -n_free - 1 : -1]
    free = free * np.where(free.sum(axis=0) >= 0, 1.0, -1.0)
    slopes[:, n_taken:] = (free - taken @ (taken.T @ free)) * lengths.mean()
    shift[n_taken:] = -middle @ slopes[:, n_taken:]
