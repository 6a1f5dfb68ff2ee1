"""Eigenvalues that noise alone has: those of data whose signs change at random.

The signal goes and the noise stays. Rows are few, and in the memory of the host; copies
of large data are never kept: blocks of rows are made anew each time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ihgmm.matrix import HOST, Matrix
from ihgmm.matrix.memory import random_signs
from ihgmm.matrix.threads import one_thread, row_ranges
from ihgmm.numerics.eigen import leading_eigenpairs
from ihgmm.numerics.gram import GramOperator
from ihgmm.numerics.krylov import EigenPairs, ritz_pairs
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


class Residual:
    """The rows of a matrix less their part along some directions, some at a time.

    The directions are those of ``A.T @ vectors``. What is left of the noise in a
    feature is too little by the feature's share in them; a gain gives it back. Blocks
    of ``n_entries`` stay in the cache; ``keep`` keeps all in memory. Features get up to
    ``most`` times their energy at stored entries for those not stored.
    """

    def __init__(
        self,
        A: Matrix,
        vectors: np.ndarray,
        *,
        keep: bool = False,
        n_entries: int = 2**18,
        most: float = 3.0,
    ) -> None:
        self.A = A = A.by_rows()
        self.directions = np.linalg.qr(A.adjoint(vectors))[0]
        self.parts = A @ self.directions
        taken = np.einsum("ij,ij->i", self.directions, self.directions)
        # A feature that lies in the directions by more than 0.9 is not made up for.
        gain = 1 / np.sqrt(1 - np.minimum(taken, 0.9))
        n = A.shape[0]
        self.ranges = row_ranges(n, n_entries * n // max(A.n_entries, 1))
        if A.sparse and vectors.shape[1]:
            gain *= self._gap_gain(most)
        self.gain = gain.astype(A.dtype)
        self.kept = [self._block(rows) for rows in self.ranges] if keep else None

    def __getitem__(self, i: int) -> Any:
        """Return block number i."""
        return self._block(self.ranges[i]) if self.kept is None else self.kept[i]

    def _block(self, rows: slice) -> Any:
        block: Any = self.A.take(rows)
        if self.directions.shape[1] == 0:
            return block
        return block.minus_fit(self.parts[rows], self.directions, self.gain)

    def _gap_gain(self, most: float) -> np.ndarray:
        """Return what gives each feature the energy it has at entries not stored.

        The directions fit those entries too.
        """
        p, parts = self.A.shape[1], HOST.widen(self.parts)
        inner = HOST.tall_dot(parts, parts)
        missing = np.einsum("ij,jk,ik->i", self.directions, inner, self.directions)
        kept = np.zeros(p)
        for rows in self.ranges:
            block: Any = self.A.take(rows)
            fit = block.fit_at_entries(self.parts[rows], self.directions)
            left = block.values - fit
            missing -= np.bincount(block.indices, fit * fit, p)
            kept += np.bincount(block.indices, left * left, p)
        ratio = np.divide(np.maximum(missing, 0), kept, out=np.zeros(p), where=kept > 0)
        return np.sqrt(1 + np.minimum(ratio, most))


class Signs:
    """Random signs for blocks of rows, the same on every pass.

    Row i of a dense block takes a window, at a random place, of one long vector of
    signs: as good as independent, and much cheaper.
    """

    def __init__(self, A: Matrix, rng: np.random.Generator) -> None:
        n, p = A.shape
        self.seed = int(rng.integers(2**62))
        self.signs, self.places = np.empty(0), np.zeros(n, dtype=np.intp)
        if not A.sparse:
            length = max(2**14, 4 * n)
            self.signs = random_signs(rng, length + p, A.dtype)
            self.places = rng.integers(length + 1, size=n)

    def flip(self, block: Any, rows: slice) -> Any:
        """Return a block of rows with its signs changed."""
        return block.with_signs(self.signs, self.places[rows], (self.seed, rows.start))


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
    reads F once. F is divided by a power of 2, lest its fourth powers overflow.
    """

    def __init__(
        self, A: Matrix, steps: int, accuracy: float, rng: np.random.Generator
    ) -> None:
        n, p = A.shape
        self.accuracy = accuracy
        self.flip = Signs(A, rng).flip
        self.removed = np.zeros(n, dtype=A.dtype)
        longest = max(float(A.sqnorms.max()), 1.0)
        self.unit = float(2.0 ** np.ceil(np.log2(longest) / 2))
        self.basis = np.empty((n, 0), dtype=A.dtype)
        self.adjoints = np.empty((p, 0), dtype=A.dtype)
        self.rayleigh = np.zeros((0, 0))
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
        u = flipped @ self.direction / self.unit
        if self.basis.shape[1]:
            u -= self.removed[rows] * self.basis[rows, -1]
        else:
            self.removed[rows] = flipped.sqnorms / self.unit**2
        self.u[rows] = u
        self.w += flipped.adjoint(u) / self.unit

    def step(self) -> None:
        """End a step: make the new vector orthogonal and look at the top Ritz value."""
        u, w, begun = self.u, self.w, self.basis.shape[1] > 0
        column = np.zeros(self.basis.shape[1])
        for _ in range(2):  # twice is enough for a basis that stays orthogonal
            part = self.basis.T @ u
            u, column = u - self.basis @ part, column + part
        w = w - self.adjoints @ column.astype(w.dtype)
        length = float(np.linalg.norm(u))
        if begun:
            old = column[:-1, None]
            self.rayleigh = np.block([[self.rayleigh, old], [old.T, column[-1:, None]]])
            values, ritz = ritz_pairs(self.rayleigh, "algebraic")
            self.value, self.next = float(values[0]), length
            missing = length * abs(ritz[-1, 0])
            self.converged = missing <= self.accuracy * abs(self.value)
        if length == 0:
            self.converged = True
        if self.ended:
            return
        u, w = u / u.dtype.type(length), w / w.dtype.type(length)
        self.basis = np.column_stack([self.basis, u])
        self.adjoints = np.column_stack([self.adjoints, w])
        self._begin(w, len(u))

    @property
    def ended(self) -> bool:
        """Whether no further step is needed or possible."""
        return self.converged or len(self.rayleigh) == self.steps

    @property
    def top(self) -> float:
        """The top eigenvalue, or where the coefficients point to when it is far off.

        Deep in the bulk of noise the coefficients settle at a and b, and the bulk ends
        at a + 2 b.
        """
        if self.converged or not len(self.rayleigh):
            return self.value * self.unit**2
        done = len(self.rayleigh)
        off_diagonal = np.append(np.diag(self.rayleigh, 1), self.next)
        late = slice(done // 2, done)
        bulk_end = np.diag(self.rayleigh)[late].mean()
        bulk_end += 2 * off_diagonal[late].mean()
        return max(self.value, float(bulk_end)) * self.unit**2


class Spectrum(NamedTuple):
    """Eigenpairs, how many are above the edge, the null eigenvalues and the edge."""

    pairs: EigenPairs
    rank: int
    null: np.ndarray
    edge: float


def count_above_noise(
    G: GramOperator, most: int, rng: np.random.Generator, *, least: int = 11
) -> Spectrum:
    """Count eigenvalues above the edge of flipped data, taking strong ones out first.

    ``least`` eigenpairs are returned, if there are.
    """
    rank = 0
    pairs = _eigenpairs(G, min(least, most + 1, G.shape[0]))
    while True:
        above = rank
        residual = Residual(G.A, pairs.vectors[:, :rank], keep=is_kept(G.A))
        # A first rough look is enough when components stand out clearly.
        for rough in (True, False) if rank == 0 else (False,):
            flips = 1 if rough else default_flips(G.A)
            null = np.array(null_eigenvalues(residual, flips, rng, rough=rough))
            edge = _edge(G, null, Counting.MARGIN * (Counting.ROUGH if rough else 1))
            rounding = Counting.ROUNDING * float(np.finfo(G.A.dtype).eps)
            edge = max(edge, rounding * pairs.values[0])
            # If all eigenpairs are above the edge, look at more.
            while pairs.values[-1] > edge and len(pairs.values) <= most:
                pairs = _eigenpairs(G, min(2 * len(pairs.values) + 5, most + 1))
            above = min(int((pairs.values > edge).sum()), most)
            if above > rank:
                break
        if above <= rank or above == most:
            break
        rank = above
    # What new flips do not confirm does not count.
    return Spectrum(pairs, above, null, edge)


def _eigenpairs(G: GramOperator, k: int) -> EigenPairs:
    # Noise has no gap to resolve, and a percent of its eigenvalues is enough. Residuals
    # of several gaps would end the search while eigenvalues at the edge are too small.
    return leading_eigenpairs(G, k, tol=1.0, quiet=True)


def _edge(G: GramOperator, null: np.ndarray, margin: float) -> float:
    """Put the edge some standard deviations above the mean of the null eigenvalues.

    Few flips say little about the deviation; what the Tracy-Widom law says of the top
    eigenvalue of white noise counts for a few. Rows of unequal norm count for fewer.
    """
    prior, tracy_widom_deviation = Counting.PRIOR_FLIPS, 1.268
    p, sqnorms = G.A.shape[1], G.A.sqnorms
    n = sqnorms.sum() ** 2 / np.square(sqnorms).sum()
    root = np.sqrt(n) + np.sqrt(p)
    scale = root * (1 / np.sqrt(n) + 1 / np.sqrt(p)) ** (1 / 3)
    expected = tracy_widom_deviation * scale / (root**2 - p) * null.mean()
    squares = prior * expected**2 + ((null - null.mean()) ** 2).sum()
    deviation = np.sqrt(squares / (prior + len(null) - 1))
    return float(null.mean() + margin * deviation * np.sqrt(1 + 1 / len(null)))
