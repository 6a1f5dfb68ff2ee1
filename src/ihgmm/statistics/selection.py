"""How many clusters there are."""

from dataclasses import dataclass, replace
from enum import Enum
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.random import Generator

from ihgmm import _parameters as parameters
from ihgmm._checks import check_matrix, counted_rows
from ihgmm._display import Result, describe, draw
from ihgmm._warnings import ClusterCountWarning, warn
from ihgmm.matrix import Matrix, Scaled, to_host
from ihgmm.matrix.threads import sized_threads
from ihgmm.numerics import whitening
from ihgmm.numerics.eigen import GramOperator
from ihgmm.numerics.missing import MISSING_WAYS, Missing, learn_filler
from ihgmm.numerics.placement import Placement
from ihgmm.numerics.roots import roots_to_count
from ihgmm.numerics.sign_flips import count_above_noise
from ihgmm.policy import Counting
from ihgmm.statistics.tree import ClusterTree, Split
from ihgmm.statistics.tree_building import tree_of_model, tree_of_rows

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


@dataclass(frozen=True, eq=False, repr=False)
class AllInOneCluster(Result):
    """An estimator puts all rows in one cluster: no groups, or no structure."""

    count: ClusterCount


@dataclass(frozen=True, eq=False, repr=False)
class SearchStopped(Result):
    """The search stopped at the largest number; there may be more clusters."""

    count: ClusterCount


@dataclass(frozen=True, eq=False, repr=False)
class DoubtfulNumber(Result):
    """The number is more likely wrong than right."""

    count: ClusterCount


CountDoubt = AllInOneCluster | SearchStopped | DoubtfulNumber
"""Why a user who left the number to an estimator should look at it."""


def doubt_of_count(count: ClusterCount) -> CountDoubt | None:
    """Return the reason to doubt a number of clusters; None where there is none."""
    if count.n_clusters <= 1:
        return AllInOneCluster(count)
    if count.is_capped:
        return SearchStopped(count)
    if count.is_doubtful:
        return DoubtfulNumber(count)
    return None


