"""Matrices that are made of another one, block by block, when they are needed.

A view is a matrix too: scaled, stretched, or filled in. What belongs to rows
(:class:`~ihgmm.matrix.base.Metadata`) goes from the other matrix to the view in one
place, :meth:`View.__init__`, so that no view can forget a part of it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from operator import attrgetter

import numpy as np

from ihgmm.matrix.arrays import AnyArray, Tall, to_host
from ihgmm.matrix.base import (
    CellChange,
    Gaps,
    Index,
    Lines,
    Matrix,
    Sums,
    T,
    scale_lines,
)
from ihgmm.matrix.device import dense_matrix
from ihgmm.matrix.materialized import Materialized
from ihgmm.matrix.threads import row_ranges

Draw = Callable[[Matrix, int], Matrix]
"""What fills the missing cells of a matrix by what a seed draws."""

BlockChange = Callable[[Materialized, Tall | None], Materialized]
"""What makes a block of a view of one of its matrix, and the scale of its rows."""


class View(Matrix):
    """Rows of a matrix, each turned into another when it is needed.

    By default what belongs to the rows of the matrix belongs to those of the view, its
    gaps seen through the view (:meth:`of`).
    """

    matrix: Matrix

    def __init__(self, matrix: Matrix, gaps: Gaps | None, unit: float) -> None:
        gaps = gaps and gaps.through(self.of)
        metadata = replace(matrix.metadata, gaps=gaps, unit=unit)
        super().__init__(matrix.shape, matrix.dtype, metadata, matrix.ops)

        # Rows are where those of the matrix are, and the matrix answers for that.
        vars(self).update(
            matrix=matrix,
            sparse=matrix.sparse,
            on_host=matrix.on_host,
            streamed=matrix.streamed,
            distributed=matrix.distributed,
            min_range_entries=matrix.min_range_entries,
            to_device=matrix.to_device,
            cast=matrix.cast,
            threads=matrix.threads,
        )

    @abstractmethod
    def of(self, other: Matrix, rows: np.ndarray | None) -> Matrix:
        """Return the same view of another matrix with these rows, or some of them."""

    @abstractmethod
    def block_change(self) -> BlockChange:
        """Return what makes a block of the view of one of the matrix.

        It is sent to workers, and so must not hold the matrix.
        """

    def map(self, work: Callable[..., T], *tall: Tall | None) -> Iterator[T]:
        return self.matrix.map(self._on_changed_blocks(work), self.row_scale, *tall)

    def sweep(
        self, work: Callable[..., tuple[Lines, Sums]], *tall: Tall | None
    ) -> tuple[Lines, tuple[np.ndarray, ...]]:
        return self.matrix.sweep(self._on_changed_blocks(work), self.row_scale, *tall)

    def _on_changed_blocks(self, work: Callable[..., T]) -> Callable[..., T]:
        """Return work on blocks of the matrix that does some work on the view's."""
        change = self.block_change()
        return lambda block, scale, *tall: work(change(block, scale), *tall)

    def take(self, rows: Index) -> Materialized:
        scale = self.row_scale
        if scale is not None:
            scale = self.ops.take_rows(scale, rows)

        change = self.block_change()
        return change(self.matrix.take(rows), scale)

    def _select_rows(self, rows: np.ndarray) -> Matrix:
        return self.of(self.matrix._select_rows(rows), rows)

    def copy_rows(self, rows: np.ndarray) -> Matrix:
        if self.on_host and not self.sparse:
            return self._copy_by_blocks(rows)
        if not self.distributed:
            return self.take(rows)
        part = self.of(self.matrix.copy_rows(rows), rows)
        return part.with_metadata(self.metadata.of_taken_rows())

    def _copy_by_blocks(self, rows: np.ndarray) -> Matrix:
        """Return some rows as a dense copy, without another of them on the way."""
        entries = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        for part in row_ranges(len(rows), 2**20 // self.shape[1]):
            entries[part] = self.take(rows[part]).rows(slice(None))
        return dense_matrix(entries, self.metadata.of_taken_rows())

    def rescaled(self, factor: float) -> Matrix:
        view = self.of(self.matrix.rescaled(factor), None)
        return view.with_metadata(self.metadata.rescaled(factor))

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
        rows: Tall | None = None,
        columns: AnyArray | None = None,
        *,
        unit: float | None = None,
        sqnorms: Tall | None = None,
    ) -> None:
        unit = matrix.unit if unit is None else unit
        self._units_of_matrix = unit / matrix.unit

        if rows is not None:
            rows = matrix.ops.persist(matrix.cast(matrix.to_device(rows)))
        self.row_scale = rows

        self.columns: AnyArray | None = None
        self._squared_columns: np.ndarray | None = None
        if columns is not None:
            self.columns = matrix.cast(columns)
            self._squared_columns = np.square(to_host(columns), dtype=np.float64)

        super().__init__(matrix, matrix.gaps, unit)

        if sqnorms is not None:
            self.sqnorms = sqnorms

    def of(self, other: Matrix, rows: np.ndarray | None) -> Matrix:
        scale = self.row_scale
        if rows is not None and scale is not None:
            scale = to_host(self.ops.take_rows(scale, rows))

        unit = self._units_of_matrix * other.unit
        return Scaled(other, rows=scale, columns=self.columns, unit=unit)

    def block_change(self) -> BlockChange:
        columns = self.columns
        metadata = self.metadata.of_taken_rows()
        return lambda block, rows: block.multiplied(rows, columns, metadata)

    def __matmul__(self, W: AnyArray) -> Tall:
        W = scale_lines(self.matrix.cast(W), self.columns)
        return scale_lines(self.matrix @ W, self.row_scale)

    def adjoint(self, V: Tall) -> AnyArray:
        V = scale_lines(self.matrix.cast(V), self.row_scale)
        return scale_lines(self.matrix.adjoint(V), self.columns)

    def gram_product(self, W: AnyArray, row_scale: Tall | None = None) -> AnyArray:
        scale = self.row_scale
        if row_scale is not None:
            scale = row_scale if scale is None else scale * row_scale

        W = scale_lines(self.matrix.cast(W), self.columns)
        return scale_lines(self.matrix.gram_product(W, scale), self.columns)

    def row_sqnorms(self, column_weights: np.ndarray | None = None) -> Tall:
        weights = self._squared_columns
        if column_weights is not None:
            weights = column_weights if weights is None else weights * column_weights

        if weights is None:
            sqnorms = self.matrix.sqnorms
        else:
            sqnorms = self.matrix.row_sqnorms(weights)

        if self.row_scale is None:
            return sqnorms
        return self.ops.persist(sqnorms * self.ops.widen(self.row_scale) ** 2)


