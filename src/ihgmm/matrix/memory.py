"""Dense arrays, and NumPy's in the memory of the host."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from ihgmm.matrix.base import NOTHING, About, Index, Matrix, T, parts_of, times_lines
from ihgmm.matrix.ops import HOST, to_host
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
            return [work(self.take(at), *parts_of(tall, at)) for at in blocks[part]]

        with one_thread():  # those of BLAS would wait for ours
            for results in in_parts(len(blocks), several):
                yield from results

    def to_memory(self) -> Self:
        return self


class Held(Matrix):
    """Rows whose stored numbers, ``values``, are in an array, here or on a device."""

    values: Any

    @abstractmethod
    def with_values(self, values: Any, about: About) -> Self:
        """Return the matrix with other values in the same places."""

    @abstractmethod
    def own_row_sqnorms(self, column_weights: np.ndarray | None) -> Any:
        """Return what :meth:`row_sqnorms` does, of rows that are one block."""

    def row_sqnorms(self, column_weights: np.ndarray | None = None) -> Any:
        if len(self.row_blocks) > 1:
            return super().row_sqnorms(column_weights)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return self.own_row_sqnorms(column_weights)

    def threads(self) -> AbstractContextManager[Any]:
        return one_thread()  # of a device, what is left for the host is small

    def gram_product(self, W: Any, row_scale: Any = None) -> Any:
        Y = times_lines(self @ W, row_scale)
        return self.adjoint(times_lines(Y, row_scale))

    def rescaled(self, factor: float) -> Self:
        with np.errstate(over="ignore"):  # the type may hold 1 / factor alone
            fits = np.isfinite(self.dtype.type(factor))
        values = self.values * factor if fits else self.values / (1 / factor)
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

    def rows(self, rows: Index) -> Any:
        return self.ops.take_rows(self.array, rows)

    def take(self, rows: Index) -> Self:
        return type(self)(self.rows(rows), self.about.of_taken_rows())

    def multiplied(self, rows: Any, columns: Any, about: About) -> Self:
        """Return the matrix with its rows and columns multiplied, as a copy."""
        array = self.array if rows is None else self.array * rows[:, None]
        array = array if columns is None else array * self.cast(columns)
        return type(self)(array, about)

    def missing(self) -> Self:
        xp = self.ops.xp
        return type(self)(xp.astype(xp.isnan(self.array), self.array.dtype), NOTHING)


class Dense(InMemory, Array):
    """A NumPy array, float32 or float64.

    From ``large`` entries on, rows of up to 512 features, for which reading is the
    cost, are read once for all work, block by block in threads of our own. BLAS does as
    well by itself with longer ones.
    """

    large = 10**7
    _by_blocks: bool

    def __init__(self, array: np.ndarray, about: About = NOTHING) -> None:
        super().__init__(array.shape, array.dtype, about)
        narrow = array.shape[1] <= 512 and array.flags.c_contiguous
        blocks = narrow and array.size >= self.large and len(self.row_blocks) > 1
        vars(self).update(array=array, values=array, _by_blocks=blocks)

    def __matmul__(self, W: Any) -> np.ndarray:
        X, W = self.array, np.asarray(W, dtype=self.dtype)
        if not self._by_blocks:
            # BLAS may multiply what lies beside the last rows in memory, and flag it.
            with np.errstate(invalid="ignore"):
                return np.asarray(X @ W)
        Y = np.empty((len(X), *W.shape[1:]), dtype=X.dtype)
        self._into(Y, lambda rows: rows @ W)
        return Y

    def adjoint(self, V: Any) -> np.ndarray:
        if self._by_blocks:
            return np.asarray(super().adjoint(V))
        with np.errstate(invalid="ignore"):
            return np.asarray(self.array.T @ np.asarray(V, dtype=self.dtype))

    def gram_product(self, W: Any, row_scale: Any = None) -> np.ndarray:
        if self._by_blocks:
            return np.asarray(Matrix.gram_product(self, W, row_scale))
        return np.asarray(super().gram_product(W, row_scale))

    def _into(self, out: np.ndarray, work: Callable[[np.ndarray], Any]) -> None:
        """Write what some work makes of each block of rows into an array."""

        def write(block: Any, part: np.ndarray) -> None:
            part[...] = work(block.array)

        for _ in self.map(write, out):
            pass

    def own_row_sqnorms(self, column_weights: np.ndarray | None) -> np.ndarray:
        X, (n, p) = self.array, self.shape
        if column_weights is not None:
            return HOST.widen(np.einsum("ij,ij,j->i", X, X, column_weights))
        # Those of 256 float32 add up in float64.
        sums = 1 if X.dtype == np.float64 else max(1, -(-p // 256))
        if sums == 1:
            return HOST.widen(np.einsum("ij,ij->i", X, X))
        width = p // sums
        cut, rest = X[:, : sums * width].reshape(n, sums, width), X[:, sums * width :]
        total = np.einsum("ijk,ijk->ij", cut, cut).sum(axis=1, dtype=np.float64)
        return np.asarray(total + np.einsum("ij,ij->i", rest, rest))

    def column_sqnorms(self) -> np.ndarray:
        total = np.zeros(self.shape[1])
        for rows in row_ranges(self.shape[0], 2**20 // max(self.shape[1], 1)):
            few = self.array[rows]
            total += np.einsum("ij,ij->j", few, few, dtype=np.float64)
        return total

    def filled(self, fill: Any = None) -> Dense:
        out = np.empty(self.shape, dtype=self.dtype)
        self._into(out, fill or partial(np.nan_to_num, posinf=np.inf, neginf=-np.inf))
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
        return one_thread() if self._by_blocks else sized_threads(self.n_entries)


def random_signs(rng: np.random.Generator, size: int, dtype: np.dtype) -> np.ndarray:
    """Return random signs as numbers of some type."""
    bits = np.frombuffer(rng.bytes(-(-size // 8)), dtype=np.uint8)
    signs = np.unpackbits(bits, count=size).astype(dtype)
    signs *= 2
    signs -= 1
    return signs
