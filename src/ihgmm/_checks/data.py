"""Checks of the data: a matrix of numbers whose squares can be held."""

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import validation

from ihgmm._parameters import option
from ihgmm._warnings import sklearn_filters, warn
from ihgmm.matrix import Filled, Matrix, Scaled, Tall, as_matrix, to_host
from ihgmm.matrix.kinds import recognize


def check_matrix(
    X: Any, estimator: Any = None, *, reset: bool = True, missing: str | None = None
) -> Matrix:
    """Return data of any kind as a matrix whose squares neither overflow nor vanish.

    Data of extreme size are divided by a power of two, their ``unit``, and rows that
    vanish beside the longest are zero. ``missing="fit"`` allows NaN. New rows, with
    ``reset=False``, have to be like those that the estimator was fitted to. Opposite
    rows are of one kind if it is ``signed``.
    """
    matrix = open_matrix(X, estimator, reset=reset)
    matrix = _with_safe_squares(matrix, estimator, reset=reset, missing=missing)
    return matrix.with_signed(bool(getattr(estimator, "signed", False)))


def _with_safe_squares(
    matrix: Matrix, estimator: Any, *, reset: bool, missing: str | None
) -> Matrix:
    """Return data whose entries were checked, in another unit if they need one."""
    tiny = float(np.finfo(matrix.dtype).tiny)
    largest = float(np.finfo(matrix.dtype).max)
    # A row with a smaller square than this could not be divided by it.
    least_square = max(tiny, float(np.sqrt(np.finfo(np.float64).tiny)))

    # One sum over the squared norms shows that all is well, as it nearly always is.
    observed = matrix
    total = _total_of_squares(matrix, least_square)
    if missing == "fit" and np.isnan(total):
        observed = Filled(matrix)
        total = _total_of_squares(observed, least_square)
    if np.sqrt(tiny) < total < np.sqrt(largest) * 1e12:
        return matrix

    _check_finite(observed, estimator)
    peak = observed.max_abs()
    if peak == 0:
        return matrix
    _check_size(peak, matrix.dtype, None if reset else estimator)
    return _in_safe_unit(matrix, peak, least_square, has_gaps=observed is not matrix)


def _total_of_squares(X: Matrix, least_square: float) -> float:
    """Return the sum of squared norms; infinity if some are positive and too small."""
    xp = X.ops.xp
    sqnorms = X.sqnorms
    is_faint = (sqnorms > 0) & (sqnorms < least_square)
    sqnorms = xp.where(is_faint, xp.full_like(sqnorms, np.inf), sqnorms)
    return X.ops.number(xp.sum(sqnorms))


def _check_finite(X: Matrix, estimator: Any) -> None:
    """Raise, and say where, if an entry is NaN or infinite."""
    count, row, column, value = X.not_finite()
    if not count:
        return

    name = column if X.names is None else repr(X.names[column])
    who = "ihgmm" if estimator is None else type(estimator).__name__
    kind = "NaN" if np.isnan(value) else "infinity"

    raise ValueError(
        f"Input X contains {kind} at row {row}, column {name} (counted from 0; NaN, "
        f"masked or infinite entries in all: {count}). {who} does not accept them: "
        "drop those rows, or fill them in (for NaN, IhSC and IhGMM do with "
        f"{option('missing', 'fit')})."
    )


def _check_size(peak: float, dtype: np.dtype, fitted: Any) -> None:
    """Raise if the largest entry is too large, or of another size than a fit's."""
    largest = float(np.finfo(dtype).max)
    if peak > largest / 1e4:  # lengths and sums of rows would overflow
        raise ValueError(
            f"The largest entry of X is {peak:.3g}, and {dtype} holds numbers "
            f"up to {largest:.2g}. Divide X by a large number."
        )

    centers = getattr(fitted, "cluster_centers_", None)
    if centers is None or getattr(fitted, "_centers_are_directions", False):
        return

    center_peak = float(np.abs(to_host(centers)).max())
    # Squares of quotients are in float64, and cubes of their roots in the type.
    largest_ratio = min(largest ** (2 / 3), 1e150)
    if center_peak > 0 and not 1 / largest_ratio < peak / center_peak < largest_ratio:
        raise ValueError(
            f"The largest entry of X is {peak:.3g}, and centres of the fit have "
            f"entries up to {center_peak:.3g}. Give new rows in the units of the fit."
        )


def _in_safe_unit(
    matrix: Matrix, peak: float, least_square: float, *, has_gaps: bool
) -> Matrix:
    """Return data whose largest entry is about 1, with rows far shorter as zeros."""
    exponent = float(np.clip(np.floor(np.log2(peak)), -1e3, 1e3))
    scaled = matrix.rescaled(2.0**-exponent)

    sqnorms = Filled(scaled).sqnorms if has_gaps else scaled.sqnorms
    is_faint = (sqnorms > 0) & (sqnorms < least_square)
    n_faint = count_rows(scaled, is_faint)
    if n_faint == 0:
        return scaled

    warn(
        f"{n_faint:,} of {matrix.shape[0]:,} rows of X are shorter than "
        f"{np.sqrt(least_square):.0e} of its largest entry, and count as zero beside "
        "it. Check that entry, or divide each row by its length.",
        DataConversionWarning,
    )
    return Scaled(scaled, rows=~is_faint)


