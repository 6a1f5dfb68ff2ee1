"""How far apart centres are and how scales spread, once noise is taken off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm._checks.data import CheckedData
from ihgmm._devices import to_host
from ihgmm.estimation import estimate_parameters
from ihgmm.groups import Groups

__all__ = ["CenterFigures", "center_figures"]

SMALL, QUARTER = 0.05, 0.25
"""Quantiles of the scales that tell the smallest one; no single row decides."""


@dataclass(frozen=True)
class CenterFigures:
    """Figures of centres and scales, as :class:`ihgmm.verdict.Diagnosis` has them."""

    separation: float
    cosines: np.ndarray
    scale_ratio: float


def center_figures(data: CheckedData, codes: np.ndarray, k: int) -> CenterFigures:
    """Return distances and angles of centres and the spread of scales, without noise.

    Inner products of two centres carry no noise on average, for they share no rows.
    Squared lengths do. What the noise levels leave of the squared row norms is that
    of the signal, ``scale**2`` times the squared length.
    """
    p = data.X.shape[1]
    fit = estimate_parameters(data.X, codes, k, sqnorms=data.sqnorms)
    scales = to_host(fit.scales).astype(np.float64)
    variances = to_host(fit.noise_levels).astype(np.float64) ** 2
    theta = to_host(fit.centers).astype(np.float64)
    inner = theta @ theta.T
    rows = Groups.of(codes, k)
    signal = rows.total(data.sqnorms - max(p - 1, 1) * variances)
    total = rows.total(scales**2)
    squares = np.divide(signal, total, out=np.zeros(k), where=total > 0)
    squares = np.clip(squares, 0.0, np.diag(inner))
    excess = np.diag(inner) - squares
    np.fill_diagonal(inner, squares)
    # The variance of a scale's error: noise of its row and of its centre.
    noise = rows.total(variances) / rows.size
    error = _over(noise * (1 + _over(excess, squares)), squares)
    # A sample's variance is off by about this much; no spread is made out of that.
    error = error * (1 + 2 / np.sqrt(rows.size))
    spread = rows.total((scales - 1) ** 2) / rows.size
    kept = np.sqrt(np.maximum(1 - _over(error, spread), 0.0))
    live = data.sqnorms > 0
    scales = (1 + kept[codes] * (scales - 1))[live]
    codes, variances = codes[live], variances[live]
    low, quarter, high = np.quantile(scales, [SMALL, QUARTER, 1 - SMALL])
    # The smallest scale: the line through two quantiles carried on to 0%.
    least = max(low - (quarter - low) * SMALL / (QUARTER - SMALL), low / 2)
    length = np.sqrt(np.outer(squares, squares))
    cosines = np.divide(inner, length, out=np.zeros((k, k)), where=length > 0)
    return CenterFigures(
        separation=least * _distance(inner, variances, rows.size[codes]),
        cosines=np.clip(cosines, -1.0, 1.0),
        scale_ratio=float(high / low) if low > 0 else float("inf"),
    )


def _over(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Divide; where by is 0, return ``inf`` unless the value is 0 too."""
    where = np.where(values > 0, np.inf, 0.0)
    return np.divide(values, by, out=where, where=by > 0)


def _distance(inner: np.ndarray, variances: np.ndarray, size: np.ndarray) -> float:
    """Return the smallest distance from inner products, over the typical noise."""
    k = len(inner)
    if k == 1:
        return float("inf")
    squares = np.add.outer(np.diag(inner), np.diag(inner)) - 2 * inner
    smallest = np.sqrt(max(squares[np.triu_indices(k, 1)].min(), 0.0))
    known = variances[size > 1]
    level = np.sqrt(np.median(known)) if len(known) else 0.0
    if level == 0:
        return float("inf") if smallest > 0 else 0.0
    return float(smallest / level)
