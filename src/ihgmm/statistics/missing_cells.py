"""Centres and scales from the observed cells alone, where others were filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ihgmm.matrix import HOST, Groups, Matrix, Tall, to_host
from ihgmm.policy import Small

if TYPE_CHECKING:
    from ihgmm.statistics.estimation import P


def filled_cells(data: Matrix) -> np.ndarray:
    """Return how many cells of each row were missing, and filled in."""
    if data.incomplete is None:
        return np.zeros(data.shape[0])
    counts = data.incomplete.map(lambda block: to_host(block.missing().sqnorms))
    return np.concatenate(list(counts))


def missing_cells(X: Matrix | None, before: Matrix | None = None) -> np.ndarray:
    """Return rows and columns of missing cells, in order, but those missing before."""
    if X is None:
        return np.empty((0, 2), dtype=np.int64)
    new = np.setdiff1d(_missing_places(X), _missing_places(before))
    return np.stack(np.divmod(new, X.shape[1]), axis=1)


def _missing_places(X: Matrix | None) -> np.ndarray:
    """Return the place of each missing cell, row by row."""

    def cells(block: Matrix) -> tuple[Any, ...]:
        missing: Any = block.missing().to_memory()
        return block.shape, *missing.array.nonzero()

    places, start = [np.empty(0, dtype=np.int64)], 0
    for shape, rows, columns in () if X is None else X.map(cells):
        places.append((start + rows.astype(np.int64)) * shape[1] + columns)
        start += shape[0]
    return np.concatenate(places)


def mean_lengths(rows: Groups, lengths: Tall) -> np.ndarray:
    """Return the mean of lengths in each cluster; 1 where that is 0."""
    counts = rows.sums(rows.weighted(rows.ops.xp.ones_like(lengths)))
    means = HOST.ratio(rows.sums(rows.weighted(lengths)), counts)
    return np.where(means == 0, 1.0, means)


def fit_observed(fitted: P, X: Matrix, rows: Groups) -> tuple[P, Tall, np.ndarray]:
    """Fit parameters once more, to what was observed of the rows.

    An entry of a centre is fitted to the rows that have a cell there, a scale to its
    row's observed cells and the centre without that row. Returned are also the least
    errors of scales, and by how much those of centres grow.
    """
    gaps, ops, xp = X.incomplete, rows.ops, rows.ops.xp
    assert gaps is not None
    p, unit, k = X.shape[1], X.unit, len(rows.sizes)
    scales = ops.to_device(ops.widen(fitted.scales), rows.labels)
    weights = rows.weighted(scales)
    total = rows.sums(weights * scales)
    labels = gaps.to_device(rows.labels)
    both = gaps.cast(weights), gaps.cast(weights * scales)

    def sums_of(block: Matrix, labels: Tall, *weights: Tall) -> Any:
        """Return norms and holes of rows; sums of observed and of missing cells."""
        parts = block.filled(), block.missing()
        members = block.ops.one_hot(labels, k, weights[0])
        sums = (
            to_host(part.adjoint(members * weight[:, None])).T.astype(np.float64)
            for part, weight in zip(parts, weights, strict=True)
        )
        return tuple(part.sqnorms for part in parts), tuple(sums)

    tall, (sums, lost) = gaps.sweep(sums_of, labels, *both)
    sqnorms, holes = (ops.to_device(values, scales) for values in tall)
    loads = total[:, None] - lost
    centers = to_host(fitted.centers).astype(np.float64) / unit
    # Entries that no row of the cluster has stay as they were filled in.
    enough = loads > Small.LOAD * np.maximum(total, Small.TINY)[:, None]
    centers = np.where(enough, sums / np.where(enough, loads, 1.0), centers)

    def products(block: Matrix, labels: Tall) -> Any:
        """Return products of observed cells with centres, hidden squares of these."""
        pick = block.ops.pick
        inner = pick(block.filled() @ centers.T, labels)
        return (inner, pick(block.missing() @ (centers**2).T, labels)), ()

    tall, _ = gaps.sweep(products, labels)
    inner, hidden = (ops.to_device(ops.widen(values), scales) for values in tall)
    shares = weights / rows.to_rows(np.where(total > 0, total, 1.0))
    squares = np.einsum("ij,ij->i", centers, centers)
    coverage = HOST.ratio(loads.mean(axis=1), total, 1.0)
    own = shares / rows.to_rows(np.maximum(coverage, Small.LOAD))
    # As in complete data: a row has no part in the centre that it is compared with,
    # and the noise in a centre does not count as length.
    kept = np.maximum(1.0 - rows.sums((shares * scales) ** 2), Small.EXACT)
    noisy = rows.sums(own * shares * sqnorms)
    free = np.clip(HOST.ratio((squares - noisy) / kept, squares), 0.0, 1.0)
    length = (rows.to_rows(squares) - hidden) * rows.to_rows(free)
    # A row of more than half of its centre could take all of it.
    inner = (inner - own * sqnorms) / ops.clip(1.0 - own * scales, 0.5, None)
    refitted = ops.clip(ops.ratio(inner, length), 0.0, None)
    alone = rows.to_rows(rows.sizes) < 3
    refitted = xp.where(alone | (length <= 0), scales, refitted)
    left = ops.clip(sqnorms - refitted**2 * length, 0.0, None)
    before = ops.to_device(ops.widen(fitted.noise_levels), rows.labels) / unit
    cells = p - holes
    variances = left / ops.clip(cells - 1.0, 1.0, None)
    variances = xp.where(alone | (cells < 2), before**2, variances)
    # What an error is made of: the noise of a row, and how much of the centre it has.
    errors = xp.where(alone, xp.zeros_like(length), ops.ratio(variances, length)) ** 0.5
    squared = rows.sums(shares**2 * variances), rows.sums(shares**2 * before**2)
    noise = HOST.ratio(*squared, 1.0)
    seen = HOST.ratio(loads, np.broadcast_to(total[:, None], loads.shape), 1.0)
    wider = np.sqrt(noise[:, None] / np.maximum(seen, Small.LOAD))
    means = mean_lengths(rows, refitted)
    mean = rows.to_rows(means)
    centers = X.to_device((centers * means[:, None] * unit).astype(X.dtype))
    scales, levels = X.cast(refitted / mean), X.cast(variances**0.5 * unit)
    refit = replace(fitted, centers=centers, scales=scales, noise_levels=levels)
    return refit, X.cast(errors / mean), X.cast(wider * means[:, None])
