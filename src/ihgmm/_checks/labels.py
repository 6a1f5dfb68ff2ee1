"""Checks of labels: one for each row, of any kind, with -1 for rows of no cluster."""

from typing import Any

import numpy as np
from sklearn.utils import validation

from ihgmm._parameters import making_array
from ihgmm._warnings import sklearn_filters, warn
from ihgmm.matrix import Matrix, Tall, to_host
from ihgmm.matrix.kinds import NA_OF_R


def label_array(name: str, labels: Any, n_samples: int | None = None) -> np.ndarray:
    """Return a one-dimensional, non-empty array of labels, whatever they are."""
    remedy = "one label for each row, as in labels_ of a model or adata.obs['ihsc']"
    with making_array(name, remedy), sklearn_filters:
        # Of AnnData, NumPy would look for an array without end.
        if hasattr(labels, "obs") or to_host(labels).ndim == 0:
            raise TypeError(f"it is of type {type(labels).__name__}")
        array = np.asarray(validation.column_or_1d(to_host(labels)))
        if len(array) == 0:
            raise ValueError("it is empty")

    if n_samples is not None and len(array) != n_samples:
        raise ValueError(
            f"{name} has {len(array)} entries and X has {n_samples} rows; give one "
            "label for each row of X."
        )

    return array


def check_labels(name: str, labels: Any, n_samples: int | None = None) -> np.ndarray:
    """Return labels of one kind that has an order, none of them missing."""
    array = label_array(name, labels, n_samples)
    with making_array(name, "every row a label of one kind, numbers or texts"):
        if array.dtype.kind == "O":
            np.sort(array)

    is_missing = array == NA_OF_R if array.dtype.kind == "i" else array != array
    if is_missing.any():
        raise ValueError(
            f"{name} contains {array[is_missing][0]}, which stands for no label; give "
            "every row a label, or leave rows out."
        )

    n_absent = int(np.sum(array == "NA")) if array.dtype.kind in "OU" else 0
    if n_absent:
        warn(
            f"{name} is the text 'NA' in {n_absent:,} of {len(array):,} rows, which "
            "make a cluster of this name. R passes NA in text or in a factor this way: "
            "if it stands for no label, leave these rows out, keep <- !is.na(labels).",
            UserWarning,
        )

    return array


def labelled_rows(labels: Any, X: Matrix) -> tuple[np.ndarray, Tall, Tall | None]:
    """Return what labels say of the rows of X.

    Returns
    -------
    classes : ndarray of shape (n_clusters,)
        The labels of clusters, sorted.
    codes : array of shape (n_samples,), where X is
        The position of each row's label among them; 0 for outliers.
    is_outlier : array of shape (n_samples,), where X is, or None
        Which rows are in no cluster; None if all rows are in clusters.
    """
    labels = check_labels("labels", labels, X.shape[0])
    classes, codes = np.unique(labels, return_inverse=True)
    codes = X.to_device(codes)

    is_outlier_class = is_outlier(classes)
    if not is_outlier_class.any():
        return classes, codes, None

    outlier_code = int(np.flatnonzero(is_outlier_class)[0])
    is_above = X.ops.xp.astype(codes > outlier_code, codes.dtype)
    return classes[~is_outlier_class], codes - is_above, codes == outlier_code


def is_outlier(labels: np.ndarray) -> np.ndarray:
    """Tell which labels stand for rows of no cluster: -1, beside numbers from 0."""
    # Where no label is 0, as with -1 and 1, -1 is the name of a cluster.
    if labels.dtype.kind not in "if" or not (labels == 0).any():
        return np.zeros(len(labels), dtype=bool)
    return np.asarray(labels == -1)
