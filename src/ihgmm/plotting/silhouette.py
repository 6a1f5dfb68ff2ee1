"""How well each row sits in its cluster, by angle."""

from __future__ import annotations

from typing import Any

import numpy as np

from ihgmm._arrays import Array
from ihgmm._checks.data import check_data
from ihgmm._norms import row_sqnorms
from ihgmm._products import matmul
from ihgmm.groups import Groups
from ihgmm.plotting._fitted import Clusters, check_rows, clusters_of, fitted, host
from ihgmm.plotting._frame import axes, ink, width_for
from ihgmm.plotting._profiles import draw_profiles

__all__ = ["cosine_silhouettes", "plot_silhouette"]


def plot_silhouette(model: Any, X: Any = None, *, ax: Any = None) -> Any:
    """Draw the silhouette of each row on the sphere, sorted within clusters.

    Parameters
    ----------
    model : fitted estimator, or array-like of shape (n_samples,)
        A model with ``labels_``, or labels of any kind.
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        Rows to compare by cosine. Default: the ``embedding_`` of the model, which is
        where :class:`ihgmm.IhSC` looks for clusters. Silhouettes of data with many
        features are small, since noise makes all rows nearly orthogonal.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes

    Notes
    -----
    The silhouette of a row is ``(b - a) / max(a, b)``, with a its mean cosine distance
    to the other rows of its cluster and b that to the rows of the nearest other
    cluster: 1 is best, below 0 the row is nearer to another cluster. A mean cosine
    distance to a cluster is one minus the cosine with the mean of its unit rows, so all
    silhouettes are exact at a cost that is linear in the number of rows. Rows alone in
    their cluster have 0, and zero rows have no direction and are left out. A cluster of
    more than 400 rows is drawn by 400 of its sorted values.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> ax = plot_silhouette(IhSC(3, random_state=0).fit(X))
    >>> ax.get_title()
    'mean silhouette 1.00'
    """
    clusters = clusters_of(model, "plot_silhouette")
    if X is None and not hasattr(model, "embedding_"):
        raise TypeError(
            f"{type(model).__name__} has no embedding_; give the rows to compare: "
            "plot_silhouette(model, X)."
        )
    if X is None:
        X = fitted(model, "embedding_", "plot_silhouette")
    data = check_data(X, blocks=True, devices=True)
    check_rows(data.X.shape[0], clusters)
    values = cosine_silhouettes(data.X, clusters)
    count = len(clusters.names)
    ax = axes(ax, (width_for(count), 4.0))
    draw_profiles(ax, values, clusters)
    mean = float(np.nanmean(values))
    ax.axhline(mean, color=ink(ax), lw=0.9, ls="--")
    ax.set_ylim(min(-0.05, 1.08 * float(np.nanmin(values))), 1.04)
    ax.set_xlabel("cluster; rows sorted within")
    ax.set_ylabel("silhouette by cosine")
    ax.set_title(f"mean silhouette {mean:.2f}")
    return ax


def cosine_silhouettes(X: Array, clusters: Clusters) -> np.ndarray:
    """Return the silhouette of each row by cosine distance; NaN for zero rows."""
    norms = np.sqrt(host(row_sqnorms(X)))
    live = norms > 0
    codes, count = clusters.codes, len(clusters.names)
    inverse = np.divide(1.0, norms, where=live, out=np.zeros(len(norms)))
    sizes = np.bincount(codes, weights=live, minlength=count)
    if np.count_nonzero(sizes) < 2:
        raise ValueError(
            "All rows are in one cluster; a silhouette compares two or more."
        )
    sums = Groups.of(codes, count).weighted_sums(X, inverse).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines = host(matmul(X, (sums / sizes[:, None]).T)) * inverse[:, None]
        distances = np.where(sizes > 0, 1.0 - cosines, np.inf).astype(np.float64)
        here = (np.arange(len(codes)), codes)
        # The row itself is at distance 0 and does not count.
        own = distances[here] * sizes[codes] / (sizes[codes] - 1)
        distances[here] = np.inf
        nearest = distances.min(axis=1)
        values = (nearest - own) / np.maximum(np.maximum(own, nearest), 1e-12)
    values[sizes[codes] < 2] = 0.0
    values[~live] = np.nan
    return values
