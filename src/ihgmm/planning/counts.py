"""What a fit of IhSC reads, multiplies, keeps and sends, counted from its sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ihgmm._stored import BLOCK_BYTES
from ihgmm._threads import LARGE as READ_ONCE_ENTRIES
from ihgmm._threads import SHORT
from ihgmm.krylov import MAX_APPLICATIONS, MIN_BLOCKS, block_width
from ihgmm.rounding import FIT_ROWS, FIT_ROWS_PER_CLUSTER, FULL_TRIALS
from ihgmm.starts import CHECKED_ROWS, LARGE, LARGEST_ROWS, SAMPLE

__all__ = ["Problem", "Work"]

WIDE_PRODUCTS = 3
"""Products with G where there are too few rows for a start from a sample of them."""


@dataclass(frozen=True)
class Work:
    """What one fit does, whatever the machine.

    Attributes
    ----------
    passes : int
        How often the data are gone through.
    read : float
        Bytes of the data that go through memory.
    multiplied : float
        Multiplications and additions of products with the data, and with tall blocks.
    tall : float
        Numbers of tall blocks, those with a row for each row of the data.
    kmeans : float
        Multiplications and additions of one round of k-means on its sample.
    """

    passes: int
    read: float
    multiplied: float
    tall: float
    kmeans: float


@dataclass(frozen=True)
class Problem:
    """The sizes of a clustering problem.

    Attributes
    ----------
    n_samples, n_features, n_clusters : int
        As everywhere.
    density : float or None
        Share of entries that are stored, for sparse data; None for dense data.
    itemsize : int
        Bytes of a number.
    """

    n_samples: int
    n_features: int
    n_clusters: int
    density: float | None = None
    itemsize: int = 4

    @property
    def width(self) -> int:
        """Columns of a block of vectors."""
        return block_width(self.n_clusters)

    @property
    def dense_entries(self) -> int:
        """Rows times features."""
        return self.n_samples * self.n_features

    @property
    def entries(self) -> float:
        """Numbers stored."""
        if self.density is None:
            return float(self.dense_entries)
        return self.dense_entries * self.density

    @property
    def dense_bytes(self) -> float:
        """Bytes of the data as a dense matrix."""
        return float(self.dense_entries * self.itemsize)

    @property
    def data_bytes(self) -> float:
        """Bytes of the data: sparse ones have a column number beside each entry."""
        if self.density is None:
            return self.dense_bytes
        index = 4 if self.entries <= np.iinfo(np.int32).max else 8
        return self.entries * (self.itemsize + index) + self.n_samples * index

    @property
    def sample_rows(self) -> int:
        """Rows that the solver starts from."""
        n, most = self.n_samples, max(self.n_features, self.width)
        if n >= 2 * SAMPLE * most:
            return min(n // SAMPLE, 2 * SAMPLE * most)
        if n >= 2 * most and self.entries >= LARGE:
            return 2 * n // SAMPLE
        return 0

    @property
    def sample_bytes(self) -> float:
        """Bytes of those rows, which are taken into memory."""
        return self.data_bytes / self.n_samples * self.sample_rows

    @property
    def picked_rows(self) -> int:
        """Rows that are read by themselves: the sample and those that check a start."""
        return self.sample_rows + (
            CHECKED_ROWS + LARGEST_ROWS if self.may_stop_early else 0
        )

    @property
    def readings(self) -> int:
        """How often rows are picked here and there, which may be in all chunks.

        Once for the sample, and once for those that check a start.
        """
        return (self.sample_rows > 0) + self.may_stop_early

    @property
    def may_stop_early(self) -> bool:
        """Whether the first block can be accepted from a sample of rows."""
        return self.entries >= LARGE and self.n_samples > 4 * CHECKED_ROWS

    @property
    def products(self) -> int:
        """Products with G to expect after the first block."""
        if self.sample_rows == 0:
            return WIDE_PRODUCTS
        return 0 if self.may_stop_early else 1

    def work(self, products: int | None = None, *, stored: bool = False) -> Work:
        """Count the work of a fit with so many products after the first block.

        In memory a product is two passes, and the first has one of them behind it; of
        data that is stored, a pass gives a product and what the next one needs.
        """
        q = self.products if products is None else products
        n, k, b = self.n_samples, self.n_clusters, self.width
        further = q if stored else max(2 * q - 1, 0)
        halves = 2 * further if stored else further
        # Short dense rows stay in the cache between the two halves of the first block.
        twice = self.density is not None or (
            self.n_features > SHORT or self.entries < READ_ONCE_ENTRIES
        )
        share = self.picked_rows / n
        # Norms, first block, centres; a sample is gone through some times.
        return Work(
            passes=3 + further,
            read=self.data_bytes * (3 + halves + twice + 2 * share),
            multiplied=self.entries * (b * (4 + 2 * halves + 16 * share) + 2 * k)
            + n * (4.0 * k * (k + b) + 4.0 * b * b * q),
            tall=float(n * b * (1 + 2 * q)),
            kmeans=2.0 * k * k * self.kmeans_rows,
        )

    @property
    def bound(self) -> Work:
        """Count the work of a fit that gives up, with a warning.

        Of stored data too a product may take two passes, where one is not accurate.
        """
        most = self.work(MAX_APPLICATIONS)
        return Work(
            most.passes + 1,  # a first block that is not accurate
            most.read + self.data_bytes,
            most.multiplied + 2 * self.entries * self.width,
            most.tall,
            most.kmeans,
        )

    @property
    def kmeans_rows(self) -> int:
        """Rows that k-means learns its centres from."""
        most = max(FIT_ROWS, FIT_ROWS_PER_CLUSTER * self.n_clusters)
        return min(self.n_samples, most) + FULL_TRIALS

    def chunks(self, size: float) -> int:
        """Return how many chunks of so many bytes the data make."""
        return max(1, math.ceil(self.data_bytes / size))

    def sent(self, work: Work, chunks: int, workers: int) -> float:
        """Return the bytes that go between a client and workers which hold the data."""
        n, k, b, s = self.n_samples, self.n_clusters, self.width, self.itemsize
        further = work.passes - 3
        norms = 8.0 * n
        # The first block comes back, later ones go and come, and those of the centres
        # go. A sum comes back from each chunk; what it becomes goes to each worker.
        tall = s * n * (b + 2.0 * b * further + k)
        sums = chunks * (b * (1 + further) + k) + workers * b * (1 + further)
        picked = self.data_bytes / n * self.picked_rows
        return norms + tall + s * self.n_features * sums + picked

    @property
    def basis_bytes(self) -> float:
        """Bytes of the blocks that further products keep, beyond those of the first."""
        return float((MIN_BLOCKS + 3) * self.n_samples * self.width * self.itemsize)

    @property
    def block_bytes(self) -> float:
        """Bytes of the blocks of data that are in memory at a time."""
        return float(min(3 * BLOCK_BYTES, self.data_bytes))
