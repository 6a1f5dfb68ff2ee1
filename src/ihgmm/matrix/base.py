"""What is asked of the data: the protocol that every kind of matrix follows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from ihgmm.matrix.tall import Tall, namespace, to_host

T = TypeVar("T")
Index = np.ndarray | slice


class Matrix(ABC):
    """The data: n samples by p features, immutable, in any kind of array.

    A new kind needs ``shape``, ``dtype`` and three methods: ``X @ W``, ``X.adjoint(V)``
    and ``X.take(rows)``. All other answers follow from these; a kind that knows a
    faster way overrides them. The dtype is float32 or float64.

    Attributes
    ----------
    shape : tuple of int
        (n_samples, n_features).
    dtype : numpy.dtype
        The type of the entries and of every product.
    names : list of str or None
        Names of features, where the data have names.
    unit : float
        What the entries were divided by because their squares would have overflowed or
        vanished: a power of two, 1 for all ordinary data.
    row_scale : array of shape (n_samples,) or None
        What rows of other data were multiplied by to give these; None for nothing.
    streamed : bool
        Whether the entries are read anew for every product. Then two products from one
        reading cost half of two readings.
    on_host : bool
        Whether the entries are in the memory of the host.
    passes : int
        How often a streamed matrix has been read so far.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    names: list[str] | None = None
    unit: float = 1.0
    row_scale: Tall | None = None
    streamed: bool = False
    on_host: bool = True
    passes: int = 0
    verbose: bool = False

    @abstractmethod
    def __matmul__(self, W: Any) -> Tall:
        """Return ``X @ W``, W of shape (n_features, m), where the data is."""

    @abstractmethod
    def adjoint(self, V: Any) -> Tall:
        """Return ``X.T @ V``, V of shape (n_samples, m), where the data is."""

    @abstractmethod
    def take(self, rows: Index) -> Matrix:
        """Return some rows as a matrix in memory, or on the device of the data."""

    def product_and_adjoint(
        self, W: Any, minus: Tall | None = None, row_scale: Tall | None = None
    ) -> tuple[Tall, Tall]:
        """Return ``Y = A @ W - minus`` and ``A.T @ Y``, A being X with scaled rows."""
        Y = self @ W
        if row_scale is not None:
            Y *= row_scale[:, None]
        if minus is not None:
            Y -= minus
        return Y, self.adjoint(Y if row_scale is None else Y * row_scale[:, None])

    @property
    def description(self) -> str:
        """What to call the data in a sentence."""
        return f"a {type(self).__name__} matrix"

    @property
    def n_entries(self) -> int:
        """How many numbers are stored."""
        return self.shape[0] * self.shape[1]

    @property
    def has_gaps(self) -> bool:
        """Whether zeros are left out, so that signs and residuals skip them."""
        return False

    @cached_property
    def sqnorms(self) -> Tall:
        """Squared Euclidean norm of each row, float64, where the data is.

        Overflow gives ``inf`` and underflow 0, silently. A row with a NaN or an
        infinity gives NaN or ``inf``: one pass also shows whether the data is finite.
        """
        return self.row_sqnorms()

    def row_sqnorms(self, column_weights: np.ndarray | None = None) -> Tall:
        """Return the sum of squares of each row, each column with a weight."""
        parts = [self.take(rows).row_sqnorms(column_weights) for rows in self.ranges()]
        return namespace(parts[0]).concat(parts)

    def column_sqnorms(self) -> np.ndarray:
        """Return the squared Euclidean norm of each column, float64."""
        return sum_of(self.take(rows).column_sqnorms() for rows in self.ranges())

    def max_abs(self) -> float:
        """Return the largest absolute entry."""
        return max(self.take(rows).max_abs() for rows in self.ranges())

    def not_finite(self) -> tuple[int, int, int, float]:
        """Return how many entries are not finite; row, column, value of the first."""
        return first_of(
            [self.take(rows).not_finite() for rows in self.ranges()], self.ranges()
        )

    def ranges(self, n_entries: int = 2**22) -> list[slice]:
        """Cut the rows into ranges of about so many entries."""
        n = self.shape[0]
        return row_ranges(n, n_entries * n // max(self.n_entries, 1))

    def dense_ranges(self, n_entries: int = 2**22) -> list[slice]:
        """Cut the rows into ranges of about so many entries once they are dense."""
        return row_ranges(self.shape[0], n_entries // self.shape[1])

    def rows(self, rows: Index) -> Tall:
        """Return some rows as a dense array, where tall arrays are."""
        return self.take(rows).rows(slice(None))

    def toarray(self) -> np.ndarray:
        """Return all entries as a dense array on the host; for few rows only."""
        return to_host(self.rows(slice(0, self.shape[0])))

    def to_memory(self) -> Matrix:
        """Return the matrix in the memory of the host."""
        return self.take(slice(0, self.shape[0]))

    def by_rows(self) -> Matrix:
        """Return the matrix in an order of storage that makes it quick to take rows."""
        return self

    def to_device(self, values: Any) -> Tall:
        """Return an array where the data is, its type unchanged."""
        return to_host(values)

    def cast(self, values: Any) -> Tall:
        """Return an array where the data is, in the type of the data."""
        return to_host(values).astype(self.dtype, copy=False)

    def rescaled(self, factor: float) -> Matrix:
        """Return ``factor * X``, whose ``unit`` is ``1 / factor``.

        Other than a scaled matrix, this also serves entries whose squares overflow.
        """
        return self.to_memory().rescaled(factor)

    def restore_squares(self, values: np.ndarray) -> np.ndarray:
        """Put values in squared units back; ``inf`` where that overflows."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(values * self.unit * self.unit)

    def per_row(self, values: Tall) -> Any:
        """Return one figure for each row as users of this kind of data expect it."""
        return values

    def map_rows(self, work: Callable[[Any], Any], dtype: Any) -> Any:
        """Return one figure for each row, made by some work on whole rows."""
        return work(self)

    def threads(self) -> AbstractContextManager[Any]:
        """Return a context in which products with this matrix run best."""
        return nullcontext()


class Blocks(Matrix):
    """Rows that are not in memory: they are read, or worked on elsewhere, in blocks.

    A kind needs ``shape``, ``dtype``, ``row_blocks``, :meth:`map` and :meth:`take`.

    Attributes
    ----------
    row_blocks : list of slice
        The rows of each block.
    factor : float
        What entries are multiplied by when they are read.
    """

    row_blocks: list[slice]
    streamed = True
    on_host = False
    factor: float = 1.0

    @abstractmethod
    def map(self, work: Callable[..., T], *tall: np.ndarray) -> Iterator[T]:
        """Yield the results of some work on each block, in order.

        The work gets the block, as a matrix in memory, and of each tall array the part
        that belongs to the rows of the block.
        """

    def map_sum(
        self, work: Callable[..., Any], shape: tuple[int, ...], *tall: np.ndarray
    ) -> np.ndarray:
        return np.asarray(sum_of(self.map(work, *tall)))

    def map_stack_sum(
        self, work: Callable[..., Any], shape: tuple[int, ...], *tall: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        results = self.map(work, *tall)
        first, total = next(results)
        stack = [first]
        for part, more in results:
            stack.append(part)
            total += more
        return np.concatenate(stack), total

    def __matmul__(self, W: Any) -> np.ndarray:
        return np.concatenate(list(self.map(partial(_product, self.cast(W)))))

    def adjoint(self, V: Any) -> np.ndarray:
        V = self.cast(V)
        return self.map_sum(_adjoint, (self.shape[1], *V.shape[1:]), V)

    def product_and_adjoint(
        self, W: Any, minus: Any = None, row_scale: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        given = {"minus": minus, "row_scale": row_scale}
        given = {name: tall for name, tall in given.items() if tall is not None}
        W = self.cast(W)
        work = partial(_both, W, list(given))
        return self.map_stack_sum(work, W.shape, *given.values())

    def row_sqnorms(self, column_weights: np.ndarray | None = None) -> np.ndarray:
        work = partial(_row_sqnorms, column_weights)
        return np.concatenate(list(self.map(work)))

    def column_sqnorms(self) -> np.ndarray:
        return self.map_sum(_column_sqnorms, self.shape[1:])

    def max_abs(self) -> float:
        return max(self.map(_max_abs))

    def not_finite(self) -> tuple[int, int, int, float]:
        return first_of(list(self.map(_not_finite)), self.row_blocks)

    def rescaled(self, factor: float) -> Blocks:
        other = copy(self)
        other.__dict__.pop("sqnorms", None)
        other.factor, other.unit = self.factor * factor, self.unit / factor
        return other


# Work on one block is a function of this module, so that it can go to another process.


def _product(W: np.ndarray, block: Matrix) -> np.ndarray:
    return block @ W


def _adjoint(block: Matrix, V: np.ndarray) -> np.ndarray:
    return block.adjoint(V)


def _both(W: np.ndarray, names: list[str], block: Matrix, *tall: np.ndarray) -> Any:
    return block.product_and_adjoint(W, **dict(zip(names, tall, strict=True)))


def _row_sqnorms(column_weights: np.ndarray | None, block: Matrix) -> np.ndarray:
    return block.row_sqnorms(column_weights)


def _column_sqnorms(block: Matrix) -> np.ndarray:
    return block.column_sqnorms()


def _max_abs(block: Matrix) -> float:
    return block.max_abs()


def _not_finite(block: Matrix) -> tuple[int, int, int, float]:
    return block.not_finite()


def row_ranges(n_rows: int, step: int) -> list[slice]:
    """Cut rows into ranges of ``step`` rows, at least one; the last may be shorter."""
    edges = [*range(0, n_rows, max(1, step)), n_rows]
    return [slice(*edge) for edge in pairwise(edges)]


def sum_of(results: Any) -> Any:
    """Add up results, in their order."""
    results = iter(results)
    total = next(results)
    for result in results:
        total += result
    return total


def first_of(
    found: list[tuple[int, int, int, float]], ranges: list[slice]
) -> tuple[int, int, int, float]:
    """Combine what ranges of rows say of entries that are not finite."""
    total = sum(count for count, *_ in found)
    for (count, row, column, value), rows in zip(found, ranges, strict=True):
        if count:
            return total, rows.start + row, column, value
    return 0, -1, -1, 0.0


def float_type(dtype: Any) -> np.dtype:
    """Return float32 or float64, what numbers of some type are converted to."""
    kind = np.dtype(dtype)
    if kind.kind not in "fiub":
        raise ValueError(
            f"X holds entries of type {kind}, not real numbers; store it as float32 "
            "or float64."
        )
    return kind if kind in (np.float32, np.float64) else np.dtype(np.float64)


def in_unit(block: Any, dtype: np.dtype, factor: float) -> Any:
    """Return some rows in a type of float, times a factor."""
    block = block.astype(dtype, copy=False)
    if factor == 1.0:
        return block
    if abs(factor) <= float(np.finfo(dtype).max):
        return block * dtype.type(factor)
    most = 2.0**100  # the factor itself is more than the type can hold
    return in_unit(block * dtype.type(most), dtype, factor / most)
