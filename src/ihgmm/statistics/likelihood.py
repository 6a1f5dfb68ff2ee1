"""How well each row fits each cluster whose centre was learnt without that row.

A centre carries the noise of its own rows. With many more features than rows this noise
makes every row fit its own cluster best, right or wrong. Here a row is compared with
the centres that the *other* rows give: the sums over a cluster are formed once, and the
row's own part is taken off.

One loop of such comparisons serves two ends. `refine_labels` moves rows to the nearest
centre until labels repeat; `fit_mixture` (expectation and maximisation) moves
probabilities until they settle. Arrays with a number for each row and cluster are on
the host, wherever the data are. The formulas are in docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import log_ndtr, logsumexp, softmax

from ihgmm.matrix import Matrix, Tall, as_matrix, to_host

Noise = Literal["common", "class", "individual"]


@dataclass(frozen=True)
class Refinement:
    """Refined labels."""

    labels: Tall  #: the cluster of each row, where the data is
    centers: np.ndarray  #: directions that rows are compared with, (n_clusters, p)
    n_iter: int  #: rounds that were run
    converged: bool  #: whether nothing changed any more, or earlier labels came back


def refine_labels(
    X: Any, labels: Tall, n_clusters: int, *, max_iter: int = 100
) -> Refinement:
    """Reassign rows to the centres that the other rows give, until nothing changes.

    X has been checked. The labels to start from are integers from 0 to
    ``n_clusters - 1``, every one in use; no cluster is ever emptied. A round, of which
    there are ``max_iter`` at most, costs two products with X of ``n_clusters`` columns.

    In a centre a row counts with its length over its noise variance, both as they
    appear from the centres of the round before. The first rounds are soft: rows count
    in several centres, by their likelihood, so that one wrong label does not keep
    others wrong. Then every row goes to the centre with the largest cosine. Rounds
    that repeat earlier labels end the search, since they would go round in a circle.
    """
    X, labels = as_matrix(X), to_host(labels).astype(np.intp, copy=False)
    if n_clusters == 1:
        one = to_host(X.adjoint(np.ones((X.shape[0], 1)))).T
        return Refinement(X.to_device(np.zeros_like(labels)), one, 0, True)
    soft = True
    earlier: set[bytes] = set()

    def update(
        memberships: np.ndarray, seen: Projections, _: Any, n_iter: int
    ) -> tuple[np.ndarray, bool]:
        nonlocal labels, soft
        if soft:
            # Half sure, by the root of the likelihood, so that early errors can mend.
            joint = joint_log_likelihood(seen, np.ones(n_clusters))
            likely = softmax(0.5 * joint, axis=1)
            soft = n_iter < 30 and np.abs(likely - memberships).max() > 1e-2
            if soft:
                return likely, False
        before, labels = labels, _nearest(seen, labels)
        repeated = bool((labels == before).all()) or labels.tobytes() in earlier
        earlier.add(labels.tobytes())
        return indicators(labels, n_clusters), repeated

    # The first look, from centres in which rows count alike, is a round too.
    start = indicators(labels, n_clusters)
    last = _iterate(X, start, "individual", update, max_iter - 1)
    centers = last.directions.sums.T
    return Refinement(X.to_device(labels), centers, last.n_iter + 1, last.settled)


@dataclass(frozen=True)
class Mixture:
    """A fitted mixture."""

    memberships: np.ndarray  #: probability of each cluster for each row, given others
    mixing_weights: np.ndarray  #: shares of the clusters
    noise_variances: np.ndarray | None  #: of each cluster; None if rows have their own
    directions: Directions  #: of the centres, all rows included
    log_likelihood: float  #: of the rows, each given the others
    n_iter: int  #: rounds that were run
    change: float  #: how much a row's memberships moved in the last round, on average

    def in_order(self, order: np.ndarray) -> Mixture:
        """Return the mixture with its clusters in another order."""
        d, variances = self.directions, self.noise_variances
        return replace(
            self,
            memberships=self.memberships[:, order],
            mixing_weights=self.mixing_weights[order],
            noise_variances=None if variances is None else variances[order],
            directions=Directions(d.sums[:, order], d.sqnorms[order], d.loads[order]),
        )


def fit_mixture(
    X: Matrix,
    labels: Tall,
    n_clusters: int,
    *,
    noise: Noise = "individual",
    max_iter: int = 100,
    tol: float = 1e-4,
    say: Callable[[str], None] | None = None,
) -> Mixture:
    """Fit centres, shares and noise from a start as :func:`refine_labels` has it.

    ``noise`` says whether it has one variance, one for each cluster or one for each
    row. Memberships that move by less than ``tol``, on average over rows, have
    converged. After each round ``say`` gets a few words.

    The likelihood of the model has no maximum where every row has its own noise: a
    centre through one row makes that row's noise vanish. Here every row is judged by
    centres learnt without it, which has no such flaw, and which keeps memberships
    honest where features outnumber rows.
    """
    sqnorms = to_host(X.sqnorms)
    memberships = indicators(to_host(labels), n_clusters)
    # Shares that follow the memberships would feed on themselves: where clusters are
    # hard to tell apart, the largest would swallow the others.
    shares = mixing_weights(counted(X, memberships), sqnorms)
    log_likelihood, change = 0.0, np.inf

    def update(
        before: np.ndarray, seen: Projections, variances: np.ndarray | None, n_iter: int
    ) -> tuple[np.ndarray, bool]:
        nonlocal log_likelihood, change
        memberships, log_likelihood = _posterior(X, seen, shares, variances)
        # Keep clusters from vanishing: the last row of one stays.
        for k in np.flatnonzero(memberships.sum(axis=0) < 0.5):
            row = before[:, k].argmax()
            memberships[row] = 0.0
            memberships[row, k] = 1.0
        if n_iter > 20:  # only half the way, lest memberships swing for ever
            memberships = (memberships + before) / 2
        change = float(np.abs(memberships - before).sum(axis=1).mean() / 2)
        if say is not None:
            rounds = f"{n_iter} round{'s' * (n_iter != 1)}"
            say(f"{rounds}, memberships moved by {change:.2g}")
        return memberships, change <= tol

    last = _iterate(X, memberships, noise, update, max_iter)
    return Mixture(
        last.memberships,
        mixing_weights(counted(X, last.memberships), sqnorms),
        last.variances,
        last.directions,
        log_likelihood,
        last.n_iter,
        change,
    )


def evaluate_mixture(X: Matrix, memberships: np.ndarray, noise: Noise) -> Mixture:
    """Return the mixture that rows with given memberships make, without moving them."""
    shares = mixing_weights(counted(X, memberships), to_host(X.sqnorms))
    # The weights of rows in the centres have settled after three rounds.
    last = _iterate(X, memberships, noise, lambda same, *_: (same, False), 3)
    likely, log_likelihood = _posterior(X, last.seen, shares, last.variances)
    return Mixture(
        likely, shares, last.variances, last.directions, log_likelihood, 1, np.inf
    )


class _Round(NamedTuple):
    """Where rounds have led."""

    memberships: np.ndarray
    seen: Projections
    directions: Directions
    variances: np.ndarray | None
    n_iter: int
    settled: bool


def _iterate(
    X: Matrix,
    memberships: np.ndarray,
    noise: Noise,
    update: Callable[..., tuple[np.ndarray, bool]],
    max_iter: int,
) -> _Round:
    """Sum up centres, look at every row from them, update memberships, and repeat.

    ``update`` takes memberships, projections, noise variances and the number of the
    round; it returns new memberships and whether they have settled.
    """
    # At first all rows count alike.
    weights = unit_weights(counted(X, memberships), to_host(X.sqnorms))
    seen, directions = leave_one_out(X, weights)
    variances, n_iter, settled = None, 0, False
    while n_iter < max_iter and not settled:
        n_iter += 1
        members = counted(X, memberships)
        seen, directions = leave_one_out(X, seen.weights(members, noise))
        variances = _noise_variances(members, seen, noise)
        memberships, settled = update(memberships, seen, variances, n_iter)
    return _Round(memberships, seen, directions, variances, n_iter, settled)


def _nearest(seen: Projections, labels: np.ndarray) -> np.ndarray:
    """Return the cluster of largest cosine; rows that would leave one empty stay."""
    # Zero rows fit everywhere alike and keep their label.
    new = np.where(seen.sqnorms == 0, labels, seen.cosines.argmax(axis=1))
    sizes = np.bincount(new, minlength=seen.cosines.shape[1])
    for k in np.flatnonzero(sizes == 0):
        rows = np.flatnonzero(labels == k)
        if len(rows) == 0:
            continue
        lost = seen.cosines[rows].max(axis=1) - seen.cosines[rows, k]
        stays = rows[lost.argmin()]
        if sizes[new[stays]] > 1:
            sizes[new[stays]] -= 1
            new[stays] = k
            sizes[k] = 1
    return new


def _posterior(
    X: Matrix, seen: Projections, shares: np.ndarray, variances: np.ndarray | None
) -> tuple[np.ndarray, float]:
    """Return each cluster's probability for each row, and the log-likelihood of all."""
    joint = joint_log_likelihood(seen, shares, variances)
    total = logsumexp(joint, axis=1, keepdims=True)
    return np.exp(joint - total), float(counted(X, total)[seen.sqnorms > 0].sum())


