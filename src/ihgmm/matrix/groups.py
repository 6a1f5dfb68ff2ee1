"""Groups of rows, such as clusters: sums and means over each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ihgmm.matrix.arrays import Tall

if TYPE_CHECKING:
    from ihgmm.matrix.base import Matrix
    from ihgmm.matrix.ops import Ops


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows in groups, and sums over each. Build one with :meth:`Ops.groups`.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import HOST
    >>> groups = HOST.groups(np.array([0, 1, 1]), 2)
    >>> groups.sums(np.array([5.0, 1.0, 3.0]))
    array([5., 4.])
    >>> groups.means(np.array([5.0, 1.0, 3.0]))
    array([5., 2., 2.])
    """

    ops: Ops
    labels: Tall  #: the group of each row, from 0
    weights: Tall | None  #: how much rows count in means; None: all alike
    sizes: np.ndarray  #: rows in each group

    def sums(self, values: Tall) -> np.ndarray:
        """Return the sum of values over each group, in float64."""
        return self.ops.group_sums(self.labels, len(self.sizes), values)

    def to_rows(self, values: np.ndarray) -> Tall:
        """Return, for each row, the value of its group."""
        return self.ops.take_lines(values, self.labels)

    def row_sums(self, *values: Tall) -> list[Tall]:
        """Return, for each row, the sum of each of some values over its group."""
        sums = self.ops.many_group_sums(self.labels, len(self.sizes), *values)
        return [self.to_rows(group_sums) for group_sums in sums]

    def means(self, values: Tall) -> Tall:
        """Return, for each row, the weighted mean of its group; 0 without weight."""
        if self.weights is None:
            return self.to_rows(self.sums(values) / np.maximum(self.sizes, 1))

        totals = self.sums(self.weights * values)
        weights = self.sums(self.weights)
        means = np.divide(totals, weights, out=np.zeros_like(totals), where=weights > 0)
        return self.to_rows(means)

    def weighted(self, values: Tall) -> Tall:
        """Return values times the weights of their rows."""
        return values if self.weights is None else values * self.weights

    def over_mean(self, values: Tall) -> Tall:
        """Divide by the mean of each group; ones where that is zero."""
        return self.ops.ratio(values, self.means(values), 1.0)

    def weighted_sums(self, X: Matrix, weights: Tall) -> np.ndarray:
        """Return the sum of weight times row of X for each group.

        Returns
        -------
        ndarray of shape (n_groups, n_features)
        """
        n_groups = len(self.sizes)

        def sum_block(block: Matrix, labels: Tall, weights: Tall) -> Tall:
            ops = block.ops
            # On a device products run best at multiples of eight.
            width = n_groups if block.on_host else -(-n_groups // 8) * 8
            members = ops.one_hot(labels, width, weights)
            members *= weights[:, None]

            return ops.widen(block.adjoint(members)[:, :n_groups])

        labels = X.to_device(self.labels)
        sums = X.sum_blocks(sum_block, labels, X.cast(weights))
        return np.asarray(sums.T.astype(X.dtype))

    def inner_products(self, X: Matrix, centers: np.ndarray) -> Tall:
        """Return the inner product of each row of X with the centre of its group."""

        def multiply_block(block: Matrix, labels: Tall) -> Tall:
            products = block @ centers.T  # (n_rows, n_groups)
            return block.ops.widen(block.ops.pick(products, labels))

        products = X.collect_lines(multiply_block, X.to_device(self.labels))
        return self.ops.to_device(products, self.labels)
