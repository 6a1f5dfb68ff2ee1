"""The rows on the sphere where the clusters are found, in a view that shows them."""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ihgmm._checks import check_labels, complete_matrix
from ihgmm.estimators.base import cosines
from ihgmm.matrix import to_host
from ihgmm.plotting import _axes as draw
from ihgmm.plotting._axes import Axes
from ihgmm.plotting._clusters import Clusters, clusters_of, fitted
from ihgmm.words.phrases import counted


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
        X, model = None, X
    clusters = clusters_of(model, "plot_embedding")
    if X is None:
        rows = fitted(model, "embedding_", "plot_embedding").astype(np.float64)
    else:
        data = complete_matrix(X, model)
        check_labels("labels", clusters.codes, data.shape[0])
        centers = fitted(model, "cluster_centers_", "plot_embedding")
        rows = to_host(cosines(centers, data)).astype(np.float64)
    if rows.shape[1] < 2:
        raise ValueError("The rows have 1 coordinate; fit more clusters to draw 2.")
    used, ax = np.flatnonzero(clusters.sizes).tolist(), draw.given_or_new(ax, (6, 5.6))
    number: dict[str, Any] = {"weight": "bold", "ha": "center", "va": "center"}
    in_use = np.nan_to_num(clusters.means(rows)).any(axis=0)
    if in_use.sum() <= 2 or len(used) < 2:
        chosen = np.sort(np.argsort(~in_use, kind="stable")[:2])
        _, note = _scatter(ax, rows[:, chosen], clusters)
        ax.set(xlabel=f"coordinate {chosen[0]}{note}", ylabel=f"coordinate {chosen[1]}")
        ax.set_aspect("equal", adjustable="datalim")
        from matplotlib.patheffects import withStroke

        # An outline sets numbers off from the points around them.
        halo = [withStroke(linewidth=2.5, foreground=ax.get_facecolor())]
        means = clusters.means(rows[:, chosen])
        for k in used:
            ax.text(means[k, 0], means[k, 1], str(k), path_effects=halo, **number)
        return draw.quiet(ax)
    points, means, corners = circle_view(rows, clusters)
    # The mean that is furthest out is drawn at distance 1.
    unit = np.sqrt(np.nanmax(np.square(means).sum(axis=1))) or 1.0
    shown, note = _scatter(ax, points / unit, clusters)
    ring = 1.09 * max(float(np.linalg.norm(shown, axis=1).max()), 1.0)
    limits = (-1.06 * ring, 1.06 * ring)
    ax.set(xlim=limits, ylim=limits, xticks=[], yticks=[])
    ax.set_xlabel("a row between two clusters resembles both" + note)
    ax.set_aspect("equal", adjustable="box")
    ax.spines[:].set_visible(False)
    box = ax.get_window_extent()
    # Two digits are 1.3 times as wide as they are high, and want a gap.
    room = np.pi * 0.85 * min(box.width, box.height) / (1.6 * len(corners))
    size = min(draw.font_size(ax), room) * 72 / ax.figure.dpi
    # Numbers are on a circle around the rows, with a line to each cluster.
    for k in used:
        place = ring * corners[k]
        ends = np.column_stack([means[k] / unit, 0.965 * place])
        ax.plot(*ends, color=draw.color(k, ax), lw=0.7, zorder=1.5)
        ax.text(place[0], place[1], str(k), color=draw.ink(ax), size=size, **number)
    return ax


def circle_view(
    rows: np.ndarray, clusters: Clusters, most_on_circle: float = np.inf
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where rows and means are drawn, and the place of each cluster."""
    # The view is a linear function of the coordinates, fitted to the places by least
    # squares. More clusters than most_on_circle have their places over a disc.
    rows = rows / (np.abs(rows).max(initial=0.0) or 1.0)  # squares may overflow
    sizes, codes, means = clusters.sizes, clusters.codes, clusters.means(rows)
    used = np.flatnonzero(sizes)
    place, count = np.arange(len(used)), len(used)
    radius, angle = np.ones(count), 2 * np.pi / count * place
    if count > most_on_circle:  # as evenly as the seeds of a sunflower
        radius = np.sqrt((place + 0.5) / (count - 0.5))
        angle = np.pi * (3 - np.sqrt(5)) * place
    places = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    # Like clusters are close to each other.
    apart = means[used] - means[used].mean(axis=0)
    left, values, _ = np.linalg.svd(apart, full_matrices=False)
    seen = (left * values)[:, :2]
    fit = seen @ places[:, : seen.shape[1]].T
    corners = np.full((len(sizes), 2), np.nan)
    corners[used] = places[linear_sum_assignment(fit, maximize=True)[1]]
    inside, codes = rows[codes >= 0], codes[codes >= 0]  # without outliers
    weights = np.sqrt(1 / (sizes[codes] * count))[:, None]
    weighted = np.column_stack([inside, np.ones(len(inside))]) * weights
    target = weighted.T @ (corners[codes] * weights)
    # Solved by the small matrix of products, whose smallest directions are noise.
    solution = np.linalg.lstsq(weighted.T @ weighted, target, rcond=1e-9)[0]
    slopes, shift = solution[:-1], solution[-1]
    length = np.linalg.norm(slopes[:, 0])
    if count == 2 and length > 0:
        # Two places leave an axis free: it shows the largest spread beside the first.
        taken, middle = slopes[:, 0] / length, rows.mean(axis=0)
        rest = rows - middle
        rest = rest - np.outer(rest @ taken, taken)
        free = np.linalg.eigh(rest.T @ rest)[1][:, -1]
        free = (free - taken * (taken @ free)) * np.where(free.sum() >= 0, 1.0, -1.0)
        slopes[:, 1] = length * free
        shift[1] = -middle @ slopes[:, 1]
    return rows @ slopes + shift, means @ slopes + shift, corners


def _scatter(ax: Axes, points: np.ndarray, clusters: Clusters) -> tuple[Any, str]:
    """Draw the rows; return the points shown, and a line on how many if not all."""
    kept = clusters.thinned(20_000, 30)  # more points would be slow and hide others
    shown = points[np.concatenate(kept)]
    many = len(shown) > 2000
    size = float(np.clip(6000 / len(shown), 2.5, 26.0))  # smaller where there are many
    options: dict[str, Any] = {"s": size, "rasterized": many}
    options["alpha"] = 0.5 if many else 0.85
    for k, rows in enumerate(kept):  # the smallest clusters last, on top
        if len(rows):
            # With seven markers and fifty colours, the pair is a cluster's own up to
            # 350 clusters; in grey print the marker is left.
            look = {"c": draw.color(k, ax), "marker": "os^Dv<>"[k % 7], "linewidths": 0}
            ax.scatter(*points[rows].T, **options | look)
    outliers = points[clusters.outliers][:2000]
    if len(outliers):
        look = {"c": draw.NEUTRAL, "marker": "x", "linewidths": 0.8, "zorder": 1}
        ax.scatter(*outliers.T, **options | look, label="outlier")
        shown = np.concatenate([shown, outliers])
        ax.legend(loc="upper right", frameon=False)
    total, n = len(shown), len(points)
    ax.set_title(f"{counted(n, 'row')} in {counted(len(kept), 'cluster')}")
    return shown, "" if total == n else f"\n{total:,} of {n:,} rows shown"
