"""Spreadsheets: the first sheet that has a table."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from ihgmm.cli.tables.columns import Origin
from ihgmm.cli.tables.table import quote, quote_all
from ihgmm.matrix.files import explain_lack

# How openpyxl fails where an archive, or what is in it, is not a workbook.
SHEET_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    ParseError,
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)


def load_sheet(path: Path) -> tuple[Any, Origin]:
    """Return the first sheet with a table as one of pyarrow; its first row has names.

    Formulas have the values that were saved with them.
    """
    import pyarrow as pa

    with explain_lack("openpyxl", "cli", path):
        import openpyxl
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        title, rows = _first_table(book)
        titles = [sheet.title for sheet in book.worksheets]
    finally:
        book.close()
    begin, header = rows[0]
    width = max(len(row) for _, row in rows)
    header += [None] * (width - len(header))
    # As pandas calls columns without a name.
    names = [f"Unnamed: {i}" if c is None else str(c) for i, c in enumerate(header)]
    cells = [row + [None] * (width - len(row)) for _, row in rows[1:]]
    columns = [_column(list(column)) for column in zip(*cells, strict=True)]
    phrases = []
    if len(titles) > 1:
        others = quote_all([other for other in titles if other != title])
        phrases = [f"sheet {quote(title)} (not {others})"]
    if begin > 0:
        phrases.append(f"names of columns from row {begin + 1}")
    options = f", sheet_name={title!r}" * (title != titles[0])
    options += f", skiprows={begin}" * (begin > 0)
    origin = Origin(f"pd.read_excel({str(path)!r}{options})", phrases)
    if rows[-1][0] == begin + len(rows) - 1:  # no row between them is empty
        words = "row {} of the sheet"
        origin = replace(origin, first_place=begin + 2, place_words=words)
    return pa.table(columns, names=names), origin


def _first_table(book: Any) -> tuple[str, list[tuple[int, list[Any]]]]:
    """Return the title of the first sheet with a table, and its rows."""
    for sheet in book.worksheets:
        rows = list(_filled_rows(sheet))
        # A title may stand above the names of the columns, in one cell.
        while len(rows) > 2 and len(rows[1][1]) > 1 == _n_filled(rows[0][1]):
            del rows[0]
        if len(rows) > 1:
            return sheet.title, rows
    raise ValueError("no sheet has a row of names and rows below it")


def _n_filled(cells: list[Any]) -> int:
    return sum(cell is not None for cell in cells)


def _filled_rows(sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """Yield rows that have something in them, with their places."""
    sheet.reset_dimensions()  # which some programs write wrong
    for place, cells in enumerate(sheet.iter_rows(values_only=True)):
        last = max((i for i, cell in enumerate(cells) if cell is not None), default=-1)
        if last >= 0:
            yield place, list(cells[: last + 1])


def _column(cells: list[Any]) -> Any:
    """Return cells as one column: of numbers, dates, or text where kinds differ."""
    import pyarrow as pa

    try:
        return pa.chunked_array([pa.array(cells)])
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.chunked_array(
            [[None if c is None else str(c) for c in cells]], pa.string()
        )
