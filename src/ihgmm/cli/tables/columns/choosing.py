"""Tables with named columns: which columns and rows are used, which not, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ihgmm.cli.tables import notes
from ihgmm.cli.tables.columns.beside import find_ids, row_facts
from ihgmm.cli.tables.columns.categories import flag_name, with_flags
from ihgmm.cli.tables.columns.judging import JudgedColumn, judge_column
from ihgmm.cli.tables.columns.words import table_of_words
from ihgmm.cli.tables.files.raw_table import RawTable
from ihgmm.cli.tables.names import quote, quote_all
from ihgmm.cli.tables.numbers import WrittenNumbers
from ihgmm.cli.tables.request import BESIDE, Request
from ihgmm.cli.tables.table import Note, Table


def choose_columns(raw: RawTable, request: Request) -> Table:
    """Make a table of the columns that hold numbers, with what came beside them."""
    names_in_file = list(raw.frame.columns)
    raw, filled_rows, n_empty_rows = _without_empty_rows(raw, request.source)
    request, messages = find_ids(raw, request)
    if n_empty_rows:
        messages.append(notes.empty_rows(n_empty_rows))

    request.check(names_in_file, request.source)
    rows = row_facts(
        raw.frame,
        request,
        ids=filled_rows + 1,
        places=raw.frame.index.to_numpy(),
        place_words=raw.place_words,
    )
    if request.text_column is not None:
        return table_of_words(raw, request, rows, messages)

    raw, flag_notes = with_flags(raw, request.features or ())
    messages += flag_notes
    request.check_features(list(raw.frame.columns))

    judged = _judge_columns(raw, request, names_in_file)
    messages += judged.notes
    how_read = notes.how_it_was_read(raw.phrases, _numbers_as_written(judged.numbers))
    _refuse_what_cannot_be_used(judged, request, names_in_file, how_read)

    values = [column.values for column in judged.numbers.values()]
    return Table(
        source=request.source,
        X=np.column_stack(values),
        rows=rows,
        names=list(judged.numbers),
        notes=[*how_read, *messages, *judged.warnings],
        is_mixed=True,
        left_out=judged.left_out,
        flags=judged.flags,
    )


def _without_empty_rows(raw: RawTable, source: str) -> tuple[RawTable, np.ndarray, int]:
    """Return the rows that hold anything, their positions, and how many are empty."""
    is_empty = raw.frame.isna().all(axis=1).to_numpy()
    rows = np.flatnonzero(~is_empty)
    if len(rows) == 0:
        raise ValueError(f"{source} has a header but no rows.")
    return replace(raw, frame=raw.frame.iloc[rows]), rows, int(is_empty.sum())


@dataclass(frozen=True)
class _JudgedColumns:
    """Columns that may be clustered by, and what was made of each."""

    columns: dict[str, JudgedColumn]
    flags: Sequence[str]  # columns of categories among them
    notes: Sequence[Note]  # on cells of categories

    @property
    def numbers(self) -> dict[str, JudgedColumn]:
        """The columns that are clustered by."""
        return {name: col for name, col in self.columns.items() if not col.reason}

    @property
    def left_out(self) -> dict[str, str]:
        """The columns that are not clustered by, and why."""
        return {name: col.reason for name, col in self.columns.items() if col.reason}

    @property
    def warnings(self) -> list[Note]:
        """What is wrong with cells of columns."""
        texts = [column.warning for column in self.columns.values()]
        return [Note(text, is_warning=True) for text in texts if text]


def _judge_columns(
    raw: RawTable, request: Request, names_in_file: Sequence[str]
) -> _JudgedColumns:
    """Judge the columns that are asked for, or all that have no other part to play."""
    asked_for = request.features or request.columns
    with_other_parts = request.named_columns((*BESIDE, "drop_columns"))
    names_aside = {name for _, name in with_other_parts}

    columns = {
        name: judge_column(
            name,
            raw,
            is_asked=bool(asked_for),
            is_of_model=bool(request.features),
        )
        for name in asked_for or names_in_file
        if name not in names_aside
    }

    if request.use_categories:
        return _with_categories_as_flags(raw, columns)
    return _JudgedColumns(columns=columns, flags=[], notes=[])


def _with_categories_as_flags(
    raw: RawTable, columns: Mapping[str, JudgedColumn]
) -> _JudgedColumns:
    """Put flags behind all numbers, in the place of columns that are categories."""
    flags = [
        flag_name(name, value)
        for name, column in columns.items()
        for value in column.categories
    ]
    raw, messages = with_flags(raw, flags)

    numbers = {name: col for name, col in columns.items() if not col.categories}
    judged_flags = {flag: judge_column(flag, raw, is_asked=True) for flag in flags}

    return _JudgedColumns(
        columns=numbers | judged_flags,
        flags=flags,
        notes=messages,
    )


def _numbers_as_written(columns: Mapping[str, JudgedColumn]) -> WrittenNumbers | None:
    """Return which columns have numbers as people write them, if any, with an example.

    The longest has most of what is special: groups, decimals, signs.
    """
    names = [name for name, column in columns.items() if column.point]
    if not names:
        return None

    column = columns[names[0]]
    assert column.texts is not None
    lengths = column.texts.str.len().where(~np.isnan(column.values), 0)
    row = int(np.argmax(lengths))

    return WrittenNumbers(
        columns=names,
        text=column.texts.iloc[row],
        value=float(column.values[row]),
    )


def _refuse_what_cannot_be_used(
    judged: _JudgedColumns,
    request: Request,
    names_in_file: Sequence[str],
    how_read: Sequence[Note],
) -> None:
    """Raise if a column that is asked for holds no numbers, or if no column does."""
    source = request.source
    left_out = judged.left_out
    if (request.features or request.columns) and left_out:
        name, reason = next(iter(left_out.items()))
        raise ValueError(f"{source}: column {quote(name)} cannot be used: {reason}.")

    if not judged.numbers:
        reasons = [*notes.columns_left_out(left_out), *how_read]
        raise ValueError(
            f"{source} has no columns of numbers to cluster by; it has "
            f"{quote_all(names_in_file)}. {' '.join(map(str, reasons))}"
        )
