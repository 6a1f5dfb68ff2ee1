"""How many clusters there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.random import Generator

from ihgmm import _parameters as parameters
from ihgmm._checks import check_matrix, counted_rows
from ihgmm._display import Result, describe, draw
from ihgmm._progress import Steps
from ihgmm._warnings import ClusterCountWarning, warn
from ihgmm.matrix import Matrix, RowSubset, to_host
from ihgmm.matrix.threads import sized_threads
from ihgmm.numerics import whitening
from ihgmm.numerics.missing import MISSING_WAYS, Missing, learn_filler
from ihgmm.numerics.roots import RowsToCount, rows_to_count
from ihgmm.policy import Counting
from ihgmm.statistics.clouds import CloudComparison, UnitRows, compare_with_clouds
from ihgmm.statistics.number_evidence import (
    NumberEvidence,
    RowGraph,
    best_evidence,
    evidence_of_numbers,
    unit_cosines,
)

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

    n_clusters: int  #: the best guess; 1 when rows are no more parted than one cloud
    plausible: tuple[int, ...]  #: the likeliest numbers, three at most, best first
    confidence: Confidence  #: how far to rely on the number
    evidence: tuple[NumberEvidence, ...]  #: of each number that was tried, from 2 up
    clouds: CloudComparison  #: how modular clouds without clusters are
    n_rows: int  #: that were looked at
    max_clusters: int  #: the largest number looked for

    @property
    def lead(self) -> float:
        """By how much rows are more modular than clouds without clusters."""
        return self.clouds.lead

    @property
    def is_doubtful(self) -> bool:
        """Whether the number is more likely wrong than right."""
        return self.confidence is Confidence.LOW

    @property
    def may_be_one(self) -> bool:
        """Whether one cluster is plausible too."""
        return 1 in self.plausible

    @property
    def is_capped(self) -> bool:
        """Whether the search stopped at ``max_clusters``; there may be more."""
        return self.n_clusters == self.max_clusters

    def evidence_for(self, n_clusters: int) -> NumberEvidence | None:
        """Return the evidence for a number of clusters; None where it was not tried."""
        for evidence in self.evidence:
            if evidence.n_clusters == n_clusters:
                return evidence
        return None

    def plot(self, ax: Any = None) -> Any:
        """Draw the score of each number, and clouds beside it; return axes."""
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
    verbose: bool | int = False,
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
        How much each row counts. Of many rows some are drawn, by their weights.
    verbose : bool or int, default=False
        Whether to write how long it took (1), and each number that is tried (2).
    random_state : int, RandomState, Generator or None, default=0
        Seed of clouds and, with many rows, of those that are looked at; the same seed
        gives the same answer.

    Returns
    -------
    ClusterCount
        ``n_clusters``, ``plausible``, ``confidence``, ``evidence``; ``plot()`` draws
        it.

    See Also
    --------
    cluster_tree : Clusters within clusters, and the levels at which they are stable.

    Notes
    -----
    Rows are linked to their nearest ones by angle, and the clusters of the default are
    found for each number. The best number is the one whose clusters keep most of the
    links inside them, beyond what chance gives, and have gaps between them. The answer
    is 1 where rows, or their roots if no entry is negative, fall into parts hardly
    better than a Gaussian cloud of their mean and covariance. Of more than 600 rows so
    many are drawn, or ten for each of ``max_clusters``: small clusters can be missed.
    :doc:`/statistics` has the formulas and how often it is right.

    Examples
    --------
    >>> from ihgmm import make_ihgmm, select_n_clusters
    >>> X, labels = make_ihgmm(300, 100, 4, random_state=0)
    >>> count = select_n_clusters(X, random_state=0)
    >>> count.n_clusters, count.plausible, count.confidence.value
    (4, (4,), 'high')
    """
    options = CountOptions(
        max_clusters=max_clusters, signed=signed, columns=columns, missing=missing
    )
    rng = parameters.generator(random_state)
    rows, _ = options.rows_of(X, sample_weight, rng)

    with Steps(verbose).step("count") as say:
        return count_clusters(
            rows, rng, columns=columns, max_clusters=options.max_clusters, say=say
        )


