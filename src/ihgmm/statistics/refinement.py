"""Labels refined by comparing rows with the centres of the other rows (Lloyd)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ihgmm.matrix import Matrix, Tall, as_matrix, to_host
from ihgmm.numerics.iteration import iterate
from ihgmm.policy import Rounds
from ihgmm.statistics.leave_one_out import Round, indicators, keep_memberships, move_row
from ihgmm.statistics.projections import Projections
from ihgmm.statistics.row_likelihood import joint_log_likelihood


@dataclass(frozen=True, eq=False)
class Refinement:
    """Refined labels."""

    labels: Tall  #: the cluster of each row, where the data are
    n_iter: int  #: rounds that were run
    converged: bool  #: whether nothing changed any more, or earlier labels came back


def refine_labels(X: Any, labels: Tall, k: int, *, max_iter: int = 100) -> Refinement:
    """Compare rows with the centres of the other rows until no label changes.

    Labels are integers from 0, all in use, and a cluster keeps its last row. The first
    rounds are soft, so that one wrong label does not keep others wrong; then rows go
    to the centre with the largest cosine.
    """
    X = as_matrix(X)
    if X.streamed and X.n_entries < 2**20:  # rounds would take longer than the copy
        refined = refine_labels(X.to_memory(), to_host(labels), k, max_iter=max_iter)
        return replace(refined, labels=X.to_device(refined.labels))

    labels = X.to_device(labels)
    start = Round.first(X, indicators(X, labels, k), "individual")
    if k == 1:
        return Refinement(labels=labels, n_iter=0, converged=True)

    # The first comparison, with centres in which rows count alike, is a round too.
    start = start.next(keep_memberships)
    soft = iterate(
        lambda before: before.next(soften_memberships),
        start,
        max_iter=min(Rounds.SOFT, max_iter) - 1,
        has_settled=_has_few_moves,
    )
    n_iter = 1 + soft.n_iter
    hard = iterate(
        _move_all_to_nearest,
        _LabelledRound(round=soft.state, labels=labels, earlier_labels=()),
        max_iter=max_iter - n_iter,
        has_settled=_is_repeated,
    )
    return Refinement(
        labels=hard.state.labels,
        n_iter=n_iter + hard.n_iter,
        converged=hard.converged,
    )


def soften_memberships(
    projections: Projections,
    memberships: Tall,
    counts: Tall | None,
    variances: np.ndarray | None,
) -> tuple[Tall, tuple[Tall, ...]]:
    """Make memberships half sure of what is likely; count rows that move by more.

    They follow the root of the likelihood, so that early errors can mend.
    """
    ops = projections.ops
    xp = ops.xp
    equal_shares = np.ones(memberships.shape[1])
    joint = joint_log_likelihood(projections, equal_shares)
    softened = ops.softmax(0.5 * joint)
    is_moved = ops.row_max(xp.abs(softened - memberships)) > Rounds.MOVE
    return softened, (xp.sum(ops.widen(is_moved)),)


def _has_few_moves(_: Round, after: Round) -> bool:
    """Tell whether soft rounds may end: of many rows a few always move."""
    (n_moved,) = after.tallies
    return bool(n_moved <= after.X.shape[0] // Rounds.ROWS_PER_MOVE)


def move_to_nearest(
    projections: Projections,
    memberships: Tall,
    counts: Tall | None,
    variances: np.ndarray | None,
) -> tuple[Tall, tuple[Tall, ...]]:
    """Move rows to the cluster of largest cosine."""
    ops = projections.ops
    xp = ops.xp
    nearest = xp.argmax(projections.cosines, axis=1)
    # Zero rows fit everywhere alike and keep their label.
    is_zero = projections.sqnorms == 0
    labels = xp.where(is_zero, xp.argmax(memberships, axis=1), nearest)
    return ops.one_hot(labels, memberships.shape[1], memberships), ()


@dataclass(frozen=True, eq=False)
class _LabelledRound:
    """A round in which each row is in one cluster, and labels of rounds before."""

    round: Round
    labels: Tall
    earlier_labels: tuple[Tall, ...]  # the latest first


def _move_all_to_nearest(before: _LabelledRound) -> _LabelledRound:
    """Move rows to the nearest centre; clusters keep their last row."""
    after = before.round.next(move_to_nearest)
    if not after.sizes.all():
        memberships = _with_last_rows(before, after)
        after = before.round.next(keep_memberships, memberships)

    # Circles are short, if there are any.
    earlier_labels = (before.labels, *before.earlier_labels[: Rounds.CIRCLE - 1])
    return _LabelledRound(
        round=after,
        labels=after.X.ops.xp.argmax(after.memberships, axis=1),
        earlier_labels=earlier_labels,
    )


def _is_repeated(_: _LabelledRound, after: _LabelledRound) -> bool:
    """Tell whether labels are those of one of the rounds before."""
    ops = after.round.X.ops
    return any(
        not ops.number(ops.xp.any(after.labels != labels))
        for labels in after.earlier_labels
    )


def _with_last_rows(before: _LabelledRound, after: Round) -> Tall:
    """Return memberships in which clusters keep the row that loses least by staying."""
    ops = after.X.ops
    xp = ops.xp
    memberships = after.memberships
    sizes = after.sizes.copy()
    new_labels = xp.argmax(memberships, axis=1)

    def loss_of_block(_: Matrix, projections: Projections, labels: Tall) -> Any:
        """Return how much better the best centre is than that of the label."""
        ops = projections.ops
        cosines = projections.cosines
        return (ops.row_max(cosines) - ops.pick(cosines, labels),), ()

    (losses,), _ = before.round.sweep(loss_of_block, before.labels)
    for cluster in np.flatnonzero(sizes == 0).tolist():
        was_member = before.labels == cluster
        if not ops.number(xp.any(was_member)):
            continue
        losses_of_members = xp.where(was_member, losses, xp.full_like(losses, np.inf))
        row = int(ops.number(xp.argmin(losses_of_members)))
        other_cluster = int(ops.number(new_labels[row]))
        if sizes[other_cluster] > 1:
            sizes[other_cluster] -= 1
            memberships = move_row(ops, memberships, row, cluster)
    return memberships
