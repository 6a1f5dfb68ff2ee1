"""From an embedding to labels.

What is learnt from rows is a rule that takes any rows: the labels of a fit are what its
rule says of the rows of the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, svd
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from ihgmm._values import Domain
from ihgmm.matrix import HOST, Ops, Tall
from ihgmm.matrix.ops import sampled
from ihgmm.matrix.threads import one_thread
from ihgmm.numerics.kmeans import (
    Run,
    is_settled,
    kmeans_runs,
    lloyd,
    pivot_rows,
    sample,
    spread_rows,
)
from ihgmm.numerics.krylov import leading_pairs
from ihgmm.policy import Labelling

Assignment = Literal["tied", "kmeans", "cluster_qr", "neighbors"]
ASSIGNMENTS: tuple[Assignment, ...] = ("tied", "kmeans", "cluster_qr", "neighbors")


@dataclass(frozen=True, eq=False)
class LinearRule:
    """Labels by the largest of linear scores: ``rows @ coefficients + intercepts``.

    The nearest of centres is such a rule. So is the most likely cluster where clusters
    are Gaussian with one covariance; its scores are log-likelihoods up to a term that
    is the same for all clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import HOST
    >>> from ihgmm.numerics.labels import LinearRule
    >>> rule = LinearRule(np.eye(2), np.zeros(2))
    >>> rule(HOST, np.array([[2.0, 1.0], [0.0, 3.0]]))
    array([0, 1])
    """

    # m components, k clusters
    coefficients: Annotated[np.ndarray, Domain("mk")]
    intercepts: Annotated[np.ndarray, Domain("k")]
    signed: bool = False  # opposite rows are of one cluster: the product's size counts

    def products(self, ops: Ops, rows: Tall) -> Tall:
        """Return ``rows @ coefficients``; their signs say which way rows point."""
        return rows @ ops.cast_like(self.coefficients, rows)

    def scores(self, ops: Ops, rows: Tall) -> Tall:
        """Return the score of each cluster for each row."""
        scores = self.products(ops, rows)
        if self.signed:
            scores = ops.xp.abs(scores)
        scores += ops.cast_like(self.intercepts, rows)
        return scores

    def signs(self, ops: Ops, rows: Tall, labels: Tall) -> Tall:
        """Return 1 or -1 for each row: which way it points along its cluster."""
        return ops.sign_of(ops.pick(self.products(ops, rows), labels))

    def turned(self, signs: np.ndarray) -> LinearRule:
        """Return the rule with some clusters' directions reversed."""
        return replace(self, coefficients=self.coefficients * signs)

    def __call__(self, ops: Ops, rows: Tall) -> Tall:
        """Return the label of each row."""
        return ops.row_map(self._best, rows, width=len(self.intercepts))

    def _best(self, ops: Ops, rows: Tall) -> Tall:
        return ops.xp.argmax(self.scores(ops, rows), axis=1)

    def in_order(self, order: np.ndarray) -> LinearRule:
        """Return the rule with its clusters in another order."""
        return replace(
            self,
            coefficients=self.coefficients[:, order],
            intercepts=self.intercepts[order],
        )


@dataclass(frozen=True, eq=False)
class NeighborRule:
    """Labels by the vote of the nearest among rows with known labels.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import HOST
    >>> from ihgmm.numerics.labels import NeighborRule
    >>> rule = NeighborRule(np.array([[0.0], [1.0], [9.0]]), np.array([0, 0, 1]), 1)
    >>> rule(HOST, np.array([[0.4], [8.0]]))
    array([0, 1])
    """

    # s rows that are known, m components
    rows: Annotated[np.ndarray, Domain("sm")]
    labels: Annotated[np.ndarray, Domain("s", least=0, below="k")]
    n_neighbors: Annotated[int, Domain(least=1)]

    def __call__(self, ops: Ops, rows: Tall) -> Tall:
        """Return the label of each row."""
        search = NearestNeighbors(n_neighbors=self.n_neighbors).fit(self.rows)
        work = partial(self._by_vote, search)
        return ops.row_map(work, rows, width=self.n_neighbors**2)

    def _by_vote(self, search: NearestNeighbors, ops: Ops, rows: Tall) -> Tall:
        near = self.labels[search.kneighbors(ops.to_host(rows), return_distance=False)]
        votes = (near[:, :, None] == near[:, None, :]).sum(axis=2)
        # The nearest decides where votes are equal, not the numbers of clusters.
        found = np.take_along_axis(near, votes.argmax(axis=1)[:, None], 1)[:, 0]
        return ops.to_device(found, rows)

    def in_order(self, order: np.ndarray) -> NeighborRule:
        """Return the rule with its clusters in another order."""
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return replace(self, labels=rank[self.labels])


