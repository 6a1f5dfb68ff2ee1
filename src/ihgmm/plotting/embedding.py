"""The rows on the sphere where the clusters are found, in a view that shows them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ihgmm._checks import check_labels, complete_matrix
from ihgmm.estimators.clusterer import cosines
from ihgmm.matrix import to_host
from ihgmm.plotting import _axes as draw
from ihgmm.plotting._axes import Axes
from ihgmm.plotting._clusters import Clusters, clusters_of, fitted
from ihgmm.words.phrases import counted

MOST_POINTS = 20_000  # more points would be slow to draw, and hide others
LEAST_POINTS = 30  # of each cluster, if it has so many
MOST_OUTLIERS = 2_000
MARKERS = "os^Dv<>"


def plot_embedding(X: Any = None, model: Any = None, *, ax: Axes | None = None) -> Axes:
    """Draw the rows as points on the sphere of the embedding, by cluster.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        The data that was clustered, for models without an embedding: rows are drawn by
        their cosines with the centres. Otherwise give the model alone.
    model : fitted estimator
        A model with ``embedding_``, such as :class:`ihgmm.IhSC`; with X, any that has
        ``labels_`` and ``cluster_centers_``.
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
    if model is None:
        model = X
        X = None

    clusters = clusters_of(model, "plot_embedding")
    rows = _coordinates(X, model, clusters)
    if rows.shape[1] < 2:
        raise ValueError("The rows have 1 coordinate; fit more clusters to draw 2.")

    ax = draw.given_or_new(ax, (6, 5.6))
    means = np.nan_to_num(clusters.means(rows))
    is_used = means.any(axis=0)
    n_used_clusters = np.count_nonzero(clusters.sizes)
    if is_used.sum() <= 2 or n_used_clusters < 2:
        first_used = np.argsort(~is_used, kind="stable")[:2]
        return _draw_plane(ax, rows, np.sort(first_used), clusters)

    view = circle_view(rows, clusters)
    return _draw_circle(ax, view, clusters)


def _coordinates(X: Any, model: Any, clusters: Clusters) -> np.ndarray:
    """Return the embedding of the model, or without it cosines with the centres."""
    if X is None:
        return fitted(model, "embedding_", "plot_embedding").astype(np.float64)

    data = complete_matrix(X, model)
    check_labels("labels", clusters.codes, data.shape[0])
    centers = fitted(model, "cluster_centers_", "plot_embedding")
    return to_host(cosines(centers, data)).astype(np.float64)


def _draw_plane(
    ax: Axes, rows: np.ndarray, pair: np.ndarray, clusters: Clusters
) -> Axes:
    """Draw rows by a pair of their coordinates, with numbers on the clusters' means."""
    from matplotlib.patheffects import withStroke

    points = rows[:, pair]
    _, note = _scatter(ax, points, clusters)
    ax.set_xlabel(f"coordinate {pair[0]}{note}")
    ax.set_ylabel(f"coordinate {pair[1]}")
    ax.set_aspect("equal", adjustable="datalim")

    # An outline sets numbers off from the points around them.
    outline = withStroke(linewidth=2.5, foreground=ax.get_facecolor())
    means = clusters.means(points)
    for cluster in np.flatnonzero(clusters.sizes).tolist():
        ax.text(
            means[cluster, 0],
            means[cluster, 1],
            str(cluster),
            path_effects=[outline],
            weight="bold",
            ha="center",
            va="center",
        )
    return draw.quiet(ax)


@dataclass(frozen=True, eq=False)
class CircleView:
    """A view of rows in the plane, in which clusters point to places on a circle."""

    points: np.ndarray  # (n_rows, 2)
    means: np.ndarray  # (n_clusters, 2): of the points; NaN without rows
    places: np.ndarray  # (n_clusters, 2): on the circle or disc; NaN without rows


