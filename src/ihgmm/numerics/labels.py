"""From an embedding to labels.

What is learnt from rows is a rule that takes any rows: the labels of a fit are what its
rule says of the rows of the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, qr, svd
from scipy.special import softmax
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from ihgmm._warnings import ignored
from ihgmm.matrix import Tall, namespace, to_host
from ihgmm.matrix.tall import cast_like, map_ranges, pick, sign_of, stack, to_device
from ihgmm.matrix.threads import one_thread

Assignment = Literal["tied", "kmeans", "cluster_qr", "neighbors"]
ASSIGNMENTS: tuple[Assignment, ...] = ("tied", "kmeans", "cluster_qr", "neighbors")


@dataclass(frozen=True, eq=False)
class LinearRule:
    """Labels by the largest of linear scores: ``rows @ coefficients + intercepts``.

    The nearest of centres is such a rule. So is the most likely cluster where clusters
    are Gaussian with one covariance; its scores are log-likelihoods up to a term that
    is the same for all clusters.
    """

    coefficients: np.ndarray  # (n_components, n_clusters)
    intercepts: np.ndarray  # (n_clusters,)
    signed: bool = False  # opposite rows are of one cluster: the product's size counts

    def products(self, rows: Tall) -> Tall:
        """Return ``rows @ coefficients``; their signs say which way rows point."""
        return rows @ cast_like(self.coefficients, rows)

    def scores(self, rows: Tall) -> Tall:
        """Return the score of each cluster for each row."""
        scores = self.products(rows)
        if self.signed:
            scores = namespace(scores).abs(scores)
        scores += cast_like(self.intercepts, rows)
        return scores

    def signs(self, rows: Tall, labels: Tall) -> Tall:
        """Return 1 or -1 for each row: which way it points along its cluster."""
        return sign_of(pick(self.products(rows), labels))

    def turned(self, signs: np.ndarray) -> LinearRule:
        """Return the rule with some clusters' directions reversed."""
        return replace(self, coefficients=self.coefficients * signs)

    def __call__(self, rows: Tall) -> Tall:
        """Return the label of each row."""
        xp = namespace(rows)

        def work(block: slice) -> Tall:
            return xp.argmax(self.scores(rows[block, :]), axis=1)

        return stack(map_ranges(rows, len(self.intercepts), work))

    def in_order(self, order: np.ndarray) -> LinearRule:
        """Return the rule with its clusters in another order."""
        return replace(
            self,
            coefficients=self.coefficients[:, order],
            intercepts=self.intercepts[order],
        )


@dataclass(frozen=True, eq=False)
class NeighborRule:
    """Labels by the vote of the nearest among rows with known labels."""

    rows: np.ndarray  # (n_known, n_components)
    labels: np.ndarray  # (n_known,)
    n_neighbors: int

    def __call__(self, rows: Tall) -> Tall:
        """Return the label of each row."""
        search = NearestNeighbors(n_neighbors=self.n_neighbors).fit(self.rows)
        host = to_host(rows)

        def work(block: slice) -> np.ndarray:
            near = self.labels[search.kneighbors(host[block], return_distance=False)]
            votes = (near[:, :, None] == near[:, None, :]).sum(axis=2)
            # The nearest decides where votes are equal, not the numbers of clusters.
            return np.take_along_axis(near, votes.argmax(axis=1)[:, None], 1)[:, 0]

        return to_device(stack(map_ranges(host, self.n_neighbors**2, work)), rows)

    def in_order(self, order: np.ndarray) -> NeighborRule:
        """Return the rule with its clusters in another order."""
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return replace(self, labels=rank[self.labels])


Rule = LinearRule | NeighborRule


def nearest_center(centers: np.ndarray) -> LinearRule:
    """Return the rule of the nearest centre."""
    return LinearRule(centers.T, -np.einsum("ij,ij->i", centers, centers) / 2)


def learn_rule(
    rows: np.ndarray,
    n_clusters: int,
    method: Assignment = "kmeans",
    *,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    weights: np.ndarray | None = None,
    signed: bool = False,
    rng: np.random.Generator | None = None,
) -> tuple[Rule, int]:
    """Learn from rows of an embedding how to label; return the iterations too.

    Weights say how much rows count in k-means and in mixtures. Pivots and graphs take
    rows as they are.
    """
    rng = np.random.default_rng() if rng is None else rng
    options: dict[str, Any] = {"n_init": n_init, "max_iter": max_iter, "rng": rng}
    if method == "tied":
        found = shared_covariance(
            [rows], n_clusters, weights=weights, signed=signed, **options
        )
        return found.rule, found.n_iter
    if method == "cluster_qr":
        return replace(cluster_qr(rows, n_clusters), signed=signed), 0
    if method == "neighbors":
        return neighbor_graph(rows, n_clusters, rng=rng), 0
    if signed:
        lines = line_runs(rows, n_clusters, weights=weights, **options)[0]
        return lines, 0
    best = kmeans_runs(rows, n_clusters, weights=weights, **options)[0]
    return nearest_center(best.cluster_centers_), int(best.n_iter_)


