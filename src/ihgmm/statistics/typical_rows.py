"""The rows that show best what each cluster is like."""

from __future__ import annotations

from typing import Any

import numpy as np

from ihgmm._parameters import check_count
from ihgmm.matrix import HOST, Matrix, to_host
from ihgmm.statistics.described_fit import described_fit
from ihgmm.statistics.missing_cells import filled_cells


def typical_rows(X: Any, model: Any, *, n_rows: int = 3) -> list[np.ndarray]:
    """Return the rows that show best what each cluster is like.

    They are complete, of ordinary size, and nearest to the pattern of the cluster.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data of the fit, wherever they are; texts, if a pipeline takes texts.
    model : fitted estimator, or array-like of shape (n_samples,)
        A fitted model, a pipeline that ends with one, or labels of any kind, from any
        method.
    n_rows : int, default=3
        How many rows to return of each cluster.

    Returns
    -------
    list of ndarray
        Numbers of rows from 0, for each cluster, the most typical first. A cluster of
        fewer than five rows, or without such a row, has none.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm, typical_rows
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> rows = typical_rows(X, IhSC(3, random_state=0).fit(X), n_rows=2)
    >>> [len(of_cluster) for of_cluster in rows]
    [2, 2, 2]
    """
    fit = described_fit(X, model)
    n_rows = check_count("n_rows", n_rows)

    return nearest_rows(fit.data, fit.labels, fit.centers, fit.scales, n_rows)


def nearest_rows(
    data: Matrix,
    labels: np.ndarray,
    centers: np.ndarray,
    scales: np.ndarray,
    n_rows: int = 3,
) -> list[np.ndarray]:
    """Return typical rows of each cluster, by the angle to its centre."""
    units = HOST.unit_rows(centers)
    products = to_host(data @ units.T).astype(np.float64)
    row_numbers = np.arange(len(labels))
    components = products[row_numbers, labels]
    # Where scales have both signs, a row may point away from its centre.
    components = np.where(scales < 0, np.abs(components), components)
    sqnorms = to_host(data.sqnorms).astype(np.float64)
    norms = np.sqrt(sqnorms)
    cosines = HOST.ratio(components, norms)

    lengths = np.abs(scales)
    is_pattern = (norms > 0) & ~np.isnan(lengths)
    is_complete = filled_cells(data) == 0

    typical = []
    for cluster in range(len(centers)):
        rows = np.flatnonzero(is_pattern & (labels == cluster))
        is_usual = _is_of_usual_length(lengths[rows])
        rows = rows[is_usual & is_complete[rows]]

        nearest_first = np.argsort(-cosines[rows], kind="stable")
        typical.append(rows[nearest_first[:n_rows]])

    return typical


def _is_of_usual_length(lengths: np.ndarray) -> np.ndarray:
    """Tell which rows of a cluster are in the middle half; none of fewer than five.

    Angles alone would choose the largest rows, which noise turns least.
    """
    if len(lengths) < 5:
        return np.zeros(len(lengths), dtype=bool)
    lower, upper = np.quantile(lengths, [0.25, 0.75])
    return (lengths >= lower) & (lengths <= upper)
