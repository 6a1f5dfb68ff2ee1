"""Reading tables with named columns: CSV, TSV and Parquet files."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm._tables.table import Note, Table, TableError, listed, quoted
from ihgmm._tables.wanted import Wanted
from ihgmm._tables.writing import TEXT

__all__ = ["read_columns"]

MISSING = ("?", "-", "None", "none", "missing")
"""What people write into cells without a number, beside what pyarrow knows."""

MOST_NOTES = 8
"""Columns left out that are named one by one."""

LIKE_AN_ID = re.compile(r"((?i:^|.*[ _.\-])(?i:u?u?id|key)|.*[a-z]I[Dd])$")
LIKE_A_LABEL = re.compile(r"(?i)(.*[ _.\-])?(label|class|cluster|type|target)s?$")
GROUPED = re.compile(
    r"[+-]?\d{1,3}"
    r"(([,'\u2019 \u00a0\u202f]\d{3})+(\.\d+)?|([.'\u2019 \u00a0\u202f]\d{3})+(,\d+)?)"
)
"""Numbers with thousands apart, in the ways they are written."""

NO_NAME = {"", "index", "unnamed: 0"}
"""What programs call a column of row numbers."""


def read_columns(source: str, path: Path, suffix: str, wanted: Wanted) -> Table:
    """Read a table; say which columns are used and which are not, and why."""
    arrow, notes = _open(path, suffix, wanted)
    names = arrow.column_names
    asked, wanted = wanted, wanted.settled(names)
    if arrow.num_rows == 0:
        raise TableError(f"{source} has a header but no rows.")
    wanted.check(source, names)
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise TableError(f"{source} has several columns named {quoted(min(twice))}.")
    special = {
        name: np.array(arrow.column(name).to_pylist(), dtype=object)
        for name in (wanted.label, wanted.ids)
        if name is not None
    }
    chosen = list(wanted.features or wanted.columns)
    used: dict[str, Any] = {}
    for name in chosen or names:
        if not chosen and (name in special or name in wanted.dropped):
            continue
        values = _numbers(arrow.column(name))
        reason = _reason(name, arrow.column(name), values, wanted)
        if reason is None:
            used[name] = values
        elif chosen:
            raise TableError(f"{source}: column {quoted(name)} {reason}.")
        else:
            start = f"Left out column {quoted(name)}: it"
            notes.append(Note(f"{start} {reason}.", f"{start} {reason.in_words}."))
    if not used:
        raise TableError(
            f"{source} has no numeric columns beside those named; it has "
            f"{listed(names)}. {' '.join(notes[:2])}".rstrip()
        )
    if len(notes) > MOST_NOTES:
        more = len(notes) - MOST_NOTES
        notes = [*notes[:MOST_NOTES], f"Left out {more} more such columns."]
    said = asked.notes(wanted)
    if not chosen:
        said += [_label_note(name) for name in used if _like_labels(arrow, name)]
    return Table(
        np.column_stack(list(used.values())),
        np.arange(1, arrow.num_rows + 1) if wanted.ids is None else special[wanted.ids],
        "row" if wanted.ids is None else wanted.ids,
        None if wanted.label is None else special[wanted.label],
        list(used),
        [f"Used {len(used)} columns: {listed(list(used))}.", *said, *notes],
    )


def _open(path: Path, suffix: str, wanted: Wanted) -> tuple[Any, list[str]]:
    """Return the table of pyarrow, and what is to be said about the file."""
    import pyarrow as pa

    if suffix == ".parquet":
        import pyarrow.parquet

        return pa.parquet.read_table(path), []
    with open(path, "rb") as file:
        if file.read(2) in (b"\xff\xfe", b"\xfe\xff"):
            raise ValueError("it is stored as UTF-16; save it as UTF-8.")
    try:
        arrow = _open_text(path, suffix, wanted, "utf8")
        broken = any(map(pa.types.is_binary, arrow.schema.types))
    except ValueError as error:  # in names, or where text is asked for
        if "utf" not in str(error).lower():
            raise
        broken = True
    if not broken:
        return arrow, []
    note = "The file is not UTF-8 and was read as Windows-1252; look at the names."
    return _open_text(path, suffix, wanted, "cp1252"), [note]


def _open_text(path: Path, suffix: str, wanted: Wanted, encoding: str) -> Any:
    """Read text with pyarrow; columns of a file without a header are col1, ..."""
    import pyarrow as pa
    import pyarrow.csv

    delimiter = _delimiter(path, TEXT[suffix])
    parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    # Ids and labels stay as they are written: 007 is not 7, and NA may be a name.
    special = (wanted.label, wanted.ids, *wanted.usual())
    kept = {name: pa.string() for name in special if name is not None}

    def read(names: list[str] | None = None, point: str = ".") -> Any:
        options = pa.csv.ReadOptions(column_names=names, encoding=encoding)
        nulls = [*pa.csv.ConvertOptions().null_values, *MISSING]
        convert = pa.csv.ConvertOptions(
            null_values=nulls, column_types=kept, decimal_point=point
        )
        return pa.csv.read_csv(path, options, parse, convert)

    def text(table: Any) -> int:
        return sum(map(pa.types.is_string, table.schema.types))

    arrow = read()
    names = None
    if all(_is_number(name) for name in arrow.column_names):
        names = [f"col{i}" for i in range(1, arrow.num_columns + 1)]
        arrow = read(names)
    if delimiter == ";" and text(arrow) > 0:
        other = read(names, ",")  # semicolons are there where commas are decimal
        arrow = other if text(other) < text(arrow) else arrow
    return arrow


def _delimiter(path: Path, usual: str) -> str:
    """Return ``";"`` or a tab where the first line has that and not the usual one."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    with opened(path, "rb") as file:
        first = file.readline(2**16)
    for other in (";", "\t"):
        if other.encode() in first and usual.encode() not in first:
            return other
    return usual


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _reason(
    name: str, column: Any, values: np.ndarray | None, wanted: Wanted
) -> Note | None:
    """Say in words why a column is not used; None if it is."""
    if values is None:
        return _text_reason(name, column, wanted)
    if np.isnan(values).all():
        return Note("is empty")
    if not (wanted.features or wanted.columns) and _like_ids(name, column):
        what = "looks like ids: whole numbers, no two alike"
        if wanted.ids is not None:
            return Note(f"{what}. To cluster by it, name it in --columns", what)
        return Note(
            f"{what}. If so, add --id-column {quoted(name)}; to cluster by it, name it "
            "in --columns",
            what,
        )
    return None


