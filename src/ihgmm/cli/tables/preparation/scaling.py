"""Columns in different units, made comparable for a fit, and later as they were."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ihgmm.cli.tables import notes
from ihgmm.cli.tables.request import PreparationRequest
from ihgmm.cli.tables.table import Table
from ihgmm.matrix import Scaled, Shifted, as_matrix
from ihgmm.words.phrases import counted

if TYPE_CHECKING:
    from ihgmm.estimators import ColumnScaler


def prepare_columns(table: Table, asked: PreparationRequest) -> Table:
    """Return a table with its columns prepared, and a note of it."""
    if asked.prepare == "none":
        return table
    if asked.prepare == "auto":
        return _prepared_as_data_ask(table, asked)
    return _scaled(table, asked, are_counts=False)


def _prepared_as_data_ask(table: Table, asked: PreparationRequest) -> Table:
    """Prepare columns unless they have one unit, or the model evens out their noise."""
    has_even_noise = asked.columns in ("counts", "noise")
    if table.has_texts and not has_even_noise:
        return _with_weighted_words(table)

    are_counts = asked.columns == "counts" or _look_like_counts(table)
    if not (table.is_mixed or are_counts):
        return table

    if has_even_noise:
        return table.with_notes(notes.left_to_even_noise(asked.columns))
    if are_counts and asked.columns in ("auto", "roots"):
        return table.with_notes(notes.ROOTS_OF_COUNTS)
    return _scaled(table, asked, are_counts)


def _scaled(table: Table, asked: PreparationRequest, are_counts: bool) -> Table:
    """Return a table whose columns a ColumnScaler has prepared, and a note of it."""
    scaler = _learn_scaler(table, asked)
    note = notes.columns_prepared(
        scaler,
        table.column_names,
        is_chosen=asked.prepare == "auto",
        are_counts=are_counts,
    )

    table = table.with_notes(note)
    if set(scaler.decisions_) <= {"left alone"}:
        return table
    return apply_scaler(table, scaler)


def _look_like_counts(table: Table) -> bool:
    """Tell whether cells are counts of rare events: half of them or more are 0."""
    from ihgmm.numerics.whitening import suited_noise

    return suited_noise(as_matrix(table.X), surely=True) == "counts"


def _with_weighted_words(table: Table) -> Table:
    """Return a table of words that are weighed by tf-idf."""
    from sklearn.feature_extraction.text import TfidfTransformer

    # As docs/tables.md compares it with others.
    weights = TfidfTransformer(norm=None, sublinear_tf=True).fit(table.X)
    return apply_scaler(table.with_notes(notes.WEIGHTED_WORDS), weights)


def _learn_scaler(table: Table, asked: PreparationRequest) -> "ColumnScaler":
    """Return a scaler; wild cells of dense data have no part in it, if it so asks."""
    from ihgmm.estimators import ColumnScaler

    X = table.X
    wild = np.empty((0, 2), dtype=np.intp)
    if asked.spares_wild_cells and not (table.is_sparse or table.is_on_disk):
        wild = _wild_cells(table)
        X = table.X.astype(np.float64)
        X[tuple(wild.T)] = np.nan
    columns = X if table.names is None else replace(table, X=X).named_data

    is_auto = asked.prepare == "auto"
    scaler = ColumnScaler(asked.prepare).fit(columns)  # type: ignore[arg-type]
    if is_auto and table.rows.batches is not None and scaler.center_.any():
        reason = f"{scaler.reason_} None is centred: batches multiply columns."
        scaler = ColumnScaler("scale").fit(columns)
        scaler.reason_ = reason

    is_flag = np.isin(table.column_names, table.flags)
    if is_auto and is_flag.any() and (scaler.scale_ == 1).all():
        scaler = ColumnScaler("scale").fit(columns)
        scaler.reason_ = "Categories count as one column each."

    if len(wild):  # the fit looks again, in prepared columns
        scaler.reason_ += f" {counted(len(wild), 'wild cell')} had no part in that."

    # The flags of a category are of length 1: together they count as one column.
    scaler.scale_[is_flag] = 1.0
    scaler.center_[is_flag] = 0.0

    decisions = np.where(is_flag, "left alone", scaler.decisions_)
    scaler.decisions_ = tuple(decisions.tolist())
    return scaler


def _wild_cells(table: Table) -> np.ndarray:
    """Return the row and the column of each cell that fits neither."""
    from ihgmm._checks import check_matrix
    from ihgmm.numerics.wild_cells import learn_cell_filler
    from ihgmm.statistics.missing_cells import missing_cells

    data = check_matrix(table.X, missing="fit")
    filler = learn_cell_filler(data)
    return missing_cells(filler(data).incomplete, data)


def apply_scaler(table: Table, scaler: Any) -> Table:
    """Return a table whose columns are prepared, for a fit or as they were for one.

    ``scaler`` is a fitted :class:`~ihgmm.ColumnScaler` or a ``TfidfTransformer``.
    """
    if table.is_on_disk:
        X = _scaled_on_disk(table, scaler)
    else:
        X = scaler.transform(table.X)
        if table.is_sparse:
            X = sp.csr_array(X)
    return replace(table, X=X, scaler=scaler, original=table.X)


def _scaled_on_disk(table: Table, scaler: Any) -> Scaled:
    """Return data on disk as a view in which columns are prepared."""
    if not hasattr(scaler, "center_"):
        raise ValueError(
            f"{table.source} is read block by block, without words weighed; fit with "
            "--prepare scale, or raise --memory."
        )

    X = as_matrix(table.X)
    if scaler.center_.any():
        X = Shifted(X, scaler.center_)
    return Scaled(X, columns=1 / scaler.scale_)
