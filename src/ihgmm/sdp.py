"""The semidefinite relaxation of k-means, and labels from its solution."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from ihgmm._arrays import Array, is_sparse
from ihgmm.rounding import Assignment, assign, number_by_size

__all__ = ["SDPSolution", "sdp_kmeans"]

EXACT = 1e-2
"""A solution this near to the matrix of a clustering, in Frobenius norm, is one."""


@dataclass(frozen=True)
class SDPSolution:
    """A solution of the relaxation and the clustering read off it.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        Clusters numbered by decreasing size.
    Z : ndarray of shape (n_samples, n_samples), float64
        The solution: symmetric, and feasible within the solver's tolerance.
    embedding : ndarray of shape (n_samples, n_clusters)
        Leading eigenvectors of Z, of the type of the data.
    objective : float
        ``sum(X @ X.T * Z)``, at least that of any clustering, up to the tolerance.
    exact : bool
        Whether Z is the matrix of the clustering ``labels``, which then is the best
        that k-means could find.
    status : str
        What the solver says of the solution, "optimal" when it converged.
    n_iter : int
        Iterations of the solver; 0 where there is only one feasible point.
    """

    labels: np.ndarray
    Z: np.ndarray
    embedding: np.ndarray
    objective: float
    exact: bool
    status: str
    n_iter: int


def sdp_kmeans(
    X: Array,
    n_clusters: int,
    *,
    assign_labels: Assignment = "kmeans",
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 10_000,
    tol: float = 1e-5,
    rng: np.random.Generator | None = None,
) -> SDPSolution:
    """Solve the Peng-Wei relaxation of k-means and round its solution.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data, float32 or float64, finite.
    n_clusters : int
        Number of clusters, at most n_samples.
    assign_labels, n_init
        How rows of eigenvectors become labels: see :mod:`ihgmm.rounding`.
    max_iter : int
        Cap on the iterations of the solver.
    tol : float
        Accuracy of the solver, absolute and relative, with A scaled to norm 1.
    rng : numpy.random.Generator, optional
        Source of the random starts of k-means.

    Returns
    -------
    SDPSolution

    Warns
    -----
    ConvergenceWarning
        When the cap on iterations is reached.

    Notes
    -----
    The problem is: maximise ``sum(A * Z)`` with ``A = X @ X.T`` over matrices Z that
    are positive semi-definite, have no negative entry, rows that sum to 1, and trace
    ``n_clusters``. The matrix of a clustering, ``1 / size`` where two rows are in one
    cluster and 0 elsewhere, is such a Z, and its objective is the sum of squares less
    the cost of k-means. Moving all rows by one vector changes the objective by a
    constant; the solver sees the rows moved to mean zero and A scaled to norm 1.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> found = sdp_kmeans(X, 2)
    >>> found.Z.round(2) + 0.0
    array([[0.5, 0.5, 0. , 0. ],
           [0.5, 0.5, 0. , 0. ],
           [0. , 0. , 0.5, 0.5],
           [0. , 0. , 0.5, 0.5]])
    >>> found.exact, found.labels
    (True, array([0, 0, 1, 1]))
    """
    # Moved to mean zero before the products, which then lose no digits to the mean.
    rows = np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
    mean = rows.mean(axis=0)
    A = (rows - mean) @ (rows - mean).T
    n = len(A)
    if n_clusters == 1:
        Z, status, n_iter = np.full((n, n), 1 / n), "optimal", 0
    elif n_clusters == n:
        Z, status, n_iter = np.eye(n), "optimal", 0
    else:
        Z, status, n_iter = _solve(A, n_clusters, max_iter, tol)
    _, vectors = eigh(Z, subset_by_index=(n - n_clusters, n - 1))
    embedding = np.ascontiguousarray(vectors[:, ::-1])
    # Signs of eigenvectors are fixed as everywhere: the largest entry is positive.
    peak = embedding[np.abs(embedding).argmax(axis=0), np.arange(n_clusters)]
    embedding *= np.where(peak < 0, -1, 1)
    found = assign(embedding, n_clusters, assign_labels, n_init=n_init, rng=rng)
    labels = number_by_size(found.labels, n_clusters)
    return SDPSolution(
        labels,
        Z,
        embedding.astype(X.dtype, copy=False),
        float(np.vdot(A, Z) + n * mean @ mean),
        bool(np.linalg.norm(Z - _membership(labels)) <= EXACT),
        status,
        n_iter,
    )


def _membership(labels: np.ndarray) -> np.ndarray:
    """Return the matrix of a clustering: 1 / size within clusters, 0 elsewhere."""
    same = labels[:, None] == labels[None, :]
    return np.asarray(same / same.sum(axis=1))


def _solve(
    A: np.ndarray, n_clusters: int, max_iter: int, tol: float
) -> tuple[np.ndarray, str, int]:
    cp = _cvxpy()
    norm = np.linalg.norm(A, 2)
    Z = cp.Variable(A.shape, PSD=True)
    problem = cp.Problem(
        cp.Maximize(cp.sum(cp.multiply(A / (norm if norm > 0 else 1.0), Z))),
        [Z >= 0, cp.sum(Z, axis=1) == 1, cp.trace(Z) == n_clusters],
    )
    with warnings.catch_warnings():
        # Said below, in words of this package.
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        problem.solve(solver=cp.SCS, eps_abs=tol, eps_rel=tol, max_iters=max_iter)
    if Z.value is None:
        raise RuntimeError(
            f"The solver SCS found no solution (status {problem.status!r}). Raise tol="
            f"{tol:g} or max_iter={max_iter}, or look at the scale of the rows of X."
        )
    if problem.status != cp.OPTIMAL:
        warnings.warn(
            f"The solver stopped after max_iter={max_iter} iterations (status "
            f"{problem.status!r}); its solution may be inaccurate. Raise max_iter or "
            f"tol={tol:g}.",
            ConvergenceWarning,
            stacklevel=4,
        )
    solution = (Z.value + Z.value.T) / 2
    return solution, str(problem.status), int(problem.solver_stats.num_iters)


def _cvxpy() -> Any:
    try:
        import cvxpy
    except ImportError as error:
        raise ImportError(
            "The semidefinite relaxation needs cvxpy: pip install cvxpy"
        ) from error
    return cvxpy
