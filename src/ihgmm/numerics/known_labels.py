"""What is known of rows before clusters are learnt: classes of some, or old labels.

Users know the classes of some rows. An older model has labels for all rows, from which
clusters may start and by which they are numbered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ihgmm.matrix import HOST, Matrix, Ops, Tall, to_host
from ihgmm.numerics.matching import confusion, kept_order
from ihgmm.policy import Small, Teaching


@dataclass(frozen=True, eq=False)
class KnownLabels:
    """Labels of the rows that clusters are learnt from.

    Labels are numbers of clusters, -1 for rows of which nothing is known.
    """

    classes: np.ndarray | None = None  # (n,): of users, who may err; class j: cluster j
    start: np.ndarray | None = None  # (n,): of an older model, to start from
    start_weights: np.ndarray | None = None  # (n,): how much rows tell of their cluster
    # Whether a row of known class weighs as much as any other; else a few weigh more.
    counts_as_any_other: bool = False

    @property
    def has_classes(self) -> bool:
        """Whether the class of a row is known."""
        return self.classes is not None and bool((self.classes >= 0).any())

    def has_all_classes(self, k: int) -> bool:
        """Tell whether rows of each of k classes are known."""
        return self.has_classes and len(self._known_clusters(k)) == k

    def _known_clusters(self, k: int) -> np.ndarray:
        """Return the clusters, of k, that are classes of known rows."""
        assert self.classes is not None
        return np.flatnonzero(np.bincount(self.classes[self.classes >= 0], minlength=k))

    def hide(self, is_hidden: np.ndarray) -> KnownLabels:
        """Return what is known where the classes of some rows are hidden."""
        assert self.classes is not None
        return replace(self, classes=np.where(is_hidden, -1, self.classes))

    def as_any_other(self) -> KnownLabels:
        """Return the same, of rows of known class that weigh as much as any other."""
        return replace(self, counts_as_any_other=True)

    def of_rows(self, rows: np.ndarray | slice) -> KnownLabels:
        """Return what is known of some rows: a mask, positions or a slice."""
        if self.classes is None and self.start is None:
            return self

        def select(values: np.ndarray | None) -> np.ndarray | None:
            return None if values is None else values[rows]

        return replace(
            self,
            classes=select(self.classes),
            start=select(self.start),
            start_weights=select(self.start_weights),
        )

    def without_classes(self) -> KnownLabels:
        """Return what an older model knows."""
        return KnownLabels(start=self.start, start_weights=self.start_weights)

    def classes_as_start(self) -> KnownLabels:
        """Return classes as labels to start from, which rule over nothing else."""
        return KnownLabels(start=self.classes)

    def log_prior(self, ops: Ops, rows: Tall, k: int) -> Tall | None:
        """Return what classes add to the scores of clusters, (k, n), like ``rows``.

        They may be wrong: a row loses some log-odds in all clusters but that of its
        class. None where no classes are known.
        """
        if self.classes is None:
            return None
        is_known = self.classes >= 0
        is_other_class = (self.classes != np.arange(k)[:, None]) & is_known  # (k, n)
        return ops.cast_like(np.where(is_other_class, -Teaching.TRUST, 0.0), rows)

    def reweighted(self, weights: np.ndarray) -> np.ndarray:
        """Return weights with which rows of known class count more.

        Else a few of them would hardly be heard. Of ``HALF`` known rows a class, their
        weight is that of all other rows together; of more, it is larger.
        """
        if not self.has_classes or self.counts_as_any_other:
            return weights

        assert self.classes is not None
        is_known = self.classes >= 0
        n_classes = len(np.unique(self.classes[is_known]))
        known_per_class = is_known.sum() / n_classes
        weight_of_known = max(weights[is_known].sum(), Small.TINY)
        weight_ratio = weights[~is_known].sum() / weight_of_known

        factor = max(weight_ratio * known_per_class / Teaching.HALF, 1.0)
        return np.where(is_known, factor, 1.0) * weights

    def agreeing_starts(
        self, ops: Ops, spaces: Sequence[Tall], starts: Sequence[Tall], k: int
    ) -> list[Tall]:
        """Return starts, and those that come from the labels of an older model.

        Parameters
        ----------
        ops : Ops
            What serves the rows.
        spaces : sequence of arrays of shape (n, m)
            The rows in each space.
        starts : sequence of arrays of shape (k, n)
            Memberships of rows that were found without the labels.
        k : int
            Number of clusters.

        Returns
        -------
        starts : list of arrays of shape (k, n)
            The starts given; then memberships by the nearest mean of the rows of each
            old cluster.
        """
        starts = list(starts)
        if self.start is None:
            return starts

        # Where all rows have labels, spaces do not matter.
        has_all_labels = not (self.start < 0).any()
        for rows in spaces[:1] if has_all_labels else spaces:
            members = members_by_nearest_mean(ops.to_host(rows), self.start, k)
            starts.append(ops.cast_like(members, rows))
        return starts

    def starts_of_classes(
        self, ops: Ops, spaces: Sequence[Tall], starts: Sequence[Tall], k: int
    ) -> list[Tall]:
        """Return memberships, (k, n), by the nearest mean of the rows of each class.

        Clusters without known rows begin as in the ``starts``, which were found without
        classes: there they have the means of clusters that go with no class. Where
        every class has known rows, starts do not matter.
        """
        assert self.classes is not None
        is_known_cluster = np.isin(np.arange(k), self._known_clusters(k))

        class_starts = []
        for rows in spaces:
            host_rows = ops.to_host(rows)
            if is_known_cluster.all():
                members = members_by_nearest_mean(host_rows, self.classes, k)
                class_starts.append(ops.cast_like(members, rows))
                continue

            for start in starts:
                in_order = ops.to_host(self._in_order_of_classes(ops, start, k))
                centers = HOST.unit_rows(in_order @ host_rows)
                centers[is_known_cluster] = 0.0
                members = members_by_nearest_mean(host_rows, self.classes, k, centers)
                class_starts.append(ops.cast_like(members, rows))
        return class_starts

    def _in_order_of_classes(self, ops: Ops, start: Tall, k: int) -> Tall:
        """Return memberships, (k, n), whose clusters agree with classes the most."""
        assert self.classes is not None
        is_of_class = self.classes[:, None] == np.arange(k)  # (n, k)
        counts = np.abs(ops.to_host(start)) @ is_of_class  # (k clusters, k classes)
        return ops.take_rows(start, kept_order(counts.T))

    def keep_classes(self, X: Matrix, labels: Tall) -> Tall:
        """Return labels of the rows of X; rows of known class keep it."""
        if self.classes is None:
            return labels
        classes = X.ops.cast_like(X.to_device(self.classes), labels)
        return X.ops.persist(X.ops.xp.where(classes >= 0, classes, labels))

    def cluster_order(self, by_size: np.ndarray, labels: Tall) -> np.ndarray:
        """Return clusters in the order of their numbers.

        Cluster j is class j. Without classes, clusters keep the numbers of ``start``
        where they share rows. All others follow by size: ``by_size`` are clusters in
        the order of decreasing size, ``labels`` those of the rows.
        """
        if self.classes is not None:
            n_classes = int(self.classes.max()) + 1
            new_clusters = by_size[by_size >= n_classes]
            return np.append(np.arange(n_classes), new_clusters)

        if self.start is None:
            return by_size

        k = len(by_size)
        old_labels = np.where(self.start < k, self.start, -1)
        counts = confusion(old_labels, to_host(labels), (k, k), self.start_weights)
        return by_size[kept_order(counts[:, by_size])]


NOTHING_KNOWN = KnownLabels()


def members_by_nearest_mean(
    rows: np.ndarray,
    labels: np.ndarray,
    k: int,
    other_centers: np.ndarray | None = None,
) -> np.ndarray:
    """Return memberships, (k, n), of rows by the nearest mean of those with labels.

    Rows with a label keep it. ``rows`` are of unit length. Clusters without a label may
    have other centres, (k, m), which are zero for all others.
    """
    is_member = (labels[:, None] == np.arange(k)).astype(rows.dtype)  # (n, k)
    centers = HOST.unit_rows(is_member.T @ rows)  # (k, m)
    if other_centers is not None:
        centers += other_centers

    # Clusters without a mean begin at the row that is farthest from all means.
    for cluster in np.flatnonzero(~centers.any(axis=1)):
        has_center = centers.any(axis=1)
        cosines = rows @ centers[has_center].T
        nearest_cosine = cosines.max(axis=1, initial=-1.0)
        centers[cluster] = rows[np.argmin(nearest_cosine)]

    nearest_mean = np.argmax(rows @ centers.T, axis=1)
    has_label = is_member.any(axis=1)
    all_labels = np.where(has_label, labels, nearest_mean)
    return np.eye(k, dtype=rows.dtype)[all_labels].T
