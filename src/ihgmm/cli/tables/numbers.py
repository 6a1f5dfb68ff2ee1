"""Numbers in columns of text, also as people write them: money, percent, thousands."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

# What people and programs write where nothing is known.
NOT_KNOWN = ("", "?", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "nan", "NaN")
# These stand for no number, and may be labels.
MISSING = (*NOT_KNOWN, "-", "None", "none")
_MONEY = "$€£¥"
_DECIMAL_COMMAS = r"[+-]?(?:[0-9]+|[0-9]*,[0-9]+)(?:[eE][+-]?[0-9]+)?"


@dataclass(frozen=True)
class Numbers:
    """The numbers of a column of text."""

    values: np.ndarray  # (n_cells,); NaN where a cell holds something else
    point: str | None  # of decimals, where numbers are as people write them


@dataclass(frozen=True)
class WrittenNumbers:
    """Columns of numbers as people write them, with an example."""

    columns: list[str]
    text: str
    value: float


def as_texts(column: "pd.Series") -> "pd.Series":
    """Return the cells of a column as text without blanks around it."""
    texts = column.map(str, na_action="ignore").astype("string[pyarrow]").str.strip()
    return texts.mask(texts.isin(MISSING))


def parse_numbers(texts: "pd.Series", point_of_file: str = ".") -> Numbers:
    """Return the numbers of texts, with the decimal point by which most are numbers.

    Where 1,234 may be read in two ways, the point of the file decides.
    """
    readings = [_read(texts, point, point_of_file) for point in (".", ",")]
    best = max(readings, key=lambda reading: (reading.n_numbers, reading.is_of_file))

    # Arrow knows no plus in front of a number.
    numbers = best.digits.str.removeprefix("+").astype("double[pyarrow]")
    return Numbers(
        values=numbers.to_numpy(dtype=np.float64, na_value=np.nan),
        point=None if best.is_plain else best.point,
    )


@dataclass(frozen=True)
class _Reading:
    """Texts, read with one decimal point."""

    point: str
    digits: "pd.Series"  # numbers as programs write them, NA for other texts
    n_numbers: int
    is_of_file: bool  # whether the file has this decimal point
    is_plain: bool  # whether all numbers are so in the file already


def _read(texts: "pd.Series", point: str, point_of_file: str) -> _Reading:
    """Return which texts are numbers with such a decimal point."""
    # Spaces of all widths may stand between thousands, too.
    other_mark = "," if point == "." else "."
    marks = f"{other_mark}\u00a0\u202f\\s"

    is_number = texts.str.match(_number_pattern(point, marks))
    is_number = is_number.fillna(False).astype(bool)
    numbers = texts.where(is_number)
    bare = numbers.str.replace(rf"[{marks}{_MONEY}%]", "", regex=True)

    is_of_file = point == point_of_file

    return _Reading(
        point=point,
        digits=bare.str.replace(point, ".", regex=False),
        n_numbers=is_number.sum(),
        is_of_file=is_of_file,
        is_plain=is_of_file and bool((bare == numbers).all()),
    )


def _number_pattern(point: str, marks: str) -> str:
    """Return a pattern of numbers with a decimal point, and marks between thousands."""
    integer = rf"(?:[0-9]{{1,3}}(?:[{marks}][0-9]{{3}})+|[0-9]+)"
    decimal = rf"(?:{integer}(?:[{point}][0-9]*)?|[{point}][0-9]+)"
    number = rf"{decimal}(?:[eE][+-]?[0-9]+)?"

    sign = rf"(?:[+-]?[{_MONEY}]?\s?|[{_MONEY}]\s?[+-])"
    return rf"^(?:{sign}{number}\s?[%{_MONEY}]?|[+-]?(?i:inf|infinity))$"


def decimal_point(frame: "pd.DataFrame", delimiter: str) -> str:
    """Return the decimal point of a table; commas are so between semicolons alone."""
    if delimiter != ";":
        return "."

    for _, column in frame.items():
        if column.dtype.kind == "O" and _has_decimal_commas(as_texts(column)):
            return ","
    return "."


def _has_decimal_commas(texts: "pd.Series") -> bool:
    has_commas = texts.str.contains(",").any()
    return bool(has_commas and texts.dropna().str.fullmatch(_DECIMAL_COMMAS).all())
