"""The semidefinite relaxation of k-means, for small samples."""

from functools import partial
from importlib import import_module
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ihgmm._checks import check_matrix, check_row_count, warn_zero_rows
from ihgmm._parameters import check_choice, generator
from ihgmm._progress import Steps
from ihgmm._warnings import ClusterCountWarning, ignored, warn
from ihgmm.estimators.base import PARAMETER_CHECKS, atomic
from ihgmm.estimators.clusterer import DistanceClusterer
from ihgmm.matrix import HOST, Matrix, Scaled, Tall, to_host


class SDPKMeans(DistanceClusterer):
    """Cluster rows by the semidefinite relaxation of k-means.

    The problem of k-means is relaxed to a convex one [1]_ that has no local optima.
    For Gaussian clusters of one scale it finds all labels as soon as any method can
    [2]_. It is for a few hundred rows, and needs cvxpy (``pip install cvxpy``).

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    gram : {"full", "cosine"}, default="full"
        What the relaxation sees: all inner products of rows, or those of rows brought
        to unit norm, for rows that differ in scale. With "cosine" all attributes and
        methods are about unit rows.
    max_samples : int, default=500
        Most rows accepted: 100 take about a second, 300 ten, 500 a minute or two.
    max_iter : int, default=10000
        Cap on the iterations of the solver of the relaxation.
    tol : float, default=1e-5
        Accuracy of that solver, relative to the largest eigenvalue of the Gram matrix.
    verbose, random_state
        As for :class:`~ihgmm.IhSC`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row, numbered by decreasing size.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The mean row of each cluster; zero for a cluster without rows.
    solution_ : ndarray of shape (n_samples, n_samples), float64
        The matrix that solves the relaxation, Z.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Leading eigenvectors of the solution.
    objective_ : float
        The sum of ``X @ X.T * solution_``: the sum of squares of X less this number is
        a lower bound on the cost of any clustering by k-means.
    exact_ : bool
        Whether the solution is a clustering, ``labels_``: none has a lower cost.
    status_, n_iter_ : str, int
        The solver's word, "optimal" or "optimal_inaccurate", and its iterations.
    n_features_in_, feature_names_in_
        As of :class:`~ihgmm.IhSC`.

    Notes
    -----
    The relaxation is: maximise ``sum(X @ X.T * Z)`` over positive semi-definite Z
    without negative entries, whose rows sum to 1 and whose trace is n_clusters. Labels
    are read off by k-means on its leading eigenvectors. With "cosine" zero rows are
    left out, with a warning, and have label 0 and distance 1.

    References
    ----------
    .. [1] J. Peng and Y. Wei (2007), Approximating k-means-type clustering via
       semidefinite programming. SIAM Journal on Optimization 18.
    .. [2] X. Chen and Y. Yang (2021), Cutoff for exact recovery of Gaussian mixture
       models. IEEE Transactions on Information Theory 67.

    Examples
    --------
    >>> from ihgmm import SDPKMeans, make_ihgmm
    >>> from ihgmm.metrics import exact_recovery
    >>> X, labels = make_ihgmm(60, 20, 3, scale_ratio=20, random_state=0)
    >>> model = SDPKMeans(n_clusters=3, gram="cosine", random_state=0).fit(X)
    >>> exact_recovery(labels, model.labels_), model.exact_
    (True, True)
    """

    _parameter_checks: ClassVar = {
        **PARAMETER_CHECKS,
        "gram": partial(check_choice, choices=("full", "cosine")),
    }

    @property
    def _centers_are_directions(self) -> bool:
        return self.gram == "cosine"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        gram: Literal["full", "cosine"] = "full",
        max_samples: int = 500,
        max_iter: int = 10_000,
        tol: float = 1e-5,
        verbose: bool | int = False,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.gram = gram
        self.max_samples = max_samples
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state

    @atomic
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model to data, array-like or sparse; ``y`` is ignored."""
        X = check_matrix(X, self).to_memory()
        n_samples = X.shape[0]
        self._check_size(n_samples)

        nonzero_rows = np.arange(n_samples)
        if self.gram == "cosine":
            check_row_count(n_samples, self.n_clusters, warn_zero_rows(X))
            nonzero_rows = np.flatnonzero(to_host(X.sqnorms))
            X = _unit_rows(X)
        rows = X.take(nonzero_rows).toarray()

        # The solver sees rows moved to mean zero, which changes the objective by a
        # constant: products then lose no digits to the mean.
        mean = rows.mean(axis=0, dtype=np.float64)
        gram = (rows - mean) @ (rows - mean).T
        with Steps(self.verbose).step("solver") as say:
            solution = _solve(gram, self.n_clusters, self.max_iter, self.tol)
            say(f"{solution.n_iter} iterations")

        _, vectors = np.linalg.eigh(solution.Z)
        embedding = HOST.fix_signs(vectors[:, : -self.n_clusters - 1 : -1])
        labels = self._read_labels(rows, embedding)

        # Zero rows have label 0, and nothing else.
        self.labels_ = np.zeros(n_samples, dtype=np.int32)
        self.labels_[nonzero_rows] = labels
        self.embedding_ = np.zeros((n_samples, self.n_clusters), dtype=X.dtype)
        self.embedding_[nonzero_rows] = embedding
        self.solution_ = np.zeros((n_samples, n_samples))
        self.solution_[np.ix_(nonzero_rows, nonzero_rows)] = solution.Z

        self.status_ = solution.status
        self.n_iter_ = solution.n_iter
        self.exact_ = _is_clustering(solution.Z, labels)
        objective = np.vdot(gram, solution.Z) + len(rows) * mean @ mean
        self.objective_ = float(X.restore_squares(np.array(objective)))

        centers = _cluster_means(rows, labels, self.n_clusters)
        self.cluster_centers_ = (centers * X.unit).astype(X.dtype)
        return self

    def _check_size(self, n_samples: int) -> None:
        check_row_count(n_samples, self.n_clusters)
        if n_samples > self.max_samples:
            raise ValueError(
                f"n_samples={n_samples} is more than max_samples={self.max_samples}: "
                f"the relaxation has {n_samples}^2 variables. Use IhSC, with "
                "recipe='psc' if rows have one scale, or raise max_samples and wait."
            )

    def _read_labels(self, rows: np.ndarray, embedding: np.ndarray) -> np.ndarray:
        """Return labels by k-means in the embedding, numbered by decreasing size."""
        # Parallel rows at unit norm are the same, but for rounding.
        rounding = 10 * np.finfo(rows.dtype).eps if self.gram == "cosine" else 0.0
        are_equal = cdist(rows, rows) <= rounding
        distinct_rows, labels = np.unique(are_equal.argmax(axis=1), return_inverse=True)

        if len(distinct_rows) < self.n_clusters:
            warn(
                f"X has {len(distinct_rows)} distinct rows, fewer than n_clusters="
                f"{self.n_clusters}; each makes a cluster. Ask for fewer clusters, or "
                "look for duplicates in X.",
                ClusterCountWarning,
            )
        else:
            seed = int(generator(self.random_state).integers(2**31))
            kmeans = KMeans(self.n_clusters, n_init=10, random_state=seed)
            labels = kmeans.fit_predict(embedding)

        order = HOST.order_by_size(labels, self.n_clusters)
        return np.argsort(order)[labels]

    def _distances(self, X: Matrix) -> Tall:
        if self.gram == "full":
            return super()._distances(X)

        distances = super()._distances(_unit_rows(X))
        xp = X.ops.xp
        is_zero_row = (X.sqnorms == 0)[:, None]
        return xp.where(is_zero_row, xp.ones_like(distances), distances)


def _unit_rows(X: Matrix) -> Matrix:
    """Return rows of unit norm, whatever unit the data are kept in."""
    norms = X.ops.xp.sqrt(X.sqnorms)
    return Scaled(X, rows=X.ops.ratio(1.0, norms), unit=1.0)


def _is_clustering(Z: np.ndarray, labels: np.ndarray) -> bool:
    """Tell whether a solution is the clustering that labels make."""
    is_same_cluster = labels[:, None] == labels
    clustering = is_same_cluster / is_same_cluster.sum(axis=1)
    # Where Z is a clustering the solver leaves up to 2e-4 of this norm, and to move
    # one row between clusters of m rows changes it by 2 / sqrt(m + 1).
    return bool(np.linalg.norm(Z - clustering) <= 1e-2)


def _cluster_means(rows: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the mean row of each cluster; zero where it has none."""
    sizes = np.maximum(np.bincount(labels, minlength=n_clusters), 1)
    members = np.eye(n_clusters)[labels]  # (n_rows, n_clusters)
    return np.asarray((members / sizes).T @ rows)


