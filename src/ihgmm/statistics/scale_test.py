"""A test of whether the rows of a cluster differ in scale at all, and by how much."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum, auto
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy.special import gammaincc, ndtr

from ihgmm._checks import (
    check_clusters,
    check_labels,
    check_matrix,
    generator,
    is_outlier,
)
from ihgmm._text import SCALE_ASSUMPTIONS, scale_recommendation, scale_table
from ihgmm.matrix import Matrix, Tall, namespace, only, to_host
from ihgmm.matrix.tall import Groups, ratio, row_dots, widen
from ihgmm.statistics.correlation import Along, variance_ratios


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

    @property
    def sentence(self) -> str:
        """The assumption in words."""
        return SCALE_ASSUMPTIONS[self.name]


@dataclass(frozen=True, eq=False, repr=False)
class ScaleTest:
    """What the data say about the scales of the rows of a cluster; print it.

    Attributes
    ----------
    p_value : float
        How often equal scales would give such a statistic or a larger one, all
        clusters together; NaN when no cluster could be tested.
    statistic : float
        Excess of the differences between rows over those that noise makes. With equal
        scales its mean is 0 and its standard deviation 1; a large one speaks for
        individual scales.
    spread : float
        Standard deviation over mean of the scales in a cluster, noise removed, pooled
        over clusters with more weight on long centres. 0 when rows vary no more than
        noise makes them; NaN when the centres are too weak for an estimate.
    detectable : float
        The spread that would be found, at the level of 5%, about 9 times in 10;
        ``inf`` when the centres are too weak or the rows too few.
    clusters, sizes : ndarray of shape (n_clusters,)
        The labels of the clusters, sorted, and the rows in each.
    p_values, statistics, spreads : ndarray of shape (n_clusters,)
        The same for each cluster by itself. A cluster of fewer than four rows has NaN
        in all three and is left out of the overall figures. The first two are NaN also
        when the rows are all the same, or their mean lies on a single feature.
    correlation : ndarray of shape (n_clusters,)
        How much more noise varies along the centre of a cluster than independent
        entries would make it, as rows of other clusters show; about 1 for independent
        noise. NaN where no other cluster tells; there entries are taken to be
        independent.
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
        p_value = float(min(1.0, self.n_tested * self.p_values[least]))
        return self.clusters[least], p_value

    @property
    def evidence(self) -> Evidence:
        """What the figures say about individual scales."""
        level = 0.05  # the usual one; ``detectable`` is for it too
        if np.isnan(self.p_value):
            return Evidence.NOTHING_TO_COMPARE
        if self.p_value >= level:
            # A noisy cluster can drown another one that shows scales clearly.
            if self.strongest[1] < level:
                return Evidence.ONE_CLUSTER
            return Evidence.TOO_WEAK if self.detectable >= 1 else Evidence.ABSENT
        if np.isnan(self.spread):
            return Evidence.UNKNOWN_SPREAD
        # Below 5% scales differ, but not so that it matters.
        return Evidence.SLIGHT if self.spread < 0.05 else Evidence.CLEAR

    @property
    def advice(self) -> Advice:
        """Which mixture to use."""
        match self.evidence:
            case Evidence.NOTHING_TO_COMPARE | Evidence.TOO_WEAK:
                return Advice.NONE
            case Evidence.ABSENT | Evidence.SLIGHT:
                return Advice.CLASSICAL
        return Advice.IHGMM

    @property
    def recommendation(self) -> str:
        """Which mixture to use, in words, with the figures that speak for it."""
        return scale_recommendation(self)

    def __repr__(self) -> str:
        return (
            f"ScaleTest(p_value={self.p_value:.3g}, statistic={self.statistic:.3g}, "
            f"spread={self.spread:.3g}, n_clusters={len(self.clusters)})"
        )

    def __str__(self) -> str:
        return scale_table(self)


