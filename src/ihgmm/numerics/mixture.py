"""Gaussian clusters of one covariance, and where to start them from.

Starts that are made one row at a time are on the host, work on all rows is done where
they are. Nothing is random: the same rows give the same clusters.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from ihgmm.matrix import HOST, Ops, Tall
from ihgmm.matrix.threads import in_parts
from ihgmm.policy import Labelling, Small


def pivots(rows: np.ndarray, k: int) -> np.ndarray:
    """Return the positions of k rows, each the one that those before span the least.

    The first is the one that all together point to the least: a choice by the data,
    which rounding and the order of rows leave as it is.
    """
    left = np.einsum("ij,ij->i", rows, rows)
    most = max(left.max(), Small.TINY)
    shared = np.einsum("ij,ij->i", rows @ (rows.T @ rows), rows)
    at = np.argmin(np.where(left > most / 2, shared, np.inf))  # but no zero row
    # A pivoted Cholesky decomposition of the rows' products, a column at a time: what
    # it leaves on the diagonal is what the pivots do not span.
    factor = np.zeros((k, len(rows)), dtype=rows.dtype)
    chosen = np.zeros(k, dtype=np.intp)
    for i in range(k):
        chosen[i] = at
        factor[i] = rows @ rows[at] - factor[:i, at] @ factor[:i]
        # Beyond the rank of the rows nothing is left but rounding, and no direction.
        factor[i] /= np.sqrt(max(left[at], Small.EXACT * most))
        left = left - factor[i] ** 2
        at = np.argmax(np.round(left / (most * Small.TIE)))
    return chosen


def merged(rows: np.ndarray, k: int, signed: bool) -> np.ndarray:
    """Return centres of the k clusters that Ward's rule merges unit rows to."""
    labels = np.zeros(len(rows), dtype=np.intp)
    if min(k, len(rows)) > 1:
        distances = squareform(rows @ rows.T, checks=False)
        distances = 2 - 2 * (distances**2 if signed else distances)
        # Whole numbers have many equal distances, and rounding must not order them.
        distances = np.round(np.maximum(distances, 0, out=distances) / Small.TIE)
        np.sqrt(distances, out=distances)
        labels = fcluster(linkage(distances, "ward"), k, "maxclust") - 1
    members = np.eye(k)[labels]
    if signed:  # opposite rows point the way of the first of their cluster
        first = rows[np.unique(labels, return_index=True)[1][labels]]
        members[np.einsum("ij,ij->i", rows, first) < 0] *= -1
    return members.T @ rows


def spherical_lloyd(
    rows: Tall, centers: np.ndarray, weights: np.ndarray, signed: bool, ops: Ops = HOST
) -> Tall:
    """Return memberships, (n, k), that k-means by cosines comes to from some centres.

    With ``signed`` they are -1 where a row points away from its centre. A centre that
    has lost all its rows goes to the row that fits its own worst. At the end one that
    is hardly needed goes where two clusters share one, as long as that gains.
    """
    k, counts = len(centers), ops.to_device(weights, rows)
    least, score, settled = Labelling.STEP * float(weights.sum()), -np.inf, -np.inf
    for _ in range(Labelling.STEPS):
        lengths = np.sqrt(np.einsum("ij,ij->i", centers, centers))
        centers = centers / np.where(lengths > 0, lengths, 1.0)[:, None]
        before, products = score, rows @ ops.cast_like(centers.T, rows)
        cosines = ops.xp.abs(products) if signed else products
        # Nor may rounding choose where two centres are as near.
        labels, ends = ops.xp.argmax(ops.xp.round(cosines / Small.TIE), axis=1), counts
        if signed:
            ends = counts * ops.sign_of(ops.pick(products, labels))
        sums = ops.sums_of_rows(labels, k, rows, ends)
        # Sums hold what rows score with the centres of before.
        score = float((sums * centers).sum())
        if score - before <= least:
            moved = None
            if score - settled > least:
                moved = _moved(ops, rows, cosines, labels, ends, sums)
            if moved is None:
                break
            centers, settled, score = moved, score, -np.inf
            continue
        empty = np.flatnonzero(~sums.any(axis=1))
        if len(empty):
            misfits = weights * (1 - ops.to_host(ops.pick(cosines, labels)))
            worst = np.argsort(-misfits, kind="stable")[: len(empty)]
            # There may be fewer rows than clusters.
            sums[empty[: len(worst)]] = ops.to_host(ops.take_rows(rows, worst))
        centers = sums
    members = ops.one_hot(labels, k, rows)
    if signed:
        members *= ops.sign_of(ops.pick(products, labels))[:, None]
    return members


