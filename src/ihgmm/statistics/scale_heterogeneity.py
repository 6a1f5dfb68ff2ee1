"""A test of whether the rows of a cluster differ in scale at all, and by how much."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import fdtrc, stdtrit

from ihgmm._checks import check_matrix, data_and_labels, labelled_rows
from ihgmm._display import Result
from ihgmm._parameters import generator, usual_errors
from ihgmm.matrix import HOST, sample_positions, to_host
from ihgmm.policy import Scales
from ihgmm.statistics.residuals import compare_halves, random_parts


@dataclass(frozen=True, eq=False, repr=False)
class ScaleTest(Result):
    """What the data say about the scales of the rows of a cluster; print it."""

    #: How often equal scales would give such a statistic or a larger one, all clusters
    #: together; NaN when no cluster could be tested.
    p_value: float
    #: Excess of the differences between rows over those of noise, in standard
    #: deviations of what equal scales give.
    statistic: float
    #: Standard deviation over mean of the scales in a cluster, noise removed, pooled
    #: over clusters; NaN when the centres are too weak for an estimate.
    spread: float
    spread_interval: tuple[float, float]  #: of 95%; of 60 rows, 90% hold the truth
    clusters: np.ndarray  #: the labels of the clusters, sorted
    sizes: np.ndarray  #: rows in each
    #: Of each cluster by itself; NaN for fewer than four rows, equal ones, one feature.
    p_values: np.ndarray
    spreads: np.ndarray  #: the same


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
        The data, wherever they are.
    labels : array-like of shape (n_samples,), or fitted estimator
        The cluster of each row, of any kind; a fitted model stands for its ``labels_``.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the split into halves. Other splits give other p-values, all valid; to
        choose among them is not.

    Returns
    -------
    ScaleTest

    Notes
    -----
    Rows of a half of a cluster are compared along the mean of the other half, and with
    rows of *other* clusters, which show how noise varies there. Wrong labels look like
    scales. Of more than 131,072 rows so many are used. :doc:`/inference` has the rates,
    and :doc:`/statistics` the formulas.

    Examples
    --------
    >>> from ihgmm import make_ihgmm, scale_heterogeneity_test
    >>> X, labels = make_ihgmm(200, 100, 2, scale_ratio=1.5, random_state=0)
    >>> print(scale_heterogeneity_test(X, labels))
    cluster     rows  spread  p-value
    0            100   11.0%  2.5e-07
    1            100   13.9%  2.2e-12
    all          200   12.5%  2.2e-16
    Ih-GMM: rows of a cluster differ in scale by about 13% (p < 0.0001).
    This assumes that noise is correlated alike in all clusters.
    """
    X, labels = data_and_labels(X, labels)
    data = check_matrix(X)
    classes, codes, outliers = labelled_rows(labels, data)
    codes, inside = to_host(codes), np.arange(data.shape[0])
    if outliers is not None:
        inside = inside[~to_host(outliers)]
    inside = inside[sample_positions(len(inside), Scales.ROWS)]
    if len(inside) < len(codes):
        data, codes = data.keep_rows(inside), codes[inside]
    sizes = np.bincount(codes, minlength=len(classes)).astype(np.float64)
    n_folds = int(np.clip(2**23 // len(classes) ** 3, 4, Scales.FOLDS))
    parts = random_parts(codes, n_folds, generator(random_state))
    halves = compare_halves(data, *parts, k=len(classes), apart=True)
    seen, noise = (
        _with_total((halves.weights[:, None] * values).sum(axis=0))
        for values in (halves.seen, halves.noise)
    )
    ratios = HOST.ratio(seen[0], noise[0], np.nan)
    # As of normal variables, at most, each cluster having two means.
    freedom = np.minimum(_freedom(seen), _with_total(np.maximum(sizes - 2, 1.0)))
    p_values = fdtrc(freedom, _freedom(noise), ratios)
    error = np.sqrt(2 / freedom + 2 / _freedom(noise))
    statistic = HOST.ratio(np.log(np.maximum(ratios, 1e-300)), error, np.nan)
    # Squared spreads by cluster and of all; NaN of weak centres.
    excess = (halves.sizes[:, None] * (halves.seen - halves.noise)).sum(axis=0)
    energy = (halves.sizes * halves.levels**2).sum(axis=0)
    floor = halves.noise[:, 0].sum(axis=0)
    clear = (energy > 3**2 * floor) & (floor > 0)
    square = _with_total(np.where(clear, energy - floor, 0.0))
    excess = _with_total(excess * clear)
    squares = HOST.ratio(excess, square + 0 * excess, np.nan)
    spreads = np.sqrt(np.maximum(squares[0], 0.0))
    reach = stdtrit(n_folds - 1, 0.975) * np.sqrt(_variance(squares[:, -1]))
    low, high = np.sqrt(np.maximum(squares[0, -1] + np.array([-reach, reach]), 0.0))
    of_all = float(p_values[-1]), float(statistic[-1]), float(spreads[-1])
    by_cluster = classes, sizes, p_values[:-1], spreads[:-1]
    return ScaleTest(*of_all, (float(low), float(high)), *by_cluster)


def _with_total(values: Any) -> np.ndarray:
    """Return values of clusters, and their sum as one cluster more."""
    return np.concatenate([values, values.sum(axis=-1, keepdims=True)], axis=-1)


def _variance(values: np.ndarray) -> Any:
    """Return the jackknife's variance of the first line."""
    return values[1:].var(axis=0) * (len(values) - 2)


def _freedom(variances: np.ndarray) -> np.ndarray:
    """Return degrees of freedom of variances: of their logarithms, 2 / variance."""
    logs = np.log(np.where(variances > 0, variances, 1.0))
    return np.asarray(np.minimum(HOST.ratio(2.0, _variance(logs), np.inf), 1e9))
