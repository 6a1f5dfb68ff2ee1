"""What sets a cluster apart from all other rows: its features, with their errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from ihgmm import _checks as checks
from ihgmm._display import Result
from ihgmm._parameters import check_count
from ihgmm.matrix import HOST, row_lengths
from ihgmm.policy import Contrasts, Small
from ihgmm.statistics.described_fit import DescribedFit, described_fit
from ihgmm.statistics.feature_means import (
    CellScatter,
    FeatureMeans,
    column_offsets,
    feature_means,
    observed_means,
)

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
        return _are_clear(self.contrasts, self.errors)

    def to_frame(self) -> DataFrame:
        """Return a line for each feature listed: of each cluster ``more``, ``less``."""
        from pandas import DataFrame

        listed = [*map(np.append, self.more, self.less)]
        cluster = np.repeat(np.arange(len(listed)), [*map(len, listed)])
        feature = np.concatenate(listed)
        columns = {
            "cluster": self.clusters[cluster],
            "feature": np.array(self.names)[feature],
            "mean": self.means[cluster, feature],
            "others": self.others[cluster, feature],
            "contrast": self.contrasts[cluster, feature],
            "error": self.errors[cluster, feature],
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
    named_data = original if hasattr(original, "columns") else X
    names = checks.feature_names(names, model, named_data, fit.data.shape[1])
    return rank_features(fit, model, names, n_features, original)


def rank_features(
    fit: DescribedFit, model: Any, names: list[str], n_features: int, original: Any
) -> TopFeatures:
    """Do as :func:`top_features`, for a fit that is described and names for all."""
    n_listed = check_count("n_features", n_features)

    prepared = feature_means(fit)
    units = _means_in_units(fit, prepared, model, original)
    comparison = _compare_with_others(fit, prepared, units)
    lists = _list_features(comparison, units, fit.sizes, n_listed)

    return TopFeatures(
        clusters=fit.clusters,
        sizes=fit.sizes,
        names=names,
        contrasts=comparison.contrasts,
        errors=comparison.errors,
        means=units.means,
        others=comparison.others,
        same_size=not units.are_shifted,
        has_noise=comparison.has_noise,
        more=lists.more,
        less=lists.less,
        features=lists.features,
    )


@dataclass(frozen=True, eq=False)
class _MeansInUnits:
    """Means in the units that readers know, (n_clusters, n_features)."""

    means: np.ndarray  # NaN where no cell was observed
    counts: np.ndarray  # of observed cells
    offsets: np.ndarray  # (n_features,): what columns have where prepared ones are 0
    are_shifted: bool  # columns were moved, so that multiples of rows mean nothing

    @property
    def have_others(self) -> np.ndarray:
        """Whether a cell of another cluster was observed, (n_clusters, n_features)."""
        return self.counts.sum(axis=0) > self.counts


def _means_in_units(
    fit: DescribedFit, prepared: FeatureMeans, model: Any, original: Any
) -> _MeansInUnits:
    """Return means of the original data, or else of those of the fit."""
    means = prepared.means * fit.data.unit
    counts = prepared.counts
    offsets = np.zeros(means.shape[1])

    if original is not None:
        data = checks.check_matrix(original, missing="fit")
        checks.check_fit_shape("original", data, model)
        data = checks.turned_rows(data, model)
        wild_cells = getattr(model, "outlier_cells_", np.empty((0, 2), np.intp))
        prepared_means = means
        means, counts = observed_means(data, fit.labels, len(fit.clusters), wild_cells)
        offsets = column_offsets(prepared_means, means)

    largest_mean = np.nanmax(np.abs(means))
    largest_offset = np.abs(offsets).max()
    return _MeansInUnits(
        means=means,
        counts=counts,
        offsets=offsets,
        are_shifted=bool(largest_offset > Small.ROUNDING * largest_mean),
    )


@dataclass(frozen=True, eq=False)
class _Comparison:
    """Each cluster beside all other rows, (n_clusters, n_features)."""

    contrasts: np.ndarray
    errors: np.ndarray
    others: np.ndarray  # means of other rows, in units; NaN where there are none
    has_noise: bool  # whether the unit of contrasts is the noise level


def _compare_with_others(
    fit: DescribedFit, prepared: FeatureMeans, units: _MeansInUnits
) -> _Comparison:
    """Compare clusters with other rows at one length, or as they are if shifted.

    Readers cannot follow multiples of columns that were shifted.
    """
    centers = np.nan_to_num(prepared.means)
    if units.are_shifted:
        unscaled_fit = replace(fit, scales=np.ones(len(fit.labels)))
        scatter = feature_means(unscaled_fit).scatter
        lengths = np.ones((len(centers), 1))
    else:
        scatter = prepared.scatter
        lengths = row_lengths(centers)[:, None]  # (n_clusters, 1)

    patterns = HOST.ratio(centers, lengths)
    counts = centers.any(axis=1)[:, None] * prepared.counts
    patterns_of_others = _mean_of_others(patterns, counts)

    is_alone = fit.sizes == fit.sizes.sum()
    is_comparable = (counts > 0) & (units.have_others | is_alone[:, None])
    contrasts = np.where(is_comparable, patterns - patterns_of_others, 0.0)
    errors = np.zeros_like(contrasts)

    if scatter is not None:
        own_patterns = np.zeros_like(centers) if units.are_shifted else centers
        # The length of a cluster is given to others; these have patterns of their own.
        squares = _relative_squares(scatter, patterns_of_others * lengths, lengths)
        own_squares = _relative_squares(scatter, own_patterns, lengths)
        squares += _mean_of_others(own_squares, counts, power=2)
        contrasts = contrasts * lengths / scatter.noise_levels
        errors = np.sqrt(squares) * lengths / scatter.noise_levels

    return _Comparison(
        contrasts=contrasts,
        errors=errors,
        others=_means_of_others_in_units(units, lengths),
        has_noise=scatter is not None,
    )


def _means_of_others_in_units(units: _MeansInUnits, lengths: np.ndarray) -> np.ndarray:
    """Return means of other rows at the length of each cluster; NaN without others."""
    if units.are_shifted:
        means = _mean_of_others(units.means, units.counts)
    else:
        known_lengths = np.where(np.isfinite(units.means), lengths, 0.0)
        patterns = HOST.ratio(units.means - units.offsets, known_lengths)
        means = _mean_of_others(patterns, units.counts) * lengths
    return np.where(units.have_others, means, np.nan)


def _mean_of_others(
    values: np.ndarray, counts: np.ndarray, power: int = 1
) -> np.ndarray:
    """Return means over rows of other clusters; with power 2, of squared errors."""
    sums = counts**power * np.nan_to_num(values)
    counts_of_others = (counts.sum(axis=0) - counts) ** power
    counts_of_others = np.broadcast_to(counts_of_others, sums.shape)
    sums_of_others = sums.sum(axis=0) - sums
    means: np.ndarray = HOST.ratio(sums_of_others, counts_of_others)
    return means


def _relative_squares(
    scatter: CellScatter, patterns: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """Return squared errors of means over squared lengths; NaN next to length 0."""
    with np.errstate(over="ignore"):
        errors = np.sqrt(scatter.squared_errors(patterns))
        squares: np.ndarray = HOST.ratio(errors, lengths) ** 2
    squares[np.isinf(squares)] = np.nan
    return squares


@dataclass(frozen=True, eq=False)
class _FeatureLists:
    """Columns to list for each cluster, as of :class:`TopFeatures`."""

    more: list[np.ndarray]
    less: list[np.ndarray]
    features: list[np.ndarray]


def _list_features(
    comparison: _Comparison, units: _MeansInUnits, sizes: np.ndarray, n_listed: int
) -> _FeatureLists:
    """List what each cluster has more of, less of, and what differs most."""
    contrasts = comparison.contrasts
    # Means of observed cells may say the opposite of a contrast, and a feature of which
    # a cluster has few of them says little.
    is_known = 2 * units.counts >= sizes[:, None]
    is_more = (contrasts > 0) & ~(units.means < comparison.others) & is_known
    is_less = (contrasts < 0) & ~(units.means > comparison.others) & is_known

    scores = np.abs(contrasts) - 2 * comparison.errors
    columns_of_more = _clearest(scores, is_more, n_listed)
    columns_of_less = _clearest(scores, is_less, n_listed)
    candidates = _clearest(scores, is_more | is_less, n_listed)

    is_clear = _are_clear(contrasts, comparison.errors)
    features = []
    for i, columns in enumerate(candidates):
        chosen = _strongest(
            columns, columns_of_more[i], contrasts[i], is_clear[i], n_listed
        )
        # In the order that people see: what is more, and the largest contrasts first.
        chosen.sort(key=lambda j: (is_less[i, j], -abs(contrasts[i, j])))
        features.append(np.array(chosen, dtype=np.intp))

    return _FeatureLists(more=columns_of_more, less=columns_of_less, features=features)


def _clearest(
    scores: np.ndarray, is_candidate: np.ndarray, n_listed: int
) -> list[np.ndarray]:
    """Return columns of the largest scores by cluster, of equal ones the first."""
    ranks = np.where(is_candidate, scores, -np.inf)
    order = np.argsort(-ranks, axis=1, kind="stable")[:, :n_listed]
    return [
        columns[is_candidate_here[columns]]
        for columns, is_candidate_here in zip(order, is_candidate, strict=True)
    ]


def _strongest(
    columns: np.ndarray,
    more: np.ndarray,
    contrasts: np.ndarray,
    is_clear: np.ndarray,
    n_listed: int,
) -> list[int]:
    """Choose from the clearest columns of a cluster those that differ most.

    What may be chance is not chosen, nor what is weak beside the clearest. Most people
    ask what a cluster has: of five, three tell that, if they are strong.
    """
    strengths = np.minimum(np.abs(contrasts), Contrasts.MOST)
    quarter = strengths[columns[:1]].sum() / 4
    is_strong = is_clear & (strengths > min(Contrasts.WEAK, quarter))

    three_fifths = -(-3 * n_listed // 5)
    n_first = min(three_fifths, n_listed - 1) or 1
    first = [j for j in more if is_strong[j] and strengths[j] > quarter]
    first = first[:n_first]
    second = [j for j in columns if is_strong[j] and j not in first]
    chosen = [*first, *second]
    return chosen[: len(columns)]


def _p_values(contrasts: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Return two-sided normal p-values."""
    errors = np.maximum(errors, 1e-150)  # of data without noise
    p_values: np.ndarray = 2 * ndtr(-np.abs(contrasts) / errors)
    return p_values


def _are_clear(contrasts: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Tell which contrasts are no chance, even as the largest of all features."""
    n_features = contrasts.shape[1]
    return _p_values(contrasts, errors) * n_features < Contrasts.LEVEL
