"""The leading eigenpairs of a Gram operator."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning

from ihgmm.gram import GramOperator

__all__ = ["ORDERS", "SOLVERS", "EigenPairs", "leading_eigenpairs"]

Order = Literal["algebraic", "magnitude"]
Solver = Literal["auto", "dense", "lanczos", "block"]
ORDERS: tuple[Order, ...] = ("algebraic", "magnitude")
SOLVERS: tuple[Solver, ...] = ("auto", "dense", "lanczos", "block")

OVERSAMPLING = 5
"""Columns of a block beyond the eigenvectors wanted, at least."""

MIN_BLOCKS, MAX_BLOCKS, BASIS_ENTRIES = 4, 16, 2**23
"""Blocks the basis may hold before it is condensed: few where rows are many."""

MAX_APPLICATIONS = 100
"""Products with G after which the block solver gives up and warns."""

SMALLEST_GAP = 1e-2
"""Gaps below this share of the K-th eigenvalue are not resolved any further."""

SAMPLE = 16
"""Where there are many more rows than features, one in so many makes the start."""


@dataclass(frozen=True)
class EigenPairs:
    """Leading eigenpairs and how they were reached.

    Attributes
    ----------
    values : ndarray of shape (k,), float64
        Eigenvalues, leading first.
    vectors : ndarray of shape (n, k)
        Orthonormal eigenvectors in columns; in each the entry of largest magnitude
        is positive.
    residual : float
        The largest ``norm(G @ u - value * u)``, as estimated by the solver.
    n_iter : int
        Products of G with a block (``"block"``) or a vector (``"lanczos"``); 0 for
        ``"dense"``.
    solver : str
        The solver that was used.
    """

    values: np.ndarray
    vectors: np.ndarray
    residual: float
    n_iter: int
    solver: str


def leading_eigenpairs(
    G: GramOperator,
    k: int,
    *,
    order: Order = "algebraic",
    solver: Solver = "auto",
    tol: float = 1e-6,
    signal_only: bool = False,
    rng: np.random.Generator | None = None,
) -> EigenPairs:
    """Return the k leading eigenpairs of a Gram operator.

    Parameters
    ----------
    G : GramOperator
        The matrix, n by n.
    k : int
        Number of eigenpairs, at most n. That many columns are always returned, also
        when the rank is smaller.
    order : {"algebraic", "magnitude"}
        Whether the leading eigenvalues are the largest or those of largest absolute
        value.
    solver : {"auto", "dense", "lanczos", "block"}
        ``"dense"`` forms G and calls LAPACK; ``"lanczos"`` is ARPACK; ``"block"`` is
        a randomised block Krylov method. ``"auto"`` takes the dense one where
        forming G is cheaper and the block method elsewhere. The matrix-free solvers
        hand a matrix hardly larger than their own working space to the dense one.
    tol : float
        The eigenvectors are accepted when the angle between the computed and the
        true leading subspace is at most ``tol``, as bounded by residual over
        eigenvalue gap. Gaps under 1% of the k-th eigenvalue count as 1%.
    signal_only : bool
        Do not wait for eigenpairs with negative eigenvalues to converge; the block
        solver then returns them as they are.
    rng : numpy.random.Generator, optional
        Source of the random start.

    Returns
    -------
    EigenPairs

    Warns
    -----
    ConvergenceWarning
        When the cap on iterations is reached; the message gives the residual.

    Notes
    -----
    The block method builds an orthonormal basis of the Krylov space of a random block
    of at least ``k + 5`` vectors, one product with G at a time, and takes the Ritz
    vectors; it restarts from the best ones when the basis is full. Blocks are
    orthogonalised by their small Gram matrices (Cholesky-QR in spirit), never by
    Householder QR. Where there are many more rows than features the start comes from a
    sample of the rows, which saves a product.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.gram import GramOperator
    >>> X = np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> leading_eigenpairs(GramOperator.of(X), 2).values
    array([2., 1.])
    """
    n = G.shape[0]
    if not 1 <= k <= n:
        raise ValueError(f"k={k} eigenpairs of a {n} by {n} matrix: take 1 to {n}.")
    if order not in ORDERS:
        raise ValueError(f"order={order!r} is not one of {ORDERS}.")
    if solver not in SOLVERS:
        raise ValueError(f"solver={solver!r} is not one of {SOLVERS}.")
    if rng is None:
        rng = np.random.default_rng()
    if solver == "auto":
        solver = "dense" if _dense_is_cheaper(G, k) else "block"
    if n <= 3 * _width(k):
        solver = "dense"
    # With eigenvalues of order one, products of blocks neither over- nor underflow.
    magnitude = _magnitude(G)
    G = G.scaled(1.0 / magnitude)
    if solver == "dense":
        pairs = _dense(G, k, order)
    elif solver == "lanczos":
        pairs = _lanczos(G, k, order, tol, rng)
    else:
        pairs = _block(G, k, order, tol, rng, signal_only=signal_only)
    return EigenPairs(
        pairs.values * magnitude,
        _fix_signs(pairs.vectors),
        pairs.residual * magnitude,
        pairs.n_iter,
        solver,
    )


def _width(k: int) -> int:
    """Return the width of a block: products run best at multiples of eight."""
    return -(-(k + OVERSAMPLING) // 8) * 8


def _dense_is_cheaper(G: GramOperator, k: int) -> bool:
    """Compare operation counts; LAPACK's reduction runs far below product speed."""
    n = G.shape[0]
    entries = G.X.nnz if hasattr(G.X, "nnz") else n * G.X.shape[1]
    dense = 2.0 * n * n * G.X.shape[1] + 15.0 * n**3
    matrix_free = 6 * 4.0 * entries * _width(k) + 4e8
    return dense < matrix_free


