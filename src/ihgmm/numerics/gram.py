"""The Gram matrix of the paper, as an operator that is never formed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ihgmm.matrix import Matrix, Scaled, Tall, as_matrix


@dataclass(frozen=True, eq=False)
class GramOperator:
    """The matrix G of the paper's Algorithm 1: ``A @ A.T`` with a zero diagonal.

    Build one with :meth:`of`. It holds no copy of the data; two products with these
    apply it.

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
    diagonal: Tall  # of ``A @ A.T``, which is taken off

    @classmethod
    def of(cls, X: Any) -> GramOperator:
        """Build the operator; rows count as rows times the root of their weight."""
        A = as_matrix(X)
        if A.weights is not None:
            A = Scaled(A, rows=A.ops.xp.sqrt(A.weights))
        return cls(A, A.ops.persist(A.cast(A.sqnorms)))

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
        product -= self.diagonal[:, None] * V
        return product

    def toarray(self) -> np.ndarray:
        """Return the n by n matrix itself, in float64; for small n only."""
        A = self.A.toarray().astype(np.float64, copy=False)
        G = A @ A.T
        np.fill_diagonal(G, 0.0)
        return np.asarray(G)