def _draw_circle(ax: Axes, view: CircleView, clusters: Clusters) -> Axes:
    """Draw rows inside a circle of numbers, with a line from each to its cluster."""
    # The mean that is furthest out is drawn at distance 1.
    squared_distances = np.square(view.means).sum(axis=1)
    unit = np.sqrt(np.nanmax(squared_distances)) or 1.0
    shown_points, note = _scatter(ax, view.points / unit, clusters)

    furthest_point = float(np.linalg.norm(shown_points, axis=1).max())
    ring = 1.09 * max(furthest_point, 1.0)
    limits = (-1.06 * ring, 1.06 * ring)
    ax.set(xlim=limits, ylim=limits, xticks=[], yticks=[])
    ax.set_xlabel("a row between two clusters resembles both" + note)
    ax.set_aspect("equal", adjustable="box")
    ax.spines[:].set_visible(False)

    text_size = _size_of_numbers(ax, len(view.places))
    for cluster in np.flatnonzero(clusters.sizes).tolist():
        mean = view.means[cluster] / unit
        place = ring * view.places[cluster]
        line = np.column_stack([mean, 0.965 * place])
        ax.plot(*line, color=draw.color(cluster, ax), lw=0.7, zorder=1.5)
        ax.text(
            place[0],
            place[1],
            str(cluster),
            color=draw.ink(ax),
            size=text_size,
            weight="bold",
            ha="center",
            va="center",
        )
    return ax


def _size_of_numbers(ax: Axes, count: int) -> float:
    """Return the size in points at which so many numbers fit around the rows."""
    box = ax.get_window_extent()
    length_of_ring = np.pi * 0.85 * min(box.width, box.height)
    # Two digits are 1.3 times as wide as they are high, and want a gap.
    highest = length_of_ring / (1.6 * count)
    return draw.to_points(min(draw.font_size(ax), highest), ax)


def circle_view(
    rows: np.ndarray, clusters: Clusters, most_on_circle: float = np.inf
) -> CircleView:
    """Return the linear view of rows in which clusters are nearest to their places.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_coordinates)
        The rows.
    clusters : Clusters
        Which cluster each row is in; outliers have no part in the view.
    most_on_circle : float
        Places are on a circle for so many clusters at most, else all over a disc.

    Notes
    -----
    The view ``rows @ slopes + shift`` is fitted to the places by least squares, in
    which every cluster counts alike.
    """
    largest_entry = np.abs(rows).max(initial=0.0)
    rows = rows / (largest_entry or 1.0)  # squares may overflow
    means = clusters.means(rows)
    used = np.flatnonzero(clusters.sizes)

    n_used = len(used)
    candidates = _even_places(n_used, on_circle=n_used <= most_on_circle)
    places = np.full((clusters.n_clusters, 2), np.nan)
    places[used] = _nearby_places(means[used], candidates)

    slopes, shift = _fit_to_places(rows, clusters, places)
    if n_used == 2:
        # Two places are on one line, and leave the other axis free.
        slope = slopes[:, 0]
        if np.linalg.norm(slope) > 0:
            slopes[:, 1], shift[1] = _axis_of_largest_spread(rows, slope)

    return CircleView(
        points=rows @ slopes + shift,
        means=means @ slopes + shift,
        places=places,
    )


def _even_places(count: int, *, on_circle: bool) -> np.ndarray:
    """Return so many places, (count, 2), evenly on the unit circle or disc."""
    numbers = np.arange(count)
    if on_circle:
        radii = np.ones(count)
        angle_between = 2 * np.pi / count
    else:  # like the seeds of a sunflower
        radii = np.sqrt((numbers + 0.5) / (count - 0.5))
        angle_between = np.pi * (3 - np.sqrt(5))

    angles = angle_between * numbers
    x = radii * np.cos(angles)
    y = radii * np.sin(angles)
    return np.column_stack([x, y])


