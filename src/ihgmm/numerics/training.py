"""The rows that a rule is learnt from, and Gaussian clusters of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ihgmm.matrix import HOST, Ops, Tall
from ihgmm.numerics.known_labels import KnownLabels
from ihgmm.numerics.mixture import TiedClusters, tied_clusters
from ihgmm.numerics.starts import starting_members
from ihgmm.policy import Labelling


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The rows that a rule is learnt from, in one space or several."""

    ops: Ops  # what serves them
    spaces: Sequence[Tall]  # (n, m) each
    weights: np.ndarray  # (n,)
    known_labels: KnownLabels
    by_angle: bool  # whether they are of unit length
    signed: bool  # whether opposite rows are of one cluster

    def __len__(self) -> int:
        return int(self.spaces[0].shape[0])

    def in_single_precision(self) -> TrainingRows:
        """Return the rows in float32."""
        xp = self.ops.xp
        return replace(
            self, spaces=[xp.astype(rows, xp.float32) for rows in self.spaces]
        )

    def first(self, n_rows: int) -> TrainingRows:
        """Return the first rows, of which all are in an order that looks random."""
        return replace(
            self,
            spaces=[rows[:n_rows, ...] for rows in self.spaces],
            weights=self.weights[:n_rows],
            known_labels=self.known_labels.of_rows(slice(n_rows)),
        )

    def take(self, positions: np.ndarray) -> TrainingRows:
        """Return the rows at some positions."""
        return replace(
            self,
            spaces=[self.ops.take_rows(rows, positions) for rows in self.spaces],
            weights=self.weights[positions],
            known_labels=self.known_labels.of_rows(positions),
        )

    def with_known_labels(self, known_labels: KnownLabels) -> TrainingRows:
        """Return the rows where something else is known of them."""
        return replace(self, known_labels=known_labels)

    def in_double_precision(self) -> TrainingRows:
        """Return the rows in float64."""
        xp = self.ops.xp
        return replace(
            self, spaces=[xp.astype(rows, xp.float64) for rows in self.spaces]
        )

    def on_host(self) -> TrainingRows:
        """Return the rows in the memory of the host."""
        host_spaces = [self.ops.to_host(rows) for rows in self.spaces]
        return replace(self, ops=HOST, spaces=host_spaces)

    def host_rows(self, space: int) -> np.ndarray:
        """Return the rows in one space, on the host and in float64."""
        return self.ops.to_host(self.spaces[space]).astype(np.float64, copy=False)

    def starts(self, k: int) -> list[Tall]:
        """Return memberships, (k, n), from which clusters start."""
        if self.known_labels.has_all_classes(k):
            return self.known_labels.starts_of_classes(self.ops, self.spaces, [], k)

        starts = starting_members(
            self.ops,
            self.spaces,
            k,
            self.weights,
            by_angle=self.by_angle,
            signed=self.signed,
        )
        known_labels = self.known_labels
        starts = known_labels.agreeing_starts(self.ops, self.spaces, starts, k)
        if known_labels.has_classes:
            return known_labels.starts_of_classes(self.ops, self.spaces, starts, k)
        return starts

    def one_step(self, space: int, members: Tall) -> TiedClusters | None:
        """Return the clusters that one step of maximisation makes of memberships."""
        return self.fit_clusters(
            space,
            [members],
            shrinkages=(Labelling.PULL, 1.0),
            prior=None,
            max_iter=1,
        )

    def fit_clusters(
        self,
        space: int,
        starts: Sequence[Tall],
        *,
        shrinkages: Sequence[float],
        prior: Tall | None,
        max_iter: int,
        least_gain: float = -np.inf,
    ) -> TiedClusters | None:
        """Fit tied clusters to the rows in one space."""
        return tied_clusters(
            self.spaces[space],
            starts,
            self.known_labels.reweighted(self.weights),
            shrinkages=shrinkages,
            least_gain=least_gain,
            signed=self.signed,
            prior=prior,
            max_iter=max_iter,
            ops=self.ops,
        )


@dataclass(frozen=True, eq=False)
class Trial:
    """The best of the clusters that were tried, and in which space that was."""

    clusters: TiedClusters | None = None  # None where clusters vanish in all spaces
    space: int = 0
    is_settled: bool = False  # whether they have seen all rows, and ended by themselves


def try_spaces(rows: TrainingRows, k: int) -> tuple[TrainingRows, Trial]:
    """Try tied clusters in each space, with a covariance of any shape and a sphere.

    On the first rows all starts are tried in each space, or in the last alone where
    clusters are more than directions. Also returned are all rows, with no more digits
    than so many of them need.
    """
    n_directions = rows.spaces[-1].shape[1]
    n_trial = min(len(rows), max(Labelling.TRIAL_ROWS, Labelling.ROWS_A_CLUSTER * k))
    is_heavy = n_trial * k * n_directions > Labelling.WORK
    if is_heavy or n_trial < len(rows):
        rows = rows.in_single_precision()

    trial_rows = rows.first(n_trial)
    if not is_heavy:  # a device would only wait for so little
        trial_rows = trial_rows.on_host()

    trial = best_of_spaces(trial_rows, k)
    if trial.is_settled and n_trial < len(rows):
        trial = replace(trial, is_settled=False)
    return rows, trial


def best_of_spaces(rows: TrainingRows, k: int) -> Trial:
    """Fit tied clusters from all starts in each space; return the best of them."""
    starts = rows.starts(k)
    prior = rows.known_labels.log_prior(rows.ops, rows.spaces[0], k)

    trial = Trial()
    best_gain = -np.inf
    n_directions = rows.spaces[-1].shape[1]
    first_space = len(rows.spaces) - 1 if k > n_directions else 0
    for space in range(first_space, len(rows.spaces)):
        clusters = rows.fit_clusters(
            space,
            starts,
            shrinkages=(Labelling.PULL, 1.0),
            prior=prior,
            max_iter=Labelling.ROUGH,
            least_gain=best_gain,
        )
        if clusters is not None:
            best_gain = clusters.bic_gain
            trial = Trial(
                clusters=clusters,
                space=space,
                is_settled=clusters.n_iter < Labelling.ROUGH,
            )

    return trial


def settle_on_all_rows(
    rows: TrainingRows, trial: Trial, clusters: TiedClusters, k: int, max_iter: int
) -> TiedClusters:
    """Return the clusters of a trial, once they have settled on all rows."""
    if trial.is_settled:
        return clusters

    space_rows = rows.spaces[trial.space]
    prior = rows.known_labels.log_prior(rows.ops, space_rows, k)
    start = clusters.memberships(rows.ops, space_rows, signed=rows.signed, prior=prior)
    settled = rows.fit_clusters(
        trial.space,
        [start],
        shrinkages=[clusters.shrinkage],
        prior=prior,
        max_iter=max_iter,
    )
    return clusters if settled is None else settled
