"""Workbooks: the sheet that has the table, and files that are too large to open."""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any

from ihgmm.cli.tables.loading import (
    RawTable,
    damaged,
    explain_damage,
    n_title_rows,
    with_names,
)
from ihgmm.cli.tables.table import Request, near, quote, quote_all

SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
# Of a whole workbook. They take some 2 GB of memory.
MOST_CELLS = 20_000_000
MOST_SHEETS = 1000
MOST_SEARCHED = 2_000_000  # cells of sheets that have no table; they take seconds
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
    if len(titles) > MOST_SHEETS:
        raise _too_large(path, f"has {len(titles):,} sheets", f"{MOST_SHEETS:,}")
    chosen: tuple[str, int, list[list[Any]]] | None = None
    most, n_searched = -1, 0
    for title in titles if wanted is None else [wanted]:
        with explain_damage(path), warnings.catch_warnings(action="ignore"):
            cells = book.get_sheet_by_name(title).to_python(skip_empty_area=False)
        rows = [list(map(_cell, row)) for row in cells]
        filled = (i for i, row in enumerate(rows) if set(row) != {None})
        begin = n_title_rows(rows) or next(filled, 0)
        if len(rows) < begin + 2:
            continue
        numbers = ([type(cell) in (int, float) for cell in row] for row in rows)
        n_usable = sum(sum(row) > 1 for row in numbers)
        if n_usable > most:
            chosen, most = (title, begin, rows), n_usable
        n_searched += len(rows) * len(rows[0])
        if n_searched > MOST_SEARCHED and wanted is None:
            if most > 0:
                break
            raise ValueError(
                f"{path}: no table was found up to sheet {quote(title)}, among "
                f"{n_searched:,} cells. Name the sheet that has it: --sheet NAME."
            )
    if chosen is None:
        which = "no sheet has" if wanted is None else f"sheet {quote(wanted)} has not"
        raise damaged(path, f"{which} a row of names and rows below it")
    title, begin, rows = chosen
    phrases, remedy = [], ""
    if len(titles) > 1:
        others = quote_all([other for other in titles if other != title])
        phrases.append(f"sheet {quote(title)} (not {others})")
        remedy = f"This is sheet {quote(title)}; for another, add --sheet: {others}."
    if begin > 0:
        phrases.append(f"names of columns from row {begin + 1}")
    frame = pd.DataFrame(rows[begin + 1 :], dtype=object)
    frame.index += begin + 2
    raw = RawTable(frame, phrases, place_words="row {} of the sheet", remedy=remedy)
    return with_names(raw, ["" if name is None else str(name) for name in rows[begin]])


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
        what = f"reaches over {n_cells:,} cells, up to the last ones that are filled"
        raise _too_large(path, what, f"{MOST_CELLS:,}")


def _too_large(path: Path, what: str, most: str) -> ValueError:
    return ValueError(
        f"{path} is too large: it {what}, and at most {most} are read. Clear what "
        "stands far from the table, or save the sheet as CSV."
    )


def _n_cells(stream: IO[bytes]) -> int:
    """Return how many cells a sheet has up to its last row and column with a value."""
    widest, height, block = b"", 0, b""
    while more := stream.read(2**24):
        block = block[block.rfind(b"<") :] + more
        letters, rows = zip(*_FILLED.findall(block) or [(b"", b"0")], strict=True)
        # Blanks come before letters.
        widest = max(widest, *(word.rjust(9) for word in set(letters)))
        height = max(height, *map(int, set(rows)))
    width = 0
    for letter in widest.strip():
        width = 26 * width + letter - ord("A") + 1
    return height * width