Rule = LinearRule | NeighborRule


def nearest_center(centers: np.ndarray) -> LinearRule:
    """Return the rule of the nearest centre.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import HOST
    >>> from ihgmm.numerics.labels import nearest_center
    >>> nearest_center(np.array([[0.0], [10.0]]))(HOST, np.array([[2.0], [8.0]]))
    array([0, 1])
    """
    return LinearRule(centers.T, -np.einsum("ij,ij->i", centers, centers) / 2)


def learn_rule(
    ops: Ops,
    rows: Tall,
    n_clusters: int,
    method: Assignment = "kmeans",
    *,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    weights: Tall | None = None,
    signed: bool = False,
    rng: np.random.Generator | None = None,
) -> tuple[Rule, int]:
    """Learn from rows of an embedding how to label; return the iterations too.

    Weights say how much rows count in k-means and in mixtures. Pivots and graphs take
    rows as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import HOST
    >>> from ihgmm.numerics.labels import learn_rule
    >>> rows = np.array([[0.0], [0.2], [0.1], [9.0], [9.1]])
    >>> rule, n_iter = learn_rule(HOST, rows, 2, rng=np.random.default_rng(0))
    >>> labels = rule(HOST, np.array([[0.3], [8.0]]))
    >>> int(labels[0] != labels[1])
    1
    """
    rng = np.random.default_rng() if rng is None else rng
    options: dict[str, Any] = {"n_init": n_init, "max_iter": max_iter, "rng": rng}
    if method == "tied":
        found = shared_covariance(
            ops, [rows], n_clusters, weights=weights, signed=signed, **options
        )
        return found.rule, found.n_iter
    if method == "cluster_qr":
        return replace(cluster_qr(ops, rows, n_clusters), signed=signed), 0
    if method == "neighbors":
        return neighbor_graph(ops.to_host(rows), n_clusters, rng=rng), 0
    if signed:
        lines = line_runs(ops, rows, n_clusters, weights=weights, **options)[0]
        return lines, 0
    best = kmeans_runs(ops, [rows], n_clusters, weights=weights, **options)[0][0]
    return nearest_center(best.centers), best.n_iter


