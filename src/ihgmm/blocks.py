"""Blocks of vectors: tall and thin arrays, made orthonormal by small Gram matrices."""

from __future__ import annotations

import numpy as np

from ihgmm._arrays import row_ranges
from ihgmm._devices import dtype_of, like, moved
from ihgmm._tall import (
    Tall,
    column_ends,
    row_step,
    side_by_side,
    take_columns,
    tall_dot,
)

__all__ = [
    "column_norms",
    "combine",
    "fix_signs",
    "grow_rayleigh",
    "less",
    "next_block",
    "next_pair",
    "orthonormal",
    "project_out",
    "small_gram",
    "weighted_gram",
    "whitening",
]


def small_gram(Y: Tall) -> np.ndarray:
    """Return ``Y.T @ Y`` in float64."""
    return tall_dot(Y, Y)


def whitening(gram: np.ndarray, tiny: float = 0.0) -> tuple[np.ndarray, float]:
    """Return what turns columns into orthonormal ones, and how far they were from it.

    The columns are given by their Gram matrix. Directions whose share of the largest
    is not above tiny are left out.
    """
    norms = np.sqrt(np.diag(gram))
    if not norms.all():
        return np.zeros_like(gram), 0.0
    values, vectors = np.linalg.eigh(gram / np.outer(norms, norms))
    keep = values > tiny * values[-1]
    change = vectors[:, keep] / norms[:, None] / np.sqrt(values[keep])
    return change, float(values[keep][0] / values[-1])


def weighted_gram(Y: Tall, weights: Tall, step: int = 2**13) -> np.ndarray:
    """Return ``Y.T @ diag(weights) @ Y`` without another block as large as Y."""
    total = np.zeros((Y.shape[1], Y.shape[1]))
    for rows in row_ranges(Y.shape[0], max(step, row_step(Y, Y.shape[1]))):
        few = Y[rows, :]
        total += tall_dot(few, few * weights[rows][:, None])
    return total


def orthonormal(
    Y: Tall, rng: np.random.Generator | None = None, negligible: float = 0.0
) -> Tall:
    """Orthonormalise the columns through their Gram matrix.

    Columns that are negligible or depend on others are dropped or, given a generator,
    replaced by random ones so that the width is kept.
    """
    tiny = 100 * float(np.finfo(dtype_of(Y)).eps)
    n, width = Y.shape
    for _ in range(4):
        gram = small_gram(Y)
        norms = np.sqrt(np.diag(gram))
        live = norms > negligible
        if not live.all():
            Y, gram = take_columns(Y, live), gram[np.ix_(live, live)]
        spread = 1.0
        if Y.shape[1]:
            change, spread = whitening(gram, tiny)
            Y = Y @ like(change, Y)
        if rng is not None and Y.shape[1] < width:
            fill = rng.standard_normal((n, width - Y.shape[1]))
            fill = (fill / np.sqrt(n)).astype(dtype_of(Y))
            Y, spread = side_by_side([Y, moved(fill, Y)]), 0.0
        if spread > 1e-3:
            break
        negligible = 0.0  # the columns have unit norm now
    return Y


def project_out(basis: list[Tall], Y: Tall) -> tuple[Tall, np.ndarray]:
    """Return Y, overwritten, less its part in the basis, and the coefficients of that.

    Arrays of some libraries cannot be overwritten: go on with what is returned.
    """
    coefficients = [tall_dot(q, Y) for q in basis]
    for q, c in zip(basis, coefficients, strict=True):
        Y -= q @ like(c, q)
    return Y, np.concatenate(coefficients)


def next_block(basis: list[Tall], rest: Tall, negligible: float) -> Tall:
    """Turn what is left of a product into a block orthonormal to the basis."""
    block = orthonormal(rest, negligible=negligible)
    if block.shape[1]:
        block, _ = project_out(basis, block)
        block = orthonormal(block)
    return block


def next_pair(
    basis: list[Tall],
    adjoints: list[np.ndarray],
    rest: Tall,
    back: np.ndarray,
) -> tuple[Tall, np.ndarray] | None:
    """Do as ``next_block``, and to the adjoint of the product what is done to it.

    None where columns depend on others so nearly that their adjoint would be lost in
    rounding.
    """
    for again in (False, True):
        change, spread = whitening(small_gram(rest))
        if spread <= 1e-3:
            return None
        rest, back = rest @ like(change, rest), back @ like(change, back)
        if not again:
            rest, column = project_out(basis, rest)
            back = less(back, adjoints, column)
    return rest, back


def less(
    back: np.ndarray, adjoints: list[np.ndarray], column: np.ndarray
) -> np.ndarray:
    """Return the adjoint of a block from which its part in the basis was taken."""
    return back - combine(adjoints, column)


def grow_rayleigh(rayleigh: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Append a block column to the symmetric matrix ``basis.T @ G @ basis``."""
    old, new = len(rayleigh), len(column)
    grown = np.empty((new, new))
    grown[:old, :old] = rayleigh
    grown[:, old:] = column
    grown[old:, :] = column.T
    grown[old:, old:] = (column[old:] + column[old:].T) / 2
    return grown


def combine(basis: list[Tall], coefficients: np.ndarray) -> Tall:
    """Return ``hstack(basis) @ coefficients`` without stacking."""
    coefficients = like(coefficients, basis[0])
    out = basis[0] @ coefficients[: basis[0].shape[1], :]
    at = basis[0].shape[1]
    for q in basis[1:]:
        out += q @ coefficients[at : at + q.shape[1], :]
        at += q.shape[1]
    return out


def column_norms(columns: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Return the norms of ``Y @ columns`` given ``gram = Y.T @ Y``."""
    squares = np.einsum("ik,ij,jk->k", columns, gram, columns)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def fix_signs(vectors: Tall) -> Tall:
    """Make the entry of largest magnitude of each column positive, in place."""
    low, high = column_ends(vectors)
    vectors *= like(np.where(-low > high, -1, 1), vectors)
    return vectors
