"""Spherical k-means: k-means by cosine, for unit rows and unit centres."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm.matrix import Matrix, to_host
from ihgmm.matrix.tall import unit_rows


@dataclass(frozen=True)
class Spherical:
    """What spherical k-means finds."""

    labels: np.ndarray  # the nearest centre of each row
    centers: np.ndarray  # of unit length
    inertia: float  # weighted sum of 1 - cosine over the rows
    n_iter: int  # iterations


def spherical_kmeans(
    X: Matrix,
    n_clusters: int,
    *,
    weights: np.ndarray,
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
    radians.
    """
    norms = np.sqrt(to_host(X.sqnorms))
    inverse = np.divide(1.0, norms, out=np.zeros(len(norms)), where=norms > 0)
    with X.threads():
        if init is not None:
            starts = [unit_rows(init)]
        else:
            most = max(max_seed_rows, 64 * n_clusters)
            starts = [
                _plus_plus(X, n_clusters, inverse, weights, most, rng)
                for _ in range(n_init)
            ]
        runs = [_lloyd(X, start, inverse, weights, max_iter, tol) for start in starts]
    # Runs that end in the same place differ by rounding, which must not choose.
    least = min(run.inertia for run in runs)
    return next(run for run in runs if run.inertia <= least * (1 + 1e-5))


def _lloyd(
    X: Matrix,
    centers: np.ndarray,
    inverse: np.ndarray,
    weights: np.ndarray,
    max_iter: int,
    tol: float,
) -> Spherical:
    n, k = len(weights), len(centers)
    every = np.arange(n)
    n_iter, turn = 0, np.inf
    while n_iter < max_iter and turn > tol:
        n_iter += 1
        labels, cosines = _nearest(X, centers, inverse)
        membership = np.zeros((n, k), dtype=X.dtype)
        membership[every, labels] = weights * inverse
        moved = unit_rows(to_host(X.adjoint(membership)).T)
        empty = np.logical_not(moved.any(axis=1))
        if empty.any():
            # Centres without rows get the rows that fit worst where they are, unless
            # every row sits on a centre.
            misfit = weights * (inverse > 0) * (1.0 - cosines)
            worst = np.argsort(-misfit, kind="stable")[: int(empty.sum())]
            lost = misfit[worst[-1]] <= 1e-12
            moved[empty] = centers[empty] if lost else _unit(X, worst, inverse)
        turn = np.linalg.norm(moved - centers, axis=1).max()
        centers = moved
    labels, cosines = _nearest(X, centers, inverse)
    return Spherical(labels, centers, float(weights @ (1.0 - cosines)), n_iter)


def _nearest(
    X: Matrix, centers: np.ndarray, inverse: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest centre of each row and the cosine with it."""
    products = to_host(X @ centers.T)
    labels = products.argmax(axis=1)
    best = np.take_along_axis(products, labels[:, None], axis=1)[:, 0]
    return labels, np.minimum(best * inverse, 1.0)


def _unit(X: Matrix, index: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """Return some rows at unit length."""
    return to_host(X.rows(index)) * inverse[index, None].astype(X.dtype)


def _plus_plus(
    X: Matrix,
    k: int,
    inverse: np.ndarray,
    weights: np.ndarray,
    most: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Choose starting centres by greedy k-means++ on the distance ``1 - cosine``.

    Rows are drawn along a random direction, by inverting the cumulated weights, so
    that neither the order of the rows nor writing a row twice instead of giving it
    weight two changes the choice.
    """
    draw = rng.random((k, 2 + int(np.log(k))))
    direction = rng.standard_normal((X.shape[1], 1))
    live = np.flatnonzero((weights > 0) & (inverse > 0))
    if len(live) > most:
        live = np.sort(rng.choice(live, most, replace=False, shuffle=False))
    X, inverse, weights = X.take(live), inverse[live], weights[live]
    order = np.argsort(to_host(X @ direction)[:, 0] * inverse, kind="stable")

    def candidates(mass: np.ndarray, u: np.ndarray) -> np.ndarray:
        total = np.cumsum(mass[order])
        if total[-1] <= 0:  # every row sits on a centre already
            total = np.cumsum(weights[order])
        at = np.searchsorted(total, u * total[-1], side="right")
        return order[np.minimum(at, len(order) - 1)]

    def gaps_to(centers: np.ndarray) -> np.ndarray:
        """Return ``1 - cosine`` of every row with every centre."""
        return np.maximum(1.0 - to_host(X @ centers.T) * inverse[:, None], 0.0)

    centers = [_unit(X, candidates(weights, draw[0, :1]), inverse)[0]]
    gap = gaps_to(centers[0][None])[:, 0]
    for step in range(1, k):
        rows = _unit(X, candidates(weights * gap, draw[step]), inverse)
        gaps = np.minimum(gap[:, None], gaps_to(rows))
        best = int(np.argmin(weights @ gaps))
        centers.append(rows[best])
        gap = gaps[:, best]
    return np.array(centers)
