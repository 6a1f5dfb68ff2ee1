"""What is asked of the data: the protocol that every kind of matrix follows."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter, iadd
from typing import Any, Self, TypeVar

import numpy as np

from ihgmm.matrix.ops import HOST, Ops, Tall, to_host
from ihgmm.matrix.threads import row_ranges

T = TypeVar("T")
Index = np.ndarray | slice
Work = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Gaps:
    """Rows whose missing cells were filled in: as they were, and how to draw anew."""

    # The rows with their missing cells; None of a view that mixes cells of a row.
    matrix: Matrix | None
    # Returns the rows, all or those at some positions, with cells that a seed draws.
    redraw: Callable[[int, np.ndarray | None], Matrix]

    def through(self, view: Callable[[Matrix, np.ndarray | None], Matrix]) -> Gaps:
        """Return the gaps of a view, which takes a matrix of all or of some rows."""
        matrix = None if self.matrix is None else view(self.matrix, None)
        return Gaps(matrix, lambda seed, rows: view(self.redraw(seed, rows), rows))


@dataclass(frozen=True, eq=False)
class About:
    """What belongs to the rows and columns of a matrix, and every view passes on."""

    # What the entries were divided by because their squares would have overflowed or
    # vanished: a power of two, 1 for all ordinary data.
    unit: float = 1.0
    weights: Tall | None = None  # how much rows count, 1 on average; None: all alike
    gaps: Gaps | None = None  # None where no cell was filled in
    names: list[str] | None = None  # of features, where the data have names

    def of_taken_rows(self) -> About:
        """Return what belongs to rows that are taken: they count alike."""
        return About(self.unit, names=self.names)

    def rescaled(self, factor: float) -> About:
        """Return what belongs to ``factor * X``."""
        gaps = self.gaps and self.gaps.through(lambda X, _: X.rescaled(factor))
        return replace(self, unit=self.unit / factor, gaps=gaps)


NOTHING = About()


class _FrozenAfterInit(ABCMeta):
    """Makes classes whose objects do not change once they are made."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        made = super().__call__(*args, **options)
        vars(made)["_frozen"] = True
        return made


