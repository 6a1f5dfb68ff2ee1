"""Files with named columns, as libraries read them, and how they were read."""

import csv
import errno
import gzip
import io
import json
import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm.cli.tables import table as tb
from ihgmm.cli.tables.numbers import MISSING, decimal_point
from ihgmm.cli.tables.table import Request, quote, quote_all, unique_names

# What stands between cells, by the suffix of a file.
DELIMITERS = {".csv": ",", ".tsv": "\t"}
WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
MOST_CELLS = 20_000_000  # of a workbook: they take 2 GB of memory, and 20 seconds
# The place of a cell that holds something; others have a colour, or a border.
_FILLED = re.compile(rb"""<(?:\w+:)?c\s[^>]*?\br=["']([A-Z]+)(\d+)["'][^>]*(?<!/)>""")


@dataclass(frozen=True)
class RawTable:
    """A table as a library reads it, and how it was read."""

    frame: Any  # of pandas, whose index says where rows are; names are unique
    phrases: Sequence[str] = ()  # such as "names of columns from line 3", to be told
    point: str = "."  # of decimals
    is_typed: bool = False  # text is text, even if it looks like numbers
    place_words: str = "row {}"


@contextmanager
def explain_damage(path: Path, where: str = "") -> Iterator[None]:
    """Say that a file is damaged, whatever a library raises; our work is not inside."""
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        if getattr(error, "errno", None) not in (None, errno.EINVAL):
            raise  # the system's: a disk is at fault, or a permission
        reason = " ".join(str(error).split())[:300]
        if "pickle" in reason:  # NumPy's advice is to allow it
            reason = "it does not hold an array of numbers"
        raise damaged(path, where + reason) from error


def damaged(path: Path, reason: str) -> ValueError:
    """Return the error that a file is not what its name says."""
    suffix, hint = suffix_of(path), "; texts need a CSV with a column of them, whose "
    hint = f"{hint}name --text-column takes" * (suffix == ".txt")
    return ValueError(f"{path} cannot be read as {suffix[1:]}: {reason}{hint}")


