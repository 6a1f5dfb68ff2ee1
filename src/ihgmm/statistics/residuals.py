"""What residuals say about noise: its variance by column, and along the centres.

Along its own centre the noise of a row cannot be separated from its scale; rows of
*other* clusters show it. The formulas are in docs/statistics.md.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from ihgmm.matrix import HOST, Groups, Matrix, Tall, sample_positions, to_host
from ihgmm.policy import Scales, Small, TiedNoise


def shared_covariance(
    hidden: np.ndarray, moments: np.ndarray, sizes: np.ndarray, prior: float = 1.0
) -> np.ndarray:
    """Return the most likely covariance of noise that all clusters share.

    Rows y of cluster k, ``sizes[k]`` of them with the sum ``moments[k]`` of ``y @
    y.T``, are noise and any multiple of ``hidden[k]``. ``prior`` rows of white noise
    count too. All may have axes before, of problems to be solved at once.
    """
    one, across = np.eye(hidden.shape[-1]), np.swapaxes(hidden, -1, -2)
    # What rounding leaves of long rows could be negative.
    prior += Small.TIE * np.einsum("...jj", moments).max()
    S = np.broadcast_to(one, moments.shape[:-3] + one.shape)
    total = moments.sum(axis=-3) + prior * one
    n = sizes.sum(axis=-1)[..., None, None] + prior
    for _ in range(TiedNoise.ROUNDS):
        # Noise along the own hidden direction is expected to be what the covariance of
        # the last round says.
        toward = hidden @ np.linalg.inv(S)
        length = (toward * hidden).sum(axis=-1)
        toward = HOST.ratio(toward, length[..., None])
        seen = (moments @ toward[..., None])[..., 0]
        along = (toward * seen).sum(axis=-1) + HOST.ratio(sizes, length)
        both = across @ seen
        before, S = S, total - both - np.swapaxes(both, -1, -2)
        S = (S + (across * along[..., None, :]) @ hidden) / n
        if np.abs(S - before).max() <= TiedNoise.CHANGE:
            break
    return np.asarray(S)


def column_variances(left: np.ndarray, units: np.ndarray) -> tuple[Any, Any]:
    """Return variances of noise by column, and along centres were it independent."""
    # ``left`` are mean squares of residuals, which have no part along their centre.
    q = units**2
    # A column that has most of a centre hides its own noise: as much as of others.
    usual = q.max(axis=-1, keepdims=True) < 0.4
    rest = np.maximum(np.where(usual, 1 - 2 * q, 1 - q), Small.ROUNDING)
    cross = np.where(usual, q, 0.0)
    along = (q * left / rest).sum(axis=-1) / (1 + (q * cross / rest).sum(axis=-1))
    variances = np.maximum(left - cross * along[..., None], 0.0) / rest
    return variances, (q * variances).sum(axis=-1)


def noise_along(
    units: np.ndarray,
    hidden: np.ndarray,
    variances: np.ndarray,
    moments: np.ndarray,
    sizes: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Return the variance of noise along centres, and the rows that the prior counts.

    ``moments`` are of coordinates along ``units``, in which the signal of cluster k is
    a multiple of ``hidden[k]``; ``variances`` are those of columns. The first axis is
    that of two samples; moments and sizes have a second one, of all rows and of most.
    """
    k = units.shape[1]
    if k == 1:
        return (units**2 * variances).sum(axis=2)[:, None] + 0 * sizes, np.inf
    # Coordinates in which independent entries make noise of variance 1.
    swapped = np.swapaxes(units, 1, 2)[:, None]
    values, vectors = np.linalg.eigh((units[:, None] * variances[:, :, None]) @ swapped)
    values = np.maximum(values, TiedNoise.RIDGE * np.abs(values[..., -1:]))
    values, swapped = np.sqrt(values)[..., None, :], np.swapaxes(vectors, -1, -2)
    roots = (vectors * values) @ swapped
    inverses = (vectors * HOST.ratio(1.0, values)) @ swapped
    hidden = (inverses @ hidden[..., None])[..., 0]
    # Where there is no noise, or none beyond rounding, there is no telling.
    squares = np.square(hidden).sum(axis=-1)
    told = ((squares > 0) & (squares < 1 / Small.ROUNDING))[:, None]
    moments = inverses[:, None] @ moments @ inverses[:, None] * told[..., None, None]
    sizes = sizes * told
    # For so many rows it counts that entries are independent as a rule: the fewer, the
    # further the noise that shows is from that. Products of two samples, of halves or
    # of clusters, measure it: squares would count chance too.
    all_rows, n = sizes[:, 0], max(sizes[:, 0].sum() / 2, 1.0)
    toward = HOST.ratio(hidden, np.sqrt(squares)[..., None])
    across = np.eye(k) - toward[..., None] * toward[..., None, :]
    shown = across @ moments[:, 0] @ across - all_rows[..., None, None] * across
    cells, both = k * (k - 1) / 2, max(all_rows.prod(axis=0).sum(), 1.0)
    of_halves = shown.prod(axis=0).sum() / (cells * both)
    pairs = np.square(shown.sum(axis=1)) - np.square(shown).sum(axis=1)
    together = np.square(all_rows.sum(axis=1)) - np.square(all_rows).sum(axis=1)
    cells = max((k - 1) * (k - 2) / 2, 0.5)
    of_clusters = pairs.sum() / (cells * max(together.sum(), 1.0))
    excess = max(float(of_halves), float(of_clusters), Small.ROUNDING)
    prior = max(min(2 / excess, 4 / (n * excess**2)), 1.0)
    S = shared_covariance(hidden[:, None], moments, sizes, prior)
    own = np.einsum("skki->ski", roots)[:, None]
    return np.asarray(((own @ S) * own).sum(axis=-1)), prior


