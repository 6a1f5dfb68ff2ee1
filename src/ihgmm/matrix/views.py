"""Matrices that are made of another one, block by block, when they are needed.

A view is a matrix too: scaled, stretched, or filled in. What belongs to rows
(:class:`~ihgmm.matrix.base.About`) goes from the other matrix to the view in one place,
:meth:`View.__init__`, so that no view can forget a part of it.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from ihgmm.matrix.base import Gaps, Index, Matrix, T, Work, ask, times_lines
from ihgmm.matrix.device import dense
from ihgmm.matrix.ops import Tall, to_host

Fill = Callable[[Tall], Tall]  # rows with NaN to the same rows without
Draw = Callable[[Matrix, int], Matrix]  # the same, by a seed


class View(Matrix):
    """Rows of a matrix, each turned into another when it is needed.

    By default what belongs to the rows of the matrix belongs to those of the view, its
    gaps seen through the view (:meth:`of`).
    """

    matrix: Matrix

    def __init__(self, matrix: Matrix, gaps: Gaps | None, unit: float) -> None:
        gaps = gaps and gaps.through(self.of)
        about = replace(matrix.about, gaps=gaps, unit=unit)
        super().__init__(matrix.shape, matrix.dtype, about, matrix.ops)
        # Rows are where those of the matrix are, and the matrix answers for that.
        kind = ("sparse", "on_host", "streamed", "distributed", "least_range")
        methods = ("to_device", "cast", "threads")
        same = {name: getattr(matrix, name) for name in (*kind, *methods)}
        vars(self).update(same, matrix=matrix)

    @abstractmethod
    def of(self, other: Matrix, rows: np.ndarray | None) -> Matrix:
        """Return the same view of another matrix with these rows, or some of them."""

    @property
    @abstractmethod
    def _change(self) -> Work:
        """Makes a block of the view of one of the matrix and its row scale."""

    def map(self, work: Callable[..., T], *tall: Tall | None) -> Iterator[T]:
        return self.matrix.map(self._changed(work), self.row_scale, *tall)

    def sweep(self, work: Work, *tall: Any) -> tuple[Any, Any]:
        return self.matrix.sweep(self._changed(work), self.row_scale, *tall)

    def _changed(self, work: Work) -> Work:
        change = self._change  # workers get this, and not the matrix
        return lambda block, scale, *tall: work(change(block, scale), *tall)

    def take(self, rows: Index) -> Matrix:
        scale = self.row_scale
        scale = None if scale is None else self.ops.take_rows(scale, rows)
        return self._change(self.matrix.take(rows), scale)

    def _kept(self, rows: np.ndarray) -> Matrix:
        return self.of(self.matrix._kept(rows), rows)

    def drawn(self, rows: np.ndarray) -> Matrix:
        if not self.distributed:
            return self.take(rows)
        return self.of(self.matrix.drawn(rows), rows)

    def rescaled(self, factor: float) -> Matrix:
        return self.of(self.matrix.rescaled(factor), None)

    n_entries = cached_property[int](attrgetter("matrix.n_entries"))
    row_blocks = cached_property[list[slice]](attrgetter("matrix.row_blocks"))


class Scaled(View):
    """``diag(rows) @ X @ diag(columns)``, never formed; ones where none are given.

    With ``unit``, its entries are in another unit than those of X. ``sqnorms`` are
    given where they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import Scaled, as_matrix
    >>> X = as_matrix(np.array([[3.0, 4.0], [0.0, 2.0]]))
    >>> Scaled(X, rows=np.array([0.2, 0.5])).sqnorms
    array([1., 1.])
    """

    def __init__(
        self,
        matrix: Matrix,
        rows: Any = None,
        columns: Any = None,
        *,
        unit: float | None = None,
        sqnorms: Tall | None = None,
    ) -> None:
        unit = matrix.unit if unit is None else unit
        self._units = unit / matrix.unit
        if rows is not None:
            rows = matrix.ops.persist(matrix.cast(matrix.to_device(rows)))
        self.row_scale = rows
        self.columns, self._column_squares = None, None
        if columns is not None:
            self.columns = matrix.cast(columns)
            self._column_squares = np.square(to_host(columns), dtype=np.float64)
        super().__init__(matrix, matrix.gaps, unit)
        if sqnorms is not None:
            self.sqnorms = sqnorms

    def of(self, other: Matrix, rows: np.ndarray | None) -> Matrix:
        scale = self.row_scale
        if rows is not None and scale is not None:
            scale = to_host(self.ops.take_rows(scale, rows))
        return Scaled(other, scale, self.columns, unit=self._units * other.unit)

    @property
    def _change(self) -> Work:
        columns, about = self.columns, self.about.of_taken_rows()
        return lambda block, rows: block.multiplied(rows, columns, about)

    def __matmul__(self, W: Any) -> Tall:
        W = times_lines(self.matrix.cast(W), self.columns)
        return times_lines(self.matrix @ W, self.row_scale)

    def adjoint(self, V: Any) -> Tall:
        V = times_lines(self.matrix.cast(V), self.row_scale)
        return times_lines(self.matrix.adjoint(V), self.columns)

    def gram_product(self, W: Any, row_scale: Tall | None = None) -> Tall:
        scale = self.row_scale
        if row_scale is not None:
            scale = row_scale if scale is None else scale * row_scale
        W = times_lines(self.matrix.cast(W), self.columns)
        return times_lines(self.matrix.gram_product(W, scale), self.columns)

    def row_sqnorms(self, column_weights: np.ndarray | None = None) -> Tall:
        weights = self._column_squares
        if column_weights is not None:
            weights = column_weights if weights is None else weights * column_weights
        plain = weights is None
        norms = self.matrix.sqnorms if plain else self.matrix.row_sqnorms(weights)
        if self.row_scale is None:
            return norms
        return self.ops.persist(norms * self.ops.widen(self.row_scale) ** 2)


class Shifted(View):
    """``X - center``, in the units of the data, never formed."""

    def __init__(self, matrix: Matrix, center: np.ndarray) -> None:
        self.center = center
        super().__init__(matrix, matrix.gaps, matrix.unit)
        self.sparse, self.n_entries = False, matrix.shape[0] * matrix.shape[1]

    def of(self, other: Matrix, rows: np.ndarray | None) -> Matrix:
        return Shifted(other, self.center)

    @property
    def _change(self) -> Work:
        center, about = self.center / self.unit, self.about.of_taken_rows()

        def change(block: Matrix, _: None) -> Matrix:
            return dense(block.rows(slice(None)) - block.cast(center), about)

        return change

    def adjoint(self, V: Any) -> Tall:
        return self.matrix.cast(super().adjoint(V))

    def gram_product(self, W: Any, row_scale: Tall | None = None) -> Tall:
        return self.matrix.cast(super().gram_product(W, row_scale))


class Stretched(View):
    """``X @ (I + B @ diag(factors - 1) @ B.T)``, never formed.

    The columns of B, few of them, are orthonormal: along each of them rows are
    multiplied by its factor. Cells of a row mix, so that none is missing any more.
    """

    def __init__(self, matrix: Matrix, B: np.ndarray, factors: np.ndarray) -> None:
        self._given = B, factors
        gaps = matrix.gaps and replace(matrix.gaps, matrix=None)
        super().__init__(matrix, gaps, matrix.unit)
        self.sparse, self.n_entries = False, matrix.shape[0] * matrix.shape[1]
        self._B, self._gains = matrix.cast(B), matrix.cast(factors - 1)

    def of(self, other: Matrix, rows: np.ndarray | None) -> Matrix:
        return Stretched(other, *self._given)

    @property
    def _change(self) -> Work:
        (B, factors), about = self._given, self.about.of_taken_rows()

        def change(block: Matrix, _: None) -> Matrix:
            rows = block.rows(slice(None)).T
            return dense(Stretched(block, B, factors).stretch(rows).T, about)

        return change

    def __matmul__(self, W: Any) -> Tall:
        return self.matrix @ self.stretch(self.matrix.cast(W))

    def adjoint(self, V: Any) -> Tall:
        return self.stretch(self.matrix.adjoint(V))

    def gram_product(self, W: Any, row_scale: Tall | None = None) -> Tall:
        W = self.stretch(self.matrix.cast(W))
        return self.stretch(self.matrix.gram_product(W, row_scale))

    def stretch(self, W: Tall) -> Tall:
        """Return ``W + B @ diag(gains) @ B.T @ W``."""
        return W + self._B @ times_lines(self._B.T @ W, self._gains)

    def row_sqnorms(self, column_weights: np.ndarray | None = None) -> Tall:
        if column_weights is not None:
            return super().row_sqnorms(column_weights)
        along = self.ops.widen(self.matrix @ self._B)
        more = (along**2) @ self.ops.cast_like(self._given[1] ** 2 - 1, along)
        return self.ops.persist(self.ops.clip(self.matrix.sqnorms + more, 0.0, None))


class Filled(View):
    """Blocks of rows, each asked for itself "filled", "with_gaps" or "missing"."""

    # What is filled in is in the unit of the data.
    rescaled = Matrix.rescaled

    def __init__(self, matrix: Matrix, question: str, *given: Any) -> None:
        self._asked = question, *given
        super().__init__(matrix, matrix.gaps, matrix.unit)

    def of(self, other: Matrix, rows: np.ndarray | None) -> Matrix:
        return Filled(other, *self._asked)

    @property
    def _change(self) -> Work:
        question = ask(*self._asked)
        return lambda block, _: question(block)


def filled(X: Matrix, fill: Fill | None = None, draw: Draw | None = None) -> Matrix:
    """Return the matrix with its missing cells filled, by zeros if nothing is given.

    Data in memory become a copy. All else is filled anew whenever it is read. With
    ``draw``, which fills a matrix by what a seed draws, the result knows its gaps.
    """
    complete = Filled(X, "filled", fill) if X.streamed else X.filled(fill)
    if draw is None:
        return complete
    gaps = Gaps(X, lambda seed, rows: draw(X if rows is None else X.take(rows), seed))
    return complete.with_about(replace(complete.about, gaps=gaps))


def with_gaps(X: Matrix, mark: Fill) -> Matrix:
    """Return the matrix with NaN where ``mark`` puts it among stored entries."""
    return Filled(X, "with_gaps", mark) if X.streamed else X.with_gaps(mark)
