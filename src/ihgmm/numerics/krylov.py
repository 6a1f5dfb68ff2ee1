"""One Ritz engine: a symmetric matrix in a subspace that grows block by block.

The eigensolver, the imputation of a diagonal and the eigenvalues of sign-flipped data
all grow a :class:`Basis` and read eigenpairs off the matrix in it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from ihgmm._warnings import warn
from ihgmm.matrix import Ops, Tall
from ihgmm.numerics.gram import GramOperator
from ihgmm.policy import Leading, Solving

Order = Literal["algebraic", "magnitude"]
MAX_PRODUCTS = 100
"""Products with G after which a solver gives up: noise alone may need more."""


@dataclass(frozen=True)
class EigenPairs:
    """Leading eigenpairs and how they were reached.

    Examples
    --------
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.matrix import as_matrix
    >>> from ihgmm.numerics.gram import GramOperator
    >>> from ihgmm.numerics.eigen import leading_eigenpairs
    >>> X, kinds = make_ihgmm(100, 20, 3, random_state=0)
    >>> pairs = leading_eigenpairs(GramOperator.of(as_matrix(X), "hollow"), 3)
    >>> pairs.vectors.shape, pairs.solver
    ((100, 3), 'dense')
    """

    values: np.ndarray  # float64, leading first
    vectors: Tall  # orthonormal, in columns, the entry of largest magnitude positive
    n_iter: int  # products of G with a block ("block") or vector ("lanczos"); else 0
    solver: str  # the solver that was used
    adjoint: Any = None  # A.T @ vectors, where the solver knows it
    linear: np.ndarray | None = None  # W with A @ W = vectors, where it knows one


def leading_order(values: np.ndarray, order: Order) -> np.ndarray:
    """Return the positions of eigenvalues, leading first."""
    sizes = np.abs(values) if order == "magnitude" else values
    return np.argsort(-sizes, kind="stable")


def ritz_pairs(rayleigh: np.ndarray, order: Order) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenpairs of a small symmetric matrix, leading first."""
    if len(rayleigh) == 1:  # for which old versions of SciPy fail
        return rayleigh[0].copy(), np.ones_like(rayleigh)
    # In their own precision: NumPy would take double.
    values, vectors = eigh(rayleigh, driver="evd", check_finite=False)
    lead = leading_order(values, order)
    return values[lead], vectors[:, lead]


def leading_pairs(
    matrix: np.ndarray, count: int, order: Order = "algebraic"
) -> tuple[np.ndarray, np.ndarray]:
    """Return some eigenpairs of a symmetric matrix, leading first.

    Where few are asked for, this takes a fraction of the time of all.
    """
    n, values = len(matrix), np.empty(0)
    if order == "algebraic" and Solving.SOME * count < n:
        # Where a multiple eigenvalue is cut, LAPACK can fail, or lose all.
        with suppress(LinAlgError):
            values, vectors = eigh(matrix, subset_by_index=(n - count, n - 1))
    if len(values) < count:
        values, vectors = ritz_pairs(matrix, order)
        return values[:count], vectors[:, :count]
    lead = np.arange(count)[::-1]
    return values[lead], vectors[:, lead]


