"""A test of whether the rows of a cluster differ in scale at all, and by how much."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import fdtrc, stdtrit

from ihgmm._checks import check_matrix, data_and_labels, labelled_rows
from ihgmm._display import Result
from ihgmm._parameters import generator, usual_errors
from ihgmm.matrix import HOST, Matrix, sample_positions, to_host
from ihgmm.policy import Scales
from ihgmm.statistics.halves import Halves, compare_halves, split_clusters


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
    data, classes, codes = _rows_to_test(X, labels)
    k = len(classes)
    n_folds = int(np.clip(2**23 // k**3, 4, Scales.FOLDS))
    split = split_clusters(codes, k, n_folds, generator(random_state))
    halves = compare_halves(data, split, orthogonal=True)
    sizes = np.bincount(codes, minlength=k).astype(np.float64)

    p_values, statistics = _variance_ratio_test(halves, sizes)
    spreads, spread_interval = _relative_spreads(halves, n_folds)

    return ScaleTest(
        p_value=float(p_values[-1]),
        statistic=float(statistics[-1]),
        spread=float(spreads[-1]),
        spread_interval=spread_interval,
        clusters=classes,
        sizes=sizes,
        p_values=p_values[:-1],
        spreads=spreads[:-1],
    )


def _rows_to_test(X: Any, labels: Any) -> tuple[Matrix, np.ndarray, np.ndarray]:
    """Return rows, or a sample of many, classes, and codes of the rows' classes.

    Outliers are left out.
    """
    X, labels = data_and_labels(X, labels)
    data = check_matrix(X)
    classes, codes, outliers = labelled_rows(labels, data)
    codes = to_host(codes)

    rows = np.arange(data.shape[0])
    if outliers is not None:
        rows = rows[~to_host(outliers)]
    rows = rows[sample_positions(len(rows), Scales.ROWS)]
    if len(rows) < len(codes):
        data = data.keep_rows(rows)
        codes = codes[rows]
    return data, classes, codes


def _variance_ratio_test(
    halves: Halves, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return p-values and statistics of each cluster, then of all clusters together.

    Along its centre a row varies by its scale and by noise; F is that variance over the
    variance of noise alone. Lines beyond the first leave out one fold each: how much
    they differ gives the degrees of freedom.
    """
    weights = halves.weights[:, None]
    observed = (weights * halves.row_variances).sum(axis=0)
    expected = (weights * halves.noise_variances).sum(axis=0)
    observed = _with_total(observed)
    expected = _with_total(expected)
    ratios = HOST.ratio(observed[0], expected[0], np.nan)

    # No more than normal rows would have, after a mean for each half.
    most_freedom = _with_total(np.maximum(sizes - 2, 1.0))
    freedom_observed = np.minimum(_degrees_of_freedom(observed), most_freedom)
    freedom_expected = _degrees_of_freedom(expected)
    p_values = fdtrc(freedom_observed, freedom_expected, ratios)

    # Of log F, which is close to normal.
    standard_errors = np.sqrt(2 / freedom_observed + 2 / freedom_expected)
    log_ratios = np.log(np.maximum(ratios, 1e-300))
    return p_values, HOST.ratio(log_ratios, standard_errors, np.nan)


def _relative_spreads(
    halves: Halves, n_folds: int
) -> tuple[np.ndarray, tuple[float, float]]:
    """Return the spread of scales in each cluster and in all, and its interval."""
    squares = _squared_spreads(halves)
    spreads = np.sqrt(np.maximum(squares[0], 0.0))

    error = np.sqrt(_jackknife_variance(squares[:, -1]))
    reach = stdtrit(n_folds - 1, 0.975) * error
    ends = squares[0, -1] + np.array([-reach, reach])
    lower, upper = np.sqrt(np.maximum(ends, 0.0))
    return spreads, (float(lower), float(upper))


def _squared_spreads(halves: Halves) -> np.ndarray:
    """Return squared spreads by cluster, then of all, (n_folds + 1, n_clusters + 1).

    The first line is that of all rows. Squared spreads are the variance of rows along
    their centre that is not noise, over the squared length of the centre without its
    noise; NaN where centres are too weak.
    """
    sizes = halves.sizes  # (2, n_clusters)
    excess = halves.row_variances - halves.noise_variances
    excess = sizes[:, None] * excess
    excess = excess.sum(axis=0)  # (n_folds + 1, n_clusters)

    squared_lengths = sizes * halves.center_lengths**2
    squared_lengths = squared_lengths.sum(axis=0)  # (n_clusters,)
    noise = halves.noise_variances[:, 0].sum(axis=0)
    is_clear = (noise > 0) & (squared_lengths > 3**2 * noise)
    signal = np.where(is_clear, squared_lengths - noise, 0.0)

    excess = _with_total(excess * is_clear)
    signal = np.broadcast_to(_with_total(signal), excess.shape)
    squares: np.ndarray = HOST.ratio(excess, signal, np.nan)
    return squares


def _with_total(values: np.ndarray) -> np.ndarray:
    """Return values of clusters, and their sum as one cluster more."""
    total = values.sum(axis=-1, keepdims=True)
    return np.concatenate([values, total], axis=-1)


def _jackknife_variance(values: np.ndarray) -> np.ndarray:
    """Return the variance of the first line, by those that leave out one fold each."""
    n_folds = len(values) - 1
    variance: np.ndarray = values[1:].var(axis=0) * (n_folds - 1)
    return variance


def _degrees_of_freedom(variances: np.ndarray) -> np.ndarray:
    """Return degrees of freedom of variances: 2 over the variance of the logarithm."""
    positive = np.where(variances > 0, variances, 1.0)
    logs = np.log(positive)
    freedom: np.ndarray = HOST.ratio(2.0, _jackknife_variance(logs), np.inf)
    return np.minimum(freedom, 1e9)
