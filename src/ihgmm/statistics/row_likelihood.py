"""How likely each row is in each cluster, seen from the centres of the other rows.

A row of length |x| has the component ``y = |x| cos`` along a centre and ``|x|**2 -
y**2`` across it. The length of its signal is not known: all positive lengths count
alike. docs/statistics.md derives the formulas.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ihgmm.matrix import Matrix, Tall, to_host
from ihgmm.policy import Small
from ihgmm.statistics.model import NoiseStructure
from ihgmm.statistics.projections import Projections
from ihgmm.statistics.roots import falling_root


def joint_log_likelihood(
    projections: Projections, shares: np.ndarray, variances: np.ndarray | None = None
) -> Tall:
    """Return log-likelihoods of rows and clusters, (n_samples, n_clusters).

    Parameters
    ----------
    projections : Projections
        Rows seen from the centres.
    shares : ndarray of shape (n_clusters,)
        Shares of the clusters.
    variances : ndarray of shape (n_clusters,), optional
        Variances of the noise of an entry; without them every row has its own.

    Notes
    -----
    Integrated over all positive lengths of the signal, the density of a row is ``Phi(y
    / s)`` times that of its part across the centre, which has ``p - 1`` dimensions. If
    the noise s**2 is known, the noise of the centre adds to it in proportion to the
    signal. If it is not, it is fitted to the row: ``s**2 = |x|**2 sin**2 / (p - 1)``.
    """
    ops = projections.ops
    xp = ops.xp
    p = projections.n_features
    freedom = max(p - 1, 1)
    sqnorms = projections.sqnorms[:, None]
    y = xp.sqrt(sqnorms) * projections.cosines
    across_squares = projections.squared_sines * sqnorms

    tiny = float(np.finfo(np.float64).tiny)
    if variances is None:
        variance = ops.clip(across_squares / freedom, tiny, None)
        squares_over_variance: Tall | int = freedom
    else:
        accuracy = projections.accuracy(variances)
        signal = ops.clip(y, 0.0, None) ** 2
        noise_of_center = signal * (1.0 / accuracy - 1.0)
        variance = ops.to_device(variances, y) + noise_of_center / p
        variance = ops.clip(variance, tiny, None)
        squares_over_variance = across_squares / variance

    log_volume = freedom * xp.log(2 * np.pi * variance)
    value = -0.5 * (log_volume + squares_over_variance)
    value += ops.log_ndtr(y / xp.sqrt(variance))

    # A zero row fits everywhere alike.
    value = xp.where(sqnorms == 0, xp.zeros_like(value), value)
    return value + ops.to_device(np.log(shares), value)


def mixing_weights(sizes: np.ndarray) -> np.ndarray:
    """Return the shares of clusters of some sizes, pulled towards equal ones.

    They are pulled as far as chance alone would have moved them (James and Stein), and
    no further: rows that fit nowhere well would otherwise all go to the largest.
    """
    n = sizes.sum()
    k = len(sizes)
    sizes = (sizes + 1) * n / (n + k)
    equal_size = n / k
    deviations = sizes - equal_size

    distance = float(np.square(deviations).sum() / equal_size)
    kept_share = 0.0
    if distance > 0:
        kept_share = max(0.0, 1 - (k - 1) / distance)
    pulled_sizes = equal_size + kept_share * deviations
    return pulled_sizes / n


def noise_variances(
    projections: Projections, memberships: Tall, structure: NoiseStructure
) -> np.ndarray:
    """Return the variance of the noise of an entry in each cluster, (n_clusters,).

    With the ``structure`` "common" all are equal. ``memberships`` are multiplied by how
    much rows count.

    Notes
    -----
    More noise in the centres means more signal in the rows. So what rows leave for
    noise falls as the variance rises, and one value agrees with itself.
    """
    ops = projections.ops
    xp = ops.xp
    cosines = ops.clip(projections.cosines, 0.0, None)
    squared_cosines = cosines**2
    squares = memberships * projections.sqnorms[:, None]
    total_squares = to_host(xp.sum(squares, axis=0))

    is_nonzero = ops.widen(projections.sqnorms > 0)
    nonzero_members = memberships * is_nonzero[:, None]
    sizes = to_host(xp.sum(nonzero_members, axis=0))
    n_entries = sizes * max(projections.n_features - 1, 1)

    def excess(variances: np.ndarray) -> np.ndarray:
        """Return the squares that are no signal, less those of so much noise."""
        signal_share = squared_cosines / projections.accuracy(variances)
        signal_share = ops.clip(signal_share, None, 1.0)
        noise_squares = squares * (1.0 - signal_share)
        noise_squares = to_host(xp.sum(noise_squares, axis=0))
        by_cluster = noise_squares - variances * n_entries
        if structure == "common":
            return np.full_like(by_cluster, by_cluster.sum())
        return by_cluster

    overall = total_squares.sum() / n_entries.sum()
    upper = total_squares / np.maximum(n_entries, Small.ROUNDING)
    if structure == "common":
        upper[:] = overall
    lower = np.zeros_like(upper)
    variances = falling_root(excess, lower, upper)
    return np.maximum(variances, Small.EXACT * overall)


def temperature(X: Matrix, labels: Tall, units: np.ndarray) -> float:
    """Return how much louder noise is between the centres than elsewhere; 1 if less.

    ``units`` are the centres at length 1, (n_clusters, n_features).

    Notes
    -----
    Noise that is the same in all directions has, across the centre of its row, the
    share ``(m - 1) / (p - 1)`` in the span of the centres, of dimension m, whatever the
    levels of rows. If its share is larger, log-odds of clusters are too large by as
    much.
    """
    _, values, basis = np.linalg.svd(units, full_matrices=False)
    span = basis[values > Small.SINE].T  # (n_features, m)
    m = span.shape[1]
    if m < 2:
        return 1.0

    def sum_shares(
        block: Matrix, sqnorms: Tall, labels: Tall, counts: Tall | None
    ) -> Any:
        ops = block.ops
        xp = ops.xp
        coordinates = ops.widen(block @ span)
        centers = ops.to_device((units @ span).T, coordinates)
        products = coordinates @ centers
        own_squares = ops.pick(products, labels) ** 2

        # Rows that are their centre have no noise.
        noise = ops.widen(sqnorms) - own_squares
        noise = ops.clip(noise, 0.0, None)
        is_noise = noise > Small.ROUNDING * sqnorms
        noise = xp.where(is_noise, noise, xp.zeros_like(noise))

        squares_in_span = xp.sum(coordinates * coordinates, axis=1)
        noise_in_span = squares_in_span - own_squares
        share = ops.ratio(noise_in_span, noise)
        share = ops.clip(share, 0.0, 1.0)
        rows = ops.widen(noise > 0)
        if counts is not None:
            rows = rows * counts
        return (), (xp.sum(share * rows), xp.sum(rows))

    _, (shares, n_rows) = X.sweep(sum_shares, X.sqnorms, labels, X.weights)
    mean_share = float(shares) / max(float(n_rows), Small.TINY)
    expected_share = (m - 1) / (X.shape[1] - 1)
    return max(1.0, mean_share / expected_share)
