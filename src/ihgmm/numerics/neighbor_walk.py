"""Neighbours teach the rule: rows move towards theirs while clusters are learnt.

A graph of neighbours sees clusters of any shape, and cannot place a new row; a rule
that is linear can. So neighbours move the rows, and only a rule is kept:

1. each row of the embedding moves, in a few steps, towards its neighbours;
2. a mixture finds clusters of the moved rows, and one step of maximisation on the rows
   as they were before gives a linear rule;
3. by the clusters of this rule the embedding is made round, so that distances count
   alike in all directions; neighbours there, a walk and a mixture again;
4. one more step of maximisation, on rows as they were, gives the rule that is kept.

A row has ten neighbours, and in a small cluster no more than a quarter of it: others
would pull the row out. Rows that are as near as the last neighbour share what is left
of its weight: neither their order nor rounding decides which of them are neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from ihgmm.matrix import HOST
from ihgmm.matrix.threads import in_parts, row_ranges
from ihgmm.numerics.mixture import TiedClusters
from ihgmm.numerics.training import TrainingRows, Trial, best_of_spaces
from ihgmm.policy import Neighbors


@dataclass(frozen=True, eq=False)
class TaughtClusters:
    """Gaussian clusters whose rule was taught by neighbours."""

    clusters: TiedClusters
    # Log-likelihood of a moved row over one Gaussian, less BIC's penalty: how clear the
    # clusters of moved rows are.
    clearness: float


def neighbors_help(n_rows: int, n_clusters: int) -> bool:
    """Tell whether neighbours teach better than the rows alone, by size.

    With few clusters or few rows they make as many sets worse as better.
    """
    return n_clusters >= Neighbors.LEAST_CLUSTERS and n_rows >= Neighbors.LEAST_ROWS


def walk_size(n_rows: int, n_clusters: int) -> int:
    """Return how many rows of a sample look for neighbours."""
    size = max(Neighbors.ROWS, Neighbors.ROWS_A_CLUSTER * n_clusters)
    return min(n_rows, size, Neighbors.MOST_ROWS)


def clusters_by_neighbors(
    rows: TrainingRows, plain: Trial, n_clusters: int
) -> TaughtClusters | None:
    """Return clusters, in the space of some plain ones, that neighbours have taught.

    Parameters
    ----------
    rows : TrainingRows
        The rows, on the host, in every space in which clusters may be looked for.
    plain : Trial
        The clusters that the rows come to by themselves.
    n_clusters : int
        Number of clusters.

    Returns
    -------
    taught : TaughtClusters or None
        None where a cluster would lose all its rows.
    """
    assert plain.clusters is not None
    space = plain.space
    fixed_rows = rows.spaces[space]

    graph = NeighborGraph.of_clusters(rows, space, plain.clusters)
    walk = graph.walk(Cosines(fixed_rows))
    first = _taught(rows, space, n_clusters, walk)
    if first is None:
        return None

    graph = NeighborGraph.of_clusters(rows, space, first.clusters)
    round_rows = made_round(rows, space, first.clusters)
    walk = graph.walk(_Closeness(round_rows, signed=rows.signed))
    return _taught(rows, space, n_clusters, walk)


def _taught(
    rows: TrainingRows, space: int, k: int, walk: sp.csr_array
) -> TaughtClusters | None:
    """Learn clusters of moved rows, and from these a rule for rows as they were."""
    moved_rows = moved_by(walk, rows)
    trial = best_of_spaces(moved_rows, k)
    if trial.clusters is None:
        return None

    members = hard_members(moved_rows, trial.space, trial.clusters)
    clusters = rows.one_step(space, members)
    if clusters is None:
        return None
    return TaughtClusters(clusters=clusters, clearness=trial.clusters.bic_gain)


def moved_by(walk: sp.csr_array, rows: TrainingRows) -> TrainingRows:
    """Return unit rows after some steps of a walk to neighbours."""
    spaces = list(rows.spaces)
    for _ in range(Neighbors.STEPS):
        spaces = [walk @ positions for positions in spaces]
    return replace(rows, spaces=[HOST.unit_rows(positions) for positions in spaces])


def hard_members(rows: TrainingRows, space: int, clusters: TiedClusters) -> np.ndarray:
    """Return memberships, (k, n), of rows in their likeliest cluster alone.

    With signed rows they are -1 where a row points away from its centre.
    """
    members = clusters.memberships(
        HOST, rows.spaces[space], signed=rows.signed, prior=None
    )
    labels = np.abs(members).argmax(axis=0)
    is_member = labels == np.arange(len(members))[:, None]
    return is_member * np.where(members < 0, -1.0, 1.0).astype(members.dtype)


def made_round(rows: TrainingRows, space: int, clusters: TiedClusters) -> np.ndarray:
    """Return the rows, (n, m), in coordinates in which clusters are round.

    With W the covariance within clusters, pulled a bit towards a sphere, and its
    Cholesky factor L, a row x becomes ``L⁻¹ x``.
    """
    fixed_rows = np.asarray(rows.spaces[space], dtype=np.float64)
    members = hard_members(rows, space, clusters).astype(np.float64)  # (k, n)

    # Rows of a cluster, turned towards its centre, about their mean.
    weighted_members = members * rows.weights
    sizes = np.maximum(np.abs(weighted_members).sum(axis=1), 1.0)
    centers = (weighted_members @ fixed_rows) / sizes[:, None]
    residuals = fixed_rows - members.T @ centers
    within = (residuals * rows.weights[:, None]).T @ residuals / rows.weights.sum()

    m = len(within)
    mean_variance = max(np.trace(within) / m, np.finfo(float).tiny)
    within *= 1 - Neighbors.PULL
    within[np.diag_indices(m)] += (Neighbors.PULL + Neighbors.FLATTEST) * mean_variance

    factor = np.linalg.cholesky(within)
    return np.linalg.solve(factor, fixed_rows.T).T


class _Similarity(Protocol):
    """How near rows are; of opposite ones, where these are alike, with a minus."""

    n_rows: int

    def of_rows(self, part: slice) -> np.ndarray:
        """Return similarities, (rows of the part, n), as a new array."""


class Cosines(_Similarity):
    """The cosines of unit rows."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows  # (n, m)
        self.n_rows = len(rows)

    def of_rows(self, part: slice) -> np.ndarray:
        """Return cosines, (rows of the part, n)."""
        return np.asarray(self.rows[part] @ self.rows.T)


