"""What describes a cluster: features that set it apart, and its typical rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from ihgmm import _checks as checks
from ihgmm._display import Result
from ihgmm._parameters import check_count
from ihgmm.matrix import HOST, Filled, Matrix, MissingIndicator, row_lengths, to_host
from ihgmm.policy import Contrasts, Small
from ihgmm.statistics.estimation import estimate_parameters
from ihgmm.statistics.leave_one_out import indicators
from ihgmm.statistics.missing_cells import filled_cells

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False, repr=False)
class TopFeatures(Result):
    """What sets each cluster apart from all other rows. ``print`` it for sentences."""

    clusters: np.ndarray  #: the label of each cluster
    sizes: np.ndarray  #: rows in each
    names: list[str]  #: of all features
    #: How far a cluster, in each line, is above the other rows in each feature: means
    #: less others, in noise levels, or in lengths of the cluster's mean without noise.
    contrasts: np.ndarray
    errors: np.ndarray  #: standard errors of contrasts
    means: np.ndarray  #: of each cluster, over observed cells, in the units of the data
    others: np.ndarray  #: what all other rows have, if made as large as the cluster's
    same_size: bool  #: else columns were shifted, and ``others`` has plain means
    has_noise: bool  #: whether the unit of contrasts is the noise level
    more: list[np.ndarray]  #: columns a cluster has more of, the clearest first
    less: list[np.ndarray]  #: the same of less
    #: Those that differ most, beyond chance: of more, then of less, the largest first
    features: list[np.ndarray]

    @property
    def scores(self) -> np.ndarray:
        """The size of contrasts, less two errors: at least so large. They rank."""
        return np.abs(self.contrasts) - 2 * self.errors

    @property
    def p_values(self) -> np.ndarray:
        """Probabilities of contrasts as large by chance, if chosen beforehand."""
        return _p_values(self.contrasts, self.errors)

    @property
    def is_clear(self) -> np.ndarray:
        """Which contrasts are no chance, even as the largest of all features."""
        return self.p_values * len(self.names) < Contrasts.LEVEL

    def to_frame(self) -> DataFrame:
        """Return a line for each feature listed: of each cluster ``more``, ``less``."""
        from pandas import DataFrame

        lists = [*map(np.append, self.more, self.less)]
        cluster = np.repeat(np.arange(len(lists)), [*map(len, lists)])
        at = cluster, np.concatenate(lists)
        columns = {
            "cluster": self.clusters[cluster],
            "feature": np.array(self.names)[at[1]],
            "mean": self.means[at],
            "others": self.others[at],
            "contrast": self.contrasts[at],
            "error": self.errors[at],
        }
        return DataFrame(columns)


def top_features(
    X: Any, model: Any, *, names: Any = None, n_features: int = 10, original: Any = None
) -> TopFeatures:
    """Rank features by how far each cluster is above, or below, all other rows.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data of the fit, wherever they are; texts, if a pipeline takes texts.
    model : fitted estimator, or array-like of shape (n_samples,)
        A fitted model, a pipeline that ends with one, or labels of any kind, from any
        method. Outliers, -1 beside clusters numbered from 0, are left out.
    names : sequence of str, optional
        Names of features; by default those of the pipeline, the fit, ``original`` or X,
        or x0, x1, ...
    n_features : int, default=10
        How many features to list of those a cluster has more, and less, of.
    original : array-like or sparse matrix of shape (n_samples, n_features), optional
        The data before their columns were shifted or divided, for means in units that
        readers know. Default: X, also of a pipeline whose steps only change cells.

    Returns
    -------
    TopFeatures
        Lists by cluster, contrasts with errors, and means; ``print`` shows it in words:
        what is more, what is perhaps more, which may be chance, and what is far less.

    Notes
    -----
    Size is no pattern: other rows, each counted once, are stretched to the length of
    the cluster. With ``c_k`` for the mean of cluster k and ``u_k`` for that at length
    one, the contrast is ``c_k - |c_k| * mean(u_l for rows of l != k)`` over the noise
    level of the feature, or ``c_k - mean(c_l)`` if columns of ``original`` were moved.
    Errors are those of other rows with these labels: of cells, of the pattern of others
    and of the length of the cluster. They assume right labels. A feature chosen
    beforehand differs if its contrast is two errors from 0; the largest of 1,000 take
    four.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm, top_features
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> top = top_features(X, IhSC(3, random_state=0).fit(X), n_features=3)
    >>> print(top)
    What clusters have more and less of than other rows of the same size:
      0 (100 rows): more x4, x79, x78; less x90, x22
      1 (100 rows): more x70, x90, x86; less x79, x20
      2 (100 rows): more x13, x29, x24; less x94, x86
    """
    X, model, names, original = checks.last_step(X, model, names, original)
    fit = described_fit(X, model)
    named = original if hasattr(original, "columns") else X
    names = checks.feature_names(names, model, named, fit.data.shape[1])
    return rank_features(fit, model, names, n_features, original)


def rank_features(
    fit: DescribedFit, model: Any, names: list[str], n_features: int, original: Any
) -> TopFeatures:
    """Do as :func:`top_features`, for a fit that is described and names for all."""
    count = check_count("n_features", n_features)
    data, labels, sizes = fit.data, fit.labels, fit.sizes
    centers, counts, spread, noise = _means_and_noise(fit)
    k, means, observed = len(centers), centers * data.unit, counts
    offsets: Any = 0.0
    if original is not None:
        before = checks.check_matrix(original, missing="fit")
        checks.check_fit_shape("original", before, model)
        prepared = means
        wild = getattr(model, "outlier_cells_", np.empty((0, 2), np.intp))
        before = checks.turned_rows(before, model)
        means, observed = _means(before, labels, k, wild)
        offsets = _offsets(prepared, means)
    shifted = bool(np.abs(offsets).max() > Small.ROUNDING * np.nanmax(np.abs(means)))
    # How far centres are from all other rows, and the errors of that: at one length, or
    # as they are where columns were shifted, whose multiples readers cannot follow.
    if shifted:
        plain = fit._replace(scales=np.ones(len(labels)))
        *_, spread, noise = _means_and_noise(plain)
    has_noise, centers = noise is not None, np.nan_to_num(centers)
    lengths = np.ones((k, 1)) if shifted else row_lengths(centers)[:, None]
    live = centers.any(axis=1)[:, None]
    unit, counts = HOST.ratio(centers, lengths + 0 * centers), live * counts
    rest = _others(unit, counts)
    is_seen = observed.sum(axis=0) > observed  # of others, if there are any
    is_told = (counts > 0) & (is_seen | (sizes.sum() == sizes)[:, None])
    contrasts = np.where(is_told, unit - rest, 0.0)
    with np.errstate(over="ignore"):  # of centres next to zero errors are not known
        # Of a cluster whose length others are given, and of a pattern among others.
        squares = np.stack(
            [
                HOST.ratio(np.sqrt(spread(like)), lengths + 0 * centers) ** 2
                for like in (rest * lengths, 0 * rest if shifted else centers)
            ]
        )
    squares[np.isinf(squares)] = np.nan
    errors = np.sqrt(squares[0] + _others(squares[1], counts, power=2))
    if has_noise:
        contrasts, errors = (values * lengths / noise for values in (contrasts, errors))
    # What other rows have on average, at the length of each cluster.
    patterns = means if shifted else HOST.ratio(means - offsets, lengths + 0 * means)
    others = _others(patterns, observed) * lengths
    scores = np.abs(contrasts) - 2 * errors

    def clearest(among: np.ndarray) -> list[np.ndarray]:
        # The stable sort puts the first of equal ones first.
        ranks = np.where(among, scores, -np.inf)
        order = np.argsort(-ranks, axis=1, kind="stable")[:, :count]
        return [line[own[line]] for line, own in zip(order, among, strict=True)]

    others = np.where(is_seen, others, np.nan)
    figures = contrasts, errors, means, others, not shifted, has_noise
    # Means of observed cells may say the opposite of a contrast, and a feature of which
    # a cluster has few of them says little.
    known = 2 * observed >= sizes[:, None]
    above = (contrasts > 0) & ~(means < others) & known
    below = (contrasts < 0) & ~(means > others) & known
    is_clear = _p_values(contrasts, errors) * len(names) < Contrasts.LEVEL
    more, less, most = map(clearest, (above, below, above | below))
    for i, line in enumerate(most):
        # What may be chance is not listed, nor what is weak beside the clearest. Most
        # people ask what a cluster has: of five, three tell that, if they are strong.
        strength = np.minimum(np.abs(contrasts[i]), Contrasts.MOST)
        quarter = strength[line[:1]].sum() / 4
        clear = is_clear[i] & (strength > min(Contrasts.WEAK, quarter))
        ahead = [j for j in more[i] if clear[j] and strength[j] > quarter]
        ahead = ahead[: min(-(-3 * count // 5), count - 1) or 1]
        chosen = [*ahead, *(j for j in line if clear[j] and j not in ahead)]
        # In the order of contrasts, which people see.
        order = {j: (below[i, j], -abs(contrasts[i, j])) for j in chosen[: len(line)]}
        chosen = sorted(order, key=order.__getitem__)
        most[i] = np.array(chosen, dtype=np.intp)
    return TopFeatures(fit.clusters, sizes, names, *figures, more, less, most)


class DescribedFit(NamedTuple):
    """Rows of a fit in their own units, and what the fit says of them."""

    data: Matrix  # missing cells filled in, and rows turned towards their centre
    labels: np.ndarray  # numbers of clusters, -1 for outliers
    clusters: np.ndarray  # their labels, also of those without rows
    scales: np.ndarray
    centers: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Rows in each cluster."""
        return np.bincount(self.labels[self.labels >= 0], minlength=len(self.clusters))


