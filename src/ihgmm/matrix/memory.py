"""Matrices in the memory of the host: NumPy arrays and scipy.sparse matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ihgmm.matrix.base import (
    NOTHING,
    About,
    Index,
    Matrix,
    T,
    in_unit,
    parts_of,
    row_ranges,
    sum_of,
)
from ihgmm.matrix.threads import in_parts, one_thread


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
        by_rows = self.by_rows()

        def several(part: slice) -> list[T]:
            return [
                work(by_rows.take(rows), *parts_of(tall, rows)) for rows in blocks[part]
            ]

        with one_thread():  # those of BLAS would wait for ours
            for results in in_parts(len(blocks), several):
                yield from results


class Array(Matrix):
    """A dense array, here or on a device."""

    array: Any

    def take(self, rows: Index) -> Self:
        return type(self)(self.rows(rows), self.about.of_taken_rows())

    def multiplied(self, rows: Any, columns: Any, about: About | None = None) -> Self:
        """Return the matrix with its rows and columns multiplied, as a copy."""
        array = self.array
        if rows is not None:
            array = array * rows[:, None]
        array = array if columns is None else array * columns
        return type(self)(array, about or self.about.of_taken_rows())


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

    def __init__(
        self,
        array: np.ndarray,
        about: About = NOTHING,
        *,
        large: int = 10**7,
        cached: int = 2**18,
    ) -> None:
        super().__init__(array.shape, array.dtype, about)
        self.array = array
        self._large, self._cached_entries = array.size >= large, cached
        short = array.shape[1] <= 512 and array.flags.c_contiguous
        self._read_once = self._large and short

    def __matmul__(self, W: Any) -> np.ndarray:
        X, W = self.array, np.asarray(W, dtype=self.dtype)
        if not self._read_once or W.ndim != 2:
            return np.asarray(X @ W)
        Y = np.empty((X.shape[0], W.shape[1]), dtype=X.dtype)
        with self.threads():
            list(in_parts(len(Y), lambda rows: np.matmul(X[rows], W, out=Y[rows])))
        return Y

    def adjoint(self, V: Any) -> np.ndarray:
        X, V = self.array, np.asarray(V, dtype=self.dtype)
        if not self._read_once or V.ndim != 2:
            return np.asarray(X.T @ V)

        def work(part: slice) -> np.ndarray:
            total = np.zeros((V.shape[1], X.shape[1]), dtype=X.dtype)
            for rows in self._cached(part):
                total += V[rows].T @ X[rows]
            return total.T

        with self.threads():
            return np.asarray(sum_of(in_parts(X.shape[0], work)))

    def product_and_adjoint(
        self, W: Any, minus: Any = None, row_scale: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        if not self._read_once:
            return super().product_and_adjoint(W, minus, row_scale)
        X, W = self.array, self.cast(W)
        Y = np.empty((X.shape[0], W.shape[1]), dtype=X.dtype)

        def work(part: slice) -> np.ndarray:
            total = np.zeros((W.shape[1], W.shape[0]), dtype=X.dtype)
            for rows in self._cached(part):
                few = np.matmul(X[rows], W, out=Y[rows])
                if row_scale is not None:
                    few *= row_scale[rows, None]
                if minus is not None:
                    few -= minus[rows]
                if row_scale is not None:
                    few = few * row_scale[rows, None]
                total += few.T @ X[rows]
            return total.T

        with self.threads():
            return Y, sum_of(in_parts(X.shape[0], work))

    def _cached(self, part: slice) -> list[slice]:
        """Cut a range of rows into pieces that stay in the cache."""
        step = max(1, self._cached_entries // self.shape[1])
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

    def max_abs(self) -> float:
        return float(max(self.array.max(), -self.array.min()))

    def most_negative(self) -> float:
        return float(self.array.min(initial=0.0))

    def not_finite(self) -> tuple[int, int, int, float]:
        bad = np.flatnonzero(~np.isfinite(self.array))
        if len(bad) == 0:
            return 0, -1, -1, 0.0
        row, column = divmod(int(bad[0]), self.shape[1])
        return len(bad), row, column, float(self.array[row, column])

    def rescaled(self, factor: float) -> Dense:
        array = in_unit(self.array, self.dtype, factor)
        return Dense(array, self.about.rescaled(factor))

    def filled(self, fill: Any = None) -> Dense:
        """Return rows with NaN filled in, as a copy; by zeros without a ``fill``."""
        out = np.empty(self.shape, dtype=self.dtype)

        def work(part: slice) -> None:
            # A few rows at least share what filling begins with.
            step = max(16, self._cached_entries // self.shape[1])
            for start in range(part.start, part.stop, step):
                rows = slice(start, min(start + step, part.stop))
                few = self.array[rows]
                out[rows] = (
                    np.where(np.isnan(few), 0, few) if fill is None else fill(few)
                )

        if self._large:
            with one_thread():
                list(in_parts(self.shape[0], work))
        else:
            work(slice(0, self.shape[0]))
        return Dense(out, self.about)

    def missing(self) -> Dense:
        """Return 1 where a cell is missing and 0 elsewhere."""
        return Dense(np.isnan(self.array).astype(self.dtype))

    def minus_fit(self, parts: Any, directions: np.ndarray, gain: np.ndarray) -> Dense:
        """Return the rows less their fit, each column times a gain."""
        left = parts @ self.cast(directions.T)
        np.subtract(self.array, left, out=left)
        # Gains within half a percent of one do not matter.
        if gain.max(initial=1.0) > 1.005:
            left *= gain
        return Dense(left, self.about.of_taken_rows())

    def with_signs(self, signs: np.ndarray, places: np.ndarray, _: Any) -> Dense:
        """Multiply each row by a window, from its place on, of a vector of signs."""
        width, about = self.shape[1], self.about.of_taken_rows()
        if width < 2**11:
            windows = np.lib.stride_tricks.sliding_window_view(signs, width)
            return Dense(self.array * windows[places], about)
        # Long rows are worked on by themselves: the windows would be another copy.
        out = np.empty_like(self.array)
        for row, place, product in zip(self.array, places, out, strict=True):
            np.multiply(row, signs[place : place + width], out=product)
        return Dense(out, about)

    def threads(self) -> AbstractContextManager[Any]:
        """Return a context in which our own threads find the cores idle.

        After a product of dense blocks the threads of BLAS spin for a while and would
        hold up ours.
        """
        return one_thread() if self._read_once else nullcontext()


def _sqnorms(rows: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the sum of squares of each row, float64.

    float32 is as fast as it is only without conversion: sums of up to 256 squares are
    taken in it, and added up in float64.
    """
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