@parameters.usual_errors()
def select_n_clusters(
    X: Any,
    *,
    max_clusters: int = MAX_CLUSTERS,
    signed: bool = False,
    columns: whitening.Columns = "auto",
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
    columns : {"auto", "given", "roots", "counts", "noise"}
        What is done to columns first, as in :class:`ihgmm.IhSC`; "auto" takes roots
        where most entries are zero.
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
    >>> count = select_n_clusters(X, random_state=0)
    >>> count.n_clusters, count.levels, count.confidence.value
    (4, (4,), 'high')
    """
    max_clusters = parameters.check_count("max_clusters", max_clusters)
    parameters.check_flag("signed", signed)
    parameters.check_choice("missing", missing, MISSING_WAYS)
    parameters.check_choice("columns", columns, whitening.COLUMNS)
    rng = parameters.generator(random_state)

    everything = check_matrix(X, missing=missing).with_signed(bool(signed))
    data, subset = counted_rows(everything, sample_weight)
    if missing == "fit":
        data = learn_filler(data)(data)
    noise = whitening.noise_of_columns(data, columns)
    if noise is not None:
        data = whitening.learn_whitener(data, noise, rng)(data)

    count = count_clusters(data, rng, columns=columns, max_clusters=max_clusters)
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


def count_with_warnings(
    X: Matrix, rng: Generator, columns: whitening.Columns
) -> ClusterCount:
    """Count the clusters of an estimator that was asked to, and warn of doubts."""
    count = count_clusters(X, rng, columns=columns)

    doubt = doubt_of_count(count)
    if doubt is not None:
        warn(describe(doubt), ClusterCountWarning)

    return count


def count_clusters(
    X: Matrix,
    rng: Generator,
    *,
    columns: whitening.Columns = "auto",
    max_clusters: int = MAX_CLUSTERS,
    max_rows: int = Counting.ROWS,
) -> ClusterCount:
    """Find the number of clusters in data that has been checked.

    Roots are taken where columns ask for them, or where most entries are zero. At most
    ``max_rows`` rows are drawn for it; the leaves of the tree are of all rows.
    """
    roots = roots_to_count(X, columns)
    if roots is not None:
        X = roots(X)

    rows = _draw_rows(X, max_rows, rng)
    sample = X.take(rows).to_memory()

    with sized_threads(sample.n_entries):
        count, placement = _count_in_memory(sample, rng, max_clusters)
    if count.tree is None or placement is None or len(rows) == X.shape[0]:
        return count

    # Leaves are few: their numbers are moved to the host as small ones.
    leaves = X.ops.xp.astype(placement(X), X.ops.xp.uint16)
    leaves = to_host(leaves).astype(np.intp)
    tree = replace(count.tree, leaves=leaves)
    return replace(count, tree=tree)


def _draw_rows(X: Matrix, max_rows: int, rng: Generator) -> np.ndarray:
    """Draw positions of rows that are not zero, by their weights if they have some."""
    is_nonzero = X.sqnorms > 0
    if X.weights is None:
        return X.ops.draw_rows(is_nonzero, max_rows, rng)

    weights = to_host(X.weights * X.ops.cast_like(is_nonzero, X.weights))
    shares = weights / max(weights.sum(), np.finfo(float).tiny)
    rows = np.flatnonzero(shares)

    # As many rows as their weights are worth; a row is drawn once at most.
    sum_of_squares = np.square(shares).sum()
    n_worth = int(1 / max(sum_of_squares, 1 / len(shares)))
    n_drawn = min(max(n_worth, 1), max_rows, len(rows))
    if n_drawn == len(rows):
        return rows

    return np.sort(rng.choice(len(shares), n_drawn, replace=False, p=shares))


def _count_in_memory(
    X: Matrix, rng: Generator, max_clusters: int
) -> tuple[ClusterCount, Placement | None]:
    """Count the clusters of few rows, none of them zero; place others in the tree."""
    n, p = X.shape

    # Directions beyond those clusters are seen, or the tree would grow in some only.
    max_directions = max(max_clusters, MAX_CLUSTERS)
    n_wanted = min(max_directions, n - 1, p)
    if n_wanted < 1:
        return _count_of_nothing(X, max_clusters), None

    # Rows at unit length: noisy ones are not louder and hide no cluster.
    units = Scaled(X, rows=X.ops.ratio(1.0, X.ops.xp.sqrt(X.sqnorms)))
    has_few_features = p <= Counting.FEW_FEATURES
    pairs, rank, null, edge = count_above_noise(
        GramOperator.of(units),
        n_wanted,
        rng,
        least=p + 1 if has_few_features else 11,
    )
    if p == 1:
        rank = 1  # flips change nothing, and there is one direction to share

    n_directions = rank
    if has_few_features:  # signs hide some directions there
        n_strong = int((pairs.values >= Counting.STRONG * pairs.values[0]).sum())
        n_directions = max(rank, Counting.FEW_DIRECTIONS, n_strong)

    tree, placement = tree_of_rows(X, rank, n_directions, max_directions, rng)

    answer = _answer(tree, rank, has_few_features, max_clusters)
    if tree is not None:
        tree = replace(tree, levels=answer.levels)
    count = ClusterCount(
        n_clusters=answer.n_clusters,
        levels=answer.levels,
        plausible=answer.plausible,
        confidence=answer.confidence,
        tree=tree,
        rank=rank,
        eigenvalues=pairs.values,
        edge=edge,
        null=null,
        n_rows=n,
        n_features=p,
        max_clusters=max_clusters,
    )
    return count, placement


def _count_of_nothing(X: Matrix, max_clusters: int) -> ClusterCount:
    """Return the count of a single row or of none, where there is nothing to see."""
    return ClusterCount(
        n_clusters=0,
        levels=(),
        plausible=(),
        confidence=Confidence.LOW,
        tree=None,
        rank=0,
        eigenvalues=np.zeros(1),
        edge=0.0,
        null=np.zeros(0),
        n_rows=X.shape[0],
        n_features=X.shape[1],
        max_clusters=max_clusters,
    )


@dataclass(frozen=True)
class _Answer:
    """How many clusters there are."""

    n_clusters: int
    plausible: tuple[int, ...]
    confidence: Confidence
    levels: tuple[int, ...] = ()


def _answer(
    tree: ClusterTree | None, rank: int, has_few_features: bool, max_clusters: int
) -> _Answer:
    """Choose the number of clusters, and the others that are plausible."""
    one_or_none = 1 if has_few_features else min(rank, 1)  # few features hide the rank
    if tree is None or not tree.splits or max_clusters == 1:
        # One cluster is all there can be, or rows are too few to tell.
        is_alone = tree is not None or max_clusters == 1
        number = one_or_none if is_alone else min(rank, max_clusters)
        return _Answer(
            n_clusters=number,
            plausible=(number,),
            confidence=Confidence.LOW,
        )

    splits = sorted(tree.splits, key=_likelihood, reverse=True)
    expected_number = None if has_few_features else rank
    best = _best_split(tree, splits[0], expected_number, max_clusters)

    levels = [n for n in tree.levels if n <= max_clusters]
    by_likelihood = [split.n_clusters for split in splits]
    numbers = dict.fromkeys([best.n_clusters, *levels, *by_likelihood])
    plausible = [n for n in numbers if n <= max_clusters][: Counting.PLAUSIBLE]
    beside_one = plausible[: Counting.PLAUSIBLE - 1]  # where there may be one cluster

    best_agreement = max(split.agreement for split in tree.splits)
    has_one_direction = rank <= 1 and not has_few_features
    if has_one_direction and best_agreement < Counting.LEAST_AGREEMENT:
        return _Answer(
            n_clusters=one_or_none,
            plausible=(one_or_none,),
            confidence=Confidence.HIGH,
        )

    # Noise of one main direction has rows on both of its sides, and turns rows alike.
    if has_one_direction and not _is_clear(best):
        return _Answer(
            n_clusters=one_or_none,
            plausible=(one_or_none, *beside_one),
            confidence=Confidence.LOW,
        )

    may_be_one = best_agreement < Counting.AGREEMENT
    has_gaps = best.n_clusters == 2 and best.gap != 0
    if has_few_features or has_one_direction or has_gaps:
        # Halves may cut one cloud alike, but not along gaps.
        may_be_one = best.gap < Counting.GAP or best.agreement < Counting.AGREEMENT
    if may_be_one:
        # Many real data with classes look like this: a number is guessed all the same.
        return _Answer(
            n_clusters=best.n_clusters,
            plausible=(*beside_one, one_or_none),
            confidence=Confidence.LOW,
        )

    confidence = Confidence.MIDDLE
    if best.support >= Counting.HIGH:
        confidence = Confidence.HIGH
        plausible = plausible[: len({best.n_clusters, *levels})]
    elif best.support < Counting.LOW:
        confidence = Confidence.LOW

    return _Answer(
        n_clusters=best.n_clusters,
        plausible=tuple(plausible),
        confidence=confidence,
        levels=tuple(levels),
    )


def _likelihood(split: Split) -> float:
    """Return how likely a number of clusters is, on a scale of logarithms."""
    price = Counting.MANY_PRICE * np.log(split.n_clusters)  # small numbers lead
    worth = Counting.AGREEMENT_WORTH * split.agreement

    return float(split.support + worth - price)


def _best_split(
    tree: ClusterTree, likeliest: Split, expected_number: int | None, max_clusters: int
) -> Split:
    """Return the evidence for the number that is chosen.

    As many as directions stand out are expected under the model, if that is known.
    """
    agreed = [split for split in tree.splits if split.agreement >= Counting.AGREEMENT]
    best = max(agreed, key=attrgetter("support"), default=likeliest)

    expected = None if expected_number is None else tree.split(expected_number)
    if expected is not None and expected.drop >= Counting.AT_RANK_DROP:
        best = expected if expected.support >= Counting.AT_RANK else best

    return tree.splits[min(best.n_clusters, max_clusters) - 2]


def _is_clear(split: Split) -> bool:
    """Tell whether clusters are clear enough where one direction alone stands out."""
    return (
        split.agreement >= Counting.AGREEMENT_OF_ONE
        and split.support >= Counting.LOW
        and split.gap >= Counting.LEAST_GAP
    )
