"""Individual-heterogeneity spectral clustering."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np

from ihgmm._validation import (
    check_choice,
    check_count,
    check_data,
    check_n_init,
    check_number,
    check_row_count,
    generator,
    identical_rows,
    warn_zero_rows,
)
from ihgmm.cluster._base import CosineClusterer
from ihgmm.eigen import ORDERS, SOLVERS, Order, Solver
from ihgmm.estimation import estimate_parameters
from ihgmm.gram import GRAMS, GramKind
from ihgmm.rounding import ASSIGNMENTS, Assignment, number_by_size
from ihgmm.spectral import spectral_clustering

__all__ = ["IhSC"]


class IhSC(CosineClusterer):
    """Cluster rows that share a pattern but differ in scale.

    Individual-heterogeneity spectral clustering [1]_: the Gram matrix of the rows with
    its diagonal set to zero, its leading eigenvectors, their rows scaled to unit norm,
    k-means. The Gram matrix is never formed, so that cost and memory grow linearly
    with the data.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    gram : {"hollow", "full", "cosine"}, default="hollow"
        The similarity of rows: inner products with a zero diagonal as in the paper,
        all inner products, or cosines. ``"cosine"`` keeps a few very large rows from
        dominating.
    order : {"algebraic", "magnitude"}, default="algebraic"
        Which eigenvalues lead: the largest, or those of largest absolute value. The
        signal is in positive eigenvalues, so the first loses less when clusters are
        very unequal or a row is very large; it also leaves out directions, beyond two,
        whose eigenvalue is negative, as there are with fewer features than clusters.
    eigen_solver : {"auto", "dense", "lanczos", "block"}, default="auto"
        How eigenvectors are found; see :func:`ihgmm.eigen.leading_eigenpairs`.
    assign_labels : {"kmeans", "cluster_qr"}, default="kmeans"
        How rows of eigenvectors become labels. Cluster-QR needs no start and no
        randomness.
    n_init : int or "auto", default="auto"
        Starts of k-means: one from pivoted QR, the others k-means++. "auto" is 1 + 10,
        fewer on large data whose starts agree.
    max_iter : int, default=300
        Cap on the iterations of one k-means run.
    tol : float, default=1e-2
        Largest angle, in radians, between the computed and the true leading subspace.
        Noise in the data turns that subspace by more.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same labels.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row, numbered by decreasing size.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Rows of the eigenvectors scaled to unit norm, one for each row of X; a column
        that was left out is zero.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Leading eigenvalues of the Gram matrix.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The pattern of each cluster: what a row of scale 1 looks like without noise.
    scales_ : ndarray of shape (n_samples,)
        The scale of each row; in each cluster their mean is 1.
    noise_levels_ : ndarray of shape (n_samples,)
        Standard deviation of what the centre leaves of each row.
    n_iter_ : int
        Iterations of k-means.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, if X had names.

    See Also
    --------
    SphericalKMeans : k-means by cosine, on the rows themselves.
    PSC : the spectral method for rows of equal scale.

    Notes
    -----
    ``predict`` places new rows by their cosine with the centres, while ``labels_`` come
    from the eigenvectors. Under the model the two agree; on real data they differ for
    rows that fit no pattern well, a few in a hundred (8% of the digits of
    scikit-learn). Use ``labels_`` or ``fit_predict`` for the rows of the fit.

    References
    ----------
    .. [1] H. Qing, Individual-heterogeneous sub-Gaussian mixture models.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> from ihgmm.metrics import exact_recovery
    >>> X, labels = make_ihgmm(n_samples=300, n_features=100, random_state=0)
    >>> model = IhSC(n_clusters=4, random_state=0).fit(X)
    >>> exact_recovery(labels, model.labels_)
    True
    """

    labels_: np.ndarray
    embedding_: np.ndarray
    eigenvalues_: np.ndarray
    scales_: np.ndarray
    noise_levels_: np.ndarray
    n_iter_: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        gram: GramKind = "hollow",
        order: Order = "algebraic",
        eigen_solver: Solver = "auto",
        assign_labels: Assignment = "kmeans",
        n_init: int | Literal["auto"] = "auto",
        max_iter: int = 300,
        tol: float = 1e-2,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.gram = gram
        self.order = order
        self.eigen_solver = eigen_solver
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the clusters, their centres and the scale of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data. Zero rows get the label of the largest cluster, with a warning.
        y : None
            Ignored.

        Returns
        -------
        IhSC
            The fitted estimator itself.
        """
        self._check_parameters()
        data = check_data(X, self)
        check_row_count(len(data.sqnorms), self.n_clusters)
        warn_zero_rows(data.sqnorms)
        found = spectral_clustering(
            data.X,
            self.n_clusters,
            gram=self.gram,
            order=self.order,
            eigen_solver=self.eigen_solver,
            assign_labels=self.assign_labels,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            sqnorms=data.sqnorms,
            rng=generator(self.random_state),
        )
        labels = found.labels
        kinds = identical_rows(data.X, data.sqnorms, self.n_clusters)
        if kinds is not None:
            labels = number_by_size(kinds, self.n_clusters)
        fitted = estimate_parameters(
            data.X, labels, self.n_clusters, scales=found.scales, sqnorms=data.sqnorms
        )
        self.labels_ = labels
        self.embedding_ = found.embedding
        self.eigenvalues_ = data.restore_squares(found.eigenvalues)
        self.cluster_centers_ = fitted.centers * fitted.centers.dtype.type(data.unit)
        self.scales_ = fitted.scales
        self.noise_levels_ = fitted.noise_levels * fitted.scales.dtype.type(data.unit)
        self.n_iter_ = found.n_iter
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Return the share of the rows' squared length that their centres explain.

        Each row is fitted by the best non-negative multiple of the centre nearest in
        angle; 1 means that every row is a multiple of a centre.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, new or old.
        y : None
            Ignored.

        Returns
        -------
        float
            Between 0 and 1.
        """
        data = self._check_new(X)
        total = data.sqnorms.sum()
        if total == 0:
            return 0.0
        best = np.maximum(self._cosines(X).max(axis=1), 0).astype(np.float64)
        return float(data.sqnorms @ best**2 / total)

    def _check_parameters(self) -> None:
        check_count("n_clusters", self.n_clusters)
        check_choice("gram", self.gram, GRAMS)
        check_choice("order", self.order, ORDERS)
        check_choice("eigen_solver", self.eigen_solver, SOLVERS)
        check_choice("assign_labels", self.assign_labels, ASSIGNMENTS)
        check_n_init(self.n_init)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, above=0)
