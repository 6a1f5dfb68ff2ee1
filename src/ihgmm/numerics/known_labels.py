"""What is known of clusters before they are learnt: labels of some rows, or old ones.

Labels are numbers of clusters, -1 for rows of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ihgmm.matrix import HOST, Matrix, Ops, Tall, to_host
from ihgmm.numerics.matching import confusion, kept_order
from ihgmm.policy import Small, Teaching


class KnownLabels(NamedTuple):
    """Labels of the rows that clusters are learnt from."""

    known: np.ndarray | None = None  # of users, who may err: cluster j is class j
    start: np.ndarray | None = None  # of an older model, to start from
    # How much rows tell of their old cluster; those of a new one are far from it.
    nearness: np.ndarray | None = None

    def at(self, rows: np.ndarray | slice) -> KnownLabels:
        """Return the labels of some rows."""
        if self.known is None and self.start is None:
            return self
        return KnownLabels(*(one if one is None else one[rows] for one in self))

    def prior(self, ops: Ops, rows: Tall, k: int) -> Tall | None:
        """Return what labels, which may be wrong, add to scores of clusters, (k, n)."""
        if self.known is None:
            return None
        other = (self.known != np.arange(k)[:, None]) & (self.known >= 0)
        return ops.cast_like(np.where(other, -Teaching.TRUST, 0.0), rows)

    def weigh(self, weights: np.ndarray) -> np.ndarray:
        """Return weights with which known rows, else hardly heard, count more."""
        if self.known is None or self.known.max() < 0:
            return weights
        lessons = self.known >= 0
        a_class = lessons.sum() / len(np.unique(self.known[lessons]))
        others = weights[~lessons].sum() / max(weights[lessons].sum(), Small.TINY)
        factor = max(others * a_class / Teaching.HALF, 1.0)  # many are surer than few
        return np.where(lessons, factor, 1.0) * weights

    def keep(self, X: Matrix, labels: Tall) -> Tall:
        """Return labels of the rows of X, known ones where there are."""
        if self.known is None:
            return labels
        known = X.ops.cast_like(X.to_device(self.known), labels)
        return X.ops.persist(X.ops.xp.where(known >= 0, known, labels))

    def order(self, by_size: np.ndarray, labels: Tall) -> np.ndarray:
        """Return clusters in the order of their numbers, those without one by size."""
        k = len(by_size)
        if self.known is not None:
            classes = int(self.known.max()) + 1
            return np.append(np.arange(classes), by_size[by_size >= classes])
        if self.start is None:
            return by_size
        old = np.where(self.start < k, self.start, -1)
        counts = confusion(old, to_host(labels), (k, k), self.nearness)
        return by_size[kept_order(counts[:, by_size])]

    def begin(
        self, ops: Ops, spaces: Sequence[Tall], starts: list[Tall], k: int
    ) -> list[Tall]:
        """Return starts, memberships of (k, n), that know of the labels."""
        if self.known is not None:
            # The same clusters, in an order that agrees with known labels.
            lessons = self.known[:, None] == np.arange(k)
            counts = [(np.abs(ops.to_host(start)) @ lessons).T for start in starts]
            pairs = zip(starts, map(kept_order, counts), strict=True)
            starts = [ops.take_rows(*pair) for pair in pairs]
        for labels in (self.known, self.start):
            if labels is not None:
                # Where all rows have labels, spaces do not matter.
                for rows in spaces if (labels < 0).any() else spaces[:1]:
                    members = members_by_nearest_mean(ops.to_host(rows), labels, k)
                    starts.append(ops.cast_like(members, rows))
        return starts


NOTHING_KNOWN = KnownLabels()


def members_by_nearest_mean(rows: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Return memberships, (k, n), of rows by the nearest mean of those with labels."""
    members = (labels[:, None] == np.arange(k)).astype(rows.dtype)
    centers = HOST.unit_rows(members.T @ rows)
    # Clusters without such a row begin at the one that is farthest from all means.
    for cluster in np.flatnonzero(~members.any(axis=0)):
        nearest = (rows @ centers[centers.any(axis=1)].T).max(axis=1, initial=-1.0)
        centers[cluster] = rows[np.argmin(nearest)]
    near = np.where(members.any(axis=1), labels, np.argmax(rows @ centers.T, axis=1))
    return np.eye(k, dtype=rows.dtype)[near].T