def scale_heterogeneity_test(
    X: Any, labels: Any, *, random_state: Any = 0
) -> ScaleTest:
    """Test whether the rows of each cluster all have the same scale.

    A small p-value says that individual scales are there; a large one that the
    classical mixture, whose clusters have one scale each, describes the data as well.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data; also a torch tensor or another library's array, on its device.
    labels : array-like of shape (n_samples,)
        The cluster of each row: labels of any kind, known or found by
        :class:`ihgmm.IhSC`. Rows with -1, beside clusters numbered from 0, are left
        out.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the split into halves. Other splits give other p-values, all valid;
        to choose among them is not.

    Returns
    -------
    ScaleTest

    Notes
    -----
    Each cluster is split in two halves at random. The mean of one half gives a
    direction, along which rows of the other half vary by noise alone if scales are
    equal. That part of the test is exact for any symmetric noise, whatever its level in
    each row, and corrected for skewed noise, such as that of counts.

    Noise that features share, in the direction of the centre, looks like scales. So the
    differences are compared with those of rows of *other* clusters along the same
    direction, and the test assumes that noise is correlated alike in all clusters.
    Where there is one cluster only, it assumes that entries of the noise are
    independent; ``ScaleTest.assumption`` says which. Noise along what all centres
    have in common cannot be told from scales. Rows with a wrong label, and rows of
    about ten counts or fewer, still look like scales. :doc:`/inference` has the rates,
    :doc:`/statistics` the formulas.

    Examples
    --------
    >>> from ihgmm import make_ihgmm, scale_heterogeneity_test
    >>> X, labels = make_ihgmm(200, 100, 2, scale_ratio=1.5, random_state=0)
    >>> scale_heterogeneity_test(X, labels).recommendation
    'Ih-GMM: rows of a cluster differ in scale by about 12% (p < 0.0001).'
    >>> X, labels = make_ihgmm(200, 100, 2, scale_ratio=1.0, random_state=0)
    >>> scale_heterogeneity_test(X, labels).p_value > 0.05
    True
    """
    data = check_matrix(X)
    array = check_labels("labels", labels, data.shape[0])
    inside = np.flatnonzero(~is_outlier(array))
    if len(inside) < len(array):
        data, labels = only(data, inside), array[inside]
    classes, codes = check_clusters(labels, data.shape[0])
    sizes = np.bincount(codes)
    group = 2 * codes + random_halves(codes, generator(random_state))
    # Rows are slow to pick from a matrix stored by columns.
    rows = row_figures(data.by_rows(), group, 2 * len(sizes))
    rows, correlation, reference, shared = _beside_others(rows)
    cumulants = cumulants_of(rows) + reference
    total = cumulants.sum(axis=0, keepdims=True) + np.array([0, shared, 0])
    statistics, p_values = _judge(cumulants)
    statistic, p_value = _judge(total)
    variance, square, usable = _effects(rows)
    return ScaleTest(
        p_value=float(p_value[0]),
        statistic=float(statistic[0]),
        spread=float(_spread(variance[usable].sum(), square[usable].sum())),
        detectable=_detectable_spread(rows, total[0, 1], square, usable),
        clusters=classes,
        sizes=sizes,
        p_values=p_values,
        statistics=statistics,
        spreads=_spread(variance, np.where(usable, square, 0.0)),
        correlation=correlation,
    )


