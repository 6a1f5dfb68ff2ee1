"""Clusters of few rows: by directions or distances, and as a mixture.

Rows are as many as it takes to learn clusters from. Where they are, work on all of them
is done; what is small, and starts that are made one row at a time, is on the host. What
is learnt is deterministic but for k-means: the same rows give the same clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ihgmm.matrix import HOST, Ops, Tall
from ihgmm.matrix.threads import in_parts
from ihgmm.policy import Labelling, Small


class Run(NamedTuple):
    """Where a run of Lloyd's iterations has ended."""

    labels: Tall
    centers: np.ndarray  # (k, m)
    score: float  # what the run has made large: weighted sum of scores of rows
    n_iter: int


def lloyd(
    rows: Tall,
    centers: np.ndarray,
    weights: np.ndarray,
    *,
    by_angle: bool = True,
    signed: bool = False,
    max_iter: int = 300,
    ops: Ops = HOST,
) -> Run:
    """Run Lloyd's iterations from some centres.

    With ``by_angle`` centres have unit length, and rows belong to the centre of largest
    product: spherical k-means, if rows are units. Else they belong to the nearest.
    With ``signed``, a centre and its opposite are one. A centre that has lost all its
    rows goes to the row that fits its own worst.
    """
    k, counts = len(centers), ops.to_device(weights, rows)
    squares = ops.row_dots(rows, rows)
    least = Labelling.STEP * float(weights @ ops.to_host(squares))
    score, n_iter = -np.inf, 0
    while True:
        if by_angle:
            lengths = np.sqrt(np.einsum("ij,ij->i", centers, centers))
            centers = centers / np.where(lengths > 0, lengths, 1.0)[:, None]
        before, products = score, rows @ ops.cast_like(centers.T, rows)
        scores = ops.xp.abs(products) if signed else products
        if not by_angle:
            lost = np.einsum("ij,ij->i", centers, centers) / 2
            scores -= ops.cast_like(lost, scores)
        labels = ops.xp.argmax(scores, axis=1)
        ends = counts
        if signed:
            ends = counts * ops.sign_of(ops.pick(products, labels))
        sums = ops.sums_of_rows(labels, k, rows, ends)
        sizes = ops.group_sums(labels, k, counts)
        # Sums hold what rows score with the centres of before.
        score = float((sums * centers).sum())
        if not by_angle:
            score -= float(sizes @ lost)
        if score - before <= least or n_iter >= max_iter:
            return Run(labels, centers, score, n_iter)
        empty = sizes <= 0
        if empty.any():
            best = ops.pick(scores, labels)
            misfits = ops.to_host(squares - best if by_angle else squares - 2 * best)
            worst = np.argsort(-weights * misfits, kind="stable")[: empty.sum()]
            # There may be fewer rows than clusters.
            lost = np.flatnonzero(empty)[: len(worst)]
            sums[lost] = ops.to_host(ops.few_rows(rows, worst))
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

    def members(self, rows: Tall, signed: bool, ops: Ops = HOST) -> Tall:
        """Return memberships of rows, (k, n), to start from."""
        fit = self.coefficients.T[None], self.intercepts[None]
        return _expected(ops, rows, *fit, signed)[1][0, ...]


def mixture(
    rows: Tall,
    starts: Sequence[Tall],
    weights: np.ndarray,
    *,
    pulls: Sequence[float] = (Labelling.PULL,),
    bar: float = -np.inf,
    signed: bool = False,
    max_iter: int = 300,
    ops: Ops = HOST,
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
    share = ops.cast_like(weights / weights.sum(), rows)
    counted = rows * share[:, None]
    moments = ops.tall_dot(rows, counted)
    mean = ops.tall_dot(rows, share[:, None])[:, 0]
    # All rows may be zero, as one alone is: less variance of a direction is rounding.
    flattest = float(Labelling.FLATTEST * np.trace(moments) / m) or 1.0
    unit = np.eye(m)
    spread = moments - np.outer(mean, mean) + flattest * unit
    inverse = np.linalg.inv(spread)
    one = mean @ inverse @ mean - (inverse * moments).sum()
    one -= np.linalg.slogdet(spread)[1]
    # Runs come first, then clusters, then rows.
    pull = np.tile(np.asarray(pulls, dtype=float), len(starts))
    price = (pull < 1) * (m * (m + 1) / 2 - 1) * np.log(n) / (2 * n)
    first = [
        (ops.to_host(ops.xp.abs(start) @ share), ops.to_host(start @ counted))
        for start in starts
    ]
    sizes, sums = (
        np.repeat(each, len(pulls), axis=0) for each in zip(*first, strict=True)
    )
    k = sizes.shape[1]
    gains, best, most, n_iter = np.full(len(sums), -np.inf), None, bar, 0
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
        fit = coefficients, intercepts
        sizes, sums, logs = _expected_sums(ops, rows, counted, share, *fit, signed)
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
            members = run.members(rows, signed, ops)
            labels = ops.xp.argmax(ops.xp.abs(members), axis=0)
            if worth[i] > most and ops.group_sums(labels, k).all():
                best, most = run, worth[i]
        # Runs far behind are given up; one that loses a cluster has not won.
        ahead = worth[sizes.min(axis=1) * n >= 1].max(initial=most)
        going = ~ended & (worth + Labelling.AHEAD * (gains - before) >= ahead)
        if not going.all():
            sizes, sums, gains = sizes[going], sums[going], gains[going]
            pull, price = pull[going], price[going]
    return best


def _expected_sums(
    ops: Ops,
    rows: Tall,
    counted: Tall,
    share: Tall,
    coefficients: np.ndarray,
    intercepts: np.ndarray,
    signed: bool,
) -> list[np.ndarray]:
    """Return sizes of clusters, sums of rows, and log-likelihoods, of each run."""
    fit = coefficients, intercepts

    def of_part(part: slice) -> list[np.ndarray]:
        members, signs, logs = _expected(ops, rows[part, ...], *fit, signed)
        flat = ops.xp.reshape(signs, (-1, signs.shape[2]))
        sums = ops.xp.reshape(flat @ counted[part, ...], coefficients.shape)
        return [
            ops.to_host(a) for a in (members @ share[part], sums, logs @ share[part])
        ]

    if ops is not HOST or coefficients.size * len(rows) < Labelling.THREADS:
        return of_part(slice(0, rows.shape[0]))
    return [sum(parts) for parts in zip(*in_parts(len(rows), of_part), strict=True)]


def _expected(
    ops: Ops, rows: Tall, coefficients: np.ndarray, intercepts: np.ndarray, signed: bool
) -> tuple[Tall, Tall, Tall]:
    """Return memberships, without signs and with them, and sums of likelihoods.

    With a sign, a membership is that at one end of a signed cluster less that at the
    other. Of sums these are logarithms.
    """
    xp, (s, k, m) = ops.xp, coefficients.shape
    products = ops.cast_like(coefficients.reshape(-1, m), rows) @ rows.T
    products = xp.reshape(products, (s, k, -1))
    scores = xp.abs(products) if signed else products
    scores += ops.cast_like(intercepts[:, :, None], rows)
    peaks = xp.max(scores, axis=1, keepdims=True)
    scores -= peaks
    members = xp.exp(scores)
    if signed:
        # The score is that of the nearer end; both ends together are a cluster.
        members *= (1 + xp.exp(-2 * xp.abs(products))) / 2
    totals = xp.sum(members, axis=1, keepdims=True)
    members /= totals
    signs = members * xp.tanh(products) if signed else members
    return members, signs, (peaks + xp.log(totals))[:, 0, :]
