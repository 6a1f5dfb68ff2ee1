"""The semidefinite relaxation of k-means, and labels from its solution."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._warnings import ignored, warn
from ihgmm.matrix import as_matrix
from ihgmm.matrix.tall import number_by_size
from ihgmm.numerics.krylov import leading_pairs
from ihgmm.numerics.labels import Assignment, learn_rule


@dataclass(frozen=True)
class SDPSolution:
    """A solution of the relaxation and the clustering read off it.

    See the attributes of :class:`~ihgmm.SDPKMeans`; Z is its ``solution_``.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.numerics.sdp import sdp_kmeans
    >>> solution = sdp_kmeans(np.array([[0.0], [1.0], [10.0], [11.0]]), 2)
    >>> solution.exact, solution.labels
    (True, array([0, 0, 1, 1]))
    """

    labels: np.ndarray  # numbered by decreasing size
    Z: np.ndarray  # symmetric, and feasible within the solver's tolerance
    embedding: np.ndarray  # leading eigenvectors of Z, of the type of the data
    objective: float  # sum(X @ X.T * Z): no clustering has more, up to the tolerance
    exact: bool  # whether Z is the matrix of ``labels``, which k-means cannot beat then
    status: str  # the solver's own word, "optimal" when it converged
    n_iter: int  # iterations of the solver; 0 where there is one feasible point only


def sdp_kmeans(
    X: Any,
    n_clusters: int,
    *,
    method: Assignment = "kmeans",
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 10_000,
    tol: float = 1e-5,
    rng: np.random.Generator | None = None,
) -> SDPSolution:
    """Solve the Peng-Wei relaxation of k-means and round its solution.

    The parameters are those of :class:`~ihgmm.SDPKMeans`; X has been checked.

    Notes
    -----
    The problem is: maximise ``sum(A * Z)`` with ``A = X @ X.T`` over matrices Z that
    are positive semi-definite, have no negative entry, rows that sum to 1, and trace
    ``n_clusters``. The matrix of a clustering, ``1 / size`` where two rows are in one
    cluster and 0 elsewhere, is such a Z, and its objective is the sum of squares less
    the cost of k-means. Moving all rows by one vector changes the objective by a
    constant, and so does a number added to the whole diagonal of A; the solver sees
    the rows moved to mean zero and A scaled to norm 1.

    Examples
    --------
    >>> import numpy as np
    >>> solution = sdp_kmeans(np.array([[0.0], [1.0], [10.0], [11.0]]), 2)
    >>> solution.Z.round(2) + 0.0
    array([[0.5, 0.5, 0. , 0. ],
           [0.5, 0.5, 0. , 0. ],
           [0. , 0. , 0.5, 0.5],
           [0. , 0. , 0.5, 0.5]])
    >>> solution.exact, solution.labels
    (True, array([0, 0, 1, 1]))
    """
    data = as_matrix(X)
    rows = data.toarray().astype(np.float64, copy=False)
    # Moved to mean zero before the products, which then lose no digits to the mean.
    mean = rows.mean(axis=0)
    A = (rows - mean) @ (rows - mean).T
    n = len(A)
    # One cluster, or as many as rows, leaves a single feasible point.
    if n_clusters in (1, n):
        Z = np.eye(n) if n_clusters == n else np.full((n, n), 1 / n)
        status, n_iter = "optimal", 0
    else:
        Z, status, n_iter = _solve(A, n_clusters, max_iter, tol)
    _, vectors = leading_pairs(Z, n_clusters)
    embedding = np.ascontiguousarray(vectors)
    # Signs of eigenvectors are fixed as everywhere: the largest entry is positive.
    peak = embedding[np.abs(embedding).argmax(axis=0), np.arange(n_clusters)]
    embedding *= np.where(peak < 0, -1, 1)
    rule, _ = learn_rule(embedding, n_clusters, method, n_init=n_init, rng=rng)
    labels = number_by_size(rule(embedding), n_clusters)
    same = labels[:, None] == labels
    clustering = same / same.sum(axis=1)
    return SDPSolution(
        labels,
        Z,
        embedding.astype(data.dtype, copy=False),
        float(np.vdot(A, Z) + n * mean @ mean),
        # Where Z is a clustering the solver leaves up to 2e-4 of this norm, and to move
        # one row between clusters of m rows changes it by 2 / sqrt(m + 1).
        bool(np.linalg.norm(Z - clustering) <= 1e-2),
        status,
        n_iter,
    )


def _solve(
    A: np.ndarray, n_clusters: int, max_iter: int, tol: float
) -> tuple[np.ndarray, str, int]:
    """Return Z, the solver's status and its iterations."""
    try:
        cp = import_module("cvxpy")
    except ImportError as error:
        raise ImportError(
            "The semidefinite relaxation needs cvxpy: pip install cvxpy"
        ) from error
    norm = np.linalg.norm(A, 2)
    Z = cp.Variable(A.shape, PSD=True)
    problem = cp.Problem(
        cp.Maximize(cp.sum(cp.multiply(A / (norm if norm > 0 else 1.0), Z))),
        [Z >= 0, cp.sum(Z, axis=1) == 1, cp.trace(Z) == n_clusters],
    )
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
    solution = (Z.value + Z.value.T) / 2
    return solution, str(problem.status), int(problem.solver_stats.num_iters)
