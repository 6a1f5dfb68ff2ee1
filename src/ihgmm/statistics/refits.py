"""What fits to halves of the rows say about the labels of the other half."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from ihgmm._warnings import ignored
from ihgmm.matrix import HOST, Matrix, Ops, Tall, to_host
from ihgmm.matrix.threads import one_thread
from ihgmm.numerics.embedding import Embedding
from ihgmm.numerics.known_labels import NOTHING_KNOWN, KnownLabels
from ihgmm.numerics.matching import best_matching, confusion
from ihgmm.numerics.mixture import tied_clusters
from ihgmm.numerics.placement import Placement
from ihgmm.numerics.roots import RootColumns
from ihgmm.numerics.rules import LinearRule
from ihgmm.numerics.spectral import spectral_clustering
from ihgmm.numerics.starts import starting_members
from ihgmm.numerics.whitening import NoiseKind, learn_whitener, suited_noise
from ihgmm.policy import Doubt, Refitting, Small


@dataclass(frozen=True, eq=False)
class Refits:
    """What fits that did not see a row say about its label; zero rows have zeros."""

    stability: Tall  # (n_samples,): share of the fits that give the row its label
    doubt: Tall  # (n_samples,): mean probability of other labels
    lead: Tall  # (n_samples,): how far its label is ahead, on a scale of logarithms
    # (n_samples,): the share of the probability of its label which is left if missing
    # cells are drawn, not filled by their means; None where no cell is missing.
    kept_certainty: Tall | None
    agreement: float  # share of rows that fits to separate halves label alike


def refit_halves(
    data: Matrix,
    codes: Tall,
    k: int,
    rng: Generator,
    *,
    is_given: np.ndarray | None = None,
    roots: RootColumns | None = None,
    max_rows: int = Refitting.ROWS,
) -> Refits | None:
    """Fit halves of the rows anew and ask each fit about the rows it did not see.

    A sample of the rows is halved a few times; other rows are judged by the first two
    fits. Where clusters have few rows, four fifths of the sample are fitted at a time.

    Parameters
    ----------
    data : Matrix of shape (n_samples, n_features)
    codes : array of shape (n_samples,)
        The cluster of each row, numbered from 0.
    k : int
        Number of clusters.
    rng : Generator
        Draws the sample and its halves.
    is_given : ndarray of shape (n_samples,), optional
        Which rows have labels that were given: fits know these too.
    roots : RootColumns, optional
        How rows are rooted before they are compared, as in the fit in question.
    max_rows : int
        Rows of the sample, at most.

    Returns
    -------
    Refits or None
        None: there are too few rows for any fit.
    """
    sample = _draw_sample(data, codes, rng, is_given, roots, max_rows)
    has_many_rows = sample.n_rows >= Refitting.ROWS_A_CLUSTER * k
    n_folds = 2 if has_many_rows else 5
    n_splits = Refitting.SPLITS if has_many_rows else 1

    if sample.n_rows - sample.n_rows // n_folds - 1 <= k:
        return None

    # Fits are of few rows, for which threads would only wait for each other.
    with ignored(ConvergenceWarning), one_thread():
        splits = [
            _judge_by_folds(sample, k, n_folds, rng, sample.redrawn(seed=number))
            for number in range(n_splits)
        ]
    judges = splits[0].judges[:2]
    has_other_rows = sample.n_rows < data.shape[0]

    opinion = _for_all_rows(
        sample,
        _mean_opinion([split.opinion for split in splits]),
        _opinion_of_judges(judges, data, codes) if has_other_rows else None,
    )
    kept_certainty = None
    if data.gaps is not None:
        redrawn = data.gaps.redraw(n_splits, None) if has_other_rows else None
        redrawn_opinion = _for_all_rows(
            sample,
            _mean_opinion([split.redrawn_opinion for split in splits]),
            None if redrawn is None else _opinion_of_judges(judges, redrawn, codes),
        )
        kept_certainty = _kept_certainty(data.ops, opinion, redrawn_opinion)

    return Refits(
        stability=opinion.stability,
        doubt=opinion.doubt,
        lead=opinion.lead,
        kept_certainty=kept_certainty,
        agreement=float(np.mean([split.agreement for split in splits])),
    )


@dataclass(frozen=True, eq=False)
class _Sample:
    """The rows that are fitted and judged: some of the data, and none of them zero."""

    data: Matrix  # all rows
    rows: np.ndarray  # (n_rows,): positions of the sample in the data
    matrix: Matrix  # (n_rows, n_features)
    labels: np.ndarray  # (n_rows,): those in question
    given_labels: np.ndarray  # (n_rows,): those that fits know too, -1 elsewhere
    roots: RootColumns | None  # how fits take roots of the rows

    @property
    def n_rows(self) -> int:
        """The number of rows in the sample."""
        return len(self.rows)

    def redrawn(self, seed: int) -> Matrix | None:
        """Return the sample with missing cells drawn anew; None where none is."""
        gaps = self.data.gaps
        return None if gaps is None else gaps.redraw(seed, self.rows)

    def scatter(self, values: np.ndarray) -> Tall:
        """Return an array for all rows: values of the sample, and 0 for others."""
        lines = np.zeros(self.data.shape[0])
        lines[self.rows] = values
        return self.data.to_device(lines)


def _draw_sample(
    data: Matrix,
    codes: Tall,
    rng: Generator,
    is_given: np.ndarray | None,
    roots: RootColumns | None,
    max_rows: int,
) -> _Sample:
    """Draw the rows that are fitted and judged, with the labels that were given."""
    rows = data.ops.draw_rows(data.sqnorms > 0, max_rows, rng)
    labels = to_host(data.ops.take_rows(codes, rows))
    given_labels = np.full(len(rows), -1)
    if is_given is not None:
        given_labels = np.where(is_given[rows], labels, -1)

    return _Sample(
        data=data,
        rows=rows,
        matrix=data.take(rows),
        labels=labels,
        given_labels=given_labels,
        roots=roots,
    )


class _Opinion(NamedTuple):
    """What fits say about the labels of rows, a figure for each row."""

    stability: Tall  # share of the fits that give the row its label
    doubt: Tall  # probability of other labels
    lead: Tall  # how far the label is ahead of others


def _mean_opinion(opinions: Sequence[_Opinion]) -> _Opinion:
    """Return the mean of opinions of several fits about the same rows."""
    n = len(opinions)
    return _Opinion(
        stability=sum(opinion.stability for opinion in opinions) / n,
        doubt=sum(opinion.doubt for opinion in opinions) / n,
        lead=sum(opinion.lead for opinion in opinions) / n,
    )


def _opinion_of_judges(judges: Sequence[_Judge], rows: Matrix, codes: Tall) -> _Opinion:
    """Return the mean opinion of some fits about rows that are read block by block."""

    def work(block: Matrix, codes: Tall) -> tuple[_Opinion, tuple[()]]:
        return _mean_opinion([judge(block, codes)[1] for judge in judges]), ()

    lines, _ = rows.sweep(work, codes)
    return _Opinion._make(lines)


def _for_all_rows(
    sample: _Sample, in_sample: _Opinion, beyond_sample: _Opinion | None
) -> _Opinion:
    """Return opinions about all rows, from those about the sample and about others.

    ``beyond_sample`` has a line for each row of the data, of which those of the sample
    and of rows of zeros are not used; None where all rows are in the sample.
    """
    scattered = _Opinion._make(sample.scatter(values) for values in in_sample)
    if beyond_sample is None:
        return scattered

    data = sample.data
    is_in_sample = np.zeros(data.shape[0], dtype=bool)
    is_in_sample[sample.rows] = True

    is_beyond = (data.sqnorms > 0) & ~data.to_device(is_in_sample)
    return _Opinion._make(
        data.ops.xp.where(is_beyond, data.ops.widen(of_others), of_sample)
        for of_sample, of_others in zip(scattered, beyond_sample, strict=True)
    )


def _kept_certainty(ops: Ops, opinion: _Opinion, redrawn_opinion: _Opinion) -> Tall:
    """Return the share of the certainty of labels that is left if cells are drawn."""
    certainty = ops.clip(1 - opinion.doubt, Small.TINY, None)
    ratio = (1 - redrawn_opinion.doubt) / certainty
    return ops.clip(ratio, None, 1.0)


class _Split(NamedTuple):
    """The sample, cut into folds: each is judged by a fit of the others."""

    judges: list[_Judge]
    opinion: _Opinion
    redrawn_opinion: _Opinion  # where missing cells are drawn anew
    agreement: float  # share of rows that the first two fits label alike


def _judge_by_folds(
    sample: _Sample, k: int, n_folds: int, rng: Generator, redrawn: Matrix | None
) -> _Split:
    """Fit all rows of the sample except those of a fold, and ask about these."""
    codes = sample.matrix.to_device(sample.labels)
    opinion = np.zeros((3, sample.n_rows))
    redrawn_opinion = np.zeros((3, sample.n_rows))
    judges = []
    labels = []

    for unseen_rows in np.array_split(rng.permutation(sample.n_rows), n_folds):
        judge = _Judge.learn(sample, k, unseen_rows)
        judges.append(judge)

        labels_of_judge, new_opinion = judge(sample.matrix, codes)
        labels.append(to_host(labels_of_judge))
        for figure, new_figure in zip(opinion, new_opinion, strict=True):
            figure[unseen_rows] = to_host(new_figure)[unseen_rows]

        if redrawn is not None:
            _, new_opinion = judge(redrawn, codes)
            for figure, new_figure in zip(redrawn_opinion, new_opinion, strict=True):
                figure[unseen_rows] = to_host(new_figure)[unseen_rows]

    # Whatever the labels in question call clusters, two fits may agree.
    names = _names(labels[0], labels[1], k)
    agrees = names[labels[0]] == labels[1]

    return _Split(
        judges=judges,
        opinion=_Opinion._make(opinion),
        redrawn_opinion=_Opinion._make(redrawn_opinion),
        agreement=float(np.mean(agrees)),
    )


@dataclass(frozen=True, eq=False)
class _Judge:
    """A fit to some rows, whose clusters go by the names of the labels in question."""

    embedding: Embedding
    rule: LinearRule
    typical_length: float  # median length, as it is embedded, of rows it did not see

    @classmethod
    def learn(cls, sample: _Sample, k: int, unseen_rows: np.ndarray) -> _Judge:
        """Fit all rows of a sample except some."""
        rows = np.setdiff1d(np.arange(sample.n_rows), unseen_rows)
        known_labels = _numbered_labels(sample.given_labels[rows])
        fit = spectral_clustering(
            sample.matrix.take(rows),
            k,
            known_labels=known_labels,
            roots=sample.roots,
        )
        names = _names(to_host(fit.labels), sample.labels[rows], k)

        # Rows of the fit are longer than others in the directions of noise.
        unseen = sample.matrix
        if len(unseen_rows):
            unseen = sample.matrix.take(np.sort(unseen_rows))
        embedding = fit.placement.embedding
        embedded = to_host(embedding.coordinates(unseen)) * embedding.coordinate_weights

        return cls(
            embedding=embedding,
            rule=fit.placement.rule.in_order(np.argsort(names)),
            typical_length=float(np.median(np.linalg.norm(embedded, axis=1))) or 1.0,
        )

    def __call__(self, X: Matrix, codes: Tall) -> tuple[Tall, _Opinion]:
        """Return the labels of the fit, and its opinion about other labels, codes."""
        ops = X.ops
        xp = ops.xp

        coordinates = self.embedding.coordinates(X)
        rows = coordinates * ops.cast_like(
            self.embedding.coordinate_weights, coordinates
        )
        scores = self.rule.scores(ops, ops.unit_rows(rows))
        labels = xp.argmax(scores, axis=1)

        # Noise turns short rows more than the others.
        relative_length = ops.row_norms(rows) / self.typical_length
        belief = ops.widen(ops.clip(relative_length, Refitting.SHORTEST, 1.0))

        ahead = ops.widen(_log_odds(ops, scores, codes)) * belief
        odds = xp.exp(ops.clip(ahead * belief, -50.0, 50.0))
        opinion = _Opinion(
            stability=ops.widen(labels == codes),
            doubt=1 / (1 + odds),
            # On a scale where twice as far ahead is little more.
            lead=ops.sign_of(ahead) * xp.log(1 + xp.abs(ahead)),
        )
        return labels, opinion


def _numbered_labels(labels: np.ndarray) -> KnownLabels:
    """Return labels, -1 where not known, by the numbers of their classes, all used."""
    classes, numbers = np.unique(labels, return_inverse=True)
    if classes[-1] < 0:
        return NOTHING_KNOWN

    has_unknown_labels = classes[0] < 0
    return KnownLabels(classes=numbers - has_unknown_labels)


class LabelDoubt(NamedTuple):
    """How far labels would change if they were learnt from other rows."""

    doubt: float  # probability of other labels, over the error of a guess
    bound: float  # of it: where the doubt is next to 0, only one half was asked


def label_doubt(rows: np.ndarray, rule: LinearRule, k: int) -> LabelDoubt:
    """Return how far labels would change if learnt from other rows, and a bound.

    Clusters of each half of the rows say how probable other labels of the other half
    are, over the error of a guess. Both doubts have a geometric mean, lest one odd half
    decides. Where the first is next to 0 the other is not asked, and may be 1: hence
    the bound. With too few rows they are 0. Directions stay: it is far cheaper than
    :func:`refit_halves`.
    """
    rows = rows[: most_judged(k)]
    n = len(rows)

    n_folds = 2 if n >= Refitting.ROWS_A_CLUSTER * k else 5
    if n - n // n_folds - 1 <= k:
        return LabelDoubt(doubt=0.0, bound=0.0)

    labels = rule(HOST, rows)
    # Each half has its share of each cluster.
    folds = np.empty(n, dtype=np.intp)
    folds[np.argsort(labels, kind="stable")] = np.arange(n) % n_folds

    error_of_guess = 1 - 1 / k
    least_doubt = Doubt.LEAST * error_of_guess
    doubts: list[float] = []
    with one_thread():
        for fold in range(2):
            doubt = _doubt_of_fold(rows, labels, folds == fold, k, rule.signed)
            if doubt is not None:
                doubts.append(doubt)
            if doubts and np.sqrt(doubts[0]) < least_doubt:
                break  # whatever the other half says, no warning comes of it

    product = float(np.prod(doubts))
    geometric_mean = product ** (1 / max(len(doubts), 1))
    return LabelDoubt(
        doubt=geometric_mean / error_of_guess,
        bound=product**0.5 / error_of_guess,
    )


def _doubt_of_fold(
    rows: np.ndarray, labels: np.ndarray, is_unseen: np.ndarray, k: int, signed: bool
) -> float | None:
    """Return how probable other labels of rows are, by clusters of the other rows.

    None: these rows have no such clusters.
    """
    fitted_rows = rows[~is_unseen]
    ones = np.ones(len(fitted_rows))

    starts = starting_members(
        HOST, [fitted_rows], k, ones, signed=signed, prefer_pivots=True
    )
    fit = tied_clusters(fitted_rows, starts, ones, signed=signed)
    if fit is None:
        return None

    refitted = LinearRule(fit.coefficients, fit.intercepts, signed)
    scores = refitted.scores(HOST, rows)
    names = _names(scores[~is_unseen].argmax(axis=1), labels[~is_unseen], k)

    scores = scores[is_unseen][:, np.argsort(names)]
    log_odds = _log_odds(HOST, scores, labels[is_unseen])
    return float(np.mean(expit(-log_odds)))


def most_judged(k: int) -> int:
    """Return how many rows say how far to trust k clusters, at most."""
    return max(Doubt.ROWS, Doubt.ROWS_A_CLUSTER * k)


def calmer_noise(
    X: Matrix, placement: Placement, k: int, doubt: float
) -> NoiseKind | None:
    """Return the whitening that takes half of the doubt or more away, if one does.

    It is that of counts, or of columns that differ in noise, which many zeros mislead.
    """
    rng = np.random.default_rng(0)
    n_affordable = max(Doubt.ENTRIES // max(X.shape[1], 1), Doubt.LEAST_ROWS)
    rows = X.ops.draw_rows(X.sqnorms > 0, min(Doubt.ROWS, n_affordable), rng)
    sample = X.take(rows).weighted(None)

    kind = suited_noise(sample)
    if kind is None and _columns_differ_in_noise(sample, placement, k):
        kind = "learned"
    if kind is None:
        return None

    with ignored(UserWarning):
        whitened = learn_whitener(sample, kind, rng)(sample)
        fit = spectral_clustering(whitened, k)

    new_doubt = label_doubt(fit.sample, fit.placement.rule, k)
    return kind if new_doubt.bound < Doubt.CALMER * doubt else None


def _columns_differ_in_noise(sample: Matrix, placement: Placement, k: int) -> bool:
    """Tell whether columns of unit rows vary unlike within clusters; never of zeros."""
    units = HOST.unit_rows(sample.toarray())
    if np.mean(units == 0) > Doubt.ZEROS:
        return False

    labels = to_host(placement(sample))
    members = np.eye(k)[labels]
    cluster_sizes = np.maximum(members.sum(axis=0), 1)
    means = members.T @ units / cluster_sizes[:, None]

    variances = np.square(units - means[labels]).mean(axis=0)
    if not variances.any():
        return False

    tenth, nine_tenths = np.quantile(variances[variances > 0], (0.1, 0.9))
    return bool(nine_tenths > Doubt.UNEQUAL * tenth)


def _log_odds(ops: Ops, scores: Tall, codes: Tall) -> Tall:
    """Return how far the score of a row's label is ahead of all others, by belief."""
    is_own_score = ops.one_hot(codes, scores.shape[1], scores) > 0
    nothing = ops.xp.full_like(scores, -np.inf)
    other_scores = ops.xp.where(is_own_score, nothing, scores)
    best_other_score = ops.xp.max(other_scores, axis=1)

    return Refitting.BELIEF * (ops.pick(scores, codes) - best_other_score)


def _names(labels: np.ndarray, like: np.ndarray, k: int) -> np.ndarray:
    """Return the name of each cluster that makes labels equal to others most often."""
    return best_matching(confusion(like, labels, (k, k)))
