"""The one door: what kind of array the data are, asked once."""

import os
from collections.abc import Iterator, Mapping, Set
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm.matrix.base import Matrix, float_type
from ihgmm.matrix.device import Device, as_floats
from ihgmm.matrix.formats import open_stored
from ihgmm.matrix.memory import Dense
from ihgmm.matrix.ops import Ops, is_foreign, is_lazy, library_ops
from ihgmm.matrix.sparse import open_sparse
from ihgmm.matrix.stored import held


def as_matrix(X: Any) -> Matrix:
    """Return data of any kind as a matrix; nothing is copied that need not be.

    Parameters
    ----------
    X : Matrix, array-like, sparse matrix, or data that is not in memory
        A :class:`Matrix` comes back as it is. Arrays and sparse matrices of NumPy,
        scipy, torch, CuPy and libraries of the array API standard, memory maps, HDF5,
        zarr, Parquet and dask are known. All else becomes a NumPy array.

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
    X = X if sp.issparse(X) else np.asarray(X)
    return held(X, float_type(X.dtype))


def recognize(X: Any) -> Matrix | None:
    """Return data that scikit-learn does not know as a matrix; None for all else."""
    if isinstance(X, Matrix):
        return X
    if type(X) is np.ndarray and X.dtype.kind == "f":  # most are
        return None
    if isinstance(X, np.ma.MaskedArray) and X.ndim == 2:
        # NumPy forgets the mask of an array that it converts.
        return Dense(np.ma.filled(X.astype(float_type(X.dtype)), np.nan))
    if is_lazy(X):
        from ihgmm.matrix.dask import open_dask  # only where there is dask

        return open_dask(X)
    for known in (open_stored(X), open_sparse(X)):
        if known is not None:
            return known
    if is_foreign(X):
        return Device(as_floats(X))
    _refuse(X)
    return None


def ops_of(a: Any) -> Ops:
    """Return what serves an array that comes without a matrix."""
    if not is_lazy(a):
        return library_ops(a)
    from ihgmm.matrix.dask import block_ops

    return block_ops(library_ops(a._meta))


def _refuse(X: Any) -> None:
    """Raise if X is no matrix: NumPy would search some for numbers without end."""
    readable = any(hasattr(X, name) for name in READABLE)
    annotated = type(X).__module__.startswith("anndata") and hasattr(X, "obs")
    mixed = isinstance(X, tuple) and len({getattr(a, "ndim", 0) for a in X}) > 1
    wrong = isinstance(X, NO_MATRIX) or annotated or mixed or not readable
    if wrong and not sp.issparse(X):
        plain = X is None or isinstance(X, Number)
        shown = repr(X) if plain else f"of type {type(X).__name__}"
        raise TypeError(
            f"X is {shown}, not a matrix of numbers; give an array, a data frame or a "
            "sparse matrix, rows being observations: of AnnData adata.X, of a file "
            "ihgmm.open_data(path)."
        )
    dtype = getattr(X, "dtype", None)
    names = getattr(dtype, "names", None)
    if names:
        raise TypeError(
            f"X is an array of records, {', '.join(map(repr, names[:5]))}; give "
            "numpy.lib.recfunctions.structured_to_unstructured(X)."
        )
    if dtype is not None and getattr(dtype, "kind", None) in ("m", "M"):
        raise TypeError(
            f"X is of {dtype}: times, which have no zero; give numbers, such as the "
            "days since some date."
        )
    # Whole numbers, of an array or of columns.
    if hasattr(X, "select_dtypes"):
        X = X.select_dtypes("int32").to_numpy()
    elif sp.issparse(X):
        # Its own minimum would first add up entries of one cell, in the user's matrix.
        X = X.data if X.format in ("csr", "csc", "coo") else X.tocoo().data
    whole = getattr(X, "dtype", None) == np.int32 and getattr(X, "size", 0) > 0
    if whole and X.min() == NA_OF_R:
        raise ValueError(
            f"X holds {NA_OF_R}, which is how R stores NA among whole numbers; in R, "
            'write storage.mode(X) <- "double" first, or of a data frame '
            "X[] <- lapply(X, as.double)."
        )


NA_OF_R = -(2**31)
NO_MATRIX = (str, bytes, bytearray, os.PathLike, Number, Mapping, Iterator, Set)
READABLE = ("__len__", "__array__", "__dataframe__", "__array_interface__")
