"""What is asked of the data: the protocol that every kind of matrix follows."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter, iadd
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np

from ihgmm.matrix.arrays import AnyArray, Tall, to_host
from ihgmm.matrix.host_ops import HOST
from ihgmm.matrix.ops import Ops
from ihgmm.matrix.threads import row_ranges

if TYPE_CHECKING:
    from ihgmm.matrix.materialized import Materialized
    from ihgmm.matrix.memory import InMemory

T = TypeVar("T")
Index = np.ndarray | slice

CellChange = Callable[[Tall], Tall]
"""What fills cells in, or puts NaN there: takes dense rows, and returns the changed."""

Lines = tuple[Tall, ...]
"""Arrays with a line for each row of a block, or of all blocks."""

Sums = tuple[AnyArray, ...]
"""Arrays that are added up over blocks."""


@dataclass(frozen=True, eq=False)
class Gaps:
    """The missing cells of rows in which they were filled in."""

    #: The rows before cells were filled in; None of a view that mixes cells of a row.
    matrix: Matrix | None
    #: Takes a seed, and positions of rows or None for all; returns these rows with
    #: missing cells drawn anew.
    redraw: Callable[[int, np.ndarray | None], Matrix]

    def through(self, view: Callable[[Matrix, np.ndarray | None], Matrix]) -> Gaps:
        """Return the gaps of a view, which takes a matrix of all or of some rows."""

        def redraw(seed: int, rows: np.ndarray | None) -> Matrix:
            return view(self.redraw(seed, rows), rows)

        matrix = None if self.matrix is None else view(self.matrix, None)
        return Gaps(matrix=matrix, redraw=redraw)

    def keep_rows(self, rows: np.ndarray) -> Gaps:
        """Return the gaps of some rows, which are in increasing order."""

        def redraw(seed: int, positions: np.ndarray | None) -> Matrix:
            return self.redraw(seed, rows if positions is None else rows[positions])

        matrix = None if self.matrix is None else self.matrix.keep_rows(rows)
        return Gaps(matrix=matrix, redraw=redraw)


@dataclass(frozen=True, eq=False)
class Metadata:
    """What belongs to the rows and columns of a matrix, and every view passes on."""

    #: What the entries were divided by because their squares would have overflowed or
    #: vanished: a power of two, 1 for all ordinary data.
    unit: float = 1.0
    weights: Tall | None = None  #: how much rows count, 1 on average; None: all alike
    gaps: Gaps | None = None  #: None where no cell was filled in
    names: list[str] | None = None  #: of features, where the data have names
    signed: bool = False  #: whether opposite rows are of one kind

    def of_taken_rows(self) -> Metadata:
        """Return what belongs to rows that are taken: they count alike."""
        return Metadata(unit=self.unit, names=self.names, signed=self.signed)

    def rescaled(self, factor: float) -> Metadata:
        """Return what belongs to ``factor * X``."""
        gaps = self.gaps and self.gaps.through(lambda X, _: X.rescaled(factor))
        return replace(self, unit=self.unit / factor, gaps=gaps)

    def rooted(self) -> Metadata:
        """Return what belongs to the roots of entries."""
        return replace(self, unit=self.unit**0.5)


NO_METADATA = Metadata()


class NonFinite(NamedTuple):
    """How many entries are not finite, and where the first of them is."""

    n_entries: int
    row: int = -1
    column: int = -1
    value: float = 0.0


class _FrozenAfterInit(ABCMeta):
    """Makes classes whose objects do not change once they are made."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        instance = super().__call__(*args, **options)
        vars(instance)["_frozen"] = True
        return instance


