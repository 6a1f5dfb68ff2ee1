"""Checks of the data matrix, wherever it is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from ihgmm._arrays import Array, rescaled
from ihgmm._checks.finite import raise_if_not_finite
from ihgmm._chunks import RowBlocks
from ihgmm._devices import dtype_of, is_device, kind_of, namespace, wide
from ihgmm._norms import max_abs, row_sqnorms
from ihgmm._readers import open_rows
from ihgmm._tall import Tall

__all__ = ["CheckedData", "check_blocks", "check_data"]

NO_NUMBERS = ("object", "string", "str", "category", "categorical")
"""Types of a column of a data frame that may be text."""

OPTIONS = {
    "accept_sparse": ("csr", "csc"),
    "dtype": (np.float64, np.float32),
    "ensure_all_finite": False,  # the row norms tell, and cost less
}


@dataclass(frozen=True)
class CheckedData:
    """Data that is safe to compute with.

    Attributes
    ----------
    X : array or sparse matrix
        Finite, float32 or float64. It is the caller's own unless ``unit`` is not 1.
    sqnorms : array of shape (n_samples,)
        Squared row norms, where X is.
    unit : float
        The power of two that X was divided by because squares of its entries would
        have overflowed or vanished; 1 for all ordinary data.
    """

    X: Array
    sqnorms: Tall
    unit: float

    def restore_squares(self, values: np.ndarray) -> np.ndarray:
        """Put values in squared units of X back; ``inf`` where that overflows."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(values * self.unit * self.unit)


def check_data(
    X: Any,
    estimator: BaseEstimator | None = None,
    *,
    reset: bool = True,
    blocks: bool = False,
    devices: bool = False,
    verbose: bool = False,
) -> CheckedData:
    """Validate a data matrix; one pass over it also gives the row norms.

    With an estimator, feature names and counts are recorded (``reset``) or compared.
    With ``blocks``, data that is not in memory stays where it is; with ``devices``,
    so do arrays of other libraries.
    """
    rows = open_rows(X) if blocks else None
    if rows is not None:
        rows.verbose = verbose
        X = rows
        check_blocks(X, estimator, reset)
    elif is_device(X):
        _check_place(X, estimator, devices)
        X = _device_floats(X)
        check_blocks(X, estimator, reset)
    else:
        _check_in_memory(X, estimator)
        _check_columns(X)
        if estimator is None:
            X = check_array(X, input_name="X", **OPTIONS)
        else:
            X = validate_data(estimator, X, reset=reset, **OPTIONS)
    sqnorms = row_sqnorms(X)
    total = float(namespace(sqnorms).sum(sqnorms))
    info = np.finfo(dtype_of(X))
    if np.sqrt(float(info.tiny)) < total < np.sqrt(float(info.max)) * 1e12:
        return CheckedData(X, sqnorms, 1.0)
    raise_if_not_finite(X, estimator)
    peak = max_abs(X)
    if peak == 0:
        return CheckedData(X, sqnorms, 1.0)
    unit = 2.0 ** np.clip(np.floor(np.log2(peak)), -1000, 1000)
    X = rescaled(X, 1 / unit)
    return CheckedData(X, row_sqnorms(X), float(unit))


def _check_columns(X: Any) -> None:
    """Raise if a data frame has columns of text, or X is no data but a model."""
    if isinstance(X, str | os.PathLike):
        raise TypeError(
            f"X is the path {os.fspath(X)!r}; open it first, for example by "
            "numpy.load(path, mmap_mode='r') or pyarrow.dataset.dataset(path)."
        )
    if isinstance(X, BaseEstimator):
        raise TypeError(
            f"X is of type {type(X).__name__}, not data; give the data first and then, "
            "where it is asked for, model.labels_."
        )
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return
    text = [
        repr(name)
        for name, kind in zip(X.columns, X.dtypes, strict=True)
        if str(kind).lower() in NO_NUMBERS and not _holds_numbers(X[name])
    ]
    if text:
        raise ValueError(
            f"X has columns that do not hold numbers: {', '.join(text[:5])}"
            f"{' and more' * (len(text) > 5)}. Leave them out, X.drop(columns=[...]), "
            "or turn them into numbers first."
        )