def rounded_width(count: int) -> int:
    """Return a multiple of eight: so many columns products run best with."""
    return -(-count // 8) * 8


def block_width(k: int) -> int:
    """Return the width of a block for k eigenvectors.

    Five columns more than wanted make the last of them converge.
    """
    return rounded_width(k + 5)


def most_blocks(n_rows: int, width: int) -> int:
    """Return how many blocks a basis may hold before it is condensed.

    Four at least, or restarts would undo what blocks bring; 16 at most, or small
    problems would cost more than the products; within 64 MB where rows are many. Wide
    blocks are two, or to solve the matrix in the basis would cost more.
    """
    most = int(np.clip(2**23 // (n_rows * width), 4, 16))
    return max(2, min(most, Solving.BASIS // width))


def rounding_error(values: np.ndarray, dtype: np.dtype) -> float:
    """Return the size of rounding errors in a product with G."""
    return Solving.ROUNDING * float(np.finfo(dtype).eps * np.abs(values).max())


class Product(NamedTuple):
    """A product of G with the last block of a basis."""

    rest: Tall  # what of it lies outside the basis
    gram: Any  # rest.T @ rest; None where products are kept
    column: np.ndarray  # the coefficients of what lies in the basis
    back: Any  # the adjoint of the whole, where it is taken along, else None


class Basis:
    """An orthonormal basis of a subspace, and a symmetric matrix G in it.

    It begins with one block and, where G is that of data, its adjoint ``A.T @ block``;
    so do all that follow. With ``take_along``, adjoints of products are taken along:
    data that is not in memory is then read once for both, and in memory that would be
    in vain after the last one. With ``keep``, the products of G with the blocks are
    kept instead of adjoints.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import HOST
    >>> from ihgmm.numerics.krylov import Basis, orthonormal
    >>> rng = np.random.default_rng(0)
    >>> block = orthonormal(HOST, rng.standard_normal((100, 4)), rng)
    >>> basis = Basis(HOST, block)
    >>> basis.width
    4
    """

    def __init__(
        self,
        ops: Ops,
        block: Tall,
        adjoint: Any = None,
        *,
        take_along: bool = False,
        keep: bool = False,
    ) -> None:
        self.ops = ops
        self.blocks = [block]  # orthonormal to each other
        self.products: list[Tall] = []  # G times the blocks, where they are kept
        self.rayleigh = np.zeros((0, 0))  # G in this basis, as far as it is known
        self.adjoint = adjoint
        self.take_along = take_along
        self._keep = keep
        self._adjoints = [] if keep else [adjoint]
        self._drift = 0.0

    @property
    def width(self) -> int:
        """How many columns the basis has."""
        return sum(block.shape[1] for block in self.blocks)

    def multiply(self, G: GramOperator) -> Product:
        """Multiply the last block by G, and take the product up in ``rayleigh``."""
        last, back = self.blocks[-1], None
        if self.take_along:
            product, back = G.with_adjoint(self.adjoint, last)
        else:
            product = G.from_adjoint(self.adjoint, last)
        return self.take_up(product, back)

    def take_up(self, product: Tall, back: Any = None) -> Product:
        """Take up the product of G with the last block, which is overwritten."""
        ops, gram = self.ops, None
        if self._keep:
            self.products.append(product)
            column = ops.basis_dot(product, *self.blocks)
        else:
            product, column = project_out(ops, self.blocks, product)
            product = ops.keep(product)
            gram = ops.tall_dot(product, product)
        old, own = column[: len(self.rayleigh)], column[len(self.rayleigh) :]
        self.rayleigh = np.block([[self.rayleigh, old], [old.T, (own + own.T) / 2]])
        return Product(product, gram, column, back)

    def next_block(
        self, product: Product, G: GramOperator, values: np.ndarray, tol: float
    ) -> tuple[Tall, Any] | None:
        """Return the block after the last, orthonormal to all, and its adjoint.

        None where a product has brought nothing new. ``values`` are those of Ritz.
        """
        noise = rounding_error(values, G.A.dtype)
        if self.take_along:
            # Errors of an adjoint grow as a product shrinks to what is new in it.
            new = float(np.sqrt(np.diag(product.gram).min()))
            self._drift = (self._drift * abs(values[0]) + noise) / max(new, noise)
            if self._drift < 0.1 * tol:
                pair = self._next_pair(product)
                if pair is not None:
                    return pair
        self._drift = 0.0
        block = self.orthonormal_rest(product.rest, noise, product.gram)
        return (block, G.A.adjoint(block)) if block.shape[1] else None

    def orthonormal_rest(
        self, rest: Tall, negligible: float, gram: np.ndarray | None = None
    ) -> Tall:
        """Turn what is left of a product into a block orthonormal to the basis."""
        block = orthonormal(self.ops, rest, negligible=negligible, gram=gram)
        if block.shape[1]:
            block, _ = project_out(self.ops, self.blocks, block)
            block = orthonormal(self.ops, block)
        return block

    def adjoint_of_rest(self, back: Any, column: np.ndarray) -> Any:
        """Return the adjoint of a block from which its part in the basis was taken."""
        return back - combine(self.ops, self._adjoints, column)

    def _next_pair(self, product: Product) -> tuple[Tall, Any] | None:
        """Do the same to the adjoint of the product as to the product.

        None where columns depend on others so nearly that their adjoint would be lost
        in rounding.
        """
        ops, rest, gram = self.ops, product.rest, product.gram
        back = self.adjoint_of_rest(product.back, product.column)
        for last in (False, True):
            change, condition = whitening(gram)
            if condition <= Solving.CONDITION:
                return None
            rest = ops.keep(rest @ ops.cast_like(change, rest))
            back = back @ ops.cast_like(change, back)
            if not last:
                rest, column = project_out(ops, self.blocks, rest)
                rest = ops.keep(rest)
                back = self.adjoint_of_rest(back, column)
                gram = ops.tall_dot(rest, rest)
        return rest, back

    def append(self, block: Tall, adjoint: Any) -> None:
        """Take up another block, orthonormal to all."""
        self.blocks.append(block)
        self.adjoint = adjoint
        if not self._keep:
            self._adjoints.append(adjoint)

    def adjoint_of(self, coefficients: np.ndarray) -> Any:
        """Return the adjoint of some vectors of the subspace."""
        return combine(self.ops, self._adjoints, coefficients)

    def condense(self, coefficients: np.ndarray) -> None:
        """Keep only some orthonormal vectors of the subspace, as one block."""
        self.blocks = [combine(self.ops, self.blocks, coefficients)]
        if self._keep:
            self.products = [combine(self.ops, self.products, coefficients)]
        else:
            self._adjoints = [combine(self.ops, self._adjoints, coefficients)]
        self.rayleigh = coefficients.T @ self.rayleigh @ coefficients


def block_krylov(
    G: GramOperator,
    basis: Basis,
    k: int,
    order: Order,
    tol: float,
    *,
    extra: int = 0,
    max_products: int = MAX_PRODUCTS,
    signal_only: bool = False,
    quiet: bool = False,
    say: Callable[[str], None] | None = None,
) -> EigenPairs:
    """Run the restarted block Krylov method from the first block of a basis.

    Eigenpairs beyond the k are looked for where those that come along show weight. It
    gives up after ``max_products`` products with G, with a warning unless ``quiet``.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm import make_ihgmm
    >>> from ihgmm.matrix import as_matrix
    >>> from ihgmm.numerics.gram import GramOperator
    >>> from ihgmm.numerics.krylov import Basis, block_krylov, orthonormal
    >>> rng = np.random.default_rng(0)
    >>> X, kinds = make_ihgmm(100, 20, 3, random_state=0)
    >>> G = GramOperator.of(as_matrix(X), "hollow")
    >>> block = orthonormal(G.A.ops, rng.standard_normal((100, 8)), rng)
    >>> basis = Basis(G.A.ops, block, G.A.adjoint(block))
    >>> pairs = block_krylov(G, basis, 3, "algebraic", 1e-8)
    >>> exact = np.linalg.eigvalsh(G.toarray())[::-1][:3]
    >>> bool(np.allclose(pairs.values, exact))
    True
    """
    width = block_width(k)
    most = most_blocks(max(G.A.shape), width)
    for n_iter in range(1, max_products + 1):
        product = basis.multiply(G)
        values, ritz = ritz_pairs(basis.rayleigh, order)
        count = min(k + extra, len(values))
        # G @ basis = basis @ rayleigh + rest @ (last rows): what a Ritz pair lacks.
        last_rows = ritz[-basis.blocks[-1].shape[1] :, :count]
        squares = np.einsum("ik,ik->k", last_rows, product.gram @ last_rows)
        residuals = np.sqrt(np.maximum(squares, 0.0))
        residual, goal = progress(values, residuals, k, tol, G.A.dtype, signal_only)
        if say is not None:
            products = f"{n_iter} product{'s' * (n_iter != 1)}"
            far = residual / goal if goal > 0 else 0.0
            say(f"{products}, residual {far:.2g} of the goal")
        done = residual <= goal and all_there(values, k, extra)
        if done or n_iter == max_products:
            break
        following = basis.next_block(product, G, values, tol)
        if following is None:  # the basis spans an invariant subspace
            residual = 0.0
            break
        if len(basis.blocks) == most:
            basis.condense(ritz[:, : max(width, count)])
        basis.append(*following)
    if residual > goal and not quiet:
        largest = abs(values[0])
        warn(
            f"The {k} leading eigenpairs did not converge in {n_iter} products: "
            f"residual {residual / largest:.1e} of the largest eigenvalue, "
            f"{goal / largest:.1e} was asked for. The data may hold fewer than "
            f'{k} clusters; otherwise raise tol or take solver="lanczos".',
            ConvergenceWarning,
        )
    del product  # it is as large as a block
    vectors = combine(basis.ops, basis.blocks, ritz[:, :count])
    adjoint = basis.adjoint_of(ritz[:, :count])
    return EigenPairs(values[:count], vectors, n_iter, "block", adjoint)


def progress(
    values: np.ndarray,
    residuals: np.ndarray,
    k: int,
    tol: float,
    dtype: np.dtype,
    signal_only: bool,
) -> tuple[float, float]:
    """Return the largest residual that matters and the one to reach.

    At that residual the subspace of the k leading eigenvectors is accurate to ``tol``:
    across a gap, a residual turns eigenvectors by its share of the gap. With more than
    k, their weights fall evenly (squared) from the k-th eigenvalue to the last, and a
    turn between two of them matters as much as their weights differ: that is the gap.
    Residuals of eigenvectors beyond are weighted as these are, and need one digit.
    """
    count = len(residuals)
    weights = signal_weights(values[:count], k)[k:]
    beyond = float(np.max(weights * residuals[k:], initial=0.0))
    rough = 0.1 * (values[k - 1] - values[count - 1])
    if signal_only:
        # A true eigenvalue lies within a residual of its estimate. What cannot exceed a
        # hundred-thousandth of the largest eigenvalue is not signal.
        lead = values[:k]
        may_be = np.flatnonzero((lead > 0) | (lead + residuals[:k] > 1e-5 * lead[0]))
        k = int(may_be[-1]) + 1 if len(may_be) else 1
    last = abs(values[k - 1])
    gap = abs(values[k - 1] - values[max(k, count - 1)]) if len(values) > k else last
    goal = tol * max(gap, smallest_gap(last))
    goal = float(max(goal, rounding_error(values, dtype)))
    residual = float(residuals[:k].max())
    return max(residual, beyond * goal / rough if rough > 0 else 0.0), goal


def signal_weights(
    values: np.ndarray, k: int, noise: float | None = None
) -> np.ndarray:
    """Return weights of eigenvectors: 1 for the k leading ones, less for those beyond.

    What counts is how far an eigenvalue stands above that of ``noise``, which is the
    last if none is given, as a share of how far the k-th does. Where the data follow
    the model, those beyond are noise: close to each other, with shares of a hundredth
    or less. So a small share has no weight, and eigenvectors beyond are those of the
    paper. Where clusters have a shape of their own, shares of a half and more are
    common, and these directions count.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.numerics.krylov import signal_weights
    >>> signal_weights(np.array([10.0, 8.0, 2.0, 1.9, 1.8]), 2).round(2)  # a clear gap
    array([1., 1., 0., 0., 0.])
    >>> signal_weights(np.array([10.0, 8.0, 7.0, 4.0, 1.8]), 2).round(2)
    array([1.  , 1.  , 0.91, 0.57, 0.  ])
    """
    weights = np.ones(len(values))
    if len(values) > k:
        above = values[k - 1 :] - (values[-1] if noise is None else noise)
        share = above[1:] / above[0] if above[0] > 0 else np.zeros(len(values) - k)
        share = (share - Leading.CUT) / (1 - Leading.CUT)
        weights[k:] = np.sqrt(np.clip(share, 0.0, 1.0))
    return weights


def all_there(values: np.ndarray, k: int, extra: int) -> bool:
    """Tell whether so many eigenvalues beyond k are known as matter.

    Where those that are known have no weight, those that follow have none.
    """
    known = values[: k + extra]
    return len(known) == k + extra or not signal_weights(known, k)[k:].any()


def smallest_gap(last: float) -> float:
    """Return the smallest gap that is resolved below the last eigenvalue wanted.

    Noise in data turns eigenvectors across smaller gaps anyway.
    """
    return Leading.SMALLEST_GAP * last


def orthonormal(
    ops: Ops,
    Y: Tall,
    rng: np.random.Generator | None = None,
    negligible: float = 0.0,
    gram: np.ndarray | None = None,
) -> Tall:
    """Orthonormalise columns through their small Gram matrix, which may be known.

    Columns that are negligible or depend on others are dropped or, given a generator,
    replaced by random ones so that the width is kept.
    """
    tiny = 100 * float(np.finfo(ops.host_dtype(Y)).eps)
    n, width = Y.shape
    for _ in range(4):
        gram = ops.tall_dot(Y, Y) if gram is None else gram
        live = np.sqrt(np.diag(gram)) > negligible
        if not live.all():
            Y = Y @ ops.cast_like(np.eye(len(live))[:, live], Y)
            gram = gram[np.ix_(live, live)]
        condition = 1.0
        if Y.shape[1]:
            change, condition = whitening(gram, tiny)
            Y = ops.keep(Y @ ops.cast_like(change, Y))
        if rng is not None and Y.shape[1] < width:
            fill = rng.standard_normal((n, width - Y.shape[1])) / np.sqrt(n)
            Y, condition = ops.beside(Y, ops.cast_like(fill, Y)), 0.0
        if condition > Solving.CONDITION:
            break
        negligible, gram = 0.0, None  # the columns have unit norm now
    return Y


def whitening(gram: np.ndarray, tiny: float = 0.0) -> tuple[np.ndarray, float]:
    """Return what makes columns with this Gram matrix orthonormal, and their condition.

    The condition is that of the Gram matrix of the columns at unit norm, inverted.
    Directions whose share of the largest is not above tiny are left out.
    """
    norms = np.sqrt(np.diag(gram))
    if not norms.all():
        return np.zeros_like(gram), 0.0
    values, vectors = np.linalg.eigh(gram / np.outer(norms, norms))
    keep = values > tiny * values[-1]
    change = vectors[:, keep] / norms[:, None] / np.sqrt(values[keep])
    return change, float(values[keep][0] / values[-1])


def project_out(ops: Ops, basis: list[Tall], Y: Tall) -> tuple[Tall, np.ndarray]:
    """Return Y, overwritten, less its part in the basis, and the coefficients of that.

    Arrays of some libraries cannot be overwritten: go on with what is returned.
    """
    coefficients = ops.basis_dot(Y, *basis)
    at = 0
    for q in basis:
        Y -= q @ ops.cast_like(coefficients[at : at + q.shape[1]], q)
        at += q.shape[1]
    return Y, coefficients


def combine(ops: Ops, basis: list[Tall], coefficients: np.ndarray) -> Tall:
    """Return ``hstack(basis) @ coefficients`` without stacking."""
    coefficients = ops.cast_like(coefficients, basis[0])
    at = basis[0].shape[1]
    out = basis[0] @ coefficients[:at, :]
    for q in basis[1:]:
        out += q @ coefficients[at : at + q.shape[1], :]
        at += q.shape[1]
    return ops.keep(out)