class Matrix(metaclass=_FrozenAfterInit):
    """The data: n samples by p features, immutable, in any kind of array.

    A new kind needs one method: ``X.take(rows)``, whose rows have the metadata
    ``X.metadata.of_taken_rows()``. All other answers follow from blocks of rows; a kind
    that knows a faster way overrides them.

    Parameters
    ----------
    shape : tuple of int
        Number of samples and of features.
    dtype : numpy.dtype
        Type of entries and of every product: float32 or float64.
    metadata : Metadata
        What belongs to rows and columns: unit, weights, gaps, names, signed.
    ops : Ops
        What can be done with tall arrays of this kind.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import Matrix, as_matrix
    >>> X = as_matrix(np.array([[3.0, 4.0], [0.0, 2.0]]))
    >>> isinstance(X, Matrix), X.shape
    (True, (2, 2))
    >>> X.adjoint(np.ones((2, 1))).ravel()
    array([3., 6.])
    """

    shape: tuple[int, int]
    dtype: np.dtype
    ops: Ops
    metadata: Metadata

    # They are asked for often, and attrgetter takes no call of Python.
    unit = property(attrgetter("metadata.unit"))
    weights = property(attrgetter("metadata.weights"))
    names = property(attrgetter("metadata.names"))
    gaps = property(attrgetter("metadata.gaps"))
    signed = property(attrgetter("metadata.signed"))

    row_scale: Tall | None = None  # what rows of other data were multiplied by
    sparse: bool = False  # zeros are not stored, so that signs and residuals skip them
    on_host: bool = True  # entries are in the memory of the host
    # Entries are read anew for every product, so that two products from one reading
    # cost half of two readings.
    streamed: bool = False
    distributed: bool = False  # blocks of rows are on workers, and stay there
    min_range_entries: int = 1  # entries of a range: a device does best with many

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: Any,
        metadata: Metadata = NO_METADATA,
        ops: Ops = HOST,
    ) -> None:
        # At once, since each assignment would be a call of __setattr__.
        vars(self).update(
            shape=shape, dtype=np.dtype(dtype), metadata=metadata, ops=ops
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if "_frozen" in vars(self):
            raise AttributeError(
                f"A matrix does not change: {name} cannot be set. Make another one."
            )
        super().__setattr__(name, value)

    def _replaced(self, **changes: Any) -> Self:
        """Return a copy with other attributes."""
        other = copy(self)
        vars(other).update(changes)
        return other

    # What belongs to rows and columns.

    def with_metadata(self, metadata: Metadata) -> Self:
        """Return the same entries with other things that belong to their rows."""
        return self._replaced(metadata=metadata)

    @property
    def incomplete(self) -> Matrix | None:
        """The rows with their missing cells, where some were filled in."""
        return self.gaps and self.gaps.matrix

    def weighted(self, weights: Tall | None) -> Self:
        """Return the matrix with weights of rows, brought to a mean of 1."""
        if weights is not None:
            weights = self.to_device(weights)
            weights = self.ops.persist(weights / self.ops.xp.mean(weights))
        return self.with_metadata(replace(self.metadata, weights=weights))

    def named(self, names: list[str]) -> Self:
        """Return the matrix with names of its features."""
        return self.with_metadata(replace(self.metadata, names=names))

    def with_signed(self, signed: bool) -> Self:
        """Return the matrix with word of whether opposite rows are of one kind."""
        if self.signed == signed:
            return self
        return self.with_metadata(replace(self.metadata, signed=signed))

    # Some of the rows.

    @abstractmethod
    def take(self, rows: Index) -> Materialized:
        """Return some rows as a matrix in memory, or on the device of the data."""

    def rows(self, rows: Index) -> Tall:
        """Return some rows as a dense array, where tall arrays are."""
        return self.take(rows).rows(slice(None))

    def keep_rows(self, rows: np.ndarray) -> Matrix:
        """Return some rows, in increasing order, with what belongs to them."""
        part = self._select_rows(rows)
        if self.streamed and "sqnorms" in vars(self):  # known: they are not read again
            sqnorms = to_host(self.ops.take_rows(self.sqnorms, rows))
            part = part._replaced(sqnorms=part.to_device(sqnorms))

        gaps = None if self.gaps is None else self.gaps.keep_rows(rows)
        part = part.with_metadata(replace(self.metadata, gaps=gaps))

        if self.weights is None:
            return part
        return part.weighted(self.ops.take_rows(self.weights, rows))

    def _select_rows(self, rows: np.ndarray) -> Matrix:
        """Return some rows, in increasing order, not copied where not in memory."""
        return self.take(rows)

    def copy_rows(self, rows: np.ndarray) -> Matrix:
        """Return some rows, in order, to be used often: a copy here or on workers."""
        return self.take(rows)

    # Products.

    def __matmul__(self, W: AnyArray) -> Tall:
        """Return ``X @ W``, W of shape (n_features, m), where the data are."""
        W = self.cast(W)
        return self.collect_lines(lambda block: block @ W)

    def adjoint(self, V: Tall) -> AnyArray:
        """Return ``X.T @ V``, V of shape (n_samples, m), where the data are."""
        return self.sum_blocks(lambda block, lines: block.adjoint(lines), self.cast(V))

    def gram_product(self, W: AnyArray, row_scale: Tall | None = None) -> AnyArray:
        """Return ``A.T @ (A @ W)`` from one reading, A being X with scaled rows."""
        W = self.cast(W)
        return self.sum_blocks(
            lambda block, scale: block.gram_product(W, scale), row_scale
        )

    # Work on blocks of rows.

    @cached_property
    def n_entries(self) -> int:
        """How many numbers are stored."""
        return self.shape[0] * self.shape[1]

    @cached_property
    def row_blocks(self) -> list[slice]:
        """The rows of each block that :meth:`map` goes through."""
        n = self.shape[0]
        n_entries = max(2**22, self.min_range_entries)
        return row_ranges(n, n_entries * n // max(self.n_entries, 1))

    def dense_ranges(self, n_entries: int = 2**22) -> list[slice]:
        """Cut the rows into ranges of about so many entries once they are dense."""
        n_entries = max(n_entries, self.min_range_entries)
        return row_ranges(self.shape[0], n_entries // self.shape[1])

    def map(self, work: Callable[..., T], *tall: Tall | None) -> Iterator[T]:
        """Yield the results of some work on each block of rows, in order.

        The work gets the block, as a matrix in memory or on a device, and of each tall
        array the part that belongs to the rows of the block.
        """
        for rows in self.row_blocks:
            yield work(self.take(rows), *parts_of(tall, rows))

    def sweep(
        self, work: Callable[..., tuple[Lines, Sums]], *tall: Tall | None
    ) -> tuple[Lines, tuple[np.ndarray, ...]]:
        """Go through the rows once; return lines for each row, and sums over rows.

        The work gets a block as in :meth:`map` and returns two tuples of arrays: those
        with a line for each row, which stay where the data are, and those that are
        added up over blocks and come to the host.
        """
        lines_of_blocks: list[Lines] = []
        totals: Sums = ()
        for lines, sums in self.map(work, *tall):
            lines_of_blocks.append(lines)
            # In place, into the sums of the first block.
            totals = tuple(map(iadd, totals, sums)) if totals else sums

        parts = zip(*lines_of_blocks, strict=True)
        return tuple(map(self.ops.stack, parts)), tuple(map(self.ops.to_host, totals))

    def collect_lines(self, work: Callable[..., Tall], *tall: Tall | None) -> Tall:
        """Go through the rows once; return the lines that work makes of each row."""

        def make_lines(block: Matrix, *parts: Tall) -> tuple[Lines, Sums]:
            return (work(block, *parts),), ()

        (lines,), _ = self.sweep(make_lines, *tall)
        return lines

    def sum_blocks(
        self, work: Callable[..., AnyArray], *tall: Tall | None
    ) -> np.ndarray:
        """Go through the rows once; return the sum of what work makes of each block."""

        def make_sum(block: Matrix, *parts: Tall) -> tuple[Lines, Sums]:
            return (), (work(block, *parts),)

        _, (total,) = self.sweep(make_sum, *tall)
        return total

    def map_rows(
        self, work: Callable[[Any], Tall], dtype: Any, *, whole: bool = False
    ) -> Tall:
        """Return what work makes of the rows: a number for each, or ``whole`` rows.

        Where blocks are on workers the work is done on each of them, when its results,
        of type ``dtype``, are asked for.
        """
        return work(self)

    # Norms and single entries.

    @cached_property
    def sqnorms(self) -> Tall:
        """Squared norm of each row, float64; NaN or ``inf`` where entries are."""
        return self.row_sqnorms()

    @property
    def is_nonzero_row(self) -> Tall:
        """Which rows are not zero: others show no pattern."""
        return self.sqnorms > 0

    def row_sqnorms(self, column_weights: np.ndarray | None = None) -> Tall:
        """Return the sum of squares of each row, each column with a weight."""
        return self.collect_lines(lambda block: block.row_sqnorms(column_weights))

    def column_sqnorms(self) -> np.ndarray:
        """Return the squared Euclidean norm of each column, float64."""
        return self.sum_blocks(lambda block: block.column_sqnorms())

    def max_abs(self) -> float:
        """Return the largest absolute entry."""
        return max(self.map(lambda block: block.max_abs()))

    def most_negative(self) -> float:
        """Return the smallest entry, or 0 where none is negative."""
        return min(self.map(lambda block: block.most_negative()))

    def not_finite(self) -> NonFinite:
        """Return how many entries are not finite, and where the first of them is."""
        first = NonFinite(n_entries=0)
        n_entries = 0

        answers = self.map(lambda block: block.not_finite())
        for rows, answer in zip(self.row_blocks, answers, strict=True):
            if answer.n_entries and not n_entries:
                first = answer._replace(row=rows.start + answer.row)
            n_entries += answer.n_entries

        return first._replace(n_entries=n_entries)

    # Where the data are, and in which unit.

    def toarray(self) -> np.ndarray:
        """Return all entries as a dense array on the host; for few rows only."""
        return to_host(self.rows(slice(0, self.shape[0])))

    def to_memory(self) -> InMemory:
        """Return the matrix in the memory of the host."""
        rows = self.take(slice(0, self.shape[0])).to_memory()
        return rows.with_metadata(self.metadata.of_taken_rows())

    def to_device(self, values: AnyArray) -> Tall:
        """Return an array, with a line for each row, where the data are."""
        return to_host(values)

    def cast(self, values: AnyArray) -> AnyArray:
        """Return an array where the data are, in the type of the data."""
        return np.asarray(to_host(values), dtype=self.dtype)

    def rescaled(self, factor: float) -> Matrix:
        """Return ``factor * X`` in another unit, also if squares of X overflow."""
        rows = self.to_memory().rescaled(factor)
        return rows.with_metadata(self.metadata.rescaled(factor))

    def restore_squares(self, values: np.ndarray) -> np.ndarray:
        """Put values in squared units back; ``inf`` where that overflows."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(values * self.unit * self.unit)

    def threads(self) -> AbstractContextManager[None]:
        """Return a context in which products with this matrix run best."""
        return nullcontext()

    # Missing cells, which are NaN.

    def filled(self, fill: CellChange | None = None) -> Materialized:
        """Return rows with NaN filled in, in memory; by zeros without a ``fill``."""
        return self.take(slice(0, self.shape[0])).filled(fill)

    def with_gaps(self, mark: CellChange) -> Materialized:
        """Return rows with NaN where ``mark`` puts it, in memory."""
        return self.filled(mark)

    def missing(self) -> Materialized:
        """Return 1 where a cell is missing and 0 elsewhere, in memory."""
        return self.take(slice(0, self.shape[0])).missing()


def parts_of(tall: tuple[Tall | None, ...], rows: slice) -> list[Tall | None]:
    """Return what belongs to some rows of each tall array; None of None."""
    return [None if array is None else array[rows, ...] for array in tall]


def float_type(dtype: Any) -> np.dtype:
    """Return float32 or float64, what numbers of some type are converted to."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "fiub":
        raise ValueError(
            f"X holds entries of type {dtype}, not real numbers; store it as float32 "
            "or float64."
        )

    is_supported = dtype in (np.float32, np.float64)
    return dtype if is_supported else np.dtype(np.float64)


def scale_lines(block: AnyArray, factors: AnyArray | None) -> AnyArray:
    """Return a block of vectors, or one, whose lines are multiplied by factors."""
    if factors is None:
        return block
    return block * (factors if block.ndim == 1 else factors[:, None])
