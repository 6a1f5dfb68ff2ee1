"""The recipe of every spectral method here: Gram, eigenpairs, rows, labels."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ihgmm._progress import Steps
from ihgmm.matrix import HOST, Matrix, Ops, Scaled, Tall, sample_positions, to_host
from ihgmm.numerics.eigen import GramOperator, leading_directions, leading_eigenpairs
from ihgmm.numerics.embedding import SPACES, Embedding, Space
from ihgmm.numerics.known_labels import NOTHING_KNOWN, KnownLabels
from ihgmm.numerics.krylov import signal_weights
from ihgmm.numerics.labels import gain_of_lines, learn_rule
from ihgmm.numerics.recipe import DEFAULT, Recipe
from ihgmm.policy import Labelling, Leading


@dataclass(frozen=True, eq=False)
class Placement:
    """How rows, those of the fit or new ones, get their labels."""

    embedding: Embedding
    rule: Any  # a LinearRule, or a NeighborRule

    def __call__(self, X: Matrix, embedded: Tall | None = None) -> Tall:
        """Return labels; zero rows are in the largest cluster, 0, if rows are units."""
        embedded = self.embedding(X) if embedded is None else embedded
        labels = self.rule(X.ops, embedded)
        if not self.embedding.unit_norm:
            return labels
        return labels * X.ops.xp.astype(X.sqnorms > 0, labels.dtype)


@dataclass(frozen=True, eq=False)
class CosinePlacement:
    """Labels by the largest cosine with some directions; zero ones have no rows."""

    directions: np.ndarray  # (k, p): one for each cluster
    signed: bool = False  # opposite directions are one

    def __call__(self, X: Matrix) -> Tall:
        """Return labels; those of zero rows are 0, the largest cluster."""
        ops, cosines = X.ops, X @ HOST.unit_rows(self.directions).T
        if self.signed:
            cosines = ops.xp.abs(cosines)
        empty = ~self.directions.any(axis=1)
        if empty.any():  # else they would win where all others are negative
            cosines = cosines - ops.cast_like(np.where(empty, np.inf, 0.0), cosines)
        labels = ops.xp.argmax(cosines, axis=1)
        return labels * ops.xp.astype(X.sqnorms > 0, labels.dtype)


@dataclass(frozen=True)
class Spectral:
    """The clusters of a recipe; arrays with a line for each row are where X is."""

    # Clusters are numbered by decreasing size unless some labels were known; with unit
    # rows, rows of zeros are in cluster 0.
    labels: Tall
    rows: Tall  # the rows that were clustered; zero rows have a zero embedding
    coordinates: Tall  # of rows in eigenvectors, without weights
    placement: Placement  # how rows get there, and their labels
    space: Space  # whether rows are those of eigenvectors or of projected data
    n_iter: int  # iterations that labels took
    signs: Tall | None  # which way rows point along their cluster, if that may differ
    known: np.ndarray  # rows that labels were learnt from, as they were compared


def spectral_clustering(
    X: Matrix,
    n_clusters: int,
    recipe: Recipe = DEFAULT,
    *,
    signed: bool = False,
    seed: int = 0,
    known_labels: KnownLabels = NOTHING_KNOWN,
    steps: Steps | None = None,
) -> Spectral:
    """Cluster the rows of ``X`` by the leading eigenvectors of their Gram matrix.

    X is finite and not all zero; its rows may have weights. With ``signed``, opposite
    rows are of one cluster. Only k-means uses the seed. Clusters have the numbers that
    known labels give them, where there are some.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.matrix import as_matrix
    >>> from ihgmm.metrics import misclassification_rate
    >>> from ihgmm.numerics.spectral import spectral_clustering
    >>> X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    >>> fit = spectral_clustering(as_matrix(X), 3)
    >>> misclassification_rate(kinds, fit.labels)
    0.0
    >>> bool((fit.placement(as_matrix(X)) == fit.labels).all())
    True
    """
    steps, ops, k = steps or Steps(), X.ops, n_clusters
    taken_ops, weights = ops.taken_ops, X.weights
    with steps.step("eigenvectors"), X.threads():
        embedding, coordinates = _embed(X, k, recipe)
    spaces: list[Space] = list(SPACES if recipe.space == "auto" else (recipe.space,))
    maps = [embedding.in_space(space) for space in spaces]
    with steps.step("labels") as say:
        # Zero rows show no pattern, unless the origin is a point like others.
        some, live = coordinates, X.sqnorms > 0
        zeros = recipe.unit_norm and not ops.number(ops.xp.all(live))
        if zeros:
            some, known_labels = (
                ops.rows_where(some, live),
                known_labels.at(ops.to_host(live)),
            )
            weights = None if weights is None else ops.rows_where(weights, live)
        at = _known_rows(ops, embedding.in_space("projected"), some, k, known_labels)
        known = taken_ops.widen(ops.take_rows(some, at))
        everyone = rows = [one.rows(taken_ops, known) for one in maps]
        clear = clear_rows(taken_ops, embedding, known)
        if clear is not None:
            rows = [taken_ops.rows_where(one, clear) for one in everyone]
            at = at[taken_ops.to_host(clear)]
        counts = (
            None if weights is None else taken_ops.to_host(ops.take_rows(weights, at))
        )
        options: Any = {"n_init": recipe.n_init, "max_iter": recipe.max_iter}
        options |= {"by_angle": recipe.unit_norm, "signed": signed, "seed": seed}
        options |= {
            "weights": counts,
            "known_labels": known_labels.at(at),
            "ops": taken_ops,
        }
        learnt = learn_rule(rows, k, recipe.labels, **options)
        say(f"{recipe.labels}, {learnt.n_iter} iterations")
        if learnt.worth == -np.inf and known_labels.known is not None:
            known_labels = KnownLabels(start=known_labels.known)  # these had no say yet
        embedding = maps[learnt.space]
        embedded = ops.persist(embedding.rows(ops, coordinates))
        some = ops.rows_where(embedded, live) if zeros else embedded
        labels = ops.persist(learnt.rule(ops, some))
        order = known_labels.order(ops.order_by_size(labels, k, weights), labels)
        rule = learnt.rule.in_order(order)
        labels, signs = ops.persist(ops.take_lines(np.argsort(order), labels)), None
        if signed:
            # Most rows of a cluster point ahead.
            signs, groups = rule.signs(ops, some, labels), ops.groups(labels, k)
            ahead = np.where(groups.sums(signs) < 0, -1.0, 1.0)
            rule = replace(rule, coefficients=rule.coefficients * ahead)
            signs = signs * ops.cast_like(groups.to_rows(ahead), signs)
        if zeros:
            # A zero row goes where a row most likely belongs: to the largest cluster.
            labels = ops.persist(ops.place(labels, live))
            if signed:
                signs = ops.place(signs, live, ops.xp.ones_like(embedded[:, 0]))
    placed = embedded, coordinates, Placement(embedding, rule), spaces[learnt.space]
    seen = taken_ops.to_host(everyone[learnt.space])
    return Spectral(labels, *placed, learnt.n_iter, signs, seen)


def looks_signed(X: Matrix, fit: Spectral, k: int) -> bool:
    """Tell whether opposite rows seem to be of one kind, by the gain of lines.

    With one row in ten flipped they gain 0.5 to 1, in noise up to 0.4. Real sets come
    up to 0.5, where clusters lie opposite each other: the mean is near 0.
    """
    gain = gain_of_lines(fit.known, k)
    # Clusters that lie on one side lose log 2: such a gain shows it in any case.
    if gain <= Labelling.LINE_GAIN or gain > np.log(2):
        return gain > np.log(2)
    total = to_host(X.adjoint(X.to_device(np.ones((X.shape[0], 1))))).astype(np.float64)
    squares = X.ops.number(X.ops.xp.sum(X.sqnorms))  # what noise around 0 sums to
    return bool(np.sum(total**2) > Labelling.NEAR_ZERO**2 * squares)


def _embed(X: Matrix, k: int, recipe: Recipe) -> tuple[Embedding, Tall]:
    """Return the map to coordinates, and the coordinates of rows."""
    (n, p), m = X.shape, recipe.n_components
    if m == "auto":
        lead, extra = direction_counts(k, n, p)
    else:
        lead, extra = min(k, n) if m is None else m, 0
        if m is not None and m > min(n, p):
            raise ValueError(
                f"n_components={m} is more than {n} rows of {p} features can span; "
                f"give at most {min(n, p)}."
            )
    unit = recipe.rows == "unit"
    hollow = recipe.diagonal == "zero" and not unit
    if hollow:
        G = GramOperator.of(X)
        pairs = leading_eigenpairs(G, lead + extra, order=recipe.order, tol=recipe.tol)
        values, along = pairs.values, to_host(G.A.adjoint(pairs.vectors))
    else:
        # Rows as they count in directions: at unit length, by their weights.
        factors = X.ops.ratio(1.0, X.ops.xp.sqrt(X.sqnorms)) if unit else None
        if X.weights is not None:
            roots = X.ops.xp.sqrt(X.weights)
            factors = roots if factors is None else factors * roots
        A = X if factors is None else Scaled(X, rows=factors)
        total = A.ops.number(A.ops.xp.sum(A.sqnorms))
        most = min(p - 1, n // Leading.ROWS_A_DIRECTION) - lead
        while True:
            # More are looked for from the start: what is left of directions that are
            # found is rounding, which would choose the further ones.
            pairs = leading_directions(A, lead, extra, tol=recipe.tol)
            values = pairs.values
            if m != "auto" or extra >= most or not stands_on(n, p, total, values, lead):
                break
            extra = min(2 * extra, most)
        along = pairs.vectors * np.sqrt(values)
    directions = with_weights(along, values, lead)
    embedding = Embedding(*directions, unit, hollow, recipe.unit_norm, X.unit)
    return embedding, embedding.coordinates(X)


def with_weights(
    along: np.ndarray, values: np.ndarray, lead: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return directions that have a weight, their eigenvalues and weights."""
    lengths = np.linalg.norm(along, axis=0)
    # With as many directions as features, none of them is there to show noise.
    noise = 0.0 if len(values) == len(along) else None
    weights = signal_weights(values, lead, noise)
    # A direction without any data in it is rounding.
    keep = (weights > 0) & (lengths >= Leading.LEAST_LENGTH * lengths.max())
    keep[0] |= not keep.any()
    return along[:, keep], values[keep], weights[keep]


