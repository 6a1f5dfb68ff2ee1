"""Models that grow: what they remember of all rows seen, in bounded memory.

Directions of old and new rows are merged as those of two Gram matrices that are added
up. Of the rows themselves a sample stays, as coordinates in these directions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ihgmm.matrix import HOST, Matrix, Scaled, Tall, as_matrix, to_host
from ihgmm.numerics import spectral
from ihgmm.numerics.eigen import leading_directions
from ihgmm.numerics.embedding import SPACES, Embedding, Space
from ihgmm.numerics.known_labels import KnownLabels
from ihgmm.numerics.labels import LinearRule, learn_rule
from ihgmm.numerics.mixture import tied_clusters
from ihgmm.policy import Growing, Labelling, Leading, Small


@dataclass(frozen=True, eq=False)
class DirectionMemory:
    """The Gram matrix of unit rows: its leading directions, all others being alike."""

    vectors: np.ndarray  # (p, m), orthonormal
    values: np.ndarray  # (m,), leading first
    total: float  # the trace, which is the weight of all rows

    @property
    def rest(self) -> float:
        """The eigenvalue of every other direction: an even share of the trace."""
        p, m = self.vectors.shape
        left = max(self.total - float(self.values.sum()), 0.0)
        return left / (p - m) if p > m else 0.0

    def merged(self, other: DirectionMemory, most: int) -> DirectionMemory:
        """Return the directions of the rows of both, so many at most."""
        parts = [
            one.vectors * np.sqrt(np.maximum(one.values - one.rest, 0.0))
            for one in (self, other)
        ]
        vectors, roots, _ = np.linalg.svd(np.hstack(parts), full_matrices=False)
        values = roots[:most] ** 2 + self.rest + other.rest
        vectors = HOST.fix_signs(vectors[:, :most].copy())
        return DirectionMemory(vectors, values, self.total + other.total)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows drawn by priority: weight over a uniform number; the largest stay.

    Each stands for the rows of a weight of at least the priority where they are cut, so
    that weighted sums over the sample are right on average.
    """

    rows: np.ndarray  # (r, m): unit rows, in coordinates of the directions
    lengths: np.ndarray  # of the rows of data
    own_weights: np.ndarray
    priorities: np.ndarray
    labels: np.ndarray
    given: np.ndarray  # whether the label was given: then it stays
    cut: float = 0.0  # the largest priority that was left out

    @property
    def weights(self) -> np.ndarray:
        """How much each row counts, those that it stands for included."""
        return np.maximum(self.own_weights, self.cut)

    @property
    def taught(self) -> KnownLabels:
        """What is known of rows: labels that were given, and those so far, if any."""
        known = np.where(self.given, self.labels, -1) if self.given.any() else None
        start = self.labels if (self.labels >= 0).any() else None
        return KnownLabels(known, start, 1.0 + len(self.given) * self.given)

    def joined(self, other: Sample, most: int) -> Sample:
        """Return a sample of the rows of both."""
        pairs = list(zip(vars(self).values(), vars(other).values(), strict=True))
        parts = [np.concatenate(pair) for pair in pairs[:-1]]
        stay, cut = _highest(parts[3], most)
        kept: list[Any] = [part[stay] for part in parts] + [max(*pairs[-1], cut)]
        return Sample(*kept)


def _highest(priorities: np.ndarray, most: int) -> tuple[np.ndarray, float]:
    """Return where the highest priorities above 0 are, and the highest left out."""
    some = np.flatnonzero(priorities)
    order = some[np.argsort(-priorities[some], kind="stable")]
    cut = float(priorities[order[most]]) if len(order) > most else 0.0
    return np.sort(order[:most]), cut


@dataclass(frozen=True, eq=False)
class IncrementalState:
    """What a model remembers of all rows that it has seen."""

    directions: DirectionMemory
    sample: Sample
    sums: np.ndarray  # (k, p): of length along the centre times row, of each cluster
    lengths: np.ndarray  # (k, 3): weight, and sums of lengths and of their squares
    pull: float  # of the covariance of clusters towards a sphere
    n_samples: int
    learnt: int  # rows seen when clusters were last learnt
    looked: int  # rows seen when they were last looked for from scratch
    # That found what was there before, or labels were given: a new one changes no old.
    settled: bool
    unseen: np.ndarray  # (k,): rows that were expected and did not come
    said: np.ndarray  # (k + 1,): what was said: of emptied clusters, and of a new one
    moved: float  # share of earlier rows that have another label since the last rows

    @property
    def centers(self) -> np.ndarray:
        """What a row of scale 1 looks like in each cluster."""
        weight, total, squares = self.lengths.T
        return self.sums * HOST.ratio(total, squares * weight)[:, None]


