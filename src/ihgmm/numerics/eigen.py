"""The leading directions of rows, and the eigenvectors of the paper's Gram matrix.

Random starts are the same in every fit: the answer is a function of the data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ihgmm.matrix import (
    HOST,
    Matrix,
    Scaled,
    Tall,
    as_matrix,
    sample_positions,
    to_host,
)
from ihgmm.numerics import krylov
from ihgmm.policy import Solving


@dataclass(frozen=True, eq=False)
class GramOperator:
    """The matrix G of the paper's Algorithm 1: ``A @ A.T`` with a zero diagonal.

    Build one with :meth:`of`. It holds no copy of the data; two products with these
    apply it.
    """

    A: Matrix  # the rows whose inner products are taken
    diagonal: Tall  # of ``A @ A.T``, which is taken off

    @classmethod
    def of(cls, X: Any) -> GramOperator:
        """Build the operator; rows count as rows times the root of their weight."""
        A = as_matrix(X)
        if A.weights is not None:
            A = Scaled(A, rows=A.ops.xp.sqrt(A.weights))
        return cls(A, A.ops.persist(A.cast(A.sqnorms)))

    def __matmul__(self, V: Tall) -> Tall:
        """Return ``G @ V`` for a vector or a block of vectors."""
        if V.ndim == 1:
            return (self @ V[:, None])[:, 0]
        V = self.A.cast(V)
        product = self.A @ self.A.adjoint(V)
        product -= self.diagonal[:, None] * V
        return product

    def toarray(self) -> np.ndarray:
        """Return the n by n matrix itself, in float64; for small n only."""
        A = self.A.toarray().astype(np.float64, copy=False)
        G = A @ A.T
        np.fill_diagonal(G, 0.0)
        return np.asarray(G)


def leading_eigenpairs(
    G: GramOperator,
    k: int,
    *,
    order: krylov.Order = "algebraic",
    tol: float = 1e-6,
    dense: bool | None = None,
    quiet: bool = False,
) -> krylov.EigenPairs:
    """Return the k leading eigenpairs of a Gram operator, also where its rank is less.

    Leading are the largest eigenvalues or, by ``"magnitude"``, those of largest
    absolute value. ``tol`` is the largest angle between the computed and the true
    leading subspace, as bounded by residual over gap; gaps under 1% of the k-th
    eigenvalue count as 1%. The matrix is formed if it is to be ``dense``, by default
    where that is cheaper. Pairs that do not converge give a warning unless ``quiet``.
    """
    (n, p), ops = G.A.shape, G.A.ops
    width = krylov.block_width(k)
    if dense is None:
        # Beyond the features eigenvalues are close to each other, and hard to tell.
        hard = k > p and n <= Solving.DENSE_ROWS
        dense = n * p <= Solving.READ_WHOLE and (hard or _is_cheaper(n, p, n, width))
    with G.A.threads():
        if dense or n <= Solving.FEW_ROWS * width:
            values, vectors = krylov.leading_pairs(G.toarray(), k, order)
            pairs = krylov.EigenPairs(values, G.A.to_device(vectors.astype(G.A.dtype)))
        else:
            rng = np.random.default_rng(0)
            # Half a product better than a random block.
            start = G.A @ rng.standard_normal((p, width)).astype(G.A.dtype)
            size, block = _magnitude(G.A), krylov.orthonormal(ops, start, rng)
            options: Any = {"order": order, "tol": tol, "quiet": quiet, "ops": ops}
            options["dtype"] = G.A.dtype
            pairs = krylov.block_krylov(lambda V: G @ (V / size), block, k, **options)
            pairs = replace(pairs, values=pairs.values * size)
    return replace(pairs, vectors=ops.fix_signs(pairs.vectors))


def leading_directions(
    A: Matrix, k: int, extra: int = 0, *, tol: float = 1e-6, quiet: bool = False
) -> krylov.EigenPairs:
    """Return the right singular vectors of A, and the squares of singular values.

    They are eigenpairs of ``A.T @ A``: k leading ones and, as far as they matter,
    ``extra`` beyond. On small data these are exact. Elsewhere they are accurate to an
    angle of ``tol``. How they are found depends on the shape of A alone, so that every
    kind of array gives the same.
    """
    n, p = A.shape
    width, count, n_iter = krylov.block_width(k), min(k + extra, n, p), 0
    with A.threads():
        if n < p and n * p <= Solving.READ_WHOLE and _is_cheaper(n, p, n, width):
            rows = A.toarray().astype(np.float64, copy=False)
            values, left = krylov.leading_pairs(rows @ rows.T, count)
            # Beyond the rank of the rows there is nothing but rounding, no direction.
            lengths = np.sqrt(np.maximum(values, 0.0))
            lengths[lengths <= Solving.NO_DIRECTION * lengths[0]] = np.inf
            vectors = rows.T @ (left / lengths)
        elif p <= Solving.FEATURES * width or _is_cheaper(n, p, p, width):
            gram = A.sweep(_gram)[1][0].astype(np.float64, copy=False)
            values, vectors = krylov.leading_pairs(gram, count)
        else:
            size = _magnitude(A)
            block = _start_block(A, k, size)
            pairs = _from_block(A, size, block, k, count - k, tol=tol, quiet=quiet)
            values, vectors, n_iter = pairs.values * size, pairs.vectors, pairs.n_iter
    vectors = HOST.fix_signs(np.array(vectors))
    return krylov.EigenPairs(np.maximum(values, 0.0), vectors, n_iter)


def _magnitude(A: Matrix) -> float:
    """Return a power of two near the sum of squares: eigenvalues over it are small."""
    total = A.ops.number(A.ops.xp.sum(A.sqnorms))
    return float(2.0 ** np.round(np.log2(total))) if total > 0 else 1.0


def _is_cheaper(n: int, p: int, side: int, width: int) -> bool:
    """Tell by operations whether to form a Gram matrix and solve that."""
    exact = 2.0 * n * p * side + Solving.LAPACK * side**3
    return exact < Solving.PRODUCTS * 4.0 * n * p * width + Solving.OVERHEAD


def _from_block(
    A: Matrix, size: float, block: np.ndarray, k: int, extra: int, **options: Any
) -> krylov.EigenPairs:
    """Find directions from others, and eigenvalues over a size."""

    def there_and_back(W: np.ndarray) -> np.ndarray:
        return to_host(A.gram_product((W / size).astype(A.dtype))).astype(np.float64)

    block, options["dtype"] = np.linalg.qr(block)[0], A.dtype
    return krylov.block_krylov(there_and_back, block, k, extra=extra, **options)


def _gram(block: Matrix) -> tuple[tuple[()], tuple[Tall]]:
    """Return ``A.T @ A`` of a block of rows, to be summed."""
    rows = block.rows(slice(None))
    return (), (block.ops.widen(rows.T @ rows),)


def _start_block(A: Matrix, k: int, magnitude: float) -> np.ndarray:
    """Return random directions or, of large data, those in which some rows lie."""
    (n, p), width, part = A.shape, krylov.block_width(k), A
    # Wide data have few rows: their sample would tell the order of rows, and little.
    if n * p >= Solving.LARGE and n >= 2 * max(p, width):
        most = max(Solving.ROWS_A_FEATURE, width**2 // 8) * max(p, width)
        part = A.copy_rows(sample_positions(n, min(n // Solving.ONE_ROW_IN, most)))
    block = np.empty((p, width))
    # Numbers go by the sizes of features: their order in the data changes nothing. Nor
    # does rounding, as long as it does not part sizes that are alike.
    sizes = (part.column_sqnorms() / magnitude).astype(np.float32)
    block[np.argsort(sizes, kind="stable")] = np.random.default_rng(0).standard_normal(
        (p, width)
    )
    if part is A:
        return block
    few: Any = {"tol": Solving.DIGIT, "max_products": Solving.PRODUCTS, "quiet": True}
    return _from_block(part, magnitude, block, k, width - k, **few).vectors
