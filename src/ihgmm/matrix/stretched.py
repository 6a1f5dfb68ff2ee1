"""A matrix whose rows are stretched along some directions, which is a matrix too."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ihgmm.matrix.base import Index, Matrix
from ihgmm.matrix.kinds import as_matrix
from ihgmm.matrix.tall import Tall, clip, keep, widen
from ihgmm.matrix.view import View, Work


class Stretched(View):
    """``X @ (I + B @ diag(factors - 1) @ B.T)``, never formed.

    The columns of B, few of them, are orthonormal: along each of them rows are
    multiplied by its factor.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import Stretched, as_matrix
    >>> X = as_matrix(np.array([[3.0, 4.0], [0.0, 2.0]]))
    >>> first = np.array([[1.0], [0.0]])
    >>> Stretched(X, first, np.array([10.0])) @ np.eye(2)
    array([[30.,  4.],
           [ 0.,  2.]])
    """

    def __init__(self, matrix: Matrix, B: np.ndarray, factors: np.ndarray) -> None:
        super().__init__(matrix)
        self.has_gaps, self._basis, self._factors = False, B, factors
        self._B, self._gains = matrix.cast(B), matrix.cast(factors - 1)

    def _on_blocks(self, work: Work) -> tuple[Work, tuple[Tall | None, ...]]:
        return partial(_on_stretched, work, self._basis, self._factors), ()

    def __matmul__(self, W: Any) -> Tall:
        return self.matrix @ self._stretch(self.matrix.cast(W))

    def adjoint(self, V: Any) -> Tall:
        return self._stretch(self.matrix.adjoint(V))

    def product_and_adjoint(
        self, W: Any, minus: Tall | None = None, row_scale: Tall | None = None
    ) -> tuple[Tall, Tall]:
        W = self._stretch(self.matrix.cast(W))
        Y, back = self.matrix.product_and_adjoint(W, minus, row_scale)
        return Y, self._stretch(back)

    def _stretch(self, W: Tall) -> Tall:
        """Return ``W + B @ diag(gains) @ B.T @ W``."""
        inner = self._B.T @ W
        inner = inner * (self._gains if W.ndim == 1 else self._gains[:, None])
        return W + self._B @ inner

    def rows(self, rows: Index) -> Tall:
        return self._stretch(self.matrix.rows(rows).T).T

    def take(self, rows: Index) -> Matrix:
        return as_matrix(self.rows(rows))

    def row_sqnorms(self, column_weights: np.ndarray | None = None) -> Tall:
        if column_weights is not None:
            return super().row_sqnorms(column_weights)
        along = widen(self.matrix @ self._B)
        more = (along**2) @ self.matrix.to_device(self._factors**2 - 1)
        return keep(clip(self.matrix.sqnorms + more, 0.0, None))

    def rescaled(self, factor: float) -> Stretched:
        return Stretched(self.matrix.rescaled(factor), self._basis, self._factors)


def _on_stretched(
    work: Work, B: np.ndarray, factors: np.ndarray, block: Matrix, *tall: Tall | None
) -> Any:
    return work(Stretched(block, B, factors).take(slice(0, block.shape[0])), *tall)