def _moved(
    ops: Ops, rows: Tall, cosines: Tall, labels: Tall, ends: Tall, sums: np.ndarray
) -> np.ndarray | None:
    """Return sums of clusters where some are given up and others split, if it gains."""
    k, xp, counts = len(sums), ops.xp, ops.xp.abs(ends)
    best = ops.pick(cosines, labels)
    others = cosines - 4 * ops.one_hot(labels, k, cosines)
    losses = ops.group_sums(labels, k, counts * (best - xp.max(others, axis=1)))
    losses = np.maximum(losses, 0.0)  # of two that are as near, the first may be less
    misfits = ops.group_sums(labels, k, counts * (1 - best))
    if misfits.max() <= losses.min():  # as where clusters are clear
        return None
    heirs = ops.to_host(xp.argmax(others, axis=1))
    rows, labels, ends = map(ops.to_host, (rows, labels, ends))
    moved, free = sums.copy(), np.ones(k, dtype=bool)
    wide = np.argsort(-misfits, kind="stable")
    for least in np.argsort(losses, kind="stable"):
        if not free[least]:
            continue
        for widest in wide[free[wide]][: Labelling.WIDEST]:
            if widest == least or misfits[widest] <= losses[least]:
                continue
            members = labels == widest
            own = rows[members] * ends[members, None]
            apart = own - own.mean(axis=0)
            flat = apart.shape[0] < apart.shape[1]
            products = apart @ apart.T if flat else apart.T @ apart
            longest = np.linalg.eigh(products)[1][:, -1]
            half = (longest if flat else apart @ longest) > 0
            parts = np.stack([own[half].sum(axis=0), own[~half].sum(axis=0)])
            gain = np.linalg.norm(parts, axis=1).sum() - np.linalg.norm(sums[widest])
            if gain > losses[least]:
                moved[[widest, least]] = parts
                # Those that take up its rows stay, at least until the next look.
                free[[widest, least, *heirs[labels == least]]] = False
                break
        else:
            break  # of others more would be lost
    return None if free.all() else moved


class TiedClusters(NamedTuple):
    """Gaussian clusters of one covariance: ``rows @ coefficients + intercepts``."""

    coefficients: np.ndarray  # (m, k)
    intercepts: np.ndarray
    worth: float  # log-likelihood of a row over one Gaussian, less BIC's price
    pull: float  # of the covariance towards a sphere
    n_iter: int

    def members(self, rows: Tall, signed: bool, ops: Ops, prior: Tall | None) -> Tall:
        """Return memberships of rows, (k, n), with signs."""
        fit = np.column_stack([self.coefficients.T, self.intercepts])[None]
        return _expected(ops, rows, fit, signed, prior)[1][0, ...]


