"""The leading directions of rows, and the eigenvectors of the paper's Gram matrix.

Random starts are the same in every fit: the answer is a function of the data.
"""

from __future__ import annotations

from collections.abc import Callable
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
    diagonal: Tall  # (n,): of ``A @ A.T``, which is taken off

    @classmethod
    def of(cls, X: Any) -> GramOperator:
        """Build the operator; rows count as rows times the root of their weight."""
        A = as_matrix(X)
        if A.weights is not None:
            A = Scaled(A, rows=A.ops.xp.sqrt(A.weights))

        return cls(A=A, diagonal=A.ops.persist(A.cast(A.sqnorms)))

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
    n, p = G.A.shape
    ops = G.A.ops
    width = krylov.block_width(k)

    if dense is None:
        # Beyond the features eigenvalues are close to each other, and hard to tell.
        is_hard = k > p and n <= Solving.DENSE_ROWS
        is_small = n * p <= Solving.READ_WHOLE
        dense = is_small and (is_hard or _is_cheaper(n, p, n, width))

    with G.A.threads():
        if dense or n <= Solving.FEW_ROWS * width:
            values, host_vectors = krylov.leading_pairs(G.toarray(), k, order)
            vectors = G.A.to_device(host_vectors.astype(G.A.dtype))
            n_iter = 0
        else:
            rng = np.random.default_rng(0)
            # Half a product better than a random block.
            start = G.A @ rng.standard_normal((p, width)).astype(G.A.dtype)

            magnitude = _magnitude(G.A)
            pairs = krylov.block_krylov(
                lambda V: G @ (V / magnitude),
                krylov.orthonormal(ops, start, rng),
                k,
                order=order,
                tol=tol,
                dtype=G.A.dtype,
                quiet=quiet,
                ops=ops,
            )
            values = pairs.values * magnitude
            vectors = pairs.vectors
            n_iter = pairs.n_iter

    vectors = ops.fix_signs(vectors)
    return krylov.EigenPairs(values=values, vectors=vectors, n_iter=n_iter)


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
    width = krylov.block_width(k)
    count = min(k + extra, n, p)
    n_iter = 0

    with A.threads():
        if n < p and n * p <= Solving.READ_WHOLE and _is_cheaper(n, p, n, width):
            values, vectors = _directions_of_few_rows(A, count)
        elif p <= Solving.FEATURES * width or _is_cheaper(n, p, p, width):
            sweep = A.sweep(_gram_of_block)
            gram = sweep[1][0].astype(np.float64, copy=False)  # A.T @ A
            values, vectors = krylov.leading_pairs(gram, count)
        else:
            magnitude = _magnitude(A)
            # The vectors of the basis have an entry for each row, or for each feature.
            is_wide = p >= Solving.WIDE * n
            find = _directions_by_rows if is_wide else _directions_from_block
            pairs = find(
                A,
                magnitude,
                _start_block(A, k, magnitude),
                k,
                count - k,
                tol=tol,
                quiet=quiet,
            )
            values = pairs.values * magnitude
            vectors = pairs.vectors
            n_iter = pairs.n_iter

    return krylov.EigenPairs(
        values=np.maximum(values, 0.0),
        vectors=HOST.fix_signs(np.array(vectors)),
        n_iter=n_iter,
    )


