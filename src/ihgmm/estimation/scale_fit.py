"""Scales, centres and noise variances of rows whose clusters are known.

The formulas are in the notes of :func:`ihgmm.estimation.estimate_parameters`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ihgmm._arrays import Array
from ihgmm._devices import namespace
from ihgmm._tall import Tall
from ihgmm.groups import Groups

__all__ = ["Fit", "fit_centers", "fit_scales"]


@dataclass(frozen=True)
class Fit:
    """Centres, scales, noise variances and what their errors are made of."""

    weights: Tall  # divided by A, so that weights @ scales is 1 in a cluster
    scales: Tall
    centers: np.ndarray
    center_sqnorms: np.ndarray
    variances: Tall
    solved: Tall  # whether the equations for a row's cluster have a solution


def fit_scales(X: Array, rows: Groups, weights: np.ndarray, sqnorms: np.ndarray) -> Fit:
    """Estimate every scale from the weighted sum of the other rows of its cluster."""
    sums = rows.weighted_sums(X, weights)
    inner = rows.inner_products(X, sums) - weights * sqnorms
    shares, solved = _shares(weights * inner, rows)
    scales = rows.mean_one(shares / weights)
    pair = rows.size[rows.labels] == 2
    if pair.any():
        scales[pair] = rows.mean_one(np.sqrt(sqnorms))[pair]
        solved[pair] = False
    return replace(_fit(sums, rows, weights, scales, sqnorms), solved=solved)


def fit_centers(X: Array, rows: Groups, scales: Tall, sqnorms: Tall) -> Fit:
    """Estimate centres by least squares, given the scales."""
    return _fit(rows.weighted_sums(X, scales), rows, scales, scales, sqnorms)


def _fit(
    sums: np.ndarray,
    rows: Groups,
    weights: Tall,
    scales: Tall,
    sqnorms: Tall,
) -> Fit:
    """Return the fit of given scales and weights."""
    p = sums.shape[1]
    total = rows.total(weights * scales)
    total[rows.size == 0] = 1.0
    centers = sums / total[:, None].astype(sums.dtype)
    weights = weights / rows.spread(total)
    length = _center_sqnorms(centers, rows, weights, scales, sqnorms)
    left = sqnorms - scales**2 * rows.spread(length)
    # Less than this is rounding.
    rounding = left < 32 * float(np.finfo(sums.dtype).eps) * sqnorms
    xp = namespace(left)
    none = xp.zeros_like(left)
    left = xp.where(rounding | (rows.spread(rows.size) == 1), none, left)
    solved = none == 0
    return Fit(weights, scales, centers, length, left / max(p - 1, 1), solved)


def _shares(products: np.ndarray, rows: Groups) -> tuple[np.ndarray, np.ndarray]:
    """Solve ``z * (1 - z) = const * products`` with z of sum 1 in each cluster.

    z is the share ``a_i * w_i / A`` of a row in its centre. Everything is a function of
    the largest share y in the cluster, which is bisected for; the other rows have the
    smaller root, below 1/2. Where no y will do, rows other than the largest do not
    resemble each other; z is then in proportion to the products, and not solved for.
    """
    products = np.maximum(products, 0.0)
    top = np.zeros(len(rows.size))
    np.maximum.at(top, rows.labels, products)
    top = top[rows.labels]
    ratio = np.divide(products, top, out=np.zeros(len(top)), where=top > 0)

    def smaller_roots(y: np.ndarray) -> np.ndarray:
        product = (y * (1 - y))[rows.labels] * ratio
        return 2 * product / (1 + np.sqrt(np.maximum(1 - 4 * product, 0.0)))

    def enough(y: np.ndarray) -> np.ndarray:
        return rows.total(smaller_roots(y)) + np.maximum(2 * y - 1, 0) >= 1

    below_half = enough(np.full(len(rows.size), 0.5))
    low, high = np.where(below_half, 0.0, 0.5), np.where(below_half, 0.5, 1.0)
    for _ in range(52):
        y = (low + high) / 2
        up = ~enough(y)
        low, high = np.where(up, y, low), np.where(up, high, y)
    largest = high[rows.labels]
    shares = np.where((ratio == 1) & (largest > 0.5), largest, smaller_roots(high))
    solved = (below_half | (rows.total(ratio) > 2))[rows.labels]
    return np.where(solved, shares, ratio), solved


def _center_sqnorms(
    centers: np.ndarray,
    rows: Groups,
    weights: Tall,
    scales: Tall,
    sqnorms: Tall,
) -> np.ndarray:
    """Return the squared norms of the true centres, free of the noise in ours.

    ``norm(center)**2`` is a double sum over rows; the terms that pair a row with
    itself carry the noise and are left out.
    """
    squares = np.einsum("ij,ij->i", centers, centers, dtype=np.float64)
    diagonal = rows.total(weights**2 * sqnorms)
    kept = 1.0 - rows.total((weights * scales) ** 2)
    kept[kept <= 1e-12] = 1.0
    return np.asarray(np.clip((squares - diagonal) / kept, 0.0, squares))