def cluster_qr(rows: np.ndarray, n_clusters: int) -> LinearRule:
    """Return the rule of cluster-QR: no start, no iteration, no randomness.

    A pivoted QR finds one representative row for each cluster; the polar factor of
    those rows turns the embedding into near-indicators, and the largest entry is the
    label. Entries keep their sign: a row that points away from a representative does
    not belong with it.

    References
    ----------
    Damle, Minden and Ying (2019), Simple, direct and efficient multi-way spectral
    clustering. Information and Inference 8(1), 181-203.
    """
    chosen = _pivot_rows(rows, n_clusters)
    left, _, right = svd(rows[chosen].T.astype(np.float64), full_matrices=False)
    return LinearRule(left @ right, np.zeros(n_clusters))


def neighbor_graph(
    rows: np.ndarray,
    n_clusters: int,
    *,
    n_neighbors: int = 10,
    max_rows: int = 2_000,
    rng: np.random.Generator | None = None,
) -> NeighborRule:
    """Return a rule for clusters of any shape: those of a graph of nearest neighbours.

    Of at most ``max_rows`` rows each is joined to its neighbours, and the graph is cut
    by the leading eigenvectors of its normalised adjacency matrix and cluster-QR. All
    rows then follow their neighbours.
    """
    rng = np.random.default_rng() if rng is None else rng
    rows = _sample(rows, max_rows, rng).astype(np.float64, copy=False)
    n = len(rows)
    if n <= n_clusters:  # too few for a graph to be cut
        return NeighborRule(rows, np.arange(n), 1)
    n_neighbors = min(n_neighbors, n - 1)
    with one_thread():
        joined = kneighbors_graph(rows, n_neighbors).toarray()
        joined += joined.T
        roots = np.sqrt(joined.sum(axis=1))[:, None]
        # The whole spectrum: pieces of a graph share an eigenvalue, and iterations
        # would miss some of them.
        _, vectors = eigh(
            joined / (roots * roots.T), subset_by_index=(n - n_clusters, n - 1)
        )
        labels = cluster_qr(vectors / roots, n_clusters)(vectors / roots)
    return NeighborRule(rows, np.asarray(labels, dtype=np.intp), n_neighbors)


def kmeans_labels(
    embedding: Tall,
    n_clusters: int,
    *,
    n_init: int | Literal["auto"] = "auto",
    rng: np.random.Generator | None = None,
) -> Tall:
    """Label rows by k-means; of many rows, a sample gives the centres."""
    rng = np.random.default_rng() if rng is None else rng
    rows = host_rows(embedding, sample_positions(embedding.shape[0], n_clusters, rng))
    return learn_rule(rows, n_clusters, n_init=n_init, rng=rng)[0](embedding)


def sample_positions(
    n_rows: int, n_clusters: int, rng: np.random.Generator
) -> np.ndarray | None:
    """Return which rows to learn labels from; None for all.

    Beyond 16,384 rows, or 256 for each cluster if that is more, they are so many drawn
    at random.
    """
    most = max(2**14, 256 * n_clusters)
    if n_rows <= most:
        return None
    return rng.choice(n_rows, most, replace=False, shuffle=False)


def host_rows(tall: Tall, positions: np.ndarray | None) -> np.ndarray:
    """Return rows of a tall array on the host, in float64."""
    if positions is not None:
        tall = namespace(tall).take(tall, to_device(positions, tall), axis=0)
    return to_host(tall).astype(np.float64, copy=False)