def stands_on(n: int, p: int, total: float, values: np.ndarray, lead: int) -> bool:
    """Tell whether the last eigenvalue is high, ``total`` being the sum of squares.

    Then noise has directions of its own, or clusters are more, and what tells them may
    lie further on: under the model, it would be at the edge of noise.
    """
    variance = max(total - float(values.sum()), 0.0) / (n * p)
    edge = variance * (n + 2 * np.sqrt(n * p))
    last = values[-1]
    return bool(last > Leading.HIGH * values[lead - 1] and last > Leading.FAR * edge)


def direction_counts(k: int, n: int, p: int) -> tuple[int, int]:
    """Return how many directions lead for k clusters, and how many beyond may count."""
    lead = min(k, n, p)
    extra = min(k, Leading.MOST_EXTRA) + 2  # further ones hardly have weight
    return lead, max(min(k + extra, n - 1, p) - lead, 0)


def clear_rows(ops: Ops, embedding: Embedding, coordinates: Tall) -> Tall | None:
    """Return which rows to learn from, where many of them drown in noise.

    What the directions leave of a unit row shows its noise, which adds to coordinates.
    Rows that are mostly noise have no pattern to teach, and would make a cluster.
    """
    p, m = embedding.directions.shape
    if p <= m or not embedding.unit_rows:
        return None
    squares = coordinates**2
    signal = squares @ ops.cast_like(embedding.eigenvalues, squares)
    load = 2 * float((embedding.weights**2 / embedding.eigenvalues).sum()) / (p - m)
    own = squares @ ops.cast_like(embedding.weights**2, squares)
    clear = own >= load * (1 - signal)
    share = 1 - ops.number(ops.xp.mean(ops.widen(clear)))
    return clear if Leading.NOISY < share < Leading.NOISE else None


