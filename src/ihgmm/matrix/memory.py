"""Rows in the memory of the host, and arrays of NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import Self

import numpy as np

from ihgmm.matrix.arrays import AnyArray, Tall
from ihgmm.matrix.base import NO_METADATA, CellChange, Matrix, Metadata, T, parts_of
from ihgmm.matrix.host_ops import HOST
from ihgmm.matrix.materialized import DenseArray, Materialized
from ihgmm.matrix.threads import in_parts, one_thread, row_ranges, sized_threads


class InMemory(Materialized):
    """Rows in the memory of the host, worked on in several threads."""

    @cached_property
    def row_blocks(self) -> list[slice]:
        # So few rows stay in the cache with what is made of them.
        height = 2**20 * self.shape[0] // max(self.n_entries, 1)
        return row_ranges(self.shape[0], min(max(height, 2**8), 2**12))

    def map(self, work: Callable[..., T], *tall: Tall | None) -> Iterator[T]:
        blocks = self.row_blocks
        if len(blocks) < 4:
            yield from super().map(work, *tall)
            return

        def work_on_blocks(part: slice) -> list[T]:
            return [
                work(self.take(rows), *parts_of(tall, rows)) for rows in blocks[part]
            ]

        with one_thread():  # those of BLAS would wait for ours
            for results in in_parts(len(blocks), work_on_blocks):
                yield from results

    def to_memory(self) -> Self:
        return self


class Dense(InMemory, DenseArray):
    """A NumPy array, float32 or float64.

    From ``large`` entries on, rows of up to 512 features, for which reading is the
    cost, are read once for all work, block by block in threads of our own. BLAS does as
    well by itself with longer ones.
    """

    large = 10**7
    _by_blocks: bool

    def __init__(self, array: np.ndarray, metadata: Metadata = NO_METADATA) -> None:
        super().__init__(array.shape, array.dtype, metadata)
        has_short_rows = array.shape[1] <= 512 and array.flags.c_contiguous
        is_large = has_short_rows and array.size >= self.large
        by_blocks = is_large and len(self.row_blocks) > 1
        vars(self).update(array=array, values=array, _by_blocks=by_blocks)

    def __matmul__(self, W: AnyArray) -> np.ndarray:
        X = self.array
        W = np.asarray(W, dtype=self.dtype)
        if not self._by_blocks:
            # BLAS may multiply what lies beside the last rows in memory, and flag it.
            with np.errstate(invalid="ignore"):
                return np.asarray(X @ W)

        Y = np.empty((len(X), *W.shape[1:]), dtype=X.dtype)
        self._write_blocks(Y, lambda rows: rows @ W)
        return Y

    def adjoint(self, V: Tall) -> np.ndarray:
        if self._by_blocks:
            return np.asarray(super().adjoint(V))

        with np.errstate(invalid="ignore"):
            return np.asarray(self.array.T @ np.asarray(V, dtype=self.dtype))

    def gram_product(self, W: AnyArray, row_scale: Tall | None = None) -> np.ndarray:
        if self._by_blocks:
            return np.asarray(Matrix.gram_product(self, W, row_scale))
        return np.asarray(super().gram_product(W, row_scale))

    def _write_blocks(
        self, out: np.ndarray, work: Callable[[np.ndarray], np.ndarray]
    ) -> None:
        """Write what some work makes of each block of rows into an array."""

        def write(block: Dense, part: np.ndarray) -> None:
            part[...] = work(block.array)

        for _ in self.map(write, out):
            pass

    def row_sqnorms_at_once(self, column_weights: np.ndarray | None) -> np.ndarray:
        X = self.array
        if column_weights is not None:
            return HOST.widen(np.einsum("ij,ij,j->i", X, X, column_weights))

        n, p = self.shape
        if X.dtype == np.float64 or p <= 256:
            return HOST.widen(np.einsum("ij,ij->i", X, X))

        # In float32 at most 256 squares are added up; their sums are, in float64.
        n_parts = -(-p // 256)
        width = p // n_parts
        end = n_parts * width
        parts = X[:, :end].reshape(n, n_parts, width)
        remainder = X[:, end:]

        sums = np.einsum("ijk,ijk->ij", parts, parts).sum(axis=1, dtype=np.float64)
        return np.asarray(sums + np.einsum("ij,ij->i", remainder, remainder))

    def column_sqnorms(self) -> np.ndarray:
        total = np.zeros(self.shape[1])
        for rows in row_ranges(self.shape[0], 2**20 // max(self.shape[1], 1)):
            block = self.array[rows]
            total += np.einsum("ij,ij->j", block, block, dtype=np.float64)
        return total

    def filled(self, fill: CellChange | None = None) -> Dense:
        fill = fill or partial(np.nan_to_num, posinf=np.inf, neginf=-np.inf)
        out = np.empty(self.shape, dtype=self.dtype)
        self._write_blocks(out, fill)
        return Dense(out, self.metadata)

    def minus_fit(
        self, parts: np.ndarray, directions: np.ndarray, gain: np.ndarray
    ) -> Dense:
        """Return the rows less their fit, each column times a gain.

        The fit is ``parts @ directions.T``.
        """
        residuals = parts @ -directions.T
        residuals += self.array

        # Gains within half a percent of one do not matter.
        if gain.max(initial=1.0) > 1.005:
            residuals *= gain

        return Dense(residuals, self.metadata.of_taken_rows())

    def with_windows_of_signs(self, signs: np.ndarray, starts: np.ndarray) -> Dense:
        """Multiply each row by a window of a vector of signs, from its start on."""
        windows = np.lib.stride_tricks.sliding_window_view(signs, self.shape[1])
        return Dense(self.array * windows[starts], self.metadata.of_taken_rows())

    def threads(self) -> AbstractContextManager[None]:
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
