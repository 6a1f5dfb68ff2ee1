"""A restarted block Krylov method for the leading eigenpairs of a Gram operator."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._chunks import RowBlocks
from ihgmm._progress import Say
from ihgmm._tall import Tall
from ihgmm.blocks import (
    column_norms,
    combine,
    grow_rayleigh,
    less,
    next_block,
    next_pair,
    project_out,
    small_gram,
)
from ihgmm.gram import GramOperator

__all__ = [
    "Basis",
    "EigenPairs",
    "Order",
    "block_krylov",
    "block_width",
    "leading_order",
    "most_blocks",
    "progress",
    "ritz_pairs",
    "rounding_error",
]

Order = Literal["algebraic", "magnitude"]

OVERSAMPLING = 5
"""Columns of a block beyond the eigenvectors wanted, at least."""

MIN_BLOCKS, MAX_BLOCKS, BASIS_ENTRIES = 4, 16, 2**23
"""Blocks the basis may hold before it is condensed: few where rows are many."""

MAX_APPLICATIONS = 100
"""Products with G after which the block solver gives up and warns."""

SMALLEST_GAP = 1e-2
"""Gaps below this share of the K-th eigenvalue are not resolved any further."""


@dataclass(frozen=True)
class EigenPairs:
    """Leading eigenpairs and how they were reached.

    Attributes
    ----------
    values : ndarray of shape (k,), float64
        Eigenvalues, leading first.
    vectors : array of shape (n, k)
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
    vectors: Tall
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


