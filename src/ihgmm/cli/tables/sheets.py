"""Spreadsheets: the first sheet that has a table, or the one that is asked for."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import numpy as np

from ihgmm.cli.tables.columns import RawTable
from ihgmm.cli.tables.table import quote, quote_all
from ihgmm.matrix.delimited import n_title_rows
from ihgmm.matrix.faults import explain_damage, explain_lack, near

# How openpyxl fails where an archive, or what is in it, is not a workbook.
SHEET_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, ParseError, AttributeError, EOFError, IndexError),
    *(KeyError, NotImplementedError, RuntimeError, TypeError, ValueError),
)
Rows = list[tuple[int, list[Any]]]  # with their places


def load_sheet(path: Path, wanted: str | None = None) -> RawTable:
    """Return a sheet: the one wanted, or the first with a table.

    Formulas have the values that were saved with them.
    """
    import pyarrow as pa

    with explain_lack("openpyxl", "cli", path):
        import openpyxl
    with explain_damage(path, *SHEET_ERRORS):
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            titles = [sheet.title for sheet in book.worksheets]
            if wanted is not None and wanted not in titles:
                known = f"{near(wanted, titles)}; it has {quote_all(titles)}."
                raise ValueError(f"there is no sheet {quote(wanted)}{known}")
            title, rows = _first_table(book, wanted)
        finally:
            book.close()
    begin, width = rows[0][0], max(len(row) for _, row in rows)
    header, *cells = ([*row, *[None] * (width - len(row))] for _, row in rows)
    names = ["" if name is None else str(name) for name in header]
    columns = []
    for column in zip(*cells, strict=True):
        try:
            columns.append(pa.array(column))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # kinds differ
            texts = [None if cell is None else str(cell) for cell in column]
            columns.append(pa.array(texts, pa.string()))
    phrases = []
    if len(titles) > 1:
        others = quote_all([other for other in titles if other != title])
        phrases.append(f"sheet {quote(title)} (not {others})")
    if begin > 0:
        phrases.append(f"names of columns from row {begin + 1}")
    places = np.array([place + 1 for place, _ in rows[1:]])
    arrow, words = pa.table(columns, names=names), "row {} of the sheet"
    return RawTable(arrow, phrases, places=places, place_words=words)


def _first_table(book: Any, wanted: str | None) -> tuple[str, Rows]:
    """Return the title of a sheet, and its rows without titles above the names.

    It is the one that is wanted, or the first that has two columns of numbers, or the
    first that has a table.
    """
    tables: dict[str, Rows] = {}
    for sheet in book.worksheets:
        if wanted not in (None, sheet.title):
            continue
        sheet.reset_dimensions()  # which some programs write wrong
        rows: Rows = []
        width = n_filled = 0
        for place, cells in enumerate(sheet.iter_rows(values_only=True)):
            filled = [i for i, cell in enumerate(cells) if cell is not None]
            if filled:
                rows.append((place, list(cells[: filled[-1] + 1])))
                width = max(width, filled[-1] + 1)
                n_filled += len(filled)
            # A small file may place a cell anywhere; all cells before it take memory.
            if place >= 2**20 or len(rows) * width > max(2**22, 20 * n_filled):
                raise ValueError(
                    f"sheet {quote(sheet.title)} goes on beyond row {place:,} and "
                    f"column {width:,}, which is too large; delete what stands far off "
                    "the table, or save the table as CSV"
                )
        del rows[: n_title_rows([cells for _, cells in rows])]
        if len(rows) < 2:
            continue
        tables[sheet.title] = rows
        below = ((j, cell) for _, row in rows[1:] for j, cell in enumerate(row))
        if len({j for j, cell in below if isinstance(cell, int | float)}) > 1:
            return sheet.title, rows
    if not tables:
        which = "no sheet has" if wanted is None else f"sheet {quote(wanted)} has not"
        raise ValueError(f"{which} a row of names and rows below it")
    return next(iter(tables.items()))
