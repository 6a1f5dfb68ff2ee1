"""The stages of HeteroPCA: a diagonal that settles within a growing subspace."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm.blocks import next_block, project_out
from ihgmm.gram import GramOperator
from ihgmm.hetero.subspace import RitzPairs, Subspace, largest_norm
from ihgmm.krylov import (
    MAX_APPLICATIONS,
    Order,
    block_width,
    most_blocks,
    rounding_error,
)

__all__ = ["State", "impute_in_stages"]

CONDITION = 4.0
"""Largest ratio of the eigenvalues that are taken up in one stage."""

SLOW, SLOWEST = 0.5, 0.99
"""The rate at which updates shrink from which on the method looks ahead, and the one
it reckons with where it has not seen any."""

ROUGH = 0.1
"""The accuracy of stages before the last, and of what the ranks are chosen by."""


@dataclass(frozen=True, eq=False)
class State:
    """A diagonal and the eigenpairs that it comes from."""

    ritz: RitzPairs
    diagonal: np.ndarray
    n_updates: int
    change: float
    settled: bool


def impute_in_stages(
    space: Subspace,
    hollow: GramOperator,
    k: int,
    order: Order,
    tol: float,
    max_iter: int,
    most: np.ndarray,
) -> tuple[tuple[int, ...], State]:
    """Settle the diagonal stage by stage, enlarging the subspace as needed.

    The diagonal is kept between zero and ``most``. Returns the ranks of the stages and
    the last state. See :func:`ihgmm.hetero.impute_diagonal`.
    """
    width = k + 1 if space.basis is None else block_width(k)
    ritz = space.ritz(np.zeros(len(most)), width, order)
    state = State(ritz, ritz.diagonal, 0, np.inf, False)
    ranks: tuple[int, ...] = ()
    rank = 0
    while rank < k:
        while grown := _enlarged(ritz, k, ROUGH * ritz.size(k), hollow):
            ritz = grown.ritz(state.diagonal, width, order)
        rank = _next_rank(ritz.sizes, rank, k)
        ranks += (rank,)
        accuracy = tol if rank == k else max(tol, ROUGH)
        state = _settle(replace(state, ritz=ritz), rank, accuracy, max_iter, most)
        goal = accuracy * state.ritz.gap(rank)
        while grown := _enlarged(state.ritz, rank, goal, hollow):
            ritz = grown.ritz(state.diagonal, width, order)
            state = _settle(replace(state, ritz=ritz), rank, accuracy, max_iter, most)
            goal = accuracy * state.ritz.gap(rank)
        ritz = state.ritz.again(state.diagonal)
    _warn(state, hollow, k, tol)
    return ranks, replace(state, ritz=ritz)


def _next_rank(sizes: np.ndarray, rank: int, k: int) -> int:
    """Return the rank of the next stage, given eigenvalues, leading first."""
    sizes = np.append(sizes, 0.0)
    for r in range(k, rank, -1):
        last, following = sizes[r - 1], sizes[r]
        within = last > 0 and sizes[rank] <= CONDITION * last
        if within and last - following >= last / k:
            return r
    return k


def _settle(
    state: State, rank: int, accuracy: float, max_iter: int, most: np.ndarray
) -> State:
    """Update the diagonal, within the subspace, until it turns no eigenvector."""
    ritz, n_updates = state.ritz, state.n_updates
    diagonal, change, before, last = ritz.diagonal, state.change, np.inf, None
    while n_updates < max_iter:
        n_updates += 1
        diagonal, leverages = ritz.fitted(rank)
        diagonal = np.clip(diagonal, 0.0, most)
        step = diagonal - ritz.diagonal
        # A change E of the matrix turns the leading subspace U by norm(E @ U) / gap.
        change = float(np.sqrt(step**2 @ leverages)) / ritz.gap(rank)
        # Steps shrink at a steady rate, which tells what is still to come.
        rate = min(change / before, SLOWEST) if before < np.inf else SLOWEST
        if change * max(1.0, rate / (1.0 - rate)) <= accuracy:
            return State(ritz, diagonal, n_updates, change, True)
        if last is not None and rate > SLOW and n_updates < max_iter:
            # Few rows that dominate settle slowly: look ahead along the last two
            # steps, and go there if the approximation is better than here.
            bend, pace = step - last, np.linalg.norm(last)
            ahead = pace / max(np.linalg.norm(bend), 1e-6 * pace)
            far = ritz.diagonal - last + 2 * ahead * last + ahead**2 * bend
            trial = ritz.again(np.clip(far, 0.0, most))
            n_updates += 1
            if trial.misfit(rank) < ritz.misfit(rank):
                ritz, diagonal, before, last = trial, trial.diagonal, np.inf, None
                continue
        ritz, before, last = ritz.again(diagonal), change, step
    return State(ritz, diagonal, n_updates, change, False)


def _enlarged(
    ritz: RitzPairs, rank: int, goal: float, hollow: GramOperator
) -> Subspace | None:
    """Return a larger subspace, or None if the eigenvectors do not leave this one."""
    space = ritz.space
    if space.basis is None or space.n_products >= MAX_APPLICATIONS:
        return None
    rest = ritz.lacking()
    floor = rounding_error(ritz.values, hollow.dtype)
    if largest_norm(rest[:, : ritz.signal(rank)]) <= max(goal, floor):
        return None
    n, width = rest.shape
    # Once more than in exact arithmetic: in float32 the basis would degenerate.
    rest, _ = project_out([space.basis], rest)
    block = next_block([space.basis], rest, floor)
    if block.shape[1] == 0:
        return None
    if space.basis.shape[1] >= most_blocks(n, width) * width:
        space = space.condensed(ritz.coefficients)
    return space.joined(Subspace.of(hollow, block))


def _warn(state: State, hollow: GramOperator, k: int, tol: float) -> None:
    """Warn when a cap was reached."""
    ritz = state.ritz
    remedy = (
        f"The data may hold fewer than {k} clusters; otherwise raise tol or take "
        'gram="hollow".'
    )
    if not state.settled:
        warnings.warn(
            f"The diagonal did not settle in {state.n_updates} updates: the last one "
            f"turned the {k} leading eigenvectors by {state.change:.1e}, and {tol:.1e} "
            f"was asked for. {remedy}",
            ConvergenceWarning,
            stacklevel=4,
        )
        return
    goal = max(tol * ritz.gap(k), rounding_error(ritz.values, hollow.dtype))
    if ritz.space.n_products >= MAX_APPLICATIONS and ritz.residual(k) > goal:
        largest = abs(ritz.values[0])
        warnings.warn(
            f"The {k} leading eigenpairs did not converge in {ritz.space.n_products} "
            f"products: residual {ritz.residual(k) / largest:.1e} of the largest "
            f"eigenvalue, {goal / largest:.1e} was asked for. {remedy}",
            ConvergenceWarning,
            stacklevel=4,
        )
