"""Eigenvalues that noise alone has: those of data whose entries change sign at random.

Flipped copies of large data are never kept: blocks of rows are made again each time.
"""

from __future__ import annotations

import numpy as np

from ihgmm._arrays import Array, is_sparse, n_entries, row_ranges, take_rows
from ihgmm._devices import dtype_of, is_device, like, moved, to_host
from ihgmm._norms import row_sqnorms
from ihgmm._products import matmul, transposed_matmul
from ihgmm._tall import Tall, block_entries, times_windows
from ihgmm._threads import one_thread
from ihgmm.gram import GramOperator

__all__ = [
    "FlippedLanczos",
    "Residual",
    "Signs",
    "default_flips",
    "null_eigenvalues",
    "run_on_kept",
    "run_together",
]

SMALL, MEDIUM = 2**20, 2**23
"""Entries of X up to which Lanczos runs to the end, and up to which flipped data is
kept rather than made again on every pass."""

LARGEST_SHARE = 0.9
"""Share of a feature in the directions taken out beyond which it is not made up for."""

LARGEST_RATIO = 3.0
"""Energy at entries not stored, over that at stored ones, that is made up for."""

STEPS, FEWER_STEPS, ROUGH_STEPS, ACCURACY = 60, 8, 5, 0.02
"""Lanczos steps at most, on small data, on other and for a first look at other, and
the error of an eigenvalue that ends them earlier."""

BLOCK = 2**18
"""Entries of flipped data that are made at a time on a host: they stay in the cache."""


def default_flips(X: Array) -> int:
    """Return how many flips to make: few where they cost much, and vary little."""
    entries = n_entries(X)
    return 8 if entries <= SMALL else 3 if entries <= MEDIUM else 2


def null_eigenvalues(
    residual: Residual, n_flips: int, rng: np.random.Generator, *, rough: bool = False
) -> list[float]:
    """Return the top eigenvalues of the hollowed Gram matrices of flipped copies.

    Those of large data are meant for a first look only if they are ``rough``.
    """
    G = residual.G
    entries = n_entries(G.X)
    few = ROUGH_STEPS if rough else FEWER_STEPS
    steps = min(STEPS if entries <= SMALL else few, G.shape[0])
    runs = [FlippedLanczos(Signs(G.X, rng), G, steps, rng) for _ in range(n_flips)]
    # Products with single vectors are too short for threads.
    with one_thread():
        if entries <= MEDIUM:
            blocks = [residual[rows] for rows in residual.ranges]
            for run in runs:
                run_on_kept(
                    run,
                    list(map(run.signs.flip, blocks, residual.ranges)),
                    residual.ranges,
                )
        else:
            run_together(runs, residual)
    return [run.top for run in runs]


def run_on_kept(run: FlippedLanczos, blocks: list[Array], ranges: list[slice]) -> None:
    """Run Lanczos on flipped data that is kept."""
    while not run.ended:
        for rows, block in zip(ranges, blocks, strict=True):
            run.read(block, rows)
        run.step()


def run_together(runs: list[FlippedLanczos], residual: Residual) -> None:
    """Run Lanczos on several flips at once, each block made once for all of them."""
    while going := [run for run in runs if not run.ended]:
        for rows in residual.ranges:
            block = residual[rows]
            for run in going:
                run.read(run.signs.flip(block, rows), rows)
        for run in going:
            run.step()


