"""Which clusters of two clusterings of the same rows go together."""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment


def confusion(
    first: np.ndarray, second: np.ndarray, shape: Any, weights: Any = None
) -> np.ndarray:
    """Count the rows of each pair of groups, numbered from 0; -1 is no group."""
    both = (first >= 0) & (second >= 0)
    pairs = first[both] * shape[1] + second[both]
    weights = None if weights is None else weights[both]
    return np.bincount(pairs, weights, shape[0] * shape[1]).reshape(shape)


def best_matching(counts: np.ndarray) -> np.ndarray:
    """Return the row that goes with each column, -1 for none, so that sums are most."""
    rows, columns = linear_sum_assignment(counts, maximize=True)
    partners = np.full(counts.shape[1], -1)
    partners[columns] = rows
    return partners


def kept_order(counts: np.ndarray) -> np.ndarray:
    """Return the order of new clusters in which most rows keep their old numbers.

    Counts are those of rows in each of k old (lines) and k new clusters.
    """
    k, old = len(counts), best_matching(counts)
    kept = np.flatnonzero(counts[old, np.arange(k)] > 0)
    order = np.full(k, -1)
    order[old[kept]] = kept
    order[order < 0] = np.setdiff1d(np.arange(k), kept)
    return order
