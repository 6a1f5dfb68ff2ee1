"""Data that is not in memory: rows that are read, or worked on elsewhere, in blocks.

A :class:`RowBlocks` stands in for the matrix X. It hands blocks of rows to some work,
in order, and knows its shape and type; products and norms need no more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

__all__ = ["Block", "RowBlocks", "T", "check_kind", "in_unit"]

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))

T = TypeVar("T")
Block = Any
"""Some rows in memory: a NumPy array or a scipy.sparse CSR array."""


class RowBlocks(ABC):
    """Rows in blocks.

    Attributes
    ----------
    shape : tuple of int
        (n_samples, n_features).
    dtype : numpy.dtype
        float32 or float64, what blocks are converted to.
    ranges : list of slice
        The rows of each block.
    sparse : bool
        Whether blocks are sparse.
    nnz : int
        Numbers stored; at least after one pass.
    passes : int
        How often all blocks were gone through so far, also for a sample of the rows
        where that takes whole chunks.
    names : list of str or None
        Names of features, where the data have names.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    ranges: list[slice]
    sparse: bool
    nnz: int
    passes: int = 0
    factor: float = 1.0
    verbose: bool = False
    names: list[str] | None = None

    @property
    def size(self) -> int:
        """Numbers stored."""
        return self.nnz

    @abstractmethod
    def map(self, work: Callable[..., T], *tall: np.ndarray) -> Iterator[T]:
        """Yield the results of some work on each block, in order.

        The work gets the block and, of each tall array, the part that belongs to the
        rows of the block.
        """

    @abstractmethod
    def take(self, index: np.ndarray | slice) -> Block:
        """Return some rows, in memory."""

    def tocsr(self) -> RowBlocks:
        """Return the rows as they are: blocks that are sparse are CSR."""
        return self

    def toarray(self) -> np.ndarray:
        """Return all rows in memory; for few rows only."""
        rows = self.take(slice(0, self.shape[0]))
        return np.asarray(rows.toarray() if sp.issparse(rows) else rows)

    def _prepared(self, block: Any) -> Block:
        """Return a block of the right type, in the unit asked for."""
        return in_unit(block, self.dtype, self.factor)


def in_unit(block: Any, dtype: np.dtype, factor: float) -> Block:
    """Return some rows in a type of float, times a factor."""
    block = block.astype(dtype, copy=False)
    if factor == 1.0:
        return block
    if abs(factor) <= float(np.finfo(dtype).max):
        return block * dtype.type(factor)
    most = 2.0**100  # the factor itself is more than the type can hold
    return in_unit(block * dtype.type(most), dtype, factor / most)


def check_kind(dtype: Any) -> np.dtype:
    """Return float32 or float64, what numbers of some type are converted to."""
    kind = np.dtype(dtype)
    if kind.kind not in "fiub":
        raise ValueError(
            f"X holds entries of type {kind}, not real numbers; store it as float32 "
            "or float64."
        )
    return kind if kind in FLOATS else np.dtype(np.float64)