def kmeans_runs(
    rows: np.ndarray,
    n_clusters: int,
    *,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    full_trials: int = 10_000,
    until_settled: bool = False,
    weights: np.ndarray | None = None,
    rng: np.random.Generator,
) -> list[KMeans]:
    """Run scikit-learn's k-means, started well; return runs, the best first.

    The first of ``n_init`` starts is the pivoted QR of the rows, the others are
    k-means++; "auto" means 1 + 10. Beyond ``full_trials`` rows the starts compete on a
    sample of the rows, until three have ended in the same best place; those that end in
    different places, nearly as good as the best, go on. With ``until_settled``, starts
    end as soon on all rows. Runs that end in the same place are returned once.
    """
    starts = 1 + 10 if n_init == "auto" else n_init
    trial, trial_weights = rows, weights
    on_sample = len(rows) > full_trials
    settle = n_init == "auto" and (on_sample or until_settled)
    if on_sample:
        size = int(np.clip(64 * n_clusters, 1_000, full_trials))
        drawn = _drawn(len(rows), size, rng)
        trial, trial_weights = rows[drawn], None if weights is None else weights[drawn]
    pivots = _sample(rows, 2**12, rng)

    options = {"n_init": 1, "max_iter": max_iter}
    # One thread: the order of sums, and so the labels, never depend on how many there
    # are. Rows that coincide are no failure here: the caller counts the labels.
    with one_thread(), ignored(ConvergenceWarning):
        start = pivots[_pivot_rows(pivots, n_clusters)]
        # Only runs to the very end show whether they meet in the same place.
        tol = 0.0 if on_sample or settle else 1e-5
        runs: list[KMeans] = []
        for init in [start] + ["k-means++"] * (starts - 1):
            seed = int(rng.integers(2**31 - 1))
            kmeans = KMeans(
                n_clusters, init=init, tol=tol, random_state=seed, **options
            )
            runs.append(kmeans.fit(trial, sample_weight=trial_weights))
            if settle and _settled(runs):
                break
        if on_sample:
            finals = [final.cluster_centers_ for final in _finalists(runs, len(rows))]
            if not (_settled(runs) and _all_shown(trial, start)):
                finals.append(start)
            runs = []
            for init in finals:
                seed = int(rng.integers(2**31 - 1))
                kmeans = KMeans(n_clusters, init=init, random_state=seed, **options)
                # To scikit-learn's own tolerance.
                runs.append(kmeans.fit(rows, sample_weight=weights))
    runs = sorted(runs, key=attrgetter("inertia_"))
    return runs[:1] + [
        run
        for before, run in pairwise(runs)
        if not _same(run.inertia_, before.inertia_)
    ]


def line_runs(
    rows: np.ndarray,
    n_clusters: int,
    *,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    weights: np.ndarray | None = None,
    rng: np.random.Generator,
) -> list[LinearRule]:
    """Run k-means for rows of which the opposite is of the same kind; the best first.

    A row counts with the sign of its product with its centre. That is k-means on the
    rows and their opposites, with centres and their opposites to start from: either
    half is then the other's mirror after each step. Starts are a pivoted QR, which
    knows no signs, and k-means++ on products of two random projections: such products
    are the same for opposite rows, and distances between them are those of lines on
    average, at a cost linear in the width of the rows.
    """
    starts = 1 + 10 if n_init == "auto" else n_init
    few = _sample(rows, 2**12, rng)
    both = np.concatenate([rows, -rows])
    counts = None if weights is None else np.concatenate([weights, weights])
    centers = few[_pivot_rows(few, n_clusters)]
    runs: list[KMeans] = []
    with one_thread(), ignored(ConvergenceWarning):
        for _ in range(starts):
            seed = int(rng.integers(2**31 - 1))
            kmeans = KMeans(
                2 * n_clusters,
                init=np.concatenate([centers, -centers]),
                n_init=1,
                max_iter=max_iter,
                tol=0.0,
                random_state=seed,
            )
            runs.append(kmeans.fit(both, sample_weight=counts))
            if n_init == "auto" and _settled(runs):
                break
            first, second = rng.standard_normal((2, rows.shape[1], 2**8))
            squares = (few @ first) * (few @ second)
            _, chosen = kmeans_plusplus(squares, n_clusters, random_state=seed)
            centers = few[chosen]
    runs = sorted(runs, key=attrgetter("inertia_"))
    return [
        replace(nearest_center(run.cluster_centers_[:n_clusters]), signed=True)
        for run in runs
    ]


def prefers_lines(
    rows: np.ndarray, n_clusters: int, rng: np.random.Generator, max_rows: int = 2**9
) -> bool:
    """Tell whether opposite rows seem to be of one kind.

    They may be if most rows have another as near to their opposite as one is to them.
    They are if clusters of lines, which have as many parameters, then fit better than
    clusters of directions by log 2 a row or more: so much they lose where clusters lie
    on one side. In designs with signs they gain 1.1 to 5.7; where clusters happen to be
    opposite, as in data with its mean taken off, and in 17 real sets, at most 0.4.
    """
    few = _sample(rows, max_rows, rng)
    # In fewer directions than clusters many rows are opposite, whatever they are.
    if n_clusters < 2 or rows.shape[1] < n_clusters or len(few) <= 4 * n_clusters:
        return False
    cosines = few @ few.T
    np.fill_diagonal(cosines, 0.0)
    opposite, near = -cosines.min(axis=1), cosines.max(axis=1)
    if np.median(opposite) < 0.9 * np.median(near):
        return False
    gains = [
        shared_covariance([few], n_clusters, signed=signed, rng=rng).gains[0]
        for signed in (False, True)
    ]
    return gains[1] > gains[0] + np.log(2)


