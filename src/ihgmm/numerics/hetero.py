"""HeteroPCA: a Gram matrix whose diagonal is filled in from its other entries."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from ihgmm._warnings import warn
from ihgmm.matrix import Tall, namespace, to_host
from ihgmm.matrix.tall import cast_like, fix_signs, to_device, weighted_gram, widen
from ihgmm.numerics.eigen import Solver, check_problem, start_block
from ihgmm.numerics.gram import GramOperator
from ihgmm.numerics.krylov import (
    MAX_PRODUCTS,
    Basis,
    EigenPairs,
    Order,
    block_width,
    combine,
    leading_order,
    most_blocks,
    orthonormal,
    project_out,
    rounding_error,
    smallest_gap,
)


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
    max_iter: int = 1000,
    max_products: int = MAX_PRODUCTS,
    quiet: bool = False,
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
        method. ``"auto"`` takes the dense one for up to 300 rows.
    tol : float
        Accuracy of the leading subspace, in radians: the eigenvectors are accurate to
        it, and what is missing of the diagonal turns them by less, to first order.
    rng : numpy.random.Generator, optional
        Source of the random start.
    max_iter, max_products : int
        Caps on the updates of the diagonal and on the products with the matrix.
    quiet : bool
        Do not warn when a cap is reached.

    Returns
    -------
    Imputed

    Warns
    -----
    ConvergenceWarning
        When a cap is reached; the message gives the change or the residual.

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
    >>> from ihgmm.numerics.gram import GramOperator
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0], [0.6, 0.8])
    >>> impute_diagonal(GramOperator.of(X), 1).diagonal.round(3)
    array([ 1.,  4.,  9., 16.])
    """
    n, A = G.shape[0], G.A
    check_problem(n, k, order, solver)
    if max_iter < 1:
        raise ValueError(f"max_iter={max_iter} is too small; give 1 or more.")
    if rng is None:
        rng = np.random.default_rng()
    sqnorms = to_host(A.sqnorms)
    # With a trace of one, products of blocks neither over- nor underflow.
    unit = float(sqnorms.sum()) or 1.0
    hollow = replace(G, removed=A.cast(A.sqnorms), factor=1.0 / unit)
    # Few rows: a full eigendecomposition for each update is cheaper.
    few = n <= max(3 * block_width(k), 300 if solver == "auto" else 0)
    dense = few or solver == "dense"
    with A.threads():
        space: _Subspace
        if dense:
            space = _WholeSpace(hollow)
        else:
            start = orthonormal(start_block(hollow, k, order, rng)[0], rng)
            space = _Subspace(hollow, start, max_products)
        width = k + 1 if dense else block_width(k)
        stages = _Stages(space, k, order, tol, max_iter, sqnorms / unit)
        ranks, state = stages.run(width)
        if not quiet:
            _warn_of_caps(state, space, k, tol)
    ritz, own = state.ritz, unit * G.factor
    pairs = EigenPairs(
        ritz.values[:k] * own,
        fix_signs(A.cast(ritz.vectors(k))),
        ritz.residual(k) * own,
        space.n_products,
        "dense" if dense else "block",
    )
    diagonal = state.diagonal * unit
    return Imputed(
        replace(G, removed=A.cast(sqnorms - diagonal)),
        A.to_device(diagonal * G.factor),
        pairs,
        ranks,
        state.n_updates,
        state.change,
    )


class _Subspace:
    """A subspace in which the diagonal can change without another look at the data."""

    def __init__(self, hollow: GramOperator, block: Tall, max_products: int) -> None:
        self.hollow = hollow
        self.basis = Basis(block, hollow.A.adjoint(block), keep=True)
        self.basis.multiply(hollow)
        self.n_products, self.max_products = 1, max_products

    def matrix(self, diagonal: np.ndarray) -> np.ndarray:
        """Return the matrix with some diagonal, in this subspace."""
        weights = cast_like(diagonal, self.basis.blocks[0])
        return self.basis.rayleigh + weighted_gram(self.basis.blocks, weights)

    def vectors(self, coefficients: np.ndarray) -> Tall:
        """Return vectors of the subspace."""
        return combine(self.basis.blocks, coefficients)

    def residuals(self, ritz: _RitzPairs) -> Tall:
        """Return ``G @ u - value * u`` for every Ritz pair."""
        vectors = self.vectors(ritz.coefficients)
        rest = combine(self.basis.products, ritz.coefficients)
        rest += vectors * cast_like(ritz.diagonal, vectors)[:, None]
        rest -= vectors * cast_like(ritz.values, vectors)
        return rest

    def enlarge(self, ritz: _RitzPairs, rank: int, goal: float) -> bool:
        """Enlarge the subspace where eigenvectors leave it; tell whether they do."""
        if self.n_products >= self.max_products:
            return False
        rest, basis = self.residuals(ritz), self.basis
        floor = rounding_error(ritz.values, self.hollow.dtype)
        if _largest_norm(rest[:, : ritz.signal(rank)]) <= max(goal, floor):
            return False
        n, width = rest.shape
        # Once more than in exact arithmetic: in float32 the basis would degenerate.
        rest, _ = project_out(basis.blocks, rest)
        block = basis.orthonormal_rest(rest, floor)
        if block.shape[1] == 0:
            return False
        if basis.width >= most_blocks(n, width) * width:
            basis.condense(ritz.coefficients)
        basis.append(block, self.hollow.A.adjoint(block))
        basis.multiply(self.hollow)
        self.n_products += 1
        return True


