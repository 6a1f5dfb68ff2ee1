"""The Gram matrices of the method, as operators that are never formed.

With the rows of ``A`` being those of ``X``, possibly rescaled, every Gram matrix of
the package is ``G = A @ A.T - diag(c)``. It is applied to a block of vectors by two
products with ``X``, at a cost linear in the size of ``X``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ihgmm._arrays import Array, take_rows
from ihgmm._devices import dtype_of, is_device, like, namespace, times, to_host
from ihgmm._norms import row_sqnorms
from ihgmm._products import matmul, there_and_back, transposed_matmul
from ihgmm._tall import Tall, quotient

__all__ = ["GRAMS", "GramKind", "GramOperator"]

GramKind = Literal["hollow", "full", "cosine", "hetero"]
GRAMS: tuple[GramKind, ...] = ("hollow", "full", "cosine", "hetero")


@dataclass(frozen=True, eq=False)
class GramOperator:
    """The symmetric n by n matrix ``factor * (A @ A.T - diag(removed))``, matrix-free.

    Build one with :meth:`of`. The operator is immutable and holds a reference to
    ``X``, never a copy. What it holds for each row is where X is.

    Attributes
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data.
    sqnorms : ndarray of shape (n_samples,)
        Squared norms of the rows of A, the diagonal of ``A @ A.T``.
    row_scale : ndarray of shape (n_samples,) or None
        What each row of X is multiplied by to give the row of A; None for 1.
    removed : ndarray of shape (n_samples,) or None
        What is taken off the diagonal; None for nothing.
    factor : float
        A positive number that multiplies the whole matrix.
    """

    X: Array
    sqnorms: Tall
    row_scale: Tall | None = None
    removed: Tall | None = None
    factor: float = 1.0

    @classmethod
    def of(
        cls, X: Array, gram: GramKind = "hollow", sqnorms: Tall | None = None
    ) -> GramOperator:
        """Build the Gram operator of the rows of ``X``.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The data, float32 or float64.
        gram : {"hollow", "full", "cosine", "hetero"}
            ``"hollow"``: inner products of different rows, zero on the diagonal
            (the matrix G of the paper's Algorithm 1). ``"full"``: all inner
            products. ``"cosine"``: cosines of different rows, zero on the diagonal
            (with a constant diagonal the eigenvectors are the same); rows that are
            zero stay zero. ``"hetero"``: as ``"hollow"``, for
            :func:`~ihgmm.hetero.impute_diagonal` to fill in the diagonal.
        sqnorms : ndarray of shape (n_samples,), optional
            Squared row norms of X, if known already.

        Examples
        --------
        >>> import numpy as np
        >>> G = GramOperator.of(np.array([[3.0, 0.0], [1.0, 1.0], [0.0, 2.0]]))
        >>> G @ np.eye(3)
        array([[0., 3., 0.],
               [3., 0., 2.],
               [0., 2., 0.]])
        """
        if sqnorms is None:
            sqnorms = row_sqnorms(X)
        if gram == "full":
            return cls(X, sqnorms)
        if gram in ("hollow", "hetero"):
            return cls(X, sqnorms, removed=like(sqnorms, X))
        if gram == "cosine":
            scale = quotient(1.0, namespace(sqnorms).sqrt(sqnorms))
            ones = like(sqnorms > 0, X)
            return cls(X, ones, row_scale=like(scale, X), removed=ones)
        raise ValueError(f"gram={gram!r} is not one of {GRAMS}.")

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_samples)."""
        return (self.X.shape[0], self.X.shape[0])

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the data and of every product."""
        return dtype_of(self.X)

    def __matmul__(self, V: Tall) -> Tall:
        """Return ``G @ V`` for a vector or a block of vectors."""
        if V.ndim == 1:
            return (self @ V[:, None])[:, 0]
        V = like(V, self.X)
        return self.from_adjoint(self.adjoint(V), V)

    def from_adjoint(self, W: Any, V: Tall) -> Tall:
        """Return ``G @ V`` given ``W = A.T @ V``."""
        product = self.forward(times(W, self.factor))
        if self.removed is not None:
            product -= self._diagonal(V)
        return product

    def with_adjoint(self, W: Any, V: Tall) -> tuple[Tall, Any]:
        """Return ``G @ V`` and ``A.T @ (G @ V)`` given ``W = A.T @ V``.

        Data that is not in memory is read once for both.
        """
        minus = None if self.removed is None else self._diagonal(V)
        return there_and_back(self.X, times(W, self.factor), self.row_scale, minus)

    def _diagonal(self, V: Tall) -> Tall:
        """Return the part of V that is taken off a product."""
        return times(self.removed, self.factor)[:, None] * V

    def there_and_back(self, W: Any) -> tuple[Tall, Any]:
        """Return ``A @ W`` and ``A.T @ (A @ W)``, from one reading of X if possible."""
        return there_and_back(self.X, W, self.row_scale)

    def forward(self, W: Any) -> Tall:
        """Return ``A @ W`` for a block W of shape (n_features, m)."""
        product = matmul(self.X, W)
        if self.row_scale is not None:
            product *= self.row_scale[:, None]
        return product

    def adjoint(self, V: Tall) -> Any:
        """Return ``A.T @ V`` for a block V of shape (n_samples, m)."""
        if self.row_scale is not None:
            V = V * self.row_scale[:, None]
        return transposed_matmul(self.X, V)

    def rows(self, index: np.ndarray) -> GramOperator:
        """Return the operator of the chosen rows: a principal submatrix of this one."""
        return replace(
            self,
            X=take_rows(self.X, index),
            sqnorms=take_rows(self.sqnorms, index),
            row_scale=_taken(self.row_scale, index),
            removed=_taken(self.removed, index),
        )

    def scaled(self, factor: float) -> GramOperator:
        """Return the operator of ``factor * G``."""
        return replace(self, factor=self.factor * factor)

    def toarray(self) -> np.ndarray:
        """Return the n by n matrix itself, in float64; for small n only."""
        if is_device(self.X):
            return self._on_host().toarray()
        A = self.X.toarray() if hasattr(self.X, "toarray") else self.X
        A = A.astype(np.float64, copy=False)
        if self.row_scale is not None:
            A = A * self.row_scale[:, None].astype(np.float64)
        G = A @ A.T
        if self.removed is not None:
            # In one dtype, so that a hollow diagonal is exactly zero.
            sqnorms = self.sqnorms.astype(self.removed.dtype)
            np.fill_diagonal(G, sqnorms - self.removed)
        return np.asarray(G * self.factor)

    def _on_host(self) -> GramOperator:
        return replace(
            self,
            X=to_host(self.X),
            sqnorms=to_host(self.sqnorms),
            row_scale=None if self.row_scale is None else to_host(self.row_scale),
            removed=None if self.removed is None else to_host(self.removed),
        )


def _taken(values: Tall | None, index: np.ndarray) -> Tall | None:
    return None if values is None else take_rows(values, index)
