"""What one who knows the centres can do at best. It is not in the paper.

Let such a one place a row of Gaussian noise without knowing its scale. The most likely
cluster is that of the largest cosine, and centre k beats the row's own with probability
``Phi(-omega_i * |theta_z| * |u_z - u_k| / (2 * sigma_i))``, where u are the centres
brought to unit norm. For centres of one norm this is the distance of the two centres
times ``omega_i / (2 * sigma_i)``. Then to know the scales is of no further use, and no
method that treats the clusters alike has fewer errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.spatial.distance import cdist
from scipy.special import ndtr, ndtri

from ihgmm._parameters import check_count
from ihgmm.statistics.model import check_model, smallest_distance


def oracle_errors(
    labels: Any,
    scales: Any,
    centers: Any,
    noise_levels: Any = 1.0,
    *,
    n_samples: int | None = None,
) -> float:
    """Return a bound on the mean number of rows that known centres misplace.

    It is the sum of the probabilities above over rows i and centres k other than the
    row's own, ``(K - 1) * sum(Phi(-omega_i * Delta / (2 * sigma_i)))`` for centres of
    one norm and one distance. A row that is beaten by two centres counts twice. All
    labels are right with a probability of about ``exp(-errors)``, and more than that
    where few, weak rows make most of the errors.

    Parameters
    ----------
    labels, scales, centers
        The model; no centre may be zero.
    noise_levels : float or array-like of shape (n_samples,)
        Standard deviation of the noise, sigma_i, of all rows or of each.
    n_samples : int, optional
        Number of rows to count errors of, where the given ones stand for all that
        might be drawn. Default: the given ones.

    Examples
    --------
    >>> model = [0, 0, 1, 1], [1.0, 2.0, 1.0, 2.0], [[3.0, 0.0], [0.0, 3.0]]
    >>> round(oracle_errors(*model), 4)
    0.0339
    """
    distances, weight = _distances(labels, scales, centers, noise_levels, n_samples)
    return float(weight * ndtr(-distances).sum())


def exact_recovery_limit(
    labels: Any,
    scales: Any,
    centers: Any,
    noise_levels: Any = 1.0,
    *,
    n_samples: int | None = None,
) -> float:
    """Return the separation at which known centres give all labels at even odds.

    The centres are multiplied by one number, such that :func:`oracle_errors` is
    ``log 2``. The sum counts some rows twice, so the odds are a little better than
    even: in the designs of the phase study they are even at a separation that is up to
    13 per cent smaller. With Gaussian noise and centres of one norm no method has
    better odds than known centres.

    Parameters
    ----------
    labels, scales, centers, noise_levels, n_samples
        As for :func:`oracle_errors`. Only the shape of the centres counts.

    Returns
    -------
    float
        The smallest distance between two centres, Delta; ``inf`` where two centres have
        the same direction, 0 where nothing can go wrong.

    Examples
    --------
    In units of the paper's condition, for a sample of its first experiment:

    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.paper.theory import ihsc_threshold
    >>> s = make_ihgmm(500, 200, 4, random_state=0, return_params=True)
    >>> limit = exact_recovery_limit(s.labels, s.scales, s.centers, s.noise_levels)
    >>> round(limit / ihsc_threshold(500, 200, 4), 2)
    0.78
    """
    distances, weight = _distances(labels, scales, centers, noise_levels, n_samples)
    even = np.log(2) / weight
    if distances.size / 2 <= even:
        return 0.0
    if distances.min() == 0:
        return np.inf
    # All distances as small as the smallest: then the errors are at most log 2.
    largest = -ndtri(even / distances.size) / distances.min()
    unit = largest * distances
    factor = brentq(lambda t: ndtr(-t * unit).sum() - even, 0.0, 1.0)
    return float(factor * largest * smallest_distance(check_model(centers=centers)[0]))


def _distances(
    labels: Any, scales: Any, centers: Any, noise_levels: Any, n_samples: int | None
) -> tuple[np.ndarray, float]:
    """Return how far each row is from each border, in noise levels, and a row's weight.

    Rows without noise are left out.
    """
    code, omega, theta = check_model(labels=labels, scales=scales, centers=centers)
    sigma = np.asarray(noise_levels, dtype=np.float64)
    if sigma.shape not in ((), code.shape):
        raise ValueError(
            f"noise_levels has shape {sigma.shape}; give one number, or "
            f"{len(code)} of them."
        )
    if not (np.isfinite(sigma) & (sigma >= 0)).all():
        raise ValueError(
            f"noise_levels has smallest value {sigma.min():g} and largest "
            f"{sigma.max():g}; give finite numbers that are not negative."
        )
    n = len(code) if n_samples is None else check_count("n_samples", n_samples)
    norms = np.linalg.norm(theta, axis=1)
    if not norms.all():
        raise ValueError(
            f"Row {norms.argmin()} of centers is zero; give centres with a direction."
        )
    unit = theta / norms[:, None]
    gaps = cdist(unit, unit)
    gaps[gaps < 10 * np.finfo(np.float64).eps] = 0.0  # parallel, but for rounding
    others = ~np.eye(len(theta), dtype=bool)
    noisy = np.broadcast_to(sigma, code.shape) > 0
    levels = np.broadcast_to(sigma, code.shape)[noisy]
    sizes = (omega * norms[code])[noisy] / (2 * levels)
    borders = gaps[others].reshape(len(theta), -1)[code[noisy]]
    return sizes[:, None] * borders, n / len(code)
