"""Errors of estimates by what residuals are, not by what the model says of them.

Noise may have other variances in some columns, grow with the signal as that of counts
does, and be correlated. One pass over the residuals sums their squares by column, and
compares the noise of each cluster along the centres of the others. The formulas are in
docs/statistics.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from ihgmm.matrix import Matrix, Tall, namespace
from ihgmm.matrix.tall import (
    Groups,
    clip,
    one_hot,
    pick,
    ratio,
    tall_dot,
    to_device,
    unit_rows,
    widen,
)
from ihgmm.statistics.correlation import Along, squared_t, variance_ratios


@dataclass(frozen=True)
class Residuals:
    """Sums over the residuals of each cluster."""

    squares: np.ndarray  # (m, n_clusters, n_features): one for each set of weights
    correlation: np.ndarray  # (n_clusters,): see variance_ratios

    def noise_ratio(self, centers: np.ndarray) -> np.ndarray:
        """Return variances of noise along the centres, over the mean ones.

        The first set of weights is ones. A residual has no part along its centre: with
        q the squares of the unit centre and s the variance along it, its variance in a
        column is about ``variance - q * s``, exactly so where variances are equal.
        """
        left, q = self.squares[0], unit_squares(centers)
        along = ratio((q * left).sum(axis=1), 1 - (q**2).sum(axis=1))
        mean = (left.sum(axis=1) + along) / left.shape[1]
        return ratio(along, mean, 1.0) * self.correlation


def unit_squares(centers: np.ndarray) -> np.ndarray:
    """Return the squared entries of the centres, of sum 1 for each."""
    squares = centers.astype(np.float64) ** 2
    return ratio(squares, squares.sum(axis=1, keepdims=True) + 0 * squares)


def residuals(
    X: Matrix,
    rows: Groups,
    centers: np.ndarray,
    scales: Tall,
    weights: Tall,
    counted: list[Tall],
    accuracy: np.ndarray,
) -> Residuals:
    """Sum squared residuals, each row counted with its weight, in one pass over X.

    ``weights`` are those of the rows in their centres. A residual is divided by
    ``1 - share``, the share of the row in its own centre, as its square is too small by
    that much. ``accuracy`` is the share of the squared norms of the centres that is
    not noise.
    """
    centers = centers.astype(np.float64)
    # A row may be all of its centre.
    share = clip(weights * scales, None, 0.9)
    # A row that is part of its centre has too large a t**2 along a similar centre, by
    # up to this much.
    cos, load = np.square(unit_rows(centers) @ unit_rows(centers).T), 1 - accuracy
    load = load * centers.shape[1] / np.maximum(rows.sizes, 1)
    told = (cos * load[:, None] < 0.3 * (1 - cos)) & ~np.eye(len(centers), dtype=bool)
    work = partial(_block, centers, told)
    tall = (rows.labels, scales, share, *counted)
    parts = X.map(work, *(X.to_device(values) for values in tall))
    squares, sums = reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]), parts)
    squares = squares.reshape(len(counted), *centers.shape)
    return Residuals(squares, variance_ratios(sums))


def _block(
    centers: np.ndarray, told: np.ndarray, block: Matrix, *tall: Tall
) -> tuple[np.ndarray, Along]:
    """Return the sums over a block of rows, a few rows at a time."""
    ranges = block.dense_ranges(2**18)  # so few entries stay in the cache
    parts = (_few(block, at, centers, told, *(t[at] for t in tall)) for at in ranges)
    squares, sums = reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]), parts)
    return squares, sums


def _few(
    block: Matrix,
    at: slice,
    centers: np.ndarray,
    told: np.ndarray,
    labels: Tall,
    scales: Tall,
    share: Tall,
    *counted: Tall,
) -> tuple[np.ndarray, Along]:
    x = widen(block.rows(at))
    xp, k = namespace(x), len(centers)
    units = unit_rows(centers)
    own = xp.take(to_device(centers, x), labels, axis=0)
    squares = (x - scales[:, None] * own) ** 2 / (1 - share)[:, None]
    members = one_hot(labels, k, squares)
    by_weight = [members * weights[:, None] for weights in counted]
    total = tall_dot(xp.concat(by_weight, axis=1), squares)
    toward = to_device(units, x)
    cos = xp.take(to_device(units @ units.T, x), labels, axis=0)
    along = x @ toward.T
    along = (along - cos * pick(along, labels)[:, None]) / xp.sqrt(1 - share)[:, None]
    freedom = x.shape[1] / max(x.shape[1] - 1, 1)
    own = xp.take(toward, labels, axis=0)
    t_squared = squared_t(squares * freedom, along, toward, own, cos)
    # A row without noise tells nothing.
    counts = xp.take(to_device(told, x), labels, axis=0) & (t_squared > 0)
    return total, Along.of(t_squared, counts)


def center_variances(
    found: Residuals,
    rows: Groups,
    weights: Tall,
    mean: Tall,
    noise: Tall,
    q: np.ndarray,
) -> np.ndarray:
    """Return the variance of each entry of each centre, (n_clusters, n_features).

    The error of a centre is ``sum(a_i * across_i)`` plus the mean, with weights m, of
    what noise has along the centre, of variance ``noise``; q are the squares of the
    unit centres. ``found.squares`` has weights of 1, a**2 and a * m.
    """
    _, across, both = found.squares[:3]
    along = rows.sums(mean**2 * noise)[:, None]
    lost = rows.sums(weights * mean * noise)[:, None]
    variances = across + q * (along + 2 * both - 2 * (1 - q) * lost)
    return np.asarray(np.maximum(variances, 0.0))