@dataclass(frozen=True)
class CountOptions:
    """What users say of data whose clusters are counted."""

    max_clusters: int
    signed: bool
    columns: whitening.Columns
    missing: Missing

    def __post_init__(self) -> None:
        parameters.check_count("max_clusters", self.max_clusters)
        parameters.check_flag("signed", self.signed)
        parameters.check_choice("missing", self.missing, MISSING_WAYS)
        parameters.check_choice("columns", self.columns, whitening.COLUMNS)

    def rows_of(
        self, X: Any, sample_weight: Any, rng: Generator
    ) -> tuple[Matrix, RowSubset]:
        """Return the rows of data that have a weight, prepared, and which these are."""
        everything = check_matrix(X, missing=self.missing)
        everything = everything.with_signed(bool(self.signed))
        rows, subset = counted_rows(everything, sample_weight)
        if self.missing == "fit":
            rows = learn_filler(rows)(rows)

        noise = whitening.noise_of_columns(rows, self.columns)
        if noise is not None:
            rows = whitening.learn_whitener(rows, noise, rng)(rows)
        return rows, subset


def count_with_warnings(
    X: Matrix,
    rng: Generator,
    columns: whitening.Columns,
    say: Callable[[str], None],
) -> ClusterCount:
    """Count the clusters of an estimator that was asked to, and warn of doubts."""
    count = count_clusters(X, rng, columns=columns, say=say)

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
    say: Callable[[str], None] = lambda words: None,
) -> ClusterCount:
    """Find the number of clusters in data that has been checked.

    Roots are taken where columns ask for them, or where most entries are zero. At most
    ``max_rows`` rows are drawn for it, or ten for each cluster that may be found.
    """
    size = max(max_rows, Counting.ROWS_A_WANTED * max_clusters)
    sample = _draw_sample(X, size, rng)

    with sized_threads(sample.n_entries):
        return _count_in_memory(rows_to_count(sample, columns), rng, max_clusters, say)


def _draw_sample(X: Matrix, max_rows: int, rng: Generator) -> Matrix:
    """Draw rows that are not zero: few with their weights, many by their weights."""
    is_nonzero = X.sqnorms > 0
    if X.weights is None:
        return X.take(X.ops.draw_rows(is_nonzero, max_rows, rng)).to_memory()

    weights = to_host(X.weights * X.ops.cast_like(is_nonzero, X.weights))
    rows = np.flatnonzero(weights)
    if len(rows) == 0:
        return X.take(rows).to_memory()
    if len(rows) <= max_rows:
        return X.take(rows).to_memory().weighted(weights[rows])

    shares = weights / weights.sum()
    drawn = np.sort(rng.choice(len(shares), max_rows, replace=False, p=shares))
    return X.take(drawn).to_memory()


def _count_in_memory(
    rows: RowsToCount,
    rng: Generator,
    max_clusters: int,
    say: Callable[[str], None],
) -> ClusterCount:
    """Count the clusters of few rows, none of them zero."""
    X = rows.compared
    n = X.shape[0]
    weights = np.ones(n)
    if X.weights is not None:
        weights = to_host(X.weights).astype(np.float64)

    evidence: tuple[NumberEvidence, ...] = ()
    clouds = CloudComparison.of_nothing()
    if n >= 2 * Counting.ROWS_A_CLUSTER and max_clusters > 1:
        cosines = unit_cosines(X)
        graph = RowGraph.of_cosines(cosines, weights, signed=X.signed)
        evidence = evidence_of_numbers(X, graph, max_clusters, say=say)

        say("clouds")
        best = best_evidence(evidence).n_clusters
        if rows.evened is not X:
            cosines = unit_cosines(rows.evened)
            graph = RowGraph.of_cosines(cosines, weights, signed=X.signed)
        units = UnitRows.of_cosines(cosines, X.shape[1], weights, signed=X.signed)
        clouds = compare_with_clouds(units, graph, best, rng)

    answer = _answer(evidence, clouds.lead)
    return ClusterCount(
        n_clusters=answer.plausible[0],
        plausible=answer.plausible,
        confidence=answer.confidence,
        evidence=evidence,
        clouds=clouds,
        n_rows=n,
        max_clusters=max_clusters,
    )


