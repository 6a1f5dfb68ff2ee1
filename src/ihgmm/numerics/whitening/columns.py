"""Columns of data in memory: their squares, and what a fit of low rank says of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm.matrix import HOST, Matrix
from ihgmm.numerics.eigen import leading_directions
from ihgmm.policy import Whitening


@dataclass(frozen=True, eq=False)
class ColumnFit:
    """Columns of some rows, and a fit of low rank to them."""

    sqnorms: np.ndarray  # (n_features,): squared norms of columns
    # (n_features, rank): columns of the fit, as coordinates along orthonormal rows
    coordinates: np.ndarray

    @classmethod
    def of(cls, X: Matrix, rank: int) -> ColumnFit:
        """Return the fit of the leading directions of X."""
        n_rows, n_features = X.shape
        rows = X.take(slice(0, n_rows))
        coordinates = np.zeros((n_features, 0))
        if rank > 0:
            pairs = leading_directions(rows, rank, tol=Whitening.ANGLE, quiet=True)
            coordinates = pairs.vectors * np.sqrt(pairs.values)

        return cls(sqnorms=rows.column_sqnorms(), coordinates=coordinates)

    @property
    def residuals(self) -> np.ndarray:
        """Squared norms of what the fit leaves of columns, (n_features,)."""
        return self.sqnorms - np.square(self.coordinates).sum(axis=1)


def inverse_mean_squares(X: Matrix, squares: np.ndarray) -> np.ndarray:
    """Return the number of rows over sums of squares of columns, (n_features,).

    It is 0 for columns that are nothing beside others.
    """
    tiny = float(np.finfo(X.dtype).tiny)
    least = squares.max(initial=0.0) * tiny ** (2 / 3)
    return HOST.ratio(float(X.shape[0]), np.where(squares > least, squares, 0.0))
