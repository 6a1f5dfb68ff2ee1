"""Spherical k-means with scikit-learn's interface."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._checks import (
    check_count,
    check_matrix,
    check_n_init,
    check_number,
    check_row_count,
    check_weights,
    generator,
    restore_on_failure,
    warn_zero_rows,
)
from ihgmm._warnings import warn
from ihgmm.estimators.base import CosineClusterer
from ihgmm.matrix import Matrix, namespace, to_host
from ihgmm.numerics.spherical import spherical_kmeans


class SphericalKMeans(CosineClusterer):
    """K-means by cosine: rows and centres count by their direction only.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    init : "k-means++" or array-like of shape (n_clusters, n_features)
        Where to start: greedy k-means++ by cosine, on at most a few thousand rows, or
        given centres.
    n_init : int or "auto", default="auto"
        Number of k-means++ starts, of which the best is kept; "auto" is 1.
    max_iter : int, default=300
        Cap on the iterations of one run.
    tol : float, default=1e-4
        Stop when no centre turns by more than so many radians.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same labels.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row, numbered by decreasing (weighted) size.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Unit centres.
    inertia_ : float
        Weighted sum over rows of ``1 - cosine`` with the nearest centre.
    n_iter_ : int
        Iterations.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X had names.

    See Also
    --------
    IhSC : labels from eigenvectors, better with many features, unequal clusters or
        noise that differs between rows; it also estimates scales.

    Notes
    -----
    Rows are never copied to be normalised: X may be sparse and as large as memory
    allows. Zero rows have no direction; they get label 0, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm import SphericalKMeans
    >>> X = np.array([[1.0, 0.1], [20.0, 1.0], [30.0, 2.0], [0.1, 1.0], [1.0, 30.0]])
    >>> SphericalKMeans(n_clusters=2, random_state=0).fit_predict(X)
    array([0, 0, 0, 1, 1])
    """

    labels_: np.ndarray
    inertia_: float
    n_iter_: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int | Literal["auto"] = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts.

        Returns
        -------
        SphericalKMeans
            The fitted estimator itself.
        """
        check_count("n_clusters", self.n_clusters)
        check_n_init(self.n_init)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, least=0)
        with restore_on_failure(self):
            data = check_matrix(X, self, in_memory=True)
            check_row_count(data.shape[0], self.n_clusters)
            warn_zero_rows(data.sqnorms)
            weights = check_weights(sample_weight, data.shape[0])
            found = spherical_kmeans(
                data,
                self.n_clusters,
                weights=weights,
                init=self._initial_centers(data),
                n_init=1 if self.n_init == "auto" else self.n_init,
                max_iter=self.max_iter,
                tol=self.tol,
                rng=generator(self.random_state),
            )
            live = data.sqnorms > 0
            size = np.bincount(found.labels, weights * live, self.n_clusters)
            order = np.argsort(-size, kind="stable")
            rank = np.argsort(order)
            self.labels_ = np.where(live, rank[found.labels], 0)
            self.cluster_centers_ = found.centers[order]
            self.inertia_ = found.inertia
            self.n_iter_ = found.n_iter
            distinct = len(np.unique(self.labels_[live]))
            if distinct < self.n_clusters:
                warn(
                    f"{distinct} clusters were found, fewer than n_clusters="
                    f"{self.n_clusters}: X has too few rows of different direction. "
                    "Ask for fewer clusters, or look for duplicates in X.",
                    ConvergenceWarning,
                )
        return self

    def fit_predict(
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> np.ndarray:
        """Find the clusters and return the label of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the (weighted) sum of ``1 - cosine`` with the nearest centre.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, new or old.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts.

        Returns
        -------
        float
            At most 0; larger is better.
        """
        cosines = self._cosines(self._check_new(X))
        best = to_host(namespace(cosines).max(cosines, axis=1)).astype(np.float64)
        return -float(check_weights(sample_weight, len(best)) @ (1.0 - best))

    def _initial_centers(self, X: Matrix) -> np.ndarray | None:
        if isinstance(self.init, str):
            if self.init != "k-means++":
                raise ValueError(
                    f"init={self.init!r} is not known; give 'k-means++' or an array of "
                    f"{self.n_clusters} centres."
                )
            return None
        centers = np.array(self.init, dtype=X.dtype)
        wanted = (self.n_clusters, X.shape[1])
        if centers.shape != wanted or not np.isfinite(centers).all():
            raise ValueError(
                f"init has shape {centers.shape}; give {wanted[0]} finite centres of "
                f"{wanted[1]} features."
            )
        if not centers.any(axis=1).all():
            raise ValueError("init has a zero row; a centre needs a direction.")
        return centers
