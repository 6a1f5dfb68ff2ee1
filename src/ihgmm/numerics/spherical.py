"""Spherical k-means: k-means by cosine, for unit rows and unit centres.

An iteration goes through the rows once. Runs from several starts go side by side, their
centres in one product; centres are NumPy arrays on the host, (n_runs, k, n_features).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ihgmm.matrix import HOST, Matrix, Ops, Tall
from ihgmm.policy import Labelling, Small


class Spherical(NamedTuple):
    """Where one run of spherical k-means has ended."""

    labels: Tall  # the nearest centre of each row, where the data are
    centers: np.ndarray  # of unit length
    inertia: float  # weighted sum of 1 - cosine over the rows
    n_iter: int  # iterations


def spherical_kmeans(
    X: Matrix,
    n_clusters: int,
    *,
    init: np.ndarray | None = None,
    n_init: int = 1,
    max_iter: int = 300,
    tol: float = 1e-4,
    max_seed_rows: int = 2**13,
    rng: np.random.Generator,
) -> Spherical:
    """Cluster the directions of rows; X is never copied to be normalised.

    The best of ``n_init`` k-means++ starts by cosine is kept, unless there are centres
    to start from. Starting centres are looked for among ``max_seed_rows`` rows, or 64
    for each if that is more. A run ends when no centre turns by more than ``tol``
    radians. Rows may have weights.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.matrix import as_matrix
    >>> from ihgmm.metrics import misclassification_rate
    >>> X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    >>> from ihgmm.numerics.spherical import spherical_kmeans
    >>> rng = np.random.default_rng(0)
    >>> found = spherical_kmeans(as_matrix(X), 3, n_init=5, rng=rng)
    >>> misclassification_rate(kinds, found.labels)
    0.0
    """
    # Side by side, as long as neither products nor centres take more memory than X.
    step = max(1, X.n_entries // (max(X.shape) * n_clusters))
    with X.threads():
        if init is not None:
            starts = iter([HOST.unit_rows(init)[None]])
        else:
            most = max(max_seed_rows, Labelling.ROWS_A_CLUSTER * n_clusters)
            starts = _plus_plus(X, n_clusters, n_init, step, most, rng)
        runs = [run for few in starts for run in _lloyd(X, few, max_iter, tol)]
    # Runs that end in the same place differ by rounding, which must not choose.
    least = min(run.inertia for run in runs)
    return next(run for run in runs if run.inertia <= least * (1 + 1e-5))


def nearest_centers(X: Matrix, centers: np.ndarray) -> tuple[Tall, np.ndarray]:
    """Return the nearest centre of each row, (n, n_runs), and the inertia of runs."""
    (labels,), (inertias,) = X.sweep(partial(_place, centers), X.sqnorms, X.weights)
    return labels, inertias


def _lloyd(
    X: Matrix, centers: np.ndarray, max_iter: int, tol: float
) -> list[Spherical]:
    n_iter = np.zeros(len(centers), dtype=int)
    going = np.ones(len(centers), dtype=bool)
    while going.any():
        before = centers[going]
        _, (sums,) = X.sweep(partial(_move, before), X.sqnorms, X.weights)
        after = HOST.unit_rows(sums.T).reshape(before.shape)
        for run in np.flatnonzero(~after.any(axis=2).all(axis=1)):
            empty = ~after[run].any(axis=1)
            after[run, empty] = _worst_rows(X, before[run], empty)
        turns = np.linalg.norm(after - before, axis=2).max(axis=1)
        centers[going] = after
        n_iter += going
        going[going] = (turns > tol) & (n_iter[going] < max_iter)
    labels, inertias = nearest_centers(X, centers)
    return [
        Spherical(labels[:, i], centers[i], float(inertias[i]), int(n_iter[i]))
        for i in range(len(centers))
    ]


def _worst_rows(X: Matrix, centers: np.ndarray, empty: np.ndarray) -> np.ndarray:
    """Return new centres for empty clusters: the unit rows that fit worst.

    Where every row sits on a centre they are those of before.
    """
    (misfits,), _ = X.sweep(partial(_misfits, centers), X.sqnorms, X.weights)
    ops = X.ops
    far = np.sort(ops.largest(misfits, int(empty.sum())))
    gaps = ops.to_host(ops.few_rows(misfits, far))
    far = far[np.argsort(-gaps, kind="stable")]
    lost = gaps.min() <= Small.EXACT
    return centers[empty] if lost else HOST.unit_rows(ops.to_host(X.rows(far)))


# The work on a block of rows. Runs are side by side.


def _nearest(centers: np.ndarray, block: Matrix) -> tuple[Tall, Tall]:
    """Return products with centres, a line for each run of each row; the largest."""
    n_runs, k, p = centers.shape
    products = block @ centers.reshape(-1, p).T
    xp = block.ops.xp
    products = xp.reshape(products, (block.shape[0] * n_runs, k))
    return products, xp.argmax(products, axis=1)


def _move(
    centers: np.ndarray, block: Matrix, sqnorms: Tall, weights: Tall | None
) -> tuple[tuple[()], tuple[Tall]]:
    """Return sums of unit rows for each cluster, a column each."""
    n_runs, k, _ = centers.shape
    ops = block.ops
    counts = block.cast(_counted(_inverse(ops, sqnorms), weights))
    members = ops.one_hot(_nearest(centers, block)[1], k, counts)
    members = ops.xp.reshape(members, (block.shape[0], n_runs * k))
    return (), (block.adjoint(members * counts[:, None]),)


def _place(
    centers: np.ndarray, block: Matrix, sqnorms: Tall, weights: Tall | None
) -> tuple[tuple[Tall], tuple[Tall]]:
    """Return the labels of rows and the inertia, a column for each run."""
    products, labels = _nearest(centers, block)
    ops, shape = block.ops, (block.shape[0], len(centers))
    xp = ops.xp
    best = xp.reshape(ops.widen(ops.pick(products, labels)), shape)
    gaps = 1.0 - ops.clip(best * _inverse(ops, sqnorms)[:, None], None, 1.0)
    gaps = gaps if weights is None else gaps * weights[:, None]
    return (xp.reshape(labels, shape),), (xp.sum(gaps, axis=0),)


def _misfits(
    centers: np.ndarray, block: Matrix, sqnorms: Tall, weights: Tall | None
) -> tuple[tuple[Tall], tuple[()]]:
    """Return how badly rows fit their nearest centre; 0 for zero rows."""
    ops = block.ops
    best = ops.widen(ops.pick(*_nearest(centers[None], block)))
    gaps = ops.clip(1.0 - best * _inverse(ops, sqnorms), 0.0, None)
    live = ops.xp.astype(sqnorms > 0, gaps.dtype)
    return (_counted(gaps, weights) * live,), ()


def _inverse(ops: Ops, sqnorms: Tall) -> Tall:
    """Return one over the length of rows; 0 for zero rows."""
    return ops.ratio(1.0, ops.xp.sqrt(sqnorms))


def _counted(values: Tall, weights: Tall | None) -> Tall:
    return values if weights is None else values * weights


def _plus_plus(
    X: Matrix, k: int, n_runs: int, step: int, most: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield starting centres of so many runs at a time, by greedy k-means++.

    The distance is ``1 - cosine``, the rows are ``most`` of X in memory or all.
    Rows are drawn along a random direction, so that neither the order of the rows nor
    writing a row twice instead of giving it weight two changes the choice.
    """
    direction = rng.standard_normal((X.shape[1], 1))
    # More starts begin with the same as fewer.
    draws = rng.random((n_runs, k, 2 + int(np.log(k))))
    drawn = X.ops.draw_rows(X.sqnorms > 0, most, rng)
    few = X.take(drawn)
    ops = few.ops
    along = (few @ direction)[:, 0] * few.cast(_inverse(ops, few.sqnorms))
    order = np.argsort(ops.to_host(along), kind="stable")
    few, drawn = few.take(order), drawn[order]
    inverse = _inverse(ops, few.sqnorms)
    xp, counts = ops.xp, ops.xp.ones_like(inverse)
    if X.weights is not None:
        counts = few.to_device(X.ops.to_host(X.ops.few_rows(X.weights, drawn)))

    def unit(at: np.ndarray) -> np.ndarray:
        return HOST.unit_rows(ops.to_host(few.rows(at.ravel())))

    def gaps_to(at: Tall) -> Any:
        """Return ``1 - cosine`` of every row with those at some positions."""
        cosines = ops.widen(few @ unit(ops.to_host(at)).T) * inverse[:, None]
        gaps = ops.clip(1.0 - cosines, 0.0, None)
        return xp.reshape(xp.matrix_transpose(gaps), (*at.shape, -1))

    for i in range(0, n_runs, step):
        chosen = _spread(ops, gaps_to, draws[i : i + step], counts)
        yield unit(chosen).reshape(*chosen.shape, -1)


