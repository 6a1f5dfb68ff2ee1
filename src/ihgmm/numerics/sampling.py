"""Which rows a rule is learnt from: some of them, and none that drown in noise."""

from __future__ import annotations

from functools import partial

import numpy as np

from ihgmm.matrix import Ops, RowSubset, Tall, sample_positions
from ihgmm.numerics.embedding import Embedding
from ihgmm.numerics.known_labels import KnownLabels
from ihgmm.policy import Labelling, Leading


def sample_rows(
    ops: Ops,
    embedding: Embedding,
    coordinates: Tall,
    n_clusters: int,
    known_labels: KnownLabels,
) -> np.ndarray:
    """Return positions of rows to learn a rule from, those of known class first.

    They depend on the rows themselves, as if these were shuffled: neither their order
    in the data nor a seed changes labels. ``coordinates``, (n, m), are those of all
    rows that show a pattern.
    """
    n = coordinates.shape[0]
    size = min(n, max(Labelling.ROWS, Labelling.ROWS_A_CLUSTER * n_clusters))

    make_keys = partial(_random_looking_keys, embedding.in_space("projected"))
    keys = ops.persist(ops.row_map(make_keys, coordinates))  # (n,), between 0 and 1

    # Keys are spread evenly, or nearly so: not all of many come to the host.
    candidates = np.flatnonzero(ops.to_host(keys < 2 * size / n))
    if len(candidates) < size:
        candidates = np.arange(n)
    candidate_keys = ops.taken_ops.to_host(ops.take_rows(keys, candidates))
    shuffled = candidates[np.argsort(candidate_keys, kind="stable")]
    rows = shuffled[:size]

    if known_labels.classes is None:
        return rows
    known_rows = np.flatnonzero(known_labels.classes >= 0)
    known_keys = ops.taken_ops.to_host(ops.take_rows(keys, known_rows))
    known_rows = known_rows[np.argsort(known_keys, kind="stable")]
    known_rows = known_rows[sample_positions(len(known_rows), (size + 1) // 2)]
    other_rows = rows[~np.isin(rows, known_rows)]
    return np.append(known_rows, other_rows)[:size]


def _random_looking_keys(embedding: Embedding, ops: Ops, coordinates: Tall) -> Tall:
    """Return a number between 0 and 1 for each row that looks random, from the row."""
    weights = ops.cast_like(embedding.coordinate_weights, coordinates)
    rows = coordinates * weights
    factors = 100 * np.random.default_rng(0).random(rows.shape[1])
    sizes = ops.xp.abs(ops.unit_rows(rows))
    return (sizes @ ops.cast_like(factors, rows)) % 1


def clear_rows(ops: Ops, embedding: Embedding, coordinates: Tall) -> RowSubset:
    """Return which rows to learn from: not those that drown in noise, if they are many.

    What the directions leave of a unit row shows its noise, which adds to coordinates.
    Rows that are mostly noise have no pattern to teach, and would make a cluster.

    Notes
    -----
    A unit row a of p features has the share ``s = Σ λ c²`` of its squared length in the
    m directions, c being its coordinates and λ the eigenvalues. Noise that is alike in
    all directions has ``(1 - s) / (p - m)`` in each, and so adds
    ``Σ w² / λ (1 - s) / (p - m)`` to the squared length ``Σ w² c²`` of the weighted
    coordinates. Rows are clear where this length is twice as much.
    """
    n = coordinates.shape[0]
    n_features, n_directions = embedding.directions.shape
    everything = RowSubset(ops=ops, n_rows=n)
    if n_features <= n_directions or not embedding.unit_rows:
        return everything

    squares = coordinates**2
    eigenvalues = embedding.eigenvalues
    share_in_directions = squares @ ops.cast_like(eigenvalues, squares)
    squared_weights = embedding.weights**2
    squared_lengths = squares @ ops.cast_like(squared_weights, squares)

    noise_factor = float((squared_weights / eigenvalues).sum())
    least_factor = 2 * noise_factor / (n_features - n_directions)
    is_clear = squared_lengths >= least_factor * (1 - share_in_directions)

    noisy_share = 1 - ops.number(ops.xp.mean(ops.widen(is_clear)))
    if not Leading.NOISY < noisy_share < Leading.NOISE:
        return everything
    return RowSubset(ops=ops, n_rows=n, is_member=is_clear)
