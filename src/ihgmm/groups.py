"""Rows in groups: sums of figures of the rows, and of the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm._arrays import Array
from ihgmm._devices import is_device, moved, to_host, wide
from ihgmm._products import matmul, transposed_matmul
from ihgmm._tall import (
    Tall,
    group_sizes,
    group_sums,
    indicators,
    pick,
    quotient,
    spread,
)

__all__ = ["Groups"]


@dataclass(frozen=True)
class Groups:
    """Rows in groups, and sums over each.

    Attributes
    ----------
    labels : array of shape (n_samples,)
        The group of each row, from 0, where the data is or on the host. What is
        given and returned for each row is where these are.
    size : ndarray of shape (n_groups,)
        Rows in each group.
    """

    labels: Tall
    size: np.ndarray

    @classmethod
    def of(cls, labels: Tall, n_groups: int) -> Groups:
        """Return the groups that labels make; some may be empty."""
        return cls(labels, group_sizes(labels, n_groups))

    def total(self, values: Tall) -> np.ndarray:
        """Return the sum for each group."""
        return group_sums(self.labels, values, len(self.size))

    def spread(self, values: np.ndarray) -> Tall:
        """Return, for each row, the value of its group."""
        return spread(values, self.labels)

    def sum(self, values: Tall) -> Tall:
        """Return, for each row, the sum over its group."""
        return self.spread(self.total(values))

    def mean(self, values: Tall) -> Tall:
        """Return, for each row, the mean of its group."""
        return self.sum(values) / self.spread(self.size.astype(np.float64))

    def mean_one(self, values: Tall) -> Tall:
        """Divide by the mean of each group; ones where that is zero."""
        return quotient(values, self.mean(values), 1.0)

    def weighted_sums(self, X: Array, weights: Tall) -> np.ndarray:
        """Return the sum of weight times row for each group, in X's dtype."""
        labels, weights = moved(self.labels, X), moved(weights, X)
        membership = indicators(labels, len(self.size), weights, X)
        return to_host(transposed_matmul(X, membership)).T

    def inner_products(self, X: Array, centers: np.ndarray) -> Tall:
        """Return the inner product of each row with the centre of its group."""
        inner = wide(pick(matmul(X, centers.T), moved(self.labels, X)))
        return inner if is_device(self.labels) else to_host(inner)
