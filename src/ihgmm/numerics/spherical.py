"""Spherical k-means: k-means by cosine, for unit rows and unit centres.

Runs from several starts go side by side, their centres in one product with the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from ihgmm.matrix import HOST, Matrix, Tall
from ihgmm.policy import Labelling, Small


@dataclass(frozen=True, eq=False)
class SphericalFit:
    """Where one run of spherical k-means has ended."""

    labels: Tall  # (n,): the nearest centre of each row, where the data are
    centers: np.ndarray  # (k, p), of unit length
    inertia: float  # weighted sum of 1 - cosine over the rows
    n_iter: int


def spherical_kmeans(
    X: Matrix,
    n_clusters: int,
    *,
    init: np.ndarray | None = None,
    n_init: int = 1,
    max_iter: int = 300,
    tol: float = 1e-4,
    rng: np.random.Generator,
) -> SphericalFit:
    """Cluster the directions of rows, which may have weights; X is never copied.

    The best of ``n_init`` k-means++ starts by cosine is kept, unless there are centres
    to start from, (k, p). A run ends when no centre turns by more than ``tol`` radians.
    """
    with X.threads():
        if init is not None:
            starts = iter([HOST.unit_rows(init)[None]])
        else:
            starts = _starts(X, n_clusters, n_init, rng)
        fits = [fit for centers in starts for fit in _run(X, centers, max_iter, tol)]

    # Runs that end in the same place differ by rounding, which must not choose.
    least_inertia = min(fit.inertia for fit in fits)
    limit = least_inertia * Labelling.SAME_END
    return next(fit for fit in fits if fit.inertia <= limit)


def _starts(
    X: Matrix, k: int, n_init: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield starting centres, (n_runs, k, p), of some runs at a time.

    Runs go side by side as long as neither products nor centres take more memory than
    X.
    """
    n_side_by_side = max(1, X.n_entries // (max(X.shape) * k))
    seeds = _draw_seed_rows(X, k, n_init, rng)
    chosen = _plus_plus(seeds, k, n_init)
    for start in range(0, n_init, n_side_by_side):
        rows = chosen[start : start + n_side_by_side]  # (n_runs, k)
        yield seeds.unit_rows(rows.ravel()).reshape(*rows.shape, X.shape[1])


def _run(
    X: Matrix, centers: np.ndarray, max_iter: int, tol: float
) -> list[SphericalFit]:
    """Run iterations from centres of unit length, (n_runs, k, p)."""
    fits: dict[int, SphericalFit] = {}
    runs = np.arange(len(centers))  # numbers of those that go on
    largest_turns = np.full(len(centers), np.inf)  # of any centre, in the last step
    n_iter = 0

    # Not the loop of `iterate`: runs share each reading of X, and end one by one.
    while len(runs):
        assignment = _assign(X, centers)
        has_ended = (largest_turns <= tol) | (n_iter == max_iter)
        for i in np.flatnonzero(has_ended):
            fits[int(runs[i])] = SphericalFit(
                labels=assignment.labels[:, i],
                centers=centers[i],
                inertia=float(assignment.inertias[i]),
                n_iter=n_iter,
            )

        moved = HOST.unit_rows(assignment.sums.T).reshape(centers.shape)
        is_empty = ~moved.any(axis=2)  # (n_runs, k)
        for i in np.flatnonzero(is_empty.any(axis=1) & ~has_ended):
            misfits = assignment.misfits[:, i]
            lost_centers = centers[i, is_empty[i]]
            moved[i, is_empty[i]] = _replacements(X, misfits, lost_centers)

        turns = np.linalg.norm(moved - centers, axis=2).max(axis=1)
        goes_on = ~has_ended
        runs = runs[goes_on]
        centers = moved[goes_on]
        largest_turns = turns[goes_on]
        n_iter += 1
    return [fits[run] for run in sorted(fits)]


@dataclass(frozen=True, eq=False)
class _Assignment:
    """Rows at their nearest centres, in each of some runs."""

    labels: Tall  # (n, n_runs)
    misfits: Tall  # (n, n_runs): weighted 1 - cosine with the nearest centre
    sums: np.ndarray  # (p, n_runs * k): weighted sums of the unit rows of each cluster
    inertias: np.ndarray  # (n_runs,): sums of misfits


def _assign(X: Matrix, centers: np.ndarray) -> _Assignment:
    """Assign rows to the nearest of the centres, (n_runs, k, p), in one reading."""
    work = partial(_assign_block, centers)
    (labels, misfits), (sums, inertias) = X.sweep(work, X.sqnorms, X.weights)
    return _Assignment(labels=labels, misfits=misfits, sums=sums, inertias=inertias)


def _assign_block(
    centers: np.ndarray, block: Matrix, sqnorms: Tall, weights: Tall | None
) -> tuple[tuple[Tall, Tall], tuple[Tall, Tall]]:
    """Return labels and misfits of rows; of runs, sums of unit rows and inertias."""
    ops = block.ops
    xp = ops.xp
    n_rows = block.shape[0]
    n_runs, k, p = centers.shape

    products = block @ centers.reshape(-1, p).T
    products = xp.reshape(products, (n_rows * n_runs, k))
    labels = xp.argmax(products, axis=1)
    best_products = ops.widen(ops.pick(products, labels))
    best_products = xp.reshape(best_products, (n_rows, n_runs))

    factors = ops.ratio(1.0, xp.sqrt(sqnorms))  # which bring rows to unit length
    misfits = 1.0 - ops.clip(best_products * factors[:, None], None, 1.0)
    if weights is not None:
        factors = factors * weights
        misfits = misfits * weights[:, None]

    factors = block.cast(factors)
    members = xp.reshape(ops.one_hot(labels, k, factors), (n_rows, n_runs * k))
    sums = block.adjoint(members * factors[:, None])
    labels = xp.reshape(labels, (n_rows, n_runs))
    return (labels, misfits), (sums, xp.sum(misfits, axis=0))


def _replacements(X: Matrix, misfits: Tall, lost_centers: np.ndarray) -> np.ndarray:
    """Return new centres of empty clusters: the rows that fit worst, if any do.

    ``misfits``, (n,), are those of rows; ``lost_centers``, (n_empty, p), stay where all
    rows fit.
    """
    ops = X.ops
    misfits = misfits * ops.xp.astype(X.is_nonzero_row, misfits.dtype)
    worst_rows = np.sort(ops.largest(misfits, len(lost_centers)))
    largest_misfits = ops.to_host(ops.take_rows(misfits, worst_rows))
    if largest_misfits.min() <= Small.EXACT:
        return lost_centers

    worst_first = np.argsort(-largest_misfits, kind="stable")
    return HOST.unit_rows(ops.to_host(X.rows(worst_rows[worst_first])))


@dataclass(frozen=True, eq=False)
class _SeedRows:
    """Rows among which starting centres are looked for, and what draws them.

    They are sorted along a random direction: neither their order in the data nor a row
    written twice instead of counted twice changes which are drawn.
    """

    matrix: Matrix  # (s, p)
    lengths: np.ndarray  # (s,)
    weights: np.ndarray  # (s,)
    draws: np.ndarray  # (n_runs, k, n_candidates): between 0 and 1

    def unit_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return rows at some positions, at unit length."""
        return HOST.unit_rows(self.matrix.ops.to_host(self.matrix.rows(rows)))

    def misfits(self, rows: np.ndarray) -> np.ndarray:
        """Return 1 - cosine of rows at some positions with each row, (len(rows), s)."""
        ops = self.matrix.ops
        products = ops.to_host(self.matrix @ self.unit_rows(rows).T)  # (s, len(rows))
        cosines = products.T / self.lengths
        return np.clip(1.0 - cosines, 0.0, None)


def _draw_seed_rows(
    X: Matrix, k: int, n_runs: int, rng: np.random.Generator
) -> _SeedRows:
    """Draw rows that are not zero, to start from, and the numbers that choose some."""
    direction = rng.standard_normal((X.shape[1], 1))
    # More starts begin with the same as fewer.
    draws = rng.random((n_runs, k, 2 + int(np.log(k))))
    most_rows = max(Labelling.SEED_ROWS, Labelling.ROWS_A_CLUSTER * k)
    rows = X.ops.draw_rows(X.is_nonzero_row, most_rows, rng)

    matrix = X.take(rows)
    ops = matrix.ops
    lengths = np.sqrt(ops.to_host(matrix.sqnorms))
    places = ops.to_host(matrix @ direction)[:, 0] / lengths
    order = np.argsort(places, kind="stable")

    weights = np.ones(len(rows))
    if X.weights is not None:
        weights = X.ops.to_host(X.ops.take_rows(X.weights, rows[order]))
    return _SeedRows(
        matrix=matrix.take(order),
        lengths=lengths[order],
        weights=weights,
        draws=draws,
    )


def _plus_plus(seeds: _SeedRows, k: int, n_runs: int) -> np.ndarray:
    """Choose rows to start from by greedy k-means++; return positions, (n_runs, k).

    Each is the one of a few candidates, drawn by ``1 - cosine`` to those before, which
    leaves the smallest sum of these.
    """
    n = len(seeds.lengths)
    runs = np.arange(n_runs)
    chosen = np.empty((n_runs, k), dtype=np.intp)
    closest = np.full((n_runs, n), 2.0)  # 1 - cosine with the nearest; none is larger
    for i in range(k):
        n_candidates = None if i else 1
        cumulated = np.cumsum(closest * seeds.weights, axis=1)
        targets = seeds.draws[:, i, :n_candidates] * cumulated[:, -1:]
        candidates = np.array(
            [np.searchsorted(cumulated[r], targets[r], "right") for r in runs]
        )
        candidates = np.minimum(candidates, n - 1)  # (n_runs, n_candidates)

        misfits = seeds.misfits(candidates.ravel()).reshape(*candidates.shape, n)
        misfits = np.minimum(misfits, closest[:, None, :])
        sums = misfits @ seeds.weights  # (n_runs, n_candidates)
        # Of candidates that do as well, the first: rounding must not choose.
        is_best = sums <= sums.min(axis=1, keepdims=True) * (1 + Small.TIE)
        best = np.argmax(is_best, axis=1)
        chosen[:, i] = candidates[runs, best]
        closest = misfits[runs, best]
    return chosen
