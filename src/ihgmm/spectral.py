"""The recipe of every spectral method here: Gram, eigenpairs, rows, labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ihgmm._arrays import Array, row_ranges
from ihgmm._devices import like, namespace, wide
from ihgmm._progress import Steps
from ihgmm._tall import (
    Tall,
    blank,
    group_sums,
    indicators,
    pick,
    placed,
    positive,
    quotient,
    row_norms,
    row_step,
    spread,
    stack,
    tall_dot,
)
from ihgmm._threads import one_thread
from ihgmm.eigen import Order, Solver, leading_eigenpairs
from ihgmm.gram import GramKind, GramOperator
from ihgmm.hetero import impute_diagonal
from ihgmm.rounding import Assignment, assign, normalize_rows, number_by_size

__all__ = ["Spectral", "spectral_clustering"]

SHARE = 1e-3
"""Share of its cluster's weight up to which a row's own term is not put back, and of
the largest length up to which lengths may still change."""


@dataclass(frozen=True)
class Spectral:
    """What the recipe finds; what there is one of for each row is where X is.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        Clusters numbered by decreasing size; with unit rows, zero rows are in
        cluster 0.
    embedding : ndarray of shape (n_samples, n_clusters)
        The rows that were clustered; zero rows have a zero embedding. With order
        "algebraic", columns beyond the second with a negative eigenvalue are zero.
    scales : ndarray of shape (n_samples,)
        Length of each row along the centre of its cluster, up to a factor for each
        cluster, read off the eigenvectors without another look at the data.
    eigenvalues : ndarray of shape (n_clusters,)
        Leading first.
    n_iter : int
        Iterations of k-means.
    """

    labels: Tall
    embedding: Tall
    scales: Tall
    eigenvalues: np.ndarray
    n_iter: int


def spectral_clustering(
    X: Array,
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
    sqnorms: Tall | None = None,
    rng: np.random.Generator | None = None,
    steps: Steps | None = None,
) -> Spectral:
    """Cluster the rows of ``X`` by the leading eigenvectors of a Gram matrix.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data, float32 or float64, finite, not all zero.
    n_clusters : int
        Number of clusters and of eigenvectors.
    gram, order, eigen_solver, tol
        Which matrix, and how its eigenpairs are found: see
        :class:`~ihgmm.gram.GramOperator` and :func:`~ihgmm.eigen.leading_eigenpairs`,
        for ``gram="hetero"`` :func:`~ihgmm.hetero.impute_diagonal`.
    rows : {"unit", "projected"}
        The embedding: rows of the eigenvectors scaled to unit norm, or eigenvectors
        times the root of their eigenvalue (the data projected on its leading
        directions).
    assign_labels, n_init, max_iter
        How rows become labels: see :mod:`ihgmm.rounding`.
    sqnorms : ndarray of shape (n_samples,), optional
        Squared row norms of X, if known already.
    rng : numpy.random.Generator, optional
        Source of all randomness.
    steps : Steps, optional
        Is told of two steps, "eigenvectors" and "labels".

    Returns
    -------
    Spectral
    """
    if rng is None:
        rng = np.random.default_rng()
    if steps is None:
        steps = Steps()
    G = GramOperator.of(X, gram, sqnorms)
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
    vectors = pairs.vectors
    zero = G.sqnorms == 0
    any_zero = bool(namespace(zero).any(zero))
    if any_zero:
        vectors = blank(vectors, zero)
    if order == "algebraic" and (pairs.values[2:] <= 0).any():
        # The signal part of a Gram matrix is positive semi-definite: a negative
        # eigenvalue says that there are fewer directions than clusters. Two are kept,
        # since unit rows in one dimension are all alike.
        kept = pairs.values > 0
        kept[:2] = True
        vectors *= like(kept, vectors)
    if rows == "unit":
        embedding = normalize_rows(vectors)
    else:
        embedding = vectors * like(np.sqrt(np.maximum(pairs.values, 0)), X)
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
        labels = placed(labels, ~zero)
    hollow = gram in ("hollow", "cosine")
    with one_thread():  # blocks this small do not wait for threads to meet
        scales = _scales(vectors, pairs.values, labels, n_clusters, hollow)
    if G.row_scale is not None:
        scales = quotient(scales, G.row_scale)
    return Spectral(labels, embedding, scales, pairs.values, found.n_iter)


def _scales(
    vectors: Tall,
    values: np.ndarray,
    labels: Tall,
    n_clusters: int,
    hollow: bool,
) -> Tall:
    """Return the lengths of rows along their centres, as the leading subspace has them.

    The signal part of the Gram matrix is ``U @ diag(values) @ U.T``. With weights w on
    the rows of a cluster, its product with w is ``length_i * sum(w_j * length_j)``, in
    a hollow matrix less the row's own term, which is then put back.
    """
    xp = namespace(vectors)
    blocks = row_ranges(vectors.shape[0], row_step(vectors, n_clusters))
    sums = np.zeros((n_clusters, vectors.shape[1]))
    sizes = []
    for block in blocks:
        few = vectors[block, :]
        sizes.append(size := row_norms(few))
        sums += tall_dot(indicators(labels[block], n_clusters, size, vectors), few)
    weights = wide(stack(sizes))
    centers = like((sums * np.maximum(values, 0)).T, vectors)
    inner = [pick(vectors[block, :] @ centers, labels[block]) for block in blocks]
    products = positive(wide(stack(inner)))
    totals = np.sqrt(group_sums(labels, weights * products, n_clusters))
    totals[totals == 0] = 1.0
    lengths = products / spread(totals, labels)
    for _ in range(20 if hollow else 0):
        own = weights * lengths
        if float(xp.max(own)) <= SHARE * totals.min():
            break
        total = spread(totals, labels)
        # A row of more than half of its cluster's weight could take all of it.
        others = xp.maximum(total - own, total / 2)
        before = lengths
        lengths = quotient(products, others)
        if xp.max(xp.abs(lengths - before)) <= SHARE * xp.max(lengths):
            break
        totals = group_sums(labels, weights * lengths, n_clusters)
    return lengths
