"""The features in which a cluster differs from the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ihgmm._checks import check_count
from ihgmm._html import features_html
from ihgmm.matrix import to_host
from ihgmm.matrix.tall import unit_rows
from ihgmm.statistics.model import check_model


@dataclass(frozen=True, eq=False, repr=False)
class TellingFeatures:
    """The features in which each centre differs most from the others.

    Attributes
    ----------
    features, scores : ndarray of shape (n_clusters, n_shown)
        Columns of the centres, those that differ most first, and their contrasts:
        above 0 where the cluster has more of a feature than the others.
    contrasts : ndarray of shape (n_clusters, n_features)
        The contrasts of all features.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.statistics.contrasts import telling_features
    >>> found = telling_features(2 * np.eye(3) + 1)
    >>> found.features[:, 0]  # the most distinctive feature of each cluster
    array([0, 1, 2])
    """

    features: np.ndarray
    scores: np.ndarray
    contrasts: np.ndarray

    def _repr_html_(self) -> str:
        return features_html(self)

    def __repr__(self) -> str:
        k, p = self.contrasts.shape
        shown = self.features.shape[1]
        return f"TellingFeatures(n_clusters={k}, n_features={p}, shown={shown})"


def telling_features(
    centers: Any, noise_levels: Any = None, *, n_features: int = 10
) -> TellingFeatures:
    """Rank the features of each cluster by how far its centre is from the others.

    Parameters
    ----------
    centers : array-like of shape (n_clusters, n_features)
        Centres, such as ``cluster_centers_`` of :class:`ihgmm.IhSC`. A zero centre, as
        an empty cluster has, is left out.
    noise_levels : array-like, optional
        Standard deviation of the noise in an entry of a row, in units of the centres:
        a number for all, or shape (n_clusters,), or (1, n_features) or
        (n_clusters, n_features) where features differ in noise.
    n_features : int, default=10
        How many features to return for each cluster; all, if there are fewer.

    Returns
    -------
    TellingFeatures

    Notes
    -----
    Size is no pattern: in a cluster of large rows every feature is large. So the other
    centres are first stretched to the length of the one that they are compared with.
    The contrast of cluster k, ``u_k`` being its centre ``c_k`` at length one, is

        ``c_k - |c_k| * mean(u_l for l != k)``, over the noise level:

    by how many noise levels a row of scale 1 is expected to stand out among rows of the
    other clusters that are as large. Without noise levels it is divided by ``|c_k|``
    instead, and is between -2 and 2. The ranks go by the absolute contrast; of equal
    ones the first column leads. A single cluster has its own entries ranked.

    Examples
    --------
    >>> import numpy as np
    >>> centers = np.array([[5.0, 1.0, 0.0], [100.0, 20.0, 60.0]])
    >>> ranked = telling_features(centers, n_features=1)
    >>> ranked.features.ravel(), ranked.scores.ravel().round(2)
    (array([2, 2]), array([-0.51,  0.51]))
    """
    count = check_count("n_features", n_features)
    (array,) = check_model(centers=to_host(centers))
    contrasts = _contrasts(array)
    if noise_levels is not None:
        noise = _check_noise(noise_levels, array.shape)
        lengths = np.linalg.norm(array, axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            contrasts = contrasts * lengths / noise
        # Without noise every difference is infinite, and no difference counts as 0.
        contrasts = np.where(np.isnan(contrasts), 0.0, contrasts)
    # The stable sort puts the first of equal ones first.
    features = np.argsort(-np.abs(contrasts), axis=1, kind="stable")[:, :count]
    scores = np.take_along_axis(contrasts, features, axis=1)
    return TellingFeatures(features, scores, contrasts)


def _contrasts(centers: np.ndarray) -> np.ndarray:
    """Return each unit centre less the mean of the others; zero for zero centres."""
    unit = unit_rows(centers)
    live = unit.any(axis=1)
    others = int(live.sum()) - 1
    if others < 1:
        return unit
    mean = (unit.sum(axis=0) - unit) / others
    return np.where(live[:, None], unit - mean, 0.0)


def _check_noise(levels: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = to_host(levels).astype(np.float64)
    if array.shape == (shape[0],):
        array = array[:, None]
    sizes = zip(array.shape, shape, strict=False)
    if array.ndim not in (0, 2) or any(size not in (1, full) for size, full in sizes):
        raise ValueError(
            f"noise_levels has shape {array.shape}; give one number, {shape[0]} of "
            f"them, or an array of shape (1, {shape[1]}) or {shape}."
        )
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(
            "noise_levels has entries that are negative or not finite; give standard "
            "deviations."
        )
    return array
