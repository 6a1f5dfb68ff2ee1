"""What the method asks of the data, for every kind of array it accepts.

The rest of the package touches the data ``X`` (n samples by p features) through the
functions of this file only: two products, the squared row norms and a choice of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

from ihgmm._chunks import RowBlocks, in_unit
from ihgmm._devices import (
    dtype_of,
    is_device,
    kind_of,
    like,
    moved,
    namespace,
    times,
    to_host,
    wide,
)
from ihgmm._readers import open_rows

__all__ = [
    "RowBlocks",
    "column_sqnorms",
    "dense_rows",
    "dtype_of",
    "is_device",
    "is_sparse",
    "kind_of",
    "like",
    "like_rows",
    "matmul",
    "max_abs",
    "moved",
    "n_entries",
    "namespace",
    "one_thread",
    "open_rows",
    "own_threads",
    "rescaled",
    "row_ranges",
    "row_sqnorms",
    "take_rows",
    "there_and_back",
    "times",
    "to_host",
    "transposed_matmul",
    "wide",
]

Array = Any
"""An n by p matrix: a NumPy array, a scipy.sparse matrix or array, RowBlocks, or an
array of another library on its device."""

PARTS = 8
"""Ranges of rows that large work is cut into; fixed, so that sums never depend on how
many threads there are."""

LARGE, SHORT, CACHED = 10**7, 512, 2**18
"""Dense data of so many entries in rows so short is read so many entries at a time."""

PARALLEL = 2**22
"""Multiplications from which a sparse product is worth threads."""

DEVICE_BLOCK = 2**27
"""Entries of X worked on at a time on a device where there may be a copy of them."""


def is_sparse(X: Array) -> bool:
    """Tell whether ``X`` is a scipy.sparse matrix or array, or blocks of them."""
    return X.sparse if isinstance(X, RowBlocks) else bool(sp.issparse(X))


def matmul(X: Array, W: Any) -> Any:
    """Return ``X @ W`` as a dense array of X's dtype, where X is."""
    W = like(W, X)
    if is_device(X):
        return X @ W
    if isinstance(X, RowBlocks):
        return np.concatenate(list(X.map(partial(_flipped, matmul, W))))
    if _is_large(X, W):
        if X.format == "csr":
            return _stacked(X, lambda part, _: part @ W)
        return _added(X.T, lambda part, rows: part.T @ W[rows])
    if _is_read_once(X) and W.ndim == 2:
        Y = np.empty((X.shape[0], W.shape[1]), dtype=X.dtype)
        with own_threads(X):
            for _ in _in_parts(len(Y), lambda rows: np.matmul(X[rows], W, out=Y[rows])):
                pass
        return Y
    return np.asarray(X @ W)


def transposed_matmul(X: Array, V: Any) -> Any:
    """Return ``X.T @ V`` as a dense array of X's dtype, where X is."""
    V = like(V, X)
    if is_device(X):
        return X.T @ V
    if isinstance(X, RowBlocks):
        return _sum(X.map(transposed_matmul, V))
    if _is_large(X, V):
        if X.format == "csr":
            return _added(X, lambda part, rows: part.T @ V[rows])
        return _stacked(X.T, lambda part, _: part @ V)
    if _is_read_once(X) and V.ndim == 2:
        with own_threads(X):
            return _sum(_in_parts(X.shape[0], lambda part: _adjoint(X, V, part)))
    return np.asarray(X.T @ V)


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


def _flipped(
    function: Callable[..., Any], W: np.ndarray, block: Array, *tall: Any
) -> Any:
    """Call a function of a block and W, with W first so that it can be bound."""
    return function(block, W, *tall)


