"""Rows whose stored numbers are in one array, here or on a device."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import Self

import numpy as np

from ihgmm.matrix.arrays import AnyArray, Tall, to_host
from ihgmm.matrix.base import (
    NO_METADATA,
    Index,
    Matrix,
    Metadata,
    NonFinite,
    scale_lines,
)
from ihgmm.matrix.threads import one_thread


class Materialized(Matrix):
    """Rows whose stored numbers are in one array, on the host or on a device."""

    array: AnyArray  # dense or sparse, as the library has it
    values: AnyArray  # the stored numbers

    @abstractmethod
    def with_values(self, values: AnyArray, metadata: Metadata) -> Self:
        """Return the matrix with other values in the same places."""

    @abstractmethod
    def multiplied(
        self, rows: Tall | None, columns: AnyArray | None, metadata: Metadata
    ) -> Self:
        """Return the matrix with its rows and columns multiplied, as a copy."""

    @abstractmethod
    def row_sqnorms_at_once(self, column_weights: np.ndarray | None) -> Tall:
        """Return what :meth:`row_sqnorms` does, of rows that are one block."""

    @abstractmethod
    def entry(self, number: int) -> tuple[int, int, float]:
        """Return row, column and value of a stored number, counted row by row."""

    def row_sqnorms(self, column_weights: np.ndarray | None = None) -> Tall:
        if len(self.row_blocks) > 1:
            return super().row_sqnorms(column_weights)

        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return self.row_sqnorms_at_once(column_weights)

    def threads(self) -> AbstractContextManager[None]:
        return one_thread()  # of a device, what is left for the host is small

    def gram_product(self, W: AnyArray, row_scale: Tall | None = None) -> AnyArray:
        Y = scale_lines(self @ W, row_scale)
        return self.adjoint(scale_lines(Y, row_scale))

    def rescaled(self, factor: float) -> Self:
        with np.errstate(over="ignore"):  # the type may hold 1 / factor alone
            fits = np.isfinite(self.dtype.type(factor))

        values = self.values * factor if fits else self.values / (1 / factor)
        return self.with_values(values, self.metadata.rescaled(factor))

    def rooted(self) -> Self:
        """Return the roots of the entries, with their signs."""
        xp = self.ops.xp
        metadata = self.metadata.rooted()
        if self.most_negative() == 0:
            return self.with_values(xp.sqrt(self.values), metadata)

        roots = xp.sqrt(xp.abs(self.values))
        roots = xp.where(self.values < 0, -roots, roots)
        return self.with_values(roots, metadata)

    def absolute(self) -> Self:
        """Return the absolute entries."""
        if self.most_negative() == 0:
            return self
        return self.with_values(self.ops.xp.abs(self.values), self.metadata)

    def where_negative(self) -> Self:
        """Return 1 where an entry is negative, and 0 elsewhere."""
        return self._where(self.values < 0)

    def where_nonzero(self) -> Self:
        """Return 1 where an entry is not zero, and 0 elsewhere."""
        return self._where(self.values != 0)

    def _where(self, is_true: AnyArray) -> Self:
        ones_and_zeros = self.ops.xp.astype(is_true, self.values.dtype)
        return self.with_values(ones_and_zeros, NO_METADATA)

    def max_abs(self) -> float:
        if not self.n_entries:
            return 0.0

        xp = self.ops.xp
        return float(max(xp.max(self.values), -xp.min(self.values)))

    def most_negative(self) -> float:
        if not self.n_entries:
            return 0.0

        return min(float(self.ops.xp.min(self.values)), 0.0)

    def not_finite(self) -> NonFinite:
        if len(self.row_blocks) > 1:
            return super().not_finite()

        xp = self.ops.xp
        is_finite = xp.isfinite(self.values)
        if bool(xp.all(is_finite)):
            return NonFinite(n_entries=0)

        numbers = np.flatnonzero(~to_host(is_finite))
        row, column, value = self.entry(int(numbers[0]))
        return NonFinite(n_entries=len(numbers), row=row, column=column, value=value)


class DenseArray(Materialized):
    """A dense array of any library."""

    def with_values(self, values: AnyArray, metadata: Metadata) -> Self:
        return type(self)(values, metadata)

    def entry(self, number: int) -> tuple[int, int, float]:
        row, column = divmod(number, self.shape[1])
        return row, column, float(self.array[row, column])

    def rows(self, rows: Index) -> Tall:
        return self.ops.take_rows(self.array, rows)

    def take(self, rows: Index) -> Self:
        return type(self)(self.rows(rows), self.metadata.of_taken_rows())

    def multiplied(
        self, rows: Tall | None, columns: AnyArray | None, metadata: Metadata
    ) -> Self:
        array = self.array
        if rows is not None:
            array = array * rows[:, None]
        if columns is not None:
            array = array * self.cast(columns)

        return type(self)(array, metadata)

    def missing(self) -> Self:
        xp = self.ops.xp
        is_missing = xp.isnan(self.array)
        return type(self)(xp.astype(is_missing, self.array.dtype), NO_METADATA)
