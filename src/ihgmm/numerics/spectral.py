"""Spectral clustering: from the Gram matrix of rows to labels of any rows.

The method of the paper, and all that differ from it in the settings of a recipe:

1. the leading eigenvectors of a Gram matrix of the rows (``directions``);
2. the coordinates of each row in these (``embedding``), in one space or several;
3. the rows to learn from (``sampling``): those that show a pattern, of many a sample;
4. a rule from rows of the embedding to clusters (``labels``);
5. the label of every row by that rule, with clusters numbered (``placement``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ihgmm._progress import Steps
from ihgmm.matrix import Matrix, Ops, RowSubset, Tall, to_host
from ihgmm.numerics.directions import fit_embedding
from ihgmm.numerics.embedding import SPACES, Embedding, Space
from ihgmm.numerics.known_labels import NOTHING_KNOWN, KnownLabels
from ihgmm.numerics.labels import gain_of_lines, learn_rule
from ihgmm.numerics.neighbor_walk import neighbors_help
from ihgmm.numerics.placement import Placement
from ihgmm.numerics.recipe import DEFAULT, Recipe
from ihgmm.numerics.roots import RootColumns
from ihgmm.numerics.rules import FittedRule, LinearRule
from ihgmm.numerics.sampling import clear_rows, sample_rows
from ihgmm.numerics.zero_rows import nonzero_rows
from ihgmm.policy import Labelling


@dataclass(frozen=True, eq=False)
class SpectralFit:
    """The clusters of a recipe; arrays with a line for each row are where X is.

    Clusters are numbered by decreasing size, unless some labels were known.
    """

    labels: Tall  # (n,)
    rows: Tall  # (n, m): those that were clustered; zero rows have a zero embedding
    coordinates: Tall  # (n, m): of rows in eigenvectors, without weights
    placement: Placement  # how rows get there, and their labels
    space: Space  # whether rows are those of eigenvectors or of projected data
    n_iter: int  # iterations that labels took
    clearness: float  # of clusters, if neighbours have moved rows; else -inf
    signs: Tall | None  # (n,): which way rows point along their cluster, if signed
    sample: np.ndarray  # (s, m): some of the rows, from which the labels were learnt


def spectral_clustering(
    X: Matrix,
    n_clusters: int,
    recipe: Recipe = DEFAULT,
    *,
    seed: int = 0,
    known_labels: KnownLabels = NOTHING_KNOWN,
    roots: RootColumns | None = None,
    measure_clearness: bool = False,
    steps: Steps | None = None,
) -> SpectralFit:
    """Cluster the rows of ``X`` by the leading eigenvectors of their Gram matrix.

    X is finite and not all zero; its rows may have weights. Opposite rows are of one
    cluster where X is ``signed``. Only k-means uses the seed. Clusters have the numbers
    that known labels give them, where there are some. With ``roots`` the rows are
    rooted first. How clear clusters are is measured where neighbours teach, or if asked
    for.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.matrix import as_matrix
    >>> from ihgmm.metrics import misclassification_rate
    >>> from ihgmm.numerics.spectral import spectral_clustering
    >>> X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    >>> fit = spectral_clustering(as_matrix(X), 3)
    >>> misclassification_rate(kinds, fit.labels)
    0.0
    >>> bool((fit.placement(as_matrix(X)) == fit.labels).all())
    True
    """
    steps = steps or Steps()
    ops = X.ops

    # 1 and 2: the eigenvectors, and the coordinates of rows in them.
    with steps.step("eigenvectors"), X.threads():
        prepared = X if roots is None else roots(X)
        embedding = fit_embedding(prepared, n_clusters, recipe, roots)
        coordinates = embedding.coordinates_of_prepared(prepared)

    with steps.step("labels") as say:
        # 3: the rows to learn from, in each of the spaces that compete.
        pattern_rows = _rows_with_pattern(prepared, coordinates, recipe, known_labels)
        spaces = SPACES if recipe.space == "auto" else (recipe.space,)
        embeddings = [embedding.in_space(space) for space in spaces]
        sample = _draw_sample(
            prepared,
            pattern_rows,
            embeddings,
            n_clusters,
            recipe,
            measure_clearness=measure_clearness,
        )

        # 4: the rule, and the space that shows clusters better.
        fitted = _learn_from_sample(
            sample, n_clusters, recipe, signed=X.signed, seed=seed
        )
        say(f"{recipe.labels}, {fitted.n_iter} iterations")

        # 5: the label of every row.
        embedding = embeddings[fitted.space]
        embedded = ops.persist(embedding.rows(ops, coordinates))
        clusters = _label_rows(
            ops, embedded, pattern_rows, fitted, n_clusters, signed=X.signed
        )

    return SpectralFit(
        labels=clusters.labels,
        rows=embedded,
        coordinates=coordinates,
        placement=Placement(embedding=embedding, rule=clusters.rule),
        space=embedding.space,
        n_iter=fitted.n_iter,
        clearness=fitted.clearness,
        signs=clusters.signs,
        sample=sample.ops.to_host(sample.spaces[fitted.space]),
    )


def with_other_rule(
    X: Matrix,
    fit: SpectralFit,
    fitted: FittedRule,
    n_clusters: int,
    *,
    shifts: np.ndarray,
    sample: np.ndarray,
    known_labels: KnownLabels = NOTHING_KNOWN,
) -> SpectralFit:
    """Return the clusters of rows less their shifts, by a rule learnt from such rows.

    Parameters
    ----------
    X : Matrix
        The rows of the fit.
    fit : SpectralFit
        Their clusters before; the embedding stays.
    fitted : FittedRule
        The rule, of rows in one of ``SPACES``.
    n_clusters : int
        Number of clusters.
    shifts : ndarray of shape (n, m)
        What is taken off each row in the embedding.
    sample : ndarray of shape (s, m)
        Some rows less their shifts, which the rule was learnt from.
    known_labels : KnownLabels
        What is known of the rows.
    """
    ops = X.ops
    embedding = fit.placement.embedding.in_space(SPACES[fitted.space])
    rows = embedding.rows(ops, fit.coordinates)
    embedded = ops.persist(rows - ops.to_device(shifts.astype(rows.dtype), rows))

    subset = nonzero_rows(X)
    if not subset.is_everything:
        known_labels = known_labels.of_rows(subset.positions())
        zeros = ops.xp.zeros_like(embedded)
        embedded = subset.scatter(subset.select(embedded), zeros)

    pattern_rows = _PatternRows(
        subset=subset,
        coordinates=subset.select(fit.coordinates),
        weights=None if X.weights is None else subset.select(X.weights),
        known_labels=known_labels,
    )
    clusters = _label_rows(
        ops, embedded, pattern_rows, fitted, n_clusters, signed=False
    )
    return replace(
        fit,
        labels=clusters.labels,
        rows=embedded,
        placement=Placement(embedding=embedding, rule=clusters.rule),
        space=embedding.space,
        clearness=fitted.clearness,
        sample=sample,
    )


@dataclass(frozen=True, eq=False)
class _PatternRows:
    """The rows of the data that show a pattern, and what is known of them."""

    subset: RowSubset
    coordinates: Tall  # (r, m)
    weights: Tall | None  # (r,); None: all alike
    known_labels: KnownLabels


def _rows_with_pattern(
    X: Matrix, coordinates: Tall, recipe: Recipe, known_labels: KnownLabels
) -> _PatternRows:
    """Return all rows but those of zeros, unless the origin is a point like others."""
    subset = nonzero_rows(X) if recipe.unit_norm else RowSubset.everything(X)
    if not subset.is_everything:
        known_labels = known_labels.of_rows(subset.positions())

    return _PatternRows(
        subset=subset,
        coordinates=subset.select(coordinates),
        weights=None if X.weights is None else subset.select(X.weights),
        known_labels=known_labels,
    )


@dataclass(frozen=True, eq=False)
class _Sample:
    """Rows that a rule is learnt from, on the host or on the device of the data."""

    ops: Ops  # what serves them
    spaces: list[Tall]  # (s, m) each: rows of the embedding, in each space
    is_clear: RowSubset  # those to learn from: the others drown in noise
    weights: np.ndarray | None  # of clear rows; None: all alike
    known_labels: KnownLabels  # of clear rows
    by_neighbors: bool  # whether they do
    measure_clearness: bool  # whether to say how clear clusters are in any case


def _draw_sample(
    X: Matrix,
    rows: _PatternRows,
    embeddings: list[Embedding],
    n_clusters: int,
    recipe: Recipe,
    *,
    measure_clearness: bool,
) -> _Sample:
    """Draw the rows to learn from; there is one embedding for each space to try."""
    ops = X.ops
    positions = sample_rows(
        ops, embeddings[0], rows.coordinates, n_clusters, rows.known_labels
    )
    sample_ops = ops.taken_ops
    coordinates = sample_ops.widen(ops.take_rows(rows.coordinates, positions))
    is_clear = clear_rows(sample_ops, embeddings[0], coordinates)

    clear_positions = positions[is_clear.positions()]
    weights = None
    if rows.weights is not None:
        weights = sample_ops.to_host(ops.take_rows(rows.weights, clear_positions))

    n_clear = len(clear_positions)
    by_neighbors = (
        recipe.neighbors
        and recipe.unit_norm
        and recipe.labels == "tied"
        and (rows.known_labels.has_classes or neighbors_help(n_clear, n_clusters))
    )

    return _Sample(
        ops=sample_ops,
        spaces=[embedding.rows(sample_ops, coordinates) for embedding in embeddings],
        is_clear=is_clear,
        weights=weights,
        known_labels=rows.known_labels.of_rows(clear_positions),
        by_neighbors=by_neighbors,
        measure_clearness=measure_clearness,
    )


def _learn_from_sample(
    sample: _Sample, n_clusters: int, recipe: Recipe, *, signed: bool, seed: int
) -> FittedRule:
    """Learn the rule of a recipe from the clear rows of a sample."""
    return learn_rule(
        [sample.is_clear.select(rows) for rows in sample.spaces],
        n_clusters,
        recipe.labels,
        weights=sample.weights,
        by_angle=recipe.unit_norm,
        signed=signed,
        n_init=recipe.n_init,
        max_iter=recipe.max_iter,
        seed=seed,
        known_labels=sample.known_labels,
        by_neighbors=sample.by_neighbors,
        measure_clearness=sample.measure_clearness,
        ops=sample.ops,
    )


@dataclass(frozen=True, eq=False)
class _LabelledRows:
    """The labels of all rows, by a rule whose clusters have their final numbers."""

    rule: LinearRule
    labels: Tall  # (n,)
    signs: Tall | None  # (n,): which way rows point along their cluster, if signed


def _label_rows(
    ops: Ops,
    embedded: Tall,
    pattern_rows: _PatternRows,
    fitted: FittedRule,
    n_clusters: int,
    *,
    signed: bool,
) -> _LabelledRows:
    """Label all rows of the embedding, (n, m); those without a pattern get 0."""
    subset = pattern_rows.subset
    rows = subset.select(embedded)
    labels, rule = _number_clusters(ops, rows, pattern_rows, fitted, n_clusters)

    signs = None
    if signed:
        signs, rule = _turn_clusters(ops, rows, labels, rule, n_clusters)

    if not subset.is_everything:
        labels = ops.persist(subset.scatter(labels))
        if signs is not None:
            signs = subset.scatter(signs, ops.xp.ones_like(embedded[:, 0]))
    return _LabelledRows(rule=rule, labels=labels, signs=signs)


def _number_clusters(
    ops: Ops,
    rows: Tall,
    pattern_rows: _PatternRows,
    fitted: FittedRule,
    n_clusters: int,
) -> tuple[Tall, LinearRule]:
    """Return labels of rows, and the rule, with clusters in the order of their numbers.

    The largest cluster is the first, unless known labels give the numbers.
    """
    labels = ops.persist(fitted.rule(ops, rows))
    by_size = ops.order_by_size(labels, n_clusters, pattern_rows.weights)

    known_labels = pattern_rows.known_labels
    if not fitted.is_mixture and known_labels.classes is not None:
        # Such a rule has learnt nothing from classes, which may only number clusters.
        known_labels = known_labels.classes_as_start()
    order = known_labels.cluster_order(by_size, labels)

    number_of_cluster = np.argsort(order)
    labels = ops.persist(ops.take_lines(number_of_cluster, labels))
    return labels, fitted.rule.in_order(order)


def _turn_clusters(
    ops: Ops, rows: Tall, labels: Tall, rule: LinearRule, n_clusters: int
) -> tuple[Tall, LinearRule]:
    """Return which way rows point, and the rule: most rows of a cluster point ahead."""
    signs = rule.signs(ops, rows, labels)  # (n,), 1 or -1
    groups = ops.groups(labels, n_clusters)
    directions = np.where(groups.sums(signs) < 0, -1.0, 1.0)  # (n_clusters,)

    signs = signs * ops.cast_like(groups.to_rows(directions), signs)
    return signs, rule.turned(directions)


def looks_signed(X: Matrix, fit: SpectralFit, n_clusters: int) -> bool:
    """Tell whether opposite rows seem to be of one kind, by the gain of lines.

    With one row in ten flipped they gain 0.5 to 1, in noise up to 0.4. Real sets come
    up to 0.5, where clusters lie opposite each other: the mean is near 0. Where X is
    ``signed`` nobody has to guess, and the answer is no.
    """
    if X.signed:
        return False

    gain = gain_of_lines(fit.sample, n_clusters)
    # Clusters that lie on one side lose log 2: such a gain shows it in any case.
    is_certain = gain > np.log(2)
    if is_certain or gain <= Labelling.LINE_GAIN:
        return is_certain

    # The squared length of the sum of rows; of noise around 0 it is about the sum of
    # their squared lengths.
    ones = X.to_device(np.ones((X.shape[0], 1)))
    sum_of_rows = to_host(X.adjoint(ones)).astype(np.float64)
    sum_of_squares = X.ops.number(X.ops.xp.sum(X.sqnorms))
    return bool(np.sum(sum_of_rows**2) > Labelling.NEAR_ZERO**2 * sum_of_squares)
