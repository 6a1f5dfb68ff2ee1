"""Drift: clusters to which no more rows come, and rows that come to no cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm.matrix import HOST, Tall
from ihgmm.numerics.incremental.memory import DirectionMemory, RowSample, WeightedRows
from ihgmm.policy import Growing, Small


@dataclass(frozen=True, eq=False)
class DriftRecord:
    """What was noticed of drift, so that users are told of each thing once."""

    # (n_clusters,): the weight of rows that a cluster could expect since it last got
    # more than few.
    missed_weights: np.ndarray
    # (n_clusters,): whether users are told, now or before, that it gets no more rows
    is_reported_empty: np.ndarray
    is_reported_novel: bool  # whether they are told that a new cluster may be there

    @classmethod
    def empty(cls, n_clusters: int) -> DriftRecord:
        """Return the record of a model that has noticed nothing."""
        return cls(
            missed_weights=np.zeros(n_clusters),
            is_reported_empty=np.zeros(n_clusters, dtype=bool),
            is_reported_novel=False,
        )

    def updated(
        self, new_weights: np.ndarray, old_weights: np.ndarray, novel_share: float
    ) -> DriftRecord:
        """Return the record after new rows.

        Parameters
        ----------
        new_weights, old_weights : ndarray of shape (n_clusters,)
            Sum of the weights of the new rows, and of all rows before, in each cluster.
        novel_share : float
            Share of new rows that are far from all clusters.
        """
        old_total = max(old_weights.sum(), Small.TINY)
        usual_weights = new_weights.sum() * old_weights / old_total

        has_few = new_weights < Growing.EMPTIED * usual_weights
        missed_weights = np.where(has_few, self.missed_weights + usual_weights, 0.0)
        is_empty = missed_weights >= Growing.EXPECTED

        return DriftRecord(
            missed_weights=missed_weights,
            is_reported_empty=self.is_reported_empty | is_empty,
            is_reported_novel=self.is_reported_novel or novel_share > 0,
        )

    def emptied_since(self, earlier: DriftRecord) -> list[int]:
        """Return the clusters that an earlier record did not know to be empty."""
        is_news = self.is_reported_empty & ~earlier.is_reported_empty
        return [int(cluster) for cluster in np.flatnonzero(is_news)]


def share_of_novel_rows(
    rows: WeightedRows,
    labels: Tall,
    sample: RowSample,
    directions: DirectionMemory,
    n_clusters: int,
) -> float:
    """Return the share of new rows far from all clusters; 0 if that may be chance.

    A row is far if its cosine with its cluster is below that of nearly all earlier
    rows. ``labels`` are those that the model gives new rows before it learns from them.
    The sample is of earlier rows, as coordinates in the directions.
    """
    X = rows.X
    ops = X.ops
    sums = HOST.sums_of_rows(sample.labels, n_clusters, sample.rows, sample.weights)
    limits = _least_usual_cosines(sample, sums)

    # Of unit length, from the origin to each cluster: (n_features, n_clusters).
    pointers = directions.vectors @ HOST.unit_rows(sums).T
    cosines = ops.pick(ops.widen(X @ pointers), labels) * rows.inverse_lengths
    is_far = cosines < ops.take_lines(limits, labels)
    n_far = ops.number(ops.xp.count_nonzero(is_far))

    # The limit of a cluster with few rows in the sample may be too high by chance.
    sample_sizes = np.bincount(sample.labels, minlength=n_clusters)
    usual_shares = np.maximum(Growing.RARE, 1 / (sample_sizes + 1))
    n_expected = float(usual_shares @ ops.group_sums(labels, n_clusters))
    # Twice as many as usual, and some more, may still be chance.
    n_by_chance = Growing.NOVEL * X.shape[0] + 2 * n_expected + Growing.LEAST_NOVEL

    return n_far / X.shape[0] if n_far > n_by_chance else 0.0


def _least_usual_cosines(sample: RowSample, sums: np.ndarray) -> np.ndarray:
    """Return the cosine of a row and its cluster that is rarely less, of each cluster.

    Few rows of the sample are below it. It is -1, and none is, of a cluster that has no
    row in the sample.

    Notes
    -----
    A row x of weight w is compared with the others of its cluster, whose weighted sum
    is s: with ``s - w * x``, of squared length ``s @ s + w * (w * x @ x - 2 * s @ x)``.
    Rows of a sample have unit length, so that of x is not divided by.
    """
    weights = sample.weights
    labels = sample.labels
    inner_products = HOST.pick(sample.rows @ sums.T, labels)
    sqnorms = HOST.row_dots(sample.rows, sample.rows)

    changes = weights * (weights * sqnorms - 2 * inner_products)
    squared_lengths = HOST.row_dots(sums, sums)[labels] + changes
    lengths = np.sqrt(np.maximum(squared_lengths, 0.0))
    cosines = HOST.ratio(inner_products - weights * sqnorms, lengths)

    limits = np.full(len(sums), -1.0)
    for cluster in np.unique(labels):
        limits[cluster] = np.quantile(cosines[labels == cluster], Growing.RARE)

    return limits
