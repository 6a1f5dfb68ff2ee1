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

from ihgmm._warnings import ignored, sklearn_filters
from ihgmm.matrix import HOST, Matrix, ops_of, sample_positions, to_host
from ihgmm.matrix.threads import one_thread
from ihgmm.numerics.labels import learn_rule
from ihgmm.numerics.matching import confusion
from ihgmm.numerics.placement import Placement
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.spectral import SpectralFit, spectral_clustering
from ihgmm.policy import Counting
from ihgmm.statistics.merging import Branches, GapSearch, merge_clusters
from ihgmm.statistics.tree import ClusterTree, Split


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
    drawn = sample_positions(len(rows), Counting.ROWS, rng)
    return rows[np.union1d(drawn, first_of_each)]


def tree_of_rows(
    X: Matrix,
    rank: int,
    n_directions: int,
    max_clusters: int,
    rng: Generator,
) -> tuple[ClusterTree, Placement] | tuple[None, None]:
    """Return the tree of few rows, and the placement that gives others their leaf.

    Parameters
    ----------
    X : Matrix
        Rows in memory, none of them zero.
    rank : int
        Number of directions that stand out from noise.
    n_directions : int
        Number of directions in which clusters are looked for.
    max_clusters : int
        The largest number that is looked for.
    rng : Generator
        Draws halves of the rows.
    """
    n, p = X.shape
    has_few_features = p <= Counting.FEW_FEATURES
    n_leaves = _number_of_leaves(n, rank, max_clusters, has_few_features)
    if n_leaves < 2:
        return None, None

    n_components = min(max(n_directions, 2), p, n // 2 - 1)
    recipe = Recipe(n_components=n_components, neighbors=False)
    gap_search = GapSearch(
        lengths=np.sqrt(to_host(X.sqnorms)),
        # Few directions do not tell whether rows are more than one cloud. Gaps do.
        every_cut=has_few_features or rank <= 1,
    )
    with one_thread(), ignored(ConvergenceWarning):
        fit = spectral_clustering(X, n_leaves, recipe)
        source = _RowsOfData(
            X=X,
            fit=fit,
            n_leaves=n_leaves,
            recipe=recipe,
            gap_search=gap_search,
        )
        n_expected = n if has_few_features else rank
        tree = _grow_tree(source, rng, n_expected=n_expected)

    return tree, fit.placement


def _number_of_leaves(
    n: int, rank: int, max_clusters: int, has_few_features: bool
) -> int:
    """Return how many leaves the tree of n rows has: more than clusters expected."""
    leaves_a_direction, more_leaves = Counting.LEAVES
    n_leaves = int(leaves_a_direction * rank + more_leaves)
    n_leaves = min(n_leaves, max_clusters + 1)
    n_leaves = max(n_leaves, Counting.LEAST_LEAVES[int(has_few_features)])
    return min(n_leaves, n // Counting.ROWS_A_LEAF)


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
    gap_search: GapSearch

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    def branches(self) -> Branches:
        return merge_clusters(
            self.fit.rows,
            to_host(self.fit.labels),
            self.n_leaves,
            signed=self.X.signed,
            gap_search=self.gap_search,
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
            gap_search=self.gap_search,
        )


def _grow_tree(source: _Source, rng: Generator, n_expected: int) -> ClusterTree:
    """Return a tree of all rows, judged by trees of halves.

    ``n_expected`` is the largest number of clusters that the model would have.
    """
    n = source.n_rows
    tree = source.branches()

    halves: list[Branches] = []
    if 1 < tree.n_leaves < n // 2:
        for _ in range(Counting.HALVINGS[int(n > Counting.MANY_ROWS)]):
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
    is_stable = min(split.agreement, split.stability) >= Counting.AGREEMENT
    evidence = split.rise + split.drop + split.agreement
    # A level beyond the most clusters under the model needs much support.
    is_expected = split.n_clusters <= n_expected or split.support >= Counting.HIGH
    return is_stable and is_expected and evidence >= Counting.LEVEL


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

    gaps_of_halves = [half.gaps[: n_leaves - 1] for half in halves]
    gaps = np.mean(gaps_of_halves, axis=0).min(axis=1)
    mean_gaps = np.cumsum(gaps) / np.arange(1, n_leaves)  # of all cuts that make k

    return tuple(
        Split(
            n_clusters=k,
            rise=float(rises[i]),
            agreement=_agreement(halves, k),
            stability=stability[i],
            drop=drops[i] if i < len(drops) else 0.0,
            gap=float(mean_gaps[i]),
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
