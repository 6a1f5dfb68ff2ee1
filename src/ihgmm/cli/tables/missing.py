"""Missing cells: refused, kept to be filled in, or their rows left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ihgmm._text import counted, percent
from ihgmm.cli.tables.table import Note, Request, Table, quote
from ihgmm.matrix import Matrix

HANDLING = ("error", "drop", "fit")


def handle_missing(table: Table, request: Request, handling: str) -> Table:
    """Refuse missing cells, leave out the rows that have them, or keep and count them.

    ``handling`` is one of :data:`HANDLING`.
    """
    if table.is_sparse:
        return table  # the estimator names the place of a NaN
    source = request.source
    # Of data on disk, what is missing is counted and not kept.
    missing = None if table.on_disk else np.isnan(table.X)
    rows, cells = _count_missing(table.X) if missing is None else _counts(missing)
    n, count = len(rows), int(rows.sum())
    if count == 0:
        return table
    where, blamed = _places(table.names, cells)
    if handling == "fit":
        total = int(cells.sum())
        share = percent(total / (n * len(cells)))
        text = f"Filled in {counted(total, 'missing cell')} ({share}), {where}."
        return replace(table, notes=[*table.notes, Note(text)])
    cure = None
    # A model has its columns: none can be left out, nor can one without a name.
    if not (missing is None or table.names is None or request.features):
        cure = _cure(table.names, missing, blamed)
    remedy = "" if cure is None else f", {cure}"
    if handling == "error":
        raise ValueError(
            f"{source}: {count:,} of {n:,} rows have missing cells, {where}; the first "
            f"is in row {int(rows.argmax()) + 1}. Add --missing fit to have them "
            f"filled in, --missing drop to leave those rows out{remedy}."
        )
    if count == n:
        raise ValueError(
            f"{source}: every row has a missing cell, {where}. Add --missing fit to "
            f"have them filled in{remedy}."
        )
    note = Note(f"Left out {counted(count, 'row')} with missing cells.")
    if count > 0.2 * n:  # so many that results may not speak for the data
        share = f"{count:,} of {n:,} rows ({count / n:.0%})"
        what = f"Left out {share} with missing cells, {where}."
        other = "" if cure is None else f"add {cure}, or "
        text = f"{what} To keep more rows, {other}take --missing fit."
        note = Note(text, what, loud=True)
    labels = None if table.labels is None else table.labels[~rows]
    X = table.X.keep(np.flatnonzero(~rows)) if table.on_disk else table.X[~rows]
    kept = {"X": X, "ids": table.ids[~rows], "labels": labels}
    return replace(table, **kept, notes=[*table.notes, note])


def _counts(missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows lack cells, and how many cells each column lacks."""
    return np.asarray(missing.any(axis=1)), missing.sum(axis=0)


def _count_missing(X: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return the same of data on disk, by one pass."""
    blocks = list(X.map(lambda block: _counts(np.isnan(block.toarray()))))
    rows, cells = zip(*blocks, strict=True)
    return np.concatenate(rows), np.sum(cells, axis=0)


def _places(
    names: list[str] | None, cells: np.ndarray, most: int = 3
) -> tuple[str, np.ndarray]:
    """Return where cells are missing, in words and as the columns that are named."""
    total = int(cells.sum())
    worst = np.argsort(-cells, kind="stable")[:most]
    worst = worst[cells[worst] > 0]
    shown = [quote(names[j]) if names else f"number {j + 1}" for j in worst]
    if len(worst) == 1 or 2 * cells[worst[0]] > total:
        share = "all" if cells[worst[0]] == total else "most"
        return f"{share} of them in column {shown[0]}", worst[:1]
    counts = (f"{name} ({n:,})" for name, n in zip(shown, cells[worst], strict=True))
    return f"the most of them in columns {', '.join(counts)}", worst


def _cure(names: list[str], missing: np.ndarray, blamed: np.ndarray) -> str | None:
    """Return the option that leaves few incomplete rows, if one does."""
    before = int(missing.any(axis=1).sum())
    # All columns that are named must mend all rows; the worst alone, half of them.
    for columns, most in ((blamed, 0), (blamed[:1], before // 2)):
        others = np.delete(missing, columns, axis=1)
        incomplete = int(others.any(axis=1).sum())
        if others.shape[1] == 0 or incomplete > most:
            continue
        named = ", ".join(quote(names[j]) for j in columns)
        option = f"--drop-columns to leave out {named}"
        if incomplete == 0:
            return option
        remain = "row remains" if incomplete == 1 else "rows remain"
        return f"{option} (then {incomplete:,} {remain} incomplete)"
    return None
