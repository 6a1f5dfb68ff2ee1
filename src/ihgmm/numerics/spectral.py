"""The recipe of every spectral method here: Gram, eigenpairs, rows, labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ihgmm._progress import Steps
from ihgmm.matrix import Matrix, Tall, namespace
from ihgmm.matrix.tall import cast_like, number_by_size, place, unit_rows
from ihgmm.numerics.eigen import Order, Solver, leading_eigenpairs
from ihgmm.numerics.gram import GramKind, GramOperator
from ihgmm.numerics.hetero import impute_diagonal
from ihgmm.numerics.labels import Assignment, assign


@dataclass(frozen=True)
class Spectral:
    """What the recipe finds. Arrays with an entry for each row are where the data is.

    Attributes
    ----------
    labels : array of shape (n_samples,)
        Clusters numbered by decreasing size; with unit rows, zero rows are in
        cluster 0.
    embedding : array of shape (n_samples, n_clusters)
        The rows that were clustered; zero rows have a zero embedding. With order
        "algebraic", columns beyond the second with a negative eigenvalue are zero.
    vectors : array of shape (n_samples, n_clusters)
        The eigenvectors, with the same zeros.
    eigenvalues : ndarray of shape (n_clusters,)
        Leading first.
    hollow : bool
        Whether the diagonal of the Gram matrix was left at zero.
    row_scale : array of shape (n_samples,) or None
        What rows were multiplied by before their inner products were taken.
    n_iter : int
        Iterations of k-means.
    """

    labels: Tall
    embedding: Tall
    vectors: Tall
    eigenvalues: np.ndarray
    hollow: bool
    row_scale: Tall | None
    n_iter: int


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

    Parameters
    ----------
    X : Matrix of shape (n_samples, n_features)
        The data, finite, not all zero.
    n_clusters : int
        Number of clusters and of eigenvectors.
    gram, order, eigen_solver, tol
        Which matrix, and how its eigenpairs are found: see
        :class:`~ihgmm.numerics.gram.GramOperator` and
        :func:`~ihgmm.numerics.eigen.leading_eigenpairs`, for ``gram="hetero"``
        :func:`~ihgmm.numerics.hetero.impute_diagonal`.
    rows : {"unit", "projected"}
        The embedding: rows of the eigenvectors scaled to unit norm, or eigenvectors
        times the root of their eigenvalue (the data projected on its leading
        directions).
    assign_labels, n_init, max_iter
        How rows become labels: see :mod:`ihgmm.numerics.labels`.
    rng : numpy.random.Generator, optional
        Source of all randomness.
    steps : Steps, optional
        Shows two steps, "eigenvectors" and "labels".

    Returns
    -------
    Spectral
    """
    rng = np.random.default_rng() if rng is None else rng
    steps = Steps() if steps is None else steps
    G = GramOperator.of(X, gram)
    with steps.step("eigenvectors") as say:
        if gram == "hetero":
            pairs = impute_diagonal(
                G, n_clusters, order=order, solver=eigen_solver, tol=tol, rng=rng
            ).pairs
        else:
            pairs = leading_eigenpairs(
                G,
                n_clusters,
                order=order,
                solver=eigen_solver,
                tol=tol,
                signal_only=order == "algebraic",
                rng=rng,
                say=say,
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
    hollow = gram in ("hollow", "cosine")
    return Spectral(
        labels, embedding, vectors, values, hollow, G.A.row_scale, found.n_iter
    )
