"""Categories: text with few values, as a column of flags for each value."""

from collections.abc import Sequence
from dataclasses import replace

from ihgmm.cli.tables import notes
from ihgmm.cli.tables.files.raw_table import RawTable
from ihgmm.cli.tables.numbers import as_texts
from ihgmm.cli.tables.table import Note


def flag_name(column: str, value: str) -> str:
    """Return what the column is called that says which cells have a value."""
    return f"{column}={value}"


def with_flags(raw: RawTable, flags: Sequence[str]) -> tuple[RawTable, list[Note]]:
    """Return a table with these flags of its categories, if it lacks them, and notes.

    The notes are on cells that have none of the values.
    """
    frame = raw.frame
    lacking = [flag for flag in flags if flag not in frame]
    if not lacking:
        return raw, []

    new_columns = {}
    messages: list[Note] = []
    for column in frame:
        prefix = flag_name(column, "")
        flags_to_make = [flag for flag in lacking if flag.startswith(prefix)]
        if not flags_to_make:
            continue

        cells = as_texts(frame[column])
        for flag in flags_to_make:
            has_value = cells == flag.removeprefix(prefix)
            new_columns[flag] = has_value.fillna(False).astype(bool)

        filled = cells.dropna()
        if len(filled) < len(cells):
            n_missing = len(cells) - len(filled)
            messages.append(notes.missing_categories(column, n_missing, len(cells)))

        flags_of_column = [flag for flag in flags if flag.startswith(prefix)]
        values = [flag.removeprefix(prefix) for flag in flags_of_column]
        unknown = filled[~filled.isin(values)]
        if len(unknown):
            messages.append(notes.new_categories(column, len(unknown), unknown.iloc[0]))

    return replace(raw, frame=frame.assign(**new_columns)), messages
