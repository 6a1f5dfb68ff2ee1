"""Rows that fit no cluster: how strange a row is, and from where on it is an outlier.

It may have more *noise*, which is what the nearest centre leaves of it, than rows as
long as it, or be *short* along that centre, for its noise; docs/outliers.md says why.
"""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.stats import poisson

from ihgmm._parameters import option
from ihgmm.matrix import HOST, Matrix, Ops, Tall, to_host
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.spectral import spectral_clustering
from ihgmm.policy import Outliers
from ihgmm.statistics.ordinary_rows import (
    LEVELS,
    ClusterLines,
    MeasuredRows,
    OrdinaryRows,
    leading_lengths,
)


@dataclass(frozen=True, eq=False)
class OutlierRule:
    """A map from rows to how strange they are."""

    lines: ClusterLines  # of rows that are no outliers
    ordinary: OrdinaryRows  # what is ordinary in these
    threshold: float  # scores above it are those of outliers

    def scores(self, X: Matrix) -> Tall:
        """Return scores: at 3 one row in 1,000 is as strange; 0 for zero rows."""

        def work(ops: Ops, coordinates: Tall, sqnorms: Tall) -> Tall:
            rows = self.lines.measure(ops, coordinates, sqnorms, X.unit)
            return ops.to_device(self.ordinary.scores(rows), sqnorms)

        coordinates = self.lines.embedding.coordinates(X)
        scores = X.ops.row_map(work, coordinates, X.sqnorms, width=len(LEVELS))
        return X.ops.persist(scores)

    def __call__(self, X: Matrix) -> Tall:
        """Tell which rows are outliers."""
        return self.scores(X) > self.threshold


