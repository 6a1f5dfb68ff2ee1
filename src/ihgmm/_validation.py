"""Checks of parameters and data: the only file that uses scikit-learn's helpers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.utils.validation import check_array, validate_data

from ihgmm._arrays import (
    Array,
    RowBlocks,
    dense_rows,
    dtype_of,
    is_device,
    is_sparse,
    kind_of,
    max_abs,
    namespace,
    open_rows,
    rescaled,
    row_ranges,
    row_sqnorms,
    to_host,
    wide,
)
from ihgmm._tall import Tall

__all__ = [
    "CheckedData",
    "check_blocks",
    "check_choice",
    "check_count",
    "check_data",
    "check_flag",
    "check_labels",
    "check_n_clusters",
    "check_n_init",
    "check_number",
    "check_row_count",
    "check_weights",
    "generator",
    "identical_rows",
    "warn_empty_clusters",
    "warn_zero_rows",
]

COMPARED = 2**20
"""Entries of X whose rows are compared at a time."""

HOST_ENTRIES = 2**24
"""Entries of data on a device that may be looked at on the host."""

NO_NUMBERS = ("object", "string", "str", "category", "categorical")
"""Types of a column of a data frame that may be text."""

FORMATS = {"accept_sparse": ("csr", "csc"), "dtype": (np.float64, np.float32)}


def check_count(name: str, value: Any, *, least: int = 1) -> int:
    """Return ``value`` as an int, or say what it should have been."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise TypeError(
            f"{name}={value!r} is a {type(value).__name__}; give a whole number, "
            f"{least} or more."
        )
    if value < least:
        raise ValueError(f"{name}={value} is too small; give {least} or more.")
    return int(value)


def check_number(
    name: str,
    value: Any,
    *,
    least: float = -np.inf,
    most: float = np.inf,
    above: float = -np.inf,
) -> float:
    """Return ``value`` as a float within bounds, or say what it should have been."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; give a number.")
    number = float(value)
    if not (least <= number <= most and number > above and np.isfinite(number)):
        lower = f"above {above:g}" if above > -np.inf else f"at least {least:g}"
        upper = f" and at most {most:g}" if most < np.inf else ""
        raise ValueError(f"{name}={value!r} is out of range; give {lower}{upper}.")
    return number


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise unless ``value`` is one of the words allowed."""
    if not isinstance(value, str) or value not in choices:
        words = ", ".join(repr(c) for c in choices)
        raise ValueError(f"{name}={value!r} is not known; give one of {words}.")


def check_flag(name: str, value: Any) -> None:
    """Raise unless ``value`` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}={value!r} is not known; give True or False.")


def check_n_clusters(n_clusters: Any) -> None:
    """Raise unless ``n_clusters`` is "auto" or a positive whole number."""
    if isinstance(n_clusters, str):
        if n_clusters != "auto":
            raise TypeError(
                f"n_clusters={n_clusters!r} is a str; give 'auto' or a whole number."
            )
    else:
        check_count("n_clusters", n_clusters)


def check_n_init(n_init: Any) -> None:
    """Raise unless ``n_init`` is "auto" or a positive whole number."""
    if isinstance(n_init, str):
        if n_init != "auto":
            raise ValueError(
                f"n_init={n_init!r} is not known; give 'auto' or a whole number."
            )
    else:
        check_count("n_init", n_init)


def generator(random_state: Any) -> np.random.Generator:
    """Turn any random state scikit-learn users know into a NumPy generator.

    Parameters
    ----------
    random_state : None, int, numpy.random.RandomState or numpy.random.Generator
        None draws fresh entropy; a RandomState is asked for a seed, so that calls
        with the same one differ; a Generator is used as it is.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1, size=4))
    if random_state is None:
        return np.random.default_rng()
    if not isinstance(random_state, Integral):
        raise TypeError(
            f"random_state={random_state!r} is a {type(random_state).__name__}; give "
            "None, a whole number, a RandomState or a Generator."
        )
    return np.random.default_rng(check_count("random_state", random_state, least=0))


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
    options = {**FORMATS, "ensure_all_finite": False}
    rows = open_rows(X) if blocks else None
    if rows is not None:
        rows.verbose = verbose
        check_blocks(rows, estimator, reset)
        X = rows
    elif is_device(X) and devices:
        X = _device_floats(X)
        check_blocks(X, estimator, reset)
    else:
        if is_device(X):
            X = _host_view(X, estimator)
        _check_columns(X)
        if estimator is None:
            X = check_array(X, input_name="X", **options)
        else:
            X = validate_data(estimator, X, reset=reset, **options)
    sqnorms = row_sqnorms(X)
    total = float(namespace(sqnorms).sum(sqnorms))
    info = np.finfo(dtype_of(X))
    if np.sqrt(float(info.tiny)) < total < np.sqrt(float(info.max)) * 1e12:
        return CheckedData(X, sqnorms, 1.0)
    _raise_if_not_finite(X, estimator)
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


