"""The leading eigenpairs of a Gram operator."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from ihgmm._arrays import n_entries
from ihgmm._chunks import RowBlocks
from ihgmm._devices import is_device, kind_of, like, namespace
from ihgmm._progress import Say
from ihgmm._threads import own_threads
from ihgmm.blocks import fix_signs, orthonormal
from ihgmm.gram import GramOperator
from ihgmm.krylov import (
    MAX_APPLICATIONS,
    SMALLEST_GAP,
    Basis,
    EigenPairs,
    Order,
    block_krylov,
    block_width,
    leading_order,
)
from ihgmm.starts import first_basis

__all__ = ["ORDERS", "SOLVERS", "EigenPairs", "Order", "Solver", "leading_eigenpairs"]

Solver = Literal["auto", "dense", "lanczos", "block"]
ORDERS: tuple[Order, ...] = ("algebraic", "magnitude")
DENSE_BLOCKS = 2**24
"""Entries up to which data that is not in memory may be read whole."""

DENSE_DEVICE_ROWS = 2_000
"""Rows up to which data on a device may come to the host for the dense solver."""

SOLVERS: tuple[Solver, ...] = ("auto", "dense", "lanczos", "block")


def leading_eigenpairs(
    G: GramOperator,
    k: int,
    *,
    order: Order = "algebraic",
    solver: Solver = "auto",
    tol: float = 1e-6,
    signal_only: bool = False,
    max_products: int | None = None,
    rng: np.random.Generator | None = None,
    say: Say | None = None,
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
        Data on a device takes the block method; ``"dense"`` works on the host and
        serves up to 2,000 rows, ``"lanczos"`` none.
    tol : float
        The eigenvectors are accepted when the angle between the computed and the
        true leading subspace is at most ``tol``, as bounded by residual over
        eigenvalue gap. Gaps under 1% of the k-th eigenvalue count as 1%.
    signal_only : bool
        Do not wait for eigenpairs with negative eigenvalues to converge; the block
        solver then returns them as they are.
    max_products : int, optional
        Cap on the products of the block solver; 100 by default.
    rng : numpy.random.Generator, optional
        Source of the random start.
    say : callable, optional
        Takes a few words on the progress, after each product of the block method.

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
    Householder QR. Where there are more rows than features the start comes from a
    sample of the rows, which saves a product or two.

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
    if n <= 3 * block_width(k):
        solver = "dense"
    if is_device(G.X):
        _check_device_solver(G, solver)
    # With eigenvalues of order one, products of blocks neither over- nor underflow.
    magnitude = _magnitude(G)
    G = G.scaled(1.0 / magnitude)
    with own_threads(G.X):
        if solver == "dense":
            pairs = _dense(G, k, order)
        elif solver == "lanczos":
            pairs = _lanczos(G, k, order, tol, rng)
        else:
            pairs = _block(G, k, order, tol, rng, signal_only, max_products, say)
    return EigenPairs(
        pairs.values * magnitude,
        fix_signs(pairs.vectors),
        pairs.residual * magnitude,
        pairs.n_iter,
        solver,
    )


def _dense_is_cheaper(G: GramOperator, k: int) -> bool:
    """Compare operation counts; LAPACK's reduction runs far below product speed."""
    n = G.shape[0]
    entries = n_entries(G.X)
    elsewhere = isinstance(G.X, RowBlocks) or is_device(G.X)
    if elsewhere and entries > DENSE_BLOCKS:
        return False
    dense = 2.0 * n * n * G.X.shape[1] + 15.0 * n**3
    matrix_free = 6 * 4.0 * entries * block_width(k) + 4e8
    return dense < matrix_free


def _check_device_solver(G: GramOperator, solver: Solver) -> None:
    n = G.shape[0]
    if solver == "lanczos" or (solver == "dense" and n > DENSE_DEVICE_ROWS):
        raise ValueError(
            f"eigen_solver={solver!r} works on the host, and X is a {kind_of(G.X)} of "
            f"{n} rows; take 'block' or 'auto', or give a NumPy copy of X."
        )


def _magnitude(G: GramOperator) -> float:
    """Return a power of two near the trace of ``A @ A.T``, a bound on eigenvalues."""
    trace = G.factor * float(namespace(G.sqnorms).sum(G.sqnorms))
    return float(2.0 ** np.round(np.log2(trace))) if trace > 0 else 1.0


def _dense(G: GramOperator, k: int, order: Order) -> EigenPairs:
    n = G.shape[0]
    subset = (n - k, n - 1) if order == "algebraic" else None
    values, vectors = eigh(G.toarray(), subset_by_index=subset)
    if len(values) < k:  # LAPACK can lose all where a multiple eigenvalue is cut
        values, vectors = eigh(G.toarray())
    lead = leading_order(values, order)[:k]
    return EigenPairs(values[lead], like(vectors[:, lead], G.X), 0.0, 0, "dense")


def _block(
    G: GramOperator,
    k: int,
    order: Order,
    tol: float,
    rng: np.random.Generator,
    signal_only: bool,
    max_products: int | None,
    say: Say | None,
) -> EigenPairs:
    first = first_basis(G, k, order, tol, rng, signal_only)
    if isinstance(first, EigenPairs):
        return first
    return block_krylov(
        first,
        k,
        order,
        tol,
        max_applications=max_products,
        signal_only=signal_only,
        say=say,
    )


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
        rest = rng.standard_normal((n, block_width(k) - found.shape[1]))
        block = orthonormal(np.hstack([found, rest]).astype(G.dtype), rng)
        return block_krylov(Basis(G, block), k, order, tol, max_applications=1)
    vectors = np.ascontiguousarray(vectors)
    lead = leading_order(values, order)
    values, vectors = values[lead].astype(np.float64), vectors[:, lead]
    residual = G @ vectors - vectors * values.astype(G.dtype)
    worst = float(np.linalg.norm(residual.astype(np.float64), axis=0).max())
    return EigenPairs(values, vectors, worst, products, "lanczos")