def _like_ids(name: str, column: Any) -> bool:
    import pyarrow as pa

    return bool(
        (LIKE_AN_ID.match(name) or name.lower() in NO_NAME)
        and pa.types.is_integer(column.type)
        and column.null_count == 0
        and len(column.unique()) == len(column) > 1
    )


def _like_labels(arrow: Any, name: str) -> bool:
    import pyarrow as pa

    kind = arrow.column(name).type
    return bool(LIKE_A_LABEL.match(name) and pa.types.is_integer(kind))


def _label_note(name: str) -> Note:
    what = f"Column {quoted(name)} is used as a feature. If it holds known labels,"
    return Note(
        f"{what} add --label-column {quoted(name)}.",
        f"{what} it should be named as such and not be clustered by.",
    )


def _text_reason(name: str, column: Any, wanted: Wanted) -> Note:
    """Say what is in a column without numbers; a few bad cells are named."""
    values = ["" if cell is None else str(cell) for cell in column.to_pylist()]
    missing = {"", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", *MISSING}
    cells = [(i, cell) for i, cell in enumerate(values, 1) if cell not in missing]
    bad = [(i, cell) for i, cell in cells if not _is_number(cell)]
    grouped = bool(bad) and all(GROUPED.fullmatch(cell) for _, cell in bad)
    remedy = ". If these are numbers, write them without thousands separators"
    if 0 < len(bad) <= len(cells) // 2:
        row, cell = bad[0]
        return Note(
            f"has {len(bad):,} of {len(cells):,} cells that are not numbers, the first "
            f"is {quoted(cell)} in row {row}{remedy if grouped else ''}"
        )
    what = "does not hold numbers"
    if cells:
        what += f" but text such as {quoted((bad or cells)[0][1])}"
    if grouped:
        what += remedy
    elif wanted.ids is None and len(set(values)) == len(values) > 1:
        hint = ". If it names the rows,"
        return Note(
            f"{what}{hint} add --id-column {quoted(name)}",
            f"{what}{hint} it could be shown beside them",
        )
    return Note(what)


def _numbers(column: Any) -> np.ndarray | None:
    """Return a column as float64 with NaN for missing cells; None if not numeric."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    ):
        return None
    # Whole numbers of more than 16 digits are rounded, not refused.
    numbers = column.cast(pa.float64(), safe=False)
    return np.asarray(numbers.to_numpy(), dtype=np.float64)
