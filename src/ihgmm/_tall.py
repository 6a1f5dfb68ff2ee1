"""Tall arrays: a number or a few for each row of the data, where the data is.

On the host these are NumPy arrays, on a device arrays of its library. What is small, a
number or a row for each cluster or column, is always a NumPy array on the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ihgmm._arrays import row_ranges
from ihgmm._devices import is_device, like, moved, namespace, to_host, wide

__all__ = [
    "Tall",
    "blank",
    "block_entries",
    "column_ends",
    "first_rows",
    "group_sizes",
    "group_sums",
    "indicators",
    "largest",
    "pick",
    "placed",
    "positive",
    "quotient",
    "row_dots",
    "row_norms",
    "row_step",
    "side_by_side",
    "spread",
    "stack",
    "take_columns",
    "tall_dot",
    "times_windows",
]

Tall = Any
"""An array of n rows: of NumPy, or of another library on its device."""

CACHED_ROWS, DEVICE_ENTRIES, BATCH = 2**12, 2**24, 2**12
"""Rows worked on at a time: so many stay in the cache of a host; a device does best
with many, as long as what they are turned into is small. Long sums are cut into
batches of so many terms."""


LONG = 2**11
"""Entries of a row from which it is worked on by itself."""


def row_step(rows: Tall, width: int = 1) -> int:
    """Return how many rows to work on at a time, each turned into width numbers."""
    if not is_device(rows):
        return CACHED_ROWS
    return max(CACHED_ROWS, DEVICE_ENTRIES // max(width, 1))


def block_entries(X: Any, on_host: int) -> int:
    """Return how many entries of X to work on at a time."""
    return max(on_host, DEVICE_ENTRIES) if is_device(X) else on_host


def stack(parts: list[Tall]) -> Tall:
    """Put tall arrays below each other."""
    if not is_device(parts[0]):
        return np.concatenate(parts)
    return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts)


def side_by_side(parts: list[Tall]) -> Tall:
    """Put tall blocks beside each other."""
    if not is_device(parts[0]):
        return np.hstack(parts)
    xp = namespace(parts[0])
    return xp.concat([like(part, parts[0]) for part in parts], axis=1)


def take_columns(block: Tall, chosen: np.ndarray) -> Tall:
    """Return the columns that are chosen by a mask."""
    if not is_device(block):
        return block[:, chosen]
    index = moved(np.flatnonzero(chosen), block)
    return namespace(block).take(block, index, axis=1)


def tall_dot(A: Tall, B: Tall) -> np.ndarray:
    """Return ``A.T @ B`` in float64, on the host."""
    if not is_device(A):
        return np.asarray(A.T @ B, dtype=np.float64)
    return to_host(_device_dot(A, B)).astype(np.float64, copy=False)


def _device_dot(A: Tall, B: Tall) -> Tall:
    """Return ``A.T @ B`` in float64: products of batches in A's type, then their sum.

    One product with so few rows and columns would keep little of a device busy, and
    would add up millions of terms in float32.
    """
    xp = namespace(A)
    batches = A.shape[0] // BATCH
    if batches <= 1:
        return wide(A.T @ B)
    end = batches * BATCH
    first, second = (
        xp.reshape(block[:end, :], (batches, BATCH, block.shape[1])) for block in (A, B)
    )
    total = xp.sum(wide(xp.matmul(xp.matrix_transpose(first), second)), axis=0)
    if end < A.shape[0]:
        total = total + wide(A[end:, :].T @ B[end:, :])
    return total


def row_norms(rows: Tall) -> Tall:
    """Return the Euclidean norm of each row, in the rows' type."""
    if not is_device(rows):
        return np.sqrt(np.einsum("ij,ij->i", rows, rows))
    with np.errstate(over="ignore", under="ignore"):  # for libraries over NumPy
        return namespace(rows).linalg.vector_norm(rows, axis=1)


def row_dots(A: Tall, B: Tall) -> Tall:
    """Return the inner product of each row of A with that of B."""
    if not is_device(A):
        return np.einsum("ij,ij->i", A, B)
    return namespace(A).sum(A * B, axis=1)


