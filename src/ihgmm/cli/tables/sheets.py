"""Workbooks: the sheet that has the table, and files that are too large to open."""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any

from ihgmm.cli.tables.loading import RawTable, damaged, explain_damage, n_title_rows
from ihgmm.cli.tables.table import Request, near, quote, quote_all, unique_names

SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
MOST_CELLS = 20_000_000  # of a workbook: they take 2 GB of memory, and 20 seconds
# The place of a cell that holds something; others have a colour, or a border.
_FILLED = re.compile(rb"""<(?:\w+:)?c\s[^>]*?\br=["']([A-Z]+)(\d+)["'][^>]*(?<!/)>""")


def load_sheet(path: Path, request: Request) -> RawTable:
    """Read the sheet that is asked for, or the one with most rows of two numbers.

    A pivot has fewer rows than what it sums up. Formulas have the values that were
    saved with them.
    """
    import pandas as pd
    from python_calamine import CalamineWorkbook

    _refuse_large(path)
    with explain_damage(path):
        book = CalamineWorkbook.from_filelike(io.BytesIO(path.read_bytes()))
    wanted, titles = request.sheet, book.sheet_names
    if wanted is not None and wanted not in titles:
        raise ValueError(
            f"--sheet {quote(wanted)}: {path} has no such sheet"
            f"{near(wanted, titles)}; it has {quote_all(titles)}."
        )
    title, begin, rows, most = "", 0, [], -1
    for name in titles if wanted is None else [wanted]:
        with explain_damage(path), warnings.catch_warnings(action="ignore"):
            cells = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
        found = [list(map(_cell, row)) for row in cells]
        filled = (i for i, row in enumerate(found) if set(row) != {None})
        place = n_title_rows(found) or next(filled, 0)
        numbers = ([type(cell) in (int, float) for cell in row] for row in found)
        n_usable = sum(sum(row) > 1 for row in numbers)
        if n_usable > most and len(found) > place + 1:
            title, begin, rows, most = name, place, found, n_usable
    if not rows:
        raise damaged(path, "it has no row of names with rows below it")
    phrases = []
    if len(titles) > 1:
        others = quote_all([other for other in titles if other != title])
        phrases.append(f"sheet {quote(title)} (--sheet takes another: {others})")
    if begin > 0:
        phrases.append(f"names of columns from row {begin + 1}")
    frame = pd.DataFrame(rows[begin + 1 :], dtype=object)
    frame.index += begin + 2
    frame.columns = unique_names(["" if c is None else str(c) for c in rows[begin]])
    return RawTable(frame, phrases, place_words="row {} of the sheet")


def _cell(value: Any) -> Any:
    """Return the cell of a sheet, in which whole numbers are no decimals."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None if value == "" else value


def _refuse_large(path: Path) -> None:
    """Raise if a workbook is too large: the library would end the whole program.

    It makes room for all cells between the first and the last that hold something, and
    one cell may stand by mistake in the last row of a sheet.
    """
    if not zipfile.is_zipfile(path):  # .xls, whose sheets are small
        return
    n_cells = 0
    with explain_damage(path), zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.lower().endswith(".xml"):
                with archive.open(name) as stream:
                    n_cells += _n_cells(stream)
    if n_cells > MOST_CELLS:
        raise ValueError(
            f"{path} is too large: it reaches over {n_cells:,} cells, up to the last "
            f"ones that are filled, and at most {MOST_CELLS:,} are read. Clear what "
            "stands far from the table, or save the sheet as CSV."
        )


def _n_cells(stream: IO[bytes]) -> int:
    """Return how many cells a sheet has up to its last row and column with a value."""
    width, height, block = 0, 0, b""
    while more := stream.read(2**24):
        block = block[block.rfind(b"<") :] + more
        places = _FILLED.findall(block)
        for letters in {letters for letters, _ in places}:
            number = 0
            for letter in letters:
                number = 26 * number + letter - ord("A") + 1
            width = max(width, number)
        height = max([height, *map(int, {row for _, row in places})])
    return height * width