def described_fit(X: Any, model: Any) -> DescribedFit:
    """Return rows with labels, scales and centres: the model's own, or estimates."""
    X, model, *_ = checks.last_step(X, model)
    X, given = checks.data_and_labels(X, model)
    data = checks.check_matrix(X)
    if checks.is_model(model):
        checks.check_fit_shape("X", data, model)
        labels = to_host(given).astype(np.intp)
        n_centers = len(to_host(getattr(model, "cluster_centers_", [])))
        clusters = np.arange(max(n_centers, int(labels.max()) + 1))
    else:
        clusters, codes, outliers = checks.labelled_rows(given, data)
        labels = to_host(codes)
        if outliers is not None:
            labels = np.where(to_host(outliers), -1, labels)
    if hasattr(model, "scales_"):
        known = model.scales_, model.cluster_centers_
    else:  # a method that knows nothing of scales
        estimates = estimate_parameters(data, labels, len(clusters))
        known = estimates.scales, estimates.centers
    scales, centers = (to_host(values).astype(np.float64) for values in known)
    return DescribedFit(data, labels, clusters, scales, centers)


def _p_values(contrasts: np.ndarray, errors: np.ndarray) -> np.ndarray:
    errors = np.maximum(errors, 1e-150)  # of data without noise
    return np.asarray(2 * ndtr(-np.abs(contrasts) / errors))


