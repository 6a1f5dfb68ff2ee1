"""From an embedding to labels: a rule is learnt from some rows and takes any rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._warnings import ignored, sklearn_filters
from ihgmm.matrix import HOST, Ops, Tall
from ihgmm.matrix.threads import one_thread
from ihgmm.numerics.known_labels import NOTHING_KNOWN, KnownLabels
from ihgmm.numerics.krylov import leading_pairs
from ihgmm.numerics.mixture import merged, pivots, spherical_lloyd, tied_clusters
from ihgmm.policy import Labelling

Assignment = Literal["tied", "kmeans", "neighbors"]
ASSIGNMENTS: tuple[Assignment, ...] = ("tied", "kmeans", "neighbors")


@dataclass(frozen=True, eq=False)
class LinearRule:
    """Labels by the largest of linear scores: ``rows @ coefficients + intercepts``.

    The nearest of centres is such a rule. So is the most likely of Gaussian clusters of
    one covariance: scores are log-likelihoods, up to a term that all clusters share.
    """

    coefficients: np.ndarray  # (m, k): m components, k clusters
    intercepts: np.ndarray  # (k,)
    signed: bool = False  # opposite rows are of one cluster: the product's size counts

    @classmethod
    def nearest(cls, centers: np.ndarray) -> LinearRule:
        """Return the rule of the nearest centre."""
        return cls(centers.T, -np.einsum("ij,ij->i", centers, centers) / 2)

    def scores(self, ops: Ops, rows: Tall) -> Tall:
        """Return the score of each cluster for each row."""
        scores = rows @ ops.cast_like(self.coefficients, rows)
        if self.signed:
            scores = ops.xp.abs(scores)
        scores += ops.cast_like(self.intercepts, rows)
        return scores

    def memberships(self, ops: Ops, rows: Tall, temperature: float = 1.0) -> Tall:
        """Return the share of each Gaussian cluster in each row; they add up to 1.

        Log-odds are divided by the temperature.
        """
        scores = self.scores(ops, rows)
        if self.signed:  # both ends together are a cluster
            sizes = ops.xp.abs(rows @ ops.cast_like(self.coefficients, rows))
            scores += ops.xp.log1p(ops.xp.exp(-2 * sizes))
        return ops.softmax(scores / temperature)

    def signs(self, ops: Ops, rows: Tall, labels: Tall) -> Tall:
        """Return 1 or -1 for each row: which way it points along its cluster."""
        products = rows @ ops.cast_like(self.coefficients, rows)
        return ops.sign_of(ops.pick(products, labels))

    def __call__(self, ops: Ops, rows: Tall) -> Tall:
        """Return the label of each row."""
        return ops.row_map(self._best, rows, width=len(self.intercepts))

    def _best(self, ops: Ops, rows: Tall) -> Tall:
        return ops.xp.argmax(self.scores(ops, rows), axis=1)

    def in_order(self, order: np.ndarray) -> LinearRule:
        """Return the rule with its clusters in another order."""
        coefficients, intercepts = self.coefficients[:, order], self.intercepts[order]
        return LinearRule(coefficients, intercepts, self.signed)


@dataclass(frozen=True, eq=False)
class NeighborRule:
    """Labels by the vote of the nearest among known rows; the nearer count more."""

    rows: np.ndarray  # (s, m)
    labels: np.ndarray  # (s,)
    n_neighbors: int

    def __call__(self, ops: Ops, rows: Tall) -> Tall:
        """Return the label of each row."""
        return ops.row_map(self._vote, rows, width=self.n_neighbors)

    def _vote(self, ops: Ops, rows: Tall) -> Tall:
        from sklearn.neighbors import KNeighborsClassifier  # few fits need it

        vote = KNeighborsClassifier(self.n_neighbors, weights="distance")
        labels = vote.fit(self.rows, self.labels).predict(ops.to_host(rows))
        return ops.to_device(labels.astype(np.intp), rows)

    def in_order(self, order: np.ndarray) -> NeighborRule:
        """Return the rule with its clusters in another order."""
        return replace(self, labels=np.argsort(order)[self.labels])


class FittedRule(NamedTuple):
    """A rule that was learnt, and where."""

    rule: Any  # a LinearRule, or a NeighborRule
    space: int = 0  # the position of the space that was chosen
    n_iter: int = 0
    worth: float = -np.inf  # of tied clusters: log-likelihood a row over one Gaussian
    pull: float = 1.0  # of their covariance towards a sphere


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

    ``spaces`` are embeddings of the same rows. All starts of tied clusters are tried in
    each (in the last if there are more than directions), with a covariance of any shape
    and with a sphere, on the first rows; the best goes on with all: what clusters add
    to the likelihood of one Gaussian, less BIC's price of a shape. ``by_angle`` says
    that rows are units. Only k-means, which also serves where clusters vanish, takes
    ``n_init`` and the seed; only tied clusters learn from ``known_labels``.
    """
    k, n = n_clusters, spaces[0].shape[0]
    weights = np.ones(n) if weights is None else weights
    best, worth, chosen = None, -np.inf, 0
    # One thread: sums, and so labels, never depend on how many there are.
    with one_thread():
        if len(spaces) > 1 or method == "tied":
            few = min(n, max(Labelling.TRIAL_ROWS, Labelling.ROWS_A_CLUSTER * k))
            heavy = few * k * spaces[-1].shape[1] > Labelling.WORK
            if heavy or few < n:  # of many rows, single precision is enough
                spaces = [ops.xp.astype(rows, ops.xp.float32) for rows in spaces]
            near = ops if heavy else HOST  # a device would only wait for so little
            trials = [rows[:few, ...] for rows in spaces]
            trials = trials if heavy else [ops.to_host(rows) for rows in trials]
            starts = starting_members(near, trials, k, weights[:few], by_angle, signed)
            seen = known_labels.at(slice(few))
            starts = seen.begin(near, trials, starts, k)
            prior, counts = seen.prior(near, trials[0], k), seen.weigh(weights[:few])
            options: Any = {"signed": signed, "prior": prior, "ops": near}
            options |= {"pulls": (Labelling.PULL, 1.0), "max_iter": Labelling.ROUGH}
            crowded = k > spaces[-1].shape[1]
            for i in range(len(trials) - 1 if crowded else 0, len(trials)):
                better = tied_clusters(trials[i], starts, counts, bar=worth, **options)
                if better is not None:
                    best, worth, chosen = better, better.worth, i
        rows = spaces[chosen]
        if method == "neighbors":
            known = ops.to_host(rows)[: Labelling.GRAPH_ROWS].astype(np.float64)
            return FittedRule(_cut_graph(known, k), chosen)
        if method == "kmeans" or best is None:
            rows = ops.to_host(rows).astype(np.float64, copy=False)
            learnt = _kmeans(rows, k, weights, n_init, max_iter, seed)
            return learnt._replace(space=chosen)
        if best.n_iter >= Labelling.ROUGH or few < n:
            prior, counts = (
                known_labels.prior(ops, rows, k),
                known_labels.weigh(weights),
            )
            start = [best.members(rows, signed, ops, prior)]
            options = {"signed": signed, "prior": prior, "ops": ops}
            options |= {"pulls": [best.pull], "max_iter": max_iter}
            best = tied_clusters(rows, start, counts, **options) or best
    rule = LinearRule(best.coefficients, best.intercepts, signed)
    return FittedRule(rule, chosen, best.n_iter, worth, best.pull)


