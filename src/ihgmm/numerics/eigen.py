"""The leading eigenpairs of a Gram operator."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Literal

import numpy as np
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from ihgmm.matrix import Matrix, Tall, to_host
from ihgmm.matrix.ops import sampled
from ihgmm.numerics.gram import GramOperator
from ihgmm.numerics.krylov import (
    MAX_PRODUCTS,
    Basis,
    EigenPairs,
    Order,
    all_there,
    block_krylov,
    block_width,
    leading_order,
    leading_pairs,
    orthonormal,
    progress,
    ritz_pairs,
    rounded_width,
    smallest_gap,
    whitening,
)
from ihgmm.policy import Small, Solving

Solver = Literal["auto", "dense", "lanczos", "block"]
ORDERS: tuple[Order, ...] = ("algebraic", "magnitude")
SOLVERS: tuple[Solver, ...] = ("auto", "dense", "lanczos", "block")


def leading_eigenpairs(
    G: GramOperator,
    k: int,
    *,
    extra: int = 0,
    order: Order = "algebraic",
    solver: Solver = "auto",
    tol: float = 1e-6,
    signal_only: bool = False,
    max_products: int = MAX_PRODUCTS,
    quiet: bool = False,
    rng: np.random.Generator | None = None,
    say: Callable[[str], None] | None = None,
) -> EigenPairs:
    """Return the k leading eigenpairs of a Gram operator.

    Parameters
    ----------
    G : GramOperator
        The matrix, n by n.
    k : int
        Number of eigenpairs, at most n. That many columns are always returned, also
        when the rank is smaller.
    extra : int
        How many eigenpairs to return beyond these, ``k + extra`` at most n. They are
        as accurate as their :func:`~ihgmm.numerics.krylov.signal_weights` ask for:
        among noise, where they have no weight, they are not waited for, and the block
        method returns those that come along.
    order : {"algebraic", "magnitude"}
        Whether the leading eigenvalues are the largest or those of largest absolute
        value.
    solver : {"auto", "dense", "lanczos", "block"}
        ``"dense"`` forms G and calls LAPACK; ``"lanczos"`` is ARPACK; ``"block"`` is
        a randomised block Krylov method, the only one that works on the device of the
        data: see :doc:`/how-it-works`. ``"auto"`` takes the dense one where forming G
        is cheaper, and the block method elsewhere. The matrix-free solvers hand a
        matrix hardly larger than their own working space to the dense one.
    tol : float
        The eigenvectors are accepted when the angle between the computed and the
        true leading subspace is at most ``tol``, as bounded by residual over
        eigenvalue gap. Gaps under 1% of the k-th eigenvalue count as 1%.
    signal_only : bool
        Do not wait for eigenpairs with negative eigenvalues to converge; the block
        solver then returns them as they are.
    max_products : int
        Cap on the products of the block solver. When it is reached, a
        ConvergenceWarning gives the residual, unless ``quiet``.
    quiet : bool
        Do not warn.
    rng : numpy.random.Generator, optional
        Source of the random start.
    say : callable, optional
        Takes a few words on the progress, after each product of the block method.

    Returns
    -------
    EigenPairs

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.numerics.gram import GramOperator
    >>> X = np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> leading_eigenpairs(GramOperator.of(X), 2).values
    array([2., 1.])
    """
    n, ops = G.shape[0], G.A.ops
    count = k + extra
    check_problem(n, count, order, solver)
    rng = np.random.default_rng() if rng is None else rng
    if solver == "auto":
        solver = "dense" if _dense_is_cheaper(G, count) else "block"
    if n <= Solving.FEW_ROWS * max(block_width(k), count):
        solver = "dense"
    # With eigenvalues of order one, products of blocks neither over- nor underflow.
    magnitude = _magnitude(G)
    G = G.scaled(1.0 / magnitude)
    with G.A.threads():
        if solver == "dense":
            pairs = _dense(G, count, order)
        elif solver == "lanczos":
            pairs = _lanczos(G, count, order, tol, rng)
        else:
            start = _first_basis(G, k, extra, order, tol, rng, signal_only)
            pairs = (
                start
                if isinstance(start, EigenPairs)
                else block_krylov(
                    G,
                    start,
                    k,
                    order,
                    tol,
                    extra=extra,
                    max_products=max_products,
                    signal_only=signal_only,
                    quiet=quiet,
                    say=say,
                )
            )
    vectors, flip = ops.fix_signs(pairs.vectors)
    adjoint, linear = pairs.adjoint, pairs.linear
    return EigenPairs(
        pairs.values * magnitude,
        vectors,
        pairs.n_iter,
        solver,
        None if adjoint is None else adjoint * ops.cast_like(flip, adjoint),
        None if linear is None else linear * flip,
    )


def check_problem(n: int, k: int, order: str, solver: str) -> None:
    """Raise unless k eigenpairs of an n by n matrix can be asked for in these words."""
    if not 1 <= k <= n:
        raise ValueError(f"k={k} eigenpairs of a {n} by {n} matrix: take 1 to {n}.")
    if order not in ORDERS:
        raise ValueError(f"order={order!r} is not one of {ORDERS}.")
    if solver not in SOLVERS:
        raise ValueError(f"solver={solver!r} is not one of {SOLVERS}.")


def _dense_is_cheaper(G: GramOperator, k: int) -> bool:
    """Compare operation counts; LAPACK's reduction runs far below product speed."""
    (n, p), entries = G.A.shape, G.A.n_entries
    # Data that is not in the memory of the host is read whole only where it is small.
    if not G.A.on_host and entries > Solving.READ_WHOLE:
        return False
    dense = 2.0 * n * n * p + Solving.LAPACK * n**3
    products = Solving.PRODUCTS * 4.0 * entries * block_width(k)
    matrix_free = products + Solving.OVERHEAD
    return dense < matrix_free


