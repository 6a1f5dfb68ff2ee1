"""Sums of clusters of data, where only the roots of a sample of rows are remembered.

A rooted row is known by its coordinates r in the directions, of unit length, and its
length. With D, the directions over the weights of columns, the root of entry j is
``length * (D @ r)[j]``, and the entry is its square. What noise has outside of the
directions is missing there: the variance of the root, which grows like the mean of the
root where counts are rare, and is small beside the entry where they are common. So the
entry is

    ``length**2 * ((D @ r)[j]**2 + b[j] * (D @ r)[j])``,

where b is the same in all clusters, and such that the sum over all rows, which is
known, comes out right in each column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm.matrix import HOST
from ihgmm.numerics.incremental.memory import ClusterSums, RowSample
from ihgmm.policy import Small


def sums_after_moves(
    sums: ClusterSums,
    sample: RowSample,
    new_labels: np.ndarray,
    directions: np.ndarray,
    column_weights: np.ndarray,
) -> ClusterSums:
    """Return the sums of clusters once rows are in others, as a sample estimates them.

    Parameters
    ----------
    sums : ClusterSums
        The sums over all rows, by the labels of before.
    sample : RowSample
        Some of these rows, rooted.
    new_labels : ndarray of shape (n_rows,)
        The labels of the rows of the sample after the moves.
    directions : ndarray of shape (n_features, n_directions)
        What the coordinates of the sample belong to.
    column_weights : ndarray of shape (n_features,)
        By which roots were multiplied.
    """
    n_clusters = len(sums.weights)
    moments = _RootMoments.of(sample, new_labels, n_clusters)
    root_directions = HOST.ratio(directions, column_weights[:, None])
    squares = moments.squares(root_directions)
    roots = moments.roots(root_directions)

    # What noise adds to squares, by the sums over all clusters, which moves leave.
    total = sums.rows.sum(axis=0)  # (n_features,)
    added_root = HOST.ratio(total - squares.sum(axis=0), roots.sum(axis=0))
    rows = squares + np.maximum(added_root, 0.0) * roots
    rows *= HOST.ratio(total, rows.sum(axis=0))

    # Columns without weight have no roots: each row has its share of them.
    is_unseen = column_weights == 0
    shares = moments.amounts / max(moments.amounts.sum(), Small.TINY)
    rows[:, is_unseen] = np.outer(shares, total[is_unseen])

    weights = np.bincount(new_labels, sample.weights, n_clusters)
    weights *= sums.weights.sum() / max(weights.sum(), Small.TINY)
    return ClusterSums.of_totals(rows, weights)


@dataclass(frozen=True, eq=False)
class _RootMoments:
    """Sums over the rows of each cluster of a sample, which are known by their roots.

    A row with coordinates r counts by its amount: weight times squared length.
    """

    amounts: np.ndarray  # (n_clusters,): sums of amounts
    first: np.ndarray  # (n_clusters, m): sums of amount * r
    second: np.ndarray  # (n_clusters, m, m): sums of amount * r @ r.T

    @classmethod
    def of(cls, sample: RowSample, labels: np.ndarray, n_clusters: int) -> _RootMoments:
        """Return the sums of a sample with some labels."""
        amounts = sample.weights * sample.lengths**2
        m = sample.rows.shape[1]

        second = np.zeros((n_clusters, m, m))
        for cluster in range(n_clusters):
            is_member = labels == cluster
            rows = sample.rows[is_member]
            second[cluster] = (rows.T * amounts[is_member]) @ rows

        return cls(
            amounts=np.bincount(labels, amounts, n_clusters),
            first=HOST.sums_of_rows(labels, n_clusters, sample.rows, amounts),
            second=second,
        )

    def squares(self, root_directions: np.ndarray) -> np.ndarray:
        """Return sums of squared roots, (n_clusters, n_features)."""
        sums = [
            HOST.row_dots(root_directions @ second, root_directions)
            for second in self.second
        ]
        return np.array(sums)

    def roots(self, root_directions: np.ndarray) -> np.ndarray:
        """Return sums of roots, (n_clusters, n_features), 0 where they are negative."""
        return np.asarray(np.maximum(self.first @ root_directions.T, 0.0))
