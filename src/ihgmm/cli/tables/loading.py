"""Files with named columns, as libraries read them, and how they were read."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm.cli.tables.numbers import MISSING, decimal_point
from ihgmm.cli.tables.table import BESIDE, Request, place_names, unique_names

# What stands between cells, by the suffix of a file.
DELIMITERS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class RawTable:
    """A table as a library reads it, and how it was read."""

    # Of pandas; no two columns have one name, and the index says where rows are.
    frame: Any
    phrases: Sequence[str] = ()  # such as "names of columns from line 3", to be told
    point: str = "."  # of decimals
    is_typed: bool = False  # text is text, even if it looks like numbers
    place_words: str = "row {}"

    def place(self, row: int) -> str:
        """Return where people find a row."""
        return self.place_words.format(self.frame.index[row])


@contextmanager
def explain_damage(path: Path, where: str = "") -> Iterator[None]:
    """Say that a file is damaged, and where, whatever a library raises then.

    Only the library's work belongs inside: a defect of ours is no damaged file.
    """
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
    return ValueError(f"{path} cannot be read as {suffix_of(path)[1:]}: {reason}")


def suffix_of(path: Path) -> str:
    """Return the suffix that says the format, with that of compression left out."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def load_text(path: Path, request: Request) -> RawTable:
    """Read a CSV or TSV file in UTF-8, UTF-16, or as old spreadsheets encode it."""
    import pandas as pd

    phrases, content = [], _read_bytes(path, request)
    is_wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
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
        asked = {name for _, name in request.resolve(header)[0].named(*BESIDE.values())}
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
    frame.index = np.arange(first, first + len(frame))
    names = unique_names(header) if has_names else place_names(len(header))
    return RawTable(frame.set_axis(names, axis=1), phrases, point, place_words=words)


def _read_bytes(path: Path, request: Request) -> bytes:
    """Return what is in a file, unpacked, if there is room for it."""
    is_packed = path.suffix.lower() == ".gz"
    with explain_damage(path), (gzip.open if is_packed else open)(path, "rb") as file:
        content = file.read(request.memory + 1)
    check_size(path, request, len(content))
    return content


def check_size(path: Path, request: Request, n_bytes: int) -> None:
    """Raise if there is no room for so many bytes, which a file holds or claims to."""
    convert = (
        ", or convert it once to a folder of Parquet files, and give the file in it: "
        'python -c "import pyarrow.dataset as d; d.write_dataset(d.dataset('
        f"{str(path)!r}, format='csv'), 'parquet', format='parquet')\""
    )
    if n_bytes > request.memory:
        raise ValueError(
            f"{path} is too large for {request.memory / 1e9:.3g} GB of memory; raise "
            f"--memory{convert * (suffix_of(path) in DELIMITERS)}."
        )


def find_header(start: str, suffix: str) -> tuple[str, int, list[str]]:
    """Return what stands between cells, how many rows are above the names, and these.

    Names have as many cells as the row below them, or one less, as R writes tables.
    Names may have commas in them, as in ``revenue, EUR``: most columns win.
    """
    lines = start.splitlines(keepends=True)
    marks = list(dict.fromkeys((DELIMITERS.get(suffix, ","), ";", "\t")))
    first = next((line for line in lines if line.strip()), "")
    found = []
    for mark in (*marks, " "):
        rows = _first_rows(lines, mark)
        place = n_title_rows(rows)
        widths = [len(row) for row in rows[place:] if row]
        is_table = len(widths) > 1 and 1 < widths[0] in (widths[1], widths[1] - 1)
        # Spaces may stand in titles, names and texts: they have to fit many rows.
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
    """Return the cells of the first few rows."""
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
    frame.index += 1
    frame.columns = unique_names(arrow.column_names)
    return RawTable(frame, is_typed=True)


def load_json_lines(path: Path, request: Request) -> RawTable:
    """Read a file with a record in each line."""
    import pandas as pd

    records: list[dict[str, Any]] = []
    for line in _read_bytes(path, request).splitlines():
        with explain_damage(path, f"line {len(records) + 1}: "):
            # pandas' own reader ends the program where lists are nested deeply.
            records.append(dict(json.loads(line)))
    frame = pd.DataFrame.from_records(records)
    frame.index += 1
    frame.columns = unique_names(list(map(str, frame.columns)))
    return RawTable(frame)
