"""What a model remembers of all rows that it has seen, in bounded memory.

Directions of old and new rows are merged as those of two Gram matrices that are added
up. Of each cluster some sums stay. Of the rows themselves a sample stays, as
coordinates in the directions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ihgmm.matrix import HOST, Matrix, Scaled, Tall, to_host
from ihgmm.numerics.eigen import leading_directions
from ihgmm.numerics.known_labels import KnownLabels
from ihgmm.policy import Growing, Labelling


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows of one call, and how much each of them counts."""

    X: Matrix
    weights: Tall  # (n,): those of users, and 0 for rows of zeros
    inverse_lengths: Tall  # (n,): 0 for rows of zeros

    @classmethod
    def of(cls, X: Matrix, weights: np.ndarray) -> WeightedRows:
        """Return the rows of X with weights of users."""
        ops = X.ops
        is_nonzero = ops.xp.astype(X.is_nonzero_row, X.sqnorms.dtype)
        return cls(
            X=X,
            weights=is_nonzero * X.to_device(weights),
            inverse_lengths=ops.ratio(1.0, ops.xp.sqrt(X.sqnorms)),
        )


@dataclass(frozen=True, eq=False)
class DirectionMemory:
    """The Gram matrix of unit rows by its leading eigenpairs, all others being alike.

    Notes
    -----
    With V the vectors, d the eigenvalues and e the remaining eigenvalue, the matrix is

        ``X.T @ X = V @ diag(d - e) @ V.T + e * I``.
    """

    vectors: np.ndarray  # (n_features, n_directions), orthonormal
    values: np.ndarray  # (n_directions,), leading first
    total: float  # the trace, which is the weight of all rows

    @property
    def remaining_eigenvalue(self) -> float:
        """The eigenvalue of every other direction: an even share of the trace."""
        n_features, n_directions = self.vectors.shape
        if n_features == n_directions:
            return 0.0
        remaining_trace = max(self.total - float(self.values.sum()), 0.0)

        return remaining_trace / (n_features - n_directions)

    def merged(self, other: DirectionMemory, n_directions: int) -> DirectionMemory:
        """Return the leading directions of the rows of both, so many at most.

        Notes
        -----
        Beyond a multiple of the identity, the sum of two Gram matrices is ``F @ F.T``,
        where F has the columns ``V * sqrt(d - e)`` of both beside each other. The left
        singular vectors of F are the directions of the sum.
        """
        factors = [
            memory.vectors
            * np.sqrt(np.maximum(memory.values - memory.remaining_eigenvalue, 0.0))
            for memory in (self, other)
        ]
        vectors, singular_values, _ = np.linalg.svd(
            np.hstack(factors), full_matrices=False
        )
        values = singular_values[:n_directions] ** 2
        values = values + self.remaining_eigenvalue + other.remaining_eigenvalue

        return DirectionMemory(
            vectors=HOST.fix_signs(vectors[:, :n_directions].copy()),
            values=values,
            total=self.total + other.total,
        )


def find_directions(rows: WeightedRows, n_leading: int, width: int) -> DirectionMemory:
    """Return directions of rows at unit length, which count by their weights.

    ``n_leading`` of them are found to the tolerance of updates, and others, up to
    ``width`` in all, are as exact as these leave them.
    """
    X = rows.X
    xp = X.ops.xp
    n_leading = min(n_leading, X.shape[0])

    pairs = leading_directions(
        Scaled(X, rows=rows.inverse_lengths * xp.sqrt(rows.weights)),
        n_leading,
        width - n_leading,
        tol=Growing.TOLERANCE,
        quiet=True,
    )

    return DirectionMemory(
        vectors=pairs.vectors,
        values=pairs.values,
        total=X.ops.number(xp.sum(rows.weights)),
    )


@dataclass(frozen=True, eq=False)
class RowSample:
    """Rows drawn by priority: weight over a uniform number; the largest stay.

    A row whose weight is below the threshold stands for others, and counts as much as
    the threshold. So weighted sums over the sample are right on average.
    """

    rows: np.ndarray  # (n_rows, n_directions): unit rows, as coordinates in directions
    lengths: np.ndarray  # (n_rows,): of the rows of data
    row_weights: np.ndarray  # (n_rows,): of the rows alone
    priorities: np.ndarray  # (n_rows,)
    labels: np.ndarray  # (n_rows,): -1 where there is none yet
    is_known: np.ndarray  # (n_rows,): whether a user gave the label, which then stays
    threshold: float = 0.0  # the largest priority that was left out

    @property
    def weights(self) -> np.ndarray:
        """How much each row counts, those that it stands for included."""
        return np.maximum(self.row_weights, self.threshold)

    @property
    def known_labels(self) -> KnownLabels:
        """What is known of rows: labels that users gave, and labels so far, if any."""
        labels_of_users = np.where(self.is_known, self.labels, -1)
        return KnownLabels(
            classes=labels_of_users if self.is_known.any() else None,
            start=self.labels if (self.labels >= 0).any() else None,
            # A row whose label was given counts for more than all others.
            start_weights=1.0 + len(self.is_known) * self.is_known,
        )

    def turned(self, rotation: np.ndarray) -> RowSample:
        """Return the sample in coordinates of other directions."""
        return replace(self, rows=self.rows @ rotation)

    def relabelled(self, labels: np.ndarray) -> RowSample:
        """Return the sample with new labels; those that users gave stay."""
        return replace(self, labels=np.where(self.is_known, self.labels, labels))

    def joined(self, other: RowSample, size: int) -> RowSample:
        """Return a sample, of so many rows at most, of the rows of both."""
        priorities = np.concatenate([self.priorities, other.priorities])
        sample_rows, threshold = highest_priorities(priorities, size)

        def of_both(values: np.ndarray, other_values: np.ndarray) -> np.ndarray:
            return np.concatenate([values, other_values])[sample_rows]

        return RowSample(
            rows=of_both(self.rows, other.rows),
            lengths=of_both(self.lengths, other.lengths),
            row_weights=of_both(self.row_weights, other.row_weights),
            priorities=priorities[sample_rows],
            labels=of_both(self.labels, other.labels),
            is_known=of_both(self.is_known, other.is_known),
            threshold=max(self.threshold, other.threshold, threshold),
        )


