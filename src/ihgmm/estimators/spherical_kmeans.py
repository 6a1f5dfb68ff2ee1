"""Spherical k-means with scikit-learn's interface."""

from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np

from ihgmm import _checks as checks
from ihgmm._parameters import check_number, generator, making_array, usual_errors
from ihgmm._progress import Steps
from ihgmm.estimators.base import CHECKS, Clusterer, atomic, cosines
from ihgmm.matrix import Matrix, Tall, to_host
from ihgmm.numerics.placement import CosinePlacement
from ihgmm.numerics.spherical import spherical_kmeans
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

    _checks: ClassVar = {**CHECKS, "tol": partial(check_number, least=0)}

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
        k, steps = self.n_clusters, Steps(self.verbose)
        with steps.step("check") as say:
            rows = self._read(X, sample_weight, say)
        data, everything, ops = rows.counted, rows.everything, rows.counted.ops
        checks.check_row_count(data.shape[0], k)
        starts = self.n_init
        if starts == "auto":
            few = data.n_entries <= Labelling.MANY_STARTS
            starts = Labelling.STARTS if few else 1
        given: Any = {"init": self._initial_centers(data), "n_init": starts}
        given |= {"max_iter": self.max_iter, "tol": self.tol}
        with steps.step("k-means") as say:
            best = spherical_kmeans(data, k, rng=generator(self.random_state), **given)
            say(f"{best.n_iter} iterations")
        # Zero rows have no direction: they do not count in sizes. Clusters of one
        # size stay as they were drawn, which does not depend on the order of the
        # rows; rounding must not choose.
        live, weights = data.sqnorms > 0, data.weights
        groups = ops.groups(ops.persist(ops.rows_where(best.labels, live)), k)
        sizes = groups.sizes.astype(np.float64)
        if weights is not None:
            sizes = groups.sums(ops.rows_where(weights, live))
        order = np.argsort(-sizes.round(6), kind="stable")
        centers = best.centers[order]
        if rows.counts is None:
            labels = ops.take_lines(np.argsort(order), best.labels)
        else:
            labels = CosinePlacement(centers)(everything)
        some = ops.xp.astype(everything.sqnorms > 0, labels.dtype)
        self.labels_ = ops.persist(ops.as_labels(labels * some))
        self.cluster_centers_ = data.cast(centers)
        # In the fit, weights are 1 on average.
        total = float(checks.check_weights(sample_weight, everything.shape[0]).sum())
        self.inertia_ = best.inertia * total / data.shape[0]
        self.n_iter_ = best.n_iter
        checks.warn_empty_clusters(everything, self.labels_, k)
        return self

    def _nearest(self, X: Any) -> Tall:
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
        near = cosines(to_host(self.cluster_centers_), data)
        best = ops.widen(ops.xp.max(near, axis=1))
        weights = data.to_device(checks.check_weights(sample_weight, data.shape[0]))
        return -ops.number(ops.xp.sum(weights * (1.0 - best)))

    def _initial_centers(self, X: Matrix) -> np.ndarray | None:
        wanted = (self.n_clusters, X.shape[1])
        if isinstance(self.init, str) and self.init == "k-means++":
            return None
        with making_array("init", f"'k-means++' or {wanted[0]} centres"):
            centers = np.array(to_host(self.init), dtype=X.dtype)
        finite = centers.shape == wanted and np.isfinite(centers).all()
        if not finite or not centers.any(axis=1).all():
            raise ValueError(
                f"init has shape {centers.shape}; give {wanted[0]} finite centres of "
                f"{wanted[1]} features, none of them zero."
            )
        return centers
