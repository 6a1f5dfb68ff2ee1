"""A test of whether the rows of a cluster differ in scale at all, and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, auto
from operator import add
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaincc, ndtr

from ihgmm._checks import check_matrix, data_and_labels, labelled_rows
from ihgmm._display import Result
from ihgmm._parameters import generator, usual_errors
from ihgmm.matrix import HOST, Matrix, Ops, Tall, only, to_host
from ihgmm.matrix.ops import Groups
from ihgmm.policy import Scales, Small
from ihgmm.statistics.residuals import AlongCenters


class Evidence(StrEnum):
    """What a test says about individual scales."""

    NOTHING_TO_COMPARE = auto()
    TOO_WEAK = auto()
    ABSENT = auto()
    UNKNOWN_SPREAD = auto()
    SLIGHT = auto()
    CLEAR = auto()


@dataclass(frozen=True, eq=False, repr=False)
class ScaleTest(Result):
    """What the data say about the scales of the rows of a cluster; print it.

    Attributes
    ----------
    p_value : float
        How often equal scales would give such a statistic or a larger one, all clusters
        together; NaN when no cluster could be tested.
    statistic : float
        Excess of the differences between rows over those that noise makes, in standard
        deviations of what equal scales give.
    spread : float
        Standard deviation over mean of the scales in a cluster, noise removed, pooled
        over clusters; NaN when the centres are too weak for an estimate.
    spread_interval : tuple of float
        The ends of its 95% confidence interval; of 60 rows, 90% hold the truth.
    clusters, sizes : ndarray of shape (n_clusters,)
        The labels of the clusters, sorted, and the rows in each.
    p_values, spreads : ndarray of shape (n_clusters,)
        The same for each cluster by itself; NaN for one that cannot be tested: of fewer
        than four rows, of equal ones, or with a single feature.

    Examples
    --------
    >>> from ihgmm import make_ihgmm, scale_heterogeneity_test
    >>> X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    >>> test = scale_heterogeneity_test(X, kinds)
    >>> test.p_value < 0.001, round(test.spread, 1)
    (True, 0.5)
    """

    p_value: float
    statistic: float
    spread: float
    spread_interval: tuple[float, float]
    clusters: np.ndarray
    sizes: np.ndarray
    p_values: np.ndarray
    spreads: np.ndarray

    @property
    def evidence(self) -> Evidence:
        """What the figures say about individual scales."""
        if np.isnan(self.p_value):
            return Evidence.NOTHING_TO_COMPARE
        unknown = np.isnan(self.spread)
        if self.p_value >= Scales.LEVEL:
            weak = unknown or self.spread_interval[1] >= Scales.WEAK_SPREAD
            return Evidence.TOO_WEAK if weak else Evidence.ABSENT
        if unknown:
            return Evidence.UNKNOWN_SPREAD
        slight = self.spread < Scales.SLIGHT_SPREAD
        return Evidence.SLIGHT if slight else Evidence.CLEAR

    def __repr__(self) -> str:
        return (
            f"ScaleTest(p_value={self.p_value:.3g}, statistic={self.statistic:.3g}, "
            f"spread={self.spread:.3g}, n_clusters={len(self.clusters)})"
        )


@usual_errors()
def scale_heterogeneity_test(
    X: Any, labels: Any, *, random_state: Any = 0
) -> ScaleTest:
    """Test whether the rows of each cluster all have the same scale.

    If they do, a classical method such as k-means is enough, and sees lengths that
    :class:`ihgmm.IhSC` ignores. A small p-value means that scales differ.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data; also a torch tensor or another library's array, on its device.
    labels : array-like of shape (n_samples,), or fitted estimator
        The cluster of each row, of any kind; a fitted model stands for its ``labels_``.
        Rows with -1, beside clusters numbered from 0, are left out.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the split into halves. Other splits give other p-values, all valid; to
        choose among them is not.

    Returns
    -------
    ScaleTest

    Notes
    -----
    Rows of a half of a cluster are compared along the mean of the other half. There
    they vary by noise alone if scales are equal. Noise that features share looks like
    scales, so rows of *other* clusters show how much it varies. Wrong labels, and rows
    of about ten counts or fewer, still look like scales. :doc:`/inference` has the
    rates, and :doc:`/statistics` the formulas.

    Examples
    --------
    >>> from ihgmm import make_ihgmm, scale_heterogeneity_test
    >>> X, labels = make_ihgmm(200, 100, 2, scale_ratio=1.5, random_state=0)
    >>> print(scale_heterogeneity_test(X, labels))
    cluster     rows  spread  p-value
    0            100   11.3%  9.2e-08
    1            100   14.7%   <1e-16
    all          200   13.1%   <1e-16
    Ih-GMM: rows of a cluster differ in scale by about 13% (p < 0.0001).
    This assumes that noise is correlated alike in all clusters.
    """
    X, labels = data_and_labels(X, labels)
    data = check_matrix(X)
    classes, codes, outliers = labelled_rows(labels, data)
    if outliers is not None:
        inside = np.flatnonzero(~to_host(outliers))
        data, codes = only(data, inside), data.ops.few_rows(codes, inside)
    half = data.to_device(random_halves(to_host(codes), generator(random_state)))
    rows, along = row_figures(data, data.ops.groups(half, 2 * len(classes)))
    rows, reference, shared = _beside_others(rows, AlongCenters(*along))
    cumulants = cumulants_of(rows) + reference
    total = cumulants.sum(axis=0) + np.array([0, shared, 0])
    statistics, p_values = _judge(np.vstack([cumulants, total]))
    squares, reach = _squared_spreads(rows)
    spreads = np.sqrt(np.maximum(squares, 0.0))
    low, high = np.sqrt(np.maximum(squares[-1] + np.array([-reach, reach]), 0.0))
    return ScaleTest(
        p_value=float(p_values[-1]),
        statistic=float(statistics[-1]),
        spread=float(spreads[-1]),
        spread_interval=(float(low), float(high)),
        clusters=classes,
        sizes=_by_cluster(rows.groups.sizes),
        p_values=p_values[:-1],
        spreads=spreads[:-1],
    )


def random_halves(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Split every cluster k in two at random, into groups 2 k and 2 k + 1."""
    order = np.lexsort((rng.random(len(codes), dtype=np.float32), codes))
    ordered = codes[order]
    groups = np.empty(len(codes), dtype=np.int64)
    place = np.arange(len(codes)) - np.searchsorted(ordered, ordered)
    groups[order] = 2 * ordered + place % 2
    return groups


