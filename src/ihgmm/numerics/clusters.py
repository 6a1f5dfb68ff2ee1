"""Clusters of few rows, on the host: by directions or distances, and as a mixture.

Rows are float64 arrays, as many as it takes to learn clusters from. What is learnt is
deterministic but for k-means: the same rows give the same clusters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ihgmm.policy import Labelling, Small


class Run(NamedTuple):
    """Where a run of Lloyd's iterations has ended."""

    labels: np.ndarray
    centers: np.ndarray  # (k, m)
    score: float  # what the run has made large: weighted sum of scores of rows
    n_iter: int


def lloyd(
    rows: np.ndarray,
    centers: np.ndarray,
    weights: np.ndarray,
    *,
    by_angle: bool = True,
    signed: bool = False,
    max_iter: int = 300,
) -> Run:
    """Run Lloyd's iterations from some centres.

    With ``by_angle`` centres have unit length, and rows belong to the centre of largest
    product: spherical k-means, if rows are units. Else they belong to the nearest.
    With ``signed``, a centre and its opposite are one. A centre that has lost all its
    rows goes to the row that fits its own worst.
    """
    n, k = len(rows), len(centers)
    squares = np.einsum("ij,ij->i", rows, rows)
    least = Labelling.STEP * float(weights @ squares)
    score, n_iter, edges = -np.inf, 0, np.arange(n + 1)
    while True:
        if by_angle:
            lengths = np.linalg.norm(centers, axis=1, keepdims=True)
            centers = centers / np.where(lengths > 0, lengths, 1.0)
        before, scores = score, rows @ centers.T
        signs = np.ones(n)
        if signed:
            signs, scores = scores, np.abs(scores)
        if not by_angle:
            scores -= np.einsum("ij,ij->i", centers, centers) / 2
        labels = scores.argmax(axis=1)
        best = scores[np.arange(n), labels]
        score = float(weights @ best)
        if score - before <= least or n_iter >= max_iter:
            return Run(labels, centers, score, n_iter)
        if signed:
            signs = np.where(signs[np.arange(n), labels] < 0, -1.0, 1.0)
        members = sp.csr_array((weights * signs, labels, edges), shape=(n, k))
        sums, sizes = members.T @ rows, np.bincount(labels, weights, k)
        empty = sizes <= 0
        if empty.any():
            misfits = weights * (squares - best if by_angle else squares - 2 * best)
            sums[empty] = rows[np.argsort(-misfits, kind="stable")[: empty.sum()]]
            sizes = np.where(empty, 1.0, sizes)
        centers = sums / sizes[:, None]
        n_iter += 1


def pivots(rows: np.ndarray, k: int) -> np.ndarray:
    """Return the positions of k rows that are as different as can be.

    They are the first pivots of a QR decomposition of the transposed rows: each is the
    row with the largest part that those before it do not span.
    """
    left = np.einsum("ij,ij->i", rows, rows)
    most = max(left.max(), Small.TINY)
    # A Cholesky decomposition of the rows' products, of which a column is made at a
    # time: what it leaves on the diagonal is what the pivots do not span.
    factor, chosen = np.zeros((k, len(rows))), np.zeros(k, dtype=np.intp)
    for i in range(k):
        # Rows may all have unit norm: the first of them, not one that rounding raised.
        at = chosen[i] = np.argmax(np.round(left / (most * Small.TIE)))
        factor[i] = rows @ rows[at] - factor[:i, at] @ factor[:i]
        # Beyond the rank of the rows nothing is left but rounding, and no direction.
        factor[i] /= np.sqrt(max(left[at], Small.EXACT * most))
        left = left - factor[i] ** 2
    return chosen


