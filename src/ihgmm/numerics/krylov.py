"""One engine for eigenpairs: a symmetric operator in a subspace that grows by blocks.

Vectors with an entry for each row are where the data are, directions on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import DTypeLike
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
    """Return some eigenvalues and eigenvectors of a symmetric matrix, leading first."""
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
    sizes = np.abs(values) if order == "magnitude" else values
    leading = np.argsort(-sizes)[:count]
    return values[leading], vectors[:, leading]


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
    dtype: DTypeLike = np.float64,
    quiet: bool = False,
    ops: Ops = HOST,
) -> EigenPairs:
    """Run a restarted block Krylov method from a block of orthonormal columns.

    Parameters
    ----------
    apply : callable
        The symmetric operator, which takes a block of columns and returns another.
    block : array of shape (n, width)
        Orthonormal columns to start from.
    k : int
        How many eigenpairs lead.
    extra : int
        How many pairs beyond these may matter; those without weight are not waited for.
    order : {"algebraic", "magnitude"}
        Which eigenvalues lead.
    tol : float
        Pairs are accepted when the angle between the computed and the true leading
        subspace is at most this, as bounded by residual over gap.
    max_products : int
        After so many products it gives up, with a warning unless ``quiet``.
    dtype : dtype
        Type of the products, which tells how large rounding is.
    quiet : bool
        Whether to give up without a warning.
    ops : Ops
        What serves the columns.

    Notes
    -----
    Q are the columns of the basis, and ``R = Q.T @ apply(Q)`` is the operator as it is
    seen there. ``R y = θ y`` gives the Ritz pairs ``(θ, Q y)``. F, the remainder, is
    the part of ``apply(last block)`` outside of the basis; the residual of a Ritz pair
    is ``apply(Q y) - θ Q y = F y_last``, where y_last are the entries of y in that
    block.
    """
    basis = KrylovBasis(ops, block)
    most_blocks = _most_blocks(*block.shape)
    is_polished = False

    for n_iter in range(1, max_products + 1):
        remainder = basis.take_in(apply(basis.blocks[-1]))
        values, ritz = leading_pairs(basis.rayleigh, len(basis.rayleigh), order)
        n_pairs = min(k + extra, len(values))

        gram = ops.tall_dot(remainder, remainder)
        ritz_last = ritz[-basis.blocks[-1].shape[1] :, :n_pairs]  # y_last, in columns
        residuals = _ritz_residuals(gram, ritz_last)
        residual, goal = _residual_and_goal(values, residuals, k, tol)
        rounding = Solving.ROUNDING * float(np.finfo(dtype).eps * np.abs(values).max())
        goal = max(goal, rounding)

        if _has_all_pairs(values, n_pairs, k, extra):
            is_polished = _is_one_step_away(values, n_pairs, k, residual, goal)
            if is_polished or residual <= goal:
                break
        if n_iter == max_products:
            break

        next_block = basis.next_block(remainder, gram, negligible=rounding)
        if not next_block.shape[1]:  # the basis spans an invariant subspace
            residual = 0.0
            break
        if len(basis.blocks) >= most_blocks:
            basis.restart(ritz[:, : max(block.shape[1], n_pairs)])
        basis.blocks.append(next_block)

    values = values[:n_pairs]
    vectors = basis.combine(ritz[:, :n_pairs])
    if is_polished:
        vectors = _polished(ops, vectors, remainder, ritz_last / values)
    elif residual > goal and not quiet:
        _warn_not_converged(k, n_iter, residual / values[0], goal / values[0])
    return EigenPairs(values=values, vectors=vectors, n_iter=n_iter)


def _polished(
    ops: Ops, vectors: Tall, remainder: Tall, coefficients: np.ndarray
) -> Tall:
    """Take one step of subspace iteration: ``apply(Q y) / θ = Q y + F y_last / θ``.

    ``vectors`` are Q y, and are overwritten; ``remainder`` is F, and coefficients are
    ``y_last / θ``.
    """
    vectors += remainder @ ops.cast_like(coefficients, remainder)

    # Orthonormal again: with G = L L.T, columns times L^-T.
    gram = ops.tall_dot(vectors, vectors)
    inverse = np.linalg.inv(np.linalg.cholesky(gram)).T
    return vectors @ ops.cast_like(inverse, remainder)


def _warn_not_converged(k: int, n_iter: int, residual: float, goal: float) -> None:
    """Warn of eigenpairs; residual and goal are shares of the largest eigenvalue."""
    warn(
        f"The {k} leading eigenpairs did not converge in {n_iter} products: residual "
        f"{abs(residual):.1e} of the largest eigenvalue, {abs(goal):.1e} was asked "
        f"for. The data may hold fewer than {k} clusters; otherwise raise tol.",
        ConvergenceWarning,
    )


class KrylovBasis:
    """Orthonormal columns in blocks, and the operator as it is seen there."""

    def __init__(self, ops: Ops, block: Tall) -> None:
        self.ops = ops
        self.blocks: list[Tall] = [block]  # (n, width) each
        self.rayleigh = np.zeros((0, 0))  # of all blocks but one that was just added

    def take_in(self, product: Tall) -> Tall:
        """Take in the operator's product with the last block, which may be overwritten.

        Returned is its part outside of the basis, (n, width).
        """
        remainder, coefficients = _project_out(self.ops, self.blocks, product)

        n_columns = len(self.rayleigh)  # of the blocks before
        cross = coefficients[:n_columns]
        corner = coefficients[n_columns:]
        corner = (corner + corner.T) / 2  # but for rounding it is symmetric
        self.rayleigh = np.block([[self.rayleigh, cross], [cross.T, corner]])
        return self.ops.persist(remainder)

    def next_block(self, remainder: Tall, gram: np.ndarray, negligible: float) -> Tall:
        """Return orthonormal columns, outside of the basis, that span the remainder.

        ``gram`` is ``remainder.T @ remainder``; columns of negligible length are left
        out.
        """
        block = orthonormal(self.ops, remainder, negligible=negligible, gram=gram)
        if block.shape[1]:
            block, _ = _project_out(self.ops, self.blocks, block)
            block = orthonormal(self.ops, block)
        return block

    def restart(self, ritz: np.ndarray) -> None:
        """Keep some Ritz vectors alone, of which the coefficients are given."""
        self.blocks = [self.combine(ritz)]
        self.rayleigh = ritz.T @ self.rayleigh @ ritz

    def combine(self, coefficients: np.ndarray) -> Tall:
        """Return ``hstack(blocks) @ coefficients`` without stacking."""
        first, *others = self.blocks
        coefficients = self.ops.cast_like(coefficients, first)

        start = first.shape[1]
        combined = first @ coefficients[:start, :]
        for block in others:
            stop = start + block.shape[1]
            combined += block @ coefficients[start:stop, :]
            start = stop
        return self.ops.persist(combined)


def _most_blocks(n: int, width: int) -> int:
    """Return how many blocks a basis has at most, before it starts again.

    With too few, restarts undo what blocks bring; with too many, small problems cost
    more than the products. Wide blocks are two, or to solve them would.
    """
    affordable = int(np.clip(Solving.BASIS_ENTRIES // (n * width), *Solving.BLOCKS))
    return max(2, min(affordable, Solving.BASIS // width))


def _has_all_pairs(values: np.ndarray, n_pairs: int, k: int, extra: int) -> bool:
    """Tell whether all pairs are there that count.

    Where those beyond the leading ones have no weight, those that follow have none.
    """
    if n_pairs == k + extra:
        return True
    if n_pairs < min(k + 1, k + extra):
        return False
    return not signal_weights(values[:n_pairs], k)[k:].any()


def _is_one_step_away(
    values: np.ndarray, n_pairs: int, k: int, residual: float, goal: float
) -> bool:
    """Tell whether one step of subspace iteration, without a product, is enough.

    It shrinks what is wrong by the ratio of eigenvalues.
    """
    kth = max(abs(values[k - 1]), Small.TINY)
    if not goal < residual <= Solving.NEAR * kth:
        return False
    ratio = abs(values[min(n_pairs, len(values) - 1)]) / kth
    return bool(Solving.STEP * ratio * residual <= goal)


def _ritz_residuals(gram: np.ndarray, ritz_last: np.ndarray) -> np.ndarray:
    """Return the length of ``F y_last`` of each Ritz pair, given ``F.T @ F``."""
    squares = np.einsum("ik,ik->k", ritz_last, gram @ ritz_last)
    return np.sqrt(np.maximum(squares, 0))


def _residual_and_goal(
    values: np.ndarray, residuals: np.ndarray, k: int, tol: float
) -> tuple[float, float]:
    """Return the largest residual that matters and the one to reach.

    A residual turns eigenvectors by its share of the gap. With more than k, a turn
    between two of them matters as much as their weights differ, which fall from the
    k-th eigenvalue to the last. Residuals of those beyond are weighted, to one digit.
    """
    n_pairs = len(residuals)
    k = min(k, n_pairs)
    kth = abs(values[k - 1])
    gap = kth
    if len(values) > k:
        gap = abs(values[k - 1] - values[max(k, n_pairs - 1)])
    # Noise in the data turns eigenvectors across smaller gaps anyway.
    goal = float(tol * max(gap, Leading.SMALLEST_GAP * kth))

    weights_beyond = signal_weights(values[:n_pairs], k)[k:]
    residual_beyond = float(np.max(weights_beyond * residuals[k:], initial=0.0))
    goal_beyond = Solving.DIGIT * (values[k - 1] - values[n_pairs - 1])
    residual = float(residuals[:k].max())
    if goal_beyond > 0:
        residual = max(residual, residual_beyond * goal / goal_beyond)
    return residual, goal


def signal_weights(
    values: np.ndarray, k: int, noise: float | None = None
) -> np.ndarray:
    """Return weights of directions: 1 for the k leading ones, less for those beyond.

    What counts is how far an eigenvalue stands above that of ``noise``, by default the
    last, as a share of how far the k-th does. Under the model those beyond are noise,
    with shares of a hundredth or less: a small share has no weight. Where clusters have
    a shape, shares of a half and more are common.

    Notes
    -----
    With ``share = (value - noise) / (value_k - noise)``, a weight is the root of
    ``(share - CUT) / (1 - CUT)``, between 0 and 1.
    """
    weights = np.ones(len(values))
    if len(values) <= k:
        return weights

    floor = values[-1] if noise is None else noise
    heights = values[k - 1 :] - floor
    shares = np.zeros(len(values) - k)
    if heights[0] > 0:
        shares = heights[1:] / heights[0]

    shares_above_cut = (shares - Leading.CUT) / (1 - Leading.CUT)
    weights[k:] = np.sqrt(np.clip(shares_above_cut, 0.0, 1.0))
    return weights


def orthonormal(
    ops: Ops,
    Y: Tall,
    rng: np.random.Generator | None = None,
    negligible: float = 0.0,
    gram: np.ndarray | None = None,
) -> Tall:
    """Orthonormalise columns; drop dependent ones, or with a generator replace them.

    Columns that are no longer than ``negligible`` are dropped. ``gram`` is ``Y.T @ Y``,
    if it is known already.

    Notes
    -----
    Of columns scaled to unit norm, the Gram matrix has ``C = V diag(s) V.T``; columns
    times ``V diag(s)^-1/2`` are orthonormal up to rounding, which the condition of C
    magnifies. So columns that depended on each other go through it again.
    """
    n, width = Y.shape
    rounding = Solving.DEPENDENT * float(np.finfo(ops.host_dtype(Y)).eps)
    for _ in range(4):
        if gram is None:
            gram = ops.tall_dot(Y, Y)
        is_nonzero = np.sqrt(np.diag(gram)) > negligible
        if not is_nonzero.all():
            Y = Y @ ops.cast_like(np.eye(len(is_nonzero))[:, is_nonzero], Y)
            gram = gram[np.ix_(is_nonzero, is_nonzero)]

        condition = 1.0
        if Y.shape[1]:
            change, condition = _orthonormalising_change(gram, rounding)
            Y = ops.persist(Y @ ops.cast_like(change, Y))

        n_missing = width - Y.shape[1]
        if rng is not None and n_missing > 0:
            random_columns = rng.standard_normal((n, n_missing)) / np.sqrt(n)
            Y = ops.beside(Y, ops.cast_like(random_columns, Y))
            condition = 0.0
        if condition > Solving.CONDITION:
            break
        negligible = 0.0  # the columns have unit norm now
        gram = None
    return Y


def _orthonormalising_change(
    gram: np.ndarray, rounding: float
) -> tuple[np.ndarray, float]:
    """Return what makes columns of a Gram matrix orthonormal, and the condition of it.

    Directions with no more than a share of rounding in the largest are dropped.
    """
    norms = np.sqrt(np.diag(gram))
    values, vectors = np.linalg.eigh(gram / np.outer(norms, norms))
    is_independent = values > rounding * values[-1]
    values = values[is_independent]
    change = vectors[:, is_independent] / norms[:, None] / np.sqrt(values)
    return change, float(values[0] / values[-1])


def _project_out(ops: Ops, blocks: list[Tall], Y: Tall) -> tuple[Tall, np.ndarray]:
    """Return Y, overwritten if it can be, less its part in the basis; coefficients."""
    coefficients = ops.basis_dot(Y, *blocks)

    start = 0
    for block in blocks:
        stop = start + block.shape[1]
        Y -= block @ ops.cast_like(coefficients[start:stop], block)
        start = stop
    return Y, coefficients
