"""Tables made ready for a model: missing cells, constants, columns in other units."""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm.cli.tables.columns import left_out_note
from ihgmm.cli.tables.table import Request, Table, Warned, quote
from ihgmm.matrix import Scaled, Shifted, as_matrix
from ihgmm.words.phrases import counted, figure, percent, sentence

MANY = 0.2  # the share of cells or rows from which results may not represent the data


def complete_table(table: Table, request: Request, handling: str, fills: bool) -> Table:
    """Return columns that say something, with missing cells handled in such a way."""
    if handling == "auto":
        handling = "fit" if fills else "drop"
    counts = np.ones(1) if table.texts is None else np.diff(table.X.indptr)
    if not (request.features or counts.all()):
        what = f"{counted(int((counts == 0).sum()), 'text')} without a word that "
        what += f"another has, the first is in {table.place(int(counts.argmin()))}"
        if handling == "error":
            text = f"{table.source} has {what}. Add --missing drop to leave them out."
            raise ValueError(text)
        rows = np.flatnonzero(counts)
        table = table.keep_rows(rows).noting(Warned(f"Left out {what}."))
    incomplete, gaps, low, high = table.cells
    is_array = not (table.on_disk or table.is_sparse)
    bad = np.flatnonzero((high == np.inf) | (low == -np.inf))
    for j in bad[:1] if is_array else ():  # else the estimator says so
        where = table.place(int(np.isinf(table.X[:, j]).argmax()))
        where += f", column {quote(table.column_names[j])}"
        raise ValueError(f"{table.source} holds infinity in {where}; write a number.")
    if handling == "zero" and incomplete.any():
        if table.on_disk:
            raise ValueError("--missing zero takes a table in memory; raise --memory.")
        as_fit = ", as the fit did" * getattr(request.fit, "empty_is_zero", False)
        note = f"Read {counted(int(gaps.sum()), 'missing cell')} as 0{as_fit}."
        table = table.noting(note, X=np.nan_to_num(table.X, nan=0.0))
    chosen = _telling_columns(table, request)
    complete = _handle_missing(chosen, request, handling, fills)
    # Of fewer rows, other columns may say the same.
    if complete.X is chosen.X:
        return complete
    return _telling_columns(complete, request, " in the rows that are left")


def _handle_missing(table: Table, request: Request, how: str, fills: bool) -> Table:
    """Refuse missing cells, fill them in, or leave out the rows that have them."""
    rows, gaps, *_ = table.cells
    n, count, n_gaps = len(rows), int(rows.sum()), int(gaps.sum())
    if count == 0:
        return table
    worst, names = np.argsort(-gaps, kind="stable"), table.column_names
    shown = [f"{quote(names[j])} ({gaps[j]:,})" for j in worst if gaps[j]]
    more = f" and {len(shown) - 3} more" * (len(shown) > 3)
    where = f"in column{'s' * (len(shown) > 1)} {', '.join(shown[:3])}{more}"
    if how == "fit":
        share = n_gaps / (n * len(gaps))
        text = f"Filled in {counted(n_gaps, 'missing cell')} ({percent(share)}), "
        text += f"{where}."
        if request.features is None:  # a model reads its cells as the fit did
            text += " If empty cells mean none, in all columns, add --missing zero."
        return table.noting(Warned(text) if share > MANY else text, has_missing=True)
    remedy = f"--missing {'fit fills them in, ' * fills}zero reads them as 0"
    remedy += ", drop leaves out their rows" * (how == "error")
    remedy += "; or leave out such columns."
    if how == "error" or count == n:
        raise ValueError(
            f"{table.source}: {count:,} of {n:,} rows have missing cells, {where}; the "
            f"first is in {table.place(int(rows.argmax()))}. {remedy}"
        )
    text = f"Left out {count:,} of {n:,} rows, with missing cells {where}."
    text += f" {remedy}" * (count > MANY * n)
    return table.keep_rows(np.flatnonzero(~rows)).noting(Warned(text))


def _telling_columns(table: Table, request: Request, where: str = "") -> Table:
    """Leave out columns that say nothing, and refuse data in which nothing is left."""
    n, names, (_, gaps, low, high) = table.X.shape[0], table.column_names, table.cells
    # Columns of a model stay as they are, and one row says nothing about them.
    if request.features is not None or n < 2:
        return table
    # A constant adds the same direction to every row, and drowns what rows differ in;
    # so is a column without a number. What is sparse and not stored does no harm.
    same = (low >= high) & ~(table.is_sparse & (low == 0))
    # Most of a column that is more than half empty would be made up. It stays if it is
    # asked for, or if most columns are like this, as in a table of ratings.
    thin = ~same & (2 * gaps > n)
    thin &= not (request.columns or 2 * thin.sum() > (~same).sum())
    left_out = dict(table.left_out)
    for j in np.flatnonzero(same | thin):
        reason = "empty" if np.isinf(low[j]) else f"constant{where}: {low[j]:.6g}"
        thinness = f"{percent(gaps[j] / n)} of it empty"
        left_out[names[j]] = reason if same[j] else thinness
    kept = np.flatnonzero(~(same | thin))
    if len(kept) < 2 <= len(same) or len(same) == 1:
        left = f"only column {quote(names[kept[0]])}" if len(kept) else "no column"
        raise ValueError(
            f"{table.source}: {left} is left to cluster by. Rows are told apart by "
            "their pattern over several columns: give at least two columns of numbers, "
            f"or name such columns with --columns. {left_out_note(left_out)}".rstrip()
        )
    if len(kept) == len(same):
        return table
    return replace(table.keep_columns(kept), left_out=left_out)


