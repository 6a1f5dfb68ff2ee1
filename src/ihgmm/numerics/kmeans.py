"""K-means on rows of an embedding, wherever they are.

Several runs go side by side: arrays have a line for each run, each row and each centre.
Rows stay where they are, centres are NumPy arrays on the host. A device works on all
runs at once; a host on one at a time, which may then be the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import numpy as np

from ihgmm.matrix.tall import (
    Tall,
    few_rows,
    largest,
    namespace,
    row_dots,
    side_by_side,
    stack,
    to_device,
    to_host,
)
from ihgmm.matrix.threads import one_thread


class Run(NamedTuple):
    """Where one run of k-means has ended."""

    centers: np.ndarray  # (k, m)
    labels: Tall  # the nearest centre of each row
    inertia: float  # weighted sum of squared distances to it
    n_iter: int  # how often centres have moved


def kmeans_runs(
    rows: Tall,
    n_clusters: int,
    *,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    full_trials: int = 10_000,
    until_settled: bool = False,
    weights: Tall | None = None,
    rng: np.random.Generator,
) -> list[Run]:
    """Run k-means, started well; return runs, the best first.

    The first of ``n_init`` starts is the pivoted QR of the rows, the others are
    k-means++; "auto" means 1 + 10. Beyond ``full_trials`` rows the starts compete on a
    sample of the rows, until three have ended in the same best place; those that end in
    different places, nearly as good as the best, go on. With ``until_settled``, starts
    end as soon on all rows. Runs that end in the same place are returned once.
    """
    n, starts = rows.shape[0], 1 + 10 if n_init == "auto" else n_init
    trial, trial_weights = rows, weights
    on_sample = n > full_trials
    settle = n_init == "auto" and (on_sample or until_settled)
    if on_sample:
        size = int(np.clip(64 * n_clusters, 1_000, full_trials))
        drawn = rng.choice(n, size, replace=False, shuffle=False)
        trial = few_rows(rows, drawn)
        trial_weights = None if weights is None else few_rows(weights, drawn)
    pivots = sample(rows, 2**12, rng)
    # Drawn at once: the same whether runs go side by side, or one ends the search.
    draws = rng.random((starts - 1, n_clusters, _n_trials(n_clusters)))
    # One thread: the order of sums, and so the labels, never depend on how many there
    # are.
    with one_thread():
        start = to_host(few_rows(pivots, pivot_rows(pivots, n_clusters)))
        # Only runs to the very end show whether they meet in the same place.
        tol = 0.0 if on_sample or settle else 1e-5
        first = lloyd(trial, start[None], trial_weights, max_iter=max_iter, tol=tol)
        more = _from_draws(trial, draws, trial_weights, max_iter=max_iter, tol=tol)
        runs = first
        for run in more:
            runs.append(run)
            if settle and is_settled(runs):
                break
        if on_sample:
            finals = [final.centers for final in _finalists(runs, n)]
            if not (is_settled(runs) and _all_shown(trial, start)):
                finals.append(start)
            # To the tolerance of most libraries.
            step = side_by_side(rows, len(finals))
            runs = [
                run
                for i in range(0, len(finals), step)
                for run in lloyd(
                    rows,
                    np.array(finals[i : i + step]),
                    weights,
                    max_iter=max_iter,
                    tol=1e-4,
                )
            ]
    return distinct(runs)


def distinct(runs: list[Run]) -> list[Run]:
    """Return runs by their inertia, those that ended in the same place once."""
    runs = sorted(runs, key=attrgetter("inertia"))
    return runs[:1] + [
        run for before, run in pairwise(runs) if not _same(run.inertia, before.inertia)
    ]


def _from_draws(
    rows: Tall, draws: np.ndarray, weights: Tall | None, **options: Any
) -> Iterator[Run]:
    """Yield runs from k-means++ starts, one for each line of random numbers."""
    step = side_by_side(rows, len(draws))
    for first in range(0, len(draws), max(step, 1)):
        starts = plus_plus(rows, draws[first : first + step], weights)
        yield from lloyd(rows, starts, weights, **options)


def lloyd(
    rows: Tall,
    starts: np.ndarray,
    weights: Tall | None = None,
    *,
    max_iter: int = 300,
    tol: float = 0.0,
) -> list[Run]:
    """Run Lloyd's iterations from starts of shape (n_runs, k, m).

    A run ends when its centres, all together, move by no more than ``tol`` times the
    mean variance of a column, squared. A centre that lost all its rows goes to the row
    that is farthest from its own.
    """
    xp, (n_runs, _, m) = namespace(rows), starts.shape
    # Sums and sizes of clusters come from one product.
    values = xp.concat([rows, xp.ones_like(rows[:, :1])], axis=1)
    if weights is not None:
        values = values * weights[:, None]
    all_rows = n_runs * float(xp.sum(values[:, m]))
    least = tol * _mean_variance(rows) if tol else 0.0
    centers = starts.astype(np.float64)
    n_iter, going = np.zeros(n_runs, dtype=int), np.ones(n_runs, dtype=bool)
    while True:
        scores = _scores(rows, centers)
        if not going.any():
            break
        sums = to_host(xp.matmul(_members(scores), values))
        if sums[:, :, m].sum() > all_rows * (1 + 1e-9):  # some are as near to others
            sums = to_host(xp.matmul(_first_members(scores), values))
        moved = sums[:, :, :m] / np.where(sums[:, :, m:] > 0, sums[:, :, m:], 1.0)
        for run in np.flatnonzero((sums[:, :, m] <= 0).any(axis=1) & going):
            lost = np.flatnonzero(sums[run, :, m] <= 0)
            moved[run, lost] = _farthest(rows, scores[run, ...], centers[run, lost])
        shift = np.square(moved - centers).sum(axis=(1, 2))
        centers[going] = moved[going]
        n_iter += going
        going &= (shift > least) & (n_iter < max_iter)
    labels = xp.argmax(scores, axis=1)
    inertias = _inertias(rows, centers, labels, weights)
    return [
        Run(*run)
        for run in zip(centers, labels, inertias.tolist(), n_iter.tolist(), strict=True)
    ]


def _scores(rows: Tall, centers: np.ndarray) -> Tall:
    """Return scores of centres, (n_runs, k, n): the nearest one has the largest."""
    halves = np.einsum("bkm,bkm->bk", centers, centers)[:, :, None] / 2
    both = to_device(np.concatenate([centers, -halves], axis=2), rows)
    scores = namespace(rows).matmul(both[:, :, :-1], rows.T)
    scores += both[:, :, -1:]
    return scores


def _members(scores: Tall) -> Tall:
    """Return 1 where a score is the largest of its row."""
    xp = namespace(scores)
    return xp.astype(scores == xp.max(scores, axis=1)[:, None, :], scores.dtype)


def _first_members(scores: Tall) -> Tall:
    """Return 1 where a score is the first of the largest of its row."""
    xp, members = namespace(scores), _members(scores)
    first = xp.cumulative_sum(members, axis=1) == 1
    return members * xp.astype(first, scores.dtype)


def _inertias(
    rows: Tall, centers: np.ndarray, labels: Tall, weights: Tall | None
) -> np.ndarray:
    xp = namespace(rows)
    found = []
    for run, own in enumerate(labels):
        left = rows - xp.take(to_device(centers[run], rows), own, axis=0)
        squares = row_dots(left, left)
        found.append(xp.sum(squares if weights is None else squares * weights))
    return to_host(xp.stack(found))


def _farthest(rows: Tall, scores: Tall, others: np.ndarray) -> np.ndarray:
    """Return the rows that are farthest from their centres; others if none is off."""
    gaps = row_dots(rows, rows) - 2 * namespace(scores).max(scores, axis=0)
    far = largest(gaps, len(others))
    chosen, gap = to_host(few_rows(rows, far)), to_host(few_rows(gaps, far))
    order = np.argsort(-gap, kind="stable")
    return np.where((gap > 1e-12)[order, None], chosen[order], others)


def _mean_variance(rows: Tall) -> float:
    xp = namespace(rows)
    return float(xp.mean(xp.var(rows, axis=0)))


def _n_trials(k: int) -> int:
    """Return from how many candidates a centre is chosen, as is usual."""
    return 2 + int(np.log(k))


def plus_plus(rows: Tall, draws: np.ndarray, weights: Tall | None = None) -> np.ndarray:
    """Return starts by greedy k-means++, from random numbers (n_runs, k, n_trials)."""
    chosen = spread_rows(rows, draws, weights)
    return to_host(few_rows(rows, chosen.ravel())).reshape(*chosen.shape, -1)


def spread_rows(
    rows: Tall, draws: np.ndarray, weights: Tall | None = None
) -> np.ndarray:
    """Return positions of rows, (n_runs, k), that are far from each other.

    Each is that of a few candidates, drawn with the squared distance to the rows chosen
    before, which leaves the smallest sum of such distances.
    """
    xp, n, n_runs = namespace(rows), rows.shape[0], draws.shape[0]
    squares, uniform = row_dots(rows, rows), to_device(draws, rows)
    before = to_device(np.arange(n_runs)[:, None] * n, rows)
    counts = xp.ones_like(squares) if weights is None else weights
    closest: Any = None
    chosen = []
    for step in range(draws.shape[1]):
        mass = counts if closest is None else closest * counts
        mass = xp.reshape(xp.broadcast_to(mass, (n_runs, n)), (-1,))
        total = xp.cumulative_sum(mass)  # of all runs, one after the other
        ends = xp.reshape(total, (n_runs, n))[:, -1:]
        begins = xp.concat([xp.zeros_like(ends[:1, :]), ends[:-1, :]])
        wanted = begins + uniform[:, step, :] * (ends - begins)
        at = xp.searchsorted(total, xp.reshape(wanted, (-1,)), side="right")
        at = xp.clip(xp.reshape(at, wanted.shape) - before, 0, n - 1)
        at = at[:, :1] if closest is None else at
        tried = xp.take(rows, xp.reshape(at, (-1,)), axis=0)
        tried = xp.reshape(tried, (*at.shape, rows.shape[1]))
        gaps = squares - 2 * xp.matmul(tried, rows.T)
        gaps = xp.clip(gaps + xp.sum(tried * tried, axis=2)[:, :, None], 0.0, None)
        if closest is not None:
            gaps = xp.minimum(gaps, closest[:, None, :])
        left = xp.matmul(gaps, counts)
        best = _first_members(-left[:, :, None])[:, :, 0]
        closest = xp.sum(gaps * best[:, :, None], axis=1)
        chosen.append(xp.sum(at * xp.astype(best, at.dtype), axis=1))
    return to_host(xp.stack(chosen, axis=1))


def pivot_rows(rows: Tall, k: int) -> np.ndarray:
    """Return the positions of k rows that are as different as can be.

    They are the first pivots of a QR decomposition of the transposed rows: each is the
    row with the largest part that those before it do not span.
    """
    xp = namespace(rows)
    left, places = row_dots(rows, rows), to_device(np.arange(rows.shape[0]), rows)
    basis = xp.zeros_like(rows[:1, :])
    chosen = []
    for _ in range(k):
        at = xp.reshape(xp.argmax(left), (1,))
        row = xp.take(rows, at, axis=0)
        for _ in range(2):  # once would leave rounding of the order of the row
            row = row - (row @ basis.T) @ basis
        row = row / xp.clip(xp.sqrt(xp.sum(row * row)), 1e-300, None)
        basis = xp.concat([basis, row])
        left = left - (rows @ row[0, :]) ** 2
        left = xp.where(places == at, -xp.ones_like(left), left)
        chosen.append(at)
    return to_host(stack(chosen))


def sample(rows: Tall, size: int, rng: np.random.Generator) -> Tall:
    """Return so many rows drawn at random, or all where they are no more."""
    n = rows.shape[0]
    if n <= size:
        return rows
    return few_rows(rows, rng.choice(n, size, replace=False, shuffle=False))


def _same(first: float, second: float) -> bool:
    """Tell whether runs of such inertias ended in the same place."""
    return first <= second * (1 + 1e-9)


def is_settled(runs: list[Run]) -> bool:
    """Tell whether three starts have ended in the best place: no other is likely."""
    best = min(run.inertia for run in runs)
    return sum(_same(run.inertia, best) for run in runs) >= 3


def _all_shown(trial: Tall, pivots: np.ndarray) -> bool:
    """Tell whether each pivot is nearest to eight rows of the trial, or more.

    With fewer, it may know of a cluster too small to show there.
    """
    members = _members(_scores(trial, pivots[None].astype(np.float64)))
    return bool(to_host(namespace(members).sum(members, axis=2)).min() >= 8)


def _finalists(runs: list[Run], n_rows: int) -> list[Run]:
    """Keep the best run and those that differ from it but are within five percent.

    Together they see 2**16 rows at most, unless that is less than two runs.
    """
    most = max(2, 2**16 // n_rows)
    runs = sorted(runs, key=attrgetter("inertia"))
    kept = runs[:1]
    for run in runs[1:]:
        near = run.inertia <= 1.05 * runs[0].inertia
        if near and not _same(run.inertia, kept[-1].inertia) and len(kept) < most:
            kept.append(run)
    return kept
