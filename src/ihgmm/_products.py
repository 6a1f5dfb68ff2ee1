"""The two products with X, alone and one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm._arrays import Array, is_sparse
from ihgmm._chunks import RowBlocks
from ihgmm._devices import is_device, like
from ihgmm._threads import Work, in_parts, is_read_once, own_threads, sum_of

__all__ = ["matmul", "there_and_back", "transposed_matmul"]

CACHED = 2**18
"""Entries of many short dense rows that are read at a time."""

PARALLEL = 2**22
"""Multiplications from which a sparse product is worth threads."""


def matmul(X: Array, W: Any) -> Any:
    """Return ``X @ W`` as a dense array of X's dtype, where X is."""
    W = like(W, X)
    if is_device(X):
        return X @ W
    if isinstance(X, RowBlocks):
        return np.concatenate(list(X.map(partial(_product, W))))
    if _is_worth_threads(X, W):
        if X.format == "csr":
            return _stacked(X, lambda part, _: part @ W)
        return _added(X.T, lambda part, rows: part.T @ W[rows])
    if is_read_once(X) and W.ndim == 2:
        Y = np.empty((X.shape[0], W.shape[1]), dtype=X.dtype)
        with own_threads(X):
            for _ in in_parts(len(Y), lambda rows: np.matmul(X[rows], W, out=Y[rows])):
                pass
        return Y
    return np.asarray(X @ W)


def transposed_matmul(X: Array, V: Any) -> Any:
    """Return ``X.T @ V`` as a dense array of X's dtype, where X is."""
    V = like(V, X)
    if is_device(X):
        return X.T @ V
    if isinstance(X, RowBlocks):
        return sum_of(X.map(transposed_matmul, V))
    if _is_worth_threads(X, V):
        if X.format == "csr":
            return _added(X, lambda part, rows: part.T @ V[rows])
        return _stacked(X.T, lambda part, _: part @ V)
    if is_read_once(X) and V.ndim == 2:
        with own_threads(X):
            return sum_of(in_parts(X.shape[0], lambda part: _adjoint(X, V, part)))
    return np.asarray(X.T @ V)


def there_and_back(
    X: Array, W: np.ndarray, row_scale: Any = None, minus: Any = None
) -> tuple[Any, Any]:
    """Return ``Y = A @ W - minus`` and ``A.T @ Y``, A being X with its rows rescaled.

    Many short dense rows are read once: a few at a time stay in the cache between the
    two products. So is data that is not in memory.
    """
    W = like(W, X)
    if isinstance(X, RowBlocks):
        given = {"row_scale": row_scale, "minus": minus}
        given = {name: tall for name, tall in given.items() if tall is not None}
        return _stack_and_sum(X.map(partial(_back, W, list(given)), *given.values()))
    if is_read_once(X):
        return _from_one_reading(X, W, row_scale, minus)
    Y = matmul(X, W)
    if row_scale is not None:
        Y *= row_scale[:, None]
    if minus is not None:
        Y -= minus
    back = Y if row_scale is None else Y * row_scale[:, None]
    return Y, transposed_matmul(X, back)


def _from_one_reading(
    X: np.ndarray, W: np.ndarray, row_scale: Any, minus: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Do as ``there_and_back`` does for many short dense rows."""
    n = X.shape[0]
    Y = np.empty((n, W.shape[1]), dtype=X.dtype)

    def work(part: slice) -> np.ndarray:
        total = np.zeros((W.shape[1], W.shape[0]), dtype=X.dtype)
        for rows in _few(X, part):
            few = np.matmul(X[rows], W, out=Y[rows])
            if row_scale is not None:
                few *= row_scale[rows, None]
            if minus is not None:
                few -= minus[rows]
            if row_scale is not None:
                few = few * row_scale[rows, None]
            total += few.T @ X[rows]
        return total.T

    with own_threads(X):
        return Y, sum_of(in_parts(n, work))


def _back(W: np.ndarray, names: list[str], block: Array, *tall: Any) -> Any:
    """Call ``there_and_back`` for a block of rows and its parts of tall arrays."""
    return there_and_back(block, W, **dict(zip(names, tall, strict=True)))


def _product(W: np.ndarray, block: Array) -> Any:
    """Return ``block @ W``, with W first so that it can be bound."""
    return matmul(block, W)


def _adjoint(X: np.ndarray, V: np.ndarray, part: slice) -> np.ndarray:
    """Return ``X.T @ V`` of a part of the rows, a few at a time."""
    total = np.zeros((V.shape[1], X.shape[1]), dtype=X.dtype)
    for rows in _few(X, part):
        total += V[rows].T @ X[rows]
    return total.T


def _few(X: np.ndarray, part: slice) -> list[slice]:
    """Cut a part of the rows into ranges that stay in the cache."""
    step = max(1, CACHED // X.shape[1])
    starts = range(part.start, part.stop, step)
    return [slice(start, min(start + step, part.stop)) for start in starts]


def _is_worth_threads(X: Array, W: np.ndarray) -> bool:
    """Tell whether to cut a product up: scipy's sparse ones run in one thread."""
    return is_sparse(X) and W.ndim == 2 and X.nnz * W.shape[1] >= PARALLEL


def _stacked(X: Array, work: Callable[[Array, slice], np.ndarray]) -> np.ndarray:
    """Put the results for blocks of rows of a CSR matrix below each other."""
    return np.concatenate(list(in_parts(X.shape[0], _of_csr(X, work))))


def _added(X: Array, work: Callable[[Array, slice], np.ndarray]) -> np.ndarray:
    """Add the results for blocks of rows of a CSR matrix, in their order."""
    return sum_of(in_parts(X.shape[0], _of_csr(X, work)))


def _of_csr(X: Array, work: Callable[[Array, slice], np.ndarray]) -> Work:
    """Hand a block of rows of a CSR matrix, not copied, to some work."""

    def call(rows: slice) -> np.ndarray:
        first, last = X.indptr[rows.start], X.indptr[rows.stop]
        part = sp.csr_array(
            (
                X.data[first:last],
                X.indices[first:last],
                X.indptr[rows.start : rows.stop + 1] - first,
            ),
            shape=(rows.stop - rows.start, X.shape[1]),
        )
        return work(part, rows)

    return call


def _stack_and_sum(
    results: Iterator[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
    """Put first results below each other and add up the second ones."""
    first, total = next(results)
    stack = [first]
    for part, more in results:
        stack.append(part)
        total += more
    return np.concatenate(stack), total
