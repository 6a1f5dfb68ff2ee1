"""A start for the block Krylov method, which on large data may be all it takes."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._arrays import n_entries, take_rows
from ihgmm._devices import like, to_host
from ihgmm._tall import Tall, largest
from ihgmm._threads import own_threads
from ihgmm.blocks import orthonormal, small_gram, weighted_gram, whitening
from ihgmm.gram import GramOperator
from ihgmm.krylov import (
    Basis,
    EigenPairs,
    Order,
    block_krylov,
    block_width,
    progress,
    ritz_pairs,
)

__all__ = ["first_basis", "start_block"]

SAMPLE = 16
"""Where there are many more rows than features, one in so many makes the start, up to
twice so many rows for each feature."""

LARGE = 10**7
"""Entries of X from which a product is dear enough to sample twice as many rows, and
to look at a sample of them before the first."""

LARGEST_ROWS, CHECKED_ROWS = 64, 2048
"""Rows that tell whether the first block will do: the largest and some at random."""


def first_basis(
    G: GramOperator,
    k: int,
    order: Order,
    tol: float,
    rng: np.random.Generator,
    signal_only: bool = False,
) -> Basis | EigenPairs:
    """Return a basis of one block, or the eigenpairs where that block will do."""
    start, adjoint = start_block(G, k, order, rng)
    change, spread = whitening(small_gram(start))
    accurate = spread > 1e-3 and len(change) == change.shape[1]
    if not accurate:
        return Basis(G, orthonormal(start, rng))
    if n_entries(G.X) >= LARGE and G.shape[0] > 4 * CHECKED_ROWS:
        pairs = _start_will_do(
            G, start, adjoint, change, k, order, tol, rng, signal_only
        )
        if pairs is not None:
            return pairs
    move = like(change, start)
    return Basis(G, start @ move, adjoint @ move)


def start_block(
    G: GramOperator, k: int, order: Order, rng: np.random.Generator
) -> tuple[Tall, Tall]:
    """Return a block that leans towards the leading eigenvectors, and its adjoint.

    ``A @ W`` for a random W is half a product better than a random block. With more
    rows than features, a sample of the rows tells a much better W.
    """
    with own_threads(G.X):
        return G.there_and_back(_start_directions(G, k, order, rng))


def _start_directions(
    G: GramOperator, k: int, order: Order, rng: np.random.Generator
) -> np.ndarray:
    """Return the W of the start, a block of shape (n_features, width)."""
    n, p = G.X.shape
    W = rng.standard_normal((p, block_width(k))).astype(G.dtype)
    size = _sample_size(G, W.shape[1])
    if size:
        sample = np.sort(rng.choice(n, size, replace=False, shuffle=False))
        part = G.rows(sample)
        with warnings.catch_warnings():  # one digit is enough here
            warnings.simplefilter("ignore", ConvergenceWarning)
            basis = Basis(part, orthonormal(part.forward(W), rng))
            start = block_krylov(basis, k, order, 0.1, max_applications=3)
        lead, _ = np.linalg.qr(to_host(part.adjoint(start.vectors)))
        found = lead.shape[1]
        # The other columns must not see what these already tell.
        W[:, found:] -= lead @ (lead.T @ W[:, found:])
        W[:, :found] = lead
    return W


def _sample_size(G: GramOperator, width: int) -> int:
    """Return how many rows to start from; 0 where that would not pay."""
    n, p = G.X.shape
    if n >= 2 * SAMPLE * max(p, width):
        return min(n // SAMPLE, 2 * SAMPLE * max(p, width))
    if n >= 2 * max(p, width) and n_entries(G.X) >= LARGE:
        return 2 * n // SAMPLE
    return 0


def _start_will_do(
    G: GramOperator,
    start: Tall,
    adjoint: Tall,
    change: np.ndarray,
    k: int,
    order: Order,
    tol: float,
    rng: np.random.Generator,
    signal_only: bool,
) -> EigenPairs | None:
    """Return the Ritz pairs of the first block if a sample of rows finds them right.

    The block is ``start @ change``. Its Ritz pairs need no product with G beyond the
    adjoint of the start, and their residuals are estimated from the rows of largest
    norm and others drawn at random; None if those are not clearly small enough.
    """
    n = G.shape[0]
    rayleigh = small_gram(adjoint)
    if G.removed is not None:
        rayleigh -= weighted_gram(start, G.removed)
    rayleigh = G.factor * (change.T @ rayleigh @ change)
    values, ritz = ritz_pairs((rayleigh + rayleigh.T) / 2, order)
    pairs = change @ ritz[:, :k]
    top = largest(G.sqnorms, LARGEST_ROWS)
    others = rng.choice(n, CHECKED_ROWS, replace=False, shuffle=False)
    others = others[~np.isin(others, top)]
    rows = np.concatenate([top, others])  # together: chunks are read once for both
    share = np.ones((len(rows), 1))
    share[len(top) :] = len(others) / (n - LARGEST_ROWS)
    move = like(pairs, start)
    vectors = take_rows(start, rows) @ move
    product = to_host(G.rows(rows).from_adjoint(adjoint @ move, vectors))
    wanted = to_host(vectors) * values[:k]
    lacking = (np.square(product - wanted) / share).sum(axis=0)
    residual, goal = progress(values, np.sqrt(lacking), tol, G.dtype, signal_only)
    if residual > goal / 2:
        return None
    return EigenPairs(values[:k], start @ move, residual, 1, "block")
