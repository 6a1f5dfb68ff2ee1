"""Where to start clusters from: memberships of unit rows, found in three ways.

Pivots are rows as different as can be. Ward's rule merges rows. K-means by cosines
improves the centres that either gives. Nothing is random: the same rows give the same
starts. What is done one row at a time is done on the host, work on all rows where they
are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from ihgmm.matrix import HOST, Ops, Tall
from ihgmm.numerics.iteration import iterate
from ihgmm.numerics.kmeans import kmeans_rule
from ihgmm.policy import Labelling, Small


def starting_members(
    ops: Ops,
    spaces: Sequence[Tall],
    k: int,
    weights: np.ndarray,
    *,
    by_angle: bool = True,
    signed: bool = False,
    prefer_pivots: bool = False,
) -> list[Tall]:
    """Return different starts of k clusters: memberships of rows, (k, n).

    In each space pivots and merged rows give centres, which k-means by cosines
    improves. For rows that are no units, k-means gives all.

    Parameters
    ----------
    ops : Ops
        What serves the rows.
    spaces : sequence of arrays of shape (n, m)
        The same rows in each space.
    k : int
        Number of clusters.
    weights : array of shape (n,)
        How much rows count.
    by_angle : bool
        Whether rows are of unit length.
    signed : bool
        Whether opposite rows are of one cluster: memberships of rows that point away
        from their centre are negative.
    prefer_pivots : bool
        Whether to do without merged rows, unless clusters are more than directions.

    Returns
    -------
    starts : list of arrays of shape (k, n)
        At least one; those that put nearly all rows together alike are given once.
    """
    starts: list[Tall] = []
    host_spaces = [ops.to_host(rows) for rows in spaces]
    if not by_angle:
        for rows, host_rows in zip(spaces, host_spaces, strict=True):
            labels = kmeans_rule(host_rows, k, weights).rule(ops, rows)
            starts.append(ops.one_hot(labels, k, rows).T)
        return starts

    for rows, host_rows in zip(spaces, host_spaces, strict=True):
        centers = host_rows[pivots(host_rows, k)]
        members = spherical_lloyd(rows, centers, weights, signed=signed, ops=ops)
        _add_start(ops, starts, members)

    # Clusters are clear where both spaces agree, unless there are too few pivots, or
    # some are odd rows: a look at some merged rows shows that.
    has_pivots = k <= host_spaces[-1].shape[1]
    is_clear = len(starts) == 1 < len(spaces) and has_pivots
    n_merged = Labelling.FEW_MERGED if is_clear else _merged_rows(k)
    if is_clear and n_merged < Labelling.FEW_MERGED_A_CLUSTER * k:
        return starts
    if prefer_pivots and has_pivots:
        return starts

    for i in range(len(spaces) - 1 if is_clear else 0, len(spaces)):
        centers = merged_centers(host_spaces[i][:n_merged], k, signed)
        members = spherical_lloyd(spaces[i], centers, weights, signed=signed, ops=ops)
        _add_start(ops, starts, members)
    return starts


def _merged_rows(k: int) -> int:
    """Return how many rows are merged to k clusters: their square is what it costs."""
    return int(np.clip(Labelling.MERGED_ROWS_A_CLUSTER * k, *Labelling.MERGED_ROWS))


def _add_start(ops: Ops, starts: list[Tall], members: Tall) -> None:
    """Add memberships, (n, k), to starts, unless one is the same with other numbers."""
    n = members.shape[0]
    for start in starts:
        overlap = np.abs(ops.to_host(start @ members))  # (k, k)
        n_shared = min(overlap.max(axis=0).sum(), overlap.max(axis=1).sum())
        if n_shared >= Labelling.SAME_START * n:
            return
    starts.append(members.T)


def pivots(rows: np.ndarray, k: int) -> np.ndarray:
    """Return the positions of k rows, each the one that those before span the least.

    The first is the one that all together point to the least: a choice by the data,
    which rounding and the order of rows leave as it is.

    Notes
    -----
    This is a pivoted Cholesky decomposition of ``rows @ rows.T``, a column at a time.
    What it leaves on the diagonal is the squared length of each row outside of the span
    of the pivots.
    """
    residual_squares = np.einsum("ij,ij->i", rows, rows)  # outside of the span
    largest = max(residual_squares.max(), Small.TINY)

    # The first pivot is no zero row.
    products_with_all = np.einsum("ij,ij->i", rows @ (rows.T @ rows), rows)
    is_candidate = residual_squares > largest / 2
    pivot = np.argmin(np.where(is_candidate, products_with_all, np.inf))

    chosen = np.zeros(k, dtype=np.intp)
    factor = np.zeros((k, len(rows)), dtype=rows.dtype)
    for i in range(k):
        chosen[i] = pivot

        # Beyond the rank of the rows nothing is left but rounding, and no direction.
        residual_length = np.sqrt(max(residual_squares[pivot], Small.EXACT * largest))
        factor[i] = rows @ rows[pivot] - factor[:i, pivot] @ factor[:i]
        factor[i] /= residual_length
        residual_squares = residual_squares - factor[i] ** 2

        # Rounding does not choose between rows that are as far outside.
        pivot = np.argmax(np.round(residual_squares / (largest * Small.TIE)))
    return chosen


def merged_centers(rows: np.ndarray, k: int, signed: bool) -> np.ndarray:
    """Return the sums, (k, m), of the k clusters that Ward's rule merges unit rows to.

    With ``signed`` the distance of rows is that of their lines, and opposite rows point
    the way of the first row of their cluster.
    """
    labels = np.zeros(len(rows), dtype=np.intp)
    if min(k, len(rows)) > 1:
        # In place: there are as many pairs as half the square of the rows.
        cosines = squareform(rows @ rows.T, checks=False)
        if signed:
            cosines *= cosines
        cosines *= -2
        squares = np.add(cosines, 2, out=cosines)
        np.maximum(squares, 0, out=squares)
        # Whole numbers have many equal distances, and rounding must not order them.
        squares /= Small.TIE
        np.round(squares, out=squares)
        distances = np.sqrt(squares, out=squares)
        labels = fcluster(linkage(distances, "ward"), k, "maxclust") - 1

    members = np.eye(k)[labels]  # (n, k)
    if signed:
        _, first_rows = np.unique(labels, return_index=True)
        first_of_cluster = rows[first_rows[labels]]
        is_opposite = np.einsum("ij,ij->i", rows, first_of_cluster) < 0
        members[is_opposite] *= -1
    return members.T @ rows


def spherical_lloyd(
    rows: Tall, centers: np.ndarray, weights: np.ndarray, signed: bool, ops: Ops = HOST
) -> Tall:
    """Return memberships, (n, k), that k-means by cosines comes to from some centres.

    With ``signed`` they are -1 where a row points away from its centre. A centre that
    has lost all its rows goes to the row that fits its own worst. At the end one that
    is hardly needed goes where two clusters share one, as long as that gains.
    """
    kmeans = _CosineKMeans(
        ops=ops,
        rows=rows,
        weights=weights,
        device_weights=ops.to_device(weights, rows),
        signed=signed,
    )
    least_gain = Labelling.STEP * float(weights.sum())
    n_steps = 0
    settled_score = -np.inf

    while True:
        lloyd = iterate(
            kmeans.step,
            kmeans.assign(centers),
            max_iter=Labelling.STEPS - n_steps - 1,
            has_settled=lambda before, after: after.score - before.score <= least_gain,
        )
        assignment = lloyd.state
        n_steps += lloyd.n_iter + 1
        gains_by_moves = assignment.score - settled_score > least_gain
        if not (lloyd.converged and gains_by_moves):
            break

        settled_score = assignment.score
        moved_centers = _moved_centers(ops, rows, assignment)
        if moved_centers is None or n_steps == Labelling.STEPS:
            break
        centers = moved_centers

    members = ops.one_hot(assignment.labels, len(centers), rows)
    if assignment.signs is not None:
        members *= assignment.signs[:, None]
    return members


@dataclass(frozen=True, eq=False)
class _Assignment:
    """Rows at their nearest centres, and the sums of rows that this makes."""

    labels: Tall  # (n,)
    cosines: Tall  # (n, k), of unit rows; their size where opposite rows are alike
    signs: Tall | None  # (n,): -1 where a row points away from its centre
    signed_weights: Tall  # (n,): weights times signs
    sums: np.ndarray  # (k, m): of weighted rows, turned towards their centre
    score: float  # sum of weighted cosines with the nearest centre


@dataclass(frozen=True, eq=False)
class _CosineKMeans:
    """Lloyd's steps for unit rows and unit centres."""

    ops: Ops
    rows: Tall  # (n, m)
    weights: np.ndarray  # (n,)
    device_weights: Tall  # (n,): the same, where the rows are
    signed: bool  # whether opposite rows are of one cluster

    def assign(self, centers: np.ndarray) -> _Assignment:
        """Assign rows to the nearest of some centres, (k, m), of any length."""
        ops = self.ops
        lengths = np.sqrt(np.einsum("ij,ij->i", centers, centers))
        centers = centers / np.where(lengths > 0, lengths, 1.0)[:, None]

        products = self.rows @ ops.cast_like(centers.T, self.rows)  # (n, k)
        cosines = ops.xp.abs(products) if self.signed else products
        # Rounding may not choose where two centres are as near.
        labels = ops.xp.argmax(ops.xp.round(cosines / Small.TIE), axis=1)

        signs = None
        signed_weights = self.device_weights
        if self.signed:
            signs = ops.sign_of(ops.pick(products, labels))
            signed_weights = self.device_weights * signs

        sums = ops.sums_of_rows(labels, len(centers), self.rows, signed_weights)
        return _Assignment(
            labels=labels,
            cosines=cosines,
            signs=signs,
            signed_weights=signed_weights,
            sums=sums,
            score=float((sums * centers).sum()),
        )

    def step(self, assignment: _Assignment) -> _Assignment:
        """Move centres to the sums of their rows, and assign rows anew."""
        ops = self.ops
        centers = assignment.sums
        # A centre without rows goes to a row that fits its own worst.
        empty_clusters = np.flatnonzero(~centers.any(axis=1))
        if len(empty_clusters):
            best_cosines = ops.pick(assignment.cosines, assignment.labels)
            misfits = self.weights * (1 - ops.to_host(best_cosines))
            worst_rows = np.argsort(-misfits, kind="stable")[: len(empty_clusters)]
            # There may be fewer rows than clusters.
            reseeded_clusters = empty_clusters[: len(worst_rows)]
            new_centers = ops.to_host(ops.take_rows(self.rows, worst_rows))
            centers = centers.copy()
            centers[reseeded_clusters] = new_centers
        return self.assign(centers)


