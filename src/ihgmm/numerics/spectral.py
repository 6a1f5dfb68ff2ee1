"""The recipe of every spectral method here: Gram, eigenpairs, rows, labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from ihgmm._progress import Steps
from ihgmm._values import Domain
from ihgmm.matrix import Matrix, Tall, namespace
from ihgmm.matrix.tall import (
    Groups,
    cast_like,
    keep,
    number,
    number_by_size,
    order_by_size,
    place,
    row_sums,
    rows_where,
    unit_rows,
)
from ihgmm.numerics.eigen import Solver, leading_eigenpairs
from ihgmm.numerics.embedding import SPACES, Embedding, Space
from ihgmm.numerics.gram import GramKind, GramOperator, row_factors
from ihgmm.numerics.hetero import impute_diagonal
from ihgmm.numerics.krylov import EigenPairs, Order, signal_weights
from ihgmm.numerics.labels import (
    Assignment,
    Rule,
    known_rows,
    learn_rule,
    prefers_lines,
    sample_positions,
    shared_covariance,
)


@dataclass(frozen=True, eq=False)
class Placement:
    """How rows, those of the fit or new ones, get their labels.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.matrix import as_matrix
    >>> X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    >>> from ihgmm.numerics.spectral import spectral_clustering
    >>> found = spectral_clustering(as_matrix(X), 3, rng=np.random.default_rng(0))
    >>> bool((found.placement(as_matrix(X)) == found.labels).all())
    True
    """

    embedding: Embedding
    rule: Rule

    def __call__(self, X: Matrix) -> Tall:
        """Return labels; those of zero rows are 0, the largest cluster."""
        labels = self.rule(self.embedding(X))
        return labels * namespace(labels).astype(X.sqnorms > 0, labels.dtype)


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
        cosines = X @ unit_rows(self.directions).T
        if self.signed:
            cosines = namespace(cosines).abs(cosines)
        empty = ~self.directions.any(axis=1)
        if empty.any():  # else they would win where all others are negative
            cosines = cosines - cast_like(np.where(empty, np.inf, 0.0), cosines)
        labels = namespace(cosines).argmax(cosines, axis=1)
        return labels * namespace(labels).astype(X.sqnorms > 0, labels.dtype)


@dataclass(frozen=True)
class Spectral:
    """What the recipe finds; what there is for each row is where the data are.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.matrix import as_matrix
    >>> X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    >>> from ihgmm.numerics.spectral import spectral_clustering
    >>> found = spectral_clustering(as_matrix(X), 3, rng=np.random.default_rng(0))
    >>> found.space, found.labels.shape
    ('eigenvectors', (200,))
    """

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
    *,
    gram: GramKind = "hetero",
    clip: float | None = 1.5,
    order: Order = "algebraic",
    n_components: int | Literal["auto"] | None = "auto",
    space: Space | Literal["auto"] = "auto",
    unit_norm: bool = True,
    eigen_solver: Solver = "auto",
    assign_labels: Assignment = "tied",
    signed: bool = False,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    tol: float = 1e-2,
    rng: np.random.Generator | None = None,
    steps: Steps | None = None,
) -> Spectral:
    """Cluster the rows of ``X`` by the leading eigenvectors of a Gram matrix.

    X is finite and not all zero; its rows may have weights. The arguments are those of
    :class:`ihgmm.IhSC`; without ``unit_norm``, rows of the embedding keep their length.
    ``steps`` shows two steps, "eigenvectors" and "labels".

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.matrix import as_matrix
    >>> from ihgmm.metrics import misclassification_rate
    >>> X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    >>> from ihgmm.numerics.spectral import spectral_clustering
    >>> found = spectral_clustering(as_matrix(X), 3, rng=np.random.default_rng(0))
    >>> misclassification_rate(kinds, found.labels)
    0.0
    """
    rng = np.random.default_rng() if rng is None else rng
    steps = Steps() if steps is None else steps
    with steps.step("eigenvectors") as say:
        embedding, coordinates, row_scale = _embed(
            X,
            n_clusters,
            gram,
            clip,
            n_components,
            {"order": order, "solver": eigen_solver, "tol": tol, "rng": rng},
            say,
        )
        embedding = replace(embedding, unit_norm=unit_norm)
    candidates = SPACES if space == "auto" else (space,)
    spaces = [embedding.in_space(candidate) for candidate in candidates]
    options: dict[str, Any] = {"n_init": n_init, "max_iter": max_iter, "rng": rng}
    with steps.step("labels") as say:
        # Zero rows show no pattern, unless the origin is a point like others.
        live = X.sqnorms > 0
        if not unit_norm or number(namespace(live).all(live)):
            live = None
        known = _Known.drawn(X, coordinates, live, n_clusters, rng)
        rows = [one.rows(known.coordinates) for one in spaces]
        options |= {"weights": known.weights, "signed": signed}
        if assign_labels == "tied":
            found = shared_covariance(rows, n_clusters, **options)
            rule: Rule = found.rule
            chosen, n_iter = found.space, found.n_iter
        else:
            chosen = 0
            if len(rows) > 1:
                chosen = shared_covariance(rows, n_clusters, **options).space
            rule, n_iter = learn_rule(
                rows[chosen], n_clusters, assign_labels, **options
            )
        say(f"{assign_labels}, {n_iter} iterations")
        embedding = spaces[chosen]
        embedded = keep(embedding.rows(coordinates))
        rule, labels, signs = _label(
            rule, embedded, live, n_clusters, X.weights, signed
        )
    return Spectral(
        labels,
        embedded,
        coordinates,
        Placement(embedding, rule),
        candidates[chosen],
        embedding.ruling_rows(coordinates, X.sqnorms),
        embedding.noise_share(known.coordinates, known.sqnorms),
        row_scale,
        n_iter,
        signs,
        not signed and unit_norm and prefers_lines(rows[chosen], n_clusters, rng),
    )


@dataclass(frozen=True, eq=False)
class _Known:
    """Rows to learn labels from."""

    coordinates: Tall
    sqnorms: Tall
    weights: Tall | None

    @classmethod
    def drawn(
        cls,
        X: Matrix,
        coordinates: Tall,
        live: Tall | None,
        n_clusters: int,
        rng: np.random.Generator,
    ) -> _Known:
        """Draw rows that are not zero; all of them where they are few."""
        each = [coordinates, X.sqnorms, X.weights]
        if live is not None:
            each = [None if v is None else rows_where(v, live) for v in each]
        positions = sample_positions(each[0].shape[0], n_clusters, rng)
        return cls(*(None if v is None else known_rows(v, positions) for v in each))


def _label(
    rule: Rule,
    rows: Tall,
    live: Tall | None,
    n_clusters: int,
    weights: Tall | None,
    signed: bool,
) -> tuple[Rule, Tall, Tall | None]:
    """Label all rows, clusters by decreasing size; return signs where they matter."""
    every = rows
    if live is not None:
        rows = rows_where(rows, live)
        weights = None if weights is None else rows_where(weights, live)
    labels = keep(rule(rows))
    rule = rule.in_order(order_by_size(labels, n_clusters, weights))
    labels = keep(number_by_size(labels, n_clusters, weights))
    signs = None
    if signed:
        rule, signs = _majority_ahead(rule, rows, labels)
    if live is not None:
        # A zero row goes where a row most likely belongs: to the largest cluster.
        labels = keep(place(labels, live))
        if signs is not None:
            signs = place(signs, live, namespace(live).ones_like(every[:, 0]))
    return rule, labels, signs


def _majority_ahead(rule: Any, rows: Tall, labels: Tall) -> tuple[Rule, Tall]:
    """Return the rule and the signs of rows when most of a cluster's are positive."""
    signs = rule.signs(rows, labels)
    groups = Groups.of(labels, len(rule.intercepts))
    ahead = np.where(groups.sums(signs) < 0, -1.0, 1.0)
    return rule.turned(ahead), signs * cast_like(groups.spread(ahead), signs)


