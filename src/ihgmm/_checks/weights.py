"""Weights of rows, and which rows have one."""

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import validation

from ihgmm._parameters import making_array
from ihgmm._warnings import UnstableLabelsWarning, sklearn_filters, warn
from ihgmm.matrix import Matrix, RowSubset, to_host
from ihgmm.policy import Weighting


def check_weights(sample_weight: Any, n_samples: int) -> np.ndarray:
    """Return one non-negative weight for each row, as float64."""
    if sample_weight is None:
        sample_weight = np.ones(n_samples)
    elif isinstance(sample_weight, Real):
        sample_weight = np.full(n_samples, float(sample_weight))
    elif np.ma.isMaskedArray(sample_weight):  # NumPy would forget what is masked
        sample_weight = np.ma.filled(sample_weight.astype(np.float64), np.nan)

    remedy = f"{n_samples} numbers, one for each row, above 0, or 0 to leave it out"
    with making_array("sample_weight", remedy), sklearn_filters:
        weights: np.ndarray = validation._check_sample_weight(
            to_host(sample_weight),
            np.empty(n_samples),
            dtype=np.float64,
            ensure_non_negative=True,
        )
        if not weights.any():
            raise ValueError("all are 0")

    return weights


def counted_rows(X: Matrix, sample_weight: Any) -> tuple[Matrix, RowSubset]:
    """Return the rows whose weight is not 0, with their weights, and which these are.

    Rows have no weights where all of these are alike.
    """
    if sample_weight is None:
        return X, RowSubset.everything(X)

    weights = check_weights(sample_weight, X.shape[0])
    weights = weights / weights.max()  # the sum of the largest numbers overflows
    # Rows of so little weight beside another change no digit of any sum.
    is_counted = weights > np.finfo(np.float64).eps ** 2

    subset = RowSubset.everything(X)
    counted = X
    if not is_counted.all():
        is_member = X.to_device(is_counted)
        subset = RowSubset(ops=X.ops, n_rows=X.shape[0], is_member=is_member)
        counted = X.keep_rows(np.flatnonzero(is_counted))

    weights = weights[is_counted]
    if (weights < 1).any():
        counted = counted.weighted(weights)
    return counted, subset


def warn_few_weighty_rows(X: Matrix, n_clusters: int) -> None:
    """Warn when weights leave hardly any rows to learn the clusters from."""
    if X.weights is None:
        return

    n = X.shape[0]
    # Rows of equal weight that would know sums as well; the mean weight is 1.
    n_effective = n / X.ops.number(X.ops.xp.mean(X.weights**2))
    if n_effective < min(Weighting.ROWS_A_CLUSTER * n_clusters, n / 2):
        warn(
            f"A few rows carry nearly all of sample_weight: {n:,} rows count like "
            f"{n_effective:.0f} of equal weight, for {n_clusters} clusters. Labels may "
            "depend on these few. Cap the largest weights, or leave sample_weight out.",
            UnstableLabelsWarning,
        )
