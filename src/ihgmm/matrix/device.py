"""Dense arrays of torch, CuPy and all that follow the array API standard."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ihgmm.matrix.arrays import AnyArray, Tall, to_host
from ihgmm.matrix.base import NO_METADATA, CellChange, Metadata
from ihgmm.matrix.host_ops import library_ops
from ihgmm.matrix.materialized import DenseArray, Materialized
from ihgmm.matrix.memory import Dense
from ihgmm.matrix.ops import Ops
from ihgmm.matrix.threads import row_ranges


class OnDevice(Materialized):
    """Numbers in an array of another library; all that is tall stays on its device."""

    on_host = False
    min_range_entries = 2**24

    def to_device(self, values: AnyArray) -> Tall:
        return self.ops.to_device(values, self.values)

    def cast(self, values: AnyArray) -> AnyArray:
        return self.ops.cast_like(values, self.values)


class Device(OnDevice, DenseArray):
    """A dense array of another library."""

    def __init__(self, array: AnyArray, metadata: Metadata = NO_METADATA) -> None:
        ops = library_ops(array)
        shape = (int(array.shape[0]), int(array.shape[1]))
        super().__init__(shape, ops.host_dtype(array), metadata, ops)
        self.array = array
        self.values = array
        self.xp = ops.xp

    def __matmul__(self, W: AnyArray) -> Tall:
        return self.array @ self.cast(W)

    def adjoint(self, V: Tall) -> AnyArray:
        return self.array.T @ self.cast(V)

    def to_memory(self) -> Dense:
        return Dense(to_host(self.array), self.metadata.of_taken_rows())

    @cached_property
    def row_blocks(self) -> list[slice]:
        # Libraries may copy what they work on: half a gigabyte, or a sixteenth.
        n_entries = max(2**27, self.n_entries // 16)
        return row_ranges(self.shape[0], n_entries // self.shape[1])

    def row_sqnorms_at_once(self, column_weights: np.ndarray | None) -> Tall:
        rows = self.array
        if column_weights is not None:
            rows = rows * self.cast(np.sqrt(column_weights))

        norms = self.xp.linalg.vector_norm(rows, axis=1)
        return self.xp.square(self.ops.widen(norms))

    def column_sqnorms(self) -> np.ndarray:
        if len(self.row_blocks) > 1:
            return super().column_sqnorms()

        sums = self.xp.sum(self.xp.square(self.array), axis=0)
        return to_host(sums).astype(np.float64, copy=False)

    def filled(self, fill: CellChange | None = None) -> Device:
        xp = self.xp

        def fill_with_zeros(rows: Tall) -> Tall:
            return xp.where(xp.isnan(rows), xp.zeros_like(rows), rows)

        change = fill or fill_with_zeros

        def change_rows(_: Ops, rows: Tall) -> Tall:
            return change(rows)

        # Work on a row takes several times its length.
        width = 4 * self.shape[1]
        rows = self.ops.row_map(change_rows, self.array, width=width)
        return Device(rows, self.metadata)


def dense_matrix(array: AnyArray, metadata: Metadata) -> Dense | Device:
    """Return a dense array of floats, here or on a device, as a matrix."""
    if isinstance(array, np.ndarray):
        return Dense(array, metadata)
    return Device(array, metadata)


def as_floats(X: AnyArray) -> AnyArray:
    """Return an array of another library as two-dimensional float32 or float64."""
    check_form(X)
    if hasattr(X, "detach"):
        X = X.detach()  # torch would keep every step for gradients
    return real_floats(X)


def check_form(X: AnyArray) -> None:
    """Raise unless an array has rows and columns."""
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead: X has shape "
            f"{tuple(X.shape)}; give rows by features, for one row X.reshape(1, -1)."
        )


def real_floats(values: AnyArray) -> AnyArray:
    """Return real numbers of any type as float32 or float64."""
    ops = library_ops(values)
    xp = ops.xp
    if values.dtype in (xp.float32, xp.float64):
        return values

    if xp.isdtype(values.dtype, "complex floating"):
        raise ValueError(
            f"Complex data not supported: X has dtype {values.dtype}; give real "
            "numbers."
        )

    # Of floats only those of half precision are left.
    if xp.isdtype(values.dtype, "real floating"):
        return xp.astype(values, xp.float32)
    return ops.widen(values)
