"""How well each row fits each cluster whose centre was learnt without that row.

A centre estimated from a cluster carries the noise of its own rows. With many more
features than rows this noise makes every row fit its own cluster best, right or wrong.
Here a row is compared with the centres that the *other* rows give: the sums over a
cluster are formed once, and the row's own part is taken off.

What there is of each row and cluster is on the host, wherever the data is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import log_ndtr

from ihgmm._arrays import Array
from ihgmm._devices import to_host
from ihgmm._products import matmul, transposed_matmul

__all__ = [
    "NOISES",
    "Directions",
    "Noise",
    "Projections",
    "column_scaled",
    "indicators",
    "leave_one_out",
    "log_evidence",
    "precision_weights",
    "project",
    "unit_weights",
]

Noise = Literal["common", "class", "individual"]
NOISES: tuple[Noise, ...] = ("common", "class", "individual")

CLOSEST = 1e-12
"""Squared sines below this count as this: no row fits a centre without any noise."""


@dataclass(frozen=True)
class Directions:
    """Estimated directions of the centres and how much noise they carry.

    Attributes
    ----------
    sums : ndarray of shape (n_features, n_clusters)
        Weighted sums of the rows of each cluster.
    sqnorms : ndarray of shape (n_clusters,)
        Their squared norms.
    loads : ndarray of shape (n_clusters,)
        The sums of squared weights: what the noise of a row is multiplied by.
    """

    sums: np.ndarray
    sqnorms: np.ndarray
    loads: np.ndarray


@dataclass(frozen=True)
class Projections:
    """Rows seen from the centres.

    Attributes
    ----------
    cosines : ndarray of shape (n_samples, n_clusters), float64
        Cosine of each row with each centre; 0 where either is zero.
    squares, loads : ndarray of shape (n_samples, n_clusters), float64
        The squared norm of the centre used for each row, and its sum of squared
        weights.
    """

    cosines: np.ndarray
    squares: np.ndarray
    loads: np.ndarray

    def accuracy(self, variances: np.ndarray, n_features: int) -> np.ndarray:
        """Return the squared cosines of the centres used with the true ones.

        They are estimated from the noise variance of the rows in each cluster, and at
        least 0.001.
        """
        noise = n_features * variances * self.loads
        share = np.ones_like(noise)
        np.divide(noise, self.squares, out=share, where=self.squares > 0)
        return np.clip(1.0 - share, 1e-3, 1.0)


def indicators(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return memberships that are 1 in the cluster of each row and 0 elsewhere."""
    memberships = np.zeros((len(labels), n_clusters))
    memberships[np.arange(len(labels)), labels] = 1.0
    return memberships


def precision_weights(
    memberships: np.ndarray, found: Projections, sqnorms: np.ndarray
) -> np.ndarray:
    """Return the weight of each row in each centre: its length over its noise variance.

    Both are read off the projections; a row that points away from a centre has
    weight 0 in it.
    """
    cosines = np.maximum(found.cosines, 0.0)
    left = np.maximum(1.0 - cosines**2, CLOSEST) * sqnorms[:, None]
    length = cosines * np.sqrt(sqnorms)[:, None]
    weights = np.zeros_like(left)
    np.divide(memberships * length, left, out=weights, where=left > 0)
    return column_scaled(weights)


def unit_weights(memberships: np.ndarray, sqnorms: np.ndarray) -> np.ndarray:
    """Return weights with which all rows count as if of the same length."""
    norms = np.sqrt(sqnorms)[:, None]
    weights = np.zeros_like(memberships)
    np.divide(memberships, norms, out=weights, where=norms > 0)
    return column_scaled(weights)


def column_scaled(weights: np.ndarray) -> np.ndarray:
    """Return weights with largest value 1 in each column: only ratios matter."""
    peak = weights.max(axis=0)
    return np.asarray(weights / np.where(peak > 0, peak, 1.0))