def _moved_centers(ops: Ops, rows: Tall, assignment: _Assignment) -> np.ndarray | None:
    """Return centres, some given up and as many clusters split, if that gains.

    Giving a cluster up loses what its rows have less with the second-nearest centre.
    Splitting another gains what its halves are longer than their sum.
    """
    fits = _cluster_fits(ops, assignment)
    losses = fits.losses
    if fits.misfits.max() <= losses.min():  # as where clusters are clear
        return None

    labels = ops.to_host(assignment.labels)
    heirs = ops.to_host(ops.xp.argmax(fits.other_cosines, axis=1))
    turned_rows = _TurnedRows(
        rows=ops.to_host(rows),
        labels=labels,
        signed_weights=ops.to_host(assignment.signed_weights),
        sums=assignment.sums,
    )
    centers = assignment.sums.copy()
    may_change = np.ones(len(centers), dtype=bool)
    widest_first = np.argsort(-fits.misfits, kind="stable")
    for spare_cluster in np.argsort(losses, kind="stable"):
        if not may_change[spare_cluster]:
            continue
        # A split gains less than the misfits of its cluster.
        candidates = widest_first[may_change[widest_first]][: Labelling.WIDEST]
        may_gain = fits.misfits[candidates] > losses[spare_cluster]
        candidates = candidates[may_gain & (candidates != spare_cluster)]

        split = turned_rows.first_split(candidates, losses[spare_cluster])
        if split is None:
            break  # of clusters that are needed more, more would be lost
        centers[[split.cluster, spare_cluster]] = split.halves
        # Those that take up its rows stay, at least until the next look.
        heirs_of_rows = heirs[labels == spare_cluster]
        may_change[[split.cluster, spare_cluster, *heirs_of_rows]] = False

    return None if may_change.all() else centers