def random_parts(codes: np.ndarray, n_folds: int, rng: Generator) -> list[np.ndarray]:
    """Split every cluster k at random into groups 2 k and 2 k + 1, these into folds."""
    order = np.lexsort((rng.random(len(codes), dtype=np.float32), codes))
    ordered = codes[order]
    place = np.arange(len(codes)) - np.searchsorted(ordered, ordered)
    parts = np.empty((2, len(codes)), dtype=np.int64)
    # Small clusters are not all in the first folds.
    folds = (place // 2 + 7 * ordered) % n_folds
    parts[:, order] = 2 * ordered + place % 2, folds
    return [*parts]


class Fit(NamedTuple):
    """A fit and what its errors are made of; docs/statistics.md has the formulas."""

    weights: Tall  # divided by A, so that weights @ scales is 1 in a cluster
    scales: Tall
    centers: np.ndarray
    true_squares: np.ndarray  # of the true centres, free of the noise in ours
    variances: Tall
    solved: Tall | None  # whether the equations for a row's cluster have a solution


class Halves(NamedTuple):
    """Variances of the rows of halves, along the means of the other half.

    Of the lines for folds the first is of all rows, others leave out one fold each.
    """

    seen: np.ndarray  # (2, n_folds + 1, n_clusters): of rows
    noise: np.ndarray  # (2, n_folds + 1, n_clusters): expected of noise
    independent: np.ndarray  # (2, n_clusters): of noise, were its entries independent
    weights: np.ndarray  # (2, n_clusters): how much a cluster counts in the test
    sizes: np.ndarray  # (2, n_clusters)
    levels: np.ndarray  # (2, n_clusters): lengths of centres


def compare_halves(
    X: Matrix, groups: np.ndarray, folds: np.ndarray, *, k: int, apart: bool = False
) -> Halves:
    """Return variances of both halves; weights are 0 where there is no telling.

    With ``apart``, where noise is correlated, they are not along means but along what
    sets each mean apart from all others: rows of other clusters have no signal there,
    so that they show all of the noise, even if centres are alike.
    """
    n_folds = int(folds.max(initial=0)) + 1
    rows = X.ops.groups(X.to_device(groups), 2 * k)
    sizes = rows.sizes.astype(np.float64)
    # A difference in each half takes two rows there, four in the cluster.
    enough = sizes.reshape(k, 2).sum(axis=1) >= 4
    weights = np.repeat(enough, 2) / np.maximum(sizes, 1.0)
    means = rows.weighted_sums(X, rows.to_rows(weights)).astype(np.float64)
    units = HOST.unit_rows(means)
    toward = units[np.arange(2 * k) ^ 1]

    def work(block: Matrix, group: Tall) -> Any:
        """Return rows along all means, less their own; squares of what is left."""
        ops, xp, lines = block.ops, block.ops.xp, []
        left: Any = 0
        for at in block.dense_ranges(2**18):  # so few entries stay in the cache
            x, own = ops.widen(block.rows(at)), group[at]
            means_of, toward_of, every = (
                ops.to_device(array, x) for array in (means, toward, units)
            )
            x = x - xp.take(means_of, own, axis=0)
            lines.append(x @ every.T)
            away = xp.take(toward_of, own, axis=0)
            x = x - ops.row_dots(x, away)[:, None] * away
            left = left + ops.tall_dot(ops.one_hot(own, 2 * k, x), x * x)
        return (ops.stack(lines),), (left,)

    (along,), (left,) = X.sweep(work, rows.labels)
    along = to_host(along)
    # The first axis is that of halves, which look along the means of each other.
    centers, others, squares = (
        values.reshape(k, 2, -1).swapaxes(0, 1) for values in (means, units, left)
    )
    size, others = sizes.reshape(k, 2).T, others[::-1]
    free = np.maximum(size - 1, 1.0)  # the mean of a half costs one of its rows
    codes = (groups % 2 * n_folds + folds) * k + groups // 2
    along = np.where((groups % 2 == 0)[:, None], along[:, 1::2], along[:, ::2])
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(2 * n_folds * k + 1))
    parts = np.split(along[order], ends[1:-1])
    moments = np.stack([own.T @ own for own in parts]).reshape(2, n_folds, k, k, k)
    moments = _without_folds(moments * (enough * size / free)[:, None, :, None, None])
    counts = np.diff(ends).astype(np.float64).reshape(2, n_folds, k)
    counts = _without_folds(counts * enough)
    by_column, plain = column_variances(squares * (enough / free)[..., None], others)
    # A row nearer to the mean than rounding says nothing.
    rounding = (64 * np.finfo(X.dtype).eps) ** 2 * np.square(centers).sum(axis=2)
    plain = np.where(plain > rounding, plain, 0.0)
    signal, noise = centers @ others.swapaxes(1, 2), plain[:, None]
    for _ in range(2):  # residuals lack what noise is found along their centre
        more = HOST.ratio(noise[:, 0] - plain, by_column.sum(axis=2))
        full = by_column * ((1 + more) * (plain > 0))[..., None]
        noise, prior = noise_along(others, signal, full, moments, counts)
    if apart and prior < Scales.CORRELATED:
        turn = np.linalg.pinv(others @ others.swapaxes(1, 2), hermitian=True)
        others = turn @ others
        lengths = np.sqrt(np.square(others).sum(axis=2))[..., None]
        turn, others = HOST.ratio(turn, lengths), HOST.ratio(others, lengths)
        moments = turn[:, None, None] @ moments @ turn.swapaxes(1, 2)[:, None, None]
        independent = by_column @ np.square(others).swapaxes(1, 2)
        squares = HOST.ratio(np.einsum("sbjkk->sbjk", moments), independent[:, None])
        elsewhere = 1 - np.eye(k)
        noise = HOST.ratio((squares * elsewhere).sum(axis=2), counts @ elsewhere)
        along_own = np.einsum("skk->sk", independent) * (plain > 0)
        plain = np.where(along_own > rounding, along_own, 0.0)
        noise, signal = noise * plain[:, None], centers @ others.swapaxes(1, 2)
    seen = HOST.ratio(np.maximum(np.einsum("sbkkk->sbk", moments), 0.0), counts)
    levels = np.maximum(np.einsum("skk->sk", signal), 0.0)
    weights = HOST.ratio(size * levels**2 + plain, plain**2)
    return Halves(seen, noise, plain, weights, size, levels)


