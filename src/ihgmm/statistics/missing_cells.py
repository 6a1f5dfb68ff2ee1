"""Where cells of the data are missing, and how many of each row."""

from __future__ import annotations

from typing import cast

import numpy as np

from ihgmm.matrix import Dense, Matrix, Sparse, to_host


def filled_cells(data: Matrix) -> np.ndarray:
    """Return how many cells of each row were missing, and filled in."""
    if data.incomplete is None:
        return np.zeros(data.shape[0])

    def count(block: Matrix) -> np.ndarray:
        return to_host(block.missing().sqnorms)

    counts = data.incomplete.map(count)
    return np.concatenate(list(counts))


def missing_cells(X: Matrix | None, before: Matrix | None = None) -> np.ndarray:
    """Return rows and columns of missing cells, in order, but those missing before."""
    if X is None:
        return np.empty((0, 2), dtype=np.int64)

    places = _missing_places(X)
    new_places = np.setdiff1d(places, _missing_places(before))
    rows, columns = np.divmod(new_places, X.shape[1])
    return np.stack([rows, columns], axis=1)


def _missing_places(X: Matrix | None) -> np.ndarray:
    """Return the place of each missing cell, counting cells row by row."""
    nowhere = np.empty(0, dtype=np.int64)
    if X is None:
        return nowhere

    def cells_of_block(block: Matrix) -> tuple[int, np.ndarray, np.ndarray]:
        missing = cast(Dense | Sparse, block.missing().to_memory())
        rows, columns = missing.array.nonzero()
        return block.shape[0], rows, columns

    places = [nowhere]
    first_row = 0
    for n_rows, rows, columns in X.map(cells_of_block):
        rows = first_row + rows.astype(np.int64)
        places.append(rows * X.shape[1] + columns)
        first_row += n_rows
    return np.concatenate(places)