class RowFigures(NamedTuple):
    """What the test needs of each row; ``groups`` are the halves of clusters.

    u is along the mean of the other half, d is the row less the mean of its own half,
    e has the entries of ``u * d``, large ones raised.
    """

    groups: Groups
    level: np.ndarray  # u . mean of each half
    y: Tall  # u . d
    noise: Tall  # the variance of u . x due to noise
    t_squared: Tall  # sum(e)**2 / sum(e**2)
    fourth: Tall  # sum(e**4) / sum(e**2)**2
    sixth: Tall  # sum(e**6) / sum(e**2)**3
    gain: Tall  # what t_squared - 1 is multiplied by; 0 for a row that says nothing


def row_figures(X: Matrix, groups: Groups) -> tuple[RowFigures, tuple[Any, ...]]:
    """Look at rows from the other half of their cluster, and along other clusters."""
    ops, per_row = X.ops, groups.spread
    sizes = np.maximum(groups.sizes, 1.0)
    # A difference in each half takes two rows there, four in the cluster.
    enough = np.repeat(_by_cluster(groups.sizes) >= 4, 2)
    means = groups.weighted_sums(X, per_row(enough / sizes)).astype(np.float64)
    other = np.arange(len(means)) ^ 1
    u = HOST.unit_rows(means)[other]
    few = (len(means) // 2 - 1) // Scales.OTHERS_PER_OWN
    every = slice(None, None, max(1, few, X.shape[0] // Scales.OTHER_ROWS))

    def work(block: Matrix, group: Tall) -> Any:
        ops, xp, lines, sums = block.ops, block.ops.xp, [], ()
        for at in block.dense_ranges(2**18):  # so few entries stay in the cache
            x, own = ops.widen(block.rows(at)), group[at]
            centers, directions = (ops.to_device(t, x) for t in (means, u))
            d = x - xp.take(centers, own, axis=0)
            toward = xp.take(directions, own, axis=0)
            a = d * toward
            e, square = _raised(ops, a)
            total, v, y = xp.sum(e, axis=1), ops.row_dots(e, e), xp.sum(a, axis=1)
            share = ops.ratio(e * e, v[:, None])
            fourths = share * share
            fourth, sixth = xp.sum(fourths, axis=1), ops.row_dots(fourths, share)
            rest = a - y[:, None] * toward**2  # free of the row's own scale
            left = ops.row_dots(rest, rest)
            lines.append((y, left, square, ops.ratio(total**2, v), fourth, sixth, v))
            part = _elsewhere(ops, d[every, :], own[every], directions)
            sums = tuple(map(add, sums, part)) if sums else part
        return tuple(map(ops.stack, zip(*lines, strict=True))), sums

    (y, left, square, second, fourth, sixth, v), along = X.sweep(work, groups.labels)
    # What the mean and the row's part along u leave of the noise; of one feature none.
    kept = (1 - (u**4).sum(axis=1)) * (1 - 1 / sizes)
    kept = per_row(np.where(kept > Small.ROUNDING, kept, 0.0))
    # A row nearer to the mean than rounding says nothing.
    rounding = (64 * np.finfo(X.dtype).eps) ** 2 * ((u * means) ** 2).sum(axis=1)
    lengths = per_row(np.linalg.norm(means, axis=1)[other])
    gain = ops.ratio(v, square**1.5) * lengths * ops.widen(square > per_row(rounding))
    noise, level = ops.ratio(left, kept, np.inf), (u * means).sum(axis=1)
    return RowFigures(groups, level, y, noise, second, fourth, sixth, gain), along


def _raised(ops: Ops, a: Tall) -> tuple[Tall, Tall]:
    """Return entries, raised by their share in the row's squares, and sums of these."""
    # A root of a**2 - 5 * a + 15 / 4: with it the skewness of noise has, to the leading
    # order, no part in the mean of the statistic, where sum(e)**2 - sum(e**2) of a row
    # has the weight sum((u * d)**2) ** (-3 / 2).
    factor, squares = 2.5 - 2.5**0.5, a * a
    square = ops.xp.sum(squares, axis=1)
    share = ops.ratio(squares, square[:, None])
    share = ops.clip(share, 0.0, Scales.LARGEST_SHARE)  # the factor below has no bound
    return a * (1 + factor * share / (1 - share)), square


def _elsewhere(ops: Ops, d: Tall, group: Tall, u: Tall) -> tuple[Any, ...]:
    """Return sums over rows of ``t**2`` along the directions of other clusters."""
    xp, own = ops.xp, ops.xp.take(u, group, axis=0)
    t_squared, counts = [], []
    for k in range(u.shape[0] // 2):
        toward = xp.take(u, 2 * k + group % 2, axis=0)
        cos = ops.row_dots(toward, own)
        e, _ = _raised(ops, d * (toward - cos[:, None] * own))
        t_squared.append(ops.ratio(xp.sum(e, axis=1) ** 2, ops.row_dots(e, e)))
        # Nearly the own direction says nothing.
        counts.append((group // 2 != k) & (cos**2 < 1 - Small.SINE))
    columns, shown = xp.stack(t_squared, axis=1), xp.stack(counts, axis=1)
    # Nor does a row without noise, or one of a cluster that has no direction.
    shown = shown & (columns > 0) & (ops.row_dots(own, own) > 0)[:, None]
    return AlongCenters.sums(ops, columns, shown)


def _by_cluster(by_half: np.ndarray) -> np.ndarray:
    """Return sums over the two halves of each cluster."""
    return np.asarray(by_half.reshape(-1, 2, *by_half.shape[1:]).sum(axis=1))


def _beside_others(
    rows: RowFigures, others: AlongCenters
) -> tuple[RowFigures, np.ndarray, float]:
    """Take correlation of the noise into account, as rows of other clusters show it.

    Return rows whose t has variance 1, what taking off the mean of ``t**2`` in other
    clusters adds to the cumulants, and to the variance of their sum.
    """
    groups, ratios, pulled = rows.groups, others.ratios, others.variance_ratios
    by_row = groups.spread(np.repeat(pulled, 2))
    rows = rows._replace(
        t_squared=rows.t_squared / by_row,
        noise=rows.noise * by_row,
        gain=rows.gain / by_row**0.5,
    )
    gain = _by_cluster(groups.sums(rows.gain))
    # Rows of a half have a common mean, which costs one of them.
    kept = max(1 - np.count_nonzero(rows.level) / by_row.shape[0], 0.5)
    products = HOST.ratio(others.second, np.outer(ratios, ratios)) - others.counts
    errors = HOST.ratio(products, np.outer(others.sizes, others.sizes))
    errors = errors * np.outer(gain, gain) / kept
    # Few rows say little about their own variance; that of the square of a normal
    # variable, 2, counts for some of them.
    known, prior = others.sizes > 0, Scales.PRIOR_ROWS
    size = np.where(known, others.sizes * kept, 1.0)
    variance = (size * np.diag(errors) + prior * 2 * gain**2 / size) / (size + prior)
    # A difference from their mean has a third cumulant of one sign, a ratio to it of
    # the other; what is compared here lies between the two.
    reference = np.stack([-gain * (ratios / pulled - 1), variance, 0 * gain], axis=1)
    reference[~known] = 0.0
    # The same rows count for several clusters, and for similar centres alike.
    return rows, reference, max(float(errors.sum() - np.trace(errors)), 0.0)


def cumulants_of(rows: RowFigures) -> np.ndarray:
    """Return each cluster's statistic, variance and third cumulant, not scaled.

    The common mean of a half correlates t of any two of its m rows by ``-1 / (m - 1)``:
    cumulants are traces of powers of a diagonal matrix less one of rank one, times
    those of sums with random signs over those of normal variables.
    """
    s, f = rows.groups.sums, rows.gain
    g = 1 / np.maximum(rows.groups.sizes - 1, 1.0)
    one, two, three = s(f), s(f**2), s(f**3)
    second = (1 - g**2) * two + (g * one) ** 2
    third = (1 + g) ** 2 * (1 - 2 * g) * three
    third += 3 * g**2 * (1 + g) * two * one - (g * one) ** 3

    def average(total: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return a ratio, with 0 for what is 0 up to rounding."""
        return HOST.ratio(np.where(total > Small.ROUNDING * weight, total, 0.0), weight)

    second *= average(s(f**2 * (1 - rows.fourth)), two)
    third *= average(s(f**3 * (1 - 3 * rows.fourth + 2 * rows.sixth)), three)
    statistic = s(f * (rows.t_squared - 1))
    return _by_cluster(np.stack([statistic, 2 * second, 8 * third], axis=1))


def _judge(cumulants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised statistics and p-values."""
    excess, variance, third = cumulants.T
    variance = np.where(variance > 0, variance, np.nan)
    z = excess / np.sqrt(variance)
    # The gamma distribution of the same skewness, unless that is that of the normal.
    skewness, normal = third / variance**1.5, 1e-3
    shape = 4 / np.maximum(skewness, normal) ** 2
    tail = gammaincc(shape, np.maximum(shape + z * np.sqrt(shape), 0.0))
    return z, np.where(skewness > normal, tail, ndtr(-z))


def _squared_spreads(rows: RowFigures) -> tuple[np.ndarray, float]:
    """Return squared spreads of clusters and of all, and how far the last may be off.

    A spread is that of ``u . x`` without noise; NaN where its mean is mostly noise.
    """
    total, size = rows.groups.sums, np.maximum(rows.groups.sizes, 1.0)
    mean, noise = total(rows.y) / size, total(rows.noise) / size
    level, free = rows.level + mean, np.maximum(size - 1, 1)
    variance = (total(rows.y**2) - size * mean**2) / free - noise
    sums = size * variance, size * level**2, noise
    variance, energy, noise = map(_by_cluster, sums)
    clear = (energy > 3**2 * noise) & (energy > 0)
    square = np.where(clear, energy - noise, 0.0)
    ratios = HOST.ratio(
        np.append(variance, variance[clear].sum()),
        np.append(square, square.sum()),
        np.nan,
    )
    # To first order the last ratio errs as the mean of this over rows.
    pull = 2 * max(np.nan_to_num(ratios[-1]), 0.0) * level
    error = rows.y**2 - rows.groups.spread(pull) * rows.y
    error = size / free * (total(error**2) - total(error) ** 2 / size)
    # Few rows hide the variance of squares; that of a normal variable's is the least.
    error = np.maximum(error, 2 * total(rows.y**2) ** 2 / size)
    reach = Scales.QUANTILE * np.sqrt(_by_cluster(error)[clear].sum())
    return ratios, float(HOST.ratio(reach, square.sum(), np.nan))
