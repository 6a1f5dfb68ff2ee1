"""Missing cells: refused, or the rows that have them left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ihgmm._tables.table import Note, Table, TableError, quoted

__all__ = ["without_missing"]

MOST_COLUMNS = 3
"""Columns with missing cells that messages name."""

MANY = 0.2
"""The share of rows beyond which leaving them out is said loudly."""


def without_missing(
    source: str, table: Table, drop: bool, *, fixed: bool = False
) -> Table:
    """Refuse missing cells, or leave out the rows that have them.

    Where the columns are ``fixed``, none can be left out.
    """
    if sp.issparse(table.X):
        return table  # the estimator names the place of a NaN
    missing = np.isnan(table.X)
    rows = missing.any(axis=1)
    count = int(rows.sum())
    if count == 0:
        return table
    where, blamed = _places(table.names, missing.sum(axis=0))
    cure = None if fixed else _cure(table.names, missing, blamed)
    remedy = "" if cure is None else f", {cure}"
    if not drop:
        raise TableError(
            f"{source}: {count:,} of {len(rows):,} rows have missing cells, {where}; "
            f"the first is in row {int(rows.argmax()) + 1}. Add --drop-missing to "
            f"leave those rows out{remedy}, or fill them in."
        )
    if count == len(rows):
        raise TableError(
            f"{source}: every row has a missing cell, {where}. Fill them in{remedy}."
        )
    keep = ~rows
    note = Note(f"Left out {count:,} row{'s' * (count != 1)} with missing cells.")
    if count > MANY * len(rows):
        what = (
            f"Left out {count:,} of {len(rows):,} rows ({count / len(rows):.0%}) with "
            f"missing cells, {where}."
        )
        other = "" if cure is None else f"add {cure}, or "
        note = Note(f"{what} To keep more rows, {other}fill them in.", what, loud=True)
    return replace(
        table,
        X=table.X[keep],
        ids=table.ids[keep],
        labels=None if table.labels is None else table.labels[keep],
        notes=[*table.notes, note],
    )


def _places(names: list[str] | None, cells: np.ndarray) -> tuple[str, np.ndarray]:
    """Return where cells are missing, in words and as the columns that are named."""
    total = int(cells.sum())
    worst = np.argsort(-cells, kind="stable")[:MOST_COLUMNS]
    worst = worst[cells[worst] > 0]
    if 2 * cells[worst[0]] > total:
        worst = worst[:1]
    if len(worst) == 1:
        share = "all" if cells[worst[0]] == total else "most"
        return f"{share} of them in column {_name(names, worst[0])}", worst
    counts = ", ".join(f"{_name(names, j)} ({cells[j]:,})" for j in worst)
    return f"the most of them in columns {counts}", worst


def _cure(
    names: list[str] | None, missing: np.ndarray, blamed: np.ndarray
) -> str | None:
    """Return the option that leaves few incomplete rows, if one does."""
    if names is None:
        return None  # columns without a name cannot be left out
    before = int(missing.any(axis=1).sum())
    for columns, most in ((blamed, 0), (blamed[:1], before // 2)):
        others = np.delete(missing, columns, axis=1)
        left = int(others.any(axis=1).sum())
        if others.shape[1] == 0 or left > most:
            continue
        named = ", ".join(quoted(names[j]) for j in columns)
        option = f"--drop-columns to leave out {named}"
        if left == 0:
            return option
        remain = "row remains" if left == 1 else "rows remain"
        return f"{option} (then {left:,} {remain} incomplete)"
    return None


def _name(names: list[str] | None, column: int) -> str:
    return quoted(names[column]) if names else f"number {column + 1}"
