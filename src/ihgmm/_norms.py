"""Squared norms of rows and columns, and the largest entry."""

from __future__ import annotations

from typing import Any

import numpy as np

from ihgmm._arrays import Array, is_sparse, row_ranges
from ihgmm._chunks import RowBlocks
from ihgmm._devices import is_device, namespace, to_host, wide
from ihgmm._threads import in_parts, is_large, sum_of

__all__ = ["column_sqnorms", "max_abs", "row_sqnorms"]

DEVICE_BLOCK = 2**27
"""Entries of X worked on at a time on a device where there may be a copy of them."""


def row_sqnorms(X: Array) -> Any:
    """Return the squared Euclidean norm of every row, as float64, where X is.

    Overflow gives ``inf`` and underflow gives 0, both silently; a row with a NaN or
    an infinity gives NaN or ``inf``, so one pass also tells whether X is finite.
    """
    if isinstance(X, RowBlocks):
        return np.concatenate(list(X.map(row_sqnorms)))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if is_device(X):
            return _device_sqnorms(X)
        if is_sparse(X):
            if X.format != "csr":
                squares = np.square(X.data, dtype=np.float64)
                return np.bincount(X.indices, squares, X.shape[0])
            return _segment_sums(X)
        if not is_large(X):
            return np.einsum("ij,ij->i", X, X).astype(np.float64, copy=False)
        norms = np.empty(X.shape[0])

        def work(rows: slice) -> None:
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                norms[rows] = np.einsum("ij,ij->i", X[rows], X[rows])

        list(in_parts(X.shape[0], work))
        return norms


def _device_sqnorms(X: Array) -> Any:
    """Return squared row norms; libraries may copy what they take the norms of."""
    xp = namespace(X)
    ranges = row_ranges(X.shape[0], DEVICE_BLOCK // X.shape[1])
    norms = [wide(xp.linalg.vector_norm(X[rows, :], axis=1)) for rows in ranges]
    return xp.square(norms[0] if len(norms) == 1 else xp.concat(norms))


def _segment_sums(X: Array) -> np.ndarray:
    """Return squared row norms of a CSR matrix without a copy as large as it."""
    norms = np.zeros(X.shape[0])
    for rows in row_ranges(X.shape[0], X.shape[0] // 64):
        indptr = X.indptr[rows.start : rows.stop + 1]
        squares = np.square(X.data[indptr[0] : indptr[-1]], dtype=np.float64)
        filled = np.diff(indptr) > 0
        if filled.any():
            starts = indptr[:-1][filled] - indptr[0]
            norms[rows][filled] = np.add.reduceat(squares, starts)
    return norms


def column_sqnorms(X: Array) -> np.ndarray:
    """Return the squared Euclidean norm of every column, as float64."""
    if isinstance(X, RowBlocks):
        return sum_of(X.map(column_sqnorms))
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=0), dtype=np.float64).ravel()
    if is_device(X):
        return _device_column_sqnorms(X)
    total = np.zeros(X.shape[1])
    for rows in row_ranges(X.shape[0], 2**20 // max(X.shape[1], 1)):
        total += np.einsum("ij,ij->j", X[rows], X[rows], dtype=np.float64)
    return total


def _device_column_sqnorms(X: Array) -> np.ndarray:
    """Return squared column norms, a block of rows squared at a time."""
    xp = namespace(X)
    total = np.zeros(X.shape[1])
    for rows in row_ranges(X.shape[0], DEVICE_BLOCK // X.shape[1]):
        total += to_host(xp.sum(xp.square(X[rows, :]), axis=0))
    return total


def max_abs(X: Array) -> float:
    """Return the largest absolute entry."""
    if isinstance(X, RowBlocks):
        return max(X.map(max_abs))
    if is_device(X):
        xp = namespace(X)
        return float(max(xp.max(X), -xp.min(X)))
    values = X.data if is_sparse(X) else X
    if values.size == 0:
        return 0.0
    return float(max(values.max(), -values.min()))
