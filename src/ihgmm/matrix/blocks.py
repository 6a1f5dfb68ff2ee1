"""Rows that are not in memory: they are read, or worked on elsewhere, in blocks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm.matrix.base import Index, T
from ihgmm.matrix.memory import Dense, Sparse, without_duplicates
from ihgmm.matrix.view import ByBlocks


class Blocks(ByBlocks):
    """Rows in blocks. A kind needs ``shape``, ``dtype`` and what is abstract here.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import Blocks
    >>> from ihgmm.matrix.stored import Stored
    >>> array = np.arange(8.0).reshape(4, 2)
    >>> X = Stored(lambda start, stop: array[start:stop], (4, 2), np.float64)
    >>> isinstance(X, Blocks), X.take([3, 0]).sqnorms
    (True, array([85.,  1.]))
    """

    row_blocks: list[slice]
    streamed = True
    on_host = False
    factor: float = 1.0  # what entries are multiplied by when they are read

    @abstractmethod
    def map(self, work: Callable[..., T], *tall: np.ndarray | None) -> Iterator[T]:
        """Yield the results of some work on each block, in order."""

    @abstractmethod
    def fetch(self, wanted: list[tuple[int, np.ndarray]]) -> list[Any]:
        """Return rows of some blocks, given the block's number and the rows, sorted."""

    def take(self, rows: Index) -> Dense | Sparse:
        index = np.arange(self.shape[0])[rows]
        order = np.argsort(index, kind="stable")
        edges = [0, *(block.stop for block in self.row_blocks)]
        cuts = pairwise(np.searchsorted(index[order], edges))
        wanted = [
            (i, index[order[first:last]])
            for i, (first, last) in enumerate(cuts)
            if first < last
        ]
        parts = self.fetch(wanted or [(0, index)])
        stacked = (
            sp.vstack(parts, format="csr") if self.has_gaps else np.concatenate(parts)
        )
        back = np.empty(len(index), dtype=np.intp)
        back[order] = np.arange(len(index))
        return self.wrap(stacked[back])

    def wrap(self, block: Any) -> Dense | Sparse:
        """Return rows in memory as a matrix."""
        if self.has_gaps:
            return Sparse(without_duplicates(block), self.unit)
        return Dense(block, self.unit)

    def rescaled(self, factor: float) -> Blocks:
        other = copy(self)
        other.__dict__.pop("sqnorms", None)
        other.factor, other.unit = self.factor * factor, self.unit / factor
        return other
