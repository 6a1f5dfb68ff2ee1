"""The one door: what kind of array the data are, asked once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Set
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm.matrix.arrays import Tall, is_foreign, is_lazy
from ihgmm.matrix.base import Matrix, float_type
from ihgmm.matrix.device import Device, as_floats
from ihgmm.matrix.formats import open_stored
from ihgmm.matrix.host_ops import library_ops
from ihgmm.matrix.memory import Dense
from ihgmm.matrix.ops import Ops
from ihgmm.matrix.sparse import open_sparse
from ihgmm.matrix.stored import materialize

NA_OF_R = -(2**31)
"""How R stores NA among whole numbers."""

NO_MATRIX = (str, bytes, bytearray, os.PathLike, Number, Mapping, Iterator, Set)
READABLE = ("__len__", "__array__", "__dataframe__", "__array_interface__")


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
    return materialize(X, float_type(X.dtype))


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

    stored = open_stored(X)
    if stored is not None:
        return stored
    sparse = open_sparse(X)
    if sparse is not None:
        return sparse
    if is_foreign(X):
        return Device(as_floats(X))

    _check_is_matrix(X)
    _check_has_numbers(X)
    _check_is_free_of_na_of_r(X)
    return None


def ops_of(a: Tall) -> Ops:
    """Return what serves an array that comes without a matrix."""
    if not is_lazy(a):
        return library_ops(a)

    from ihgmm.matrix.dask import block_ops

    return block_ops(library_ops(a._meta))


def _check_is_matrix(X: Any) -> None:
    """Raise if X is no matrix: NumPy would search some for numbers without end."""
    if sp.issparse(X):
        return

    is_readable = any(hasattr(X, name) for name in READABLE)
    is_annotated = type(X).__module__.startswith("anndata") and hasattr(X, "obs")
    is_mixed = isinstance(X, tuple) and len({getattr(a, "ndim", 0) for a in X}) > 1

    if isinstance(X, NO_MATRIX) or is_annotated or is_mixed or not is_readable:
        has_short_name = X is None or isinstance(X, Number)
        shown = repr(X) if has_short_name else f"of type {type(X).__name__}"
        raise TypeError(
            f"X is {shown}, not a matrix of numbers; give an array, a data frame or a "
            "sparse matrix, rows being observations: of AnnData adata.X, of a file "
            "ihgmm.open_data(path)."
        )


def _check_has_numbers(X: Any) -> None:
    """Raise if X is an array of records or times."""
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


def _check_is_free_of_na_of_r(X: Any) -> None:
    """Raise if X has whole numbers, of an array or of columns, one of them R's NA."""
    values = X
    if hasattr(X, "select_dtypes"):
        values = X.select_dtypes("int32").to_numpy()
    elif sp.issparse(X):
        # Its own minimum would first add up entries of one cell, in the user's matrix.
        values = X.data if X.format in ("csr", "csc", "coo") else X.tocoo().data

    is_int32 = getattr(values, "dtype", None) == np.int32
    if is_int32 and getattr(values, "size", 0) > 0 and values.min() == NA_OF_R:
        raise ValueError(
            f"X holds {NA_OF_R}, which is how R stores NA among whole numbers; in R, "
            'write storage.mode(X) <- "double" first, or of a data frame '
            "X[] <- lapply(X, as.double)."
        )
