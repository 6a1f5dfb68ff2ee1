"""From rows to an embedding: how many directions lead, and which of them count."""

from __future__ import annotations

import numpy as np

from ihgmm.matrix import Matrix, Scaled, to_host
from ihgmm.numerics.eigen import GramOperator, leading_directions, leading_eigenpairs
from ihgmm.numerics.embedding import Embedding
from ihgmm.numerics.krylov import EigenPairs
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.roots import RootColumns
from ihgmm.policy import Leading


def fit_embedding(
    X: Matrix, n_clusters: int, recipe: Recipe, roots: RootColumns | None = None
) -> Embedding:
    """Return the map to the leading eigenvectors of the Gram matrix of rows.

    ``X`` has the rows as they are prepared: with ``roots``, these are taken already.

    The Gram matrix is that of unit rows, of rows as they are, or the hollow one of the
    paper. Rows count by their weights.
    """
    n, p = X.shape
    if recipe.n_components == "auto":
        n_leading, n_extra = direction_counts(n_clusters, n, p)
    else:
        n_leading = _checked_count(recipe.n_components, n_clusters, n, p)
        n_extra = 0

    unit_rows = recipe.rows == "unit"
    hollow = recipe.diagonal == "zero" and not unit_rows
    if hollow:
        gram = GramOperator.of(X)
        pairs = leading_eigenpairs(
            gram, n_leading + n_extra, order=recipe.order, tol=recipe.tol
        )
        directions = to_host(gram.A.adjoint(pairs.vectors))  # A.T @ u
    else:
        counted_rows = _counted_rows(X, unit_rows)
        pairs = _singular_pairs(counted_rows, n_leading, n_extra, recipe)
        directions = pairs.vectors * np.sqrt(pairs.values)  # A.T @ u, too

    return Embedding.of_signal(
        directions,
        pairs.values,
        n_leading,
        unit_rows=unit_rows,
        hollow=hollow,
        unit_norm=recipe.unit_norm,
        unit=X.unit,
        roots=roots,
    )


def _checked_count(n_components: int | None, n_clusters: int, n: int, p: int) -> int:
    """Return how many directions a recipe asks for; by default one a cluster."""
    if n_components is None:
        return min(n_clusters, n)

    if n_components > min(n, p):
        raise ValueError(
            f"n_components={n_components} is more than {n} rows of {p} features can "
            f"span; give at most {min(n, p)}."
        )
    return n_components


def _counted_rows(X: Matrix, unit_rows: bool) -> Matrix:
    """Return rows as they count in directions: at unit length, by their weights.

    A row of weight w counts as a row times the root of w.
    """
    factors = None
    if unit_rows:
        factors = X.ops.ratio(1.0, X.ops.xp.sqrt(X.sqnorms))
    if X.weights is not None:
        root_weights = X.ops.xp.sqrt(X.weights)
        factors = root_weights if factors is None else factors * root_weights

    return X if factors is None else Scaled(X, rows=factors)


def _singular_pairs(
    A: Matrix, n_leading: int, n_extra: int, recipe: Recipe
) -> EigenPairs:
    """Return leading directions; with "auto", more of them while eigenvalues are high.

    More are looked for from the start: what is left of directions that are found is
    rounding, which would choose the further ones.
    """
    n, p = A.shape
    total = A.ops.number(A.ops.xp.sum(A.sqnorms))
    most_extra = min(p - 1, n // Leading.ROWS_A_DIRECTION) - n_leading

    while True:
        pairs = leading_directions(A, n_leading, n_extra, tol=recipe.tol)
        may_grow = recipe.n_components == "auto" and n_extra < most_extra
        if not may_grow or not stays_high(pairs.values, n_leading, n, p, total):
            return pairs
        n_extra = min(2 * n_extra, most_extra)


def direction_counts(n_clusters: int, n: int, p: int) -> tuple[int, int]:
    """Return how many directions lead for some clusters, and how many more may count.

    ``n`` and ``p`` are the shape of the data.
    """
    n_leading = min(n_clusters, n, p)

    # Further ones hardly have weight.
    n_wanted = n_clusters + min(n_clusters, Leading.MOST_EXTRA) + 2
    n_directions = min(n_wanted, n - 1, p)
    return n_leading, max(n_directions - n_leading, 0)


def stays_high(
    values: np.ndarray, n_leading: int, n: int, p: int, total: float
) -> bool:
    """Tell whether the last eigenvalue is high, ``total`` being the sum of squares.

    Then noise has directions of its own, or clusters are more, and what tells them may
    lie further on: under the model, it would be at the edge of noise.

    Notes
    -----
    Noise of variance v in n rows of p features has its largest eigenvalue of the Gram
    matrix near ``v (√n + √p)²``, which is ``v (n + 2 √(n p))`` above a diagonal of v p.
    """
    variance = max(total - float(values.sum()), 0.0) / (n * p)
    edge_of_noise = variance * (n + 2 * np.sqrt(n * p))

    last = values[-1]
    is_near_leading = last > Leading.HIGH * values[n_leading - 1]
    return bool(is_near_leading and last > Leading.FAR * edge_of_noise)
