"""How far off estimated scales are, and the weights of rows that follow from it.

The formulas are in the notes of :func:`ihgmm.estimation.estimate_parameters`.
"""

from __future__ import annotations

import numpy as np
from scipy.special import polygamma

from ihgmm.estimation.scale_fit import Fit
from ihgmm.groups import Groups

__all__ = ["efficient_weights", "scale_variances", "shrunk_variances"]

FEW = 10
"""Clusters of fewer rows have centres with equal weights."""


def scale_variances(fit: Fit, rows: Groups, p: int) -> np.ndarray:
    """Return the variances of the scales' errors: see the notes of the front door.

    With A = 1 and ``h = sum(a_j * w_j / c_j)``, the error r is B @ Q, less its mean
    times w_i, where ``Q_i = sum(a_j * q_ij, j != i)`` and

        ``B_ij = (i == j) / c_i - w_i * (slope_i * b_j + level_j)``.

    Each sum over j below is a quadratic in slope_i with a cluster's sums in it, so
    that all rows take linear time.
    """
    a, w, v = fit.weights, fit.scales, fit.variances
    n_rows, length = rows.size[rows.labels], fit.center_sqnorms[rows.labels]
    c = 1 - 2 * a * w
    # The singularity of c is not one of the equations.
    c[np.abs(c) < 1e-7] = 1e-7
    with np.errstate(divide="ignore", invalid="ignore"):
        b = a / c
        h = rows.sum(b * w)
        slope = 1 / (c * (1 + h))
        level = (1 / c - b * rows.sum(w / c) / (1 + h)) / n_rows

        def squares(g: np.ndarray) -> np.ndarray:
            """Return ``sum(g_j * B_ij**2)`` for each row i."""
            others = slope**2 * rows.sum(g * b**2) + rows.sum(g * level**2)
            others += 2 * slope * rows.sum(g * b * level)
            own = g / c * (1 / c - 2 * w * (slope * b + level))
            return np.asarray(own + w**2 * others)

        g = v * a
        cross = g / c - w * (slope * rows.sum(g * b) + rows.sum(g * level))
        pairs = squares(v) * rows.sum(v * a**2) + cross**2 - 2 * squares(g**2)
        single = v * (1 - 2 * w / n_rows) + w**2 * rows.sum(v) / n_rows**2
        variances = (single + p * pairs / length) / length
    known = fit.solved & (length > 0) & (p > 1) & np.isfinite(variances)
    variances = np.where(known, np.maximum(variances, 0.0), np.inf)
    exact = (n_rows == 1) | (rows.sum(v) == 0) & (length > 0) & (p > 1)
    return np.where(exact, 0.0, variances)


def efficient_weights(fit: Fit, rows: Groups, p: int) -> np.ndarray:
    """Return ``scale / noise variance``, of estimates pulled towards the mean."""
    scales = _shrunk(fit.scales, scale_variances(fit, rows, p), rows)
    # A weight of zero would leave no equation for the row's own scale.
    weights = np.maximum(scales, 0.1) / shrunk_variances(fit, rows, p)
    return np.where(rows.size[rows.labels] < FEW, 1.0, weights)


def shrunk_variances(fit: Fit, rows: Groups, p: int) -> np.ndarray:
    """Return noise variances over their cluster's mean, pulled towards 1.

    Their error is a factor, the same for all, so this is done to the logarithms. A row
    that seems free of noise, such as a zero row, counts as an ordinary one.
    """
    relative = rows.mean_one(fit.variances)
    relative = np.where(relative > 0, np.maximum(relative, 1e-4), 1.0)
    error = np.full(len(relative), polygamma(1, max(p - 1, 1) / 2))
    return rows.mean_one(np.exp(_shrunk(np.log(relative), error, rows)))


def _shrunk(values: np.ndarray, errors: np.ndarray, rows: Groups) -> np.ndarray:
    """Pull values to their cluster's mean by the share of error in their variance."""
    mean = rows.mean(values)
    variance = rows.mean((values - mean) ** 2)
    error = np.minimum(rows.mean(errors), variance)
    share = np.divide(error, variance, out=np.ones(len(mean)), where=variance > 0)
    return values + share * (mean - values)