def suffix_of(path: Path) -> str:
    """Return the suffix that says the format, with that of compression left out."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def load_text(path: Path, request: Request) -> RawTable:
    """Read a CSV or TSV file in UTF-8, UTF-16, or as old spreadsheets encode it."""
    import pandas as pd

    phrases, content = [], _read_bytes(path, request)
    is_wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    encoding = "utf-16" if is_wide else "utf-8-sig"
    with explain_damage(path):
        try:
            content.decode(encoding)
        except UnicodeDecodeError:
            encoding = "cp1252"
            phrases.append("as Windows-1252, since it is not UTF-8 (look at the names)")
        start = content[: 2**20].decode(encoding, errors="ignore")
        delimiter, place, header = find_header(start, suffix_of(path))
        has_names = not all(map(_is_number, header))
        request, _ = request.resolve(header)
        asked = {name for _, name in request.named(*tb.BESIDE.values())}
        beside = [j for j, name in enumerate(header) if name in asked]
        frame = pd.read_csv(
            io.BytesIO(content),
            sep=r"\s+" if delimiter == " " else delimiter,
            encoding=encoding,
            header=None,
            names=range(len(header)),
            index_col=False,
            skiprows=place + has_names,
            skip_blank_lines=False,
            # Ids and labels stay as they are written.
            dtype=dict.fromkeys(beside, str),
            na_values={j: "" if j in beside else MISSING for j in range(len(header))},
            keep_default_na=False,
            float_precision="round_trip",
            low_memory=False,
        )
    if place:
        phrases.append(f"names of columns from line {place + 1}")
    point = decimal_point(frame, delimiter)
    if point == ",":
        phrases.append("commas as decimal points")
    last = int(np.flatnonzero(frame.notna().any(axis=1)).max(initial=-1))
    frame = frame.iloc[: last + 1]
    first, words = place + has_names + 1, "line {}"
    # A cell may have several lines.
    if len(frame) != content.rstrip(b"\r\n\0").count(b"\n") + 2 - first:
        first, words = 1, "row {}"
    names = header if has_names else tb.place_names(len(header))
    return _raw(frame, names, first, phrases=phrases, point=point, place_words=words)


def _read_bytes(path: Path, request: Request) -> bytes:
    """Return what is in a file, unpacked, if there is room for it."""
    unpack = gzip.open if path.suffix.lower() == ".gz" else open
    with explain_damage(path), unpack(path, "rb") as file:
        content = file.read(request.memory + 1)
    check_size(path, request, len(content))
    return content


def check_size(path: Path, request: Request, n_bytes: int) -> None:
    """Raise if there is no room for so many bytes, which a file holds or claims to."""
    convert = (
        ", or convert it once to Parquet, and give parquet/part-0.parquet: "
        'python -c "import pyarrow.dataset as d; d.write_dataset(d.dataset('
        f"{str(path)!r}, format='csv'), 'parquet', format='parquet')\""
    )
    if n_bytes > request.memory:
        raise ValueError(
            f"{path} is too large for {request.memory / 1e9:.3g} GB of memory; raise "
            f"--memory{convert * (suffix_of(path) in DELIMITERS)}."
        )


def find_header(start: str, suffix: str) -> tuple[str, int, list[str]]:
    """Return what is between cells, how many rows are above the names, and these."""
    lines = start.splitlines(keepends=True)
    marks = list(dict.fromkeys((DELIMITERS.get(suffix, ","), ";", "\t")))
    first = next((line for line in lines if line.strip()), "")
    found = []
    for mark in (*marks, " "):
        rows = _first_rows(lines, mark)
        place = n_title_rows(rows)
        widths = [len(row) for row in rows[place:] if row]
        # Names have as many cells as the row below, or one less, as R writes tables.
        is_table = len(widths) > 1 and 1 < widths[0] in (widths[1], widths[1] - 1)
        # Spaces may stand in titles, names and texts: they have to fit many rows.
        # Commas may be in names, as in ``revenue, EUR``: most columns win.
        if is_table and (mark != " " or (place == 0 and len(set(widths[1:])) == 1)):
            found.append((mark == " ", place, -widths[0], mark))
    _, place, _, mark = min(found, default=(0, 0, 0, max(marks, key=first.count)))
    rows = _first_rows(lines, mark)
    place = next((i for i, row in enumerate(rows) if i >= place and row), 0)
    header, *below = [row for row in rows[place:] if row] or [[""]]
    if below and len(below[0]) == len(header) + 1 and below[0][-1].strip():
        header = ["", *header]  # R has no name above the names of rows
    header += [""] * (len(below[0]) - len(header) if below else 0)
    return mark, place, header


def _first_rows(lines: list[str], mark: str) -> list[list[str]]:
    rows: list[list[str]] = []
    texts = [line.strip() for line in lines] if mark == " " else lines
    cells = csv.reader(texts, delimiter=mark, skipinitialspace=mark == " ")
    with suppress(csv.Error):  # a cell that is too long for it
        rows += islice(cells, 12)
    return rows


def n_title_rows(rows: Sequence[Sequence[Any]]) -> int:
    """Return how many rows are titles, of one cell, above several names of columns."""
    for place, row in enumerate(rows[:-1]):
        filled = [str(cell) for cell in row if cell is not None and str(cell).strip()]
        if len(filled) > 1:
            return 0 if all(map(_is_number, filled)) else place
    return 0


def _is_number(word: str) -> bool:
    with suppress(ValueError):
        return float(word) is not None
    return False


def load_parquet(path: Path, request: Request) -> RawTable:
    """Read a Parquet file."""
    from pyarrow import parquet

    with explain_damage(path), path.open("rb") as file:
        return from_arrow(parquet.ParquetFile(file).read())


def from_arrow(arrow: Any) -> RawTable:
    """Return a table of pyarrow, whose text is text; two columns may have one name."""
    frame = arrow.to_pandas(ignore_metadata=True, integer_object_nulls=True)
    return _raw(frame, arrow.column_names, is_typed=True)


def _raw(frame: Any, names: Sequence[Any], first: int = 1, **more: Any) -> RawTable:
    """Return a frame with names of columns, and with places of rows from the first."""
    frame.index = np.arange(first, first + len(frame))
    names = ["" if name is None else str(name) for name in names]
    return RawTable(frame.set_axis(unique_names(names), axis=1), **more)


def load_json_lines(path: Path, request: Request) -> RawTable:
    """Read a file with a record in each line."""
    import pandas as pd

    records: list[dict[str, Any]] = []
    for line in _read_bytes(path, request).splitlines():
        with explain_damage(path, f"line {len(records) + 1}: "):
            # pandas' own reader ends the program where lists are nested deeply.
            records.append(dict(json.loads(line)))
    frame = pd.DataFrame.from_records(records)
    return _raw(frame, list(frame.columns))


def load_sheet(path: Path, request: Request) -> RawTable:
    """Read the sheet that is asked for, or the one with most rows of two numbers."""
    import pandas as pd
    from python_calamine import CalamineWorkbook

    _refuse_large(path)
    with explain_damage(path):
        book = CalamineWorkbook.from_filelike(io.BytesIO(path.read_bytes()))
    titles = book.sheet_names
    wanted = titles if request.sheet is None else [request.sheet]
    for title in wanted:
        tb.check_there("--sheet", title, titles, str(path), "sheet")
    found, most = None, -1  # a pivot has fewer rows than what it sums up
    for title in wanted:
        with explain_damage(path), warnings.catch_warnings(action="ignore"):
            cells = book.get_sheet_by_name(title).to_python(skip_empty_area=False)
        rows = [list(map(_cell, row)) for row in cells]
        filled = (i for i, row in enumerate(rows) if set(row) != {None})
        place = n_title_rows(rows) or next(filled, 0)
        numbers = ([type(cell) in (int, float) for cell in row] for row in rows)
        n_usable = sum(sum(row) > 1 for row in numbers)
        if n_usable > most and len(rows) > place + 1:
            found, most = (title, place, rows), n_usable
    if found is None:
        raise damaged(path, "it has no row of names with rows below it")
    title, place, rows = found
    phrases = []
    if len(titles) > 1:
        others = quote_all([other for other in titles if other != title])
        phrases.append(f"sheet {quote(title)} (--sheet takes another: {others})")
    if place > 0:
        phrases.append(f"names of columns from row {place + 1}")
    frame = pd.DataFrame(rows[place + 1 :], dtype=object)
    words = "row {} of the sheet"
    return _raw(frame, rows[place], place + 2, phrases=phrases, place_words=words)


def _cell(value: Any) -> Any:
    """Return the cell of a sheet, in which whole numbers are no decimals."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None if value == "" else value


def _refuse_large(path: Path) -> None:
    """Raise if a workbook is too large: the library would end the whole program."""
    # It makes room for all cells up to the last that holds something, which may stand
    # there by mistake.
    if not zipfile.is_zipfile(path):  # .xls, whose sheets are small
        return
    n_cells = 0
    with explain_damage(path), zipfile.ZipFile(path) as archive:
        for name in [n for n in archive.namelist() if n.lower().endswith(".xml")]:
            height, width, letters = 0, 0, (0, b"")
            for cell in _FILLED.finditer(archive.read(name)):
                height = max(height, int(cell[2]))
                letters = max(letters, (len(cell[1]), cell[1]))
            for letter in letters[1]:
                width = 26 * width + letter - ord("A") + 1
            n_cells += height * width
    if n_cells > MOST_CELLS:
        raise ValueError(
            f"{path} is too large: it reaches over {n_cells:,} cells, up to the last "
            f"ones that are filled, and at most {MOST_CELLS:,} are read. Clear what "
            "stands far from the table, or save the sheet as CSV."
        )
