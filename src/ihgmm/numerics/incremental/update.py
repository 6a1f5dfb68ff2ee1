"""What a call of ``partial_fit`` does: the first one, and an update by more rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ihgmm.matrix import HOST, Matrix, Tall, as_matrix
from ihgmm.numerics.directions import direction_counts
from ihgmm.numerics.incremental.clusters import (
    PlacedClusters,
    embedding_of,
    move_clusters,
    search_clusters,
)
from ihgmm.numerics.incremental.drift import DriftRecord, share_of_novel_rows
from ihgmm.numerics.incremental.memory import (
    ClusterSums,
    DirectionMemory,
    RowSample,
    WeightedRows,
    draw_sample,
    find_directions,
    sample_size,
)
from ihgmm.numerics.incremental.rooted_sums import sums_after_moves
from ihgmm.numerics.incremental.state import EarlierFit, IncrementalState
from ihgmm.numerics.placement import Placement
from ihgmm.numerics.roots import RootColumns
from ihgmm.policy import Growing, Small


@dataclass(frozen=True, eq=False)
class IncrementalFit:
    """A model after some more rows, and what is to be said of these."""

    state: IncrementalState
    placement: Placement
    labels: Tall  # of the new rows
    embedded: Tall  # the new rows, as they were compared
    # The sample, as it was compared, if clusters were looked for from scratch.
    embedded_sample: np.ndarray | None
    n_iter: int
    emptied: list[int]  # clusters that new rows no longer come to, said for once
    novel_share: float  # of new rows that were far from all clusters, said for once


def first_fit(
    X: Matrix,
    n_clusters: int,
    weights: np.ndarray,
    start_labels: np.ndarray | None = None,
    *,
    roots: RootColumns | None = None,
    neighbors: bool = True,
) -> IncrementalFit:
    """Learn from the first rows of a model; labels of an older one may give a start.

    Directions and the sample are of rows as ``roots`` prepare them, sums of clusters of
    the rows of X. With ``neighbors`` these teach the rule where they help.
    """
    n_samples = X.shape[0]
    rows = WeightedRows.of(X if roots is None else roots(X), weights)
    if start_labels is None:
        start_labels = np.full(n_samples, -1)

    lead, width = _direction_widths(n_clusters, n_samples, X.shape[1])
    directions = find_directions(rows, lead, width)
    sample = draw_sample(
        rows, directions, start_labels, size=sample_size(n_clusters), seed=n_samples
    )

    embedding = embedding_of(directions, n_clusters, n_samples, roots)
    clusters = search_clusters(embedding, sample, n_clusters, neighbors=neighbors)
    embedded_sample = clusters.embed(sample)
    sample = sample.relabelled(clusters.label(embedded_sample))
    embedded = clusters.placement.embedding(X)
    labels = X.ops.persist(clusters.placement(X, embedded))

    if roots is None:
        sums = _sums_of_sample(sample, directions, n_clusters)
    else:
        sums = ClusterSums.of_plain_rows(X, labels, rows.weights, n_clusters)

    return IncrementalFit(
        state=IncrementalState(
            directions=directions,
            sample=sample,
            sums=sums,
            drift=DriftRecord.empty(n_clusters),
            shrinkage=clusters.shrinkage,
            n_samples=n_samples,
            n_samples_at_fit=n_samples,
            n_samples_at_search=n_samples,
            is_settled=False,
            moved_share=0.0,
        ),
        placement=clusters.placement,
        labels=labels,
        embedded=embedded,
        embedded_sample=embedded_sample,
        n_iter=clusters.n_iter,
        emptied=[],
        novel_share=0.0,
    )


def update_fit(
    X: Matrix, weights: np.ndarray, earlier: EarlierFit, *, neighbors: bool = True
) -> IncrementalFit:
    """Learn from more rows, whose weights are given; clusters keep their numbers.

    Rows are prepared as those of the first call were, with the same roots. With
    ``neighbors`` these teach the rule where they help.
    """
    ops = X.ops
    state = earlier.state
    roots = earlier.placement.embedding.roots
    n_clusters = len(state.sums.weights)
    n_samples = state.n_samples + X.shape[0]
    rows = WeightedRows.of(X if roots is None else roots(X), weights)

    # The directions of all rows: those of the new ones are merged with those before.
    lead, width = _direction_widths(n_clusters, n_samples, X.shape[1])
    directions = state.directions.merged(find_directions(rows, lead, width), width)

    # What the model says of the new rows as it is, and whether some fit no cluster.
    embedded = earlier.placement.embedding(X)
    labels = ops.persist(earlier.placement(X, embedded))
    novel_share = share_of_novel_rows(
        rows, labels, state.sample, state.directions, n_clusters
    )

    # The sample: some of the new rows take the places of earlier ones.
    size = sample_size(n_clusters)
    new_rows = draw_sample(
        rows,
        directions,
        ops.to_host(labels),
        size=size,
        seed=n_samples,
        least_priority=state.sample.threshold,
    )
    rotation = state.directions.vectors.T @ directions.vectors
    sample = state.sample.turned(rotation).joined(new_rows, size)

    # The clusters: they stay while new rows are few and none of them is novel.
    clusters = _same_clusters(earlier, sample)
    has_many_new_rows = n_samples >= (1 + Growing.MORE) * state.n_samples_at_fit
    if has_many_new_rows or novel_share > 0:
        clusters = _refit_clusters(
            earlier, directions, sample, n_samples, novel_share, neighbors=neighbors
        )
        embedded = clusters.placement.embedding(X)
        labels = clusters.placement(X, embedded)

    # Their sums: rows are added, unless earlier rows are in other clusters now.
    sums = _updated_sums(
        state.sums,
        X,
        labels,
        rows.weights,
        clusters=clusters,
        directions=directions,
        earlier_sample=state.sample.turned(rotation),
        roots=roots,
    )

    # Drift: what was said before is not said again.
    new_weights = ops.group_sums(labels, n_clusters, rows.weights)
    drift = state.drift.updated(new_weights, state.sums.weights, novel_share)

    return IncrementalFit(
        state=IncrementalState(
            directions=directions,
            sample=clusters.sample,
            sums=sums,
            drift=drift,
            shrinkage=clusters.shrinkage,
            n_samples=n_samples,
            n_samples_at_fit=clusters.n_samples_at_fit,
            n_samples_at_search=clusters.n_samples_at_search,
            is_settled=clusters.is_settled,
            moved_share=clusters.moved_share,
        ),
        placement=clusters.placement,
        labels=labels,
        embedded=embedded,
        embedded_sample=clusters.embedded_sample,
        n_iter=clusters.n_iter,
        emptied=drift.emptied_since(state.drift),
        novel_share=0.0 if state.drift.is_reported_novel else novel_share,
    )


def _updated_sums(
    sums: ClusterSums,
    X: Matrix,
    labels: Tall,
    weights: np.ndarray,
    *,
    clusters: _ClusterUpdate,
    directions: DirectionMemory,
    earlier_sample: RowSample,
    roots: RootColumns | None,
) -> ClusterSums:
    """Return sums of clusters after new rows of X, which have labels and weights.

    Where many earlier rows are in other clusters now, the sample tells their sums anew.
    The ``earlier_sample`` is in the coordinates of the directions.
    """
    n_clusters = len(sums.weights)
    has_moved = clusters.moved_share > Growing.MOVED

    if roots is not None:
        if has_moved:
            sums = sums_after_moves(
                sums,
                earlier_sample,
                clusters.labels_of(earlier_sample),
                directions.vectors,
                roots.weights,
            )
        return sums + ClusterSums.of_plain_rows(X, labels, weights, n_clusters)

    if has_moved:  # the sample has some of the new rows, too
        return _sums_of_sample(clusters.sample, directions, n_clusters)

    pointers = _pointers(clusters.sample, n_clusters) @ directions.vectors.T
    return sums + ClusterSums.of(X, pointers, labels, weights)


def _direction_widths(
    n_clusters: int, n_samples: int, n_features: int
) -> tuple[int, int]:
    """Return how many directions lead for the clusters, and how many to remember."""
    # More rows may need more directions later, up to those that all features need.
    lead, extra = direction_counts(
        n_clusters, max(n_samples, 4 * n_features), n_features
    )
    width = max(Growing.DIRECTIONS, 2 * (lead + extra))
    return lead, min(n_features, width)


@dataclass(frozen=True, eq=False)
class _ClusterUpdate:
    """Clusters after an update, the same as before or not."""

    placement: Placement
    shrinkage: float
    n_iter: int
    sample: RowSample  # with labels by these clusters
    embedded_sample: np.ndarray | None  # if clusters were looked for from scratch
    n_samples_at_fit: int
    n_samples_at_search: int
    is_settled: bool
    moved_share: float

    def labels_of(self, sample: RowSample) -> np.ndarray:
        """Return the labels of the rows of a sample; those that users gave stay."""
        placed = PlacedClusters(placement=self.placement, shrinkage=self.shrinkage)
        return sample.relabelled(placed.label(placed.embed(sample))).labels


def _same_clusters(earlier: EarlierFit, sample: RowSample) -> _ClusterUpdate:
    """Return the clusters of before."""
    state = earlier.state
    return _ClusterUpdate(
        placement=earlier.placement,
        shrinkage=state.shrinkage,
        n_iter=0,
        sample=sample,
        embedded_sample=None,
        n_samples_at_fit=state.n_samples_at_fit,
        n_samples_at_search=state.n_samples_at_search,
        is_settled=state.is_settled,
        moved_share=0.0,
    )


def _refit_clusters(
    earlier: EarlierFit,
    directions: DirectionMemory,
    sample: RowSample,
    n_samples: int,
    novel_share: float,
    *,
    neighbors: bool,
) -> _ClusterUpdate:
    """Return clusters of the sample: those of before move on, or are looked for anew.

    They are looked for anew once twice as many rows were seen as at the last search, or
    where rows are novel; and no more once a search has found what was there before.
    """
    state = earlier.state
    n_clusters = len(state.sums.weights)
    roots = earlier.placement.embedding.roots
    embedding = embedding_of(directions, n_clusters, n_samples, roots)

    clusters = None
    is_search_due = novel_share > 0 or n_samples >= 2 * state.n_samples_at_search
    if state.is_settled or not is_search_due:
        clusters = move_clusters(
            embedding,
            sample,
            n_clusters,
            space=earlier.placement.embedding.space,
            shrinkage=state.shrinkage,
            neighbors=neighbors,
        )
    was_searched = clusters is None
    if clusters is None:
        clusters = search_clusters(embedding, sample, n_clusters, neighbors=neighbors)

    embedded_sample = clusters.embed(sample)
    labels = clusters.label(embedded_sample)
    moved_share = _share_of_moved_rows(earlier, directions, sample, labels)

    is_settled = state.is_settled
    if was_searched:
        is_settled = novel_share == 0 and moved_share < Growing.SETTLED

    return _ClusterUpdate(
        placement=clusters.placement,
        shrinkage=clusters.shrinkage,
        n_iter=clusters.n_iter,
        sample=sample.relabelled(labels),
        embedded_sample=embedded_sample if was_searched else None,
        n_samples_at_fit=n_samples,
        n_samples_at_search=n_samples if was_searched else state.n_samples_at_search,
        is_settled=is_settled,
        moved_share=moved_share,
    )


def _share_of_moved_rows(
    earlier: EarlierFit,
    directions: DirectionMemory,
    sample: RowSample,
    labels: np.ndarray,
) -> float:
    """Return the share of earlier rows to which the earlier rule gave another label.

    It is estimated from the rows of the sample that were in it before.
    """
    was_in_sample = np.isin(sample.priorities, earlier.state.sample.priorities)
    weights = sample.weights * was_in_sample

    embedding = earlier.placement.embedding
    rotation = directions.vectors.T @ embedding.directions / embedding.eigenvalues
    rows = embedding.rows(HOST, sample.rows @ rotation)
    earlier_labels = np.asarray(earlier.placement.rule(HOST, rows))

    return float(weights @ (labels != earlier_labels) / max(weights.sum(), Small.TINY))


def _sums_of_sample(
    sample: RowSample, directions: DirectionMemory, n_clusters: int
) -> ClusterSums:
    """Return sums of clusters over all rows seen, as the sample estimates them."""
    sums = ClusterSums.of(
        as_matrix(sample.rows * sample.lengths[:, None]),
        _pointers(sample, n_clusters),
        sample.labels,
        sample.weights,
    )
    return replace(sums, rows=sums.rows @ directions.vectors.T)


def _pointers(sample: RowSample, n_clusters: int) -> np.ndarray:
    """Return unit vectors along the centres of clusters, in coordinates of directions.

    They are of shape (n_clusters, n_directions).
    """
    weights = sample.weights / sample.weights.max()
    sums = HOST.sums_of_rows(sample.labels, n_clusters, sample.rows, weights)
    return np.asarray(HOST.unit_rows(sums))