def _others(values: np.ndarray, counts: np.ndarray, power: int = 1) -> np.ndarray:
    """Return means over rows of other clusters; with power 2, of squared errors."""
    own = counts**power * np.nan_to_num(values)
    rest = np.broadcast_to((counts.sum(axis=0) - counts) ** power, own.shape)
    return np.asarray(HOST.ratio(own.sum(axis=0) - own, rest))


def _means_and_noise(fit: DescribedFit) -> tuple[Any, Any, Callable[[Any], Any], Any]:
    """Return means by cluster and feature, their rows, a function, noise or None.

    The function takes a pattern for each cluster, and returns squared errors of the
    means of ``x - scale * pattern``. Cells that were filled in say nothing.
    """
    k, inside = len(fit.clusters), np.flatnonzero(fit.labels >= 0)
    data = fit.data if len(inside) == len(fit.labels) else fit.data.keep_rows(inside)
    gaps, rows = data.incomplete, HOST.groups(fit.labels[inside], k)
    lengths = np.abs(np.nan_to_num(fit.scales[inside]))
    # How much longer a row makes the mean of its cluster, by the cells that it has.
    longer = rows.over_mean(lengths) - 1
    if gaps is not None:
        squares = HOST.unit_rows(np.nan_to_num(fit.centers)) ** 2
        seen = 1 - to_host(rows.inner_products(MissingIndicator(gaps), squares))
        longer *= rows.over_mean(seen)
    factors = np.stack([np.ones(len(inside)), lengths, longer, lengths**2])

    def work(block: Matrix, codes: Any, factors: Any) -> Any:
        codes, known = to_host(codes).astype(np.intp), block
        members = np.eye(k)[codes] * to_host(factors).T[:, :, None]
        sides = block.cast(np.hstack([*members]))
        lost: tuple[Any, ...] = ()
        if gaps is not None:
            known, lost = block.filled(), (block.missing().adjoint(sides),)
        squares = np.zeros((k, block.shape[1]))
        for j in np.unique(codes):
            squares[j] = known.take(np.flatnonzero(codes == j)).column_sqnorms()
        return (), (squares, known.adjoint(sides[:, : 3 * k]), *lost)

    given = data.to_device(rows.labels), data.cast(factors.T)
    _, (squares, sums, *lost) = (gaps or data).sweep(work, *given)
    plain, weighted, turned = np.vsplit(to_host(sums).astype(np.float64).T, 3)
    # The same sums of ones, where cells are known.
    ones = np.concatenate([rows.sums(factor) for factor in factors])[:, None]
    ones = ones - (to_host(lost[0]).T if lost else np.zeros(plain.shape[1]))
    counts, _, turns, weights = np.vsplit(ones, 4)
    means = HOST.ratio(plain, counts, np.nan)
    # Noise is what multiples of the clusters' patterns leave of a feature.
    left = squares - HOST.ratio(np.square(weighted), weights)
    total, pooled = squares.sum(axis=0), left.sum(axis=0)
    if pooled.sum() <= Small.ROUNDING * total.sum():
        return means, counts, np.zeros_like, None
    pooled = np.maximum(pooled, Contrasts.LEAST_NOISE * total)
    pooled = HOST.ratio(pooled, counts.sum(axis=0))
    # Sums of squares and products of cells and rows' lengths, less their means.
    cells = squares - np.square(np.nan_to_num(means)) * counts
    both = turned - np.nan_to_num(means) * turns
    share, squares = counts / np.maximum(fit.sizes, 1)[:, None], rows.sums(longer**2)

    def spread(patterns: Any) -> Any:
        moved = patterns * share
        varies = cells - 2 * moved * both + np.square(moved) * squares[:, None]
        own = np.maximum(varies, 0.0) / np.maximum(counts - 1, 1)
        return np.where(counts > 1, own, pooled) / np.maximum(counts, 1)

    return means, counts, spread, np.where(pooled > 0, np.sqrt(pooled), 1.0)


