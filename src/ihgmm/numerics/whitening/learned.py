"""Noise whose variance is a factor of the row times one of the column, both learnt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ihgmm.matrix import HOST, Matrix, to_host
from ihgmm.numerics.whitening.columns import ColumnFit, inverse_mean_squares
from ihgmm.numerics.whitening.whitener import Whitener
from ihgmm.policy import Small, Whitening


def learned_whitener(X: Matrix) -> Whitener:
    """Learn factors of columns, and the directions of the pattern beside the noise.

    At first columns have equal squares, then equal residuals of a fit of low rank.
    """
    n_samples, n_features = X.shape
    rank = min(n_samples, n_features, Whitening.RANK) // 2
    whitener = Whitener(
        noise="learned",
        columns=np.ones(n_features),
        directions=np.zeros((n_features, 0)),
        strengths=np.zeros(0),
    )
    squares = whitener(X).column_sqnorms()
    columns = np.sqrt(inverse_mean_squares(X, squares))

    whitener = replace(whitener, columns=columns)
    for _ in range(Whitening.ROUNDS):
        whitener = _improved_whitener(X, whitener, rank)

    return whitener


def _improved_whitener(X: Matrix, whitener: Whitener, rank: int) -> Whitener:
    """Return factors of columns by the residuals of a fit to whitened rows."""
    n_samples = X.shape[0]
    white = whitener(X)
    fit = ColumnFit.of(white, rank)
    residuals = _residuals_with_own_noise(fit, n_samples)
    factors = np.sqrt(HOST.ratio(float(n_samples - rank), residuals))

    # Rows of the fit are longer than others in directions of noise: take fewer.
    columns_of_fit = fit.coordinates * factors[:, None]
    directions = np.linalg.qr(columns_of_fit[:, : rank // 2])[0]
    coordinates = to_host(white @ (factors[:, None] * directions))

    return Whitener(
        noise="learned",
        columns=whitener.columns * factors,
        directions=directions,
        strengths=np.square(coordinates.astype(np.float64)).sum(axis=0),
    )


def _residuals_with_own_noise(fit: ColumnFit, n_samples: int) -> np.ndarray:
    """Return squared norms of what a fit leaves of columns, (n_features,).

    A direction that one column makes alone takes all of its noise: the column would
    pass for quiet, and rule the direction the more. So each direction gives back to a
    column the noise that it would have without it.

    Notes
    -----
    With f the coordinates of a column, S the diagonal matrix of squares of directions
    and e the noise of a direction, the fit of a column counts by ``S' / (S' + e)`` with
    ``S' = S - f @ f.T``.
    """
    n_features, rank = fit.coordinates.shape
    squares = np.square(fit.coordinates)
    residuals = np.maximum(fit.sqnorms - squares.sum(axis=1), 0.0)
    total = max(residuals.sum(), Whitening.LEAST_NOISE * fit.sqnorms.sum(), Small.TINY)
    mean_noise = total / ((n_samples - rank) * (n_features - rank))
    noise = mean_noise * max(n_samples, n_features)

    shares = (squares / (squares.sum(axis=0) + noise)).sum(axis=1)
    residuals = residuals + noise * shares / (1 - shares)
    return np.maximum(residuals, Whitening.LEAST_NOISE * fit.sqnorms)
