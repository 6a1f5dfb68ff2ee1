"""From an embedding to labels: row normalisation, k-means and cluster-QR."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import qr, svd
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin

from ihgmm._arrays import row_ranges, take_rows
from ihgmm._devices import dtype_of, is_device, like, moved, namespace, to_host
from ihgmm._tall import (
    Tall,
    first_rows,
    group_sizes,
    row_norms,
    row_step,
    spread,
    stack,
)
from ihgmm._threads import one_thread

__all__ = [
    "ASSIGNMENTS",
    "Assignment",
    "Rounding",
    "assign",
    "cluster_qr",
    "kmeans_labels",
    "normalize_rows",
    "number_by_size",
]

Assignment = Literal["kmeans", "cluster_qr"]
ASSIGNMENTS: tuple[Assignment, ...] = ("kmeans", "cluster_qr")

RESTARTS = 10
"""Random starts that ``n_init="auto"`` tries beside the one from pivoted QR."""

FULL_TRIALS = 10_000
"""Up to so many rows, every start is run on all of them."""

FIT_ROWS, FIT_ROWS_PER_CLUSTER = 2**14, 256
"""Rows k-means learns its centres from: at least the first, the second for each."""

FINALS = 2**16
"""Rows that the finalists of a trial on a sample may see in total."""

SHOWN = 8
"""Rows of a trial that show a cluster: with fewer, its centre is not to be trusted."""

SAME = 1e-9
"""Runs whose inertias differ by less than this share ended in the same place."""

MAX_PIVOT_ROWS = 2**12
"""Rows among which pivoted QR looks for the most different ones."""


@dataclass(frozen=True)
class Rounding:
    """Labels of the rows of an embedding.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        Integers from 0 on.
    n_iter : int
        Iterations of the k-means run that gave them; 0 for cluster-QR.
    """

    labels: Tall
    n_iter: int


def normalize_rows(U: Tall) -> Tall:
    """Return the rows of ``U`` scaled to unit Euclidean norm; zero rows stay zero.

    Examples
    --------
    >>> import numpy as np
    >>> normalize_rows(np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 1e-200]]))
    array([[0.6, 0.8],
           [0. , 0. ],
           [0. , 1. ]])
    """
    norms = row_norms(U)
    info = np.finfo(dtype_of(U))
    low, high = float(np.sqrt(info.tiny / info.eps)), float(np.sqrt(info.max))
    # Squares of rows this small or large under- or overflow: rescale those first.
    risky = ~((norms > low) & (norms < high))
    if namespace(U).any(risky):
        if is_device(U):
            return _normalize_all(U)
        U = U.copy()
        peak = np.abs(U[risky]).max(axis=1, keepdims=True)
        U[risky] /= np.where(peak > 0, peak, 1)
        norms[risky] = np.linalg.norm(U[risky], axis=1)
        norms[norms == 0] = 1
    return U / norms[:, None]


def _normalize_all(U: Tall) -> Tall:
    """Normalise rows on a device, each divided by its largest entry first."""
    xp = namespace(U)

    def nonzero(sizes: Tall) -> Tall:
        return xp.where(sizes > 0, sizes, xp.ones_like(sizes))[:, None]

    U = U / nonzero(xp.max(xp.abs(U), axis=1))
    return U / nonzero(row_norms(U))


def assign(
    embedding: Tall,
    n_clusters: int,
    method: Assignment = "kmeans",
    *,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    rng: np.random.Generator | None = None,
) -> Rounding:
    """Label the rows of an embedding by k-means or by cluster-QR."""
    if method == "cluster_qr":
        labels = cluster_qr(to_host(embedding), n_clusters)
        return Rounding(moved(labels, embedding), 0)
    if method != "kmeans":
        raise ValueError(f"method={method!r} is not one of {ASSIGNMENTS}.")
    return kmeans_labels(
        embedding, n_clusters, n_init=n_init, max_iter=max_iter, rng=rng
    )


def cluster_qr(embedding: np.ndarray, n_clusters: int) -> np.ndarray:
    """Label rows by cluster-QR: no start, no iteration, no randomness.

    A pivoted QR finds one representative row for each cluster; the polar factor of
    those rows turns the embedding into near-indicators, and the largest entry is the
    label. Entries keep their sign: a row that points away from a representative does
    not belong with it.

    References
    ----------
    Damle, Minden and Ying (2019), Simple, direct and efficient multi-way spectral
    clustering. Information and Inference 8(1), 181-203.
    """
    chosen = _pivot_rows(embedding, n_clusters)
    left, _, right = svd(embedding[chosen].T.astype(np.float64))
    indicators = embedding @ (left @ right).astype(embedding.dtype)
    return np.asarray(indicators.argmax(axis=1))


def kmeans_labels(
    embedding: Tall,
    n_clusters: int,
    *,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    rng: np.random.Generator | None = None,
) -> Rounding:
    """Label rows by scikit-learn's k-means, started well.

    Parameters
    ----------
    embedding : array of shape (n, k)
        Rows to cluster.
    n_clusters : int
        Number of clusters.
    n_init : int or "auto"
        Number of starts. The first is the pivoted QR of the rows, the others are
        k-means++; ``"auto"`` means 1 + 10. Beyond 10,000 rows the starts compete on a
        sample of the rows, until three have ended in the same best place; those that
        end in different places, nearly as good as the best, go on.
    max_iter : int
        Cap on the iterations of one run.
    rng : numpy.random.Generator, optional
        Source of randomness.

    Returns
    -------
    Rounding
        On more than 16,384 rows (or 256 for each cluster) the centres are learnt from
        that many of them, drawn at random, and the others are assigned to the nearest.
        Centres are learnt on the host; rows on a device get their labels there.
    """
    if rng is None:
        rng = np.random.default_rng()
    starts = 1 + RESTARTS if n_init == "auto" else n_init
    # scikit-learn's k-means++ is fastest, and its sums are safest, in float64.
    most = max(FIT_ROWS, FIT_ROWS_PER_CLUSTER * n_clusters)
    rows = to_host(_sample(embedding, most, rng)).astype(np.float64, copy=False)
    trial = rows
    on_sample = len(rows) > FULL_TRIALS
    if on_sample:
        trial = _sample(rows, int(np.clip(64 * n_clusters, 1_000, FULL_TRIALS)), rng)
    pivots = _sample(rows, MAX_PIVOT_ROWS, rng)

    def run(data: np.ndarray, init: object, tol: float) -> KMeans:
        seed = int(rng.integers(2**31 - 1))
        kmeans = KMeans(
            n_clusters,
            init=init,
            n_init=1,
            max_iter=max_iter,
            tol=tol,
            random_state=seed,
        )
        with warnings.catch_warnings():
            # Rows that coincide are no failure here: the caller counts the labels.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return kmeans.fit(data)

    # One thread: the order of sums, and so the labels, never depend on how many there
    # are, and small products do not wait for threads to meet.
    with one_thread():
        start = pivots[_pivot_rows(pivots, n_clusters)]
        # Runs to the very end tell on a sample whether they meet in the same place.
        tol = 0.0 if on_sample else 1e-5
        runs = [run(trial, start, tol)]
        early = n_init == "auto" and on_sample
        while len(runs) < starts and not (early and _settled(runs)):
            runs.append(run(trial, "k-means++", tol))
        if on_sample:
            finals = [final.cluster_centers_ for final in _finalists(runs, len(rows))]
            if not (_settled(runs) and _all_shown(trial, start)):
                finals.append(start)
            runs = [run(rows, init, 1e-4) for init in finals]
    best = min(runs, key=lambda kmeans: kmeans.inertia_)
    if len(rows) == embedding.shape[0]:
        labels = moved(best.labels_.astype(np.intp), embedding)
    else:
        labels = _nearest(embedding, best)
    return Rounding(labels, int(best.n_iter_))


def _settled(runs: list[KMeans]) -> bool:
    """Tell whether three starts have ended in the best place: no other is likely."""
    best = min(run.inertia_ for run in runs)
    return sum(run.inertia_ <= best * (1 + SAME) for run in runs) >= 3


def _all_shown(trial: np.ndarray, pivots: np.ndarray) -> bool:
    """Tell whether each pivot is nearest to a few rows of the trial.

    If not, it may know of a cluster too small to show there.
    """
    nearest = pairwise_distances_argmin(trial, pivots)
    return bool(np.bincount(nearest, minlength=len(pivots)).min() >= SHOWN)


def _finalists(runs: list[KMeans], n_rows: int) -> list[KMeans]:
    """Keep the best run and those that differ from it but are within five percent."""
    most = max(2, FINALS // n_rows)
    runs = sorted(runs, key=lambda kmeans: kmeans.inertia_)
    kept = runs[:1]
    for run in runs[1:]:
        differs = run.inertia_ > kept[-1].inertia_ * (1 + SAME)
        if differs and run.inertia_ <= 1.05 * runs[0].inertia_ and len(kept) < most:
            kept.append(run)
    return kept


def _nearest(rows: Tall, kmeans: KMeans) -> Tall:
    """Return the nearest centre of each row."""
    centers = kmeans.cluster_centers_
    if not is_device(rows):
        kmeans.cluster_centers_ = centers.astype(rows.dtype)
        with one_thread():
            return kmeans.predict(rows).astype(np.intp)
    xp = namespace(rows)
    offsets = like(np.einsum("ij,ij->i", centers, centers) / 2, rows)
    directions = like(centers.T, rows)
    labels = []
    for block in row_ranges(rows.shape[0], row_step(rows, len(centers))):
        score = rows[block, :] @ directions
        score -= offsets
        labels.append(xp.argmax(score, axis=1))
    return stack(labels)


def number_by_size(labels: Tall, n_clusters: int) -> Tall:
    """Renumber labels by decreasing cluster size; ties by first appearance.

    Examples
    --------
    >>> import numpy as np
    >>> number_by_size(np.array([2, 1, 1, 0]), 3)
    array([1, 0, 0, 2])
    """
    sizes = group_sizes(labels, n_clusters)
    tied = len(np.unique(sizes)) < n_clusters
    first = first_rows(labels, n_clusters) if tied else sizes
    rank = np.empty(n_clusters, dtype=np.intp)
    rank[np.lexsort((first, -sizes))] = np.arange(n_clusters)
    return spread(rank, labels)


def _pivot_rows(rows: np.ndarray, k: int) -> np.ndarray:
    """Return the positions of k rows that are as different as can be."""
    _, _, order = qr(rows.T, pivoting=True, mode="economic")
    return np.asarray(order[:k])


def _sample(rows: Tall, size: int, rng: np.random.Generator) -> Tall:
    n = rows.shape[0]
    if n <= size:
        return rows
    return take_rows(rows, rng.choice(n, size, replace=False, shuffle=False))
