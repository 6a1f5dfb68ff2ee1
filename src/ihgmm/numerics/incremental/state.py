"""The state of a model between calls, and the state that a fit at once would leave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm.matrix import HOST
from ihgmm.numerics.embedding import Embedding
from ihgmm.numerics.incremental.drift import DriftRecord
from ihgmm.numerics.incremental.memory import (
    ClusterSums,
    DirectionMemory,
    RowSample,
    highest_priorities,
    sample_size,
)
from ihgmm.numerics.placement import Placement
from ihgmm.numerics.roots import RootColumns
from ihgmm.policy import Growing, Labelling, Small


@dataclass(frozen=True, eq=False)
class IncrementalState:
    """What a model remembers of all rows that it has seen."""

    directions: DirectionMemory
    sample: RowSample
    sums: ClusterSums
    drift: DriftRecord
    shrinkage: float  # of the covariance of clusters towards a sphere
    n_samples: int
    n_samples_at_fit: int  # rows seen when clusters last changed
    n_samples_at_search: int  # rows seen when they were last looked for from scratch
    # Whether that search found what was there before, or labels were given. Then
    # clusters only move on, and a new cluster changes no old one.
    is_settled: bool
    moved_share: float  # of earlier rows that have another label since the last call

    @property
    def centers(self) -> np.ndarray:
        """What a row of scale 1 looks like in each cluster."""
        return self.sums.centers


@dataclass(frozen=True, eq=False)
class EarlierFit:
    """A model before new rows come."""

    state: IncrementalState
    placement: Placement


def state_of_fit(
    embedding: Embedding,
    *,
    labels: np.ndarray,
    centers: np.ndarray,
    sizes: np.ndarray,
    noise_levels: np.ndarray,
    embedded: np.ndarray,
    known_rows: np.ndarray,
) -> IncrementalState:
    """Return what a model that was fitted at once would remember of its rows.

    The rows themselves are gone, so that the sample is what the fit says of them.

    Parameters
    ----------
    embedding : Embedding
        The map from rows to coordinates.
    labels, sizes, noise_levels : ndarray of shape (n_samples,)
        Label, size along the centre and level of noise of each row.
    centers : ndarray of shape (n_clusters, n_features)
        Rows of scale 1.
    embedded : ndarray of shape (n_samples, n_components)
        Rows of the embedding.
    known_rows : ndarray of int
        Positions of the rows whose labels users gave.
    """
    n_samples = len(labels)
    n_clusters = len(centers)
    eigenvalues = embedding.eigenvalues
    directions = DirectionMemory(
        vectors=embedding.directions / np.sqrt(eigenvalues),
        values=eigenvalues,
        total=float(n_samples),
    )

    is_known = np.zeros(n_samples, dtype=bool)
    is_known[known_rows] = True

    sample_rows, priorities, threshold = _draw_fitted_rows(is_known, n_clusters)
    sample_labels = labels[sample_rows]
    sample_sizes = sizes[sample_rows]
    projections = embedded[sample_rows] / embedding.coordinate_weights
    projections = projections * np.sqrt(eigenvalues)

    lengths = _row_lengths(
        sample_sizes, noise_levels[sample_rows], len(embedding.directions)
    )
    cosines = HOST.ratio(sample_sizes, lengths)
    if embedding.roots is None:
        rows = _rows_in_directions(
            projections,
            HOST.unit_rows(centers @ directions.vectors)[sample_labels],
            cosines,
        )
    else:
        rows = _rows_by_share(projections, cosines, directions)
        pattern_lengths = _lengths_of_rooted_patterns(centers, embedding.roots)
        lengths = pattern_lengths[sample_labels] * np.sqrt(sample_sizes)

    sample = RowSample(
        rows=rows,
        lengths=lengths,
        row_weights=np.ones(len(sample_rows)),
        priorities=priorities[sample_rows],
        labels=sample_labels,
        is_known=is_known[sample_rows],
        threshold=threshold,
    )

    sums = _sums_of_fit(labels, sizes, centers)
    if embedding.roots is not None:
        sums = ClusterSums.of_totals(centers * sums.weights[:, None], sums.weights)

    return IncrementalState(
        directions=directions,
        sample=sample,
        sums=sums,
        drift=DriftRecord.empty(n_clusters),
        shrinkage=Labelling.PULL,
        n_samples=n_samples,
        n_samples_at_fit=n_samples,
        n_samples_at_search=n_samples,
        is_settled=bool(is_known.any()),
        moved_share=0.0,
    )


def _draw_fitted_rows(
    is_known: np.ndarray, n_clusters: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Draw rows of the fit; return their positions, all priorities, and the threshold.

    Rows with labels of users all stay, unless they would fill most of the sample.
    """
    n_samples = len(is_known)
    size = sample_size(n_clusters)
    priorities = 1 / (1 - np.random.default_rng(n_samples).random(n_samples))
    if 2 * is_known.sum() <= size:
        priorities += n_samples * is_known
    sample_rows, threshold = highest_priorities(priorities, size)

    return sample_rows, priorities, threshold