def random_halves(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Split every cluster in two at random; return 0 or 1 for each row."""
    order = np.lexsort((rng.random(len(codes)), codes))
    sizes = np.bincount(codes)
    rank = np.empty(len(codes), dtype=np.intp)
    rank[order] = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank % 2


@dataclass(frozen=True)
class RowFigures:
    """What the test needs of the rows, found in one pass over X.

    ``u`` is the unit vector along the mean of the other half; ``d`` is the row less
    the mean of its own half; ``e`` is ``u * d`` with large entries raised.
    """

    groups: Groups  # two for each cluster, one for each half
    weight: np.ndarray  # of the row in the mean of its half
    y: np.ndarray  # u . d
    e: np.ndarray  # sum(e)
    v: np.ndarray  # sum(e**2); 0 for a row that does not count
    fourth: np.ndarray  # sum(e**4) / v**2
    sixth: np.ndarray  # sum(e**6) / v**3
    noise: np.ndarray  # the variance of u . x due to noise
    gain: np.ndarray  # what t**2 - 1 is multiplied by
    level: np.ndarray  # u . mean, one for each group
    elsewhere: Along  # t**2 of rows of other clusters, for each cluster
    energy: np.ndarray  # (2, n_clusters): sums of their (v . d)**2, of its estimates


def row_figures(
    X: Matrix, group: np.ndarray, n_groups: int, *, max_entries: int = 2**18
) -> RowFigures:
    """Look at each row of a group from the mean of the other group of its cluster.

    Groups 2 k and 2 k + 1 are the halves of cluster k. On a host ``max_entries`` of X
    are worked on at a time; so few stay in the cache.
    """
    n = X.shape[0]
    groups = Groups.of(group, n_groups)
    weight = _weights(X, groups)
    means = groups.weighted_sums(X, weight).astype(np.float64)
    length = np.linalg.norm(means, axis=1, keepdims=True)
    other = np.arange(n_groups) ^ 1
    u = ratio(means, length)[other]
    cube = u**3
    power = np.einsum("ij,ij->i", cube, u)
    # A row nearer to the mean than rounding says nothing.
    rounding = (64 * np.finfo(X.dtype).eps) ** 2 * ((u * means) ** 2).sum(axis=1)
    y, square, cross, e, v, fourth, sixth = figures = np.zeros((7, n))
    by_group = [X.to_device(rows) for rows in (means, u, cube)]
    take = namespace(by_group[0]).take
    elsewhere = []
    # Eight times as many rows of other clusters as of its own tell enough.
    step = max(1, (n_groups // 2 - 1) // 8)
    tested = X.to_device(weight > 0)
    for at in X.dense_ranges(max_entries):
        own = X.to_device(group[at])
        block = widen(X.rows(at))
        means_etc = [take(rows, own, axis=0) for rows in by_group]
        # Only figures of rows leave a device.
        figures[:, at] = _figures(block, *means_etc)
        few = block[::step, :] - means_etc[0][::step, :]
        told = tested[at][::step]
        elsewhere.append(_elsewhere(few, own[::step], told, by_group[1]))
    # sum(u**2 * (d - y * u)**2), free of the row's own scale
    noise = square - 2 * y * cross + y**2 * power[group]
    v *= square > rounding[group]
    # What y * u and the mean took of the noise; with one feature, all of it.
    rest = (1 - power[group]) * (1 - weight)
    noise = np.divide(noise, rest, out=np.full(n, np.inf), where=rest > 1e-9)
    gain = ratio(v, square**1.5) * length[other, 0][group]
    level = np.einsum("ij,ij->i", u, means)
    noise = np.maximum(noise, 0.0)
    others, energies = zip(*elsewhere, strict=True)
    last = (reduce(add, others), reduce(add, energies))
    return RowFigures(groups, weight, y, e, v, fourth, sixth, noise, gain, level, *last)


def _figures(block: Tall, means: Tall, u: Tall, cube: Tall) -> np.ndarray:
    """Return y, ``sum((u * d)**2)``, ``sum(u**3 * d)``, figures of e, on the host."""
    xp = namespace(block)
    d = block - means
    a = d * u
    y, cross = xp.sum(a, axis=1), row_dots(cube, d)
    squares = a * a
    square = xp.sum(squares, axis=1)
    e = _raised(a, squares / _positive(square)[:, None])
    total = xp.sum(e, axis=1)
    e *= e
    v = xp.sum(e, axis=1)
    e /= _positive(v)[:, None]
    fourths = e * e
    fourth, sixth = xp.sum(fourths, axis=1), row_dots(fourths, e)
    return to_host(xp.stack([y, square, cross, total, v, fourth, sixth]))


def _elsewhere(d: Tall, group: Tall, tested: Tall, u: Tall) -> tuple[Along, np.ndarray]:
    """Look at rows, less their mean, along the directions of all other clusters.

    What the rows have along the direction of their own cluster, where scales show, is
    taken off. Half of the rows look along the direction of one half of a cluster.
    """
    xp = namespace(d)
    own = xp.take(u, group, axis=0)
    found, told, energy = [], [], []
    for k in range(u.shape[0] // 2):
        toward = xp.take(u, 2 * k + group % 2, axis=0)
        cos = row_dots(toward, own)
        a = d * (toward - cos[:, None] * own)
        squares = a * a
        e = _raised(a, squares / _positive(xp.sum(squares, axis=1))[:, None])
        found.append(ratio(xp.sum(e, axis=1) ** 2, row_dots(e, e)))
        # Nearly the own direction tells nothing.
        told.append((group // 2 != k) & tested & (cos**2 < 1 - 1e-6))
        some = xp.astype(told[-1], a.dtype)
        sums = (xp.sum(a, axis=1) ** 2, xp.sum(squares, axis=1))
        energy.append([float(xp.sum(some * each)) for each in sums])
    t_squared = xp.stack(found, axis=1)
    # Nor does a row without noise.
    counts = xp.stack(told, axis=1) & (t_squared > 0)
    return Along.of(t_squared, counts), np.array(energy).T


def _raised(a: Tall, share: Tall) -> Tall:
    """Return entries of noise, raised by their share in the squares of the row.

    A large entry is divided by squares that are largely its own. Noise that is skewed
    has its large entries on one side, and products of two of them would not be 0 on
    average; raised, they are. It depends on squares alone: a change of sign of the
    noise changes nothing but the sign.
    """
    # A root of a**2 - 5 * a + 15 / 4: with it the skewness of noise has, to the leading
    # order, no part in the mean of the statistic, where sum(e)**2 - sum(e**2) of a row
    # has the weight sum((u * d)**2) ** (-3 / 2).
    factor = 2.5 - 2.5**0.5
    share = namespace(a).clip(share, 0.0, 0.9)  # the factor below has no bound
    return a * (1 + factor * share / (1 - share))


def _positive(values: Tall) -> Tall:
    xp = namespace(values)
    return xp.where(values > 0, values, xp.ones_like(values))


def _weights(X: Matrix, groups: Groups) -> np.ndarray:
    """Return weights by inverse noise variance that add up to 1 in each half.

    They depend on the squares of the rows less their mean alone. A change of sign of
    the noise in a feature leaves them as they are, so the test is exact with any.
    Rows of clusters too small to be tested get 0.
    """
    group = groups.labels
    size = groups.sizes[group]
    means = groups.weighted_sums(X, 1 / size).astype(np.float64)
    cross = groups.inner_products(X, means)
    left = to_host(X.sqnorms) - 2 * cross + np.einsum("ij,ij->i", means, means)[group]
    np.maximum(left, 0.0, out=left)
    mean = groups.row_sums(left) / np.maximum(size - 1, 1)
    # The expectation of what is left is (1 - 2 / size) * noise + mean / size. The
    # bound keeps one quiet row from being all of the mean.
    noise = (left - mean / size) / np.where(size > 2, 1 - 2 / size, 1.0)
    known = (size > 2) & (mean > 0)
    inverse = 1 / np.where(known, np.maximum(noise, mean / size), 1.0)
    # A difference in each half takes two rows there, four in the cluster.
    inverse[np.bincount(group // 2)[group // 2] < 4] = 0.0
    return ratio(inverse, groups.row_sums(inverse))


def _beside_others(
    rows: RowFigures,
) -> tuple[RowFigures, np.ndarray, np.ndarray, float]:
    """Take correlation of the noise into account, as rows of other clusters show it.

    Along a direction in which noise varies c times as much as independent entries
    would, ``t**2`` is c on average. Return rows whose t has variance 1, the ratios c,
    and what comparison with the other clusters adds to the cumulants: their mean of
    ``t**2`` is taken off, and has errors of its own. Last comes what the errors of
    different clusters add to the variance of the sum, since they are correlated.
    """
    others = rows.elsewhere
    pulled, told = variance_ratios(others), others.sizes > 0
    by_row = pulled[rows.groups.labels // 2]
    # In variances rows count more whose noise is large in all entries.
    along, apart = rows.energy
    more = pulled * ratio(ratio(along, apart, 1.0), others.ratios, 1.0)
    rows = replace(
        rows,
        v=rows.v * by_row,
        noise=rows.noise * more[rows.groups.labels // 2],
        gain=rows.gain / np.sqrt(by_row),
    )
    gain = rows.groups.sums(rows.gain).reshape(-1, 2).sum(axis=1)
    # Rows of a half have a common mean, which costs one of them.
    halves = np.count_nonzero(rows.groups.sums(rows.weight))
    kept = max(1 - halves / len(by_row), 0.5)
    errors = others.relative_covariance * np.outer(gain, gain) / kept
    # Few rows say little about their own variance; that of the square of a normal
    # variable, 2, counts for ten of them.
    size = np.where(told, others.sizes * kept, 1.0)
    variance = (size * np.diag(errors) + 10 * 2 * gain**2 / size) / (size + 10)
    excess = -gain * (others.ratios / pulled - 1)
    # A difference from their mean has a third cumulant of one sign, a ratio to it of
    # the other; what is compared here lies between the two.
    reference = np.column_stack([excess, variance, np.zeros_like(gain)])
    reference[~told] = 0.0
    # The same rows tell about several clusters, and about similar centres alike.
    shared = max(float(errors.sum() - np.trace(errors)), 0.0)
    return rows, np.where(told, others.ratios, np.nan), reference, shared


def cumulants_of(rows: RowFigures) -> np.ndarray:
    """Return each cluster's statistic, variance and third cumulant, not scaled.

    The correlation of t in two rows of a half, i and j, comes from their common mean:
    ``- sqrt(g_i * g_j)`` with ``g = weight / (1 - weight)``. So the cumulants are
    traces of powers of a diagonal matrix less one of rank one. The factors after that
    are those of a sum of entries with random signs, against a normal variable.
    """
    s, f = rows.groups.sums, rows.gain
    b = f * ratio(rows.weight, 1 - rows.weight)
    d = f + b
    second = s(d**2) - 2 * s(d * b) + s(b) ** 2
    third = s(d**3) - 3 * s(d**2 * b) + 3 * s(d * b) * s(b) - s(b) ** 3
    second *= _average(s(f**2 * (1 - rows.fourth)), s(f**2))
    third *= _average(s(f**3 * (1 - 3 * rows.fourth + 2 * rows.sixth)), s(f**3))
    statistic = s(f * (ratio(rows.e**2, rows.v) - 1))
    by_half = np.column_stack([statistic, 2 * second, 8 * third])
    return by_half.reshape(-1, 2, 3).sum(axis=1)


def _average(total: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return a ratio, with 0 for what is 0 up to rounding."""
    return ratio(np.where(total > 1e-9 * weight, total, 0.0), weight)


def _judge(cumulants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised statistics and p-values."""
    excess, variance, third = cumulants.T
    known = variance > 0
    z = np.full(len(excess), np.nan)
    z[known] = excess[known] / np.sqrt(variance[known])
    p = np.asarray(ndtr(-z))
    # The gamma distribution of the same skewness, unless that is that of the normal.
    skewness = third[known] / variance[known] ** 1.5
    shape = 4 / np.maximum(skewness, 1e-3) ** 2
    tail = gammaincc(shape, np.maximum(shape + z[known] * np.sqrt(shape), 0.0))
    p[known] = np.where(skewness > 1e-3, tail, p[known])
    return z, p


def _effects(rows: RowFigures) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each cluster's variance and squared mean of ``u . x`` without noise.

    They are sums over its rows. The last array says where the mean is at least three
    times its standard error; elsewhere a ratio would mean nothing.
    """
    total = rows.groups.sums
    size = np.maximum(rows.groups.sizes, 1.0)
    mean = total(rows.y) / size
    noise = total(rows.noise) / size
    variance = total(rows.y**2) - size * mean**2
    variance = size * (variance / np.maximum(size - 1, 1) - noise)
    energy = size * (rows.level + mean) ** 2
    by_half = np.stack([variance, energy, noise]).reshape(3, -1, 2)
    variance, energy, noise = by_half.sum(axis=2)
    return variance, energy - noise, (energy > 9 * noise) & (energy > 0)


def _spread(variance: Any, square: Any) -> Any:
    """Return the root of a ratio, 0 if negative, NaN if its denominator is not > 0."""
    squares = ratio(variance, np.asarray(square), np.nan)
    return np.sqrt(np.maximum(squares, 0.0))


def _detectable_spread(
    rows: RowFigures, variance: float, square: np.ndarray, usable: np.ndarray
) -> float:
    """Return the spread whose statistic mostly exceeds the critical value.

    A spread s multiplies ``t**2`` of a row by ``1 + s**2 * signal`` on average, signal
    being its squared signal-to-noise ratio. The equation, mean = quantile * (standard
    deviation without + standard deviation with), is quadratic in ``s**2``. It promises
    19 times in 20; noise in the ratios makes it 16 to 19.
    """
    quantile = 1.645  # a standard normal variable exceeds it once in 20 times
    cluster = rows.groups.labels // 2
    level = np.where(usable, square / np.bincount(cluster), 0.0)[cluster]
    signal = ratio(level, rows.v)
    pull = rows.gain @ signal
    cross, own = rows.gain**2 @ signal, rows.gain**2 @ signal**2
    deviation = np.sqrt(max(variance, 0.0))
    below = pull**2 - 2 * quantile**2 * own
    if below <= 0:
        return np.inf
    above = 2 * quantile * deviation * pull + 4 * quantile**2 * cross
    return float(np.sqrt(above / below))
