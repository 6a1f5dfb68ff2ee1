"""A test of whether the rows of a cluster differ in scale at all.

The classical mixture is the model of this package with equal scales in each cluster.
This file tests for that, and says how far apart the scales are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ihgmm._arrays import is_sparse
from ihgmm._checks.data import check_data
from ihgmm._checks.parameters import generator
from ihgmm._checks.rows import check_labels
from ihgmm._devices import to_host
from ihgmm.heterogeneity.evidence import (
    cumulants_of,
    detectable_spread,
    effects,
    judge,
    spread_of,
)
from ihgmm.heterogeneity.halves import LEAST, random_halves, row_figures

__all__ = ["ScaleTest", "scale_heterogeneity_test"]

LEVEL, SMALL = 0.05, 0.05
"""A p-value below the first is evidence; a spread below the second is slight."""


@dataclass(frozen=True, eq=False, repr=False)
class ScaleTest:
    """What the data say about the scales of the rows of a cluster.

    Print it for a table with the recommendation.

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
        noise makes them; NaN when the centres are too weak to tell.
    detectable : float
        The spread that would be found, at the level of 5%, about 9 times in 10;
        ``inf`` when the centres are too weak or the rows too few.
    clusters : ndarray of shape (n_clusters,)
        The labels of the clusters, sorted.
    sizes : ndarray of shape (n_clusters,)
        Rows in each cluster.
    p_values, statistics, spreads : ndarray of shape (n_clusters,)
        The same for each cluster by itself. A cluster of fewer than four rows has NaN
        in all three and is left out of the overall figures. The first two are NaN also
        when the rows are all the same, or their mean lies on a single feature.
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

    @property
    def recommendation(self) -> str:
        """Which mixture to use, in words, with the figures that speak for it."""
        if np.isnan(self.p_value):
            return (
                f"no recommendation: no cluster has {LEAST} rows with differences "
                "to judge by."
            )
        p = _written(self.p_value)
        # A noisy cluster can drown another one that shows scales clearly.
        tested = int((~np.isnan(self.p_values)).sum())
        least = int(np.nanargmin(self.p_values))
        alone = min(1.0, tested * self.p_values[least])
        if self.p_value >= LEVEL > alone:
            return (
                f"Ih-GMM: rows of cluster {self.clusters[least]} differ in scale "
                f"({_written(alone)}, corrected for {tested} clusters), though all "
                f"clusters together do not show it ({p})."
            )
        if self.p_value >= LEVEL and self.detectable >= 1:
            return (
                f"no recommendation: no sign of individual scales ({p}), but with so "
                "weak a signal, or so few rows or features, they need not show."
            )
        if self.p_value >= LEVEL:
            return (
                f"classical mixture: no sign of individual scales ({p}), and a spread "
                f"of {self.detectable:.1%} would have shown."
            )
        if np.isnan(self.spread):
            return (
                f"Ih-GMM: rows of a cluster differ in scale ({p}); the signal is too "
                "weak to say by how much."
            )
        if self.spread < SMALL:
            return (
                f"classical mixture: rows of a cluster do differ in scale ({p}), but "
                f"by about {self.spread:.1%} only."
            )
        return (
            "Ih-GMM: rows of a cluster differ in scale by about "
            f"{self.spread:.0%} ({p})."
        )

    def __repr__(self) -> str:
        return (
            f"ScaleTest(p_value={self.p_value:.3g}, statistic={self.statistic:.3g}, "
            f"spread={self.spread:.3g}, n_clusters={len(self.clusters)})"
        )

    def __str__(self) -> str:
        names = [str(label) for label in self.clusters]
        width = max(map(len, [*names, "cluster"]))
        lines = [f"{'cluster':<{width}}  {'rows':>7}  {'spread':>6}  {'p-value':>7}"]
        each = zip(names, self.sizes, self.spreads, self.p_values, strict=True)
        total = ("all", self.sizes.sum(), self.spread, self.p_value)
        for name, size, spread, p in (*each, total):
            shown = "-" if np.isnan(spread) else f"{spread:.1%}"
            value = "-" if np.isnan(p) else "<1e-300" if p < 1e-300 else f"{p:.2g}"
            lines.append(f"{name:<{width}}  {size:>7}  {shown:>6}  {value:>7}")
        return "\n".join([*lines, self.recommendation])