def _means(
    data: Matrix, labels: np.ndarray, k: int, wild: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return means of observed cells by cluster and feature, NaN of none; counts.

    Wild cells, each a row and a column, are as if they were missing.
    """
    codes = np.where(labels < 0, k, labels)  # outliers come last
    members = indicators(data, codes, k + 1)
    lacks = np.isnan(data.ops.number(data.ops.xp.sum(data.sqnorms)))
    known = Filled(data) if lacks else data
    sums = to_host(known.adjoint(members)).astype(np.float64).T
    sizes = np.bincount(codes, minlength=k + 1).astype(np.float64)
    counts = np.broadcast_to(sizes[:, None], sums.shape).copy()
    if lacks:
        counts -= to_host(MissingIndicator(data).adjoint(members)).T
    for cells in np.array_split(wild, -(-len(wild) // 1_000) or 1)[: len(wild)]:
        rows, places = np.unique(cells[:, 0], return_inverse=True)
        at = codes[cells[:, 0]], cells[:, 1]
        np.subtract.at(sums, at, to_host(data.rows(rows))[places, cells[:, 1]])
        np.subtract.at(counts, at, 1)
    return HOST.ratio(sums, counts, np.nan)[:k] * data.unit, counts[:k]


def _offsets(prepared: np.ndarray, original: np.ndarray) -> np.ndarray:
    """Return what each original column has where the prepared one is 0."""
    known = np.isfinite(prepared) & np.isfinite(original)
    count = np.maximum(known.sum(axis=0), 1)
    means = [np.where(known, m, 0.0).sum(axis=0) / count for m in (prepared, original)]
    x, y = np.where(known, (prepared - means[0], original - means[1]), 0.0)
    widest = np.abs(x).max(axis=0)
    unit = np.where(widest > 0, widest, 1.0)  # squares of huge numbers overflow
    squares = np.maximum(((x / unit) ** 2).sum(axis=0), np.finfo(float).tiny)
    slopes = (x / unit * y).sum(axis=0) / squares / unit
    offsets = means[1] - slopes * means[0]
    room = 1e-5 * np.abs(means[1]) * (unit + np.abs(means[0]))
    return np.where(np.abs(offsets) * widest > room, offsets, 0.0)


def typical_rows(X: Any, model: Any, *, n_rows: int = 3) -> list[np.ndarray]:
    """Return the rows that show best what each cluster is like.

    They are complete, of ordinary size, and nearest to the pattern of the cluster.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data of the fit, wherever they are; texts, if a pipeline takes texts.
    model : fitted estimator, or array-like of shape (n_samples,)
        A fitted model, a pipeline that ends with one, or labels of any kind, from any
        method.
    n_rows : int, default=3
        How many rows to return of each cluster.

    Returns
    -------
    list of ndarray
        Numbers of rows from 0, for each cluster, the most typical first. A cluster of
        fewer than five rows, or without such a row, has none.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm, typical_rows
    >>> X, _ = make_ihgmm(300, 100, 3, random_state=0)
    >>> rows = typical_rows(X, IhSC(3, random_state=0).fit(X), n_rows=2)
    >>> [len(of_cluster) for of_cluster in rows]
    [2, 2, 2]
    """
    fit, most = described_fit(X, model), check_count("n_rows", n_rows)
    return nearest_rows(fit.data, fit.labels, fit.centers, fit.scales, most)


def nearest_rows(
    data: Matrix, labels: Any, centers: Any, scales: np.ndarray, most: int = 3
) -> list[np.ndarray]:
    """Return typical rows of each cluster, by the angle to its centre."""
    products = to_host(data @ HOST.unit_rows(centers).T).astype(np.float64)
    norms = np.sqrt(to_host(data.sqnorms).astype(np.float64))
    own, lengths = products[np.arange(len(labels)), labels], np.abs(scales)
    # Where scales have both signs, a row may point away from its centre.
    cosines = HOST.ratio(np.where(scales < 0, np.abs(own), own), norms)
    is_row, complete = (norms > 0) & ~np.isnan(lengths), filled_cells(data) == 0
    typical = []
    for cluster in range(len(centers)):
        rows = np.flatnonzero(is_row & (labels == cluster))
        # Angles alone would choose the largest rows, which noise turns least.
        few = len(rows) < 5
        low, high = (1, 0) if few else np.quantile(lengths[rows], [0.25, 0.75])
        is_usual = (lengths[rows] >= low) & (lengths[rows] <= high)
        rows = rows[is_usual & complete[rows]]
        typical.append(rows[np.argsort(-cosines[rows], kind="stable")[:most]])
    return typical
