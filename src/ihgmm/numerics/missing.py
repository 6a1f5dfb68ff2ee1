"""Missing cells, filled in by a low-rank model of the data.

Row x is taken for ``size * (loadings @ a) + noise``: a position ``a`` of few numbers,
Gaussian around a mean that is learnt and with covariance one, and noise whose level
each column has for itself. The size of a row is that of its observed cells, so that a
small row is drawn to the mean pattern at its own size. Noise grows as a power of the
size, which is learnt too: with power 1 all multiples of a row are filled alike. Nothing
is centred: rows of one pattern at all scales lie on a ray through the origin, which
such a model holds. A missing cell gets its mean given the observed cells of the same
row, which is a function of that row alone: new rows are filled as those of the fit
were, and nothing has to be kept for each row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Literal

import numpy as np

from ihgmm.matrix import Matrix, Tall, filled, namespace, to_host
from ihgmm.matrix.base import row_ranges
from ihgmm.matrix.tall import cast_like, clip, number, ratio, to_device, widen
from ihgmm.matrix.threads import sized_threads

Missing = Literal["error", "fit"]
MISSING: tuple[Missing, ...] = ("error", "fit")


@dataclass(frozen=True, eq=False)
class Filler:
    """Fills the missing cells of rows from their observed ones, in units of the data.

    The size of a row is the root mean square of its observed cells, each divided by the
    size of its column. Columns without any observed cell have zero loadings, and are
    filled by zero.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import as_matrix
    >>> from ihgmm.numerics.missing import Filler
    >>> pattern, noise = np.array([1.0, 2.0]), np.array([0.1, 0.1])
    >>> fill = Filler(pattern[:, None], noise, mean=np.ones(1), sizes=pattern)
    >>> (fill(as_matrix(np.array([[3.0, np.nan]]))) @ np.eye(2)).round(1)
    array([[3., 6.]])
    """

    loadings: np.ndarray  # (n_features, rank)
    noise_levels: np.ndarray  # (n_features,), of a row of size 1
    mean: np.ndarray  # (rank,), of positions
    sizes: np.ndarray  # (n_features,), of columns
    growth: float = 1.0  # noise grows as this power of the size of a row
    nonnegative: bool = False  # whether no cell is below 0

    def __call__(self, X: Matrix) -> Matrix:
        """Return data without missing cells; data that have none as they are."""
        if np.isfinite(number(namespace(X.sqnorms).sum(X.sqnorms))):
            return X
        B, levels = self.loadings / self.sizes[:, None], self.noise_levels / self.sizes
        first, second, _ = _pairs(B.shape[1])
        weighted = B / levels[:, None] ** 2
        parts = (B, weighted, weighted[:, first] * B[:, second], self.mean)
        small = [part.astype(X.dtype) for part in (*parts, self.sizes / X.unit)]
        rule = {"growth": self.growth, "nonnegative": self.nonnegative}
        complete = filled(X, partial(_fill_rows, *small, **rule))
        complete.incomplete = X
        return complete


def _fill_rows(
    B: np.ndarray,
    weighted: np.ndarray,
    products: np.ndarray,
    mean: np.ndarray,
    columns: np.ndarray,
    rows: Tall,
    *,
    growth: float,
    nonnegative: bool,
) -> Tall:
    """Return rows with NaN replaced; those without an observed cell become zero."""
    xp, (n, rank) = namespace(rows), (rows.shape[0], B.shape[1])
    missing = xp.isnan(rows)
    if not xp.any(missing):
        return rows
    known = xp.astype(~missing, rows.dtype)
    columns = cast_like(columns, rows)
    values = xp.where(missing, xp.zeros_like(rows), rows / columns)
    largest = xp.max(xp.abs(values), axis=1, keepdims=True)
    shares = ratio(values, largest)  # their squares neither overflow nor vanish
    count = xp.sum(known, axis=1, keepdims=True)
    sizes = largest * ratio(xp.sum(shares**2, axis=1, keepdims=True), count) ** 0.5
    weights = _precision(clip(widen(sizes), *BOUNDS), growth)
    # The systems are small; in single precision they may be next to singular.
    inner = widen(known @ cast_like(products, rows)) * weights
    inner = xp.take(inner, to_device(_pairs(rank)[2], rows), axis=1)
    systems = xp.reshape(inner, (n, rank, rank)) + cast_like(np.eye(rank), inner)
    right = widen(ratio(values, sizes) @ cast_like(weighted, rows)) * weights
    right = right + cast_like(mean, inner)
    positions = xp.linalg.solve(systems, right[:, :, None])[:, :, 0]
    fit = xp.astype(positions, rows.dtype) @ cast_like(B.T, rows)
    fit = xp.clip(fit, 0.0, None) if nonnegative else fit
    return xp.where(missing, fit * sizes * columns, rows)


# Rows smaller or larger than this have no noise that could be told from none or all.
BOUNDS = (1e-3, 1e3)


def _precision(sizes: Tall, growth: float) -> Tall:
    """Return one over the variance of noise, relative to rows of such sizes."""
    return sizes ** (2 - 2 * growth)


@cache
def _pairs(rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pairs of a symmetric matrix, and which of them each entry is."""
    first, second = np.triu_indices(rank)
    square = np.empty((rank, rank), dtype=np.intp)
    square[first, second] = square[second, first] = np.arange(len(first))
    return first, second, square.ravel()


