"""What rows seen from the other half of their cluster tell about its scales."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaincc, ndtr

from ihgmm.heterogeneity.halves import RowFigures

__all__ = ["cumulants_of", "detectable_spread", "effects", "judge", "spread_of"]

QUANTILE = 1.645
"""What a standard normal variable exceeds once in 20 times."""


def cumulants_of(rows: RowFigures) -> np.ndarray:
    """Return each cluster's statistic, variance and third cumulant, not scaled.

    The correlation of t in two rows of a half, i and j, comes from their common mean:
    ``- sqrt(g_i * g_j)`` with ``g = weight / (1 - weight)``. So the cumulants are
    traces of powers of a diagonal matrix less one of rank one. The factors after that
    are those of a sum of entries with random signs, against a normal variable.
    """
    s, f = rows.groups.total, rows.gain
    ratio = np.divide(rows.e**2, rows.v, out=np.zeros_like(rows.v), where=rows.v > 0)
    b = f * np.divide(rows.weight, 1 - rows.weight, where=f > 0, out=np.zeros_like(f))
    d = f + b
    second = s(d**2) - 2 * s(d * b) + s(b) ** 2
    third = s(d**3) - 3 * s(d**2 * b) + 3 * s(d * b) * s(b) - s(b) ** 3
    second *= _average(s(f**2 * (1 - rows.fourth)), s(f**2))
    third *= _average(s(f**3 * (1 - 3 * rows.fourth + 2 * rows.sixth)), s(f**3))
    found = np.column_stack([s(f * (ratio - 1)), 2 * second, 8 * third])
    return np.asarray(found.reshape(-1, 2, 3).sum(axis=1))


def _average(total: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return a ratio, with 0 for what is 0 up to rounding."""
    known = total > 1e-9 * weight
    return np.divide(total, weight, out=np.zeros_like(total), where=known)


def judge(cumulants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised statistics and p-values."""
    excess, variance, third = cumulants.T
    known = variance > 0
    z = np.full(len(excess), np.nan)
    z[known] = excess[known] / np.sqrt(variance[known])
    p = np.asarray(ndtr(-z))
    # The gamma distribution of the same skewness, unless that is that of the normal.
    skewness = third[known] / variance[known] ** 1.5
    shape = 4 / np.maximum(skewness, 1e-3) ** 2
    tail = gammaincc(shape, np.maximum(shape + z[known] * np.sqrt(shape), 0.0))
    p[known] = np.where(skewness > 1e-3, tail, p[known])
    return z, p


def effects(rows: RowFigures) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each cluster's variance and squared mean of ``u . x`` without noise.

    They are sums over its rows. The last array tells where the mean is at least three
    times its standard error; elsewhere a ratio would mean nothing.
    """
    total = rows.groups.total
    size = np.maximum(rows.groups.size, 1.0)
    mean = total(rows.y) / size
    noise = total(rows.noise) / size
    variance = total(rows.y**2) - size * mean**2
    variance = size * (variance / np.maximum(size - 1, 1) - noise)
    energy = size * (rows.level + mean) ** 2
    by_half = np.stack([variance, energy, noise]).reshape(3, -1, 2)
    variance, energy, noise = by_half.sum(axis=2)
    return variance, energy - noise, (energy > 9 * noise) & (energy > 0)


def spread_of(variance: Any, square: Any) -> Any:
    """Return the root of a ratio, 0 if negative, NaN if its denominator is not > 0."""
    ratio = np.full(np.shape(variance), np.nan)
    np.divide(variance, square, out=ratio, where=np.asarray(square) > 0)
    return np.sqrt(np.maximum(ratio, 0.0))


def detectable_spread(
    rows: RowFigures, cumulants: np.ndarray, square: np.ndarray, usable: np.ndarray
) -> float:
    """Return the spread whose statistic mostly exceeds the critical value.

    A spread s multiplies ``t**2`` of a row by ``1 + s**2 * ratio`` on average, ratio
    being its squared signal-to-noise ratio. The equation, mean = quantile * (standard
    deviation without + standard deviation with), is quadratic in ``s**2``. It promises
    19 times in 20; noise in the ratios makes it 16 to 19.
    """
    cluster = rows.groups.labels // 2
    level = np.where(usable, square / np.bincount(cluster), 0.0)[cluster]
    ratio = np.divide(level, rows.v, out=np.zeros_like(level), where=rows.v > 0)
    pull = rows.gain @ ratio
    cross, own = rows.gain**2 @ ratio, rows.gain**2 @ ratio**2
    deviation = np.sqrt(max(cumulants[:, 1].sum(), 0.0))
    below = pull**2 - 2 * QUANTILE**2 * own
    if below <= 0:
        return float("inf")
    above = 2 * QUANTILE * deviation * pull + 4 * QUANTILE**2 * cross
    return float(np.sqrt(above / below))
