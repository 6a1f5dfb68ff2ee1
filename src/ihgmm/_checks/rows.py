"""Checks of rows, and of what is given for each: labels and weights."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.utils.validation import check_array

from ihgmm._arrays import Array, dense_rows, row_ranges
from ihgmm._devices import is_device, namespace, to_host
from ihgmm._tall import Tall

__all__ = [
    "check_coded_labels",
    "check_labels",
    "check_row_count",
    "check_weights",
    "identical_rows",
    "warn_empty_clusters",
    "warn_zero_rows",
]

COMPARED = 2**20
"""Entries of X whose rows are compared at a time."""

MISSING = ("NoneType", "NAType", "NaTType")
"""Types of a label that is not there: Python's and those of pandas, by their names."""


def check_row_count(n_samples: int, n_clusters: int) -> None:
    """Raise when there are fewer rows than clusters."""
    if n_clusters > n_samples:
        raise ValueError(
            f"n_clusters={n_clusters} is more than n_samples={n_samples}; give at most "
            f"{n_samples} clusters, or more rows."
        )


def check_labels(name: str, labels: Any) -> np.ndarray:
    """Return a one-dimensional, non-empty array of labels of any kind."""
    if getattr(getattr(labels, "device", None), "type", "") == "meta":
        raise ValueError(
            f"{name} is a tensor on meta: it has a shape and no labels; give one that "
            "holds data."
        )
    array = to_host(labels) if is_device(labels) else np.asarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.size == 0:
        raise ValueError(
            f"{name} has shape {array.shape}; give one label for each row, as a "
            "one-dimensional sequence that is not empty."
        )
    if array.dtype.kind == "O":
        _check_objects(name, array)
    if array.dtype.kind in "fM" and np.isnan(array).any():
        missing = "NaN" if array.dtype.kind == "f" else "NaT"
        raise ValueError(f"{name} contains {missing}; give every row a label.")
    return array


def _check_objects(name: str, labels: np.ndarray) -> None:
    """Raise unless labels are of one kind, all there, and can be sorted."""
    kinds = sorted({type(label).__name__ for label in labels})
    if len(kinds) > 1:
        raise TypeError(
            f"{name} mixes {', '.join(kinds)}; give every row a label of one kind."
        )
    if kinds[0] in MISSING:
        raise ValueError(
            f"{name} contains nothing but {labels[0]}; give every row a label."
        )
    if kinds[0] == "float" and any(np.isnan(label) for label in labels):
        raise ValueError(f"{name} contains NaN; give every row a label.")
    try:
        bool(labels[0] < labels[0])
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} are {kinds[0]} objects, which have no order; give numbers or "
            "strings."
        ) from None


def check_coded_labels(labels: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels, sorted, and the place of each row's among them."""
    array = check_labels("labels", labels)
    if len(array) != n_samples:
        raise ValueError(
            f"labels has {len(array)} entries and X has {n_samples} rows; give one "
            "label for each row of X."
        )
    classes, codes = np.unique(array, return_inverse=True)
    return classes, np.ravel(codes)


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
    used = "1 cluster is" if kinds == 1 else f"{kinds} clusters are"
    warnings.warn(
        f"X has {kinds} distinct row{'s' * (kinds != 1)}, fewer than n_clusters="
        f"{n_clusters}; {used} in use. Ask for fewer clusters, or look for duplicates "
        "in X.",
        ConvergenceWarning,
        stacklevel=3,
    )
    return labels