def _magnitude(G: GramOperator) -> float:
    """Return a power of two near the trace of ``A @ A.T``, a bound on eigenvalues."""
    trace = G.factor * G.A.ops.number(G.A.ops.xp.sum(G.A.sqnorms))
    return float(2.0 ** np.round(np.log2(trace))) if trace > 0 else 1.0


def _dense(G: GramOperator, k: int, order: Order) -> EigenPairs:
    values, vectors = leading_pairs(G.toarray(), k, order)
    return EigenPairs(values, _tall(G, vectors), 0, "dense")


def _tall(G: GramOperator, vectors: np.ndarray) -> Tall:
    """Return vectors of the host where the data are, in its type."""
    return G.A.to_device(vectors.astype(G.A.dtype, copy=False))


def _lanczos(
    G: GramOperator, k: int, order: Order, tol: float, rng: np.random.Generator
) -> EigenPairs:
    n, products = G.shape[0], 0

    def apply(v: np.ndarray) -> np.ndarray:
        nonlocal products
        products += 1
        return to_host(G @ G.A.to_device(v))

    operator = LinearOperator((n, n), matvec=apply, dtype=G.A.dtype)
    start = to_host(G.A @ rng.standard_normal((G.A.shape[1], 1)))[:, 0]
    # ARPACK draws new vectors where it meets an invariant subspace: since SciPy 1.17
    # from a generator, before that from one of its own that always begins alike.
    seeded = {"rng": rng} if "rng" in signature(eigsh).parameters else {}
    try:
        values, vectors = eigsh(
            operator,
            k,
            which="LA" if order == "algebraic" else "LM",
            v0=start if start.any() else rng.standard_normal(n).astype(G.A.dtype),
            tol=max(smallest_gap(tol), float(np.finfo(G.A.dtype).eps)),
            ncv=min(n, max(2 * k + 1, 20)),
            maxiter=1000,
            **seeded,
        )
    except ArpackError as error:
        # What has converged, completed at random and improved by a Ritz step. Where G
        # is next to nothing, as with one-hot rows, ARPACK does not even begin.
        found = np.asarray(getattr(error, "eigenvectors", ())).reshape(n, -1)
        rest = rng.standard_normal((n, block_width(k) - found.shape[1]))
        block = orthonormal(G.A.ops, _tall(G, np.hstack([found, rest])), rng)
        basis = Basis(G.A.ops, block, G.A.adjoint(block))
        return block_krylov(G, basis, k, order, tol, max_products=1)
    lead = leading_order(values, order)
    values = values[lead].astype(np.float64)
    vectors = _tall(G, np.ascontiguousarray(vectors)[:, lead])
    return EigenPairs(values, vectors, products, "lanczos", G.A.adjoint(vectors))


