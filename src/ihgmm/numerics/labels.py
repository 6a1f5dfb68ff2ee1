"""From an embedding to labels: a rule is learnt from some rows and takes any rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, assert_never

import numpy as np

from ihgmm.matrix import HOST, Ops, Tall
from ihgmm.matrix.threads import one_thread
from ihgmm.numerics.kmeans import kmeans_rule
from ihgmm.numerics.known_labels import NOTHING_KNOWN, KnownLabels
from ihgmm.numerics.known_rules import clusters_of_classes
from ihgmm.numerics.neighbor_walk import clusters_by_neighbors, walk_size
from ihgmm.numerics.rules import FittedRule, LinearRule
from ihgmm.numerics.training import TrainingRows, Trial, settle_on_all_rows, try_spaces
from ihgmm.policy import Labelling

Assignment = Literal["tied", "kmeans"]
ASSIGNMENTS: tuple[Assignment, ...] = ("tied", "kmeans")


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
    by_neighbors: bool = False,
    measure_clearness: bool = False,
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
    method : {"tied", "kmeans"}
        Gaussian clusters of one covariance, or k-means, which serves also where tied
        clusters vanish.
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
    by_neighbors : bool
        Whether neighbours teach the rule of tied clusters.
    measure_clearness : bool
        Whether to say how clear clusters are even if neighbours do not teach.
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
        trial = Trial()
        precise_rows = rows
        if len(spaces) > 1 or method == "tied":
            # Classes have no part in this trial: it shows what rows say by themselves.
            without_classes = known_labels.without_classes()
            rows = rows.with_known_labels(without_classes)
            rows, trial = try_spaces(rows, n_clusters)
            rows = rows.with_known_labels(known_labels)

        match method:
            case "tied" if trial.clusters is not None:
                return _rule_of_clusters(
                    rows,
                    precise_rows,
                    trial,
                    n_clusters,
                    by_neighbors=by_neighbors,
                    measure_clearness=measure_clearness,
                    max_iter=max_iter,
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

            case _:
                assert_never(method)


def _rule_of_clusters(
    rows: TrainingRows,
    precise_rows: TrainingRows,
    trial: Trial,
    k: int,
    *,
    by_neighbors: bool,
    measure_clearness: bool,
    max_iter: int,
) -> FittedRule:
    """Return the rule of tied clusters, taught by classes or by neighbours.

    ``trial`` has the clusters that the first rows come to by themselves. In single
    precision rounding would choose among neighbours: these need ``precise_rows``.
    """
    assert trial.clusters is not None
    has_classes = rows.known_labels.has_classes
    taught = None
    if measure_clearness or (by_neighbors and not has_classes):
        without_classes = precise_rows.known_labels.without_classes()
        walk_rows = precise_rows.with_known_labels(without_classes)
        walk_rows = walk_rows.first(walk_size(len(rows), k)).on_host()
        taught = clusters_by_neighbors(walk_rows, trial, k)

    of_classes = Trial()
    if has_classes:
        of_classes = clusters_of_classes(
            rows,
            trial,
            k,
            precise_rows=precise_rows,
            by_neighbors=by_neighbors,
            max_iter=max_iter,
        )

    space = trial.space
    if of_classes.clusters is not None:
        clusters = of_classes.clusters
        space = of_classes.space
    elif by_neighbors and taught is not None:
        clusters = taught.clusters
    else:
        clusters = settle_on_all_rows(rows, trial, trial.clusters, k, max_iter)

    return FittedRule(
        rule=LinearRule(
            coefficients=clusters.coefficients,
            intercepts=clusters.intercepts,
            signed=rows.signed,
        ),
        space=space,
        n_iter=clusters.n_iter,
        bic_gain=trial.clusters.bic_gain,
        shrinkage=clusters.shrinkage,
        clearness=-np.inf if taught is None else taught.clearness,
    )


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
