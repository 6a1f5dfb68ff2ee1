"""What residuals say about noise: its variance by column, and along the centres.

Noise may have other variances in some columns, grow with the signal as that of counts
does, and be correlated: then a sum of entries varies more, or less, than the entries
say. Along its own centre the noise of a row cannot be separated from its scale; rows of
*other* clusters show it, once their part along their own centre is taken off. The
formulas are in docs/statistics.md.
"""

from __future__ import annotations

from operator import add
from typing import Any, NamedTuple

import numpy as np

from ihgmm.matrix import HOST, Matrix, Ops, Tall, to_host
from ihgmm.matrix.ops import Groups, sampled
from ihgmm.policy import Scales


class AlongCenters(NamedTuple):
    """Sums over rows of t**2, noise along m directions over that of its entries."""

    counts: np.ndarray  # (m, m): rows that say something of two directions at once
    first: np.ndarray  # (m,): sums of t**2
    second: np.ndarray  # (m, m): sums of products of two of them

    @staticmethod
    def sums(ops: Ops, t_squared: Tall, counts: Tall) -> tuple[Any, ...]:
        """Return the three; ``counts`` says which rows count for which direction."""
        counts = ops.xp.astype(counts, t_squared.dtype)
        t_squared, dot = t_squared * counts, ops.tall_dot
        first = ops.xp.sum(t_squared, axis=0)
        return dot(counts, counts), first, dot(t_squared, t_squared)

    @property
    def sizes(self) -> np.ndarray:
        """Rows that count for each direction."""
        return np.diag(self.counts)

    @property
    def ratios(self) -> np.ndarray:
        """Means of t**2; 1 where no row counts."""
        return np.asarray(HOST.ratio(self.first, self.sizes, 1.0))

    @property
    def variance_ratios(self) -> np.ndarray:
        """The ratios, pulled towards 1, that of independent entries, by their error."""
        known = self.sizes > 1
        # Of a mean of squares of normal variables; what few rows say of it is noisy.
        error = HOST.ratio(2.0, self.sizes)
        excess = ((self.ratios - 1) ** 2 - error)[known]
        prior = max(float(excess.mean()), 0.0) if known.any() else 0.0
        kept = np.where(known, HOST.ratio(prior, prior + error), 0.0)
        return np.asarray(1 + kept * (self.ratios - 1))


def noise_of_centers(
    X: Matrix,
    rows: Groups,
    centers: np.ndarray,
    scales: Tall,
    weights: Tall,
    variances: Tall,
    accuracy: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the noise along centres, over that of entries, and variances of centres.

    ``weights`` are those of rows in centres, ``variances`` are of their noise, and
    ``accuracy`` is the share of the squared norms of centres that is not noise.
    """
    centers = centers.astype(np.float64)
    (k, p), units = centers.shape, HOST.unit_rows(centers)
    cosines = units @ units.T
    one = rows.ops.xp.ones_like(weights)
    mean = rows.counted(one)
    mean = mean / rows.row_sums(mean)[0]  # the part of a row in the mean of the scales
    # A residual is too small by the share of the row in its own centre, which may be
    # all of it.
    share = rows.ops.clip(weights * scales, None, Scales.LARGEST_SHARE)
    # A row that is part of its centre has too large a t**2 along a similar centre, by
    # up to this much.
    load = (1 - accuracy) * p / np.maximum(rows.sizes, 1)
    apart = cosines**2 * load[:, None] < Scales.OWN_PART * (1 - cosines**2)
    apart &= ~np.eye(k, dtype=bool)

    def work(block: Matrix, *tall: Tall) -> tuple[tuple[()], tuple[Any, ...]]:
        """Sum over rows; t is a row along ``v = direction - cos * own``, over noise."""
        ops, xp = block.ops, block.ops.xp
        sums: tuple[Any, ...] = ()
        for at in block.dense_ranges(2**18):  # so few entries stay in the cache
            labels, scales, share, *counted = (values[at] for values in tall)
            x = ops.widen(block.rows(at))
            own = xp.take(ops.to_device(centers, x), labels, axis=0)
            squares = (x - scales[:, None] * own) ** 2 / (1 - share)[:, None]
            members = ops.one_hot(labels, k, squares)
            by_weight = [members * weights[:, None] for weights in counted]
            total = ops.tall_dot(xp.concat(by_weight, axis=1), squares)
            toward = ops.to_device(units, x)
            own = xp.take(toward, labels, axis=0)
            cos = xp.take(ops.to_device(cosines, x), labels, axis=0)
            along = x @ toward.T
            along -= cos * ops.pick(along, labels)[:, None]
            squares = squares * (p / max(p - 1, 1))
            noise = squares @ (toward**2).T - 2 * cos * ((squares * own) @ toward.T)
            noise += cos**2 * xp.sum(squares * own * own, axis=1)[:, None]
            t_squared = ops.ratio(along**2 / (1 - share)[:, None], noise)
            # A row without noise says nothing.
            counts = xp.take(ops.to_device(apart, x), labels, axis=0) & (t_squared > 0)
            part = (total, *AlongCenters.sums(ops, t_squared, counts))
            sums = tuple(map(add, sums, part)) if sums else part
        return (), sums

    tall = rows.labels, scales, share, one, weights**2, weights * mean
    _, (total, *along) = X.sweep(work, *map(X.to_device, tall))
    left, across, both = total.reshape(3, k, p)
    # A residual has no part along its centre.
    q = units**2
    own = HOST.ratio((q * left).sum(axis=1), 1 - (q**2).sum(axis=1))
    ratio = HOST.ratio(own, (left.sum(axis=1) + own) / p, 1.0)
    ratio = ratio * AlongCenters(*along).variance_ratios
    noise = variances * rows.spread(ratio)
    loss = rows.sums(weights * mean * noise)[:, None]
    growth = rows.sums(mean**2 * noise)[:, None] + 2 * both - 2 * (1 - q) * loss
    return ratio, np.maximum(across + q * growth, 0.0)


def independent_entries(
    X: Matrix, rows: Groups, centers: np.ndarray, scales: Tall
) -> float:
    """Return how many independent entries would vary in length as the noise of a row.

    It is one over the mean squared cosine of the noise of two rows, of all pairs of
    some.
    """
    n, p = X.shape
    drawn = sampled(n, min(Scales.PAIRED_ROWS, max(Scales.PAIRED_ENTRIES // p, 16)))
    few = rows.ops.few_rows
    labels, own = to_host(few(rows.labels, drawn)), to_host(few(scales, drawn))
    left = X.take(drawn).toarray() - own[:, None] * centers[labels].astype(np.float64)
    units = HOST.unit_rows(left)
    squares = (units @ units.T) ** 2
    np.fill_diagonal(squares, 0.0)
    alike = squares.sum() / max(len(drawn) * (len(drawn) - 1), 1)
    return float(1 / np.clip(alike, 1 / max(p - 1, 1), 1.0))
