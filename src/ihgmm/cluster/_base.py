"""What the estimators share: tags, and how new rows are placed."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    clone,
)
from sklearn.metrics import euclidean_distances
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ihgmm._arrays import Array
from ihgmm._checks.data import CheckedData, check_blocks, check_data
from ihgmm._devices import like, namespace, to_host
from ihgmm._products import matmul
from ihgmm._readers import open_rows
from ihgmm._reporting import Reporting
from ihgmm.rounding import normalize_rows

__all__ = ["Clusterer", "CosineClusterer", "DistanceClusterer"]


class Clusterer(
    Reporting,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    """A clusterer of dense or sparse rows with one output column per cluster."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[0])

    def _check_new(self, X: Any, *, anywhere: bool = False) -> CheckedData:
        """Check rows, new or old; they may stay on disk or on a device if told so."""
        check_is_fitted(self)
        return check_data(X, self, reset=False, blocks=anywhere, devices=anywhere)


class CosineClusterer(Clusterer):
    """A clusterer that places new rows by their cosine with ``cluster_centers_``."""

    cluster_centers_: np.ndarray

    def transform(self, X: Any) -> np.ndarray:
        """Return the cosine of each row with each cluster centre.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, new or old; also a torch tensor or another library's array.

        Returns
        -------
        array of shape (n_samples, n_clusters)
            Between -1 and 1, of X's library and on its device; zero for zero rows and
            for empty clusters.
        """
        return self._cosines(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster whose centre has the largest cosine with each row.

        Under noise that is the same in all directions this is the most likely
        cluster, whatever the row's scale. Zero rows get label 0, the largest cluster.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, new or old; also a torch tensor or another library's array.

        Returns
        -------
        array of shape (n_samples,)
            Of X's library and on its device.
        """
        rows = open_rows(X)
        if rows is not None and hasattr(rows, "lazily"):
            check_is_fitted(self)
            check_blocks(rows, self, reset=False)
            light = clone(self)  # without what the fit knows of its own rows
            light.cluster_centers_ = self.cluster_centers_
            light.n_features_in_ = self.n_features_in_
            return rows.lazily(light._nearest, np.intp)
        return self._nearest(X)

    def _nearest(self, X: Any) -> np.ndarray:
        cosines = self._cosines(X)
        empty = ~to_host(self.cluster_centers_).any(axis=1)
        if empty.any():
            cosines = cosines - like(2 * empty, cosines)
        return namespace(cosines).argmax(cosines, axis=1)

    def _cosines(self, X: Any) -> Any:
        return self._checked_cosines(self._check_new(X, anywhere=True))

    def _checked_cosines(self, data: CheckedData) -> Any:
        # The centres are few: they go where the rows are, whoever has fitted them.
        centers = normalize_rows(to_host(self.cluster_centers_))
        cosines = matmul(data.X, centers.T)
        xp = namespace(cosines)
        norms = like(xp.sqrt(data.sqnorms), cosines)
        norms = xp.where(norms == 0, xp.ones_like(norms), norms)
        return xp.clip(cosines / norms[:, None], -1.0, 1.0)


class DistanceClusterer(Clusterer):
    """A clusterer that places new rows by their distance to ``cluster_centers_``."""

    cluster_centers_: np.ndarray

    def transform(self, X: Any) -> np.ndarray:
        """Return the distance of each row to each cluster centre.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, new or old.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        return self._distances(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster whose centre is nearest to each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, new or old.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self._distances(X).argmin(axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the sum of squared distances of rows to their nearest centre.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, new or old.
        y : None
            Ignored.

        Returns
        -------
        float
            At most 0; larger is better.
        """
        nearest = self._distances(X).min(axis=1).astype(np.float64)
        with np.errstate(over="ignore"):
            return -float(nearest @ nearest)

    def _project(self, rows: Array) -> Array:
        """Return rows in the space in which distances are taken."""
        return rows

    def _distances(self, X: Any) -> np.ndarray:
        data = self._check_new(X)
        rows = self._project(data.X)
        centers = self._project(self.cluster_centers_ / data.unit)
        distances = euclidean_distances(rows, centers.astype(rows.dtype))
        return np.asarray(distances * distances.dtype.type(data.unit))
