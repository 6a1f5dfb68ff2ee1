"""Tables as text (CSV, TSV): how they are written down, and text as numbers.

pyarrow takes text apart into cells. What it does not know is here: titles above the
names of columns, numbers as people write them, and words for missing cells.
"""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ihgmm.matrix.faults import explain_damage
from ihgmm.matrix.stored import Stored, in_temporary_file

T = TypeVar("T")
# What stands between cells, by the suffix of a file.
DELIMITERS = {".csv": ",", ".tsv": "\t"}
# What people and programs write into cells without a number.
MISSING = (
    *("", "?", "-", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "null"),
    *("NULL", "Null", "None", "none", "missing", "nan", "NaN", "-nan", "-NaN"),
    *("1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
LARGEST_BLOCK = 2**31 - 1  # of text that pyarrow parses together


# Cells


@dataclass(frozen=True)
class TextTable:
    """A table as text, and how it is written down."""

    path: Path
    encoding: str
    block_bytes: int  # of text that are parsed together
    delimiter: str
    n_titles: int  # lines above the names of columns
    header: list[str]  # the first row below them, whether or not it has names

    @property
    def has_names(self) -> bool:
        """Whether the header has names: it is no row of numbers."""
        return not all(map(is_number, self.header))

    @property
    def names(self) -> list[str]:
        """Names of which no two are alike."""
        names = self.header
        return unique_names(names) if self.has_names else place_names(len(names))

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Yield rows as batches of pyarrow, with cells as they are written."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        # By number, since names may be anything; each column costs a look-up.
        numbers = {name: str(i) for i, name in enumerate(self.names)}
        used = [numbers[name] for name in (numbers if columns is None else columns)]
        reading = arrow.ReadOptions(
            column_names=list(numbers.values()),
            skip_rows=self.n_titles,
            skip_rows_after_names=int(self.has_names),
            encoding=self.encoding,
            block_size=self.block_bytes,
        )
        parsing = arrow.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        as_text = arrow.ConvertOptions(
            include_columns=used, column_types=dict.fromkeys(used, pa.string())
        )
        with pa.input_stream(os.fspath(self.path)) as source:
            yield from arrow.open_csv(source, reading, parsing, as_text)

    def read(
        self, columns: Sequence[str] | None = None, only_head: bool = False
    ) -> Any:
        """Return all rows as a table of pyarrow, or only those of the first block."""
        import pyarrow as pa

        names = self.names if columns is None else list(columns)
        batches = list(islice(self.batches(columns), 1 if only_head else None))
        if not batches:
            return pa.table([pa.array([], pa.string())] * len(names), names=names)
        return pa.Table.from_batches(batches).rename_columns(names)


def read_text(
    path: Path, work: Callable[[TextTable], T], block_bytes: int = 2**24
) -> T:
    """Return the result of some work on a table as text, which is parsed in blocks.

    The work begins anew if the table turns out to be no UTF-8, which makes it
    Windows-1252, or to have a row that is longer than a block.
    """
    import pyarrow as pa

    errors = (pa.ArrowException, UnicodeError, EOFError, csv.Error, zlib.error)
    with explain_damage(path, *errors):
        with _opened(path, "rb") as file:
            is_utf16 = file.read(2) in (b"\xff\xfe", b"\xfe\xff")
        encoding = "utf-16" if is_utf16 else "utf-8"
        while True:
            try:
                return work(_look_at(path, encoding, block_bytes))
            except (pa.ArrowInvalid, UnicodeDecodeError) as error:
                reason = str(error).lower()
                if "utf" in reason and encoding == "utf-8":
                    encoding = "cp1252"
                elif "straddling" in reason and block_bytes < LARGEST_BLOCK:
                    block_bytes = min(16 * block_bytes, LARGEST_BLOCK)
                else:
                    raise


def _opened(path: Path, mode: str, **options: Any) -> Any:
    return (gzip.open if path.suffix.lower() == ".gz" else open)(path, mode, **options)


def _look_at(path: Path, encoding: str, block_bytes: int) -> TextTable:
    """Look at the beginning of a file and return how its table is written down."""
    python_name = encoding.replace("utf-8", "utf-8-sig")
    with _opened(path, "rt", encoding=python_name, newline="") as file:
        suffix = Path(path.name.lower().removesuffix(".gz")).suffix
        delimiter, n_titles = find_header(file.read(2**16), suffix)
        file.seek(0)
        rows = csv.reader(islice(file, n_titles, None), delimiter=delimiter)
        filled = (row for row in rows if row)
        header, first = next(filled, None), None
        with suppress(csv.Error):  # a cell that is too long for it
            first = next(filled, None)
    if header is None:
        raise ValueError(f"{path} is empty.")
    # R's write.table has no name above the names of rows.
    if first and len(first) == len(header) + 1 and first[-1].strip():
        header = ["row.names", *header]
    return TextTable(path, encoding, block_bytes, delimiter, n_titles, header)


def find_header(start: str, suffix: str) -> tuple[str, int]:
    """Return what stands between cells, and how many lines are above the names.

    Names are in the first line, or below titles. ``";"`` or a tab stands between them
    where there are more of those than of what is usual: names may have commas in them,
    as in ``revenue, EUR``.
    """
    lines = start.splitlines()
    if len(start) >= 2**16:  # the last line may be cut off
        lines = lines[:-1] or lines
    first = next((line for line in lines if line.strip()), "")
    delimiters = dict.fromkeys((DELIMITERS.get(suffix, ","), ";", "\t"))
    if suffix == ".txt" and not any(map(first.count, delimiters)):
        return " ", 0  # as R's write.table has it
    likely = max(delimiters, key=first.count)
    tried = []
    for delimiter in delimiters:
        reader = csv.reader(lines, delimiter=delimiter)
        numbered = [(row, reader.line_num) for row in islice(reader, 12)]
        rows = [row for row, _ in numbered]
        place = n_title_rows(rows)
        widths = [len(row) for row in rows[place:] if row][:2]
        whole = len(widths) == 2 and widths[0] == widths[1] > 1
        n_titles = numbered[place - 1][1] if place else 0
        # Names have as many cells as the row below them.
        tried.append((not whole, place, delimiter != likely, delimiter, n_titles))
    odd, place, _, delimiter, n_titles = min(tried)
    return (likely, 0) if odd or not place else (delimiter, n_titles)


def n_title_rows(rows: Sequence[Sequence[Any]]) -> int:
    """Return how many of the first rows are titles, above the names of the columns.

    A title has one cell, and names of columns have several, of which one at least is no
    number.
    """
    for place, row in enumerate(rows[:-1]):
        filled = [str(cell) for cell in row if cell is not None and str(cell).strip()]
        if len(filled) > 1:
            return 0 if all(map(is_number, filled)) else place
    return 0


def unique_names(names: Sequence[str]) -> list[str]:
    """Return names of which no two are alike: the second ``a`` is called ``a.1``.

    A first column without a name is called ``Unnamed: 0``. It is what pandas does. A
    name of the file is never given to another column.
    """
    names = [name or f"Unnamed: {i}" for i, name in enumerate(names)]
    taken, counts, unique = set(names), dict.fromkeys(names, 0), []
    for name in names:
        new = name
        while counts[name] > 0 and new in taken:
            new = f"{name}.{counts[name]}"
            counts[name] += 1
        counts[name] += new == name
        taken.add(new)
        unique.append(new)
    return unique


def place_names(n_columns: int) -> list[str]:
    """Return what columns without names are called."""
    return [f"col{i}" for i in range(1, n_columns + 1)]


def is_number(word: str) -> bool:
    """Return whether a word is a number."""
    try:
        float(word)
    except ValueError:
        return False
    return True


# Numbers


class Numbers(NamedTuple):
    """A column of text as numbers."""

    values: np.ndarray  # NaN where a cell has no number
    # Text of cells without blanks around it, null where they are missing; None for a
    # column that is not of text.
    cells: Any
    # The decimal point, of numbers as people write them: with signs of money or %, and
    # thousands apart. None of those as machines write them.
    point: str | None = None

    @property
    def bad_rows(self) -> np.ndarray:
        """The rows whose cells hold something else than a number."""
        if self.cells is None:
            return np.array([], int)
        is_filled = self.cells.is_valid().to_numpy(zero_copy_only=False)
        return np.flatnonzero(np.isnan(self.values) & is_filled)

    @property
    def is_text(self) -> bool:
        """Whether most cells hold something else than a number."""
        n_bad = len(self.bad_rows)
        return n_bad > 0 and 2 * n_bad > len(self.cells.drop_null())


def parse_numbers(column: Any, point: str = ".") -> Numbers:
    """Return the numbers in a column of text; true and false are 1 and 0.

    Where 1,234 may be read in two ways, the decimal ``point`` of the file decides.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    values = _plain_numbers(column, point)
    if values is not None and not np.isnan(values).any():
        return Numbers(values, column)
    trimmed = pc.utf8_trim_whitespace(column)
    is_gap = pc.is_in(trimmed, value_set=pa.array(MISSING))
    cells = pc.if_else(is_gap, pa.scalar(None, pa.string()), trimmed)
    values = _plain_numbers(cells, point)
    if values is not None:
        return Numbers(values, cells)
    lower = pc.utf8_lower(cells)
    if pc.all(pc.is_in(lower, value_set=pa.array(["true", "false", None]))).as_py():
        return Numbers(_as_array(pc.equal(lower, "true").cast(pa.float64())), cells)
    points = [point, "," if point == "." else "."]
    matches = [pc.match_substring_regex(cells, _pattern(point)) for point in points]
    n_first, n_other = (pc.sum(match).as_py() or 0 for match in matches)
    point, match = points[n_other > n_first], matches[n_other > n_first]
    numbers = pc.if_else(match, cells, pa.scalar(None, pa.string()))
    bare = pc.replace_substring_regex(numbers, between_digits(point), "")
    values = _as_array(pc.replace_substring(bare, point, ".").cast(pa.float64()))
    is_plain = point == "." and pc.all(pc.equal(bare, numbers)).as_py()
    return Numbers(values, cells, None if is_plain else point)


def decimal_point(columns: Sequence[Any], delimiter: str) -> str:
    """Return the decimal point of a table, as a column of it shows.

    Semicolons stand between cells where commas are decimal.
    """
    if delimiter == ";":
        for cells in (parse_numbers(column).cells for column in columns):
            if _plain_numbers(cells, ".") is None is not _plain_numbers(cells, ","):
                return ","
    return "."


def between_digits(point: str) -> str:
    """Return a pattern of what numbers may have beside digits and a decimal point."""
    # Apostrophes and spaces of all widths may stand between thousands, too.
    return f"[{',' if point == '.' else '.'}'\u2019\u00a0\u202f$€£¥%\\s]"


def _pattern(point: str) -> str:
    """Return what matches a number as people write it."""
    group = between_digits(point).replace("$€£¥%", "")
    whole = rf"(\d{{1,3}}({group}\d{{3}})+|\d+)"
    number = rf"({whole}([{point}]\d*)?|[{point}]\d+)([eE][+-]?\d+)?"
    return rf"^[+-]?[$€£¥]?\s?[+-]?{number}\s?[%$€£¥]?$"


def _plain_numbers(cells: Any, point: str) -> np.ndarray | None:
    """Return cells that are numbers as machines write them, or None."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if point == ",":
        if pc.any(pc.match_substring(cells, ".")).as_py():
            return None  # it stands between thousands
        cells = pc.replace_substring(cells, ",", ".")
    try:
        return _as_array(cells.cast(pa.float64()))
    except pa.ArrowInvalid:
        return None


def _as_array(column: Any) -> np.ndarray:
    return np.asarray(column.to_numpy(zero_copy_only=False))


# Rows that need not fit in memory


def open_text(
    path: str | os.PathLike[str],
    choose: Callable[[list[str]], Sequence[str]] = list,
    dtype: Any = np.float64,
    drop_option: str = "drop_columns of ihgmm.open_data",
    block_bytes: int = 2**24,
) -> Stored:
    """Return rows of the columns that are chosen by their names.

    Text is converted once to numbers in a temporary file, which the system removes when
    the matrix goes. Messages call what leaves columns out ``drop_option``.
    """
    path = Path(path)

    def convert(table: TextTable) -> Stored:
        names = list(choose(table.names))
        rows = _number_batches(table, names, drop_option)
        return in_temporary_file(rows, names, np.dtype(dtype), f"table {path}")

    matrix = read_text(path, convert, block_bytes)
    if matrix.shape[0] == 0:
        raise ValueError(f"{path} has a header but no rows.")
    return matrix


def _number_batches(
    table: TextTable, names: list[str], drop_option: str
) -> Iterator[np.ndarray]:
    """Yield rows of some columns, which have to hold numbers."""
    point, n = "", 0
    for batch in table.batches(names):
        point = point or decimal_point(batch.columns, table.delimiter)
        columns = [parse_numbers(column, point) for column in batch.columns]
        bad = [j for j, column in enumerate(columns) if len(column.bad_rows)]
        if bad:
            column = columns[bad[0]]
            row = int(column.bad_rows[0])
            others = [repr(names[j]) for j in bad[1:6]]
            also = f"; so do {', '.join(others)}" * bool(others)
            raise ValueError(
                f"{table.path}: column {names[bad[0]]!r} holds text, "
                f"{column.cells[row].as_py()[:40]!r} in row {n + row + 1} after the "
                f"header{also}{' and more' * (len(bad) > 6)}. Leave out columns of "
                f"text by {drop_option}, and empty single cells: they are missing "
                "values then."
            )
        n += len(batch)
        yield np.column_stack([column.values for column in columns])
