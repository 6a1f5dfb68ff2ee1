"""Data whose missing cells are said by a mask."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm.matrix.base import float_type
from ihgmm.matrix.device import as_floats
from ihgmm.matrix.ops import is_foreign, library_ops, to_host
from ihgmm.matrix.sparse_device import open_sparse


def with_missing(X: Any, mask: Any) -> Any:
    """Return a copy of data in which a mask says what is missing.

    Parameters
    ----------
    X : array-like, sparse matrix, torch tensor or another library's array
        The data, in memory.
    mask : array-like or sparse matrix of bool, of the shape of X
        True where a cell is missing, whatever X has there.

    Returns
    -------
    ndarray, sparse array, or an array of X's library
        X with NaN in those cells, for estimators with ``missing="fit"``. Cells that
        sparse data do not store stay zero unless the mask has them.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm import with_missing
    >>> with_missing(np.eye(2), [[False, True], [False, False]])
    array([[ 1., nan],
           [ 0.,  1.]])
    """
    shape = tuple(X.shape) if hasattr(X, "shape") else np.shape(X)
    where: Any = mask if sp.issparse(mask) else to_host(mask)
    if where.dtype != bool or where.shape != shape:
        raise ValueError(
            f"mask has entries of type {where.dtype} in shape {where.shape}; give True "
            f"or False for each cell of X, in shape {shape}."
        )
    if sp.issparse(X):
        return _sparse(X, where)
    on_device = open_sparse(X)
    if on_device is not None:
        return on_device.with_entries(_sparse(on_device.to_memory().array, where))
    where = where.toarray() if sp.issparse(where) else where
    if is_foreign(X):
        X = as_floats(X)
        ops = library_ops(X)
        nothing = ops.xp.zeros_like(X) + np.nan
        return ops.xp.where(ops.to_device(where, X), nothing, X)
    X = np.asarray(X)
    return np.where(where, np.nan, X).astype(float_type(X.dtype), copy=False)


def _sparse(X: Any, mask: Any) -> Any:
    """Store NaN where the mask is true, and what X stores elsewhere."""
    X, p = X.tocoo(), X.shape[1]
    rows, columns = mask.nonzero()
    dtype = float_type(X.dtype)
    stored, wanted = X.row.astype(np.int64) * p + X.col, rows.astype(np.int64) * p
    stays = ~np.isin(stored, wanted + columns)
    data = np.append(X.data[stays].astype(dtype), np.full(len(rows), np.nan, dtype))
    places = np.append(X.row[stays], rows), np.append(X.col[stays], columns)
    return sp.csr_array((data, places), shape=X.shape)
