"""A matrix with missing cells, told by NaN: filled in, or what is missing and where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import Any

from ihgmm.matrix.base import Index, Matrix, T, ask
from ihgmm.matrix.tall import Tall, stack

Fill = Callable[[Tall], Tall]  # rows with NaN to the same rows without


def filled(X: Matrix, fill: Fill | None = None) -> Matrix:
    """Return the matrix with its missing cells filled, by zeros if nothing is given.

    Data in memory become a copy. All else is filled anew whenever it is read.
    """
    complete = Filled(X, "filled", fill) if X.streamed else X.filled(fill)
    return complete.weighted(X.weights) if X.weights is not None else complete


class Filled(Matrix):
    """Blocks of rows of a matrix, each turned into others when it is asked for.

    ``question`` is what a block is asked for: "filled", or "missing", which is 1 where
    a cell is missing and 0 elsewhere.
    """

    def __init__(self, matrix: Matrix, question: str, *given: Any) -> None:
        self.matrix, self.question = matrix, ask(question, *given)
        self.shape, self.dtype, self.unit = matrix.shape, matrix.dtype, matrix.unit
        self.names, self.has_gaps = matrix.names, matrix.has_gaps
        self.on_host, self.streamed = matrix.on_host, matrix.streamed
        self.least_range = matrix.least_range

    @cached_property
    def n_entries(self) -> int:
        return self.matrix.n_entries

    @cached_property
    def row_blocks(self) -> list[slice]:
        return self.matrix.row_blocks

    @property
    def passes(self) -> int:  # type: ignore[override]
        """How often the matrix has been read so far."""
        return self.matrix.passes

    def map(self, work: Callable[..., T], *tall: Tall | None) -> Iterator[T]:
        return self.matrix.map(partial(_then, self.question, work), *tall)

    def __matmul__(self, W: Any) -> Tall:
        return stack(list(self.map(ask("__matmul__", self.cast(W)))))

    def adjoint(self, V: Any) -> Tall:
        return sum(self.map(ask("adjoint"), self.cast(V)))

    def product_and_adjoint(
        self, W: Any, minus: Tall | None = None, row_scale: Tall | None = None
    ) -> tuple[Tall, Tall]:
        work = ask("product_and_adjoint", self.cast(W))
        products, sums = zip(*self.map(work, minus, row_scale), strict=True)
        return stack(products), sum(sums)

    def take(self, rows: Index) -> Matrix:
        found: Matrix = self.question(self.matrix.take(rows))
        return found

    def rescaled(self, factor: float) -> Matrix:
        return self.to_memory().rescaled(factor)

    def to_device(self, values: Any) -> Tall:
        return self.matrix.to_device(values)

    def cast(self, values: Any) -> Tall:
        return self.matrix.cast(values)

    def per_row(self, values: Tall) -> Any:
        return self.matrix.per_row(values)

    def threads(self) -> AbstractContextManager[Any]:
        return self.matrix.threads()


def _then(
    question: Callable[[Matrix], Matrix],
    work: Callable[..., T],
    block: Matrix,
    *tall: Tall | None,
) -> T:
    return work(question(block), *tall)