def _directions_of_few_rows(A: Matrix, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues and eigenvectors of ``A.T @ A``, by those of ``A @ A.T``.

    From ``A @ A.T @ u = value * u`` a direction is ``A.T @ u`` over its length, which
    is the root of the value.
    """
    rows = A.toarray().astype(np.float64, copy=False)
    values, left_vectors = krylov.leading_pairs(rows @ rows.T, count)
    return values, rows.T @ (left_vectors / _lengths_of_directions(values))


def _lengths_of_directions(values: np.ndarray) -> np.ndarray:
    """Return the length of ``A.T @ u`` for each eigenvalue of ``A @ A.T``.

    Beyond the rank of the rows there is nothing but rounding, no direction: ``inf``.
    """
    lengths = np.sqrt(np.maximum(values, 0.0))
    lengths[lengths <= Solving.NO_DIRECTION * lengths[0]] = np.inf
    return lengths


def _gram_of_block(block: Matrix) -> tuple[tuple[()], tuple[Tall]]:
    """Return ``A.T @ A`` of a block of rows, to be summed."""
    rows = block.rows(slice(None))
    return (), (block.ops.widen(rows.T @ rows),)


def _magnitude(A: Matrix) -> float:
    """Return a power of two near the sum of squares: eigenvalues over it are small."""
    total = A.ops.number(A.ops.xp.sum(A.sqnorms))
    return float(2.0 ** np.round(np.log2(total))) if total > 0 else 1.0


def _is_cheaper(n: int, p: int, side: int, width: int) -> bool:
    """Tell by operations whether to form a Gram matrix and solve that.

    Its ``side`` is n or p; otherwise products with blocks of a width are taken.
    """
    exact = 2.0 * n * p * side + Solving.LAPACK * side**3
    iterative = Solving.PRODUCTS * 4.0 * n * p * width
    return exact < iterative + Solving.OVERHEAD


def _directions_from_block(
    A: Matrix,
    magnitude: float,
    block: np.ndarray,
    k: int,
    extra: int,
    *,
    tol: float,
    quiet: bool,
    max_products: int = Solving.MOST_PRODUCTS,
) -> krylov.EigenPairs:
    """Find directions from others, (p, width), and eigenvalues over a magnitude."""
    return krylov.block_krylov(
        _scaled_gram_product(A, magnitude),
        krylov.orthonormal(HOST, block, np.random.default_rng(0)),
        k,
        extra=extra,
        tol=tol,
        max_products=max_products,
        dtype=A.dtype,
        quiet=quiet,
    )


def _directions_by_rows(
    A: Matrix,
    magnitude: float,
    block: np.ndarray,
    k: int,
    extra: int,
    *,
    tol: float,
    quiet: bool,
) -> krylov.EigenPairs:
    """Do as :func:`_directions_from_block`, by eigenvectors of ``A @ A.T``.

    These are shorter where rows are fewer than features. From ``A @ A.T @ u = value *
    u`` a direction is ``A.T @ u`` over its length, which is the root of the value.
    """

    def times_rows(W: Any) -> np.ndarray:
        return to_host(A @ W).astype(np.float64)

    def times_columns(U: np.ndarray) -> Any:
        return A.adjoint(A.to_device(U.astype(A.dtype)))

    # A root on either side: what is between never overflows nor vanishes.
    root = np.sqrt(magnitude)
    start = times_rows(block.astype(A.dtype))  # (n, width)
    pairs = krylov.block_krylov(
        lambda U: times_rows(times_columns(U / root)) / root,
        krylov.orthonormal(HOST, start, np.random.default_rng(0)),
        k,
        extra=extra,
        tol=tol,
        dtype=A.dtype,
        quiet=quiet,
    )

    products = to_host(times_columns(pairs.vectors)).astype(np.float64)  # (p, count)
    lengths = _lengths_of_directions(pairs.values) * root
    return replace(pairs, vectors=products / lengths)


def _scaled_gram_product(
    A: Matrix, magnitude: float
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the operator ``A.T @ A / magnitude``, of directions on the host."""

    def apply(W: np.ndarray) -> np.ndarray:
        scaled = (W / magnitude).astype(A.dtype)
        return to_host(A.gram_product(scaled)).astype(np.float64)

    return apply


def _start_block(A: Matrix, k: int, magnitude: float) -> np.ndarray:
    """Return random directions or, of large data, those in which some rows lie."""
    n, p = A.shape
    width = krylov.block_width(k)

    # Wide data have few rows: their sample would tell the order of rows, and little.
    is_sampled = n * p >= Solving.LARGE and n >= 2 * max(p, width)
    rows = A
    if is_sampled:
        rows_per_side = max(Solving.ROWS_A_FEATURE, width**2 // 8)
        n_rows = min(n // Solving.ONE_ROW_IN, rows_per_side * max(p, width))
        rows = A.copy_rows(sample_positions(n, n_rows))

    # Numbers go by the sizes of features: their order in the data changes nothing. Nor
    # does rounding, as long as it does not part sizes that are alike.
    sizes = (rows.column_sqnorms() / magnitude).astype(np.float32)
    block = np.empty((p, width))
    random_directions = np.random.default_rng(0).standard_normal((p, width))
    block[np.argsort(sizes, kind="stable")] = random_directions

    if not is_sampled:
        return block

    directions = _directions_from_block(
        rows,
        magnitude,
        block,
        k,
        width - k,
        tol=Solving.DIGIT,
        quiet=True,
        max_products=Solving.PRODUCTS,
    )
    return directions.vectors
