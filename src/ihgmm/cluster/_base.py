"""What the estimators share: numbering of labels, and new rows placed by cosine."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ihgmm._arrays import matmul
from ihgmm._validation import CheckedData, check_data
from ihgmm.rounding import normalize_rows

__all__ = ["Clusterer", "CosineClusterer"]


class Clusterer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """A clusterer of dense or sparse rows with one output column per cluster."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _check_new(self, X: Any) -> CheckedData:
        check_is_fitted(self)
        return check_data(X, self, reset=False)


class CosineClusterer(Clusterer):
    """A clusterer that places new rows by their cosine with ``cluster_centers_``."""

    cluster_centers_: np.ndarray

    def transform(self, X: Any) -> np.ndarray:
        """Return the cosine of each row with each cluster centre.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, new or old.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Between -1 and 1; zero for zero rows and for empty clusters.
        """
        return self._cosines(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster whose centre has the largest cosine with each row.

        Under noise that is the same in all directions this is the most likely
        cluster, whatever the row's scale. Zero rows get label 0, the largest cluster.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, new or old.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        cosines = self._cosines(X)
        cosines[:, ~self.cluster_centers_.any(axis=1)] = -2  # empty clusters
        return np.asarray(cosines.argmax(axis=1))

    def _cosines(self, X: Any) -> np.ndarray:
        data = self._check_new(X)
        cosines = matmul(data.X, normalize_rows(self.cluster_centers_).T)
        norms = np.sqrt(data.sqnorms).astype(cosines.dtype)
        norms[norms == 0] = 1
        return np.asarray(np.clip(cosines / norms[:, None], -1, 1))
