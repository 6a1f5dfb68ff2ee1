"""Spherical k-means: k-means by cosine, for unit rows and unit centres.

Runs from several starts go side by side, their centres in one product with the rows.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ihgmm.matrix import HOST, Matrix, Tall
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
    rng: np.random.Generator,
) -> Spherical:
    """Cluster the directions of rows, which may have weights; X is never copied.

    The best of ``n_init`` k-means++ starts by cosine is kept, unless there are centres
    to start from. A run ends when no centre turns by more than ``tol`` radians.
    """
    # Side by side, as long as neither products nor centres take more memory than X.
    step = max(1, X.n_entries // (max(X.shape) * n_clusters))
    with X.threads():
        starts = _plus_plus(X, n_clusters, n_init, step, rng)
        if init is not None:
            starts = iter([HOST.unit_rows(init)[None]])
        runs = [run for several in starts for run in _run(X, several, max_iter, tol)]
    # Runs that end in the same place differ by rounding, which must not choose.
    least = min(run.inertia for run in runs)
    return next(run for run in runs if run.inertia <= least * Labelling.SAME_END)


def _run(X: Matrix, centers: np.ndarray, max_iter: int, tol: float) -> list[Spherical]:
    """Run iterations from centres of unit length, (n_runs, k, n_features)."""
    going, turns, n_iter = np.arange(len(centers)), np.full(len(centers), np.inf), 0
    ops, ends = X.ops, dict[int, Spherical]()

    def look(block: Matrix, sqnorms: Tall, weights: Tall | None) -> Any:
        """Return labels and misfits of rows; of runs, sums of rows and inertias."""
        ops, xp, (n_runs, k, p) = block.ops, block.ops.xp, centers.shape
        lines, shape = block.shape[0] * n_runs, (block.shape[0], n_runs)
        products = xp.reshape(block @ centers.reshape(-1, p).T, (lines, k))
        labels = xp.argmax(products, axis=1)
        best = xp.reshape(ops.widen(ops.pick(products, labels)), shape)
        shares = ops.ratio(1.0, xp.sqrt(sqnorms))
        gaps = 1.0 - ops.clip(best * shares[:, None], None, 1.0)
        if weights is not None:
            shares, gaps = shares * weights, gaps * weights[:, None]
        shares = block.cast(shares)
        members = xp.reshape(ops.one_hot(labels, k, shares), (shape[0], n_runs * k))
        sums = block.adjoint(members * shares[:, None])
        return (xp.reshape(labels, shape), gaps), (sums, xp.sum(gaps, axis=0))

    while len(going):
        (labels, gaps), (sums, inertias) = X.sweep(look, X.sqnorms, X.weights)
        ended = (turns <= tol) | (n_iter == max_iter)
        for i in np.flatnonzero(ended):
            end = labels[:, i], centers[i], float(inertias[i]), n_iter
            ends[int(going[i])] = Spherical(*end)
        after = HOST.unit_rows(sums.T).reshape(centers.shape)
        empty = ~after.any(axis=2)
        for i in np.flatnonzero(empty.any(axis=1) & ~ended):
            # Empty clusters go to the rows that fit worst, if any do.
            misfits = gaps[:, i] * ops.xp.astype(X.sqnorms > 0, gaps.dtype)
            far = np.sort(ops.largest(misfits, int(empty[i].sum())))
            worst = ops.to_host(ops.take_rows(misfits, far))
            after[i, empty[i]] = centers[i, empty[i]]
            if worst.min() > Small.EXACT:
                far = far[np.argsort(-worst, kind="stable")]
                after[i, empty[i]] = HOST.unit_rows(ops.to_host(X.rows(far)))
        turns = np.linalg.norm(after - centers, axis=2).max(axis=1)[~ended]
        centers, going, n_iter = after[~ended], going[~ended], n_iter + 1
    return [ends[run] for run in sorted(ends)]


def _plus_plus(
    X: Matrix, k: int, n_runs: int, step: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield starting centres of so many runs at a time, by greedy k-means++.

    Each centre is that of a few candidates, drawn by ``1 - cosine`` to those before,
    which leaves the smallest sum of these. Rows are drawn along a random direction:
    neither their order nor a row written twice instead of counted twice changes it.
    """
    most = max(Labelling.SEED_ROWS, Labelling.ROWS_A_CLUSTER * k)
    direction = rng.standard_normal((X.shape[1], 1))
    # More starts begin with the same as fewer.
    draws = rng.random((n_runs, k, 2 + int(np.log(k))))
    rows = X.ops.draw_rows(X.sqnorms > 0, most, rng)
    few, n = X.take(rows), len(rows)
    to_host = few.ops.to_host
    lengths = np.sqrt(to_host(few.sqnorms))
    order = np.argsort(to_host(few @ direction)[:, 0] / lengths, kind="stable")
    few, rows, lengths = few.take(order), rows[order], lengths[order]
    weights = np.ones(n)
    if X.weights is not None:
        weights = X.ops.to_host(X.ops.take_rows(X.weights, rows))

    def unit(at: np.ndarray) -> np.ndarray:
        return HOST.unit_rows(to_host(few.rows(at.ravel())))

    runs, chosen = np.arange(n_runs), np.empty((n_runs, k), dtype=np.intp)
    closest = np.full((n_runs, n), 2.0)  # no distance is larger
    for i in range(k):
        total = np.cumsum(closest * weights, axis=1)
        wanted = draws[:, i, : None if i else 1] * total[:, -1:]
        at = np.array([np.searchsorted(total[r], wanted[r], "right") for r in runs])
        at = np.minimum(at, n - 1)
        cosines = to_host(few @ unit(at).T).T / lengths
        gaps = np.clip(1.0 - cosines, 0.0, None).reshape(*at.shape, n)
        gaps = np.minimum(gaps, closest[:, None, :])
        left = gaps @ weights
        # Of candidates that do as well, the first: rounding must not choose.
        best = np.argmax(left <= left.min(axis=1, keepdims=True) * (1 + Small.TIE), 1)
        chosen[:, i], closest = at[runs, best], gaps[runs, best]
    for i in range(0, n_runs, step):
        yield unit(chosen[i : i + step]).reshape(-1, k, X.shape[1])
