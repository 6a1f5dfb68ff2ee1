"""How many clusters there are."""

from dataclasses import dataclass, replace
from enum import Enum
from operator import attrgetter
from typing import Any, Literal

import numpy as np
from numpy.random import Generator

from ihgmm import _parameters as parameters
from ihgmm._checks import check_matrix, counted_rows
from ihgmm._display import Result, doubts_of_count, draw
from ihgmm._warnings import ClusterCountWarning, warn
from ihgmm.matrix import Matrix, Scaled, to_host
from ihgmm.matrix.threads import sized_threads
from ihgmm.numerics import whitening
from ihgmm.numerics.eigen import GramOperator
from ihgmm.numerics.missing import MISSING_WAYS, Missing, learn_filler
from ihgmm.numerics.sign_flips import count_above_noise
from ihgmm.numerics.spectral import Placement
from ihgmm.policy import Counting
from ihgmm.statistics.tree import ClusterTree, Split, tree_of_model, tree_of_rows

MAX_CLUSTERS = 50
"""The largest number of clusters that is looked for, unless another is given."""


class Confidence(Enum):
    """How far the number of clusters can be relied on."""

    HIGH = "high"
    MIDDLE = "middle"
    LOW = "low"


@dataclass(frozen=True, eq=False, repr=False)
class ClusterCount(Result):
    """How many clusters were found, and on what evidence."""

    #: The best guess; 1 when all rows share one direction or show no groups, 0 when
    #: nothing stands out from noise.
    n_clusters: int
    levels: tuple[int, ...]  #: numbers at which the tree is stable
    #: The likeliest numbers, five at most; the last is 1 or 0 if there may be none.
    plausible: tuple[int, ...]
    confidence: Confidence  #: how far to rely on the number
    tree: ClusterTree | None  #: clusters, merged step by step; None of too few rows
    rank: int  #: eigenvalues above the edge: linearly independent directions
    eigenvalues: np.ndarray  #: leading ones of the cosines of rows, without diagonal
    edge: float  #: what an eigenvalue must exceed, once those above it are taken out
    null: np.ndarray  #: the largest eigenvalue of each sign-flipped copy
    n_rows: int  #: that were looked at
    n_features: int
    max_clusters: int  #: the largest number looked for

    @property
    def is_doubtful(self) -> bool:
        """Whether the number is more likely wrong than right."""
        return self.confidence is Confidence.LOW

    @property
    def may_be_one(self) -> bool:
        """Whether one cluster, or no structure, is plausible too."""
        return min(self.plausible, default=1) <= 1

    @property
    def is_capped(self) -> bool:
        """Whether the search stopped at ``max_clusters``; there may be more."""
        return self.n_clusters == self.max_clusters

    @property
    def has_few_features(self) -> bool:
        """Whether features are so few that random signs hide directions."""
        return self.n_features <= Counting.FEW_FEATURES

    def plot(self, ax: Any = None) -> Any:
        """Draw the tree, and the eigenvalues beside it in a new figure; return axes."""
        return draw(self, ax)


