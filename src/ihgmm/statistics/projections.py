"""Rows seen from the centres that the other rows give.

A centre carries the noise of its own rows, which makes every row fit its own cluster
best, right or wrong. So each row is compared with the weighted sums of the *others*,
which takes no more than one product: its own part is subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm.matrix import HOST, Matrix, Ops, Tall
from ihgmm.policy import Rounds, Small
from ihgmm.statistics.model import NoiseStructure


@dataclass(frozen=True, eq=False)
class CenterSums:
    """Estimated directions of the centres and how much noise they carry."""

    sums: np.ndarray  # (n_features, n_clusters): weighted sums of the rows
    loads: np.ndarray  # (n_clusters,): sums of squared weights, which multiply noise

    @property
    def sqnorms(self) -> np.ndarray:
        """Squared norms of the sums."""
        sqnorms: np.ndarray = (self.sums**2).sum(axis=0)
        return sqnorms

    def in_order(self, order: np.ndarray) -> CenterSums:
        """Return the sums with clusters in another order."""
        return CenterSums(sums=self.sums[:, order], loads=self.loads[order])


@dataclass(frozen=True, eq=False)
class Projections:
    """Rows seen from the centres; all arrays are float64, where the data are."""

    cosines: Tall  # (n_samples, n_clusters): 0 where row or centre is zero
    center_sqnorms: Tall  # (n_samples, n_clusters): of the centre for that row
    loads: Tall  # (n_samples, n_clusters): its sum of squared weights
    sqnorms: Tall  # (n_samples,): of the rows
    n_features: int
    ops: Ops = HOST

    @property
    def squared_sines(self) -> Tall:
        """Squared sines of the angles between rows and centres, never quite zero."""
        # No row fits a centre without any noise.
        return self.ops.clip(1.0 - self.cosines * self.cosines, Small.EXACT, None)

    def accuracy(self, variances: np.ndarray) -> Tall:
        """Return squared cosines of the centres with the true ones, at least 0.001.

        ``variances`` are those of the noise of an entry, of each cluster.
        """
        noise = self.ops.to_device(self.n_features * variances, self.loads)
        noise_share = self.ops.ratio(self.loads * noise, self.center_sqnorms, 1.0)
        return self.ops.clip(1.0 - noise_share, Rounds.LEAST_ACCURACY, 1.0)

    def weights(self, memberships: Tall, noise: NoiseStructure, level: float) -> Tall:
        """Return the weight of each row in each centre: its length over its noise.

        Lengths are in units of ``level``. Noise that is alike in the rows of a cluster
        is a factor of its centre, which does not matter.
        """
        weights = memberships * self.ops.clip(self.cosines, 0.0, None)
        norms = self.ops.xp.sqrt(self.sqnorms) / level
        if noise == "individual":
            # |x| cos / (|x|**2 sin**2)
            weights = weights / self.squared_sines
            norms = self.ops.ratio(1.0, norms)
        return weights * norms[:, None]


def project_rows(
    block: Matrix, sqnorms: Tall, center_sums: CenterSums, weights: Tall | None = None
) -> Projections:
    """Compare the rows of a block with the sums of rows.

    With ``weights`` of shape (n_samples, n_clusters), those of these rows in the sums,
    each row is compared with the sums of the others.

    Notes
    -----
    With the sum s, and a row x of weight a in it, ``x @ (s - a x)`` is ``x @ s - a
    |x|**2``, and ``|s - a x|**2`` is ``|s|**2 - a * (2 * x @ s - a |x|**2)``.
    """
    ops = block.ops
    xp = ops.xp
    unit = _power_of_two(center_sums.sums)  # in float32 products could overflow
    products = ops.widen(block @ (center_sums.sums / unit)) * unit
    if weights is None:
        weights = xp.zeros_like(products)

    own_parts = weights * sqnorms[:, None]
    all_sqnorms = ops.to_device(center_sums.sqnorms, products)
    center_sqnorms = all_sqnorms - weights * (2 * products - own_parts)
    # Where nothing is left without the row, rounding must not pass for a centre.
    rounding = max(Small.ROUNDING, 32 * float(np.finfo(block.dtype).eps))
    least_sqnorm = rounding * xp.maximum(all_sqnorms, weights * own_parts)
    is_nothing = center_sqnorms <= least_sqnorm
    center_sqnorms = xp.where(is_nothing, xp.zeros_like(center_sqnorms), center_sqnorms)

    # Two roots: the product may be too large for a number, where there is no noise.
    lengths = xp.sqrt(center_sqnorms) * xp.sqrt(sqnorms)[:, None]
    cosines = ops.ratio(products - own_parts, lengths)
    return Projections(
        cosines=ops.clip(cosines, -1.0, 1.0),
        center_sqnorms=center_sqnorms,
        loads=ops.to_device(center_sums.loads, products) - weights * weights,
        sqnorms=sqnorms,
        n_features=block.shape[1],
        ops=ops,
    )


def _power_of_two(values: np.ndarray) -> float:
    """Return a unit above the largest value; to divide by it rounds nothing."""
    largest = np.abs(values).max(initial=0.0)
    _, exponent = np.frexp(largest)
    return float(np.ldexp(1.0, exponent))
