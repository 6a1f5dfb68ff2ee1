"""Clusters of rows that merge two at a time, those first that lose least likelihood."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ihgmm.matrix import Tall, to_host
from ihgmm.policy import Small


class Branches(NamedTuple):
    """A tree of clusters that was learnt from some rows, and the leaf of every row.

    Some leaves may be empty of the rows it was learnt from; k others are not.
    """

    leaves: np.ndarray  # (n_samples,): the leaf of each row, from 0
    # (k, number of all leaves): line i has the cluster of each leaf, from 0 to i, where
    # there are i + 1 clusters. Empty leaves are in one of these.
    members: np.ndarray
    # (k - 1,): entry i is what it costs, divided by the number of rows, to merge two of
    # i + 2 clusters.
    costs: np.ndarray

    @property
    def n_leaves(self) -> int:
        """The number of leaves, k, that have rows the tree was learnt from."""
        return len(self.members)

    def labels(self, n_clusters: int) -> np.ndarray:
        """Return the cluster of each row where there are so many."""
        return self.members[n_clusters - 1][self.leaves]

    def rises(self, most: int) -> np.ndarray:
        """Return how much more it costs to merge two of 2, 3, ..., most clusters.

        More than with one cluster more, that is, in logarithms: (most - 1,). The last
        number, for which that is not known, is 0.
        """
        log_costs = np.log(self.costs[: most - 1])
        return np.append(log_costs[:-1] - log_costs[1:], 0.0)


def merge_clusters(
    rows: Tall,
    leaves: np.ndarray,
    n_leaves: int,
    *,
    signed: bool,
    learnt_rows: np.ndarray | None = None,
) -> Branches:
    """Merge the clusters of rows, those first that lose least likelihood.

    Parameters
    ----------
    rows : array of shape (n_samples, m)
        Rows of an embedding.
    leaves : ndarray of shape (n_samples,)
        The leaf of each row, a cluster to begin with, from 0.
    n_leaves : int
        Number of leaves, with those that are empty.
    signed : bool
        Whether a row and its opposite are of one cluster.
    learnt_rows : ndarray, optional
        Positions of the rows that the tree is learnt from, if not all.

    Notes
    -----
    Rows are Gaussian with one covariance W of all clusters. To merge clusters of sizes
    a and b with centres c and d loses, divided by the number n of rows, the
    log-likelihood ``log(1 + a b / (a + b) / n * (c - d) @ inv(W) @ (c - d)) / 2``. W is
    replaced by that of the merged clusters. To this cost comes BIC's price of a
    cluster, of m coordinates and a share: ``(m + 1) / 2 * log(n) / n``.
    """
    rows = to_host(rows).astype(np.float64)
    is_learnt = np.ones(len(rows), dtype=bool)
    if learnt_rows is not None:
        is_learnt[:] = False
        is_learnt[learnt_rows] = True
    if signed:
        _turn_alike(rows, leaves)

    clusters = _MergingClusters(rows[is_learnt], leaves[is_learnt], n_leaves)
    n_clusters = len(clusters.alive)

    members = np.zeros((n_clusters, n_leaves), dtype=np.intp)  # one cluster: all 0
    losses = np.zeros(n_clusters - 1)
    for k in range(n_clusters, 1, -1):
        members[k - 1] = clusters.members()

        merger = clusters.cheapest_merger(signed)
        losses[k - 2] = np.log1p(max(merger.cost, 0.0)) / 2

        if merger.are_opposite:  # turn the second round
            clusters.centers[merger.second] *= -1
        clusters.merge(merger.first, merger.second)

    n = clusters.n_rows
    price = (rows.shape[1] + 1) / 2 * np.log(n) / n
    return Branches(leaves=leaves, members=members, costs=losses + price)


def _turn_alike(rows: np.ndarray, leaves: np.ndarray) -> None:
    """Turn rows, in place, to one side of the main direction of their cluster."""
    for leaf in np.unique(leaves):
        is_member = leaves == leaf
        members = rows[is_member]

        main_direction = np.linalg.svd(members, full_matrices=False)[2][0]
        signs = np.where(members @ main_direction < 0, -1.0, 1.0)
        rows[is_member] *= signs[:, None]


class _Merger(NamedTuple):
    """Two clusters to merge."""

    first: int
    second: int
    cost: float  # the term that is added to 1 in the log-likelihood that is lost
    are_opposite: bool  # whether one has to be turned round, where signs mean nothing


class _MergingClusters:
    """Gaussian clusters of one covariance; merged ones go by the number of the first.

    Each begins as a leaf and has its number.

    Attributes
    ----------
    n_rows : int
        Number of rows that the tree is learnt from.
    centers : ndarray of shape (n_leaves, m)
    sizes : ndarray of shape (n_leaves,)
    within : ndarray of shape (m, m)
        Covariance of rows within clusters.
    alive : ndarray of shape (n_clusters,)
        Numbers of the clusters that there are, increasing.
    owner : ndarray of shape (n_leaves,)
        The cluster of each leaf; empty leaves go with the first that is not.
    """

    def __init__(self, rows: np.ndarray, labels: np.ndarray, n_leaves: int) -> None:
        n, m = rows.shape

        self.n_rows = n
        self.sizes = np.bincount(labels, minlength=n_leaves).astype(float)
        self.alive = np.flatnonzero(self.sizes)
        self.owner = np.where(self.sizes > 0, np.arange(n_leaves), self.alive[0])

        self.centers = np.zeros((n_leaves, m))
        np.add.at(self.centers, labels, rows)
        self.centers /= np.maximum(self.sizes, 1)[:, None]

        residuals = rows - self.centers[labels]
        # Where rows coincide, the covariance would have no inverse.
        load = max(Small.LOAD * float(np.square(rows).mean()), Small.EXACT)
        self.within = residuals.T @ residuals / n + load * np.eye(m)

    def members(self) -> np.ndarray:
        """Return the cluster of each leaf, numbered without gaps."""
        return np.searchsorted(self.alive, self.owner)

    def cheapest_merger(self, signed: bool) -> _Merger:
        """Return the two clusters that lose least likelihood when they are merged."""
        k = len(self.alive)
        centers = self.centers[self.alive]
        sizes = self.sizes[self.alive]

        whitened = np.linalg.solve(self.within, centers.T)
        products = centers @ whitened  # (k, k): inner products in units of the noise
        squares = np.einsum("ij,ji->i", centers, whitened)

        similarity = np.abs(products) if signed else products
        costs = np.add.outer(squares, squares) - 2 * similarity
        costs *= sizes * sizes[:, None] / (sizes + sizes[:, None]) / self.n_rows
        np.fill_diagonal(costs, np.inf)

        i, j = divmod(int(costs.argmin()), k)
        return _Merger(
            first=int(self.alive[i]),
            second=int(self.alive[j]),
            cost=float(costs[i, j]),
            are_opposite=signed and bool(products[i, j] < 0),
        )

    def merge(self, first: int, second: int) -> None:
        """Merge the second cluster into the first."""
        difference = self.centers[first] - self.centers[second]
        size = self.sizes[first] + self.sizes[second]

        weight = self.sizes[first] * self.sizes[second] / size / self.n_rows
        self.within += weight * np.outer(difference, difference)
        self.centers[first] -= self.sizes[second] / size * difference
        self.sizes[first] = size

        self.owner[self.owner == second] = first
        self.alive = self.alive[self.alive != second]