class Matrix(metaclass=_FrozenAfterInit):
    """The data: n samples by p features, immutable, in any kind of array.

    A new kind needs one method: ``X.take(rows)``. All other answers follow from blocks
    of rows; a kind that knows a faster way overrides them.

    Parameters
    ----------
    shape : tuple of int
        Number of samples and of features.
    dtype : numpy.dtype
        Type of entries and of every product: float32 or float64.
    about : About
        What belongs to rows and columns: unit, weights, gaps, names.
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
    about: About
    unit = property(attrgetter("about.unit"))
    weights = property(attrgetter("about.weights"))
    names = property(attrgetter("about.names"))
    gaps = property(attrgetter("about.gaps"))
    row_scale: Tall | None = None  # what rows of other data were multiplied by
    sparse: bool = False  # zeros are not stored, so that signs and residuals skip them
    on_host: bool = True  # entries are in the memory of the host
    # Entries are read anew for every product, so that two products from one reading
    # cost half of two readings.
    streamed: bool = False
    distributed: bool = False  # blocks of rows are on workers, and stay there
    least_range: int = 1  # entries of a range: a device does best with many

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: Any,
        about: About = NOTHING,
        ops: Ops = HOST,
    ) -> None:
        vars(self).update(shape=shape, dtype=np.dtype(dtype), about=about, ops=ops)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_frozen" in vars(self):
            raise AttributeError(
                f"A matrix does not change: {name} cannot be set. Make another one."
            )
        super().__setattr__(name, value)

    def _but(self, **changes: Any) -> Self:
        """Return a copy with other attributes."""
        other = copy(self)
        vars(other).update(changes)
        return other

    def with_about(self, about: About) -> Self:
        """Return the same entries with other things that belong to their rows."""
        return self._but(about=about)

    @property
    def incomplete(self) -> Matrix | None:
        """The rows with their missing cells, where some were filled in."""
        return self.gaps and self.gaps.matrix

    def weighted(self, weights: Tall | None) -> Self:
        """Return the matrix with weights of rows, brought to a mean of 1."""
        if weights is not None:
            weights = self.to_device(weights)
            weights = self.ops.persist(weights / self.ops.xp.mean(weights))
        return self.with_about(replace(self.about, weights=weights))

    def named(self, names: list[str]) -> Self:
        """Return the matrix with names of its features."""
        return self.with_about(replace(self.about, names=names))

    @abstractmethod
    def take(self, rows: Index) -> Matrix:
        """Return some rows as a matrix in memory, or on the device of the data."""

    def __matmul__(self, W: Any) -> Tall:
        """Return ``X @ W``, W of shape (n_features, m), where the data are."""
        return self.sweep(ask("__matmul__", self.cast(W), of="lines"))[0][0]

    def adjoint(self, V: Any) -> Tall:
        """Return ``X.T @ V``, V of shape (n_samples, m), where the data are."""
        return self.sweep(ask("adjoint", of="sums"), self.cast(V))[1][0]

    def gram_product(self, W: Any, row_scale: Tall | None = None) -> Tall:
        """Return ``A.T @ (A @ W)`` from one reading, A being X with scaled rows."""
        return self.sweep(ask("gram_product", self.cast(W), of="sums"), row_scale)[1][0]

    @cached_property
    def n_entries(self) -> int:
        """How many numbers are stored."""
        return self.shape[0] * self.shape[1]

    @cached_property
    def row_blocks(self) -> list[slice]:
        """The rows of each block that :meth:`map` goes through."""
        n, n_entries = self.shape[0], max(2**22, self.least_range)
        return row_ranges(n, n_entries * n // max(self.n_entries, 1))

    def map(self, work: Callable[..., T], *tall: Tall | None) -> Iterator[T]:
        """Yield the results of some work on each block of rows, in order.

        The work gets the block, as a matrix in memory or on a device, and of each tall
        array the part that belongs to the rows of the block.
        """
        for rows in self.row_blocks:
            yield work(self.take(rows), *parts_of(tall, rows))

    def sweep(
        self, work: Callable[..., tuple[tuple[Tall, ...], tuple[Any, ...]]], *tall: Any
    ) -> tuple[tuple[Tall, ...], tuple[np.ndarray, ...]]:
        """Go through the rows once; return lines for each row, and sums over rows.

        The work gets a block as in :meth:`map` and returns two tuples of arrays: those
        with a line for each row, which stay where the data are, and those that are
        added up over blocks and come to the host.
        """
        parts: list[tuple[Tall, ...]] = []
        totals: tuple[Any, ...] = ()
        for result in self.map(work, *tall):
            parts.append(result[0])
            totals = tuple(map(iadd, totals, result[1])) if totals else result[1]
        lines = zip(*parts, strict=True)
        return tuple(map(self.ops.stack, lines)), tuple(map(self.ops.to_host, totals))

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
        return self.sweep(ask("row_sqnorms", column_weights, of="lines"))[0][0]

    def column_sqnorms(self) -> np.ndarray:
        """Return the squared Euclidean norm of each column, float64."""
        return self.sweep(ask("column_sqnorms", of="sums"))[1][0]

    def max_abs(self) -> float:
        """Return the largest absolute entry."""
        return max(self.map(ask("max_abs")))

    def most_negative(self) -> float:
        """Return the smallest entry, or 0 where none is negative."""
        return min(self.map(ask("most_negative")))

    def not_finite(self) -> tuple[int, int, int, float]:
        """Return how many entries are not finite; row, column, value of the first."""
        first, total = (-1, -1, 0.0), 0
        answers = self.map(ask("not_finite"))
        for rows, (count, row, *place) in zip(self.row_blocks, answers, strict=True):
            if count and not total:
                first = (rows.start + row, *place)
            total += count
        return total, *first

    def dense_ranges(self, n_entries: int = 2**22) -> list[slice]:
        """Cut the rows into ranges of about so many entries once they are dense."""
        n_entries = max(n_entries, self.least_range)
        return row_ranges(self.shape[0], n_entries // self.shape[1])

    def rows(self, rows: Index) -> Tall:
        """Return some rows as a dense array, where tall arrays are."""
        return self.take(rows).rows(slice(None))

    def toarray(self) -> np.ndarray:
        """Return all entries as a dense array on the host; for few rows only."""
        return to_host(self.rows(slice(0, self.shape[0])))

    def to_memory(self) -> Matrix:
        """Return the matrix in the memory of the host."""
        rows = self.take(slice(0, self.shape[0])).to_memory()
        return rows.with_about(self.about.of_taken_rows())

    def keep_rows(self, rows: np.ndarray) -> Matrix:
        """Return some rows, in increasing order, with what belongs to them."""
        some, gaps = self._kept(rows), self.gaps
        if self.streamed and "sqnorms" in vars(self):  # what is known is not read again
            norms = to_host(self.ops.take_rows(self.sqnorms, rows))
            some = some._but(sqnorms=some.to_device(norms))
        if gaps is not None:
            redraw = gaps.redraw
            gaps = Gaps(
                gaps.matrix and gaps.matrix.keep_rows(rows),
                lambda seed, at: redraw(seed, rows if at is None else rows[at]),
            )
        kept = None if self.weights is None else self.ops.take_rows(self.weights, rows)
        return some.with_about(replace(self.about, gaps=gaps)).weighted(kept)

    def _kept(self, rows: np.ndarray) -> Matrix:
        """Return some rows, in increasing order, not copied where not in memory."""
        return self.take(rows)

    def drawn(self, rows: np.ndarray) -> Matrix:
        """Return some rows, in order, to be used often: a copy here or on workers."""
        return self.take(rows)

    def to_device(self, values: Any) -> Tall:
        """Return an array, with a line for each row, where the data are."""
        return to_host(values)

    def cast(self, values: Any) -> Tall:
        """Return an array where the data are, in the type of the data."""
        return np.asarray(to_host(values), dtype=self.dtype)

    def rescaled(self, factor: float) -> Matrix:
        """Return ``factor * X`` in another unit, also if squares of X overflow."""
        return self.to_memory().rescaled(factor).with_about(self.about.rescaled(factor))

    def restore_squares(self, values: np.ndarray) -> np.ndarray:
        """Put values in squared units back; ``inf`` where that overflows."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(values * self.unit * self.unit)

    def map_rows(self, work: Work, dtype: Any, *, whole: bool = False) -> Any:
        """Return one figure for each row, or ``whole`` rows, made by work on rows."""
        return work(self)

    def filled(self, fill: Callable[[Tall], Tall] | None = None) -> Matrix:
        """Return rows with NaN filled in, in memory; by zeros without a ``fill``."""
        return self.take(slice(0, self.shape[0])).filled(fill)

    def with_gaps(self, mark: Callable[[Tall], Tall]) -> Matrix:
        """Return rows with NaN where ``mark`` puts it, in memory."""
        return self.filled(mark)

    def missing(self) -> Matrix:
        """Return 1 where a cell is missing and 0 elsewhere, in memory."""
        return self.take(slice(0, self.shape[0])).missing()

    def threads(self) -> AbstractContextManager[Any]:
        """Return a context in which products with this matrix run best."""
        return nullcontext()


def ask(question: str, *given: Any, of: str = "answer") -> Callable[..., Any]:
    """Return the work of asking a block of rows; in a sweep, for "lines" or "sums"."""

    def work(block: Matrix, *tall: Tall) -> Any:
        answer = getattr(block, question)(*given, *tall)
        if of == "lines":
            return (answer,), ()
        return ((), (answer,)) if of == "sums" else answer

    return work


def parts_of(tall: tuple[Tall | None, ...], rows: slice) -> list[Tall | None]:
    """Return what belongs to some rows of each tall array; None of None."""
    return [None if array is None else array[rows, ...] for array in tall]


def float_type(dtype: Any) -> np.dtype:
    """Return float32 or float64, what numbers of some type are converted to."""
    kind = np.dtype(dtype)
    if kind.kind not in "fiub":
        raise ValueError(
            f"X holds entries of type {kind}, not real numbers; store it as float32 "
            "or float64."
        )
    return kind if kind in (np.float32, np.float64) else np.dtype(np.float64)


def times_lines(block: Tall, factors: Tall | None) -> Tall:
    """Return a block of vectors, or one, whose lines are multiplied by factors."""
    if factors is None:
        return block
    return block * (factors if block.ndim == 1 else factors[:, None])
