"""What fits to halves of the rows say about the labels of the other half."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linear_sum_assignment, nnls
from sklearn.exceptions import ConvergenceWarning

from ihgmm._warnings import ignored
from ihgmm.matrix import HOST, Matrix, Ops, Tall, to_host
from ihgmm.matrix.threads import one_thread
from ihgmm.numerics.embedding import Embedding
from ihgmm.numerics.gram import row_factors
from ihgmm.numerics.labels import LinearRule
from ihgmm.numerics.recipe import DEFAULT, Recipe
from ihgmm.numerics.spectral import spectral_clustering
from ihgmm.policy import Labelling, Refitting, Small


@dataclass(frozen=True, eq=False)
class Refits:
    """What models that did not see a row say about its label."""

    support: Tall  # (n_samples,): the mean probability of the row's own label
    disputed: Tall  # (n_samples,): whether another label is more probable
    # (n_samples,): where the row is on the way from halfway to another centre, 0, to
    # its own centre, 1; the least over centres and models.
    position: Tall
    # (n_samples,): the share of that probability which is left if missing cells are
    # drawn, not filled by their means; None where no cell is missing.
    kept: Tall | None
    agreement: float  # share of rows that models of separate rows label alike
    largest: float  # share of rows in the largest cluster of these models


def refit_halves(
    data: Matrix,
    codes: Tall,
    k: int,
    rng: np.random.Generator,
    *,
    max_rows: int = Refitting.ROWS,
) -> Refits | None:
    """Fit halves of the rows anew and ask each fit about the rows it did not see.

    At most ``max_rows`` rows, drawn at random, are split into halves a few times; all
    other rows are judged by the first two fits. Where clusters have few rows on
    average, four fifths of the rows are fitted instead, for a half of so few would not
    show them. Where cells are missing, rows are also judged with a draw of these cells.
    Zero rows are not judged: their support and position are 0. None is returned if
    there are too few rows for any fit.
    """
    ops, live, n = data.ops, data.sqnorms > 0, data.shape[0]
    drawn = ops.draw_rows(live, max_rows, rng)
    part, known = data.take(drawn), to_host(ops.few_rows(codes, drawn))
    halves = len(drawn) >= Refitting.ROWS_A_CLUSTER * k
    n_folds, n_splits = (2, Refitting.SPLITS) if halves else (5, 1)
    if len(drawn) - len(drawn) // n_folds - 1 <= k:
        return None
    total, agreement = np.zeros((len(drawn), k)), []
    judges, redrawn, gaps = [], np.zeros(len(drawn)), data.gaps
    position = np.full(len(drawn), np.inf)
    # Of few rows, for which threads would only wait for each other.
    with ignored(ConvergenceWarning), one_thread():
        for split in range(n_splits):
            other = None if gaps is None else gaps.redraw(split, drawn)
            folds = np.array_split(rng.permutation(len(drawn)), n_folds)
            best = []
            for unseen in folds:
                seen = np.setdiff1d(np.arange(len(drawn)), unseen)
                judge = _Judge.learn(part, known, k, seen, unseen, rng)
                scores = judge.scores(part)
                chances = to_host(judge.probabilities(part.ops, scores))
                there = judge.positions(part.ops, scores, part.to_device(known))
                position[unseen] = np.minimum(position, to_host(there))[unseen]
                best.append(chances.argmax(axis=1))
                total[unseen] += chances[unseen] / n_splits
                if other is not None:
                    scores = judge.scores(other)
                    chances = to_host(judge.probabilities(other.ops, scores))
                    redrawn[unseen] += chances[unseen, known[unseen]] / n_splits
                judges.append(judge)
            # Whatever the labels in question call clusters, two fits may agree.
            agreement.append(np.mean(_renamed(best[0], best[1], k) == best[1]))
    # What the fits say of the rows they were made of, each of the half it was not.
    at = data.to_device(np.isin(np.arange(n), drawn))

    def placed(values: np.ndarray) -> Tall:
        return ops.place(data.to_device(values), at)

    support = placed(total[np.arange(len(drawn)), known])
    disputed, position = placed(total.argmax(axis=1) != known), placed(position)
    again = None if other is None else placed(redrawn)
    if len(drawn) < n:
        work, where = partial(_judge_block, judges[:2]), ops.xp.where
        (theirs, unlike, there), _ = data.sweep(work, codes)
        nothing = ops.xp.zeros_like(support)
        support = where(at, support, where(live, ops.widen(theirs), nothing))
        disputed = where(at, disputed, unlike & live)
        position = where(at, position, where(live, ops.widen(there), nothing))
        if gaps is not None:
            whole = gaps.redraw(n_splits, None)
            (theirs, *_), _ = whole.sweep(work, codes)
            again = where(at, again, ops.widen(theirs))
    if again is not None:
        again = ops.clip(ops.ratio(again, support, 1.0), None, 1.0)
    largest = float(np.mean([np.exp(judge.log_shares.max()) for judge in judges]))
    agreed = float(np.mean(agreement))
    return Refits(support, disputed, position, again, agreed, largest)


@dataclass(frozen=True, eq=False)
class _Judge:
    """Gaussian clusters in an embedding, learnt from some rows, to judge others.

    Clusters share a covariance up to a factor of each row. A short row of an embedding
    is turned by its noise more than a long one: the factor of a row of length r is
    ``level + slope * (typical / r)**2``.
    """

    embedding: Embedding
    typical: float
    rule: LinearRule
    nearness: np.ndarray  # (k, k): 2 over squared distances of centres, 0 to itself
    log_shares: np.ndarray
    level: float
    slope: float

    @classmethod
    def learn(
        cls,
        part: Matrix,
        codes: np.ndarray,
        k: int,
        seen: np.ndarray,
        unseen: np.ndarray,
        rng: np.random.Generator,
    ) -> _Judge:
        """Fit some rows; clusters are named as the labels of these rows name them."""
        recipe = Recipe(n_init=Refitting.STARTS)
        fit = spectral_clustering(part.take(seen), k, recipe, rng=rng)
        embedding = fit.placement.embedding
        labels = _renamed(to_host(fit.labels), codes[seen], k)
        coordinates = to_host(embedding.coordinates(part)).astype(np.float64)
        rows = coordinates * embedding.weights
        lengths = HOST.row_norms(rows)
        # Rows of the fit are longer than others in the directions of noise.
        typical = np.median(lengths[unseen if len(unseen) else seen]) or 1.0
        spread = _excess(HOST, lengths[seen], np.median(lengths[seen]) or 1.0)
        clusters = _fit_clusters(HOST.unit_rows(rows[seen]), labels, k, spread)
        return cls(embedding, float(typical), *clusters)

    def scores(self, X: Matrix) -> tuple[Tall, Tall]:
        """Return the scores of rows and clusters, and the factor of each row."""
        ops, coordinates = X.ops, self.embedding.coordinates(X)
        rows = coordinates * ops.cast_like(self.embedding.weights, coordinates)
        spread = _excess(ops, ops.row_norms(rows), self.typical)
        factors = self.level + self.slope * spread
        factors = ops.clip(factors, Refitting.LEAST_FACTOR, None)
        return self.rule.scores(ops, ops.unit_rows(rows)), factors

    def probabilities(self, ops: Ops, seen: tuple[Tall, Tall]) -> Tall:
        """Return the probability of each label for each row, of these scores."""
        scores, factors = seen
        scores = scores / factors[:, None]
        return ops.softmax(scores + ops.cast_like(self.log_shares, scores))

    def positions(self, ops: Ops, seen: tuple[Tall, Tall], codes: Tall) -> Tall:
        """Return where rows are between the centre of their label and all others.

        It is 1 at the own centre and 0 halfway to another, however far centres are
        apart: where the probabilities of all rows are 1, this tells them apart.
        """
        scores, _ = seen
        ahead = ops.pick(scores, codes)[:, None] - scores
        own = ops.one_hot(codes, len(self.nearness), scores)
        # No row is more than twice as far from halfway as its centre.
        nearness = ops.cast_like(ops.take_lines(self.nearness, codes), scores)
        there = ahead * nearness + 2 * own
        return ops.clip(ops.xp.min(there, axis=1), 0.0, 2.0)


def _excess(ops: Ops, lengths: Tall, typical: float) -> Tall:
    """Return ``(typical / lengths)**2``; rows that are mostly noise are all alike."""
    typical = typical if typical > Small.TINY else 1.0  # no row has a length
    lengths = ops.clip(ops.widen(lengths), typical / Refitting.SHORTEST, None)
    return (typical / lengths) ** 2


def _renamed(labels: np.ndarray, like: np.ndarray, k: int) -> np.ndarray:
    """Return labels under the names that make them equal to others most often."""
    common = np.zeros((k, k))
    np.add.at(common, (labels, like), 1)
    return np.asarray(linear_sum_assignment(common, maximize=True)[1][labels])


def _fit_clusters(
    rows: np.ndarray, labels: np.ndarray, k: int, spread: np.ndarray
) -> tuple[LinearRule, np.ndarray, np.ndarray, float, float]:
    """Fit clusters of one covariance times ``level + slope * spread`` of each row."""
    n, m = rows.shape
    sizes = np.bincount(labels, minlength=k)
    # An absent cluster has next to no share, and its centre is nowhere.
    shares = np.maximum(sizes, Small.LOAD) / n
    centers = np.zeros((k, m))
    np.add.at(centers, labels, rows)
    centers /= np.maximum(sizes, 1)[:, None]
    residuals = rows - centers[labels]
    factors, level, slope = np.ones(n), 1.0, 0.0
    least = Small.LOAD * max(float(rows.var(axis=0).mean()), Small.EXACT)
    for _ in range(Refitting.ROUNDS):
        within = residuals.T @ (residuals / factors[:, None]) / n
        # The fit pulls its covariance towards a sphere by as much.
        sphere = Labelling.PULL * np.trace(within) / m + least
        covariance = (1 - Labelling.PULL) * within + sphere * np.eye(m)
        root = cho_factor(covariance, lower=True)
        squares = (residuals * cho_solve(root, residuals.T).T).sum(axis=1) / m
        # Least squares with weights; rows far off count as some deviations.
        columns = np.column_stack([np.ones(n), spread]) / factors[:, None]
        most = Refitting.FARTHEST**2
        found, _ = nnls(columns, np.minimum(squares / factors, most))
        level, slope = found / found.sum() if found.sum() > 0 else (1.0, 0.0)
        factors = np.maximum(level + slope * spread, Refitting.LEAST_FACTOR)
    coefficients = cho_solve(root, centers.T)
    squares = (centers.T * coefficients).sum(axis=0)
    distances = np.add.outer(squares, squares) - 2 * centers @ coefficients
    nearness = HOST.ratio(2.0, np.maximum(distances, 0.0))
    np.fill_diagonal(nearness, 0.0)
    rule = LinearRule(coefficients, -squares / 2)
    return rule, nearness, np.log(shares), float(level), float(slope)


def _judge_block(
    judges: list[_Judge], block: Matrix, codes: Tall
) -> tuple[tuple[Tall, Tall, Tall], tuple[()]]:
    """Return the support of labels, whether another has more, and where rows are."""
    ops = block.ops
    seen = [(judge, judge.scores(block)) for judge in judges]
    chances = sum(judge.probabilities(ops, scores) for judge, scores in seen)
    there = [judge.positions(ops, scores, codes) for judge, scores in seen]
    own = ops.pick(chances, codes) / len(judges)
    disputed = ops.xp.argmax(chances, axis=1) != codes
    return (own, disputed, reduce(ops.xp.minimum, there)), ()


def noise_directions(
    data: Matrix, codes: Tall, k: int, rng: np.random.Generator
) -> float:
    """Return among how many equal and independent directions noise would be as spread.

    Noise of two rows is independent, so that inner products of what their centres leave
    of them show how it is spread: ``1 / sum(share**2)``, for noise that has these
    shares of its variance along its principal directions. Independent columns of one
    variance give their number, columns that go together far less.
    """
    drawn = data.ops.draw_rows(data.sqnorms > 0, Refitting.ROWS, rng)
    part, codes = data.take(drawn), to_host(data.ops.few_rows(codes, drawn))
    sqnorms = to_host(part.sqnorms)
    # Huge rows would be all that counts; a fit shortens them as well.
    longest = cast(float, DEFAULT.clip) * float(np.sqrt(np.median(sqnorms)))
    factors = row_factors(HOST, sqnorms, longest)
    groups = part.ops.groups(part.to_device(codes), k)
    directions = HOST.unit_rows(groups.weighted_sums(part, factors).astype(np.float64))
    # So few rows show it to a few percent; in many columns they take up memory.
    most = int(np.clip(Refitting.PAIR_ENTRIES / data.shape[1], 50, Refitting.PAIRS))
    few = np.sort(rng.permutation(len(drawn))[:most])
    rows = part.take(few).toarray().astype(np.float64) * factors[few, None]
    along = directions[codes[few]]
    rows -= (rows * along).sum(axis=1)[:, None] * along
    products = rows @ rows.T
    variances = np.diag(products).copy()
    np.fill_diagonal(products, 0.0)
    expected = variances.sum() ** 2 - (variances**2).sum()
    squares = float((products**2).sum())
    return float(max(expected / squares, 1.0)) if squares > 0 else float(data.shape[1])