def _magnitude(G: GramOperator) -> float:
    """Return a power of two near the trace of ``A @ A.T``, a bound on eigenvalues."""
    trace = float(G.factor * G.sqnorms.sum())
    return float(2.0 ** np.round(np.log2(trace))) if trace > 0 else 1.0


def _leading(values: np.ndarray, order: Order) -> np.ndarray:
    """Return the positions of eigenvalues, leading first."""
    return np.argsort(
        -(np.abs(values) if order == "magnitude" else values), kind="stable"
    )


def _fix_signs(vectors: np.ndarray) -> np.ndarray:
    """Make the entry of largest magnitude of each column positive."""
    k = vectors.shape[1]
    # NumPy reduces wide rows much faster than narrow ones: fold 64 rows into one.
    fold = len(vectors) // 64 * 64
    folded = vectors[:fold].reshape(-1, 64 * k) if fold else vectors
    ends = np.vstack(
        [
            folded.max(axis=0).reshape(-1, k),
            folded.min(axis=0).reshape(-1, k),
            vectors[fold:],
        ]
    )
    flip = -ends.min(axis=0) > ends.max(axis=0)
    return np.asarray(vectors * np.where(flip, -1, 1).astype(vectors.dtype))


def _dense(G: GramOperator, k: int, order: Order) -> EigenPairs:
    n = G.shape[0]
    subset = (n - k, n - 1) if order == "algebraic" else None
    values, vectors = eigh(G.toarray(), subset_by_index=subset)
    lead = _leading(values, order)[:k]
    return EigenPairs(values[lead], vectors[:, lead].astype(G.dtype), 0.0, 0, "dense")


def _lanczos(
    G: GramOperator, k: int, order: Order, tol: float, rng: np.random.Generator
) -> EigenPairs:
    n = G.shape[0]
    products = 0

    def apply(v: np.ndarray) -> np.ndarray:
        nonlocal products
        products += 1
        return G @ v

    operator = LinearOperator((n, n), matvec=apply, dtype=G.dtype)
    floor = float(np.finfo(G.dtype).eps)
    start = G.forward(rng.standard_normal((G.X.shape[1], 1)))[:, 0]
    try:
        values, vectors = eigsh(
            operator,
            k,
            which="LA" if order == "algebraic" else "LM",
            v0=start if start.any() else None,
            tol=max(tol * SMALLEST_GAP, floor),
            ncv=min(n, max(2 * k + 1, 20)),
            maxiter=10 * MAX_APPLICATIONS,
        )
    except ArpackNoConvergence as error:
        # What has converged, completed at random and improved by a Ritz step.
        found = np.asarray(error.eigenvectors).reshape(n, -1)
        rest = rng.standard_normal((n, _width(k) - found.shape[1]))
        start_block = np.hstack([found, rest]).astype(G.dtype)
        return _block(G, k, order, tol, rng, start=start_block, max_applications=1)
    vectors = np.ascontiguousarray(vectors)
    lead = _leading(values, order)
    values, vectors = values[lead].astype(np.float64), vectors[:, lead]
    residual = G @ vectors - vectors * values.astype(G.dtype)
    worst = float(np.linalg.norm(residual.astype(np.float64), axis=0).max())
    return EigenPairs(values, vectors, worst, products, "lanczos")


