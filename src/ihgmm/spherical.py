"""Spherical k-means: k-means by cosine, for unit rows and unit centres."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm._arrays import Array, is_sparse, take_rows
from ihgmm._products import matmul, transposed_matmul
from ihgmm._threads import own_threads
from ihgmm.rounding import normalize_rows

__all__ = ["Spherical", "spherical_kmeans"]

MAX_SEED_ROWS = 2**13
"""Rows among which k-means++ looks for starting centres."""


@dataclass(frozen=True)
class Spherical:
    """What spherical k-means finds.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        The nearest centre of each row.
    centers : ndarray of shape (n_clusters, n_features)
        Unit centres.
    inertia : float
        Weighted sum of ``1 - cosine`` over the rows.
    n_iter : int
        Iterations.
    """

    labels: np.ndarray
    centers: np.ndarray
    inertia: float
    n_iter: int


def spherical_kmeans(
    X: Array,
    n_clusters: int,
    *,
    sqnorms: np.ndarray,
    weights: np.ndarray,
    init: np.ndarray | None = None,
    n_init: int = 1,
    max_iter: int = 300,
    tol: float = 1e-4,
    rng: np.random.Generator,
) -> Spherical:
    """Cluster the directions of rows.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data; it is never copied to be normalised.
    n_clusters : int
        Number of clusters.
    sqnorms, weights : ndarray of shape (n_samples,)
        Squared row norms, and how much each row counts.
    init : ndarray of shape (n_clusters, n_features), optional
        Centres to start from. Default: k-means++ by cosine.
    n_init : int
        Number of k-means++ starts, of which the best is kept.
    max_iter : int
        Cap on iterations.
    tol : float
        Stop when no centre turns by more than so many radians.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    Spherical
    """
    inverse = np.zeros(len(sqnorms))
    np.divide(1.0, np.sqrt(sqnorms), out=inverse, where=sqnorms > 0)
    with own_threads(X):
        if init is not None:
            return _lloyd(X, normalize_rows(init), inverse, weights, max_iter, tol)
        starts = [
            _plus_plus(X, n_clusters, inverse, weights, rng) for _ in range(n_init)
        ]
        runs = (_lloyd(X, start, inverse, weights, max_iter, tol) for start in starts)
        return min(runs, key=lambda run: run.inertia)


def _lloyd(
    X: Array,
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
        moved = normalize_rows(transposed_matmul(X, membership).T)
        empty = np.logical_not(moved.any(axis=1))
        if empty.any():
            _refill(X, moved, empty, centers, cosines, weights * (inverse > 0), inverse)
        turn = np.linalg.norm(moved - centers, axis=1).max()
        centers = moved
    labels, cosines = _nearest(X, centers, inverse)
    return Spherical(labels, centers, float(weights @ (1.0 - cosines)), n_iter)


def _nearest(
    X: Array, centers: np.ndarray, inverse: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest centre of each row and the cosine with it."""
    products = matmul(X, centers.T)
    labels = products.argmax(axis=1)
    best = np.take_along_axis(products, labels[:, None], axis=1)[:, 0]
    return labels, np.minimum(best * inverse, 1.0)


def _refill(
    X: Array,
    moved: np.ndarray,
    empty: np.ndarray,
    centers: np.ndarray,
    cosines: np.ndarray,
    weights: np.ndarray,
    inverse: np.ndarray,
) -> None:
    """Give centres without rows, in place, the rows that fit worst where they are."""
    misfit = weights * (1.0 - cosines)
    worst = np.argsort(-misfit, kind="stable")[: int(empty.sum())]
    if misfit[worst[-1]] <= 1e-12:  # every row sits on a centre: nothing to gain
        moved[empty] = centers[empty]
    else:
        moved[empty] = _unit_rows(X, worst, inverse)


def _unit_rows(X: Array, index: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    rows = take_rows(X, index)
    rows = rows.toarray() if is_sparse(X) else rows
    return np.asarray(rows * inverse[index, None].astype(X.dtype))


def _plus_plus(
    X: Array,
    k: int,
    inverse: np.ndarray,
    weights: np.ndarray,
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
    if len(live) > max(MAX_SEED_ROWS, 64 * k):
        size = max(MAX_SEED_ROWS, 64 * k)
        live = np.sort(rng.choice(live, size, replace=False, shuffle=False))
    X, inverse, weights = take_rows(X, live), inverse[live], weights[live]
    order = np.argsort(matmul(X, direction)[:, 0] * inverse, kind="stable")

    def candidates(mass: np.ndarray, u: np.ndarray) -> np.ndarray:
        total = np.cumsum(mass[order])
        if total[-1] <= 0:  # every row sits on a centre already
            total = np.cumsum(weights[order])
        at = np.searchsorted(total, u * total[-1], side="right")
        return order[np.minimum(at, len(order) - 1)]

    first = candidates(weights, draw[0, :1])
    centers = [_unit_rows(X, first, inverse)[0]]
    gap = _gap(X, centers[0][None], inverse)[:, 0]
    for step in range(1, k):
        tried = candidates(weights * gap, draw[step])
        rows = _unit_rows(X, tried, inverse)
        gaps = np.minimum(gap[:, None], _gap(X, rows, inverse))
        best = int(np.argmin(weights @ gaps))
        centers.append(rows[best])
        gap = gaps[:, best]
    return np.array(centers)


def _gap(X: Array, centers: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """Return ``1 - cosine`` of every row with every centre."""
    return np.maximum(1.0 - matmul(X, centers.T) * inverse[:, None], 0.0)
