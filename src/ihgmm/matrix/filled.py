"""A matrix with missing cells, told by NaN: filled in, or what is missing and where."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from ihgmm.matrix.base import Index, Matrix, ask
from ihgmm.matrix.tall import Tall
from ihgmm.matrix.view import ByBlocks, View, Work

Fill = Callable[[Tall], Tall]  # rows with NaN to the same rows without


def filled(X: Matrix, fill: Fill | None = None) -> Matrix:
    """Return the matrix with its missing cells filled, by zeros if nothing is given.

    Data in memory become a copy. All else is filled anew whenever it is read.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import as_matrix, filled
    >>> X = filled(as_matrix(np.array([[1.0, np.nan], [3.0, 4.0]])))
    >>> X.sqnorms
    array([ 1., 25.])
    """
    complete = Filled(X, "filled", fill) if X.streamed else X.filled(fill)
    return complete.weighted(X.weights) if X.weights is not None else complete


class Filled(View, ByBlocks):
    """Blocks of rows of a matrix, each turned into others when it is asked for.

    ``question`` is what a block is asked for: "filled", or "missing", which is 1 where
    a cell is missing and 0 elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm.matrix import filled
    >>> from ihgmm.matrix.stored import Stored
    >>> array = np.array([[1.0, np.nan], [3.0, 4.0]])
    >>> X = filled(Stored(lambda start, stop: array[start:stop], (2, 2), np.float64))
    >>> type(X).__name__, X.sqnorms
    ('Filled', array([ 1., 25.]))
    """

    def __init__(self, matrix: Matrix, question: str, *given: Any) -> None:
        super().__init__(matrix)
        self.weights = None
        self.question = ask(question, *given)

    @cached_property
    def n_entries(self) -> int:
        return self.matrix.n_entries

    def _on_blocks(self, work: Work) -> tuple[Work, tuple[Tall | None, ...]]:
        return partial(_then, self.question, work), ()

    def take(self, rows: Index) -> Matrix:
        found: Matrix = self.question(self.matrix.take(rows))
        return found

    def rescaled(self, factor: float) -> Matrix:
        return self.to_memory().rescaled(factor)


def _then(
    question: Callable[[Matrix], Matrix], work: Work, block: Matrix, *tall: Tall | None
) -> Any:
    return work(question(block), *tall)
