"""A test of whether the rows of a cluster differ in scale at all, and by how much."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum, auto
from operator import add
from typing import Any

import numpy as np
from scipy.special import gammaincc, ndtr

from ihgmm._checks import check_matrix, data_and_labels, labelled_rows
from ihgmm._display import Result
from ihgmm._parameters import generator
from ihgmm.matrix import HOST, Matrix, Ops, Tall, only, to_host
from ihgmm.matrix.ops import Groups
from ihgmm.policy import Scales, Small
from ihgmm.statistics.residuals import Along


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
        How often equal scales would give such a statistic or a larger one, all
        clusters together; NaN when no cluster could be tested.
    statistic : float
        Excess of the differences between rows over those that noise makes. With equal
        scales its mean is 0 and its standard deviation 1; a large one points to
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
        p_value = float(min(1.0, self.n_tested * self.p_values[least]))
        return self.clusters[least], p_value

    @property
    def evidence(self) -> Evidence:
        """What the figures say about individual scales."""
        level = Scales.LEVEL
        if np.isnan(self.p_value):
            return Evidence.NOTHING_TO_COMPARE
        if self.p_value >= level:
            # A noisy cluster can drown another one that shows scales clearly.
            if self.strongest[1] < level:
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

    If the scales of a cluster are equal, a classical method such as k-means is enough,
    and sees lengths that :class:`ihgmm.IhSC` ignores. A small p-value means that scales
    differ within clusters.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data; also a torch tensor or another library's array, on its device.
    labels : array-like of shape (n_samples,), or fitted estimator
        The cluster of each row: labels of any kind, known or found. A fitted model
        stands for its ``labels_``. Rows with -1, beside clusters numbered from 0, are
        left out.
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
    have in common cannot be distinguished from scales. Rows with a wrong label, and
    rows of about ten counts or fewer, still look like scales. :doc:`/inference` has the
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
    >>> X, labels = make_ihgmm(200, 100, 2, scale_ratio=1.0, random_state=0)
    >>> scale_heterogeneity_test(X, labels).p_value > 0.05
    True
    """
    X, labels = data_and_labels(X, labels)
    data = check_matrix(X)
    classes, codes, strange = labelled_rows(labels, data)
    if strange is not None:
        inside = np.flatnonzero(~to_host(strange))
        data, codes = only(data, inside), data.ops.few_rows(codes, inside)
    sizes = data.ops.groups(codes, len(classes)).sizes
    group = 2 * codes + random_halves(data.ops, codes, generator(random_state))
    rows = row_figures(data, group, 2 * len(sizes))
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


def random_halves(ops: Ops, codes: Tall, rng: np.random.Generator) -> Tall:
    """Split every cluster in two at random; return 0 or 1 for each row."""
    xp, n = ops.xp, codes.shape[0]
    keys = ops.to_device(rng.random(n, dtype=np.float32), codes)
    order = xp.argsort(ops.widen(codes) + ops.widen(keys))
    groups = ops.groups(codes, int(ops.number(xp.max(codes))) + 1)
    first = groups.spread(np.cumsum(groups.sizes) - groups.sizes)
    return (xp.argsort(order) - first) % 2


@dataclass(frozen=True)
class RowFigures:
    """What the test needs of the rows, found in one pass over X.

    ``u`` is the unit vector along the mean of the other half; ``d`` is the row less
    the mean of its own half; ``e`` is ``u * d`` with large entries raised.
    """

    groups: Groups  # two for each cluster, one for each half
    weight: Tall  # of the row in the mean of its half
    y: Tall  # u . d
    e: Tall  # sum(e)
    v: Tall  # sum(e**2); 0 for a row that does not count
    fourth: Tall  # sum(e**4) / v**2
    sixth: Tall  # sum(e**6) / v**3
    noise: Tall  # the variance of u . x due to noise
    gain: Tall  # what t**2 - 1 is multiplied by
    level: np.ndarray  # u . mean, one for each group
    elsewhere: Along  # t**2 of rows of other clusters, for each cluster
    energy: np.ndarray  # (2, n_clusters): sums of their (v . d)**2, of its estimates


