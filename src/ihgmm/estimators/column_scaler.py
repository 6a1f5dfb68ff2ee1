"""Columns in different units, made comparable as a step before clustering."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ihgmm._checks import open_matrix
from ihgmm._parameters import check_choice
from ihgmm.estimators.base import atomic
from ihgmm.matrix import Matrix, to_host
from ihgmm.numerics.whitening import suited_noise
from ihgmm.policy import Columns
from ihgmm.statistics.diagnosis import decides_alone, lower_median

METHODS = ("auto", "none", "scale", "standardize")


class ColumnScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Make columns in different units comparable, each in the way that suits it.

    Use it for tables with columns such as age, income and temperature, in which the
    column with the largest numbers would decide the clusters. Data in one unit, such as
    pixels, spectra or expressions of genes, need it less. :doc:`/tables` compares it
    with other ways on many tables.

    Parameters
    ----------
    method : {"auto", "scale", "standardize", "none"}, default="auto"
        ``"scale"`` divides each column by its standard deviation. Zero stays zero, so
        rows stay multiples of a pattern. ``"standardize"`` also subtracts its mean
        before, which sparse data do not allow. ``"none"`` leaves columns alone.
        ``"auto"`` looks for a column whose deviation is more than three times that of
        the median column. If there is none, all columns are left alone. If there is
        one, all are divided, and columns whose zero lies more than three deviations
        from their mean, such as temperatures and years, are centred before. Counts of
        rare events are always divided.

    Attributes
    ----------
    center_, scale_ : ndarray of shape (n_features,)
        What is subtracted from each column, 0 for nothing, and what it is divided by
        then, 1 for nothing.
    decisions_ : tuple of str
        What is done to each column, in words: "left alone", "divided", or "centred and
        divided". Columns that are constant are left alone.
    reason_ : str
        Why, in a sentence.
    data_min_, data_max_ : ndarray of shape (n_features,)
        Smallest and largest number of each column of the fit; NaN if it has none.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X had names.

    See Also
    --------
    Biwhitener : makes noise alike in rows and columns, for data in one unit.

    Notes
    -----
    Missing cells, NaN, have no part in the fit and stay missing. Sparse data stay
    sparse and are never centred. Data on disk and dask arrays are read once, block by
    block, and ``"auto"`` only divides them. Arrays on a GPU come back there.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from ihgmm import ColumnScaler, IhSC
    >>> from ihgmm.metrics import misclassification_rate
    >>> X, kinds = load_wine(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(ColumnScaler(), IhSC(3)).fit(X)
    >>> round(misclassification_rate(kinds, model[-1].labels_), 2)
    0.04
    >>> model[0].reason_
    "Column 'proline' varies 388 times as much as the median column."
    >>> dict(zip(X.columns[:2], model[0].decisions_))
    {'alcohol': 'centred and divided', 'malic_acid': 'divided'}
    """

    center_: np.ndarray
    scale_: np.ndarray
    decisions_: tuple[str, ...]
    reason_: str
    data_min_: np.ndarray
    data_max_: np.ndarray

    def __init__(
        self, method: Literal["auto", "none", "scale", "standardize"] = "auto"
    ) -> None:
        self.method = method

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.method != "standardize"
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_parameters(self) -> None:
        check_choice("method", self.method, METHODS)

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
        means, deviations = self._read(data)
        # Nothing can be divided by a number whose inverse is beyond all numbers.
        deviations = np.where(deviations < np.finfo(data.dtype).tiny, 0.0, deviations)
        self.center_ = np.zeros(len(means))
        self.scale_ = np.ones(len(means))
        is_centred = self._choose(data, means, deviations)
        if is_centred is not None:
            varies = deviations > 0
            self.scale_[varies] = deviations[varies]
            self.center_[is_centred & varies] = means[is_centred & varies]
        words = np.where(self.center_ != 0, "centred and divided", "divided")
        is_left = (deviations == 0) | (is_centred is None)
        self.decisions_ = tuple(np.where(is_left, "left alone", words).tolist())
        return self

    def _read(self, data: Matrix) -> tuple[np.ndarray, np.ndarray]:
        """Learn the range of each column; return means and standard deviations.

        A deviation is 0 where a column is constant or has no number.
        """
        moments = StandardScaler(with_mean=not data.sparse)
        is_whole = not (data.streamed or data.distributed)
        blocks = [_entries(data)] if is_whole else data.map(_entries)
        ends = []
        for block in blocks:
            ends.append(column_ranges(block))
            _refuse_infinity(data, *ends[-1])
            with np.errstate(over="ignore", invalid="ignore"):
                moments.partial_fit(block)
        low, high = np.min(ends, axis=0)[0], np.max(ends, axis=0)[1]
        is_empty = low > high
        self.data_min_ = np.where(is_empty, np.nan, low)
        self.data_max_ = np.where(is_empty, np.nan, high)
        deviations = np.where(is_empty, 0.0, np.sqrt(moments.var_))
        if not np.isfinite(deviations).all():
            column = _name(data, int(np.isfinite(deviations).argmin()))
            raise ValueError(
                f"The squares of column {column} of X overflow; divide it by a large "
                "number."
            )
        # scikit-learn gives 1 where rounding is all that varies.
        deviations[moments.scale_ != deviations] = 0
        return np.nan_to_num(moments.mean_), deviations

    def _choose(
        self, data: Matrix, means: np.ndarray, deviations: np.ndarray
    ) -> np.ndarray | None:
        """Say why, and return which columns are centred; None if all are left alone."""
        if self.method != "auto":
            verb = {"none": "leaves", "scale": "divides", "standardize": "standardises"}
            alone = " alone" * (self.method == "none")
            self.reason_ = f"{self.method!r} {verb[self.method]} all columns{alone}."
            if self.method == "none":
                return None
            return np.full(len(means), self.method == "standardize")
        is_centred = np.zeros(len(means), bool)
        if suited_noise(data, surely=True) == "counts":
            self.reason_ = (
                "The columns look like counts, whose noise grows with the mean."
            )
            return is_centred
        # True and false have no unit, and say nothing about those of other columns.
        is_flag = (self.data_min_ == 0) & (self.data_max_ == 1)
        measured = np.flatnonzero(~is_flag & (deviations > 0))
        if not (len(measured) and decides_alone(deviations[measured]).any()):
            times = f"{Columns.DECIDES_ALONE:g} times"
            aside = ", true and false aside" * bool(is_flag.any())
            self.reason_ = (
                f"No column varies {times} as much as the median column{aside}."
            )
            return None
        widest = measured[deviations[measured].argmax()]
        ratio = deviations[widest] / lower_median(deviations[measured])
        times = f"{ratio:,.0f} times"
        name = _name(data, int(widest))
        self.reason_ = f"Column {name} varies {times} as much as the median column."
        if not (data.sparse or data.streamed or data.distributed):
            is_centred = (np.abs(means) > Columns.OFFSET * deviations) & ~is_flag
            # Many columns are mostly of one kind, such as genes: a few stay as others.
            if len(means) >= Columns.WIDE and is_centred.mean() < Columns.FEW_OFFSETS:
                is_centred[:] = False
        return is_centred

    def transform(self, X: Any) -> Any:
        """Return rows, new or old, with their columns centred and divided."""
        check_is_fitted(self)
        data = open_matrix(X, self, reset=False)
        return data.map_rows(self._forward, data.dtype, whole=True)

    def inverse_transform(self, X: Any) -> Any:
        """Return rows in the units of the data again."""
        check_is_fitted(self)
        data = open_matrix(X)
        if data.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {data.shape[1]} features, but ColumnScaler is expecting "
                f"{self.n_features_in_} features as input."
            )
        return data.map_rows(self._backward, data.dtype, whole=True)

    def _forward(self, X: Any) -> Any:
        rows = self._rows(X)
        if self.center_.any():
            return (rows.array - rows.cast(self.center_)) / rows.cast(self.scale_)
        return rows.multiplied(None, rows.cast(1 / self.scale_), rows.about).array

    def _backward(self, X: Any) -> Any:
        rows = self._rows(X)
        if self.center_.any():
            return rows.array * rows.cast(self.scale_) + rows.cast(self.center_)
        return rows.multiplied(None, rows.cast(self.scale_), rows.about).array

    def _rows(self, X: Any) -> Any:
        """Return rows in memory or on their device, of a kind that can be changed."""
        data = open_matrix(X)
        if data.sparse and self.center_.any():
            raise ValueError(
                "X is sparse, and columns are centred, which fills sparse data up; fit "
                "with method='scale', or give a dense array."
            )
        rows: Any = data.take(slice(0, data.shape[0]))
        if not rows.sparse and rows.ops.number(
            rows.ops.xp.any(rows.ops.xp.isinf(rows.array))
        ):
            raise ValueError(
                "X has infinite cells; replace them by numbers, or by NaN."
            )
        return rows


def column_ranges(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest number of each column of an array, NaN aside.

    A column without a number has infinity and minus infinity.
    """
    if hasattr(X, "nnz"):
        low, high = (bound(axis=0).toarray().ravel() for bound in (X.nanmin, X.nanmax))
        return low, high
    known = ~np.isnan(X)
    low = np.min(X, axis=0, where=known, initial=np.inf)
    return low, np.max(X, axis=0, where=known, initial=-np.inf)


def _entries(block: Matrix) -> Any:
    """Return the entries of a block of rows on the host, sparse if they were."""
    array = block.take(slice(0, block.shape[0])).array  # type: ignore[attr-defined]
    return array if block.on_host else to_host(array)


def _refuse_infinity(data: Matrix, low: np.ndarray, high: np.ndarray) -> None:
    bad = (np.isinf(low) | np.isinf(high)) & (low <= high)  # else it has no number
    if bad.any():
        raise ValueError(
            f"Input X contains infinity in column {_name(data, int(bad.argmax()))}; "
            "give numbers, and NaN for those that are not known."
        )


def _name(data: Matrix, column: int) -> str:
    return str(column) if data.names is None else repr(data.names[column])
