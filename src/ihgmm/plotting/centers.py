"""Patterns of the clusters, in the features that tell them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ihgmm._checks.parameters import check_count
from ihgmm.estimation import TellingFeatures, telling_features
from ihgmm.plotting._fitted import clusters_of, fitted
from ihgmm.plotting._frame import axes, cluster_ticks, name_width, width_for

__all__ = ["plot_centers"]


def plot_centers(
    model: Any,
    *,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    ax: Any = None,
) -> Any:
    """Draw the pattern of each cluster in the most telling features, as a heat map.

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
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes

    Notes
    -----
    A cell shows by how much a centre is above or below the other centres, stretched to
    its length, in noise levels of the cluster: the contrast of
    :func:`ihgmm.estimation.telling_features`. For models without ``noise_levels_`` it
    is a share of the centre's length. Each cluster's most telling feature is shown
    first, then the second of each, until there are ``n_features``. Features are in the
    order of the clusters that they tell most about.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> ax = plot_centers(IhSC(3, random_state=0).fit(X), n_features=6)
    >>> len(ax.get_yticks())
    6
    """
    centers = fitted(model, "cluster_centers_", "plot_centers")
    most = max(20, len(centers)) if n_features is None else n_features
    count = check_count("n_features", most)
    clusters = clusters_of(model, "plot_centers")
    names = _feature_names(model, feature_names, centers.shape[1])
    noise = _noise_levels(model, clusters.codes, len(centers))
    told = telling_features(centers, noise, n_features=count)
    shown = _chosen(told, count)
    cells = told.contrasts[:, shown].T
    height = float(np.clip(1.2 + 0.24 * len(shown), 3.0, 13.5))
    rows = [names[j] for j in shown]
    ax = axes(ax, (width_for(len(centers)) + 0.4 + name_width(rows), height))
    # Dark is below and bright is above, in colour and in grey print.
    reach = float(np.abs(cells).max()) or 1.0
    mesh = ax.imshow(cells, cmap="cividis", vmin=-reach, vmax=reach, aspect="auto")
    mesh.set_rasterized(True)
    bar = ax.figure.colorbar(mesh, ax=ax, fraction=0.06, pad=0.03)
    unit = "share of the centre's length" if noise is None else "noise levels"
    bar.set_label(f"above the other clusters\n({unit})")
    cluster_ticks(ax, clusters.names)
    cluster_ticks(ax, rows, "y")
    ax.set_xlabel("cluster")
    return ax


def _chosen(told: TellingFeatures, count: int) -> np.ndarray:
    """Return the best features of all clusters, by the cluster that they tell of."""
    strength = np.abs(told.scores)
    ranked: dict[int, None] = {}
    for place in range(told.features.shape[1]):
        order = np.argsort(-strength[:, place], kind="stable")
        ranked.update(dict.fromkeys(told.features[order, place].tolist()))
        if len(ranked) >= count:
            break
    shown = np.array(list(ranked)[:count])
    contrasts = np.abs(told.contrasts[:, shown])
    owner = contrasts.argmax(axis=0)
    return shown[np.lexsort((-contrasts.max(axis=0), owner))]


def _feature_names(
    model: Any, given: Sequence[str] | None, n_features: int
) -> Sequence[str]:
    names = getattr(model, "feature_names_in_", None) if given is None else given
    if names is None:
        return [f"x{j}" for j in range(n_features)]
    if len(names) != n_features:
        raise ValueError(
            f"feature_names has {len(names)} entries and the centres have "
            f"{n_features} features; give one name for each."
        )
    return [str(name) for name in names]


def _noise_levels(model: Any, codes: np.ndarray, k: int) -> np.ndarray | None:
    """Return the noise level of each cluster, if the model has any noise."""
    levels = getattr(model, "noise_levels_", None)
    if levels is None:
        return None
    levels = fitted(model, "noise_levels_", "plot_centers").astype(np.float64)
    if len(levels) == len(codes):
        sizes = np.maximum(np.bincount(codes, minlength=k), 1)
        levels = np.sqrt(np.bincount(codes, levels**2, minlength=k) / sizes)
    if len(levels) not in (1, k) or not levels.any():
        return None
    # A row alone has noise level 0: it gets what the others have.
    typical = np.sqrt(np.mean(levels[levels > 0] ** 2))
    return np.where(levels > 0, levels, typical) * np.ones(k)
