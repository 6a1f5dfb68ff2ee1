"""What describes a cluster: features that set it apart, and its typical rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ihgmm._checks import check_matrix, turned_rows
from ihgmm._display import Result
from ihgmm._parameters import check_count
from ihgmm.matrix import HOST, Filled, Matrix, to_host
from ihgmm.matrix.ops import row_lengths
from ihgmm.policy import Small, Whitening
from ihgmm.statistics.likelihood import indicators
from ihgmm.statistics.model import check_model


@dataclass(frozen=True, eq=False, repr=False)
class TellingFeatures(Result):
    """The features in which each centre differs most from the others.

    Attributes
    ----------
    features, scores : ndarray of shape (n_clusters, n_shown)
        Columns of the centres, those that differ most first, and their contrasts:
        above 0 where the cluster has more of a feature than the others.
    contrasts, errors : ndarray of shape (n_clusters, n_features)
        The contrasts of all features, and their standard errors; NaN if errors of the
        centres are not known. A feature chosen beforehand differs if its contrast is
        two errors from 0; the largest of 1,000 take four.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.statistics.contrasts import telling_features
    >>> ranked = telling_features(2 * np.eye(3) + 1)
    >>> ranked.features[:, 0]  # the most distinctive feature of each cluster
    array([0, 1, 2])
    """

    features: np.ndarray
    scores: np.ndarray
    contrasts: np.ndarray
    errors: np.ndarray

    def __repr__(self) -> str:
        k, p = self.contrasts.shape
        shown = self.features.shape[1]
        return f"TellingFeatures(n_clusters={k}, n_features={p}, shown={shown})"


def telling_features(
    centers: Any,
    noise_levels: Any = None,
    *,
    sizes: Any = None,
    center_errors: Any = None,
    n_features: int = 10,
) -> TellingFeatures:
    """Rank the features of each cluster by how far its centre is from the others.

    Parameters
    ----------
    centers : array-like of shape (n_clusters, n_features)
        Centres, such as ``cluster_centers_`` of :class:`ihgmm.IhSC`. A zero centre, as
        an empty cluster has, is left out.
    noise_levels : array-like, optional
        Standard deviation of the noise in an entry of a row, in units of the centres: a
        number for all, or shape (n_clusters,), or (1, n_features) and above 0 where
        features differ in noise.
    sizes : array-like of shape (n_clusters,), optional
        Rows of the clusters, by which they count among the others. Default: all alike.
    center_errors : array-like of shape (n_clusters, n_features), optional
        Standard errors of the centres.
    n_features : int, default=10
        How many features to return for each cluster; all, if there are fewer.

    Returns
    -------
    TellingFeatures

    Notes
    -----
    Size is no pattern, so other centres are stretched to the length of the one that
    they are compared with. The contrast of cluster k, ``u_k`` being its centre ``c_k``
    at length one, is ``c_k - |c_k| * mean(u_l for l != k)``, over the noise level, or
    over ``|c_k|`` without noise levels. Where features differ in noise, each is first
    divided by its own. Ranks go by the absolute contrast; a single cluster has its own
    entries ranked.

    Examples
    --------
    >>> import numpy as np
    >>> centers = np.array([[5.0, 1.0, 0.0], [100.0, 20.0, 60.0]])
    >>> ranked = telling_features(centers, n_features=1)
    >>> ranked.features.ravel(), ranked.scores.ravel().round(2)
    (array([2, 2]), array([-0.51,  0.51]))
    """
    count = check_count("n_features", n_features)
    (array,) = check_model(centers=to_host(centers))
    errors = np.full(array.shape, np.nan)
    if center_errors is not None:
        errors = to_host(center_errors).astype(np.float64)
    noise: Any = None
    if noise_levels is not None:
        noise = _check_noise(noise_levels, array.shape)
        if noise.shape[-1:] == array.shape[1:]:
            array, errors, noise = array / noise, errors / noise, 1.0
    unit, lengths = HOST.unit_rows(array), row_lengths(array)[:, None]
    live = unit.any(axis=1)
    counts = live * np.asarray(1.0 if sizes is None else sizes)
    contrasts = np.where(live[:, None], unit - _others(unit, counts), 0.0)
    squares = HOST.ratio(errors, lengths + np.zeros(errors.shape), np.nan) ** 2
    errors = np.sqrt(squares + _others(squares, counts, power=2))
    if noise is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            contrasts, errors = contrasts * lengths / noise, errors * lengths / noise
        # Without noise every difference is infinite, and no difference counts as 0.
        contrasts = np.where(np.isnan(contrasts), 0.0, contrasts)
    # The stable sort puts the first of equal ones first.
    features = np.argsort(-np.abs(contrasts), axis=1, kind="stable")[:, :count]
    scores = np.take_along_axis(contrasts, features, axis=1)
    return TellingFeatures(features, scores, contrasts, errors)


def _others(values: np.ndarray, sizes: np.ndarray, power: int = 1) -> np.ndarray:
    """Return the mean of all rows of other clusters, of which all have one value.

    With power 2 values are squared errors, and so is what is returned; 0 without rows.
    """
    own = sizes[:, None] ** power * np.nan_to_num(values)
    rest = np.broadcast_to((sizes.sum() - sizes)[:, None] ** power, own.shape)
    return np.asarray(HOST.ratio(own.sum(axis=0) - own, rest))


class SetApart(NamedTuple):
    """What sets clusters apart, in the units that people know.

    ``means`` has the mean of each feature in each cluster, over observed cells;
    ``others`` what rows of the other clusters would have of it, if they were as large
    as those of the cluster. Where columns were shifted, a multiple of a row means
    nothing in their units, and ``others`` has plain means: then ``same_size`` is False.
    """

    ranked: TellingFeatures
    means: np.ndarray
    others: np.ndarray
    same_size: bool
    has_noise: bool


def set_apart(
    model: Any,
    data: Matrix,
    labels: np.ndarray,
    scales: np.ndarray,
    *,
    center_errors: Any = None,
    original: Any = None,
    n_features: int = 10,
) -> SetApart:
    """Compare the mean of each cluster with all other rows at the same size.

    ``data`` are the rows of the fit, missing cells filled in, and ``original`` the same
    before their columns were shifted and divided, if they were. Outliers have the label
    -1. Contrasts have errors if ``center_errors`` of :class:`Estimates` are given.
    """
    k = max(int(model.cluster_centers_.shape[0]), int(labels.max()) + 1)
    sizes = np.bincount(labels[labels >= 0], minlength=k)
    means, noise = _means_and_noise(data, labels, scales, k)
    means, centers = means * data.unit, np.nan_to_num(means)
    errors = None if center_errors is None else to_host(center_errors) / data.unit
    ranked = telling_features(
        centers, noise, sizes=sizes, center_errors=errors, n_features=n_features
    )
    if data.incomplete is not None:
        means = _means(data.incomplete, labels, k)
    offsets = np.zeros(means.shape[1])
    if original is not None:
        before = turned_rows(check_matrix(original, missing="fit"), model)
        prepared, means = means, _means(before, labels, k)
        offsets = _offsets(prepared, means)
    # The mean pattern of other rows, at the length of each cluster; NaN without others.
    lengths = row_lengths(centers if noise is None else centers / noise)[:, None]
    shifted = np.abs(offsets).max() > Small.ROUNDING * np.nanmax(np.abs(means))
    patterns = means if shifted else HOST.ratio(means - offsets, lengths + 0 * means)
    others = _others(patterns, sizes) * (1.0 if shifted else lengths)
    others = np.where((sizes.sum() > sizes)[:, None], others, np.nan)
    return SetApart(ranked, means, others, not shifted, noise is not None)


def _means_and_noise(
    data: Matrix, labels: np.ndarray, scales: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return means by cluster and feature, and noise levels of features, or None.

    Noise is what multiples of the clusters' patterns leave of a feature, in X's unit. A
    cluster without rows has NaN.
    """
    rows = np.flatnonzero(labels >= 0)
    inside = data if len(rows) == len(labels) else data.keep_rows(rows)
    members = np.eye(k)[labels[rows]]
    lengths = np.abs(np.nan_to_num(scales[rows]))[:, None]
    sides = inside.cast(np.hstack([members, members * lengths]))
    _, (sums, total) = inside.sweep(
        lambda block, sides: ((), (block.adjoint(sides), block.column_sqnorms())), sides
    )
    plain, weighted = np.vsplit(to_host(sums).astype(np.float64).T, [k])
    means = HOST.ratio(plain, members.sum(axis=0)[:, None], np.nan)
    weights = np.square(members * lengths).sum(axis=0)[:, None]
    left = total - HOST.ratio(np.square(weighted), weights).sum(axis=0)
    if left.sum() <= Small.ROUNDING * total.sum():
        return means, None
    left = np.maximum(left, Whitening.LEAST_NOISE * total) / len(rows)
    return means, np.where(left > 0, np.sqrt(left), 1.0)[None]


