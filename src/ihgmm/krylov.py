"""A restarted block Krylov method for the leading eigenpairs of a Gram operator."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._arrays import RowBlocks, like, n_entries, own_threads, take_rows, to_host
from ihgmm._progress import Say
from ihgmm._tall import Tall, largest
from ihgmm.blocks import (
    column_norms,
    combine,
    grow_rayleigh,
    less,
    next_block,
    next_pair,
    orthonormal,
    project_out,
    small_gram,
    weighted_gram,
    whitening,
)
from ihgmm.gram import GramOperator

__all__ = [
    "EigenPairs",
    "Order",
    "block_krylov",
    "block_width",
    "leading_order",
    "most_blocks",
    "rounding_error",
    "start_block",
]

Order = Literal["algebraic", "magnitude"]

OVERSAMPLING = 5
"""Columns of a block beyond the eigenvectors wanted, at least."""

MIN_BLOCKS, MAX_BLOCKS, BASIS_ENTRIES = 4, 16, 2**23
"""Blocks the basis may hold before it is condensed: few where rows are many."""

MAX_APPLICATIONS = 100
"""Products with G after which the block solver gives up and warns."""

SMALLEST_GAP = 1e-2
"""Gaps below this share of the K-th eigenvalue are not resolved any further."""

SAMPLE = 16
"""Where there are many more rows than features, one in so many makes the start, up to
twice so many rows for each feature."""

LARGE = 10**7
"""Entries of X from which a product is dear enough to sample twice as many rows, and
to look at a sample of them before the first."""

LARGEST_ROWS, CHECKED_ROWS = 64, 2048
"""Rows that tell whether the first block will do: the largest and some at random."""


@dataclass(frozen=True)
class EigenPairs:
    """Leading eigenpairs and how they were reached.

    Attributes
    ----------
    values : ndarray of shape (k,), float64
        Eigenvalues, leading first.
    vectors : array of shape (n, k)
        Orthonormal eigenvectors in columns; in each the entry of largest magnitude
        is positive.
    residual : float
        The largest ``norm(G @ u - value * u)``, as estimated by the solver.
    n_iter : int
        Products of G with a block (``"block"``) or a vector (``"lanczos"``); 0 for
        ``"dense"``.
    solver : str
        The solver that was used.
    """

    values: np.ndarray
    vectors: Tall
    residual: float
    n_iter: int
    solver: str


def leading_order(values: np.ndarray, order: Order) -> np.ndarray:
    """Return the positions of eigenvalues, leading first."""
    return np.argsort(
        -(np.abs(values) if order == "magnitude" else values), kind="stable"
    )


def block_width(k: int) -> int:
    """Return the width of a block: products run best at multiples of eight."""
    return -(-(k + OVERSAMPLING) // 8) * 8


def most_blocks(n_rows: int, width: int) -> int:
    """Return how many blocks a basis may hold before it is condensed."""
    return int(np.clip(BASIS_ENTRIES // (n_rows * width), MIN_BLOCKS, MAX_BLOCKS))


def rounding_error(values: np.ndarray, dtype: np.dtype) -> float:
    """Return the size of rounding errors in a product with G."""
    return 20 * float(np.finfo(dtype).eps * np.abs(values).max())


def block_krylov(
    G: GramOperator,
    k: int,
    order: Order,
    tol: float,
    rng: np.random.Generator,
    *,
    start: Tall | None = None,
    max_applications: int | None = None,
    signal_only: bool = False,
    say: Say | None = None,
) -> EigenPairs:
    """Run the restarted block Krylov method."""
    max_applications = max_applications or MAX_APPLICATIONS
    width = block_width(k)
    if start is None:
        last, adjoint = start_block(G, k, order, rng)
        change, spread = whitening(small_gram(last))
        accurate = spread > 1e-3 and len(change) == change.shape[1]
        if accurate and n_entries(G.X) >= LARGE and G.shape[0] > 4 * CHECKED_ROWS:
            pairs = _start_will_do(
                G, last, adjoint, change, k, order, tol, rng, signal_only
            )
            if pairs is not None:
                return pairs
        if accurate:
            move = like(change, last)
            last, adjoint = last @ move, adjoint @ move
        else:
            last = orthonormal(last, rng)
            adjoint = G.adjoint(last)
    else:
        last = orthonormal(start, rng)
        adjoint = G.adjoint(last)
    # A product of data that is not in memory is read for once if its adjoint is taken
    # along; in memory that would be in vain after the last one.
    along = isinstance(G.X, RowBlocks)
    most = most_blocks(max(G.X.shape) if along else G.shape[0], width)
    basis = [last]
    adjoints = [adjoint] if along else []
    rayleigh = np.zeros((0, 0))
    drift = 0.0
    for n_iter in range(1, max_applications + 1):
        if along:
            rest, back = G.with_adjoint(adjoint, last)
        else:
            rest = G.from_adjoint(adjoint, last)
        rest, column = project_out(basis, rest)
        rayleigh = grow_rayleigh(rayleigh, column)
        values, ritz = _ritz(rayleigh, order)
        # G @ basis = basis @ rayleigh + rest @ (last rows): what a Ritz pair lacks.
        residuals = column_norms(ritz[-last.shape[1] :, :k], small_gram(rest))
        residual, goal = _progress(values, residuals, tol, G.dtype, signal_only)
        if say is not None:
            say(_words(n_iter, residual, goal))
        if residual <= goal or n_iter == max_applications:
            break
        noise = rounding_error(values, G.dtype)
        pair = None
        if along:
            # Errors of an adjoint grow as a product shrinks to what is new in it.
            new = float(np.sqrt(np.diag(small_gram(rest)).min()))
            drift = (drift * abs(values[0]) + noise) / max(new, noise)
        if along and drift < 0.1 * tol:
            back = less(back, adjoints, column)
            pair = next_pair(basis, adjoints, rest, back)
        if pair is None:
            drift = 0.0
            following = next_block(basis, rest, noise)
            if following.shape[1] == 0:  # the basis spans an invariant subspace
                residual = 0.0
                break
            pair = following, G.adjoint(following)
        last, adjoint = pair
        if len(basis) == most:
            best = ritz[:, :width]
            basis = [combine(basis, best)]
            adjoints = [combine(adjoints, best)] if along else []
            rayleigh = np.diag(values[:width])
        basis.append(last)
        if along:
            adjoints.append(adjoint)
    if residual > goal:
        warnings.warn(
            f"The {k} leading eigenpairs did not converge in {n_iter} products: "
            f"residual {residual / abs(values[0]):.1e} of the largest eigenvalue, "
            f"{goal / abs(values[0]):.1e} was asked for. The data may hold fewer than "
            f'{k} clusters; otherwise raise tol or take eigen_solver="lanczos".',
            ConvergenceWarning,
            stacklevel=2,
        )
    return EigenPairs(
        values[:k], combine(basis, ritz[:, :k]), residual, n_iter, "block"
    )


def _words(n_iter: int, residual: float, goal: float) -> str:
    """Say how far the eigenvectors are from what was asked for, in units of that."""
    far = residual / goal if goal > 0 else 0.0
    return f"{n_iter} product{'s' * (n_iter != 1)}, residual {far:.2g} of the goal"


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
    values, ritz = _ritz((rayleigh + rayleigh.T) / 2, order)
    pairs = change @ ritz[:, :k]
    top = largest(G.sqnorms, LARGEST_ROWS)
    others = rng.choice(n, CHECKED_ROWS, replace=False, shuffle=False)
    others = others[~np.isin(others, top)]
    shares = (1.0, len(others) / (n - LARGEST_ROWS))
    lacking = np.zeros(k)
    move = like(pairs, start)
    for rows, share in zip((top, others), shares, strict=True):
        vectors = take_rows(start, rows) @ move
        product = to_host(G.rows(rows).from_adjoint(adjoint @ move, vectors))
        wanted = to_host(vectors) * values[:k]
        lacking += np.square(product - wanted).sum(axis=0) / share
    residual, goal = _progress(values, np.sqrt(lacking), tol, G.dtype, signal_only)
    if residual > goal / 2:
        return None
    return EigenPairs(values[:k], start @ move, residual, 1, "block")


def _ritz(rayleigh: np.ndarray, order: Order) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenpairs of a small symmetric matrix, leading first."""
    values, vectors = np.linalg.eigh(rayleigh)
    lead = leading_order(values, order)
    return values[lead], vectors[:, lead]


