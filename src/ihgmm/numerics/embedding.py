"""From rows of data to coordinates: a map that takes any row, new or old.

With A the rows of the fit and u an eigenvector of their Gram matrix, ``v = A.T @ u`` is
a direction. The coordinate of a row a solves its own line of the equation of u: ``a @ v
= (eigenvalue + diagonal) * coordinate``. The diagonal is ``a @ a`` if that of the Gram
matrix was set to zero, and else 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from ihgmm.matrix import Matrix, Ops, Tall
from ihgmm.numerics.krylov import signal_weights
from ihgmm.numerics.roots import RootColumns
from ihgmm.policy import Leading, Small

Space = Literal["eigenvectors", "projected"]
SPACES: tuple[Space, ...] = ("eigenvectors", "projected")


@dataclass(frozen=True, eq=False)
class Embedding:
    """A map from rows of data, of p features, to m coordinates.

    The coordinates of a row are its entries in m eigenvectors of the Gram matrix. To be
    compared, they are multiplied by weights, and brought to unit norm.
    """

    directions: np.ndarray  # (p, m): A.T @ u for each eigenvector u
    eigenvalues: np.ndarray  # (m,): leading first
    weights: np.ndarray  # (m,): how much signal a direction carries, 1 for leading ones
    unit_rows: bool  # whether rows of data are brought to unit length first
    hollow: bool = False  # whether the Gram matrix has a zero diagonal
    unit_norm: bool = True  # whether the coordinates of a row are brought to unit norm
    unit: float = 1.0  # of the rows of the fit: see Metadata.unit
    space: Space = "eigenvectors"  # the space in which rows are compared
    roots: RootColumns | None = None  # what is done to rows first; None: nothing

    @classmethod
    def of_signal(
        cls,
        directions: np.ndarray,
        eigenvalues: np.ndarray,
        n_leading: int,
        *,
        unit_rows: bool,
        hollow: bool = False,
        unit_norm: bool = True,
        unit: float = 1.0,
        roots: RootColumns | None = None,
    ) -> Embedding:
        """Return the map of those directions that carry signal, weighted by it.

        ``directions``, (p, m), and ``eigenvalues`` come with the leading ones first;
        these all have weight 1.
        """
        # With as many directions as features, none is left over to estimate noise from.
        n_features = len(directions)
        noise = 0.0 if len(eigenvalues) == n_features else None
        weights = signal_weights(eigenvalues, n_leading, noise)

        # A direction of next to no length, along which no data lie, is rounding.
        lengths = np.linalg.norm(directions, axis=0)
        has_data = lengths >= Leading.LEAST_LENGTH * lengths.max()
        is_used = (weights > 0) & has_data
        is_used[0] |= not is_used.any()  # one at least

        return cls(
            directions=directions[:, is_used],
            eigenvalues=eigenvalues[is_used],
            weights=weights[is_used],
            unit_rows=unit_rows,
            hollow=hollow,
            unit_norm=unit_norm,
            unit=unit,
            roots=roots,
        )

    def prepared(self, X: Matrix) -> Matrix:
        """Return rows as they were when the directions were found: perhaps rooted."""
        return X if self.roots is None else self.roots(X)

    def in_space(self, space: Space) -> Embedding:
        """Return the same map for comparing rows in a space, whatever it was before.

        In "eigenvectors" columns are eigenvectors; in "projected" rows are projected on
        the leading directions.
        """
        return replace(self, space=space)

    @property
    def coordinate_weights(self) -> np.ndarray:
        """What coordinates are multiplied by in the space of the map, (m,).

        An eigenvector times the root of its eigenvalue holds the projections of rows.
        """
        if self.space == "eigenvectors":
            return self.weights
        return self.weights * np.sqrt(np.maximum(self.eigenvalues, 0.0))

    def coordinates(self, X: Matrix) -> Tall:
        """Return the coordinates of rows in eigenvectors, (n, m), where the data are.

        They are the same in every space, and have no weights.
        """
        return self.coordinates_of_prepared(self.prepared(X))

    def coordinates_of_prepared(self, X: Matrix) -> Tall:
        """Return what :meth:`coordinates` does, of rows that are prepared already."""
        unit_ratio = X.unit / self.unit
        if unit_ratio > Small.HUGE and not self.unit_rows:
            raise ValueError(
                f"X is some {unit_ratio:.0e} times as large as the rows of the fit; "
                "give new rows in the units of the fit."
            )

        products = X @ self.directions  # (n, m)
        solve = partial(self._solve, unit_ratio)
        coordinates = X.ops.row_map(solve, products, X.sqnorms, width=products.shape[1])
        return X.ops.persist(coordinates)

    def _solve(
        self, unit_ratio: float, ops: Ops, products: Tall, sqnorms: Tall
    ) -> Tall:
        """Solve the equation of each row for its coordinates.

        ``products`` are ``a @ v`` and ``sqnorms`` are ``a @ a``, in the unit of new
        data, which is ``unit_ratio`` times that of the fit; directions are in that of
        the fit. Both sides are divided by the largest eigenvalue.
        """
        largest = float(np.abs(self.eigenvalues).max()) or 1.0

        if self.unit_rows:  # they have no unit, and the Gram matrix its diagonal
            scales = ops.ratio(1.0 / largest, ops.xp.sqrt(sqnorms))
            right_sides = products * ops.cast_like(scales, products)[:, None]
        else:
            right_sides = products * (unit_ratio / largest)

        factors = ops.cast_like(self.eigenvalues / largest, products)
        if self.hollow:
            diagonal = ops.cast_like(sqnorms * (unit_ratio**2 / largest), products)
            factors = factors + diagonal[:, None]

        has_no_solution = factors == 0
        divisors = ops.xp.where(has_no_solution, ops.xp.ones_like(factors), factors)
        zeros = ops.xp.zeros_like(right_sides)
        return ops.xp.where(has_no_solution, zeros, right_sides / divisors)

    def rows(self, ops: Ops, coordinates: Tall) -> Tall:
        """Return coordinates to compare rows by: weighted, perhaps at unit norm."""
        n_coordinates = coordinates.shape[1]
        return ops.row_map(self._weighted_rows, coordinates, width=n_coordinates)

    def _weighted_rows(self, ops: Ops, coordinates: Tall) -> Tall:
        weights = ops.cast_like(self.coordinate_weights, coordinates)
        rows = coordinates * weights
        return ops.unit_rows(rows) if self.unit_norm else rows

    def __call__(self, X: Matrix) -> Tall:
        """Return the rows of the embedding, (n, m), of rows of data."""
        return self.rows(X.ops, self.coordinates(X))