class Residual:
    """The rows of A less their part along some directions, some rows at a time.

    What is left of the noise in a feature is too little by the feature's share in the
    directions; ``gain`` gives it back.
    """

    def __init__(self, G: GramOperator, vectors: Tall) -> None:
        self.G = G
        X = G.X
        if not is_device(vectors):
            vectors = np.ascontiguousarray(vectors)
        self.directions = np.linalg.qr(to_host(G.adjoint(vectors)))[0]
        self.parts = G.forward(self.directions)
        taken = np.einsum("ij,ij->i", self.directions, self.directions)
        self.gain = (1 / np.sqrt(1 - np.minimum(taken, LARGEST_SHARE))).astype(G.dtype)
        n = X.shape[0]
        entries = block_entries(X, BLOCK)
        self.ranges = row_ranges(n, entries * n // max(n_entries(X), 1))
        if is_sparse(X) and vectors.shape[1]:
            self.gain *= self._sparse_gain().astype(G.dtype)

    def __getitem__(self, rows: slice) -> Array:
        block, scale = take_rows(self.G.X, rows), self.G.row_scale
        if is_sparse(block):
            return self._sparse(block.tocsr(), rows)
        if scale is None and self.directions.shape[1] == 0:
            return block
        left = self.parts[rows, :] @ like(self.directions.T, self.parts)
        if scale is not None:
            block = block * scale[rows][:, None]
        if is_device(left):
            left = block - left
        else:
            np.subtract(block, left, out=left)
        if self.gain.max(initial=1.0) > 1.005:
            left *= like(self.gain, left)
        return left

    def _sparse(self, block: Array, rows: slice) -> Array:
        """Take the directions off at stored entries only."""
        data, fit = self._stored(block, rows)
        data = (data - fit) * self.gain[block.indices]
        return type(block)((data, block.indices, block.indptr), shape=block.shape)

    def _stored(self, block: Array, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return the stored entries of A and what the directions have of them."""
        row = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
        scale = self.G.row_scale
        data = block.data if scale is None else block.data * scale[rows][row]
        fit = np.zeros_like(data)
        for part, direction in zip(self.parts[rows].T, self.directions.T, strict=True):
            fit += part[row] * direction[block.indices]
        return data, fit

    def _sparse_gain(self) -> np.ndarray:
        """Return what gives each feature the energy it has at entries not stored."""
        p = self.G.X.shape[1]
        inner = self.parts.T.astype(np.float64) @ self.parts
        missing = np.einsum("ij,jk,ik->i", self.directions, inner, self.directions)
        kept = np.zeros(p)
        for rows in self.ranges:
            block = take_rows(self.G.X, rows).tocsr()
            data, fit = self._stored(block, rows)
            missing -= np.bincount(block.indices, np.square(fit), p)
            kept += np.bincount(block.indices, np.square(data - fit), p)
        ratio = np.divide(np.maximum(missing, 0), kept, out=np.zeros(p), where=kept > 0)
        return np.sqrt(1 + np.minimum(ratio, LARGEST_RATIO))


class Signs:
    """Random signs for blocks of rows, the same on every pass.

    Row i of a dense block takes a window, at a random place, of one long vector of
    signs: as good as independent, and much cheaper. Only that vector goes to a device.
    """

    def __init__(self, X: Array, rng: np.random.Generator) -> None:
        n, p = X.shape
        self.seed = int(rng.integers(2**62))
        if is_sparse(X):
            return
        length = max(2**14, 4 * n)
        signs = _random_signs(rng, length + p, dtype_of(X))
        self.signs = moved(signs, X)
        self.places = rng.integers(length + 1, size=n)

    def flip(self, block: Array, rows: slice) -> Array:
        """Return a block of rows with its signs flipped."""
        if not is_sparse(block):
            return times_windows(block, self.signs, self.places[rows])
        rng = np.random.default_rng((self.seed, rows.start))
        data = block.data * _random_signs(rng, block.nnz, block.dtype)
        return type(block)((data, block.indices, block.indptr), shape=block.shape)


def _random_signs(rng: np.random.Generator, size: int, dtype: np.dtype) -> np.ndarray:
    bits = np.frombuffer(rng.bytes(-(-size // 8)), dtype=np.uint8)
    signs = np.unpackbits(bits, count=size).astype(dtype)
    signs *= 2
    signs -= 1
    return signs


class FlippedLanczos:
    """Lanczos for the hollowed Gram matrix of one flipped matrix F.

    Beside each basis vector it keeps its product with ``F.T``, so that a step reads F
    once. Vectors are on the host, wherever F is.
    """

    def __init__(
        self, signs: Signs, G: GramOperator, steps: int, rng: np.random.Generator
    ) -> None:
        n, p = G.X.shape
        self.signs = signs
        self.removed = np.zeros(n, dtype=G.dtype)
        self.basis = np.zeros((steps, n), dtype=G.dtype)
        self.adjoint = np.zeros((steps, p), dtype=G.dtype)
        self.T = np.zeros((steps + 1, steps + 1))
        self.done = -1  # steps; the first reading makes the start
        self.value = 0.0
        self.converged = False
        self._begin(rng.standard_normal(p).astype(G.dtype))

    def _begin(self, direction: np.ndarray) -> None:
        self.direction = direction
        self.u = np.empty_like(self.removed)
        self.w = np.zeros_like(direction)

    def read(self, block: Array, rows: slice) -> None:
        """Do a step's part for a block of flipped rows."""
        if self.done < 0:
            self.removed[rows] = to_host(row_sqnorms(block))
        u = to_host(matmul(block, self.direction))
        if self.done >= 0:
            u -= self.removed[rows] * self.basis[self.done, rows]
        self.u[rows] = u
        self.w += to_host(transposed_matmul(block, u))

    def step(self) -> None:
        """End a step: make the new vector orthogonal and look at the top Ritz value."""
        j = self.done + 1
        for _ in range(2):
            inner = self.basis[:j] @ self.u
            self.u -= inner @ self.basis[:j]
            self.w -= inner @ self.adjoint[:j]
            if j:
                self.T[j - 1, j - 1] += inner[-1]
        length = float(np.linalg.norm(self.u))
        self.done = j
        if j:
            self.T[j, j - 1] = self.T[j - 1, j] = length
            values, vectors = np.linalg.eigh(self.T[:j, :j])
            self.value = float(values[-1])
            lacking = length * abs(vectors[-1, -1])
            self.converged = lacking <= ACCURACY * abs(self.value)
        if length == 0:
            self.converged = True
        if self.ended:
            return
        self.basis[j], self.adjoint[j] = self.u / length, self.w / length
        self._begin(self.adjoint[j])

    @property
    def ended(self) -> bool:
        """Whether no further step is needed or possible."""
        return self.converged or self.done == len(self.T) - 1

    @property
    def top(self) -> float:
        """The top eigenvalue, or where the coefficients point to when it is far off.

        Deep in the bulk of noise the coefficients settle at a and b, and the bulk ends
        at a + 2 b.
        """
        if self.converged:
            return self.value
        late = np.arange(self.done // 2, self.done)
        bulk_end = self.T[late, late].mean() + 2 * self.T[late, late + 1].mean()
        return max(self.value, float(bulk_end))