def tied_clusters(
    rows: Tall,
    starts: Sequence[Tall],
    weights: np.ndarray,
    *,
    pulls: Sequence[float] = (Labelling.PULL,),
    bar: float = -np.inf,
    signed: bool = False,
    prior: Tall | None = None,
    max_iter: int = 300,
    ops: Ops = HOST,
) -> TiedClusters | None:
    """Fit Gaussian clusters that share one covariance by expectation and maximisation.

    Starts are memberships, (k, n); with ``signed`` these are negative where a row is at
    the opposite of a centre. The covariance is pulled towards a sphere by a share, or
    few rows in many directions would give one that fits their noise. All starts run
    with all pulls, at once; the run of most worth is returned, the first of equals, or
    None where clusters vanish or no run passes the ``bar``. What is known of rows
    beforehand is a ``prior``, (k, n): logarithms that are added to their scores.
    """
    n, m = rows.shape
    share = ops.cast_like(weights / weights.sum(), rows)
    counted = rows * share[:, None]
    moments = ops.tall_dot(rows, counted)
    mean = ops.tall_dot(rows, share[:, None])[:, 0]
    # All rows may be zero, as one alone is: less variance of a direction is rounding.
    flattest = float(Labelling.FLATTEST * np.trace(moments) / m) or 1.0
    unit = np.eye(m)
    scatter = moments - np.outer(mean, mean) + flattest * unit
    inverse = np.linalg.inv(scatter)
    one = mean @ inverse @ mean - (inverse * moments).sum()
    one -= np.linalg.slogdet(scatter)[1]
    # Runs come first, then clusters, then rows.
    pull = np.tile(np.asarray(pulls, dtype=float), len(starts))
    price = (pull < 1) * (m * (m + 1) / 2 - 1) * np.log(n) / (2 * n)
    members = ops.xp.stack(list(starts))
    sizes = np.repeat(ops.to_host(ops.xp.abs(members) @ share), len(pulls), axis=0)
    sums = np.repeat(ops.to_host(members @ counted), len(pulls), axis=0)
    k, run, gains = sizes.shape[1], np.arange(len(sums)), np.full(len(sums), -np.inf)
    ends, ahead, n_iter = list[tuple[int, int, TiedClusters]](), bar, 0

    def expected_sums(part: slice) -> list[np.ndarray]:
        """Return sizes of clusters, sums of rows, and log-likelihoods, of each run."""
        known = None if prior is None else prior[:, part]
        fit = np.concatenate([coefficients, intercepts[:, :, None]], axis=2)
        members, signs, logs = _expected(ops, rows[part, ...], fit, signed, known)
        flat = ops.xp.reshape(signs, (-1, signs.shape[2]))
        sums = ops.xp.reshape(flat @ counted[part, ...], coefficients.shape)
        return [*map(ops.to_host, (members @ share[part], sums, logs @ share[part]))]

    while len(run):
        before, n_iter = gains, n_iter + 1
        sizes = sizes + Small.ROUNDING / n
        centers = sums / sizes[:, :, None]
        within = moments - (centers * sizes[:, :, None]).swapaxes(1, 2) @ centers
        sphere = pull[run] * np.einsum("rii->r", within) / m + flattest
        covariance = (1 - pull[run])[:, None, None] * within
        covariance += sphere[:, None, None] * unit
        inverse = np.linalg.inv(covariance)
        coefficients = centers @ inverse
        intercepts = np.log(sizes) - (centers * coefficients).sum(axis=2) / 2
        # The terms of rows alone add up to a trace.
        terms = (inverse * moments).sum(axis=(1, 2)) + np.linalg.slogdet(covariance)[1]
        if ops is HOST and coefficients.size * n >= Labelling.THREADS:
            parts: Any = zip(*in_parts(n, expected_sums), strict=True)
            sizes, sums, logs = (sum(part) for part in parts)
        else:
            sizes, sums, logs = expected_sums(slice(0, n))
        gains = logs - (terms + one) / 2
        worth = gains - price[run]
        ended = (gains - before < Labelling.GAIN) | (n_iter >= max_iter)
        for i in np.flatnonzero(ended):
            fit = coefficients[i].T, intercepts[i], float(worth[i]), float(pull[run[i]])
            # Ends that are one but for rounding come in the order of their starts.
            place = -round(worth[i] / Labelling.SAME_WORTH), int(run[i])
            ends.append((*place, TiedClusters(*fit, n_iter)))
        # Runs far behind are given up; one that loses a cluster has not won.
        ahead = max(ahead, worth[sizes.min(axis=1) * n >= 1].max(initial=-np.inf))
        going = ~ended & (worth + Labelling.AHEAD * (gains - before) >= ahead)
        run, sizes, sums, gains = run[going], sizes[going], sums[going], gains[going]
    for *_, end in sorted(ends):
        if end.worth <= bar + Labelling.SAME_WORTH:
            break
        members = end.members(rows, signed, ops, prior)
        if ops.group_sums(ops.xp.argmax(ops.xp.abs(members), axis=0), k).all():
            return end
    return None


def _expected(
    ops: Ops, rows: Tall, fit: np.ndarray, signed: bool, prior: Tall | None
) -> tuple[Tall, Tall, Tall]:
    """Return memberships, the same at one end of a cluster less the other, and logs.

    A fit has the coefficients of each run and cluster, and at the end the intercept.
    """
    xp, (s, k, width), fit = ops.xp, fit.shape, ops.cast_like(fit, rows)
    m = width - 1
    products = xp.reshape(fit[:, :, :m], (s * k, m)) @ rows.T
    products = xp.reshape(products, (s, k, -1))
    scores = xp.abs(products) if signed else products
    scores += fit[:, :, m:]
    if prior is not None:
        scores += prior
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
