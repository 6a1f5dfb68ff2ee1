"""Wild cells, which neither their row nor their column explains, taken for missing.

A cell is judged by how far it is from what the others of its row say, by the model that
fills missing cells, learnt without the cells that a first, rough look finds wild.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ihgmm.matrix import Matrix, Metadata, Ops, Tall, as_matrix, ops_of, with_gaps
from ihgmm.matrix.threads import row_ranges
from ihgmm.numerics.eigen import leading_directions
from ihgmm.numerics.missing import Filler, learn_filler, sampled_cells
from ihgmm.policy import Filling, WildCells


@dataclass(frozen=True, eq=False)
class CellFiller(Filler):
    """Fills missing cells, and wild ones, which are never zeros, as if they were that.

    A wild cell is farther from what its row says than ``limit`` usual distances.
    """

    limit: float = np.inf
    # How noise grows with what a row says of a cell: 0 not at all, 1 in proportion.
    growth: float = 0.0

    def __call__(self, X: Matrix) -> Matrix:
        """Return data without missing and wild cells."""
        look, limit = self.look(X), self.limit

        def mark(rows: Tall) -> Tall:
            xp = ops_of(rows).xp
            return xp.where(look(rows).wild(limit), xp.full_like(rows, np.nan), rows)

        return super().__call__(with_gaps(X, mark))

    def look(self, X: Matrix) -> Callable[[Tall], _Look]:
        """Return what compares cells with what their row says; wild ones count less."""
        (model, columns), growth = self.in_columns(X), self.growth

        def compare(rows: Tall) -> _Look:
            ops = ops_of(rows)
            xp, missing = ops.xp, ops.xp.isnan(rows)
            values = xp.where(missing, xp.zeros_like(rows), rows)
            values = values / ops.cast_like(columns, rows)
            known, judged = xp.astype(~missing, rows.dtype), values != 0
            sizes = _row_medians(ops, xp.abs(values), judged)
            values = values / sizes
            logs = xp.log(ops.widen(sizes))[:, 0]
            levels = ops.cast_like(model.variances**0.5, rows)
            count = xp.sum(xp.astype(judged, rows.dtype), axis=1, keepdims=True)
            edges, far = xp.ones_like(sizes), xp.abs(values)
            for _ in range(WildCells.ROUNDS):
                edges = WildCells.CLIP * edges
                weights = known * (edges / xp.where(far > edges, far, edges))
                seen = model.look(ops, weights * values, weights, logs)
                fit, scales = seen.means(), xp.astype(seen.mean(1.0), rows.dtype)
                heights = 1 + xp.abs(fit) / (levels * scales)
                far = xp.abs(values - fit) / (levels * heights**growth)
                # The median of a few cells says little: the model knows how much noise
                # a row of this scale has, too.
                own = _row_medians(ops, far, judged) / WildCells.NORMAL_MEDIAN
                usual = Filling.PRIOR_CELLS * scales
                edges = (count * own + usual) / (count + Filling.PRIOR_CELLS)
            far = xp.where(judged, far / edges, xp.zeros_like(far))
            return _Look(far, xp.abs(values - fit), heights)

        return compare


class _Look(NamedTuple):
    """How far cells are from what their row says; zeros and NaN are nowhere off."""

    far: Tall  # distances over usual ones
    off: Tall  # distances over the size of a cell of the row and of the column
    heights: Tall  # how large cells should be, over the noise of the column

    def wild(self, limit: float) -> Tall:
        """Tell which cells are wild: far off, and by more than the usual cell is."""
        return (self.far > limit) & (self.off > 1)


def _row_medians(ops: Ops, values: Tall, judged: Tall) -> Tall:
    """Return the median of each row's judged values, as a column; 1 without any."""
    xp = ops.xp
    ordered = xp.sort(xp.where(judged, values, xp.full_like(values, np.inf)), axis=1)
    count = xp.sum(xp.astype(judged, xp.int64), axis=1)
    medians = ops.pick(ordered, xp.clip(count - 1, 0, None) // 2)[:, None]
    return xp.where(medians < np.inf, medians, xp.ones_like(medians))


def learn_cell_filler(X: Matrix) -> CellFiller:
    """Learn which cells are wild, and to fill these and missing ones."""
    cells, _ = sampled_cells(X, WildCells.ROWS)
    sizes = _medians(np.where(cells == 0, np.nan, np.abs(cells)), axis=0, least=0.0)
    if sizes.max() / sizes.min() > np.sqrt(float(np.finfo(X.dtype).max)) / 1e4:
        raise ValueError(
            f"Column {sizes.argmax()} of X is {sizes.max() / sizes.min():.1g} times as "
            f"large as column {sizes.argmin()}: squares of the one vanish beside those "
            "of the other. Divide each column by its size, or leave one out."
        )
    rough, n = _rough_look(cells), X.shape[0]
    wild = rough.wild(largest_usual(rough.far, n))
    cleaned = as_matrix(np.where(wild, np.nan, cells))
    most = max(1, min(WildCells.RANK, X.shape[1] // 3))
    ranks = tuple(rank for rank in Filling.RANKS if rank <= most)
    filler = learn_filler(cleaned.with_metadata(Metadata(unit=X.unit)), ranks=ranks)
    rule = CellFiller(**vars(filler))
    # Where most cells of a column are alike, the others are not all wild.
    least = WildCells.LEAST_LEVEL * filler.noise_levels
    for _ in range(WildCells.ROUNDS):
        seen = rule.look(X)(cells)
        wild |= seen.wild(largest_usual(seen.far, n))
        usual = (seen.far > 0) & ~wild
        # Noise levels by medians: some wild cells of a column may not be known yet.
        medians = _medians(np.where(usual, seen.far, np.nan), 0, WildCells.LEAST_NOISE)
        levels = rule.noise_levels * medians / WildCells.NORMAL_MEDIAN
        far, logs, growth = seen.far[usual], np.log(seen.heights[usual]), rule.growth
        above = logs > np.median(logs) if len(logs) else np.zeros(0, dtype=bool)
        if above.any():  # by which power of heights distances grow, from low to high
            rise = np.log(np.median(far[above]) / np.median(far[~above]))
            rise_of_logs = logs[above].mean() - logs[~above].mean()
            growth += float(rise / max(rise_of_logs, WildCells.LEAST_RISE))
        levels, growth = np.maximum(levels, least), min(max(growth, 0.0), 1.0)
        rule = replace(rule, noise_levels=levels, growth=growth)
    return replace(rule, limit=largest_usual(rule.look(X)(cells).far, n))


def _rough_look(cells: np.ndarray) -> _Look:
    """Return how far cells are from robust regressions on the other columns."""
    known = ~np.isnan(cells)
    values = np.where(known, cells, 0.0)
    judged = values != 0
    rows, columns = _sizes(np.abs(values), judged)
    values = values / rows[:, None] / columns
    n, p = values.shape
    rank = max(1, min(WildCells.RANK, p // 2, n // 10))
    clipped = np.clip(values, -WildCells.CLIP, WildCells.CLIP)
    V = leading_directions(as_matrix(clipped), rank, quiet=True).vectors
    together, expected = clipped @ V, np.empty_like(values)
    for part in row_ranges(p, WildCells.ENTRIES // (n * rank)):
        mine, seen = values.T[part, :, None], known.T[part, :, None]
        # A column says nothing of itself.
        places = together - clipped.T[part, :, None] * V[part, None, :]
        edges, left = np.full((1, 1, 1), WildCells.ROUGH_CLIP), np.abs(mine)
        for _ in range(2 * WildCells.ROUNDS):
            weights = seen * (edges / np.maximum(left, edges))
            weighted = (weights * places).swapaxes(-1, -2)
            systems = weighted @ places + WildCells.LEAST_NOISE * np.eye(rank)
            fit = places @ np.linalg.solve(systems, weighted @ mine)
            left = np.abs(mine - fit)
            medians = _medians(np.where(seen, left, np.nan), 1, WildCells.LEAST_NOISE)
            # They never grow: else many wild cells of a column would pass for usual.
            edges = np.minimum(edges, WildCells.ROUGH_CLIP * medians[:, :, None])
        expected[:, part] = fit[:, :, 0].T
    off = np.abs(values - expected)
    rows, columns = _sizes(off, judged, WildCells.LEAST_NOISE)
    far = np.where(judged, off / rows[:, None] / columns, 0.0)
    return _Look(far, off, np.abs(expected))


def largest_usual(far: np.ndarray, n_rows: int) -> float:
    """Return how far off usual cells of so many rows are at most, by a Weibull law."""
    n_cells = np.count_nonzero(far) * n_rows / len(far)
    far = far[far > 0]
    if len(far) == 0:
        return np.inf
    shares = np.array([0.5, WildCells.UPPER])  # between them no cell is wild
    middle, upper = np.maximum(np.quantile(far, shares), WildCells.LEAST_NOISE)
    logs = np.log(-np.log(1 - shares))
    steepness = (logs[1] - logs[0]) / max(np.log(upper / middle), WildCells.LEAST_NOISE)
    steepness = min(steepness, WildCells.STEEPEST)
    wanted = np.log(np.log(max(n_cells, 2) / WildCells.EXPECTED))
    return float(upper * np.exp((wanted - logs[1]) / steepness))


def _sizes(
    values: np.ndarray, judged: np.ndarray, least: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return sizes of rows and of columns, by medians; 1 where nothing is judged."""
    known = np.where(judged, values, np.nan)
    rows, columns = np.ones(len(known)), np.ones(known.shape[1])
    for _ in range(WildCells.ROUNDS):
        rows = _medians(known / columns, axis=1, least=least)
        columns = _medians(known / rows[:, None], axis=0, least=least)
    return rows, columns


def _medians(values: np.ndarray, axis: int, least: float) -> np.ndarray:
    """Return medians without NaN, at least so large; 1 where all are NaN."""
    alone = np.isnan(values).all(axis=axis, keepdims=True)
    medians = np.nanmedian(np.where(alone, 1.0, values), axis=axis)
    return np.maximum(medians, max(least, np.finfo(float).tiny))
