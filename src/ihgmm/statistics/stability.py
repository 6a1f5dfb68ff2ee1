"""How many clusters halves of the data agree on."""

from __future__ import annotations

import numpy as np

from ihgmm.matrix.tall import unit_rows
from ihgmm.numerics.labels import kmeans_labels


def stable_count(
    vectors: np.ndarray,
    rank: int,
    max_clusters: int,
    rng: np.random.Generator,
    *,
    required: float = 0.9,
    n_splits: int = 5,
    max_rows: int = 2000,
    patience: int = 8,
) -> tuple[int, dict[int, float]]:
    """Return the largest number of clusters that halves of the rows agree on.

    ``vectors`` are rows whose directions are clustered; ``rank`` is the smallest number
    tried, and the answer where halves agree on none. A number is stable from the
    prediction strength ``required``, the mean over ``n_splits`` halvings of at most
    ``max_rows`` rows; the search ends after ``patience`` failures in a row. Beside the
    number the strength of each number tried is returned.
    """
    if vectors.shape[1] == 1:
        return _signed_count(vectors[:, 0]), {}
    if len(vectors) > max_rows:
        vectors = vectors[rng.choice(len(vectors), max_rows, replace=False)]
    energy = np.square(vectors, dtype=np.float64).sum(axis=1)
    embedding = unit_rows(vectors.astype(np.float64))
    distinct = len(np.unique(embedding.round(6), axis=0))
    most = min(max_clusters, len(embedding) // 4, distinct)
    orders = [rng.permutation(len(embedding)) for _ in range(n_splits)]
    splits = [(embedding[order], energy[order]) for order in orders]
    strengths: dict[int, float] = {}
    best = rank
    # Centres that span r dimensions are r at least.
    for k in range(max(rank, 2), most + 1):
        if k == 2 and rank == 0 and _are_opposite(embedding, rng):
            strengths[k] = 0.0  # noise that is larger in one column has two sides too
        else:
            strengths[k] = _mean_strength(splits, k, required, rng)
        if strengths[k] >= required:
            best = k
        # Directions that the rank does not show can be as many clusters.
        elif k - max(best, vectors.shape[1]) >= patience:
            break
    return best, strengths


def _signed_count(vector: np.ndarray) -> int:
    """Return 2 if rows lie on both sides of zero, beyond a few that noise put there."""
    energy = np.square(vector, dtype=np.float64)
    share = energy[vector < 0].sum() / (energy.sum() or 1.0)
    return 2 if min(share, 1 - share) > 0.05 else 1


def _are_opposite(embedding: np.ndarray, rng: np.random.Generator) -> bool:
    """Return whether two clusters of the rows are two sides of one direction."""
    labels = kmeans_labels(embedding, 2, n_init=4, rng=rng)
    sides = [embedding[labels == side].sum(axis=0) for side in range(2)]
    first, second = unit_rows(np.array(sides))
    return bool(first @ second < -0.9)


def _mean_strength(
    splits: list[tuple[np.ndarray, np.ndarray]],
    k: int,
    required: float,
    rng: np.random.Generator,
) -> float:
    """Return the mean over splits, or over the first if the others cannot save it."""
    strengths: list[float] = []
    for embedding, energy in splits:
        strengths.append(_prediction_strength(embedding, energy, k, rng))
        if sum(strengths) + len(splits) - len(strengths) < required * len(splits):
            break
    return float(np.mean(strengths))


def _prediction_strength(
    embedding: np.ndarray, energy: np.ndarray, k: int, rng: np.random.Generator
) -> float:
    """Return how well one half of the rows predicts which of the other go together.

    For each cluster of the other half, the share of its pairs of rows that the centres
    of the first half keep together; the smallest of these counts.
    """
    half = len(embedding) // 2
    train, test = embedding[:half], embedding[half:]
    labels = kmeans_labels(train, k, n_init=4, rng=rng)
    own = kmeans_labels(test, k, n_init=4, rng=rng)
    weight = np.bincount(own, energy[half:], k)
    # Small rows that noise turned to one side are no cluster. This goes by degrees: a
    # cluster near a limit would count in one split and not in the next.
    counts = min(1.0, float(weight.min() / (0.1 * weight.mean())))
    member = np.eye(k)[labels]
    centers = member.T @ train / np.maximum(member.sum(axis=0), 1)[:, None]
    distance = np.square(centers).sum(axis=1) - 2 * test @ centers.T
    table = np.zeros((k, k))
    np.add.at(table, (own, distance.argmin(axis=1)), 1)
    size = table.sum(axis=1)
    pairs = np.maximum(size * (size - 1), 1)  # a row alone is no evidence
    return counts * float(((table * (table - 1)).sum(axis=1) / pairs).min())