def _known_rows(
    ops: Ops, embedding: Embedding, coordinates: Tall, k: int, known_labels: KnownLabels
) -> np.ndarray:
    """Return positions of rows to learn labels from, known ones first.

    They depend on the rows themselves, as if these were shuffled: neither their order
    in the data nor a seed changes labels.
    """

    def keys_of(ops: Ops, coordinates: Tall) -> Tall:
        """Return a number between 0 and 1 for each row that looks random."""
        rows = coordinates * ops.cast_like(embedding.weights, coordinates)
        factors = 100 * np.random.default_rng(0).random(rows.shape[1])
        return (ops.xp.abs(ops.unit_rows(rows)) @ ops.cast_like(factors, rows)) % 1

    keys, n = ops.persist(ops.row_map(keys_of, coordinates)), coordinates.shape[0]
    size = min(n, max(Labelling.ROWS, Labelling.ROWS_A_CLUSTER * k))
    # Keys are spread evenly, or nearly so: few of many come to the host.
    rows = np.flatnonzero(ops.to_host(keys < 2 * size / n))
    if len(rows) < size:
        rows = np.arange(n)
    own = ops.taken_ops.to_host(ops.take_rows(keys, rows))
    rows = rows[np.argsort(own, kind="stable")[:size]]
    if known_labels.known is not None:
        lessons = np.flatnonzero(known_labels.known >= 0)
        lessons = lessons[sample_positions(len(lessons), (size + 1) // 2)]
        rows = np.append(lessons, rows[~np.isin(rows, lessons)])[:size]
    return rows
