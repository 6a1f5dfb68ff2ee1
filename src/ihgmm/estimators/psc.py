"""Projected spectral clustering, the method for rows of equal scale."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import DataConversionWarning

from ihgmm._checks import check_row_count, warn_empty_clusters, warn_few_weighty_rows
from ihgmm._parameters import generator
from ihgmm._warnings import warn
from ihgmm.estimators.base import DistanceClusterer, atomic, distances
from ihgmm.matrix import Matrix, Tall, to_host
from ihgmm.numerics.missing import Missing
from ihgmm.numerics.recipe import RECIPES, Recipe
from ihgmm.numerics.spectral import spectral_clustering


class PSC(DistanceClusterer):
    """Cluster rows by k-means after projecting them on their leading directions.

    Projected spectral clustering [1]_, the method of [2]_, projects on leading right
    singular vectors of X, without centring. It is made for classical mixtures, in which
    rows of one cluster have one scale, and is the paper's main competitor.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters and of directions.
    recipe : "psc" or Recipe, default="psc"
        The settings, see :class:`~ihgmm.Recipe`: ``Recipe.of("psc", tol=1e-6)`` changes
        some. ``rows``, ``diagonal``, ``space`` and ``unit_norm`` make it PSC, and stay.
    missing, random_state
        As for :class:`~ihgmm.IhSC`.

    Attributes
    ----------
    labels_, n_iter_, n_features_in_, feature_names_in_
        As of :class:`~ihgmm.IhSC`.
    embedding_ : array of shape (n_samples, n_clusters)
        The projected rows.
    eigenvalues_ : array of shape (n_clusters,)
        Squared leading singular values of X.
    components_ : array of shape (n_clusters, n_features)
        The directions projected on.
    cluster_centers_ : array of shape (n_clusters, n_features)
        The mean projected row of each cluster, in the space of features.

    Notes
    -----
    ``transform``, ``predict`` and ``score`` take distances between projected rows.

    References
    ----------
    .. [1] A. Y. Zhang and H. H. Zhou (2024), Leave-one-out singular subspace
       perturbation analysis for spectral clustering. Annals of Statistics 52.
    .. [2] M. Löffler, A. Y. Zhang and H. H. Zhou (2021), Optimality of spectral
       clustering in the Gaussian mixture model. Annals of Statistics 49.

    Examples
    --------
    >>> from ihgmm import PSC, make_ihgmm
    >>> from ihgmm.metrics import exact_recovery
    >>> X, labels = make_ihgmm(300, 100, scale_ratio=1, random_state=0)
    >>> model = PSC(n_clusters=4, random_state=0).fit(X)
    >>> exact_recovery(labels, model.labels_)
    True
    """

    _placing: ClassVar = (*DistanceClusterer._placing, "components_")
    components_: np.ndarray

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        recipe: Recipe | str = "psc",
        missing: Missing = "error",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.recipe = recipe
        self.missing = missing
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        recipe = Recipe.of(self.recipe)
        kept = ("rows", "diagonal", "space", "unit_norm")
        if any(getattr(recipe, name) != getattr(RECIPES["psc"], name) for name in kept):
            raise ValueError(
                f"recipe={self.recipe!r} belongs to another method than PSC; give "
                "'psc' or Recipe.of('psc', ...), or take IhSC."
            )

    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to data, array-like or sparse of (n_samples, n_features).

        Data and ``sample_weight`` are given as for the ``fit`` of
        :class:`~ihgmm.IhSC`. ``y`` is ignored. Returns the fitted estimator itself.
        """
        k = self.n_clusters
        rows = self._read(X, sample_weight)
        data, ops = rows.counted, rows.counted.ops
        if rows.unobserved:
            warn(
                f"{rows.unobserved} of {data.shape[0]} rows have no observed cell. "
                "They are clustered as rows of zeros; leave them out.",
                DataConversionWarning,
            )
        check_row_count(data.shape[0], k)
        warn_few_weighty_rows(data, k)
        seed = int(generator(self.random_state).integers(2**31))
        spectral = spectral_clustering(data, k, Recipe.of(self.recipe), seed=seed)
        labels, embedded = spectral.labels, spectral.rows
        warn_empty_clusters(data, labels, k)

        # The embedding is X @ components.T; directions are as long as the data along.
        embedding = spectral.placement.embedding
        values, unit = embedding.eigenvalues, float(data.unit)
        live = values > np.finfo(data.dtype).eps * values[0]
        lengths = np.sqrt(np.where(live, values, 1.0))
        components = np.where(live, embedding.directions / lengths, 0.0).T
        components = components.astype(data.dtype)
        ones = ops.xp.ones_like(embedded[:, :1])
        members = ops.one_hot(labels, k, embedded)
        if data.weights is not None:
            members = members * ops.cast_like(data.weights, embedded)[:, None]
        sizes = ops.tall_dot(members, ones)
        means = ops.tall_dot(members, embedded) / np.where(sizes, sizes, 1.0)
        if rows.counts is not None:
            embedded = rows.everything @ components.T
            gaps = ops.row_map(partial(distances, means), embedded, width=k)
            labels = ops.place(labels, rows.counts, ops.xp.argmin(gaps, axis=1))

        self.labels_ = ops.persist(labels)
        self.embedding_ = ops.persist(embedded * unit)
        self.eigenvalues_ = data.to_device(data.restore_squares(values))
        self.components_ = data.cast(components)
        self.cluster_centers_ = data.cast(means @ components * unit)
        self.n_iter_ = spectral.n_iter
        return self

    def _project(self, rows: Matrix) -> Tall:
        return rows @ to_host(self.components_).T
