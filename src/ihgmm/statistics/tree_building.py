"""How trees of clusters are built, and judged by trees of halves of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.validation import check_is_fitted

from ihgmm import _parameters as parameters
from ihgmm._warnings import ignored, sklearn_filters
from ihgmm.matrix import HOST, Matrix, ops_of, sample_positions, to_host
from ihgmm.matrix.threads import one_thread
from ihgmm.numerics import whitening
from ihgmm.numerics.labels import learn_rule
from ihgmm.numerics.matching import confusion
from ihgmm.numerics.missing import Missing
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.roots import rows_to_count
from ihgmm.numerics.spectral import SpectralFit, spectral_clustering
from ihgmm.policy import Levels
from ihgmm.statistics.merging import Branches, merge_clusters
from ihgmm.statistics.selection import (
    MAX_CLUSTERS,
    CountOptions,
    count_clusters,
)
from ihgmm.statistics.tree import ClusterTree, Split

# Halves are clustered many times: neighbours would take long, and teach the same tree.
_PLAIN = Recipe(neighbors=False)


@parameters.usual_errors()
def cluster_tree(
    X: Any,
    *,
    max_clusters: int = MAX_CLUSTERS,
    signed: bool = False,
    columns: whitening.Columns = "auto",
    missing: Missing = "error",
    sample_weight: Any = None,
    random_state: Any = 0,
) -> ClusterTree:
    """Merge clusters step by step, and find the levels at which they are stable.

    Parameters
    ----------
    X : array-like, sparse matrix, or fitted estimator
        The data, of any kind that estimators take; or a model with ``labels_`` and
        ``embedding_``, whose clusters are then the leaves, and other options do not
        count.
    max_clusters, signed, columns, missing, sample_weight
        As in :func:`ihgmm.select_n_clusters`, which counts the clusters of data: the
        tree has some more leaves than these.
    random_state : int, RandomState, Generator or None, default=0
        Seed; the same seed gives the same tree.

    Returns
    -------
    ClusterTree
        ``levels``, ``splits`` and ``labels(k)``; ``plot()`` draws it.

    Examples
    --------
    >>> from ihgmm import IhSC, cluster_tree, make_ihgmm
    >>> X, kinds = make_ihgmm(300, 50, 4, random_state=0)
    >>> tree = cluster_tree(X, random_state=0)
    >>> tree.levels, len(set(tree.labels(4))), tree.splits[2].agreement > 0.9
    ((4,), 4, True)
    >>> cluster_tree(IhSC(8).fit(X), random_state=0).levels
    (4,)
    """
    rng = parameters.generator(random_state)
    if hasattr(X, "get_params"):
        return tree_of_model(X, rng)

    options = CountOptions(
        max_clusters=max_clusters, signed=signed, columns=columns, missing=missing
    )
    rows, subset = options.rows_of(X, sample_weight, rng)
    count = count_clusters(rows, rng, columns=columns, max_clusters=max_clusters)
    compared = rows_to_count(rows, columns).compared
    tree = tree_of_rows(compared, max(count.plausible), max_clusters, rng)
    if subset.is_everything:
        return tree

    leaves = np.full(subset.n_rows, -1)  # rows of weight 0 are in none
    leaves[subset.positions()] = tree.leaves
    return replace(tree, leaves=leaves)


def tree_of_model(model: Any, rng: Generator) -> ClusterTree:
    """Return the tree whose leaves are the clusters of a fitted model."""
    check_is_fitted(model)
    if not hasattr(model, "embedding_"):
        raise TypeError(
            f"{type(model).__name__} has no embedding_; give the data, cluster_tree(X),"
            " or a model such as IhSC."
        )

    labels = to_host(model.labels_).astype(np.intp)
    sample = _sample_of_clusters(labels, rng)
    embedded = ops_of(model.embedding_).take_rows(model.embedding_, sample)
    rows = to_host(embedded).astype(np.float64)
    rows /= max(np.abs(rows).max(initial=0.0), 1.0)  # lest squares overflow

    k = int(labels.max()) + 1
    source = _RowsOfModel(
        rows=rows,
        labels=labels[sample],
        k=k,
        signed=getattr(model, "signed", False),
    )
    with one_thread(), ignored(ConvergenceWarning):
        tree = _grow_tree(source, rng, n_expected=k)
    return replace(tree, leaves=labels, of_model=True)


def _sample_of_clusters(labels: np.ndarray, rng: Generator) -> np.ndarray:
    """Return positions of some rows that are no outliers, of every cluster."""
    rows = np.flatnonzero(labels >= 0)

    _, first_of_each = np.unique(labels[rows], return_index=True)
    drawn = sample_positions(len(rows), Levels.ROWS, rng)
    return rows[np.union1d(drawn, first_of_each)]


def tree_of_rows(
    X: Matrix, n_clusters: int, max_clusters: int, rng: Generator
) -> ClusterTree:
    """Return the tree of rows that have so many clusters at most.

    It has more leaves than these. Of many rows some are drawn; the leaves are of all.
    """
    is_nonzero = X.sqnorms > 0
    rows = X.ops.draw_rows(is_nonzero, Levels.ROWS, rng)
    leaves_a_cluster, more_leaves = Levels.LEAVES
    n_leaves = max(leaves_a_cluster * n_clusters + more_leaves, Levels.LEAST_LEAVES)
    n_leaves = min(n_leaves, max_clusters + 1, len(rows) // Levels.ROWS_A_LEAF)
    if n_leaves < 2:
        raise ValueError(
            "X has too few rows that are not zero for a tree; give at least "
            f"{2 * Levels.ROWS_A_LEAF}."
        )

    sample = X.take(rows).to_memory()
    # As many directions as clusters: in more, those of leaves would drown the others.
    n_directions = min(max(n_clusters, 2), X.shape[1], len(rows) // 2 - 1)
    recipe = replace(_PLAIN, n_components=n_directions)
    with one_thread(), ignored(ConvergenceWarning):
        fit = spectral_clustering(sample, n_leaves, recipe)
        source = _RowsOfData(X=sample, fit=fit, n_leaves=n_leaves, recipe=recipe)
        tree = _grow_tree(source, rng, n_expected=n_clusters)

    if len(rows) == X.shape[0]:
        return tree
    leaves = to_host(fit.placement(X)).astype(np.intp)
    return replace(tree, leaves=leaves)


class _Source(Protocol):
    """Rows that trees are learnt from: from all of them, and from halves."""

    @property
    def n_rows(self) -> int: ...

    def branches(self) -> Branches:
        """Return the tree of all rows."""

    def branches_learnt_from(self, half: np.ndarray) -> Branches:
        """Return the tree of the rows at some positions, which places all rows."""


@dataclass(frozen=True, eq=False)
class _RowsOfModel:
    """Rows of the embedding of a model, whose clusters are the leaves."""

    rows: np.ndarray  # (n_rows, m)
    labels: np.ndarray  # (n_rows,)
    k: int
    signed: bool

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def branches(self) -> Branches:
        return merge_clusters(self.rows, self.labels, self.k, signed=self.signed)

    def branches_learnt_from(self, half: np.ndarray) -> Branches:
        rule = learn_rule([self.rows[half]], self.k, signed=self.signed).rule
        leaves = np.asarray(rule(HOST, self.rows))

        return merge_clusters(
            self.rows, leaves, self.k, signed=self.signed, learnt_rows=half
        )


@dataclass(frozen=True, eq=False)
class _RowsOfData:
    """Rows of the data, whose leaves are clusters of a fit."""

    X: Matrix
    fit: SpectralFit  # of all rows
    n_leaves: int
    recipe: Recipe

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    def branches(self) -> Branches:
        return merge_clusters(
            self.fit.rows,
            to_host(self.fit.labels),
            self.n_leaves,
            signed=self.X.signed,
        )

    def branches_learnt_from(self, half: np.ndarray) -> Branches:
        fit = spectral_clustering(self.X.take(half), self.n_leaves, self.recipe)
        rows = fit.placement.embedding(self.X)
        leaves = fit.placement.rule(self.X.ops, rows)

        return merge_clusters(
            rows,
            to_host(leaves),
            self.n_leaves,
            signed=self.X.signed,
            learnt_rows=half,
        )


def _grow_tree(source: _Source, rng: Generator, n_expected: int) -> ClusterTree:
    """Return a tree of all rows, judged by trees of halves.

    ``n_expected`` is the number of clusters that were counted, or that a model has.
    """
    n = source.n_rows
    tree = source.branches()

    halves: list[Branches] = []
    if 1 < tree.n_leaves < n // 2:
        for _ in range(Levels.HALVINGS[int(n > Levels.MANY_ROWS)]):
            order = rng.permutation(n)
            for half in (order[: n // 2], order[n // 2 :]):
                halves.append(source.branches_learnt_from(np.sort(half)))

    splits = _judge_splits(tree, halves)
    levels = [split.n_clusters for split in splits if _is_level(split, n_expected)]
    return ClusterTree(
        leaves=tree.leaves,
        members=tree.members,
        splits=splits,
        levels=tuple(levels),
        costs=tree.costs,
        n_rows=n,
    )


def _is_level(split: Split, n_expected: int) -> bool:
    """Tell whether the tree is stable at a number of clusters."""
    is_stable = min(split.agreement, split.stability) >= Levels.AGREEMENT
    evidence = split.rise + split.drop + split.agreement
    # A level of more clusters than expected needs much support.
    is_expected = split.n_clusters <= n_expected or split.support >= Levels.BEYOND
    return is_stable and is_expected and evidence >= Levels.LEVEL


def _judge_splits(tree: Branches, halves: Sequence[Branches]) -> tuple[Split, ...]:
    """Return the evidence for each number of clusters that all trees have.

    Trees of halves come in pairs: two of separate halves.
    """
    n_leaves = min(branches.n_leaves for branches in (tree, *halves))
    if n_leaves < 2 or not halves:
        return ()
    numbers = range(2, n_leaves + 1)

    rises_of_halves = [half.rises(n_leaves) for half in halves]
    rises = (tree.rises(n_leaves) + np.mean(rises_of_halves, axis=0)) / 2

    stability = [_stability(tree, halves, k) for k in numbers]
    drops = [now - with_one_more for now, with_one_more in pairwise(stability)]

    return tuple(
        Split(
            n_clusters=k,
            rise=float(rises[i]),
            agreement=_agreement(halves, k),
            stability=stability[i],
            drop=drops[i] if i < len(drops) else 0.0,
        )
        for i, k in enumerate(numbers)
    )


def _stability(tree: Branches, halves: Sequence[Branches], k: int) -> float:
    """Return how well trees of halves find the worst of k clusters again, at most 1."""
    labels = tree.labels(k)

    overlaps = []  # of each half and cluster: rows shared with the most similar cluster
    for half in halves:
        shared = confusion(labels, half.labels(k), (k, k))
        united = np.add.outer(shared.sum(axis=1), shared.sum(axis=0)) - shared
        overlaps.append((shared / np.maximum(united, 1)).max(axis=1))

    return float(np.mean(overlaps, axis=0).min())


def _agreement(halves: Sequence[Branches], k: int) -> float:
    """Return the mean adjusted Rand index of k clusters of separate halves."""
    labels = [half.labels(k) for half in halves]
    pairs = zip(labels[::2], labels[1::2], strict=True)

    with sklearn_filters:
        return float(np.mean([adjusted_rand_score(*pair) for pair in pairs]))