@parameters.usual_errors()
def select_n_clusters(
    X: Any,
    *,
    max_clusters: int = MAX_CLUSTERS,
    signed: bool = False,
    whiten: whitening.NoiseKind | Literal["auto"] | None = None,
    missing: Missing = "error",
    sample_weight: Any = None,
    random_state: Any = 0,
) -> ClusterCount:
    """Find the number of clusters.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data; also a torch tensor or another library's array, on its device.
    max_clusters : int
        The largest number to look for.
    signed : bool
        Whether opposite rows are of one cluster, as in :class:`ihgmm.IhSC`.
    whiten : {"auto", "counts", "learned"} or None
        How noise is made alike in rows and columns first, as in :class:`ihgmm.IhSC`.
    missing : {"error", "fit"}
        Whether to refuse missing cells, or fill them in as :class:`ihgmm.IhSC` does.
    sample_weight : array-like of shape (n_samples,), optional
        How much each row counts. Rows are then drawn by their weights, as many as these
        are worth: (sum of weights)² over the sum of squared weights.
    random_state : int, RandomState, Generator or None, default=0
        Seed; the same seed gives the same answer.

    Returns
    -------
    ClusterCount
        ``n_clusters``, ``plausible``, ``confidence``, ``tree``; ``plot()`` draws it.

    Notes
    -----
    Along directions that stand out from copies with random signs a tree of clusters is
    grown, and trees of halves of the rows judge it. Of more than 2,000 rows so many are
    drawn: small clusters can be missed. :doc:`/statistics` has details and errors.

    Examples
    --------
    >>> from ihgmm import make_ihgmm, select_n_clusters
    >>> X, labels = make_ihgmm(300, 100, 4, random_state=0)
    >>> found = select_n_clusters(X, random_state=0)
    >>> found.n_clusters, found.levels, found.confidence.value
    (4, (4,), 'high')
    """
    most = parameters.check_count("max_clusters", max_clusters)
    parameters.check_flag("signed", signed)
    parameters.check_choice("missing", missing, MISSING_WAYS)
    parameters.check_choice("whiten", whiten, ("auto", *whitening.NOISE_KINDS, None))
    rng = parameters.generator(random_state)
    X = check_matrix(X, missing=missing)
    data, subset = counted_rows(X, sample_weight)
    if missing == "fit":
        data = learn_filler(data)(data)
    noise = whitening.noise_to_whiten(data, whiten)
    if noise is not None:
        data = whitening.learn_whitener(data, noise, rng)(data)
    count = count_clusters(data, rng, max_clusters=most, signed=signed)
    if subset.is_everything or count.tree is None:
        return count
    leaves = np.full(subset.n_rows, -1)  # rows of weight 0 are in none
    leaves[subset.positions()] = count.tree.leaves
    return replace(count, tree=replace(count.tree, leaves=leaves))


