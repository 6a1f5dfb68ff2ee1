"""How well each row fits each cluster whose centre was learnt without that row.

A centre carries the noise of its own rows, which makes every row fit its own cluster
best, right or wrong. So a round looks at each row from the centres that the *other*
rows give, moves it, and adds it to the next centres; docs/statistics.md has formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ihgmm.matrix import HOST, Matrix, Ops, Tall, as_matrix, to_host
from ihgmm.policy import Rounds, Small
from ihgmm.statistics.model import NoiseStructure


class Refinement(NamedTuple):
    """Refined labels."""

    labels: Tall  #: the cluster of each row, where the data are
    centers: np.ndarray  #: directions that rows are compared with, (n_clusters, p)
    n_iter: int  #: rounds that were run
    converged: bool  #: whether nothing changed any more, or earlier labels came back


def refine_labels(X: Any, labels: Tall, k: int, *, max_iter: int = 100) -> Refinement:
    """Compare rows with the centres of the other rows until no label changes.

    Labels are integers from 0, all in use, and a cluster keeps its last row. The first
    rounds are soft, so that one wrong label does not keep others wrong; then rows go
    to the centre with the largest cosine.
    """
    X = as_matrix(X)
    if X.streamed and X.n_entries < 2**20:  # rounds would take longer than the copy
        refined = refine_labels(X.to_memory(), to_host(labels), k, max_iter=max_iter)
        return refined._replace(labels=X.to_device(refined.labels))
    ops, labels = X.ops, X.to_device(labels)
    rounds = _Rounds.begin(X, indicators(X, labels, k), "individual")
    if k == 1:
        return Refinement(labels, rounds.directions.sums.T, 0, True)
    # The first look, from centres in which rows count alike, is a round too.
    rounds, n_iter, moved = rounds.next(_stay), 1, np.inf
    # Of many rows a few always move.
    still = X.shape[0] // Rounds.ROWS_PER_MOVE
    while n_iter < min(Rounds.SOFT, max_iter) and moved > still:
        rounds, n_iter = rounds.next(_soften), n_iter + 1
        (moved,) = rounds.figures
    earlier: list[Tall] = []
    repeated = False
    while n_iter < max_iter and not repeated:
        before = rounds
        rounds, n_iter = before.next(_to_nearest), n_iter + 1
        if not rounds.sizes.all():
            rounds = before.next(_stay, _refilled(before, rounds, labels))
        # Circles are short, if there are any.
        earlier = [labels, *earlier[: Rounds.CIRCLE - 1]]
        labels = ops.xp.argmax(rounds.memberships, axis=1)
        repeated = any(not ops.number(ops.xp.any(labels != old)) for old in earlier)
    return Refinement(labels, rounds.seen_from.sums.T, n_iter, repeated)


def _refilled(before: _Rounds, after: _Rounds, labels: Tall) -> Tall:
    """Return memberships in which clusters keep the row that loses least by staying."""
    ops, memberships, sizes = before.X.ops, after.memberships, after.sizes.copy()
    xp, now = ops.xp, ops.xp.argmax(memberships, axis=1)

    def losses(_: Matrix, seen: Projections, labels: Tall) -> Any:
        """Return how much better the best centre is than that of the label."""
        ops, cosines = seen.ops, seen.cosines
        return (ops.row_max(cosines) - ops.pick(cosines, labels),), ()

    (lost,), _ = before.sweep(losses, labels)
    for k in np.flatnonzero(sizes == 0).tolist():
        own = labels == k
        if not ops.number(xp.any(own)):
            continue
        own_loss = xp.where(own, lost, xp.full_like(lost, np.inf))
        row = int(ops.number(xp.argmin(own_loss)))
        other = int(ops.number(now[row]))
        if sizes[other] > 1:
            sizes[other] -= 1
            memberships = _moved(ops, memberships, row, k)
    return memberships


def _moved(ops: Ops, memberships: Tall, row: int, cluster: int) -> Tall:
    """Return memberships with one row wholly in a cluster."""
    n, k = memberships.shape
    at = ops.to_device(np.arange(n) == row, memberships)[:, None]
    alone = ops.cast_like(np.eye(k)[[cluster]], memberships)
    return ops.xp.where(at, alone, memberships)


@dataclass(frozen=True)
class MixtureFit:
    """A fitted mixture."""

    memberships: Tall  #: probability of each cluster for each row, given others
    mixing_weights: np.ndarray  #: shares of the clusters
    noise_variances: np.ndarray | None  #: of each cluster; None if rows have their own
    directions: CenterSums  #: of the centres, all rows included
    log_likelihood: float  #: of the rows, each given the others
    n_iter: int  #: rounds that were run
    change: float  #: how much a row's memberships moved in the last round, on average

    def in_order(self, order: np.ndarray, ops: Ops) -> MixtureFit:
        """Return the mixture with its clusters in another order."""
        (sums, loads), variances = self.directions, self.noise_variances
        columns = ops.to_device(order, self.memberships)
        return replace(
            self,
            memberships=ops.xp.take(self.memberships, columns, axis=1),
            mixing_weights=self.mixing_weights[order],
            noise_variances=None if variances is None else variances[order],
            directions=CenterSums(sums[:, order], loads[order]),
        )


def fit_mixture(
    X: Matrix,
    memberships: Tall,
    *,
    noise: NoiseStructure = "individual",
    settling: int = 1,
    max_iter: int = 100,
    tol: float = 1e-4,
    say: Callable[[str], None] | None = None,
) -> MixtureFit:
    """Fit centres, shares and noise, to start from some memberships.

    After ``settling`` rounds they move, until by less than ``tol`` a row. A likelihood
    of rows in their own centres would have no maximum: one row makes its noise vanish.
    """
    ops, xp = X.ops, X.ops.xp
    rounds = _Rounds.begin(X, memberships, noise)
    # Shares that follow the memberships would feed on themselves: where clusters are
    # hard to tell apart, the largest would swallow the others.
    shares = mixing_weights(rounds.live_sizes)
    for _ in range(settling):
        rounds = rounds.next(_stay)
    n_iter, change, log_likelihood = 0, np.inf, 0.0

    def move(seen: Projections, old: Tall, counts: Tall | None, variances: Any) -> Any:
        """Move memberships to what is likely; add up by how much, log-likelihoods."""
        ops, xp = seen.ops, seen.ops.xp
        joint = joint_log_likelihood(seen, shares, variances)
        likely = ops.softmax(joint)
        value = ops.logsumexp(joint) * ops.widen(seen.sqnorms > 0)
        value = value if counts is None else value * counts
        # Only half the way after a while, lest memberships swing for ever.
        if n_iter > Rounds.FULL_STEPS:
            likely = old + 0.5 * (likely - old)
        return likely, (xp.sum(xp.abs(likely - old)), xp.sum(value))

    while n_iter < max_iter and change > tol:
        before, n_iter = rounds, n_iter + 1
        rounds = before.next(move)
        total, log_likelihood = rounds.figures
        if rounds.sizes.min() < 0.5:  # the last row of a vanishing cluster stays
            memberships = rounds.memberships
            for k in np.flatnonzero(rounds.sizes < 0.5).tolist():
                row = int(ops.number(xp.argmax(before.memberships[:, k])))
                memberships = _moved(ops, memberships, row, k)
            rounds = before.next(_stay, memberships)
            total = xp.sum(xp.abs(memberships - before.memberships))
        change = ops.number(total) / (2 * X.shape[0])
        if say is not None:
            say(f"round {n_iter}, memberships moved by {change:.2g}")
    seen = rounds.memberships, mixing_weights(rounds.live_sizes), rounds.variances
    return MixtureFit(*seen, rounds.seen_from, float(log_likelihood), n_iter, change)


class _Rounds(NamedTuple):
    """Where rounds have led. What there is for each row is where the data are."""

    X: Matrix
    noise: NoiseStructure
    level: float  # a typical length of rows: weights are in its units
    memberships: Tall
    weights: Tall  # of each row in the sums of the next look
    directions: CenterSums  # these sums
    sizes: np.ndarray  # sums of memberships
    live_sizes: np.ndarray  # of rows that are not zero, each as much as it counts
    seen_from: Any = None  # the directions of the last look
    variances: np.ndarray | None = None  # of the noise, as they were then
    figures: tuple[Any, ...] = ()  # what the last judge added up

    @classmethod
    def begin(cls, X: Matrix, memberships: Tall, noise: NoiseStructure) -> _Rounds:
        """Sum up centres in which all rows count as if of the same length."""
        level = X.ops.number(X.ops.xp.mean(X.sqnorms)) ** 0.5 or 1.0

        def work(block: Matrix, sqnorms: Tall, counts: Tall | None, given: Tall) -> Any:
            members = _weighted(given, counts)
            lengths = block.ops.xp.sqrt(sqnorms)
            weights = members * block.ops.ratio(level, lengths)[:, None]
            return (weights,), _sums(block, weights, given, members, sqnorms)

        (weights,), sums = X.sweep(work, X.sqnorms, X.weights, memberships)
        state = weights, CenterSums(*sums[:2]), *sums[2:]
        return cls(X, noise, level, memberships, *state)

    def sweep(self, work: Callable[..., Any], *tall: Tall | None) -> Any:
        """Go through the rows as they are seen from the centres of the others."""
        directions = self.directions

        def look_and_work(block: Matrix, sqnorms: Tall, own: Tall, *tall: Any) -> Any:
            return work(block, look(block, sqnorms, directions, own), *tall)

        return self.X.sweep(look_and_work, self.X.sqnorms, self.weights, *tall)

    def next(self, judge: Callable[..., Any], memberships: Any = None) -> _Rounds:
        """Look at every row, let a judge move it, and sum up the next centres.

        It takes projections of rows, memberships, how much rows count, and variances of
        noise; it returns memberships, and figures to be added up over rows.
        """
        given = self.memberships if memberships is None else memberships
        variances, noise, level, counts = None, self.noise, self.level, self.X.weights
        if noise != "individual":
            ops, (n, p) = self.X.ops, self.X.shape
            tall, _ = self.sweep(lambda _, seen: (seen[:4], ()))
            tall = *tall, _weighted(given, counts)
            if n * given.shape[1] < 2**20:  # they come sooner than dask makes a graph
                tall = [ops.take_rows(lines, slice(None)) for lines in tall]
                ops = ops.taken_ops
            seen = Projections._make((*tall[:4], p, ops))
            variances = _noise_variances(seen, tall[4], noise)

        def work(block: Matrix, seen: Projections, counts: Any, old: Tall) -> Any:
            new, figures = judge(seen, old, counts, variances)
            members = _weighted(new, counts)
            weights = seen.weights(members, noise, level)
            sums = _sums(block, weights, new, members, seen.sqnorms)
            return (new, weights), (*sums, *figures)

        (moved, weights), sums = self.sweep(work, counts, given)
        state = moved, weights, CenterSums(*sums[:2]), sums[2], sums[3]
        seen_from = self.directions, variances, tuple(sums[4:])
        return _Rounds(self.X, noise, level, *state, *seen_from)


def _sums(
    block: Matrix, weights: Tall, memberships: Tall, members: Tall, sqnorms: Tall
) -> tuple[Any, ...]:
    """Return the sums of rows, of squared weights, of memberships, of live ones."""
    ops = block.ops
    live = members * ops.widen(sqnorms > 0)[:, None]
    totals = (weights * weights, memberships, live)
    sums = (ops.xp.sum(values, axis=0) for values in totals)
    return ops.widen(block.adjoint(weights)), *sums


def _weighted(values: Tall, counts: Tall | None) -> Tall:
    """Return values of rows, one line for each, times how much the rows count."""
    return values if counts is None else values * counts[:, None]


def _stay(_: Any, memberships: Tall, *__: Any) -> tuple[Tall, tuple[()]]:
    return memberships, ()


def _soften(seen: Projections, memberships: Tall, *_: Any) -> tuple[Tall, tuple[Any]]:
    """Move memberships to half of what is likely; count rows that move by more."""
    ops, alike = seen.ops, np.ones(memberships.shape[1])
    # Half sure, by the root of the likelihood, so that early errors can mend.
    likely = ops.softmax(0.5 * joint_log_likelihood(seen, alike))
    moved = ops.row_max(ops.xp.abs(likely - memberships)) > Rounds.MOVE
    return likely, (ops.xp.sum(ops.widen(moved)),)


def _to_nearest(seen: Projections, memberships: Tall, *_: Any) -> tuple[Tall, Any]:
    """Move rows to the cluster of largest cosine."""
    ops, xp = seen.ops, seen.ops.xp
    labels = xp.argmax(seen.cosines, axis=1)
    # Zero rows fit everywhere alike and keep their label.
    labels = xp.where(seen.sqnorms == 0, xp.argmax(memberships, axis=1), labels)
    return ops.one_hot(labels, memberships.shape[1], memberships), ()


class CenterSums(NamedTuple):
    """Estimated directions of the centres and how much noise they carry."""

    sums: np.ndarray  # (n_features, n_clusters): weighted sums of the rows
    loads: np.ndarray  # (n_clusters,): sums of squared weights, which multiply noise

    @property
    def sqnorms(self) -> np.ndarray:
        """Squared norms of the sums."""
        return np.asarray((self.sums**2).sum(axis=0))


class Projections(NamedTuple):
    """Rows seen from the centres; all arrays are float64, where the data are."""

    cosines: Tall  # (n_samples, n_clusters): 0 where row or centre is zero
    center_sqnorms: Tall  # (n_samples, n_clusters): of the centre for that row
    loads: Tall  # (n_samples, n_clusters): its sum of squared weights
    sqnorms: Tall  # (n_samples,): of the rows
    n_features: int
    ops: Ops = HOST

    @property
    def sines(self) -> Tall:
        """Squared sines of the angles between rows and centres."""
        # No row fits a centre without any noise: this is the least squared sine.
        return self.ops.clip(1.0 - self.cosines * self.cosines, Small.EXACT, None)

    def accuracy(self, variances: np.ndarray) -> Tall:
        """Return squared cosines of the centres with the true ones, at least 0.001."""
        ops, noise = self.ops, self.n_features * variances
        noise = self.loads * ops.to_device(noise, self.loads)
        share = ops.ratio(noise, self.center_sqnorms, 1.0)
        return ops.clip(1.0 - share, Rounds.LEAST_ACCURACY, 1.0)

    def weights(self, memberships: Tall, noise: NoiseStructure, level: float) -> Tall:
        """Return the weight of each row in each centre: its length over its noise."""
        weights = memberships * self.ops.clip(self.cosines, 0.0, None)
        norms = self.ops.xp.sqrt(self.sqnorms) / level
        if noise == "individual":
            weights = weights / self.sines
            norms = self.ops.ratio(1.0, norms)
        return weights * norms[:, None]


def indicators(X: Matrix, labels: Tall, n_clusters: int) -> Tall:
    """Return memberships that are 1 in the cluster of each row and 0 elsewhere."""
    labels = X.ops.xp.astype(X.to_device(labels), X.ops.xp.int64)
    return X.ops.one_hot(labels, n_clusters, X.ops.widen(labels))


def look(
    block: Matrix, sqnorms: Tall, directions: CenterSums, weights: Tall | None = None
) -> Projections:
    """Compare rows with the sums; with their ``weights`` in these, with the others."""
    ops, xp, sums = block.ops, block.ops.xp, directions.sums
    # In float32 products could overflow: a power of two, which rounds nothing.
    size = float(np.ldexp(1.0, np.frexp(np.abs(sums).max(initial=0.0))[1]))
    inner = ops.widen(block @ (sums / size)) * size
    if weights is None:
        weights = xp.zeros_like(inner)
    total = ops.to_device(directions.sqnorms, inner)
    own = weights * sqnorms[:, None]
    squares = total - weights * (2 * inner - own)
    # Where nothing is left without the row, rounding must not pass for a centre.
    rounding = max(Small.ROUNDING, 32 * float(np.finfo(block.dtype).eps))
    most = rounding * xp.maximum(total, weights * own)
    squares = xp.where(squares <= most, xp.zeros_like(squares), squares)
    loads = ops.to_device(directions.loads, inner) - weights * weights
    # Two roots: the product may be too large for a number, where there is no noise.
    lengths = xp.sqrt(squares) * xp.sqrt(sqnorms)[:, None]
    cosines = ops.clip(ops.ratio(inner - own, lengths), -1.0, 1.0)
    return Projections(cosines, squares, loads, sqnorms, block.shape[1], ops)


def joint_log_likelihood(
    seen: Projections, shares: np.ndarray, variances: np.ndarray | None = None
) -> Tall:
    """Return log-likelihoods of rows and clusters; without variances, rows have own."""
    ops, xp, p = seen.ops, seen.ops.xp, seen.n_features
    freedom, tiny = max(p - 1, 1), float(np.finfo(np.float64).tiny)
    along = xp.sqrt(seen.sqnorms)[:, None] * seen.cosines
    across = seen.sines * seen.sqnorms[:, None]
    if variances is None:
        variance = across / freedom
    else:
        accuracy = seen.accuracy(variances)
        signal = ops.clip(along, 0.0, None) ** 2 * (1.0 / accuracy - 1.0)
        variance = ops.to_device(variances, along) + signal / p
    variance = ops.clip(variance, tiny, None)
    fit = freedom if variances is None else across / variance
    value = -0.5 * (freedom * xp.log(2 * np.pi * variance) + fit)
    value += ops.log_ndtr(along / xp.sqrt(variance))
    # A zero row fits everywhere alike.
    value = xp.where((seen.sqnorms == 0)[:, None], xp.zeros_like(value), value)
    return value + ops.to_device(np.log(shares), value)


def temperature(X: Matrix, labels: Tall, units: np.ndarray) -> float:
    """Return how much louder noise is between the centres than elsewhere; 1 if less.

    Noise that is the same in all directions has a share in the span of the centres
    that follows from the number of directions alone, whatever the levels of rows. If
    its share is larger, log-odds of clusters are too large by as much.
    """
    _, values, basis = np.linalg.svd(units, full_matrices=False)
    span = basis[values > Small.SINE].T
    if span.shape[1] < 2:
        return 1.0

    def work(block: Matrix, sqnorms: Tall, labels: Tall, counts: Tall | None) -> Any:
        ops, xp = block.ops, block.ops.xp
        Y = ops.widen(block @ span)
        own = ops.pick(Y @ ops.to_device((units @ span).T, Y), labels) ** 2
        # Rows that are their centre have no noise.
        left = ops.clip(ops.widen(sqnorms) - own, 0.0, None)
        left = xp.where(left > Small.ROUNDING * sqnorms, left, xp.zeros_like(left))
        share = ops.clip(ops.ratio(xp.sum(Y * Y, axis=1) - own, left), 0.0, 1.0)
        rows = ops.widen(left > 0) if counts is None else ops.widen(left > 0) * counts
        return (), (xp.sum(share * rows), xp.sum(rows))

    _, (shares, rows) = X.sweep(work, X.sqnorms, labels, X.weights)
    expected = (span.shape[1] - 1) / (X.shape[1] - 1)
    return max(1.0, float(shares) / max(float(rows), Small.TINY) / expected)


def mixing_weights(sizes: np.ndarray) -> np.ndarray:
    """Return the shares of clusters of some sizes, pulled towards equal ones."""
    # As far as chance alone would have moved them (James and Stein), and no further:
    # rows that fit nowhere well would otherwise all go to the largest.
    n, k = sizes.sum(), len(sizes)
    sizes = (sizes + 1) * n / (n + k)
    even = n / k
    distance = float(np.square(sizes - even).sum() / even)
    kept = max(0.0, 1 - (k - 1) / distance) if distance > 0 else 0.0
    return np.asarray((even + kept * (sizes - even)) / n)


def _noise_variances(seen: Projections, members: Tall, noise: str) -> np.ndarray:
    # More noise in the centres means more signal in the rows: what is left for noise
    # falls as the variance rises, so that one value agrees with itself.
    ops, xp = seen.ops, seen.ops.xp
    along = ops.clip(seen.cosines, 0.0, None) ** 2
    length = members * seen.sqnorms[:, None]
    live = members * ops.widen(seen.sqnorms > 0)[:, None]
    entries, total = (to_host(xp.sum(values, axis=0)) for values in (live, length))
    entries = entries * max(seen.n_features - 1, 1)

    def excess(variances: np.ndarray) -> np.ndarray:
        signal = ops.clip(along / seen.accuracy(variances), None, 1.0)
        left = to_host(xp.sum(length * (1.0 - signal), axis=0)) - variances * entries
        return np.full_like(left, left.sum()) if noise == "common" else left

    overall = total.sum() / entries.sum()
    high = total / np.maximum(entries, Small.ROUNDING)
    if noise == "common":
        high[:] = overall
    variances = falling_root(excess, np.zeros_like(high), high)
    return np.maximum(variances, Small.EXACT * overall)


def falling_root(
    function: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Return where functions fall to zero between two ends; positive ones, the upper.

    Secants meet the root in a few steps; where one would move one end only, the value
    at the other counts half (the Illinois rule).
    """
    above, below = function(low), function(high)
    side, middle = np.zeros(len(high)), high
    for _ in range(60):  # more than a float64 has bits
        before = middle
        step = np.clip(HOST.ratio(above, above - below, 1.0), 0.0, 1.0)
        middle = low + (high - low) * step
        value = function(middle)
        more = value > 0
        below = np.where(more, np.where(side > 0, below / 2, below), value)
        above = np.where(more, value, np.where(side < 0, above / 2, above))
        low, high = np.where(more, middle, low), np.where(more, high, middle)
        side = np.where(more, 1.0, -1.0)
        if (np.abs(middle - before) <= 1e-15 * np.abs(middle)).all():
            break
    return middle
