"""A mixture fitted by rounds of expectation and maximisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ihgmm.matrix import Matrix, Ops, Tall
from ihgmm.numerics.iteration import iterate
from ihgmm.policy import Rounds
from ihgmm.statistics.leave_one_out import Round, keep_memberships, move_row
from ihgmm.statistics.model import NoiseStructure
from ihgmm.statistics.projections import CenterSums, Projections
from ihgmm.statistics.row_likelihood import joint_log_likelihood, mixing_weights


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """A fitted mixture."""

    memberships: Tall  #: probability of each cluster for each row, given others
    mixing_weights: np.ndarray  #: shares of the clusters
    noise_variances: np.ndarray | None  #: of each cluster; None if rows have their own
    center_sums: CenterSums  #: directions of the centres, all rows included
    log_likelihood: float  #: of the rows, each given the others
    n_iter: int  #: rounds that were run
    change: float  #: how much a row's memberships moved in the last round, on average

    def in_order(self, order: np.ndarray, ops: Ops) -> MixtureFit:
        """Return the mixture with its clusters in another order."""
        columns = ops.to_device(order, self.memberships)
        variances = self.noise_variances
        return replace(
            self,
            memberships=ops.xp.take(self.memberships, columns, axis=1),
            mixing_weights=self.mixing_weights[order],
            noise_variances=None if variances is None else variances[order],
            center_sums=self.center_sums.in_order(order),
        )


def fit_mixture(
    X: Matrix,
    memberships: Tall,
    *,
    noise: NoiseStructure = "individual",
    settling: int = 1,
    max_iter: int = 100,
    tol: float = 1e-4,
    say: Callable[[str], None] | None = None,
) -> MixtureFit:
    """Fit centres, shares and noise, to start from some memberships.

    After ``settling`` rounds they move, until by less than ``tol`` a row. A likelihood
    of rows in their own centres would have no maximum: one row makes its noise vanish.
    """
    start = Round.first(X, memberships, noise)
    # Shares that follow the memberships would feed on themselves: where clusters are
    # hard to tell apart, the largest would swallow the others.
    shares = mixing_weights(start.nonzero_sizes)
    for _ in range(settling):
        start = start.next(keep_memberships)

    def move_rows(before: _MixtureRound) -> _MixtureRound:
        after = _move_to_likely(before, shares)
        if say is not None:
            say(f"round {after.n_iter}, memberships moved by {after.change:.2g}")
        return after

    rounds = iterate(
        move_rows,
        _MixtureRound(round=start, n_iter=0, log_likelihood=0.0, change=np.inf),
        max_iter=max_iter,
        has_settled=lambda _, after: not after.change > tol,
    )
    last = rounds.state.round
    assert last.compared_sums is not None
    return MixtureFit(
        memberships=last.memberships,
        mixing_weights=mixing_weights(last.nonzero_sizes),
        noise_variances=last.variances,
        center_sums=last.compared_sums,
        log_likelihood=rounds.state.log_likelihood,
        n_iter=rounds.n_iter,
        change=rounds.state.change,
    )


@dataclass(frozen=True, eq=False)
class _MixtureRound:
    """A round of expectation and maximisation, and what it has changed."""

    round: Round
    n_iter: int  # rounds so far
    log_likelihood: float
    change: float  # of the memberships of a row, on average


@dataclass(frozen=True, eq=False)
class _LikelyMemberships:
    """Moves memberships to what is likely; adds up by how much, log-likelihoods."""

    shares: np.ndarray  # of the clusters
    is_damped: bool  # only half the way

    def __call__(
        self,
        projections: Projections,
        memberships: Tall,
        counts: Tall | None,
        variances: np.ndarray | None,
    ) -> tuple[Tall, tuple[Tall, ...]]:
        ops = projections.ops
        xp = ops.xp
        joint = joint_log_likelihood(projections, self.shares, variances)

        is_nonzero = ops.widen(projections.sqnorms > 0)
        log_likelihood = ops.logsumexp(joint) * is_nonzero
        if counts is not None:
            log_likelihood = log_likelihood * counts

        posterior = ops.softmax(joint)
        if self.is_damped:
            posterior = memberships + 0.5 * (posterior - memberships)
        moved_by = xp.sum(xp.abs(posterior - memberships))
        return posterior, (moved_by, xp.sum(log_likelihood))


def _move_to_likely(before: _MixtureRound, shares: np.ndarray) -> _MixtureRound:
    """Move rows to where they are likely; the last row of a vanishing cluster stays."""
    X = before.round.X
    ops = X.ops
    xp = ops.xp
    n_iter = before.n_iter + 1
    # Only half the way after a while, lest memberships swing for ever.
    is_damped = n_iter > Rounds.FULL_STEPS
    rule = _LikelyMemberships(shares=shares, is_damped=is_damped)
    after = before.round.next(rule)
    moved_by, log_likelihood = after.tallies

    vanishing = np.flatnonzero(after.sizes < 0.5).tolist()
    if vanishing:
        memberships = after.memberships
        memberships_before = before.round.memberships
        for cluster in vanishing:
            row = int(ops.number(xp.argmax(memberships_before[:, cluster])))
            memberships = move_row(ops, memberships, row, cluster)
        after = before.round.next(keep_memberships, memberships)
        moved_by = xp.sum(xp.abs(memberships - memberships_before))

    return _MixtureRound(
        round=after,
        n_iter=n_iter,
        log_likelihood=float(log_likelihood),
        change=ops.number(moved_by) / (2 * X.shape[0]),
    )
