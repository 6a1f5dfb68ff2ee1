"""Numbers in columns, also as people write them: money, percent, thousands apart."""

from __future__ import annotations

from typing import Any

import numpy as np

# What people and programs write where nothing is known.
NOT_KNOWN = (
    *("", "?", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "null", "NULL"),
    *("Null", "nan", "NaN", "-nan", "-NaN", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
# These stand for no number, and may be labels.
MISSING = (*NOT_KNOWN, "-", "None", "none", "missing")
# Apostrophes and spaces of all widths may stand between thousands.
_GAPS = "'\u2019\u00a0\u202f\\s"
_MONEY = "$€£¥"


def as_texts(column: Any) -> Any:
    """Return the cells of a pandas column as text without blanks around it."""
    texts = column.map(str, na_action="ignore").astype("string[pyarrow]").str.strip()
    return texts.mask(texts.isin(MISSING))


def parse_numbers(texts: Any, point: str = ".") -> tuple[np.ndarray, str | None]:
    """Return the numbers in texts, NaN for others; true and false are 1 and 0.

    Where 1,234 may be read in two ways, the decimal ``point`` of the file decides. The
    one that was read comes back, and None for numbers as machines write them.
    """
    plain = _plain_numbers(texts, point)
    if plain is not None:
        return plain, None
    lower = texts.str.lower()
    if lower.dropna().isin(["true", "false"]).all():
        flags = lower.astype(object).map({"true": 1.0, "false": 0.0})
        return flags.to_numpy(np.float64), None
    points = [point, "," if point == "." else "."]
    matches = [texts.str.match(_pattern(p)).fillna(False).astype(bool) for p in points]
    best = int(matches[1].sum() > matches[0].sum())
    point, numbers = points[best], texts.where(matches[best])
    between = rf"[{',' if point == '.' else '.'}{_GAPS}{_MONEY}%]"
    bare = numbers.str.replace(between, "", regex=True)
    is_plain = point == "." and bool((bare == numbers).all())
    values = _floats(bare.str.replace(point, ".", regex=False))
    return values, None if is_plain else point


def decimal_point(frame: Any, delimiter: str) -> str:
    """Return the decimal point of a table; commas are so between semicolons alone."""
    columns = [column for _, column in frame.items() if column.dtype.kind == "O"]
    for texts in map(as_texts, columns if delimiter == ";" else ()):
        if _plain_numbers(texts, ".") is None is not _plain_numbers(texts, ","):
            return ","
    return "."


def _pattern(point: str) -> str:
    """Return what matches a number as people write it."""
    group = rf"[{',' if point == '.' else '.'}{_GAPS}]"
    whole = rf"(?:[0-9]{{1,3}}(?:{group}[0-9]{{3}})+|[0-9]+)"
    number = rf"(?:{whole}(?:[{point}][0-9]*)?|[{point}][0-9]+)(?:[eE][+-]?[0-9]+)?"
    sign = rf"(?:[+-]?[{_MONEY}]?\s?|[{_MONEY}]\s?[+-])"
    return rf"^{sign}{number}\s?[%{_MONEY}]?$"


def _plain_numbers(texts: Any, point: str) -> np.ndarray | None:
    """Return the numbers where all are as machines write them, or else None."""
    if point == ",":
        if texts.str.contains(".", regex=False).any():
            return None  # it stands between thousands
        texts = texts.str.replace(",", ".", regex=False)
    try:
        return _floats(texts)
    except ValueError:
        return None


def _floats(texts: Any) -> np.ndarray:
    values = texts.str.replace(r"^\+([^+-])", r"\1", regex=True)
    values = values.astype("double[pyarrow]")
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