class EntryView(View):
    """Rows in which each entry is another, so that products are those of blocks."""

    def adjoint(self, V: Tall) -> AnyArray:
        return self.matrix.cast(super().adjoint(V))

    def gram_product(self, W: AnyArray, row_scale: Tall | None = None) -> AnyArray:
        return self.matrix.cast(super().gram_product(W, row_scale))


class Rooted(EntryView):
    """The root of each entry, with the entry's sign.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import Rooted, as_matrix
    >>> Rooted(as_matrix(np.array([[9.0, -4.0], [0.0, 1.0]]))).toarray()
    array([[ 3., -2.],
           [ 0.,  1.]])
    """

    def __init__(self, matrix: Matrix) -> None:
        super().__init__(matrix, matrix.gaps, matrix.unit**0.5)

    def of(self, other: Matrix, rows: np.ndarray | None) -> Matrix:
        return Rooted(other)

    def block_change(self) -> BlockChange:
        metadata = self.metadata.of_taken_rows()
        return lambda block, _: block.rooted().with_metadata(metadata)

    def rescaled(self, factor: float) -> Matrix:
        rescaled = Rooted(self.matrix.rescaled(factor**2))
        return rescaled.with_metadata(self.metadata.rescaled(factor))


class Shifted(EntryView):
    """``X - center``, in the units of the data, never formed."""

    def __init__(self, matrix: Matrix, center: np.ndarray) -> None:
        self.center = center
        super().__init__(matrix, matrix.gaps, matrix.unit)

        self.sparse = False
        self.n_entries = matrix.shape[0] * matrix.shape[1]

    def of(self, other: Matrix, rows: np.ndarray | None) -> Matrix:
        return Shifted(other, self.center)

    def block_change(self) -> BlockChange:
        center = self.center / self.unit
        metadata = self.metadata.of_taken_rows()

        def change(block: Matrix, _: Tall | None) -> Materialized:
            rows = block.rows(slice(None))
            return dense_matrix(rows - block.cast(center), metadata)

        return change