class _Closeness(_Similarity):
    """Minus the squared distance of each two rows.

    With ``signed`` it is that to the nearer of a row and its opposite, plus a constant
    that leaves the sign free for saying which.
    """

    def __init__(self, rows: np.ndarray, *, signed: bool) -> None:
        self.rows = rows  # (n, m)
        self.n_rows = len(rows)
        self.signed = signed
        self.squares = np.einsum("ij,ij->i", rows, rows)

    def of_rows(self, part: slice) -> np.ndarray:
        products = self.rows[part] @ self.rows.T
        sums_of_squares = self.squares[part, None] + self.squares
        if not self.signed:
            products *= 2
            products -= sums_of_squares
            return np.asarray(products)

        most = 4 * self.squares.max()
        closeness = most - (sums_of_squares - 2 * np.abs(products))
        return np.asarray(np.where(products < 0, -closeness, closeness))


class GivenSimilarity(_Similarity):
    """Similarities that are there already, (n, n)."""

    def __init__(self, similarities: np.ndarray) -> None:
        self.similarities = similarities
        self.n_rows = len(similarities)

    def of_rows(self, part: slice) -> np.ndarray:
        """Return similarities, (rows of the part, n)."""
        return self.similarities[part].copy()


def links_to_nearest(
    similarity: _Similarity,
    n_neighbors: int,
    *,
    weights: np.ndarray,
    signed: bool,
) -> sp.csr_array:
    """Return symmetric links, (n, n), of each row to as many of the most similar."""
    graph = NeighborGraph(
        n_neighbors=np.full(similarity.n_rows, n_neighbors),
        weights=weights,
        signed=signed,
    )
    return graph.links(similarity)