def start_block(
    G: GramOperator, k: int, extra: int, order: Order, rng: np.random.Generator
) -> tuple[np.ndarray | None, Tall, Tall]:
    """Return W, a block ``A @ W`` near the leading eigenvectors, and its adjoint.

    ``A @ W`` for a random W is half a product better than a random block. With more
    rows than features, a sample of the rows gives a much better W; with so few features
    that their Gram matrix costs a product or two, that of all rows gives a block nearer
    still, ``extra`` columns wider, for which there is no W.
    """
    n, p = G.A.shape
    if features_pay(G.A, k + extra):
        return None, *block_by_features(G, *leading_features(G.A, k + extra))
    W = rng.standard_normal((p, block_width(k))).astype(G.A.dtype)
    size = sample_size(n, p, G.A.n_entries, W.shape[1], G.A.streamed)
    with G.A.threads():
        if size:
            lead = _directions_of_sample(G, size, W, k, order, rng)
            found = lead.shape[1]
            # The other columns must not see what these already show.
            W[:, found:] -= lead @ (lead.T @ W[:, found:])
            W[:, :found] = lead
        return W, *G.A.product_and_adjoint(W)


def features_pay(A: Matrix, count: int) -> bool:
    """Tell whether to find so many directions by the Gram matrix of the features.

    Where a sample would have few rows for each direction, that may cost two products.
    """
    n, p = A.shape
    width = rounded_width(count)
    size = sample_size(n, p, A.n_entries, width, A.streamed)
    few = size < Solving.SAMPLE_ROWS * count
    most = Solving.FEATURES * (4 if few else 1) * width
    return count <= p <= most and n >= 2 * p


