"""Batches by neighbours: rows that are alike across batches say how these differ.

Where batches do more than multiply columns, factors leave something of them. So each
batch has a shift in the embedding, which neighbours in *every* batch teach:

1. rows look for the same number of neighbours in each batch. A link between batches
   counts where it is mutual: each row is among the nearest of the other in its batch.
   Rows of a kind that another batch lacks have no such link to it, and stay;
2. rows move in a few steps along their links, and a mixture finds their clusters;
3. by these clusters each row as it was is its cluster's centre, its batch's shift, and
   noise: least squares tell shifts apart from what batches are composed of;
4. on rows less their shifts one step of maximisation gives a linear rule. By its
   clusters the embedding is made round, and all is done once more.

A row of a batch is placed by the linear rule on its embedding less the batch's shift.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from ihgmm.matrix import HOST, Matrix
from ihgmm.numerics.embedding import SPACES
from ihgmm.numerics.known_labels import NOTHING_KNOWN, KnownLabels
from ihgmm.numerics.mixture import TiedClusters
from ihgmm.numerics.neighbor_walk import (
    hard_members,
    made_round,
    moved_by,
    walk_size,
)
from ihgmm.numerics.sampling import sample_rows
from ihgmm.numerics.spectral import SpectralFit
from ihgmm.numerics.training import TrainingRows, best_of_spaces
from ihgmm.numerics.zero_rows import nonzero_rows
from ihgmm.policy import Batching, Neighbors


@dataclass(frozen=True, eq=False)
class BatchWalk:
    """What neighbours in every batch have taught."""

    clusters: TiedClusters  # of rows less the shifts of their batches
    space: int  # the position in ``SPACES`` of that which the rows are in
    shifts: np.ndarray  # (n_batches, m): of rows of the embedding
    sample: np.ndarray  # (s, m): the rows that looked for neighbours, less shifts
    # Share of pairs, of a row and another batch, in which the row has a mutual
    # neighbour there: in that walk in which it is least.
    matched: float
    clearness: float  # of clusters of moved rows: see ``TaughtClusters``


@dataclass(frozen=True)
class Mixing:
    """How well batches are mixed inside of clusters."""

    # Share of near rows that are of other batches, over what it would be if batches
    # did not matter within a cluster.
    ratio: float
    expected: float  # that share if they did not matter

    @property
    def is_complete(self) -> bool:
        """Whether batches lie among each other, as far as clusters can tell."""
        can_tell = self.expected >= Batching.TELLING
        return can_tell and self.ratio >= Batching.MIXED


def mixing_of_batches(X: Matrix, fit: SpectralFit, codes: np.ndarray) -> Mixing:
    """Return how well batches are mixed among the nearest rows of each cluster.

    ``codes``, (n,), are the batches of the rows, on the host.
    """
    positions = _walk_positions(X, fit, n_clusters=1)
    rows = X.ops.taken_ops.to_host(X.ops.take_rows(fit.rows, positions))
    all_labels = X.ops.to_host(fit.labels)
    labels = all_labels[positions]
    batch_of_row = codes[positions]

    n_others = 0.0
    n_expected = 0.0
    for cluster in np.unique(labels):
        members = np.flatnonzero(labels == cluster)
        size = len(members)
        if size < 2:
            continue

        member_batches = batch_of_row[members]
        similarities = rows[members] @ rows[members].T
        np.fill_diagonal(similarities, -np.inf)
        is_near = _is_nearest(similarities, min(Neighbors.MOST, size - 1))
        is_other = member_batches[:, None] != member_batches
        n_near = is_near.sum(axis=1)
        n_others += ((is_near & is_other).sum(axis=1) / n_near).sum()
        n_expected += is_other.sum() / (size - 1)

    return Mixing(
        ratio=n_others / n_expected if n_expected > 0 else 0.0,
        expected=n_expected / max(len(positions), 1),
    )


def walk_between_batches(
    X: Matrix,
    fit: SpectralFit,
    codes: np.ndarray,
    n_batches: int,
    n_clusters: int,
    known_labels: KnownLabels = NOTHING_KNOWN,
) -> BatchWalk | None:
    """Learn shifts of batches, and a rule for rows less these, by neighbours.

    Parameters
    ----------
    X : Matrix
        The rows of a fit.
    fit : SpectralFit
        Their clusters, found without batches.
    codes : ndarray of int of shape (n,)
        The batch of each row.
    n_batches, n_clusters : int
        How many there are.
    known_labels : KnownLabels
        What is known of the rows.

    Returns
    -------
    walk : BatchWalk or None
        None where a cluster would lose all its rows.
    """
    positions = _walk_positions(X, fit, n_clusters)
    rows = _training_rows(X, fit, positions, known_labels)
    batch_of_row = codes[positions]

    trial = best_of_spaces(rows, n_clusters)
    if trial.clusters is None:
        return None
    space = trial.space
    fixed_rows = rows.host_rows(space)
    n_neighbors = _neighbors_in_each(len(rows), n_batches, n_clusters)

    matched = 1.0
    similarities = fixed_rows @ fixed_rows.T
    for _ in range(Batching.WALKS):
        graph = _links_to_batches(similarities, batch_of_row, n_batches, n_neighbors)
        matched = min(matched, graph.matched)
        moved_rows = moved_by(_step_along(graph.links, rows.weights), rows)
        moved_trial = best_of_spaces(moved_rows, n_clusters)
        if moved_trial.clusters is None:
            return None
        moved_clusters = moved_trial.clusters
        members = hard_members(moved_rows, moved_trial.space, moved_clusters)

        shifts = _shifts(fixed_rows, members, batch_of_row, n_batches, rows.weights)
        shifted_rows = fixed_rows - shifts[batch_of_row]
        spaces = list(rows.spaces)
        spaces[space] = shifted_rows
        aligned_rows = replace(rows, spaces=spaces)
        clusters = aligned_rows.one_step(space, members)
        if clusters is None:
            return None

        round_rows = made_round(aligned_rows, space, clusters)
        squares = np.einsum("ij,ij->i", round_rows, round_rows)
        similarities = 2 * round_rows @ round_rows.T - squares[:, None] - squares

    assert clusters is not None  # there is at least one walk
    return BatchWalk(
        clusters=clusters,
        space=space,
        shifts=shifts,
        sample=shifted_rows,
        matched=matched,
        clearness=moved_clusters.bic_gain,
    )


def shift_of_new(rows: np.ndarray, sample: np.ndarray) -> np.ndarray | None:
    """Return the shift, (m,), of a batch that the fit did not have.

    Parameters
    ----------
    rows : ndarray of shape (n, m)
        Rows of the new batch in the embedding.
    sample : ndarray of shape (s, m)
        Rows of the fit, less the shifts of their batches.

    Returns
    -------
    shift : ndarray or None
        The mean by which rows differ from their mutual neighbours in the sample, by
        turns with the neighbours. None where few rows have one.
    """
    shift = np.zeros(rows.shape[1])
    n_neighbors = int(np.clip(len(rows) // 2, 1, Neighbors.MOST))
    n_neighbors = min(n_neighbors, len(sample))
    squares_of_sample = np.einsum("ij,ij->i", sample, sample)

    for _ in range(Batching.ROUNDS):
        shifted = rows - shift
        squares = np.einsum("ij,ij->i", shifted, shifted)
        closeness = 2 * shifted @ sample.T - squares[:, None] - squares_of_sample
        is_near = _is_nearest(closeness, n_neighbors)
        is_near &= _is_nearest(closeness.T, n_neighbors).T

        n_mutual = is_near.sum(axis=1)
        is_matched = n_mutual > 0
        if is_matched.mean() < Batching.MATCHED_NEW:
            return None
        means = (is_near[is_matched] @ sample) / n_mutual[is_matched, None]
        shift = (rows[is_matched] - means).mean(axis=0)

    return shift


def _walk_positions(X: Matrix, fit: SpectralFit, n_clusters: int) -> np.ndarray:
    """Return positions of rows that look for neighbours: none of them is zero."""
    subset = nonzero_rows(X)
    coordinates = subset.select(fit.coordinates)
    nonzero_positions = subset.positions()
    positions = sample_rows(
        X.ops, fit.placement.embedding, coordinates, n_clusters, NOTHING_KNOWN
    )
    n_walk = walk_size(len(positions), n_clusters)
    return nonzero_positions[positions[:n_walk]]


def _training_rows(
    X: Matrix, fit: SpectralFit, positions: np.ndarray, known_labels: KnownLabels
) -> TrainingRows:
    """Return some rows, on the host, in every space of the embedding."""
    host = X.ops.taken_ops
    coordinates = host.to_host(X.ops.take_rows(fit.coordinates, positions))
    coordinates = coordinates.astype(np.float64)
    weights = np.ones(len(positions))
    if X.weights is not None:
        weights = host.to_host(X.ops.take_rows(X.weights, positions))

    embedding = fit.placement.embedding
    return TrainingRows(
        ops=HOST,
        spaces=[embedding.in_space(space).rows(HOST, coordinates) for space in SPACES],
        weights=weights,
        known_labels=known_labels.of_rows(positions),
        by_angle=True,
        signed=False,
    )


def _neighbors_in_each(n_rows: int, n_batches: int, n_clusters: int) -> int:
    """Return how many neighbours a row has in each batch.

    They are a part of the rows that a cluster has in a batch, if all are equal.
    """
    usual_size = n_rows // (n_batches * n_clusters)
    n_neighbors = usual_size // Neighbors.PART_OF_CLUSTER
    return int(np.clip(n_neighbors, Neighbors.LEAST, Neighbors.MOST))


@dataclass(frozen=True, eq=False)
class _BatchLinks:
    """Links of rows with neighbours in every batch."""

    links: sp.csr_array  # (n, n): symmetric, 1 where rows are linked
    matched: float  # share of pairs, of a row and another batch, with a mutual link


def _links_to_batches(
    similarities: np.ndarray, codes: np.ndarray, n_batches: int, n_neighbors: int
) -> _BatchLinks:
    """Link rows with the most similar in their batch, and mutually with others.

    Rows that are as near as the last neighbour are neighbours, too. The similarities
    are overwritten.
    """
    n = len(codes)
    np.fill_diagonal(similarities, -np.inf)
    is_near = np.zeros((n, n), dtype=bool)
    for batch in range(n_batches):
        batch_rows = np.flatnonzero(codes == batch)
        if len(batch_rows) == 0:
            continue
        n_here = min(n_neighbors, len(batch_rows))
        is_near[:, batch_rows] = _is_nearest(similarities[:, batch_rows], n_here)

    is_same_batch = codes[:, None] == codes
    is_mutual = is_near & is_near.T
    is_linked = is_mutual | (is_same_batch & (is_near | is_near.T))
    np.fill_diagonal(is_linked, False)

    # Which other batches each row has a mutual neighbour in.
    one_hot = codes[:, None] == np.arange(n_batches)  # (n, n_batches)
    has_match = (sp.csr_array(is_mutual) @ one_hot.astype(float)) > 0
    is_other = ~one_hot & one_hot.any(axis=0)
    matched = float(has_match[is_other].mean()) if is_other.any() else 0.0

    return _BatchLinks(
        links=sp.csr_array(is_linked.astype(np.float64)), matched=matched
    )


def _is_nearest(similarities: np.ndarray, n_neighbors: int) -> np.ndarray:
    """Return where entries are among the largest of their line, or tie with these."""
    last_column = similarities.shape[1] - n_neighbors
    last = np.partition(similarities, last_column, axis=1)[:, last_column]
    finite_sizes = np.abs(similarities[np.isfinite(similarities)])
    tolerance = Neighbors.TIE * float(finite_sizes.max(initial=0.0))

    is_finite = np.isfinite(similarities)
    return np.asarray((similarities >= last[:, None] - tolerance) & is_finite)


def _step_along(links: sp.csr_array, weights: np.ndarray) -> sp.csr_array:
    """Return one step of a walk along links; a row itself weighs as one neighbour."""
    weights_of_rows = sp.diags_array(weights)
    steps = links @ weights_of_rows + weights_of_rows
    return sp.csr_array(sp.diags_array(1 / steps.sum(axis=1)) @ steps)


def _shifts(
    rows: np.ndarray,
    members: np.ndarray,
    codes: np.ndarray,
    n_batches: int,
    weights: np.ndarray,
) -> np.ndarray:
    """Return the shift of each batch, (n_batches, m), 0 on average over rows.

    Parameters
    ----------
    rows : ndarray of shape (n, m)
        The rows as they were before they moved.
    members : ndarray of shape (k, n)
        Their clusters, 1 where a row is of one.
    codes, weights : ndarrays of shape (n,)
        Their batches and weights.

    Notes
    -----
    Least squares of ``row = center[cluster] + shift[batch]``, with one row more in each
    batch whose shift is 0: so batches that share no cluster are not told apart.
    """
    in_batch = (codes[:, None] == np.arange(n_batches)).astype(np.float64)
    design = np.hstack([members.T.astype(np.float64), in_batch])
    n_clusters = len(members)
    weighted_design = design * weights[:, None]

    gram = weighted_design.T @ design
    is_shift = np.arange(len(gram)) >= n_clusters
    gram[np.diag_indices(len(gram))] += np.where(is_shift, Batching.STAND_IN, 0.0)
    solution = np.linalg.lstsq(gram, weighted_design.T @ rows, rcond=None)[0]

    shifts = np.asarray(solution[n_clusters:])
    batch_weights = in_batch.T @ weights
    shifts -= batch_weights @ shifts / batch_weights.sum()
    return shifts * (batch_weights > 0)[:, None]