@parameters.usual_errors()
def cluster_tree(X: Any, *, random_state: Any = 0, **options: Any) -> ClusterTree:
    """Merge clusters step by step, and find the levels at which they are stable.

    Parameters
    ----------
    X : array-like, sparse matrix, or fitted estimator
        The data, of any kind that estimators take; or a model with ``labels_`` and
        ``embedding_``, whose clusters are then the leaves.
    random_state : int, RandomState, Generator or None, default=0
        Seed; the same seed gives the same tree.
    **options
        Those of :func:`ihgmm.select_n_clusters`, which grows the tree of data.

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
    if hasattr(X, "get_params"):
        return tree_of_model(X, parameters.generator(random_state))
    tree = select_n_clusters(X, random_state=random_state, **options).tree
    if tree is None:
        raise ValueError(
            "X has too few rows that are not zero for a tree; give at least "
            f"{2 * Counting.ROWS_A_LEAF}."
        )
    return tree


def resolve(X: Matrix, rng: Generator, *, signed: bool = False) -> ClusterCount:
    """Count the clusters of an estimator that was asked to, with warnings."""
    count = count_clusters(X, rng, signed=signed)
    for text in doubts_of_count(count):
        warn(text, ClusterCountWarning)
    return count


def count_clusters(
    X: Matrix,
    rng: Generator,
    *,
    max_clusters: int = MAX_CLUSTERS,
    signed: bool = False,
    max_rows: int = Counting.ROWS,
) -> ClusterCount:
    """Find the number of clusters in data that has been checked."""
    live = X.sqnorms > 0
    if X.weights is None:
        rows = X.ops.draw_rows(live, max_rows, rng)
    else:
        # As many rows as their weights are worth; a row is drawn once at most.
        shares = to_host(X.weights * X.ops.cast_like(live, X.weights))
        shares = shares / max(shares.sum(), np.finfo(float).tiny)
        rows = np.flatnonzero(shares)
        size = int(1 / max(np.square(shares).sum(), 1 / len(shares)))
        size = min(max(size, 1), max_rows, len(rows))
        if size < len(rows):
            rows = np.sort(rng.choice(len(shares), size, replace=False, p=shares))
    few = X.take(rows).to_memory()
    with sized_threads(few.n_entries):
        count, placement = _count(few, rng, max_clusters, signed)
    if count.tree is None or placement is None or len(rows) == X.shape[0]:
        return count
    small = X.ops.xp.astype(placement(X), X.ops.xp.uint16)  # to be moved
    tree = replace(count.tree, leaves=to_host(small).astype(np.intp))
    return replace(count, tree=tree)


def _count(
    X: Matrix, rng: Generator, max_clusters: int, signed: bool
) -> tuple[ClusterCount, Placement | None]:
    """Count the clusters of few rows, none of them zero."""
    (n, p), size = X.shape, (*X.shape, max_clusters)
    # Directions beyond those clusters are seen, or the tree would grow in some only.
    wanted = max(max_clusters, MAX_CLUSTERS)
    most = min(wanted, n - 1, p)
    if most < 1:
        none = 0, (), (), Confidence.LOW, None, 0
        return ClusterCount(*none, np.zeros(1), 0.0, np.zeros(0), *size), None
    # Rows at unit length: noisy ones are not louder and hide no cluster.
    units = Scaled(X, rows=X.ops.ratio(1.0, X.ops.xp.sqrt(X.sqnorms)))
    few = p <= Counting.FEW_FEATURES
    G, least = GramOperator.of(units), p + 1 if few else 11
    pairs, rank, null, edge = count_above_noise(G, most, rng, least=least)
    if p == 1:
        rank = 1  # flips change nothing, and there is one direction to share
    wide, values = rank, pairs.values
    if few:  # signs hide some directions there
        strong = int((values >= Counting.STRONG * values[0]).sum())
        wide = max(rank, Counting.FEW_DIRECTIONS, strong)
    tree, placement = tree_of_rows(X, rank, wide, wanted, rng, signed=signed)
    answer = _answer(tree, rank, few, max_clusters)
    if tree is not None:
        tree = replace(tree, levels=answer[1])
    return ClusterCount(*answer, tree, rank, values, edge, null, *size), placement


def _answer(
    tree: ClusterTree | None, rank: int, few_features: bool, max_clusters: int
) -> tuple[int, tuple[int, ...], tuple[int, ...], Confidence]:
    """Return the number of clusters, levels, plausible numbers, and the confidence."""
    none = 1 if few_features else min(rank, 1)  # signs show little in few features
    if tree is None or not tree.splits or max_clusters == 1:
        # One cluster is all there can be, or rows are too few to tell.
        alone = tree is not None or max_clusters == 1
        number = none if alone else min(rank, max_clusters)
        return number, (), (number,), Confidence.LOW

    def likelihood(split: Split) -> float:
        price = Counting.MANY_PRICE * np.log(split.n_clusters)  # small numbers lead
        worth = Counting.AGREEMENT_WORTH * split.agreement
        return float(split.support + worth - price)

    order = sorted(tree.splits, key=likelihood, reverse=True)
    agreed = [split for split in tree.splits if split.agreement >= Counting.AGREEMENT]
    best = max(agreed, key=attrgetter("support"), default=order[0])
    # As many as directions stand out are expected under the model.
    at_rank = None if few_features else tree.split(rank)
    if at_rank is not None and at_rank.drop >= Counting.AT_RANK_DROP:
        best = at_rank if at_rank.support >= Counting.AT_RANK else best
    best = tree.splits[min(best.n_clusters, max_clusters) - 2]
    levels = [n for n in tree.levels if n <= max_clusters]
    ranked = dict.fromkeys([best.n_clusters, *levels, *(s.n_clusters for s in order)])
    shown = [n for n in ranked if n <= max_clusters][: Counting.PLAUSIBLE]
    agreement = max(split.agreement for split in tree.splits)
    others = shown[: Counting.PLAUSIBLE - 1]  # beside one cluster
    alone = rank <= 1 and not few_features
    if alone and agreement < Counting.LEAST_AGREEMENT:
        return none, (), (none,), Confidence.HIGH
    # Noise of one main direction has rows on both of its sides, and turns rows alike.
    clear = best.agreement >= Counting.AGREEMENT_OF_ONE and best.support >= Counting.LOW
    if alone and not (clear and best.gap >= Counting.LEAST_GAP):
        return none, (), (none, *others), Confidence.LOW
    perhaps_one = agreement < Counting.AGREEMENT
    if few_features or alone or (best.n_clusters == 2 and best.gap != 0):
        # Halves may cut one cloud alike, but not along gaps.
        perhaps_one = best.gap < Counting.GAP or best.agreement < Counting.AGREEMENT
    if perhaps_one:  # so do many real data with classes, so that a number is guessed
        return best.n_clusters, (), (*others, none), Confidence.LOW
    confidence = Confidence.MIDDLE
    if best.support >= Counting.HIGH:
        confidence, shown = Confidence.HIGH, shown[: len({best.n_clusters, *levels})]
    elif best.support < Counting.LOW:
        confidence = Confidence.LOW
    return best.n_clusters, tuple(levels), tuple(shown), confidence
