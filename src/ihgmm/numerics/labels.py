"""From an embedding to labels: a rule is learnt from some rows and takes any rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, assert_never

import numpy as np

from ihgmm.matrix import HOST, Ops, Tall
from ihgmm.matrix.threads import one_thread
from ihgmm.numerics.kmeans import kmeans_rule
from ihgmm.numerics.known_labels import NOTHING_KNOWN, KnownLabels
from ihgmm.numerics.mixture import TiedClusters, tied_clusters
from ihgmm.numerics.neighbors import neighbor_rule
from ihgmm.numerics.rules import FittedRule, LinearRule
from ihgmm.numerics.starts import starting_members
from ihgmm.policy import Labelling

Assignment = Literal["tied", "kmeans", "neighbors"]
ASSIGNMENTS: tuple[Assignment, ...] = ("tied", "kmeans", "neighbors")


def learn_rule(
    spaces: Sequence[Tall],
    n_clusters: int,
    method: Assignment = "tied",
    *,
    weights: np.ndarray | None = None,
    by_angle: bool = True,
    signed: bool = False,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    seed: int = 0,
    known_labels: KnownLabels = NOTHING_KNOWN,
    ops: Ops = HOST,
) -> FittedRule:
    """Learn from rows of an embedding how to label.

    Parameters
    ----------
    spaces : sequence of arrays of shape (n, m)
        Embeddings of the same rows. Of several, tied clusters choose one, for every
        method.
    n_clusters : int
        Number of clusters.
    method : {"tied", "kmeans", "neighbors"}
        Gaussian clusters of one covariance, k-means, or the graph of neighbours.
        K-means serves also where tied clusters vanish.
    weights : array of shape (n,), optional
        How much rows count.
    by_angle : bool
        Whether rows are of unit length.
    signed : bool
        Whether opposite rows are of one cluster; only of tied clusters.
    n_init, seed
        Starts of k-means, and what they are drawn by.
    max_iter : int
        Cap on the iterations of k-means or tied clusters.
    known_labels : KnownLabels
        What is known of the rows; only tied clusters learn from it.
    ops : Ops
        What serves the rows.

    Returns
    -------
    fitted : FittedRule
        The rule, and the position of the space that it takes rows of.
    """
    rows = TrainingRows(
        ops=ops,
        spaces=spaces,
        weights=np.ones(spaces[0].shape[0]) if weights is None else weights,
        known_labels=known_labels,
        by_angle=by_angle,
        signed=signed,
    )

    # One thread: sums, and so labels, never depend on how many there are.
    with one_thread():
        trial = _Trial()
        if len(spaces) > 1 or method == "tied":
            rows, trial = _try_spaces(rows, n_clusters)

        match method:
            case "tied" if trial.clusters is not None:
                clusters = _settle_on_all_rows(
                    rows, trial, trial.clusters, n_clusters, max_iter
                )
                return FittedRule(
                    rule=LinearRule(
                        coefficients=clusters.coefficients,
                        intercepts=clusters.intercepts,
                        signed=signed,
                    ),
                    space=trial.space,
                    n_iter=clusters.n_iter,
                    bic_gain=trial.clusters.bic_gain,
                    shrinkage=clusters.shrinkage,
                )

            case "tied" | "kmeans":
                fitted = kmeans_rule(
                    rows.host_rows(trial.space),
                    n_clusters,
                    rows.weights,
                    n_init=n_init,
                    max_iter=max_iter,
                    seed=seed,
                )
                return replace(fitted, space=trial.space)

            case "neighbors":
                voters = rows.host_rows(trial.space)[: Labelling.GRAPH_ROWS]
                rule = neighbor_rule(voters, n_clusters)
                return FittedRule(rule=rule, space=trial.space)
            case _:
                assert_never(method)


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

    def on_host(self) -> TrainingRows:
        """Return the rows in the memory of the host."""
        host_spaces = [self.ops.to_host(rows) for rows in self.spaces]
        return replace(self, ops=HOST, spaces=host_spaces)

    def host_rows(self, space: int) -> np.ndarray:
        """Return the rows in one space, on the host and in float64."""
        return self.ops.to_host(self.spaces[space]).astype(np.float64, copy=False)

    def starts(self, k: int) -> list[Tall]:
        """Return memberships, (k, n), from which clusters start."""
        starts = starting_members(
            self.ops,
            self.spaces,
            k,
            self.weights,
            by_angle=self.by_angle,
            signed=self.signed,
        )
        return self.known_labels.agreeing_starts(self.ops, self.spaces, starts, k)

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
class _Trial:
    """The best of the clusters that were tried, and in which space that was."""

    clusters: TiedClusters | None = None  # None where clusters vanish in all spaces
    space: int = 0
    is_settled: bool = False  # whether they have seen all rows, and ended by themselves


def _try_spaces(rows: TrainingRows, k: int) -> tuple[TrainingRows, _Trial]:
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

    starts = trial_rows.starts(k)
    prior = trial_rows.known_labels.log_prior(trial_rows.ops, trial_rows.spaces[0], k)

    trial = _Trial()
    best_gain = -np.inf
    first_space = len(rows.spaces) - 1 if k > n_directions else 0
    for space in range(first_space, len(rows.spaces)):
        clusters = trial_rows.fit_clusters(
            space,
            starts,
            shrinkages=(Labelling.PULL, 1.0),
            prior=prior,
            max_iter=Labelling.ROUGH,
            least_gain=best_gain,
        )
        if clusters is not None:
            has_ended = clusters.n_iter < Labelling.ROUGH
            best_gain = clusters.bic_gain
            trial = _Trial(
                clusters=clusters,
                space=space,
                is_settled=has_ended and n_trial == len(rows),
            )

    return rows, trial


def _settle_on_all_rows(
    rows: TrainingRows, trial: _Trial, clusters: TiedClusters, k: int, max_iter: int
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


def gain_of_lines(rows: np.ndarray, n_clusters: int) -> float:
    """Return how much better lines fit than directions: log-likelihood a unit row.

    Minus infinity says that there are too few rows or directions to tell, or that rows
    have no opposite ones.
    """
    rows = rows[: Labelling.LINE_ROWS]
    k = n_clusters

    # In fewer directions than clusters many rows are opposite, whatever they are.
    has_room = k >= 2 and rows.shape[1] >= k
    if not has_room or len(rows) < Labelling.LINE_ROWS_A_CLUSTER * k:
        return -np.inf

    half = len(rows) // 2
    anchors = rows[half : half + Labelling.LINE_ANCHORS * k]
    cosines = rows[:half] @ anchors.T
    cosine_of_opposite = np.median(-cosines.min(axis=1))
    cosine_of_nearest = np.median(cosines.max(axis=1))
    if cosine_of_opposite < Labelling.OPPOSITE * cosine_of_nearest:
        return -np.inf  # for most rows, none is opposite

    lines = learn_rule([rows], k, signed=True)
    directions = learn_rule([rows], k)
    if not np.isfinite(directions.bic_gain):
        return -np.inf
    return lines.bic_gain - directions.bic_gain