@dataclass(frozen=True, eq=False)
class _ClusterFits:
    """How much each cluster is needed, and how badly its rows fit."""

    losses: np.ndarray  # (k,): of the score, if a cluster is given up
    misfits: np.ndarray  # (k,): what its rows lack of a cosine of 1
    other_cosines: Tall  # (n, k): of rows with all centres but their own


def _cluster_fits(ops: Ops, assignment: _Assignment) -> _ClusterFits:
    """Return what clusters lose if they are given up, and may gain if they are split.

    A cluster that is given up loses what each of its rows has less of a cosine with the
    second-nearest centre.
    """
    labels = assignment.labels
    k = len(assignment.sums)
    weights = ops.xp.abs(assignment.signed_weights)

    best_cosines = ops.pick(assignment.cosines, labels)
    other_cosines = assignment.cosines - 4 * ops.one_hot(labels, k, assignment.cosines)
    leads = best_cosines - ops.xp.max(other_cosines, axis=1)
    losses = ops.group_sums(labels, k, weights * leads)
    losses = np.maximum(losses, 0.0)  # of two that are as near, the first may be less
    return _ClusterFits(
        losses=losses,
        misfits=ops.group_sums(labels, k, weights * (1 - best_cosines)),
        other_cosines=other_cosines,
    )


