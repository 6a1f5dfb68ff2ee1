"""Tables with named columns: which are used, which are not, and why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ihgmm.cli.tables.table import Note, Request, Table, quote, quote_all
from ihgmm.matrix.delimited import MISSING, is_number


def choose_columns(
    arrow: Any, request: Request, file_notes: Sequence[Note] = ()
) -> Table:
    """Make a table of columns; notes say which are used and which are not, and why."""
    source, names = request.source, arrow.column_names
    asked, request = request, request.resolve(names)
    if arrow.num_rows == 0:
        raise ValueError(f"{source} has a header but no rows.")
    request.check(names)
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"{source} has several columns named {quote(min(twice))}.")
    beside: dict[str | None, np.ndarray] = {
        name: np.array(arrow.column(name).to_pylist(), dtype=object)
        for name in (request.label, request.ids)
        if name is not None
    }
    chosen = list(request.features or request.columns)
    used: dict[str, Any] = {}
    notes = list(file_notes)
    for name in chosen or names:
        if not chosen and (name in beside or name in request.dropped):
            continue
        values = _numbers(arrow.column(name))
        reason = _reason_against(name, arrow.column(name), values, request)
        if reason is None:
            used[name] = values
        elif chosen:
            raise ValueError(f"{source}: column {quote(name)} {reason}.")
        else:
            start = f"Left out column {quote(name)}: it"
            on_page = reason.on_page or reason.text
            notes.append(Note(f"{start} {reason}.", f"{start} {on_page}."))
    if not used:
        raise ValueError(
            f"{source} has no numeric columns beside those named; it has "
            f"{quote_all(names)}. {' '.join(map(str, notes[:2]))}".rstrip()
        )
    most = 8  # more would push the results off the screen
    if len(notes) > most:
        notes[most:] = [Note(f"Left out {len(notes) - most} more such columns.")]
    taken = asked.notes(request.label, request.ids)
    if not chosen:
        taken += [_label_note(name) for name in used if _looks_like_labels(arrow, name)]
    return Table(
        source,
        np.column_stack(list(used.values())),
        beside.get(request.ids, np.arange(1, arrow.num_rows + 1)),
        "row" if request.ids is None else request.ids,
        beside.get(request.label),
        list(used),
        [Note(f"Used {len(used)} columns: {quote_all(list(used))}."), *taken, *notes],
    )


def _numbers(column: Any) -> np.ndarray | None:
    """Return a column as float64 with NaN for missing cells; None if not numeric."""
    from pyarrow import float64, types

    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if not any(is_kind(column.type) for is_kind in (*numeric, types.is_null)):
        return None
    # Whole numbers of more than 16 digits are rounded, not refused.
    return np.asarray(column.cast(float64(), safe=False).to_numpy())


def _reason_against(
    name: str, column: Any, values: np.ndarray | None, request: Request
) -> Note | None:
    """Say why a column is not used; None if it is."""
    if values is None:
        return _reason_against_text(name, column, request)
    if np.isnan(values).all():
        return Note("is empty")
    if request.features or request.columns or not _looks_like_ids(name, column):
        return None
    what = "looks like ids: whole numbers, no two alike"
    remedy = "To cluster by it,"
    if request.ids is None:
        remedy = f"If so, add --id-column {quote(name)}; to cluster by it,"
    return Note(f"{what}. {remedy} name it in --columns", what)


def _reason_against_text(name: str, column: Any, request: Request) -> Note:
    """Say what is in a column without numbers; a few bad cells are named."""
    values = ["" if cell is None else str(cell) for cell in column.to_pylist()]
    missing = {"", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", *MISSING}
    cells = [(i, cell) for i, cell in enumerate(values, 1) if cell not in missing]
    bad = [(i, cell) for i, cell in cells if not is_number(cell)]
    grouped = bool(bad) and all(_has_thousands_separators(cell) for _, cell in bad)
    remedy = ". If these are numbers, write them without thousands separators" * grouped
    if 0 < len(bad) <= len(cells) // 2:
        row, cell = bad[0]
        return Note(
            f"has {len(bad):,} of {len(cells):,} cells that are not numbers, the first "
            f"is {quote(cell)} in row {row}{remedy}"
        )
    what = "does not hold numbers"
    if cells:
        what += f" but text such as {quote((bad or cells)[0][1])}{remedy}"
    no_two_alike = len(set(values)) == len(values) > 1
    if grouped or request.ids is not None or not no_two_alike:
        return Note(what)
    what += ". If it names the rows,"
    on_page = f"{what} it could be shown beside them"
    return Note(f"{what} add --id-column {quote(name)}", on_page)


def _has_thousands_separators(cell: str) -> bool:
    """Return whether a cell is a number such as 1,234.5 or 1.234,5 or 1 234."""
    spaces = r"'\u2019 \u00a0\u202f"
    point = rf"([,{spaces}]\d{{3}})+(\.\d+)?"
    comma = rf"([.{spaces}]\d{{3}})+(,\d+)?"
    return re.fullmatch(rf"[+-]?\d{{1,3}}({point}|{comma})", cell) is not None


def _looks_like_ids(name: str, column: Any) -> bool:
    """Return whether a column is named as ids are, and holds different integers."""
    from pyarrow import types

    pattern = r"((?i:^|.*[ _.\-])(?i:u?u?id|key)|.*[a-z]I[Dd])$"
    # Programs name a column of row numbers so.
    row_numbers = name.lower() in ("", "index", "unnamed: 0")
    return bool(
        (row_numbers or re.match(pattern, name))
        and types.is_integer(column.type)
        and column.null_count == 0
        and len(column.unique()) == len(column) > 1
    )


def _looks_like_labels(arrow: Any, name: str) -> bool:
    """Return whether a column is named as labels are, and holds integers."""
    from pyarrow import types

    pattern = r"(?i)(.*[ _.\-])?(label|class|cluster|type|target)s?$"
    return bool(re.match(pattern, name) and types.is_integer(arrow.column(name).type))


def _label_note(name: str) -> Note:
    what = f"Column {quote(name)} is used as a feature. If it holds known labels,"
    on_page = f"{what} it should be named as such and not be clustered by."
    return Note(f"{what} add --label-column {quote(name)}.", on_page)