def cluster_qr(ops: Ops, rows: Tall, n_clusters: int) -> LinearRule:
    """Return the rule of cluster-QR: no start, no iteration, no randomness.

    A pivoted QR finds one representative row for each cluster; the polar factor of
    those rows turns the embedding into near-indicators, and the largest entry is the
    label. Entries keep their sign: a row that points away from a representative does
    not belong with it.

    References
    ----------
    Damle, Minden and Ying (2019), Simple, direct and efficient multi-way spectral
    clustering. Information and Inference 8(1), 181-203.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import HOST
    >>> from ihgmm.numerics.labels import cluster_qr
    >>> rows = np.array([[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.9]])
    >>> cluster_qr(HOST, rows, 2)(HOST, rows)
    array([0, 0, 1, 1])
    """
    chosen = pivot_rows(ops, rows[None, ...], n_clusters)[0]
    left, _, right = svd(chosen.T.astype(np.float64), full_matrices=False)
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

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import HOST
    >>> from ihgmm.numerics.labels import neighbor_graph
    >>> angles = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> ring = np.c_[np.cos(angles), np.sin(angles)]
    >>> rows = np.r_[ring, 3 * ring]  # one ring inside another
    >>> rule = neighbor_graph(rows, 2, n_neighbors=5, rng=np.random.default_rng(0))
    >>> labels = rule(HOST, rows)
    >>> len(set(labels[:100])), len(set(labels[100:]))
    (1, 1)
    """
    rng = np.random.default_rng() if rng is None else rng
    rows = sample(HOST, rows, max_rows, rng).astype(np.float64, copy=False)
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
        _, vectors = leading_pairs(joined / (roots * roots.T), n_clusters)
        labels = cluster_qr(HOST, vectors / roots, n_clusters)(HOST, vectors / roots)
    return NeighborRule(rows, np.asarray(labels, dtype=np.intp), n_neighbors)


def kmeans_labels(
    ops: Ops,
    embedding: Tall,
    n_clusters: int,
    *,
    n_init: int | Literal["auto"] = "auto",
    rng: np.random.Generator | None = None,
) -> Tall:
    """Label rows by k-means; of many rows, a sample gives the centres.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import HOST
    >>> from ihgmm.numerics.labels import kmeans_labels
    >>> rows = np.array([[0.0], [0.2], [0.1], [9.0], [9.1]])
    >>> kmeans_labels(HOST, rows, 2, rng=np.random.default_rng(0))
    array([1, 1, 1, 0, 0])
    """
    rng = np.random.default_rng() if rng is None else rng
    positions = sample_positions(embedding.shape[0], n_clusters, rng)
    rows = known_rows(ops, embedding, positions)
    rule, _ = learn_rule(ops.few, rows, n_clusters, n_init=n_init, rng=rng)
    return rule(ops, embedding)


def sample_positions(
    n_rows: int, n_clusters: int, rng: np.random.Generator
) -> np.ndarray | None:
    """Return which rows to learn labels from; None for all.

    Beyond 16,384 rows, or 256 for each cluster if that is more, they are so many drawn
    at random.
    """
    most = max(Labelling.ROWS, Labelling.ROWS_A_CLUSTER * n_clusters)
    if n_rows <= most:
        return None
    return sampled(n_rows, most, rng)


def known_rows(ops: Ops, tall: Tall, positions: np.ndarray | None) -> Tall:
    """Return rows of a tall array to learn from, in float64."""
    rows = slice(None) if positions is None else positions
    return ops.few.widen(ops.few_rows(tall, rows))


def line_runs(
    ops: Ops,
    rows: Tall,
    n_clusters: int,
    *,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    weights: Tall | None = None,
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
    starts = 1 + Labelling.STARTS if n_init == "auto" else n_init
    few = sample(ops, rows, Labelling.PIVOT_ROWS, rng)
    both = ops.stack([rows, -rows])
    counts = None if weights is None else ops.stack([weights, weights])
    centers = pivot_rows(ops, few[None, ...], n_clusters)[0]
    runs: list[Run] = []
    with one_thread():
        for _ in range(starts):
            start = np.concatenate([centers, -centers])[None, None]
            runs += lloyd(ops, both[None, ...], start, counts, max_iter=max_iter)[0]
            if n_init == "auto" and is_settled(runs):
                break
            first, second = rng.standard_normal((2, rows.shape[1], 2**8))
            squares = few @ ops.cast_like(first, few)
            squares = squares * (few @ ops.cast_like(second, few))
            draws = rng.random((1, 1, n_clusters, 4))
            drawn = spread_rows(ops, squares[None, ...], draws)[0, 0]
            centers = ops.to_host(ops.few_rows(few, drawn))
    runs = sorted(runs, key=attrgetter("inertia"))
    return [
        replace(nearest_center(run.centers[:n_clusters]), signed=True) for run in runs
    ]


def prefers_lines(
    ops: Ops,
    rows: Tall,
    n_clusters: int,
    rng: np.random.Generator,
    max_rows: int = 2**9,
) -> bool:
    """Tell whether opposite rows seem to be of one kind.

    They may be if most rows have another as near to their opposite as one is to them.
    They are if clusters of lines, which have as many parameters, then fit better than
    clusters of directions by log 2 a row or more: so much they lose where clusters lie
    on one side. In designs with signs they gain 1.1 to 5.7; where clusters happen to be
    opposite, as in data with its mean taken off, and in 17 real sets, at most 0.4.
    """
    few = sample(ops, rows, max_rows, rng)
    xp, n = ops.xp, few.shape[0]
    # In fewer directions than clusters many rows are opposite, whatever they are.
    if n_clusters < 2 or rows.shape[1] < n_clusters or n <= 4 * n_clusters:
        return False
    cosines = (few @ few.T) * ops.cast_like(1 - np.eye(n), few)
    opposite, near = -xp.min(cosines, axis=1), xp.max(cosines, axis=1)
    if ops.median(opposite) < Labelling.OPPOSITE * ops.median(near):
        return False
    gains = [
        shared_covariance(ops, [few], n_clusters, signed=signed, rng=rng).gains[0]
        for signed in (False, True)
    ]
    return gains[1] > gains[0] + np.log(2)


@dataclass(frozen=True, eq=False)
class SharedCovariance:
    """Gaussian clusters with one covariance, in one of several spaces.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import HOST
    >>> from ihgmm.numerics.labels import shared_covariance
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((100, 2)) + 9 * (np.arange(100)[:, None] % 2)
    >>> fitted = shared_covariance(HOST, [rows], 2, rng=rng)
    >>> fitted.space, fitted.gains[0] > 0
    (0, True)
    """

    rule: LinearRule
    space: int  # the position of the space that was chosen
    gains: tuple[float, ...]  # of log-likelihood a row over one Gaussian, in each space
    n_iter: int  # rounds of the last run


def shared_covariance(
    ops: Ops,
    spaces: Sequence[Tall],
    n_clusters: int,
    *,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    pull: float = Labelling.PULL,
    max_trial: int | None = None,
    weights: Tall | None = None,
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

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import HOST
    >>> from ihgmm.numerics.labels import shared_covariance
    >>> rng = np.random.default_rng(0)
    >>> kinds = np.arange(200) % 2
    >>> rows = rng.standard_normal((200, 2)) * [0.1, 1] + np.outer(kinds, [2, 0])
    >>> fitted = shared_covariance(HOST, [rows], 2, rng=rng)  # clusters side by side
    >>> labels = fitted.rule(HOST, rows)
    >>> len(set(labels[kinds == 0])), len(set(labels[kinds == 1]))
    (1, 1)
    """
    n, max_trial = (
        spaces[0].shape[0],
        max_trial or max(Labelling.MIXTURE_ROWS, Labelling.TRIAL_ROWS * n_clusters),
    )
    trials, trial_weights = list(spaces), weights
    if n > max_trial:
        few = sampled(n, max_trial, rng)
        trials = [ops.few_rows(rows, few) for rows in spaces]
        trial_weights = None if weights is None else ops.few_rows(weights, few)
    starts: list[Tall] = []
    nearest: list[LinearRule] = []
    options: dict[str, Any] = {
        "n_init": n_init,
        "max_iter": max_iter,
        "weights": trial_weights,
        "rng": rng,
    }
    if signed:
        for trial in trials:
            rules = line_runs(ops, trial, n_clusters, **options)
            starts += [
                _signed_members(ops, rule, trial)
                for rule in rules[: Labelling.MIXTURES]
            ]
            nearest.append(rules[0])
    else:
        for runs in kmeans_runs(ops, trials, n_clusters, until_settled=True, **options):
            starts += [
                ops.one_hot(run.labels, n_clusters, trials[0])
                for run in runs[: Labelling.MIXTURES]
            ]
            nearest.append(nearest_center(runs[0].centers))
    with one_thread():
        starts = _distinct(ops, starts)
        pairs = [(trial, start) for trial in trials for start in starts]
        tried = fit_clusters(ops, pairs, pull, max_iter, trial_weights, signed)
        best = []
        for i, rule in enumerate(nearest):
            own = tried[i * len(starts) : (i + 1) * len(starts)]
            # Where clusters vanish in every run, k-means has the last word.
            own.append(Fit(rule, -np.inf, 0))
            best.append(max(own, key=attrgetter("log_likelihood")))
        if n > max_trial:
            going = [(rows, fit.rule) for rows, fit in zip(spaces, best, strict=True)]
            best = fit_clusters(ops, going, pull, max_iter, weights, signed)
        ones = [log_likelihood_of_one(ops, rows, weights) for rows in spaces]
    gains = [fit.log_likelihood - one for fit, one in zip(best, ones, strict=True)]
    chosen = int(np.argmax(gains))
    found = best[chosen]
    return SharedCovariance(found.rule, chosen, tuple(gains), found.n_iter)


