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
from ihgmm._parameters import generator
from ihgmm.matrix import HOST, Matrix, Ops, Tall, only, to_host
from ihgmm.matrix.ops import Groups
from ihgmm.policy import Scales, Small
from ihgmm.statistics.residuals import AlongCenters


class Advice(StrEnum):
    """Which mixture to use."""

    IHGMM = "Ih-GMM"
    CLASSICAL = "classical mixture"
    NONE = "no recommendation"


class Evidence(StrEnum):
    """What a test says about individual scales."""

    NOTHING_TO_COMPARE = auto()
    ONE_CLUSTER = auto()
    TOO_WEAK = auto()
    ABSENT = auto()
    UNKNOWN_SPREAD = auto()
    SLIGHT = auto()
    CLEAR = auto()


class Assumption(StrEnum):
    """What a test takes for granted about the entries of the noise."""

    ALIKE = auto()
    SOME_ALIKE = auto()
    INDEPENDENT = auto()


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
    detectable : float
        The spread that would be found about 9 times in 10; ``inf`` for none.
    clusters, sizes : ndarray of shape (n_clusters,)
        The labels of the clusters, sorted, and the rows in each.
    p_values, statistics, spreads : ndarray of shape (n_clusters,)
        The same for each cluster by itself; NaN for one that cannot be tested: of fewer
        than four rows, of equal ones, or with a single feature.
    correlation : ndarray of shape (n_clusters,)
        Variance of the noise along the centre of a cluster, in rows of other clusters,
        over that of independent entries, which is assumed where it is NaN.

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
    detectable: float
    clusters: np.ndarray
    sizes: np.ndarray
    p_values: np.ndarray
    statistics: np.ndarray
    spreads: np.ndarray
    correlation: np.ndarray

    @property
    def assumption(self) -> Assumption:
        """What the test took for granted about the noise."""
        known = ~np.isnan(self.correlation[~np.isnan(self.p_values)])
        if known.all():
            return Assumption.ALIKE
        return Assumption.SOME_ALIKE if known.any() else Assumption.INDEPENDENT

    @property
    def n_tested(self) -> int:
        """Clusters that could be tested."""
        return int((~np.isnan(self.p_values)).sum())

    @property
    def strongest(self) -> tuple[Any, float]:
        """Cluster and p-value of the strongest evidence, corrected by Bonferroni."""
        if self.n_tested == 0:
            return None, np.nan
        least = np.nanargmin(self.p_values)
        return self.clusters[least], min(1.0, self.n_tested * self.p_values[least])

    @property
    def evidence(self) -> Evidence:
        """What the figures say about individual scales."""
        if np.isnan(self.p_value):
            return Evidence.NOTHING_TO_COMPARE
        if self.p_value >= Scales.LEVEL:
            # A noisy cluster can drown another one that shows scales clearly.
            if self.strongest[1] < Scales.LEVEL:
                return Evidence.ONE_CLUSTER
            weak = self.detectable >= Scales.WEAK_SPREAD
            return Evidence.TOO_WEAK if weak else Evidence.ABSENT
        if np.isnan(self.spread):
            return Evidence.UNKNOWN_SPREAD
        slight = self.spread < Scales.SLIGHT_SPREAD
        return Evidence.SLIGHT if slight else Evidence.CLEAR

    @property
    def advice(self) -> Advice:
        """Which mixture to use."""
        match self.evidence:
            case Evidence.NOTHING_TO_COMPARE | Evidence.TOO_WEAK:
                return Advice.NONE
            case Evidence.ABSENT | Evidence.SLIGHT:
                return Advice.CLASSICAL
        return Advice.IHGMM

    def __repr__(self) -> str:
        return (
            f"ScaleTest(p_value={self.p_value:.3g}, statistic={self.statistic:.3g}, "
            f"spread={self.spread:.3g}, n_clusters={len(self.clusters)})"
        )


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
    0            100   11.0%  1.4e-07
    1            100   13.7%   <1e-16
    all          200   12.4%   <1e-16
    Ih-GMM: rows of a cluster differ in scale by about 12% (p < 0.0001).
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
    rows, correlation, reference, shared = _beside_others(rows, *along)
    cumulants = cumulants_of(rows) + reference
    total = cumulants.sum(axis=0) + np.array([0, shared, 0])
    statistics, p_values = _judge(np.vstack([cumulants, total]))
    variance, square = _effects(rows)
    variances = np.append(variance, variance[square > 0].sum())
    ratios = HOST.ratio(variances, np.append(square, square.sum()), np.nan)
    spreads = np.sqrt(np.maximum(ratios, 0.0))
    return ScaleTest(
        p_value=float(p_values[-1]),
        statistic=float(statistics[-1]),
        spread=float(spreads[-1]),
        detectable=_detectable_spread(rows, total[1], square),
        clusters=classes,
        sizes=_by_cluster(rows.groups.sizes),
        p_values=p_values[:-1],
        statistics=statistics[:-1],
        spreads=spreads[:-1],
        correlation=correlation,
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
    weight: Tall  # of the row in the mean of its half
    y: Tall  # u . d
    noise: Tall  # the variance of u . x due to noise
    v: Tall  # sum(e**2); 0 for a row that does not count
    t_squared: Tall  # sum(e)**2 / v
    fourth: Tall  # sum(e**4) / v**2
    sixth: Tall  # sum(e**6) / v**3
    gain: Tall  # what t_squared - 1 is multiplied by


def row_figures(X: Matrix, groups: Groups) -> tuple[RowFigures, tuple[Any, ...]]:
    """Look at rows from the other half of their cluster, and along other clusters."""
    weight, per_row = _weights(X, groups), groups.spread
    means = groups.weighted_sums(X, weight).astype(np.float64)
    lengths = np.linalg.norm(means, axis=1)
    other = np.arange(len(means)) ^ 1
    u = HOST.unit_rows(means)[other]
    few = (len(means) // 2 - 1) // Scales.OTHERS_PER_OWN
    every = slice(None, None, max(1, few, X.shape[0] // Scales.OTHER_ROWS))

    def work(block: Matrix, group: Tall, tested: Tall) -> Any:
        ops, xp, lines, sums = block.ops, block.ops.xp, [], ()
        for at in block.dense_ranges(2**18):  # so few entries stay in the cache
            x, own = ops.widen(block.rows(at)), group[at]
            centers, toward, cubes = (ops.to_device(t, x) for t in (means, u, u**3))
            d = x - xp.take(centers, own, axis=0)
            a = d * xp.take(toward, own, axis=0)
            e, square = _raised(ops, a)
            total, v = xp.sum(e, axis=1), ops.row_dots(e, e)
            share = ops.ratio(e * e, v[:, None])
            fourths = share * share
            fourth, sixth = xp.sum(fourths, axis=1), ops.row_dots(fourths, share)
            cross = ops.row_dots(xp.take(cubes, own, axis=0), d)
            lines.append((xp.sum(a, axis=1), square, cross, total, v, fourth, sixth))
            part = _elsewhere(ops, d[every, :], own[every], tested[at][every], toward)
            sums = tuple(map(add, sums, part)) if sums else part
        return tuple(map(ops.stack, zip(*lines, strict=True))), sums

    figures, along = X.sweep(work, groups.labels, weight > 0)
    y, square, cross, total, v, fourth, sixth = figures
    # A row nearer to the mean than rounding says nothing.
    rounding = (64 * np.finfo(X.dtype).eps) ** 2 * ((u * means) ** 2).sum(axis=1)
    ops = X.ops
    v = v * ops.widen(square > per_row(rounding))
    # sum(u**2 * (d - y * u)**2), free of the row's own scale, over what y * u and the
    # mean left of the noise; with one feature that is nothing.
    power = (u**4).sum(axis=1)
    rest = per_row(1 - power) * (1 - weight)
    rest = ops.xp.where(rest > Small.ROUNDING, rest, 0 * rest)
    noise = ops.ratio(square - 2 * y * cross + y**2 * per_row(power), rest, np.inf)
    gain = ops.ratio(v, square**1.5) * per_row(lengths[other])
    level, t_squared = (u * means).sum(axis=1), ops.ratio(total**2, v)
    noise = ops.clip(noise, 0, None)
    last = y, noise, v, t_squared, fourth, sixth, gain
    return RowFigures(groups, level, weight, *last), along


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


def _elsewhere(
    ops: Ops, d: Tall, group: Tall, tested: Tall, u: Tall
) -> tuple[Any, ...]:
    """Return sums over rows, less their mean, along the directions of other clusters.

    They are of ``t**2``, of squared lengths, and of what independent entries give.
    """
    xp, own = ops.xp, ops.xp.take(u, group, axis=0)
    t_squared, counts, energy = [], [], []
    for k in range(u.shape[0] // 2):
        toward = xp.take(u, 2 * k + group % 2, axis=0)
        cos = ops.row_dots(toward, own)
        a = d * (toward - cos[:, None] * own)
        e, square = _raised(ops, a)
        t_squared.append(ops.ratio(xp.sum(e, axis=1) ** 2, ops.row_dots(e, e)))
        # Nearly the own direction says nothing.
        counts.append((group // 2 != k) & tested & (cos**2 < 1 - Small.SINE))
        some = xp.astype(counts[-1], a.dtype)
        energy += [xp.sum(some * xp.sum(a, axis=1) ** 2), xp.sum(some * square)]
    columns, shown = xp.stack(t_squared, axis=1), xp.stack(counts, axis=1)
    # Nor does a row without noise.
    sums = AlongCenters.sums(ops, columns, shown & (columns > 0))
    return *sums, ops.to_host(xp.stack(energy)).reshape(-1, 2).T


def _weights(X: Matrix, groups: Groups) -> Tall:
    """Return weights by inverse noise variance that add up to 1 in each half.

    They depend on squares alone: the test is exact whatever the sign of the noise.
    """
    ops, per_row, sizes = X.ops, groups.spread, np.maximum(groups.sizes, 1.0)
    size = per_row(sizes)
    means = groups.weighted_sums(X, 1 / size).astype(np.float64)
    cross, squares = groups.inner_products(X, means), (means**2).sum(axis=1)
    left = ops.clip(X.sqnorms - 2 * cross + per_row(squares), 0.0, None)
    mean = groups.row_sums(left)[0] / per_row(np.maximum(sizes - 1, 1))
    # The expectation of what is left is (1 - 2 / size) * noise + mean / size. The
    # bound keeps one quiet row from being all of the mean.
    noise = (left - mean / size) / per_row(np.where(sizes > 2, 1 - 2 / sizes, 1.0))
    inverse = ops.ratio(1.0, ops.xp.maximum(noise, mean / size), 1.0)
    # A difference in each half takes two rows there, four in the cluster.
    enough = np.repeat(_by_cluster(groups.sizes) >= 4, 2)
    inverse = inverse * per_row(enough.astype(np.float64))
    return ops.ratio(inverse, groups.row_sums(inverse)[0])


def _by_cluster(by_half: np.ndarray) -> np.ndarray:
    """Return sums over the two halves of each cluster."""
    return np.asarray(by_half.reshape(-1, 2, *by_half.shape[1:]).sum(axis=1))


def _beside_others(
    rows: RowFigures, *sums: np.ndarray
) -> tuple[RowFigures, np.ndarray, np.ndarray, float]:
    """Take correlation of the noise into account, as rows of other clusters show it.

    Return rows whose t has variance 1, the mean of ``t**2`` in other clusters, what
    taking it off adds to the cumulants, and to the variance of their sum.
    """
    others, (along, apart), groups = AlongCenters(*sums[:3]), sums[3], rows.groups
    ratios, pulled, known = others.ratios, others.variance_ratios, others.sizes > 0
    by_row = groups.spread(np.repeat(pulled, 2))
    # In variances rows count more whose noise is large in all entries.
    more = pulled * HOST.ratio(HOST.ratio(along, apart, 1.0), ratios, 1.0)
    more = np.clip(more, 1 / Small.HUGE, Small.HUGE)  # of rows without noise
    rows = rows._replace(
        v=rows.v * by_row,
        t_squared=rows.t_squared / by_row,
        noise=rows.noise * groups.spread(np.repeat(more, 2)),
        gain=rows.gain / by_row**0.5,
    )
    gain = _by_cluster(groups.sums(rows.gain))
    # Rows of a half have a common mean, which costs one of them.
    halves = np.count_nonzero(groups.sums(rows.weight))
    kept = max(1 - halves / by_row.shape[0], 0.5)
    products = HOST.ratio(others.second, np.outer(ratios, ratios)) - others.counts
    errors = HOST.ratio(products, np.outer(others.sizes, others.sizes))
    errors = errors * np.outer(gain, gain) / kept
    # Few rows say little about their own variance; that of the square of a normal
    # variable, 2, counts for some of them.
    size, prior = np.where(known, others.sizes * kept, 1.0), Scales.PRIOR_ROWS
    variance = (size * np.diag(errors) + prior * 2 * gain**2 / size) / (size + prior)
    # A difference from their mean has a third cumulant of one sign, a ratio to it of
    # the other; what is compared here lies between the two.
    reference = np.stack([-gain * (ratios / pulled - 1), variance, 0 * gain], axis=1)
    reference[~known] = 0.0
    # The same rows count for several clusters, and for similar centres alike.
    shared = max(float(errors.sum() - np.trace(errors)), 0.0)
    return rows, np.where(known, ratios, np.nan), reference, shared


def cumulants_of(rows: RowFigures) -> np.ndarray:
    """Return each cluster's statistic, variance and third cumulant, not scaled.

    The common mean of a half correlates t of two rows by ``- sqrt(g_i * g_j)``, with
    ``g = weight / (1 - weight)``: cumulants are traces of powers of a diagonal matrix
    less one of rank one, times those of sums with random signs over those of normal
    variables.
    """
    s, f = rows.groups.sums, rows.gain
    b = f * rows.groups.ops.ratio(rows.weight, 1 - rows.weight)
    d = f + b
    second = s(d**2) - 2 * s(d * b) + s(b) ** 2
    third = s(d**3) - 3 * s(d**2 * b) + 3 * s(d * b) * s(b) - s(b) ** 3

    def average(total: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return a ratio, with 0 for what is 0 up to rounding."""
        return HOST.ratio(np.where(total > Small.ROUNDING * weight, total, 0.0), weight)

    second *= average(s(f**2 * (1 - rows.fourth)), s(f**2))
    third *= average(s(f**3 * (1 - 3 * rows.fourth + 2 * rows.sixth)), s(f**3))
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


def _effects(rows: RowFigures) -> tuple[np.ndarray, np.ndarray]:
    """Return each cluster's variance and squared mean of ``u . x`` without noise."""
    total, size = rows.groups.sums, np.maximum(rows.groups.sizes, 1.0)
    mean, noise = total(rows.y) / size, total(rows.noise) / size
    variance = total(rows.y**2) - size * mean**2
    variance = size * (variance / np.maximum(size - 1, 1) - noise)
    energy = size * (rows.level + mean) ** 2
    variance, energy, noise = map(_by_cluster, (variance, energy, noise))
    clear = (energy > 3**2 * noise) & (energy > 0)
    return variance, np.where(clear, energy - noise, 0.0)


def _detectable_spread(rows: RowFigures, variance: float, square: np.ndarray) -> float:
    """Return the spread whose statistic mostly exceeds the critical value.

    A spread s multiplies ``t**2`` by ``1 + s**2 * signal`` on average. The equation,
    mean = quantile * (standard deviation without + with such scales), is quadratic in
    ``s**2``.
    """
    quantile, groups, ops = Scales.LEVEL_QUANTILE, rows.groups, rows.groups.ops
    level = square / np.maximum(_by_cluster(groups.sizes), 1)
    signal = ops.ratio(groups.spread(np.repeat(level, 2)), rows.v)
    terms = (rows.gain * signal, rows.gain**2 * signal, (rows.gain * signal) ** 2)
    pull, cross, own = (ops.number(ops.xp.sum(term)) for term in terms)
    below = pull**2 - 2 * quantile**2 * own
    if below <= 0:
        return np.inf
    above = 2 * quantile * np.sqrt(max(variance, 0.0)) * pull + 4 * quantile**2 * cross
    return float(np.sqrt(above / below))
