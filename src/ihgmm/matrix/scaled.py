"""A matrix whose rows and columns are multiplied by numbers, which is a matrix too."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ihgmm.matrix.base import Index, Matrix
from ihgmm.matrix.tall import Tall, few_rows, keep, to_host, widen
from ihgmm.matrix.view import View, Work


class Scaled(View):
    """``diag(rows) @ X @ diag(columns)``, never formed; ones where none are given.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import Scaled, as_matrix
    >>> X = as_matrix(np.array([[3.0, 4.0], [0.0, 2.0]]))
    >>> Scaled(X, rows=np.array([0.2, 0.5])).sqnorms
    array([1., 1.])
    """

    def __init__(self, matrix: Matrix, rows: Any = None, columns: Any = None) -> None:
        super().__init__(matrix)
        self.n_entries = matrix.n_entries
        if rows is not None:
            self.row_scale = keep(matrix.cast(matrix.to_device(rows)))
        self.columns = None if columns is None else matrix.cast(columns)
        self._column_squares = None
        if columns is not None:
            self._column_squares = np.square(to_host(columns), dtype=np.float64)

    def _on_blocks(self, work: Work) -> tuple[Work, tuple[Tall | None, ...]]:
        return partial(_on_scaled, work, self.columns), (self.row_scale,)

    def __matmul__(self, W: Any) -> Tall:
        return _times(self.matrix @ self._in(W), self.row_scale)

    def adjoint(self, V: Any) -> Tall:
        V = self.matrix.cast(V)
        if self.row_scale is not None:
            V = V * (self.row_scale if V.ndim == 1 else self.row_scale[:, None])
        return _times(self.matrix.adjoint(V), self.columns)

    def product_and_adjoint(
        self, W: Any, minus: Tall | None = None, row_scale: Tall | None = None
    ) -> tuple[Tall, Tall]:
        scale = self.row_scale
        if row_scale is not None:
            scale = row_scale if scale is None else scale * row_scale
        Y, back = self.matrix.product_and_adjoint(self._in(W), minus, scale)
        return Y, _times(back, self.columns)

    def _in(self, W: Any) -> Tall:
        W = self.matrix.cast(W)
        if self.columns is None:
            return W
        return W * (self.columns if W.ndim == 1 else self.columns[:, None])

    def take(self, rows: Index) -> Matrix:
        scale = None if self.row_scale is None else few_rows(self.row_scale, rows)
        return self.matrix.take(rows).multiplied(scale, self.columns)  # type: ignore[attr-defined]

    def row_sqnorms(self, column_weights: np.ndarray | None = None) -> Tall:
        weights = self._column_squares
        if column_weights is not None:
            weights = column_weights if weights is None else weights * column_weights
        plain = weights is None
        norms = self.matrix.sqnorms if plain else self.matrix.row_sqnorms(weights)
        if self.row_scale is None:
            return norms
        return keep(norms * widen(self.row_scale) ** 2)

    def rescaled(self, factor: float) -> Scaled:
        return Scaled(self.matrix.rescaled(factor), self.row_scale, self.columns)

    def ranges(self, n_entries: int = 2**22) -> list[slice]:
        return self.matrix.ranges(n_entries)


def _times(block: Tall, scale: Tall | None) -> Tall:
    if scale is not None:
        block *= scale if block.ndim == 1 else scale[:, None]
    return block


def _on_scaled(work: Work, columns: Any, block: Any, rows: Any, *tall: Any) -> Any:
    """Do some work on a block of rows, itself in memory, once it is multiplied."""
    return work(block.multiplied(rows, columns), *tall)