def _holds_numbers(column: Any) -> bool:
    try:
        np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _check_place(X: Any, estimator: BaseEstimator | None, devices: bool) -> None:
    """Raise if an array of another library is where it cannot be read."""
    if getattr(X.device, "type", "") == "meta":
        raise ValueError(
            f"X is a {kind_of(X)}: it has a shape, {tuple(X.shape)}, and no numbers; "
            "give a tensor that holds data, on the CPU or a GPU."
        )
    if not devices:
        raise TypeError(
            f"X is a {kind_of(X)}. {_who(estimator)} works on the host: give a NumPy "
            "copy (X.cpu().numpy() of a torch tensor, X.get() of a CuPy array)."
        )


def _who(estimator: BaseEstimator | None) -> str:
    return "This function" if estimator is None else type(estimator).__name__


def _check_in_memory(X: Any, estimator: BaseEstimator | None) -> None:
    """Raise if X is stored in a way that NumPy cannot read by itself."""
    home = type(X).__module__.partition(".")[0]
    if home == "pyarrow" and hasattr(X, "get_fragments"):
        remedy = "X.to_table().to_pandas()"
    elif home in ("h5py", "zarr") and hasattr(X, "keys"):
        remedy = "anndata.io.sparse_dataset(X).to_memory()"
    elif home == "anndata" and hasattr(X, "group"):
        remedy = "X.to_memory()"
    elif home == "dask" and sp.issparse(getattr(X, "_meta", None)):
        remedy = "X.compute()"
    else:
        return
    raise TypeError(
        f"X is of type {home}.{type(X).__name__}. {_who(estimator)} works on data in "
        f"memory: give {remedy}, or take IhSC or IhGMM, which read it where it is."
    )


def _device_floats(X: Any) -> Array:
    """Return an array of another library as two-dimensional float32 or float64."""
    if hasattr(X, "detach"):
        X = X.detach()  # torch would keep every step for gradients
    xp = namespace(X)
    layout = str(getattr(X, "layout", "torch.strided"))
    if layout != "torch.strided":
        raise TypeError(
            f"X is a torch tensor of layout {layout}; give a dense one (X.to_dense()), "
            "or a scipy.sparse matrix."
        )
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead: X has shape "
            f"{tuple(X.shape)}; give rows by features, for one row "
            "X.reshape(1, -1)."
        )
    if X.dtype in (xp.float32, xp.float64):
        return X
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(
            f"Complex data not supported: X has dtype {X.dtype}; give real numbers."
        )
    half = xp.isdtype(X.dtype, "real floating")
    return xp.astype(X, xp.float32) if half else wide(X)


def check_blocks(X: Array, estimator: BaseEstimator | None, reset: bool) -> None:
    """Check the shape of data that scikit-learn does not know, as it does."""
    n, p = X.shape
    if n == 0 or p == 0:
        raise ValueError(f"Found array with {n} row(s) and {p} feature(s); give some.")
    if estimator is None:
        return
    names = X.names if isinstance(X, RowBlocks) else None
    if reset:
        estimator.n_features_in_ = p
        if names is not None:
            estimator.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return
    if p != estimator.n_features_in_:
        raise ValueError(
            f"X has {p} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    fitted = list(getattr(estimator, "feature_names_in_", ()))
    if names is None or not fitted or names == fitted:
        return
    at = next(i for i in range(p) if names[i] != fitted[i])
    raise ValueError(
        "The feature names should match those that were passed during fit: feature "
        f"{at} is {names[at]!r} and was {fitted[at]!r}. Put the columns in that order."
    )
