"""Rows that are not in memory: they are read, or worked on elsewhere, in blocks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm.matrix.base import Index, Matrix, T, ask, sum_of
from ihgmm.matrix.memory import Dense, Sparse


class Blocks(Matrix):
    """Rows in blocks. A kind needs ``shape``, ``dtype`` and what is abstract here."""

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

    def map_sum(self, work: Callable[..., Any], *tall: np.ndarray | None) -> Any:
        """Return the sum of results of some work on each block."""
        return sum_of(self.map(work, *tall))

    def map_both(self, work: Callable[..., Any], *tall: np.ndarray | None) -> Any:
        """Return first results below each other, and the sum of second ones."""
        results = self.map(work, *tall)
        first, total = next(results)
        stack = [first]
        for part, more in results:
            stack.append(part)
            total += more
        return np.concatenate(stack), total

    def __matmul__(self, W: Any) -> np.ndarray:
        return np.concatenate(list(self.map(ask("__matmul__", self.cast(W)))))

    def adjoint(self, V: Any) -> np.ndarray:
        return np.asarray(self.map_sum(ask("adjoint"), self.cast(V)))

    def product_and_adjoint(
        self, W: Any, minus: Any = None, row_scale: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        work = ask("product_and_adjoint", self.cast(W))
        Y, back = self.map_both(work, minus, row_scale)
        return Y, back

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
        return (Sparse if self.has_gaps else Dense)(block, self.unit)

    def rescaled(self, factor: float) -> Blocks:
        other = copy(self)
        other.__dict__.pop("sqnorms", None)
        other.factor, other.unit = self.factor * factor, self.unit / factor
        return other
