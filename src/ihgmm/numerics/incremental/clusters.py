"""Clusters of a sample of rows: those of before move on, or are looked for anew."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm.matrix import HOST
from ihgmm.numerics.directions import direction_counts, stays_high
from ihgmm.numerics.embedding import SPACES, Embedding, Space
from ihgmm.numerics.incremental.memory import DirectionMemory, RowSample
from ihgmm.numerics.labels import learn_rule
from ihgmm.numerics.mixture import tied_clusters
from ihgmm.numerics.neighbor_walk import neighbors_help
from ihgmm.numerics.placement import Placement
from ihgmm.numerics.roots import RootColumns
from ihgmm.numerics.rules import LinearRule
from ihgmm.numerics.sampling import clear_rows
from ihgmm.policy import Growing, Leading


@dataclass(frozen=True, eq=False)
class PlacedClusters:
    """Clusters, and how rows get to them."""

    placement: Placement
    shrinkage: float  # of the covariance of clusters towards a sphere
    n_iter: int = 0  # iterations that they took

    def embed(self, sample: RowSample) -> np.ndarray:
        """Return the rows of a sample as they are compared with these clusters."""
        embedding = self.placement.embedding
        return np.asarray(embedding.rows(HOST, coordinates_of(sample, embedding)))

    def label(self, embedded: np.ndarray) -> np.ndarray:
        """Return labels of rows that :meth:`embed` has returned."""
        return np.asarray(self.placement.rule(HOST, embedded))


def embedding_of(
    directions: DirectionMemory,
    n_clusters: int,
    n_samples: int,
    roots: RootColumns | None = None,
) -> Embedding:
    """Return the map to coordinates that a fit to all rows would have, or nearly so.

    Directions are those of rows as ``roots`` prepare them.
    """
    n_features, width = directions.vectors.shape
    lead, extra = direction_counts(n_clusters, n_samples, n_features)
    most_extra = min(width, n_features - 1, n_samples // Leading.ROWS_A_DIRECTION)
    most_extra -= lead

    # Further directions count while the last eigenvalue is high.
    values = directions.values[: lead + extra]
    while extra < most_extra and stays_high(
        values, lead, n_samples, n_features, directions.total
    ):
        extra = min(2 * extra, most_extra)
        values = directions.values[: lead + extra]

    scaled_directions = directions.vectors[:, : len(values)] * np.sqrt(values)
    return Embedding.of_signal(
        scaled_directions, values, lead, unit_rows=True, roots=roots
    )


def coordinates_of(sample: RowSample, embedding: Embedding) -> np.ndarray:
    """Return coordinates in eigenvectors of the rows of a sample.

    These are given in the directions that the eigenvectors belong to.
    """
    values = embedding.eigenvalues  # of the first directions: the others have no weight
    return np.asarray(sample.rows[:, : len(values)] / np.sqrt(values))


def move_clusters(
    embedding: Embedding,
    sample: RowSample,
    n_clusters: int,
    *,
    space: Space,
    shrinkage: float,
    neighbors: bool,
) -> PlacedClusters | None:
    """Let clusters move on from the labels of the sample; None where one is lost.

    They stay in the space that they are in, with the shrinkage that they have. Clusters
    that neighbours have taught take one step: more would lead back to those that rows
    find by themselves.
    """
    embedding = embedding.in_space(space)
    rows = embedding.rows(HOST, coordinates_of(sample, embedding))
    known_labels = sample.known_labels
    memberships = np.eye(n_clusters)[sample.labels].T  # (n_clusters, n_rows)

    # Rules that neighbours or known classes have taught need not be where steps would
    # end: one follows the rows.
    is_taught = neighbors and neighbors_help(len(rows), n_clusters)
    n_steps = 1 if is_taught or known_labels.has_classes else Growing.STEPS
    fit = tied_clusters(
        rows,
        [memberships],
        known_labels.reweighted(sample.weights),
        shrinkages=[shrinkage],
        prior=known_labels.log_prior(HOST, rows, n_clusters),
        max_iter=n_steps,
    )
    if fit is None:
        return None

    rule = LinearRule(coefficients=fit.coefficients, intercepts=fit.intercepts)
    return PlacedClusters(
        placement=Placement(embedding=embedding, rule=rule),
        shrinkage=fit.shrinkage,
        n_iter=fit.n_iter,
    )


def search_clusters(
    embedding: Embedding, sample: RowSample, n_clusters: int, *, neighbors: bool
) -> PlacedClusters:
    """Look for clusters from all starts; labels of the sample are one of them.

    Clusters keep the numbers that they have in the sample; others come by size. With
    ``neighbors`` these teach the rule where they help.
    """
    coordinates = coordinates_of(sample, embedding)
    embeddings = [embedding.in_space(space) for space in SPACES]
    known_labels = sample.known_labels

    # The rows to learn from are shuffled, since starts are tried on the first of them.
    shuffled_rows = np.random.default_rng(0).permutation(len(coordinates))
    clear = clear_rows(HOST, embedding, coordinates)
    if clear.is_member is not None:
        shuffled_rows = shuffled_rows[clear.is_member[shuffled_rows]]

    # To neighbours a row that stands for others, which are gone, is one row.
    by_neighbors = neighbors and neighbors_help(len(shuffled_rows), n_clusters)
    weights = sample.weights[shuffled_rows]
    if by_neighbors and sample.threshold > 0:
        weights = weights / sample.threshold

    fit = learn_rule(
        [one.rows(HOST, coordinates[shuffled_rows]) for one in embeddings],
        n_clusters,
        weights=weights,
        known_labels=known_labels.of_rows(shuffled_rows),
        by_neighbors=by_neighbors,
    )

    embedding = embeddings[fit.space]
    labels = np.asarray(fit.rule(HOST, embedding.rows(HOST, coordinates)))
    by_size = HOST.order_by_size(labels, n_clusters, sample.weights)
    order = known_labels.without_classes().cluster_order(by_size, labels)

    return PlacedClusters(
        placement=Placement(embedding=embedding, rule=fit.rule.in_order(order)),
        shrinkage=fit.shrinkage,
        n_iter=fit.n_iter,
    )
