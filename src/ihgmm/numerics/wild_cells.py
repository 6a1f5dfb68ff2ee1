"""Wild cells, which neither their row nor their column explains, taken for missing.

A cell is judged by how far it is from what the others of its row say, by the model that
fills missing cells, learnt without the cells that a first, rough look finds wild.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ihgmm.matrix import Matrix, Ops, Tall, as_matrix, ops_of, with_gaps
from ihgmm.matrix.threads import row_ranges
from ihgmm.numerics.eigen import leading_directions
from ihgmm.numerics.missing import Filler, learn_filler, sampled_cells
from ihgmm.numerics.missing.low_rank import LowRankModel
from ihgmm.policy import Filling, WildCells


@dataclass(frozen=True, eq=False)
class CellFiller(Filler):
    """Fills missing cells, and wild ones, which are never zeros, as if they were that.

    A wild cell is farther from what its row says than ``limit`` usual distances.
    """

    limit: float = np.inf
    # How noise grows with what a row says of a cell: 0 not at all, 1 in proportion.
    growth: float = 0.0

    @classmethod
    def of(cls, filler: Filler) -> CellFiller:
        """Return a filler of missing cells, to which no cell is wild yet."""
        return cls(
            loadings=filler.loadings,
            noise_levels=filler.noise_levels,
            mean=filler.mean,
            sizes=filler.sizes,
            spread=filler.spread,
            nonnegative=filler.nonnegative,
        )

    def __call__(self, X: Matrix) -> Matrix:
        """Return data without missing and wild cells."""
        distances_of = self.distance_measure(X)

        def mark(rows: Tall) -> Tall:
            xp = ops_of(rows).xp
            is_wild = distances_of(rows).are_wild(self.limit)
            return xp.where(is_wild, xp.full_like(rows, np.nan), rows)

        return super().__call__(with_gaps(X, mark))

    def distance_measure(self, X: Matrix) -> Callable[[Tall], CellDistances]:
        """Return what measures how far cells of rows of X are from what rows say."""
        model = self.row_model()
        column_units = self.column_units(X)

        def measure(rows: Tall) -> CellDistances:
            ops = ops_of(rows)
            is_missing = ops.xp.isnan(rows)
            values = ops.xp.where(is_missing, ops.xp.zeros_like(rows), rows)
            values = values / ops.cast_like(column_units, rows)
            is_observed = ops.xp.astype(~is_missing, rows.dtype)
            return _distances_to_model(ops, values, is_observed, model, self.growth)

        return measure


@dataclass(frozen=True, eq=False)
class CellDistances:
    """How far cells are from what their row says; zeros and NaN are nowhere off.

    All are of shape (n_rows, n_features).
    """

    relative: Tall  # distances over usual ones
    absolute: Tall  # distances over the size of a cell of the row and of the column
    expected_sizes: Tall  # how large cells should be, over the noise of the column

    def are_wild(self, limit: float) -> Tall:
        """Tell which cells are wild: far off, and by more than the usual cell is."""
        return (self.relative > limit) & (self.absolute > 1)


def _distances_to_model(
    ops: Ops, values: Tall, is_observed: Tall, model: LowRankModel, growth: float
) -> CellDistances:
    """Return distances of cells to what their row says by a model of rows.

    Parameters
    ----------
    ops : Ops
        What serves the arrays.
    values : array of shape (n_rows, n_features)
        Rows in units of columns; missing cells are 0.
    is_observed : array of shape (n_rows, n_features)
        1 for observed cells, 0 for missing ones, in the type of the data.
    model : LowRankModel
        The model of such rows.
    growth : float
        The power of expected sizes that noise grows with.

    Notes
    -----
    Rows are fitted by iteratively reweighted least squares, with weights of Huber: a
    cell at distance d counts by ``min(1, edge / d)``. The edge of a row is some usual
    distances of its cells, which are estimated anew in every round.
    """
    xp = ops.xp
    is_judged = values != 0
    n_judged = xp.sum(xp.astype(is_judged, values.dtype), axis=1, keepdims=True)

    sizes = _row_medians(ops, xp.abs(values), is_judged)
    log_sizes = xp.log(ops.widen(sizes))[:, 0]
    values = values / sizes
    levels = ops.cast_like(model.variances**0.5, values)

    edges = xp.ones_like(sizes)  # (n_rows, 1)
    distances = xp.abs(values)
    for _ in range(WildCells.ROUNDS):
        edges = WildCells.CLIP * edges
        weights = is_observed * (edges / xp.where(distances > edges, distances, edges))
        posterior = model.posterior(ops, weights * values, weights, log_sizes)
        fit = posterior.cell_means()
        scales = xp.astype(posterior.scale_moment(1.0), values.dtype)
        expected_sizes = 1 + xp.abs(fit) / (levels * scales)
        distances = xp.abs(values - fit) / (levels * expected_sizes**growth)
        edges = _usual_distances(ops, distances, is_judged, n_judged, scales)

    return CellDistances(
        relative=xp.where(is_judged, distances / edges, xp.zeros_like(distances)),
        absolute=xp.abs(values - fit),
        expected_sizes=expected_sizes,
    )


def _usual_distances(
    ops: Ops, distances: Tall, is_judged: Tall, n_judged: Tall, scales: Tall
) -> Tall:
    """Return the usual distance of the cells of each row, as a column.

    It comes from their median. But the median of a few cells says little, and the model
    knows how much noise a row of such a scale has, too: that counts as some cells.
    """
    medians = _row_medians(ops, distances, is_judged) / WildCells.NORMAL_MEDIAN
    prior = Filling.PRIOR_CELLS * scales
    return (n_judged * medians + prior) / (n_judged + Filling.PRIOR_CELLS)


def _row_medians(ops: Ops, values: Tall, is_judged: Tall) -> Tall:
    """Return the median of each row's judged values, as a column; 1 without any."""
    xp = ops.xp
    infinite = xp.full_like(values, np.inf)
    ordered = xp.sort(xp.where(is_judged, values, infinite), axis=1)
    n_judged = xp.sum(xp.astype(is_judged, xp.int64), axis=1)
    middle = xp.clip(n_judged - 1, 0, None) // 2
    medians = ops.pick(ordered, middle)[:, None]

    return xp.where(medians < np.inf, medians, xp.ones_like(medians))