class Fit(NamedTuple):
    """Gaussian clusters of one covariance, and how well they fit."""

    rule: LinearRule
    log_likelihood: float  # of a row, on average, up to a constant
    n_iter: int


def fit_clusters(
    ops: Ops,
    starts: Sequence[tuple[Tall, Tall | LinearRule]],
    pull: float,
    max_iter: int,
    weights: Tall | None = None,
    signed: bool = False,
) -> list[Fit]:
    """Fit Gaussian clusters of one covariance by expectation and maximisation.

    A fit starts from rows, as many in each, and their memberships, or a rule that says
    them. With ``signed``, a cluster is as likely to be at its centre as at the
    opposite; a membership is then negative where the row is at the opposite.
    """
    step = ops.side_by_side(starts[0][0], len(starts))
    return [
        fit
        for first in range(0, len(starts), step)
        for fit in _SharedRounds(
            ops, starts[first : first + step], weights, signed
        ).run(pull, max_iter)
    ]


class _SharedRounds:
    """Rounds of several fits side by side; what is small is on the host.

    Arrays have a line for each fit, each cluster and each row: the longest axis is the
    last.
    """

    def __init__(
        self,
        ops: Ops,
        starts: Sequence[tuple[Tall, Tall | LinearRule]],
        weights: Tall | None,
        signed: bool,
    ) -> None:
        rows, first = zip(*starts, strict=True)
        self.ops, xp = ops, ops.xp
        self.xp = xp
        self.signed, n = signed, rows[0].shape[0]
        self.rows = rows[0][None, ...] if len(rows) == 1 else xp.stack(rows)
        share = xp.ones_like(rows[0][:, 0]) / n
        self.share = share if weights is None else weights / xp.sum(weights)
        ones = xp.ones_like(self.rows[:, :, :1])
        # Sums and sizes of clusters come from one product.
        self.values = xp.concat([self.rows, ones], axis=2) * self.share[:, None]
        self.rows_T = xp.matrix_transpose(self.rows)
        self.moments = ops.to_host(xp.matmul(self.rows_T, self.values[:, :, :-1]))
        if isinstance(first[0], LinearRule):
            self.expect(list(first))
        else:
            members = xp.matrix_transpose(xp.stack(first))
            self.sums = self._sums(xp.abs(members), ops.sign_of(members))

    def _sums(self, members: Tall, ends: Tall) -> np.ndarray:
        """Return the sum of rows of each cluster, beside its size, as shares."""
        if not self.signed:
            return self.ops.to_host(self.xp.matmul(members, self.values))
        sums = self.ops.to_host(self.xp.matmul(members * ends, self.values))
        sums[:, :, -1] = self.ops.to_host(self.xp.sum(members * self.share, axis=2))
        return sums

    def expect(self, rules: list[LinearRule]) -> tuple[np.ndarray, Tall]:
        """Take up memberships by some rules; return mean log-likelihoods and scores."""
        xp, rows = self.xp, self.rows
        small = np.stack(
            [np.vstack([rule.coefficients, rule.intercepts]).T for rule in rules]
        )
        small = self.ops.to_device(small, rows)
        products: Any = xp.matmul(small[:, :, :-1], self.rows_T)
        scores = xp.abs(products) if self.signed else products
        scores = scores + small[:, :, -1:]
        peaks = xp.max(scores, axis=1)
        members = xp.exp(scores - peaks[:, None, :])
        ends = None
        if self.signed:
            # The score is that of the nearer end; both ends together are a cluster.
            members *= (1 + xp.exp(-2 * xp.abs(products))) / 2
            ends = xp.tanh(products)  # the share of one end less that of the other
        totals = xp.sum(members, axis=1)
        members /= totals[:, None, :]
        self.sums = self._sums(members, ends)
        return self.ops.to_host((peaks + xp.log(totals)) @ self.share), scores

    def run(self, pull: float, max_iter: int) -> list[Fit]:
        """Go on until no fit gains by more than 1e-4 a row."""
        count, k = self.sums.shape[:2]
        fits = [Fit(None, -np.inf, 0)] * count  # type: ignore[arg-type]
        going = np.ones(count, dtype=bool)
        while going.any():
            rules = [fit.rule for fit in fits]
            at = np.flatnonzero(going)
            terms = np.zeros(count)
            found, terms[at] = self._maximise(at, pull)
            for i, rule in zip(at.tolist(), found, strict=True):
                rules[i] = rule
            likely, scores = self.expect(rules)
            for i in np.flatnonzero(going).tolist():
                value, before = float(likely[i] - terms[i]), fits[i]
                fits[i] = Fit(rules[i], value, before.n_iter + 1)
                going[i] = value - before.log_likelihood >= Labelling.GAIN
                going[i] &= fits[i].n_iter < max_iter
        xp, best = self.xp, self.xp.max(scores, axis=1)
        used = self.ops.to_host(xp.any(scores == best[:, None, :], axis=2)).sum(axis=1)
        return [
            fit if used[i] == k else fit._replace(log_likelihood=-np.inf)
            for i, fit in enumerate(fits)
        ]

    def _maximise(
        self, at: np.ndarray, pull: float
    ) -> tuple[list[LinearRule], np.ndarray]:
        """Return the rules that memberships make, and a term of the log-likelihood."""
        moments, sums = self.moments[at], self.sums[at]
        m = moments.shape[1]
        sizes = sums[:, :, -1] + 1e-10 / self.rows.shape[1]
        centers = sums[:, :, :-1] / sizes[:, :, None]
        within = moments - (centers.transpose(0, 2, 1) * sizes[:, None, :]) @ centers
        sphere = pull * np.trace(within, axis1=1, axis2=2) / m + _flattest(moments)
        covariance = (1 - pull) * within + sphere[:, None, None] * np.eye(m)
        root = np.linalg.cholesky(covariance)
        both = np.concatenate([centers.transpose(0, 2, 1), moments], axis=2)
        solved = np.linalg.solve(covariance, both)
        coefficients = solved[:, :, : sizes.shape[1]]
        squares = (centers.transpose(0, 2, 1) * coefficients).sum(axis=1)
        intercepts = np.log(sizes) - squares / 2
        rules = [
            LinearRule(*rule, self.signed)
            for rule in zip(coefficients, intercepts, strict=True)
        ]
        # The terms of rows alone add up to a trace.
        spread = np.trace(solved[:, :, sizes.shape[1] :], axis1=1, axis2=2) / 2
        volume = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        return rules, spread + volume


