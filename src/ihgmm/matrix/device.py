"""Dense arrays of torch, CuPy and all that follow the array API standard."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ihgmm.matrix.base import NOTHING, About
from ihgmm.matrix.memory import Array, Dense, Held
from ihgmm.matrix.ops import Tall, library_ops, to_host
from ihgmm.matrix.threads import row_ranges


class OnDevice(Held):
    """Numbers in an array of another library; all that is tall stays on its device."""

    on_host = False
    least_range = 2**24

    def to_device(self, values: Any) -> Tall:
        return self.ops.to_device(values, self.values)

    def cast(self, values: Any) -> Tall:
        return self.ops.cast_like(values, self.values)


class Device(OnDevice, Array):
    """A dense array of another library."""

    def __init__(self, array: Any, about: About = NOTHING) -> None:
        ops, shape = library_ops(array), (int(array.shape[0]), int(array.shape[1]))
        super().__init__(shape, ops.host_dtype(array), about, ops)
        self.array = self.values = array
        self.xp = ops.xp

    def __matmul__(self, W: Any) -> Tall:
        return self.array @ self.cast(W)

    def adjoint(self, V: Any) -> Tall:
        return self.array.T @ self.cast(V)

    def to_memory(self) -> Dense:
        return Dense(to_host(self.array), self.about.of_taken_rows())

    @cached_property
    def row_blocks(self) -> list[slice]:
        # Libraries may copy what they work on: half a gigabyte, or a sixteenth.
        entries = max(2**27, self.n_entries // 16)
        return row_ranges(self.shape[0], entries // self.shape[1])

    def own_row_sqnorms(self, column_weights: np.ndarray | None) -> Tall:
        rows = self.array
        if column_weights is not None:
            rows = rows * self.cast(np.sqrt(column_weights))
        return self.xp.square(self.ops.widen(self.xp.linalg.vector_norm(rows, axis=1)))

    def column_sqnorms(self) -> np.ndarray:
        if len(self.row_blocks) > 1:
            return super().column_sqnorms()
        sums = self.xp.sum(self.xp.square(self.array), axis=0)
        return to_host(sums).astype(np.float64, copy=False)

    def filled(self, fill: Any = None) -> Device:
        xp = self.xp

        def zeros(rows: Tall) -> Tall:
            return xp.where(xp.isnan(rows), xp.zeros_like(rows), rows)

        # Work on a row takes several times its length.
        width, change = 4 * self.shape[1], fill or zeros
        lines = self.ops.row_map(lambda _, rows: change(rows), self.array, width=width)
        return Device(lines, self.about)


def dense(array: Any, about: About) -> Dense | Device:
    """Return a dense array of floats, here or on a device, as a matrix."""
    return (Dense if isinstance(array, np.ndarray) else Device)(array, about)


def as_floats(X: Any) -> Any:
    """Return an array of another library as two-dimensional float32 or float64."""
    check_form(X)
    if hasattr(X, "detach"):
        X = X.detach()  # torch would keep every step for gradients
    return real_floats(X)


def check_form(X: Any) -> None:
    """Raise unless an array has rows and columns."""
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead: X has shape "
            f"{tuple(X.shape)}; give rows by features, for one row X.reshape(1, -1)."
        )


def real_floats(values: Any) -> Any:
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
    half = xp.isdtype(values.dtype, "real floating")
    return xp.astype(values, xp.float32) if half else ops.widen(values)
