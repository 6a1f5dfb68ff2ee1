"""Missing cells: refused, filled in, taken for zeros, or their rows left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from ihgmm.cli.tables.cells import Cells
from ihgmm.cli.tables.table import Note, Request, Table, quote
from ihgmm.words.phrases import counted, listed, percent

HANDLING = ("auto", "fit", "zero", "drop", "error")


def handle_missing(
    table: Table, request: Request, handling: str, cells: Cells, *, fills: bool
) -> Table:
    """Refuse missing cells, fill them in, or leave out the rows that have them.

    ``handling`` is one of :data:`HANDLING` but ``"auto"``. Messages advise to have
    cells filled in if the method ``fills`` them.
    """
    source, rows, gaps = request.source, cells.incomplete, cells.gaps
    n, count = len(rows), int(rows.sum())
    if count == 0:
        return table
    where, blamed = _places(table.names, gaps)
    if handling == "fit":
        part = int(gaps.sum()) / (n * len(gaps))
        text = f"Filled in {_counted_gaps(table, cells)} ({percent(part)}), {where}."
        # Beyond a fifth results may not speak for the data.
        hint = f"{text} If an empty cell means none, add --missing zero."
        note = Note(hint, text, loud=part > 0.2)
        return replace(table, notes=[*table.notes, note], has_missing=True)
    if handling == "zero":
        return _with_zeros(table, cells, as_fit=request.fit_zero)
    missing = None if table.on_disk else np.isnan(table.X)
    cure: list[str] = []
    # A model has its columns: none can be left out, nor can one without a name.
    if not (missing is None or table.names is None or request.features):
        cure = _cure(table.names, missing, blamed)
    remedies = ["--missing zero if an empty cell means none"]
    if fills:
        remedies.insert(0, "--missing fit to have them filled in")
    if handling == "error":
        drop = "--missing drop to leave those rows out"
        raise ValueError(
            f"{source}: {count:,} of {n:,} rows have missing cells, {where}; the first "
            f"is in {table.place(int(rows.argmax()))}. Add "
            f"{listed([*remedies, drop, *cure], 'or')}."
        )
    if count == n:
        raise ValueError(
            f"{source}: every row has a missing cell, {where}. Add "
            f"{listed([*remedies, *cure], 'or')}."
        )
    note = Note(f"Left out {counted(count, 'row')} with missing cells.")
    if count > 0.2 * n:  # so many that results may not speak for the data
        share = f"{count:,} of {n:,} rows ({count / n:.0%})"
        what = f"Left out {share} with missing cells, {where}."
        text = f"{what} To keep more rows, add {listed([*cure, *remedies], 'or')}."
        note = Note(text, what, loud=True)
    select = "X.dropna()" if table.is_mixed else "X[(X == X).all(axis=1)]"
    lines = (*table.python, f"X = {select}") if table.python else ()
    kept = table.keep_rows(np.flatnonzero(~rows))
    return replace(kept, notes=[*table.notes, note], python=lines)


def _with_zeros(table: Table, cells: Cells, *, as_fit: bool) -> Table:
    """Return the table with 0 in the place of missing cells."""
    if table.on_disk:
        raise ValueError(
            f"{table.source}: --missing zero takes a table that is in memory; raise "
            "--memory, or write the zeros to the file."
        )
    X = np.where(np.isnan(table.X), 0.0, table.X)
    count = _counted_gaps(table, cells)
    note = Note(f"Took {count} for 0{', as the fit did' * as_fit}.")
    fill = "X.fillna(0)" if table.is_mixed else "np.nan_to_num(X)"
    lines = (*table.python, f"X = {fill}") if table.python else ()
    return replace(table, X=X, notes=[*table.notes, note], python=lines)


def _counted_gaps(table: Table, cells: Cells, most: int = 3) -> str:
    """Say how many cells are missing, empty ones and those with a word apart."""
    total, words = int(cells.gaps.sum()), Counter[str]()
    for name in table.names or ():
        words += table.gap_words.get(name, Counter())
    n_empty = total - words.total()
    if not words or n_empty < 0:
        return counted(total, "missing cell")
    parts = [counted(n_empty, "empty cell")] * (n_empty > 0)
    parts += [f"{count:,} {quote(word)}" for word, count in words.most_common(most)]
    n_more = sum(count for _, count in words.most_common()[most:])
    return listed([*parts, *[f"{n_more:,} others"] * (n_more > 0)], "and")


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


def _cure(names: list[str], missing: np.ndarray, blamed: np.ndarray) -> list[str]:
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
            return [option]
        remain = "row remains" if incomplete == 1 else "rows remain"
        return [f"{option} (then {incomplete:,} {remain} incomplete)"]
    return []
