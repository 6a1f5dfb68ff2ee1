"""From rows of data to coordinates: eigenvectors as a map that takes any row.

An eigenvector solves an equation, one line of which belongs to each row of the data.
The line gives the row's coordinate from the row itself, and so it places new rows too.
With ``G = A @ A.T - diag(removed)`` and the direction ``v = A.T @ u`` it reads

    a @ v - removed * coordinate = eigenvalue * coordinate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, Literal

import numpy as np

from ihgmm._values import LARGEST, Count, Domain
from ihgmm.matrix import Matrix, Ops, Tall
from ihgmm.numerics.gram import GramOperator, row_factors
from ihgmm.numerics.krylov import EigenPairs
from ihgmm.policy import Leading, Small

Diagonal = Literal["full", "zero", "imputed"]
Space = Literal["eigenvectors", "projected"]
SPACES: tuple[Space, ...] = ("eigenvectors", "projected")


@dataclass(frozen=True, eq=False)
class Embedding:
    """A map from rows to coordinates. Build one with :meth:`of`.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.matrix import as_matrix
    >>> X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    >>> from ihgmm.numerics.spectral import spectral_clustering
    >>> found = spectral_clustering(as_matrix(X), 3, rng=np.random.default_rng(0))
    >>> coordinates = found.placement.embedding(as_matrix(X[:5]))
    >>> np.allclose(coordinates, found.rows[:5], atol=1e-3)
    True
    """

    # p features, m components: A.T @ u for each eigenvector u
    directions: Annotated[np.ndarray, Domain("pm")]
    eigenvalues: Annotated[np.ndarray, Domain("m")]  # leading first
    weights: Annotated[np.ndarray, Domain("m")]  # what coordinates are multiplied by
    rank: Count  # of the approximation that gives an imputed diagonal
    diagonal: Diagonal  # what the Gram matrix has on its diagonal
    # Longer rows are shortened to it; 0: all are brought to unit norm.
    longest: Annotated[float, Domain(least=0, most=np.inf)]
    # The unit of the data, as a matrix has it.
    unit: Annotated[float, Domain(above=0, most=LARGEST)] = 1.0
    unit_norm: bool = True  # whether the coordinates of a row are brought to unit norm

    @classmethod
    def of(
        cls, G: GramOperator, pairs: EigenPairs, rank: int, diagonal: Diagonal
    ) -> Embedding:
        """Return the map of the eigenpairs of a Gram matrix, with equal weights."""
        values = pairs.values
        if pairs.linear is not None:
            # The solver started from a product with the data, and that was enough:
            # coordinates are linear in the row, as with a full diagonal.
            directions, diagonal = pairs.linear * values, "full"
        elif pairs.adjoint is not None:
            directions = G.A.ops.to_host(pairs.adjoint)
        else:
            directions = G.A.ops.to_host(G.A.adjoint(pairs.vectors))
        ones = np.ones(len(values))
        new = cls(directions, values, ones, rank, diagonal, G.longest, G.A.unit)
        # A direction without any data in it is rounding.
        return replace(new, weights=(new.lengths > 1e-5 * new.lengths.max()) * ones)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Length of the data along each direction: the root of its eigenvalue.

        Without the diagonal, eigenvalues are too small and may be negative; the length
        of the direction is right but for noise.
        """
        if self.diagonal == "zero":
            return np.sqrt(np.square(self.directions, dtype=np.float64).sum(axis=0))
        return np.asarray(np.sqrt(np.maximum(self.eigenvalues, 0.0)))

    def weighted(self, weights: np.ndarray) -> Embedding:
        """Return the map with other weights, without directions that have none."""
        keep = weights > 0
        if self.diagonal == "zero":
            # Rows as long as an eigenvalue is negative would have no coordinate.
            keep &= self.eigenvalues > 0
        keep[: self.rank] = True
        return replace(
            self,
            directions=self.directions[:, keep],
            eigenvalues=self.eigenvalues[keep],
            weights=(self.weights * weights)[keep],
        )

    def in_space(self, space: Space) -> Embedding:
        """Return the map whose columns are eigenvectors, or the projected data."""
        if space == "eigenvectors":
            return self
        return replace(self, weights=self.weights * self.lengths)

    def coordinates(self, X: Matrix) -> Tall:
        """Return the coordinates of rows, without weights, where the data are."""
        factor = X.unit / self.unit
        if factor > Small.HUGE:
            raise ValueError(
                f"X is some {factor:.0e} times as large as the rows of the fit; give "
                "new rows in the units of the fit."
            )
        products, sqnorms = X @ self.directions, X.sqnorms * factor**2
        work = partial(self._coordinates, factor)
        coordinates = X.ops.row_map(work, products, sqnorms, width=products.shape[1])
        return X.ops.keep(coordinates)

    def _coordinates(
        self, factor: float, ops: Ops, products: Tall, sqnorms: Tall
    ) -> Tall:
        """Return coordinates of rows, times a factor, from products and norms."""
        shorter = row_factors(ops, sqnorms, self.longest)
        xp, one = ops.xp, float(np.abs(self.eigenvalues).max()) or 1.0
        values = np.where(self.weights > 0, self.eigenvalues / one, np.inf)
        values = ops.cast_like(values, products)
        few = products * ops.cast_like(shorter * (factor / one), products)[:, None]
        if self.diagonal == "full":
            return few / values
        own = ops.cast_like(sqnorms * shorter**2 / one, products)
        inverse = _inverse(xp, values + own[:, None])
        found = few * inverse
        if self.diagonal == "zero":
            return found
        counted = np.zeros(len(self.weights))
        counted[: self.rank] = np.maximum(self.eigenvalues[: self.rank] / one, 0.0)
        counted = ops.cast_like(np.where(self.weights > 0, counted, 0.0), products)
        # The diagonal that belongs to a row depends on its coordinates, and is a convex
        # function of itself: Newton's steps from 0 climb to where the two meet first.
        # Where they never do, it is all of the row.
        imputed = xp.zeros_like(own)
        rounding = 10 * float(np.finfo(ops.host_dtype(products)).eps)
        for _ in range(50):
            squares = found * found
            room = 1 - 2 * ((squares * inverse) @ counted)
            missing = squares @ counted - imputed
            step = xp.where(room > 0, ops.ratio(missing, room), own)
            after = ops.clip(imputed + step, None, own)
            # Each row by itself: its place does not depend on the others.
            moves = xp.abs(after - imputed) > max(Small.TIE, rounding) * own
            if not bool(xp.any(moves)):
                break
            imputed = xp.where(moves, after, imputed)
            inverse = _inverse(xp, values + (own - imputed)[:, None])
            found = few * inverse
        return found

    def rows(self, ops: Ops, coordinates: Tall) -> Tall:
        """Return coordinates as they are compared: weighted, as a rule at unit norm."""
        return ops.row_map(self._rows, coordinates, width=coordinates.shape[1])

    def _rows(self, ops: Ops, coordinates: Tall) -> Tall:
        rows = coordinates * ops.cast_like(self.weights, coordinates)
        return ops.unit_rows(rows) if self.unit_norm else rows

    def __call__(self, X: Matrix) -> Tall:
        """Return the rows of the embedding."""
        return self.rows(X.ops, self.coordinates(X))

    def is_noise(self, ops: Ops, coordinates: Tall, sqnorms: Tall) -> Tall:
        """Tell which rows have coordinates that are mostly noise.

        What the directions leave of a row shows its noise. The noise of a row adds to
        each coordinate, times the norm of the direction over the eigenvalue: without
        the diagonal, that is more than over the root of the eigenvalue. A row is noise
        where its squared length is not above twice the sum of that. ``sqnorms`` are
        those of the rows.
        """
        p, m = self.directions.shape
        lengths, live = self.lengths, (self.weights > 0) & (self.eigenvalues**2 > 0)
        if p <= m or not live.any():
            return sqnorms < 0
        own = sqnorms * row_factors(ops, sqnorms, self.longest) ** 2
        signal = (coordinates**2) @ ops.cast_like(lengths**2, coordinates)
        variances = ops.clip(own - signal, 0.0, None) / (p - m)
        norms = np.square(self.directions[:, live], dtype=np.float64).sum(axis=0)
        load = float(
            (self.weights[live] ** 2 * norms / self.eigenvalues[live] ** 2).sum()
        )
        squares = coordinates**2 @ ops.cast_like(self.weights**2, coordinates)
        return squares < 2 * variances * load

    def ruling_rows(self, ops: Ops, coordinates: Tall, sqnorms: Tall) -> int:
        """Return how many long rows rule a leading direction; 0 for none.

        Rows longer than three medians, as they count in the Gram matrix, rule a
        direction that is more than half theirs, and along which the other rows are
        hardly longer than along any direction. ``sqnorms`` are those of the rows.
        """
        own = sqnorms * row_factors(ops, sqnorms, self.longest) ** 2
        longest = ops.number(ops.xp.max(own))
        if longest == 0 or longest <= (
            long := Leading.RULING**2 * ops.median(own, where=own > 0)
        ):
            return 0
        lead = self.rank

        def shares(ops: Ops, coordinates: Tall, own: Tall) -> tuple[Tall, ...]:
            squares, xp = coordinates[:, :lead] ** 2, ops.xp
            theirs, others = own > long, (own > 0) & (own <= long)
            counts = xp.stack([theirs, others], axis=1)
            # Squared cosines of the other rows with each direction, learnt without
            # them.
            cosines = squares * ops.cast_like(ops.ratio(1.0, own), squares)[:, None]
            cosines = xp.where(others[:, None], cosines, xp.zeros_like(cosines))
            of_long = xp.where(theirs[:, None], squares, xp.zeros_like(squares))
            each = (xp.astype(counts, own.dtype), squares, of_long, cosines)
            return tuple(xp.sum(values, axis=0) for values in each)

        sums = ops.row_sums(shares, coordinates, own, width=lead)
        counts, total, theirs, cosines = sums
        norms = np.square(self.directions[:, :lead], dtype=np.float64).sum(axis=0)
        mean = cosines / max(counts[1], 1) * self.eigenvalues[:lead] ** 2
        chance = norms / len(self.directions)
        ruled = (theirs > total / 2) & (mean < 2 * chance)
        return int(counts[0]) if ruled.any() else 0


def _inverse(xp: Any, a: Tall) -> Tall:
    """Return ``1 / a``, 0 where a is 0."""
    zero = a == 0
    return xp.where(zero, xp.zeros_like(a), 1 / xp.where(zero, xp.ones_like(a), a))