def _flattest(moments: np.ndarray) -> np.ndarray:
    """Return the least variance of a direction: less is rounding."""
    least = (
        Labelling.FLATTEST * np.trace(moments, axis1=-2, axis2=-1) / moments.shape[-1]
    )
    # All rows may be zero, as one alone is.
    return np.where(least > 0, least, 1.0)


def log_likelihood_of_one(ops: Ops, rows: Tall, weights: Tall | None = None) -> float:
    """Return the log-likelihood of a row under one Gaussian, up to a constant."""
    xp, (n, m) = ops.xp, rows.shape
    counted = rows / n
    if weights is not None:
        counted = rows * (weights / xp.sum(weights))[:, None]
    moments = ops.to_host(rows.T @ counted)
    mean = ops.to_host(xp.sum(counted, axis=0))
    covariance = moments - np.outer(mean, mean) + _flattest(moments) * np.eye(m)
    root = cho_factor(covariance, lower=True)
    squares = mean @ cho_solve(root, mean) - np.trace(cho_solve(root, moments))
    return float(squares / 2 - np.log(np.diag(root[0])).sum())


def _signed_members(ops: Ops, rule: LinearRule, rows: Tall) -> Tall:
    """Return 1 or -1 in the column of each row's cluster, as the row points."""
    labels = rule(ops, rows)
    members = ops.one_hot(labels, len(rule.intercepts), rows)
    return members * rule.signs(ops, rows, labels)[:, None]


def _distinct(ops: Ops, starts: list[Tall]) -> list[Tall]:
    """Leave out memberships that differ from others in the names of clusters only."""
    k = starts[0].shape[1]
    members = ops.beside(*(ops.xp.abs(start) for start in starts))
    common = ops.to_host(members.T @ members) > 0
    common = common.reshape(len(starts), k, len(starts), k).sum(axis=3).max(axis=1)
    kept: list[int] = []
    for i in range(len(starts)):
        # Each cluster of one is within a cluster of the other, and the other way round.
        if not any(common[i, j] <= 1 and common[j, i] <= 1 for j in kept):
            kept.append(i)
    return [starts[i] for i in kept]