def _host_view(X: Any, estimator: BaseEstimator | None) -> np.ndarray:
    """Return an array of another library as NumPy's, if it is on the host already."""
    try:
        return np.asarray(X)
    except Exception as error:
        who = "This function" if estimator is None else type(estimator).__name__
        raise TypeError(
            f"X is a {kind_of(X)}. {who} works on the host: give a NumPy copy "
            "(X.cpu().numpy() of a torch tensor, X.get() of a CuPy array)."
        ) from error


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


def _raise_if_not_finite(X: Array, estimator: BaseEstimator | None) -> None:
    if isinstance(X, RowBlocks):
        found = X.map(_first_not_finite)
        _raise_if_block_not_finite(found, estimator, "before they are stored")
        return
    if is_device(X):
        ranges = row_ranges(X.shape[0], HOST_ENTRIES // X.shape[1])
        found = (_first_on_device(X[rows, :]) for rows in ranges)
        _raise_if_block_not_finite(found, estimator, "beforehand")
        return
    values = X.tocoo() if is_sparse(X) else X
    bad = ~np.isfinite(values.data if is_sparse(X) else values)
    if not bad.any():
        return
    if is_sparse(X):
        first = int(np.flatnonzero(bad)[0])
        row, column, value = values.row[first], values.col[first], values.data[first]
    else:
        row, column = (int(i[0]) for i in np.nonzero(bad))
        value = values[row, column]
    what = "NaN" if np.isnan(value) else "infinity"
    who = "ihgmm" if estimator is None else type(estimator).__name__
    raise ValueError(
        f"Input X contains {what} at row {row}, column {column} (NaN or infinite "
        f"entries in all: {int(bad.sum())}). {who} does not accept them: drop those "
        "rows, or fill them in (for NaN, sklearn.impute.SimpleImputer does)."
    )


def _raise_if_block_not_finite(
    blocks: Iterable[_NotFinite], estimator: BaseEstimator | None, when: str
) -> None:
    who = "ihgmm" if estimator is None else type(estimator).__name__
    start = 0
    for bad in blocks:
        if bad.row >= 0:
            raise ValueError(
                f"Input X contains {bad.what} at row {start + bad.row}, column "
                f"{bad.column}. {who} does not accept NaN or infinite entries: drop "
                f"those rows, or fill them in, {when}."
            )
        start += bad.n_rows


@dataclass(frozen=True)
class _NotFinite:
    """Where a block has its first entry that is not finite; row -1 for nowhere."""

    n_rows: int
    row: int = -1
    column: int = -1
    what: str = ""


def _first_not_finite(block: Array) -> _NotFinite:
    values = block.tocoo() if is_sparse(block) else block
    bad = np.flatnonzero(~np.isfinite(values.data if is_sparse(block) else values))
    if len(bad) == 0:
        return _NotFinite(block.shape[0])
    first = int(bad[0])
    if is_sparse(block):
        row, column = int(values.row[first]), int(values.col[first])
        value = values.data[first]
    else:
        row, column = divmod(first, block.shape[1])
        value = values[row, column]
    what = "NaN" if np.isnan(value) else "infinity"
    return _NotFinite(block.shape[0], row, column, what)


def _first_on_device(block: Array) -> _NotFinite:
    xp = namespace(block)
    if xp.all(xp.isfinite(block)):
        return _NotFinite(block.shape[0])
    return _first_not_finite(to_host(block))


def check_row_count(n_samples: int, n_clusters: int) -> None:
    """Raise when there are fewer rows than clusters."""
    if n_clusters > n_samples:
        raise ValueError(
            f"n_clusters={n_clusters} is more than n_samples={n_samples}; give at most "
            f"{n_samples} clusters, or more rows."
        )


def warn_zero_rows(sqnorms: Tall) -> None:
    """Warn once when some rows are zero; raise when all are."""
    zero = int(namespace(sqnorms).count_nonzero(sqnorms == 0))
    if zero == sqnorms.shape[0]:
        raise ValueError(
            f"All {zero} rows of X are zero: they show no pattern to cluster by. Check "
            "how X was read or preprocessed."
        )
    if zero:
        warnings.warn(
            f"{zero} of {sqnorms.shape[0]} rows are zero. They show no pattern; they "
            "get a zero embedding and the label of the largest cluster, 0. Drop them "
            "beforehand if they should not be labelled.",
            DataConversionWarning,
            stacklevel=3,
        )


def warn_empty_clusters(labels: Tall, n_clusters: int) -> None:
    """Warn when some clusters ended without rows."""
    used = len(np.unique(to_host(labels)))
    if used < n_clusters:
        warnings.warn(
            f"{n_clusters - used} of n_clusters={n_clusters} clusters ended without "
            "rows. The data may hold fewer; select_n_clusters counts them.",
            ConvergenceWarning,
            stacklevel=4,
        )


def identical_rows(X: Array, sqnorms: Tall, n_clusters: int) -> np.ndarray | None:
    """Return labels by identity of rows when there are fewer kinds than clusters.

    Rows of different norm differ, so for ordinary data a glance at the norms of a few
    rows answers None. Otherwise the distinct rows are counted, and a warning given.
    """
    few = sqnorms[: min(100 * n_clusters, X.shape[0])]
    if len(np.unique(to_host(few))) >= n_clusters:
        return None
    if len(np.unique(to_host(sqnorms))) >= n_clusters:
        return None
    found: dict[bytes, int] = {}
    labels = np.empty(X.shape[0], dtype=np.intp)
    for rows in row_ranges(X.shape[0], COMPARED // X.shape[1]):
        block = dense_rows(X, rows) + 0.0  # one zero, not two
        distinct, which = np.unique(block, axis=0, return_inverse=True)
        codes = [found.setdefault(row.tobytes(), len(found)) for row in distinct]
        if len(found) >= n_clusters:
            return None
        labels[rows] = np.array(codes)[np.ravel(which)]
    kinds = len(found)
    warnings.warn(
        f"X has {kinds} distinct row{'s' * (kinds != 1)}, fewer than n_clusters="
        f"{n_clusters}; {kinds} cluster{'s' * (kinds != 1)} are in use. Ask for fewer "
        "clusters, or look for duplicates in X.",
        ConvergenceWarning,
        stacklevel=3,
    )
    return labels


def check_weights(sample_weight: Any, n_samples: int) -> np.ndarray:
    """Return one non-negative weight for each row, as float64."""
    if sample_weight is None:
        return np.ones(n_samples)
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_samples, float(sample_weight))
    if is_device(sample_weight):
        sample_weight = to_host(sample_weight)
    weights = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; give {n_samples} numbers, one "
            "for each row of X."
        )
    if (weights < 0).any() or weights.sum() <= 0:
        raise ValueError(
            f"sample_weight has smallest value {weights.min():g} and sum "
            f"{weights.sum():g}; give weights that are not negative, not all zero."
        )
    return np.asarray(weights)


def check_labels(name: str, labels: Any) -> np.ndarray:
    """Return a one-dimensional, non-empty array of labels of any kind."""
    array = to_host(labels) if is_device(labels) else np.asarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.size == 0:
        raise ValueError(
            f"{name} has shape {array.shape}; give one label for each row, as a "
            "one-dimensional sequence that is not empty."
        )
    if array.dtype.kind == "O" and len({type(label) for label in array}) > 1:
        kinds = sorted({type(label).__name__ for label in array})
        raise TypeError(
            f"{name} mixes {', '.join(kinds)}; give every row a label of one kind."
        )
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError(f"{name} contains NaN; give every row a label.")
    return array