@dataclass(frozen=True, eq=False)
class SharedCovariance:
    """Gaussian clusters with one covariance, in one of several spaces."""

    rule: LinearRule
    space: int  # the position of the space that was chosen
    gains: tuple[float, ...]  # of log-likelihood a row over one Gaussian, in each space
    n_iter: int  # rounds of the last run


def shared_covariance(
    spaces: Sequence[np.ndarray],
    n_clusters: int,
    *,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    pull: float = 0.2,
    max_trial: int | None = None,
    weights: np.ndarray | None = None,
    signed: bool = False,
    rng: np.random.Generator,
) -> SharedCovariance:
    """Fit Gaussian clusters that share a covariance, in the space that shows them best.

    ``spaces`` are embeddings of the same rows. In each, k-means gives up to three
    labelings to start from; all starts are tried in all spaces, on ``max_trial`` rows
    (by default 2,048, or 64 for each cluster), and the likeliest goes on with all rows.
    The space wins in which clusters add most to the likelihood of a single Gaussian: a
    comparison that no linear map of a space changes. With ``signed``, opposite rows
    are of one cluster.

    The covariance is pulled towards a sphere by the share ``pull``. Between .1 and .4
    that hardly matters; without, few rows in many directions give a covariance that
    fits their noise.
    """
    n, max_trial = len(spaces[0]), max_trial or max(2**11, 64 * n_clusters)
    few = rng.permutation(n)[:max_trial] if n > max_trial else np.arange(n)
    trials = [rows[few] for rows in spaces]
    trial_weights = None if weights is None else weights[few]
    labelings: list[np.ndarray] = []
    members: list[np.ndarray] = []
    nearest: list[LinearRule] = []
    options: dict[str, Any] = {
        "n_init": n_init,
        "max_iter": max_iter,
        "weights": trial_weights,
        "rng": rng,
    }
    for trial in trials:
        if signed:
            rules = line_runs(trial, n_clusters, **options)
            members += [_signed_members(rule, trial) for rule in rules[:3]]
            nearest.append(rules[0])
            continue
        runs = kmeans_runs(trial, n_clusters, until_settled=True, **options)
        labelings += [run.labels_ for run in runs[:3]]
        nearest.append(nearest_center(runs[0].cluster_centers_))
    members += [np.eye(n_clusters)[labels] for labels in _distinct(labelings)]
    fits: list[_Fit] = []
    gains: list[float] = []
    with one_thread():
        for rows, trial, rule in zip(spaces, trials, nearest, strict=True):
            tried = [
                fit_clusters(trial, start, pull, max_iter, trial_weights, signed)
                for start in members
            ]
            # Where clusters vanish in every run, k-means has the last word.
            best = max(
                [*tried, _Fit(rule, -np.inf, 0)], key=attrgetter("log_likelihood")
            )
            if len(trial) < n:
                start = softmax(best.rule.scores(rows), axis=1)
                if signed:
                    start = start * sign_of(best.rule.products(rows))
                best = fit_clusters(rows, start, pull, max_iter, weights, signed)
            fits.append(best)
            one = fit_clusters(rows, np.ones((n, 1)), 0.0, 1, weights)
            gains.append(best.log_likelihood - one.log_likelihood)
    chosen = int(np.argmax(gains))
    best = fits[chosen]
    return SharedCovariance(best.rule, chosen, tuple(gains), best.n_iter)


class _Fit(NamedTuple):
    rule: LinearRule
    log_likelihood: float  # of a row, on average, up to a constant
    n_iter: int