def _spread(
    ops: Ops, gaps_to: Callable[[Tall], Tall], draws: np.ndarray, counts: Tall
) -> np.ndarray:
    """Return positions of rows, (n_runs, k), that are far from each other.

    Each is that of a few candidates, drawn with the distance to the rows chosen before,
    which leaves the smallest sum of such distances. ``gaps_to`` takes positions,
    (n_runs, n_trials), and returns distances of all rows to those rows, one more
    dimension. In sums a row counts by ``counts``. Candidates are drawn along the order
    of the rows, by cumulated sums: a row twice is a row that counts twice.
    """
    xp, n, (n_runs, k, _) = ops.xp, counts.shape[0], draws.shape
    uniform = ops.to_device(draws, counts)
    runs = ops.to_device(np.arange(n_runs), counts)
    mass = xp.broadcast_to(counts, (n_runs, n))
    closest: Any = None
    chosen = []
    for step in range(k):
        mass = mass if closest is None else closest * counts
        total = xp.cumulative_sum(mass, axis=1)
        wanted = uniform[:, step, :] * total[:, -1:]
        wanted = wanted[:, :1] if closest is None else wanted
        below = total[:, None, :] <= wanted[..., None]
        at = xp.clip(xp.count_nonzero(below, axis=2), 0, n - 1)
        gaps = gaps_to(at)
        if closest is not None:
            gaps = xp.minimum(gaps, closest[:, None, :])
        left = xp.matmul(gaps, counts)
        # Of candidates that do as well, the first: rounding must not choose.
        least = xp.min(left, axis=1, keepdims=True)
        best = xp.argmax(xp.astype(left <= least * (1 + Small.TIE), xp.uint8), axis=1)
        best = best + runs * at.shape[1]
        chosen.append(xp.take(xp.reshape(at, (-1,)), best))
        closest = xp.take(xp.reshape(gaps, (-1, n)), best, axis=0)
    return ops.to_host(xp.stack(chosen, axis=1))
