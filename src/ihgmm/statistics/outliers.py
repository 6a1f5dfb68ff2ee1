"""Rows that fit no cluster: how strange a row is, and from where on it is an outlier.

It may have more *noise*, which is what the nearest centre leaves of it, than rows as
long as it, or be *short* along that centre, for its noise; docs/outliers.md says why.
"""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr
from scipy.stats import poisson

from ihgmm._parameters import option
from ihgmm.matrix import HOST, Matrix, Ops, Tall, to_host
from ihgmm.numerics.embedding import Embedding
from ihgmm.numerics.spectral import spectral_clustering
from ihgmm.policy import Outliers, Small

_LEVELS = (np.arange(Outliers.QUANTILES) + 0.5) / Outliers.QUANTILES


class _Rows(NamedTuple):
    """Rows as they appear from the nearest centre."""

    along: np.ndarray  # lengths along it
    noise: np.ndarray  # noise levels; 0 for zero rows
    logs: np.ndarray  # of these; minus infinity for zero rows
    labels: np.ndarray  # numbers of the centres


@dataclass(frozen=True, eq=False)
class OutlierRule:
    """A map from rows to how strange they are, in units of their cluster's median."""

    embedding: Embedding  # of rows that are no outliers
    centers: np.ndarray  # directions of clusters in it, of unit norm
    lengths: np.ndarray  # of the median row of each
    noises: np.ndarray  # its log noise level
    # Of all rows: lengths, noise less that expected at a length, and the latter.
    length_quantiles: np.ndarray
    noise_quantiles: np.ndarray
    knots: np.ndarray
    tail: float  # mean excess of noise over its quartile
    noise_share: float  # noise over length, median row
    threshold: float = np.inf  # outliers are above it
    signed: bool = False  # opposite directions are one

    def scores(self, X: Matrix) -> Tall:
        """Return scores: at 3 one row in 1,000 is as strange; 0 for zero rows."""
        seen_from = self.embedding, self.centers, self.signed, X.unit

        def work(ops: Ops, coordinates: Tall, sqnorms: Tall) -> Tall:
            rows = _measure(ops, coordinates, sqnorms, seen_from)
            return ops.to_device(self._score(rows), sqnorms)

        given = self.embedding.coordinates(X), X.sqnorms
        return X.ops.persist(X.ops.row_map(work, *given, width=len(_LEVELS)))

    def __call__(self, X: Matrix) -> Tall:
        """Tell which rows are outliers."""
        return self.scores(X) > self.threshold

    def _score(self, rows: _Rows) -> np.ndarray:
        unit, live = self.lengths[rows.labels], rows.noise > 0
        length = rows.along / unit
        # Minus the log of the share of rows with so much noise. Beyond the upper
        # quartile it falls exponentially: noise as heavy as a power law, such as
        # Student's t, falls no slower.
        noise = np.where(live, rows.logs, 0.0) - self.noises[rows.labels]
        excess = noise - np.interp(length, *self.knots)
        quartile = np.interp(0.75, _LEVELS, self.noise_quantiles)
        below = np.interp(excess, self.noise_quantiles, _LEVELS)
        far = (excess - quartile) / self.tail - np.log(0.25)
        surprise = np.where(excess > quartile, far, -np.log1p(-below))
        surprise += self._length_surprise(length, rows.noise / unit)
        # Two independent shares, each uniform, have a product below exp(-surprise) in
        # this share of rows.
        return np.where(live, (surprise - np.log1p(surprise)) / np.log(10), 0.0)

    def _length_surprise(self, length: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Return minus the log of the share of rows so short, at their noise."""
        known, own = self.length_quantiles, self.noise_share
        # More noise than others have may make a row shorter, or longer, by as much, and
        # a part of the noise smooths the quantiles.
        smooth = (own / Outliers.SMOOTHING) ** 2
        width = np.sqrt(np.maximum(noise**2 - own**2, 0.0) + smooth)
        steps = (length[:, None] - known) / np.maximum(width, Small.ROUNDING)[:, None]
        share = np.log(np.maximum(ndtr(steps).mean(axis=1), np.finfo(float).tiny))
        # No fewer rows are short than an exponential tail has.
        tenth = np.interp(0.1, _LEVELS, known)
        shorter = known[known < tenth]
        shortfall = float((tenth - shorter).mean()) if len(shorter) else 0.0
        least = np.log(0.1) + (length - tenth) / max(shortfall, Small.ROUNDING)
        return -np.where(length < tenth, np.maximum(share, least), share)


def find_outliers(
    X: Matrix,
    n_clusters: int,
    outliers: float | Literal["auto"],
    *,
    signed: bool = False,
    rng: Generator,
    max_rows: int = 2**15,
) -> OutlierRule:
    """Find out which rows fit no cluster; a copy of ``rng`` draws ``max_rows`` rows.

    A round clusters the rows that the last one has left, learns from these what is
    strange, and looks at all rows, until the same rows are found again.
    """
    n, ops, automatic = X.shape[0], X.ops, outliers == "auto"
    n_live = int(ops.number(ops.xp.count_nonzero(X.sqnorms > 0)))
    count = 0 if automatic else round(float(outliers) * n_live)
    if n > max_rows:
        part = X.keep_rows(np.sort(deepcopy(rng).choice(n, max_rows, replace=False)))
        rule = find_outliers(part, n_clusters, outliers, signed=signed, rng=rng)
        if not automatic:
            return replace(rule, threshold=_between(ops, rule.scores(X), count))
        alone = rule.threshold >= _alone(max_rows)
        return replace(rule, threshold=_alone(n)) if alone else rule
    # A fit needs more rows than clusters to compare them with each other.
    if not automatic and n_live - count <= n_clusters:
        raise ValueError(
            f"{option('outliers', outliers)} leaves {n_live - count} of {n_live} rows "
            f"for {n_clusters} clusters; give a smaller share or fewer clusters."
        )
    inside, weights, sqnorms = np.ones(n, dtype=bool), np.ones(n), to_host(X.sqnorms)
    for i in range(Outliers.ROUNDS):
        rest = X if inside.all() else X.keep_rows(np.flatnonzero(inside))
        fit = spectral_clustering(rest, n_clusters, signed=signed)
        embedding, labels = fit.placement.embedding, to_host(fit.labels)
        lines = to_host(fit.coordinates).astype(np.float64) * _roots(embedding)
        if signed:  # along which the rows of a cluster are longest
            groups = [lines[labels == j] for j in range(n_clusters)]
            centers = np.array([np.linalg.eigh(A.T @ A)[1][:, -1] for A in groups])
        else:
            centers = HOST.unit_rows(np.eye(n_clusters)[labels].T @ lines)
        seen_from = embedding, centers, signed, X.unit
        rows = _measure(HOST, to_host(embedding.coordinates(X)), sqnorms, seen_from)
        counted = weights * (rows.noise > 0)
        known = _start(embedding, centers, rows) if i == 0 else (counted, counted)
        rule = _learn(embedding, centers, rows, known)
        scores = rule._score(rows)
        if automatic:
            most = min(n_live // 2, n_live - n_clusters)
            chosen, weights = _choose(scores, float(counted.sum()), most)
            threshold = min(_between(HOST, scores, chosen), _alone(n))
        else:
            threshold = _between(HOST, scores, count)
            weights = (scores <= threshold).astype(float)
        before, inside = inside, scores <= threshold
        if i and (inside == before).all():
            break
    return replace(rule, threshold=threshold, signed=signed)


def _alone(n_rows: float) -> float:
    """Return the score of a row so strange that n rows of clusters have few such."""
    return float(np.log10(n_rows / Outliers.ALONE))


def _between(ops: Ops, scores: Tall, count: int) -> float:
    """Return a number between the so many largest scores and the others."""
    n = scores.shape[0]
    if count in (0, n):
        return np.inf if count == 0 else -np.inf
    return float(ops.in_order(scores, np.array([n - count - 1, n - count])).mean())


def _choose(scores: np.ndarray, n_rows: float, most: int) -> tuple[int, np.ndarray]:
    """Return how many of the strangest rows are outliers, and how much rows count."""
    order = np.argsort(-scores, kind="stable")
    expected = n_rows * 10 ** -scores[order]  # rows of clusters that are as strange
    so_far = np.arange(1, len(scores) + 1)
    sure = min(int(np.count_nonzero(scores > _alone(n_rows))), most)
    more = so_far - sure
    many = (more > Outliers.TIMES * expected) & (so_far <= most)
    many &= expected <= Outliers.STRANGEST * n_rows
    many &= poisson.sf(more - 1, expected) < Outliers.CHANCE
    gain = np.where(many, more - Outliers.LAST_TIMES * expected, -np.inf)
    count = int(gain.argmax()) + 1 if many.any() else sure
    # Outliers may be rows of clusters, and count as such by the odds: without them the
    # rows that are left would seem ever more alike, and others strange.
    odds = np.where(more > 0, expected / (2 * np.maximum(more, 1)), 0.0)
    weights = np.ones(len(scores))
    weights[order[:count]] = np.minimum(odds[:count], 1.0)
    return count, weights


def _roots(embedding: Embedding) -> np.ndarray:
    """Return what makes lengths along the leading directions of coordinates."""
    return np.asarray(np.sqrt(np.maximum(embedding.eigenvalues, 0.0)))


def _measure(ops: Ops, coordinates: Tall, sqnorms: Tall, seen_from: Any) -> _Rows:
    """Look at rows, in some unit, from the nearest of the centres in an embedding."""
    embedding, centers, signed, unit = seen_from
    along = coordinates @ ops.cast_like((_roots(embedding) * centers).T, coordinates)
    along = ops.xp.abs(along) if signed else along
    labels = ops.to_host(ops.xp.argmax(along, axis=1))
    sqnorms = ops.to_host(sqnorms) * (unit / embedding.unit) ** 2
    along = ops.to_host(ops.xp.max(along, axis=1)).astype(np.float64)
    along *= np.sqrt(sqnorms)  # coordinates are those of unit rows
    # No row fits its centre better than that; else nothing could be compared with rows
    # that are free of noise.
    left = sqnorms - np.maximum(along, 0.0) ** 2
    left = np.maximum(left, Outliers.LEAST_NOISE * sqnorms)
    noise = np.sqrt(left / max(len(embedding.directions) - 1, 1))
    with np.errstate(divide="ignore"):
        return _Rows(along, noise, np.log(noise), labels)


def _start(
    embedding: Embedding, centers: np.ndarray, rows: _Rows
) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows surely belong to clusters, and which have ordinary noise."""
    live = (rows.noise > 0).astype(float)
    rule = _learn(embedding, centers, rows, (live, live))
    # Noise is ordinary up to the first jump beyond the median that an exponential tail
    # does not make. Rows far off show before the noise expected at a length is known,
    # which they may spoil. Others show by it: that of counts grows with the length.
    for at_length in (False, True):
        noise = rows.logs - rule.noises[rows.labels]
        if at_length:
            noise -= np.interp(rows.along / rule.lengths[rows.labels], *rule.knots)
        values = np.sort(noise[live > 0])
        below = np.arange(max(len(values) // 2, 4), len(values))
        quarter = (0.75 * below).astype(int)
        sums = np.append(0.0, np.cumsum(values))
        excess = (sums[below] - sums[quarter + 1]) / np.maximum(below - quarter - 1, 1)
        excess = np.maximum(excess - values[quarter], _least_tail(embedding))
        jumps = values[below] > values[quarter] + Outliers.JUMP * excess
        if jumps.any():
            live = live * (noise < values[below[jumps.argmax()]])
            rule = _learn(embedding, centers, rows, (live, live))
    unit = np.where(live > 0, rule.lengths[rows.labels], 1.0)
    short = rule._length_surprise(rows.along / unit, rows.noise / unit)
    return live * (short <= np.log(Outliers.SHORT)), live


def _learn(
    embedding: Embedding, centers: np.ndarray, rows: _Rows, counts: tuple[Any, Any]
) -> OutlierRule:
    """Learn from rows what is ordinary; two weights say how much each row counts."""
    (along, rest, logs, labels), (for_noise, for_length) = rows, counts
    lengths = _by_cluster(along, for_length, labels, len(centers))
    # Rows may have nothing but noise along all centres.
    least = Outliers.LEAST_LENGTH * max(lengths.max(), rest.max())
    lengths = np.maximum(lengths, least)
    noises = _by_cluster(logs, for_noise, labels, len(centers))
    relative, some, full = along / lengths[labels], for_noise > 0, for_length > 0
    length, weights = relative[some], for_noise[some]
    noise = (logs - noises[labels])[some]
    knots = _noise_by_length(length, noise, weights)
    excess = noise - np.interp(length, *knots)
    over = np.maximum(excess - _quantiles(excess, weights, 0.75), 0.0)
    tail = (weights * over).sum() / max(weights[over > 0].sum(), Small.TINY)
    of_lengths = _quantiles(relative[full], for_length[full], _LEVELS)
    of_noise = _quantiles(excess, weights, _LEVELS)
    tail = max(float(tail), _least_tail(embedding))
    share = float(_quantiles((rest / lengths[labels])[some], weights, 0.5))
    clusters = embedding, centers, lengths, noises
    return OutlierRule(*clusters, of_lengths, of_noise, knots, tail, share)


def _noise_by_length(
    length: np.ndarray, noise: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return some lengths, and the noise that is expected there."""
    # Medians of a few ranges of the longer half of the rows. Among shorter rows may be
    # outliers: they are expected to have as much noise as the median row, or more,
    # where noise falls as rows get longer, as it does where all rows have one norm.
    long = length >= _quantiles(length, weights, 0.5)
    length, noise, weights = length[long], noise[long], weights[long]
    n_ranges = min(max(int(weights.sum() // Outliers.ROWS_A_RANGE), 1), Outliers.RANGES)
    edges = _quantiles(length, weights, np.arange(1, n_ranges) / n_ranges)
    ranges, knots = np.searchsorted(edges, length), []
    for part in (ranges == j for j in np.unique(ranges)):
        both = length[part], noise[part]
        knots.append([_quantiles(values, weights[part], 0.5) for values in both])
    if len(knots) < 3:
        return np.transpose(knots[:1])
    lengths, levels = np.transpose(knots)
    slope, level = np.polyfit(lengths, levels, 1)
    return np.transpose([[0.0, level], *knots] if slope < 0 else knots)


def _least_tail(embedding: Embedding) -> float:
    """Return half of the tail of log noise levels where noise is Gaussian and alike."""
    # They have standard error 1 / sqrt(2 * p), and 0.6 of that is the mean excess of a
    # normal distribution over its upper quartile.
    return float(0.3 / np.sqrt(2 * embedding.directions.shape[0]))


def _by_cluster(
    values: np.ndarray, weights: np.ndarray, labels: np.ndarray, k: int
) -> np.ndarray:
    """Return weighted medians of clusters; few rows count with some of all clusters."""
    some, prior = weights > 0, Outliers.PRIOR_ROWS
    values, weights, labels = values[some], weights[some], labels[some]
    overall = float(_quantiles(values, weights, 0.5))
    medians = np.full(k, overall)
    for j in np.unique(labels):
        own, size = labels == j, weights[labels == j].sum()
        median = _quantiles(values[own], weights[own], 0.5)
        medians[j] = (size * median + prior * overall) / (size + prior)
    return medians


def _quantiles(values: np.ndarray, weights: np.ndarray, levels: object) -> np.ndarray:
    """Return weighted quantiles, between values linear in the weight below."""
    order = np.argsort(values)
    weights = weights[order]
    below = np.cumsum(weights) - weights / 2
    return np.interp(levels, below / weights.sum(), values[order])  # type: ignore
