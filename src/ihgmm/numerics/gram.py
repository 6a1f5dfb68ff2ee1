"""The Gram matrix of the paper, as an operator that is never formed.

It is ``G = A @ A.T - diag(removed)`` and is applied to a block of vectors by two
products with the data, at a cost linear in their size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ihgmm.matrix import Matrix, Scaled, Tall, as_matrix

Diagonal = Literal["full", "zero"]
DIAGONALS: tuple[Diagonal, ...] = ("full", "zero")


@dataclass(frozen=True, eq=False)
class GramOperator:
    """The symmetric n by n matrix ``A @ A.T - diag(removed)``, matrix-free.

    Build one with :meth:`of`. The operator is immutable and holds a reference to the
    data, never a copy. What it holds for each row is where the data are.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.numerics.gram import GramOperator
    >>> G = GramOperator.of(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]))
    >>> G.toarray()
    array([[0., 1., 0.],
           [1., 0., 2.],
           [0., 2., 0.]])
    >>> G @ np.ones(3)
    array([1., 3., 2.])
    """

    A: Matrix  # the rows whose inner products are taken
    removed: Tall | None = None  # for each row, what is taken off the diagonal

    @classmethod
    def of(cls, X: Any, diagonal: Diagonal = "zero") -> GramOperator:
        """Build the Gram operator of the rows of ``X``.

        ``"zero"`` leaves out the products of rows with themselves, where noise adds up:
        this is the matrix G of the paper's Algorithm 1. ``"full"`` keeps them. Rows
        that have weights count as rows times the root of their weight.
        """
        if diagonal not in DIAGONALS:
            raise ValueError(f"diagonal={diagonal!r} is not one of {DIAGONALS}.")
        A = as_matrix(X)
        if A.weights is not None:
            A = Scaled(A, rows=A.ops.xp.sqrt(A.weights))
        removed = None if diagonal == "full" else A.ops.persist(A.cast(A.sqnorms))
        return cls(A, removed)

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_samples)."""
        return (self.A.shape[0], self.A.shape[0])

    def __matmul__(self, V: Tall) -> Tall:
        """Return ``G @ V`` for a vector or a block of vectors."""
        if V.ndim == 1:
            return (self @ V[:, None])[:, 0]
        V = self.A.cast(V)
        product = self.A @ self.A.adjoint(V)
        if self.removed is not None:
            product -= self.removed[:, None] * V
        return product

    def toarray(self) -> np.ndarray:
        """Return the n by n matrix itself, in float64; for small n only."""
        A = self.A.toarray().astype(np.float64, copy=False)
        G = A @ A.T
        if self.removed is not None:
            np.fill_diagonal(G, 0.0)
        return np.asarray(G)
