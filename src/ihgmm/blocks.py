"""Blocks of vectors: tall and thin arrays, made orthonormal by small Gram matrices."""

from __future__ import annotations

import numpy as np

from ihgmm._arrays import row_ranges

__all__ = [
    "column_norms",
    "combine",
    "fix_signs",
    "grow_rayleigh",
    "next_block",
    "orthonormal",
    "project_out",
    "small_gram",
    "weighted_gram",
    "whitening",
]


def small_gram(Y: np.ndarray) -> np.ndarray:
    """Return ``Y.T @ Y`` in float64."""
    return np.asarray(Y.T @ Y, dtype=np.float64)


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


def weighted_gram(Y: np.ndarray, weights: np.ndarray, step: int = 2**13) -> np.ndarray:
    """Return ``Y.T @ diag(weights) @ Y`` without another block as large as Y."""
    total = np.zeros((Y.shape[1], Y.shape[1]))
    for rows in row_ranges(len(Y), step):
        total += Y[rows].T @ (Y[rows] * weights[rows, None])
    return total


def orthonormal(
    Y: np.ndarray, rng: np.random.Generator | None = None, negligible: float = 0.0
) -> np.ndarray:
    """Orthonormalise the columns through their Gram matrix.

    Columns that are negligible or depend on others are dropped or, given a generator,
    replaced by random ones so that the width is kept.
    """
    tiny = 100 * float(np.finfo(Y.dtype).eps)
    width = Y.shape[1]
    for _ in range(4):
        gram = small_gram(Y)
        norms = np.sqrt(np.diag(gram))
        live = norms > negligible
        if not live.all():
            Y, gram = Y[:, live], gram[np.ix_(live, live)]
        spread = 1.0
        if Y.shape[1]:
            change, spread = whitening(gram, tiny)
            Y = Y @ change.astype(Y.dtype)
        if rng is not None and Y.shape[1] < width:
            fill = rng.standard_normal((len(Y), width - Y.shape[1])).astype(Y.dtype)
            Y, spread = np.hstack([Y, fill / np.sqrt(len(Y))]), 0.0
        if spread > 1e-3:
            break
        negligible = 0.0  # the columns have unit norm now
    return Y


def project_out(basis: list[np.ndarray], Y: np.ndarray) -> np.ndarray:
    """Subtract from Y, in place, its part in the basis; return the coefficients."""
    coefficients = [q.T @ Y for q in basis]
    for q, c in zip(basis, coefficients, strict=True):
        Y -= q @ c
    return np.concatenate(coefficients).astype(np.float64)


def next_block(
    basis: list[np.ndarray], rest: np.ndarray, negligible: float
) -> np.ndarray:
    """Turn what is left of a product into a block orthonormal to the basis."""
    block = orthonormal(rest, negligible=negligible)
    if block.shape[1]:
        project_out(basis, block)
        block = orthonormal(block)
    return block


def grow_rayleigh(rayleigh: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Append a block column to the symmetric matrix ``basis.T @ G @ basis``."""
    old, new = len(rayleigh), len(column)
    grown = np.empty((new, new))
    grown[:old, :old] = rayleigh
    grown[:, old:] = column
    grown[old:, :] = column.T
    grown[old:, old:] = (column[old:] + column[old:].T) / 2
    return grown


def combine(basis: list[np.ndarray], coefficients: np.ndarray) -> np.ndarray:
    """Return ``hstack(basis) @ coefficients`` without stacking."""
    coefficients = coefficients.astype(basis[0].dtype)
    out = basis[0] @ coefficients[: basis[0].shape[1]]
    at = basis[0].shape[1]
    for q in basis[1:]:
        out += q @ coefficients[at : at + q.shape[1]]
        at += q.shape[1]
    return out


def column_norms(columns: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Return the norms of ``Y @ columns`` given ``gram = Y.T @ Y``."""
    squares = np.einsum("ik,ij,jk->k", columns, gram, columns)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def fix_signs(vectors: np.ndarray) -> np.ndarray:
    """Make the entry of largest magnitude of each column positive, in place."""
    k = vectors.shape[1]
    # NumPy reduces wide rows much faster than narrow ones: fold 64 rows into one.
    fold = len(vectors) // 64 * 64
    folded = vectors[:fold].reshape(-1, 64 * k) if fold else vectors
    ends = np.vstack(
        [
            folded.max(axis=0).reshape(-1, k),
            folded.min(axis=0).reshape(-1, k),
            vectors[fold:],
        ]
    )
    flip = -ends.min(axis=0) > ends.max(axis=0)
    vectors *= np.where(flip, -1, 1).astype(vectors.dtype)
    return vectors
