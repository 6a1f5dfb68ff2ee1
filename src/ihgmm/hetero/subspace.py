"""Eigenpairs within a subspace, for a matrix whose diagonal is still to be found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from ihgmm.blocks import weighted_gram
from ihgmm.gram import GramOperator
from ihgmm.krylov import SMALLEST_GAP, Order, leading_order

__all__ = ["RitzPairs", "Subspace", "largest_norm"]

NEGLIGIBLE = 1e-8
"""Eigenvalues below this share of the largest are not signal."""


@dataclass(frozen=True, eq=False)
class Subspace:
    """A subspace in which the diagonal can change without another look at the data.

    Attributes
    ----------
    basis : ndarray of shape (n_samples, m) or None
        Orthonormal columns; None for the identity.
    product : ndarray of shape (n_samples, m)
        The hollow matrix times the basis.
    rayleigh : ndarray of shape (m, m)
        The transposed basis times the product.
    n_products : int
        Blocks that the hollow matrix was multiplied with.
    """

    basis: np.ndarray | None
    product: np.ndarray
    rayleigh: np.ndarray
    n_products: int

    @classmethod
    def of(cls, hollow: GramOperator, basis: np.ndarray) -> Subspace:
        """Return the subspace of some orthonormal columns."""
        product = hollow @ basis
        return cls(basis, product, (basis.T @ product).astype(np.float64), 1)

    def times(self, coefficients: np.ndarray) -> np.ndarray:
        """Return the basis times some coefficients."""
        if self.basis is None:
            return coefficients
        return np.asarray(self.basis @ coefficients.astype(self.basis.dtype))

    def ritz(self, diagonal: np.ndarray, count: int, order: Order) -> RitzPairs:
        """Return leading eigenpairs, within the subspace, given the diagonal."""
        matrix = self.rayleigh.copy()
        if self.basis is None:
            np.fill_diagonal(matrix, diagonal)
        else:
            weights = diagonal.astype(self.basis.dtype)
            matrix += weighted_gram(self.basis, weights)
        m = len(matrix)
        count = min(count, m)
        subset = (m - count, m - 1) if order == "algebraic" else None
        values, vectors = eigh((matrix + matrix.T) / 2, subset_by_index=subset)
        lead = leading_order(values, order)[:count]
        return RitzPairs(self, diagonal, values[lead], vectors[:, lead], order)

    def condensed(self, coefficients: np.ndarray) -> Subspace:
        """Return the subspace of some orthonormal vectors in this one."""
        return Subspace(
            self.times(coefficients),
            self.product @ coefficients.astype(self.product.dtype),
            coefficients.T @ self.rayleigh @ coefficients,
            self.n_products,
        )

    def joined(self, other: Subspace) -> Subspace:
        """Return the sum of two orthogonal subspaces."""
        if self.basis is None or other.basis is None:
            raise ValueError("The whole space has nothing orthogonal to it.")
        side = (self.basis.T @ other.product).astype(np.float64)
        return Subspace(
            np.hstack([self.basis, other.basis]),
            np.hstack([self.product, other.product]),
            np.block([[self.rayleigh, side], [side.T, other.rayleigh]]),
            self.n_products + other.n_products,
        )


@dataclass(frozen=True, eq=False)
class RitzPairs:
    """Leading eigenpairs within a subspace, given the diagonal."""

    space: Subspace
    diagonal: np.ndarray
    values: np.ndarray
    coefficients: np.ndarray
    order: Order

    @property
    def sizes(self) -> np.ndarray:
        """Eigenvalues as they are compared: what leads is not negative."""
        return np.abs(self.values) if self.order == "magnitude" else self.values

    def size(self, rank: int) -> float:
        """Return the last of the leading eigenvalues that count."""
        return float(self.sizes[self.signal(rank) - 1])

    def vectors(self, k: int) -> np.ndarray:
        """Return the first k eigenvectors."""
        return self.space.times(self.coefficients[:, :k])

    def again(self, diagonal: np.ndarray) -> RitzPairs:
        """Return the eigenpairs with another diagonal."""
        return self.space.ritz(diagonal, len(self.values), self.order)

    def used(self, rank: int) -> np.ndarray:
        """Return the eigenvalues of the approximation of some rank."""
        values = self.values[:rank]
        return values if self.order == "magnitude" else np.maximum(values, 0.0)

    def misfit(self, rank: int) -> float:
        """Return the squared distance to that approximation, up to a constant."""
        return float(self.diagonal @ self.diagonal - np.sum(self.used(rank) ** 2))

    def signal(self, rank: int) -> int:
        """Return how many of the leading pairs, one at least, are not negligible."""
        return max(1, int((self.sizes[:rank] > NEGLIGIBLE * self.sizes[0]).sum()))

    def gap(self, rank: int) -> float:
        """Return what separates the leading eigenvalues that count from the next."""
        last = self.signal(rank) - 1
        sizes = np.append(np.maximum(self.sizes, 0.0), 0.0)
        gap = max(sizes[last] - sizes[last + 1], SMALLEST_GAP * sizes[last])
        return float(gap) or 1.0

    def lacking(self) -> np.ndarray:
        """Return ``G @ u - value * u`` for every pair."""
        if self.space.basis is None:
            return np.zeros_like(self.coefficients)
        dtype = self.space.basis.dtype
        vectors = self.space.times(self.coefficients)
        rest = self.space.product @ self.coefficients.astype(dtype)
        rest += vectors * self.diagonal[:, None].astype(dtype)
        rest -= vectors * self.values.astype(dtype)
        return np.asarray(rest)

    def residual(self, rank: int) -> float:
        """Return the largest norm of what leading pairs that count lack."""
        return largest_norm(self.lacking()[:, : self.signal(rank)])


def largest_norm(columns: np.ndarray) -> float:
    """Return the largest norm of a column."""
    return float(np.sqrt(np.square(columns, dtype=np.float64).sum(axis=0).max()))