class IncrementalFit(NamedTuple):
    """A model after some more rows."""

    growth: IncrementalState
    placement: spectral.Placement
    space: Space
    labels: Tall  # of the new rows
    embedded: Tall  # the new rows, as they were compared
    known: np.ndarray | None  # the sample, likewise, if clusters were looked for again
    n_iter: int
    emptied: list[int]  # clusters that new rows no longer come to, said for once
    novel: float  # share of new rows that were far from all clusters, said for once


def grow(
    X: Matrix, k: int, weights: np.ndarray, old: Any, start: Any
) -> IncrementalFit:
    """Learn from more rows; ``start`` are labels for the first ones.

    ``old`` is what was known before: growth, placement and space.
    """
    ops, (n, p) = X.ops, X.shape
    known = old and old[0]
    seen = n + (known.n_samples if known else 0)
    lead, extra = spectral.direction_counts(k, max(seen, 4 * p), p)
    width = min(p, max(Growing.DIRECTIONS, 2 * (lead + extra)))
    inverse = ops.ratio(1.0, ops.xp.sqrt(X.sqnorms))
    counts = ops.xp.astype(X.sqnorms > 0, X.sqnorms.dtype) * X.to_device(weights)
    A = Scaled(X, rows=inverse * ops.xp.sqrt(counts))
    head = min(lead, n)
    pairs = leading_directions(A, head, width - head, tol=Growing.TOLERANCE, quiet=True)
    directions = DirectionMemory(
        pairs.vectors, pairs.values, ops.number(ops.xp.sum(counts))
    )
    novel, first = 0.0, np.full(n, -1) if start is None else start
    if known:
        directions = known.directions.merged(directions, width)
        embedded = old[1].embedding(X)
        labels = ops.persist(old[1](X, embedded))
        novel, first = _novel_share(X, inverse, known, labels), ops.to_host(labels)

    most = max(Labelling.ROWS, Labelling.ROWS_A_CLUSTER * k)
    priorities = ops.to_host(counts) / (1 - np.random.default_rng(seen).random(n))
    if known:  # those of lower ones would not stay
        priorities[priorities <= known.sample.cut] = 0.0
    chosen, cut = _highest(priorities, most)
    few: Matrix = X.take(chosen)
    lengths = np.sqrt(to_host(few.sqnorms))
    rows = to_host(few @ directions.vectors).astype(np.float64) / lengths[:, None]
    drawn = weights[chosen], priorities[chosen], first[chosen], chosen < 0
    sample = Sample(rows, lengths * X.unit, *drawn, cut)
    if known:
        turn = known.directions.vectors.T @ directions.vectors
        turned = replace(known.sample, rows=known.sample.rows @ turn)
        sample = turned.joined(sample, most)

    # The rule: it stays while new rows are few, else clusters move on from where they
    # were, or are looked for again.
    moved, n_iter, compared, settled = 0.0, 0, None, bool(known and known.settled)
    if known and novel == 0 and seen < (1 + Growing.MORE) * known.learnt:
        (_, placement, space), pull = old, known.pull
        learnt, looked = known.learnt, known.looked
    else:
        embedding, found = _embedding(directions, k, seen), None
        if settled or (known and novel == 0 and seen < 2 * known.looked):
            found = _move_on(embedding, sample, old, k)
        learnt, looked = seen, known.looked if found else seen
        placement, space, pull, n_iter = found or _look(embedding, sample, k)
        rows = placement.embedding.rows(HOST, _coordinates(embedding, sample.rows))
        now, compared = np.asarray(placement.rule(HOST, rows)), None if found else rows
        sample = replace(sample, labels=np.where(sample.given, sample.labels, now))
        embedded = placement.embedding(X)
        labels = placement(X, embedded)
        if known:  # the rule of before says what earlier rows were
            at, earlier = old[1].embedding, known.sample.priorities
            shares = sample.weights * np.isin(sample.priorities, earlier)
            turn = directions.vectors.T @ at.directions / at.eigenvalues
            before = np.asarray(old[1].rule(HOST, at.rows(HOST, sample.rows @ turn)))
            moved = float(shares @ (now != before) / max(shares.sum(), Small.TINY))
            settled = settled if found else novel == 0 and moved < Growing.SETTLED

    # Running sums for centres; from the sample where clusters are others now.
    shares, turn = sample.weights / sample.weights.max(), directions.vectors.T
    pointers = HOST.unit_rows(HOST.sums_of_rows(sample.labels, k, sample.rows, shares))
    if known is None or moved > Growing.MOVED:
        few = as_matrix(sample.rows * sample.lengths[:, None])
        sums, figures = _sums(few, pointers, sample.labels, sample.weights)
        sums = sums @ turn
    else:
        sums, figures = _sums(X, pointers @ turn, labels, counts)
        sums, figures = known.sums + sums, known.lengths + figures
    unseen, said, emptied = np.zeros(k), np.zeros(k + 1, bool), []
    if known:
        came, seen_so_far = ops.group_sums(labels, k, counts), known.lengths[:, 0]
        expected = came.sum() * seen_so_far / max(seen_so_far.sum(), Small.TINY)
        thin = came < Growing.EMPTIED * expected
        unseen = np.where(thin, known.unseen + expected, 0.0)
        said = known.said | np.append(unseen >= Growing.EXPECTED, novel > 0)
        *gone, new = said & ~known.said
        emptied, novel = [*map(int, np.flatnonzero(gone))], novel if new else 0.0
    times = seen, learnt, looked, settled, unseen, said, moved
    growth = IncrementalState(directions, sample, sums, figures, pull, *times)
    placed = placement, space, labels, embedded, compared
    return IncrementalFit(growth, *placed, n_iter, emptied, novel)


