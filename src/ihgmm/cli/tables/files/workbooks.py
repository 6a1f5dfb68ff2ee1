"""Workbooks: the sheet with the data, and what is above its names of columns."""

import io
import re
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ihgmm.cli.tables.files.raw_table import (
    RawTable,
    damaged,
    explain_damage,
    name_columns,
)
from ihgmm.cli.tables.files.text_files import n_title_rows
from ihgmm.cli.tables.names import check_there, quote, quote_all
from ihgmm.cli.tables.request import Request

if TYPE_CHECKING:
    from python_calamine import CalamineWorkbook

WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
MOST_CELLS = 20_000_000  # of a workbook: they take 2 GB of memory, and 20 seconds
# The place of a cell that holds something; others have a colour, or a border.
_FILLED = re.compile(rb"""<(?:\w+:)?c\s[^>]*?\br=["']([A-Z]+)(\d+)["'][^>]*(?<!/)>""")


@dataclass(frozen=True)
class Sheet:
    """The cells of a sheet, and the row that has the names of columns."""

    title: str
    rows: list[list[object]]
    header_place: int

    @property
    def has_rows(self) -> bool:
        """Whether there are rows below the names."""
        return len(self.rows) > self.header_place + 1

    @property
    def n_usable_rows(self) -> int:
        """The number of rows with at least two numbers."""
        return sum(n_numbers(row) > 1 for row in self.rows)


def n_numbers(row: list[object]) -> int:
    """Return how many cells of a row are numbers."""
    return sum(type(cell) in (int, float) for cell in row)


def load_sheet(path: Path, request: Request) -> RawTable:
    """Read the sheet that is asked for, or the one with most rows of two numbers."""
    import pandas as pd
    from python_calamine import CalamineWorkbook

    _refuse_large(path)
    with explain_damage(path):
        book = CalamineWorkbook.from_filelike(io.BytesIO(path.read_bytes()))
    titles = book.sheet_names
    if request.sheet is not None:
        check_there("--sheet", request.sheet, titles, str(path), "sheet")

    # One after the other, since cells take much memory.
    chosen = titles if request.sheet is None else [request.sheet]
    sheets = (_read_sheet(path, book, title) for title in chosen)
    with_rows = (sheet for sheet in sheets if sheet.has_rows)
    # A pivot has fewer rows than what it sums up.
    sheet = max(with_rows, key=lambda sheet: sheet.n_usable_rows, default=None)
    if sheet is None:
        raise damaged(path, "it has no row of names with rows below it")

    place = sheet.header_place
    frame = pd.DataFrame(sheet.rows[place + 1 :], dtype=object)
    return RawTable(
        frame=name_columns(frame, sheet.rows[place], first_place=place + 2),
        phrases=_phrases(sheet, titles),
        place_words="row {} of the sheet",
    )


def _read_sheet(path: Path, book: "CalamineWorkbook", title: str) -> Sheet:
    """Return a sheet of a workbook."""
    with explain_damage(path), warnings.catch_warnings(action="ignore"):
        cells = book.get_sheet_by_name(title).to_python(skip_empty_area=False)

    rows = [[_cell(value) for value in row] for row in cells]
    filled = (place for place, row in enumerate(rows) if set(row) != {None})

    return Sheet(
        title=title,
        rows=rows,
        header_place=n_title_rows(rows) or next(filled, 0),
    )


def _phrases(sheet: Sheet, titles: list[str]) -> list[str]:
    """Return how a sheet was read, of a workbook with such titles of sheets."""
    phrases = []
    if len(titles) > 1:
        names = quote_all([title for title in titles if title != sheet.title])
        phrases.append(f"sheet {quote(sheet.title)} (--sheet takes another: {names})")

    if sheet.header_place > 0:
        phrases.append(f"names of columns from row {sheet.header_place + 1}")
    return phrases


def _cell(value: object) -> object:
    """Return the cell of a sheet, in which whole numbers are no decimals."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None if value == "" else value


def _refuse_large(path: Path) -> None:
    """Raise if a workbook is too large: the library would end the whole program."""
    if not zipfile.is_zipfile(path):  # .xls, whose sheets are small
        return

    n_cells = 0
    with explain_damage(path), zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.lower().endswith(".xml"):
                n_cells += _n_cells(archive.read(name))

    if n_cells > MOST_CELLS:
        raise ValueError(
            f"{path} is too large: it reaches over {n_cells:,} cells, up to the last "
            f"ones that are filled, and at most {MOST_CELLS:,} are read. Clear what "
            "stands far from the table, or save the sheet as CSV."
        )


def _n_cells(sheet: bytes) -> int:
    """Return the number of cells of a sheet up to the last that holds something.

    The library makes room for all of them, and the last may stand there by mistake.
    """
    height = 0
    last_letters = b""
    for cell in _FILLED.finditer(sheet):
        height = max(height, int(cell[2]))
        last_letters = max(last_letters, cell[1], key=_order_of_letters)
    return height * _column_number(last_letters)


def _order_of_letters(letters: bytes) -> tuple[int, bytes]:
    # Z comes before AA.
    return len(letters), letters


def _column_number(letters: bytes) -> int:
    """Return the number of a column: 1 for A, 27 for AA, and 0 for no letters."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number
