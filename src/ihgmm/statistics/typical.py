"""The rows that are most typical of their cluster."""

from __future__ import annotations

import numpy as np

from ihgmm.matrix import Matrix, to_host
from ihgmm.matrix.tall import unit_rows


def typical_ranks(
    data: Matrix,
    labels: np.ndarray,
    centers: np.ndarray,
    sizes: np.ndarray,
    *,
    complete: np.ndarray,
    most: int = 3,
    least_rows: int = 5,
) -> np.ndarray:
    """Return 1, 2 and 3 for the most typical rows of each cluster, NaN for others.

    A typical row is of ordinary size: in the middle half of its cluster. Among those,
    the pattern of the first is nearest to that of the cluster, by the angle to the
    centre. Angles alone would choose the largest rows, which noise turns least. Rows
    that are not ``complete`` come into question nowhere: cells that were filled in
    follow the pattern more closely than any observed one. Of fewer than ``least_rows``
    such rows none is typical.
    """
    n, ranks = len(labels), np.full(len(labels), np.nan)
    products = to_host(data @ unit_rows(centers).T).astype(np.float64)
    norms = np.sqrt(to_host(data.sqnorms).astype(np.float64))
    # Where scales have both signs, a row may point away from its centre.
    cosines = products[np.arange(n), labels] * np.sign(sizes)
    cosines = cosines / np.where(norms > 0, norms, 1.0)
    lengths = np.abs(sizes)
    eligible = complete & (norms > 0) & (labels >= 0) & ~np.isnan(lengths)
    for cluster in range(len(centers)):
        rows = np.flatnonzero(eligible & (labels == cluster))
        if len(rows) < least_rows:
            continue
        low, high = np.quantile(lengths[rows], [0.25, 0.75])
        rows = rows[(lengths[rows] >= low) & (lengths[rows] <= high)]
        first = rows[np.argsort(-cosines[rows], kind="stable")[:most]]
        ranks[first] = np.arange(1, len(first) + 1)
    return ranks
