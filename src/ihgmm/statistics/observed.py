"""Centres and scales from the observed cells alone, where others were filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ihgmm.matrix import Filled, Matrix, namespace, to_host
from ihgmm.matrix.tall import Groups, ratio, to_device, widen

if TYPE_CHECKING:
    from ihgmm.statistics.estimation import Estimates


def fit_observed(found: Estimates, X: Matrix, rows: Groups) -> Estimates:
    """Fit centres, scales and noise once more, to what was observed of the rows.

    An entry of a centre is the least-squares fit, given the scales, to the rows that
    have a cell there; a scale that of its row's observed cells to the centre without
    that row. Errors grow as there is less to go by.
    """
    gaps = X.incomplete
    assert gaps is not None
    values, missing = Filled(gaps, "filled"), Filled(gaps, "missing")
    p, unit = X.shape[1], X.unit
    scales = to_device(widen(found.scales), rows.labels)
    weights = rows.counted(scales)
    total = rows.sums(weights * scales)
    sums = rows.weighted_sums(values, weights).astype(np.float64)
    loads = total[:, None] - rows.weighted_sums(missing, weights * scales)
    centers = to_host(found.centers).astype(np.float64) / unit
    # Entries that no row of the cluster has stay as they were filled in.
    enough = loads > 1e-6 * np.maximum(total, 1e-300)[:, None]
    centers = np.where(enough, sums / np.where(enough, loads, 1.0), centers)
    shares = weights / rows.spread(np.where(total > 0, total, 1.0))
    squares = np.einsum("ij,ij->i", centers, centers)
    sqnorms = to_device(values.sqnorms, scales)
    cells = p - to_device(missing.sqnorms, scales)
    coverage = ratio(loads.mean(axis=1), total, 1.0)
    own = shares / rows.spread(np.maximum(coverage, 1e-6))
    # As in complete data: a row has no part in the centre that it is compared with,
    # and the noise in a centre does not count as length.
    kept = np.maximum(1.0 - rows.sums((shares * scales) ** 2), 1e-12)
    noisy = rows.sums(own * shares * sqnorms)
    free = np.clip(ratio((squares - noisy) / kept, squares), 0.0, 1.0)
    part = rows.spread(squares) - rows.inner_products(missing, centers**2)
    length = part * rows.spread(free)
    xp = namespace(length)
    others = xp.clip(1.0 - own * scales, 0.5, None)
    inner = (rows.inner_products(values, centers) - own * sqnorms) / others
    fitted = xp.clip(ratio(inner, length), 0.0, None)
    alone = rows.spread(rows.sizes) < 3
    fitted = xp.where(alone | (length <= 0), scales, fitted)
    left = xp.clip(sqnorms - fitted**2 * length, 0.0, None)
    before = to_device(widen(found.noise_levels), rows.labels) / unit
    variances = left / xp.clip(cells - 1.0, 1.0, None)
    variances = xp.where(alone | (cells < 2), before**2, variances)
    # What an error is made of: the noise of a row, and how much of the centre it has.
    grown = ratio(variances, before**2, 1.0) * ratio(rows.spread(squares), part, np.inf)
    errors = to_device(widen(found.scale_errors), rows.labels)
    noise = ratio(rows.sums(shares**2 * variances), rows.sums(shares**2 * before**2), 1)
    lost = np.sqrt(noise / np.maximum(coverage, 1e-6))
    sizes = rows.sums(rows.counted(xp.ones_like(fitted)))
    means = ratio(rows.sums(rows.counted(fitted)), sizes)
    means[means == 0] = 1.0
    spread = rows.spread(means)
    return replace(
        found,
        centers=X.to_device((centers * means[:, None] * unit).astype(X.dtype)),
        scales=X.cast(fitted / spread),
        noise_levels=X.cast(variances**0.5 * unit),
        scale_errors=X.cast(errors * grown**0.5 / spread),
        center_errors=X.cast(to_host(found.center_errors) * lost * means),
    )
