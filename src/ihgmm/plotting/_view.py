"""A linear view of many coordinates in two or three, in which clusters stand apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ihgmm._checks import check_count


@dataclass(frozen=True, eq=False)
class View:
    """Coordinates times ``slopes`` plus ``shift`` are what is drawn."""

    slopes: np.ndarray  # of shape (n_coordinates, n_axes)
    shift: np.ndarray
    means: np.ndarray  # where clusters are drawn on average; NaN for empty ones
    corners: np.ndarray | None = None  # where they are drawn towards, if anywhere
    dims: tuple[int, ...] = ()  # the coordinates drawn, if they are plain

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return where rows are drawn."""
        return np.asarray(rows @ self.slopes + self.shift)

    def scaled(self) -> View:
        """Return the view with the mean that is furthest out at distance 1."""
        unit = np.sqrt(np.nanmax(np.square(self.means).sum(axis=1))) or 1.0
        return View(
            self.slopes / unit, self.shift / unit, self.means / unit, self.corners
        )


def circle_view(
    rows: np.ndarray,
    codes: np.ndarray,
    n_clusters: int,
    n_axes: int = 2,
    *,
    most_on_circle: int | None = None,
) -> View:
    """Return the view that sends each cluster to a place of its own.

    Places are even on a circle or a sphere, or spread over a disc where there are more
    than ``most_on_circle`` clusters; like clusters are neighbours. The view is the
    least-squares fit of these places, each cluster counting the same, by a linear
    function of the coordinates. So rows between two clusters lie between them, and
    clusters that overlap in the coordinates overlap in the picture.
    """
    used, codes = np.unique(codes, return_inverse=True)
    codes = np.ravel(codes)
    share = 1 / np.bincount(codes)
    means = _group_means(rows, codes, len(used))
    corners = _arranged(means, _even_places(len(used), n_axes, most_on_circle))
    weights = np.sqrt(share[codes] / len(used))[:, None]
    weighted = np.column_stack([rows, np.ones(len(rows))]) * weights
    # Solved by the small matrix of products, whose smallest directions are noise.
    fit = np.linalg.lstsq(
        weighted.T @ weighted, weighted.T @ (corners[codes] * weights), rcond=1e-9
    )[0]
    slopes, shift = fit[:-1], fit[-1]
    if len(used) <= n_axes:  # so few places leave axes free
        _fill_axes(slopes, shift, rows, len(used) - 1)

    def by_cluster(values: np.ndarray) -> np.ndarray:
        everyone = np.full((n_clusters, n_axes), np.nan)
        everyone[used] = values
        return everyone

    return View(slopes, shift, by_cluster(means @ slopes + shift), by_cluster(corners))


def coordinate_view(
    rows: np.ndarray,
    codes: np.ndarray,
    n_clusters: int,
    n_axes: int,
    dims: Sequence[int] | None,
) -> View:
    """Return the view of given coordinates; by default the circle view.

    With no more coordinates in use than there are axes, these are what is drawn.
    """
    width = rows.shape[1]
    means = _group_means(rows, codes, n_clusters)
    if dims is None:
        in_use = np.flatnonzero(np.nan_to_num(means).any(axis=0))
        if len(in_use) > n_axes and np.count_nonzero(np.bincount(codes)) > 1:
            return circle_view(rows, codes, n_clusters, n_axes).scaled()
        dims = _leading(in_use[:n_axes], width, n_axes)
    chosen = _check_dims(dims, width, n_axes)
    slopes = np.eye(width)[:, chosen]
    return View(slopes, np.zeros(n_axes), means[:, chosen], None, chosen)


def _group_means(rows: np.ndarray, codes: np.ndarray, count: int) -> np.ndarray:
    """Return the mean row of each group; NaN for a group without rows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = 1 / np.bincount(codes, minlength=count)
        means = np.zeros((count, rows.shape[1]))
        np.add.at(means, codes, rows * share[codes, None])
        means[np.isinf(share)] = np.nan
    return means


def _even_places(count: int, n_axes: int, most_on_circle: int | None) -> np.ndarray:
    """Return places evenly on a circle, over a disc, or nearly so on a sphere."""
    place = np.arange(count)
    golden = np.pi * (3 - np.sqrt(5))  # turns of a sunflower's seeds, which are even
    if n_axes == 3 and count > 3:
        height = 1 - (2 * place + 1) / count
        radius, angle = np.sqrt(1 - height**2), golden * place
        return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), height])
    radius, angle = np.ones(count), 2 * np.pi / count * place
    if most_on_circle is not None and count > most_on_circle:
        radius, angle = np.sqrt((place + 0.5) / (count - 0.5)), golden * place
    flat = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.column_stack([flat, np.zeros((count, n_axes - 2))])


def _arranged(means: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return a place for each cluster, like ones close to each other."""
    left, values, _ = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
    seen = np.zeros(places.shape)
    n_axes = min(places.shape[1], len(values))
    seen[:, :n_axes] = left[:, :n_axes] * values[:n_axes]
    return places[linear_sum_assignment(seen @ places.T, maximize=True)[1]]


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
    _, directions = np.linalg.eigh(rest.T @ rest)
    for axis in range(n_taken, slopes.shape[1]):
        free = directions[:, n_taken - axis - 1]
        free = free * (1.0 if free.sum() >= 0 else -1.0)
        free = free - taken @ (taken.T @ free)
        slopes[:, axis] = free * lengths.mean()
        shift[axis] = -middle @ slopes[:, axis]


def _leading(in_use: np.ndarray, width: int, n_axes: int) -> list[int]:
    """Return coordinates in use, and others where these are too few."""
    if width < n_axes:
        raise ValueError(
            f"The rows have {width} coordinate{'s' * (width != 1)}, too few for "
            f"{n_axes} axes; fit more clusters"
            + (", or call plot_embedding." if n_axes == 3 else ".")
        )
    others = np.setdiff1d(np.arange(width), in_use)
    return np.sort(np.r_[in_use, others[: n_axes - len(in_use)]]).tolist()


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