def column_ends(block: Tall) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest entry of each column."""
    if is_device(block):
        xp = namespace(block)
        return to_host(xp.min(block, axis=0)), to_host(xp.max(block, axis=0))
    k = block.shape[1]
    # NumPy reduces wide rows much faster than narrow ones: fold 64 rows into one.
    fold = len(block) // 64 * 64
    folded = block[:fold].reshape(-1, 64 * k) if fold else block
    ends = np.vstack(
        [
            folded.max(axis=0).reshape(-1, k),
            folded.min(axis=0).reshape(-1, k),
            block[fold:],
        ]
    )
    return ends.min(axis=0), ends.max(axis=0)


def largest(values: Tall, count: int) -> np.ndarray:
    """Return the positions of the ``count`` largest values, in any order."""
    n = values.shape[0]
    if not is_device(values):
        return np.argpartition(values, n - count)[n - count :]
    return to_host(namespace(values).argsort(values)[n - count :])


def positive(values: Tall) -> Tall:
    """Return the values, with zeros for negative ones."""
    if not is_device(values):
        return np.maximum(values, 0.0)
    xp = namespace(values)
    return xp.maximum(values, xp.zeros_like(values))


def quotient(a: Any, b: Tall, otherwise: float = 0.0) -> Tall:
    """Return ``a / b`` where b is positive, in float64."""
    if not is_device(b):
        out = np.full(len(b), otherwise)
        return np.divide(a, b, out=out, where=b > 0)
    xp = namespace(b)
    b = wide(b)
    one = xp.ones_like(b)
    return xp.where(b > 0, a / xp.where(b > 0, b, one), otherwise * one)


def blank(rows: Tall, which: Tall) -> Tall:
    """Set some rows, chosen by a mask, to zero; in place on the host."""
    if is_device(rows):
        return rows * like(~which, rows)[:, None]
    rows[which] = 0
    return rows


def placed(values: Tall, where: Tall) -> Tall:
    """Return integers for all rows: the values where a mask is true, 0 elsewhere."""
    if not is_device(where):
        out = np.zeros(len(where), dtype=np.intp)
        out[where] = values
        return out
    xp = namespace(where)
    chosen = xp.astype(where, values.dtype)
    at = positive(xp.cumulative_sum(chosen) - 1)
    return xp.take(values, at) * chosen


def pick(rows: Tall, labels: Tall) -> Tall:
    """Return one entry of each row, at the column its label says."""
    if not is_device(rows):
        return rows[np.arange(len(rows)), labels]
    xp = namespace(rows)
    n, k = rows.shape
    start = xp.arange(n, dtype=labels.dtype, device=rows.device) * k
    return xp.take(xp.reshape(rows, (-1,)), start + labels)


def spread(values: np.ndarray, labels: Tall) -> Tall:
    """Return, for each row, the value of its group."""
    if not is_device(labels):
        return np.asarray(values[labels])
    return namespace(labels).take(moved(values, labels), labels)


def times_windows(rows: Tall, values: Tall, places: np.ndarray) -> Tall:
    """Return rows times stretches of a long vector, from a place on for each row."""
    width = rows.shape[1]
    if not is_device(rows):
        if width < LONG:
            stretches = np.lib.stride_tricks.sliding_window_view(values, width)
            return rows * stretches[places]
        out = np.empty_like(rows)
        for row, place, product in zip(rows, places, out, strict=True):
            np.multiply(row, values[place : place + width], out=product)
        return out
    xp = namespace(values)
    starts = moved(places, values)
    steps = xp.arange(width, dtype=starts.dtype, device=values.device)
    index = xp.reshape(starts[:, None] + steps[None, :], (-1,))
    return rows * xp.reshape(xp.take(values, index), (len(places), width))


def indicators(labels: Tall, n_groups: int, weights: Tall, X: Any) -> Tall:
    """Return an n by n_groups block in X's type: the weight in the column of the label.

    Every other entry is zero.
    """
    if not is_device(labels):
        block = np.zeros((len(labels), n_groups), dtype=X.dtype)
        block[np.arange(len(labels)), labels] = weights
        return block
    return like(_belongs(labels, n_groups), X) * like(weights, X)[:, None]


def _belongs(labels: Tall, n_groups: int) -> Tall:
    """Return an n by n_groups mask of the group that each row belongs to."""
    xp = namespace(labels)
    columns = xp.arange(n_groups, dtype=labels.dtype, device=labels.device)
    return labels[:, None] == columns[None, :]


def group_sums(labels: Tall, values: Tall, n_groups: int) -> np.ndarray:
    """Return the sum of values over the rows of each group, in float64."""
    if not is_device(labels):
        return np.bincount(labels, values, n_groups)
    xp = namespace(labels)
    values = wide(values)
    total = xp.zeros((n_groups, 1), dtype=values.dtype, device=values.device)
    for rows in row_ranges(labels.shape[0], row_step(labels, n_groups)):
        mine = like(_belongs(labels[rows], n_groups), values)
        total = total + _device_dot(mine, values[rows][:, None])
    return to_host(total)[:, 0].astype(np.float64, copy=False)


def group_sizes(labels: Tall, n_groups: int) -> np.ndarray:
    """Return how many rows each group has."""
    if not is_device(labels):
        return np.bincount(labels, minlength=n_groups)
    xp = namespace(labels)
    parts = [
        xp.sum(xp.astype(_belongs(labels[rows], n_groups), labels.dtype), axis=0)
        for rows in row_ranges(labels.shape[0], row_step(labels, n_groups))
    ]
    return to_host(xp.sum(xp.stack(parts), axis=0))


def first_rows(labels: Tall, n_groups: int) -> np.ndarray:
    """Return the first row of each group; 0 for groups without rows."""
    if not is_device(labels):
        return np.array([(labels == k).argmax() for k in range(n_groups)])
    xp = namespace(labels)
    return np.array(
        [int(xp.argmax(xp.astype(labels == k, xp.uint8))) for k in range(n_groups)]
    )
