"""Numbers in columns, also as people write them: money, percent, thousands apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# What people and programs write into cells without a number.
MISSING = (
    *("", "?", "-", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "null"),
    *("NULL", "Null", "None", "none", "missing", "nan", "NaN", "-nan", "-NaN"),
    *("1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)


class Numbers(NamedTuple):
    """A column as numbers."""

    values: np.ndarray  # NaN where a cell has no number
    # Texts of cells without blanks around them, None where they are missing; None for a
    # column that is not of text.
    cells: Any = None
    # The decimal point, of numbers as people write them. None of those as machines do.
    point: str | None = None

    @property
    def bad_rows(self) -> np.ndarray:
        """The rows whose cells hold something else than a number."""
        if self.cells is None:
            return np.array([], int)
        return np.flatnonzero(np.isnan(self.values) & self.cells.notna().to_numpy())

    @property
    def is_text(self) -> bool:
        """Whether most cells hold something else than a number."""
        n_bad = len(self.bad_rows)
        return n_bad > 0 and 2 * n_bad > self.cells.count()


def parse_numbers(column: Any, point: str = ".") -> Numbers:
    """Return the numbers in a pandas column of text; true and false are 1 and 0.

    Where 1,234 may be read in two ways, the decimal ``point`` of the file decides.
    """
    text = column.astype("string[pyarrow]").str.strip()
    text = text.mask(text.isin(MISSING))
    cells = text.astype(object).where(text.notna(), None)
    plain = _plain_numbers(text, point)
    if plain is not None:
        return Numbers(plain, cells)
    lower = text.str.lower()
    if lower.dropna().isin(["true", "false"]).all():
        flags = lower.astype(object).map({"true": 1.0, "false": 0.0})
        return Numbers(flags.to_numpy(np.float64), cells)
    points = [point, "," if point == "." else "."]
    matches = [text.str.match(_pattern(p)).fillna(False).astype(bool) for p in points]
    best = int(matches[1].sum() > matches[0].sum())
    point, numbers = points[best], text.where(matches[best])
    bare = numbers.str.replace(_between_digits(point), "", regex=True)
    values = _floats(bare.str.replace(point, ".", regex=False))
    is_plain = point == "." and bool((bare == numbers).all())
    return Numbers(values, cells, None if is_plain else point)


def decimal_point(frame: Any, delimiter: str) -> str:
    """Return the decimal point of a table, as a column of text shows it.

    Semicolons stand between cells where commas are decimal.
    """
    columns = [column for _, column in frame.items() if column.dtype.kind == "O"]
    for column in columns if delimiter == ";" else ():
        cells = parse_numbers(column).cells.astype("string[pyarrow]")
        if _plain_numbers(cells, ".") is None is not _plain_numbers(cells, ","):
            return ","
    return "."


def _between_digits(point: str) -> str:
    """Return a pattern of what numbers may have beside digits and a decimal point."""
    # Apostrophes and spaces of all widths may stand between thousands, too.
    return f"[{',' if point == '.' else '.'}'\u2019\u00a0\u202f$€£¥%\\s]"


def _pattern(point: str) -> str:
    """Return what matches a number as people write it."""
    group = _between_digits(point).replace("$€£¥%", "")
    whole = rf"(?:\d{{1,3}}(?:{group}\d{{3}})+|\d+)"
    number = rf"(?:{whole}(?:[{point}]\d*)?|[{point}]\d+)(?:[eE][+-]?\d+)?"
    return rf"^[+-]?[$€£¥]?\s?[+-]?{number}\s?[%$€£¥]?$"


def _plain_numbers(cells: Any, point: str) -> np.ndarray | None:
    """Return cells that are numbers as machines write them, or None."""
    if point == ",":
        if cells.str.contains(".", regex=False).any():
            return None  # it stands between thousands
        cells = cells.str.replace(",", ".", regex=False)
    try:
        return _floats(cells)
    except ValueError:
        return None


def _floats(text: Any) -> np.ndarray:
    values = text.str.removeprefix("+").astype("double[pyarrow]")
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
