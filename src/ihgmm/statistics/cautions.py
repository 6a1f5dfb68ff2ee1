"""Reasons to look twice at labels: each is a type with its figures.

:func:`ihgmm.diagnose` collects them. A caution about columns compares these in at most
some thousand rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ihgmm import _checks as checks
from ihgmm._display import Result
from ihgmm.matrix import Matrix, Tall, to_host
from ihgmm.policy import Cautions, Columns, Refitting, Small
from ihgmm.statistics.missing_cells import filled_cells

Column = int | str
"""A column of the data: its name, or its position where columns have no names."""


@dataclass(frozen=True, repr=False)
class OtherClusters(Result):
    """Fits to halves of the rows agree with each other, but not with the labels."""

    agreement: float  #: share of the rows that fits to separate halves label alike
    stability: float  #: share of the labels that these fits find
    is_by_chance: bool  #: whether they find no more of them than chance would
    is_of_ihsc: bool  #: whether the labels are those of a fit of IhSC


@dataclass(frozen=True, repr=False)
class OneValueColumn(Result):
    """A column varies between clusters, and in none of them."""

    column: Column  #: that sets most clusters apart
    other_columns: tuple[Column, ...]  #: of which the same is true
    clusters: tuple[Any, ...]  #: labels of those that have a value of their own


@dataclass(frozen=True, repr=False)
class RulingColumn(Result):
    """A column varies more than all others together, so that it would decide alone."""

    column: Column
    share: float  #: of the variance of ordinary rows


@dataclass(frozen=True, repr=False)
class ZeroRows(Result):
    """Some rows are zero: they show no pattern, and their labels mean nothing."""

    n_rows: int
    n_unobserved: int  #: rows among these without an observed cell


Caution = OtherClusters | OneValueColumn | RulingColumn | ZeroRows
"""A reason to look twice; ``print`` it for a sentence."""


def one_value_column(
    data: Matrix, codes: Tall, classes: np.ndarray
) -> OneValueColumn | None:
    """Return the column that sets most clusters apart alone, if one does.

    Parameters
    ----------
    data : Matrix of shape (n_samples, n_features)
    codes : array of shape (n_samples,)
        The cluster of each row, numbered from 0.
    classes : ndarray of shape (n_clusters,)
        The label of each cluster.
    """
    rows = _rows_to_compare(data, data.sqnorms > 0)
    labels = to_host(data.ops.take_rows(codes, rows))
    clusters, labels = np.unique(labels, return_inverse=True)
    if len(rows) < Cautions.LEAST_ROWS * len(clusters):
        return None

    columns, means = _telling_columns(data.take(rows), labels, len(clusters))
    if len(columns) == 0:
        return None

    # A cluster has a value of its own if it is equal to that of no other cluster.
    n_equal = np.isclose(means[:, :, None], means[:, None, :]).sum(axis=2)
    has_own_value = n_equal == 1  # (n_columns, n_clusters)
    order = np.argsort(-has_own_value.sum(axis=1), kind="stable")

    names = data.names or range(data.shape[1])
    named_columns = [names[column] for column in columns[order]]
    clusters_apart = clusters[has_own_value[order[0]]]
    return OneValueColumn(
        column=named_columns[0],
        other_columns=tuple(named_columns[1:]),
        clusters=tuple(classes[clusters_apart].tolist()),
    )


def _telling_columns(
    X: Matrix, labels: np.ndarray, n_clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return columns that vary between clusters alone, and their means in clusters.

    Means are of shape (n_columns, n_clusters).
    """
    members = np.eye(n_clusters)[labels]
    cluster_sizes = members.sum(axis=0)
    sums = to_host(X.adjoint(X.cast(members))).astype(float)  # (n_features, n_clusters)
    squares = to_host(X.column_sqnorms())
    squares_within = squares - (sums**2 / cluster_sizes).sum(axis=1)
    has_one_value = (squares_within <= Small.EXACT * squares) & (squares > 0)
    columns = np.flatnonzero(has_one_value)
    means = sums[columns] / cluster_sizes

    # Small clusters have one value by chance, such as a word of a few like rows.
    usual_value = np.median(means[:, labels], axis=1, keepdims=True)
    n_other_rows = (~np.isclose(means, usual_value)) @ cluster_sizes
    is_telling = n_other_rows >= Cautions.LEAST_ROWS
    return columns[is_telling], means[is_telling]


def ruling_column(data: Matrix) -> RulingColumn | None:
    """Return the column that would decide clusters alone, if there is one."""
    drawn_rows = _rows_to_compare(data, _is_of_usual_length(data))
    rows = data.take(drawn_rows)
    n = rows.shape[0]
    if n < Cautions.LEAST_ROWS:
        return None

    ones = rows.cast(np.ones((n, 1)))
    mean_squares = to_host(rows.column_sqnorms()) / n  # (n_features,)
    means = to_host(rows.adjoint(ones))[:, 0].astype(float) / n
    variances = mean_squares - means**2
    variances[variances <= Small.ROUNDING * mean_squares] = 0.0

    # True and false have no unit, and are not compared with.
    is_true_or_false = mean_squares * data.unit == means
    is_measured = (variances > 0) & ~is_true_or_false
    if not is_measured.any():
        return None

    measured_variances = np.where(is_measured, variances, 0.0)
    column = int(measured_variances.argmax())
    share = float(variances[column] / variances.sum())
    if share <= Cautions.RULING:
        return None

    deviations = np.sqrt(variances[is_measured])
    if not decides_alone(deviations).any():
        return None

    name = data.names[column] if data.names else column
    return RulingColumn(column=name, share=share)


def _is_of_usual_length(data: Matrix) -> Tall:
    """Tell which rows are neither zero nor huge: these would show their own columns."""
    sqnorms = data.sqnorms
    is_nonzero = sqnorms > 0
    nonzero_sqnorms = data.ops.rows_where(sqnorms, is_nonzero)

    middle = np.array([nonzero_sqnorms.shape[0] // 2])
    (median,) = data.ops.in_order(nonzero_sqnorms, middle)
    return is_nonzero & (sqnorms <= Cautions.HUGE**2 * float(median))


def _rows_to_compare(data: Matrix, is_candidate: Tall) -> np.ndarray:
    """Draw the positions of rows in which columns are compared."""
    n_affordable = max(Cautions.ENTRIES // data.shape[1], 1)
    n_drawn = min(Refitting.ROWS, n_affordable)
    return data.ops.draw_rows(is_candidate, n_drawn, np.random.default_rng(0))


def decides_alone(deviations: np.ndarray) -> np.ndarray:
    """Tell which columns decide alone: those that vary several times more than most."""
    threshold = Columns.DECIDES_ALONE * lower_median(deviations)
    return np.asarray(deviations > threshold)


def lower_median(values: np.ndarray) -> float:
    """Return the median, or the lower of the two in the middle."""
    middle = (len(values) - 1) // 2
    return float(np.sort(values)[middle])


def zero_rows(data: Matrix, is_given: np.ndarray) -> ZeroRows | None:
    """Return how many rows are zero, without those whose labels were given."""
    # A label that was given means something, whatever the row.
    is_zero = (data.sqnorms == 0) & ~data.to_device(is_given)
    n_rows = checks.count_rows(data, is_zero)
    if n_rows == 0:
        return None

    is_unobserved = filled_cells(data) == data.shape[1]
    return ZeroRows(n_rows=n_rows, n_unobserved=int(is_unobserved[~is_given].sum()))