def row_figures(
    X: Matrix, group: Tall, n_groups: int, *, max_entries: int = 2**18
) -> RowFigures:
    """Look at each row of a group from the mean of the other group of its cluster.

    Groups 2 k and 2 k + 1 are the halves of cluster k. On a host ``max_entries`` of X
    are worked on at a time; so few stay in the cache.
    """
    ops, groups = X.ops, X.ops.groups(X.to_device(group), n_groups)
    weight = _weights(X, groups)
    means = groups.weighted_sums(X, weight).astype(np.float64)
    length = np.linalg.norm(means, axis=1, keepdims=True)
    other = np.arange(n_groups) ^ 1
    u = HOST.ratio(means, length)[other]
    cube = u**3
    power = np.einsum("ij,ij->i", cube, u)
    # A row nearer to the mean than rounding says nothing.
    rounding = (64 * np.finfo(X.dtype).eps) ** 2 * ((u * means) ** 2).sum(axis=1)
    step = max(
        1, (n_groups // 2 - 1) // Scales.OTHERS_PER_OWN, X.shape[0] // Scales.OTHER_ROWS
    )

    def work(block: Matrix, group: Tall, tested: Tall) -> Any:
        """Return figures of each row, and sums over rows along other directions."""
        ops, xp, lines, sums = block.ops, block.ops.xp, [], ()
        for at in block.dense_ranges(max_entries):
            rows, own = ops.widen(block.rows(at)), group[at]
            tables = [ops.to_device(table, rows) for table in (means, u, cube)]
            lines.append(
                _figures(ops, rows, *(xp.take(t, own, axis=0) for t in tables))
            )
            few = rows[::step, :] - xp.take(tables[0], own[::step], axis=0)
            part = _elsewhere(ops, few, own[::step], tested[at][::step], tables[1])
            sums = tuple(map(add, sums, part)) if sums else part
        return tuple(map(ops.stack, zip(*lines, strict=True))), sums

    figures, (*along, energy) = X.sweep(work, groups.labels, weight > 0)
    y, square, cross, e, v, fourth, sixth = figures
    spread, xp = groups.spread, ops.xp
    # sum(u**2 * (d - y * u)**2), free of the row's own scale
    noise = square - 2 * y * cross + y**2 * spread(power)
    v = v * ops.widen(square > spread(rounding))
    # What y * u and the mean took of the noise; with one feature, all of it.
    rest = spread(1 - power) * (1 - weight)
    rest = xp.where(rest > Small.ROUNDING, rest, 0 * rest)
    noise = ops.clip(ops.ratio(noise, rest, np.inf), 0, None)
    gain = ops.ratio(v, square**1.5) * spread(length[other, 0])
    level = np.einsum("ij,ij->i", u, means)
    last = level, Along(*along), energy
    return RowFigures(groups, weight, y, e, v, fourth, sixth, noise, gain, *last)


def _figures(
    ops: Ops, block: Tall, means: Tall, u: Tall, cube: Tall
) -> tuple[Tall, ...]:
    """Return y, ``sum((u * d)**2)``, ``sum(u**3 * d)``, and figures of e."""
    xp = ops.xp
    d = block - means
    a = d * u
    squares = a * a
    square = xp.sum(squares, axis=1)
    e = _raised(ops, a, squares / _positive(ops, square)[:, None])
    total = xp.sum(e, axis=1)
    e *= e
    v = xp.sum(e, axis=1)
    e /= _positive(ops, v)[:, None]
    fourths = e * e
    fourth, sixth = xp.sum(fourths, axis=1), ops.row_dots(fourths, e)
    return xp.sum(a, axis=1), square, ops.row_dots(cube, d), total, v, fourth, sixth


def _elsewhere(
    ops: Ops, d: Tall, group: Tall, tested: Tall, u: Tall
) -> tuple[Any, ...]:
    """Look at rows, less their mean, along the directions of all other clusters.

    What the rows have along the direction of their own cluster, where scales show, is
    taken off. Half of the rows look along the direction of one half of a cluster.
    """
    xp = ops.xp
    own = xp.take(u, group, axis=0)
    t_squares, counts, energy = [], [], []
    for k in range(u.shape[0] // 2):
        toward = xp.take(u, 2 * k + group % 2, axis=0)
        cos = ops.row_dots(toward, own)
        a = d * (toward - cos[:, None] * own)
        squares = a * a
        e = _raised(ops, a, squares / _positive(ops, xp.sum(squares, axis=1))[:, None])
        t_squares.append(ops.ratio(xp.sum(e, axis=1) ** 2, ops.row_dots(e, e)))
        # Nearly the own direction says nothing.
        counts.append((group // 2 != k) & tested & (cos**2 < 1 - Small.SINE))
        some = xp.astype(counts[-1], a.dtype)
        sums = (xp.sum(a, axis=1) ** 2, xp.sum(squares, axis=1))
        energy += [xp.sum(some * each) for each in sums]
    t_squared = xp.stack(t_squares, axis=1)
    # Nor does a row without noise.
    along = Along.sums(ops, t_squared, xp.stack(counts, axis=1) & (t_squared > 0))
    return *along, ops.to_host(xp.stack(energy)).reshape(-1, 2).T


def _raised(ops: Ops, a: Tall, share: Tall) -> Tall:
    """Return entries of noise, raised by their share in the squares of the row.

    Products of entries of skewed noise, divided by such squares, are then 0 on average.
    """
    # A root of a**2 - 5 * a + 15 / 4: with it the skewness of noise has, to the leading
    # order, no part in the mean of the statistic, where sum(e)**2 - sum(e**2) of a row
    # has the weight sum((u * d)**2) ** (-3 / 2).
    factor = 2.5 - 2.5**0.5
    share = ops.clip(share, 0.0, Scales.LARGEST_SHARE)  # the factor below has no bound
    return a * (1 + factor * share / (1 - share))


def _positive(ops: Ops, values: Tall) -> Tall:
    return ops.xp.where(values > 0, values, ops.xp.ones_like(values))


def _weights(X: Matrix, groups: Groups) -> Tall:
    """Return weights by inverse noise variance that add up to 1 in each half.

    They depend on the squares of the rows less their mean alone. A change of sign of
    the noise in a feature leaves them as they are, so the test is exact with any.
    Rows of clusters too small to be tested get 0.
    """
    sizes, spread = np.maximum(groups.sizes, 1).astype(np.float64), groups.spread
    size = spread(sizes)
    means = groups.weighted_sums(X, 1 / size).astype(np.float64)
    cross, squares = groups.inner_products(X, means), (means**2).sum(axis=1)
    ops, xp = X.ops, X.ops.xp
    left = ops.clip(X.sqnorms - 2 * cross + spread(squares), 0.0, None)
    mean = groups.row_sums(left)[0] / spread(np.maximum(sizes - 1, 1))
    # The expectation of what is left is (1 - 2 / size) * noise + mean / size. The
    # bound keeps one quiet row from being all of the mean.
    noise = (left - mean / size) / spread(np.where(sizes > 2, 1 - 2 / sizes, 1.0))
    known = spread(sizes > 2) & (mean > 0)
    inverse = ops.ratio(1.0, xp.maximum(noise, mean / size), 1.0)
    inverse = xp.where(known, inverse, xp.ones_like(inverse))
    # A difference in each half takes two rows there, four in the cluster.
    enough = np.repeat(groups.sizes.reshape(-1, 2).sum(axis=1) >= 4, 2)
    inverse = inverse * spread(enough.astype(np.float64))
    return ops.ratio(inverse, groups.row_sums(inverse)[0])


def _beside_others(
    rows: RowFigures,
) -> tuple[RowFigures, np.ndarray, np.ndarray, float]:
    """Take correlation of the noise into account, as rows of other clusters show it.

    Return rows whose t has variance 1, the mean of ``t**2`` in other clusters, what
    taking it off adds to the cumulants, and to the variance of their sum.
    """
    others = rows.elsewhere
    pulled, known = others.variance_ratios, others.sizes > 0
    by_row = rows.groups.spread(np.repeat(pulled, 2))
    # In variances rows count more whose noise is large in all entries.
    along, apart = rows.energy
    more = pulled * HOST.ratio(HOST.ratio(along, apart, 1.0), others.ratios, 1.0)
    more = np.clip(more, 1 / Small.HUGE, Small.HUGE)  # of rows without noise
    rows = replace(
        rows,
        v=rows.v * by_row,
        noise=rows.noise * rows.groups.spread(np.repeat(more, 2)),
        gain=rows.gain / by_row**0.5,
    )
    gain = rows.groups.sums(rows.gain).reshape(-1, 2).sum(axis=1)
    # Rows of a half have a common mean, which costs one of them.
    halves = np.count_nonzero(rows.groups.sums(rows.weight))
    kept = max(1 - halves / by_row.shape[0], 0.5)
    errors = others.relative_covariance * np.outer(gain, gain) / kept
    # Few rows say little about their own variance; that of the square of a normal
    # variable, 2, counts for some of them.
    size, prior = np.where(known, others.sizes * kept, 1.0), Scales.PRIOR_ROWS
    variance = (size * np.diag(errors) + prior * 2 * gain**2 / size) / (size + prior)
    excess = -gain * (others.ratios / pulled - 1)
    # A difference from their mean has a third cumulant of one sign, a ratio to it of
    # the other; what is compared here lies between the two.
    reference = np.column_stack([excess, variance, np.zeros_like(gain)])
    reference[~known] = 0.0
    # The same rows count for several clusters, and for similar centres alike.
    shared = max(float(errors.sum() - np.trace(errors)), 0.0)
    return rows, np.where(known, others.ratios, np.nan), reference, shared


def cumulants_of(rows: RowFigures) -> np.ndarray:
    """Return each cluster's statistic, variance and third cumulant, not scaled.

    The correlation of t in two rows of a half, i and j, comes from their common mean:
    ``- sqrt(g_i * g_j)`` with ``g = weight / (1 - weight)``. So the cumulants are
    traces of powers of a diagonal matrix less one of rank one. The factors after that
    are those of a sum of entries with random signs, against a normal variable.
    """
    s, f, ratio = rows.groups.sums, rows.gain, rows.groups.ops.ratio
    b = f * ratio(rows.weight, 1 - rows.weight)
    d = f + b
    second = s(d**2) - 2 * s(d * b) + s(b) ** 2
    third = s(d**3) - 3 * s(d**2 * b) + 3 * s(d * b) * s(b) - s(b) ** 3

    def average(total: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return a ratio, with 0 for what is 0 up to rounding."""
        return HOST.ratio(np.where(total > Small.ROUNDING * weight, total, 0.0), weight)

    second *= average(s(f**2 * (1 - rows.fourth)), s(f**2))
    third *= average(s(f**3 * (1 - 3 * rows.fourth + 2 * rows.sixth)), s(f**3))
    statistic = s(f * (ratio(rows.e**2, rows.v) - 1))
    by_half = np.column_stack([statistic, 2 * second, 8 * third])
    return by_half.reshape(-1, 2, 3).sum(axis=1)


def _judge(cumulants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised statistics and p-values."""
    excess, variance, third = cumulants.T
    known = variance > 0
    z = np.full(len(excess), np.nan)
    z[known] = excess[known] / np.sqrt(variance[known])
    p = np.asarray(ndtr(-z))
    # The gamma distribution of the same skewness, unless that is that of the normal.
    skewness, normal = third[known] / variance[known] ** 1.5, 1e-3
    shape = 4 / np.maximum(skewness, normal) ** 2
    tail = gammaincc(shape, np.maximum(shape + z[known] * np.sqrt(shape), 0.0))
    p[known] = np.where(skewness > normal, tail, p[known])
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
    return variance, energy - noise, (energy > 3**2 * noise) & (energy > 0)


def _spread(variance: Any, square: Any) -> Any:
    """Return the root of a ratio; NaN if its denominator is not positive."""
    return np.sqrt(np.maximum(HOST.ratio(variance, np.asarray(square), np.nan), 0.0))


def _detectable_spread(
    rows: RowFigures, variance: float, square: np.ndarray, usable: np.ndarray
) -> float:
    """Return the spread whose statistic mostly exceeds the critical value.

    A spread s multiplies ``t**2`` of a row by ``1 + s**2 * signal`` on average, signal
    being its squared signal-to-noise ratio. The equation, mean = quantile * (standard
    deviation without + standard deviation with), is quadratic in ``s**2``. It promises
    19 times in 20; noise in the ratios makes it 16 to 19.
    """
    quantile = Scales.LEVEL_QUANTILE
    sizes = rows.groups.sizes.reshape(-1, 2).sum(axis=1)
    level = np.where(usable, square / np.maximum(sizes, 1), 0.0)
    ops = rows.groups.ops
    signal = ops.ratio(rows.groups.spread(np.repeat(level, 2)), rows.v)
    terms = (rows.gain * signal, rows.gain**2 * signal, (rows.gain * signal) ** 2)
    pull, cross, own = (ops.number(ops.xp.sum(term)) for term in terms)
    below = pull**2 - 2 * quantile**2 * own
    if below <= 0:
        return np.inf
    above = 2 * quantile * np.sqrt(max(variance, 0.0)) * pull + 4 * quantile**2 * cross
    return float(np.sqrt(above / below))