@dataclass(frozen=True)
class _Answer:
    """How many clusters there are."""

    plausible: tuple[int, ...]  # the best first
    confidence: Confidence


def _answer(evidence: Sequence[NumberEvidence], lead: float) -> _Answer:
    """Choose the number of clusters, and the others that are plausible."""
    if not evidence:
        return _Answer(plausible=(1,), confidence=Confidence.LOW)

    peaks = _peaks(evidence)
    best = peaks[0]
    if lead < Counting.LEAD:
        # One cloud would look like this, or nearly so.
        return _Answer(
            plausible=(1,) if lead < 0 else (1, best.n_clusters),
            confidence=Confidence.MIDDLE,
        )

    runner_up = _best_of_others(evidence, best)
    confidence = _confidence(peaks, runner_up, lead)

    # Beside a number that is certain only another peak, such as a level, is plausible.
    rivals = peaks[1:2]
    if runner_up is not None and confidence is not Confidence.HIGH:
        rivals = [runner_up]
    numbers = [best.n_clusters]
    for rival in rivals:
        if best.score - rival.score < Counting.NEARLY_AS_GOOD:
            numbers.append(rival.n_clusters)
    numbers.append(max(evidence, key=attrgetter("silhouette")).n_clusters)
    if lead < Counting.CLEAR_LEAD:
        numbers = [*numbers[:2], 1]

    return _Answer(plausible=tuple(dict.fromkeys(numbers)), confidence=confidence)


def _best_of_others(
    evidence: Sequence[NumberEvidence], best: NumberEvidence
) -> NumberEvidence | None:
    """Return the best number that is not nearly the best one itself, if there is one.

    They differ by more than a quarter of the larger.
    """
    others = []
    for one in evidence:
        larger = max(one.n_clusters, best.n_clusters)
        if abs(one.n_clusters - best.n_clusters) > Counting.NEARLY_THE_SAME * larger:
            others.append(one)
    return max(others, key=attrgetter("score"), default=None)


def _confidence(
    peaks: Sequence[NumberEvidence], runner_up: NumberEvidence | None, lead: float
) -> Confidence:
    """Return how far to rely on the first of the peaks, the best number."""
    best = peaks[0]
    if len(peaks) > 1 and best.score - peaks[1].score < Counting.MARGIN:
        return Confidence.LOW

    has_gaps = best.silhouette >= Counting.CLEAR_GAPS
    stands_out = (
        runner_up is None or best.score - runner_up.score >= Counting.LEAST_LEAD
    )
    if has_gaps and stands_out and lead >= Counting.CLEAR_LEAD:
        return Confidence.HIGH
    return Confidence.MIDDLE


def _peaks(evidence: Sequence[NumberEvidence]) -> list[NumberEvidence]:
    """Return the best number, and others that rise above those between, best first.

    What is between a peak and the best number has to be lower than the peak by more
    than scores vary anyway.
    """
    best = best_evidence(evidence)
    peaks = [best]
    for one in evidence:
        first, last = sorted((one.n_clusters, best.n_clusters))
        between = [e.score for e in evidence if first <= e.n_clusters <= last]
        is_prominent = one.score - min(between) >= Counting.PROMINENT
        if one is not best and is_prominent and _is_local_peak(evidence, one):
            peaks.append(one)
    return sorted(peaks, key=lambda peak: -peak.score)


def _is_local_peak(evidence: Sequence[NumberEvidence], one: NumberEvidence) -> bool:
    """Tell whether a number is at least as good as those beside it."""
    place = evidence.index(one)
    beside = evidence[max(place - 1, 0) : place + 2]
    return one.score >= max(other.score for other in beside)
