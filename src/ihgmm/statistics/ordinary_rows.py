"""What is ordinary in rows of clusters: their lengths, and how much noise they have.

A row is seen from the nearest centre: its length along it, and the noise, which is what
the centre leaves of the row. Lengths are relative to the median row of the cluster, and
logarithms of noise levels are over those of this row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from ihgmm.matrix import Ops, Tall
from ihgmm.numerics.embedding import Embedding
from ihgmm.policy import Outliers, Small

LEVELS = (np.arange(Outliers.QUANTILES) + 0.5) / Outliers.QUANTILES
"""Shares of rows whose quantiles stand for a distribution."""


class MeasuredRows(NamedTuple):
    """Rows as they appear from the nearest centre; each array has a figure a row."""

    lengths: np.ndarray  # along the centre
    noise: np.ndarray  # noise levels; 0 for zero rows
    log_noise: np.ndarray  # minus infinity for zero rows
    labels: np.ndarray  # numbers of the centres

    def where(self, is_wanted: np.ndarray) -> MeasuredRows:
        """Return the rows where a mask is true."""
        return MeasuredRows(
            lengths=self.lengths[is_wanted],
            noise=self.noise[is_wanted],
            log_noise=self.log_noise[is_wanted],
            labels=self.labels[is_wanted],
        )


@dataclass(frozen=True, eq=False)
class ClusterLines:
    """Directions of clusters in an embedding, along which rows are measured."""

    embedding: Embedding
    centers: np.ndarray  # (n_clusters, m): of unit norm
    signed: bool  # opposite directions are one

    @property
    def least_tail(self) -> float:
        """Half of the tail of log noise levels where noise is Gaussian and alike."""
        # They have standard error 1 / sqrt(2 * p), and 0.6 of that is the mean excess
        # of a normal distribution over its upper quartile.
        n_features = self.embedding.directions.shape[0]
        return float(0.3 / np.sqrt(2 * n_features))

    def measure(
        self, ops: Ops, coordinates: Tall, sqnorms: Tall, unit: float
    ) -> MeasuredRows:
        """Return lengths and noise of rows, whose data were divided by some unit.

        Parameters
        ----------
        ops : Ops
            What serves the arrays.
        coordinates : array of shape (n_samples, m)
            Those of the embedding.
        sqnorms : array of shape (n_samples,)
            Squared norms of the rows.
        unit : float
            The unit of these.
        """
        directions = (leading_lengths(self.embedding) * self.centers).T  # (m, k)
        products = coordinates @ ops.cast_like(directions, coordinates)
        if self.signed:
            products = ops.xp.abs(products)
        labels = ops.to_host(ops.xp.argmax(products, axis=1))

        sqnorms = ops.to_host(sqnorms) * (unit / self.embedding.unit) ** 2
        lengths = ops.to_host(ops.xp.max(products, axis=1)).astype(np.float64)
        lengths *= np.sqrt(sqnorms)  # coordinates are those of unit rows

        # No row fits its centre better than that; else nothing could be compared with
        # rows that are free of noise.
        least_residual = Outliers.LEAST_NOISE * sqnorms
        residual = sqnorms - np.maximum(lengths, 0.0) ** 2
        residual = np.maximum(residual, least_residual)
        freedom = max(len(self.embedding.directions) - 1, 1)
        noise = np.sqrt(residual / freedom)
        with np.errstate(divide="ignore"):
            log_noise = np.log(noise)

        return MeasuredRows(
            lengths=lengths, noise=noise, log_noise=log_noise, labels=labels
        )


def leading_lengths(embedding: Embedding) -> np.ndarray:
    """Return what coordinates are multiplied by to be lengths along directions."""
    return np.asarray(np.sqrt(np.maximum(embedding.eigenvalues, 0.0)))


@dataclass(frozen=True, eq=False)
class OrdinaryRows:
    """How lengths and noise of ordinary rows are distributed."""

    median_lengths: np.ndarray  # (n_clusters,): length of the median row of each
    median_log_noise: np.ndarray  # (n_clusters,): log noise level of that row
    length_quantiles: np.ndarray  # of all rows, at LEVELS
    # (2, n_knots): some lengths; the log noise that is expected there
    noise_by_length: np.ndarray
    excess_quantiles: np.ndarray  # of log noise less that expected, at LEVELS
    excess_tail: float  # mean excess of this over its upper quartile
    noise_share: float  # noise over length, of the median row

    @classmethod
    def learn(
        cls,
        rows: MeasuredRows,
        n_clusters: int,
        *,
        noise_weights: np.ndarray,
        length_weights: np.ndarray,
        least_tail: float,
    ) -> OrdinaryRows:
        """Learn what is ordinary from rows, which count by two kinds of weights.

        Parameters
        ----------
        rows : MeasuredRows
        n_clusters : int
        noise_weights, length_weights : ndarray of shape (n_samples,)
            How much each row says of noise, and of lengths.
        least_tail : float
            The smallest ``excess_tail``.
        """
        labels = rows.labels

        lengths = _medians(rows.lengths, length_weights, labels, n_clusters)
        # Rows may have nothing but noise along all centres.
        largest = max(lengths.max(), rows.noise.max())
        lengths = np.maximum(lengths, Outliers.LEAST_LENGTH * largest)
        log_noise = _medians(rows.log_noise, noise_weights, labels, n_clusters)

        has_length = length_weights > 0
        relative_lengths = rows.lengths / lengths[labels]
        length_quantiles = _quantiles(
            relative_lengths[has_length], length_weights[has_length], LEVELS
        )

        has_noise = noise_weights > 0
        noisy = rows.where(has_noise)
        weights = noise_weights[has_noise]

        relative_noise = noisy.log_noise - log_noise[noisy.labels]
        noise_by_length = _noise_by_length(
            relative_lengths[has_noise], relative_noise, weights
        )
        expected = np.interp(relative_lengths[has_noise], *noise_by_length)
        excess = relative_noise - expected

        noise_share = _quantile(noisy.noise / lengths[noisy.labels], weights, 0.5)
        return cls(
            median_lengths=lengths,
            median_log_noise=log_noise,
            length_quantiles=length_quantiles,
            noise_by_length=noise_by_length,
            excess_quantiles=_quantiles(excess, weights, LEVELS),
            excess_tail=max(_mean_excess(excess, weights), least_tail),
            noise_share=noise_share,
        )

    def scores(self, rows: MeasuredRows) -> np.ndarray:
        """Return how strange rows are: at 3 one in 1,000 is; 0 for zero rows.

        Notes
        -----
        The surprise of a row is minus the logarithm of the share of ordinary rows that
        have so much noise, and of the share of those that are so short. Two independent
        shares, each uniform, have a product below ``exp(-surprise)`` in the share
        ``(1 + surprise) * exp(-surprise)`` of rows.
        """
        lengths = self.median_lengths[rows.labels]
        relative_lengths = rows.lengths / lengths

        surprise = self._noise_surprise(rows, relative_lengths)
        surprise += self.length_surprise(relative_lengths, rows.noise / lengths)
        score = (surprise - np.log1p(surprise)) / np.log(10)
        return np.where(rows.noise > 0, score, 0.0)

    def _noise_surprise(
        self, rows: MeasuredRows, relative_lengths: np.ndarray
    ) -> np.ndarray:
        """Return minus the log of the share of rows with so much noise.

        Beyond the upper quartile it falls exponentially: noise as heavy as a power law,
        such as Student's t, falls no slower.
        """
        log_noise = np.where(rows.noise > 0, rows.log_noise, 0.0)
        relative_noise = log_noise - self.median_log_noise[rows.labels]
        excess = relative_noise - np.interp(relative_lengths, *self.noise_by_length)

        quartile = np.interp(0.75, LEVELS, self.excess_quantiles)
        share_below = np.interp(excess, self.excess_quantiles, LEVELS)

        in_tail = (excess - quartile) / self.excess_tail - np.log(0.25)
        return np.where(excess > quartile, in_tail, -np.log1p(-share_below))

    def length_surprise(
        self, relative_lengths: np.ndarray, relative_noise: np.ndarray
    ) -> np.ndarray:
        """Return minus the log of the share of rows so short, at their noise."""
        # More noise than others have may make a row shorter, or longer, by as much, and
        # a part of the noise smooths the quantiles.
        surplus = np.maximum(relative_noise**2 - self.noise_share**2, 0.0)
        smoothing = (self.noise_share / Outliers.SMOOTHING) ** 2
        width = np.maximum(np.sqrt(surplus + smoothing), Small.ROUNDING)
        steps = (relative_lengths[:, None] - self.length_quantiles) / width[:, None]
        shares = ndtr(steps).mean(axis=1)
        log_shares = np.log(np.maximum(shares, np.finfo(float).tiny))

        # No fewer rows are short than an exponential tail has.
        tenth = np.interp(0.1, LEVELS, self.length_quantiles)
        shorter = self.length_quantiles[self.length_quantiles < tenth]
        tail = Small.ROUNDING
        if len(shorter):
            mean_excess = float((tenth - shorter).mean())
            tail = max(mean_excess, tail)
        least_log_shares = np.log(0.1) + (relative_lengths - tenth) / tail

        is_short = relative_lengths < tenth
        raised_log_shares = np.maximum(log_shares, least_log_shares)
        return -np.where(is_short, raised_log_shares, log_shares)


def _mean_excess(values: np.ndarray, weights: np.ndarray) -> float:
    """Return by how much values are above their upper quartile, where they are."""
    excess = np.maximum(values - _quantile(values, weights, 0.75), 0.0)

    weight_above = max(weights[excess > 0].sum(), Small.TINY)
    return float((weights * excess).sum() / weight_above)


def _noise_by_length(
    lengths: np.ndarray, log_noise: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return some lengths, and the log noise that is expected there: (2, n_knots).

    These are medians of a few ranges of the longer half of the rows. Among shorter rows
    may be outliers: they are expected to have as much noise as the median row, or more,
    where noise falls as rows get longer, as it does where all rows have one norm.
    """
    is_long = lengths >= _quantile(lengths, weights, 0.5)
    lengths = lengths[is_long]
    log_noise = log_noise[is_long]
    weights = weights[is_long]

    n_ranges = max(int(weights.sum() // Outliers.ROWS_A_RANGE), 1)
    n_ranges = min(n_ranges, Outliers.RANGES)
    edges = _quantiles(lengths, weights, np.arange(1, n_ranges) / n_ranges)
    ranges = np.searchsorted(edges, lengths)

    knot_lengths = []
    knot_noise = []
    for number in np.unique(ranges):
        is_in_range = ranges == number
        range_weights = weights[is_in_range]
        knot_lengths.append(_quantile(lengths[is_in_range], range_weights, 0.5))
        knot_noise.append(_quantile(log_noise[is_in_range], range_weights, 0.5))
    if len(knot_lengths) < 3:
        return np.array([knot_lengths[:1], knot_noise[:1]])

    slope, noise_at_zero = np.polyfit(knot_lengths, knot_noise, 1)
    if slope < 0:
        knot_lengths = [0.0, *knot_lengths]
        knot_noise = [float(noise_at_zero), *knot_noise]
    return np.array([knot_lengths, knot_noise])


def _medians(
    values: np.ndarray, weights: np.ndarray, labels: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Return weighted medians of clusters; few rows count with some of all clusters."""
    has_weight = weights > 0
    values = values[has_weight]
    weights = weights[has_weight]
    labels = labels[has_weight]

    overall = _quantile(values, weights, 0.5)
    medians = np.full(n_clusters, overall)

    for label in np.unique(labels):
        is_member = labels == label
        weights_of_members = weights[is_member]
        size = weights_of_members.sum()
        median = _quantile(values[is_member], weights_of_members, 0.5)

        # The overall median counts as that of some more rows.
        weighted_sum = size * median + Outliers.PRIOR_ROWS * overall
        medians[label] = weighted_sum / (size + Outliers.PRIOR_ROWS)

    return medians


def _quantile(values: np.ndarray, weights: np.ndarray, level: float) -> float:
    """Return a weighted quantile, such as the median."""
    return float(_quantiles(values, weights, np.array([level]))[0])


def _quantiles(
    values: np.ndarray, weights: np.ndarray, levels: np.ndarray
) -> np.ndarray:
    """Return weighted quantiles, between values linear in the weight below."""
    order = np.argsort(values)
    weights = weights[order]
    weight_below = np.cumsum(weights) - weights / 2

    return np.interp(levels, weight_below / weights.sum(), values[order])
