"""What all clusterers share: rows that are read, and labels of new ones."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn import base as sk
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted

from ihgmm import _checks as checks
from ihgmm._display import write_page
from ihgmm._parameters import usual_errors
from ihgmm.estimators.base import Checked
from ihgmm.matrix import HOST, Matrix, Ops, RowSubset, Tall, ops_of, to_host
from ihgmm.numerics.missing import Filler
from ihgmm.numerics.whitening import Whitener
from ihgmm.numerics.zero_rows import label_zero_rows, nonzero_rows


@dataclass(frozen=True, eq=False)
class FitRows:
    """The rows of a fit: all of them, and those that it learns from.

    Rows of weight 0 and outliers have no part in the fit; they are placed afterwards.
    """

    everything: Matrix
    counted: Matrix  # the rows that the fit learns from
    subset: RowSubset  # which of all rows these are
    n_nonzero: int  # how many of these are not zero
    is_outlier: Tall | None = None  # (n_samples,); None where nobody looked for any


class Clusterer(
    sk.ClassNamePrefixFeaturesOutMixin, sk.TransformerMixin, sk.ClusterMixin, Checked
):
    """A clusterer with centres, which places new rows.

    A subclass sets ``labels_`` and ``cluster_centers_`` in ``fit``, and says in
    :meth:`_place_rows` how rows are placed.
    """

    # The attributes that placing a row needs, which may go to other processes.
    _attributes_to_place: ClassVar[tuple[str, ...]] = (
        "cluster_centers_",
        "n_features_in_",
        "preparation_",
    )
    # Those by which a look at all rows may warn; blocks on workers go without.
    _attributes_to_warn: ClassVar[tuple[str, ...]] = ()

    n_clusters: Any
    missing: Any = None  # of estimators that have no such parameter
    labels_: np.ndarray
    cluster_centers_: np.ndarray
    #: What is done to cells before a fit, and to those of new rows.
    preparation_: tuple[Filler | Whitener, ...] = ()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "fit"
        if hasattr(type(self), "predict_proba"):
            # scikit-learn's checks read off this how many columns it has.
            tags.classifier_tags = ClassifierTags(multi_class=self.n_clusters != 2)
        return tags

    @property
    def _n_features_out(self) -> int:
        """How many columns ``transform`` returns, which scikit-learn asks for."""
        return int(self.cluster_centers_.shape[0])

    @usual_errors()
    def report(self, X: Any, path: Any = None, **options: Any) -> Any:
        """Write the clustering of X, the data of the fit, as one page of HTML.

        The ``path`` ends in .html; without one the page is returned, which a notebook
        shows. Options are those of :func:`ihgmm.report.write_report`, such as ``ids``.
        """
        return write_page(X, self, path, **options)

    @usual_errors()
    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster of each row, new or old; of dask arrays when asked for."""
        check_is_fitted(self)
        data = checks.open_matrix(X, self, reset=False)

        # A model without what the fit knows of its own rows: it may have to travel.
        light = sk.clone(self)
        names = self._attributes_to_place
        if not data.streamed:
            names = (*names, *self._attributes_to_warn)
        for name, value in vars(self).items():
            if name in names:
                setattr(light, name, value)

        return data.map_rows(light._labels_of, np.int32)

    def _labels_of(self, X: Any) -> Tall:
        """Return the cluster of each row, in the type that labels have for users."""
        labels = self._place_rows(X)
        return ops_of(labels).as_labels(labels)

    def _place_rows(self, X: Any) -> Tall:
        """Return the cluster of each row, new or old, where the rows are."""
        raise NotImplementedError

    @usual_errors()
    def transform(self, X: Any) -> np.ndarray:
        """Return the cosine of each row, new or old, with each cluster centre.

        It is zero for zero rows and empty clusters.
        """
        return cosines(self._compared_centers(), self._check_new(X))

    def _compared_centers(self) -> np.ndarray:
        """Return centres on the host, whitened as rows are."""
        centers = to_host(self.cluster_centers_)
        for change in self.preparation_:
            # No cell of a centre is missing or wild.
            if isinstance(change, Whitener):
                centers = change(checks.check_matrix(centers)).toarray()
        return centers

    def _check_new(self, X: Any) -> Matrix:
        """Return rows, new or old, prepared as those of the fit were."""
        check_is_fitted(self)
        data = checks.check_matrix(X, self, reset=False, missing=self.missing)
        return self._prepared(data)

    def _prepared(self, data: Matrix) -> Matrix:
        """Return rows after all that was done to those of the fit."""
        for change in self.preparation_:
            data = change(data)
        return data

    def _read_rows(
        self, X: Any, sample_weight: Any, say: Callable[[str], None]
    ) -> FitRows:
        """Check the data, and find the rows that count."""
        everything = checks.check_matrix(X, self, missing=self.missing)
        say("{:,} rows, {:,} features".format(*everything.shape))
        counted, subset = checks.counted_rows(everything, sample_weight)

        return FitRows(
            everything=everything,
            counted=counted,
            subset=subset,
            n_nonzero=checks.warn_zero_rows(counted),
        )


