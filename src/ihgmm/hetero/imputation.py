"""HeteroPCA: a Gram matrix whose diagonal is filled in from its other entries."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ihgmm._devices import is_device, kind_of, like, moved, to_host
from ihgmm._tall import Tall
from ihgmm._threads import own_threads
from ihgmm.blocks import fix_signs, orthonormal
from ihgmm.eigen import DENSE_DEVICE_ROWS, ORDERS, SOLVERS, Solver
from ihgmm.gram import GramOperator
from ihgmm.hetero.stages import impute_in_stages
from ihgmm.hetero.subspace import Subspace
from ihgmm.krylov import EigenPairs, Order, block_width
from ihgmm.starts import start_block

__all__ = ["Imputed", "impute_diagonal"]

MAX_UPDATES = 1000
"""Updates of the diagonal after which a warning is given."""

DENSE = 300
"""Rows up to which a full eigendecomposition for each update is cheaper."""


@dataclass(frozen=True, eq=False)
class Imputed:
    """A Gram matrix with an imputed diagonal, and how it was reached.

    Attributes
    ----------
    gram : GramOperator
        The matrix.
    diagonal : array of shape (n_samples,), float64
        Its diagonal: for each row an estimate of the squared norm without noise.
    pairs : EigenPairs
        Its leading eigenpairs.
    ranks : tuple of int
        The ranks of the stages; the last is the number of eigenpairs.
    n_updates : int
        Updates of the diagonal, all stages together.
    change : float
        About how far the last update turned the leading subspace, in radians.
    """

    gram: GramOperator
    diagonal: Tall
    pairs: EigenPairs
    ranks: tuple[int, ...]
    n_updates: int
    change: float


def impute_diagonal(
    G: GramOperator,
    k: int,
    *,
    order: Order = "algebraic",
    solver: Solver = "auto",
    tol: float = 1e-6,
    rng: np.random.Generator | None = None,
    max_iter: int = MAX_UPDATES,
) -> Imputed:
    """Replace the diagonal of a Gram matrix by that of its own rank-k approximation.

    Noise that differs between rows spoils the diagonal of a Gram matrix and nothing
    else; a zero diagonal does away with the noise and with the signal. HeteroPCA [1]_
    starts from zero and repeats: find the best approximation of rank k, and put its
    diagonal on the matrix.

    Parameters
    ----------
    G : GramOperator
        The matrix; its own diagonal is not used.
    k : int
        Rank of the approximation and number of eigenpairs, at most n.
    order : {"algebraic", "magnitude"}
        Whether the approximation is positive semi-definite, from the largest
        eigenvalues, or from those of largest absolute value, as in the papers.
    solver : {"auto", "dense", "lanczos", "block"}
        ``"dense"`` forms the matrix; the others are one and the same matrix-free
        method. ``"auto"`` takes the dense one for few rows.
    tol : float
        Accuracy of the leading subspace, in radians: the eigenvectors are accurate to
        it, and what is missing of the diagonal turns them by less, to first order.
    rng : numpy.random.Generator, optional
        Source of the random start.
    max_iter : int
        Cap on the updates of the diagonal.

    Returns
    -------
    Imputed

    Warns
    -----
    ConvergenceWarning
        When a cap is reached; the message tells the change or the residual.

    Notes
    -----
    Where the k leading eigenvalues are far apart, errors that the large ones leave in
    the diagonal hide the small ones. As in Deflated HeteroPCA [2]_ the rank then grows
    in stages, each starting from the diagonal of the one before: to the largest rank
    whose eigenvalues are within a factor of 4 of the first that is new, with a gap of
    at least a k-th below the last; to k if there is none. Well conditioned data take
    one stage, which is HeteroPCA.

    The diagonal is kept between zero and the squared norm of the row, since neither
    the signal nor the noise has a negative one; the papers do not bound it, and on data
    that follow the model the bounds are idle.

    An update of the diagonal does not change what the other entries do to a vector. So
    the products of the hollow matrix with a basis of a subspace are computed once, the
    diagonal is settled within that subspace without another look at the data, and the
    subspace is enlarged where the eigenvectors leave it. That costs little more than
    the eigenvectors of one matrix.

    References
    ----------
    .. [1] A. R. Zhang, T. T. Cai, Y. Wu, Heteroskedastic PCA: algorithm, optimality,
       and applications, Annals of Statistics 50 (2022).
    .. [2] Y. Zhou, Y. Chen, Deflated HeteroPCA: overcoming the curse of
       ill-conditioning in heteroskedastic PCA, Annals of Statistics 53 (2025).

    Examples
    --------
    Without noise the diagonal comes back.

    >>> import numpy as np
    >>> from ihgmm.gram import GramOperator
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0], [0.6, 0.8])
    >>> impute_diagonal(GramOperator.of(X), 1).diagonal.round(3)
    array([ 1.,  4.,  9., 16.])
    """
    n = G.shape[0]
    if not 1 <= k <= n:
        raise ValueError(f"k={k} eigenpairs of a {n} by {n} matrix: take 1 to {n}.")
    if order not in ORDERS:
        raise ValueError(f"order={order!r} is not one of {ORDERS}.")
    if solver not in SOLVERS:
        raise ValueError(f"solver={solver!r} is not one of {SOLVERS}.")
    if max_iter < 1:
        raise ValueError(f"max_iter={max_iter} is too small; give 1 or more.")
    if is_device(G.X) and solver == "dense" and n > DENSE_DEVICE_ROWS:
        raise ValueError(
            f"eigen_solver='dense' works on the host, and X is a {kind_of(G.X)} of {n} "
            "rows; take 'block' or 'auto', or give a NumPy copy of X."
        )
    if rng is None:
        rng = np.random.default_rng()
    sqnorms = to_host(G.sqnorms)
    # With a trace of one, products of blocks neither over- nor underflow.
    unit = float(sqnorms.sum()) or 1.0
    hollow = replace(G, removed=like(G.sqnorms, G.X), factor=1.0 / unit)
    few = n <= max(3 * block_width(k), DENSE if solver == "auto" else 0)
    with own_threads(G.X):
        if few or solver == "dense":
            matrix = hollow.toarray()
            space = Subspace(None, matrix, matrix, 0)
        else:
            start = orthonormal(start_block(hollow, k, order, rng)[0], rng)
            space = Subspace.of(hollow, start)
        bound = sqnorms / unit
        ranks, state = impute_in_stages(space, hollow, k, order, tol, max_iter, bound)
    ritz = state.ritz
    own = unit * G.factor
    pairs = EigenPairs(
        ritz.values[:k] * own,
        fix_signs(like(ritz.vectors(k), G.X)),
        ritz.residual(k) * own,
        ritz.space.n_products,
        "dense" if space.basis is None else "block",
    )
    diagonal = state.diagonal * unit
    gram = replace(G, removed=like(sqnorms - diagonal, G.X))
    diagonal = moved(diagonal * G.factor, G.X)
    return Imputed(gram, diagonal, pairs, ranks, state.n_updates, state.change)
