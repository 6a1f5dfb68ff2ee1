"""Copies of a matrix whose entries have changed sign at random.

The signal goes and the noise stays. Copies of large data are never kept: blocks of rows
are made anew each time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ihgmm.matrix.base import Matrix
from ihgmm.matrix.memory import random_signs
from ihgmm.matrix.ops import Tall, to_host


class Residual:
    """The rows of a matrix less their part along some directions, some at a time.

    The directions are those of ``A.T @ vectors``. What is left of the noise in a
    feature is too little by the feature's share in them; a gain gives it back. Blocks
    of ``n_entries`` stay in the cache of a host; ``keep`` keeps all in memory. Features
    get up to ``most`` times their energy at stored entries for those not stored.
    """

    def __init__(
        self,
        A: Matrix,
        vectors: Tall,
        *,
        keep: bool = False,
        n_entries: int = 2**18,
        most: float = 3.0,
    ) -> None:
        self.A = A
        self.directions = np.linalg.qr(to_host(A.adjoint(vectors)))[0]
        self.parts = A @ self.directions
        taken = np.einsum("ij,ij->i", self.directions, self.directions)
        # A feature that lies in the directions by more than 0.9 is not made up for.
        gain = 1 / np.sqrt(1 - np.minimum(taken, 0.9))
        self.ranges = A.ranges(n_entries)
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
            return block.by_rows()
        return block.minus_fit(self.parts[rows, :], self.directions, self.gain)

    def _gap_gain(self, most: float) -> np.ndarray:
        """Return what gives each feature the energy it has at entries not stored.

        The directions fit those entries too.
        """
        p = self.A.shape[1]
        parts = self.A.ops.widen(self.parts)
        inner = self.A.ops.tall_dot(parts, parts)
        missing = np.einsum("ij,jk,ik->i", self.directions, inner, self.directions)
        kept = np.zeros(p)
        for rows in self.ranges:
            block: Any = self.A.take(rows)
            fitted, left = block.energy_at_entries(self.parts[rows, :], self.directions)
            missing -= fitted
            kept += left
        ratio = np.divide(np.maximum(missing, 0), kept, out=np.zeros(p), where=kept > 0)
        return np.sqrt(1 + np.minimum(ratio, most))


class Signs:
    """Random signs for blocks of rows, the same on every pass.

    Row i of a dense block takes a window, at a random place, of one long vector of
    signs: as good as independent, and much cheaper. Only that vector goes to a device.
    """

    def __init__(self, A: Matrix, rng: np.random.Generator) -> None:
        n, p = A.shape
        self.seed = int(rng.integers(2**62))
        self.signs: Tall = None
        self.places = np.zeros(n, dtype=np.intp)
        if not A.sparse:
            length = max(2**14, 4 * n)
            self.signs = A.to_device(random_signs(rng, length + p, A.dtype))
            self.places = rng.integers(length + 1, size=n)

    def flip(self, block: Any, rows: slice) -> Any:
        """Return a block of rows with its signs changed."""
        return block.with_signs(self.signs, self.places[rows], (self.seed, rows.start))
