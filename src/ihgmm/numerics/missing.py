"""Missing cells, filled in by a low-rank model of the data.

A row is taken for ``scale * (loadings @ a + noise)``: positions ``a`` are Gaussian with
covariance one, so are logarithms of scales, and each column has its level of noise. A
missing cell gets its mean given the observed cells of its row: new rows as old ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from ihgmm.matrix import HOST, Matrix, Ops, Tall, filled, ops_of, to_host
from ihgmm.matrix.threads import sized_threads
from ihgmm.policy import Filling, Small

Missing = Literal["error", "fit"]
MISSING_WAYS: tuple[Missing, ...] = ("error", "fit")

# Scales that a row may have, as multiples of the size of its observed cells.
MULTIPLES = np.geomspace(1 / Filling.LARGEST, Filling.LARGEST, Filling.STEPS)


@dataclass(frozen=True, eq=False)
class Filler:
    """Fills missing cells of rows from observed ones; those of empty columns by 0."""

    loadings: np.ndarray  # (n_features, rank), of a row of scale 1; so is the noise
    noise_levels: np.ndarray  # (n_features,)
    mean: np.ndarray  # (rank,), of positions
    sizes: np.ndarray  # (n_features,), of columns
    spread: float = 1.0  # of logarithms of scales around 0
    nonnegative: bool = False  # whether no cell is below 0

    def __call__(self, X: Matrix) -> Matrix:
        """Return data without missing cells; data that have none as they are."""
        if np.isfinite(X.ops.number(X.ops.xp.sum(X.sqnorms))):
            return X
        return filled(X, self._fill(X, None), self.draw)

    def draw(self, X: Matrix, seed: int) -> Matrix:
        """Return data with missing cells drawn, in a block of rows always the same."""
        return filled(X, self._fill(X, seed))

    def _fill(self, X: Matrix, seed: int | None) -> Callable[[Tall], Tall]:
        """Return what replaces NaN by draws, or without a seed by means, else by 0."""
        (model, columns), nonnegative = self.in_columns(X), self.nonnegative

        def fill(rows: Tall) -> Tall:
            ops = ops_of(rows)  # rows come without their matrix
            xp, missing = ops.xp, ops.xp.isnan(rows)
            if not xp.any(missing):
                return rows
            if ops is HOST and seed is None:  # draws are of whole blocks
                some = missing.any(axis=1)
                if not some.all():
                    rows = rows.copy()
                    rows[some] = fill(rows[some])
                    return rows
            units = ops.cast_like(columns, rows)
            known = xp.astype(~missing, rows.dtype)
            values = xp.where(missing, xp.zeros_like(rows), rows) / units
            # Root mean squares of observed cells, whose squares might overflow.
            largest = xp.max(xp.abs(values), axis=1, keepdims=True)
            squares = xp.sum(ops.ratio(values, largest) ** 2, axis=1, keepdims=True)
            count = xp.sum(known, axis=1, keepdims=True)
            sizes = largest * ops.ratio(squares, count) ** 0.5
            wide = ops.widen(sizes)
            logs = xp.log(xp.where(sizes > 0, wide, xp.ones_like(wide)))
            seen = model.look(ops, ops.ratio(values, sizes), known, logs[:, 0])
            fit = seen.means() if seed is None else seen.draw(seed)
            fit = xp.clip(fit, 0.0, None) if nonnegative else fit
            return xp.where(missing, fit * sizes * units, rows)

        return fill

    def in_columns(self, X: Matrix) -> tuple[Model, np.ndarray]:
        """Return the model in units of columns, and these in the unit of X."""
        B, levels = self.loadings / self.sizes[:, None], self.noise_levels / self.sizes
        model = Model(B, levels**2, self.mean, 0.0, self.spread)
        return model, (self.sizes / X.unit).astype(X.dtype)


@dataclass(frozen=True, eq=False)
class Model:
    """The model of rows in units of their columns."""

    loadings: np.ndarray  # (n_features, rank)
    variances: np.ndarray  # (n_features,), of noise
    mean: np.ndarray  # (rank,), of positions
    log_scale: float  # mean and deviation of the logarithms of scales
    spread: float

    @property
    def weighted(self) -> np.ndarray:
        """Loadings over variances."""
        return self.loadings / self.variances[:, None]

    def look(self, ops: Ops, values: Tall, known: Tall, log_sizes: Tall) -> _Seen:
        """Return what cells say, known where 1, of rows that have size 1."""
        xp, rank, weighted = ops.xp, len(self.mean), self.weighted
        products = weighted[:, :, None] * self.loadings[:, None, :]
        # The systems are small; in single precision they may be next to singular.
        products = ops.cast_like(products.reshape(-1, rank**2), known)
        systems = xp.reshape(ops.widen(known @ products), (-1, rank, rank))
        systems = systems + ops.cast_like(np.eye(rank), systems)
        right = ops.widen(values @ ops.cast_like(weighted, values))
        mean = ops.cast_like(self.mean, right)
        inverses = xp.linalg.inv(systems)
        solved = inverses @ xp.stack([right, xp.zeros_like(right) + mean], axis=2)
        own, drawn = solved[:, :, 0], solved[:, :, 1]
        level = ops.widen(values / ops.cast_like(self.variances**0.5, values))
        # How likely each multiple of a row's size is to be its scale: the density of
        # its cells, whose covariance is that of noise and of positions.
        squares = xp.sum(level**2, axis=1) - xp.sum(right * own, axis=1)
        along, count = own @ mean, ops.widen(xp.sum(known, axis=1))
        logs = ops.cast_like(np.log(MULTIPLES)[None], own)
        inverse = ops.cast_like(1 / MULTIPLES[None], own)
        far = (log_sizes[:, None] - self.log_scale + logs) / self.spread
        scores = along[:, None] * inverse - squares[:, None] * inverse**2 / 2
        scores = scores - count[:, None] * logs - far**2 / 2
        return _Seen(self, ops, values, own, drawn, inverses, ops.softmax(scores))


class _Seen(NamedTuple):
    """What observed cells say of rows: positions are ``own / multiple + drawn``."""

    model: Model
    ops: Ops
    values: Tall  # (n_rows, n_features)
    own: Tall  # (n_rows, rank)
    drawn: Tall  # (n_rows, rank), by the mean
    covariances: Tall  # (n_rows, rank, rank)
    chances: Tall  # (n_rows, n_multiples)

    def mean(self, power: float) -> Tall:
        """Return the mean of a power of the multiples, as a column."""
        powers = self.ops.cast_like(MULTIPLES[:, None] ** power, self.chances)
        return self.chances @ powers

    def means(self) -> Tall:
        """Return the mean of every cell."""
        return self._cells(self.own + self.mean(1.0) * self.drawn)

    def draw(self, seed: int) -> Tall:
        """Return every cell as it may be."""
        ops, xp, (n, rank) = self.ops, self.ops.xp, self.own.shape
        rng = np.random.default_rng(seed)
        # The first of several that come at these rates is one of them by its chance.
        race = ops.cast_like(rng.exponential(size=(n, len(MULTIPLES))), self.own)
        at = xp.argmax(self.chances / race, axis=1)
        scales = xp.take(ops.cast_like(MULTIPLES, self.own), at)[:, None]
        root = xp.linalg.cholesky(self.covariances)
        shift = ops.cast_like(rng.standard_normal((n, rank, 1)), root)
        turned = self.drawn + (root @ shift)[:, :, 0]
        fit = self._cells(self.own + scales * turned)
        noise = self.model.variances**0.5 * rng.standard_normal(self.values.shape)
        return fit + xp.astype(scales, fit.dtype) * ops.cast_like(noise, fit)

    def _cells(self, positions: Tall) -> Tall:
        positions = self.ops.xp.astype(positions, self.values.dtype)
        return positions @ self.ops.cast_like(self.model.loadings.T, self.values)


def learn_filler(
    X: Matrix, *, ranks: tuple[int, ...] = Filling.RANKS, max_rows: int = Filling.ROWS
) -> Filler:
    """Learn to fill missing cells from the observed cells of some rows.

    The model is fitted by expectation and maximisation. The rank, and whether scales
    differ, are those that predict a tenth of the observed cells best which the fit did
    not see. The same data are always filled in the same way.
    """
    cells, rng = sampled_cells(X, max_rows)
    p, observed = X.shape[1], ~np.isnan(cells)
    cells[~observed] = 0.0
    lengths = np.sqrt(_column_means(cells.T**2, observed.T))
    kept = lengths > 0
    if not kept.any():
        return Filler(np.zeros((p, 1)), np.ones(p), np.zeros(1), np.ones(p))
    # Sorted, so that what is drawn does not hang on the order of rows.
    kept = np.flatnonzero(kept)[np.lexsort((cells[kept] / lengths[kept, None]).T)]
    cells, observed = cells[kept] / lengths[kept, None], observed[kept]
    columns = np.sqrt(_column_means(cells**2, observed))
    # Columns count alike, but for those that hardly differ from zero: they hold
    # little of what rows are compared by.
    columns = np.maximum(columns, Filling.LEAST_COLUMN * np.sqrt(np.mean(columns**2)))
    cells /= columns
    sizes = np.sqrt(_column_means(cells.T**2, observed.T))
    cells /= sizes[:, None]
    sample = _Sample(cells, observed, np.log(sizes * lengths[kept]))
    with sized_threads(cells.size):
        model = _best_model(sample, ranks, rng)
    columns *= np.exp(model.log_scale) * X.unit
    loadings, levels = model.loadings * columns[:, None], np.sqrt(model.variances)
    fit = loadings, levels * columns, model.mean, columns, model.spread
    return Filler(*fit, nonnegative=bool((cells >= 0).all()))


def sampled_cells(X: Matrix, max_rows: int) -> tuple[np.ndarray, np.random.Generator]:
    """Return the cells of some rows to learn from, and the generator that drew them."""
    n, p = X.shape
    # A seed that nobody else takes: had a test drawn its missing cells by the same
    # numbers, no cell drawn here would be an observed one.
    rng = np.random.default_rng([0x6D697373696E67, n, p])
    size = min(n, max_rows, max(Filling.LEAST_ROWS, Filling.ENTRIES // p))
    rows = np.sort(rng.choice(n, size, replace=False)) if size < n else np.arange(n)
    return to_host(X.rows(rows)).astype(np.float64), rng


class _Sample(NamedTuple):
    """Rows to learn from, each divided by its size."""

    cells: np.ndarray
    known: np.ndarray  # which of them are known
    log_sizes: np.ndarray

    def look(self, model: Model) -> _Seen:
        """Return what the known cells say under a model."""
        known = self.known.astype(np.float64)
        return model.look(HOST, self.cells * known, known, self.log_sizes)


def _best_model(
    sample: _Sample, ranks: tuple[int, ...], rng: np.random.Generator
) -> Model:
    """Return the model of the rank and the scales that predict held-out cells best."""
    n, p = sample.cells.shape
    size = max(Filling.LEAST_ROWS, Filling.CHOOSING // p)
    rows = rng.choice(n, size, replace=False) if size < n else np.arange(n)
    cells, observed, log_sizes = (values[rows] for values in sample)
    asked = observed & (rng.random(cells.shape) < Filling.ASKED)
    known = observed & ~asked
    # A guess of all cells, by the rank that is best where asked, and its loadings.
    guess = np.where(known, cells, _column_means(cells, known))
    sizes = np.exp(log_sizes - np.median(log_sizes))
    count = np.minimum(sizes, Filling.CLIP)[:, None]  # a few large rows do not rule
    loadings, least, worse = np.empty((p, 0)), np.inf, 0
    for rank in ranks:
        # A round solves a system of this rank for each column.
        large = rank >= min(cells.shape) or rank**2 * p > Filling.RANK_COST
        if worse == 2 or (large and np.isfinite(least)):
            break
        new = rng.standard_normal((p, rank - loadings.shape[1]))
        loadings = np.hstack([new, loadings])
        for _ in range(Filling.GUESSES):
            model = _start(guess, known, loadings)
            loadings, weighted = model.loadings, model.weighted
            system = weighted.T @ loadings + np.eye(rank)
            fit = np.linalg.solve(system, (guess @ weighted).T).T @ loadings.T
            guess = np.where(known, cells, fit)  # as if observed: rows would cost much
        error, worse = float(np.sum(((fit - cells) * count)[asked] ** 2)), worse + 1
        if error < least:
            best, least, worse = (guess, loadings), error, 0
    (guess, start), some = best, _Sample(cells, known, log_sizes)
    tried, middle = {}, float(np.median(log_sizes))
    # Zeros may say that a scale is small: then equal ones predict better. Small rows
    # count as much as others here.
    for spread in (Filling.LEAST_SPREAD, Filling.FIRST_SPREAD):
        model = _start(guess, known, start[:, -Filling.SCALE_RANK :])
        model = replace(model, log_scale=middle, spread=spread)
        for _ in range(Filling.ROUNDS):
            model = _improved(some, model)
        tried[float(np.sum((some.look(model).means() - cells)[asked] ** 2))] = model
    model = tried[min(tried)]
    if start.shape[1] > Filling.SCALE_RANK:
        more = _start(guess, known, start)
        model = replace(more, log_scale=model.log_scale, spread=model.spread)
    for _ in range(Filling.LAST_ROUNDS):
        model = _improved(sample, model)
    return model


def _start(guess: np.ndarray, known: np.ndarray, start: np.ndarray) -> Model:
    """Return a model of equal scales from the leading directions of complete rows."""
    n, V = len(guess), np.linalg.qr(guess.T @ (guess @ start))[0]
    parts = guess @ V
    # Guesses are all but without noise.
    left = _column_means(np.square(guess - parts @ V.T), known)
    spreads, turn = np.linalg.eigh(parts.T @ parts / n)
    spreads = np.maximum(spreads, Small.EXACT * max(spreads.max(), Small.TINY))
    variances = np.maximum(left, max(Filling.LEAST_NOISE, Filling.EVEN * left.mean()))
    loadings = V @ turn * np.sqrt(spreads)
    return Model(loadings, variances, np.zeros(V.shape[1]), 0.0, Filling.LEAST_SPREAD)


def _improved(sample: _Sample, model: Model) -> Model:
    """Return the model after one round of expectation and maximisation."""
    (n, p), rank, seen = sample.cells.shape, len(model.mean), sample.look(model)
    known = sample.known.astype(np.float64)
    # Moments of rows divided by their scale.
    once, twice = seen.mean(-1.0), seen.mean(-2.0)
    turned = twice * seen.own + once * seen.drawn
    positions = once * seen.own + seen.drawn
    moments = turned[:, :, None] * seen.own[:, None, :]
    moments += positions[:, :, None] * seen.drawn[:, None, :] + seen.covariances
    systems = (known.T @ moments.reshape(n, -1)).reshape(p, rank, rank)
    crossed, count = seen.values.T @ turned, known.sum(axis=0)
    squares = np.square(seen.values).T @ twice[:, 0]
    typical = np.maximum(squares / np.maximum(count, 1), Small.EXACT)
    # Loadings of which few cells tell are pulled to zero.
    pulled = systems + (model.variances / typical)[:, None, None] * np.eye(rank)
    loadings = np.linalg.solve(pulled, crossed[:, :, None])[:, :, 0]
    fitted = ((systems @ loadings[:, :, None])[:, :, 0] * loadings).sum(axis=1)
    left = np.maximum(squares - 2 * (loadings * crossed).sum(axis=1) + fitted, 0.0)
    # A few cells of the usual share of noise keep columns from seeming free of it.
    prior, share = Filling.PRIOR_CELLS, (left / typical).sum() / max(count.sum(), 1)
    variances = (left + prior * share * typical) / (count + prior)
    variances = np.maximum(variances, Filling.LEAST_NOISE * typical)
    # Of a column that is nearly always zero, one cell must not outweigh all others.
    variances = np.maximum(variances, Filling.EVEN * variances.mean())
    # Positions get covariance one again, which also speeds the rounds up.
    mean = positions.mean(axis=0)
    covariance = moments.mean(axis=0) - np.outer(mean, mean)
    ridge = Small.ROUNDING * np.trace(covariance) / rank
    root = np.linalg.cholesky(covariance + ridge * np.eye(rank))
    logs = sample.log_sizes[:, None] + np.log(MULTIPLES)
    log_scale, square = ((seen.chances * logs**i).sum() / n for i in (1, 2))
    deviation = np.sqrt(max(square - log_scale**2, Filling.LEAST_SPREAD**2))
    if model.spread <= Filling.LEAST_SPREAD:  # equal scales stay so
        deviation = model.spread
    loadings, mean = loadings @ root, np.linalg.solve(root, mean)
    return Model(loadings, variances, mean, float(log_scale), float(deviation))


def _column_means(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the mean of the known cells of each column, 0 where there are none."""
    return np.asarray((values * known).sum(axis=0) / np.maximum(known.sum(axis=0), 1))
