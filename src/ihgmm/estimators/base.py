"""What the estimators share: tags, steps of a fit, reports, and how rows are placed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

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

from ihgmm._checks import check_matrix, open_matrix
from ihgmm._progress import Steps
from ihgmm.matrix import Matrix, as_matrix, namespace, to_host
from ihgmm.matrix.tall import cast_like, unit_rows

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as managed
except ImportError:  # scikit-learn before 1.9
    managed = None

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""


F = TypeVar("F", bound=Callable[..., Any])


def with_callbacks(method: F) -> F:
    """Make a fit let its callbacks go, however it ends."""
    return method if managed is None else cast(F, managed(method))


class InSteps(CallbackSupportMixin):
    """An estimator that is fitted in steps, which it shows."""

    @contextmanager
    def _steps(
        self, count: int, X: Any, y: Any, shown: bool = False
    ) -> Iterator[Steps]:
        """Begin a fit of at most so many steps; for a fit ``with_callbacks``."""
        if managed is None:
            yield Steps(shown)
            return
        task = self._init_callback_context(max_subtasks=count)
        task.call_on_fit_task_begin(estimator=self, X=X, y=y)
        yield Steps(shown, task, self)
        # The estimator has all its attributes by now: nothing to add for a copy of it.
        task.call_on_fit_task_end(
            estimator=self, X=X, y=y, reconstruction_attributes={}
        )

    def _keep_selection(self, selection: Any) -> None:
        """Keep how clusters were counted, or forget the count of an earlier fit."""
        if selection is not None:
            self.selection_ = selection
        elif hasattr(self, "selection_"):
            del self.selection_


class Reporting:
    """An estimator that writes a report of itself."""

    def report(self, X: Any, path: Any, **options: Any) -> Path:
        """Write the clustering as one page of HTML that opens in any browser.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data of the fit.
        path : str or path
            The file to write, ending in .html.
        **options
            ``ids``, ``id_name``, ``feature_names``, ``title``, ``labels_true`` and
            ``notes``, as :func:`ihgmm.report.write_report` takes them.

        Returns
        -------
        Path
            The file.
        """
        from ihgmm.report import write_report  # a look upwards, when it is asked for

        return write_report(self, X, path, **options)


class Clusterer(
    Reporting,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    """A clusterer of dense or sparse rows with one output column per cluster."""

    cluster_centers_: np.ndarray

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[0])


class CosineClusterer(Clusterer):
    """A clusterer that places new rows by their cosine with ``cluster_centers_``."""

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
        return self._cosines(self._check_new(X))

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
        check_is_fitted(self)
        light = clone(self)  # without what the fit knows of its own rows
        light.cluster_centers_ = self.cluster_centers_
        light.n_features_in_ = self.n_features_in_
        return open_matrix(X, self, reset=False).map_rows(light._nearest, np.intp)

    def _nearest(self, X: Any) -> Any:
        cosines = self._cosines(self._check_new(X))
        empty = ~to_host(self.cluster_centers_).any(axis=1)
        if empty.any():
            cosines = cosines - cast_like(2 * empty, cosines)
        return namespace(cosines).argmax(cosines, axis=1)

    def _check_new(self, X: Any) -> Matrix:
        check_is_fitted(self)
        return check_matrix(X, self, reset=False)

    def _cosines(self, X: Matrix) -> Any:
        # The centres are few: they go where the rows are, whoever has fitted them.
        cosines = X @ unit_rows(to_host(self.cluster_centers_)).T
        xp = namespace(cosines)
        norms = cast_like(xp.sqrt(X.sqnorms), cosines)
        norms = xp.where(norms == 0, xp.ones_like(norms), norms)
        return xp.clip(cosines / norms[:, None], -1.0, 1.0)


class DistanceClusterer(Clusterer):
    """A clusterer that places new rows by their distance to ``cluster_centers_``."""

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

    def _check_new(self, X: Any) -> Matrix:
        check_is_fitted(self)
        return check_matrix(X, self, reset=False, in_memory=True)

    def _distances(self, X: Any) -> np.ndarray:
        matrix = self._check_new(X)
        centers = as_matrix((self.cluster_centers_ / matrix.unit).astype(matrix.dtype))
        ranges = matrix.dense_ranges()
        parts = [
            euclidean_distances(
                self._project(matrix.take(rows)), self._project(centers)
            )
            for rows in ranges
        ]
        distances = np.concatenate(parts)
        return distances * distances.dtype.type(matrix.unit)

    def _project(self, rows: Matrix) -> np.ndarray:
        """Return rows in the space in which distances are taken."""
        return rows.toarray()