def _without_folds(parts: np.ndarray) -> np.ndarray:
    """Return the sum over folds, and sums without each of them."""
    total = parts.sum(axis=1, keepdims=True)
    return np.concatenate([total, total - parts], axis=1)


def noise_of_centers(X: Matrix, rows: Groups, fit: Fit) -> tuple[Any, Any]:
    """Return noise along centres, over that of entries, and variances of centres."""
    centers, weights = fit.centers.astype(np.float64), fit.weights
    (k, p), units = centers.shape, HOST.unit_rows(centers)
    mean = rows.weighted(rows.ops.xp.ones_like(weights))
    mean = mean / rows.row_sums(mean)[0]  # the part of a row in the mean of the scales
    # A residual is too small by the share of the row in its own centre, which may be
    # all of it.
    share = rows.ops.clip(weights * fit.scales, None, Scales.LARGEST_SHARE)

    def work(block: Matrix, *tall: Tall) -> tuple[tuple[()], tuple[Any, ...]]:
        """Sum up squares of residuals, with three weights."""
        ops, xp = block.ops, block.ops.xp
        total: Any = 0
        for at in block.dense_ranges(2**18):  # so few entries stay in the cache
            labels, scales, share, *counted = (values[at] for values in tall)
            x = ops.widen(block.rows(at))
            own = xp.take(ops.to_device(centers, x), labels, axis=0)
            squares = (x - scales[:, None] * own) ** 2 / (1 - share)[:, None]
            members = ops.one_hot(labels, k, squares)
            by_weight = [members, *(members * weights[:, None] for weights in counted)]
            total = total + ops.tall_dot(xp.concat(by_weight, axis=1), squares)
        return (), (total,)

    tall = rows.labels, fit.scales, share, weights**2, weights * mean
    _, (total,) = X.sweep(work, *map(X.to_device, tall))
    left, across, both = total.reshape(3, k, p)
    n = np.maximum(rows.sizes, 1.0)[:, None]
    by_column, along = column_variances(left / n, units)
    ratio = HOST.ratio(along, by_column.mean(axis=1), 1.0)
    drawn = sample_positions(X.shape[0], Scales.ROWS)
    labels = to_host(rows.ops.take_rows(rows.labels, drawn))
    parts = random_parts(labels, 4, np.random.default_rng(0))
    some = X if len(drawn) == X.shape[0] else X.keep_rows(drawn)
    halves = compare_halves(some, *parts, k=k)
    ratio = ratio * HOST.ratio(halves.noise[:, 0], halves.independent, 1.0).mean(axis=0)
    noise = fit.variances * rows.to_rows(ratio)
    loss = rows.sums(weights * mean * noise)[:, None]
    q = units**2
    growth = rows.sums(mean**2 * noise)[:, None] + 2 * both - 2 * (1 - q) * loss
    return ratio, np.maximum(across + q * growth, 0.0)


def independent_entries(X: Matrix, rows: Groups, fit: Fit) -> float:
    """Return how many independent entries vary in length as the noise of a row."""
    # One over the mean squared cosine of the noise of two rows, of all pairs of some.
    n, p = X.shape
    drawn = sample_positions(
        n, min(Scales.PAIRED_ROWS, max(Scales.PAIRED_ENTRIES // p, 16))
    )
    few = rows.ops.take_rows
    labels, own = to_host(few(rows.labels, drawn)), to_host(few(fit.scales, drawn))
    centers = fit.centers[labels].astype(np.float64)
    units = HOST.unit_rows(X.take(drawn).toarray() - own[:, None] * centers)
    squares = (units @ units.T) ** 2
    np.fill_diagonal(squares, 0.0)
    alike = squares.sum() / max(len(drawn) * (len(drawn) - 1), 1)
    return float(1 / np.clip(alike, 1 / max(p - 1, 1), 1.0))