def most_blocks(n_rows: int, width: int) -> int:
    """Return how many blocks a basis may hold before it is condensed."""
    return int(np.clip(BASIS_ENTRIES // (n_rows * width), MIN_BLOCKS, MAX_BLOCKS))


def rounding_error(values: np.ndarray, dtype: np.dtype) -> float:
    """Return the size of rounding errors in a product with G."""
    return 20 * float(np.finfo(dtype).eps * np.abs(values).max())


@dataclass(frozen=True, eq=False)
class Product:
    """A product of G with the last block of a basis.

    Attributes
    ----------
    rest : array of shape (n_samples, width)
        What of it lies outside the basis.
    column : ndarray
        The coefficients of what lies in the basis.
    back : array of shape (n_features, width) or None
        The adjoint of the whole, where it is taken along.
    """

    rest: Tall
    column: np.ndarray
    back: Any


class Basis:
    """An orthonormal basis of a Krylov space of G, which grows block by block.

    Parameters
    ----------
    G : GramOperator
        The matrix.
    block : array of shape (n_samples, width)
        The first block, orthonormal.
    adjoint : array of shape (n_features, width), optional
        ``A.T @ block``, if known already.

    Attributes
    ----------
    blocks : list of array
        The blocks, orthonormal to each other.
    rayleigh : ndarray
        G in this basis, as far as products have been taken.
    along : bool
        Whether adjoints of products are taken along. Data that is not in memory is
        then read once for both; in memory that would be in vain after the last one.
    """

    def __init__(self, G: GramOperator, block: Tall, adjoint: Any = None) -> None:
        if adjoint is None:
            adjoint = G.adjoint(block)
        self.G = G
        self.blocks = [block]
        self.rayleigh = np.zeros((0, 0))
        self.along = isinstance(G.X, RowBlocks)
        self._adjoint = adjoint
        self._adjoints = [adjoint] if self.along else []
        self._drift = 0.0

    def multiply(self) -> Product:
        """Multiply the last block by G, and take the product up in ``rayleigh``."""
        last, back = self.blocks[-1], None
        if self.along:
            rest, back = self.G.with_adjoint(self._adjoint, last)
        else:
            rest = self.G.from_adjoint(self._adjoint, last)
        rest, column = project_out(self.blocks, rest)
        self.rayleigh = grow_rayleigh(self.rayleigh, column)
        return Product(rest, column, back)

    def following(
        self, product: Product, values: np.ndarray, tol: float
    ) -> tuple[Tall, Any] | None:
        """Return the block after the last, orthonormal to all, and its adjoint.

        None where a product has brought nothing new. ``values`` are those of Ritz.
        """
        noise = rounding_error(values, self.G.dtype)
        if self.along:
            # Errors of an adjoint grow as a product shrinks to what is new in it.
            new = float(np.sqrt(np.diag(small_gram(product.rest)).min()))
            self._drift = (self._drift * abs(values[0]) + noise) / max(new, noise)
            if self._drift < 0.1 * tol:
                back = less(product.back, self._adjoints, product.column)
                pair = next_pair(self.blocks, self._adjoints, product.rest, back)
                if pair is not None:
                    return pair
        self._drift = 0.0
        block = next_block(self.blocks, product.rest, noise)
        return (block, self.G.adjoint(block)) if block.shape[1] else None

    def append(self, block: Tall, adjoint: Any) -> None:
        """Take up another block, orthonormal to all."""
        self.blocks.append(block)
        self._adjoint = adjoint
        if self.along:
            self._adjoints.append(adjoint)

    def condense(self, values: np.ndarray, ritz: np.ndarray) -> None:
        """Keep only some Ritz vectors, as one block."""
        self.blocks = [combine(self.blocks, ritz)]
        if self.along:
            self._adjoints = [combine(self._adjoints, ritz)]
        self.rayleigh = np.diag(values)


def block_krylov(
    basis: Basis,
    k: int,
    order: Order,
    tol: float,
    *,
    max_applications: int | None = None,
    signal_only: bool = False,
    say: Say | None = None,
) -> EigenPairs:
    """Run the restarted block Krylov method from the first block of a basis."""
    G = basis.G
    max_applications = max_applications or MAX_APPLICATIONS
    width = block_width(k)
    most = most_blocks(max(G.X.shape) if basis.along else G.shape[0], width)
    for n_iter in range(1, max_applications + 1):
        product = basis.multiply()
        values, ritz = ritz_pairs(basis.rayleigh, order)
        # G @ basis = basis @ rayleigh + rest @ (last rows): what a Ritz pair lacks.
        last_rows = ritz[-basis.blocks[-1].shape[1] :, :k]
        residuals = column_norms(last_rows, small_gram(product.rest))
        residual, goal = progress(values, residuals, tol, G.dtype, signal_only)
        if say is not None:
            say(_words(n_iter, residual, goal))
        if residual <= goal or n_iter == max_applications:
            break
        following = basis.following(product, values, tol)
        if following is None:  # the basis spans an invariant subspace
            residual = 0.0
            break
        if len(basis.blocks) == most:
            basis.condense(values[:width], ritz[:, :width])
        basis.append(*following)
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
        values[:k], combine(basis.blocks, ritz[:, :k]), residual, n_iter, "block"
    )


def _words(n_iter: int, residual: float, goal: float) -> str:
    """Say how far the eigenvectors are from what was asked for, in units of that."""
    far = residual / goal if goal > 0 else 0.0
    return f"{n_iter} product{'s' * (n_iter != 1)}, residual {far:.2g} of the goal"


def ritz_pairs(rayleigh: np.ndarray, order: Order) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenpairs of a small symmetric matrix, leading first."""
    values, vectors = np.linalg.eigh(rayleigh)
    lead = leading_order(values, order)
    return values[lead], vectors[:, lead]


def progress(
    values: np.ndarray,
    residuals: np.ndarray,
    tol: float,
    dtype: np.dtype,
    signal_only: bool,
) -> tuple[float, float]:
    """Return the largest residual that matters and the one to reach."""
    k = len(residuals)
    wanted = _certain_signal(values[:k], residuals) if signal_only else k
    return float(residuals[:wanted].max()), _goal(values, wanted, tol, dtype)


def _certain_signal(values: np.ndarray, residuals: np.ndarray) -> int:
    """Return how many leading pairs, one at least, may have positive eigenvalues.

    A true eigenvalue lies within a residual of its estimate. What cannot exceed a
    hundred-thousandth of the largest eigenvalue is not signal.
    """
    may_be = (values > 0) | (values + residuals > 1e-5 * values[0])
    return max(1, int(np.flatnonzero(may_be)[-1]) + 1 if may_be.any() else 1)


def _goal(values: np.ndarray, k: int, tol: float, dtype: np.dtype) -> float:
    """Return the residual at which the leading subspace is accurate to tol."""
    size = np.abs(values)
    smallest = SMALLEST_GAP * size[k - 1]
    gap = abs(values[k - 1] - values[k]) if len(values) > k else size[k - 1]
    return float(max(tol * max(gap, smallest), rounding_error(values, dtype)))
