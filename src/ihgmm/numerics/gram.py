"""The Gram matrices of the method, as operators that are never formed.

Every Gram matrix of the package is ``G = A @ A.T - diag(removed)``, A being the data or
the data with scaled rows. It is applied to a block of vectors by two products with the
data, at a cost linear in its size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ihgmm.matrix import Matrix, Ops, Scaled, Tall, as_matrix, drawn

GramKind = Literal["hollow", "full", "cosine", "hetero"]
GRAMS: tuple[GramKind, ...] = ("hollow", "full", "cosine", "hetero")


@dataclass(frozen=True, eq=False)
class GramOperator:
    """The symmetric n by n matrix ``factor * (A @ A.T - diag(removed))``, matrix-free.

    Build one with :meth:`of`. The operator is immutable and holds a reference to the
    data, never a copy. What it holds for each row is where the data are.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.numerics.gram import GramOperator
    >>> G = GramOperator.of(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]), "hollow")
    >>> G.toarray()
    array([[0., 1., 0.],
           [1., 0., 2.],
           [0., 2., 0.]])
    >>> G @ np.ones(3)
    array([1., 3., 2.])
    """

    A: Matrix  # the rows whose inner products are taken
    removed: Tall | None = None  # for each row, what is taken off the diagonal
    factor: float = 1.0  # a positive number that multiplies the whole matrix
    longest: float = (
        np.inf
    )  # rows of X beyond were shortened to it; 0: all have unit norm

    @classmethod
    def of(
        cls, X: Any, gram: GramKind = "hollow", *, clip: float | None = None
    ) -> GramOperator:
        """Build the Gram operator of the rows of ``X``.

        Parameters
        ----------
        X : Matrix, array or sparse matrix of shape (n_samples, n_features)
            The data, float32 or float64. Rows that have weights count as rows times
            the root of their weight: a product of two rows as often as the product of
            both weights says, and a row with itself not at all.
        gram : {"hollow", "full", "cosine", "hetero"}
            ``"hollow"``: inner products of different rows, zero on the diagonal
            (the matrix G of the paper's Algorithm 1). ``"full"``: all inner
            products. ``"cosine"``: cosines of different rows, zero on the diagonal
            (with a constant diagonal the eigenvectors are the same); rows that are
            zero stay zero. ``"hetero"``: as ``"hollow"``, for
            :func:`~ihgmm.numerics.hetero.impute_diagonal` to fill in the diagonal.
        clip : float, optional
            Rows longer than so many times the median row are shortened to that length,
            so that no few rows rule the matrix.

        Examples
        --------
        >>> import numpy as np
        >>> G = GramOperator.of(np.array([[3.0, 0.0], [1.0, 1.0], [0.0, 2.0]]))
        >>> G @ np.eye(3)
        array([[0., 3., 0.],
               [3., 0., 2.],
               [0., 2., 0.]])
        """
        if gram not in GRAMS:
            raise ValueError(f"gram={gram!r} is not one of {GRAMS}.")
        A, longest = as_matrix(X), np.inf
        ops = A.ops
        sqnorms, weights = A.sqnorms, A.weights
        if gram == "cosine":
            longest = 0.0
        elif clip is not None:
            longest = clip * float(np.sqrt(ops.median(sqnorms, weights, sqnorms > 0)))
        long = longest**2 < ops.number(ops.xp.max(sqnorms))
        if long or weights is not None:
            factors = row_factors(ops, sqnorms, longest)
            if weights is not None:
                factors = factors * ops.xp.sqrt(weights)
            known = None
            if gram == "cosine":  # exactly one, which rounding would not give
                known = A.cast(sqnorms > 0 if weights is None else weights)
            A = Scaled(A, rows=factors, sqnorms=known)
        removed = None if gram == "full" else ops.keep(A.cast(A.sqnorms))
        return cls(A, removed, longest=longest)

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_samples)."""
        return (self.A.shape[0], self.A.shape[0])

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the data and of every product."""
        return self.A.dtype

    def __matmul__(self, V: Tall) -> Tall:
        """Return ``G @ V`` for a vector or a block of vectors."""
        if V.ndim == 1:
            return (self @ V[:, None])[:, 0]
        V = self.A.cast(V)
        return self.from_adjoint(self.A.adjoint(V), V)

    def from_adjoint(self, W: Any, V: Tall) -> Tall:
        """Return ``G @ V`` given ``W = A.T @ V``."""
        product = self.A @ (W * self.factor)
        if self.removed is not None:
            product -= self._diagonal(V)
        return product

    def with_adjoint(self, W: Any, V: Tall) -> tuple[Tall, Any]:
        """Return ``G @ V`` and ``A.T @ (G @ V)`` given ``W = A.T @ V``.

        Data that is not in memory is read once for both.
        """
        minus = None if self.removed is None else self._diagonal(V)
        return self.A.product_and_adjoint(W * self.factor, minus)

    def _diagonal(self, V: Tall) -> Tall:
        """Return the part of V that is taken off a product."""
        removed: Any = self.removed
        return (removed * self.factor)[:, None] * V

    def take(self, rows: np.ndarray) -> GramOperator:
        """Return the operator of some rows: a principal submatrix of this one.

        Rows are given in increasing order.
        """
        A, removed = drawn(self.A, rows), self.removed
        if removed is not None:
            removed = A.to_device(self.A.ops.few_rows(removed, rows))
        return replace(self, A=A, removed=removed)

    def scaled(self, factor: float) -> GramOperator:
        """Return the operator of ``factor * G``."""
        return replace(self, factor=self.factor * factor)

    def toarray(self) -> np.ndarray:
        """Return the n by n matrix itself, in float64; for small n only."""
        A = self.A.toarray().astype(np.float64, copy=False)
        G = A @ A.T
        if self.removed is not None:
            # In one dtype, so that a hollow diagonal is exactly zero.
            to_host = self.A.ops.to_host
            removed = to_host(self.removed)
            sqnorms = to_host(self.A.sqnorms).astype(removed.dtype)
            np.fill_diagonal(G, sqnorms - removed)
        return np.asarray(G * self.factor)


def row_factors(ops: Ops, sqnorms: Tall, longest: float) -> Tall:
    """Return what shortens rows to a length; 0 for that brings all to unit norm."""
    norms = ops.xp.sqrt(sqnorms)
    if longest == 0:
        return ops.ratio(1.0, norms)
    return ops.clip(ops.ratio(longest, norms, 1.0), None, 1.0)
