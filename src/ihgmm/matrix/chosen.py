"""Many rows of a matrix, without those that do not count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from ihgmm.matrix.base import Index, Matrix, T
from ihgmm.matrix.tall import (
    Tall,
    few_rows,
    in_blocks_of,
    is_lazy,
    place,
    rows_where,
    to_host,
)
from ihgmm.matrix.view import ByBlocks, View, Work


def only(X: Matrix, rows: np.ndarray) -> Matrix:
    """Return the matrix of some rows, in increasing order, with their weights.

    Nothing is copied of data that is not in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import as_matrix, only
    >>> X = as_matrix(np.arange(8.0).reshape(4, 2))
    >>> only(X, np.array([1, 3])).sqnorms
    array([13., 85.])
    """
    some = Chosen(X, rows) if X.streamed else X.by_rows().take(rows)
    if X.incomplete is not None:
        some.incomplete, some.redraw = only(X.incomplete, rows), X.redraw
    return some if X.weights is None else some.weighted(few_rows(X.weights, rows))


def drawn(X: Matrix, rows: np.ndarray) -> Matrix:
    """Return few rows, in increasing order, that are read once and used often.

    They are a copy in memory, or on the workers of a cluster that has X.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import as_matrix, drawn
    >>> X = as_matrix(np.arange(8.0).reshape(4, 2))
    >>> drawn(X, np.array([0, 2])).shape
    (2, 2)
    """
    if not X.distributed:
        return X.take(rows)
    from ihgmm.matrix.dask import DaskRows  # only where there is dask

    (entries,), _ = Chosen(X, rows).sweep(_entries)
    copy = DaskRows(entries)
    copy.unit = X.unit
    return copy


def on_few_rows(X: Matrix, rows: np.ndarray, work: Callable[[Matrix], T]) -> T:
    """Return the result of some work on few rows, in increasing order, in memory.

    If the data are on a cluster, the rows go to one worker, and the work goes there.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import as_matrix, on_few_rows
    >>> X = as_matrix(np.arange(8.0).reshape(4, 2))
    >>> on_few_rows(X, np.array([0, 2]), lambda rows: rows.sqnorms.sum())
    np.float64(42.0)
    """
    if not X.distributed:
        return work(X.by_rows().take(rows))
    copy: Any = drawn(X, rows)
    (found,) = copy.in_one_block().map(work)
    return found


def _entries(block: Any) -> tuple[tuple[Any], tuple[()]]:
    return (block.array,), ()


class Chosen(View, ByBlocks):
    """Some rows of a matrix that is not in memory, given in increasing order."""

    def __init__(self, matrix: Matrix, rows: np.ndarray) -> None:
        super().__init__(matrix)
        self.positions = np.asarray(rows)
        self._mask = np.zeros(matrix.shape[0], dtype=bool)
        self._mask[self.positions] = True
        self.mask = matrix.to_device(self._mask)
        # dask takes a line that is alone for a number that goes with every block.
        if len(rows) == 1 and is_lazy(self.mask) and self.mask.numblocks[0] > 1:
            raise ValueError(
                f"Of the rows of X, only row {int(rows[0])} counts, and X is a dask "
                "array in several chunks; give X.compute(), a NumPy array."
            )
        self.shape, self.weights = (len(self.positions), matrix.shape[1]), None

    @cached_property
    def n_entries(self) -> int:
        return round(self.matrix.n_entries * len(self.positions) / len(self._mask))

    @cached_property
    def row_blocks(self) -> list[slice]:
        ends = [0, *(rows.stop for rows in self.matrix.row_blocks)]
        places = np.searchsorted(self.positions, ends).tolist()
        return [slice(*cut) for cut in pairwise(places) if cut[0] < cut[1]]

    def _on_blocks(self, work: Work) -> tuple[Work, tuple[Tall | None, ...]]:
        return partial(_on_some, work), (self.mask,)

    def map(self, work: Callable[..., T], *tall: Tall | None) -> Iterator[T]:
        found = super().map(work, *map(self._among_all, tall))
        return (each for each in found if each is not None)

    def sweep(self, work: Work, *tall: Any) -> tuple[Any, Any]:
        return super().sweep(work, *map(self._among_all, tall))

    def _among_all(self, values: Tall | None) -> Tall | None:
        """Return values of the chosen rows among zeros for all others."""
        return None if values is None else place(self.to_device(values), self.mask)

    def to_device(self, values: Any) -> Tall:
        if tuple(values.shape[:1]) != self.shape[:1]:
            return self.matrix.to_device(values)
        if not isinstance(values, np.ndarray):
            return values
        return in_blocks_of(values, self._mask, self.mask)

    @cached_property
    def sqnorms(self) -> Tall:
        return rows_where(self.matrix.sqnorms, self.mask)

    def take(self, rows: Index) -> Matrix:
        return self.matrix.take(self.positions[rows])

    def rescaled(self, factor: float) -> Chosen:
        return Chosen(self.matrix.rescaled(factor), self.positions)


def _on_some(work: Work, block: Matrix, mask: Tall, *tall: Tall | None) -> Any:
    """Do some work on the chosen rows of a block; None if it has none."""
    rows = np.flatnonzero(to_host(mask))
    if len(rows) == 0:
        return None
    parts = [None if part is None else few_rows(part, rows) for part in tall]
    return work(block.take(rows), *parts)
