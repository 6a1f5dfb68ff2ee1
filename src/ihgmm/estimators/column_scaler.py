"""Columns in different units, made comparable as a step before clustering."""

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
        three times that of half of the columns. If there is none, all columns are left
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

    _checks: ClassVar = {"method": partial(check_choice, choices=METHODS)}

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
        means, deviations = self._read(data)
        # Nothing can be divided by a number whose inverse is beyond all numbers.
        deviations = np.where(deviations < np.finfo(data.dtype).tiny, 0.0, deviations)
        is_centred = self._choose(data, means, deviations)
        is_divided = deviations > 0
        if is_centred is None:
            is_divided = is_centred = np.zeros(len(means), dtype=bool)
        self.scale_ = np.where(is_divided, deviations, 1.0)
        self.center_ = np.where(is_divided & is_centred, means, 0.0)
        words = np.where(self.center_ != 0, "centred and divided", "divided")
        self.decisions_ = tuple(np.where(is_divided, words, "left alone").tolist())
        return self

    def _read(self, data: Matrix) -> tuple[np.ndarray, np.ndarray]:
        """Learn the range of each column; return means and standard deviations.

        A deviation is 0 where a column is constant or has no number.
        """
        moments = StandardScaler(with_mean=not data.sparse)
        is_whole = not (data.streamed or data.distributed)
        ends = []
        for block in [_entries(data)] if is_whole else data.map(_entries):
            low, high = column_ranges(block)
            bad = (np.isinf(low) | np.isinf(high)) & (low <= high)  # else it is empty
            if bad.any():
                raise ValueError(
                    f"Input X contains infinity in column {_name(data, bad.argmax())}; "
                    "give numbers, and NaN for those that are not known."
                )
            ends.append((low, high))
            with np.errstate(over="ignore", invalid="ignore"):
                moments.partial_fit(block)
        low, high = np.min(ends, axis=0)[0], np.max(ends, axis=0)[1]
        is_empty = low > high
        self.data_min_ = np.where(is_empty, np.nan, low)
        self.data_max_ = np.where(is_empty, np.nan, high)
        deviations = np.where(is_empty, 0.0, np.sqrt(moments.var_))
        finite = np.isfinite(deviations)
        if not finite.all():
            raise ValueError(
                f"The squares of column {_name(data, finite.argmin())} of X overflow; "
                "divide it by a large number."
            )
        # scikit-learn gives 1 where rounding is all that varies.
        deviations[moments.scale_ != deviations] = 0
        return np.nan_to_num(moments.mean_), deviations

    def _choose(
        self, data: Matrix, means: np.ndarray, deviations: np.ndarray
    ) -> np.ndarray | None:
        """Say why, and return which columns are centred; None if all are left alone."""
        is_centred = np.full(len(means), self.method == "standardize")
        if self.method != "auto":
            self.reason_ = f"The method is {self.method!r}, for all columns."
            return None if self.method == "none" else is_centred
        if suited_noise(data, surely=True) == "counts":
            self.reason_ = (
                "The columns look like counts, whose noise grows with the mean."
            )
            return is_centred
        # True and false and shares have no unit, and say nothing about those of others.
        is_share = (self.data_min_ == 0) & (self.data_max_ == 1)
        measured = np.flatnonzero(~is_share & (deviations > 0))
        aside = ", those that reach from 0 to 1 aside" * bool(is_share.any())
        if not (len(measured) and decides_alone(deviations[measured]).any()):
            self.reason_ = (
                f"No column varies more than {Columns.DECIDES_ALONE:g} times as much "
                f"as half of the columns{aside}."
            )
            # Columns without a mean of 0 weigh by their root mean squares.
            weights = np.hypot(means, deviations)
            for j in measured[weights[measured].argsort()[:1]]:
                ratio = weights[j] / lower_median(weights[measured])
                if ratio * Columns.DECIDES_ALONE < 1:
                    small = f"has {ratio:.2g} times the root mean square of most others"
                    self.reason_ += f" Column {_name(data, j)} {small}{aside}."
            return None
        widest = measured[deviations[measured].argmax()]
        ratio = deviations[widest] / lower_median(deviations[measured])
        self.reason_ = (
            f"Column {_name(data, widest)} varies at least {int(ratio):,} times as "
            f"much as half of the columns{aside}."
        )
        if not data.sparse:
            is_centred = (np.abs(means) > Columns.OFFSET * deviations) & ~is_share
            # Many columns are mostly of one kind, such as genes: a few stay as others.
            if len(means) >= Columns.WIDE and is_centred.mean() < Columns.FEW_OFFSETS:
                is_centred[:] = False
        return is_centred

    def inverse_transform(self, X: Any) -> Any:
        """Return rows in the units of the data again."""
        check_is_fitted(self)
        data = open_matrix(X)
        _check_n_features(self, data, reset=False)
        return data.map_rows(partial(self._changed, back=True), data.dtype, whole=True)

    def _changed(self, X: Any, back: bool = False) -> Any:
        """Return rows in memory or on their device, scaled or as they were before."""
        data = open_matrix(X)
        rows: Any = data.take(slice(0, data.shape[0]))
        xp = rows.ops.xp
        if rows.n_entries and rows.ops.number(xp.any(xp.isinf(rows.values))):
            raise ValueError("X has infinite cells; replace them by numbers, or NaN.")
        if not self.center_.any():
            factors = rows.cast(self.scale_ if back else 1 / self.scale_)
            return rows.multiplied(None, factors, rows.metadata).array
        if data.sparse:
            raise ValueError(
                "X is sparse, and columns are centred, which fills sparse data up; fit "
                "with method='scale', or give a dense array."
            )
        center, scale = rows.cast(self.center_), rows.cast(self.scale_)
        return rows.array * scale + center if back else (rows.array - center) / scale


def column_ranges(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest number of each column of an array, NaN aside.

    A column without a number has infinity and minus infinity.
    """
    if hasattr(X, "nnz"):
        low, high = (bound(axis=0).toarray().ravel() for bound in (X.nanmin, X.nanmax))
        return low, high
    low = np.fmin.reduce(X, axis=0, initial=np.inf)
    return low, np.fmax.reduce(X, axis=0, initial=-np.inf)


def _entries(block: Matrix) -> Any:
    """Return the entries of a block of rows on the host, sparse if they were."""
    array = block.take(slice(0, block.shape[0])).array
    return array if block.on_host else to_host(array)


def _name(data: Matrix, column: Any) -> str:
    return str(column) if data.names is None else repr(data.names[column])