def _cut_graph(rows: np.ndarray, k: int) -> NeighborRule:
    """Cut the graph of nearest neighbours by its leading eigenvectors."""
    from sklearn.neighbors import kneighbors_graph  # few fits need it

    n_neighbors = min(Labelling.NEIGHBORS, len(rows) - 1)
    if len(rows) <= k or n_neighbors < 1:  # too few for a graph to be cut
        return NeighborRule(rows, np.arange(len(rows)) % k, 1)
    joined = kneighbors_graph(rows, n_neighbors).toarray()
    joined += joined.T
    roots = np.sqrt(joined.sum(axis=1))[:, None]
    # Solved, since pieces of a graph share an eigenvalue: iterations would miss some.
    vectors = HOST.unit_rows(leading_pairs(joined / (roots * roots.T), k)[1])
    cut = _kmeans(vectors, k, np.ones(len(rows))).rule
    return NeighborRule(rows, np.asarray(cut(HOST, vectors)), n_neighbors)


def _kmeans(
    rows: np.ndarray,
    k: int,
    weights: np.ndarray,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = Labelling.STEPS,
    seed: int = 0,
) -> FittedRule:
    """Run scikit-learn's k-means; of most small data the seed then does not matter."""
    from sklearn.cluster import KMeans  # few fits need it, and it takes long

    if n_init == "auto":
        n_init = Labelling.KMEANS_WORK // (rows.size * k)
        n_init = int(np.clip(n_init, *Labelling.KMEANS_STARTS))
    run = KMeans(min(k, len(rows)), n_init=n_init, max_iter=max_iter, random_state=seed)
    # Of empty clusters, which estimators count.
    with ignored(ConvergenceWarning), sklearn_filters:
        run.fit(rows, sample_weight=weights)
    # Of equal centres the first has the rows: clusters without any stay empty.
    used = run.cluster_centers_[np.unique(run.labels_)]
    centers = used[np.arange(k) % len(used)]
    return FittedRule(LinearRule.nearest(centers), n_iter=int(run.n_iter_))


