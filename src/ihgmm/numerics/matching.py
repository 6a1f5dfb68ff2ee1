"""Which clusters of two clusterings of the same rows go together."""

import numpy as np
from scipy.optimize import linear_sum_assignment


def confusion(
    first: np.ndarray,
    second: np.ndarray,
    shape: tuple[int, int],
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Count the rows of each pair of groups, or add up their weights.

    ``first`` and ``second`` are labels of the same rows, numbered from 0; -1 is no
    group. The counts are of ``shape``: (groups of the first, groups of the second).
    """
    is_grouped = (first >= 0) & (second >= 0)
    n_first, n_second = shape

    pairs = first[is_grouped] * n_second + second[is_grouped]
    if weights is not None:
        weights = weights[is_grouped]

    return np.bincount(pairs, weights, n_first * n_second).reshape(shape)


def best_matching(counts: np.ndarray) -> np.ndarray:
    """Return the row that goes with each column of a table, -1 for none.

    No other pairing has a larger sum of counts.
    """
    rows, columns = linear_sum_assignment(counts, maximize=True)

    partners = np.full(counts.shape[1], -1)
    partners[columns] = rows
    return partners


def kept_order(counts: np.ndarray) -> np.ndarray:
    """Return the order of new clusters in which most rows keep their old numbers.

    ``counts`` are of rows in each of k old (lines) and k new clusters (columns).
    Clusters without an old number take the numbers that are left, in their order.
    """
    k = len(counts)
    old_numbers = best_matching(counts)
    shared_rows = counts[old_numbers, np.arange(k)]
    kept_clusters = np.flatnonzero(shared_rows > 0)

    order = np.full(k, -1)
    order[old_numbers[kept_clusters]] = kept_clusters
    order[order < 0] = np.setdiff1d(np.arange(k), kept_clusters)
    return order
