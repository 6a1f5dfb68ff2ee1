"""What fits to halves of the rows say about the labels of the other half."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
from ihgmm.numerics.rules import LinearRule
from ihgmm.numerics.spectral import spectral_clustering
from ihgmm.numerics.starts import starting_members
from ihgmm.numerics.whitening import NoiseKind, learn_whitener, suited_noise
from ihgmm.policy import Doubt, Refitting, Small


@dataclass(frozen=True, eq=False)
class Refits:
    """What fits that did not see a row say about its label; zero rows have zeros."""

    stays: Tall  # (n_samples,): share of the fits that give the row its label
    doubt: Tall  # (n_samples,): mean probability of other labels
    lead: Tall  # (n_samples,): how far its label is ahead, on a scale of logarithms
    # (n_samples,): the share of the probability of its label which is left if missing
    # cells are drawn, not filled by their means; None where no cell is missing.
    kept: Tall | None
    agreement: float  # share of rows that fits to separate halves label alike


def refit_halves(
    data: Matrix,
    codes: Tall,
    k: int,
    rng: Generator,
    *,
    given: np.ndarray | None = None,
    max_rows: int = Refitting.ROWS,
) -> Refits | None:
    """Fit halves of the rows anew and ask each fit about the rows it did not see.

    Some rows are halved a few times, and others judged by the first two fits; of small
    clusters four fifths are fitted. Fits are taught by labels that were ``given``.
    None: there are too few rows for any fit.
    """
    ops, xp, live, n = data.ops, data.ops.xp, data.sqnorms > 0, data.shape[0]
    drawn = ops.draw_rows(live, max_rows, rng)
    part, known = data.take(drawn), to_host(ops.take_rows(codes, drawn))
    taught = np.zeros(n, dtype=bool) if given is None else given
    lessons = np.where(taught[drawn], known, -1)
    own, gaps = part.to_device(known), data.gaps
    halves = len(drawn) >= Refitting.ROWS_A_CLUSTER * k
    n_folds, n_splits = (2, Refitting.SPLITS) if halves else (5, 1)
    if len(drawn) - len(drawn) // n_folds - 1 <= k:
        return None
    # Whether labels stay, their doubt and lead; and the doubt where cells are drawn.
    views, judges, agreement = np.zeros((4, len(drawn))), [], []
    # Of few rows, for which threads would only wait for each other.
    with ignored(ConvergenceWarning), one_thread():
        for split in range(n_splits):
            other = None if gaps is None else gaps.redraw(split, drawn)
            labels = []
            for unseen in np.array_split(rng.permutation(len(drawn)), n_folds):
                judge = _Judge.learn(part, known, k, unseen, lessons)
                best, *opinion = judge(part, own)
                views[:3, unseen] += [to_host(view)[unseen] for view in opinion]
                if other is not None:
                    views[3, unseen] += to_host(judge(other, own)[2])[unseen]
                labels.append(to_host(best))
                judges.append(judge)
            # Whatever the labels in question call clusters, two fits may agree.
            names = _names(labels[0], labels[1], k)
            agreement.append(np.mean(names[labels[0]] == labels[1]))
    at = data.to_device(np.isin(np.arange(n), drawn))
    tall = [ops.place(data.to_device(view), at) for view in views / n_splits]
    if len(drawn) < n:
        first, nothing = judges[:2], xp.zeros_like(tall[0])

        def mean_opinion(block: Matrix, codes: Tall) -> tuple[tuple[Tall, ...], Any]:
            views = zip(*(judge(block, codes)[1:] for judge in first), strict=True)
            return tuple(sum(view) / 2 for view in views), ()

        others, _ = data.sweep(mean_opinion, codes)
        if gaps is not None:
            (_, again, _), _ = gaps.redraw(n_splits, None).sweep(mean_opinion, codes)
            others = (*others, again)
        tall = [
            xp.where(at, mine, xp.where(live, ops.widen(theirs), nothing))
            for mine, theirs in zip(tall, others, strict=False)
        ]
    stays, doubt, lead, *again = tall
    kept = None
    if gaps is not None:
        sure = ops.clip(1 - doubt, Small.TINY, None)
        kept = ops.clip((1 - again[0]) / sure, None, 1.0)
    return Refits(stays, doubt, lead, kept, float(np.mean(agreement)))


@dataclass(frozen=True, eq=False)
class _Judge:
    """A fit to some rows, whose clusters go by the names of given labels."""

    embedding: Embedding
    rule: LinearRule
    typical: float  # length of rows it did not see, the median

    @classmethod
    def learn(
        cls, part: Matrix, own: np.ndarray, k: int, unseen: Any, lessons: np.ndarray
    ) -> _Judge:
        """Fit all rows but some; name clusters as the labels of these rows do."""
        seen = np.setdiff1d(np.arange(part.shape[0]), unseen)
        taught, (classes, known) = NOTHING_KNOWN, np.unique(lessons[seen], False, True)
        if classes[-1] >= 0:  # numbered without gaps, -1 where not known
            taught = KnownLabels(classes=known - (classes[0] < 0))
        fit = spectral_clustering(part.take(seen), k, known_labels=taught)
        embedding, rule = fit.placement.embedding, fit.placement.linear_rule
        names = _names(to_host(fit.labels), own[seen], k)
        # Rows of the fit are longer than others in the directions of noise.
        others = part.take(np.sort(unseen)) if len(unseen) else part
        rows = to_host(embedding.coordinates(others)) * embedding.coordinate_weights
        typical = float(np.median(np.linalg.norm(rows, axis=1))) or 1.0
        return cls(embedding, rule.in_order(np.argsort(names)), typical)

    def __call__(self, X: Matrix, codes: Tall) -> tuple[Tall, Tall, Tall, Tall]:
        """Return labels; and whether, how surely and how far the codes are ahead."""
        ops, coordinates = X.ops, self.embedding.coordinates(X)
        xp = ops.xp
        weights = ops.cast_like(self.embedding.coordinate_weights, coordinates)
        rows = coordinates * weights
        # Noise turns short rows more than the others.
        short = ops.clip(ops.row_norms(rows) / self.typical, Refitting.SHORTEST, 1.0)
        scores = self.rule.scores(ops, ops.unit_rows(rows))
        best = xp.argmax(scores, axis=1)
        ahead = ops.widen(_log_odds(ops, scores, codes)) * ops.widen(short)
        odds = xp.exp(ops.clip(ahead * ops.widen(short), -50.0, 50.0))
        # On a scale where twice as far ahead is little more.
        lead = ops.sign_of(ahead) * xp.log(1 + xp.abs(ahead))
        return best, ops.widen(best == codes), 1 / (1 + odds), lead


def label_doubt(rows: np.ndarray, rule: LinearRule, k: int) -> tuple[float, float]:
    """Return how far labels would change if learnt from other rows, and a bound.

    Clusters of each half of the rows say how probable other labels of the other half
    are, over the error of a guess. Both doubts have a geometric mean, lest one odd half
    decides. Where the first is next to 0 the other is not asked, and may be 1: hence
    the bound. With too few rows they are 0. Directions stay: it is far cheaper than
    :func:`refit_halves`.
    """
    rows = rows[: most_judged(k)]
    n, signed = len(rows), rule.signed
    n_folds = 2 if n >= Refitting.ROWS_A_CLUSTER * k else 5
    if n - n // n_folds - 1 <= k:
        return 0.0, 0.0
    labels, doubts = rule(HOST, rows), []
    # Each half has its share of each cluster.
    folds = np.empty(n, dtype=np.intp)
    folds[np.argsort(labels, kind="stable")] = np.arange(n) % n_folds
    with one_thread():
        for i in range(2):
            unseen = folds == i
            half, ones = rows[~unseen], np.ones(n - np.count_nonzero(unseen))
            starts = starting_members(
                HOST, [half], k, ones, signed=signed, prefer_pivots=True
            )
            fit = tied_clusters(half, starts, ones, signed=signed)
            if fit is None:
                continue
            own = LinearRule(fit.coefficients, fit.intercepts, signed)
            scores = own.scores(HOST, rows)
            names = _names(scores[~unseen].argmax(axis=1), labels[~unseen], k)
            scores = scores[unseen][:, np.argsort(names)]
            doubts += [np.mean(expit(-_log_odds(HOST, scores, labels[unseen])))]
            if np.sqrt(doubts[0]) < Doubt.LEAST * (1 - 1 / k):
                break  # whatever the other half says, no warning comes of it
    both = float(np.prod(doubts))
    return both ** (1 / max(len(doubts), 1)) / (1 - 1 / k), both**0.5 / (1 - 1 / k)


def most_judged(k: int) -> int:
    """Return how many rows say how far to trust k clusters, at most."""
    return max(Doubt.ROWS, Doubt.ROWS_A_CLUSTER * k)


def calmer_noise(
    X: Matrix, placement: Placement, k: int, doubt: float, *, signed: bool
) -> NoiseKind | None:
    """Return the whitening that takes half of the doubt or more away, if one does.

    It is that of counts, or of columns that differ in noise, which many zeros mislead.
    """
    most = max(Doubt.ENTRIES // max(X.shape[1], 1), Doubt.LEAST_ROWS)
    rng = np.random.default_rng(0)
    rows = X.ops.draw_rows(X.sqnorms > 0, min(Doubt.ROWS, most), rng)
    few = X.take(rows).weighted(None)
    kind = suited_noise(few)
    if kind is None:
        units = HOST.unit_rows(few.toarray())
        labels = to_host(placement(few))
        members = np.eye(k)[labels]
        means = members.T @ units / np.maximum(members.sum(axis=0), 1)[:, None]
        variances = np.square(units - means[labels]).mean(axis=0)
        loud = variances[variances > 0] if variances.any() else np.ones(1)
        low, high = np.quantile(loud, (0.1, 0.9))
        if np.mean(units == 0) > Doubt.ZEROS or high <= Doubt.UNEQUAL * low:
            return None
        kind = "learned"
    with ignored(UserWarning):
        fit = spectral_clustering(learn_whitener(few, kind, rng)(few), k, signed=signed)
    _, calmer = label_doubt(fit.sample, fit.placement.linear_rule, k)
    return kind if calmer < Doubt.CALMER * doubt else None


def _log_odds(ops: Ops, scores: Tall, codes: Tall) -> Tall:
    """Return how far the score of a row's label is ahead of all others, by belief."""
    xp, own = ops.xp, ops.one_hot(codes, scores.shape[1], scores)
    others = xp.where(own > 0, xp.full_like(scores, -np.inf), scores)
    return Refitting.BELIEF * (ops.pick(scores, codes) - xp.max(others, axis=1))


def _names(labels: np.ndarray, like: np.ndarray, k: int) -> np.ndarray:
    """Return the name of each cluster that makes labels equal to others most often."""
    return best_matching(confusion(like, labels, (k, k)))
