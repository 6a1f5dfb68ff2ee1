"""Clusters of few rows, on the host: by directions or distances, and as a mixture.

Rows are arrays of floats, as many as it takes to learn clusters from. What is learnt is
deterministic but for k-means: the same rows give the same clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ihgmm.matrix.threads import in_parts
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
    score, n_iter, places = -np.inf, 0, np.arange(n)
    # Each column has one entry, of a row in its cluster; only its place changes.
    members = sp.csc_array((k, n))
    members.data, members.indptr = weights, np.arange(n + 1)
    while True:
        if by_angle:
            lengths = np.sqrt(np.einsum("ij,ij->i", centers, centers))
            centers = centers / np.where(lengths > 0, lengths, 1.0)[:, None]
        before, products = score, rows @ centers.T.astype(rows.dtype)
        scores = np.abs(products) if signed else products
        if not by_angle:
            scores -= np.einsum("ij,ij->i", centers, centers) / 2
        labels = scores.argmax(axis=1)
        best = scores[places, labels]
        score = float(weights @ best)
        if score - before <= least or n_iter >= max_iter:
            return Run(labels, centers, score, n_iter)
        members.indices = labels
        if signed:
            members.data = np.where(products[places, labels] < 0, -weights, weights)
        sums, sizes = members @ rows, np.bincount(labels, weights, k)
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
    factor = np.zeros((k, len(rows)), dtype=rows.dtype)
    chosen = np.zeros(k, dtype=np.intp)
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
    squares = np.einsum("ij,ij->i", centers, centers)
    costs, alive = np.full((count, count), np.inf), np.ones(count, dtype=bool)
    changed = np.arange(count)  # clusters whose costs are not known
    for _ in range(count - k):
        size, products = sizes[changed, None], centers[changed] @ centers.T
        new = squares[changed, None] + squares
        new -= 2 * (np.abs(products) if signed else products)
        new *= size * sizes / np.maximum(size + sizes, Small.TINY)
        new[(changed[:, None] == np.arange(count)) | ~alive] = np.inf
        costs[changed], costs[:, changed] = new, new.T
        one, other = divmod(int(costs.argmin()), count)
        sign = np.sign(centers[one] @ centers[other]) if signed else 1.0
        total = max(sizes[one] + sizes[other], Small.TINY)
        merged = sizes[one] * centers[one] + sign * sizes[other] * centers[other]
        centers[one], sizes[one], alive[other] = merged / total, total, False
        squares[one] = centers[one] @ centers[one]
        costs[other] = costs[:, other] = np.inf
        changed = np.array([one])
    return np.asarray(centers[alive])


class Mixture(NamedTuple):
    """Gaussian clusters of one covariance: scores are ``rows @ coefficients`` and more.

    With ``signed``, a cluster is as likely to be at its centre as at the opposite, and
    the sizes of products count.
    """

    coefficients: np.ndarray  # (m, k)
    intercepts: np.ndarray
    gain: float  # log-likelihood of a row over that of one Gaussian
    worth: float  # that, less the price that BIC puts on a shape
    pull: float  # of the covariance towards a sphere
    n_iter: int

    def members(self, rows: np.ndarray, signed: bool) -> np.ndarray:
        """Return memberships of rows, (k, n), to start from."""
        fit = self.coefficients.T[None], self.intercepts[None]
        return _expected(rows, *fit, signed)[1][0]

    def labels(self, rows: np.ndarray, signed: bool) -> np.ndarray:
        """Return the most likely cluster of each row."""
        products = rows @ self.coefficients.astype(rows.dtype)
        scores = (np.abs(products) if signed else products) + self.intercepts
        return scores.argmax(axis=1)


def mixture(
    rows: np.ndarray,
    starts: Sequence[np.ndarray],
    weights: np.ndarray,
    *,
    pulls: Sequence[float] = (Labelling.PULL,),
    bar: float = -np.inf,
    signed: bool = False,
    max_iter: int = 300,
) -> Mixture | None:
    """Fit Gaussian clusters that share one covariance by expectation and maximisation.

    Starts are memberships, (k, n); with ``signed`` these are negative where a row is at
    the opposite of a centre. The covariance is pulled towards a sphere by a share: with
    1 it is one. Between .1 and .4 that hardly matters; without, few rows in many
    directions give a covariance that fits their noise. From each start a run goes on
    with each of the pulls, all at once, and the one of most worth is returned; None
    where clusters vanish, or where no run comes near the ``bar``.
    """
    n, m = rows.shape
    share = (weights / weights.sum()).astype(rows.dtype)
    counted = rows * share[:, None]
    moments, mean = (rows.T @ counted).astype(np.float64), share @ rows
    # All rows may be zero, as one alone is: less variance of a direction is rounding.
    flattest = float(Labelling.FLATTEST * np.trace(moments) / m) or 1.0
    unit = np.eye(m)
    spread = moments - np.outer(mean, mean) + flattest * unit
    inverse = np.linalg.inv(spread)
    one = mean @ inverse @ mean - (inverse * moments).sum()
    one -= np.linalg.slogdet(spread)[1]
    # Runs come first, then clusters, then rows.
    pull = np.tile(np.asarray(pulls, dtype=float), len(starts))
    signs = np.repeat(np.asarray(starts), len(pulls), axis=0)
    price = (pull < 1) * (m * (m + 1) / 2 - 1) * np.log(n) / (2 * n)
    k = signs.shape[1]
    sizes, sums = np.abs(signs) @ share, (signs.reshape(-1, n) @ counted)
    sums = sums.reshape(-1, k, m)
    gains, best, most, n_iter = np.full(len(signs), -np.inf), None, bar, 0
    while len(sums):
        before, n_iter = gains, n_iter + 1
        sizes = sizes + Small.ROUNDING / n
        centers = sums / sizes[:, :, None]
        within = moments - (centers * sizes[:, :, None]).swapaxes(1, 2) @ centers
        sphere = pull * np.einsum("rii->r", within) / m + flattest
        covariance = (1 - pull)[:, None, None] * within
        covariance += sphere[:, None, None] * unit
        inverse = np.linalg.inv(covariance)
        coefficients = centers @ inverse
        intercepts = np.log(sizes) - (centers * coefficients).sum(axis=2) / 2
        # The terms of rows alone add up to a trace.
        terms = (inverse * moments).sum(axis=(1, 2)) + np.linalg.slogdet(covariance)[1]
        data = rows, counted, share
        sizes, sums, logs = _expected_sums(*data, coefficients, intercepts, signed)
        gains = logs - (terms + one) / 2
        worth = gains - price
        ended = (gains - before < Labelling.GAIN) | (n_iter >= max_iter)
        for i in np.flatnonzero(ended & (worth > most)):
            run = Mixture(
                coefficients[i].T,
                intercepts[i],
                float(gains[i]),
                float(worth[i]),
                float(pull[i]),
                n_iter,
            )
            if worth[i] > most and len(np.unique(run.labels(rows, signed))) == k:
                best, most = run, worth[i]
        # Runs far behind are given up; one that loses a cluster has not won.
        ahead = worth[sizes.min(axis=1) * n >= 1].max(initial=most)
        going = ~ended & (worth + Labelling.AHEAD * (gains - before) >= ahead)
        if not going.all():
            sizes, sums, gains = sizes[going], sums[going], gains[going]
            pull, price = pull[going], price[going]
    return best


def _expected_sums(
    rows: np.ndarray,
    counted: np.ndarray,
    share: np.ndarray,
    coefficients: np.ndarray,
    intercepts: np.ndarray,
    signed: bool,
) -> list[np.ndarray]:
    """Return sizes of clusters, sums of rows, and log-likelihoods, of each run."""

    def of_part(part: slice) -> tuple[np.ndarray, ...]:
        members, signs, logs = _expected(rows[part], coefficients, intercepts, signed)
        sums = signs.reshape(-1, signs.shape[2]) @ counted[part]
        return (
            members @ share[part],
            sums.reshape(coefficients.shape),
            logs @ share[part],
        )

    if coefficients.size * len(rows) < Labelling.THREADS:
        return list(of_part(slice(0, len(rows))))
    return [sum(parts) for parts in zip(*in_parts(len(rows), of_part), strict=True)]


def _expected(
    rows: np.ndarray, coefficients: np.ndarray, intercepts: np.ndarray, signed: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return memberships, without signs and with them, and sums of likelihoods.

    With a sign, a membership is that at one end of a signed cluster less that at the
    other. Of sums these are logarithms.
    """
    s, k, m = coefficients.shape
    coefficients = coefficients.astype(rows.dtype)
    products = (coefficients.reshape(-1, m) @ rows.T).reshape(s, k, -1)
    scores = np.abs(products) if signed else products
    scores += intercepts[:, :, None].astype(rows.dtype)
    peaks = scores.max(axis=1, keepdims=True)
    scores -= peaks
    members = np.exp(scores)
    if signed:
        # The score is that of the nearer end; both ends together are a cluster.
        members *= (1 + np.exp(-2 * np.abs(products))) / 2
    totals = members.sum(axis=1, keepdims=True)
    members /= totals
    signs = members * np.tanh(products) if signed else members
    return members, signs, (peaks + np.log(totals))[:, 0]