def fit_clusters(
    rows: np.ndarray,
    memberships: np.ndarray,
    pull: float,
    max_iter: int,
    weights: np.ndarray | None = None,
    signed: bool = False,
) -> _Fit:
    """Fit Gaussian clusters of one covariance by expectation and maximisation.

    With ``signed``, a cluster is as likely to be at its centre as at the opposite. A
    membership to start from is then negative where the row is at the opposite.
    """
    (n, m), k = rows.shape, memberships.shape[1]
    shares = None if weights is None else weights / weights.sum()

    def counted(values: np.ndarray) -> np.ndarray:
        return values if shares is None else n * shares[:, None] * values

    moments = counted(rows).T @ rows / n
    # No direction is flatter: that is rounding. All rows may be zero, as one alone is.
    least = 1e-6 * np.trace(moments) / m or 1.0
    value, n_iter = -np.inf, 0
    ends: Any = 1.0
    if signed:
        memberships, ends = np.abs(memberships), sign_of(memberships)
    while n_iter < max_iter:
        n_iter += 1
        sizes = counted(memberships).sum(axis=0) + 1e-10
        centers = counted(memberships * ends).T @ rows / sizes[:, None]
        within = moments - (centers.T * (sizes / n)) @ centers
        sphere = pull * np.trace(within) / m + least
        root, lower = cho_factor((1 - pull) * within + sphere * np.eye(m), lower=True)
        coefficients = cho_solve((root, lower), centers.T)
        squares = (centers.T * coefficients).sum(axis=0)
        rule = LinearRule(coefficients, np.log(sizes / n) - squares / 2, signed)
        scores = rule.scores(rows)
        peaks = scores.max(axis=1)
        memberships = np.exp(scores - peaks[:, None])
        if signed:
            # The score is that of the nearer end; both ends together are a cluster.
            products = rule.products(rows)
            memberships *= (1 + np.exp(-2 * np.abs(products))) / 2
        totals = memberships.sum(axis=1)
        memberships /= totals[:, None]
        if signed:  # the share of one end less that of the other
            ends = np.tanh(products)
        # The terms of rows alone add up to a trace.
        spread = np.trace(cho_solve((root, lower), moments)) / 2
        before = value
        likelihood = np.average(peaks + np.log(totals), weights=shares)
        value = float(likelihood - spread - np.log(np.diag(root)).sum())
        if value - before < 1e-4:
            break
    used = np.unique(scores.argmax(axis=1))
    return _Fit(rule, value if len(used) == k else -np.inf, n_iter)


def _signed_members(rule: LinearRule, rows: np.ndarray) -> np.ndarray:
    """Return 1 or -1 in the column of each row's cluster, as the row points."""
    labels = rule(rows)
    members = np.eye(len(rule.intercepts))[labels]
    return members * rule.signs(rows, labels)[:, None]


def _distinct(labelings: list[np.ndarray]) -> list[np.ndarray]:
    """Leave out labelings that differ from another in the names of clusters only."""
    kept: dict[bytes, np.ndarray] = {}
    for labels in labelings:
        _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
        kept.setdefault(np.argsort(np.argsort(first))[codes].tobytes(), labels)
    return list(kept.values())


def _same(first: float, second: float) -> bool:
    """Tell whether runs of such inertias ended in the same place."""
    return first <= second * (1 + 1e-9)


def _settled(runs: list[KMeans]) -> bool:
    """Tell whether three starts have ended in the best place: no other is likely."""
    best = min(run.inertia_ for run in runs)
    return sum(_same(run.inertia_, best) for run in runs) >= 3


def _all_shown(trial: np.ndarray, pivots: np.ndarray) -> bool:
    """Tell whether each pivot is nearest to eight rows of the trial, or more.

    With fewer, it may know of a cluster too small to show there.
    """
    nearest = pairwise_distances_argmin(trial, pivots)
    return bool(np.bincount(nearest, minlength=len(pivots)).min() >= 8)


def _finalists(runs: list[KMeans], n_rows: int) -> list[KMeans]:
    """Keep the best run and those that differ from it but are within five percent.

    Together they see 2**16 rows at most, unless that is less than two runs.
    """
    most = max(2, 2**16 // n_rows)
    runs = sorted(runs, key=attrgetter("inertia_"))
    kept = runs[:1]
    for run in runs[1:]:
        near = run.inertia_ <= 1.05 * runs[0].inertia_
        if near and not _same(run.inertia_, kept[-1].inertia_) and len(kept) < most:
            kept.append(run)
    return kept


def _pivot_rows(rows: np.ndarray, k: int) -> np.ndarray:
    """Return the positions of k rows that are as different as can be."""
    _, _, order = qr(rows.T, pivoting=True, mode="economic")
    return np.asarray(order[:k])


def _sample(rows: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    return rows if len(rows) <= size else rows[_drawn(len(rows), size, rng)]


def _drawn(n_rows: int, size: int, rng: np.random.Generator) -> np.ndarray:
    return rng.choice(n_rows, size, replace=False, shuffle=False)