def _nearby_places(means: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Give each cluster one of the places, so that like clusters are neighbours."""
    # Principal components of the means tell which clusters are alike.
    deviations = means - means.mean(axis=0)
    directions, lengths, _ = np.linalg.svd(deviations, full_matrices=False)
    components = (directions * lengths)[:, :2]
    n_components = components.shape[1]

    agreement = components @ places[:, :n_components].T
    _, chosen = linear_sum_assignment(agreement, maximize=True)
    return places[chosen]


def _fit_to_places(
    rows: np.ndarray, clusters: Clusters, places: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return slopes, (n_coordinates, 2), and a shift that send rows to their places."""
    codes = clusters.codes[clusters.is_clustered]
    clustered_rows = rows[clusters.is_clustered]
    sizes = clusters.sizes

    # Roots of weights of rows, by which every cluster counts alike.
    n_used = np.count_nonzero(sizes)
    weights = 1 / (sizes[codes] * n_used)
    root_weights = np.sqrt(weights)[:, None]
    constant = np.ones(len(codes))
    regressors = np.column_stack([clustered_rows, constant]) * root_weights
    targets = places[codes] * root_weights

    # Solved by the small matrix of products, whose smallest directions are noise.
    products = regressors.T @ regressors
    products_with_targets = regressors.T @ targets
    solution, *_ = np.linalg.lstsq(products, products_with_targets, rcond=1e-9)
    return solution[:-1], solution[-1]


def _axis_of_largest_spread(
    rows: np.ndarray, slope: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return slope and shift of the axis of largest spread across a given slope."""
    length = np.linalg.norm(slope)
    direction = slope / length
    middle = rows.mean(axis=0)

    deviations = rows - middle
    lengths_along = deviations @ direction
    across = deviations - np.outer(lengths_along, direction)
    _, vectors = np.linalg.eigh(across.T @ across)
    axis = vectors[:, -1]
    sign = 1.0 if axis.sum() >= 0 else -1.0
    along_direction = direction * (direction @ axis)
    axis = (axis - along_direction) * sign

    slope_across = length * axis
    return slope_across, -middle @ slope_across


def _scatter(
    ax: Axes, points: np.ndarray, clusters: Clusters
) -> tuple[np.ndarray, str]:
    """Draw the rows; return the points shown, and a line on how many if not all."""
    shown_rows = clusters.thinned(MOST_POINTS, LEAST_POINTS)
    shown_points = points[np.concatenate(shown_rows)]

    n_shown = len(shown_points)
    are_many = n_shown > 2000
    marker_area = float(np.clip(6000 / n_shown, 2.5, 26.0))
    opacity = 0.5 if are_many else 0.85

    for cluster, rows in enumerate(shown_rows):  # the smallest clusters last, on top
        if len(rows):
            # With seven markers and fifty colours, the pair is a cluster's own up to
            # 350 clusters; in grey print the marker is left.
            ax.scatter(
                points[rows, 0],
                points[rows, 1],
                s=marker_area,
                c=draw.color(cluster, ax),
                marker=MARKERS[cluster % len(MARKERS)],
                linewidths=0,
                alpha=opacity,
                rasterized=are_many,
            )

    outliers = points[clusters.outliers][:MOST_OUTLIERS]
    if len(outliers):
        ax.scatter(
            outliers[:, 0],
            outliers[:, 1],
            s=marker_area,
            c=draw.NEUTRAL,
            marker="x",
            linewidths=0.8,
            zorder=1,
            alpha=opacity,
            rasterized=are_many,
            label="outlier",
        )
        shown_points = np.concatenate([shown_points, outliers])
        ax.legend(loc="upper right", frameon=False)

    n_rows = len(points)
    n_clusters = len(shown_rows)
    ax.set_title(f"{counted(n_rows, 'row')} in {counted(n_clusters, 'cluster')}")
    if len(shown_points) == n_rows:
        return shown_points, ""

    return shown_points, f"\n{len(shown_points):,} of {n_rows:,} rows shown"
