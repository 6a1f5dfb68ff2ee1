"""Dense arrays, and NumPy's in the memory of the host."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from ihgmm.matrix.base import NOTHING, About, Index, Matrix, T, parts_of, sum_of, times
from ihgmm.matrix.ops import to_host
from ihgmm.matrix.threads import in_parts, one_thread, row_ranges, sized_threads


class InMemory(Matrix):
    """Rows in the memory of the host, worked on in several threads."""

    @cached_property
    def row_blocks(self) -> list[slice]:
        # So few rows stay in the cache with what is made of them.
        rows = 2**20 * self.shape[0] // max(self.n_entries, 1)
        return row_ranges(self.shape[0], min(max(rows, 2**8), 2**12))

    def map(self, work: Callable[..., T], *tall: Any) -> Iterator[T]:
        blocks = self.row_blocks
        if len(blocks) < 4:
            yield from super().map(work, *tall)
            return

        def several(part: slice) -> list[T]:
            return [
                work(self.take(rows), *parts_of(tall, rows)) for rows in blocks[part]
            ]

        with one_thread():  # those of BLAS would wait for ours
            for results in in_parts(len(blocks), several):
                yield from results


class Held(Matrix):
    """Rows whose stored numbers, ``values``, are in an array, here or on a device."""

    values: Any

    @abstractmethod
    def with_values(self, values: Any, about: About) -> Self:
        """Return the matrix with other values in the same places."""

    def entrywise(self, change: Callable[[Any], Any]) -> Self:
        """Return the rows with each entry changed alike, 0 to 0."""
        return self.with_values(change(self.values), self.about)

    def rescaled(self, factor: float) -> Self:
        values = times(self.values, factor, self.dtype)
        return self.with_values(values, self.about.rescaled(factor))

    def max_abs(self) -> float:
        xp, values = self.ops.xp, self.values
        return float(max(xp.max(values), -xp.min(values))) if self.n_entries else 0.0

    def most_negative(self) -> float:
        return min(float(self.ops.xp.min(self.values)), 0.0) if self.n_entries else 0.0

    @abstractmethod
    def entry(self, number: int) -> tuple[int, int, float]:
        """Return row, column and value of a stored number, counted row by row."""

    def not_finite(self) -> tuple[int, int, int, float]:
        if len(self.row_blocks) > 1:
            return super().not_finite()
        finite = self.ops.xp.isfinite(self.values)
        if bool(self.ops.xp.all(finite)):
            return 0, -1, -1, 0.0
        bad = np.flatnonzero(~to_host(finite))
        return len(bad), *self.entry(int(bad[0]))


class Array(Held):
    """A dense array."""

    array: Any

    def with_values(self, values: Any, about: About) -> Self:
        return type(self)(values, about)

    def entry(self, number: int) -> tuple[int, int, float]:
        row, column = divmod(number, self.shape[1])
        return row, column, float(self.array[row, column])

    def take(self, rows: Index) -> Self:
        return type(self)(self.rows(rows), self.about.of_taken_rows())

    def multiplied(self, rows: Any, columns: Any, about: About) -> Self:
        """Return the matrix with its rows and columns multiplied, as a copy."""
        array = self.array
        if rows is not None:
            array = array * rows[:, None]
        array = array if columns is None else array * columns
        return type(self)(array, about)

    def missing(self) -> Self:
        """Return 1 where a cell is missing and 0 elsewhere."""
        xp = self.ops.xp
        return type(self)(xp.astype(xp.isnan(self.array), self.array.dtype), NOTHING)


class Dense(InMemory, Array):
    """A NumPy array, float32 or float64.

    From ``large`` entries on, threads of our own pay. Rows of up to 512 features, for
    which reading is the cost, are then read once for all work; BLAS does as well by
    itself with longer ones. ``cached`` entries stay in the cache between two products.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import Dense
    >>> X = Dense(np.array([[3.0, 4.0], [0.0, 2.0]]))
    >>> X.sqnorms
    array([25.,  4.])
    >>> X @ np.ones((2, 1))
    array([[7.],
           [2.]])
    """

    large = 10**7
    cached = 2**18
    _large: bool
    _read_once: bool

    def __init__(self, array: np.ndarray, about: About = NOTHING) -> None:
        super().__init__(array.shape, array.dtype, about)
        large = array.size >= self.large
        once = large and array.shape[1] <= 512 and array.flags.c_contiguous
        vars(self).update(array=array, values=array, _large=large, _read_once=once)

    def __matmul__(self, W: Any) -> np.ndarray:
        X, W = self.array, np.asarray(W, dtype=self.dtype)
        if not self._read_once or W.ndim != 2:
            return np.asarray(X @ W)
        Y = np.empty((X.shape[0], W.shape[1]), dtype=X.dtype)
        with self.threads():
            list(in_parts(len(Y), lambda rows: np.matmul(X[rows], W, out=Y[rows])))
        return Y

    def adjoint(self, V: Any) -> np.ndarray:
        V = np.asarray(V, dtype=self.dtype)
        if not self._read_once or V.ndim != 2:
            return np.asarray(self.array.T @ V)
        return self._adjoint_of(V.shape[1], V.__getitem__)

    def gram_product(self, W: Any, row_scale: Any = None) -> np.ndarray:
        if not self._read_once:
            return super().gram_product(W, row_scale)
        X, W = self.array, self.cast(W)

        def product(rows: slice) -> np.ndarray:
            Y = X[rows] @ W
            return Y if row_scale is None else Y * row_scale[rows, None] ** 2

        return self._adjoint_of(W.shape[1], product)

    def _adjoint_of(
        self, width: int, lines: Callable[[slice], np.ndarray]
    ) -> np.ndarray:
        """Return ``X.T @ V`` of V whose lines are made while rows are in the cache."""
        X = self.array

        def work(part: slice) -> np.ndarray:
            total = np.zeros((width, X.shape[1]), dtype=X.dtype)
            for rows in self._cached(part):
                total += lines(rows).T @ X[rows]
            return total.T

        with self.threads():
            return np.asarray(sum_of(in_parts(X.shape[0], work)))

    def _cached(self, part: slice, least: int = 1) -> list[slice]:
        """Cut a range of rows into pieces that stay in the cache."""
        step = max(least, self.cached // self.shape[1])
        starts = range(part.start, part.stop, step)
        return [slice(start, min(start + step, part.stop)) for start in starts]

    def rows(self, rows: Index) -> np.ndarray:
        return self.array[rows]

    def to_memory(self) -> Dense:
        return self

    def row_sqnorms(self, column_weights: np.ndarray | None = None) -> np.ndarray:
        norms = np.empty(self.shape[0])

        def work(rows: slice) -> None:
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                norms[rows] = _sqnorms(self.array[rows], column_weights)

        if self._large:
            list(in_parts(len(norms), work))
        else:
            work(slice(None))
        return norms

    def column_sqnorms(self) -> np.ndarray:
        total = np.zeros(self.shape[1])
        for rows in row_ranges(self.shape[0], 2**20 // max(self.shape[1], 1)):
            few = self.array[rows]
            total += np.einsum("ij,ij->j", few, few, dtype=np.float64)
        return total

    def filled(self, fill: Any = None) -> Dense:
        """Return rows with NaN filled in, as a copy; by zeros without a ``fill``."""
        fill = fill or partial(np.nan_to_num, posinf=np.inf, neginf=-np.inf)
        out = np.empty(self.shape, dtype=self.dtype)

        def work(part: slice) -> None:
            # Some rows at least share what filling begins with.
            for rows in self._cached(part, least=16):
                out[rows] = fill(self.array[rows])

        if self._large:
            with one_thread():
                list(in_parts(self.shape[0], work))
        else:
            work(slice(0, self.shape[0]))
        return Dense(out, self.about)

    def minus_fit(
        self, parts: np.ndarray, directions: np.ndarray, gain: np.ndarray
    ) -> Dense:
        """Return the rows less their fit, each column times a gain."""
        left = parts @ -directions.T
        left += self.array
        # Gains within half a percent of one do not matter.
        if gain.max(initial=1.0) > 1.005:
            left *= gain
        return Dense(left, self.about.of_taken_rows())

    def with_signs(self, signs: np.ndarray, places: np.ndarray, _: Any) -> Dense:
        """Multiply each row by a window, from its place on, of a vector of signs."""
        windows = np.lib.stride_tricks.sliding_window_view(signs, self.shape[1])
        return Dense(self.array * windows[places], self.about.of_taken_rows())

    def threads(self) -> AbstractContextManager[Any]:
        # After a product of dense blocks the threads of BLAS spin for a while and would
        # hold up ours.
        return one_thread() if self._read_once else sized_threads(self.n_entries)


def _sqnorms(rows: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the sum of squares of each row; those of 256 float32 add up in float64."""
    if weights is not None:
        return np.einsum("ij,ij,j->i", rows, rows, weights)
    n, p = rows.shape
    sums = 1 if rows.dtype == np.float64 else max(1, -(-p // 256))
    if sums == 1:
        return np.einsum("ij,ij->i", rows, rows)
    width = p // sums
    cut = rows[:, : sums * width].reshape(n, sums, width)
    total = np.einsum("ijk,ijk->ij", cut, cut).sum(axis=1, dtype=np.float64)
    rest = rows[:, sums * width :]
    return np.asarray(total + np.einsum("ij,ij->i", rest, rest))


def random_signs(rng: np.random.Generator, size: int, dtype: np.dtype) -> np.ndarray:
    """Return random signs as numbers of some type."""
    bits = np.frombuffer(rng.bytes(-(-size // 8)), dtype=np.uint8)
    signs = np.unpackbits(bits, count=size).astype(dtype)
    signs *= 2
    signs -= 1
    return signs
