"""The data X and its rows, for every kind of array the package accepts.

The rest of the package touches ``X`` (n samples by p features) through this file, its
two products (``_products``) and its norms (``_norms``) only.
"""

from __future__ import annotations

from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm._chunks import RowBlocks, in_unit
from ihgmm._devices import dtype_of, is_device, moved, namespace, times, to_host

__all__ = [
    "Array",
    "dense_rows",
    "is_sparse",
    "like_rows",
    "n_entries",
    "rescaled",
    "row_ranges",
    "take_rows",
]

Array = Any
"""An n by p matrix: a NumPy array, a scipy.sparse matrix or array, RowBlocks, or an
array of another library on its device."""


def is_sparse(X: Array) -> bool:
    """Tell whether ``X`` is a scipy.sparse matrix or array, or blocks of them."""
    return X.sparse if isinstance(X, RowBlocks) else bool(sp.issparse(X))


def n_entries(X: Array) -> int:
    """Return how many numbers ``X`` stores."""
    if is_device(X):
        return int(X.shape[0] * X.shape[1])
    return int(X.nnz if is_sparse(X) else X.size)


def take_rows(X: Array, index: Any) -> Array:
    """Return the rows of ``X`` at ``index`` as a matrix in memory, or on X's device."""
    if is_device(X):
        if isinstance(index, slice):
            return X[index, ...]
        return namespace(X).take(X, moved(index, X), axis=0)
    return X.take(index) if isinstance(X, RowBlocks) else X[index]


def dense_rows(X: Array, index: np.ndarray | slice) -> np.ndarray:
    """Return the rows of ``X`` at ``index`` as a dense array; for few rows only."""
    rows = take_rows(X, index)
    if is_device(rows):
        return to_host(rows)
    return np.asarray(rows.toarray() if is_sparse(rows) else rows)


def row_ranges(n_rows: int, step: int) -> list[slice]:
    """Cut rows into ranges of ``step`` rows, at least one; the last may be shorter."""
    edges = [*range(0, n_rows, max(1, step)), n_rows]
    return [slice(*edge) for edge in pairwise(edges)]


def rescaled(X: Array, factor: float) -> Array:
    """Return ``factor * X``; nothing is read of data that is not in memory."""
    if isinstance(X, RowBlocks):
        other = copy(X)
        other.factor = X.factor * factor
        return other
    if not is_device(X):
        return in_unit(X, X.dtype, factor)
    kind = dtype_of(X).type
    if np.isfinite(kind(factor)):
        return times(X, factor)
    return X / float(kind(1 / factor))


def like_rows(X: Array, values: np.ndarray) -> Any:
    """Return one figure for each row of X, in chunks where X is a dask array."""
    return X.like_rows(values) if hasattr(X, "like_rows") else values