def _is_large(X: Array, W: np.ndarray) -> bool:
    """Tell whether to cut a product up: scipy's sparse ones run in one thread."""
    return is_sparse(X) and W.ndim == 2 and X.nnz * W.shape[1] >= PARALLEL


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def own_threads(X: Array) -> AbstractContextManager[Any]:
    """Return a context in which work on ranges of rows of X finds the cores idle.

    After a product of dense blocks the threads of BLAS spin for a while and would hold
    up those of this file: here BLAS keeps to one.
    """
    if is_sparse(X) or _is_read_once(X):
        return _pools().limit(limits=1, user_api="blas")
    return nullcontext()


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which numerical libraries use one thread."""
    return _pools().limit(limits=1)


def _is_read_once(X: Array) -> bool:
    """Tell whether dense rows are so many and short that reading them is the cost."""
    if not isinstance(X, np.ndarray) or not X.flags.c_contiguous:
        return False
    return X.size >= LARGE and X.shape[1] <= SHORT


Work = Callable[[slice], Any]


def _stacked(X: Array, work: Callable[[Array, slice], np.ndarray]) -> np.ndarray:
    """Put the results for blocks of rows of a CSR matrix below each other."""
    return np.concatenate(list(_in_parts(X.shape[0], _of_csr(X, work))))


def _added(X: Array, work: Callable[[Array, slice], np.ndarray]) -> np.ndarray:
    """Add the results for blocks of rows of a CSR matrix, in their order."""
    return _sum(_in_parts(X.shape[0], _of_csr(X, work)))


def _sum(results: Iterator[np.ndarray]) -> np.ndarray:
    total = next(results)
    for result in results:
        total += result
    return total


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


def _in_parts(n: int, work: Work) -> Iterator[Any]:
    """Yield the results of some work on ranges of rows, done in threads, in order."""
    # As many threads as the user lets numerical libraries have.
    threads = max((lib["num_threads"] for lib in _pools().info()), default=1)
    edges = np.linspace(0, n, PARTS + 1).astype(int).tolist()
    ranges = [slice(*edge) for edge in pairwise(edges)]
    if threads == 1:
        yield from map(work, ranges)
        return
    with ThreadPoolExecutor(min(threads, PARTS)) as pool:
        yield from pool.map(work, ranges)


def there_and_back(
    X: Array, W: np.ndarray, row_scale: Any = None, minus: Any = None
) -> tuple[Any, Any]:
    """Return ``Y = A @ W - minus`` and ``A.T @ Y``, A being X with its rows rescaled.

    Many short dense rows are read once: a few at a time stay in the cache between the
    two products. So is data that is not in memory.
    """
    W = like(W, X)
    n = X.shape[0]
    if isinstance(X, RowBlocks):
        given = {"row_scale": row_scale, "minus": minus}
        given = {name: tall for name, tall in given.items() if tall is not None}
        return _stack_and_sum(X.map(partial(_back, W, list(given)), *given.values()))
    if not _is_read_once(X):
        Y = matmul(X, W)
        if row_scale is not None:
            Y *= row_scale[:, None]
        if minus is not None:
            Y -= minus
        back = Y if row_scale is None else Y * row_scale[:, None]
        return Y, transposed_matmul(X, back)
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
        return Y, _sum(_in_parts(n, work))


def _back(W: np.ndarray, names: list[str], block: Array, *tall: Any) -> Any:
    """Call ``there_and_back`` for a block of rows and its parts of tall arrays."""
    return there_and_back(block, W, **dict(zip(names, tall, strict=True)))


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
        if X.size < LARGE:
            return np.einsum("ij,ij->i", X, X).astype(np.float64, copy=False)
        norms = np.empty(X.shape[0])

        def work(rows: slice) -> None:
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                norms[rows] = np.einsum("ij,ij->i", X[rows], X[rows])

        list(_in_parts(X.shape[0], work))
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


def n_entries(X: Array) -> int:
    """Return how many numbers ``X`` stores."""
    if is_device(X):
        return int(X.shape[0] * X.shape[1])
    return int(X.nnz if is_sparse(X) else X.size)


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


def column_sqnorms(X: Array) -> np.ndarray:
    """Return the squared Euclidean norm of every column, as float64."""
    if isinstance(X, RowBlocks):
        return _sum(X.map(column_sqnorms))
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
