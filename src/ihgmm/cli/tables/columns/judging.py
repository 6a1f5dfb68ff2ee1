"""One column of a table: its numbers, or why it has none to cluster by."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ihgmm.cli.tables.columns.measurement import NO_NAMES, no_measurement
from ihgmm.cli.tables.files.raw_table import RawTable
from ihgmm.cli.tables.names import quote
from ihgmm.cli.tables.numbers import Numbers, as_texts, parse_numbers
from ihgmm.words.phrases import percent

if TYPE_CHECKING:
    import pandas as pd

# Kinds of cells, as pandas names them, that need not be read as text.
_NUMERIC = ("integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty")
_DATES = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{2,4}(\b|T\d)"

# A category has few values, and some rows for each.
MOST_CATEGORIES = 20
ROWS_FOR_CATEGORY = 5
# A text has more words than a name.
LEAST_WORDS = 8
# Among more columns a name is a word or a gene, and says nothing of what it measures.
MOST_COLUMNS_WITH_NAMES = 100


@dataclass(frozen=True)
class JudgedColumn:
    """A column, and what is made of it."""

    values: np.ndarray  # (n_samples,); NaN where a cell has no number
    texts: "pd.Series | None" = None  # NA where missing; None for true numbers
    point: str | None = None  # the decimal point of numbers as people write them
    is_text: bool = False  # whether most cells hold something else than a number
    reason: str = ""  # why it is not used; "" if it is
    categories: Sequence[str] = ()  # the few values of text
    warning: str = ""

    @property
    def has_numbers(self) -> bool:
        """Whether any cell holds a number."""
        return not np.isnan(self.values).all()


def judge_column(
    name: str, raw: RawTable, *, is_asked: bool, is_of_model: bool = False
) -> JudgedColumn:
    """Judge a column of a table.

    If it ``is_asked`` for, it need not measure anything; if it ``is_of_model``, it need
    not even hold a number.
    """
    column = _read_cells(name, raw, is_of_model)
    if not (column.reason or column.has_numbers or is_of_model):
        column = replace(column, reason="empty")
    if column.reason or is_asked:
        return column

    names_say_something = raw.frame.shape[1] <= MOST_COLUMNS_WITH_NAMES
    first_name = next((label for label in raw.frame if label not in NO_NAMES), "")
    reason = no_measurement(
        name if names_say_something else "",
        column.values[~np.isnan(column.values)],
        is_first=name == first_name,
    )
    return replace(column, reason=reason)


def _read_cells(name: str, raw: RawTable, is_of_model: bool) -> JudgedColumn:
    """Return a column with its numbers, and why it has none if it has none."""
    from pandas.api.types import infer_dtype

    cells = raw.frame[name]
    if cells.dtype == "category":
        cells = cells.astype(cells.cat.categories.dtype)
    no_values = np.full(len(cells), np.nan)

    kind = infer_dtype(cells, skipna=True)
    if kind.startswith(("date", "time")):
        return JudgedColumn(values=no_values, reason="dates")
    if kind in _NUMERIC:
        # Whole numbers of more than 16 digits are rounded, not refused.
        return JudgedColumn(values=cells.to_numpy(np.float64, na_value=np.nan))
    if any(map(is_nested, cells)):
        return JudgedColumn(values=no_values, reason="holds lists, not numbers")

    texts = as_texts(cells)
    numbers = Numbers(values=no_values, point=None)
    if not raw.is_typed:
        numbers = parse_numbers(texts, raw.point)
    column = JudgedColumn(values=numbers.values, texts=texts, point=numbers.point)
    return _judge_texts(name, column, texts, raw, is_of_model)


def is_nested(cell: object) -> bool:
    """Return whether a cell holds more than one value."""
    return isinstance(cell, (list, dict, tuple)) or getattr(cell, "ndim", 0) > 0


def _judge_texts(
    name: str,
    column: JudgedColumn,
    texts: "pd.Series",
    raw: RawTable,
    is_of_model: bool,
) -> JudgedColumn:
    """Judge a column of texts, in which not all cells need be numbers."""
    filled = texts.dropna()
    rows_without_number = np.flatnonzero(np.isnan(column.values) & texts.notna())
    n_bad = len(rows_without_number)
    if n_bad == 0:
        return column

    first_bad = rows_without_number[0]
    cell = quote(texts.iloc[first_bad])
    if 2 * n_bad > len(filled):
        share_empty = 1 - len(filled) / len(texts)
        column = replace(column, is_text=True)
        return _classify_texts(name, column, filled, cell, share_empty)

    count = f"{n_bad:,} of {len(filled):,} cells"
    place = raw.place_words.format(raw.frame.index[first_bad])
    first = f"not numbers, the first is {cell} in {place}"
    # Beyond one cell in ten text is no slip: such columns hold codes (12A), or answers.
    if 10 * n_bad > len(filled):
        return replace(column, reason=f"{count} are {first}")

    remedy = "Mend the file"
    if not is_of_model:
        remedy += f", or leave the column out: --drop-columns {quote(name)}"
    return replace(
        column,
        warning=f"Column {quote(name)} has {count} that are {first}: taken as "
        f"missing. {remedy}.",
    )


def _classify_texts(
    name: str,
    column: JudgedColumn,
    filled: "pd.Series",
    cell: str,
    share_empty: float,
) -> JudgedColumn:
    """Say what a column of text holds: dates, few values, or texts of many words."""
    if filled.str.match(_DATES).all():
        return replace(column, reason=f"dates such as {cell}")

    values = sorted(set(filled))
    if 1 < len(values) <= min(MOST_CATEGORIES, len(filled) // ROWS_FOR_CATEGORY):
        if share_empty > 0.5:
            empty = percent(share_empty)
            return replace(column, reason=f"text of few values, {empty} of it empty")
        return replace(
            column,
            reason="text of few values; --use-categories takes it",
            categories=values,
        )

    reason = f"text such as {cell}"
    if filled.head(200).str.split().map(len).median() >= LEAST_WORDS:
        reason += f"; --text-column {quote(name)} takes its words"
    return replace(column, reason=reason)
