"""Tables with features in rows, turned so that rows are what is clustered."""

from dataclasses import replace

from ihgmm.cli.tables.columns.judging import judge_column
from ihgmm.cli.tables.files.raw_table import RawTable
from ihgmm.cli.tables.names import numbered_names, quote, quote_all, unique_names


def transposed(raw: RawTable) -> RawTable:
    """Return a table with a row for each column of numbers, whose names come first."""
    frame = raw.frame
    names = numbered_names(len(frame))
    how = "rows as columns"

    first = frame.columns[0]
    if judge_column(first, raw, is_asked=False).reason:
        has_name = frame[first].notna()
        names = list(frame[first].astype(object).where(has_name, "").map(str))
        how += f", with the names in {quote(first)}"
        frame = frame.drop(columns=first)

    # Columns of text are about the rows.
    columns = {name: judge_column(name, raw, is_asked=True) for name in frame}
    without_numbers = [
        name
        for name, column in columns.items()
        if column.is_text or not column.has_numbers
    ]

    phrases = [*raw.phrases, how]
    if len(without_numbers) == len(columns):
        return replace(raw, phrases=phrases)  # which has nothing to cluster by
    if without_numbers:
        phrases.append(f"but not {quote_all(without_numbers)}, without numbers")

    turned = frame.drop(columns=without_numbers).T
    turned.columns = unique_names(names)
    turned.insert(0, "column", turned.index)
    turned.index = raw.frame.columns.get_indexer(turned.index) + 1

    # Not typed: where a row has text, such as known labels, numbers became text too.
    return RawTable(
        frame=turned,
        phrases=phrases,
        point=raw.point,
        place_words="column {}",
    )