def prepare_columns(
    table: Table, how: str, *, wild_cells: bool = False, whiten: str | None = None
) -> Table:
    """Return a table with its columns prepared, and a note of it."""
    from sklearn.feature_extraction.text import TfidfTransformer

    from ihgmm.numerics.whitening import suited_noise

    noise: str | None = None
    if how == "auto":  # leaves columns to a model that whitens, and data in one unit
        noise = suited_noise(as_matrix(table.X), surely=whiten is None)
        noise = noise if whiten in (None, "auto") else whiten
    leaves = whiten is not None and noise is not None
    if how == "auto" and table.texts is not None and not leaves:
        # As docs/tables.md compares it with others.
        weights = TfidfTransformer(norm=None, sublinear_tf=True).fit(table.X)
        note = "Weighed words by tf-idf: rare and repeated ones count more."
        return apply_scaler(table.noting(note), weights)
    if how == "none" or (how == "auto" and not (table.is_mixed or noise == "counts")):
        return table
    if leaves:
        text = f"Left the columns as they are: --whiten {whiten} evens out their noise."
        return table.noting(text)
    scaler = _learn_scaler(table, how, wild_cells)
    decisions = np.array(scaler.decisions_)
    why = f"{scaler.reason_[0].lower()}{scaler.reason_[1:]}"
    if (decisions == "left alone").all():
        why += " --prepare scale divides all by their deviation."
        return table.noting(f"Left the columns as they are: {why}")
    kinds, what = [], {"divided": "divided {} by the deviation"}
    far = ", far from 0," * (how == "auto")
    what["centred and divided"] = f"gave {{}}{far} mean 0 and deviation 1"
    for decision, words in what.items():
        places = np.flatnonzero(decisions == decision)
        for j in places[:1]:  # one of each kind, before and after
            old = np.array([scaler.data_min_[j], scaler.data_max_[j]])
            new = (old - scaler.center_[j]) / scaler.scale_[j]
            before, after = (" to ".join(map(figure, ends)) for ends in (old, new))
            done = words.format(counted(len(places), "column"))
            name = quote(table.column_names[j])
            kinds.append(f"{done} ({name}: {before} became {after})")
    why = f" The reason: {why}" * (how == "auto")
    why += " Another way to even it out is --whiten counts." * (noise == "counts")
    note = f"{sentence(', '.join(kinds))}.{why}"
    return apply_scaler(table.noting(note), scaler)


def _learn_scaler(table: Table, how: Any, wild_cells: bool) -> Any:
    """Return a ColumnScaler, in which ``wild_cells`` of dense data have no part."""
    from ihgmm._checks import check_matrix
    from ihgmm.estimators import ColumnScaler
    from ihgmm.numerics.wild_cells import learn_cell_filler
    from ihgmm.statistics.missing_cells import missing_cells

    known, wild = table, np.empty((0, 2))
    if wild_cells and not (table.is_sparse or table.on_disk):
        data = check_matrix(table.X, missing="fit")
        wild = missing_cells(learn_cell_filler(data)(data).incomplete, data)
        known = replace(table, X=table.X.astype(np.float64))
        known.X[tuple(wild.T)] = np.nan
    columns = known.X if table.names is None else known.named_data
    scaler = ColumnScaler(how).fit(columns)
    if how == "auto" and table.batch is not None and scaler.center_.any():
        reason = f"{scaler.reason_} None is centred: batches multiply columns."
        scaler = ColumnScaler("scale").fit(columns)
        scaler.reason_ = reason
    flags = np.isin(table.column_names, table.flags)
    if flags.any() and how == "auto" and (scaler.scale_ == 1).all():
        scaler = ColumnScaler("scale").fit(columns)
        scaler.reason_ = "Categories count as one column each."
    if wild.size:  # the fit looks again, in prepared columns
        scaler.reason_ += f" {counted(len(wild), 'wild cell')} had no part in that."
    # The flags of a category are of length 1: together they count as one column.
    scaler.scale_[flags], scaler.center_[flags] = 1.0, 0.0
    scaler.decisions_ = tuple(np.where(flags, "left alone", scaler.decisions_).tolist())
    return scaler


def apply_scaler(table: Table, scaler: Any) -> Table:
    """Return a table whose columns are prepared, for a fit or as they were for one."""
    if not table.on_disk:
        X = scaler.transform(table.X)
        X = sp.csr_array(X) if table.is_sparse else X
    elif not hasattr(scaler, "center_"):
        raise ValueError(
            f"{table.source} is read block by block, without words weighed; fit with "
            "--prepare scale, or raise --memory."
        )
    else:
        X = as_matrix(table.X)
        X = Shifted(X, scaler.center_) if scaler.center_.any() else X
        X = Scaled(X, columns=1 / scaler.scale_)
    return replace(table, X=X, scaler=scaler, original=table.X)