def _block(
    G: GramOperator,
    k: int,
    order: Order,
    tol: float,
    rng: np.random.Generator,
    *,
    start: np.ndarray | None = None,
    max_applications: int | None = None,
    signal_only: bool = False,
) -> EigenPairs:
    """Run the restarted block Krylov method."""
    max_applications = max_applications or MAX_APPLICATIONS
    width = _width(k)
    last = _orthonormal(_start(G, k, order, rng) if start is None else start, rng)
    most = int(np.clip(BASIS_ENTRIES // (G.shape[0] * width), MIN_BLOCKS, MAX_BLOCKS))
    basis = [last]
    rayleigh = np.zeros((0, 0))
    for n_iter in range(1, max_applications + 1):
        rest = G @ last
        column = _project_out(basis, rest)
        rayleigh = _grow(rayleigh, column)
        values, ritz = np.linalg.eigh(rayleigh)
        lead = _leading(values, order)
        values, ritz = values[lead], ritz[:, lead]
        # G @ basis = basis @ rayleigh + rest @ (last rows): what a Ritz pair lacks.
        tail = ritz[-last.shape[1] :, :k]
        lack = np.einsum("ik,ij,jk->k", tail, _small_gram(rest), tail)
        residuals = np.sqrt(np.maximum(lack, 0.0))
        wanted = _certain_signal(values[:k], residuals) if signal_only else k
        residual = float(residuals[:wanted].max())
        goal = _goal(values, wanted, tol, G.dtype)
        if residual <= goal or n_iter == max_applications:
            break
        following = _next_block(basis, rest, _rounding(values, G.dtype))
        if following.shape[1] == 0:  # the basis spans an invariant subspace
            residual = 0.0
            break
        if len(basis) == most:
            basis = [_combine(basis, ritz[:, :width])]
            rayleigh = np.diag(values[:width])
        basis.append(last := following)
    if residual > goal:
        warnings.warn(
            f"The {k} leading eigenpairs did not converge in {n_iter} products: "
            f"residual {residual / abs(values[0]):.1e} of the largest eigenvalue, "
            f"{goal / abs(values[0]):.1e} was asked for. The data may hold fewer than "
            f'{k} clusters; otherwise raise tol or take eigen_solver="lanczos".',
            ConvergenceWarning,
            stacklevel=2,
        )
    return EigenPairs(
        values[:k], _combine(basis, ritz[:, :k]), residual, n_iter, "block"
    )


def _certain_signal(values: np.ndarray, residuals: np.ndarray) -> int:
    """Return how many leading pairs, one at least, may have positive eigenvalues.

    A true eigenvalue lies within a residual of its estimate. What cannot exceed a
    hundred-thousandth of the largest eigenvalue is not signal.
    """
    may_be = (values > 0) | (values + residuals > 1e-5 * values[0])
    return max(1, int(np.flatnonzero(may_be)[-1]) + 1 if may_be.any() else 1)


def _rounding(values: np.ndarray, dtype: np.dtype) -> float:
    """Return the size of rounding errors in a product with G."""
    return 20 * float(np.finfo(dtype).eps * np.abs(values).max())


def _goal(values: np.ndarray, k: int, tol: float, dtype: np.dtype) -> float:
    """Return the residual at which the leading subspace is accurate to tol."""
    size = np.abs(values)
    smallest = SMALLEST_GAP * size[k - 1]
    gap = abs(values[k - 1] - values[k]) if len(values) > k else size[k - 1]
    return float(max(tol * max(gap, smallest), _rounding(values, dtype)))


def _start(
    G: GramOperator, k: int, order: Order, rng: np.random.Generator
) -> np.ndarray:
    """Return a block that leans towards the leading eigenvectors.

    ``A @ W`` for a random W is half a product better than a random block. With many
    more rows than features, a sample of the rows tells a much better W.
    """
    n, p = G.X.shape
    W = rng.standard_normal((p, _width(k))).astype(G.dtype)
    if n >= 2 * SAMPLE * max(p, W.shape[1]):
        sample = np.sort(rng.choice(n, n // SAMPLE, replace=False, shuffle=False))
        part = G.rows(sample)
        with warnings.catch_warnings():  # one digit is enough here
            warnings.simplefilter("ignore", ConvergenceWarning)
            start = _block(
                part, k, order, 0.1, rng, start=part.forward(W), max_applications=3
            )
        W[:, :k] = part.adjoint(start.vectors)
        W[:, k:] *= np.linalg.norm(W[:, k - 1]) / np.sqrt(p)
    return G.forward(W)


def _small_gram(Y: np.ndarray) -> np.ndarray:
    return np.asarray(Y.T @ Y, dtype=np.float64)


def _orthonormal(
    Y: np.ndarray, rng: np.random.Generator | None = None, negligible: float = 0.0
) -> np.ndarray:
    """Orthonormalise the columns through their Gram matrix.

    Columns that are negligible or depend on others are dropped or, given a generator,
    replaced by random ones so that the width is kept.
    """
    tiny = 100 * float(np.finfo(Y.dtype).eps)
    width = Y.shape[1]
    for _ in range(4):
        gram = _small_gram(Y)
        norms = np.sqrt(np.diag(gram))
        live = norms > negligible
        if not live.all():
            Y, gram, norms = Y[:, live], gram[np.ix_(live, live)], norms[live]
        spread = 1.0
        if Y.shape[1]:
            values, vectors = np.linalg.eigh(gram / np.outer(norms, norms))
            keep = values > tiny * values[-1]
            change = vectors[:, keep] / norms[:, None] / np.sqrt(values[keep])
            Y = Y @ change.astype(Y.dtype)
            spread = values[keep][0] / values[-1]
        if rng is not None and Y.shape[1] < width:
            fill = rng.standard_normal((len(Y), width - Y.shape[1])).astype(Y.dtype)
            Y, spread = np.hstack([Y, fill / np.sqrt(len(Y))]), 0.0
        if spread > 1e-3:
            break
        negligible = 0.0  # the columns have unit norm now
    return Y


def _project_out(basis: list[np.ndarray], Y: np.ndarray) -> np.ndarray:
    """Subtract from Y, in place, its part in the basis; return the coefficients."""
    coefficients = [q.T @ Y for q in basis]
    for q, c in zip(basis, coefficients, strict=True):
        Y -= q @ c
    return np.concatenate(coefficients).astype(np.float64)


def _next_block(
    basis: list[np.ndarray], rest: np.ndarray, negligible: float
) -> np.ndarray:
    """Turn what is left of a product into a block orthonormal to the basis."""
    block = _orthonormal(rest, negligible=negligible)
    if block.shape[1]:
        _project_out(basis, block)
        block = _orthonormal(block)
    return block


def _grow(rayleigh: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Append a block column to the symmetric matrix ``basis.T @ G @ basis``."""
    old, new = len(rayleigh), len(column)
    grown = np.empty((new, new))
    grown[:old, :old] = rayleigh
    grown[:, old:] = column
    grown[old:, :] = column.T
    grown[old:, old:] = (column[old:] + column[old:].T) / 2
    return grown


def _combine(basis: list[np.ndarray], coefficients: np.ndarray) -> np.ndarray:
    """Return ``hstack(basis) @ coefficients`` without stacking."""
    coefficients = coefficients.astype(basis[0].dtype)
    out = basis[0] @ coefficients[: basis[0].shape[1]]
    at = basis[0].shape[1]
    for q in basis[1:]:
        out += q @ coefficients[at : at + q.shape[1]]
        at += q.shape[1]
    return out
