"""Columns in different units, made comparable as a step before clustering."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import _check_n_features, check_is_fitted

from ihgmm._checks import open_matrix
from ihgmm._parameters import check_choice
from ihgmm.estimators.base import Scaler, atomic
from ihgmm.matrix import Matrix, to_host
from ihgmm.matrix.materialized import Materialized
from ihgmm.numerics.whitening import suited_noise
from ihgmm.policy import Columns
from ihgmm.statistics.cautions import decides_alone, lower_median

METHODS = ("auto", "none", "scale", "standardize")


class ColumnScaler(Scaler):
    """Make columns in different units comparable, each in the way that suits it.

    Use it for tables with columns such as age, income and temperature, in which the
    column with the largest numbers would decide the clusters. Data in one unit, such as
    pixels, spectra or expressions of genes, need it less. :doc:`/tables` compares it
    with other ways on many tables.

    Parameters
    ----------
    method : {"auto", "scale", "standardize", "none"}, default="auto"
        ``"scale"`` divides each column by its standard deviation. ``"standardize"``
        also subtracts its mean before, which sparse data do not allow. ``"none"``
        leaves columns alone. ``"auto"`` looks for a column whose deviation is more than
        three times the median deviation. If there is none, all columns are left
        alone. If there is one, all are divided, and columns whose zero lies more than
        three deviations from their mean, such as temperatures and years, are centred
        before. Counts of rare events are always divided.

    Attributes
    ----------
    center_, scale_ : ndarray of shape (n_features,)
        What is subtracted from each column, 0 for nothing, and what it is divided by
        then, 1 for nothing.
    decisions_ : tuple of str
        What is done to each column, in words: "left alone", as constant ones are,
        "divided", or "centred and divided".
    reason_ : str
        Why, in a sentence.
    data_min_, data_max_ : ndarray of shape (n_features,)
        Smallest and largest number of each column of the fit; NaN if it has none.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X had names.

    Notes
    -----
    Missing cells, NaN, have no part in the fit and stay missing. Sparse data stay
    sparse and are never centred. ``fit`` reads data on disk and dask arrays once, block
    by block. Arrays on a GPU come back there.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from ihgmm import ColumnScaler, IhSC
    >>> X, kinds = load_wine(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(ColumnScaler(), IhSC(3)).fit(X)
    >>> model[0].reason_
    "Column 'proline' varies at least 387 times as much as half of the columns."
    >>> dict(zip(X.columns[:2], model[0].decisions_))
    {'alcohol': 'centred and divided', 'malic_acid': 'divided'}
    """

    _parameter_checks: ClassVar = {"method": partial(check_choice, choices=METHODS)}

    def __init__(
        self, method: Literal["auto", "none", "scale", "standardize"] = "auto"
    ) -> None:
        self.method = method

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.method != "standardize"
        tags.input_tags.allow_nan = True
        return tags

    @atomic
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from data of (n_samples, n_features) what is done to each column.

        X is array-like, a frame, sparse, of another library, on disk or a dask array.
        ``y`` is ignored. Returns the transformer itself.
        """
        data = open_matrix(X, self)
        if data.sparse and self.method == "standardize":
            raise ValueError(
                "'standardize' subtracts column means, which fills sparse data up; "
                "take 'scale', or give a dense array."
            )

        means, deviations = self._learn_moments(data)
        # The inverse of a smaller number overflows.
        deviations = np.where(deviations < np.finfo(data.dtype).tiny, 0.0, deviations)

        decision = self._decide(data, means, deviations)
        is_divided = (deviations > 0) & decision.is_scaled
        self.scale_ = np.where(is_divided, deviations, 1.0)
        self.center_ = np.where(is_divided & decision.is_centred, means, 0.0)

        words = np.where(self.center_ != 0, "centred and divided", "divided")
        self.decisions_ = tuple(np.where(is_divided, words, "left alone").tolist())

        self.reason_ = decision.reason
        return self

    def _learn_moments(self, data: Matrix) -> tuple[np.ndarray, np.ndarray]:
        """Learn the range of each column; return means and standard deviations.

        A deviation is 0 where a column is constant or has no number.
        """
        moments = StandardScaler(with_mean=not data.sparse)
        is_in_one_block = not (data.streamed or data.distributed)

        ranges = []  # of each block: smallest and largest numbers
        for block in [_entries(data)] if is_in_one_block else data.map(_entries):
            lowest, highest = column_ranges(block)
            is_empty = lowest > highest

            is_infinite = (np.isinf(lowest) | np.isinf(highest)) & ~is_empty
            if is_infinite.any():
                column = _column_name(data, is_infinite.argmax())
                raise ValueError(
                    f"Input X contains infinity in column {column}; "
                    "give numbers, and NaN for those that are not known."
                )

            ranges.append((lowest, highest))
            with np.errstate(over="ignore", invalid="ignore"):
                moments.partial_fit(block)

        lowest = np.min([lowest for lowest, _ in ranges], axis=0)
        highest = np.max([highest for _, highest in ranges], axis=0)
        is_empty = lowest > highest
        self.data_min_ = np.where(is_empty, np.nan, lowest)
        self.data_max_ = np.where(is_empty, np.nan, highest)

        deviations = np.where(is_empty, 0.0, np.sqrt(moments.var_))
        is_finite = np.isfinite(deviations)
        if not is_finite.all():
            column = _column_name(data, is_finite.argmin())
            raise ValueError(
                f"The squares of column {column} of X overflow; "
                "divide it by a large number."
            )

        # scikit-learn has a scale of 1 for columns in which only rounding varies.
        deviations[moments.scale_ != deviations] = 0
        return np.nan_to_num(moments.mean_), deviations

    def _decide(
        self, data: Matrix, means: np.ndarray, deviations: np.ndarray
    ) -> _Decision:
        """Decide what is done to the columns, and say why."""
        no_column = np.zeros(len(means), dtype=bool)
        if self.method != "auto":
            return _Decision(
                reason=f"The method is {self.method!r}, for all columns.",
                is_scaled=self.method != "none",
                is_centred=~no_column if self.method == "standardize" else no_column,
            )

        if suited_noise(data, surely=True) == "counts":
            return _Decision(
                reason="The columns look like counts, whose noise grows with the mean.",
                is_scaled=True,
                is_centred=no_column,
            )

        # Yes and no as 1 and 0, and shares, have no unit: they do not show whether the
        # units of other columns differ.
        is_share = (self.data_min_ == 0) & (self.data_max_ == 1)
        but_shares = ", those that reach from 0 to 1 aside" if is_share.any() else ""
        measured = np.flatnonzero(~is_share & (deviations > 0))

        if not (len(measured) and decides_alone(deviations[measured]).any()):
            reason = (
                f"No column varies more than {Columns.DECIDES_ALONE:g} times as much "
                f"as half of the columns{but_shares}."
            )
            reason += _note_on_smallest(data, measured, means, deviations, but_shares)
            return _Decision(reason=reason, is_scaled=False, is_centred=no_column)

        widest = measured[deviations[measured].argmax()]
        ratio = deviations[widest] / lower_median(deviations[measured])
        reason = (
            f"Column {_column_name(data, widest)} varies at least {int(ratio):,} times "
            f"as much as half of the columns{but_shares}."
        )

        is_centred = no_column
        if not data.sparse:
            is_centred = (np.abs(means) > Columns.OFFSET * deviations) & ~is_share
            # Many columns are mostly of one kind, such as genes: then a few far from 0
            # are not centred either.
            is_wide = len(means) >= Columns.WIDE
            if is_wide and is_centred.mean() < Columns.FEW_OFFSETS:
                is_centred = no_column

        return _Decision(reason=reason, is_scaled=True, is_centred=is_centred)

    def inverse_transform(self, X: Any) -> Any:
        """Return rows in the units of the data again."""
        check_is_fitted(self)
        data = open_matrix(X)
        _check_n_features(self, data, reset=False)
        return data.map_rows(self._restore_rows, data.dtype, whole=True)

    def _change_rows(self, X: Any) -> Any:
        rows = _rows_at_hand(X)
        if not self.center_.any():
            return _multiplied_columns(rows, 1 / self.scale_)

        _check_dense(rows)
        center = rows.cast(self.center_)
        return (rows.array - center) / rows.cast(self.scale_)

    def _restore_rows(self, X: Any) -> Any:
        """Return rows in memory or on their device as they were before."""
        rows = _rows_at_hand(X)
        if not self.center_.any():
            return _multiplied_columns(rows, self.scale_)

        _check_dense(rows)
        return rows.array * rows.cast(self.scale_) + rows.cast(self.center_)


@dataclass(frozen=True)
class _Decision:
    """What is done to the columns."""

    reason: str
    is_scaled: bool  # whether columns that vary are divided
    is_centred: np.ndarray  # (n_features,): whether the mean is subtracted before


def _note_on_smallest(
    data: Matrix,
    measured: np.ndarray,
    means: np.ndarray,
    deviations: np.ndarray,
    but_shares: str,
) -> str:
    """Name the column that hardly counts beside most others, if there is one."""
    if not len(measured):
        return ""

    # Columns that are not centred count by their root mean squares.
    weights = np.hypot(means, deviations)
    smallest = measured[weights[measured].argsort()[0]]

    ratio = weights[smallest] / lower_median(weights[measured])
    if ratio * Columns.DECIDES_ALONE >= 1:
        return ""

    return (
        f" Column {_column_name(data, smallest)} has {ratio:.2g} times the root mean "
        f"square of most others{but_shares}."
    )


def column_ranges(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest number of each column of an array, NaN aside.

    A column without a number has infinity and minus infinity.
    """
    if hasattr(X, "nnz"):
        return X.nanmin(axis=0).toarray().ravel(), X.nanmax(axis=0).toarray().ravel()
    lowest = np.fmin.reduce(X, axis=0, initial=np.inf)
    highest = np.fmax.reduce(X, axis=0, initial=-np.inf)
    return lowest, highest


def _entries(block: Matrix) -> Any:
    """Return the entries of a block of rows on the host, sparse if they were."""
    array = block.take(slice(0, block.shape[0])).array
    return array if block.on_host else to_host(array)


def _rows_at_hand(X: Any) -> Materialized:
    """Return rows in memory or on their device, none of whose cells are infinite."""
    data = open_matrix(X)
    rows = data.take(slice(0, data.shape[0]))
    xp = rows.ops.xp
    if rows.n_entries and rows.ops.number(xp.any(xp.isinf(rows.values))):
        raise ValueError("X has infinite cells; replace them by numbers, or NaN.")
    return rows


def _multiplied_columns(rows: Materialized, factors: np.ndarray) -> Any:
    """Return the array of rows with each column multiplied; sparse ones stay so."""
    return rows.multiplied(None, rows.cast(factors), rows.metadata).array


def _check_dense(rows: Matrix) -> None:
    """Raise for sparse rows, of which nothing can be subtracted."""
    if rows.sparse:
        raise ValueError(
            "X is sparse, and columns are centred, which fills sparse data up; fit "
            "with method='scale', or give a dense array."
        )


def _column_name(data: Matrix, column: Any) -> str:
    """Return the name of a column, or its position if columns have none."""
    return str(column) if data.names is None else repr(data.names[column])