def find_outliers(
    X: Matrix,
    n_clusters: int,
    outliers: float | Literal["auto"],
    *,
    rng: Generator,
    max_rows: int = 2**15,
) -> OutlierRule:
    """Find out which rows fit no cluster; a copy of ``rng`` draws ``max_rows`` rows.

    A round clusters the rows that the last one has left, learns from these what is
    strange, and looks at all rows, until the same rows are found again.

    Parameters
    ----------
    X : Matrix of shape (n_samples, n_features)
    n_clusters : int
    outliers : float or "auto"
        The share of rows, of those that are not zero, to leave out; or "auto" for those
        that are too strange to be rows of clusters.
    rng : Generator
        Draws rows where there are many.
    max_rows : int
        Rows that the rule is learnt from, at most.
    """
    n_nonzero = int(X.ops.number(X.ops.xp.count_nonzero(X.sqnorms > 0)))
    n_outliers = None if outliers == "auto" else round(float(outliers) * n_nonzero)

    if X.shape[0] > max_rows:
        drawn_rows = deepcopy(rng).choice(X.shape[0], max_rows, replace=False)
        sample = X.keep_rows(np.sort(drawn_rows))
        rule = find_outliers(sample, n_clusters, outliers, rng=rng)
        return _for_all_rows(rule, X, n_outliers, max_rows)

    # A fit needs more rows than clusters to compare them with each other.
    if n_outliers is not None and n_nonzero - n_outliers <= n_clusters:
        raise ValueError(
            f"{option('outliers', outliers)} leaves {n_nonzero - n_outliers} of "
            f"{n_nonzero} rows for {n_clusters} clusters; give a smaller share or "
            "fewer clusters."
        )

    most_outliers = min(n_nonzero // 2, n_nonzero - n_clusters)
    return _learn_in_rounds(X, n_clusters, n_outliers, most_outliers)


def _for_all_rows(
    rule: OutlierRule, X: Matrix, n_outliers: int | None, n_drawn: int
) -> OutlierRule:
    """Return the rule of some rows with a threshold that suits all rows."""
    if n_outliers is not None:
        threshold = _between(X.ops, rule.scores(X), n_outliers)
        return replace(rule, threshold=threshold)

    if rule.threshold >= _lone_score(n_drawn):
        return replace(rule, threshold=_lone_score(X.shape[0]))
    return rule


class _Choice(NamedTuple):
    """Which rows are outliers."""

    threshold: float  # scores above it are those of outliers
    weights: np.ndarray  # (n_samples,): how much rows count as rows of clusters


def _learn_in_rounds(
    X: Matrix, n_clusters: int, n_outliers: int | None, most_outliers: int
) -> OutlierRule:
    """Cluster rows without outliers, and find outliers by them, until these stay.

    There are ``n_outliers``, or, if it is None, up to ``most_outliers``.
    """
    n = X.shape[0]
    sqnorms = to_host(X.sqnorms)
    is_inside = np.ones(n, dtype=bool)
    choice = _Choice(threshold=np.inf, weights=np.ones(n))

    for number in range(Outliers.ROUNDS):
        lines = _fit_lines(X, is_inside, n_clusters)
        coordinates = to_host(lines.embedding.coordinates(X))
        rows = lines.measure(HOST, coordinates, sqnorms, X.unit)

        weights = choice.weights * (rows.noise > 0)
        if number == 0:
            ordinary = _first_look(rows, lines)
        else:
            ordinary = _learn(rows, lines, noise_weights=weights)

        scores = ordinary.scores(rows)
        if n_outliers is None:
            choice = _choose_strangest(scores, float(weights.sum()), most_outliers)
        else:
            choice = _choose_number(scores, n_outliers)

        was_inside = is_inside
        is_inside = scores <= choice.threshold
        if number > 0 and (is_inside == was_inside).all():
            break

    return OutlierRule(lines=lines, ordinary=ordinary, threshold=choice.threshold)


def _fit_lines(X: Matrix, is_inside: np.ndarray, n_clusters: int) -> ClusterLines:
    """Cluster some of the rows; return the directions of clusters."""
    data = X if is_inside.all() else X.keep_rows(np.flatnonzero(is_inside))
    fit = spectral_clustering(data, n_clusters, Recipe(neighbors=False))

    embedding = fit.placement.embedding
    labels = to_host(fit.labels)
    rows = to_host(fit.coordinates).astype(np.float64) * leading_lengths(embedding)
    if X.signed:
        clusters = [rows[labels == label] for label in range(n_clusters)]
        centers = np.array([_longest_direction(cluster) for cluster in clusters])
    else:
        members = np.eye(n_clusters)[labels]
        centers = HOST.unit_rows(members.T @ rows)

    return ClusterLines(embedding=embedding, centers=centers, signed=X.signed)


def _longest_direction(rows: np.ndarray) -> np.ndarray:
    """Return the direction along which rows are longest."""
    _, vectors = np.linalg.eigh(rows.T @ rows)
    return np.asarray(vectors[:, -1])


def _learn(
    rows: MeasuredRows,
    lines: ClusterLines,
    *,
    noise_weights: np.ndarray,
    length_weights: np.ndarray | None = None,
) -> OrdinaryRows:
    """Learn what is ordinary from rows that count by weights: one kind, or two."""
    return OrdinaryRows.learn(
        rows,
        len(lines.centers),
        noise_weights=noise_weights,
        length_weights=noise_weights if length_weights is None else length_weights,
        least_tail=lines.least_tail,
    )


def _first_look(rows: MeasuredRows, lines: ClusterLines) -> OrdinaryRows:
    """Learn what is ordinary from the rows that surely belong to clusters.

    Noise is ordinary up to the first jump beyond the median that an exponential tail
    does not make. Rows far off show before the noise expected at a length is known,
    which they may spoil. Others show by it: that of counts grows with the length.
    """
    weights = (rows.noise > 0).astype(float)
    ordinary = _learn(rows, lines, noise_weights=weights)

    for at_length in (False, True):
        noise = rows.log_noise - ordinary.median_log_noise[rows.labels]
        if at_length:
            lengths = rows.lengths / ordinary.median_lengths[rows.labels]
            noise -= np.interp(lengths, *ordinary.noise_by_length)

        jump = _first_jump(np.sort(noise[weights > 0]), lines.least_tail)
        if jump is not None:
            weights = weights * (noise < jump)
            ordinary = _learn(rows, lines, noise_weights=weights)

    # Short rows may be outliers: they say nothing of noise.
    lengths = np.where(weights > 0, ordinary.median_lengths[rows.labels], 1.0)
    surprise = ordinary.length_surprise(rows.lengths / lengths, rows.noise / lengths)
    is_long = surprise <= np.log(Outliers.SHORT)
    return _learn(rows, lines, noise_weights=weights * is_long, length_weights=weights)


def _first_jump(values: np.ndarray, least_tail: float) -> float | None:
    """Return the first of sorted values, beyond the median, that is far above others.

    It is more mean excesses over the upper quartile, of the values below it, above this
    quartile than a tail that falls exponentially has.
    """
    first_place = max(len(values) // 2, 4)
    places = np.arange(first_place, len(values))
    quartiles = (0.75 * places).astype(int)  # of the values below each place

    sums = np.append(0.0, np.cumsum(values))
    n_above = np.maximum(places - quartiles - 1, 1)
    mean_above = (sums[places] - sums[quartiles + 1]) / n_above
    excess = np.maximum(mean_above - values[quartiles], least_tail)

    thresholds = values[quartiles] + Outliers.JUMP * excess
    is_jump = values[places] > thresholds
    if not is_jump.any():
        return None

    place = places[is_jump.argmax()]
    return float(values[place])


def _choose_number(scores: np.ndarray, n_outliers: int) -> _Choice:
    """Choose as many of the strangest rows as there are to be outliers."""
    threshold = _between(HOST, scores, n_outliers)
    weights = (scores <= threshold).astype(float)
    return _Choice(threshold=threshold, weights=weights)


def _choose_strangest(scores: np.ndarray, n_of_clusters: float, most: int) -> _Choice:
    """Choose rows that are too strange, or too many, to be rows of clusters.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
    n_of_clusters : float
        About how many rows are rows of clusters.
    most : int
        The largest number of outliers.
    """
    n = len(scores)
    order = np.argsort(-scores, kind="stable")
    n_expected = n_of_clusters * 10 ** -scores[order]  # rows of clusters as strange

    n_so_far = np.arange(1, n + 1)
    n_lone = np.count_nonzero(scores > _lone_score(n_of_clusters))
    n_certain = min(int(n_lone), most)
    n_more = n_so_far - n_certain

    chance = poisson.sf(n_more - 1, n_expected)
    are_too_many = n_more > Outliers.TIMES * n_expected
    are_too_many &= n_so_far <= most
    are_too_many &= n_expected <= Outliers.STRANGEST * n_of_clusters
    are_too_many &= chance < Outliers.CHANCE

    n_chosen = n_certain
    if are_too_many.any():
        gains = n_more - Outliers.LAST_TIMES * n_expected
        gains = np.where(are_too_many, gains, -np.inf)
        n_chosen = int(gains.argmax()) + 1

    # Outliers may be rows of clusters, and count as such by the odds: without them the
    # rows that are left would seem ever more alike, and others strange.
    odds = n_expected / (2 * np.maximum(n_more, 1))
    odds[n_more <= 0] = 0.0
    weights = np.ones(n)
    weights[order[:n_chosen]] = np.minimum(odds[:n_chosen], 1.0)

    threshold = min(_between(HOST, scores, n_chosen), _lone_score(n))
    return _Choice(threshold=threshold, weights=weights)


def _lone_score(n_rows: float) -> float:
    """Return the score of a row so strange that n rows of clusters have few such."""
    return float(np.log10(n_rows / Outliers.ALONE))


def _between(ops: Ops, scores: Tall, count: int) -> float:
    """Return a number between the so many largest scores and the others."""
    n = scores.shape[0]
    if count == 0:
        return np.inf
    if count == n:
        return -np.inf
    positions = np.array([n - count - 1, n - count])
    neighbors = ops.in_order(scores, positions)
    return float(neighbors.mean())