def starting_members(
    ops: Ops,
    spaces: Sequence[Tall],
    k: int,
    weights: np.ndarray,
    by_angle: bool = True,
    signed: bool = False,
    few: bool = False,
) -> list[Tall]:
    """Return different starts of tied clusters: memberships of rows, (k, n).

    In each space pivots and, unless starts are to be ``few``, merged rows give centres,
    which k-means by cosines improves. For rows that are no units, k-means gives all.
    """
    starts: list[Tall] = []
    on_host = [ops.to_host(rows) for rows in spaces]
    if not by_angle:
        for rows, seen in zip(spaces, on_host, strict=True):
            labels = _kmeans(seen, k, weights).rule(ops, rows)
            starts.append(ops.one_hot(labels, k, rows).T)
        return starts

    def add(rows: Tall, centers: np.ndarray) -> None:
        """Add memberships, unless a start is the same under other names."""
        members = spherical_lloyd(rows, centers, weights, signed=signed, ops=ops)
        for other in starts:
            overlap = np.abs(ops.to_host(other @ members))
            shared = min(overlap.max(axis=0).sum(), overlap.max(axis=1).sum())
            if shared >= Labelling.SAME_START * members.shape[0]:
                return
        starts.append(members.T)

    for rows, seen in zip(spaces, on_host, strict=True):
        add(rows, seen[pivots(seen, k)])
    # Clusters are clear where both spaces agree, unless there are too few pivots, or
    # some are odd rows: a look at few rows shows that.
    clear = len(starts) == 1 < len(spaces) and k <= seen.shape[1]
    size = Labelling.FEW_MERGED if clear else Labelling.MERGED_ROWS
    enough = clear and size < Labelling.MERGED_ROWS_A_CLUSTER * k
    if enough or (few and k <= seen.shape[1]):
        return starts
    for i in range(len(spaces) - 1 if clear else 0, len(spaces)):
        add(spaces[i], merged(on_host[i][:size], k, signed))
    return starts


def gain_of_lines(rows: np.ndarray, n_clusters: int) -> float:
    """Return how much better lines fit than directions: log-likelihood a unit row."""
    rows, k = rows[: Labelling.LINE_ROWS], n_clusters
    # In fewer directions than clusters many rows are opposite, whatever they are.
    if k < 2 or rows.shape[1] < k or len(rows) < Labelling.LINE_ROWS_A_CLUSTER * k:
        return -np.inf
    half = len(rows) // 2
    cosines = rows[:half] @ rows[half : half + Labelling.LINE_ANCHORS * k].T
    opposite, near = np.median([-cosines.min(axis=1), cosines.max(axis=1)], axis=1)
    if opposite < Labelling.OPPOSITE * near:  # for most rows, none is opposite
        return -np.inf
    lines = learn_rule([rows], k, signed=True).worth
    directions = learn_rule([rows], k).worth
    return lines - directions if np.isfinite(directions) else -np.inf