def _means(data: Matrix, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the mean of observed cells by cluster and feature; NaN without any."""
    codes = np.where(labels < 0, n_clusters, labels)  # outliers come last
    members = indicators(data.ops, data.to_device(codes), n_clusters + 1)
    lacks = np.isnan(data.ops.number(data.ops.xp.sum(data.sqnorms)))
    known = Filled(data, "filled") if lacks else data
    sums = to_host(known.adjoint(members)).astype(np.float64).T
    sizes = np.bincount(codes, minlength=n_clusters + 1).astype(np.float64)
    counts = np.broadcast_to(sizes[:, None], sums.shape)
    if lacks:
        missing = to_host(Filled(data, "missing").adjoint(members))
        counts = counts - missing.astype(np.float64).T
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(sums / counts * data.unit)[:n_clusters]


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


def _check_noise(levels: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = to_host(levels).astype(np.float64)
    if array.shape not in ((), (shape[0],), (1, shape[1])):
        raise ValueError(
            f"noise_levels has shape {array.shape}; give one number, {shape[0]} of "
            f"them, or an array of shape (1, {shape[1]})."
        )
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(
            "noise_levels has entries that are negative or not finite; give standard "
            "deviations."
        )
    if array.ndim == 2 and not array.all():
        raise ValueError(
            "noise_levels has a feature of noise 0, beside which no other would count; "
            "give levels above 0."
        )
    return array[:, None] if array.ndim == 1 else array


def typical_ranks(
    data: Matrix,
    labels: np.ndarray,
    centers: np.ndarray,
    sizes: np.ndarray,
    *,
    complete: np.ndarray,
) -> np.ndarray:
    """Return 1, 2 and 3 for the most typical rows of each cluster, NaN for others.

    A typical row is complete, in the middle half of its cluster by size, since angles
    alone would choose the largest rows, which noise turns least, and then by the angle
    to the centre. Of fewer than five such rows none is typical.
    """
    n, ranks = len(labels), np.full(len(labels), np.nan)
    products = to_host(data @ HOST.unit_rows(centers).T).astype(np.float64)
    norms = np.sqrt(to_host(data.sqnorms).astype(np.float64))
    # Where scales have both signs, a row may point away from its centre.
    cosines = HOST.ratio(products[np.arange(n), labels] * np.sign(sizes), norms)
    lengths = np.abs(sizes)
    eligible = complete & (norms > 0) & (labels >= 0) & ~np.isnan(lengths)
    for cluster in range(len(centers)):
        rows = np.flatnonzero(eligible & (labels == cluster))
        if len(rows) < 5:
            continue
        low, high = np.quantile(lengths[rows], [0.25, 0.75])
        rows = rows[(lengths[rows] >= low) & (lengths[rows] <= high)]
        first = rows[np.argsort(-cosines[rows], kind="stable")[:3]]
        ranks[first] = np.arange(1, len(first) + 1)
    return ranks
