"""Eigenvalues that noise alone has: those of data whose signs change at random."""

from __future__ import annotations

import numpy as np

from ihgmm.matrix import HOST, Matrix, Tall, to_host
from ihgmm.matrix.flipped import Residual, Signs
from ihgmm.matrix.threads import one_thread
from ihgmm.numerics.krylov import Basis, project_out, ritz_pairs
from ihgmm.policy import Counting


def is_small(X: Matrix) -> bool:
    """Tell whether Lanczos may run to the end on flipped copies."""
    return X.n_entries <= Counting.SMALL_ENTRIES


def is_kept(X: Matrix) -> bool:
    """Tell whether data is so small that what is made of it is kept in memory."""
    return X.n_entries <= Counting.KEPT_ENTRIES


def default_flips(X: Matrix) -> int:
    """Return how many flips to make: few where they cost much, and vary little."""
    small, kept, large = Counting.FLIPS
    return small if is_small(X) else kept if is_kept(X) else large


def residual_of(A: Matrix, vectors: Tall) -> Residual:
    """Return the rows less their part along some directions; small data is kept."""
    return Residual(A, vectors, keep=is_kept(A))


def null_eigenvalues(
    residual: Residual,
    n_flips: int,
    rng: np.random.Generator,
    *,
    rough: bool = False,
    steps: int | None = None,
    accuracy: float = Counting.FLIP_ACCURACY,
) -> list[float]:
    """Return the top eigenvalues of the hollow Gram matrices of flipped copies.

    Those of large data are meant for a first look only if they are ``rough``. A search
    ends after so many steps, or once the eigenvalue is accurate.
    """
    A, ranges = residual.A, residual.ranges
    if steps is None:
        small, large, first_look = Counting.FLIP_STEPS
        steps = small if is_small(A) else first_look if rough else large
        steps = min(steps, A.shape[0])
    runs = [_FlippedLanczos(A, steps, accuracy, rng) for _ in range(n_flips)]
    # Products with single vectors are too short for threads.
    with one_thread():
        if residual.kept is not None:
            for run in runs:
                flipped = [run.flip(residual[i], rows) for i, rows in enumerate(ranges)]
                while not run.ended:
                    for block, rows in zip(flipped, ranges, strict=True):
                        run.read(block, rows)
                    run.step()
        # Large data is gone through for all copies at once, each block made once.
        while going := [run for run in runs if not run.ended]:
            for i, rows in enumerate(ranges):
                block = residual[i]
                for run in going:
                    run.read(run.flip(block, rows), rows)
            for run in going:
                run.step()
    return [run.top for run in runs]


class _FlippedLanczos:
    """Lanczos for the hollow Gram matrix of one flipped matrix F.

    Beside each basis vector its product with ``F.T`` is taken along, so that a step
    reads F once.
    """

    def __init__(
        self, A: Matrix, steps: int, accuracy: float, rng: np.random.Generator
    ) -> None:
        n, p = A.shape
        self.accuracy = accuracy
        self.flip = Signs(A, rng).flip
        self.removed = np.zeros(n, dtype=A.dtype)
        self.basis: Basis | None = None
        self.steps = steps
        self.value = 0.0
        self.converged = False
        self._begin(rng.standard_normal(p).astype(A.dtype), n)

    def _begin(self, direction: np.ndarray, n: int) -> None:
        self.direction = direction
        self.u = np.empty(n, dtype=direction.dtype)
        self.w = np.zeros_like(direction)

    def read(self, flipped: Matrix, rows: slice) -> None:
        """Do a step's part for a block of flipped rows."""
        u = to_host(flipped @ self.direction)
        if self.basis is None:
            self.removed[rows] = to_host(flipped.sqnorms)
        else:
            u -= self.removed[rows] * self.basis.blocks[-1][rows, 0]
        self.u[rows] = u
        self.w += to_host(flipped.adjoint(u))

    def step(self) -> None:
        """End a step: make the new vector orthogonal and look at the top Ritz value."""
        u, w = self.u[:, None], self.w[:, None]
        if self.basis is not None:
            product = self.basis.take_up(u, w)
            # Twice is enough for a basis that stays orthogonal.
            u, again = project_out(HOST, self.basis.blocks, product.rest)
            w = self.basis.adjoint_of_rest(w, product.column + again)
        length = float(np.linalg.norm(u))
        if self.basis is not None:
            values, ritz = ritz_pairs(self.basis.rayleigh, "algebraic")
            self.value, self.next = float(values[0]), length
            missing = length * abs(ritz[-1, 0])
            self.converged = missing <= self.accuracy * abs(self.value)
        if length == 0:
            self.converged = True
        if self.ended:
            return
        u, w = u / u.dtype.type(length), w / w.dtype.type(length)
        if self.basis is None:
            self.basis = Basis(HOST, u, w, take_along=True)
        else:
            self.basis.append(u, w)
        self._begin(w[:, 0], len(u))

    @property
    def ended(self) -> bool:
        """Whether no further step is needed or possible."""
        done = 0 if self.basis is None else len(self.basis.rayleigh)
        return self.converged or done == self.steps

    @property
    def top(self) -> float:
        """The top eigenvalue, or where the coefficients point to when it is far off.

        Deep in the bulk of noise the coefficients settle at a and b, and the bulk ends
        at a + 2 b.
        """
        if self.converged or self.basis is None:
            return self.value
        done = len(self.basis.rayleigh)
        off_diagonal = np.append(np.diag(self.basis.rayleigh, 1), self.next)
        late = slice(done // 2, done)
        bulk_end = np.diag(self.basis.rayleigh)[late].mean()
        bulk_end += 2 * off_diagonal[late].mean()
        return max(self.value, float(bulk_end))