class Stretched(View):
    """``X @ (I + B @ diag(factors - 1) @ B.T)``, never formed.

    The columns of B, few of them, are orthonormal: along each of them rows are
    multiplied by its factor. Cells of a row mix, so that none is missing any more.
    """

    def __init__(self, matrix: Matrix, B: np.ndarray, factors: np.ndarray) -> None:
        self.B = B  # (n_features, n_directions)
        self.factors = factors  # (n_directions,)
        gaps = matrix.gaps and replace(matrix.gaps, matrix=None)
        super().__init__(matrix, gaps, matrix.unit)
        self.sparse = False
        self.n_entries = matrix.shape[0] * matrix.shape[1]

        # Where the data are, in their type.
        self._B = matrix.cast(B)
        self._gains = matrix.cast(factors - 1)

    def of(self, other: Matrix, rows: np.ndarray | None) -> Matrix:
        return Stretched(other, self.B, self.factors)

    def block_change(self) -> BlockChange:
        B = self.B
        factors = self.factors
        metadata = self.metadata.of_taken_rows()

        def change(block: Matrix, _: Tall | None) -> Materialized:
            rows = block.rows(slice(None))
            stretched_rows = Stretched(block, B, factors).stretch(rows.T).T
            return dense_matrix(stretched_rows, metadata)

        return change

    def __matmul__(self, W: AnyArray) -> Tall:
        return self.matrix @ self.stretch(self.matrix.cast(W))

    def adjoint(self, V: Tall) -> AnyArray:
        return self.stretch(self.matrix.adjoint(V))

    def gram_product(self, W: AnyArray, row_scale: Tall | None = None) -> AnyArray:
        W = self.stretch(self.matrix.cast(W))
        return self.stretch(self.matrix.gram_product(W, row_scale))

    def stretch(self, W: AnyArray) -> AnyArray:
        """Return ``W + B @ diag(factors - 1) @ B.T @ W``."""
        return W + self._B @ scale_lines(self._B.T @ W, self._gains)

    def row_sqnorms(self, column_weights: np.ndarray | None = None) -> Tall:
        if column_weights is not None:
            return super().row_sqnorms(column_weights)

        # Along column j of B, a row gains (factors[j]**2 - 1) times its square there.
        along_B = self.ops.widen(self.matrix @ self._B)  # (n_samples, n_directions)
        gains = self.ops.cast_like(self.factors**2 - 1, along_B)
        sqnorms = self.matrix.sqnorms + (along_B**2) @ gains
        return self.ops.persist(self.ops.clip(sqnorms, 0.0, None))


class CellView(View):
    """Rows in which some cells are others, as each block of rows says itself."""

    def __init__(self, matrix: Matrix) -> None:
        super().__init__(matrix, matrix.gaps, matrix.unit)

    def rescaled(self, factor: float) -> Matrix:
        # In memory: what is filled in is in the unit of the data.
        return Matrix.rescaled(self, factor)


class Filled(CellView):
    """Rows with their missing cells filled in, by zeros without a ``fill``.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import Filled, as_matrix
    >>> Filled(as_matrix(np.array([[3.0, np.nan], [0.0, 2.0]]))).toarray()
    array([[3., 0.],
           [0., 2.]])
    """

    def __init__(self, matrix: Matrix, fill: CellChange | None = None) -> None:
        self.fill = fill
        super().__init__(matrix)

    def of(self, other: Matrix, rows: np.ndarray | None) -> Matrix:
        return Filled(other, self.fill)

    def block_change(self) -> BlockChange:
        fill = self.fill
        metadata = self.metadata.of_taken_rows()
        return lambda block, _: block.filled(fill).with_metadata(metadata)


class Marked(CellView):
    """Rows with NaN where ``mark`` puts it among stored entries."""

    def __init__(self, matrix: Matrix, mark: CellChange) -> None:
        self.mark = mark
        super().__init__(matrix)

    def of(self, other: Matrix, rows: np.ndarray | None) -> Matrix:
        return Marked(other, self.mark)

    def block_change(self) -> BlockChange:
        mark = self.mark
        metadata = self.metadata.of_taken_rows()
        return lambda block, _: block.with_gaps(mark).with_metadata(metadata)


class MissingIndicator(CellView):
    """1 where a cell is missing and 0 elsewhere."""

    def of(self, other: Matrix, rows: np.ndarray | None) -> Matrix:
        return MissingIndicator(other)

    def block_change(self) -> BlockChange:
        return lambda block, _: block.missing()


def filled(
    X: Matrix, fill: CellChange | None = None, draw: Draw | None = None
) -> Matrix:
    """Return the matrix with its missing cells filled, by zeros if nothing is given.

    Data in memory become a copy. All else is filled anew whenever it is read. With
    ``draw``, which fills a matrix by what a seed draws, the result knows its gaps.
    """
    complete = Filled(X, fill) if X.streamed else X.filled(fill)
    if draw is None:
        return complete

    def redraw(seed: int, rows: np.ndarray | None) -> Matrix:
        return draw(X if rows is None else X.take(rows), seed)

    gaps = Gaps(matrix=X, redraw=redraw)
    return complete.with_metadata(replace(complete.metadata, gaps=gaps))


def rooted(X: Matrix) -> Matrix:
    """Return the root of each entry, with the entry's sign.

    Small data in memory become a copy. All else is rooted whenever it is read.
    """
    is_small = isinstance(X, Materialized) and X.n_entries <= max(
        2**22, X.min_range_entries
    )
    if not is_small:
        return Rooted(X)
    assert isinstance(X, Materialized)
    return X.rooted() if X.gaps is None else Rooted(X)


def with_gaps(X: Matrix, mark: CellChange) -> Matrix:
    """Return the matrix with NaN where ``mark`` puts it among stored entries."""
    return Marked(X, mark) if X.streamed else X.with_gaps(mark)
