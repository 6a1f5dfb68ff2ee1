"""The map to rows and columns of like noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, assert_never

import numpy as np

from ihgmm.matrix import HOST, Matrix, Scaled, Tall
from ihgmm.policy import Whitening

NoiseKind = Literal["counts", "learned"]
NOISE_KINDS: tuple[NoiseKind, ...] = ("counts", "learned")


@dataclass(frozen=True, eq=False)
class Whitener:
    """A map to rows and columns of like noise; a row's factor depends on it alone."""

    noise: NoiseKind
    columns: np.ndarray  # (n_features,): factors; 0 where the fit had no entry
    # (n_features, rank): orthonormal, of the pattern in such rows; none for counts.
    directions: np.ndarray
    # (rank,): squared norms of the rows of the fit along them, noise being of variance
    # one.
    strengths: np.ndarray
    dispersion: float = 0.0  # of counts: c in the variance ``mean + c * mean**2``

    def __call__(self, X: Matrix) -> Scaled:
        """Return the data with its rows and columns multiplied; nothing is copied."""
        ops = X.ops
        (variances, sqnorms), _ = X.sweep(self._variances_and_sqnorms)
        row_factors = ops.persist(ops.ratio(1.0, ops.xp.sqrt(variances)))
        return Scaled(
            X,
            row_factors,
            self.columns,
            unit=1.0,  # noise is of variance one, whatever unit the data had
            sqnorms=ops.persist(sqnorms * row_factors**2),
        )

    def _variances_and_sqnorms(self, X: Matrix) -> tuple[tuple[Tall, Tall], tuple[()]]:
        """Return mean noise variance and squared norm of rows, columns multiplied.

        These are lines for each row of a block, beside no sums over rows.
        """
        sqnorms = X.row_sqnorms(self.columns**2)
        match self.noise:
            case "counts":
                variances = self._count_variances(X, sqnorms)
            case "learned":
                variances = self._learned_variances(X, sqnorms)
            case _:
                assert_never(self.noise)

        return (variances, sqnorms), ()

    def _count_variances(self, X: Matrix, sqnorms: Tall) -> Tall:
        """Return the mean variance of the counts of each row, columns multiplied."""
        refuse_negative(X)
        sums = X.ops.widen(X @ self.columns**2) / X.unit
        return count_variances(sums, sqnorms, self.dispersion) / X.shape[1]

    def _learned_variances(self, X: Matrix, sqnorms: Tall) -> Tall:
        """Return the mean square that directions leave of each row."""
        ops = X.ops
        xp = ops.xp
        n_features, rank = self.directions.shape
        coordinates = X @ (self.columns[:, None] * self.directions)
        residuals = sqnorms - ops.widen(ops.row_dots(coordinates, coordinates))

        # A row that the directions fit to a thousandth is known no better than that.
        residuals = xp.maximum(residuals, Whitening.LEAST_NOISE * sqnorms)
        variances = residuals / (n_features - rank)
        if rank == 0:
            return variances

        # A row that makes a direction alone leaves nothing beside it, and would get the
        # larger a factor for it: it may have so much of a direction at most.
        most = Whitening.LARGEST_PART * self.strengths
        coordinates = ops.widen(coordinates)
        inverses = ops.cast_like(HOST.ratio(1.0, most), coordinates)
        largest_share = xp.max(coordinates**2 * inverses, axis=1)

        # Squares of zero rows are numbers, their shares may be none.
        return xp.where(sqnorms > 0, xp.maximum(variances, largest_share), sqnorms)


def count_variances(sums: Tall, squares: Tall, dispersion: float) -> Tall:
    """Return variances of counts from sums of counts and of their squares.

    Notes
    -----
    A count of mean m and variance ``m + c * m**2`` has the mean square ``m + (1 + c) *
    m**2``, so that ``(x + c * x**2) / (1 + c)`` has the variance as its mean.
    """
    return (sums + dispersion * squares) / (1 + dispersion)


def refuse_negative(X: Matrix) -> None:
    """Raise where an entry is negative, as none of counts is."""
    lowest = X.most_negative()
    if lowest < 0:
        raise ValueError(
            f"X has the entry {lowest * X.unit:g}; counts are not negative. Take "
            "'learned' for data with both signs."
        )