def leading_features(A: Matrix, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return leading eigenpairs of the Gram matrix of the features."""

    def gram_of(block: Matrix) -> tuple[tuple[()], tuple[Tall]]:
        rows = block.rows(slice(None))
        return (), (rows.T @ rows,)

    _, (gram,) = A.sweep(gram_of)
    # For a start, the precision of the data will do.
    values, W = leading_pairs(gram, min(rounded_width(count), len(gram)))
    values = values.astype(np.float64)
    least = max(Small.ROUNDING * values[0], Small.TINY)
    return np.maximum(values, least), W.astype(A.dtype)


def block_by_features(
    G: GramOperator, values: np.ndarray, W: np.ndarray
) -> tuple[Tall, Tall]:
    """Return a block near the leading eigenvectors, and its adjoint.

    The eigenvectors of ``A @ A.T`` are ``A @ W``, W those of the features. What is
    removed from the diagonal moves a row of them, to first order, by the share that it
    has of the eigenvalue.
    """
    A, ops, removed = G.A, G.A.ops, G.removed

    def moved(block: Matrix, excess: Tall) -> tuple[tuple[Tall], tuple[Tall]]:
        lines = block @ W
        if excess is not None:
            share = block.ops.cast_like(1 / values, lines)
            share = share * block.ops.cast_like(excess, lines)[:, None]
            lines = lines / block.ops.clip(1 + share, 0.5, 2.0)
        return (lines,), (block.adjoint(lines),)

    excess = None
    if removed is not None:  # more than the mean, which moves all rows alike
        total = ops.number(ops.xp.sum(A.sqnorms)) or 1.0
        mean = ops.number(ops.xp.sum(removed * A.cast(A.sqnorms))) / total
        excess = ops.keep(removed - mean)
    (block,), (adjoint,) = A.sweep(moved, excess)
    return block, A.to_device(adjoint)


def _directions_of_sample(
    G: GramOperator,
    size: int,
    W: np.ndarray,
    k: int,
    order: Order,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return orthonormal directions in which a sample of the rows lies."""
    part = G.take(sampled(G.shape[0], size, rng))
    block = orthonormal(part.A.ops, part.A @ W, rng)
    basis = Basis(part.A.ops, block, part.A.adjoint(block))
    most = min(W.shape[1], size) - k
    # One digit is enough here.
    start = block_krylov(
        part, basis, k, order, 0.1, extra=most, max_products=3, quiet=True
    )
    return np.linalg.qr(to_host(start.adjoint))[0]


def sample_size(
    n: int, p: int, n_entries: int, width: int, streamed: bool = False
) -> int:
    """Return how many rows to start from; 0 where that would not pay.

    One row in 16, up to 64 for each feature; more where there are many clusters, which
    have fewer rows each and of which all have to be found. Rows that are read come to
    memory: they are 32 for each feature at most. Where rows are not many more than
    features, a sample pays if products are expensive.
    """
    longer = max(p, width)
    if n < (2 if n_entries >= Solving.LARGE else 32) * longer:
        return 0
    return min(n // 16, (32 if streamed else max(64, width**2 // 8)) * longer)


def check_size(n: int, n_entries: int) -> int:
    """Return how many rows to check the first block by; 0 where that would not pay.

    They may save all further products. With ten million entries a product costs more
    than a look at so many rows.
    """
    large = n > 2**13 and n_entries >= Solving.LARGE
    return Solving.CHECK_ROWS if large else 0


def _first_basis(
    G: GramOperator,
    k: int,
    extra: int,
    order: Order,
    tol: float,
    rng: np.random.Generator,
    signal_only: bool,
) -> Basis | EigenPairs:
    """Return a basis of one block, or the eigenpairs where such a block will do.

    What looks nearly good enough is improved by a step of subspace iteration. That
    takes one block in memory, and its columns remain products of the data with W.
    """
    ops = G.A.ops
    W, start, adjoint = start_block(G, k, extra, order, rng)
    check = _Check.of(G, rng)
    for n_iter in range(1, 4):
        change, condition = whitening(ops.tall_dot(start, start))
        if condition <= Solving.CONDITION or len(change) != change.shape[1]:
            block = orthonormal(ops, start, rng)
            return Basis(ops, block, G.A.adjoint(block), take_along=G.A.streamed)
        if check is None:
            break
        # The Ritz pairs of this block need no product with G beyond the adjoint.
        rayleigh = ops.tall_dot(adjoint, adjoint)
        if G.removed is not None:
            rayleigh -= ops.weighted_gram(G.removed, start)
        rayleigh = G.factor * (change.T @ rayleigh @ change)
        values, ritz = ritz_pairs((rayleigh + rayleigh.T) / 2, order)
        change = change @ ritz
        count = min(k + extra, len(values))
        turn = change[:, :count]
        residuals = check.residuals(start, adjoint, turn, values[:count])
        residual, goal = progress(values, residuals, k, tol, G.A.dtype, signal_only)
        if not all_there(values, k, extra):
            break
        if residual <= goal / 2:
            vectors = ops.keep(start @ ops.cast_like(turn, start))
            known: Any = (
                {"adjoint": adjoint @ ops.cast_like(turn, adjoint)}
                if W is None
                else {"linear": W @ turn}
            )
            lead = values[:count]
            return EigenPairs(lead, vectors, n_iter, "block", **known)
        # A step shrinks what is wrong by the ratio of eigenvalues.
        if W is None or residual * abs(values[-1] / values[k - 1]) > goal / 4:
            break
        start = None
        along = to_host(adjoint @ ops.cast_like(change, adjoint))
        W, _ = np.linalg.qr(along - check.mean_removed * (W @ change))
        start, adjoint = G.A.product_and_adjoint(W.astype(G.A.dtype))
    move = ops.cast_like(change, start)
    return Basis(ops, ops.keep(start @ move), adjoint @ move, take_along=G.A.streamed)


class _Check:
    """Some rows that tell how far vectors are from eigenvectors.

    Those of largest norm count as they are, others for all the rest.
    """

    def __init__(self, G: GramOperator, n_rows: int, rng: np.random.Generator) -> None:
        n = G.shape[0]
        self._ops = G.A.ops
        top = self._ops.largest(G.A.sqnorms, Solving.CHECK_LARGEST)
        others = sampled(n, n_rows - len(top), rng)
        others = others[~np.isin(others, top)]
        # In order: chunks are read once for both.
        self._rows = np.sort(np.concatenate([top, others]))
        of_rest = len(others) / (n - len(top))
        self._share = np.where(np.isin(self._rows, top), 1.0, of_rest)[:, None]
        self._part = G.take(self._rows)
        removed = self._part.removed
        self.mean_removed = (
            0.0 if removed is None else float(to_host(removed)[...].mean())
        )

    @classmethod
    def of(cls, G: GramOperator, rng: np.random.Generator) -> _Check | None:
        """Return a check; None where it would not pay."""
        n_rows = check_size(G.shape[0], G.A.n_entries)
        return cls(G, n_rows, rng) if n_rows else None

    def residuals(
        self, start: Tall, adjoint: Tall, turn: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        """Estimate the norms of ``G @ u - value * u``, u a column of start @ turn."""
        part, ops = self._part, self._ops
        move = ops.cast_like(turn, start)
        vectors = part.A.to_device(ops.few_rows(start, self._rows)) @ move
        product = to_host(part.from_adjoint(adjoint @ move, vectors))
        missing = np.square(product - to_host(vectors) * values) / self._share
        return np.asarray(np.sqrt(missing.sum(axis=0)))