class Sparse(InMemory):
    """A scipy.sparse matrix or array, CSR or CSC. Entries that are not stored are 0.

    scipy's products run in one thread. Those with more than ``parallel`` entries are
    cut up. Blocks of :meth:`map` have fewer, and threads work on several of them.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from ihgmm.matrix import Sparse
    >>> X = Sparse(sp.csr_array([[3.0, 4.0], [0.0, 2.0]]))
    >>> X.adjoint(np.ones((2, 1)))
    array([[3.],
           [6.]])
    """

    sparse = True

    def __init__(
        self, array: Any, about: About = NOTHING, *, parallel: int = 2**20
    ) -> None:
        super().__init__(array.shape, array.dtype, about)
        self.array, self._parallel = array, parallel
        self.n_entries = int(array.nnz)

    def __matmul__(self, W: Any) -> np.ndarray:
        return self._times(self.array, W)

    def adjoint(self, V: Any) -> np.ndarray:
        return self._times(self.array.T, V)

    def _times(self, X: Any, W: Any) -> np.ndarray:
        W = np.asarray(W, dtype=self.dtype)
        if W.ndim != 2 or X.nnz <= self._parallel:
            return np.asarray(X @ W)
        if X.format == "csr":
            parts = in_parts(X.shape[0], lambda rows: _part(X, rows) @ W)
            return np.concatenate(list(parts))
        parts = in_parts(X.shape[1], lambda columns: _part(X, columns) @ W[columns])
        return np.asarray(sum_of(parts))

    def take(self, rows: Index) -> Sparse:
        X, about = self.array, self.about.of_taken_rows()
        if isinstance(rows, slice) and X.format == "csr":
            start, stop, step = rows.indices(X.shape[0])
            if step == 1:
                return Sparse(_part(X, slice(start, max(start, stop))), about)
        return Sparse(X[rows], about)

    def rows(self, rows: Index) -> np.ndarray:
        return np.asarray(self.array[rows].toarray())

    def to_memory(self) -> Sparse:
        return self

    def by_rows(self) -> Sparse:
        by_rows = self.array.format == "csr"
        return self if by_rows else Sparse(self.array.tocsr(), self.about)

    def row_sqnorms(self, column_weights: np.ndarray | None = None) -> np.ndarray:
        X, by_rows = self.array, self.array.format == "csr"
        norms, size = np.zeros(X.shape[0]), len(X.indptr) - 1
        if column_weights is None:
            column_weights = np.ones(X.shape[1])
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            # A 64th at a time: squares in float64 may take twice the memory of X.
            for at in row_ranges(size, size // 64):
                part = _part(X, at)
                part.data = np.square(part.data, dtype=np.float64)
                if by_rows:
                    norms[at] = part @ column_weights
                else:
                    norms += part @ column_weights[at]
        return norms

    def column_sqnorms(self) -> np.ndarray:
        squares = self.array.multiply(self.array).sum(axis=0)
        return np.asarray(squares, dtype=np.float64).ravel()

    def max_abs(self) -> float:
        values = self.array.data
        return float(max(values.max(), -values.min())) if values.size else 0.0

    def most_negative(self) -> float:
        return float(self.array.data.min(initial=0.0))

    def not_finite(self) -> tuple[int, int, int, float]:
        entries = self.array.tocoo()
        bad = np.flatnonzero(~np.isfinite(entries.data))
        if len(bad) == 0:
            return 0, -1, -1, 0.0
        at = bad[np.lexsort((entries.col[bad], entries.row[bad]))[0]]
        row, column = int(entries.row[at]), int(entries.col[at])
        return len(bad), row, column, float(entries.data[at])

    def rescaled(self, factor: float) -> Sparse:
        array = in_unit(self.array, self.dtype, factor)
        return Sparse(array, self.about.rescaled(factor))

    def multiplied(self, rows: Any, columns: Any, about: About | None = None) -> Sparse:
        """Return the matrix with its rows and columns multiplied, as a copy."""
        X = self.array.tocsr()
        data = X.data
        if rows is not None:
            data = data * np.repeat(rows, np.diff(X.indptr))
        data = data if columns is None else data * columns[X.indices]
        return self._with(X, data, about or self.about.of_taken_rows())

    def filled(self, fill: Any = None) -> Sparse:
        """Return the rows with stored NaN filled in; by zeros without a ``fill``."""
        X = self.array if fill is None else self.array.tocsr()
        bad = np.flatnonzero(np.isnan(X.data))
        data = X.data.copy()
        data[bad] = 0
        if fill is not None and len(bad):
            owner = np.searchsorted(X.indptr, bad, side="right") - 1
            rows, which = np.unique(owner, return_inverse=True)
            for part in row_ranges(len(rows), 2**20 // X.shape[1]):
                few = np.asarray(X[rows[part]].toarray())
                at = (which >= part.start) & (which < part.stop)
                places = which[at] - part.start, X.indices[bad[at]]
                data[bad[at]] = fill(few)[places]
        return self._with(X, data, self.about)

    def missing(self) -> Sparse:
        """Return 1 where a cell is missing; all others are not stored."""
        X = self.array.tocoo()
        bad = np.isnan(X.data)
        ones = np.ones(np.count_nonzero(bad), dtype=self.dtype)
        return Sparse(sp.csr_array((ones, (X.row[bad], X.col[bad])), shape=self.shape))

    def energy_at_entries(
        self, parts: np.ndarray, directions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return sums of squares of a fit at stored entries, and of what it leaves.

        The fit is ``parts @ directions.T``. There is a sum for each column.
        """
        X, p = self.array.tocsr(), self.shape[1]
        fit = _fit_at_entries(X, parts, directions)
        squares = np.square(fit), np.square(X.data - fit)
        fitted, left = (np.bincount(X.indices, each, p) for each in squares)
        return fitted, left

    def minus_fit(
        self, parts: np.ndarray, directions: np.ndarray, gain: np.ndarray
    ) -> Sparse:
        """Return stored entries less their fit, each column times a gain."""
        X = self.array.tocsr()
        left = X.data - _fit_at_entries(X, parts, directions)
        return self._with(X, left * gain[X.indices], self.about.of_taken_rows())

    def with_signs(self, _: Any, __: Any, seed: tuple[int, int]) -> Sparse:
        """Multiply stored entries by random signs that a seed gives."""
        X = self.array
        rng = np.random.default_rng(seed)
        signed = X.data * random_signs(rng, X.nnz, X.dtype)
        return self._with(X, signed, self.about.of_taken_rows())

    @staticmethod
    def _with(X: Any, data: np.ndarray, about: About) -> Sparse:
        return Sparse(type(X)((data, X.indices, X.indptr), shape=X.shape), about)

    def threads(self) -> AbstractContextManager[Any]:
        return one_thread()


def _fit_at_entries(X: Any, parts: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return ``parts @ directions.T`` at the entries that a CSR matrix stores."""
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    fit = np.zeros_like(X.data)
    for part, direction in zip(parts.T, directions.T, strict=True):
        fit += part[row] * direction[X.indices]
    return fit


def random_signs(rng: np.random.Generator, size: int, dtype: np.dtype) -> np.ndarray:
    """Return random signs as numbers of some type."""
    bits = np.frombuffer(rng.bytes(-(-size // 8)), dtype=np.uint8)
    signs = np.unpackbits(bits, count=size).astype(dtype)
    signs *= 2
    signs -= 1
    return signs


def without_duplicates(X: Any) -> Any:
    """Return a CSR or CSC matrix in which each cell is stored once.

    Sums over stored entries would not be sums over cells otherwise. The given matrix,
    in which scipy also keeps what it finds out, is left as it is.
    """
    same = copy(X)
    if not same.has_canonical_format:
        same = X.copy()
        same.sum_duplicates()
    return same


def _part(X: Any, at: slice) -> Any:
    """Return some rows of a CSR matrix, or columns of a CSC one, without a copy."""
    (n, p), size = X.shape, at.stop - at.start
    by_rows = X.format == "csr"
    shape, kind = ((size, p), sp.csr_array) if by_rows else ((n, size), sp.csc_array)
    part = kind(shape, dtype=X.dtype)
    first, last = X.indptr[at.start], X.indptr[at.stop]
    # Given to the constructor, they would be copied.
    part.data, part.indices = X.data[first:last], X.indices[first:last]
    part.indptr = X.indptr[at.start : at.stop + 1] - first
    return part