def count_rows(X: Matrix, mask: Tall) -> int:
    """Return how many rows of a matrix a mask marks."""
    return int(X.ops.number(X.ops.xp.count_nonzero(mask)))


def open_matrix(X: Any, estimator: Any = None, *, reset: bool = True) -> Matrix:
    """Return data of any kind as a matrix; nothing is read of data on disk."""
    matrix = recognize(X)
    if matrix is not None:
        _check_features(matrix, estimator, reset)
        return matrix

    names = _frame_names(X)

    try:
        matrix = as_matrix(_array_by_sklearn(X, estimator, reset))
    except (TypeError, ValueError) as error:
        _explain_what_is_no_number(X, error)
        raise

    if names is None or not all(isinstance(name, str) for name in names):
        return matrix
    return matrix.named(names)


def _frame_names(X: Any) -> list[Any] | None:
    """Return names of a frame whose columns all hold numbers; None for other data."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return None

    names = list(X.columns)
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"X is a data frame of columns {names!r:.80}; give each column a name "
            "of its own, or an array: X.to_numpy()."
        )

    # scikit-learn would take times for numbers.
    _check_numbers((repr(name), X[name]) for name in names)
    return names


def _array_by_sklearn(X: Any, estimator: Any, reset: bool) -> Any:
    """Return an array or a sparse matrix of floats, checked as scikit-learn does."""
    # Whether entries are finite is not asked: row norms show it, and cost less.
    with sklearn_filters:
        if estimator is None:
            return validation.check_array(
                X,
                input_name="X",
                accept_sparse=("csr", "csc"),
                dtype=(np.float64, np.float32),
                ensure_all_finite=False,
            )

        return validation.validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse=("csr", "csc"),
            dtype=(np.float64, np.float32),
            ensure_all_finite=False,
        )


def _explain_what_is_no_number(X: Any, error: Exception) -> None:
    """Raise an error that says more than scikit-learn's, where there is more to say."""
    if "inhomogeneous" in str(error):
        raise ValueError(
            "Rows of X have different numbers of cells; give each row as many, NaN "
            "where one is missing."
        ) from None
    if getattr(getattr(X, "dtype", None), "kind", "O") in "OUS":
        cells = np.asarray(X, dtype=object)
        if cells.ndim == 2:
            _check_numbers(enumerate(cells.T), error)


def _check_numbers(
    columns: Iterable[tuple[Any, Any]], error: Exception | None = None
) -> None:
    """Raise if a column does not hold numbers, as scikit-learn may have found."""
    # Of a mixture of texts and numbers scikit-learn says what is no number.
    reason = f" ({error})" if isinstance(error, TypeError) else ""

    faults = []
    for name, column in columns:
        fault = _first_that_is_no_number(column)
        if fault is not None:
            row, value = fault
            faults.append(f"{name} ({value!r:.40} in row {row})")
    if not faults:
        return

    kind = TypeError if reason else ValueError
    listed = ", ".join(faults[:3])
    if len(faults) > 3:
        listed += f" and {len(faults) - 3} more"

    raise kind(
        f"X has columns that do not hold numbers: {listed}; the "
        'first row is 0. Leave such columns out (X.select_dtypes("number") in '
        "pandas, as.matrix(X[sapply(X, is.numeric)]) in R), or turn them into "
        f"numbers, NaN where a cell is missing.{reason}"
    ) from None


def _first_that_is_no_number(column: Any) -> tuple[int, Any] | None:
    """Return the row and the value of the first cell that is no number, if any."""
    kind = str(column.dtype).lower()
    if re.match(r"u?int\d|float|double|half|bool|decimal|sparse", kind):
        return None

    for row, value in enumerate(np.asarray(column, dtype=object)):
        with suppress(TypeError, ValueError):
            if np.ndim(np.float64(value)) == 0:
                continue
        return row, value
    return None


def _check_features(X: Matrix, estimator: Any, reset: bool) -> None:
    """Check the shape of data that scikit-learn does not know, as it does."""
    n, p = X.shape
    if n == 0 or p == 0:
        raise ValueError(f"Found array with {n} row(s) and {p} feature(s); give some.")
    if estimator is None:
        return

    validation._check_n_features(estimator, X, reset=reset)
    if X.names is None:
        return

    names = np.asarray(X.names, dtype=object)
    if reset:
        estimator.feature_names_in_ = names
    fitted_names: np.ndarray = getattr(estimator, "feature_names_in_", names)

    differs = names != fitted_names
    if differs.any():
        at = int(differs.argmax())
        raise ValueError(
            "The feature names should match those that were passed during fit: feature "
            f"{at} is {names[at]!r} and was {fitted_names[at]!r}."
        )
