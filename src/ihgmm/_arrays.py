"""What the method asks of the data, for every kind of array it accepts.

The rest of the package touches the data ``X`` (n samples by p features) through the
functions of this file only: two products, the squared row norms and a choice of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

__all__ = [
    "is_sparse",
    "keep_cores_free",
    "matmul",
    "max_abs",
    "row_sqnorms",
    "take_rows",
    "transposed_matmul",
]

Array = Any
"""An n by p matrix: a NumPy array or a scipy.sparse matrix or array."""

PARTS = 8
"""Pieces a large sparse product is cut into; fixed, so that sums never depend on how
many threads there are."""

PARALLEL = 2**22
"""Multiplications from which a sparse product is worth threads."""


def is_sparse(X: Array) -> bool:
    """Tell whether ``X`` is a scipy.sparse matrix or array."""
    return bool(sp.issparse(X))


def matmul(X: Array, W: np.ndarray) -> np.ndarray:
    """Return ``X @ W`` as a dense array of X's dtype."""
    W = W.astype(X.dtype, copy=False)
    if not _is_large(X, W):
        return np.asarray(X @ W)
    if X.format == "csr":
        return _stacked(X, lambda part, _: part @ W)
    return _added(X.T, lambda part, rows: part.T @ W[rows])


def transposed_matmul(X: Array, V: np.ndarray) -> np.ndarray:
    """Return ``X.T @ V`` as a dense array of X's dtype."""
    V = V.astype(X.dtype, copy=False)
    if not _is_large(X, V):
        return np.asarray(X.T @ V)
    if X.format == "csr":
        return _added(X, lambda part, rows: part.T @ V[rows])
    return _stacked(X.T, lambda part, _: part @ V)


def _is_large(X: Array, W: np.ndarray) -> bool:
    """Tell whether to cut a product up: scipy's sparse ones run in one thread."""
    return is_sparse(X) and W.ndim == 2 and X.nnz * W.shape[1] >= PARALLEL


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def keep_cores_free(X: Array) -> AbstractContextManager[Any]:
    """Return a context in which sparse products find the cores idle.

    After a product of dense blocks, the threads of BLAS spin for a while and would
    hold up the threads of a sparse one.
    """
    if not is_sparse(X):
        return nullcontext()
    return _pools().limit(limits=1, user_api="blas")


Work = Callable[[Array, slice], np.ndarray]


def _stacked(X: Array, work: Work) -> np.ndarray:
    """Put the results for blocks of rows of a CSR matrix below each other."""
    return np.concatenate(list(_for_blocks(X, work)))


def _added(X: Array, work: Work) -> np.ndarray:
    """Add the results for blocks of rows of a CSR matrix, in their order."""
    results = _for_blocks(X, work)
    total = next(results)
    for result in results:
        total += result
    return total


def _for_blocks(X: Array, work: Work) -> Iterator[np.ndarray]:
    # As many threads as the user lets numerical libraries have.
    threads = max((lib["num_threads"] for lib in _pools().info()), default=1)
    edges = np.linspace(0, X.shape[0], PARTS + 1).astype(int)

    def call(block: int) -> np.ndarray:
        start, stop = edges[block], edges[block + 1]
        first, last = X.indptr[start], X.indptr[stop]
        part = sp.csr_array(
            (
                X.data[first:last],
                X.indices[first:last],
                X.indptr[start : stop + 1] - first,
            ),
            shape=(stop - start, X.shape[1]),
        )
        return work(part, slice(start, stop))

    if threads == 1:
        yield from map(call, range(PARTS))
        return
    with ThreadPoolExecutor(min(threads, PARTS)) as pool:
        yield from pool.map(call, range(PARTS))


def row_sqnorms(X: Array) -> np.ndarray:
    """Return the squared Euclidean norm of every row, as float64.

    Overflow gives ``inf`` and underflow gives 0, both silently; a row with a NaN or
    an infinity gives NaN or ``inf``, so one pass also tells whether X is finite.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if is_sparse(X):
            if X.format != "csr":
                squares = np.square(X.data, dtype=np.float64)
                return np.bincount(X.indices, squares, X.shape[0])
            return _segment_sums(X)
        return np.einsum("ij,ij->i", X, X).astype(np.float64, copy=False)


def _segment_sums(X: Array) -> np.ndarray:
    """Return squared row norms of a CSR matrix without a copy as large as it."""
    norms = np.zeros(X.shape[0])
    step = max(1, X.shape[0] // 64)
    for start in range(0, X.shape[0], step):
        indptr = X.indptr[start : start + step + 1]
        squares = np.square(X.data[indptr[0] : indptr[-1]], dtype=np.float64)
        filled = np.diff(indptr) > 0
        if filled.any():
            starts = indptr[:-1][filled] - indptr[0]
            norms[start : start + step][filled] = np.add.reduceat(squares, starts)
    return norms


def take_rows(X: Array, index: np.ndarray) -> Array:
    """Return the rows of ``X`` at ``index`` as a matrix of the same kind."""
    return X[index]


def max_abs(X: Array) -> float:
    """Return the largest absolute entry."""
    values = X.data if is_sparse(X) else X
    if values.size == 0:
        return 0.0
    return float(max(values.max(), -values.min()))