def sample_size(n_clusters: int) -> int:
    """Return how many rows a sample has at most."""
    return max(Labelling.ROWS, Labelling.ROWS_A_CLUSTER * n_clusters)


def draw_sample(
    rows: WeightedRows,
    directions: DirectionMemory,
    labels: np.ndarray,
    *,
    size: int,
    seed: int,
    least_priority: float = 0.0,
) -> RowSample:
    """Draw a sample of rows with labels so far, -1 for none.

    Rows up to the least priority are left out: beside an older sample they would not
    stay.
    """
    X = rows.X
    weights = to_host(rows.weights)
    uniform = 1 - np.random.default_rng(seed).random(len(weights))
    priorities = weights / uniform
    priorities[priorities <= least_priority] = 0.0
    sample_rows, threshold = highest_priorities(priorities, size)

    sample = X.take(sample_rows)
    lengths = np.sqrt(to_host(sample.sqnorms))
    coordinates = to_host(sample @ directions.vectors).astype(np.float64)

    return RowSample(
        rows=coordinates / lengths[:, None],
        lengths=lengths * X.unit,
        row_weights=weights[sample_rows],
        priorities=priorities[sample_rows],
        labels=labels[sample_rows],
        is_known=np.zeros(len(sample_rows), dtype=bool),
        threshold=threshold,
    )


def highest_priorities(priorities: np.ndarray, size: int) -> tuple[np.ndarray, float]:
    """Return the rows of the highest priorities above 0, and the highest left out."""
    candidates = np.flatnonzero(priorities)
    order = candidates[np.argsort(-priorities[candidates], kind="stable")]
    threshold = 0.0
    if len(order) > size:
        threshold = float(priorities[order[size]])

    return np.sort(order[:size]), threshold


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sums over the rows of each cluster, from which centres follow at any time.

    A row counts by its weight w; its length l is that along the centre, 0 at least. It
    is 1 of rows whose roots are compared: noise that grows with the mean, as that of
    counts, would make large entries count more, and centres are means of rows.
    """

    rows: np.ndarray  # (n_clusters, n_features): sums of w * l * row
    weights: np.ndarray  # (n_clusters,): sums of w
    lengths: np.ndarray  # (n_clusters,): sums of w * l
    squared_lengths: np.ndarray  # (n_clusters,): sums of w * l**2

    @classmethod
    def of(
        cls, X: Matrix, pointers: np.ndarray, labels: Tall, weights: Tall
    ) -> ClusterSums:
        """Return the sums of some rows, whose clusters point along ``pointers``."""
        ops = X.ops
        lengths = ops.pick(ops.widen(X @ pointers.T), labels)
        weighted_lengths = ops.clip(lengths, 0.0, None) * weights
        weighted_squares = weighted_lengths * weighted_lengths
        weighted_squares = weighted_squares * ops.ratio(1.0, weights)

        groups = ops.groups(labels, len(pointers))
        sums_of_rows = groups.weighted_sums(X, weighted_lengths).astype(np.float64)

        return cls(
            rows=sums_of_rows * X.unit**2,
            weights=groups.sums(weights),
            lengths=groups.sums(weighted_lengths) * X.unit,
            squared_lengths=groups.sums(weighted_squares) * X.unit**2,
        )

    @classmethod
    def of_plain_rows(
        cls, X: Matrix, labels: Tall, weights: Tall, n_clusters: int
    ) -> ClusterSums:
        """Return the sums of some rows whose lengths are 1, whatever they are."""
        groups = X.ops.groups(labels, n_clusters)
        sums_of_rows = groups.weighted_sums(X, weights).astype(np.float64)
        return cls.of_totals(sums_of_rows * X.unit, groups.sums(weights))

    @classmethod
    def of_totals(cls, rows: np.ndarray, weights: np.ndarray) -> ClusterSums:
        """Return sums of rows whose lengths are 1, given those of rows and weights."""
        return cls(rows=rows, weights=weights, lengths=weights, squared_lengths=weights)

    def __add__(self, other: ClusterSums) -> ClusterSums:
        """Return the sums over the rows of both."""
        return ClusterSums(
            rows=self.rows + other.rows,
            weights=self.weights + other.weights,
            lengths=self.lengths + other.lengths,
            squared_lengths=self.squared_lengths + other.squared_lengths,
        )

    @property
    def centers(self) -> np.ndarray:
        """What a row of scale 1, the mean scale, looks like in each cluster.

        Notes
        -----
        Least squares give ``sum(w * l * row) / sum(w * l**2)`` for a row of length 1,
        and the mean length is ``sum(w * l) / sum(w)``.
        """
        factors = HOST.ratio(self.lengths, self.squared_lengths * self.weights)
        return np.asarray(self.rows * factors[:, None])