def _embed(
    X: Matrix,
    k: int,
    gram: GramKind,
    clip: float | None,
    n_components: int | Literal["auto"] | None,
    options: dict[str, Any],
    say: Any,
) -> tuple[Embedding, Tall, Tall | None]:
    """Return the map to coordinates, these, and what rows were multiplied by."""
    G = GramOperator.of(X, gram, clip=clip)
    n, p = X.shape
    if n_components == "auto":
        lead, extra = direction_counts(k, n, p)
    elif n_components is None:
        lead, extra = min(k, n), 0
    else:
        lead, extra = _check_components(n_components, n, p), 0
    wanted = options | {"extra": extra, "say": say}
    wanted["signal_only"] = options["order"] == "algebraic"
    pairs = leading_eigenpairs(G, lead, **wanted)
    diagonal: Any = "full" if gram == "full" else "zero"
    # What noise does to eigenvectors is more than this angle.
    if gram == "hetero" and _diagonal_turn(pairs, lead) > 0.05:
        diagonal = "imputed"
        G = impute_diagonal(G, lead, **options).gram
        pairs = leading_eigenpairs(G, lead, **wanted)
    embedding = Embedding.of(G, pairs, lead, diagonal)
    embedding = embedding.weighted(signal_weights(pairs.values, lead))
    if X.weights is not None:
        # What a row is does not depend on how much it counts.
        return embedding, embedding.coordinates(X), row_factors(X.sqnorms, G.longest)
    if pairs.linear is None:
        coordinates = embedding.coordinates(X)
    else:
        coordinates = pairs.vectors[:, : len(embedding.weights)]
    return embedding, coordinates, None if G.A is X else G.A.row_scale


def direction_counts(k: int, n: int, p: int) -> tuple[int, int]:
    """Return how many directions of n by p data lead for k clusters, and those beyond.

    Twice as many and two more: what lies beyond has no weight under the model, and
    beyond that hardly any in the data we know.
    """
    lead = min(k, n, p)
    return lead, max(min(2 * k + 2, n - 1, p) - lead, 0)


def _check_components(n_components: int, n: int, p: int) -> int:
    if n_components > min(n, p):
        raise ValueError(
            f"n_components={n_components} is more than {n} rows of {p} features can "
            f"span; give at most {min(n, p)}."
        )
    return n_components


def _diagonal_turn(pairs: EigenPairs, k: int) -> float:
    """Return about how far a filled-in diagonal turns the k leading eigenvectors.

    A change E of the matrix turns the subspace U by ``norm(E @ U) / gap``, and the
    diagonal becomes that of the rank-k approximation. Where it is the same for all
    rows it turns nothing.
    """
    values = np.maximum(pairs.values[:k], 0.0)
    if values[-1] <= 0:
        return np.inf
    columns = np.column_stack([values, np.ones(k)])

    def moments(vectors: Tall) -> tuple[Tall, ...]:
        few = vectors[:, :k]
        both = (few * few) @ cast_like(columns, few)
        xp, diagonal, leverage = namespace(both), both[:, 0], both[:, 1]
        return tuple(xp.sum(diagonal**power * leverage) for power in range(3))

    total, first, second = row_sums(moments, pairs.vectors, width=k)
    return float(np.sqrt(max(second - first**2 / total, 0.0)) / values[-1])
