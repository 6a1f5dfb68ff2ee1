"""The recipe of every spectral method here: Gram, eigenpairs, rows, labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from ihgmm._progress import Steps
from ihgmm._values import Domain
from ihgmm.matrix import HOST, Matrix, Ops, Tall, to_host
from ihgmm.matrix.ops import sampled
from ihgmm.numerics.eigen import features_pay, leading_eigenpairs
from ihgmm.numerics.embedding import SPACES, Diagonal, Embedding, Space
from ihgmm.numerics.gram import GramOperator, row_factors
from ihgmm.numerics.hetero import impute_diagonal
from ihgmm.numerics.krylov import EigenPairs, signal_weights
from ihgmm.numerics.labels import Rule, gain_of_lines, learn_rule
from ihgmm.numerics.recipe import DEFAULT, Recipe
from ihgmm.policy import Labelling, Leading, Solving


@dataclass(frozen=True, eq=False)
class Placement:
    """How rows, those of the fit or new ones, get their labels.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.matrix import as_matrix
    >>> from ihgmm.numerics.spectral import spectral_clustering
    >>> X = as_matrix(make_ihgmm(200, 50, 3, random_state=0)[0])
    >>> fit = spectral_clustering(X, 3, rng=np.random.default_rng(0))
    >>> bool((fit.placement(X) == fit.labels).all())
    True
    """

    embedding: Embedding
    rule: Rule

    def __call__(self, X: Matrix) -> Tall:
        """Return labels; zero rows are in the largest cluster, 0, if rows are units."""
        labels = self.rule(X.ops, self.embedding(X))
        if not self.embedding.unit_norm:
            return labels
        return labels * X.ops.xp.astype(X.sqnorms > 0, labels.dtype)


@dataclass(frozen=True, eq=False)
class CosinePlacement:
    """Labels by the largest cosine with some directions; zero ones have no rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import as_matrix
    >>> from ihgmm.numerics.spectral import CosinePlacement
    >>> place = CosinePlacement(np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> place(as_matrix(np.array([[5.0, 1.0], [0.1, 0.2]])))
    array([0, 1])
    """

    directions: Annotated[np.ndarray, Domain("kp")]  # one for each cluster
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

    # Clusters numbered by decreasing size; with unit rows, zero rows are in cluster 0.
    labels: Tall
    rows: Tall  # the rows that were clustered; zero rows have a zero embedding
    coordinates: Tall  # of rows in eigenvectors, without weights
    placement: Placement  # how rows get there, and their labels
    space: Space  # whether rows are those of eigenvectors or of projected data
    ruling_rows: int  # rows so long that they rule a leading direction
    noise_share: float  # of rows whose coordinates there are mostly noise
    row_scale: Tall | None  # what rows were multiplied by before their inner products
    n_iter: int  # iterations of k-means
    signs: Tall | None  # which way rows point along their cluster, if that may differ
    looks_signed: bool  # whether opposite rows seem to be of one kind, and are not


def spectral_clustering(
    X: Matrix,
    n_clusters: int,
    recipe: Recipe = DEFAULT,
    *,
    signed: bool = False,
    rng: np.random.Generator | None = None,
    steps: Steps | None = None,
) -> Spectral:
    """Cluster the rows of ``X`` by the leading eigenvectors of a Gram matrix.

    X is finite and not all zero; its rows may have weights. With ``signed``, opposite
    rows are of one cluster. ``steps`` shows two steps, "eigenvectors" and "labels".

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.matrix import as_matrix
    >>> from ihgmm.metrics import misclassification_rate
    >>> from ihgmm.numerics.spectral import spectral_clustering
    >>> X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    >>> fit = spectral_clustering(as_matrix(X), 3, rng=np.random.default_rng(0))
    >>> misclassification_rate(kinds, fit.labels)
    0.0
    """
    rng = np.random.default_rng() if rng is None else rng
    steps, ops, k = Steps() if steps is None else steps, X.ops, n_clusters
    with steps.step("eigenvectors") as say, X.threads():
        embedding, coordinates, row_scale = _embed(X, k, recipe, rng, say)
    spaces: list[Space] = list(SPACES if recipe.space == "auto" else (recipe.space,))
    with steps.step("labels") as say:
        # Zero rows show no pattern, unless the origin is a point like others.
        live = X.sqnorms > 0
        if not recipe.unit_norm or ops.number(ops.xp.all(live)):
            live = None
        known = _known_rows(ops, [coordinates, X.sqnorms, X.weights], live, k)
        maps, few = [embedding.in_space(space) for space in spaces], ops.few
        clear = [_clear_rows(few, one, k, *known[:2]) for one in maps]
        rows = [one.rows(few, known[0]) for one in maps]
        learnt = learn_rule(
            rows,
            k,
            recipe.labels,
            clear=clear,
            weights=None if known[2] is None else few.to_host(known[2]),
            by_angle=recipe.unit_norm,
            signed=signed,
            n_init=recipe.n_init,
            max_iter=recipe.max_iter,
            rng=rng,
            ops=few,
        )
        say(f"{recipe.labels}, {learnt.n_iter} iterations")
        embedding = maps[learnt.space]
        embedded = ops.keep(embedding.rows(ops, coordinates))
        rule, labels, signs = _label_all(
            ops, learnt.rule, embedded, live, k, X.weights, signed
        )
        # Noise points both ways, and so may rows that hardly count.
        shows = clear[learnt.space]
        if known[2] is not None:
            shows = shows & (few.to_host(known[2]) > Labelling.LEAST_WEIGHT)
        lined = few.few_rows(rows[learnt.space], np.flatnonzero(shows))
    return Spectral(
        labels=labels,
        rows=embedded,
        coordinates=coordinates,
        placement=Placement(embedding, rule),
        space=spaces[learnt.space],
        ruling_rows=embedding.ruling_rows(ops, coordinates, X.sqnorms),
        noise_share=1 - float(clear[learnt.space].mean()),
        row_scale=row_scale,
        n_iter=learnt.n_iter,
        signs=signs,
        looks_signed=not signed
        and recipe.unit_norm
        and _looks_signed(X, gain_of_lines(lined, k, rng, ops=few)),
    )


def _looks_signed(X: Matrix, gain: float) -> bool:
    """Tell whether opposite rows seem to be of one kind, by the gain of lines.

    A gain of log 2 a row shows it in any case: so much lines lose where clusters lie on
    one side. With one row in ten flipped they gain 0.5 to 1, in noise up to 0.4. Real
    sets come up to 0.5, where the mean is near 0: clusters then lie opposite each
    other.
    """
    if gain <= Labelling.LINE_GAIN or gain > np.log(2):
        return gain > np.log(2)
    total = to_host(X.adjoint(X.to_device(np.ones((X.shape[0], 1))))).astype(np.float64)
    squares = X.ops.number(X.ops.xp.sum(X.sqnorms))  # what noise around 0 sums to
    return bool(np.sum(total**2) > Labelling.NEAR_ZERO**2 * squares)


def _embed(
    X: Matrix, k: int, recipe: Recipe, rng: np.random.Generator, say: Any
) -> tuple[Embedding, Tall, Tall | None]:
    """Return the map to coordinates, these, and what rows were multiplied by."""
    n, p = X.shape
    m = recipe.n_components
    if m == "auto":
        lead, extra = direction_counts(k, n, p)
    else:
        lead, extra = min(k, n) if m is None else m, 0
        if m is not None and m > min(n, p):
            raise ValueError(
                f"n_components={m} is more than {n} rows of {p} features can span; "
                f"give at most {min(n, p)}."
            )
    given = GramOperator.of(X, recipe.gram, clip=recipe.clip)
    G, pairs, diagonal = _leading_pairs(given, lead, extra, recipe, rng, say)
    most = min(p - 1, n // Leading.ROWS_A_DIRECTION) - lead
    while m == "auto" and extra < most and _stands_on(given.A, pairs.values, lead):
        extra = min(2 * extra, most)
        G, pairs, diagonal = _leading_pairs(given, lead, extra, recipe, rng, say)
    embedding = Embedding.of(G, pairs, lead, diagonal)
    # With as many directions as features, none of them is there to show noise.
    noise = 0.0 if len(pairs.values) == p else None
    embedding = embedding.weighted(signal_weights(pairs.values, lead, noise))
    embedding = replace(embedding, unit_norm=recipe.unit_norm)
    if X.weights is not None:
        # What a row is does not depend on how much it counts.
        factors = row_factors(X.ops, X.sqnorms, G.longest)
        return embedding, embedding.coordinates(X), factors
    if pairs.linear is None:
        coordinates = embedding.coordinates(X)
    else:  # a copy, which does not keep those without weight
        vectors = pairs.vectors[:, : len(embedding.weights)]
        coordinates = X.ops.xp.astype(vectors, vectors.dtype, copy=True)
    return embedding, coordinates, None if G.A is X else G.A.row_scale


def _stands_on(A: Matrix, values: np.ndarray, lead: int) -> bool:
    """Tell whether the last eigenvalue is high where noise alike would have none.

    Under the model those beyond the clusters are at the edge of noise. If as many again
    are half as high as those of the clusters and far above the edge, then noise has
    directions of its own, or clusters are more: what tells them may lie further on.
    """
    n, p = A.shape
    total = A.ops.number(A.ops.xp.sum(A.sqnorms))
    variance = max(total - float(np.maximum(values, 0.0).sum()), 0.0) / (n * p)
    edge = variance * (n + 2 * np.sqrt(n * p))
    last = values[-1]
    return bool(last > Leading.HIGH * values[lead - 1] and last > Leading.FAR * edge)


def _leading_pairs(
    G: GramOperator,
    lead: int,
    extra: int,
    recipe: Recipe,
    rng: np.random.Generator,
    say: Any,
) -> tuple[GramOperator, EigenPairs, Diagonal]:
    """Return the matrix, its diagonal filled in where that counts, and eigenpairs."""
    solving: Any = {"extra": extra, "order": recipe.order, "solver": recipe.solver}
    pairs, tol = None, recipe.tol
    few = G.shape[0] < Leading.FEW_ROWS * lead and features_pay(G.A, lead + extra)
    if recipe.gram != "hetero" or not few:
        signal_only = recipe.order == "algebraic"
        pairs = leading_eigenpairs(
            G, lead, tol=tol, signal_only=signal_only, rng=rng, say=say, **solving
        )
        if recipe.gram != "hetero":
            return G, pairs, "full" if recipe.gram == "full" else "zero"
        # What noise does to eigenvectors is more than this angle.
        if _diagonal_turn(G.A.ops, pairs, lead) <= Leading.TURN:
            return G, pairs, "zero"
    if G.A.n_entries >= Solving.LARGE:
        tol *= Solving.FILLING
    imputed = impute_diagonal(G, lead, start=pairs, tol=tol, rng=rng, **solving)
    return imputed.gram, imputed.pairs, "imputed"


def direction_counts(k: int, n: int, p: int) -> tuple[int, int]:
    """Return how many directions of n by p data lead for k clusters, and those beyond.

    As many again and two more, but 22 at most: what lies beyond has no weight under
    the model, and beyond that hardly any in the data we know.
    """
    lead = min(k, n, p)
    extra = min(k, Leading.MOST_EXTRA) + 2
    return lead, max(min(k + extra, n - 1, p) - lead, 0)


def _diagonal_turn(ops: Ops, pairs: EigenPairs, k: int) -> float:
    """Return about how far a filled-in diagonal turns the k leading eigenvectors.

    A change E of the matrix turns the subspace U by ``norm(E @ U) / gap``, and the
    diagonal becomes that of the rank-k approximation. Where it is the same for all
    rows it turns nothing.
    """
    values = np.maximum(pairs.values[:k], 0.0)
    if values[-1] <= 0:
        return np.inf
    values /= values.max()  # whose squares are numbers
    columns = np.column_stack([values, np.ones(k)])

    def moments(ops: Ops, vectors: Tall) -> tuple[Tall, ...]:
        squares = vectors[:, :k] ** 2
        both = squares @ ops.cast_like(columns, squares)
        xp, diagonal, leverage = ops.xp, both[:, 0], both[:, 1]
        return tuple([xp.sum(diagonal**power * leverage) for power in range(3)])

    total, first, second = ops.row_sums(moments, pairs.vectors, width=k)
    return float(np.sqrt(max(second - first**2 / total, 0.0)) / values[-1])


def _known_rows(
    ops: Ops, tall: list[Tall | None], live: Tall | None, k: int
) -> list[Any]:
    """Return the rows of tall arrays to learn labels from, in float64.

    Of more than 16,384 rows, or 64 for each cluster if that is more, so many are drawn,
    the same ones whatever the seed.
    """
    if live is not None:
        tall = [None if v is None else ops.rows_where(v, live) for v in tall]
    n, size = tall[0].shape[0], max(Labelling.ROWS, Labelling.ROWS_A_CLUSTER * k)  # type: ignore[union-attr]
    rows = sampled(n, size)
    return [None if v is None else ops.few.widen(ops.few_rows(v, rows)) for v in tall]


def _clear_rows(
    ops: Ops, embedding: Embedding, k: int, coordinates: Tall, sqnorms: Tall
) -> np.ndarray:
    """Tell which rows show a pattern, not noise.

    With as many directions as features nothing tells noise, and the shortest rows have
    most of it. Where clusters are many, one of them would take these rows.
    """
    p, m = embedding.directions.shape
    if k > Labelling.MANY_CLUSTERS and m >= p:
        own = ops.to_host(sqnorms)
        return np.asarray(own >= np.quantile(own, Labelling.SHORT))
    return np.asarray(~ops.to_host(embedding.is_noise(ops, coordinates, sqnorms)))


def _label_all(
    ops: Ops,
    rule: Any,
    rows: Tall,
    live: Tall | None,
    n_clusters: int,
    weights: Tall | None,
    signed: bool,
) -> tuple[Rule, Tall, Tall | None]:
    """Label all rows, clusters by decreasing size; return signs where they matter."""
    ones = ops.xp.ones_like(rows[:, 0]) if signed else None
    if live is not None:
        rows = ops.rows_where(rows, live)
        weights = None if weights is None else ops.rows_where(weights, live)
    labels = ops.keep(rule(ops, rows))
    order = ops.order_by_size(labels, n_clusters, weights)
    rule, labels = rule.in_order(order), ops.take_lines(np.argsort(order), labels)
    labels = ops.keep(labels)
    signs = None
    if signed:
        # Most rows of a cluster point ahead.
        signs = rule.signs(ops, rows, labels)
        groups = ops.groups(labels, n_clusters)
        ahead = np.where(groups.sums(signs) < 0, -1.0, 1.0)
        rule = rule.turned(ahead)
        signs = signs * ops.cast_like(groups.spread(ahead), signs)
    if live is not None:
        # A zero row goes where a row most likely belongs: to the largest cluster.
        labels = ops.keep(ops.place(labels, live))
        signs = None if signs is None else ops.place(signs, live, ones)
    return rule, labels, signs
