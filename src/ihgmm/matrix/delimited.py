"""Tables as text (CSV, TSV) that need not fit in memory.

One scan finds where every so many rows begin. From there rows are read and parsed by
pyarrow, anew in each pass: nothing is written to disk, and a run that is interrupted
leaves nothing behind. Parsing is what a pass costs, 0.1 to 0.2 GB of text a second on
two cores. Whoever wants many passes writes the table to Parquet once.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ihgmm.matrix.stored import BadCellError, Stored, unchanged

# What people write into cells without a number, beside what pyarrow knows.
MISSING = ("?", "-", "None", "none", "missing")
# How files in UTF-16 begin, which spreadsheets call Unicode text.
UTF16 = (b"\xff\xfe", b"\xfe\xff")
BOM = b"\xef\xbb\xbf"  # of UTF-8
# The most bytes that pyarrow parses together.
LARGEST_BLOCK = 2**31 - 1
# What stands between cells, by the suffix of a file.
DELIMITERS = {".csv": ",", ".tsv": "\t"}


def open_text(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    drop_option: str = "drop_columns of ihgmm.open_data",
    piece_bytes: int = 2**24,
) -> Stored:
    """Return the rows of a table as text, with all columns or some.

    About ``piece_bytes`` of text are parsed together; fewer take longer. Messages call
    what leaves columns out ``drop_option``.
    """
    layout = layout_of(path)
    names = list(layout.names if columns is None else columns)
    # A column costs about as much as a hundred cells, so that wide rows are parsed many
    # together, but no more than a block holds.
    most = Stored.block_bytes // (8 * len(names))
    step = max(1, min(max(piece_bytes // layout.row_bytes, 128), most))
    check = unchanged(path, settled=True)
    offsets, n_rows, quoted = _find_rows(layout, step)
    if n_rows == 0:
        raise ValueError(f"{path} has a header but no rows.")
    table = _Text(layout, names, offsets, n_rows, step, quoted, check, drop_option)
    with open(path, "rb") as file:
        head, _ = _first_rows(file, layout.begin, layout.delimiter, path)
    table.parser.find_kinds(head)
    table.numbers(0)  # so that columns of text are named at once
    return Stored(
        table.read,
        (n_rows, len(names)),
        np.float64,
        step=min(step, n_rows),
        names=names,
        source=f"table {path}",
    )


# How a table is written down


@dataclass(frozen=True)
class Layout:
    """How a table is written down."""

    path: str
    delimiter: str
    names: list[str]  # col1, col2, ... where the table has no header
    begin: int  # the byte at which the first row of data begins
    row_bytes: int  # of the first rows, on average
    decimal_point: str = "."
    n_titles: int = 0  # lines above the names


def layout_of(path: str | os.PathLike[str]) -> Layout:
    """Look at the beginning of a file and return how its table is written down."""
    with open(path, "rb") as file:
        start = file.read(2**20)
        _refuse_encodings(path, start)
        bom = 3 if start.startswith(BOM) else 0
        suffix = Path(path).suffix.lower()
        delimiter, n_titles = find_header(start, suffix)
        lines = start.splitlines(keepends=True)[:n_titles]
        top = max(bom, sum(map(len, lines)))
        header, ends = _first_rows(file, top, delimiter, path)
        if len(ends) == 0:
            raise ValueError(f"{path} is empty.")
        names = _names(header[: ends[0] - top], delimiter, path)
        begin = top
        if all(is_number(name) for name in names):
            names = place_names(len(names))
        else:
            names, begin = unique_names(names), int(ends[0])
        rows, ends = _first_rows(file, begin, delimiter, path)
    row_bytes = max(1, len(rows) // max(1, len(ends)))
    layout = Layout(
        os.fspath(path), delimiter, names, begin, row_bytes, n_titles=n_titles
    )
    if delimiter != ";" or len(ends) == 0:
        return layout
    # Semicolons stand between cells where commas are decimal.
    commas = replace(layout, decimal_point=",")
    n_text, n_text_by_commas = (
        sum(_Parser(choice, range(len(names)), quoted=True).text_columns(rows))
        for choice in (layout, commas)
    )
    return commas if n_text_by_commas < n_text else layout


def first_rows(
    path: str | os.PathLike[str], layout: Layout, n_bytes: int = 2**23
) -> bytes:
    """Return titles and header, if there are such, and rows of about so many bytes."""
    with open(path, "rb") as file:
        header = file.read(layout.begin)
        return (
            header + _first_rows(file, layout.begin, layout.delimiter, path, n_bytes)[0]
        )


class Header(NamedTuple):
    """Where the names of the columns are."""

    delimiter: str  # between them
    n_titles: int  # lines above them


def find_header(start: bytes, suffix: str) -> Header:
    """Return where the names of the columns are in a file that begins so.

    They are in the first line, or below titles. ``";"`` or a tab stands between them
    where there are more of those than of what is usual: names may have commas in them,
    as in ``revenue, EUR``.
    """
    # Ends of lines and what stands between cells are the same bytes in all encodings.
    start = start[: 2**16].removeprefix(BOM)
    lines = [line.decode("latin-1") for line in start.splitlines()]
    if len(start) > 2**15:  # the last line may be cut off
        lines = lines[:-1] or lines
    first = next((line for line in lines if line.strip()), "")
    usual = DELIMITERS.get(suffix, ",")
    delimiters = dict.fromkeys((usual, ";", "\t"))
    likely = max(delimiters, key=first.count)
    tried = []
    for delimiter in delimiters:
        reader = csv.reader(lines, delimiter=delimiter)
        # Titles are few.
        numbered = [(row, reader.line_num) for row in islice(reader, 12)]
        rows = [row for row, _ in numbered]
        place = n_title_rows(rows)
        widths = [len(row) for row in rows[place:] if row][:2]
        whole = len(widths) == 2 and widths[0] == widths[1] > 1
        n_titles = numbered[place - 1][1] if place else 0
        # Names have as many cells as the row below them.
        tried.append((not whole, place, delimiter != likely, delimiter, n_titles))
    odd, place, _, delimiter, n_titles = min(tried)
    return Header(likely, 0) if odd or not place else Header(delimiter, n_titles)


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


@dataclass(frozen=True)
class NumberStyle:
    """How people write numbers: with signs of money or %, and thousands apart."""

    decimal_point: str

    @property
    def groups(self) -> str:
        """What may stand between thousands, as a class of a regular expression."""
        other = "," if self.decimal_point == "." else "."
        return f"[{other}' \u2019\u00a0\u202f]"

    @cached_property
    def pattern(self) -> str:
        """What matches a number that is written so."""
        # Apostrophes and spaces of all widths may stand between thousands, too.
        whole = rf"(\d{{1,3}}({self.groups}\d{{3}})+|\d+)"
        point = f"[{self.decimal_point}]"
        number = rf"({whole}({point}\d*)?|{point}\d+)([eE][+-]?\d+)?"
        return rf"^\s*[+-]?[$€£¥]?\s?[+-]?{number}\s?[%$€£¥]?\s*$"

    def matches(self, column: Any) -> Any:
        """Return which cells of a column of pyarrow are numbers that are so written."""
        import pyarrow.compute as pc

        return pc.match_substring_regex(column, self.pattern)

    def numbers(self, column: Any) -> Any:
        """Return a column of pyarrow as float64; what is no number is null."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kept = pc.if_else(self.matches(column), column, pa.scalar(None, pa.string()))
        bare = pc.replace_substring_regex(kept, rf"{self.groups}|[$€£¥%\s]", "")
        return pc.replace_substring(bare, self.decimal_point, ".").cast(pa.float64())


