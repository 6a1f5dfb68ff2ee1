"""What fits to halves of the rows say about the labels of the other half."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linear_sum_assignment, nnls
from sklearn.exceptions import ConvergenceWarning

from ihgmm._warnings import ignored
from ihgmm.matrix import Matrix, Tall, namespace, to_host
from ihgmm.matrix.tall import (
    Groups,
    cast_like,
    clip,
    draw_rows,
    few_rows,
    one_hot,
    pick,
    place,
    ratio,
    row_norms,
    softmax,
    take_lines,
    unit_rows,
    widen,
)
from ihgmm.matrix.threads import one_thread
from ihgmm.numerics.embedding import Embedding
from ihgmm.numerics.gram import row_factors
from ihgmm.numerics.labels import LinearRule
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.spectral import spectral_clustering


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
    max_rows: int = 2_000,
    n_splits: int = 3,
) -> Refits | None:
    """Fit halves of the rows anew and ask each fit about the rows it did not see.

    At most ``max_rows`` rows, drawn at random, are split into halves ``n_splits``
    times; all other rows are judged by the first two fits. Where clusters have fewer
    than ten rows on average, four fifths of the rows are fitted instead, for a half of
    so few would not show them. Where cells are missing, rows are also judged with a
    draw of these cells. Zero rows are not judged: their support and position are 0.
    None is returned if there are too few rows for any fit.
    """
    live = data.sqnorms > 0
    drawn = draw_rows(live, max_rows, rng)
    part, known = data.take(drawn), to_host(few_rows(codes, drawn))
    n_folds, n_splits = (2, n_splits) if len(drawn) >= 10 * k else (5, 1)
    if len(drawn) - len(drawn) // n_folds - 1 <= k:
        return None
    total, agreement = np.zeros((len(drawn), k)), []
    judges, redrawn = [], np.zeros(len(drawn))
    position = np.full(len(drawn), np.inf)
    # Of few rows, for which threads would only wait for each other.
    with ignored(ConvergenceWarning), one_thread():
        for split in range(n_splits):
            other = _redrawn(data, split, drawn)
            folds = np.array_split(rng.permutation(len(drawn)), n_folds)
            best = []
            for unseen in folds:
                seen = np.setdiff1d(np.arange(len(drawn)), unseen)
                judge = _learn(part, known, k, seen, unseen, rng)
                scores = judge.scores(part)
                chances = to_host(judge.probabilities(scores))
                there = judge.positions(scores, part.to_device(known))
                position[unseen] = np.minimum(position, to_host(there))[unseen]
                best.append(chances.argmax(axis=1))
                total[unseen] += chances[unseen] / n_splits
                if other is not None:
                    chances = to_host(judge.probabilities(judge.scores(other)))
                    redrawn[unseen] += chances[unseen, known[unseen]] / n_splits
                judges.append(judge)
            # Whatever the labels in question call clusters, two fits may agree.
            agreement.append(np.mean(_renamed(best[0], best[1], k) == best[1]))
    # What the fits say of the rows they were made of, each of the half it was not.
    xp, n = namespace(codes), data.shape[0]
    at, own = data.to_device(_among(n, drawn)), total[np.arange(len(drawn)), known]
    support = place(data.to_device(own), at)
    disputed = place(data.to_device(total.argmax(axis=1) != known), at)
    position = place(data.to_device(position), at)
    again = None if other is None else place(data.to_device(redrawn), at)
    if len(drawn) < n:
        work = partial(_judge_block, judges[:2])
        (theirs, unlike, there), _ = data.sweep(work, codes)
        theirs = xp.where(live, widen(theirs), xp.zeros_like(support))
        support = xp.where(at, support, theirs)
        disputed = xp.where(at, disputed, unlike & live)
        there = xp.where(live, widen(there), xp.zeros_like(support))
        position = xp.where(at, position, there)
        whole = _redrawn(data, n_splits)
        if whole is not None:
            (theirs, *_), _ = whole.sweep(work, codes)
            again = xp.where(at, again, widen(theirs))
    return Refits(
        support,
        disputed,
        position,
        None if again is None else clip(ratio(again, support, 1.0), None, 1.0),
        float(np.mean(agreement)),
        float(np.mean([np.exp(judge.log_shares.max()) for judge in judges])),
    )


def _redrawn(data: Matrix, seed: int, rows: np.ndarray | None = None) -> Matrix | None:
    """Return rows, all by default, with a draw of their missing cells, if any are."""
    if data.incomplete is None or data.redraw is None:
        return None
    gaps = data.incomplete if rows is None else data.incomplete.take(rows)
    return data.redraw(gaps, seed)


# Of a row's covariance: rows that are long beside all others have next to no noise.
LEAST_FACTOR = 1e-3


@dataclass(frozen=True, eq=False)
class _Judge:
    """Gaussian clusters in an embedding, learnt from some rows, to judge others.

    Clusters share a covariance up to a factor of each row. A short row of an embedding
    is turned by its noise more than a long one: the factor of a row of length r is
    ``level + slope * (typical / r)**2``.
    """

    embedding: Embedding
    rule: LinearRule
    nearness: np.ndarray  # (k, k): 2 over squared distances of centres, 0 to itself
    log_shares: np.ndarray
    level: float
    slope: float
    typical: float

    def scores(self, X: Matrix) -> tuple[Tall, Tall]:
        """Return the scores of rows and clusters, and the factor of each row."""
        coordinates = self.embedding.coordinates(X)
        rows = coordinates * cast_like(self.embedding.weights, coordinates)
        spread = excess(row_norms(rows), self.typical)
        factors = clip(self.level + self.slope * spread, LEAST_FACTOR, None)
        return self.rule.scores(unit_rows(rows)), factors

    def probabilities(self, seen: tuple[Tall, Tall]) -> Tall:
        """Return the probability of each label for each row, of these scores."""
        scores, factors = seen
        scores = scores / factors[:, None]
        return softmax(scores + cast_like(self.log_shares, scores))

    def positions(self, seen: tuple[Tall, Tall], codes: Tall) -> Tall:
        """Return where rows are between the centre of their label and all others.

        It is 1 at the own centre and 0 halfway to another, however far centres are
        apart: where the probabilities of all rows are 1, this tells them apart.
        """
        scores, _ = seen
        xp, ahead = namespace(scores), pick(scores, codes)[:, None] - scores
        own = one_hot(codes, len(self.nearness), scores)
        # No row is more than twice as far from halfway as its centre.
        there = ahead * cast_like(take_lines(self.nearness, codes), scores) + 2 * own
        return clip(xp.min(there, axis=1), 0.0, 2.0)


def excess(lengths: Tall, typical: float) -> Tall:
    """Return ``(typical / lengths)**2``, 100 at most."""
    # Directions of rows ten times shorter than usual are noise, and that is enough.
    typical = typical if typical > 1e-290 else 1.0  # no row has a length
    return (typical / clip(widen(lengths), typical / 10, None)) ** 2


def _learn(
    part: Matrix,
    codes: np.ndarray,
    k: int,
    seen: np.ndarray,
    unseen: np.ndarray,
    rng: np.random.Generator,
) -> _Judge:
    """Fit some rows; clusters are named as the labels of these rows name them."""
    fit = spectral_clustering(part.take(seen), k, Recipe(n_init=3), rng=rng)
    embedding = fit.placement.embedding
    labels = to_host(fit.labels)
    labels = _renamed(labels, codes[seen], k)
    coordinates = to_host(embedding.coordinates(part)).astype(np.float64)
    rows = coordinates * embedding.weights
    lengths = row_norms(rows)
    # Rows that took part in the fit are longer than others in the directions of noise.
    typical = np.median(lengths[unseen if len(unseen) else seen]) or 1.0
    spread = excess(lengths[seen], np.median(lengths[seen]) or 1.0)
    found = _fit_clusters(unit_rows(rows[seen]), labels, k, spread)
    rule, nearness, shares, level, slope = found
    return _Judge(
        embedding, rule, nearness, np.log(shares), level, slope, float(typical)
    )


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
    groups = Groups.of(labels, k)
    # An absent cluster has next to no share, and its centre is nowhere.
    shares = np.maximum(groups.sizes, 1e-6) / n
    centers = np.zeros((k, m))
    np.add.at(centers, labels, rows)
    centers /= np.maximum(groups.sizes, 1)[:, None]
    residuals = rows - centers[labels]
    factors, level, slope = np.ones(n), 1.0, 0.0
    least = 1e-6 * max(float(rows.var(axis=0).mean()), 1e-12)
    for _ in range(3):  # the third round moves probabilities in the third digit
        within = residuals.T @ (residuals / factors[:, None]) / n
        # The fit pulls its covariance towards a sphere by as much.
        sphere = 0.2 * np.trace(within) / m + least
        root = cho_factor(0.8 * within + sphere * np.eye(m), lower=True)
        squares = (residuals * cho_solve(root, residuals.T).T).sum(axis=1) / m
        # Least squares with weights; rows far off count as three deviations.
        columns = np.column_stack([np.ones(n), spread]) / factors[:, None]
        found, _ = nnls(columns, np.minimum(squares / factors, 9.0))
        level, slope = found / found.sum() if found.sum() > 0 else (1.0, 0.0)
        factors = np.maximum(level + slope * spread, LEAST_FACTOR)
    coefficients = cho_solve(root, centers.T)
    squares = (centers.T * coefficients).sum(axis=0)
    distances = np.add.outer(squares, squares) - 2 * centers @ coefficients
    nearness = ratio(2.0, np.maximum(distances, 0.0))
    np.fill_diagonal(nearness, 0.0)
    rule = LinearRule(coefficients, -squares / 2)
    return rule, nearness, shares, float(level), float(slope)


def _among(n: int, positions: np.ndarray) -> np.ndarray:
    mask = np.zeros(n, dtype=bool)
    mask[positions] = True
    return mask


def _judge_block(
    judges: list[_Judge], block: Matrix, codes: Tall
) -> tuple[tuple[Tall, Tall, Tall], tuple[()]]:
    """Return the support of labels, whether another has more, and where rows are."""
    xp, seen = namespace(codes), [(judge, judge.scores(block)) for judge in judges]
    chances = sum(judge.probabilities(scores) for judge, scores in seen)
    there = [judge.positions(scores, codes) for judge, scores in seen]
    own = pick(chances, codes) / len(judges)
    disputed = xp.argmax(chances, axis=1) != codes
    return (own, disputed, reduce(xp.minimum, there)), ()


def noise_directions(
    data: Matrix, codes: Tall, k: int, rng: np.random.Generator
) -> float:
    """Return among how many equal and independent directions noise would be as spread.

    Noise of two rows is independent, so that inner products of what their centres leave
    of them show how it is spread: ``1 / sum(share**2)``, for noise that has these
    shares of its variance along its principal directions. Independent columns of one
    variance give their number, columns that go together far less.
    """
    drawn = draw_rows(data.sqnorms > 0, 2_000, rng)
    part, codes = data.take(drawn), to_host(few_rows(codes, drawn))
    sqnorms = to_host(part.sqnorms)
    # Huge rows would be all that counts; a fit shortens them as well.
    factors = row_factors(sqnorms, 1.5 * float(np.sqrt(np.median(sqnorms))))
    sums = Groups.of(codes, k).weighted_sums(part, factors)
    directions = unit_rows(sums.astype(np.float64))
    # Four hundred rows show it to a few percent; in many columns they take up memory.
    most = int(np.clip(5e7 / data.shape[1], 50, 400))
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
