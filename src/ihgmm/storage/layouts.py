"""What a model of each class is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ihgmm.cluster import PSC, IhSC, SphericalKMeans
from ihgmm.mixture import IhGMM

__all__ = ["DIRECTIONS", "LAYOUTS", "NOISE_SHAPES", "SCALER", "Layout"]


@dataclass(frozen=True)
class Layout:
    """The fitted attributes of a class.

    Attributes
    ----------
    build : type
        The class.
    arrays : mapping of str to str
        Arrays and their shapes, a letter for each axis: n rows, p features, k clusters.
    numbers : mapping of str to type
        Attributes that are single numbers.
    """

    build: type
    arrays: Mapping[str, str]
    numbers: Mapping[str, type]


SCALER = {"scaler.mean_": "p", "scaler.scale_": "p", "scaler.var_": "p"}
"""The arrays of a StandardScaler before the model."""

DIRECTIONS = {
    "directions.sums": "pk",
    "directions.sqnorms": "k",
    "directions.loads": "k",
}
"""What IhGMM places new rows by, see :class:`ihgmm.memberships.Directions`."""

NOISE_SHAPES = {"individual": "n", "class": "k", "common": "1"}
"""Shape of the noise levels of IhGMM by its parameter ``noise``."""

LAYOUTS = {
    "IhSC": Layout(
        IhSC,
        {
            "labels_": "n",
            "embedding_": "nk",
            "eigenvalues_": "k",
            "cluster_centers_": "kp",
            "scales_": "n",
            "noise_levels_": "n",
        },
        {"n_clusters_": int, "n_iter_": int},
    ),
    "IhGMM": Layout(
        IhGMM,
        {
            "labels_": "n",
            "memberships_": "nk",
            "weights_": "k",
            "cluster_centers_": "kp",
            "scales_": "n",
            "scale_errors_": "n",
            **DIRECTIONS,
        },
        {
            "log_likelihood_": float,
            "n_clusters_": int,
            "converged_": bool,
            "n_iter_": int,
        },
    ),
    "PSC": Layout(
        PSC,
        {
            "labels_": "n",
            "embedding_": "nk",
            "eigenvalues_": "k",
            "components_": "kp",
            "cluster_centers_": "kp",
        },
        {"n_iter_": int},
    ),
    "SphericalKMeans": Layout(
        SphericalKMeans,
        {"labels_": "n", "cluster_centers_": "kp"},
        {"inertia_": float, "n_iter_": int},
    ),
}
"""The classes that can be saved, by name."""
