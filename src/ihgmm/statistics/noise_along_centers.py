"""The variance of noise along the centres, which scales hide in each centre's own rows.

Two things show it. Columns have variances of their own, which residuals show where they
are not along the centre (:func:`column_variances`). And columns vary together, which
rows of other clusters show (:func:`correlated_noise`).
"""

from __future__ import annotations

import numpy as np

from ihgmm.matrix import HOST
from ihgmm.policy import Small, TiedNoise
from ihgmm.statistics.shared_covariance import shared_covariance


def column_variances(
    residual_squares: np.ndarray, units: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return variances of noise by column, and along centres were it independent.

    Parameters
    ----------
    residual_squares : ndarray of shape (..., n_clusters, n_features)
        Mean squares r of residuals, which have no part along their centre.
    units : ndarray of shape (..., n_clusters, n_features)
        The centres, at length 1.

    Notes
    -----
    With q the squares of a unit centre, noise of independent entries with variances D
    has ``r_j = (1 - 2 * q_j) * D_j + q_j * s`` where ``s = sum(q * D)`` is the variance
    along the centre. A column that has most of a centre hides its own noise: it is
    taken to have as much as is left of others, ``D_j = r_j / (1 - q_j)``.
    """
    q = units**2
    is_usual = q.max(axis=-1, keepdims=True) < 0.4
    part_across = np.where(is_usual, 1 - 2 * q, 1 - q)
    part_across = np.maximum(part_across, Small.ROUNDING)
    part_along = np.where(is_usual, q, 0.0)

    # s solves s = sum(q * D), with D as a function of s.
    numerator = (q * residual_squares / part_across).sum(axis=-1)
    slope = (q * part_along / part_across).sum(axis=-1)
    s = numerator / (1 + slope)

    across_squares = residual_squares - part_along * s[..., None]
    across_squares = np.maximum(across_squares, 0.0)
    variances = across_squares / part_across
    along_centers = (q * variances).sum(axis=-1)
    return variances, along_centers


def correlated_noise(
    units: np.ndarray,
    hidden: np.ndarray,
    variances: np.ndarray,
    moments: np.ndarray,
    sizes: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Return the variance of noise along centres, and the rows that the prior counts.

    Parameters
    ----------
    units : ndarray of shape (2, n_clusters, n_features)
        Directions of centres, of each of two samples.
    hidden : ndarray of shape (2, n_clusters, n_clusters)
        Coordinates along ``units`` that have the signal of each cluster: rows of
        cluster k have any multiple of ``hidden[:, k]``.
    variances : ndarray of shape (2, n_clusters, n_features)
        Variances of columns in each cluster.
    moments : ndarray of shape (2, n_parts, n_clusters, n_clusters, n_clusters)
        Sums of ``y @ y.T`` for each cluster, y being the coordinates of a row along
        ``units``. The first part is that of all rows, others leave some out.
    sizes : ndarray of shape (2, n_parts, n_clusters)
        Rows of each.

    Returns
    -------
    ndarray of shape (2, n_parts, n_clusters), float

    Notes
    -----
    Coordinates are divided so that independent entries would have the covariance I.
    Noise has the covariance R instead, in all clusters, the most likely one beside so
    many rows with R = I as :func:`_rows_of_prior` says.
    """
    n_clusters = units.shape[1]
    if n_clusters == 1:  # no row of another cluster shows how entries are correlated
        independent_noise = (units**2 * variances).sum(axis=2)
        return independent_noise[:, None] + 0 * sizes, np.inf

    roots, inverses = _independent_roots(units, variances)
    hidden = (inverses @ hidden[..., None])[..., 0]
    moments = inverses[:, None] @ moments @ inverses[:, None]

    # Where there is no noise, or none beyond rounding, rows show nothing.
    squares = np.square(hidden).sum(axis=-1)
    shows_noise = (squares > 0) & (squares < 1 / Small.ROUNDING)
    shows_noise = shows_noise[:, None]  # in each part
    moments = moments * shows_noise[..., None, None]
    sizes = sizes * shows_noise

    lengths = np.sqrt(squares)[..., None]
    directions = HOST.ratio(hidden, lengths)
    prior_rows = _rows_of_prior(directions, moments[:, 0], sizes[:, 0])
    R = shared_covariance(hidden[:, None], moments, sizes, prior_rows)

    # The line of each root that belongs to the cluster itself.
    own_roots = np.einsum("skki->ski", roots)
    own_roots = own_roots[:, None]
    products = (own_roots @ R) * own_roots
    return products.sum(axis=-1), prior_rows


def _independent_roots(
    units: np.ndarray, variances: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return roots of covariances that independent entries have, and their inverses.

    They are those of coordinates along ``units``, of shape (2, n_clusters, n_clusters,
    n_clusters): one for each sample and cluster.
    """
    columns = np.swapaxes(units, 1, 2)
    weighted_units = units[:, None] * variances[:, :, None]
    covariances = weighted_units @ columns[:, None]

    values, vectors = np.linalg.eigh(covariances)
    largest = np.abs(values[..., -1:])
    values = np.maximum(values, TiedNoise.RIDGE * largest)
    deviations = np.sqrt(values)[..., None, :]

    transposed = np.swapaxes(vectors, -1, -2)
    roots = (vectors * deviations) @ transposed
    inverses = (vectors * HOST.ratio(1.0, deviations)) @ transposed
    return roots, inverses


def _rows_of_prior(
    directions: np.ndarray, moments: np.ndarray, sizes: np.ndarray
) -> float:
    """Return for how many rows it counts that entries are independent as a rule.

    The fewer, the further the noise that shows is from that: ``min(2 / E, 4 / (N *
    E**2))`` rows and one at least, E being the squared distance from I of the
    covariance R, by entry, and N the number of rows. Products of what two samples or
    two clusters show measure E: squares would count chance too.

    Parameters
    ----------
    directions : ndarray of shape (2, n_clusters, n_clusters)
        Directions of the signal of each cluster, in coordinates in which noise of
        independent entries has the covariance I.
    moments, sizes : ndarray of shape (2, n_clusters, ...)
        Of all rows.
    """
    k = directions.shape[1]
    excess = _excess_moments(directions, moments, sizes)

    # Entries on and below the diagonal, in k - 1 dimensions.
    n_entries = k * (k - 1) / 2
    products = excess.prod(axis=0)
    row_pairs = sizes.prod(axis=0)
    n_row_pairs = max(row_pairs.sum(), 1.0)
    of_samples = products.sum() / (n_entries * n_row_pairs)

    # The entries that two clusters share, in k - 2 dimensions.
    n_entries = max((k - 1) * (k - 2) / 2, 0.5)
    products = _products_of_pairs(excess)
    row_pairs = _products_of_pairs(sizes)
    n_row_pairs = max(row_pairs.sum(), 1.0)
    of_clusters = products.sum() / (n_entries * n_row_pairs)

    E = max(float(of_samples), float(of_clusters), Small.ROUNDING)
    n = max(sizes.sum() / 2, 1.0)
    prior_rows = min(2 / E, 4 / (n * E**2))
    return float(max(prior_rows, 1.0))


def _excess_moments(
    directions: np.ndarray, moments: np.ndarray, sizes: np.ndarray
) -> np.ndarray:
    """Return moments across the signal, less those of noise with the covariance I.

    They are of shape (2, n_clusters, n_clusters, n_clusters), arguments as above.
    """
    k = directions.shape[1]
    outer_products = directions[..., None] * directions[..., None, :]
    projections = np.eye(k) - outer_products
    expected = sizes[..., None, None] * projections
    return projections @ moments @ projections - expected


def _products_of_pairs(values: np.ndarray) -> np.ndarray:
    """Return sums over pairs of clusters, the second axis, of products of values."""
    square_of_sum = np.square(values.sum(axis=1))
    sum_of_squares: np.ndarray = np.square(values).sum(axis=1)
    return square_of_sum - sum_of_squares