def learn_cell_filler(X: Matrix) -> CellFiller:
    """Learn which cells are wild, and to fill these and missing ones."""
    n_samples = X.shape[0]
    cells, _ = sampled_cells(X, WildCells.ROWS)
    _check_column_sizes(cells, X.dtype)

    # A first, rough look, and a model of the cells that it leaves.
    distances = _distances_to_regressions(cells)
    limit = largest_usual_distance(distances.relative, n_samples)
    is_wild = distances.are_wild(limit)
    cleaned = as_matrix(np.where(is_wild, np.nan, cells)).with_metadata(
        X.metadata.of_taken_rows()
    )
    filler = CellFiller.of(learn_filler(cleaned, ranks=_low_ranks(X.shape[1])))

    # Noise as cells that are not wild have it, by turns with what is wild.
    least_levels = WildCells.LEAST_LEVEL * filler.noise_levels
    for _ in range(WildCells.ROUNDS):
        distances = filler.distance_measure(X)(cells)
        limit = largest_usual_distance(distances.relative, n_samples)
        is_wild |= distances.are_wild(limit)
        is_usual = (distances.relative > 0) & ~is_wild
        filler = replace(
            filler,
            noise_levels=_fit_noise_levels(filler, distances, is_usual, least_levels),
            growth=_fit_growth(filler.growth, distances, is_usual),
        )

    distances = filler.distance_measure(X)(cells)
    limit = largest_usual_distance(distances.relative, n_samples)
    return replace(filler, limit=limit)


