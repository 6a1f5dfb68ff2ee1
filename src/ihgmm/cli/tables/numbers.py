"""Numbers in columns, also as people write them: money, percent, thousands apart."""

from typing import Any

import numpy as np

# What people and programs write where nothing is known.
NOT_KNOWN = ("", "?", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "nan", "NaN")
# These stand for no number, and may be labels.
MISSING = (*NOT_KNOWN, "-", "None", "none")
_MONEY = "$€£¥"
_DECIMAL_COMMAS = r"[+-]?(?:[0-9]+|[0-9]*,[0-9]+)(?:[eE][+-]?[0-9]+)?"


def as_texts(column: Any) -> Any:
    """Return the cells of a pandas column as text without blanks around it."""
    texts = column.map(str, na_action="ignore").astype("string[pyarrow]").str.strip()
    return texts.mask(texts.isin(MISSING))


def parse_numbers(texts: Any, point: str = ".") -> tuple[np.ndarray, str | None]:
    """Return numbers, NaN for other texts, and their decimal point if it is special."""
    # Where 1,234 may be read in two ways, the point of the file decides.
    found: list[tuple[int, bool, Any, str | None]] = []
    for mark, other in ((".", ","), (",", ".")):
        # Spaces of all widths may stand between thousands, too.
        between = f"{other}\u00a0\u202f\\s"
        whole = rf"(?:[0-9]{{1,3}}(?:[{between}][0-9]{{3}})+|[0-9]+)"
        number = rf"(?:{whole}(?:[{mark}][0-9]*)?|[{mark}][0-9]+)(?:[eE][+-]?[0-9]+)?"
        sign = rf"(?:[+-]?[{_MONEY}]?\s?|[{_MONEY}]\s?[+-])"
        form = rf"^(?:{sign}{number}\s?[%{_MONEY}]?|[+-]?(?i:inf|infinity))$"
        matches = texts.str.match(form).fillna(False).astype(bool)
        numbers = texts.where(matches)
        bare = numbers.str.replace(rf"[{between}{_MONEY}%]", "", regex=True)
        is_plain = mark == point and (bare == numbers).all()
        values = bare.str.replace(mark, ".", regex=False)
        found.append((matches.sum(), mark == point, values, None if is_plain else mark))
    *_, values, special = max(found, key=lambda way: way[:2])
    # Arrow knows no plus in front of a number.
    numbers = values.str.removeprefix("+").astype("double[pyarrow]")
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan), special


def decimal_point(frame: Any, delimiter: str) -> str:
    """Return the decimal point of a table; commas are so between semicolons alone."""
    columns = [column for _, column in frame.items() if column.dtype.kind == "O"]
    for texts in map(as_texts, columns if delimiter == ";" else ()):
        has_commas = texts.str.contains(",").any()
        if has_commas and texts.dropna().str.fullmatch(_DECIMAL_COMMAS).all():
            return ","
    return "."
