"""Tables as text: CSV, TSV, what R and old spreadsheets write, and JSON lines."""

import csv
import gzip
import io
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ihgmm.cli.tables.files.raw_table import (
    DELIMITERS,
    RawTable,
    check_size,
    explain_damage,
    name_columns,
    suffix_of,
)
from ihgmm.cli.tables.names import numbered_names
from ihgmm.cli.tables.numbers import MISSING, decimal_point
from ihgmm.cli.tables.request import BESIDE, Request

if TYPE_CHECKING:
    import pandas as pd

# How much of a file is looked at to find the names of its columns.
START_BYTES = 2**20
START_ROWS = 12


@dataclass(frozen=True)
class Header:
    """Where the names of the columns are, and what is between cells."""

    delimiter: str
    n_rows_above: int
    cells: list[str]  # the names; numbers, where there are none

    @property
    def has_names(self) -> bool:
        """Whether the first row is one of names; one of numbers belongs to the data."""
        return not all(map(is_number, self.cells))

    @property
    def n_rows_before_data(self) -> int:
        """The number of rows of titles and of names."""
        return self.n_rows_above + self.has_names

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, which they may have had to be given."""
        return self.cells if self.has_names else numbered_names(len(self.cells))


def load_text(path: Path, request: Request) -> RawTable:
    """Read a CSV or TSV file in UTF-8, UTF-16, or as old spreadsheets encode it."""
    phrases = []
    content = read_bytes(path, request.memory)

    with explain_damage(path):
        encoding = _encoding(content)
        if encoding == "cp1252":
            phrases.append("as Windows-1252, since it is not UTF-8 (look at the names)")

        start = content[:START_BYTES].decode(encoding, errors="ignore")
        header = find_header(start, suffix_of(path))
        frame = _parse(content, encoding, header, request)

    if header.n_rows_above:
        phrases.append(f"names of columns from line {header.n_rows_above + 1}")

    point = decimal_point(frame, header.delimiter)
    if point == ",":
        phrases.append("commas as decimal points")

    is_filled = frame.notna().any(axis=1)
    last_row = int(np.flatnonzero(is_filled).max(initial=-1))
    frame = frame.iloc[: last_row + 1]

    first_place = header.n_rows_before_data + 1
    place_words = "line {}"
    n_lines = content.rstrip(b"\r\n\0").count(b"\n") + 1
    if first_place + len(frame) != n_lines + 1:  # a cell may have several lines
        first_place = 1
        place_words = "row {}"

    return RawTable(
        frame=name_columns(frame, header.column_names, first_place),
        phrases=phrases,
        point=point,
        place_words=place_words,
    )


def _encoding(content: bytes) -> str:
    """Return how a text is encoded, as far as the text shows it."""
    is_utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    encoding = "utf-16" if is_utf16 else "utf-8-sig"

    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return "cp1252"
    return encoding


def _parse(
    content: bytes, encoding: str, header: Header, request: Request
) -> "pd.DataFrame":
    """Return the cells below the header, in columns that count from 0."""
    import pandas as pd

    # Ids and labels stay as they are written.
    request, _ = request.resolve(header.cells)
    names_beside = {name for _, name in request.named_columns(BESIDE)}

    places = range(len(header.cells))
    beside = [place for place in places if header.cells[place] in names_beside]

    return pd.read_csv(
        io.BytesIO(content),
        sep=r"\s+" if header.delimiter == " " else header.delimiter,
        encoding=encoding,
        header=None,
        names=places,
        index_col=False,
        skiprows=header.n_rows_before_data,
        skip_blank_lines=False,
        dtype=dict.fromkeys(beside, str),
        na_values={place: "" if place in beside else MISSING for place in places},
        keep_default_na=False,
        float_precision="round_trip",
        low_memory=False,
    )


def find_header(start: str, suffix: str) -> Header:
    """Return where the names of columns are, from the start of a file."""
    lines = start.splitlines(keepends=True)
    layout = _likeliest_layout(lines, suffix)

    rows = _first_rows(lines, layout.delimiter)
    places = range(layout.n_titles, len(rows))
    first_place = next((place for place in places if rows[place]), 0)
    filled_rows = [row for row in rows[first_place:] if row] or [[""]]

    cells = filled_rows[0]
    if len(filled_rows) > 1:
        cells = _as_wide_as(cells, filled_rows[1])
    return Header(
        delimiter=layout.delimiter,
        n_rows_above=first_place,
        cells=cells,
    )


def _as_wide_as(header: list[str], row: list[str]) -> list[str]:
    """Return a header with a cell for each one of the row below."""
    if len(row) == len(header) + 1 and row[-1].strip():
        header = ["", *header]  # R has no name above the names of rows
    return header + [""] * (len(row) - len(header))


@dataclass(frozen=True)
class _Layout:
    """How a table may stand in a text."""

    delimiter: str
    n_titles: int  # rows above the names of columns
    n_columns: int = 1


def _likeliest_layout(lines: list[str], suffix: str) -> _Layout:
    """Return what is between cells, and how many rows of titles there are."""
    delimiter_of_suffix = DELIMITERS.get(suffix, ",")
    delimiters = list(dict.fromkeys((delimiter_of_suffix, ";", "\t")))

    candidates = []
    for delimiter in (*delimiters, " "):
        rows = _first_rows(lines, delimiter)
        n_titles = n_title_rows(rows)
        widths = [len(row) for row in rows[n_titles:] if row]
        if len(widths) < 2:
            continue

        # Names have as many cells as the row below, or one less, as R writes tables.
        is_table = 1 < widths[0] in (widths[1], widths[1] - 1)

        # Spaces may stand in titles, names and texts: they have to fit many rows.
        is_blank = delimiter == " "
        if is_blank and (n_titles > 0 or len(set(widths[1:])) > 1):
            continue

        if is_table:
            candidates.append(_Layout(delimiter, n_titles, n_columns=widths[0]))

    if not candidates:
        first_line = next((line for line in lines if line.strip()), "")
        return _Layout(max(delimiters, key=first_line.count), n_titles=0)
    return min(candidates, key=_order_of_layouts)


def _order_of_layouts(layout: _Layout) -> tuple[bool, int, int, str]:
    """Return what is least for the likeliest layout of a table."""
    # Commas may be in names, as in ``revenue, EUR``: most columns win.
    is_blank = layout.delimiter == " "
    return is_blank, layout.n_titles, -layout.n_columns, layout.delimiter


def _first_rows(lines: list[str], delimiter: str) -> list[list[str]]:
    """Return the cells of the first rows, if they are parted in this way."""
    is_blank = delimiter == " "
    texts = [line.strip() for line in lines] if is_blank else lines
    reader = csv.reader(texts, delimiter=delimiter, skipinitialspace=is_blank)

    rows: list[list[str]] = []
    with suppress(csv.Error):  # a cell that is too long for it
        rows += islice(reader, START_ROWS)
    return rows


def n_title_rows(rows: Sequence[Sequence[object]]) -> int:
    """Return how many rows are titles, of one cell, above several names of columns."""
    for place, row in enumerate(rows[:-1]):
        filled = [str(cell) for cell in row if cell is not None and str(cell).strip()]
        if len(filled) > 1:
            return 0 if all(map(is_number, filled)) else place
    return 0


def is_number(word: str) -> bool:
    """Return whether a word is a number as Python writes it."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def read_bytes(path: Path, memory: int) -> bytes:
    """Return what is in a file, unpacked, if there is room for it."""
    unpack = gzip.open if path.suffix.lower() == ".gz" else open
    with explain_damage(path), unpack(path, "rb") as file:
        content = file.read(memory + 1)
    check_size(path, memory, len(content))
    return content


def load_json_lines(path: Path, request: Request) -> RawTable:
    """Read a file with a record in each line."""
    import pandas as pd

    records: list[dict[str, Any]] = []
    for line in read_bytes(path, request.memory).splitlines():
        with explain_damage(path, f"line {len(records) + 1}: "):
            # pandas' own reader ends the program where lists are nested deeply.
            records.append(dict(json.loads(line)))

    frame = pd.DataFrame.from_records(records)
    return RawTable(name_columns(frame, list(frame.columns)))
