"""One engine for eigenpairs: a symmetric operator in a subspace that grows by blocks.

Vectors with an entry for each row are where the data are, directions on the host.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from ihgmm._warnings import warn
from ihgmm.matrix import HOST, Ops, Tall
from ihgmm.policy import Leading, Small, Solving

Order = Literal["algebraic", "magnitude"]
ORDERS: tuple[Order, ...] = ("algebraic", "magnitude")


@dataclass(frozen=True)
class EigenPairs:
    """Leading eigenpairs and how they were reached."""

    values: np.ndarray  # float64, leading first
    vectors: Tall  # orthonormal, in columns, the entry of largest magnitude positive
    n_iter: int = 0  # products with a block; 0 where the matrix was solved itself


def leading_pairs(
    matrix: np.ndarray, count: int, order: Order = "algebraic"
) -> tuple[np.ndarray, np.ndarray]:
    """Return some eigenpairs of a symmetric matrix, leading first."""
    n = len(matrix)
    if n == 1:  # for which old versions of SciPy fail
        return matrix[0].copy(), np.ones_like(matrix)
    if order == "algebraic" and Solving.SOME * count < n:
        # Where a multiple eigenvalue is cut, LAPACK can fail, or lose all.
        with suppress(LinAlgError):
            values, vectors = eigh(matrix, subset_by_index=(n - count, n - 1))
            if len(values) == count:
                return values[::-1], vectors[:, ::-1]
    values, vectors = eigh(matrix, driver="evd", check_finite=False)
    lead = np.argsort(-np.abs(values) if order == "magnitude" else -values)[:count]
    return values[lead], vectors[:, lead]


def block_width(count: int) -> int:
    """Return the width of a block for so many eigenvectors: a multiple of eight."""
    # Five columns more than wanted make the last of them converge.
    return -(-(count + 5) // 8) * 8


def block_krylov(
    apply: Callable[[Tall], Tall],
    block: Tall,
    k: int,
    *,
    extra: int = 0,
    order: Order = "algebraic",
    tol: float = 1e-6,
    max_products: int = Solving.MOST_PRODUCTS,
    dtype: Any = np.float64,
    quiet: bool = False,
    ops: Ops = HOST,
) -> EigenPairs:
    """Run a restarted block Krylov method from a block of orthonormal columns.

    Pairs are accepted when the angle between the computed and the true leading subspace
    is at most ``tol``, as bounded by residual over gap. Of ``extra`` pairs beyond the k
    those without weight are not waited for. After ``max_products`` products, of
    ``dtype``, it gives up, with a warning unless ``quiet``.
    """
    n, width = block.shape
    # Too few blocks, and restarts undo what they bring; too many, and small problems
    # cost more than the products. Wide blocks are two, or to solve them would.
    most = int(np.clip(Solving.BASIS_ENTRIES // (n * width), *Solving.BLOCKS))
    most = max(2, min(most, Solving.BASIS // width))
    blocks, rayleigh = [block], np.zeros((0, 0))
    for n_iter in range(1, max_products + 1):
        rest, column = _project_out(ops, blocks, apply(blocks[-1]))
        rest = ops.persist(rest)
        old, own = column[: len(rayleigh)], column[len(rayleigh) :]
        rayleigh = np.block([[rayleigh, old], [old.T, (own + own.T) / 2]])
        values, ritz = leading_pairs(rayleigh, len(rayleigh), order)
        count = min(k + extra, len(values))
        # The operator maps a Ritz vector into the basis, and into the rest by as much
        # as the vector lies in the last block.
        gram, last = ops.tall_dot(rest, rest), ritz[-blocks[-1].shape[1] :, :count]
        squares = np.einsum("ik,ik->k", last, gram @ last)
        residual, goal = _progress(values, np.sqrt(np.maximum(squares, 0)), k, tol)
        noise = Solving.ROUNDING * float(np.finfo(dtype).eps * np.abs(values).max())
        goal = max(goal, noise)
        # One step of subspace iteration, which needs no product any more, shrinks what
        # is wrong by the ratio of eigenvalues.
        largest = max(abs(values[k - 1]), Small.TINY)
        ratio = abs(values[min(count, len(values) - 1)]) / largest
        # Where those that are known have no weight, those that follow have none.
        there = count >= min(k + 1, k + extra)
        there &= count == k + extra or not signal_weights(values[:count], k)[k:].any()
        near = goal < residual <= Solving.NEAR * largest
        step = there and near and Solving.STEP * ratio * residual <= goal
        if step or (there and residual <= goal) or n_iter == max_products:
            break
        following = orthonormal(ops, rest, negligible=noise, gram=gram)
        if following.shape[1]:
            following, _ = _project_out(ops, blocks, following)
            following = orthonormal(ops, following)
        if not following.shape[1]:  # the basis spans an invariant subspace
            residual = 0.0
            break
        if len(blocks) >= most:
            keep = ritz[:, : max(width, count)]
            blocks, rayleigh = [_combine(ops, blocks, keep)], keep.T @ rayleigh @ keep
        blocks.append(following)
    vectors = _combine(ops, blocks, ritz[:, :count])
    if step:
        vectors += rest @ ops.cast_like(last / values[:count], rest)
        turn = np.linalg.inv(np.linalg.cholesky(ops.tall_dot(vectors, vectors))).T
        return EigenPairs(values[:count], vectors @ ops.cast_like(turn, rest), n_iter)
    if residual > goal and not quiet:
        shares = f"{residual / abs(values[0]):.1e}", f"{goal / abs(values[0]):.1e}"
        warn(
            f"The {k} leading eigenpairs did not converge in {n_iter} products: "
            f"residual {shares[0]} of the largest eigenvalue, {shares[1]} was asked "
            f"for. The data may hold fewer than {k} clusters; otherwise raise tol.",
            ConvergenceWarning,
        )
    return EigenPairs(values[:count], vectors, n_iter)


def _progress(
    values: np.ndarray, residuals: np.ndarray, k: int, tol: float
) -> tuple[float, float]:
    """Return the largest residual that matters and the one to reach.

    A residual turns eigenvectors by its share of the gap. With more than k, a turn
    between two of them matters as much as their weights differ, which fall from the
    k-th eigenvalue to the last. Residuals of those beyond are weighted, to one digit.
    """
    count, k = len(residuals), min(k, len(residuals))
    weights = signal_weights(values[:count], k)[k:]
    beyond = float(np.max(weights * residuals[k:], initial=0.0))
    rough = Solving.DIGIT * (values[k - 1] - values[count - 1])
    last = abs(values[k - 1])
    gap = abs(values[k - 1] - values[max(k, count - 1)]) if len(values) > k else last
    # Noise in the data turns eigenvectors across smaller gaps anyway.
    goal = float(tol * max(gap, Leading.SMALLEST_GAP * last))
    residual = float(residuals[:k].max())
    return max(residual, beyond * goal / rough if rough > 0 else 0.0), goal


def signal_weights(
    values: np.ndarray, k: int, noise: float | None = None
) -> np.ndarray:
    """Return weights of directions: 1 for the k leading ones, less for those beyond.

    What counts is how far an eigenvalue stands above that of ``noise``, by default the
    last, as a share of how far the k-th does. Under the model those beyond are noise,
    with shares of a hundredth or less: a small share has no weight. Where clusters have
    a shape, shares of a half and more are common.
    """
    weights = np.ones(len(values))
    if len(values) > k:
        above = values[k - 1 :] - (values[-1] if noise is None else noise)
        share = above[1:] / above[0] if above[0] > 0 else np.zeros(len(values) - k)
        share = (share - Leading.CUT) / (1 - Leading.CUT)
        weights[k:] = np.sqrt(np.clip(share, 0.0, 1.0))
    return weights


def orthonormal(
    ops: Ops,
    Y: Tall,
    rng: np.random.Generator | None = None,
    negligible: float = 0.0,
    gram: np.ndarray | None = None,
) -> Tall:
    """Orthonormalise columns; drop dependent ones, or with a generator replace them."""
    tiny = Solving.DEPENDENT * float(np.finfo(ops.host_dtype(Y)).eps)
    n, width = Y.shape
    for _ in range(4):
        gram = ops.tall_dot(Y, Y) if gram is None else gram
        live = np.sqrt(np.diag(gram)) > negligible
        if not live.all():
            Y = Y @ ops.cast_like(np.eye(len(live))[:, live], Y)
            gram = gram[np.ix_(live, live)]
        condition = 1.0
        if Y.shape[1]:
            norms = np.sqrt(np.diag(gram))
            values, vectors = np.linalg.eigh(gram / np.outer(norms, norms))
            keep = values > tiny * values[-1]
            change = vectors[:, keep] / norms[:, None] / np.sqrt(values[keep])
            condition = float(values[keep][0] / values[-1])
            Y = ops.persist(Y @ ops.cast_like(change, Y))
        if rng is not None and Y.shape[1] < width:
            fill = rng.standard_normal((n, width - Y.shape[1])) / np.sqrt(n)
            Y, condition = ops.beside(Y, ops.cast_like(fill, Y)), 0.0
        if condition > Solving.CONDITION:
            break
        negligible, gram = 0.0, None  # the columns have unit norm now
    return Y


def _project_out(ops: Ops, basis: list[Tall], Y: Tall) -> tuple[Tall, np.ndarray]:
    """Return Y, overwritten if it can be, less its part in the basis; coefficients."""
    coefficients = ops.basis_dot(Y, *basis)
    at = 0
    for q in basis:
        Y -= q @ ops.cast_like(coefficients[at : at + q.shape[1]], q)
        at += q.shape[1]
    return Y, coefficients


def _combine(ops: Ops, basis: list[Tall], coefficients: np.ndarray) -> Tall:
    """Return ``hstack(basis) @ coefficients`` without stacking."""
    coefficients, at = ops.cast_like(coefficients, basis[0]), basis[0].shape[1]
    out = basis[0] @ coefficients[:at, :]
    for q in basis[1:]:
        out += q @ coefficients[at : at + q.shape[1], :]
        at += q.shape[1]
    return ops.persist(out)
