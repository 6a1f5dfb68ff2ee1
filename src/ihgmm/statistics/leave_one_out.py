"""Rounds in which rows move between clusters whose centres were learnt without them.

A round compares each row with the centres that the *other* rows give, moves it, and
adds it to the next centres. What moves it is a :class:`MembershipRule`: refinement of
labels and the mixture differ by nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ihgmm.matrix import Matrix, Ops, Tall
from ihgmm.statistics.model import NoiseStructure
from ihgmm.statistics.projections import CenterSums, Projections, project_rows
from ihgmm.statistics.row_likelihood import noise_variances


class MembershipRule(Protocol):
    """Moves rows between clusters, as a round sees them."""

    def __call__(
        self,
        projections: Projections,
        memberships: Tall,
        counts: Tall | None,
        variances: np.ndarray | None,
    ) -> tuple[Tall, tuple[Tall, ...]]:
        """Return new memberships, and figures that are added up over all rows.

        Parameters
        ----------
        projections : Projections
            Rows seen from the centres of the others.
        memberships : array of shape (n_samples, n_clusters)
            Where rows are.
        counts : array of shape (n_samples,) or None
            How much rows count; None if all alike.
        variances : ndarray of shape (n_clusters,) or None
            Variances of the noise; None if every row has its own.
        """


def keep_memberships(
    projections: Projections,
    memberships: Tall,
    counts: Tall | None,
    variances: np.ndarray | None,
) -> tuple[Tall, tuple[Tall, ...]]:
    """Leave all rows where they are, as a :class:`MembershipRule`."""
    return memberships, ()


@dataclass(frozen=True, eq=False)
class Round:
    """What a round has led to; what belongs to rows is where the data are."""

    X: Matrix
    noise: NoiseStructure
    level: float  # a typical length of rows: weights are in its units
    memberships: Tall  # (n_samples, n_clusters)
    weights: Tall  # (n_samples, n_clusters): of rows in the sums
    center_sums: CenterSums  # with which the next round compares rows
    sizes: np.ndarray  # (n_clusters,): sums of memberships
    nonzero_sizes: np.ndarray  # the same of rows that are not zero, as they count
    # What rows were compared with in this round: sums, and variances of the noise.
    compared_sums: CenterSums | None = None
    variances: np.ndarray | None = None
    tallies: tuple[np.ndarray, ...] = ()  # what the rule added up over rows

    @classmethod
    def first(cls, X: Matrix, memberships: Tall, noise: NoiseStructure) -> Round:
        """Sum up centres in which all rows count as if of the same length."""
        level = X.ops.number(X.ops.xp.mean(X.sqnorms)) ** 0.5 or 1.0

        def sum_block(
            block: Matrix, sqnorms: Tall, counts: Tall | None, memberships: Tall
        ) -> Any:
            members = _counted(memberships, counts)
            inverse_lengths = block.ops.ratio(level, block.ops.xp.sqrt(sqnorms))
            weights = members * inverse_lengths[:, None]
            sums = _sums_of_block(block, weights, memberships, members, sqnorms)
            return (weights,), sums

        (weights,), (sums, loads, sizes, nonzero_sizes) = X.sweep(
            sum_block, X.sqnorms, X.weights, memberships
        )
        return cls(
            X=X,
            noise=noise,
            level=level,
            memberships=memberships,
            weights=weights,
            center_sums=CenterSums(sums=sums, loads=loads),
            sizes=sizes,
            nonzero_sizes=nonzero_sizes,
        )

    def sweep(self, work: Callable[..., Any], *tall: Tall | None) -> Any:
        """Go through the rows as they are seen from the centres of the others.

        The work gets a block of rows, their projections, and its part of tall arrays.
        """
        center_sums = self.center_sums

        def project_and_work(
            block: Matrix, sqnorms: Tall, weights: Tall, *tall: Tall | None
        ) -> Any:
            projections = project_rows(block, sqnorms, center_sums, weights)
            return work(block, projections, *tall)

        return self.X.sweep(project_and_work, self.X.sqnorms, self.weights, *tall)

    def next(self, rule: MembershipRule, memberships: Tall | None = None) -> Round:
        """Compare every row, let a rule move it, and sum up the next centres.

        Rows are where this round left them, or where other ``memberships`` say.
        """
        if memberships is None:
            memberships = self.memberships
        variances = None
        if self.noise != "individual":
            variances = self._noise_variances(memberships)
        noise = self.noise
        level = self.level

        def move_block(
            block: Matrix,
            projections: Projections,
            counts: Tall | None,
            memberships: Tall,
        ) -> Any:
            moved, tallies = rule(projections, memberships, counts, variances)

            members = _counted(moved, counts)
            weights = projections.weights(members, noise, level)
            sums = _sums_of_block(block, weights, moved, members, projections.sqnorms)
            return (moved, weights), (*sums, *tallies)

        (moved, weights), totals = self.sweep(move_block, self.X.weights, memberships)
        sums, loads, sizes, nonzero_sizes, *tallies = totals
        return Round(
            X=self.X,
            noise=noise,
            level=level,
            memberships=moved,
            weights=weights,
            center_sums=CenterSums(sums=sums, loads=loads),
            sizes=sizes,
            nonzero_sizes=nonzero_sizes,
            compared_sums=self.center_sums,
            variances=variances,
            tallies=tuple(tallies),
        )

    def _noise_variances(self, memberships: Tall) -> np.ndarray:
        """Return variances of the noise of clusters, as rows of all blocks show it."""

        def parts_of_block(_: Matrix, projections: Projections) -> Any:
            return (
                projections.cosines,
                projections.center_sqnorms,
                projections.loads,
                projections.sqnorms,
            ), ()

        projected, _ = self.sweep(parts_of_block)
        tall = [*projected, _counted(memberships, self.X.weights)]
        ops = self.X.ops
        n, p = self.X.shape
        if n * memberships.shape[1] < 2**20:
            # They come to the host sooner than dask makes a graph.
            tall = [ops.take_rows(lines, slice(None)) for lines in tall]
            ops = ops.taken_ops

        cosines, center_sqnorms, loads, sqnorms, members = tall
        projections = Projections(
            cosines=cosines,
            center_sqnorms=center_sqnorms,
            loads=loads,
            sqnorms=sqnorms,
            n_features=p,
            ops=ops,
        )
        return noise_variances(projections, members, self.noise)


def _sums_of_block(
    block: Matrix, weights: Tall, memberships: Tall, members: Tall, sqnorms: Tall
) -> tuple[Tall, Tall, Tall, Tall]:
    """Return sums of weighted rows, loads, sizes, and sizes without zero rows.

    ``members`` are memberships times how much rows count.
    """
    ops = block.ops
    xp = ops.xp
    is_nonzero = ops.widen(sqnorms > 0)[:, None]
    return (
        ops.widen(block.adjoint(weights)),
        xp.sum(weights * weights, axis=0),
        xp.sum(memberships, axis=0),
        xp.sum(members * is_nonzero, axis=0),
    )


def _counted(values: Tall, counts: Tall | None) -> Tall:
    """Return values of rows, one line for each, times how much the rows count."""
    return values if counts is None else values * counts[:, None]


def indicators(X: Matrix, labels: Tall, n_clusters: int) -> Tall:
    """Return memberships that are 1 in the cluster of each row and 0 elsewhere."""
    labels = X.ops.xp.astype(X.to_device(labels), X.ops.xp.int64)
    return X.ops.one_hot(labels, n_clusters, X.ops.widen(labels))


def move_row(ops: Ops, memberships: Tall, row: int, cluster: int) -> Tall:
    """Return memberships with one row wholly in a cluster."""
    n, k = memberships.shape
    is_row = ops.to_device(np.arange(n) == row, memberships)[:, None]
    members = ops.cast_like(np.eye(k)[[cluster]], memberships)
    return ops.xp.where(is_row, members, memberships)
