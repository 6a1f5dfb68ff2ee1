"""Where data that must be finite is not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from ihgmm._arrays import Array, is_sparse, row_ranges
from ihgmm._chunks import RowBlocks
from ihgmm._devices import is_device, namespace, to_host

__all__ = ["raise_if_not_finite"]

HOST_ENTRIES = 2**24
"""Entries of data on a device that may be looked at on the host."""


@dataclass(frozen=True)
class _NotFinite:
    """Where a block has its first entry that is not finite, and how many there are."""

    n_rows: int
    count: int = 0
    row: int = -1
    column: int = -1
    what: str = ""


def raise_if_not_finite(X: Array, estimator: BaseEstimator | None) -> None:
    """Raise with the place of the first entry that is NaN or infinite, if any is."""
    who = "ihgmm" if estimator is None else type(estimator).__name__
    if isinstance(X, RowBlocks):
        _raise_for_blocks(X.map(_first_not_finite), who, "before they are stored")
    elif is_device(X):
        ranges = row_ranges(X.shape[0], HOST_ENTRIES // X.shape[1])
        found = (_first_on_device(X[rows, :]) for rows in ranges)
        _raise_for_blocks(found, who, "beforehand")
    else:
        bad = _first_not_finite(X)
        if bad.count:
            raise ValueError(
                f"Input X contains {bad.what} at row {bad.row}, column {bad.column} "
                f"(NaN or infinite entries in all: {bad.count}). {who} does not accept "
                "them: drop those rows, or fill them in (for NaN, "
                "sklearn.impute.SimpleImputer does)."
            )


def _raise_for_blocks(blocks: Iterable[_NotFinite], who: str, when: str) -> None:
    start = 0
    for bad in blocks:
        if bad.count:
            raise ValueError(
                f"Input X contains {bad.what} at row {start + bad.row}, column "
                f"{bad.column}. {who} does not accept NaN or infinite entries: drop "
                f"those rows, or fill them in, {when}."
            )
        start += bad.n_rows


def _first_not_finite(block: Array) -> _NotFinite:
    values = block.tocoo() if is_sparse(block) else block
    bad = np.flatnonzero(~np.isfinite(values.data if is_sparse(block) else values))
    if len(bad) == 0:
        return _NotFinite(block.shape[0])
    first = int(bad[0])
    if is_sparse(block):
        row, column = int(values.row[first]), int(values.col[first])
        value = values.data[first]
    else:
        row, column = divmod(first, block.shape[1])
        value = values[row, column]
    what = "NaN" if np.isnan(value) else "infinity"
    return _NotFinite(block.shape[0], len(bad), row, column, what)


def _first_on_device(block: Array) -> _NotFinite:
    xp = namespace(block)
    if xp.all(xp.isfinite(block)):
        return _NotFinite(block.shape[0])
    return _first_not_finite(to_host(block))
