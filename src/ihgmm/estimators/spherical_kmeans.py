"""Spherical k-means with scikit-learn's interface."""

from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np

from ihgmm import _checks as checks
from ihgmm._parameters import check_number, generator, making_array, usual_errors
from ihgmm._progress import Steps
from ihgmm.estimators.base import PARAMETER_CHECKS, atomic
from ihgmm.estimators.clusterer import Clusterer, cosines
from ihgmm.matrix import Matrix, Tall, to_host
from ihgmm.numerics.placement import CosinePlacement
from ihgmm.numerics.spherical import spherical_kmeans
from ihgmm.numerics.zero_rows import label_zero_rows, nonzero_rows
from ihgmm.policy import Labelling


class SphericalKMeans(Clusterer):
    """K-means by cosine, the simple rival of :class:`~ihgmm.IhSC`.

    Rows and centres count by their direction only. With balanced clusters and many more
    rows than features it finds the same labels.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    init : "k-means++" or array-like of shape (n_clusters, n_features)
        Where to start: greedy k-means++ by cosine, on at most a few thousand rows, or
        given centres.
    n_init : int or "auto", default="auto"
        Number of k-means++ starts, of which the one of smallest ``inertia_`` is kept;
        "auto" is 10 where X holds at most 4,000,000 numbers and 1 beyond.
    max_iter : int, default=300
        Cap on the iterations of one run.
    tol : float, default=1e-4
        Stop when no centre turns by more than this angle, in radians.
    verbose, random_state
        As for :class:`~ihgmm.IhSC`.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each row, numbered by decreasing (weighted) size.
    cluster_centers_ : array of shape (n_clusters, n_features)
        Unit centres.
    inertia_, n_iter_ : float, int
        Weighted sum over rows of ``1 - cosine`` with the nearest centre; iterations.
    n_features_in_, feature_names_in_
        As of :class:`~ihgmm.IhSC`.

    Notes
    -----
    X may be sparse, a tensor or array on a GPU, on disk or in dask; an iteration goes
    through it once, for several starts together. Zero rows get label 0, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm import SphericalKMeans
    >>> X = np.array([[1.0, 0.1], [20.0, 1.0], [30.0, 2.0], [0.1, 1.0], [1.0, 30.0]])
    >>> SphericalKMeans(n_clusters=2, random_state=0).fit_predict(X)
    array([0, 0, 0, 1, 1], dtype=int32)
    """

    _parameter_checks: ClassVar = {
        **PARAMETER_CHECKS,
        "tol": partial(check_number, least=0),
    }

    _centers_are_directions = True  # with which rows of any size are compared

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int | Literal["auto"] = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: bool | int = False,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state

    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to data and weights, as :meth:`ihgmm.IhSC.fit` does."""
        k = self.n_clusters
        steps = Steps(self.verbose)
        with steps.step("check") as say:
            rows = self._read_rows(X, sample_weight, say)
        data = rows.counted
        everything = rows.everything

        checks.check_row_count(data.shape[0], k)

        init = self._initial_centers(data)
        with steps.step("k-means") as say:
            fit = spherical_kmeans(
                data,
                k,
                init=init,
                n_init=self._number_of_starts(data),
                max_iter=self.max_iter,
                tol=self.tol,
                rng=generator(self.random_state),
            )
            say(f"{fit.n_iter} iterations")

        # Clusters by size, and labels of all rows, counted or not.
        order = _order_by_size(data, fit.labels, k)
        centers = fit.centers[order]
        if rows.subset.is_everything:
            labels = data.ops.take_lines(np.argsort(order), fit.labels)
        else:
            labels = CosinePlacement(centers)(everything)

        labels = everything.ops.as_labels(label_zero_rows(everything, labels))
        self.labels_ = everything.ops.persist(labels)
        self.cluster_centers_ = data.cast(centers)

        # In the fit, weights are 1 on average.
        weights = checks.check_weights(sample_weight, everything.shape[0])
        self.inertia_ = fit.inertia * float(weights.sum()) / data.shape[0]
        self.n_iter_ = fit.n_iter

        checks.warn_empty_clusters(everything, self.labels_, k)
        return self

    def _number_of_starts(self, X: Matrix) -> int:
        """Return how often k-means starts; many times where the data are small."""
        if self.n_init != "auto":
            return self.n_init
        return Labelling.STARTS if X.n_entries <= Labelling.MANY_STARTS else 1

    def _initial_centers(self, X: Matrix) -> np.ndarray | None:
        """Return the centres to start from, (n_clusters, n_features), if given."""
        if isinstance(self.init, str) and self.init == "k-means++":
            return None

        shape = (self.n_clusters, X.shape[1])
        with making_array("init", f"'k-means++' or {shape[0]} centres"):
            centers = np.array(to_host(self.init), dtype=X.dtype)

        are_finite = centers.shape == shape and np.isfinite(centers).all()
        if not are_finite or not centers.any(axis=1).all():
            raise ValueError(
                f"init has shape {centers.shape}; give {shape[0]} finite centres of "
                f"{shape[1]} features, none of them zero."
            )

        return centers

    def _place_rows(self, X: Any) -> Tall:
        return CosinePlacement(to_host(self.cluster_centers_))(self._check_new(X))

    @usual_errors()
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the (weighted) sum of ``1 - cosine`` with the nearest centre.

        Rows, new or old, and weights are given as for :meth:`fit`. More centres are
        nearer, so that ``GridSearchCV`` picks the most clusters: give it
        ``scoring=``:func:`ihgmm.metrics.stability_score`.
        """
        data = self._check_new(X)
        ops = data.ops

        similarities = cosines(to_host(self.cluster_centers_), data)
        largest = ops.widen(ops.xp.max(similarities, axis=1))
        weights = data.to_device(checks.check_weights(sample_weight, data.shape[0]))
        return -ops.number(ops.xp.sum(weights * (1.0 - largest)))


def _order_by_size(X: Matrix, labels: Tall, k: int) -> np.ndarray:
    """Return clusters in the order of decreasing (weighted) size.

    Zero rows have no direction, and do not count. Clusters of one size stay in the
    order in which they were drawn, which does not depend on the order of the rows.
    """
    ops = X.ops
    nonzero = nonzero_rows(X)
    groups = ops.groups(ops.persist(nonzero.select(labels)), k)
    sizes = groups.sizes.astype(np.float64)
    if X.weights is not None:
        sizes = groups.sums(nonzero.select(X.weights))

    # Rounding must not choose between clusters of one size.
    return np.argsort(-sizes.round(6), kind="stable")
