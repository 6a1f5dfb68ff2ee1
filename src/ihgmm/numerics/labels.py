"""From an embedding to labels: k-means and cluster-QR."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

import numpy as np
from scipy.linalg import qr, svd
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin

from ihgmm._warnings import ignored
from ihgmm.matrix import Tall, namespace, to_host
from ihgmm.matrix.tall import cast_like, map_ranges, stack, to_device
from ihgmm.matrix.threads import one_thread

Assignment = Literal["kmeans", "cluster_qr"]
ASSIGNMENTS: tuple[Assignment, ...] = ("kmeans", "cluster_qr")


@dataclass(frozen=True)
class Labeling:
    """Labels of the rows of an embedding."""

    labels: Tall  # integers from 0 on
    n_iter: int  # iterations of the k-means run that gave them; 0 for cluster-QR


def assign(
    embedding: Tall,
    n_clusters: int,
    method: Assignment = "kmeans",
    *,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    rng: np.random.Generator | None = None,
) -> Labeling:
    """Label the rows of an embedding by k-means or by cluster-QR."""
    if method == "cluster_qr":
        labels = cluster_qr(to_host(embedding), n_clusters)
        return Labeling(to_device(labels, embedding), 0)
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
    max_rows: int | None = None,
    full_trials: int = 10_000,
    rng: np.random.Generator | None = None,
) -> Labeling:
    """Label rows by scikit-learn's k-means, started well.

    The first of ``n_init`` starts is the pivoted QR of the rows, the others are
    k-means++; "auto" means 1 + 10. Beyond ``full_trials`` rows the starts compete on a
    sample of the rows, until three have ended in the same best place; those that end in
    different places, nearly as good as the best, go on.

    Centres are learnt on the host from ``max_rows`` rows drawn at random, by default
    16,384, or 256 for each cluster if that is more. All others go to the nearest
    centre; rows on a device get their labels there.
    """
    rng = np.random.default_rng() if rng is None else rng
    starts = 1 + 10 if n_init == "auto" else n_init
    most = max(2**14, 256 * n_clusters) if max_rows is None else max_rows
    # scikit-learn's k-means++ is fastest, and its sums are safest, in float64.
    rows = to_host(_sample(embedding, most, rng)).astype(np.float64, copy=False)
    trial = rows
    on_sample = len(rows) > full_trials
    if on_sample:
        size = int(np.clip(64 * n_clusters, 1_000, full_trials))
        trial = _sample(rows, size, rng)
    pivots = _sample(rows, 2**12, rng)

    options = {"n_init": 1, "max_iter": max_iter}
    # One thread: the order of sums, and so the labels, never depend on how many there
    # are. Rows that coincide are no failure here: the caller counts the labels.
    with one_thread(), ignored(ConvergenceWarning):
        start = pivots[_pivot_rows(pivots, n_clusters)]
        # On a sample, runs to the very end show whether they meet in the same place.
        tol = 0.0 if on_sample else 1e-5
        runs: list[KMeans] = []
        for init in [start] + ["k-means++"] * (starts - 1):
            seed = int(rng.integers(2**31 - 1))
            kmeans = KMeans(
                n_clusters, init=init, tol=tol, random_state=seed, **options
            )
            runs.append(kmeans.fit(trial))
            if n_init == "auto" and on_sample and _settled(runs):
                break
        if on_sample:
            finals = [final.cluster_centers_ for final in _finalists(runs, len(rows))]
            if not (_settled(runs) and _all_shown(trial, start)):
                finals.append(start)
            runs = []
            for init in finals:
                seed = int(rng.integers(2**31 - 1))
                kmeans = KMeans(n_clusters, init=init, random_state=seed, **options)
                runs.append(kmeans.fit(rows))  # to scikit-learn's own tolerance
    best = min(runs, key=attrgetter("inertia_"))
    if len(rows) == embedding.shape[0]:
        labels = to_device(best.labels_.astype(np.intp), embedding)
    else:
        labels = _nearest(embedding, best.cluster_centers_)
    return Labeling(labels, int(best.n_iter_))


def _same(first: float, second: float) -> bool:
    """Tell whether runs of such inertias ended in the same place."""
    return first <= second * (1 + 1e-9)


def _settled(runs: list[KMeans]) -> bool:
    """Tell whether three starts have ended in the best place: no other is likely."""
    best = min(run.inertia_ for run in runs)
    return sum(_same(run.inertia_, best) for run in runs) >= 3


def _all_shown(trial: np.ndarray, pivots: np.ndarray) -> bool:
    """Tell whether each pivot is nearest to eight rows of the trial, or more.

    With fewer, it may know of a cluster too small to show there.
    """
    nearest = pairwise_distances_argmin(trial, pivots)
    return bool(np.bincount(nearest, minlength=len(pivots)).min() >= 8)


def _finalists(runs: list[KMeans], n_rows: int) -> list[KMeans]:
    """Keep the best run and those that differ from it but are within five percent.

    Together they see 2**16 rows at most, unless that is less than two runs.
    """
    most = max(2, 2**16 // n_rows)
    runs = sorted(runs, key=attrgetter("inertia_"))
    kept = runs[:1]
    for run in runs[1:]:
        near = run.inertia_ <= 1.05 * runs[0].inertia_
        if near and not _same(run.inertia_, kept[-1].inertia_) and len(kept) < most:
            kept.append(run)
    return kept


def _nearest(rows: Tall, centers: np.ndarray) -> Tall:
    """Return the nearest centre of each row."""
    xp = namespace(rows)
    offsets = cast_like(np.einsum("ij,ij->i", centers, centers) / 2, rows)
    directions = cast_like(centers.T, rows)

    def work(block: slice) -> Tall:
        score = rows[block, :] @ directions
        score -= offsets
        return xp.argmax(score, axis=1)

    return stack(map_ranges(rows, len(centers), work))


def _pivot_rows(rows: np.ndarray, k: int) -> np.ndarray:
    """Return the positions of k rows that are as different as can be."""
    _, _, order = qr(rows.T, pivoting=True, mode="economic")
    return np.asarray(order[:k])


def _sample(rows: Tall, size: int, rng: np.random.Generator) -> Tall:
    n = rows.shape[0]
    if n <= size:
        return rows
    chosen = rng.choice(n, size, replace=False, shuffle=False)
    return namespace(rows).take(rows, to_device(chosen, rows), axis=0)
