"""From rows of data to coordinates: a map that takes any row, new or old.

A row solves its own line of the eigenvectors' equation: with ``v = A.T @ u`` that is
``a @ v = (eigenvalue + diagonal) * coordinate``, the diagonal being ``a @ a`` or none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from ihgmm.matrix import Matrix, Ops, Tall
from ihgmm.policy import Small

Space = Literal["eigenvectors", "projected"]
SPACES: tuple[Space, ...] = ("eigenvectors", "projected")


@dataclass(frozen=True, eq=False)
class Embedding:
    """A map from rows to coordinates."""

    directions: np.ndarray  # (p, m): A.T @ u for each eigenvector u
    eigenvalues: np.ndarray  # (m,): leading first
    weights: np.ndarray  # (m,): what coordinates are multiplied by
    unit_rows: bool  # whether rows of data are brought to unit length first
    hollow: bool = False  # whether the Gram matrix has a zero diagonal
    unit_norm: bool = True  # whether the coordinates of a row are brought to unit norm
    unit: float = 1.0  # of the data, as a matrix has it

    def in_space(self, space: Space) -> Embedding:
        """Return the map whose columns are eigenvectors, or the projected rows."""
        if space == "eigenvectors":
            return self
        lengths = np.sqrt(np.maximum(self.eigenvalues, 0.0))
        return replace(self, weights=self.weights * lengths)

    def coordinates(self, X: Matrix) -> Tall:
        """Return the coordinates of rows in eigenvectors, where the data are."""
        factor = X.unit / self.unit
        if factor > Small.HUGE and not self.unit_rows:
            raise ValueError(
                f"X is some {factor:.0e} times as large as the rows of the fit; give "
                "new rows in the units of the fit."
            )
        work = partial(self._solve, 1.0 if self.unit_rows else factor)
        products = X @ self.directions
        tall = products, X.sqnorms
        return X.ops.persist(X.ops.row_map(work, *tall, width=products.shape[1]))

    def _solve(self, factor: float, ops: Ops, products: Tall, sqnorms: Tall) -> Tall:
        largest = float(np.abs(self.eigenvalues).max()) or 1.0
        values = ops.cast_like(self.eigenvalues / largest, products)
        if self.unit_rows:
            scales = ops.ratio(factor / largest, ops.xp.sqrt(sqnorms))
            products = products * ops.cast_like(scales, products)[:, None]
        else:
            products = products * (factor / largest)
        if self.hollow:
            own = ops.cast_like(sqnorms * (factor**2 / largest), products)
            values = values + own[:, None]
        zero = values == 0
        values = ops.xp.where(zero, ops.xp.ones_like(values), values)
        return ops.xp.where(zero, ops.xp.zeros_like(products), products / values)

    def rows(self, ops: Ops, coordinates: Tall) -> Tall:
        """Return coordinates as they are compared: weighted, as a rule at unit norm."""
        return ops.row_map(self._rows, coordinates, width=coordinates.shape[1])

    def _rows(self, ops: Ops, coordinates: Tall) -> Tall:
        rows = coordinates * ops.cast_like(self.weights, coordinates)
        return ops.unit_rows(rows) if self.unit_norm else rows

    def __call__(self, X: Matrix) -> Tall:
        """Return the rows of the embedding."""
        return self.rows(X.ops, self.coordinates(X))