# What a round is made of.


@dataclass(frozen=True)
class Directions:
    """Estimated directions of the centres and how much noise they carry."""

    sums: np.ndarray  # (n_features, n_clusters): weighted sums of the rows
    sqnorms: np.ndarray  # (n_clusters,): their squared norms
    loads: np.ndarray  # (n_clusters,): sums of squared weights, which multiply noise


@dataclass(frozen=True)
class Projections:
    """Rows seen from the centres; all arrays are float64, on the host."""

    cosines: np.ndarray  # (n_samples, n_clusters): 0 where row or centre is zero
    center_sqnorms: np.ndarray  # (n_samples, n_clusters): of the centre for that row
    loads: np.ndarray  # (n_samples, n_clusters): its sum of squared weights
    sqnorms: np.ndarray  # (n_samples,): of the rows
    n_features: int

    @property
    def along(self) -> np.ndarray:
        """Lengths of rows along each centre."""
        return np.sqrt(self.sqnorms)[:, None] * self.cosines

    @property
    def across(self) -> np.ndarray:
        """Squared lengths of rows across each centre."""
        # No row fits a centre without any noise: this is the least squared sine.
        sines = np.maximum(1.0 - self.cosines**2, 1e-12)
        return sines * self.sqnorms[:, None]

    def accuracy(self, variances: np.ndarray) -> np.ndarray:
        """Return squared cosines of the centres with the true ones, at least 0.001."""
        noise = self.n_features * variances * self.loads
        return np.clip(1.0 - _ratio(noise, self.center_sqnorms, 1.0), 1e-3, 1.0)

    def weights(self, memberships: np.ndarray, noise: Noise) -> np.ndarray:
        """Return the weight of each row in each centre: its length over its noise.

        Both are read off the projections; a row that points away from a centre has
        weight 0 in it. Unless noise is individual, it is the same within a cluster.
        """
        weights = memberships * np.maximum(self.along, 0.0)
        if noise == "individual":
            weights = _ratio(weights, self.across)
        return _column_scaled(weights)


