"""Rows like a row say more of its missing cells than a low-rank model alone.

Some rows of the fit are kept as donors. Each cell of a row, as the low-rank model
guesses it, moves towards the mean of the observed cells of the nearest donors: how far,
observed cells that were hidden decide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm.matrix import HOST, Ops, Tall
from ihgmm.policy import Filling


@dataclass(frozen=True, eq=False)
class Donors:
    """Rows that fill the cells of rows like them, in units of columns.

    A row that is larger or smaller than any of them is compared at the nearest of their
    sizes. Where all have size 1, directions alone are compared.
    """

    rows: np.ndarray  # (n_donors, n_features), their missing cells filled
    is_observed: np.ndarray  # (n_donors, n_features): 1 of cells that were not missing
    share: float = 1.0  # of the way to what donors say, between 0 and 1

    def shifts(self, ops: Ops, rows: Tall, row_sizes: Tall) -> Tall:
        """Return how far all cells of rows move towards donors.

        Parameters
        ----------
        ops : Ops
            What serves the arrays.
        rows : array of shape (n_rows, n_features)
            Rows divided by their size, with guesses in the place of missing cells.
        row_sizes : array of shape (n_rows, 1)
            These sizes.
        """
        own_sizes = root_mean_squares(ops, rows)  # about 1
        donor_sizes = root_mean_squares(HOST, self.rows)
        compared_sizes = ops.clip(
            own_sizes * row_sizes, float(donor_sizes.min()), float(donor_sizes.max())
        )
        factors = ops.ratio(compared_sizes, own_sizes, otherwise=1.0)
        means = self._means_of_nearest(ops, rows * factors)
        return self.share * (ops.ratio(means, factors + 0 * means) - rows)

    def _means_of_nearest(self, ops: Ops, rows: Tall) -> Tall:
        """Return what the nearest donors say of each cell, (n_rows, n_features)."""
        donors = ops.cast_like(self.rows, rows)
        is_observed = ops.cast_like(self.is_observed, rows)
        weights = self._weights(ops, rows)

        # The guess counts as a bit of a donor, lest there is none.
        counts = weights @ is_observed + Filling.OWN_WEIGHT
        sums = weights @ (donors * is_observed) + Filling.OWN_WEIGHT * rows
        return sums / counts

    def _weights(self, ops: Ops, rows: Tall) -> Tall:
        """Return how much each donor counts for each row, (n_rows, n_donors).

        A donor counts the more the nearer it is, and one beyond the last neighbour not
        at all: so nothing hangs on the order of donors that are as near.
        """
        xp = ops.xp
        donors = ops.cast_like(self.rows, rows)
        donor_squares = ops.cast_like((self.rows**2).sum(axis=1), rows)
        row_squares = xp.sum(rows * rows, axis=1)[:, None]
        products = rows @ donors.T
        distances = ops.clip(row_squares + donor_squares - 2 * products, 0.0, None)

        position = min(Filling.NEIGHBORS, len(self.rows)) - 1
        last_distance = ops.kth_smallest(distances, position)[:, None]
        return ops.clip(1 - ops.ratio(distances, last_distance), 0.0, None)


def root_mean_squares(ops: Ops, rows: Tall) -> Tall:
    """Return the root mean square of the cells of each row, as a column."""
    xp = ops.xp
    return xp.mean(rows * rows, axis=1, keepdims=True) ** 0.5
