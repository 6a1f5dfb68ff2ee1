"""Spreadsheets: the first sheet that has a table, or the one that is asked for."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import numpy as np

from ihgmm.cli.tables.columns import Origin
from ihgmm.cli.tables.table import quote, quote_all
from ihgmm.matrix.delimited import n_title_rows
from ihgmm.matrix.files import explain_lack, near

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


def load_sheet(path: Path, wanted: str | None = None) -> tuple[Any, Origin]:
    """Return a sheet as a table of pyarrow: the one wanted, or the first with a table.

    Formulas have the values that were saved with them.
    """
    import pyarrow as pa

    with explain_lack("openpyxl", "cli", path):
        import openpyxl
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        titles = [sheet.title for sheet in book.worksheets]
        if wanted is not None and wanted not in titles:
            known = f"{near(wanted, titles)}; it has {quote_all(titles)}."
            raise ValueError(f"there is no sheet {quote(wanted)}{known}")
        title, rows = _first_table(book, wanted)
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
    places = np.array([place + 1 for place, _ in rows[1:]])
    if places[-1] > begin + len(rows):  # rows between them are empty
        read = f'{origin.python}.dropna(how="all", ignore_index=True)'
        origin = replace(origin, python=read)
    origin = replace(origin, places=places, place_words="row {} of the sheet")
    return pa.table(columns, names=names), origin


Rows = list[tuple[int, list[Any]]]  # with their places


def _first_table(book: Any, wanted: str | None) -> tuple[str, Rows]:
    """Return the title of a sheet, and its rows without titles above the names.

    It is the one that is wanted, or the first that has two columns of numbers, or the
    first that has a table.
    """
    tables: dict[str, Rows] = {}
    for sheet in book.worksheets:
        if wanted not in (None, sheet.title):
            continue
        rows = list(_filled_rows(sheet))
        del rows[: n_title_rows([cells for _, cells in rows])]
        if len(rows) < 2:
            continue
        tables[sheet.title] = rows
        if _n_number_columns(rows) > 1:
            return sheet.title, rows
    if not tables:
        which = "no sheet has" if wanted is None else f"sheet {quote(wanted)} has not"
        raise ValueError(f"{which} a row of names and rows below it")
    return next(iter(tables.items()))


def _n_number_columns(rows: Rows) -> int:
    """Return how many columns have numbers below their name."""
    kinds = (int, float)
    cells = ((j, c) for _, row in rows[1:] for j, c in enumerate(row))
    return len({j for j, cell in cells if isinstance(cell, kinds)})


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
