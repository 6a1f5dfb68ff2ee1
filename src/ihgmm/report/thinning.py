"""Which rows a page holds when there are too many of them."""

from __future__ import annotations

import numpy as np

from ihgmm.report.payload import inline_json

__all__ = ["MOST_ROWS", "kept_rows"]

MOST_ROWS = 100_000
"""Rows that a browser searches, sorts and draws without delay."""

MOST_TEXT = 4_500_000
"""Bytes that the names of rows may take in the page."""

LEAST_OF_CLUSTER = 20
"""Rows that are kept of every cluster, where it has them."""


def kept_rows(labels: np.ndarray, ids: list[str] | None) -> np.ndarray:
    """Return the rows that the page holds, in order.

    All of them, up to 100,000 with names of 4.5 MB together. Beyond, a random part:
    the same share of every cluster, but no less than twenty rows of each.
    """
    n = len(labels)
    most = min(n, MOST_ROWS)
    if ids is not None:
        text = len(inline_json(ids).encode("utf-8"))
        if text * most > MOST_TEXT * n:
            most = max(1, MOST_TEXT * n // text)
    if most == n:
        return np.arange(n)
    rng = np.random.default_rng(0)
    kept = []
    for k in np.unique(labels):
        rows = np.flatnonzero(labels == k)
        count = min(len(rows), max(len(rows) * most // n, LEAST_OF_CLUSTER))
        kept.append(rng.choice(rows, count, replace=False))
    return np.sort(np.concatenate(kept))