@dataclass(frozen=True, eq=False)
class _Split:
    """A cluster in two halves."""

    cluster: int
    halves: np.ndarray  # (2, m): the sums of their rows


@dataclass(frozen=True, eq=False)
class _TurnedRows:
    """Weighted rows, turned towards the centre of their cluster."""

    rows: np.ndarray  # (n, m)
    labels: np.ndarray  # (n,)
    signed_weights: np.ndarray  # (n,)
    sums: np.ndarray  # (k, m): of the rows of each cluster

    def first_split(self, candidates: np.ndarray, least_gain: float) -> _Split | None:
        """Return the first of some clusters whose halves are so much longer."""
        for cluster in candidates:
            is_member = self.labels == cluster
            members = self.rows[is_member] * self.signed_weights[is_member, None]
            halves = _halves(members)
            length_of_sum = np.linalg.norm(self.sums[cluster])
            gain = np.linalg.norm(halves, axis=1).sum() - length_of_sum
            if gain > least_gain:
                return _Split(cluster=int(cluster), halves=halves)
        return None


def _halves(rows: np.ndarray) -> np.ndarray:
    """Return the sums, (2, m), of the halves of rows on both sides of their mean.

    They are told apart along the direction in which rows vary the most.
    """
    deviations = rows - rows.mean(axis=0)
    n, m = deviations.shape
    if n < m:
        _, vectors = np.linalg.eigh(deviations @ deviations.T)
        along = vectors[:, -1]
    else:
        _, vectors = np.linalg.eigh(deviations.T @ deviations)
        along = deviations @ vectors[:, -1]

    is_ahead = along > 0
    return np.stack([rows[is_ahead].sum(axis=0), rows[~is_ahead].sum(axis=0)])
