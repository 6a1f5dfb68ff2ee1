"""K-means on rows of an embedding, wherever they are.

Several spaces, which have as many rows each, and several runs in each go side by side:
``rows`` is (n_spaces, n, m), centres are (n_spaces, n_runs, k, m). Rows stay where they
are, centres are NumPy arrays on the host. A device works on all at once; a host on one
run at a time, which may then be the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import numpy as np

from ihgmm.matrix import Ops, Tall
from ihgmm.matrix.ops import sampled
from ihgmm.matrix.threads import one_thread
from ihgmm.policy import Labelling, Small


class Run(NamedTuple):
    """Where one run of k-means has ended."""

    centers: np.ndarray  # (k, m)
    labels: Tall  # the nearest centre of each row
    inertia: float  # weighted sum of squared distances to it
    n_iter: int  # how often centres have moved


def kmeans_runs(
    ops: Ops,
    spaces: Sequence[Tall],
    n_clusters: int,
    *,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    full_trials: int = 10_000,
    until_settled: bool = False,
    weights: Tall | None = None,
    rng: np.random.Generator,
) -> list[list[Run]]:
    """Run k-means in each of some spaces, started well; return runs, the best first.

    The first of ``n_init`` starts is the pivoted QR of the rows, the others are
    k-means++; "auto" means 1 + 10. Beyond ``full_trials`` rows the starts compete on a
    sample of the rows, until three have ended in the same best place; those that end in
    different places, nearly as good as the best, go on. With ``until_settled``, starts
    end as soon on all rows. Runs that end in the same place are returned once.
    """
    n, starts = spaces[0].shape[0], 1 + Labelling.STARTS if n_init == "auto" else n_init
    on_sample = n > full_trials
    settle = n_init == "auto" and (on_sample or until_settled)
    trials, trial_weights = spaces, weights
    if on_sample:
        size = int(np.clip(Labelling.TRIAL_ROWS * n_clusters, 1_000, full_trials))
        few = sampled(n, size, rng)
        trials = [ops.few_rows(rows, few) for rows in spaces]
        trial_weights = None if weights is None else ops.few_rows(weights, few)
    pivots = spaces
    if n > Labelling.PIVOT_ROWS:
        few = sampled(n, Labelling.PIVOT_ROWS, rng)
        pivots = [ops.few_rows(rows, few) for rows in spaces]
    # Drawn at once: the same whether runs go side by side, or one ends the search.
    draws = rng.random(
        (len(spaces), starts - 1, n_clusters, 2 + int(np.log(n_clusters)))
    )
    # Only runs to the very end show whether they meet in the same place.
    options: dict[str, Any] = {
        "max_iter": max_iter,
        "tol": 0.0 if on_sample or settle else 1e-5,
    }
    found = []
    # One thread: the order of sums, and so the labels, never depend on how many there
    # are.
    with one_thread():
        step = ops.side_by_side(spaces[0], len(spaces))
        for i in range(0, len(spaces), step):
            at = slice(i, i + step)
            first = pivot_rows(ops, in_one(ops, pivots[at]), n_clusters)
            tried = in_one(ops, trials[at])
            found += _started(
                ops, tried, first, draws[at], trial_weights, settle, options
            )
        if not on_sample:
            return [distinct(runs) for _, runs in found]
        return [
            distinct(_on_all(ops, rows, trial, *started, weights, max_iter))
            for rows, trial, started in zip(spaces, trials, found, strict=True)
        ]


def in_one(ops: Ops, arrays: Sequence[Tall]) -> Tall:
    """Return arrays as one, with an axis before the others."""
    if len(arrays) == 1:
        return arrays[0][None, ...]
    return ops.xp.stack(arrays)


def _started(
    ops: Ops,
    rows: Tall,
    pivots: np.ndarray,
    draws: np.ndarray,
    weights: Tall | None,
    settle: bool,
    options: dict[str, Any],
) -> list[tuple[np.ndarray, list[Run]]]:
    """Return, for each space, the start by pivots and the runs from all starts."""
    count, starts = draws.shape[1] + 1, pivots[:, None]
    found: list[list[Run]] = [[] for _ in pivots]
    step = ops.side_by_side(rows, count)
    for i in range(0, count, step):
        at = slice(max(i - 1, 0), i - 1 + step)  # the first start is that by pivots
        if at.stop > at.start:
            more = plus_plus(ops, rows, draws[:, at], weights)
            starts = more if i else np.concatenate([starts, more], axis=1)
        ended = lloyd(ops, rows, starts, weights, **options)
        found = [runs + others for runs, others in zip(found, ended, strict=True)]
        if settle and all(map(is_settled, found)):
            break
    if settle:  # runs side by side are all there; one after the other, some would not
        found = [_until_settled(runs) for runs in found]
    return list(zip(pivots, found, strict=True))


def _until_settled(runs: list[Run]) -> list[Run]:
    count = next((i for i in range(1, len(runs)) if is_settled(runs[:i])), len(runs))
    return runs[:count]


def _on_all(
    ops: Ops,
    rows: Tall,
    trial: Tall,
    pivots: np.ndarray,
    runs: list[Run],
    weights: Tall | None,
    max_iter: int,
) -> list[Run]:
    """Let the best runs on a trial go on with all rows, and the pivots if need be."""
    finals = [final.centers for final in _finalists(runs, rows.shape[0])]
    if not (is_settled(runs) and _all_shown(ops, trial, pivots)):
        finals.append(pivots)
    step = ops.side_by_side(rows, len(finals))
    # To the tolerance of most libraries.
    return [
        run
        for i in range(0, len(finals), step)
        for run in lloyd(
            ops,
            rows[None, ...],
            np.array(finals[i : i + step])[None],
            weights,
            max_iter=max_iter,
            tol=1e-4,
        )[0]
    ]


def distinct(runs: list[Run]) -> list[Run]:
    """Return runs by their inertia, those that ended in the same place once."""
    runs = sorted(runs, key=attrgetter("inertia"))
    return runs[:1] + [
        run for before, run in pairwise(runs) if not _same(run.inertia, before.inertia)
    ]


def lloyd(
    ops: Ops,
    rows: Tall,
    starts: np.ndarray,
    weights: Tall | None = None,
    *,
    max_iter: int = 300,
    tol: float = 0.0,
) -> list[list[Run]]:
    """Run Lloyd's iterations; return a list of runs for each space.

    A run ends when its centres, all together, move by no more than ``tol`` times the
    mean variance of a column, squared. A centre that lost all its rows goes to the row
    that is farthest from its own.
    """
    xp, (n_spaces, n_runs, _, m) = ops.xp, starts.shape
    # Sums and sizes of clusters come from one product.
    values = xp.concat([rows, xp.ones_like(rows[:, :, :1])], axis=2)
    if weights is not None:
        values = values * weights[:, None]
    all_rows = n_runs * ops.to_host(xp.sum(values[:, :, m], axis=1))
    columns = xp.matrix_transpose(rows)
    least = np.zeros((n_spaces, 1))
    if tol:
        least = tol * ops.to_host(xp.mean(xp.var(rows, axis=1), axis=1))[:, None]
    centers = starts.astype(np.float64)
    n_iter = np.zeros((n_spaces, n_runs), dtype=int)
    going = np.ones((n_spaces, n_runs), dtype=bool)
    while True:
        scores = _scores(ops, columns, centers)
        if not going.any():
            break
        sums = _sums(ops, _members(ops, scores), values)
        # Rows as near to two centres count twice.
        if (sums[:, :, :, m].sum(axis=(1, 2)) > all_rows * (1 + Small.TIE)).any():
            sums = _sums(ops, _first_members(ops, scores), values)
        sizes = sums[..., m:]
        moved = sums[..., :m] / np.where(sizes > 0, sizes, 1.0)
        lost = sizes[..., 0] <= 0
        for space, run in np.argwhere(lost.any(axis=2) & going):
            at = lost[space, run]
            moved[space, run, at] = _farthest(
                ops, rows[space, ...], scores[space, run, ...], centers[space, run, at]
            )
        shift = np.square(moved - centers).sum(axis=(2, 3))
        centers[going] = moved[going]
        n_iter += going
        going &= (shift > least) & (n_iter < max_iter)
    labels = xp.argmax(scores, axis=2)
    inertias = _inertias(ops, rows, centers, labels, weights)
    return [
        [
            Run(
                centers[s, r], labels[s, r, :], float(inertias[s, r]), int(n_iter[s, r])
            )
            for r in range(n_runs)
        ]
        for s in range(n_spaces)
    ]


def _scores(ops: Ops, columns: Tall, centers: np.ndarray) -> Tall:
    """Return scores of centres, (n_spaces, n_runs, k, n): the nearest has the largest.

    ``columns`` are the transposed rows.
    """
    n_spaces, n_runs, k, m = centers.shape
    halves = np.einsum("srkm,srkm->srk", centers, centers)[..., None] / 2
    both = np.concatenate([centers, -halves], axis=3).reshape(n_spaces, -1, m + 1)
    both = ops.to_device(both, columns)
    xp = ops.xp
    scores = xp.matmul(both[:, :, :-1], columns)
    scores += both[:, :, -1:]
    return xp.reshape(scores, (n_spaces, n_runs, k, -1))


def _members(ops: Ops, scores: Tall) -> Tall:
    """Return 1 where a score is the largest of its row."""
    xp = ops.xp
    return xp.astype(scores == xp.max(scores, axis=2, keepdims=True), scores.dtype)


def _first_members(ops: Ops, scores: Tall) -> Tall:
    """Return 1 where a score is the first of the largest of its row."""
    xp, members = ops.xp, _members(ops, scores)
    return members * xp.astype(xp.cumulative_sum(members, axis=2) == 1, members.dtype)


def _sums(ops: Ops, members: Tall, values: Tall) -> np.ndarray:
    """Return the sums of some values over the rows of each cluster."""
    xp, (n_spaces, n_runs, k, n) = ops.xp, members.shape
    members = xp.reshape(members, (n_spaces, n_runs * k, n))
    return ops.to_host(xp.matmul(members, values)).reshape(n_spaces, n_runs, k, -1)


def _inertias(
    ops: Ops, rows: Tall, centers: np.ndarray, labels: Tall, weights: Tall | None
) -> np.ndarray:
    xp, (n_spaces, n_runs, k, m) = ops.xp, centers.shape
    flat = ops.to_device(centers.reshape(-1, m), rows)
    which = ops.to_device(
        np.arange(n_spaces * n_runs).reshape(n_spaces, n_runs, 1) * k, rows
    )
    own = xp.take(flat, xp.reshape(labels + which, (-1,)), axis=0)
    left = rows[:, None, ...] - xp.reshape(own, (*labels.shape, m))
    squares = xp.sum(left * left, axis=3)
    squares = squares if weights is None else squares * weights
    return ops.to_host(xp.sum(squares, axis=2))


def _farthest(ops: Ops, rows: Tall, scores: Tall, others: np.ndarray) -> np.ndarray:
    """Return the rows that are farthest from their centres; others if none is off."""
    gaps = ops.row_dots(rows, rows) - 2 * ops.xp.max(scores, axis=0)
    far = ops.largest(gaps, len(others))
    chosen = ops.to_host(ops.few_rows(rows, far))
    gap = ops.to_host(ops.few_rows(gaps, far))
    order = np.argsort(-gap, kind="stable")
    return np.where((gap > Small.EXACT)[order, None], chosen[order], others)


def plus_plus(
    ops: Ops, rows: Tall, draws: np.ndarray, weights: Tall | None = None
) -> np.ndarray:
    """Return starts by greedy k-means++ from random numbers.

    ``draws`` is (n_spaces, n_runs, k, n_trials).
    """
    chosen = spread_rows(ops, rows, draws, weights)
    return _picked(ops, rows, chosen.reshape(len(chosen), -1)).reshape(
        *chosen.shape, -1
    )


def _picked(ops: Ops, rows: Tall, positions: np.ndarray) -> np.ndarray:
    """Return some rows of each space, (n_spaces, count, m)."""
    n_spaces, n, m = rows.shape
    flat = ops.xp.reshape(rows, (n_spaces * n, m))
    at = positions + np.arange(n_spaces)[:, None] * n
    return ops.to_host(ops.few_rows(flat, at.ravel())).reshape(*positions.shape, m)


def spread_rows(
    ops: Ops, rows: Tall, draws: np.ndarray, weights: Tall | None = None
) -> np.ndarray:
    """Return positions of rows, (n_spaces, n_runs, k), that are far from each other.

    The distances of :func:`spread` are squared Euclidean ones.
    """
    xp, (n_spaces, n, _) = ops.xp, rows.shape
    # |a - b|**2 is one product of (-2 a, 1, |a|**2) and (b, |b|**2, 1).
    lengths = xp.sum(rows * rows, axis=2, keepdims=True)
    ones = xp.ones_like(lengths)
    here = xp.concat([-2 * rows, ones, lengths], axis=2)
    there = xp.matrix_transpose(xp.concat([rows, lengths, ones], axis=2))
    flat, width = xp.reshape(here, (n_spaces * n, -1)), here.shape[2]
    # Where the rows of the space of a run begin among those of all spaces.
    first = ops.to_device(np.arange(n_spaces)[:, None, None] * n, rows)

    def gaps_to(at: Tall) -> Tall:
        tried = xp.take(flat, xp.reshape(at + first, (-1,)), axis=0)
        gaps = xp.matmul(xp.reshape(tried, (n_spaces, -1, width)), there)
        return xp.clip(xp.reshape(gaps, (*at.shape, n)), 0.0, None)

    counts = xp.ones_like(rows[0, :, 0]) if weights is None else weights
    return spread(ops, gaps_to, draws, counts)


def spread(
    ops: Ops, gaps_to: Callable[[Tall], Tall], draws: np.ndarray, counts: Tall
) -> np.ndarray:
    """Return positions of rows, (n_spaces, n_runs, k), that are far from each other.

    Each is that of a few candidates, drawn with the distance to the rows chosen before,
    which leaves the smallest sum of such distances. ``gaps_to`` takes positions,
    (n_spaces, n_runs, n_trials), and returns distances of all rows to those rows, one
    more dimension. In sums a row counts by ``counts``. Candidates are drawn along the
    order of the rows, by cumulated sums: a row twice is a row that counts twice.
    """
    xp, n = ops.xp, counts.shape[0]
    n_spaces, n_runs, k = draws.shape[:3]
    uniform = ops.to_device(draws, counts)
    runs = ops.to_device(np.arange(n_spaces * n_runs), counts)
    mass = xp.broadcast_to(counts, (n_spaces, n_runs, n))
    closest: Any = None
    chosen = []
    for step in range(k):
        mass = mass if closest is None else closest * counts
        total = xp.cumulative_sum(mass, axis=2)
        wanted = uniform[:, :, step, :] * total[:, :, -1:]
        wanted = wanted[:, :, :1] if closest is None else wanted
        below = total[:, :, None, :] <= wanted[..., None]
        at = xp.clip(xp.count_nonzero(below, axis=3), 0, n - 1)
        gaps = gaps_to(at)
        if closest is not None:
            gaps = xp.minimum(gaps, closest[:, :, None, :])
        left = xp.matmul(gaps, counts)
        # Of candidates that do as well, the first: rounding must not choose.
        least = xp.min(left, axis=2, keepdims=True)
        best = xp.argmax(xp.astype(left <= least * (1 + Small.TIE), xp.uint8), axis=2)
        best = xp.reshape(best, (-1,)) + runs * at.shape[2]
        chosen.append(xp.take(xp.reshape(at, (-1,)), best))
        closest = xp.take(xp.reshape(gaps, (-1, n)), best, axis=0)
        closest = xp.reshape(closest, (n_spaces, n_runs, n))
    return ops.to_host(xp.stack(chosen, axis=1)).reshape(n_spaces, n_runs, k)


def pivot_rows(ops: Ops, rows: Tall, k: int) -> np.ndarray:
    """Return k rows of each space that are as different as can be.

    They are the first pivots of a QR decomposition of the transposed rows: each is the
    row with the largest part that those before it do not span.
    """
    return _picked(ops, rows, pivots(ops, rows, k))


def pivots(ops: Ops, rows: Tall, k: int) -> np.ndarray:
    """Return the positions of :func:`pivot_rows`."""
    xp, (n_spaces, n, m) = ops.xp, rows.shape
    flat, first = (
        xp.reshape(rows, (-1, m)),
        ops.to_device(np.arange(n_spaces) * n, rows),
    )
    left = xp.reshape(ops.row_dots(flat, flat), (n_spaces, n))
    # Rows may all have unit norm: the first of them, not the one rounding has raised.
    most = xp.clip(xp.max(left, axis=1, keepdims=True), Small.TINY, None)
    left = xp.round(left / most / Small.TIE) * (most * Small.TIE)
    # A Cholesky decomposition of the rows' products, of which a column is made at a
    # time: what it leaves on the diagonal is what the pivots do not span.
    factor = xp.zeros_like(rows[:, :, :1])
    chosen = []
    for _ in range(k):
        at = xp.argmax(left, axis=1)
        here = at + first
        column = xp.matmul(rows, xp.take(flat, here, axis=0)[:, :, None])
        known = xp.take(xp.reshape(factor, (n_spaces * n, -1)), here, axis=0)
        column = column - xp.matmul(factor, known[:, :, None])
        # Beyond the rank of the rows nothing is left but rounding, and no direction.
        top = xp.maximum(xp.max(left, axis=1, keepdims=True), Small.EXACT * most)
        column = column / xp.sqrt(top)[:, :, None]
        factor = xp.concat([factor, column], axis=2)
        left = left - column[:, :, 0] ** 2
        chosen.append(at)
    return ops.to_host(xp.stack(chosen, axis=1))


def sample(ops: Ops, rows: Tall, size: int, rng: np.random.Generator) -> Tall:
    """Return so many rows drawn at random, or all where they are no more."""
    n = rows.shape[0]
    if n <= size:
        return rows
    return ops.few_rows(rows, sampled(n, size, rng))


def _same(first: float, second: float) -> bool:
    """Tell whether runs of such inertias ended in the same place."""
    return first <= second * (1 + Small.TIE)


def is_settled(runs: list[Run]) -> bool:
    """Tell whether three starts have ended in the best place: no other is likely."""
    best = min(run.inertia for run in runs)
    return sum(_same(run.inertia, best) for run in runs) >= Labelling.AGREEING


def _all_shown(ops: Ops, trial: Tall, pivots: np.ndarray) -> bool:
    """Tell whether each pivot is nearest to eight rows of the trial, or more.

    With fewer, it may know of a cluster too small to show there.
    """
    centers = pivots[None, None].astype(np.float64)
    members = _members(ops, _scores(ops, trial.T[None, ...], centers))
    return bool(ops.to_host(ops.xp.sum(members, axis=3)).min() >= Labelling.SHOWN)


def _finalists(runs: list[Run], n_rows: int) -> list[Run]:
    """Keep the best run and those that differ from it but are within five percent.

    Together they see 2**16 rows at most, unless that is less than two runs.
    """
    most = max(2, Labelling.FINAL_ROWS // n_rows)
    runs = sorted(runs, key=attrgetter("inertia"))
    kept = runs[:1]
    for run in runs[1:]:
        near = run.inertia <= Labelling.NEARLY * runs[0].inertia
        if near and not _same(run.inertia, kept[-1].inertia) and len(kept) < most:
            kept.append(run)
    return kept