@dataclass(frozen=True, eq=False)
class NeighborGraph:
    """How neighbours are found, and how rows move to them."""

    n_neighbors: np.ndarray  # (n,): of each row
    weights: np.ndarray  # (n,): how much rows count
    signed: bool  # whether opposite rows are alike; then links have signs

    @classmethod
    def of_clusters(
        cls, rows: TrainingRows, space: int, clusters: TiedClusters
    ) -> NeighborGraph:
        """Return a graph in which rows of small clusters have fewer neighbours."""
        members = np.abs(hard_members(rows, space, clusters))  # (k, n)
        cluster_sizes = members @ rows.weights
        cluster_size_of_row = cluster_sizes[members.argmax(axis=0)]
        n_neighbors = np.clip(
            cluster_size_of_row // Neighbors.PART_OF_CLUSTER,
            np.clip(cluster_size_of_row - 1, 1, Neighbors.LEAST),
            Neighbors.MOST,
        )

        n_others = len(rows) - 1
        return cls(
            n_neighbors=np.minimum(n_neighbors.astype(np.intp), n_others),
            weights=rows.weights,
            signed=rows.signed,
        )

    def walk(self, *similarities: _Similarity) -> sp.csr_array:
        """Return one step of the walk, (n, n): to neighbours, or to stay.

        Neighbours are similar in one way or in several. A row itself weighs as much as
        one neighbour of each kind.
        """
        own_links = sp.eye_array(len(self.weights))
        all_links = [self.links(similarity) + own_links for similarity in similarities]
        links = sum(all_links[1:], start=all_links[0]) @ sp.diags_array(self.weights)
        totals = np.abs(links).sum(axis=1)
        return sp.csr_array(sp.diags_array(1 / totals) @ links)

    def links(self, similarity: _Similarity) -> sp.csr_array:
        """Return links, (n, n), to the most similar rows; they are symmetric."""
        n = similarity.n_rows
        if n < 2:
            return sp.csr_array((n, n))

        def links_of_range(rows: slice) -> sp.csr_array:
            height = Neighbors.SIMILARITIES // n
            blocks = [
                self._links_of_rows(block, similarity.of_rows(block))
                for block in row_ranges(rows.stop - rows.start, height, rows.start)
            ]
            return sp.vstack(blocks, format="csr")

        # Of few rows a part would have none.
        has_parts = n >= Neighbors.ROWS_IN_PARTS
        parts = (
            in_parts(n, links_of_range) if has_parts else [links_of_range(slice(0, n))]
        )
        links = sp.vstack(list(parts), format="csr")
        return sp.csr_array((links + links.T) / 2)

    def _links_of_rows(self, part: slice, similarities: np.ndarray) -> sp.csr_array:
        """Return links of some rows, (rows of the part, n), between 0 and 1.

        Rows that are as similar as the last neighbour share what is left of its weight.
        The similarities are overwritten.
        """
        n_rows, n = similarities.shape
        signs = np.sign(similarities) if self.signed else None
        if signs is not None:
            np.abs(similarities, out=similarities)

        tolerance = Neighbors.TIE * np.abs(similarities).max(axis=1)
        every_row = np.arange(n_rows)
        similarities[every_row, part.start + every_row] = -np.inf
        n_neighbors = self.n_neighbors[part]
        last_similarity = self._last_similarity(similarities, n_neighbors)

        # Some more than the wanted neighbours, where rows are as near as the last.
        is_near = similarities >= (last_similarity - tolerance)[:, None]
        from_row, to_row = np.nonzero(is_near)
        excess = similarities[from_row, to_row] - last_similarity[from_row]
        is_tied = excess <= tolerance[from_row]

        links = np.where(
            is_tied,
            self._share_of_tied(part, from_row, to_row, is_tied)[from_row],
            1.0,
        )
        if signs is not None:
            links *= signs[from_row, to_row]
        return sp.csr_array((links, (from_row, to_row)), shape=(n_rows, n))

    def _share_of_tied(
        self,
        part: slice,
        from_row: np.ndarray,
        to_row: np.ndarray,
        is_tied: np.ndarray,
    ) -> np.ndarray:
        """Return the share of a link that rows as near as the last neighbour get.

        It is what the nearer rows leave of the number of neighbours, for each row of
        the part. Candidates are given as pairs of rows, the tied ones marked.
        """
        weights = self.weights[to_row]
        n_rows = part.stop - part.start
        tied_weight = np.bincount(from_row, weights * is_tied, minlength=n_rows)
        nearer_weight = np.bincount(from_row, weights * ~is_tied, minlength=n_rows)
        left_over = np.clip(self.n_neighbors[part] - nearer_weight, 0.0, tied_weight)
        return HOST.ratio(left_over, tied_weight)

    def _last_similarity(
        self, similarities: np.ndarray, n_neighbors: np.ndarray
    ) -> np.ndarray:
        """Return how similar the last of the neighbours of each row is."""
        n_rows, n = similarities.shape
        every_row = np.arange(n_rows)
        if (self.weights == self.weights[0]).all():
            n_most = int(n_neighbors.max())
            nearest = np.partition(similarities, n - n_most, axis=1)[:, n - n_most :]
            nearest.sort(axis=1)  # (n_rows, n_most)
            return np.asarray(nearest[every_row, n_most - n_neighbors])

        nearest_first = np.argsort(-similarities, axis=1)
        weight_so_far = np.cumsum(self.weights[nearest_first], axis=1)
        has_enough = weight_so_far >= n_neighbors[:, None]
        position = np.argmax(has_enough, axis=1)
        position = np.minimum(position, n - 2)  # the last is the row itself
        return np.asarray(similarities[every_row, nearest_first[every_row, position]])
