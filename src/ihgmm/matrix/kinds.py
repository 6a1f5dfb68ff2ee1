"""The one door: what kind of array the data are, asked once."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm.matrix.base import Matrix, float_type
from ihgmm.matrix.device import Device, as_floats
from ihgmm.matrix.formats import open_stored
from ihgmm.matrix.memory import Dense, Sparse
from ihgmm.matrix.sparse_device import open_sparse
from ihgmm.matrix.tall import is_foreign


def as_matrix(X: Any) -> Matrix:
    """Return data of any kind as a matrix; nothing is copied that need not be.

    Parameters
    ----------
    X : Matrix, array-like, sparse matrix, or data that is not in memory
        A :class:`Matrix` comes back as it is. NumPy arrays and scipy.sparse matrices in
        memory, arrays of torch, CuPy and other libraries that follow the array API
        standard, sparse matrices of torch and CuPy, memory maps, HDF5, zarr and Parquet
        data sets, and dask arrays are known. All else becomes a NumPy array.

    Examples
    --------
    >>> import numpy as np
    >>> X = as_matrix(np.eye(3))
    >>> X @ np.ones((3, 1))
    array([[1.],
           [1.],
           [1.]])
    """
    matrix = recognize(X)
    if matrix is not None:
        return matrix
    if sp.issparse(X):
        X = X if X.format in ("csr", "csc") else X.tocsr()
        return Sparse(X.astype(float_type(X.dtype), copy=False))
    X = np.asarray(X)
    return Dense(X.astype(float_type(X.dtype), copy=False))


def recognize(X: Any) -> Matrix | None:
    """Return data that scikit-learn does not know as a matrix; None for all else."""
    if isinstance(X, Matrix):
        return X
    if isinstance(X, np.ma.MaskedArray) and X.ndim == 2:
        # NumPy forgets the mask of an array that it converts.
        return Dense(np.ma.filled(X.astype(float_type(X.dtype)), np.nan))
    if type(X).__module__.partition(".")[0] == "dask":
        from ihgmm.matrix.dask import open_dask

        return open_dask(X)
    stored = open_stored(X)
    if stored is not None:
        return stored
    sparse = open_sparse(X)
    if sparse is not None:
        return sparse
    return Device(as_floats(X)) if is_foreign(X) else None
