"""Clusters within clusters: a tree, and the levels at which it is stable."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.validation import check_is_fitted

from ihgmm._display import Result, draw
from ihgmm._parameters import check_count
from ihgmm._warnings import ignored, sklearn_filters
from ihgmm.matrix import HOST, Matrix, ops_of, sample_positions, to_host
from ihgmm.matrix.threads import one_thread
from ihgmm.numerics.known_labels import KnownLabels
from ihgmm.numerics.labels import learn_rule
from ihgmm.numerics.matching import confusion
from ihgmm.numerics.placement import Placement
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.spectral import spectral_clustering
from ihgmm.policy import Counting, Small


@dataclass(frozen=True)
class Split:
    """The evidence for one number of clusters in a tree."""

    n_clusters: int  #: after this split
    rise: float  #: how much more the next merger costs than the last, in logarithms
    agreement: float  #: of trees of separate halves of the rows: adjusted Rand index
    stability: float  #: how well these find the worst cluster again, from 0 to 1
    drop: float  #: how much worse they find that of one more
    #: How far rows keep away from the cuts, in standard errors: about 0 or less if a
    #: cloud was cut. Where many directions stand out, only opposite clusters have one.
    gap: float

    @property
    def support(self) -> float:
        """The evidence for this number: its rise, and its drop of stability."""
        return self.rise + Counting.DROP_WEIGHT * self.drop


class Bracket(NamedTuple):
    """A merger as it is drawn: two stems, and what joins them."""

    n_clusters: int  # before it
    leaf: int  # one of those that it joins
    left: tuple[float, float]  # the stem's place, and the height from which it rises
    right: tuple[float, float]
    height: float


@dataclass(frozen=True, eq=False, repr=False)
class ClusterTree(Result):
    """Clusters that merge step by step, each step with its evidence."""

    leaves: np.ndarray  #: the leaf of each row; -1 for outliers of a model
    members: np.ndarray  #: line ``k - 1`` has the cluster of each leaf, of k
    splits: tuple[Split, ...]  #: the evidence for 2, 3, ... clusters
    #: Numbers of clusters at which the tree is stable: halves of the rows agree, and
    #: merging two would cost far more than merging two of one more.
    levels: tuple[int, ...]
    #: Of merging two of 2, 3, ... clusters, a row: lost log-likelihood, BIC's price.
    costs: np.ndarray
    n_rows: int  #: that the tree learnt from
    of_model: bool = False  #: whether leaves are the clusters of a model

    @property
    def n_leaves(self) -> int:
        """The number of clusters at the end of all branches."""
        return len(self.members)

    def labels(self, n_clusters: int) -> np.ndarray:
        """Return labels of so many clusters, numbered by decreasing size.

        In the tree of a model they have its numbers, as far as they share rows.
        """
        k = check_count("n_clusters", n_clusters)
        if k > self.n_leaves:
            raise ValueError(f"n_clusters={k} is more than the {self.n_leaves} leaves.")
        return np.where(self.leaves < 0, -1, self.numbers(k)[self.leaves])

    def numbers(self, n_clusters: int) -> np.ndarray:
        """Return the label of each leaf where there are so many clusters."""
        members = self.members[n_clusters - 1]
        rows = np.bincount(self.leaves[self.leaves >= 0], minlength=len(members))
        order = np.argsort(-np.bincount(members, rows), kind="stable")
        if self.of_model:
            own = KnownLabels(start=np.arange(len(members)), start_weights=rows)
            order = own.cluster_order(order, members)
        return np.argsort(order)[members]

    def drawn(self) -> tuple[np.ndarray, list[Bracket]]:
        """Return the leaves from left to right, and mergers from these to the root."""
        groups = [np.arange(self.members.shape[1])]  # of leaves, from left to right
        parts: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for k in range(2, self.n_leaves + 1):
            now = self.members[k - 1]
            at = next(i for i, g in enumerate(groups) if np.ptp(now[g]))
            own = now[groups[at]] == now[groups[at][0]]
            parts[k] = groups[at][own], groups[at][~own]
            groups[at : at + 1] = parts[k]
        # Where the stem of a cluster is, and from where it rises.
        stems = {int(group[0]): (float(i), 0.0) for i, group in enumerate(groups)}
        brackets, height = [], 0.0
        for k in range(self.n_leaves, 1, -1):
            left, right = (stems[int(part[0])] for part in parts[k])
            height, leaf = max(height, float(self.costs[k - 2])), int(parts[k][0][0])
            brackets.append(Bracket(k, leaf, left, right, height))
            stems[leaf] = (left[0] + right[0]) / 2, height
        return np.array([group[0] for group in groups]), brackets

    def split(self, n_clusters: int) -> Split | None:
        """Return the evidence for a number of clusters; None where there is none."""
        at = n_clusters - 2
        return self.splits[at] if 0 <= at < len(self.splits) else None

    def plot(self, ax: Any = None) -> Any:
        """Draw the tree and its levels: :func:`ihgmm.plotting.plot_tree`."""
        return draw(self, ax)


def tree_of_model(model: Any, rng: Generator) -> ClusterTree:
    """Return the tree whose leaves are the clusters of a fitted model."""
    check_is_fitted(model)
    if not hasattr(model, "embedding_"):
        raise TypeError(
            f"{type(model).__name__} has no embedding_; give the data, cluster_tree(X),"
            " or a model such as IhSC."
        )
    signed = getattr(model, "signed", False)
    leaves = to_host(model.labels_).astype(np.intp)
    k, known = int(leaves.max()) + 1, np.flatnonzero(leaves >= 0)
    _, firsts = np.unique(leaves[known], return_index=True)
    # Some rows, of every cluster.
    known = known[np.union1d(sample_positions(len(known), Counting.ROWS, rng), firsts)]
    embedded = ops_of(model.embedding_).take_rows(model.embedding_, known)
    rows = to_host(embedded).astype(np.float64)
    rows /= max(np.abs(rows).max(initial=0.0), 1.0)  # lest squares overflow

    def grow(seen: np.ndarray | None) -> _Branches:
        if seen is None:
            return _merged(rows, leaves[known], k, signed)
        rule = learn_rule([rows[seen]], k, signed=signed).rule
        return _merged(rows, np.asarray(rule(HOST, rows)), k, signed, seen)

    with one_thread(), ignored(ConvergenceWarning):
        tree = _grown(grow, len(known), rng, k)
    return replace(tree, leaves=leaves, of_model=True)


def tree_of_rows(
    X: Matrix, rank: int, wide: int, most: int, rng: Generator, *, signed: bool
) -> tuple[ClusterTree, Placement] | tuple[None, None]:
    """Return the tree of few rows in memory, none of them zero, and who places others.

    ``rank`` directions stand out from noise; clusters are looked for in ``wide`` ones.
    """
    n, p = X.shape
    few = p <= Counting.FEW_FEATURES
    slope, more = Counting.LEAVES
    k = min(int(slope * rank + more), most + 1)
    k = min(max(k, Counting.LEAST_LEAVES[int(few)]), n // Counting.ROWS_A_LEAF)
    if k < 2:
        return None, None
    recipe = Recipe(n_components=min(max(wide, 2), p, n // 2 - 1))
    placements: list[Placement] = []
    # Few directions do not tell whether rows are more than one cloud. Gaps do.
    lengths, every_cut = np.sqrt(to_host(X.sqnorms)), few or rank <= 1

    def grow(seen: np.ndarray | None) -> _Branches:
        part = X if seen is None else X.take(seen)
        fit = spectral_clustering(part, k, recipe, signed=signed)
        placements.append(fit.placement)
        rows, leaves = fit.rows, fit.labels
        if seen is not None:
            rows = fit.placement.embedding(X)
            leaves = fit.placement.rule(X.ops, rows)
        return _merged(rows, to_host(leaves), k, signed, seen, lengths, every_cut)

    with one_thread(), ignored(ConvergenceWarning):
        return _grown(grow, n, rng, n if few else rank), placements[0]


class _Branches(NamedTuple):
    """A tree of some rows, which has put all rows into its leaves."""

    leaves: np.ndarray  # of all rows
    members: np.ndarray  # (k, k leaves): the cluster of each leaf among 1, 2, ..., k
    costs: np.ndarray  # (k - 1,): of merging two of 2, 3, ..., k clusters, for each row
    gaps: np.ndarray  # (k - 1, 2): how far other rows keep from the cut, on both sides

    def rises(self, most: int) -> np.ndarray:
        """Return how much more each merger costs than the last, from 2 to most."""
        logs = np.log(self.costs[: most - 1])
        return np.append(logs[:-1] - logs[1:], 0.0)


def _merged(
    rows: np.ndarray,
    leaves: np.ndarray,
    n_leaves: int,
    signed: bool,
    seen: np.ndarray | None = None,
    lengths: np.ndarray | None = None,
    every_cut: bool = False,
) -> _Branches:
    """Merge the clusters of rows, those that lose least likelihood first.

    The tree is learnt from the rows ``seen``; others show gaps, if lengths are given:
    those at every cut, or those between opposite directions alone.
    """
    rows = to_host(rows).astype(np.float64)
    seen = np.arange(len(rows)) if seen is None else seen
    n, m = len(seen), rows.shape[1]
    for own in [leaves == leaf for leaf in np.unique(leaves)] if signed else ():
        # All rows point the same way along their cluster.
        main = np.linalg.svd(rows[own], full_matrices=False)[2][0]
        rows[own] *= np.where(rows[own] @ main < 0, -1.0, 1.0)[:, None]
    part, labels = rows[seen], leaves[seen]
    sizes = np.bincount(labels, minlength=n_leaves).astype(float)
    alive = np.flatnonzero(sizes)
    centers = np.zeros((n_leaves, m))
    np.add.at(centers, labels, part)
    centers /= np.maximum(sizes, 1)[:, None]
    residuals = part - centers[labels]
    # Rows may coincide.
    least = max(Small.LOAD * float(np.square(part).mean()), Small.EXACT)
    within = residuals.T @ residuals / n + least * np.eye(m)
    owner = np.where(sizes > 0, np.arange(n_leaves), alive[0])
    members = np.zeros((len(alive), n_leaves), dtype=np.intp)
    losses, gaps = np.zeros(len(alive) - 1), np.zeros((len(alive) - 1, 2))
    for k in range(len(alive), 1, -1):
        members[k - 1] = np.searchsorted(alive, owner)
        own, few = centers[alive], sizes[alive]
        mapped = np.linalg.solve(within, own.T)
        products, squares = own @ mapped, np.einsum("ij,ji->i", own, mapped)
        near = np.abs(products) if signed else products
        costs = np.add.outer(squares, squares) - 2 * near
        costs *= few * few[:, None] / (few + few[:, None]) / n
        np.fill_diagonal(costs, np.inf)
        one, other = divmod(int(costs.argmin()), k)
        losses[k - 2] = np.log1p(max(costs[one, other], 0.0)) / 2
        a, b = alive[[one, other]]
        if signed and products[one, other] < 0:
            centers[b] *= -1
            rows[owner[leaves] == b] *= -1
        if lengths is not None:
            sides = 1.0 * (owner[leaves] == a) - (owner[leaves] == b)
            gaps[k - 2] = _gap(rows, sides, seen, lengths, every_cut)
        delta, both = centers[a] - centers[b], sizes[a] + sizes[b]
        within += sizes[a] * sizes[b] / both / n * np.outer(delta, delta)
        centers[a] -= sizes[b] / both * delta
        sizes[a], owner[owner == b] = both, a
        alive = np.delete(alive, other)
    return _Branches(leaves, members, losses + (m + 1) / 2 * np.log(n) / n, gaps)


def _gap(
    units: np.ndarray,
    sides: np.ndarray,
    seen: np.ndarray,
    lengths: np.ndarray,
    every_cut: bool,
) -> tuple[float, float]:
    """Return how far rows that are not seen keep from the cut between two clusters.

    The cut goes through the origin, between unit rows of sides 1 and -1 that are seen.
    """
    ahead, behind = (units[seen][sides[seen] == side] for side in (1, -1))
    rest = sides != 0
    rest[seen] = False
    one, other = ahead.mean(axis=0), behind.mean(axis=0)
    cosine = one @ other / max(np.sqrt((one @ one) * (other @ other)), Small.EXACT)
    opposite = cosine < -np.sqrt(0.5)  # nearer to opposite than to orthogonal
    if not (every_cut or opposite):
        return 0.0, 0.0
    # Least squares, in which both sides count alike.
    squares = ahead.T @ ahead / len(ahead) + behind.T @ behind / len(behind)
    normal = np.linalg.lstsq(squares, one - other, rcond=Small.LOAD)[0]
    # Between opposite directions is the origin: short rows are in the gap there.
    scores = units[rest] @ normal * (lengths[rest] if opposite else 1.0)
    return _clearance(scores), _clearance(-scores)


def _clearance(distances: np.ndarray) -> float:
    """Return the mean distance in front of the median, less that of even ones."""
    distances = np.sort(distances[distances > 0])
    if len(distances) < 2:
        return 0.0
    shares = distances[: len(distances) // 2] / np.median(distances)
    return float((shares - 0.5).sum() * np.sqrt(12 / len(shares)))


def _grown(grow: Callable[..., _Branches], n: int, rng: Generator, rank: int) -> Any:
    """Return a tree of all rows, judged by trees of halves; rank clusters fit it."""
    whole = grow(None)
    halves: list[_Branches] = []
    enough = 1 < len(whole.members) < n // 2
    for _ in range(Counting.HALVINGS[n > Counting.MANY_ROWS] if enough else 0):
        order = rng.permutation(n)
        halves += [grow(np.sort(half)) for half in (order[: n // 2], order[n // 2 :])]
    splits = _judged(whole, halves)
    levels = []
    for split in splits:
        stable = min(split.agreement, split.stability) >= Counting.AGREEMENT
        evidence = split.rise + split.drop + split.agreement
        # A level beyond the most clusters under the model needs much support.
        expected = split.n_clusters <= rank or split.support >= Counting.HIGH
        if stable and expected and evidence >= Counting.LEVEL:
            levels.append(split.n_clusters)
    tree = whole.leaves, whole.members, splits, tuple(levels), whole.costs
    return ClusterTree(*tree, n)


def _judged(whole: _Branches, halves: Sequence[_Branches]) -> tuple[Split, ...]:
    """Return the evidence for each number of clusters that all trees have."""
    most = min(len(tree.members) for tree in (whole, *halves))
    if most < 2 or not halves:
        return ()
    rises = np.mean([half.rises(most) for half in halves], axis=0)
    rises = (whole.rises(most) + rises) / 2
    stability, agreement = [], []
    for k in range(2, most + 1):
        own, *others = (tree.members[k - 1][tree.leaves] for tree in (whole, *halves))
        overlaps = []  # the share of rows that clusters have in common with their like
        for other in others:
            table = confusion(own, other, (k, k))
            union = np.add.outer(table.sum(axis=1), table.sum(axis=0)) - table
            overlaps.append((table / np.maximum(union, 1)).max(axis=1))
        stability.append(float(np.mean(overlaps, axis=0).min()))
        with sklearn_filters:
            agreed = [*map(adjusted_rand_score, others[::2], others[1::2])]
        agreement.append(float(np.mean(agreed)))
    drops = [one - next_one for one, next_one in pairwise(stability)]
    gaps = np.mean([half.gaps[: most - 1] for half in halves], axis=0).min(axis=1)
    gaps = np.cumsum(gaps) / np.arange(1, most)  # of all cuts that make k clusters
    evidence = rises.tolist(), agreement, stability, [*drops, 0.0], gaps.tolist()
    return tuple(map(Split, range(2, most + 1), *evidence))