def number_style(column: Any, decimal_point: str = ".") -> tuple[NumberStyle, int]:
    """Return how most numbers in a column of text are written, and how many those are.

    Where 1,234 may be read in two ways, the decimal point of the file decides.
    """
    import pyarrow.compute as pc

    other = "," if decimal_point == "." else "."
    styles = [NumberStyle(point) for point in (decimal_point, other)]
    counts = [pc.sum(style.matches(column)).as_py() or 0 for style in styles]
    best = int(counts[1] > counts[0])
    return styles[best], counts[best]


def is_number(word: str) -> bool:
    """Return whether a word is a number."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def _refuse_encodings(path: Any, start: bytes) -> None:
    if start.startswith(UTF16):
        raise ValueError(
            f"{path} is stored as UTF-16, which is not read block by block; save it as "
            "UTF-8."
        )
    if start.startswith(b"\x1f\x8b"):
        raise ValueError(
            f"{path} is compressed, so that no row can be found without all before it; "
            "unpack it first."
        )
    if b"\n" not in start and b"\r" in start:
        raise ValueError(f"{path} has line ends of old kind (\\r); save it with \\n.")


def _first_rows(
    file: BinaryIO, begin: int, delimiter: str, path: Any, n_bytes: int = 2**20
) -> tuple[bytes, np.ndarray]:
    """Return the first whole rows, at least one, and where in the file each ends."""
    file.seek(begin)
    scan, text, ends = _RowEnds(begin, delimiter, path), b"", np.empty(0, dtype=int)
    while len(ends) == 0:
        more = file.read(n_bytes)
        text += more
        ends = scan.feed(more) if more else scan.finish()
        if not more:
            break
    return text[: int(ends[-1]) - begin] if len(ends) else b"", ends


def _names(header: bytes, delimiter: str, path: Any) -> list[str]:
    try:
        header.decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} has names of columns that are not UTF-8 ({error}); save it as "
            "UTF-8."
        ) from None
    from pyarrow import ArrowInvalid, BufferReader, csv

    # Python's own reader refuses long cells, and the parser rows beyond its block.
    options = csv.ReadOptions(block_size=min(len(header) + 1, LARGEST_BLOCK))
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    try:
        return list(csv.read_csv(BufferReader(header), options, parse).column_names)
    except ArrowInvalid as error:
        raise ValueError(f"{path}: its header cannot be read: {error}") from error


# Where rows begin


class _RowEnds:
    """Finds where rows end in a file that is given piece by piece.

    A line end in a quoted cell ends no row, and a line without a cell is none. A quote
    in the middle of a cell is refused: whether it hides line ends depends on who reads.
    """

    def __init__(self, begin: int, delimiter: str, path: Any) -> None:
        self.at = self.line = begin  # where the next byte and the current line begin
        self.before, self.inside, self.quoted = ord("\n"), False, False
        self.path = path
        self.openers = np.frombuffer(b'\r\n"' + delimiter.encode(), dtype=np.uint8)

    def feed(self, piece: bytes) -> np.ndarray:
        """Return the place after each row that ends in the next piece of the file."""
        values = np.frombuffer(piece, dtype=np.uint8)
        ends = np.flatnonzero(values == ord("\n"))
        if b'"' in piece:
            ends = self._outside(values, ends)
        elif self.inside:
            ends = ends[:0]
        if len(ends):
            after = ends + (self.at + 1)
            lengths = np.diff(after, prepend=self.line) - 1
            last = values[ends - 1]
            last[0] = values[ends[0] - 1] if ends[0] > 0 else self.before
            rows = lengths > np.where(last == ord("\r"), 1, 0)
            self.line, found = int(after[-1]), after[rows]
        else:
            found = ends
        self.at += len(piece)
        self.before = int(values[-1])
        return found

    def finish(self) -> np.ndarray:
        """Return the end of the file, if a row ends there without a line end."""
        if self.inside:
            raise ValueError(
                f"{self.path} ends inside a quoted cell; close its quote, or write the "
                "file again."
            )
        blank = self.at - self.line == 1 and self.before == ord("\r")
        return np.array([self.at] * (self.at > self.line and not blank), dtype=int)

    def _outside(self, values: np.ndarray, ends: np.ndarray) -> np.ndarray:
        quotes = np.flatnonzero(values == ord('"'))
        self.quoted = True
        opening = quotes[int(self.inside) :: 2]
        before = values[opening - 1]
        if len(opening) and opening[0] == 0:
            before[0] = self.before
        stray = opening[~np.isin(before, self.openers)]
        if len(stray):
            raise ValueError(
                f"{self.path} has a quote in the middle of a cell, at byte "
                f"{self.at + int(stray[0])}, so that rows cannot be told apart; put "
                "the cell in quotes and double those in it, or leave them out."
            )
        closed = (np.searchsorted(quotes, ends) + self.inside) % 2 == 0
        self.inside = bool((len(quotes) + self.inside) % 2)
        return ends[closed]


def _find_rows(layout: Layout, step: int) -> tuple[np.ndarray, int, bool]:
    """Return where every ``step``-th row begins, with the end; rows; any quotes."""
    scan, n_rows = _RowEnds(layout.begin, layout.delimiter, layout.path), 0
    offsets = [np.array([layout.begin])]
    with open(layout.path, "rb") as file:
        file.seek(layout.begin)
        more = True
        while more:
            piece = file.read(2**22)
            more = len(piece) > 0
            ends = scan.feed(piece) if more else scan.finish()
            offsets.append(ends[(-n_rows - 1) % step :: step])
            n_rows += len(ends)
    if n_rows % step:
        offsets.append(np.array([scan.at]))
    return np.concatenate(offsets), n_rows, scan.quoted


# From text to numbers


class _Text:
    """The rows of a table, parsed in pieces of ``step`` rows."""

    def __init__(
        self,
        layout: Layout,
        names: list[str],
        offsets: np.ndarray,
        n_rows: int,
        step: int,
        quoted: bool,
        check: Callable[[], None],
        drop_option: str,
    ) -> None:
        self.layout, self.offsets, self.check = layout, offsets, check
        self.n_rows, self.step = n_rows, step
        self.names, self.drop_option = names, drop_option
        places = {name: i for i, name in enumerate(layout.names)}
        self.used = [places[name] for name in names]
        self.parser = _Parser(layout, self.used, quoted=quoted)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return some rows as a new array."""
        found = np.empty((stop - start, len(self.used)))
        for piece in range(start // self.step, -(-stop // self.step)):
            first = piece * self.step
            rows = self.numbers(piece)
            begin, end = max(start - first, 0), min(stop - first, len(rows))
            found[first + begin - start : first + end - start] = rows[begin:end]
        return found

    def numbers(self, piece: int) -> np.ndarray:
        """Return the rows of a piece."""
        begin, end = (int(place) for place in self.offsets[piece : piece + 2])
        with open(self.layout.path, "rb") as file:
            file.seek(begin)
            text = file.read(end - begin)
        self.check()
        if len(text) < end - begin:
            raise EOFError(f"the file now ends before byte {end}")
        first = piece * self.step
        try:
            table = self.parser(text)
        except self.parser.errors as error:
            self._explain(text, first)
            raise error
        expected = min(self.step, self.n_rows - first)
        if table.num_rows != expected:
            raise ValueError(
                f"{table.num_rows} rows were parsed where there are {expected} lines"
            )
        (batch,) = table.combine_chunks().to_batches()
        return batch.to_tensor(null_to_nan=True, row_major=True).to_numpy()

    def _explain(self, text: bytes, first: int) -> None:
        """Raise an error that names what is no number, if something is not."""
        path = self.layout.path
        invalid: list[Any] = []
        table = self.parser.as_text(text, invalid)
        if table is None:
            row = invalid[0]
            raise BadCellError(
                f"{path} has {row.actual_columns} cells in row {first + row.number} "
                f"after the header, and {row.expected_columns} names of columns. "
                "Mend that row; if cells hold "
                f"{self.layout.delimiter!r}, put them in quotes."
            )
        bad = []
        for name, found in zip(self.names, self.parser.first_texts(table), strict=True):
            if found is not None:
                bad.append((name, *found))
        if not bad:
            return
        name, row, cell = bad[0]
        others = [repr(other) for other, *_ in bad[1:6]]
        also = f"; so do {', '.join(others)}{' and more' * (len(bad) > 6)}" * bool(
            others
        )
        raise BadCellError(
            f"{path}: column {name!r} holds text, {cell[:40]!r} in row "
            f"{first + row + 1} after the header{also}. Leave out columns of text by "
            f"{self.drop_option}, and empty single cells: they are missing values then."
        )


class _Parser:
    """Text of whole rows to a table of pyarrow, some columns of it."""

    def __init__(self, layout: Layout, used: Sequence[int], *, quoted: bool) -> None:
        import pyarrow as pa
        from pyarrow import csv as arrow

        self.errors, self._arrow, self._layout = pa.ArrowInvalid, arrow, layout
        # By number, since names may be anything.
        self._all = [f"{i}" for i in range(len(layout.names))]
        self._used = [self._all[i] for i in used]
        self._nulls = [*arrow.ConvertOptions().null_values, *MISSING]
        self._strings = self._convert(dict.fromkeys(self._used, pa.string()))
        # Columns of true and false, which become 1 and 0, and of numbers that are
        # written as people do.
        self._flags: list[str] = []
        self._styles: dict[str, NumberStyle] = {}
        self._numbers = self._convert(dict.fromkeys(self._used, pa.float64()))
        self._quoted = quoted
        # Threads share text of a megabyte, or all of it where few rows are that long.
        self._block = 2**20 if layout.row_bytes < 2**13 else 2**30

    def _convert(self, types: dict[str, Any]) -> Any:
        return self._arrow.ConvertOptions(
            include_columns=self._used,
            column_types=types,
            null_values=self._nulls,
            strings_can_be_null=True,
            decimal_point=self._layout.decimal_point,
        )

    def _parse(self, handler: Any = None) -> Any:
        return self._arrow.ParseOptions(
            delimiter=self._layout.delimiter,
            newlines_in_values=self._quoted,
            invalid_row_handler=handler,
        )

    def __call__(self, text: bytes) -> Any:
        """Return numbers."""
        import pyarrow as pa

        options = self._arrow.ReadOptions(
            column_names=self._all, block_size=self._block
        )
        source = pa.BufferReader(text)
        table = self._arrow.read_csv(source, options, self._parse(), self._numbers)
        for name in (*self._flags, *self._styles):
            place = table.schema.get_field_index(name)
            column = table.column(place)
            if name in self._styles:
                if self.first_text(column, self._styles[name]) is not None:
                    raise pa.ArrowInvalid("a cell is not a number")
                column = self._styles[name].numbers(column)
            table = table.set_column(place, name, column.cast(pa.float64()))
        return table

    def find_kinds(self, text: bytes) -> None:
        """Look for flags and for styles of numbers, in the first rows."""
        import pyarrow as pa

        table = self.as_text(text, [])
        if table is None:
            return  # rows that are not whole are named when they are read
        flags = {"true", "false"}
        for name, column in zip(self._used, table.columns, strict=True):
            cells = column.drop_null()
            if len(cells) == 0 or self.first_text(cells.slice(0, 100)) is None:
                continue
            words = {str(cell).lower() for cell in cells.slice(0, 100).to_pylist()}
            if words <= flags:
                self._flags.append(name)
                continue
            style, n_matches = number_style(cells, self._layout.decimal_point)
            if n_matches == len(cells):
                self._styles[name] = style
        kinds = dict.fromkeys(self._used, pa.float64())
        kinds |= dict.fromkeys(self._flags, pa.bool_())
        self._numbers = self._convert(kinds | dict.fromkeys(self._styles, pa.string()))

    def as_text(self, text: bytes, invalid: list[Any]) -> Any:
        """Return cells as they are written; None, and the row, if one is not whole."""
        import pyarrow as pa

        def handler(row: Any) -> str:
            invalid.append(row)
            return "error"

        options = self._arrow.ReadOptions(
            column_names=self._all, block_size=len(text) + 1, use_threads=False
        )
        source = pa.BufferReader(text)
        try:
            text.decode()
            parse = self._parse(handler)
        except UnicodeDecodeError:  # at which pyarrow cannot hand over a row
            parse = self._parse()
        try:
            return self._arrow.read_csv(source, options, parse, self._strings)
        except pa.ArrowInvalid as error:
            if invalid:
                return None
            path = self._layout.path
            raise ValueError(f"{path} cannot be read as a table: {error}") from error

    def text_columns(self, text: bytes) -> list[bool]:
        """Return which columns hold text."""
        table = self.as_text(text, [])
        if table is None:
            return []
        return [cell is not None for cell in self.first_texts(table)]

    def first_texts(self, table: Any) -> list[tuple[int, str] | None]:
        """Return the first cell of each column that is not a number, if there is one.

        The table is one of :meth:`as_text`.
        """
        styles = [self._styles.get(name) for name in self._used]
        pairs = zip(table.columns, styles, strict=True)
        return [self.first_text(column, style) for column, style in pairs]

    def first_text(
        self, column: Any, style: NumberStyle | None = None
    ) -> tuple[int, str] | None:
        """Return place and content of the first cell that is not a number, if any."""
        if style is not None:
            import pyarrow.compute as pc

            row = pc.index(style.matches(column), False).as_py()
            return None if row < 0 else (row, column[row].as_py())
        point = self._layout.decimal_point
        for row, cell in enumerate(column.to_pylist()):
            # Python takes more for numbers than the parser does.
            if cell is None or (
                is_number(cell.replace(point, ".")) and "_" not in cell
            ):
                continue
            return row, cell
        return None
