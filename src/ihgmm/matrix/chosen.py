"""Many rows of a matrix, without those that do not count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from ihgmm.matrix.base import Index, Matrix, T
from ihgmm.matrix.tall import Tall, namespace


def only(X: Matrix, rows: np.ndarray) -> Matrix:
    """Return the matrix of some rows, in their order, with their weights.

    Nothing is copied of data that is not in memory.
    """
    chosen = Chosen(X, rows) if X.streamed else X.by_rows().take(rows)
    if X.incomplete is not None:
        chosen.incomplete = only(X.incomplete, rows)
    if X.weights is None:
        return chosen
    return chosen.weighted(namespace(X.weights).take(X.weights, X.to_device(rows)))


class Chosen(Matrix):
    """Some rows of a matrix that is not in memory, given in increasing order."""

    streamed = True

    def __init__(self, matrix: Matrix, rows: np.ndarray) -> None:
        self.matrix, self.positions = matrix, np.asarray(rows)
        self.mask = np.zeros(matrix.shape[0], dtype=bool)
        self.mask[self.positions] = True
        self.shape = (len(self.positions), matrix.shape[1])
        self.dtype, self.unit, self.on_host = matrix.dtype, matrix.unit, matrix.on_host
        self.has_gaps = matrix.has_gaps

    @cached_property
    def n_entries(self) -> int:
        return round(self.matrix.n_entries * len(self.positions) / len(self.mask))

    @cached_property
    def row_blocks(self) -> list[slice]:
        ends = [0, *(rows.stop for rows in self.matrix.row_blocks)]
        places = np.searchsorted(self.positions, ends).tolist()
        return [slice(*cut) for cut in pairwise(places) if cut[0] < cut[1]]

    def __matmul__(self, W: Any) -> Tall:
        return (self.matrix @ W)[self.positions]

    def adjoint(self, V: Any) -> Tall:
        return self.matrix.adjoint(self._among_all(self.cast(V)))

    def product_and_adjoint(
        self, W: Any, minus: Tall | None = None, row_scale: Tall | None = None
    ) -> tuple[Tall, Tall]:
        # Rows that are not chosen are multiplied by 0.
        scale = np.ones(len(self.positions)) if row_scale is None else row_scale
        scale = self._among_all(self.cast(scale))
        minus = None if minus is None else self._among_all(minus)
        Y, back = self.matrix.product_and_adjoint(W, minus, scale)
        return Y[self.positions], back

    def map(self, work: Callable[..., T], *tall: Tall | None) -> Iterator[T]:
        everywhere = [None if part is None else self._among_all(part) for part in tall]
        for found in self.matrix.map(partial(_on_some, work), self.mask, *everywhere):
            if found is not None:
                yield found[0]

    def _among_all(self, values: Tall) -> Tall:
        """Return values of the chosen rows among zeros for all others."""
        all_rows = np.zeros((len(self.mask), *values.shape[1:]), dtype=values.dtype)
        all_rows[self.positions] = values
        return all_rows

    @cached_property
    def sqnorms(self) -> Tall:
        return self.matrix.sqnorms[self.positions]

    def take(self, rows: Index) -> Matrix:
        return self.matrix.take(self.positions[rows])

    def rescaled(self, factor: float) -> Chosen:
        return Chosen(self.matrix.rescaled(factor), self.positions)

    def threads(self) -> AbstractContextManager[Any]:
        return self.matrix.threads()


def _on_some(
    work: Callable[..., T], block: Matrix, mask: np.ndarray, *tall: Tall | None
) -> tuple[T] | None:
    """Do some work on the chosen rows of a block, if it has any."""
    rows = np.flatnonzero(mask)
    if len(rows) == 0:
        return None
    parts = [None if part is None else part[rows] for part in tall]
    return (work(block.take(rows), *parts),)
