"""A restarted block Krylov method for the leading eigenpairs of a Gram operator."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm.gram import GramOperator

__all__ = ["EigenPairs", "Order", "block_krylov", "block_width", "leading_order"]

Order = Literal["algebraic", "magnitude"]

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

LARGE = 10**7
"""Entries of X from which a product is dear enough to sample twice as many rows."""


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


def leading_order(values: np.ndarray, order: Order) -> np.ndarray:
    """Return the positions of eigenvalues, leading first."""
    return np.argsort(
        -(np.abs(values) if order == "magnitude" else values), kind="stable"
    )


def block_width(k: int) -> int:
    """Return the width of a block: products run best at multiples of eight."""
    return -(-(k + OVERSAMPLING) // 8) * 8


def block_krylov(
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
    width = block_width(k)
    last = _orthonormal(_start(G, k, order, rng) if start is None else start, rng)
    most = int(np.clip(BASIS_ENTRIES // (G.shape[0] * width), MIN_BLOCKS, MAX_BLOCKS))
    basis = [last]
    rayleigh = np.zeros((0, 0))
    for n_iter in range(1, max_applications + 1):
        rest = G @ last
        column = _project_out(basis, rest)
        rayleigh = _grow(rayleigh, column)
        values, ritz = np.linalg.eigh(rayleigh)
        lead = leading_order(values, order)
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

    ``A @ W`` for a random W is half a product better than a random block. With more
    rows than features, a sample of the rows tells a much better W.
    """
    n, p = G.X.shape
    W = rng.standard_normal((p, block_width(k))).astype(G.dtype)
    size = _sample_size(G, W.shape[1])
    if size:
        sample = np.sort(rng.choice(n, size, replace=False, shuffle=False))
        part = G.rows(sample)
        with warnings.catch_warnings():  # one digit is enough here
            warnings.simplefilter("ignore", ConvergenceWarning)
            start = block_krylov(
                part, k, order, 0.1, rng, start=part.forward(W), max_applications=3
            )
        W[:, :k] = part.adjoint(start.vectors)
        W[:, k:] *= np.linalg.norm(W[:, k - 1]) / np.sqrt(p)
    return G.forward(W)


def _sample_size(G: GramOperator, width: int) -> int:
    """Return how many rows to start from; 0 where that would not pay."""
    n, p = G.X.shape
    if n >= 2 * SAMPLE * max(p, width):
        return n // SAMPLE
    entries = G.X.nnz if hasattr(G.X, "nnz") else n * p
    if n >= 2 * max(p, width) and entries >= LARGE:
        return 2 * n // SAMPLE
    return 0


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
