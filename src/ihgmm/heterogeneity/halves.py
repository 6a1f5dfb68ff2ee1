"""The rows of a cluster's half, seen from the mean of its other half."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm._arrays import Array, dense_rows, row_ranges, take_rows
from ihgmm._devices import dtype_of, is_device, moved, namespace, to_host, wide
from ihgmm._tall import Tall, block_entries, row_dots
from ihgmm.groups import Groups

__all__ = ["LEAST", "RowFigures", "random_halves", "row_figures"]

LEAST = 4
"""Rows that a cluster must have: a difference in each half takes two."""

CHUNK = 2**18
"""Entries of X that are worked on at a time on a host."""

SKEW, CAP = 2.5 - 2.5**0.5, 0.9
"""How much entries that are large among the squares of their row are raised, and from
which share on no more. The first is a root of ``a**2 - 5 * a + 15 / 4``: with it the
skewness of noise has, to the leading order, no part in the mean of the statistic, where
``sum(e)**2 - sum(e**2)`` of a row has the weight ``sum((u * d)**2) ** (-3 / 2)``."""


@dataclass(frozen=True)
class RowFigures:
    """What the test needs of the rows, found in one pass over X.

    ``u`` is the unit vector along the mean of the other half; ``d`` is the row less
    the mean of its own half, whose weights are ``weight``; ``e`` is ``u * d`` with
    large entries raised, see :func:`_raised`.
    """

    groups: Groups  # two for each cluster, one for each half
    weight: np.ndarray
    y: np.ndarray  # u . d
    e: np.ndarray  # sum(e)
    v: np.ndarray  # sum(e**2); 0 for a row that does not count
    fourth: np.ndarray  # sum(e**4) / v**2
    sixth: np.ndarray  # sum(e**6) / v**3
    noise: np.ndarray  # the variance of u . x due to noise
    gain: np.ndarray  # what t**2 - 1 is multiplied by
    level: np.ndarray  # u . mean, one for each group


def random_halves(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Split every cluster in two at random; return 0 or 1 for each row."""
    order = np.lexsort((rng.random(len(codes)), codes))
    sizes = np.bincount(codes)
    rank = np.empty(len(codes), dtype=np.intp)
    rank[order] = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.asarray(rank % 2)


def row_figures(
    X: Array, group: np.ndarray, n_groups: int, sqnorms: np.ndarray
) -> RowFigures:
    """Look at each row of a group from the mean of the other group of its cluster.

    Groups 2 k and 2 k + 1 are the halves of cluster k.
    """
    n, p = X.shape
    groups = Groups.of(group, n_groups)
    weight = _weights(X, groups, sqnorms)
    means = groups.weighted_sums(X, weight).astype(np.float64)
    length = np.linalg.norm(means, axis=1, keepdims=True)
    unit = np.divide(means, length, out=np.zeros_like(means), where=length > 0)
    other = np.arange(n_groups) ^ 1
    u = unit[other]
    cube = u**3
    power = np.einsum("ij,ij->i", cube, u)
    # A row nearer to the mean than rounding tells nothing.
    rounding = (64 * np.finfo(dtype_of(X)).eps) ** 2 * ((u * means) ** 2).sum(axis=1)
    y, square, cross, e, v, fourth, sixth = figures = np.zeros((7, n))
    there = [moved(rows, X) for rows in (means, u, cube)]
    for at in row_ranges(n, block_entries(X, CHUNK) // p):
        # Only figures of rows leave a device.
        block = wide(take_rows(X, at)) if is_device(X) else dense_rows(X, at)
        g = moved(group[at], X)
        figures[:, at] = _seen_from(block, *(take_rows(rows, g) for rows in there))
    # sum(u**2 * (d - y * u)**2), free of the row's own scale
    noise = square - 2 * y * cross + y**2 * power[group]
    v *= square > rounding[group]
    # What y * u and the mean took of the noise; with one feature, all of it.
    rest = (1 - power[group]) * (1 - weight)
    noise = np.divide(noise, rest, out=np.full(n, np.inf), where=rest > 1e-9)
    gain = np.divide(v, square**1.5, out=np.zeros(n), where=v > 0)
    gain *= length[other, 0][group]
    level = np.einsum("ij,ij->i", u, means)
    return RowFigures(
        groups, weight, y, e, v, fourth, sixth, np.maximum(noise, 0.0), gain, level
    )


def _seen_from(block: Tall, means: Tall, u: Tall, cube: Tall) -> np.ndarray:
    """Return y, ``sum((u * d)**2)``, ``sum(u**3 * d)``, figures of e, on the host."""
    xp = namespace(block)
    d = block - means
    a = d * u
    y, cross = xp.sum(a, axis=1), row_dots(cube, d)
    squares = a * a
    square = xp.sum(squares, axis=1)
    e = _raised(a, squares / _positive(square)[:, None])
    total = xp.sum(e, axis=1)
    e *= e
    v = xp.sum(e, axis=1)
    e /= _positive(v)[:, None]
    fourths = e * e
    fourth, sixth = xp.sum(fourths, axis=1), row_dots(fourths, e)
    return to_host(xp.stack([y, square, cross, total, v, fourth, sixth]))


def _raised(a: Tall, share: Tall) -> Tall:
    """Return entries of noise, raised by their share in the squares of the row.

    A large entry is divided by squares that are largely its own. Noise that is skewed
    has its large entries on one side, and products of two of them would not be 0 on
    average; raised, they are. It depends on squares alone: a change of sign of the
    noise changes nothing but the sign.
    """
    share = namespace(a).clip(share, 0.0, CAP)
    return a * (1 + SKEW * share / (1 - share))


def _positive(values: Tall) -> Tall:
    xp = namespace(values)
    return xp.where(values > 0, values, xp.ones_like(values))


def _weights(X: Array, groups: Groups, sqnorms: np.ndarray) -> np.ndarray:
    """Return weights by inverse noise variance that add up to 1 in each half.

    They depend on the squares of the rows less their mean alone. A change of sign of
    the noise in a feature leaves them as they are, so the test is exact with any.
    Rows of clusters too small to be tested get 0.
    """
    group = groups.labels
    size = groups.size[group]
    means = groups.weighted_sums(X, 1 / size).astype(np.float64)
    cross = groups.inner_products(X, means)
    left = sqnorms - 2 * cross + np.einsum("ij,ij->i", means, means)[group]
    np.maximum(left, 0.0, out=left)
    mean = groups.sum(left) / np.maximum(size - 1, 1)
    # The expectation of what is left is (1 - 2 / size) * noise + mean / size. The
    # bound keeps one quiet row from being all of the mean.
    noise = (left - mean / size) / np.where(size > 2, 1 - 2 / size, 1.0)
    known = (size > 2) & (mean > 0)
    inverse = 1 / np.where(known, np.maximum(noise, mean / size), 1.0)
    inverse[np.bincount(group // 2)[group // 2] < LEAST] = 0.0
    total = groups.sum(inverse)
    return np.divide(inverse, total, out=np.zeros(len(group)), where=total > 0)