class _WholeSpace(_Subspace):
    """The whole space: the matrix itself."""

    def __init__(self, hollow: GramOperator) -> None:
        self._matrix = hollow.toarray()
        self.hollow, self.n_products, self.max_products = hollow, 0, 0

    def matrix(self, diagonal: np.ndarray) -> np.ndarray:
        """Return the matrix with some diagonal."""
        matrix = self._matrix.copy()
        np.fill_diagonal(matrix, diagonal)
        return matrix

    def vectors(self, coefficients: np.ndarray) -> Tall:
        """Return vectors, which are their own coefficients."""
        return coefficients

    def residuals(self, ritz: _RitzPairs) -> Tall:
        """Return zeros: eigenpairs of the whole lack nothing."""
        return np.zeros_like(ritz.coefficients)


@dataclass(frozen=True, eq=False)
class _RitzPairs:
    """Leading eigenpairs within a subspace, given the diagonal, on the host."""

    space: _Subspace
    diagonal: np.ndarray
    values: np.ndarray
    coefficients: np.ndarray
    order: Order

    @classmethod
    def of(
        cls, space: _Subspace, diagonal: np.ndarray, count: int, order: Order
    ) -> _RitzPairs:
        """Return leading eigenpairs of the matrix with some diagonal."""
        matrix = space.matrix(diagonal)
        m = len(matrix)
        count = min(count, m)
        subset = (m - count, m - 1) if order == "algebraic" else None
        values, vectors = eigh((matrix + matrix.T) / 2, subset_by_index=subset)
        lead = leading_order(values, order)[:count]
        return cls(space, diagonal, values[lead], vectors[:, lead], order)

    def with_diagonal(self, diagonal: np.ndarray) -> _RitzPairs:
        """Return the eigenpairs with another diagonal."""
        return self.of(self.space, diagonal, len(self.values), self.order)

    @property
    def sizes(self) -> np.ndarray:
        """Eigenvalues as they are compared: what leads is not negative."""
        return np.abs(self.values) if self.order == "magnitude" else self.values

    def vectors(self, k: int) -> Tall:
        """Return the first k eigenvectors."""
        return self.space.vectors(self.coefficients[:, :k])

    def fitted(self, rank: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the diagonal of the approximation of some rank, and the leverages.

        A leverage is a row's squared length in the leading eigenvectors that count.
        """
        vectors = widen(self.vectors(rank))
        counts = np.arange(rank) < self.signal(rank)
        weights = np.column_stack([self._used(rank), counts])
        squares = namespace(vectors).square(vectors)
        diagonal, leverages = to_host(squares @ to_device(weights, squares)).T
        return diagonal, leverages

    def _used(self, rank: int) -> np.ndarray:
        """Return the eigenvalues of the approximation of some rank."""
        values = self.values[:rank]
        return values if self.order == "magnitude" else np.maximum(values, 0.0)

    def misfit(self, rank: int) -> float:
        """Return the squared distance to that approximation, up to a constant."""
        return float(self.diagonal @ self.diagonal - np.sum(self._used(rank) ** 2))

    def signal(self, rank: int) -> int:
        """Return how many of the leading pairs, one at least, are not negligible.

        Eigenvalues below a hundred-millionth of the largest are rounding.
        """
        return max(1, int((self.sizes[:rank] > 1e-8 * self.sizes[0]).sum()))

    def last(self, rank: int) -> float:
        """Return the last of the leading eigenvalues that count."""
        return float(self.sizes[self.signal(rank) - 1])

    def gap(self, rank: int) -> float:
        """Return what separates the leading eigenvalues that count from the next."""
        last = self.signal(rank) - 1
        sizes = np.append(np.maximum(self.sizes, 0.0), 0.0)
        gap = max(sizes[last] - sizes[last + 1], smallest_gap(sizes[last]))
        return float(gap) or 1.0

    def residual(self, rank: int) -> float:
        """Return the largest norm of what leading pairs that count lack."""
        return _largest_norm(self.space.residuals(self)[:, : self.signal(rank)])


@dataclass(frozen=True, eq=False)
class _State:
    """A diagonal and the eigenpairs that it comes from."""

    ritz: _RitzPairs
    diagonal: np.ndarray
    n_updates: int
    change: float
    settled: bool


@dataclass(frozen=True, eq=False)
class _Stages:
    """A diagonal, between zero and ``most``, that settles stage by stage."""

    space: _Subspace
    k: int
    order: Order
    tol: float
    max_iter: int
    most: np.ndarray

    def run(self, width: int) -> tuple[tuple[int, ...], _State]:
        """Return the ranks of the stages and the last state."""
        space, k = self.space, self.k
        # Ranks, and stages before the last, need one digit only.
        rough = 0.1
        zeros = np.zeros(len(self.most))
        ritz = _RitzPairs.of(space, zeros, width, self.order)
        state = _State(ritz, zeros, 0, np.inf, False)
        ranks: tuple[int, ...] = ()
        rank = 0
        while rank < k:
            while space.enlarge(ritz, k, rough * ritz.last(k)):
                ritz = _RitzPairs.of(space, state.diagonal, width, self.order)
            rank = _next_rank(ritz.sizes, rank, k)
            ranks += (rank,)
            accuracy = self.tol if rank == k else max(self.tol, rough)
            state = self._settle(replace(state, ritz=ritz), rank, accuracy)
            while space.enlarge(state.ritz, rank, accuracy * state.ritz.gap(rank)):
                ritz = _RitzPairs.of(space, state.diagonal, width, self.order)
                state = self._settle(replace(state, ritz=ritz), rank, accuracy)
            ritz = state.ritz.with_diagonal(state.diagonal)
        return ranks, replace(state, ritz=ritz)

    def _settle(self, state: _State, rank: int, accuracy: float) -> _State:
        """Update the diagonal, within the subspace, until it turns no eigenvector."""
        # Steps that shrink by less are slow; before any is seen, expect the slowest.
        slow, slowest = 0.5, 0.99
        ritz, n_updates, most = state.ritz, state.n_updates, self.most
        diagonal, change, before, last = ritz.diagonal, state.change, np.inf, None
        while n_updates < self.max_iter:
            n_updates += 1
            diagonal, leverages = ritz.fitted(rank)
            diagonal = np.clip(diagonal, 0.0, most)
            step = diagonal - ritz.diagonal
            # A change E of the matrix turns the subspace U by norm(E @ U) / gap.
            change = float(np.sqrt(step**2 @ leverages)) / ritz.gap(rank)
            # Steps shrink at a steady rate, which shows what is still to come.
            rate = min(change / before, slowest) if before < np.inf else slowest
            if change * max(1.0, rate / (1.0 - rate)) <= accuracy:
                return _State(ritz, diagonal, n_updates, change, True)
            if last is not None and rate > slow and n_updates < self.max_iter:
                # Few rows that dominate settle slowly: look ahead along the last two
                # steps, and go there if the approximation is better than here.
                bend, pace = step - last, np.linalg.norm(last)
                ahead = pace / max(np.linalg.norm(bend), 1e-6 * pace)
                far = ritz.diagonal - last + 2 * ahead * last + ahead**2 * bend
                trial = ritz.with_diagonal(np.clip(far, 0.0, most))
                n_updates += 1
                if trial.misfit(rank) < ritz.misfit(rank):
                    ritz, diagonal, before, last = trial, trial.diagonal, np.inf, None
                    continue
            ritz, before, last = ritz.with_diagonal(diagonal), change, step
        return _State(ritz, diagonal, n_updates, change, False)


def _next_rank(sizes: np.ndarray, rank: int, k: int) -> int:
    """Return the rank of the next stage, given eigenvalues, leading first."""
    sizes = np.append(sizes, 0.0)
    for r in range(k, rank, -1):
        last, following = sizes[r - 1], sizes[r]
        within = last > 0 and sizes[rank] <= 4.0 * last
        if within and last - following >= last / k:
            return r
    return k


def _largest_norm(columns: Tall) -> float:
    """Return the largest norm of a column."""
    xp = namespace(columns)
    return float(np.sqrt(float(xp.max(xp.sum(xp.square(widen(columns)), axis=0)))))


def _warn_of_caps(state: _State, space: _Subspace, k: int, tol: float) -> None:
    """Warn when a cap was reached."""
    ritz = state.ritz
    remedy = (
        f"The data may hold fewer than {k} clusters; otherwise raise tol or take "
        'gram="hollow".'
    )
    if not state.settled:
        warn(
            f"The diagonal did not settle in {state.n_updates} updates: the last one "
            f"turned the {k} leading eigenvectors by {state.change:.1e}, and {tol:.1e} "
            f"was asked for. {remedy}",
            ConvergenceWarning,
        )
        return
    goal = max(tol * ritz.gap(k), rounding_error(ritz.values, space.hollow.dtype))
    if 0 < space.max_products <= space.n_products and ritz.residual(k) > goal:
        largest = abs(ritz.values[0])
        warn(
            f"The {k} leading eigenpairs did not converge in {space.n_products} "
            f"products: residual {ritz.residual(k) / largest:.1e} of the largest "
            f"eigenvalue, {goal / largest:.1e} was asked for. {remedy}",
            ConvergenceWarning,
        )
