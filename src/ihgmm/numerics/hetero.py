"""HeteroPCA: a Gram matrix whose diagonal is filled in from its other entries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ihgmm._warnings import warn
from ihgmm.matrix import HOST, Ops, Tall
from ihgmm.matrix.threads import sized_threads
from ihgmm.numerics.eigen import (
    Solver,
    block_by_features,
    check_problem,
    features_pay,
    leading_features,
    start_block,
)
from ihgmm.numerics.gram import GramOperator
from ihgmm.numerics.krylov import (
    MAX_PRODUCTS,
    Basis,
    EigenPairs,
    Order,
    block_width,
    combine,
    leading_pairs,
    most_blocks,
    orthonormal,
    progress,
    project_out,
    rounding_error,
    smallest_gap,
    whitening,
)
from ihgmm.policy import Leading, Solving


@dataclass(frozen=True, eq=False)
class Imputed:
    """A Gram matrix with an imputed diagonal, and how it was reached."""

    gram: GramOperator  # the matrix
    diagonal: Tall  # float64: estimates of the squared norms of rows without noise
    pairs: EigenPairs  # leading eigenpairs of the matrix
    ranks: tuple[int, ...]  # of the stages; the last is the number of eigenpairs
    n_updates: int  # of the diagonal, all stages together
    change: float  # about how far, in radians, the last one turned the subspace


def impute_diagonal(
    G: GramOperator,
    k: int,
    *,
    extra: int = 0,
    start: EigenPairs | None = None,
    order: Order = "algebraic",
    solver: Solver = "auto",
    tol: float = 1e-6,
    rng: np.random.Generator | None = None,
    max_iter: int = 1000,
    max_products: int = MAX_PRODUCTS,
) -> Imputed:
    """Replace the diagonal of a Gram matrix by that of its own rank-k approximation.

    Noise that differs between rows spoils the diagonal of a Gram matrix and nothing
    else; a zero diagonal does away with the noise and with the signal. HeteroPCA
    (Zhang, Cai and Wu 2022) starts from zero and repeats: find the best approximation
    of rank k, and put its diagonal on the matrix. Its deflated form (Zhou and Chen
    2025), bounds and cost are described in :doc:`/beyond-the-paper`.

    Parameters
    ----------
    G : GramOperator
        The matrix; its own diagonal is not used.
    k : int
        Rank of the approximation and number of eigenpairs, at most n.
    extra : int
        How many eigenpairs to return beyond these, as in
        :func:`~ihgmm.numerics.eigen.leading_eigenpairs`: the accuracy of the k is then
        judged by their distance from the last.
    start : EigenPairs, optional
        Those of the matrix with a zero diagonal, to start from; as many are returned.
    order : {"algebraic", "magnitude"}
        Whether the approximation is positive semi-definite, from the largest
        eigenvalues, or from those of largest absolute value, as in the papers.
    solver : {"auto", "dense", "lanczos", "block"}
        ``"dense"`` forms the matrix; the others are one and the same matrix-free
        method. ``"auto"`` takes the dense one for up to 300 rows, unless features are
        an eighth of these or fewer.
    tol : float
        Accuracy of the leading subspace, in radians: the eigenvectors are accurate to
        it, and what is missing of the diagonal turns them by less, to first order.
    rng : numpy.random.Generator, optional
        Source of the random start.
    max_iter, max_products : int
        Caps on the updates of the diagonal and on the products with the matrix; a
        ConvergenceWarning says by how much the goal was missed.

    Returns
    -------
    Imputed

    Examples
    --------
    Without noise the diagonal comes back.

    >>> import numpy as np
    >>> from ihgmm.numerics.gram import GramOperator
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0], [0.6, 0.8])
    >>> impute_diagonal(GramOperator.of(X), 1).diagonal.round(3)
    array([ 1.,  4.,  9., 16.])
    """
    n, A = G.shape[0], G.A
    count = k + extra if start is None else len(start.values)
    check_problem(n, count, order, solver)
    if max_iter < 1:
        raise ValueError(f"max_iter={max_iter} is too small; give 1 or more.")
    rng = np.random.default_rng() if rng is None else rng
    sqnorms = A.ops.widen(A.sqnorms)
    # With a trace of one, products of blocks neither over- nor underflow.
    unit = A.ops.number(A.ops.xp.sum(sqnorms)) or 1.0
    hollow = replace(G, removed=A.cast(A.sqnorms), factor=1.0 / unit)
    with A.threads(), sized_threads(A.n_entries // 2):  # many short steps
        width = max(count, k + 1 if start is not None else block_width(k))
        space = _first_space(hollow, k, count, start, order, solver, max_products, rng)
        dense, ops = space.solver == "dense", space.ops
        sqnorms = A.ops.to_host(sqnorms) if dense else sqnorms
        most = ops.keep(sqnorms / unit)
        first = _RitzPairs(space, ops.xp.zeros_like(most), width, order)
        # Of few rows all eigenvectors are known, and can be told from the next.
        found = _Imputation(first, k, k if dense else count, tol, max_iter, most)
        found.run()
        found.warn_of_caps()
    ritz, own = found.ritz, unit * G.factor
    pairs = EigenPairs(
        ritz.values[:count] * own,
        A.ops.fix_signs(A.cast(A.to_device(ritz.vectors(count))))[0],
        space.n_products,
        space.solver,
    )
    diagonal = found.diagonal * unit
    return Imputed(
        replace(G, removed=A.ops.keep(A.cast(A.to_device(sqnorms - diagonal)))),
        A.to_device(diagonal * G.factor),
        pairs,
        tuple(found.ranks),
        found.n_updates,
        found.change,
    )


def _first_space(
    hollow: GramOperator,
    k: int,
    count: int,
    start: EigenPairs | None,
    order: Order,
    solver: Solver,
    max_products: int,
    rng: np.random.Generator,
) -> _Subspace:
    """Return a subspace to begin with, or the whole space."""
    (n, p), width = hollow.A.shape, max(count, k + 1)
    # Of few rows the whole matrix is solved for each update, unless there are hardly
    # any features.
    few = solver == "auto" and n <= Solving.DENSE_ROWS
    by_features = n >= Solving.FEW_FEATURES * p if few else start is None
    by_features = by_features and features_pay(hollow.A, width)
    few = (few and not by_features) or n <= Solving.FEW_ROWS * block_width(k)
    if few or solver == "dense":
        return _WholeSpace(hollow)
    if by_features:
        features = leading_features(hollow.A, width)
        return _FeatureSpace(hollow, features, max_products, rng)
    if start is not None:
        return _Subspace(hollow, start.vectors, start.adjoint, max_products)
    _, block, _ = start_block(hollow, count, 0, order, rng)
    block = orthonormal(hollow.A.ops, block, rng)
    return _Subspace(hollow, block, None, max_products)


class _Subspace:
    """A subspace in which the diagonal can change without another look at the data."""

    solver = "block"

    def __init__(
        self, hollow: GramOperator, block: Tall, adjoint: Any, max_products: int
    ) -> None:
        self.hollow, self.ops, self._dtype = hollow, hollow.A.ops, hollow.A.dtype
        self.n_products, self.max_products = 0, max_products
        self.begin_stage()
        self._begin(block, adjoint)

    def begin_stage(self) -> None:
        """Begin to improve anew."""
        # The norm of what pairs lacked, and whether it has shrunk each time.
        self._norm, self._nearer = np.inf, True

    def _begin(self, block: Tall, adjoint: Any) -> None:
        """Take the span of an orthonormal block."""
        adjoint = self.hollow.A.adjoint(block) if adjoint is None else adjoint
        self.basis = Basis(self.ops, block, adjoint, keep=True)
        self.basis.multiply(self.hollow)
        self.n_products += 1

    def matrix(self, diagonal: Tall) -> np.ndarray:
        """Return the matrix with some diagonal, in this subspace."""
        weights = self.ops.cast_like(diagonal, self.basis.blocks[0])
        return self.basis.rayleigh + self.ops.weighted_gram(weights, *self.basis.blocks)

    def vectors(self, coefficients: np.ndarray) -> Tall:
        """Return vectors of the subspace."""
        return combine(self.ops, self.basis.blocks, coefficients)

    def residuals(self, ritz: _RitzPairs) -> Tall:
        """Return ``G @ u - value * u`` for every Ritz pair."""
        ops, vectors = self.ops, self.vectors(ritz.coefficients)
        rest = combine(self.ops, self.basis.products, ritz.coefficients)
        rest += vectors * ops.cast_like(ritz.diagonal, vectors)[:, None]
        rest -= vectors * ops.cast_like(ritz.values, vectors)
        return ops.keep(rest)

    def rounding(self, ritz: _RitzPairs) -> float:
        """Return the size of rounding errors in what pairs lack."""
        return rounding_error(ritz.values, self._dtype)

    def improve(self, ritz: _RitzPairs, judge: Callable[..., tuple]) -> bool:
        """Change the subspace where eigenvectors leave it; tell whether they do.

        ``judge`` turns what pairs lack into one norm, and says how large that may be.
        """
        if self.n_products >= self.max_products:
            return False
        rest = self.residuals(ritz)
        floor = self.rounding(ritz)
        norm, goal = judge(_norms(self.ops, rest))
        if norm <= max(goal, floor):
            return False
        self._nearer &= norm <= Solving.NEARER * self._norm
        self._norm = norm
        return self._change(ritz, rest, floor)

    def _change(self, ritz: _RitzPairs, rest: Tall, negligible: float) -> bool:
        """Enlarge the subspace by what pairs lack, unless that is negligible."""
        (n, width), basis = rest.shape, self.basis
        # Once more than in exact arithmetic: in float32 the basis would degenerate.
        rest, _ = project_out(self.ops, basis.blocks, rest)
        block = basis.orthonormal_rest(rest, negligible)
        if block.shape[1] == 0:
            return False
        if basis.width >= most_blocks(n, width) * width:
            basis.condense(ritz.coefficients)
        basis.append(block, self.hollow.A.adjoint(block))
        basis.multiply(self.hollow)
        self.n_products += 1
        return True

    def narrow(self, ritz: _RitzPairs) -> _RitzPairs:
        """Keep only what pairs span, where an update would cost more than a product.

        Without what came before, products bring less. Where that shows, it is kept.
        """
        A, width, count = self.hollow.A, self.basis.width, len(ritz.values)
        update = Solving.LAPACK * width**3 + 2.0 * A.shape[0] * width**2
        product = 4.0 * A.n_entries * count
        if len(self.basis.blocks) > 1 and update > product and self._nearer:
            self.basis.condense(ritz.coefficients)
            ritz.coefficients = np.eye(count)
        return ritz


class _FeatureSpace(_Subspace):
    """A subspace by the leading directions of features, made for some diagonal.

    Most of what noise adds to the eigenvectors is known with these directions. So there
    is little to find beyond, and after an update a new block takes one product.
    """

    def __init__(
        self,
        hollow: GramOperator,
        features: tuple[np.ndarray, np.ndarray],
        max_products: int,
        rng: np.random.Generator,
    ) -> None:
        self._features, self._rng = features, rng
        super().__init__(hollow, *self._block(hollow), max_products)

    def _block(self, G: GramOperator) -> tuple[Tall, Any]:
        """Return an orthonormal block near eigenvectors, and its adjoint if known."""
        block, adjoint = block_by_features(G, *self._features)
        ops = G.A.ops
        change, condition = whitening(ops.tall_dot(block, block))
        if condition <= Solving.CONDITION:
            return orthonormal(ops, block, self._rng), None
        block = ops.keep(block @ ops.cast_like(change, block))
        return block, adjoint @ ops.cast_like(change, adjoint)

    def _change(self, ritz: _RitzPairs, rest: Tall, negligible: float) -> bool:
        """Make the subspace anew for the diagonal, as long as that brings it nearer."""
        if len(self.basis.blocks) > 1 or not self._nearer:
            return super()._change(ritz, rest, negligible)
        A = self.hollow.A
        removed = self.ops.widen(A.sqnorms) - ritz.diagonal / self.hollow.factor
        self._begin(*self._block(replace(self.hollow, removed=A.cast(removed))))
        return True


class _WholeSpace(_Subspace):
    """The whole space: vectors are their own coefficients, and lack nothing."""

    solver = "dense"

    def __init__(self, hollow: GramOperator) -> None:
        self._matrix, self.ops = hollow.toarray(), HOST
        self._dtype = self._matrix.dtype
        self.hollow, self.n_products, self.max_products = hollow, 0, 0

    def matrix(self, diagonal: np.ndarray) -> np.ndarray:
        matrix = self._matrix.copy()
        np.fill_diagonal(matrix, diagonal)
        return matrix

    def vectors(self, coefficients: np.ndarray) -> Tall:
        return coefficients

    def residuals(self, ritz: _RitzPairs) -> Tall:
        return np.zeros_like(ritz.coefficients)


class _RitzPairs:
    """Leading eigenpairs within a subspace, given the diagonal, which is tall."""

    def __init__(
        self, space: _Subspace, diagonal: Tall, count: int, order: Order
    ) -> None:
        self.space, self.diagonal, self.order = space, diagonal, order
        matrix = space.matrix(diagonal)
        self.values, self.coefficients = leading_pairs(
            (matrix + matrix.T) / 2, min(count, len(matrix)), order
        )
        # Eigenvalues as they are compared: what leads is not negative.
        self.sizes = np.abs(self.values) if order == "magnitude" else self.values

    def with_diagonal(self, diagonal: Tall) -> _RitzPairs:
        """Return the eigenpairs with another diagonal."""
        return _RitzPairs(self.space, diagonal, len(self.values), self.order)

    def vectors(self, k: int) -> Tall:
        """Return the first k eigenvectors."""
        return self.space.vectors(self.coefficients[:, :k])

    def fitted(self, rank: int) -> tuple[Tall, Tall]:
        """Return the diagonal of the approximation of some rank, and the leverages.

        A leverage is a row's squared length in the leading eigenvectors that count.
        """
        ops = self.space.ops
        vectors = ops.widen(self.vectors(rank))
        counts = np.arange(rank) < self.signal(rank)
        weights = np.column_stack([self._used(rank), counts])
        squares = ops.xp.square(vectors)
        both = ops.keep(squares @ ops.to_device(weights, squares))
        return both[:, 0], both[:, 1]

    def _used(self, rank: int) -> np.ndarray:
        """Return the eigenvalues of the approximation of some rank."""
        values = self.values[:rank]
        return values if self.order == "magnitude" else np.maximum(values, 0.0)

    def misfit(self, rank: int) -> float:
        """Return the squared distance to that approximation, up to a constant."""
        total = _square_sum(self.space.ops, self.diagonal)
        return total - float(np.sum(self._used(rank) ** 2))

    def signal(self, rank: int) -> int:
        """Return how many of the leading pairs, one at least, are not negligible.

        Eigenvalues below a hundred-millionth of the largest are rounding.
        """
        return max(1, int((self.sizes[:rank] > 1e-8 * self.sizes[0]).sum()))

    def residual(self, rank: int) -> float:
        """Return the largest norm of what leading pairs that count lack."""
        norms = _norms(self.space.ops, self.space.residuals(self))
        return float(norms[: self.signal(rank)].max())


class _Imputation:
    """A diagonal, between zero and ``most``, that settles stage by stage."""

    def __init__(
        self,
        ritz: _RitzPairs,
        k: int,
        count: int,
        tol: float,
        max_iter: int,
        most: Tall,
    ) -> None:
        self.ritz, self.diagonal, self._count = ritz, ritz.diagonal, count
        self.k, self.tol, self.max_iter, self.most = k, tol, max_iter, most
        self.ranks: list[int] = []
        self.n_updates, self.change, self.settled = 0, np.inf, False

    def run(self) -> None:
        """Go through all stages."""
        space, k, rank = self.ritz.space, self.k, 0
        # Ranks, and stages before the last, need one digit only.
        rough = 0.1
        while rank < k:
            ritz = self.ritz
            while space.improve(ritz, partial(self._roughly, ritz, rough)):
                ritz = ritz.with_diagonal(self.diagonal)
            rank = _next_rank(ritz.sizes, rank, k)
            space.begin_stage()
            self.ranks.append(rank)
            accuracy = self.tol if rank == k else max(self.tol, rough)
            self._settle(ritz, rank, accuracy)
            while space.improve(
                self.ritz, partial(self._progress, self.ritz, rank, accuracy)
            ):
                ritz = space.narrow(self.ritz.with_diagonal(self.diagonal))
                self._settle(ritz, rank, accuracy)
            self.ritz = self.ritz.with_diagonal(self.diagonal)

    def _roughly(
        self, ritz: _RitzPairs, share: float, norms: np.ndarray
    ) -> tuple[float, float]:
        """Judge what pairs lack by the size of the last one that counts."""
        count = ritz.signal(self.k)
        return float(norms[:count].max()), share * float(ritz.sizes[count - 1])

    def _progress(
        self, ritz: _RitzPairs, rank: int, accuracy: float, norms: np.ndarray
    ) -> tuple[float, float]:
        """Judge what pairs lack by the angle that it turns the leading ones by."""
        if rank == self.k < self._count:
            dtype = ritz.space.hollow.A.dtype
            norms = norms[: self._count]
            return progress(ritz.values, norms, rank, accuracy, dtype, True)
        largest = float(norms[: ritz.signal(rank)].max())
        return largest, accuracy * self._gap(ritz, rank)

    def _gap(self, ritz: _RitzPairs, rank: int) -> float:
        """Return what separates the leading eigenvalues that count from the next.

        Where eigenvectors beyond are wanted too, that is the last of these: a turn
        between neighbours among them hardly matters.
        """
        last = ritz.signal(rank) - 1
        following = self._count - 1 if self._count > self.k else last + 1
        sizes = np.append(np.maximum(ritz.sizes, 0.0), 0.0)
        gap = max(sizes[last] - sizes[following], smallest_gap(sizes[last]))
        return float(gap) or 1.0

    def _settle(self, ritz: _RitzPairs, rank: int, accuracy: float) -> None:
        """Update the diagonal, within the subspace, until it turns no eigenvector."""
        # Steps that shrink by less are slow; before any is seen, expect the slowest.
        slow, slowest = 0.5, 0.99
        ops = ritz.space.ops
        diagonal, before, last = ritz.diagonal, np.inf, None
        self.settled = False
        while self.n_updates < self.max_iter:
            self.n_updates += 1
            diagonal, leverages = ritz.fitted(rank)
            diagonal = ops.keep(ops.clip(diagonal, 0.0, self.most))
            step = diagonal - ritz.diagonal
            # A change E of the matrix turns the subspace U by norm(E @ U) / gap.
            turned = ops.number(ops.xp.sum(step**2 * leverages))
            gap = self._gap(ritz, rank)
            self.change = float(np.sqrt(turned)) / gap
            # Steps shrink at a steady rate, which shows what is still to come.
            rate = min(self.change / before, slowest) if before < np.inf else slowest
            goal = max(accuracy, ritz.space.rounding(ritz) / gap)
            if self.change * max(1.0, rate / (1.0 - rate)) <= goal:
                self.settled = True
                break
            if last is not None and rate > slow and self.n_updates < self.max_iter:
                # Few rows that dominate settle slowly: look ahead along the last two
                # steps, and go there if the approximation is better than here.
                bend, pace = step - last, np.sqrt(_square_sum(ops, last))
                ahead = float(pace / max(np.sqrt(_square_sum(ops, bend)), 1e-6 * pace))
                far = ritz.diagonal - last + 2 * ahead * last + ahead**2 * bend
                trial = ritz.with_diagonal(ops.keep(ops.clip(far, 0.0, self.most)))
                self.n_updates += 1
                if trial.misfit(rank) < ritz.misfit(rank):
                    ritz, diagonal, before, last = trial, trial.diagonal, np.inf, None
                    continue
            ritz, before, last = ritz.with_diagonal(diagonal), self.change, step
        self.ritz, self.diagonal = ritz, diagonal

    def warn_of_caps(self) -> None:
        """Warn when a cap was reached."""
        ritz, space, k, tol = self.ritz, self.ritz.space, self.k, self.tol
        remedy = (
            f"The data may hold fewer than {k} clusters; otherwise raise tol or take "
            'gram="hollow".'
        )
        if not self.settled:
            warn(
                f"The diagonal did not settle in {self.n_updates} updates: the last "
                f"one turned the {k} leading eigenvectors by {self.change:.1e}, and "
                f"{tol:.1e} was asked for. {remedy}",
                ConvergenceWarning,
            )
            return
        goal = max(tol * self._gap(ritz, k), space.rounding(ritz))
        if 0 < space.max_products <= space.n_products and ritz.residual(k) > goal:
            largest = abs(ritz.values[0])
            warn(
                f"The {k} leading eigenpairs did not converge in {space.n_products} "
                f"products: residual {ritz.residual(k) / largest:.1e} of the largest "
                f"eigenvalue, {goal / largest:.1e} was asked for. {remedy}",
                ConvergenceWarning,
            )


def _next_rank(sizes: np.ndarray, rank: int, k: int) -> int:
    """Return the rank of the next stage, given eigenvalues, leading first."""
    sizes = np.append(sizes, 0.0)
    for r in range(k, rank, -1):
        last, following = sizes[r - 1], sizes[r]
        within = last > 0 and sizes[rank] <= Leading.STAGE * last
        if within and last - following >= last / k:
            return r
    return k


def _norms(ops: Ops, columns: Tall) -> np.ndarray:
    """Return the norm of each column."""
    squares = ops.xp.sum(ops.xp.square(ops.widen(columns)), axis=0)
    return np.asarray(np.sqrt(ops.to_host(squares)))


def _square_sum(ops: Ops, values: Tall) -> float:
    return ops.number(ops.xp.sum(values * values))
