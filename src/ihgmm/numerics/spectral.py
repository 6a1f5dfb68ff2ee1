"""The recipe of every spectral method here: Gram, eigenpairs, rows, labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ihgmm._progress import Steps
from ihgmm.matrix import Matrix, Tall, namespace
from ihgmm.matrix.tall import cast_like, number_by_size, place, unit_rows
from ihgmm.numerics.eigen import Solver, leading_eigenpairs
from ihgmm.numerics.gram import GramKind, GramOperator
from ihgmm.numerics.hetero import impute_diagonal
from ihgmm.numerics.krylov import Order
from ihgmm.numerics.labels import Assignment, assign


@dataclass(frozen=True)
class Spectral:
    """What the recipe finds; what there is for each row is where the data is."""

    # Clusters numbered by decreasing size; with unit rows, zero rows are in cluster 0.
    labels: Tall
    # The rows that were clustered; zero rows have a zero embedding. With order
    # "algebraic", columns beyond the second with a negative eigenvalue are zero.
    embedding: Tall
    vectors: Tall  # the eigenvectors, with the same zeros
    eigenvalues: np.ndarray  # leading first
    hollow: bool  # whether the diagonal of the Gram matrix was left at zero
    row_scale: Tall | None  # what rows were multiplied by before their inner products
    n_iter: int  # iterations of k-means


def spectral_clustering(
    X: Matrix,
    n_clusters: int,
    *,
    gram: GramKind = "hollow",
    order: Order = "algebraic",
    rows: Literal["unit", "projected"] = "unit",
    eigen_solver: Solver = "auto",
    assign_labels: Assignment = "kmeans",
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    tol: float = 1e-2,
    rng: np.random.Generator | None = None,
    steps: Steps | None = None,
) -> Spectral:
    """Cluster the rows of ``X`` by the leading eigenvectors of a Gram matrix.

    X is finite and not all zero. ``gram``, ``order``, ``eigen_solver`` and ``tol`` say
    which matrix and how its eigenpairs are found: see
    :class:`~ihgmm.numerics.gram.GramOperator`,
    :func:`~ihgmm.numerics.eigen.leading_eigenpairs` and, for ``gram="hetero"``,
    :func:`~ihgmm.numerics.hetero.impute_diagonal`. ``assign_labels``, ``n_init`` and
    ``max_iter`` say how rows become labels: see :mod:`ihgmm.numerics.labels`. These
    rows are those of the eigenvectors at unit norm or, if "projected", eigenvectors
    times the root of their eigenvalue: the data projected on its leading directions.
    ``steps`` shows two steps, "eigenvectors" and "labels".
    """
    rng = np.random.default_rng() if rng is None else rng
    steps = Steps() if steps is None else steps
    G = GramOperator.of(X, gram)
    options: dict[str, Any] = {
        "order": order,
        "solver": eigen_solver,
        "tol": tol,
        "rng": rng,
    }
    with steps.step("eigenvectors") as say:
        if gram == "hetero":
            pairs = impute_diagonal(G, n_clusters, **options).pairs
        else:
            signal = order == "algebraic"
            pairs = leading_eigenpairs(
                G, n_clusters, signal_only=signal, say=say, **options
            )
    vectors, values = pairs.vectors, pairs.values
    zero = G.A.sqnorms == 0
    any_zero = bool(namespace(zero).any(zero))
    if any_zero:
        vectors = vectors * cast_like(~zero, vectors)[:, None]
    if order == "algebraic" and (values[2:] <= 0).any():
        # The signal part of a Gram matrix is positive semi-definite: a negative
        # eigenvalue says that there are fewer directions than clusters. Two are kept,
        # since unit rows in one dimension are all alike.
        kept = values > 0
        kept[:2] = True
        vectors *= cast_like(kept, vectors)
    if rows == "unit":
        embedding = unit_rows(vectors)
    else:
        embedding = vectors * cast_like(np.sqrt(np.maximum(values, 0)), vectors)
        any_zero = False  # the origin is a point too
    with steps.step("labels") as say:
        found = assign(
            embedding[~zero] if any_zero else embedding,
            n_clusters,
            assign_labels,
            n_init=n_init,
            max_iter=max_iter,
            rng=rng,
        )
        say(f"{assign_labels}, {found.n_iter} iterations")
    # A zero row shows no pattern, so it goes where a row most likely belongs: to the
    # largest cluster.
    labels = number_by_size(found.labels, n_clusters)
    if any_zero:
        labels = place(labels, ~zero)
    hollow = gram not in ("full", "hetero")  # these keep or fill in their diagonal
    return Spectral(
        labels, embedding, vectors, values, hollow, G.A.row_scale, found.n_iter
    )