def unit_weights(memberships: np.ndarray, sqnorms: np.ndarray) -> np.ndarray:
    """Return weights with which all rows count as if of the same length."""
    return _column_scaled(_ratio(memberships, np.sqrt(sqnorms)[:, None]))


def counted(X: Matrix, values: np.ndarray) -> np.ndarray:
    """Return values of rows, one line for each, times how much the rows count."""
    return values if X.weights is None else to_host(X.weights)[:, None] * values


def indicators(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return memberships that are 1 in the cluster of each row and 0 elsewhere."""
    return (labels[:, None] == np.arange(n_clusters)).astype(np.float64)


def leave_one_out(X: Matrix, weights: np.ndarray) -> tuple[Projections, Directions]:
    """Compare each row with the weighted sums of the others; return sums of all too."""
    sqnorms, sums = to_host(X.sqnorms), to_host(X.adjoint(weights))
    # Where nothing is left without the row, rounding must not pass for a centre.
    rounding = max(1e-10, 32 * float(np.finfo(sums.dtype).eps))
    sums = sums.astype(np.float64)
    inner = to_host(X @ sums).astype(np.float64)
    total = (sums**2).sum(axis=0)
    own = weights * sqnorms[:, None]
    squares = total - 2 * weights * inner + weights * own
    squares[squares <= rounding * np.maximum(total, weights * own)] = 0.0
    loads = (weights**2).sum(axis=0)
    cosines = _cosines(inner - own, squares, sqnorms)
    seen = Projections(cosines, squares, loads - weights**2, sqnorms, X.shape[1])
    return seen, Directions(sums, total, loads)


def project(X: Matrix, directions: Directions) -> Projections:
    """Compare new rows with the centres."""
    sqnorms = to_host(X.sqnorms)
    inner = to_host(X @ directions.sums).astype(np.float64)
    squares = np.broadcast_to(directions.sqnorms, inner.shape)
    loads = np.broadcast_to(directions.loads, inner.shape)
    cosines = _cosines(inner, squares, sqnorms)
    return Projections(cosines, squares, loads, sqnorms, X.shape[1])


def _cosines(inner: np.ndarray, squares: np.ndarray, sqnorms: np.ndarray) -> np.ndarray:
    return np.clip(_ratio(inner, np.sqrt(squares * sqnorms[:, None])), -1.0, 1.0)


def _ratio(a: np.ndarray, b: np.ndarray, otherwise: float = 0.0) -> np.ndarray:
    """Return ``a / b`` where b is positive."""
    return np.divide(a, b, out=np.full(a.shape, otherwise), where=b > 0)


def _column_scaled(weights: np.ndarray) -> np.ndarray:
    """Return weights with largest value 1 in each column: only ratios matter."""
    peak = weights.max(axis=0)
    return weights / np.where(peak > 0, peak, 1.0)


def joint_log_likelihood(
    seen: Projections, shares: np.ndarray, variances: np.ndarray | None = None
) -> np.ndarray:
    """Return the log-likelihood of each row together with each cluster.

    Shares and noise variances are those of the clusters; without variances, every row
    has its own, which is unknown and fitted to it.
    """
    p = seen.n_features
    freedom = max(p - 1, 1)
    along, across = seen.along, seen.across
    tiny = np.finfo(np.float64).tiny
    if variances is None:
        variance = np.maximum(across / freedom, tiny)
        fit = freedom
    else:
        accuracy = seen.accuracy(variances)
        signal = np.maximum(along, 0.0) ** 2 * (1.0 / accuracy - 1.0)
        variance = np.maximum(variances + signal / p, tiny)
        fit = across / variance
    value = -0.5 * (freedom * np.log(2 * np.pi * variance) + fit)
    value += log_ndtr(along / np.sqrt(variance))
    # A zero row fits everywhere alike.
    value[seen.sqnorms == 0] = 0.0
    return value + np.log(shares)


def mixing_weights(memberships: np.ndarray, sqnorms: np.ndarray) -> np.ndarray:
    """Return the shares of the clusters, pulled towards equal ones.

    They are pulled as far as chance alone would have moved them (James and Stein), and
    no further: sizes that differ by no more than chance count as equal, since rows that
    fit nowhere well would otherwise all go to the largest cluster.
    """
    live = memberships[sqnorms > 0]
    n, k = live.sum(), live.shape[1]
    sizes = (live.sum(axis=0) + 1) * n / (n + k)
    even = n / k
    distance = float(np.square(sizes - even).sum() / even)
    kept = max(0.0, 1 - (k - 1) / distance) if distance > 0 else 0.0
    return (even + kept * (sizes - even)) / n


def _noise_variances(
    memberships: np.ndarray, seen: Projections, noise: Noise
) -> np.ndarray | None:
    """Return the noise variance of each cluster; None for individual noise.

    The noise is what rows have beyond their signal, and the squared length of the
    signal is that along the centre over the centre's accuracy, which itself depends on
    the noise: more noise in the centres means more signal in the rows. What is left
    falls as the variance rises, so that one value agrees with itself.
    """
    if noise == "individual":
        return None
    along = np.maximum(seen.cosines, 0.0) ** 2
    length = memberships * seen.sqnorms[:, None]
    entries = memberships[seen.sqnorms > 0].sum(axis=0) * max(seen.n_features - 1, 1)

    def excess(variances: np.ndarray) -> np.ndarray:
        signal = np.minimum(along / seen.accuracy(variances), 1.0)
        left = (length * (1.0 - signal)).sum(axis=0) - variances * entries
        return np.full_like(left, left.sum()) if noise == "common" else left

    overall = length.sum() / entries.sum()
    low, high = np.zeros(len(entries)), length.sum(axis=0) / np.maximum(entries, 1e-9)
    if noise == "common":
        high[:] = overall
    for _ in range(60):  # more than a float64 has bits
        middle = (low + high) / 2
        more = excess(middle) > 0
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.maximum((low + high) / 2, 1e-12 * overall)