def _low_ranks(n_features: int) -> tuple[int, ...]:
    """Return the ranks to try: low ones, so that others of a row judge a cell."""
    highest = max(1, min(WildCells.RANK, n_features // 3))
    return tuple(rank for rank in Filling.RANKS if rank <= highest)


def _check_column_sizes(cells: np.ndarray, dtype: np.dtype) -> None:
    """Raise where squares of a column would vanish beside those of another."""
    magnitudes = np.where(cells == 0, np.nan, np.abs(cells))
    sizes = _medians(magnitudes, axis=0, least=0.0)
    ratio = sizes.max() / sizes.min()
    if ratio > np.sqrt(float(np.finfo(dtype).max)) / 1e4:
        raise ValueError(
            f"Column {sizes.argmax()} of X is {ratio:.1g} times as "
            f"large as column {sizes.argmin()}: squares of the one vanish beside those "
            "of the other. Divide each column by its size, or leave one out."
        )


def _fit_noise_levels(
    filler: CellFiller,
    distances: CellDistances,
    is_usual: np.ndarray,
    least_levels: np.ndarray,
) -> np.ndarray:
    """Return noise levels of columns, (n_features,), by medians of usual cells.

    Some wild cells of a column may not be known yet. Where most cells of a column are
    alike, the others are not all wild: levels have a least.
    """
    usual_distances = np.where(is_usual, distances.relative, np.nan)
    medians = _medians(usual_distances, axis=0, least=WildCells.LEAST_NOISE)
    levels = filler.noise_levels * medians / WildCells.NORMAL_MEDIAN
    return np.maximum(levels, least_levels)


def _fit_growth(growth: float, distances: CellDistances, is_usual: np.ndarray) -> float:
    """Return by which power of expected sizes the noise of usual cells grows.

    Where distances, divided by the present power, still rise from cells of low to cells
    of high expected size, the power was too small.
    """
    usual_distances = distances.relative[is_usual]
    log_sizes = np.log(distances.expected_sizes[is_usual])
    if len(log_sizes) > 0:
        is_high = log_sizes > np.median(log_sizes)
        if is_high.any():
            ratio = np.median(usual_distances[is_high])
            ratio /= np.median(usual_distances[~is_high])
            rise_of_sizes = log_sizes[is_high].mean() - log_sizes[~is_high].mean()
            growth += float(np.log(ratio) / max(rise_of_sizes, WildCells.LEAST_RISE))

    return min(max(growth, 0.0), 1.0)


def _distances_to_regressions(cells: np.ndarray) -> CellDistances:
    """Return how far cells are from robust regressions on the other columns."""
    is_observed = ~np.isnan(cells)
    values = np.where(is_observed, cells, 0.0)
    is_judged = values != 0
    row_sizes, column_sizes = _row_and_column_sizes(np.abs(values), is_judged)
    values = values / row_sizes[:, None] / column_sizes
    expected = _robust_regressions(values, is_observed)

    deviations = np.abs(values - expected)
    row_sizes, column_sizes = _row_and_column_sizes(
        deviations, is_judged, WildCells.LEAST_NOISE
    )
    relative = deviations / row_sizes[:, None] / column_sizes

    return CellDistances(
        relative=np.where(is_judged, relative, 0.0),
        absolute=deviations,
        expected_sizes=np.abs(expected),
    )


def _robust_regressions(values: np.ndarray, is_observed: np.ndarray) -> np.ndarray:
    """Return what the other columns say of each column, (n_rows, n_features).

    Each column is regressed on the coordinates of rows in leading directions.
    """
    n_rows, n_features = values.shape
    rank = max(1, min(WildCells.RANK, n_features // 2, n_rows // 10))
    clipped = np.clip(values, -WildCells.CLIP, WildCells.CLIP)
    directions = leading_directions(as_matrix(clipped), rank, quiet=True).vectors
    coordinates = clipped @ directions  # (n_rows, rank)

    expected = np.empty_like(values)
    for columns in row_ranges(n_features, WildCells.ENTRIES // (n_rows * rank)):
        # A column says nothing of itself.
        own_part = clipped.T[columns, :, None] * directions[columns, None, :]
        fit = _huber_regressions(
            regressors=coordinates - own_part,
            targets=values.T[columns, :, None],
            is_observed=is_observed.T[columns, :, None],
        )
        expected[:, columns] = fit[:, :, 0].T

    return expected


def _huber_regressions(
    regressors: np.ndarray, targets: np.ndarray, is_observed: np.ndarray
) -> np.ndarray:
    """Return what robust regressions say of their targets, (n_columns, n_rows, 1).

    Parameters
    ----------
    regressors : ndarray of shape (n_columns, n_rows, rank)
        Those of each column.
    targets, is_observed : ndarray of shape (n_columns, n_rows, 1)
        The cells of each column, and which of them count.

    Notes
    -----
    Least squares are reweighted as in :func:`_distances_to_model`.
    """
    ridge = WildCells.LEAST_NOISE * np.eye(regressors.shape[2])
    edges = np.full((1, 1, 1), WildCells.ROUGH_CLIP)
    residuals = np.abs(targets)
    for _ in range(2 * WildCells.ROUNDS):
        weights = is_observed * (edges / np.maximum(residuals, edges))
        weighted = (weights * regressors).swapaxes(-1, -2)
        systems = weighted @ regressors + ridge
        fit = regressors @ np.linalg.solve(systems, weighted @ targets)

        residuals = np.abs(targets - fit)
        observed_residuals = np.where(is_observed, residuals, np.nan)
        medians = _medians(observed_residuals, axis=1, least=WildCells.LEAST_NOISE)
        # They never grow: else many wild cells of a column would pass for usual.
        edges = np.minimum(edges, WildCells.ROUGH_CLIP * medians[:, :, None])

    return fit


def largest_usual_distance(distances: np.ndarray, n_rows: int) -> float:
    """Return how far off usual cells of so many rows are at most, by a Weibull law.

    ``distances`` are those of cells of some rows, 0 of cells that are not judged.

    Notes
    -----
    By that law a share ``exp(-(d / c)**a)`` of usual cells is farther off than d. Two
    quantiles below which no cell is wild give a and c.
    """
    n_cells = np.count_nonzero(distances) * n_rows / len(distances)
    distances = distances[distances > 0]
    if len(distances) == 0:
        return np.inf

    shares = np.array([0.5, WildCells.UPPER])
    quantiles = np.quantile(distances, shares)
    median, upper = np.maximum(quantiles, WildCells.LEAST_NOISE)
    median_exponent, upper_exponent = np.log(-np.log(1 - shares))
    log_ratio = max(np.log(upper / median), WildCells.LEAST_NOISE)
    steepness = (upper_exponent - median_exponent) / log_ratio
    steepness = min(steepness, WildCells.STEEPEST)

    exponent = np.log(np.log(max(n_cells, 2) / WildCells.EXPECTED))
    log_factor = (exponent - upper_exponent) / steepness
    return float(upper * np.exp(log_factor))


def _row_and_column_sizes(
    values: np.ndarray, is_judged: np.ndarray, least: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return sizes of rows and of columns, by medians; 1 where nothing is judged."""
    judged_values = np.where(is_judged, values, np.nan)
    row_sizes = np.ones(len(values))
    column_sizes = np.ones(values.shape[1])
    for _ in range(WildCells.ROUNDS):
        row_sizes = _medians(judged_values / column_sizes, axis=1, least=least)
        column_sizes = _medians(judged_values / row_sizes[:, None], axis=0, least=least)

    return row_sizes, column_sizes


def _medians(values: np.ndarray, axis: int, least: float) -> np.ndarray:
    """Return medians without NaN, at least so large; 1 where all are NaN."""
    is_empty = np.isnan(values).all(axis=axis, keepdims=True)
    medians = np.nanmedian(np.where(is_empty, 1.0, values), axis=axis)
    return np.maximum(medians, max(least, np.finfo(float).tiny))
