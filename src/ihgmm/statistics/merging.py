"""Clusters of rows that merge two at a time, those first that lose least likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ihgmm.matrix import Tall, to_host
from ihgmm.policy import Small


class Branches(NamedTuple):
    """A tree that was learnt from some rows, and has put all rows into its leaves."""

    leaves: np.ndarray  # (n_samples,): the leaf of each row
    members: np.ndarray  # (k, k leaves): the cluster of each leaf among 1, 2, ..., k
    costs: np.ndarray  # (k - 1,): of merging two of 2, 3, ..., k clusters, for each row
    gaps: np.ndarray  # (k - 1, 2): how far other rows keep from the cut, on both sides

    @property
    def n_leaves(self) -> int:
        """The number of leaves that have rows the tree was learnt from."""
        return len(self.members)

    def labels(self, n_clusters: int) -> np.ndarray:
        """Return the cluster of each row where there are so many."""
        return self.members[n_clusters - 1][self.leaves]

    def rises(self, most: int) -> np.ndarray:
        """Return how much more each merger costs than the last, from 2 to most."""
        log_costs = np.log(self.costs[: most - 1])
        return np.append(log_costs[:-1] - log_costs[1:], 0.0)


@dataclass(frozen=True, eq=False)
class GapSearch:
    """How gaps between clusters are looked for, in rows a tree did not learn from."""

    lengths: np.ndarray  # (n_samples,): of the data's rows
    every_cut: bool  # whether at every cut, or between opposite directions alone

    def clearances(
        self, units: np.ndarray, sides: np.ndarray, is_learnt: np.ndarray
    ) -> tuple[float, float]:
        """Return how far new rows keep from the cut between two clusters, on each side.

        Parameters
        ----------
        units : ndarray of shape (n_samples, m)
            Unit rows.
        sides : ndarray of shape (n_samples,)
            1 and -1 for rows of the two clusters, 0 for others.
        is_learnt : ndarray of shape (n_samples,)
            Rows that the tree was learnt from. The cut goes through the origin, between
            these.
        """
        ahead = units[is_learnt & (sides == 1)]
        behind = units[is_learnt & (sides == -1)]
        center_ahead = ahead.mean(axis=0)
        center_behind = behind.mean(axis=0)

        are_opposite = _are_opposite(center_ahead, center_behind)
        if not (self.every_cut or are_opposite):
            return 0.0, 0.0

        # Least squares, in which both sides count alike.
        squares = ahead.T @ ahead / len(ahead) + behind.T @ behind / len(behind)
        difference = center_ahead - center_behind
        normal = np.linalg.lstsq(squares, difference, rcond=Small.LOAD)[0]

        is_new = (sides != 0) & ~is_learnt
        distances = units[is_new] @ normal
        if are_opposite:
            # Between these is the origin: short rows are in the gap there.
            distances = distances * self.lengths[is_new]
        return _clearance(distances), _clearance(-distances)


def _are_opposite(first: np.ndarray, second: np.ndarray) -> bool:
    """Tell whether directions are nearer to opposite than to orthogonal."""
    lengths = np.sqrt((first @ first) * (second @ second))
    cosine = first @ second / max(lengths, Small.EXACT)
    return bool(cosine < -np.sqrt(0.5))


def _clearance(distances: np.ndarray) -> float:
    """Return how far positive distances keep from 0, in standard errors.

    It is the mean distance, of those below the median, less that of even ones.
    """
    distances = np.sort(distances[distances > 0])
    if len(distances) < 2:
        return 0.0

    shares = distances[: len(distances) // 2] / np.median(distances)
    return float((shares - 0.5).sum() * np.sqrt(12 / len(shares)))


def merge_clusters(
    rows: Tall,
    leaves: np.ndarray,
    n_leaves: int,
    *,
    signed: bool,
    learnt_rows: np.ndarray | None = None,
    gap_search: GapSearch | None = None,
) -> Branches:
    """Merge the clusters of rows, those first that lose least likelihood.

    Parameters
    ----------
    rows : array of shape (n_samples, m)
        Rows of an embedding.
    leaves : ndarray of shape (n_samples,)
        The cluster of each row, from 0, of which some may be empty.
    n_leaves : int
        Number of clusters.
    signed : bool
        Whether opposite rows are of one cluster.
    learnt_rows : ndarray, optional
        Positions of the rows that the tree is learnt from, if not all.
    gap_search : GapSearch, optional
        How gaps are looked for in other rows; without it there are none.

    Notes
    -----
    Rows are Gaussian with one covariance W of all clusters. To merge clusters of sizes
    a and b with centres c and d, of n rows, loses for each row the log-likelihood
    ``log(1 + a b / (a + b) / n * (c - d) @ inv(W) @ (c - d)) / 2``; W is then that of
    the merged clusters. BIC's price of a cluster is ``(m + 1) / 2 * log(n) / n``.
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

    members = np.zeros((n_clusters, n_leaves), dtype=np.intp)
    losses = np.zeros(n_clusters - 1)
    gaps = np.zeros((n_clusters - 1, 2))
    for k in range(n_clusters, 1, -1):
        members[k - 1] = clusters.members()

        merger = clusters.cheapest_merger(signed)
        losses[k - 2] = np.log1p(max(merger.cost, 0.0)) / 2

        cluster_of_row = clusters.owner[leaves]
        is_first = cluster_of_row == merger.first
        is_second = cluster_of_row == merger.second
        if merger.are_opposite:
            clusters.centers[merger.second] *= -1
            rows[is_second] *= -1

        if gap_search is not None:
            sides = 1.0 * is_first - is_second
            gaps[k - 2] = gap_search.clearances(rows, sides, is_learnt)

        clusters.merge(merger.first, merger.second)

    n = clusters.n_rows
    price = (rows.shape[1] + 1) / 2 * np.log(n) / n
    return Branches(leaves=leaves, members=members, costs=losses + price, gaps=gaps)


def _turn_alike(rows: np.ndarray, leaves: np.ndarray) -> None:
    """Turn rows, in place, so that those of a cluster point the same way along it."""
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
    cost: float  # how much their covariance grows by it, over the covariance within
    are_opposite: bool  # whether they are of one line, in opposite directions


class _MergingClusters:
    """Gaussian clusters of one covariance; merged ones go by the number of the first.

    Attributes
    ----------
    n_rows : int
    centers : ndarray of shape (n_leaves, m)
    sizes : ndarray of shape (n_leaves,)
    within : ndarray of shape (m, m)
        Covariance of rows within clusters.
    alive : ndarray of shape (n_clusters,)
        Numbers of the clusters that there are, increasing.
    owner : ndarray of shape (n_leaves,)
        The cluster of each leaf; empty leaves are in the first.
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
        # Rows may coincide.
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
