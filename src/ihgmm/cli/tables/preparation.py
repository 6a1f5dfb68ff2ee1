"""Columns in different units: made comparable in the way that suits each kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm.cli.tables.columns import WIDE
from ihgmm.cli.tables.missing import Cells, examine
from ihgmm.cli.tables.table import Note, Table, quote
from ihgmm.matrix import Scaled, as_matrix
from ihgmm.words.phrases import counted, figure, sentence

PREPARATIONS = ("auto", "none", "scale", "standardize")
# Of 77 labelled tables of R's collections, 60 have a column that decides alone: mean
# agreement with the labels (adjusted Rand index) is .25 as they are, .28 with all
# columns divided, .34 with all standardised, and .36 with OFFSET as below. In the other
# 17 it is .23 as they are, .24 if they were prepared so, and scales keep their meaning.
# The deviations from zero to the mean of a column whose zero is no natural one, such as
# temperatures and years. Amounts keep theirs: of customers of very different sizes (180
# rows, five draws) none is misplaced then, and half of them if all is standardised.
OFFSET = 3.0
# What looks like counts is divided, wherever it comes from: the deviation of a count is
# about the root of its mean. On ten real tables of counts (cells, species, words) the
# mean agreement is .31 as they are, .38 divided and .35 with --whiten counts; in nine
# draws of thin simulated ones it is .51, .81 and .86.


def prepare_columns(
    table: Table, how: str, *, wild_cells: bool = False, whiten: str | None = None
) -> Table:
    """Return a table with its columns prepared, and a note of it.

    ``how`` is one of :data:`PREPARATIONS`. ``"auto"`` leaves columns to a model that
    whitens them as ``whiten`` says; :func:`learn_scaler` tells the rest.
    """
    from ihgmm.numerics.whitening import suited_noise

    noise: str | None = None
    if how == "auto":
        noise = suited_noise(as_matrix(table.X), surely=whiten is None)
        noise = noise if whiten in (None, "auto") else whiten
    is_counts, leaves = noise == "counts", whiten is not None and noise is not None
    if how == "auto" and table.counts_words and not leaves:
        return _weigh_words(table)
    if how == "none" or (how == "auto" and not (table.is_mixed or is_counts)):
        return table
    if leaves:
        text = f"Left the columns as they are: --whiten {whiten} evens out their noise."
        return table.noting(Note(text))
    if how == "standardize" and table.is_sparse:
        raise ValueError(
            "--prepare standardize subtracts column means, which fills sparse data up; "
            "take --prepare scale, or store the data as a dense array."
        )
    scaler, cells = learn_scaler(table, how, is_counts, wild_cells)
    if scaler is None:
        text = "Left the columns as they are: no column would decide alone."
        return table.noting(Note(text))
    shift = scaler.mean_ if scaler.with_mean else np.zeros(len(scaler.scale_))
    kinds, measured = [], ~np.isin(table.column_names, table.flags)
    for places, what in (
        (np.flatnonzero(measured & (shift == 0)), "divided {} by the deviation"),
        (np.flatnonzero(measured & (shift != 0)), "gave {} mean 0 and deviation 1"),
    ):
        for j in places[:1]:  # one of each kind, before and after
            ends = np.array([cells.low[j], cells.high[j]])
            before = " to ".join(map(figure, ends))
            after = " to ".join(map(figure, (ends - shift[j]) / scaler.scale_[j]))
            name, done = quote(table.column_names[j]), counted(len(places), "column")
            kinds.append(f"{what.format(done)} ({name}: {before} became {after})")
    note = Note(f"{sentence(', '.join(kinds))}.")
    if is_counts:
        why = "They look like counts, whose noise grows with the mean."
        note = Note(f"{note} {why}", "Another way to even it out is --whiten counts.")
    return _prepared(table, scaler, note)


def learn_scaler(
    table: Table, how: str, is_counts: bool, wild_cells: bool
) -> tuple[Any, Cells]:
    """Return a StandardScaler for the columns, None to leave them, and their ranges.

    ``"scale"`` divides every column by its deviation, so that rows stay multiples of a
    pattern; ``"standardize"`` subtracts its mean before. ``"auto"`` does nothing where
    deviations are alike, and otherwise divides amounts, and standardises columns whose
    zero means nothing. It divides counts. With ``wild_cells``, cells that fit no row
    have no part in means and deviations, if data are dense and in memory.
    """
    from sklearn.preprocessing import StandardScaler

    from ihgmm._checks import check_matrix
    from ihgmm.numerics.cells import learn_cell_filler
    from ihgmm.statistics.diagnosis import decides_alone
    from ihgmm.statistics.observed import missing_cells

    scaler = StandardScaler(with_mean=not (table.is_sparse or table.on_disk))
    known = table
    if wild_cells and not (table.is_sparse or table.on_disk):
        data = check_matrix(table.X, missing="fit")
        wild = missing_cells(learn_cell_filler(data)(data).incomplete)
        known = replace(table, X=table.X.astype(np.float64))
        known.X[tuple(wild.T)] = np.nan
    cells = examine(known, scaler.partial_fit)
    # True and false have no unit, and say nothing about those of other columns.
    is_flag = (cells.low == 0) & (cells.high == 1)
    deviations = scaler.scale_[~is_flag]
    alike = not (len(deviations) and decides_alone(deviations).any())
    # The flags of a category are of length 1: together they count as one column.
    measured = ~np.isin(table.column_names, table.flags)
    scaler.scale_[~measured] = 1.0
    leaves = how == "auto" and alike and not (is_counts or table.flags)
    if leaves or not measured.any():
        return None, cells
    has_offset = np.full(len(is_flag), how == "standardize")
    if how == "auto" and not (table.on_disk or is_counts):
        has_offset = (np.abs(scaler.mean_) > OFFSET * scaler.scale_) & ~is_flag
        # Many columns are mostly of one kind, such as genes: a few stay as the others.
        if len(has_offset) >= WIDE and has_offset.mean() < 0.1:
            has_offset[:] = False
    scaler.with_mean = bool(has_offset.any())
    if scaler.with_mean:
        scaler.mean_ = np.where(has_offset, scaler.mean_, 0.0)
    return scaler, cells


def _weigh_words(table: Table) -> Table:
    """Return tf-idf: rare words weigh more, and so do words that a text repeats.

    In 12 labelled sets of texts, on which this was chosen, 37% are misplaced, and 43%
    with the counts in the place of their logarithms.
    """
    from sklearn.feature_extraction.text import TfidfTransformer

    weights = TfidfTransformer(norm=None, sublinear_tf=True).fit(table.X)
    note = Note("Weighed words by tf-idf: rare and repeated ones count more.")
    return _prepared(table, weights, note)


def _prepared(table: Table, scaler: Any, note: Note) -> Table:
    X = prepared_columns(table, scaler)
    return table.noting(note, X=X, scaler=scaler, original=table.X)


def prepared_columns(table: Table, scaler: Any) -> Any:
    """Return the data with its columns prepared as for the fit."""
    if table.is_sparse and not table.on_disk:
        return sp.csr_array(scaler.transform(table.X))
    if not table.on_disk:
        return scaler.transform(table.X)
    if scaler.with_mean:
        raise ValueError(
            f"{table.source} is read block by block, and column means are to be "
            "subtracted, which only data in memory take; fit with --prepare scale, or "
            "give more --memory."
        )
    return Scaled(table.X, columns=1 / scaler.scale_)
