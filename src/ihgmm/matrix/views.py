"""Matrices that are made of another one, block by block, when they are needed.

A view is a matrix too: scaled, stretched, or filled in. What belongs to rows
(:class:`~ihgmm.matrix.base.About`) goes from the other matrix to the view in one place,
:meth:`View.__init__`, so that no view can forget a part of it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ihgmm.matrix.base import About, Gaps, Index, Matrix, T, ask, times_lines
from ihgmm.matrix.device import dense
from ihgmm.matrix.ops import Tall, to_host

Work = Callable[..., Any]
Fill = Callable[[Tall], Tall]  # rows with NaN to the same rows without


class ByBlocks(Matrix):
    """A matrix whose products are those of its blocks."""

    def __matmul__(self, W: Any) -> Tall:
        return self.sweep(ask("__matmul__", self.cast(W), of="lines"))[0][0]

    def adjoint(self, V: Any) -> Tall:
        return self.sweep(ask("adjoint", of="sums"), self.cast(V))[1][0]

    def gram_product(self, W: Any, row_scale: Tall | None = None) -> Tall:
        work = ask("gram_product", self.cast(W), of="sums")
        return self.sweep(work, row_scale)[1][0]


class View(Matrix):
    """Rows of a matrix, each turned into another when it is needed.

    By default what belongs to the rows of the matrix belongs to those of the view, its
    gaps seen through the view (:meth:`of`).
    """

    matrix: Matrix

    def __init__(self, matrix: Matrix, about: About | None = None) -> None:
        if about is None:
            gaps = matrix.gaps and matrix.gaps.through(self.of)
            about = replace(matrix.about, gaps=gaps)
        super().__init__(matrix.shape, matrix.dtype, about, matrix.ops)
        # Rows are where those of the matrix are, and the matrix answers for that.
        kind = ("sparse", "on_host", "streamed", "distributed", "least_range")
        methods = ("to_device", "cast", "threads")
        same = {name: getattr(matrix, name) for name in (*kind, *methods)}
        vars(self).update(same, matrix=matrix)

    @abstractmethod
    def of(self, other: Matrix, rows: np.ndarray | None) -> Matrix:
        """Return the same view of another matrix with these rows, or some of them."""

    @abstractmethod
    def _on_blocks(self, work: Work) -> tuple[Work, tuple[Tall | None, ...]]:
        """Return some work as that on blocks of the other matrix.

        It takes those tall arrays that are returned too, before all others.
        """

    def map(self, work: Callable[..., T], *tall: Tall | None) -> Iterator[T]:
        work, own = self._on_blocks(work)
        return self.matrix.map(work, *own, *tall)

    def sweep(self, work: Work, *tall: Any) -> tuple[Any, Any]:
        work, own = self._on_blocks(work)
        return self.matrix.sweep(work, *own, *tall)

    def _kept(self, rows: np.ndarray) -> Matrix:
        return self.of(self.matrix._kept(rows), rows)

    def drawn(self, rows: np.ndarray) -> Matrix:
        if not self.distributed:
            return self.take(rows)
        return self.of(self.matrix.drawn(rows), rows)

    @cached_property
    def n_entries(self) -> int:
        return self.matrix.n_entries

    @cached_property
    def row_blocks(self) -> list[slice]:
        return self.matrix.row_blocks


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
        if rows is not None:
            rows = matrix.ops.persist(matrix.cast(matrix.to_device(rows)))
        self.row_scale, self._own_unit = rows, unit
        self.columns = columns if columns is None else matrix.cast(columns)
        self._column_squares = None
        if columns is not None:
            self._column_squares = np.square(to_host(columns), dtype=np.float64)
        super().__init__(matrix)
        if unit is not None:
            self.about = replace(self.about, unit=unit)
        if sqnorms is not None:
            self.sqnorms = sqnorms

    def of(self, other: Matrix, rows: np.ndarray | None) -> Matrix:
        scale = self.row_scale
        if rows is not None and scale is not None:
            scale = to_host(self.ops.few_rows(scale, rows))
        return Scaled(other, scale, self.columns, unit=self._own_unit)

    def _on_blocks(self, work: Work) -> tuple[Work, tuple[Tall | None, ...]]:
        about = self.about.of_taken_rows()
        return partial(_on_scaled, work, self.columns, about), (self.row_scale,)

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

    def take(self, rows: Index) -> Matrix:
        scale = self.row_scale
        if scale is not None:
            scale = self.ops.few_rows(scale, rows)
        taken: Any = self.matrix.take(rows)
        return taken.multiplied(scale, self.columns, self.about.of_taken_rows())

    def row_sqnorms(self, column_weights: np.ndarray | None = None) -> Tall:
        weights = self._column_squares
        if column_weights is not None:
            weights = column_weights if weights is None else weights * column_weights
        plain = weights is None
        norms = self.matrix.sqnorms if plain else self.matrix.row_sqnorms(weights)
        if self.row_scale is None:
            return norms
        return self.ops.persist(norms * self.ops.widen(self.row_scale) ** 2)

    def rescaled(self, factor: float) -> Scaled:
        unit = None if self._own_unit is None else self._own_unit / factor
        matrix = self.matrix.rescaled(factor)
        return Scaled(matrix, self.row_scale, self.columns, unit=unit)


def _on_scaled(
    work: Work, columns: Any, about: About, block: Any, rows: Any, *tall: Any
) -> Any:
    return work(block.multiplied(rows, columns, about), *tall)


class Stretched(View):
    """``X @ (I + B @ diag(factors - 1) @ B.T)``, never formed.

    The columns of B, few of them, are orthonormal: along each of them rows are
    multiplied by its factor. Cells of a row mix, so that none is missing any more.
    """

    def __init__(self, matrix: Matrix, B: np.ndarray, factors: np.ndarray) -> None:
        self._basis, self._factors = B, factors
        about = matrix.about
        if about.gaps is not None:
            gaps = replace(about.gaps, matrix=None).through(self.of)
            about = replace(about, gaps=gaps)
        super().__init__(matrix, about)
        self.sparse, self.n_entries = False, matrix.shape[0] * matrix.shape[1]
        self._B, self._gains = matrix.cast(B), matrix.cast(factors - 1)

    def of(self, other: Matrix, rows: np.ndarray | None) -> Matrix:
        return Stretched(other, self._basis, self._factors)

    def _on_blocks(self, work: Work) -> tuple[Work, tuple[Tall | None, ...]]:
        change = partial(_stretched, self._basis, self._factors)
        return partial(_after, change, work), ()

    def __matmul__(self, W: Any) -> Tall:
        return self.matrix @ self._stretch(self.matrix.cast(W))

    def adjoint(self, V: Any) -> Tall:
        return self._stretch(self.matrix.adjoint(V))

    def gram_product(self, W: Any, row_scale: Tall | None = None) -> Tall:
        W = self._stretch(self.matrix.cast(W))
        return self._stretch(self.matrix.gram_product(W, row_scale))

    def _stretch(self, W: Tall) -> Tall:
        """Return ``W + B @ diag(gains) @ B.T @ W``."""
        return W + self._B @ times_lines(self._B.T @ W, self._gains)

    def rows(self, rows: Index) -> Tall:
        return self._stretch(self.matrix.rows(rows).T).T

    def take(self, rows: Index) -> Matrix:
        return dense(self.rows(rows), self.about.of_taken_rows())

    def row_sqnorms(self, column_weights: np.ndarray | None = None) -> Tall:
        if column_weights is not None:
            return super().row_sqnorms(column_weights)
        along = self.ops.widen(self.matrix @ self._B)
        more = (along**2) @ self.matrix.to_device(self._factors**2 - 1)
        return self.ops.persist(self.ops.clip(self.matrix.sqnorms + more, 0.0, None))

    def rescaled(self, factor: float) -> Stretched:
        return Stretched(self.matrix.rescaled(factor), self._basis, self._factors)


def _stretched(B: np.ndarray, factors: np.ndarray, block: Matrix) -> Matrix:
    return Stretched(block, B, factors).take(slice(0, block.shape[0]))


class Filled(View, ByBlocks):
    """Blocks of rows of a matrix, each turned into others when it is asked for.

    ``question`` is what a block is asked for: "filled" or "with_gaps".
    """

    def __init__(self, matrix: Matrix, question: str, *given: Any) -> None:
        self._asked = question, *given
        super().__init__(matrix)

    def of(self, other: Matrix, rows: np.ndarray | None) -> Matrix:
        return Filled(other, *self._asked)

    def _on_blocks(self, work: Work) -> tuple[Work, tuple[Tall | None, ...]]:
        return partial(_after, ask(*self._asked), work), ()

    def take(self, rows: Index) -> Matrix:
        answer: Matrix = ask(*self._asked)(self.matrix.take(rows))
        return answer


def _after(change: Work, work: Work, block: Matrix, *tall: Tall | None) -> Any:
    """Do some work on a block of rows once it is changed."""
    return work(change(block), *tall)


def filled(
    X: Matrix,
    fill: Fill | None = None,
    draw: Callable[[Matrix, int], Matrix] | None = None,
) -> Matrix:
    """Return the matrix with its missing cells filled, by zeros if nothing is given.

    Data in memory become a copy. All else is filled anew whenever it is read. With
    ``draw``, which fills a matrix by what a seed draws, the result knows its gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import as_matrix, filled
    >>> X = filled(as_matrix(np.array([[1.0, np.nan], [3.0, 4.0]])))
    >>> X.sqnorms
    array([ 1., 25.])
    """
    complete = Filled(X, "filled", fill) if X.streamed else X.filled(fill)
    if draw is None:
        return complete
    gaps = Gaps(X, lambda seed, rows: draw(X if rows is None else X.take(rows), seed))
    return complete.with_about(replace(complete.about, gaps=gaps))


def with_gaps(X: Matrix, mark: Fill) -> Matrix:
    """Return the matrix with NaN where a function of rows puts it; as a copy in memory.

    Cells that sparse data do not store stay zero.
    """
    return Filled(X, "with_gaps", mark) if X.streamed else X.with_gaps(mark)
