"""Rows in groups: sums of figures of the rows, and of the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm._arrays import Array, matmul, transposed_matmul

__all__ = ["Groups"]


@dataclass(frozen=True)
class Groups:
    """Rows in groups, and sums over each.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        The group of each row, from 0.
    size : ndarray of shape (n_groups,)
        Rows in each group.
    """

    labels: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, labels: np.ndarray, n_groups: int) -> Groups:
        """Return the groups that labels make; some may be empty."""
        return cls(labels, np.bincount(labels, minlength=n_groups))

    def total(self, values: np.ndarray) -> np.ndarray:
        """Return the sum for each group."""
        return np.bincount(self.labels, values, len(self.size))

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Return, for each row, the sum over its group."""
        return np.asarray(self.total(values)[self.labels])

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return, for each row, the mean of its group."""
        return self.sum(values) / self.size[self.labels]

    def mean_one(self, values: np.ndarray) -> np.ndarray:
        """Divide by the mean of each group; ones where that is zero."""
        mean = self.mean(values)
        ones = np.ones(len(mean))
        return np.divide(values, mean, out=ones, where=mean > 0)

    def weighted_sums(self, X: Array, weights: np.ndarray) -> np.ndarray:
        """Return the sum of weight times row for each group, in X's dtype."""
        membership = np.zeros((len(weights), len(self.size)), dtype=X.dtype)
        membership[np.arange(len(weights)), self.labels] = weights
        return transposed_matmul(X, membership).T

    def inner_products(self, X: Array, centers: np.ndarray) -> np.ndarray:
        """Return the inner product of each row with the centre of its group."""
        inner = matmul(X, centers.T)[np.arange(len(self.labels)), self.labels]
        return inner.astype(np.float64)
