"""Rows of one half of each cluster, compared along the mean of the other half.

If the scales of a cluster are equal, a row of one half minus the mean of that half is
noise alone, also along the mean of the other half. Rows of other clusters show how much
noise there is along it, because there they have no individual scales.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from ihgmm.matrix import HOST, Groups, Matrix, Tall, to_host
from ihgmm.policy import Scales
from ihgmm.statistics.noise_along_centers import column_variances, correlated_noise


@dataclass(frozen=True, eq=False)
class Split:
    """Clusters split at random into halves, and these into folds."""

    groups: np.ndarray  # (n_samples,): 2 k and 2 k + 1 for the halves of cluster k
    folds: np.ndarray  # (n_samples,): from 0
    n_clusters: int

    @property
    def n_folds(self) -> int:
        """Number of folds up to the last one that has rows."""
        return int(self.folds.max(initial=0)) + 1


def split_clusters(
    codes: np.ndarray, n_clusters: int, n_folds: int, rng: Generator
) -> Split:
    """Split every cluster at random into two halves, and each of these into folds."""
    chance = rng.random(len(codes), dtype=np.float32)
    order = np.lexsort((chance, codes))
    ordered = codes[order]
    first_in_cluster = np.searchsorted(ordered, ordered)
    place_in_cluster = np.arange(len(codes)) - first_in_cluster

    groups = np.empty(len(codes), dtype=np.int64)
    groups[order] = 2 * ordered + place_in_cluster % 2
    folds = np.empty(len(codes), dtype=np.int64)
    # Small clusters are not all in the first folds.
    folds[order] = (place_in_cluster // 2 + 7 * ordered) % n_folds

    return Split(groups=groups, folds=folds, n_clusters=n_clusters)


@dataclass(frozen=True, eq=False)
class Halves:
    """Variances of the rows of halves, along the means of the other half.

    The first axis is that of halves. Of the second one, where there are three, the
    first entry is of all rows and each other one leaves out a fold.
    """

    row_variances: np.ndarray  # (2, n_folds + 1, n_clusters)
    noise_variances: np.ndarray  # (2, n_folds + 1, n_clusters): expected of noise
    independent_noise: np.ndarray  # (2, n_clusters): were entries independent
    weights: np.ndarray  # (2, n_clusters): how much a cluster counts in the test
    sizes: np.ndarray  # (2, n_clusters)
    center_lengths: np.ndarray  # (2, n_clusters)


def compare_halves(X: Matrix, split: Split, *, orthogonal: bool = False) -> Halves:
    """Return variances of both halves; weights are 0 where rows show no noise.

    With ``orthogonal``, where noise is correlated, they are not along means but along
    what sets each mean apart from all others: rows of other clusters have no signal
    there, so that they show all of the noise, even if centres are alike.
    """
    k = split.n_clusters
    rows = X.ops.groups(X.to_device(split.groups), 2 * k)
    sizes = rows.sizes.reshape(k, 2).T.astype(np.float64)  # (2, n_clusters)
    sums = _sum_residuals(X, rows, split, sizes)

    view, prior_rows = _along_means(sums)
    if orthogonal and prior_rows < Scales.CORRELATED:
        view = _along_orthogonal_directions(sums, view)

    own_moments = np.einsum("sbkkk->sbk", view.moments)
    own_moments = np.maximum(own_moments, 0.0)
    own_signal = np.einsum("skk->sk", view.signal)
    center_lengths = np.maximum(own_signal, 0.0)
    noise = view.independent_noise

    return Halves(
        row_variances=HOST.ratio(own_moments, sums.counts),
        noise_variances=view.noise,
        independent_noise=noise,
        weights=HOST.ratio(sizes * center_lengths**2 + noise, noise**2),
        sizes=sizes,
        center_lengths=center_lengths,
    )


@dataclass(frozen=True, eq=False)
class _ResidualSums:
    """Sums over residuals of rows from the mean of their half; the first axis: halves.

    Clusters of fewer than four rows count as if they had none.
    """

    centers: np.ndarray  # (2, n_clusters, n_features): means of halves
    directions: np.ndarray  # (2, n_clusters, n_features): unit means of *other* halves
    # Of coordinates along directions, by cluster: (2, n_folds + 1, n_clusters,
    # n_clusters, n_clusters) and the rows that they are of, (2, n_folds + 1,
    # n_clusters). The first is of all rows, each other one without a fold.
    moments: np.ndarray
    counts: np.ndarray
    column_variances: np.ndarray  # (2, n_clusters, n_features)
    independent_noise: np.ndarray  # (2, n_clusters): along directions
    rounding: np.ndarray  # (2, n_clusters): smaller variances say nothing


def _sum_residuals(
    X: Matrix, rows: Groups, split: Split, sizes: np.ndarray
) -> _ResidualSums:
    """Compare rows with the mean of their half, along means of other halves."""
    # A difference in each half takes two rows there, four in the cluster.
    is_used = sizes.sum(axis=0) >= 4
    freedom = np.maximum(sizes - 1, 1.0)  # the mean of a half costs one of its rows

    means = _means_of_groups(X, rows, is_used)
    units = HOST.unit_rows(means)  # (2 n_clusters, n_features)
    coordinates, squares = _residuals(X, rows, means, units)
    centers = _by_half(means)
    directions = _by_half(units)[::-1]

    coordinates = _along_other_halves(split, coordinates)
    moments, counts = _moments_of_folds(split, coordinates)
    moments = moments * (is_used * sizes / freedom)[:, None, :, None, None]

    mean_squares = _by_half(squares) * (is_used / freedom)[..., None]
    variances, independent_noise = column_variances(mean_squares, directions)
    rounding = (64 * np.finfo(X.dtype).eps) ** 2 * np.square(centers).sum(axis=2)
    is_noisy = independent_noise > rounding
    return _ResidualSums(
        centers=centers,
        directions=directions,
        moments=_with_and_without_folds(moments),
        counts=_with_and_without_folds(counts * is_used),
        column_variances=variances,
        independent_noise=np.where(is_noisy, independent_noise, 0.0),
        rounding=rounding,
    )


def _means_of_groups(X: Matrix, rows: Groups, is_used: np.ndarray) -> np.ndarray:
    """Return means of halves, (2 n_clusters, n_features); 0 in clusters not used."""
    weights = np.repeat(is_used, 2) / np.maximum(rows.sizes, 1.0)
    means = rows.weighted_sums(X, rows.to_rows(weights))
    return means.astype(np.float64)


def _residuals(
    X: Matrix, rows: Groups, means: np.ndarray, units: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates of residuals along all unit means, and sums of squares.

    The squares, (2 n_clusters, n_features), are of residuals without their part along
    the mean of the other half. The rows are read once.
    """
    n_groups = len(means)
    units_of_others = units[np.arange(n_groups) ^ 1]

    def compare_block(block: Matrix, groups: Tall) -> Any:
        ops = block.ops
        xp = ops.xp
        coordinates = []
        squares: np.ndarray | float = 0.0

        for at in block.dense_ranges(2**18):  # so few entries stay in the cache
            x = ops.widen(block.rows(at))
            group = groups[at]
            residuals = x - xp.take(ops.to_device(means, x), group, axis=0)
            coordinates.append(residuals @ ops.to_device(units, x).T)

            direction = xp.take(ops.to_device(units_of_others, x), group, axis=0)
            components = ops.row_dots(residuals, direction)
            across = residuals - components[:, None] * direction
            members = ops.one_hot(group, n_groups, across)
            squares = squares + ops.tall_dot(members, across * across)

        return (ops.stack(coordinates),), (squares,)

    (coordinates,), (squares,) = X.sweep(compare_block, rows.labels)
    return to_host(coordinates), squares