def _row_lengths(
    sizes: np.ndarray, noise_levels: np.ndarray, n_features: int
) -> np.ndarray:
    """Return lengths of rows, from sizes along the centre and noise across it."""
    return np.hypot(sizes, np.sqrt(max(n_features - 1, 1)) * noise_levels)


def _rows_in_directions(
    rows: np.ndarray, centers_of_rows: np.ndarray, cosines: np.ndarray
) -> np.ndarray:
    """Return unit rows as coordinates in directions, as far as these reach.

    ``rows`` have the right direction and any length; ``cosines`` are those of the whole
    rows with their centres. A row is as long as gives it that cosine, and 1 at most:
    what its noise has outside of the directions is missing.
    """
    rows = HOST.unit_rows(rows)
    cosines_inside = HOST.row_dots(rows, centers_of_rows)
    lengths = HOST.ratio(cosines, np.maximum(cosines_inside, cosines))
    return np.asarray(rows * lengths[:, None])


def _lengths_of_rooted_patterns(centers: np.ndarray, roots: RootColumns) -> np.ndarray:
    """Return how long a row of size 1 of each cluster is, once it is rooted.

    Notes
    -----
    The squared length of a rooted row x with column weights v is ``v**2 @ |x|``. It is
    linear in x, so that noise leaves it as it is on average.
    """
    patterns = np.abs(HOST.unit_rows(centers))
    return np.asarray(np.sqrt(patterns @ roots.weights**2))


def _rows_by_share(
    rows: np.ndarray, cosines: np.ndarray, directions: DirectionMemory
) -> np.ndarray:
    """Return unit rows as coordinates in directions, as far as these reach.

    ``rows`` have the right direction and any length; ``cosines`` are those of rows of
    data with their centres. Rooted rows are as long inside of the directions as is a
    power of these: that by which all of them are as long as they have to be.
    """
    share = float(directions.values.sum()) / max(directions.total, 1.0)
    log_share = np.log(np.clip(share, Growing.LEAST_SHARE, 1.0))
    log_cosines = np.log(np.clip(cosines, Growing.LEAST_SHARE, 1.0))
    power = log_share / 2 / min(float(log_cosines.mean()), -Small.EXACT)

    lengths = np.exp(power * log_cosines)
    return np.asarray(HOST.unit_rows(rows) * lengths[:, None])


def _sums_of_fit(
    labels: np.ndarray, sizes: np.ndarray, centers: np.ndarray
) -> ClusterSums:
    """Return sums over clusters from which the centres of the fit follow again."""
    n_clusters = len(centers)
    weights = np.bincount(labels, minlength=n_clusters).astype(np.float64)
    lengths = np.bincount(labels, sizes, n_clusters)
    squared_lengths = np.bincount(labels, sizes**2, n_clusters)
    factors = HOST.ratio(squared_lengths * weights, lengths)

    return ClusterSums(
        rows=centers * factors[:, None],
        weights=weights,
        lengths=lengths,
        squared_lengths=squared_lengths,
    )
