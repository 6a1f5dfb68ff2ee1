"""A map that fills the missing cells of any rows, of the fit or new ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ihgmm.matrix import HOST, Matrix, Ops, Tall, filled, ops_of
from ihgmm.numerics.missing.donors import Donors
from ihgmm.numerics.missing.low_rank import LowRankModel


@dataclass(frozen=True, eq=False)
class Filler:
    """Fills missing cells of rows from observed ones; those of empty columns by 0.

    Rows are taken for those of a :class:`LowRankModel`, whose positions, loadings and
    scales are meant here. Loadings and noise are in the units of the data.
    """

    loadings: np.ndarray  # (n_features, rank): of a row of scale 1
    noise_levels: np.ndarray  # (n_features,): of a row of scale 1, standard deviations
    mean: np.ndarray  # (rank,): of positions
    sizes: np.ndarray  # (n_features,): the usual size of each column, positive
    spread: float = 1.0  # standard deviation of logarithms of scales, of mean 0
    nonnegative: bool = False  # whether no cell is below 0
    donors: Donors | None = None  # rows that fill rows like them, in units of sizes

    def __call__(self, X: Matrix) -> Matrix:
        """Return data without missing cells; data that have none as they are."""
        if np.isfinite(X.ops.number(X.ops.xp.sum(X.sqnorms))):  # else some are NaN
            return X
        return filled(X, self._fill_rows(X, None), self.draw)  # may be drawn later

    def draw(self, X: Matrix, seed: int) -> Matrix:
        """Return data with missing cells drawn; a block of rows gets the same again."""
        return filled(X, self._fill_rows(X, seed))

    def row_model(self) -> LowRankModel:
        """Return the model of rows whose cells are divided by the sizes of columns."""
        levels = self.noise_levels / self.sizes
        return LowRankModel(
            loadings=self.loadings / self.sizes[:, None],
            variances=levels**2,
            mean=self.mean,
            log_scale=0.0,
            spread=self.spread,
        )

    def column_units(self, X: Matrix) -> np.ndarray:
        """Return the sizes of columns, (n_features,), for the entries that X stores."""
        return np.asarray((self.sizes / X.unit).astype(X.dtype))

    def _fill_rows(self, X: Matrix, seed: int | None) -> Callable[[Tall], Tall]:
        """Return a function that replaces NaN in rows of X by draws, or by means.

        Without a seed it is by means. Rows without any observed cell get zeros, as
        their size is 0.
        """
        model = self.row_model()
        column_units = self.column_units(X)

        def fill(rows: Tall) -> Tall:
            ops = ops_of(rows)  # rows come without their matrix
            xp = ops.xp
            is_missing = xp.isnan(rows)
            if not xp.any(is_missing):
                return rows

            # Rows without a missing cell are spared, unless random numbers are drawn:
            # these go by the shape of the whole block.
            if ops is HOST and seed is None:
                is_incomplete_row = is_missing.any(axis=1)
                if not is_incomplete_row.all():
                    rows = rows.copy()
                    rows[is_incomplete_row] = fill(rows[is_incomplete_row])
                    return rows

            units = ops.cast_like(column_units, rows)
            weights = xp.astype(~is_missing, rows.dtype)
            values = xp.where(is_missing, xp.zeros_like(rows), rows) / units
            row_sizes = _root_mean_squares(ops, values, weights)  # (n_rows, 1)
            log_sizes = _logarithms(ops, row_sizes)[:, 0]
            values = ops.ratio(values, row_sizes)
            posterior = model.posterior(ops, values, weights, log_sizes)
            # Cells of rows of size 1, over the sizes of columns.
            cells = posterior.cell_means()
            shifts: Tall | float = 0.0
            if self.donors is not None:
                guesses = xp.where(is_missing, cells, values)
                shifts = self.donors.shifts(ops, guesses, row_sizes)
            if seed is not None:
                cells = posterior.draw_cells(seed)
            cells = cells + shifts
            if self.nonnegative:
                cells = xp.clip(cells, 0.0, None)

            return xp.where(is_missing, cells * row_sizes * units, rows)

        return fill


def _root_mean_squares(ops: Ops, values: Tall, weights: Tall) -> Tall:
    """Return the root mean square of the observed cells of each row, as a column.

    Values are 0 where a cell is missing; weights are 1 for observed cells, else 0.
    """
    xp = ops.xp
    # Squares of the values themselves might overflow.
    largest = xp.max(xp.abs(values), axis=1, keepdims=True)
    squares = xp.sum(ops.ratio(values, largest) ** 2, axis=1, keepdims=True)
    n_observed = xp.sum(weights, axis=1, keepdims=True)

    return largest * ops.ratio(squares, n_observed) ** 0.5


def _logarithms(ops: Ops, sizes: Tall) -> Tall:
    """Return logarithms of sizes, in float64; 0 where a size is 0."""
    wide = ops.widen(sizes)
    return ops.xp.log(ops.xp.where(sizes > 0, wide, ops.xp.ones_like(wide)))
