"""Reading tables with named columns: CSV, TSV and Parquet files."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm._tables.table import Table, TableError, listed, quoted
from ihgmm._tables.writing import TEXT

__all__ = ["Wanted", "read_columns"]

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


@dataclass(frozen=True)
class Wanted:
    """What is asked of the columns of a table; see :func:`ihgmm._tables.read_table`."""

    label: str | None
    ids: str | None
    columns: Sequence[str]
    dropped: Sequence[str]
    features: Sequence[str] | None

    def refuse_names(self, source: str, *, also_label: bool) -> None:
        """Raise if a column is named of data whose columns have no names."""
        given = {
            "--label-column": self.label if also_label else None,
            "--id-column": self.ids,
            "--columns": ",".join(self.columns) or None,
            "--drop-columns": ",".join(self.dropped) or None,
        }
        for option, name in given.items():
            if name is not None:
                raise TableError(
                    f"{option} {quoted(name)}: {source} has no named columns; that "
                    "option is for CSV, TSV and Parquet files."
                )

    def check(self, source: str, names: list[str]) -> None:
        """Raise if the table has not the columns that are named."""
        given = {
            "--label-column": [] if self.label is None else [self.label],
            "--id-column": [] if self.ids is None else [self.ids],
            "--columns": self.columns,
            "--drop-columns": self.dropped,
        }
        for option, chosen in given.items():
            for name in chosen:
                if name not in names:
                    raise TableError(
                        f"{option} {quoted(name)}: {source} has no such column; it has "
                        f"{listed(names)}."
                    )
        missing = [name for name in self.features or () if name not in names]
        if missing:
            raise TableError(
                f"{source} lacks {len(missing)} of the {len(self.features or ())} "
                f"columns that the model was fitted on: {listed(missing)}. It has "
                f"{listed(names)}."
            )


def read_columns(source: str, path: Path, suffix: str, wanted: Wanted) -> Table:
    """Read a table; say which columns are used and which are not, and why."""
    arrow, notes = _open(path, suffix, wanted)
    names = arrow.column_names
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
    used = {}
    for name in chosen or names:
        if not chosen and (name in special or name in wanted.dropped):
            continue
        values = _numbers(arrow.column(name))
        reason = _reason(name, arrow.column(name), values, bool(chosen))
        if reason is None and values is not None:
            used[name] = values
        elif chosen:
            raise TableError(f"{source}: column {quoted(name)} {reason}.")
        else:
            notes.append(f"Left out column {quoted(name)}: it {reason}.")
    if not used:
        raise TableError(
            f"{source} has no numeric columns beside those named; it has "
            f"{listed(names)}. {' '.join(notes[:2])}".rstrip()
        )
    if len(notes) > MOST_NOTES:
        more = len(notes) - MOST_NOTES
        notes = [*notes[:MOST_NOTES], f"Left out {more} more such columns."]
    labels = [] if chosen else [_label_note(n) for n in used if _like_labels(arrow, n)]
    return Table(
        np.column_stack(list(used.values())),
        special[wanted.ids] if wanted.ids else np.arange(1, arrow.num_rows + 1),
        wanted.ids or "row",
        special[wanted.label] if wanted.label else None,
        list(used),
        [f"Used {len(used)} columns: {listed(list(used))}.", *labels, *notes],
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
    kept = {n: pa.string() for n in (wanted.label, wanted.ids) if n is not None}

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
    name: str, column: Any, values: np.ndarray | None, chosen: bool
) -> str | None:
    """Say in words why a column is not used; None if it is."""
    if values is None:
        return _text_reason(name, column)
    if np.isnan(values).all():
        return "is empty"
    if not chosen and _like_ids(name, column):
        return (
            "looks like ids: whole numbers, no two alike. If so, add --id-column "
            f"{quoted(name)}; to cluster by it, name it in --columns"
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


def _label_note(name: str) -> str:
    return (
        f"Column {quoted(name)} is used as a feature. If it holds known labels, add "
        f"--label-column {quoted(name)}."
    )


def _text_reason(name: str, column: Any) -> str:
    """Say what is in a column without numbers; a few bad cells are named."""
    values = ["" if cell is None else str(cell) for cell in column.to_pylist()]
    missing = {"", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", *MISSING}
    cells = [(i, cell) for i, cell in enumerate(values, 1) if cell not in missing]
    bad = [(i, cell) for i, cell in cells if not _is_number(cell)]
    grouped = bool(bad) and all(GROUPED.fullmatch(cell) for _, cell in bad)
    remedy = ". If these are numbers, write them without thousands separators"
    if 0 < len(bad) <= len(cells) // 2:
        row, cell = bad[0]
        return (
            f"has {len(bad):,} of {len(cells):,} cells that are not numbers, the first "
            f"is {quoted(cell)} in row {row}{remedy if grouped else ''}"
        )
    what = "does not hold numbers"
    if cells:
        what += f" but text such as {quoted((bad or cells)[0][1])}"
    if grouped:
        what += remedy
    elif len(set(values)) == len(values) > 1:
        what += f". If it names the rows, add --id-column {quoted(name)}"
    return what


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
