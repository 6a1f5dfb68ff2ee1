"""What the method asks of the data, for every kind of array it accepts.

The rest of the package touches the data ``X`` (n samples by p features) through the
functions of this file only: two products, the squared row norms and a choice of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = [
    "is_sparse",
    "matmul",
    "max_abs",
    "row_sqnorms",
    "take_rows",
    "transposed_matmul",
]

Array = Any
"""An n by p matrix: a NumPy array or a scipy.sparse matrix or array."""


def is_sparse(X: Array) -> bool:
    """Tell whether ``X`` is a scipy.sparse matrix or array."""
    return bool(sp.issparse(X))


def matmul(X: Array, W: np.ndarray) -> np.ndarray:
    """Return ``X @ W`` as a dense array of X's dtype."""
    return np.asarray(X @ W.astype(X.dtype, copy=False))


def transposed_matmul(X: Array, V: np.ndarray) -> np.ndarray:
    """Return ``X.T @ V`` as a dense array of X's dtype."""
    return np.asarray(X.T @ V.astype(X.dtype, copy=False))


def row_sqnorms(X: Array) -> np.ndarray:
    """Return the squared Euclidean norm of every row, as float64.

    Overflow gives ``inf`` and underflow gives 0, both silently; a row with a NaN or
    an infinity gives NaN or ``inf``, so one pass also tells whether X is finite.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if is_sparse(X):
            squares = X.multiply(X)
            return np.asarray(squares.sum(axis=1, dtype=np.float64)).ravel()
        return np.einsum("ij,ij->i", X, X).astype(np.float64, copy=False)


def take_rows(X: Array, index: np.ndarray) -> Array:
    """Return the rows of ``X`` at ``index`` as a matrix of the same kind."""
    return X[index]


def max_abs(X: Array) -> float:
    """Return the largest absolute entry."""
    values = X.data if is_sparse(X) else X
    if values.size == 0:
        return 0.0
    return float(max(values.max(), -values.min()))