class Solution(NamedTuple):
    """What the solver of the relaxation found."""

    Z: np.ndarray
    status: str = "optimal"
    n_iter: int = 0


def _solve(gram: np.ndarray, n_clusters: int, max_iter: int, tol: float) -> Solution:
    """Solve the relaxation for a Gram matrix."""
    n = len(gram)
    # One cluster, or as many as rows, leaves a single feasible point.
    if n_clusters == n:
        return Solution(Z=np.eye(n))
    if n_clusters == 1:
        return Solution(Z=np.full((n, n), 1 / n))

    try:
        cp = import_module("cvxpy")  # whose types mypy does not see
    except ImportError as error:
        raise ImportError("SDPKMeans needs cvxpy: pip install cvxpy") from error

    norm = np.linalg.norm(gram, 2)
    weights = gram / (norm if norm > 0 else 1.0)
    Z = cp.Variable(gram.shape, PSD=True)
    objective = cp.sum(cp.multiply(weights, Z))
    constraints = [Z >= 0, cp.sum(Z, axis=1) == 1, cp.trace(Z) == n_clusters]
    problem = cp.Problem(cp.Maximize(objective), constraints)

    # The warning below says so with the names of this package.
    with ignored(UserWarning, "Solution may be inaccurate"):
        problem.solve(solver=cp.SCS, eps_abs=tol, eps_rel=tol, max_iters=max_iter)

    if Z.value is None:
        raise RuntimeError(
            f"The solver SCS found no solution (status {problem.status!r}). Raise tol="
            f"{tol:g} or max_iter={max_iter}, or look at the scale of the rows of X."
        )
    if problem.status != cp.OPTIMAL:
        warn(
            f"The solver stopped after max_iter={max_iter} iterations (status "
            f"{problem.status!r}); its solution may be inaccurate. Raise max_iter or "
            f"tol={tol:g}.",
            ConvergenceWarning,
        )
    return Solution(
        Z=(Z.value + Z.value.T) / 2,
        status=str(problem.status),
        n_iter=int(problem.solver_stats.num_iters),
    )
