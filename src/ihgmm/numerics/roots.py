"""Roots of data without negative entries, with columns weighted by their spread.

Amounts, counts and shares vary the more the larger they are. Their roots vary alike,
and the root of a row times a factor is the root of the row times a factor: so roots
keep the scale of rows a nuisance, which logarithms do not. Each column is then divided
by a power of its spread among unit rows, or the common columns would rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ihgmm.matrix import Matrix, RowSubset, Scaled, Tall, rooted
from ihgmm.matrix.materialized import Materialized
from ihgmm.numerics.zero_rows import nonzero_rows
from ihgmm.policy import Roots


@dataclass(frozen=True, eq=False)
class RootColumns:
    """A map from rows of data to their roots, with weights of columns."""

    weights: np.ndarray  # (n_features,): at most 1; 0 for columns without spread

    def __call__(self, X: Matrix) -> Matrix:
        """Return the rows of X as roots; negative entries have a root of their sign."""
        return Scaled(rooted(X), columns=self.weights)

    def with_weight(self, is_zero: np.ndarray) -> RootColumns:
        """Return the map with the largest weight, 1, for columns of zeros.

        Later rows may have entries there, which would be the rarest of all.
        """
        return RootColumns(weights=np.where(is_zero, 1.0, self.weights))


@dataclass(frozen=True, eq=False)
class RootedData:
    """What is known of data that may be rooted."""

    columns: RootColumns
    zero_share: float  # share of entries that are zero
    sample: np.ndarray | None = field(repr=False)  # rows that compete; None for all

    @property
    def is_mostly_zeros(self) -> bool:
        """Whether roots are taken without a look at clusters."""
        return self.zero_share >= Roots.ZEROS


def look_at_roots(X: Matrix, n_clusters: int) -> RootedData | None:
    """Return how rows would be rooted; None where entries are negative.

    Rows of zeros have no part in it. None, too, where no column has a spread among unit
    rows, as where all rows have one pattern.
    """
    if not X.distributed and _has_many_negative_at_start(X):
        return None

    summary = _summarize_rows(X)
    n_nonzero = summary.n_nonzero
    if n_nonzero == 0 or summary.n_negative > Roots.NEGATIVE * n_nonzero:
        return None

    rows = nonzero_rows(X)
    total_weight = _total_weight(X, rows)
    spread = _spread_among_unit_rows(X, summary.absolute_sums, total_weight)
    if not spread.any():
        return None

    n_entries = total_weight * X.shape[1]
    return RootedData(
        columns=RootColumns(weights=_weights_of_columns(spread)),
        zero_share=1 - n_nonzero / n_entries,
        sample=_sample(rows, summary.keys, n_clusters),
    )


@dataclass(frozen=True, eq=False)
class RowsToCount:
    """The rows in which clusters are counted, before their number is known."""

    compared: Matrix  # rows as they are, or their roots
    evened: Matrix  # roots wherever no entry is negative: without what skewness shows


def rows_to_count(
    X: Matrix, columns: Literal["auto", "given", "roots", "counts", "noise"]
) -> RowsToCount:
    """Return rows, or their roots where columns ask for them or most entries are 0."""
    data = None
    if columns in ("auto", "roots") and not X.signed:
        data = look_at_roots(X, n_clusters=1)
    if data is None:
        return RowsToCount(compared=X, evened=X)

    rooted_rows = data.columns(X)
    is_taken = columns == "roots" or data.is_mostly_zeros
    return RowsToCount(compared=rooted_rows if is_taken else X, evened=rooted_rows)


def _has_many_negative_at_start(X: Matrix) -> bool:
    """Tell whether some first rows show that too many of all entries are negative."""
    n_samples, n_features = X.shape
    n_rows = -(-n_samples // Roots.GLANCE)
    signs = X.take(slice(0, n_rows)).where_negative()
    n_negative = X.ops.taken_ops.number(signs.ops.xp.sum(signs.values))
    return bool(n_negative > Roots.NEGATIVE * n_samples * n_features)


@dataclass(frozen=True, eq=False)
class _RowSummary:
    """What one reading of the rows tells."""

    absolute_sums: Tall  # (n,): of entries, the squared lengths of rooted rows
    keys: Tall  # (n,): numbers between 0 and 1 that look random, by the row's pattern
    n_negative: float  # entries, each counted by the weight of its row
    n_nonzero: float


def _summarize_rows(X: Matrix) -> _RowSummary:
    """Read the rows once."""
    p = X.shape[1]
    projection = np.random.default_rng(0).random((p, 1))
    ones = np.ones((p, 1))

    def summarize(
        block: Materialized, weights: Tall | None
    ) -> tuple[tuple[Tall, Tall], tuple[np.ndarray]]:
        ops = block.ops
        absolute = block.absolute()
        sums = ops.widen(absolute @ ones)[:, 0]
        lengths = ops.xp.sqrt(block.sqnorms)
        cosines = ops.ratio(ops.widen(absolute @ projection)[:, 0], lengths)

        n_negative = 0.0
        if absolute is not block:
            n_negative = _count(block.where_negative(), weights)
        counts = np.array([n_negative, _count(block.where_nonzero(), weights)])
        return (sums, (100 * cosines) % 1), (counts,)

    (absolute_sums, keys), (counts,) = X.sweep(summarize, X.weights)
    return _RowSummary(
        absolute_sums=absolute_sums,
        keys=keys,
        n_negative=float(counts[0]),
        n_nonzero=float(counts[1]),
    )


def _count(ones_and_zeros: Materialized, weights: Tall | None) -> float:
    """Return the number of ones, each counted by the weight of its row."""
    ops = ones_and_zeros.ops
    counts = ops.widen(ones_and_zeros @ np.ones((ones_and_zeros.shape[1], 1)))[:, 0]
    if weights is not None:
        counts = counts * weights
    return float(ops.number(ops.xp.sum(counts)))


def _spread_among_unit_rows(
    X: Matrix, absolute_sums: Tall, total_weight: float
) -> np.ndarray:
    """Return the standard deviation of each column of rooted unit rows, (p,).

    The unit row of roots ``√x / √s``, with s the sum of absolute entries, has the
    squares ``|x| / s``.
    """
    ops = X.ops
    factors_of_squares = ops.ratio(1.0, absolute_sums)
    factors = ops.xp.sqrt(factors_of_squares)
    if X.weights is not None:
        factors = factors * X.weights
        factors_of_squares = factors_of_squares * X.weights

    def add_up(
        block: Materialized, factors: Tall, factors_of_squares: Tall
    ) -> tuple[tuple[()], tuple[np.ndarray]]:
        sums = block.rooted().adjoint(block.cast(factors)[:, None])
        squares = block.absolute().adjoint(block.cast(factors_of_squares)[:, None])
        moments = [block.ops.to_host(moment)[:, 0] for moment in (sums, squares)]
        return (), (np.stack(moments).astype(np.float64),)

    _, (moments,) = X.sweep(add_up, factors, factors_of_squares)
    means, mean_squares = moments / total_weight
    variances = mean_squares - means**2
    rounding = Roots.ROUNDING * float(np.finfo(X.dtype).eps)
    variances[variances <= rounding * mean_squares] = 0.0
    return np.sqrt(variances)


def _total_weight(X: Matrix, rows: RowSubset) -> float:
    """Return the sum of the weights of some rows of X."""
    if X.weights is None:
        return float(rows.n_members)
    return float(X.ops.number(X.ops.xp.sum(rows.select(X.weights))))


def _weights_of_columns(spread: np.ndarray) -> np.ndarray:
    """Return what columns are multiplied by, at most 1; 0 where there is no spread."""
    least = np.quantile(spread[spread > 0], Roots.LEAST_SPREAD)
    relative_spread = np.maximum(spread, least) / least
    return np.where(spread > 0, relative_spread**-Roots.POWER, 0.0)


def _sample(rows: RowSubset, keys: Tall, n_clusters: int) -> np.ndarray | None:
    """Return positions of rows, in order, as if shuffled by their own patterns."""
    size = max(Roots.ROWS, Roots.ROWS_A_CLUSTER * n_clusters)
    if rows.n_members <= size:
        return None

    # Keys are spread, more or less: not all of many come to the host.
    ops = rows.ops
    positions = rows.positions()
    is_candidate = ops.to_host(keys < Roots.CANDIDATES * size / rows.n_members)
    candidates = positions[is_candidate[positions]]
    if len(candidates) < size:
        candidates = positions

    candidate_keys = ops.taken_ops.to_host(ops.take_rows(keys, candidates))
    shuffled = candidates[np.argsort(candidate_keys, kind="stable")]
    return np.sort(shuffled[:size])
