"""A matrix that is made of another one, block by block."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from ihgmm.matrix.base import Matrix, T, lines_of, sums_of
from ihgmm.matrix.tall import Tall

Work = Callable[..., Any]


class ByBlocks(Matrix):
    """A matrix whose products are those of its blocks."""

    def __matmul__(self, W: Any) -> Tall:
        return self.sweep(lines_of("__matmul__", self.cast(W)))[0][0]

    def adjoint(self, V: Any) -> Tall:
        return self.sweep(sums_of("adjoint"), self.cast(V))[1][0]

    def product_and_adjoint(
        self, W: Any, minus: Tall | None = None, row_scale: Tall | None = None
    ) -> tuple[Tall, Tall]:
        (Y,), (back,) = self.sweep(_Both(self.cast(W)), minus, row_scale)
        return Y, back


class _Both:
    """The work of a product and its adjoint."""

    def __init__(self, W: Any) -> None:
        self.W = W

    def __call__(self, block: Matrix, minus: Any, row_scale: Any) -> Any:
        Y, back = block.product_and_adjoint(self.W, minus, row_scale)
        return (Y,), (back,)


class View(Matrix):
    """Rows of a matrix, each turned into another, or left out, when it is needed."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix, self.ops = matrix, matrix.ops
        self.shape, self.dtype, self.unit = matrix.shape, matrix.dtype, matrix.unit
        self.names, self.has_gaps = matrix.names, matrix.has_gaps
        self.on_host, self.streamed = matrix.on_host, matrix.streamed
        self.distributed = matrix.distributed
        self.least_range, self.weights = matrix.least_range, matrix.weights

    @abstractmethod
    def _on_blocks(self, work: Work) -> tuple[Work, tuple[Tall | None, ...]]:
        """Return some work as that on blocks of the other matrix.

        It takes those tall arrays that are returned too, before all others.
        """

    def map(self, work: Callable[..., T], *tall: Tall | None) -> Iterator[T]:
        work, own = self._on_blocks(work)
        return self.matrix.map(work, *own, *tall)

    def sweep(self, work: Work, *tall: Any) -> tuple[Any, Any]:
        work, own = self._on_blocks(work)
        return self.matrix.sweep(work, *own, *tall)

    @property
    def row_blocks(self) -> list[slice]:
        """The rows of each block that :meth:`map` goes through."""
        return self.matrix.row_blocks

    @property
    def passes(self) -> int:  # type: ignore[override]
        """How often the matrix has been read so far."""
        return self.matrix.passes

    def to_device(self, values: Any) -> Tall:
        return self.matrix.to_device(values)

    def cast(self, values: Any) -> Tall:
        return self.matrix.cast(values)

    def threads(self) -> AbstractContextManager[Any]:
        return self.matrix.threads()
