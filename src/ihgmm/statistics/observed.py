"""Centres and scales from the observed cells alone, where others were filled in."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ihgmm.matrix import Matrix, Tall, namespace, to_host
from ihgmm.matrix.tall import (
    Groups,
    clip,
    one_hot,
    pick,
    ratio,
    stack,
    to_device,
    widen,
)

if TYPE_CHECKING:
    from ihgmm.statistics.estimation import Parameters


def filled_cells(data: Matrix) -> np.ndarray:
    """Return how many cells of each row were missing, and filled in."""
    if data.incomplete is None:
        return np.zeros(data.shape[0])
    counts = data.incomplete.map(lambda block: to_host(block.missing().sqnorms))
    return np.concatenate(list(counts))


class Observed(NamedTuple):
    """A fit to observed cells, and how large errors are at least, or grow."""

    parameters: dict[str, Tall]  # centres, scales and noise levels
    scale_errors: Tall  # (n_samples,), of scales with independent noise: the least
    center_growth: np.ndarray  # (n_clusters, n_features)


def fit_observed(found: Parameters, X: Matrix, rows: Groups) -> Observed:
    """Fit centres, scales and noise once more, to what was observed of the rows.

    An entry of a centre is the least-squares fit, given the scales, to the rows that
    have a cell there; a scale that of its row's observed cells to the centre without
    that row. Errors grow as there is less to go by.
    """
    gaps = X.incomplete
    assert gaps is not None
    p, unit, k = X.shape[1], X.unit, len(rows.sizes)
    scales = to_device(widen(found.scales), rows.labels)
    weights = rows.counted(scales)
    total = rows.sums(weights * scales)
    labels = gaps.to_device(rows.labels)
    both = gaps.cast(weights), gaps.cast(weights * scales)
    parts = [*gaps.map(partial(_sums, k), labels, *both)]
    sums, lost = (sum(part[i] for part in parts) for i in range(2))
    sqnorms, holes = (
        to_device(stack([part[i] for part in parts]), scales) for i in (2, 3)
    )
    loads = total[:, None] - lost
    centers = to_host(found.centers).astype(np.float64) / unit
    # Entries that no row of the cluster has stay as they were filled in.
    enough = loads > 1e-6 * np.maximum(total, 1e-300)[:, None]
    centers = np.where(enough, sums / np.where(enough, loads, 1.0), centers)
    products = [*gaps.map(partial(_products, centers), labels)]
    inner, hidden = (
        to_device(widen(stack([part[i] for part in products])), scales)
        for i in range(2)
    )
    shares = weights / rows.spread(np.where(total > 0, total, 1.0))
    squares = np.einsum("ij,ij->i", centers, centers)
    coverage = ratio(loads.mean(axis=1), total, 1.0)
    own = shares / rows.spread(np.maximum(coverage, 1e-6))
    # As in complete data: a row has no part in the centre that it is compared with,
    # and the noise in a centre does not count as length.
    kept = np.maximum(1.0 - rows.sums((shares * scales) ** 2), 1e-12)
    noisy = rows.sums(own * shares * sqnorms)
    free = np.clip(ratio((squares - noisy) / kept, squares), 0.0, 1.0)
    part = rows.spread(squares) - hidden
    length = part * rows.spread(free)
    xp = namespace(length)
    others = clip(1.0 - own * scales, 0.5, None)
    inner = (inner - own * sqnorms) / others
    fitted = clip(ratio(inner, length), 0.0, None)
    alone = rows.spread(rows.sizes) < 3
    fitted = xp.where(alone | (length <= 0), scales, fitted)
    left = clip(sqnorms - fitted**2 * length, 0.0, None)
    before = to_device(widen(found.noise_levels), rows.labels) / unit
    cells = p - holes
    variances = left / clip(cells - 1.0, 1.0, None)
    variances = xp.where(alone | (cells < 2), before**2, variances)
    # What an error is made of: the noise of a row, and how much of the centre it has.
    errors = xp.where(alone, xp.zeros_like(length), ratio(variances, length)) ** 0.5
    noise = ratio(rows.sums(shares**2 * variances), rows.sums(shares**2 * before**2), 1)
    seen = ratio(loads, np.broadcast_to(total[:, None], loads.shape), 1.0)
    wider = np.sqrt(noise[:, None] / np.maximum(seen, 1e-6))
    sizes = rows.sums(rows.counted(xp.ones_like(fitted)))
    means = ratio(rows.sums(rows.counted(fitted)), sizes)
    means[means == 0] = 1.0
    spread = rows.spread(means)
    parameters = {
        "centers": X.to_device((centers * means[:, None] * unit).astype(X.dtype)),
        "scales": X.cast(fitted / spread),
        "noise_levels": X.cast(variances**0.5 * unit),
    }
    return Observed(parameters, errors / spread, wider * means[:, None])


def _sums(
    k: int, block: Matrix, labels: Tall, *weights: Tall
) -> tuple[np.ndarray, np.ndarray, Tall, Tall]:
    """Return weighted sums of rows and of missing cells; of rows, norms and holes."""
    values, missing = block.filled(), block.missing()
    members = one_hot(labels, k, weights[0])
    sums, lost = (
        to_host(each.adjoint(members * few[:, None])).T.astype(np.float64)
        for each, few in zip((values, missing), weights, strict=True)
    )
    return sums, lost, values.sqnorms, missing.sqnorms


def _products(centers: np.ndarray, block: Matrix, labels: Tall) -> tuple[Tall, Tall]:
    """Return products of observed cells with centres, and squares of centres hidden."""
    values, missing = block.filled(), block.missing()
    return pick(values @ centers.T, labels), pick(missing @ (centers**2).T, labels)