# How the model is learnt.


def learn_filler(
    X: Matrix,
    *,
    ranks: tuple[int, ...] = (1, 2, 3, 5, 8, 12, 20, 30),
    max_rows: int = 2_000,
    max_entries: int = 2**21,
) -> Filler:
    """Learn to fill missing cells from the observed cells of some rows.

    The model is fitted by expectation and maximisation, in each rank from the rank
    below on, and the rank is the one that predicts a tenth of the observed cells best
    which the fit did not see. These errors also say how noise grows with the size of a
    row. Rows larger than 1.5 medians count as if they had that size, as in
    :class:`ihgmm.IhSC`, so that a few do not rule. Rows and cells are drawn from
    a generator of its own: the same data are always filled in the same way.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import as_matrix
    >>> from ihgmm.numerics.missing import learn_filler
    >>> X = np.outer(np.arange(1.0, 41.0), [1.0, 2.0, 3.0])
    >>> X[1, 2] = np.nan
    >>> fill = learn_filler(as_matrix(X))
    >>> (fill(as_matrix(X)) @ np.eye(3))[1].round(1)
    array([2., 4., 6.])
    """
    n, p = X.shape
    # A seed that nobody else takes: had the missing cells been drawn by the same
    # numbers, for a test, none of those drawn here would be an observed one.
    rng = np.random.default_rng([0x6D697373696E67, n, p])
    size = min(n, max_rows, max(200, max_entries // p))
    rows = np.sort(rng.choice(n, size, replace=False)) if size < n else np.arange(n)
    cells = to_host(X.by_rows().rows(rows)).astype(np.float64)
    observed = ~np.isnan(cells)
    cells[~observed] = 0.0
    nonnegative = bool((cells >= 0).all())
    lengths = _row_sizes(cells, observed)
    kept = lengths > 0
    if not kept.any():
        return Filler(np.zeros((p, 1)), np.ones(p), np.zeros(1), np.ones(p))
    cells, observed = cells[kept] / lengths[kept, None], observed[kept]
    sizes = np.sqrt(_column_means(cells**2, observed))
    # Columns count alike, but for those that hardly differ from zero: they hold
    # little of what rows are compared by. From 0.1 to 0.3 of the typical column made
    # no difference in 27 comparisons; without a limit, pictures were filled worse.
    columns = np.maximum(sizes, 0.3 * np.sqrt(np.mean(sizes**2)))
    cells /= columns
    sizes = _row_sizes(cells, observed)
    cells /= sizes[:, None]
    sizes *= lengths[kept]
    typical = float(np.median(sizes))
    sizes = np.minimum(sizes / typical, 1.5)
    with sized_threads(cells.size):
        model = _best_model(cells, observed, sizes, ranks, rng)
    columns *= typical * X.unit
    return Filler(
        loadings=model.loadings * columns[:, None],
        noise_levels=np.sqrt(model.variances) * columns,
        mean=model.mean,
        sizes=columns,
        growth=model.growth,
        nonnegative=nonnegative,
    )


@dataclass(frozen=True, eq=False)
class _Model:
    """A model of rows that were divided by their size."""

    loadings: np.ndarray
    variances: np.ndarray  # of the noise of each column, in a row of size 1
    mean: np.ndarray
    growth: float


def _best_model(
    cells: np.ndarray,
    observed: np.ndarray,
    sizes: np.ndarray,
    ranks: tuple[int, ...],
    rng: np.random.Generator,
) -> _Model:
    """Return the model of the rank that predicts held-out cells best."""
    asked = observed & (rng.random(cells.shape) < 0.1)
    known = observed & ~asked
    means = _column_means(cells, known)
    guess = np.where(known, cells, means)
    best, least, worse, growth = None, np.inf, 0, 1.0
    for rank in ranks:
        # A round solves a system of this rank for each column: with 20,000 columns,
        # rank 12 takes a few fits of the clusters, and rank 30 forty.
        large = rank >= min(cells.shape) or rank**2 * cells.shape[1] > 2**22
        if best is not None and (large or worse == 2):
            break
        start = _start(guess, rank, growth, rng)
        model = _fit_model(cells, known, sizes, start, n_iter=15, tol=1e-3)
        for part in _parts(cells):
            guess[part] = _expected(cells[part], known[part], sizes[part], model)
        error, growth = _held_out(guess - cells, asked, sizes)
        if error < least:
            best, least, worse = replace(model, growth=growth), error, 0
        else:
            worse += 1
    assert best is not None
    return _fit_model(cells, observed, sizes, best, n_iter=30, tol=1e-4)


def _held_out(
    wrong: np.ndarray, asked: np.ndarray, sizes: np.ndarray
) -> tuple[float, float]:
    """Return how badly cells were predicted, and the growth of noise that fits best.

    It is minus the Gaussian likelihood of the errors, whose level is free and whose
    growth is 0 (noise alike in all rows), 1 (in proportion to the row) or half-way.
    """
    squares, size = wrong[asked] ** 2, sizes[np.nonzero(asked)[0]]
    if len(squares) == 0:
        return 0.0, 1.0
    found = []
    for growth in (1.0, 0.5, 0.0):
        level = np.mean(squares * _precision(size, growth))
        spread = np.mean(np.log(_precision(size, growth)))
        found.append((float(np.log(max(level, 1e-300)) - spread), growth))
    return min(found, key=lambda each: each[0])


def _start(
    guess: np.ndarray, rank: int, growth: float, rng: np.random.Generator
) -> _Model:
    """Return a model from the leading directions of complete rows."""
    n, p = guess.shape
    V = np.linalg.qr(rng.standard_normal((p, rank)))[0]
    for _ in range(4):  # they only start what goes on from there
        V = np.linalg.qr(guess.T @ (guess @ V))[0]
    parts = guess @ V
    left = sum(
        np.square(guess[at] - parts[at] @ V.T).sum(axis=0) for at in _parts(guess)
    )
    spreads, turn = np.linalg.eigh(parts.T @ parts / n)
    spreads = np.maximum(spreads, 1e-12 * max(spreads.max(), 1e-300))
    variances = np.maximum(left / n, 1e-6)
    return _Model(V @ turn * np.sqrt(spreads), variances, np.zeros(rank), growth)


def _fit_model(
    cells: np.ndarray,
    known: np.ndarray,
    sizes: np.ndarray,
    model: _Model,
    n_iter: int,
    tol: float,
) -> _Model:
    """Improve a model until its noise changes by less than a share."""
    count = known.sum(axis=0).astype(np.float64)
    weights = _precision(sizes, model.growth)
    squares = np.einsum("ij,ij,ij->j", cells, cells, known)
    before = np.inf
    for _ in range(n_iter):
        model, noise = _improved(cells, known, weights, model, count, squares)
        if abs(before - noise) <= tol * noise:
            break
        before = noise
    return model


def _improved(
    cells: np.ndarray,
    known: np.ndarray,
    weights: np.ndarray,
    model: _Model,
    count: np.ndarray,
    squares: np.ndarray,
) -> tuple[_Model, float]:
    """Return the model after one round of expectation and maximisation, and noise."""
    (n, p), rank = cells.shape, len(model.mean)
    first, second, square = _pairs(rank)
    seconds, crossed = np.zeros((p, len(first))), np.zeros((p, rank))
    total, spread, weighed = np.zeros(rank), np.zeros((rank, rank)), np.zeros(p)
    for part in _parts(cells):
        seen = known[part] * weights[part, None]
        values = cells[part] * seen
        weighed += np.einsum("ij,ij->j", values, cells[part])
        positions, doubt = _positions(values, seen, model)
        moments = positions[:, first] * positions[:, second] + doubt[:, first, second]
        seconds += seen.T @ moments
        crossed += values.T @ positions
        total += positions.sum(axis=0)
        spread += positions.T @ positions + doubt.sum(axis=0)
    typical = np.maximum(squares / np.maximum(count, 1), 1e-12)
    systems = seconds[:, square].reshape(p, rank, rank)
    # A loading is expected to be as large as its column; where few cells tell about
    # it, this pulls it to zero.
    systems[:, np.arange(rank), np.arange(rank)] += (model.variances / typical)[:, None]
    loadings = np.linalg.solve(systems, crossed[:, :, None])[:, :, 0]
    double = np.where(first == second, 1.0, 2.0)
    fitted = (seconds * loadings[:, first] * loadings[:, second]) @ double
    left = np.maximum(weighed - 2 * (loadings * crossed).sum(axis=1) + fitted, 0.0)
    noise = left.sum() / max(count.sum(), 1)
    # So few cells that say the usual share of a column is noise keep a column from
    # being taken for free of it.
    prior, share = 5.0, (left / typical).sum() / max(count.sum(), 1)
    variances = (left + prior * share * typical) / (count + prior)
    variances = np.maximum(variances, 1e-6 * typical)
    # Positions get covariance one again, which also speeds the rounds up.
    mean = total / n
    covariance = spread / n - np.outer(mean, mean)
    ridge = 1e-10 * np.trace(covariance) / rank
    root = np.linalg.cholesky(covariance + ridge * np.eye(rank))
    mean = np.linalg.solve(root, mean)
    return _Model(loadings @ root, variances, mean, model.growth), noise


def _positions(
    values: np.ndarray, seen: np.ndarray, model: _Model
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of each row's position, given its observed cells.

    Cells and what is seen of them are multiplied by the weight of their row.
    """
    rank = len(model.mean)
    first, second, square = _pairs(rank)
    weighted = model.loadings / model.variances[:, None]
    systems = seen @ (weighted[:, first] * model.loadings[:, second])
    systems = systems[:, square].reshape(-1, rank, rank) + np.eye(rank)
    doubt = np.linalg.inv(systems)
    right = values @ weighted + model.mean
    return (doubt @ right[:, :, None])[:, :, 0], doubt


def _expected(
    cells: np.ndarray, known: np.ndarray, sizes: np.ndarray, model: _Model
) -> np.ndarray:
    """Return rows with cells that are not known as the model expects them."""
    seen = known * _precision(sizes, model.growth)[:, None]
    positions, _ = _positions(cells * seen, seen, model)
    return np.where(known, cells, positions @ model.loadings.T)


def _row_sizes(cells: np.ndarray, known: np.ndarray) -> np.ndarray:
    return np.sqrt(_column_means(cells.T**2, known.T))


def _column_means(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the mean of the known cells of each column, 0 where there are none."""
    return np.asarray((values * known).sum(axis=0) / np.maximum(known.sum(axis=0), 1))


def _parts(cells: np.ndarray) -> list[slice]:
    # So few rows that what is made of them stays in the cache.
    return row_ranges(cells.shape[0], max(64, 2**17 // cells.shape[1]))
