"""The covariance of noise that all clusters share, where scales may be anything."""

import numpy as np

from ihgmm.matrix import HOST
from ihgmm.numerics.iteration import iterate
from ihgmm.policy import Small, TiedNoise


def shared_covariance(
    hidden: np.ndarray,
    moments: np.ndarray,
    sizes: np.ndarray,
    prior_rows: float = 1.0,
) -> np.ndarray:
    """Return the most likely covariance of noise that all clusters share.

    Parameters
    ----------
    hidden : ndarray of shape (..., n_clusters, m)
        Directions of the centres, of any length. Rows of a cluster are noise and any
        multiple of its direction u, along which they say nothing of the noise.
    moments : ndarray of shape (..., n_clusters, m, m)
        Sum of ``y @ y.T`` over the rows y of each cluster.
    sizes : ndarray of shape (..., n_clusters)
        Rows of each cluster.
    prior_rows : float
        So many rows of white noise count too.

    Returns
    -------
    ndarray of shape (..., m, m)
        The covariance S; of several problems, if there are axes before.

    Notes
    -----
    The multiple of u in a row y is ``c @ y`` by generalized least squares, where ``c =
    S**-1 u / (u' S**-1 u)``. Expectation and maximisation repeat: S is the mean of ``P
    y y' P' + u u' / (u' S**-1 u)`` over all rows, with ``P = I - u c'``. So the noise
    along u is expected to be what the covariance of the last round says.
    """
    identity = np.eye(hidden.shape[-1])
    hidden_columns = np.swapaxes(hidden, -1, -2)
    # What rounding leaves of long rows could be negative.
    prior_rows += Small.TIE * np.einsum("...jj", moments).max()
    total_moment = moments.sum(axis=-3) + prior_rows * identity
    n_rows = sizes.sum(axis=-1)[..., None, None] + prior_rows

    def update(S: np.ndarray) -> np.ndarray:
        """Return the covariance that the last one makes most likely."""
        solved = hidden @ np.linalg.inv(S)
        precisions = (solved * hidden).sum(axis=-1)  # u' S**-1 u
        coefficients = HOST.ratio(solved, precisions[..., None])  # c

        # Sums over rows of y times the multiple, and of the squares of multiples.
        products = moments @ coefficients[..., None]
        products = products[..., 0]
        squares = (coefficients * products).sum(axis=-1)
        squares = squares + HOST.ratio(sizes, precisions)

        crossed = hidden_columns @ products
        residual_moment = total_moment - crossed - np.swapaxes(crossed, -1, -2)
        weighted_columns = hidden_columns * squares[..., None, :]
        noise_along = weighted_columns @ hidden
        updated: np.ndarray = (residual_moment + noise_along) / n_rows
        return updated

    def has_settled(before: np.ndarray, after: np.ndarray) -> bool:
        return bool(np.abs(after - before).max() <= TiedNoise.CHANGE)

    start = np.broadcast_to(identity, moments.shape[:-3] + identity.shape)
    return iterate(
        update, start, max_iter=TiedNoise.ROUNDS, has_settled=has_settled
    ).state
