"""Eigenpairs within a subspace, for a matrix whose diagonal is still to be found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from ihgmm._devices import like, moved, namespace, to_host, wide
from ihgmm._tall import Tall, side_by_side, tall_dot
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
    basis : array of shape (n_samples, m) or None
        Orthonormal columns, where the data is; None for the identity.
    product : array of shape (n_samples, m)
        The hollow matrix times the basis.
    rayleigh : ndarray of shape (m, m)
        The transposed basis times the product.
    n_products : int
        Blocks that the hollow matrix was multiplied with.
    """

    basis: Tall | None
    product: Tall
    rayleigh: np.ndarray
    n_products: int

    @classmethod
    def of(cls, hollow: GramOperator, basis: Tall) -> Subspace:
        """Return the subspace of some orthonormal columns."""
        product = hollow @ basis
        return cls(basis, product, tall_dot(basis, product), 1)

    def times(self, coefficients: np.ndarray) -> Tall:
        """Return the basis times some coefficients."""
        if self.basis is None:
            return coefficients
        return self.basis @ like(coefficients, self.basis)

    def ritz(self, diagonal: np.ndarray, count: int, order: Order) -> RitzPairs:
        """Return leading eigenpairs, within the subspace, given the diagonal."""
        matrix = self.rayleigh.copy()
        if self.basis is None:
            np.fill_diagonal(matrix, diagonal)
        else:
            matrix += weighted_gram(self.basis, like(diagonal, self.basis))
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
            self.product @ like(coefficients, self.product),
            coefficients.T @ self.rayleigh @ coefficients,
            self.n_products,
        )

    def joined(self, other: Subspace) -> Subspace:
        """Return the sum of two orthogonal subspaces."""
        if self.basis is None or other.basis is None:
            raise ValueError("The whole space has nothing orthogonal to it.")
        side = tall_dot(self.basis, other.product)
        return Subspace(
            side_by_side([self.basis, other.basis]),
            side_by_side([self.product, other.product]),
            np.block([[self.rayleigh, side], [side.T, other.rayleigh]]),
            self.n_products + other.n_products,
        )


@dataclass(frozen=True, eq=False)
class RitzPairs:
    """Leading eigenpairs within a subspace, given the diagonal, on the host."""

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

    def vectors(self, k: int) -> Tall:
        """Return the first k eigenvectors."""
        return self.space.times(self.coefficients[:, :k])

    def fitted(self, rank: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the diagonal of the approximation of some rank, and the leverages.

        A leverage is a row's squared length in the leading eigenvectors that count.
        """
        vectors = wide(self.vectors(rank))
        counts = np.arange(rank) < self.signal(rank)
        weights = np.column_stack([self.used(rank), counts])
        squares = namespace(vectors).square(vectors)
        diagonal, leverages = to_host(squares @ moved(weights, squares)).T
        return diagonal, leverages

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

    def lacking(self) -> Tall:
        """Return ``G @ u - value * u`` for every pair."""
        if self.space.basis is None:
            return np.zeros_like(self.coefficients)
        vectors = self.space.times(self.coefficients)
        rest = self.space.product @ like(self.coefficients, vectors)
        rest += vectors * like(self.diagonal, vectors)[:, None]
        rest -= vectors * like(self.values, vectors)
        return rest

    def residual(self, rank: int) -> float:
        """Return the largest norm of what leading pairs that count lack."""
        return largest_norm(self.lacking()[:, : self.signal(rank)])


def largest_norm(columns: Tall) -> float:
    """Return the largest norm of a column."""
    xp = namespace(columns)
    return float(np.sqrt(float(xp.max(xp.sum(xp.square(wide(columns)), axis=0)))))
