"""Individual-heterogeneity spectral clustering."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._checks import identical_rows, warn_empty_clusters
from ihgmm._progress import Steps
from ihgmm._warnings import warn
from ihgmm.estimators.base import CosineClusterer, InSteps
from ihgmm.matrix import Matrix, Tall, to_host
from ihgmm.matrix.tall import number_by_size
from ihgmm.numerics.eigen import Solver
from ihgmm.numerics.gram import GramKind
from ihgmm.numerics.krylov import Order
from ihgmm.numerics.labels import Assignment
from ihgmm.numerics.spectral import spectral_clustering
from ihgmm.statistics.estimation import estimate_parameters, estimates_of_fit
from ihgmm.statistics.likelihood import refine_labels


class IhSC(InSteps, CosineClusterer):
    """Cluster rows that share a pattern but differ in scale.

    Individual-heterogeneity spectral clustering [1]_: the Gram matrix of the rows with
    its diagonal set to zero, its leading eigenvectors, their rows scaled to unit norm,
    k-means. The Gram matrix is never formed, so that cost and memory grow linearly
    with the data.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters. "auto" counts the directions that stand out from noise, in
        few features the clusters that halves of the data agree on: see
        :func:`~ihgmm.select_n_clusters`.
    gram : {"hollow", "full", "cosine", "hetero"}, default="hollow"
        The similarity of rows: inner products with a zero diagonal as in the paper,
        all inner products, or cosines. ``"cosine"`` keeps a few very large rows from
        dominating. ``"hetero"`` fills the diagonal in from the other entries
        (HeteroPCA): better where clusters have only a handful of rows and patterns
        that resemble each other, as a rule where rows in a cluster times one less the
        cosine of patterns is about 1 or less; else it changes little, and on data that
        do not follow the model it can be worse.
    order : {"algebraic", "magnitude"}, default="algebraic"
        Which eigenvalues lead: the largest, or those of largest absolute value. The
        signal is in positive eigenvalues, so the first loses less when clusters are
        very unequal or a row is very large; it also leaves out directions, beyond two,
        whose eigenvalue is negative, as there are with fewer features than clusters.
    eigen_solver : {"auto", "dense", "lanczos", "block"}, default="auto"
        How eigenvectors are found; see :func:`ihgmm.numerics.eigen.leading_eigenpairs`.
    assign_labels : {"kmeans", "cluster_qr"}, default="kmeans"
        How rows of eigenvectors become labels. Cluster-QR needs no start and no
        randomness.
    refine : bool, default=False
        Reassign rows afterwards to the centres that the other rows give, see
        :func:`ihgmm.statistics.likelihood.refine_labels`. Under the model this comes
        close to the labels of one who knows all other labels; on real data it helps
        where the noise is the same in all directions and may hurt where it is not.
    n_init : int or "auto", default="auto"
        Starts of k-means: one from pivoted QR, the others k-means++. "auto" is 1 + 10,
        fewer on large data whose starts agree.
    max_iter : int, default=300
        Cap on the iterations of one k-means run.
    tol : float, default=1e-2
        Largest angle, in radians, between the computed and the true leading subspace.
        Noise in the data turns that subspace by more.
    verbose : bool, default=False
        Write a line for each step of the fit, with its time, and show how far each
        pass over data on disk has come.
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
    sizes_ : ndarray of shape (n_samples,)
        The size of each row, in the units of the data: its scale times the Euclidean
        length of its cluster's centre. Scales have mean 1 in each cluster, so that
        they compare rows of one cluster only; sizes compare all rows. In cells whose
        clusters split by size, the recorded amount of RNA correlated .46 with the
        scales and .93 with the sizes.
    noise_levels_ : ndarray of shape (n_samples,)
        Standard deviation of what the centre leaves of each row.
    n_clusters_ : int
        Number of clusters, given or found.
    selection_ : ClusterCount
        How the number of clusters was found; only with ``n_clusters="auto"``.
    n_iter_ : int
        Iterations of k-means.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X had names.

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

    Where X is on a device, the same seed starts the same run as with NumPy. Only what
    is small comes to the host, and the at most 16,384 rows of the embedding (or 256 for
    each cluster) that k-means learns from; with ``refine``, a few numbers for each row
    and cluster.

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

    _fewest_steps = 4

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        gram: GramKind = "hollow",
        order: Order = "algebraic",
        eigen_solver: Solver = "auto",
        assign_labels: Assignment = "kmeans",
        refine: bool = False,
        n_init: int | Literal["auto"] = "auto",
        max_iter: int = 300,
        tol: float = 1e-2,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.gram = gram
        self.order = order
        self.eigen_solver = eigen_solver
        self.assign_labels = assign_labels
        self.refine = refine
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state

    def _fit(self, X: Any, steps: Steps) -> None:
        data, k, rng = self._begin(X, steps, refined=self.refine)
        found = spectral_clustering(
            data,
            k,
            gram=self.gram,
            order=self.order,
            eigen_solver=self.eigen_solver,
            assign_labels=self.assign_labels,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            rng=rng,
            steps=steps,
        )
        labels, kinds = found.labels, identical_rows(data, k)
        refine = self.refine and kinds is None
        if kinds is not None:
            labels = data.to_device(number_by_size(kinds, k))
        elif refine:
            with steps.step("refine"):
                labels = self._refined(data, labels, k)
        with steps.step("centers"):
            if refine:
                fitted = estimate_parameters(data, labels, k)
            else:
                fitted = estimates_of_fit(data, found, labels, k)
        self.labels_ = data.per_row(labels)
        self.embedding_ = found.embedding
        self.eigenvalues_ = data.to_device(data.restore_squares(found.eigenvalues))
        self.cluster_centers_ = fitted.centers
        self.scales_ = fitted.scales
        self.noise_levels_ = fitted.noise_levels
        self.n_iter_ = found.n_iter

    def _refined(self, X: Matrix, labels: Tall, k: int) -> Tall:
        refined = refine_labels(X, labels, k)
        if not refined.converged:
            warn(
                f"Refined labels still changed after {refined.n_iter} rounds. The data "
                f"may hold fewer than {k} clusters.",
                ConvergenceWarning,
            )
        warn_empty_clusters(refined.labels, k)
        return number_by_size(refined.labels, k)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the share of the rows' squared length that their centres explain.

        Each row is fitted by the best non-negative multiple of the centre nearest in
        angle; 1 means that every row is a multiple of a centre, 0 that none is near
        one. Rows may be new or old; ``y`` is ignored.
        """
        data = self._check_new(X)
        sqnorms, best = to_host(data.sqnorms), self._largest_cosines(data)
        total = sqnorms.sum()
        return float(sqnorms @ np.maximum(best, 0.0) ** 2 / total) if total else 0.0