class DistanceClusterer(Clusterer):
    """A clusterer that places new rows by their distance to ``cluster_centers_``."""

    @usual_errors()
    def transform(self, X: Any) -> np.ndarray:
        """Return the distance of each row, new or old, to each cluster centre."""
        return self._distances(self._check_new(X))

    def _place_rows(self, X: Any) -> Tall:
        data = self._check_new(X)
        return data.ops.xp.argmin(self._distances(data), axis=1)

    @usual_errors()
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the sum of squared distances of rows to their nearest centre.

        Rows may be new or old, and count by their weights; ``y`` is ignored. More
        centres are nearer, so that ``GridSearchCV`` picks the most clusters: give it
        ``scoring=``:func:`ihgmm.metrics.stability_score`.
        """
        data = self._check_new(X)
        ops = data.ops
        distances = ops.widen(ops.xp.min(self._distances(data), axis=1))
        weights = data.to_device(checks.check_weights(sample_weight, data.shape[0]))

        with np.errstate(over="ignore"):
            return -ops.number(ops.xp.sum(weights * distances * distances))

    def _distances(self, X: Matrix) -> Tall:
        """Return the distance of each row to each centre, (n_samples, n_clusters).

        Its square is ``|x|^2 + |c|^2 - 2 x c``, which needs one product with the data.
        """
        centers = to_host(self.cluster_centers_)
        peak = float(np.abs(centers).max())
        largest = float(np.finfo(X.dtype).max)
        if peak / X.unit > np.sqrt(largest) / 1e6:
            # Beside centres so large, in the unit of the rows squares would overflow.
            X = X.rescaled(max(X.unit / peak, 1e-300))

        ops = X.ops
        centers = centers / X.unit
        products = X @ centers.T

        center_sqnorms = (centers.astype(np.float64) ** 2).sum(axis=1)
        sqnorms = X.sqnorms[:, None] + ops.to_device(center_sqnorms, products)

        squares = sqnorms - 2 * ops.widen(products)
        distances = ops.xp.sqrt(ops.clip(squares, 0.0, None)) * float(X.unit)
        return ops.cast_like(distances, products)


def cosines(centers: np.ndarray, X: Matrix) -> Tall:
    """Return the cosine of each row with each centre; 0 where one of them is zero."""
    ops = X.ops
    products = X @ HOST.unit_rows(centers).T
    lengths = ops.cast_like(ops.xp.sqrt(X.sqnorms), products)[:, None]
    return ops.clip(ops.ratio(products, lengths), -1.0, 1.0)


def number_by_size(X: Matrix, labels: Tall, k: int) -> tuple[Tall, np.ndarray]:
    """Give clusters numbers by decreasing (weighted) size; zero rows do not count.

    Returns
    -------
    labels : array of shape (n_samples,)
        The labels by the new numbers; zero rows have the label that they always have.
    order : ndarray of shape (n_clusters,)
        The old number of each cluster.
    """
    ops = X.ops
    nonzero = nonzero_rows(X)
    weights = None if X.weights is None else nonzero.select(X.weights)
    order = ops.order_by_size(nonzero.select(labels), k, weights)

    labels = ops.take_lines(np.argsort(order), labels)
    return ops.persist(label_zero_rows(X, labels)), order


def replace_outliers(
    ops: Ops, values: Tall, is_outlier: Tall | None, value: float
) -> Tall:
    """Return values of rows, (n,) or (n, m), with another value for outliers.

    ``is_outlier`` is a mask of the rows, or None where nobody looked for outliers.
    """
    if is_outlier is None:
        return values

    is_outlier = ops.to_device(is_outlier, values)
    if values.ndim == 2:
        is_outlier = is_outlier[:, None]
    return ops.xp.where(is_outlier, ops.xp.full_like(values, value), values)