def _written(p_value: float) -> str:
    return "p < 0.0001" if p_value < 1e-4 else f"p = {p_value:.2g}"


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
        :class:`ihgmm.IhSC`.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the split into halves. Other splits give other p-values, all valid;
        to choose among them is not.

    Returns
    -------
    ScaleTest

    Notes
    -----
    Each cluster is split in two halves at random. The mean of one half gives a
    direction u; a row of the other half, less the mean of that half, is d. With equal
    scales d is noise alone: its entries are independent, and if noise is symmetric a
    change of sign does not change their distribution. So
    ``t = sum(e) / sqrt(sum(e**2))`` with ``e = u * d`` has ``E[t**2] = 1`` exactly, for
    any symmetric noise, whatever its level in that row, and with individual scales
    more. The statistic is the weighted sum of ``t**2 - 1`` over all rows, the weight
    being the row's signal-to-noise ratio. Its variance and third cumulant are known
    from the fourth and sixth powers of e, and a gamma distribution with these gives
    the p-value. Then the halves change roles.

    Counts and the like have skewed noise. Then a large entry makes the sum and the
    squares large at once, ``E[t**2]`` is above 1 wherever u has mostly one sign, and
    with many rows this looks like scales. So each entry of e is multiplied by
    ``1 + a * s / (1 - s)``, s being its share in the squares of its row, at most 0.9,
    and ``a = 2.5 - sqrt(2.5)``. To the leading order that makes the mean 0 with skewed
    noise; with symmetric noise it stays 0 exactly.

    The spread is the variance of ``u . x`` in a half less that of the noise, over the
    squared mean of ``u . x`` less its noise. It is cross-fitted as the test is, so that
    noise in the direction does not bias it; as halves have means of their own, it
    estimates the spread that the scales were drawn with, not that of these very rows.

    The test takes the model's word that entries of the noise are independent. At the
    level of 5% it rejects equal scales in 0% to 5% of draws of Poisson counts with 15
    to 200 of them in a row (300 x 50 to 2,000 x 2,000, three clusters), and in 3% to
    10% with exponential noise around positive centres (50 and 1,000 features). It
    rejects too often when rows hold about ten counts or fewer (30% of draws), and with
    exponential noise in ten features and thousands of rows (half of them). Noise
    that the features share, in the direction of the centre, looks like scales. So do
    rows with a wrong label. And t squared is at most n_features: with very few
    features, or centres that live on very few, only large clusters can show anything.

    Examples
    --------
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.heterogeneity.scale_test import scale_heterogeneity_test
    >>> X, labels = make_ihgmm(200, 100, 2, scale_ratio=1.5, random_state=0)
    >>> scale_heterogeneity_test(X, labels).recommendation
    'Ih-GMM: rows of a cluster differ in scale by about 12% (p < 0.0001).'
    >>> X, labels = make_ihgmm(200, 100, 2, scale_ratio=1.0, random_state=0)
    >>> scale_heterogeneity_test(X, labels).p_value > 0.05
    True
    """
    data = check_data(X, blocks=True, devices=True)
    array = check_labels("labels", labels)
    n = data.X.shape[0]
    if len(array) != n:
        raise ValueError(
            f"labels has {len(array)} entries and X has {n} rows; give one label for "
            "each row of X."
        )
    names, codes = np.unique(array, return_inverse=True)
    sizes = np.bincount(codes)
    group = 2 * codes + random_halves(codes, generator(random_state))
    # Rows are slow to pick from a matrix stored by columns.
    rows = data.X.tocsr() if is_sparse(data.X) else data.X
    figures = row_figures(rows, group, 2 * len(sizes), to_host(data.sqnorms))
    cumulants = cumulants_of(figures)
    statistics, p_values = judge(cumulants)
    variance, square, usable = effects(figures)
    statistic, p_value = judge(cumulants.sum(axis=0, keepdims=True))
    return ScaleTest(
        p_value=float(p_value[0]),
        statistic=float(statistic[0]),
        spread=float(spread_of(variance[usable].sum(), square[usable].sum())),
        detectable=detectable_spread(figures, cumulants, square, usable),
        clusters=names,
        sizes=sizes,
        p_values=p_values,
        statistics=statistics,
        spreads=spread_of(variance, np.where(usable, square, 0.0)),
    )