def _embedding(directions: DirectionMemory, k: int, n: int) -> Embedding:
    """Return the map to coordinates that a fit to all rows would have, or nearly so."""
    p, width = directions.vectors.shape
    lead, extra = spectral.direction_counts(k, n, p)
    most = min(width, p - 1, n // Leading.ROWS_A_DIRECTION) - lead
    values = directions.values[: lead + extra]
    while extra < most and spectral.stands_on(n, p, directions.total, values, lead):
        extra = min(2 * extra, most)
        values = directions.values[: lead + extra]
    along = directions.vectors[:, : len(values)] * np.sqrt(values)
    return Embedding(*spectral.with_weights(along, values, lead), unit_rows=True)


def _coordinates(embedding: Embedding, rows: np.ndarray) -> np.ndarray:
    """Return coordinates in eigenvectors of rows that are given in directions."""
    values = embedding.eigenvalues  # of the first directions: the others have no weight
    return np.asarray(rows[:, : len(values)] / np.sqrt(values))


FittedRule = tuple[spectral.Placement, Space, float, int]  # the pull, and iterations


def _move_on(
    embedding: Embedding, sample: Sample, old: Any, k: int
) -> FittedRule | None:
    """Let clusters move on from where they were; None where one of them is lost."""
    growth, _, space = old
    embedding, taught = embedding.in_space(space), sample.taught
    rows = embedding.rows(HOST, _coordinates(embedding, sample.rows))
    options: Any = {"pulls": [growth.pull], "prior": taught.prior(HOST, rows, k)}
    start, weights = [np.eye(k)[sample.labels].T], taught.weigh(sample.weights)
    fit = tied_clusters(rows, start, weights, max_iter=Growing.STEPS, **options)
    if fit is None:
        return None
    rule = LinearRule(fit.coefficients, fit.intercepts)
    return spectral.Placement(embedding, rule), space, fit.pull, fit.n_iter


def _look(embedding: Embedding, sample: Sample, k: int) -> FittedRule:
    """Look for clusters from all starts; those of before are one of them."""
    known = _coordinates(embedding, sample.rows)
    maps = [embedding.in_space(space) for space in SPACES]
    taught = sample.taught
    # In an order without sense, since starts are tried on the first rows.
    order = np.random.default_rng(0).permutation(len(known))
    clear = spectral.clear_rows(HOST, embedding, known)
    order = order if clear is None else order[clear[order]]
    rows, lessons = [one.rows(HOST, known[order]) for one in maps], taught.at(order)
    learnt = learn_rule(rows, k, weights=sample.weights[order], known_labels=lessons)
    embedding = maps[learnt.space]
    labels = np.asarray(learnt.rule(HOST, embedding.rows(HOST, known)))
    by_size = HOST.order_by_size(labels, k, sample.weights)
    numbers = taught._replace(known=None).order(by_size, labels)
    placement = spectral.Placement(embedding, learnt.rule.in_order(numbers))
    return placement, SPACES[learnt.space], learnt.pull, learnt.n_iter


def _sums(
    X: Matrix, pointers: np.ndarray, labels: Tall, counts: Tall
) -> tuple[np.ndarray, np.ndarray]:
    """Return what rows add to the sums of their clusters."""
    ops = X.ops
    along = ops.clip(ops.pick(ops.widen(X @ pointers.T), labels), 0.0, None) * counts
    groups = ops.groups(labels, len(pointers))
    figures = [counts, along, along * along * ops.ratio(1.0, counts)]
    factors = X.unit ** np.arange(3.0)
    sums = np.column_stack([groups.sums(one) for one in figures]) * factors
    return groups.weighted_sums(X, along).astype(np.float64) * X.unit**2, sums


def _novel_share(
    X: Matrix, inverse: Tall, known: IncrementalState, labels: Tall
) -> float:
    """Return the share of rows far from all clusters; 0 if that may be chance."""
    ops, n, k = X.ops, X.shape[0], len(known.sums)
    rows, own, weights = known.sample.rows, known.sample.labels, known.sample.weights
    sums = HOST.sums_of_rows(own, k, rows, weights)
    # Cosines of rows with sums of the others of their cluster.
    inner, squares = HOST.pick(rows @ sums.T, own), HOST.row_dots(rows, rows)
    lengths = HOST.row_dots(sums, sums)[own] + weights * (weights * squares - 2 * inner)
    cosines = HOST.ratio(inner - weights * squares, np.sqrt(np.maximum(lengths, 0.0)))
    sizes = np.bincount(own, minlength=k)
    limits, rates = np.full(k, -1.0), np.maximum(Growing.RARE, 1 / (sizes + 1))
    for cluster in np.flatnonzero(sizes):
        limits[cluster] = np.quantile(cosines[own == cluster], Growing.RARE)
    pointers = known.directions.vectors @ HOST.unit_rows(sums).T
    near = ops.pick(ops.widen(X @ pointers), labels) * inverse
    far = ops.number(ops.xp.count_nonzero(near < ops.take_lines(limits, labels)))
    expected = float(rates @ ops.group_sums(labels, k))
    most = Growing.NOVEL * n + 2 * expected + Growing.LEAST_NOVEL
    return far / n if far > most else 0.0


def growth_of_fit(
    placement: spectral.Placement, model: Any, k: int
) -> IncrementalState:
    """Return what a model that was fitted at once would remember of its rows."""
    embedding, n = placement.embedding, len(model.labels_)
    values = embedding.eigenvalues
    directions = DirectionMemory(
        embedding.directions / np.sqrt(values), values, float(n)
    )
    centers = to_host(model.cluster_centers_).astype(np.float64)
    labels, sizes = to_host(model.labels_), to_host(model.sizes_).astype(np.float64)
    figures = np.column_stack([np.bincount(labels, sizes**i, k) for i in range(3)])
    weight, total, squares = figures.T  # sums are such that centres stay as they are
    sums = centers * HOST.ratio(squares * weight, total)[:, None]
    most = max(Labelling.ROWS, Labelling.ROWS_A_CLUSTER * k)
    given = np.isin(np.arange(n), getattr(model, "known_rows_", []))
    priorities = 1 / (1 - np.random.default_rng(n).random(n))
    priorities += n * given * (2 * given.sum() <= most)  # a few teachers all stay
    chosen, cut = _highest(priorities, most)
    labels, sizes, p = labels[chosen], sizes[chosen], len(embedding.directions)
    noise = to_host(model.noise_levels_)[chosen]
    lengths = np.hypot(sizes, np.sqrt(max(p - 1, 1)) * noise)
    # Along its centre a row is as long as its size; the rest is inside in part only.
    rows = to_host(model.embedding_)[chosen] / embedding.weights * np.sqrt(values)
    rows, along = HOST.unit_rows(rows), HOST.ratio(sizes, lengths)
    near = HOST.row_dots(rows, HOST.unit_rows(centers @ directions.vectors)[labels])
    rows = rows * HOST.ratio(along, np.maximum(near, along))[:, None]
    drawn = np.ones(len(chosen)), priorities[chosen], labels, given[chosen], cut
    memory = directions, Sample(rows, lengths, *drawn), sums, figures, Labelling.PULL
    times: Any = n, n, n, bool(given.any()), np.zeros(k), np.zeros(k + 1, bool), 0.0
    return IncrementalState(*memory, *times)