def _progress(
    values: np.ndarray,
    residuals: np.ndarray,
    tol: float,
    dtype: np.dtype,
    signal_only: bool,
) -> tuple[float, float]:
    """Return the largest residual that matters and the one to reach."""
    k = len(residuals)
    wanted = _certain_signal(values[:k], residuals) if signal_only else k
    return float(residuals[:wanted].max()), _goal(values, wanted, tol, dtype)


def _certain_signal(values: np.ndarray, residuals: np.ndarray) -> int:
    """Return how many leading pairs, one at least, may have positive eigenvalues.

    A true eigenvalue lies within a residual of its estimate. What cannot exceed a
    hundred-thousandth of the largest eigenvalue is not signal.
    """
    may_be = (values > 0) | (values + residuals > 1e-5 * values[0])
    return max(1, int(np.flatnonzero(may_be)[-1]) + 1 if may_be.any() else 1)


def _goal(values: np.ndarray, k: int, tol: float, dtype: np.dtype) -> float:
    """Return the residual at which the leading subspace is accurate to tol."""
    size = np.abs(values)
    smallest = SMALLEST_GAP * size[k - 1]
    gap = abs(values[k - 1] - values[k]) if len(values) > k else size[k - 1]
    return float(max(tol * max(gap, smallest), rounding_error(values, dtype)))


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
            start = block_krylov(
                part, k, order, 0.1, rng, start=part.forward(W), max_applications=3
            )
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