def _along_other_halves(split: Split, coordinates: np.ndarray) -> np.ndarray:
    """Return coordinates along the halves unlike a row's.

    They are of shape (n_samples, n_clusters).
    """
    is_in_first_half = (split.groups % 2 == 0)[:, None]
    return np.where(is_in_first_half, coordinates[:, 1::2], coordinates[:, ::2])


def _by_half(values: np.ndarray) -> np.ndarray:
    """Return values of halves, (2 n_clusters, m), as (2, n_clusters, m)."""
    return values.reshape(len(values) // 2, 2, -1).swapaxes(0, 1)


def _moments_of_folds(
    split: Split, coordinates: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return sums of ``y @ y.T`` and numbers of rows y, of each half, fold and cluster.

    ``coordinates`` has a row y in each line. Shapes are (2, n_folds, n_clusters, m, m)
    and (2, n_folds, n_clusters).
    """
    half = split.groups % 2
    cluster = split.groups // 2
    shape = (2, split.n_folds, split.n_clusters)
    codes = np.ravel_multi_index((half, split.folds, cluster), shape)
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(np.prod(shape) + 1))

    parts = np.split(coordinates[order], ends[1:-1])
    moments = np.stack([part.T @ part for part in parts])
    counts = np.diff(ends).astype(np.float64)
    return moments.reshape(*shape, *moments.shape[1:]), counts.reshape(shape)


def _with_and_without_folds(parts: np.ndarray) -> np.ndarray:
    """Return the sum over folds, and sums without each of them."""
    total = parts.sum(axis=1, keepdims=True)
    return np.concatenate([total, total - parts], axis=1)


@dataclass(frozen=True, eq=False)
class _AlongDirections:
    """What rows show along one direction for each cluster; the first axis: halves."""

    moments: np.ndarray  # (2, n_folds + 1, n_clusters, n_clusters, n_clusters)
    signal: np.ndarray  # (2, n_clusters, n_clusters): coordinates of centres
    independent_noise: np.ndarray  # (2, n_clusters), were entries independent
    noise: np.ndarray  # (2, n_folds + 1, n_clusters)


def _along_means(sums: _ResidualSums) -> tuple[_AlongDirections, float]:
    """Return what shows along means, and how firmly noise counts as independent."""
    independent_noise = sums.independent_noise
    variances = sums.column_variances
    signal = sums.centers @ sums.directions.swapaxes(1, 2)
    noise = independent_noise[:, None]

    for _ in range(2):  # residuals lack what noise is found along their centre
        excess = noise[:, 0] - independent_noise
        growth = 1 + HOST.ratio(excess, variances.sum(axis=2))
        is_noisy = independent_noise > 0
        noise, prior_rows = correlated_noise(
            sums.directions,
            signal,
            variances * (growth * is_noisy)[..., None],
            sums.moments,
            sums.counts,
        )

    result = _AlongDirections(
        moments=sums.moments,
        signal=signal,
        independent_noise=independent_noise,
        noise=noise,
    )
    return result, prior_rows


def _along_orthogonal_directions(
    sums: _ResidualSums, along_means: _AlongDirections
) -> _AlongDirections:
    """Return what shows along directions orthogonal to the means of all others.

    Rows of other clusters have no signal there: the noise is what they show, in units
    of what independent entries would have, cluster by cluster.
    """
    turn, directions = _orthogonal_directions(sums.directions)
    transposed_turn = turn.swapaxes(1, 2)[:, None, None]
    moments = turn[:, None, None] @ sums.moments @ transposed_turn

    # Along the direction of each cluster, in the rows of every cluster.
    independent = sums.column_variances @ np.square(directions).swapaxes(1, 2)
    squares = np.einsum("sbjkk->sbjk", moments)
    relative_squares = HOST.ratio(squares, independent[:, None])
    is_other = 1 - np.eye(sums.centers.shape[1])
    noise_of_others = (relative_squares * is_other).sum(axis=2)
    counts_of_others = sums.counts @ is_other
    relative_noise = HOST.ratio(noise_of_others, counts_of_others)

    own_noise = np.einsum("skk->sk", independent)
    is_noisy = along_means.independent_noise > 0
    own_noise = own_noise * is_noisy
    own_noise = np.where(own_noise > sums.rounding, own_noise, 0.0)
    return _AlongDirections(
        moments=moments,
        signal=sums.centers @ directions.swapaxes(1, 2),
        independent_noise=own_noise,
        noise=relative_noise * own_noise[:, None],
    )


def _orthogonal_directions(directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return unit directions, each orthogonal to those of all other clusters.

    The first result turns coordinates along the old directions into new ones. It is of
    shape (2, n_clusters, n_clusters).
    """
    products = directions @ directions.swapaxes(1, 2)
    turn = np.linalg.pinv(products, hermitian=True)
    orthogonal = turn @ directions
    sqnorms = np.square(orthogonal).sum(axis=2, keepdims=True)
    lengths = np.sqrt(sqnorms)
    return HOST.ratio(turn, lengths), HOST.ratio(orthogonal, lengths)