def leave_one_out(
    X: Array, sqnorms: np.ndarray, weights: np.ndarray
) -> tuple[Projections, Directions]:
    """Compare each row with the centres that the other rows give.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data.
    sqnorms : ndarray of shape (n_samples,)
        Squared row norms of X.
    weights : ndarray of shape (n_samples, n_clusters)
        What each row counts in the sum for each centre.

    Returns
    -------
    Projections
        Of each row on the centres without that row.
    Directions
        The sums with all rows.
    """
    sums = to_host(transposed_matmul(X, weights)).astype(np.float64)
    inner = to_host(matmul(X, sums)).astype(np.float64)
    total = np.einsum("jk,jk->k", sums, sums)
    own = weights * sqnorms[:, None]
    squares = total - 2 * weights * inner + weights * own
    # Where nothing is left without the row, rounding must not pass for a centre.
    squares[squares <= 1e-10 * np.maximum(total, weights * own)] = 0.0
    loads = (weights**2).sum(axis=0)
    cosines = _cosines(inner - own, squares, sqnorms)
    found = Projections(cosines, squares, loads - weights**2)
    return found, Directions(sums, total, loads)


def project(X: Array, sqnorms: np.ndarray, directions: Directions) -> Projections:
    """Compare new rows with the centres."""
    inner = to_host(matmul(X, directions.sums)).astype(np.float64)
    squares = np.broadcast_to(directions.sqnorms, inner.shape)
    loads = np.broadcast_to(directions.loads, inner.shape)
    return Projections(_cosines(inner, squares, sqnorms), squares, loads)


def _cosines(inner: np.ndarray, squares: np.ndarray, sqnorms: np.ndarray) -> np.ndarray:
    length = np.sqrt(squares * sqnorms[:, None])
    cosines = np.divide(inner, length, out=np.zeros_like(inner), where=length > 0)
    return np.clip(cosines, -1.0, 1.0)


def log_evidence(
    found: Projections,
    sqnorms: np.ndarray,
    n_features: int,
    noise_variances: np.ndarray | None = None,
) -> np.ndarray:
    """Return the log-likelihood of each row in each cluster.

    Parameters
    ----------
    found : Projections
        The rows seen from the centres.
    sqnorms : ndarray of shape (n_samples,)
        Squared row norms.
    n_features : int
        Number of features, p.
    noise_variances : ndarray of shape (n_clusters,), optional
        Variance of the noise in each cluster; unless given, every row has its own,
        unknown.

    Returns
    -------
    ndarray of shape (n_samples, n_clusters)

    Notes
    -----
    A row of length ``|x|`` has the component ``y = |x| cos`` along a centre and
    ``|x|**2 - y**2`` across it. The length of its signal is unknown; integrated out
    over all positive lengths it leaves ``Phi(y / s)``, s being the standard deviation
    of the noise. With s known, the rest is the Gaussian density of the part across;
    the centre's own noise adds to s in proportion to the signal. With s unknown it is
    fitted to the row, which leaves ``(1 - cos**2)**(-(p - 1) / 2)``.
    """
    freedom = max(n_features - 1, 1)
    along = np.sqrt(sqnorms)[:, None] * found.cosines
    across = np.maximum(1.0 - found.cosines**2, CLOSEST) * sqnorms[:, None]
    tiny = np.finfo(np.float64).tiny
    if noise_variances is None:
        variance = np.maximum(across / freedom, tiny)
        fit = np.full_like(across, freedom)
    else:
        accuracy = found.accuracy(noise_variances, n_features)
        signal = np.maximum(along, 0.0) ** 2 * (1.0 / accuracy - 1.0)
        variance = np.maximum(noise_variances + signal / n_features, tiny)
        fit = across / variance
    value = -0.5 * (freedom * np.log(2 * np.pi * variance) + fit)
    value += log_ndtr(along / np.sqrt(variance))
    value[sqnorms == 0] = 0.0
    return np.asarray(value)
