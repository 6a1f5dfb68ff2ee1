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
from scipy.linalg import svd

from ihgmm._values import Domain
from ihgmm.matrix import HOST, Ops, Tall
from ihgmm.matrix.ops import sampled
from ihgmm.matrix.threads import one_thread
from ihgmm.numerics.clusters import Run, lloyd, merged_start, mixture, pivots
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
        from sklearn.neighbors import NearestNeighbors  # few fits need it

        search = NearestNeighbors(n_neighbors=self.n_neighbors).fit(self.rows)
        work = partial(self._by_vote, search)
        return ops.row_map(work, rows, width=self.n_neighbors**2)

    def _by_vote(self, search: Any, ops: Ops, rows: Tall) -> Tall:
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


class Learnt(NamedTuple):
    """A rule that was learnt, and where."""

    rule: Rule
    space: int = 0  # the position of the space that was chosen
    n_iter: int = 0
    worth: float = -np.inf  # of a mixture: log-likelihood a row over one Gaussian


def learn_rule(
    spaces: Sequence[Tall],
    n_clusters: int,
    method: Assignment = "kmeans",
    *,
    clear: Sequence[np.ndarray] | None = None,
    weights: np.ndarray | None = None,
    by_angle: bool = True,
    signed: bool = False,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    rng: np.random.Generator | None = None,
    ops: Ops = HOST,
) -> Learnt:
    """Learn from rows of an embedding how to label.

    ``spaces`` are embeddings of the same rows: a mixture says in which of them clusters
    show best. Only rows that are ``clear`` there teach. Weights say how much rows count
    in k-means and in mixtures; pivots and graphs take rows as they are. ``by_angle``
    says that rows are units. A mixture is learnt where rows are, all else on the host.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import HOST
    >>> from ihgmm.numerics.labels import learn_rule
    >>> rows = np.array([[0.0], [0.2], [0.1], [9.0], [9.1]])
    >>> rule = learn_rule([rows], 2, rng=np.random.default_rng(0)).rule
    >>> labels = rule(HOST, np.array([[0.3], [8.0]]))
    >>> int(labels[0] != labels[1])
    1
    """
    rng = np.random.default_rng() if rng is None else rng
    n = spaces[0].shape[0]
    weights = np.ones(n) if weights is None else weights
    if clear is None:
        clear = [np.ones(n, dtype=bool) for _ in spaces]
    # One thread: the order of sums, and so the labels, never depend on how many there
    # are.
    with one_thread():
        space = 0
        if len(spaces) > 1 or method == "tied":
            tied = _shared_covariance(
                ops, spaces, clear, n_clusters, weights, by_angle, signed, max_iter, rng
            )
            if method == "tied":
                return tied
            space = tied.space
        rows = ops.to_host(spaces[space])
        if method == "cluster_qr":
            rule: Rule = replace(cluster_qr(rows, n_clusters), signed=signed)
            return Learnt(rule, space)
        if method == "neighbors":
            return Learnt(neighbor_graph(rows, n_clusters, rng=rng), space)
        options: Any = {"n_init": n_init, "max_iter": max_iter, "rng": rng}
        run = kmeans(rows, n_clusters, weights, signed=signed, **options)
    rule = replace(nearest_center(run.centers), signed=signed)
    return Learnt(rule, space, run.n_iter)


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

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import HOST
    >>> from ihgmm.numerics.labels import cluster_qr
    >>> rows = np.array([[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.9]])
    >>> cluster_qr(rows, 2)(HOST, rows)
    array([0, 0, 1, 1])
    """
    chosen = rows[pivots(rows, n_clusters)]
    left, _, right = svd(chosen.T, full_matrices=False)
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
    from sklearn.neighbors import kneighbors_graph  # few fits need it

    rng = np.random.default_rng() if rng is None else rng
    rows = rows[sampled(len(rows), max_rows, rng)]
    n = len(rows)
    if n <= n_clusters:  # too few for a graph to be cut
        return NeighborRule(rows, np.arange(n), 1)
    n_neighbors = min(n_neighbors, n - 1)
    joined = kneighbors_graph(rows, n_neighbors).toarray()
    joined += joined.T
    roots = np.sqrt(joined.sum(axis=1))[:, None]
    # The whole spectrum: pieces of a graph share an eigenvalue, and iterations would
    # miss some of them.
    _, vectors = leading_pairs(joined / (roots * roots.T), n_clusters)
    labels = cluster_qr(vectors / roots, n_clusters)(HOST, vectors / roots)
    return NeighborRule(rows, np.asarray(labels, dtype=np.intp), n_neighbors)


def kmeans(
    rows: np.ndarray,
    n_clusters: int,
    weights: np.ndarray | None = None,
    *,
    signed: bool = False,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    rng: np.random.Generator,
) -> Run:
    """Run k-means from k-means++ starts, which compete on a sample of many rows.

    "auto" are as many starts as are cheap, from 10 to 50, unless five have ended in one
    best place before: the seed then does not matter on most small data. With ``signed``
    centres and their opposites are one, and the only start are pivots.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.numerics.labels import kmeans
    >>> rows = np.array([[0.0], [0.2], [0.1], [9.0], [9.1]])
    >>> run = kmeans(rows, 2, rng=np.random.default_rng(0))
    >>> np.sort(run.centers[:, 0]).round(2)
    array([0.1 , 9.05])
    """
    from sklearn.cluster import kmeans_plusplus  # few fits need it, and it takes long

    weights = np.ones(len(rows)) if weights is None else weights
    trial = _trial(len(rows), n_clusters)
    few, counts = rows[trial], weights[trial]
    options: Any = {"by_angle": False, "signed": signed, "max_iter": max_iter}
    cheap = Labelling.KMEANS_WORK // max(few.size * n_clusters, 1)
    count = int(np.clip(cheap, 10, 50)) if n_init == "auto" else n_init
    same = Labelling.SAME * float(counts @ np.einsum("ij,ij->i", few, few))
    state = np.random.RandomState(rng.integers(2**31))
    runs: list[Run] = []
    while len(runs) < (1 if signed else count):
        if signed:
            start = few[pivots(few, n_clusters)]
        else:
            start, _ = kmeans_plusplus(
                few, n_clusters, sample_weight=counts, random_state=state
            )
        runs.append(lloyd(few, start, counts, **options))
        best = max(runs, key=attrgetter("score"))
        ends = sum(best.score - run.score <= same for run in runs)
        if n_init == "auto" and ends == Labelling.AGREEING:
            break
    if len(few) == len(rows):
        return best
    # The best end on a sample need not be the best of all rows: different ones go on.
    ends_kept: list[Run] = []
    for run in sorted(runs, key=attrgetter("score"), reverse=True):
        if all(other.score - run.score > same for other in ends_kept):
            ends_kept.append(run)
    whole = [
        lloyd(rows, run.centers, weights, **options)
        for run in ends_kept[: Labelling.ENDS]
    ]
    return max(whole, key=attrgetter("score"))


def _trial(n_rows: int, n_clusters: int) -> np.ndarray:
    """Return the rows that starts compete on, whatever the seed; all if few."""
    size = max(Labelling.TRIAL_ROWS, Labelling.ROWS_A_CLUSTER * n_clusters)
    return sampled(n_rows, size)


class _Trial(NamedTuple):
    """Rows of a space on which starts compete, and those that teach."""

    rows: Tall
    positions: np.ndarray  # of rows that teach
    teaching: Tall  # these rows
    weights: np.ndarray  # and theirs


def _shared_covariance(
    ops: Ops,
    spaces: Sequence[Tall],
    clear: Sequence[np.ndarray],
    k: int,
    weights: np.ndarray,
    by_angle: bool,
    signed: bool,
    max_iter: int,
    rng: np.random.Generator,
) -> Learnt:
    """Fit Gaussian clusters that share a covariance, in the space that shows them best.

    All starts are tried in all spaces, with a covariance of any shape and with a
    sphere, and the best goes on with all rows, unless it has seen them and ended. Best
    is what clusters add to the likelihood of a single Gaussian, which a linear map of a
    space changes only by the pull of the covariance, less the price that BIC puts on a
    shape. Where many rows are noise in the first space, only the last is tried; where
    all this is a lot of work, with one start.
    """
    trial = _trial(len(weights), k)
    lean = len(trial) * k * spaces[-1].shape[1] > Labelling.WORK
    if lean or len(trial) < len(weights):  # of many rows, single precision is enough
        spaces = [ops.xp.astype(rows, ops.xp.float32) for rows in spaces]
    noisy = 1 - clear[0].mean() > Labelling.NOISY
    # Spaces compete by the same rows: without its noise, each would look better.
    in_all = np.logical_and.reduce(clear)
    trials, few = [], ops if lean else HOST  # a device would only wait for so little
    for space, own in zip(spaces, clear, strict=True):
        rows = space if len(trial) == len(weights) else ops.few_rows(space, trial)
        rows = rows if lean else ops.to_host(rows)
        at = _teaching((own if noisy else in_all)[trial], weights[trial], k)
        trials.append(_Trial(rows, at, few.few_rows(rows, at), weights[trial[at]]))
    options: Any = {"signed": signed, "ops": few}
    if by_angle:
        starts = _by_angles(trials, k, lean, **options)
    else:
        starts = []
        for one in trials:
            rows = few.to_host(one.teaching)
            run = kmeans(rows, k, one.weights, signed=signed, rng=rng)
            _add_start(starts, one, run.centers, by_angle=False, **options)
    fit, chosen = None, 0
    for i in [len(trials) - 1] if lean or noisy else range(len(trials)):
        better = mixture(
            trials[i].teaching,
            [few.few_rows(start, trials[i].positions).T for start in starts],
            trials[i].weights,
            pulls=(Labelling.PULL, 1.0),
            bar=-np.inf if fit is None else fit.worth,
            max_iter=Labelling.ROUGH,
            **options,
        )
        if better is not None:
            fit, chosen = better, i
    if fit is None:  # clusters vanish in every run, and k-means has the last word
        rows = ops.to_host(spaces[0])
        run = kmeans(rows, k, weights, signed=signed, max_iter=max_iter, rng=rng)
        return Learnt(replace(nearest_center(run.centers), signed=signed))
    at, worth = _teaching(clear[chosen], weights, k), fit.worth
    if fit.n_iter >= Labelling.ROUGH or len(at) != len(trials[chosen].positions):
        rows = ops.few_rows(spaces[chosen], at)
        start = [fit.members(rows, signed, ops)]
        options = {"signed": signed, "max_iter": max_iter, "ops": ops}
        full = mixture(rows, start, weights[at], pulls=(fit.pull,), **options)
        fit = fit if full is None else full
    rule = LinearRule(fit.coefficients, fit.intercepts, signed)
    return Learnt(rule, chosen, fit.n_iter, worth)


def _by_angles(
    trials: Sequence[_Trial], k: int, lean: bool, *, signed: bool, ops: Ops
) -> list[Tall]:
    """Return different starts of a mixture: memberships of rows, (n, k).

    In each space pivots give a start, which spherical k-means improves; where these
    differ, merged small clusters give others. A ``lean`` start is one; else rows are on
    the host.
    """
    options: Any = {"signed": signed, "ops": ops}
    starts: list[Tall] = []
    if lean:
        # Pivots of eigenvectors, in which clusters are at right angles; and of the last
        # space, in which noise does not drown rows of large clusters.
        last, runs = trials[-1], []
        rows = ops.to_host(last.teaching)
        for one in trials:
            seen = rows
            if one is not last:
                seen = ops.to_host(ops.few_rows(one.rows, last.positions))
            first = rows[pivots(seen, k)]
            runs.append(lloyd(last.teaching, first, last.weights, **options))
        if k > rows.shape[1]:  # there are fewer pivots than clusters
            first = merged_start(rows, k, last.weights, signed)
            if first is not None:
                runs.append(lloyd(last.teaching, first, last.weights, **options))
        best = max(runs, key=attrgetter("score")).centers
        _add_start(starts, last, best, **options)
        return starts
    for one in trials:
        first = one.teaching[pivots(one.teaching, k)]
        run = lloyd(one.teaching, first, one.weights, signed=signed)
        _add_start(starts, one, run.centers, **options)
    if len(starts) > 1 or len(trials) == 1:  # else clusters are clear
        for one in trials:
            merged = merged_start(one.teaching, k, one.weights, signed)
            if merged is not None:
                run = lloyd(one.teaching, merged, one.weights, signed=signed)
                _add_start(starts, one, run.centers, **options)
    return starts


def _add_start(
    starts: list[Tall],
    one: _Trial,
    centers: np.ndarray,
    *,
    by_angle: bool = True,
    signed: bool,
    ops: Ops,
) -> None:
    """Add memberships by some centres, unless a start is the same.

    They are (n, k): 1 in a row's cluster, or -1 where it points away.
    """
    rule = replace(nearest_center(centers), signed=signed)
    if by_angle:
        rule = replace(rule, intercepts=np.zeros(len(centers)))
    labels = ops.xp.argmax(rule.scores(ops, one.rows), axis=1)
    members = ops.one_hot(labels, len(centers), one.rows)
    if signed:
        members *= rule.signs(ops, one.rows, labels)[:, None]
    for other in starts:  # under other names, clusters may be the same
        overlap = np.abs(ops.tall_dot(other, members))
        shared = min(overlap.max(axis=0).sum(), overlap.max(axis=1).sum())
        if shared >= Labelling.SAME_START * members.shape[0]:
            return
    starts.append(members)


def _teaching(clear: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    """Return positions of rows that teach: the clear ones; all where they are few."""
    teaches = clear & (weights > 0)
    few = teaches.sum() < Labelling.LEAST_CLEAR * k
    return np.flatnonzero(weights > 0 if few else teaches)


def gain_of_lines(
    rows: Tall, n_clusters: int, rng: np.random.Generator, ops: Ops = HOST
) -> float:
    """Return how much better clusters of lines fit than clusters of directions.

    That is a difference of log-likelihoods a row, of models that have as many
    parameters; minus infinity unless most rows, which are units, have another as near
    to their opposite as one is to them.
    """
    rows = ops.to_host(ops.few_rows(rows, sampled(rows.shape[0], Labelling.LINE_ROWS)))
    n, k = len(rows), n_clusters
    # In fewer directions than clusters many rows are opposite, whatever they are.
    if k < 2 or rows.shape[1] < k or n < Labelling.LINE_ROWS_A_CLUSTER * k:
        return -np.inf
    cosines = rows @ rows.T
    np.fill_diagonal(cosines, 0.0)
    opposite, near = -cosines.min(axis=1), cosines.max(axis=1)
    if np.median(opposite) < Labelling.OPPOSITE * np.median(near):
        return -np.inf
    lines, directions = (
        learn_rule([rows], k, "tied", signed=signed, rng=rng).worth
        for signed in (True, False)
    )
    return lines - directions if np.isfinite(directions) else -np.inf