def merged_start(
    rows: np.ndarray, k: int, weights: np.ndarray, signed: bool
) -> np.ndarray | None:
    """Return centres of k clusters that many small ones have been merged to.

    Small clusters are three times as many, around rows far from each other. Ward's rule
    merges two at a time: those that add least to the squared distances within.
    """
    count = min(Labelling.SMALL_CLUSTERS * k, len(rows) // 3)
    if count <= k:
        return None
    chosen, nearest = np.zeros(count, dtype=np.intp), np.full(len(rows), -np.inf)
    at = int(np.argmax(weights))
    for i in range(count):
        chosen[i] = at
        products = rows @ rows[at]
        nearest = np.maximum(nearest, np.abs(products) if signed else products)
        at = int(np.argmax(weights * (1 - nearest)))
    run = lloyd(rows, rows[chosen], weights, signed=signed, max_iter=Labelling.ROUGH)
    centers, sizes = run.centers, np.bincount(run.labels, weights, count)
    alive = list(range(count))
    for _ in range(count - k):
        c, s = centers[alive], sizes[alive]
        products = c @ c.T
        lengths = np.diag(products)
        products = np.abs(products) if signed else products
        costs = lengths[:, None] + lengths - 2 * products
        costs *= s[:, None] * s / np.maximum(s[:, None] + s, Small.TINY)
        np.fill_diagonal(costs, np.inf)
        at, other = np.unravel_index(costs.argmin(), costs.shape)
        i, j = alive[at], alive[other]
        sign = np.sign(centers[i] @ centers[j]) if signed else 1.0
        total = max(sizes[i] + sizes[j], Small.TINY)
        centers[i] = (sizes[i] * centers[i] + sign * sizes[j] * centers[j]) / total
        sizes[i] = total
        alive.remove(j)
    return np.asarray(centers[alive])


class Mixture(NamedTuple):
    """Gaussian clusters of one covariance: scores are ``rows @ coefficients`` and more.

    With ``signed``, a cluster is as likely to be at its centre as at the opposite, and
    the sizes of products count.
    """

    coefficients: np.ndarray  # (m, k)
    intercepts: np.ndarray
    log_likelihood: float  # of a row, up to a constant; -inf without some cluster
    n_iter: int


def mixture(
    rows: np.ndarray,
    start: np.ndarray | Mixture,
    weights: np.ndarray,
    *,
    pull: float = Labelling.PULL,
    signed: bool = False,
    max_iter: int = 300,
) -> Mixture:
    """Fit Gaussian clusters that share one covariance by expectation and maximisation.

    It starts from a mixture, or from memberships, (n, k); with ``signed`` these are
    negative where a row is at the opposite of a centre. The covariance is pulled
    towards a sphere by the share ``pull``: with 1 it is one. Between .1 and .4 that
    hardly matters; without, few rows in many directions give a covariance that fits
    their noise.
    """
    n, m = rows.shape
    share = weights / weights.sum()
    counted = rows * share[:, None]
    moments = rows.T @ counted
    flattest = _flattest(moments)
    if isinstance(start, Mixture):
        members, ends, _, _ = _expected(rows, start, signed)
    else:
        members, ends = np.abs(start), np.sign(start)
    k, value, n_iter = members.shape[1], -np.inf, 0
    while True:
        before = value
        sizes = members.T @ share + Small.ROUNDING / n
        centers = (members * ends if signed else members).T @ counted / sizes[:, None]
        within = moments - (centers.T * sizes) @ centers
        sphere = pull * np.trace(within) / m + flattest
        covariance = (1 - pull) * within + sphere * np.eye(m)
        solved = np.linalg.solve(covariance, np.hstack([centers.T, moments]))
        squares = np.einsum("ij,ji->i", centers, solved[:, :k])
        fit = Mixture(solved[:, :k], np.log(sizes) - squares / 2, -np.inf, n_iter + 1)
        members, ends, scores, logs = _expected(rows, fit, signed)
        # The terms of rows alone add up to a trace.
        terms = np.trace(solved[:, k:]) / 2 + np.linalg.slogdet(covariance)[1] / 2
        value, n_iter = float(share @ logs - terms), n_iter + 1
        if value - before < Labelling.GAIN or n_iter >= max_iter:
            break
    if len(np.unique(scores.argmax(axis=1))) < k:
        return fit
    return fit._replace(log_likelihood=value)


def _expected(
    rows: np.ndarray, fit: Mixture, signed: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return memberships, ends, scores, and logarithms of sums of likelihoods.

    An end is, of a signed cluster, the share of one end less that of the other.
    """
    products = rows @ fit.coefficients
    scores = (np.abs(products) if signed else products) + fit.intercepts
    peaks = scores.max(axis=1, keepdims=True)
    members = np.exp(scores - peaks)
    ends = products
    if signed:
        # The score is that of the nearer end; both ends together are a cluster.
        members *= (1 + np.exp(-2 * np.abs(products))) / 2
        ends = np.tanh(products)
    totals = members.sum(axis=1, keepdims=True)
    members /= totals
    return members, ends, scores, (peaks + np.log(totals))[:, 0]


def _flattest(moments: np.ndarray) -> float:
    """Return the least variance of a direction: less is rounding."""
    # All rows may be zero, as one alone is.
    return float(Labelling.FLATTEST * np.trace(moments) / len(moments)) or 1.0


def log_likelihood_of_one(rows: np.ndarray, weights: np.ndarray) -> float:
    """Return the log-likelihood of a row under one Gaussian, up to that constant."""
    share = weights / weights.sum()
    moments, mean = rows.T @ (rows * share[:, None]), share @ rows
    covariance = moments - np.outer(mean, mean) + _flattest(moments) * np.eye(len(mean))
    solved = np.linalg.solve(covariance, np.column_stack([mean, moments]))
    squares = mean @ solved[:, 0] - np.trace(solved[:, 1:])
    return float(squares - np.linalg.slogdet(covariance)[1]) / 2
