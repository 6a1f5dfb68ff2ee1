"""Tables with named columns: which columns and rows are used, which not, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ihgmm.cli.tables.loading import RawTable
from ihgmm.cli.tables.numbers import Numbers, parse_numbers
from ihgmm.cli.tables.table import (
    Note,
    Request,
    Table,
    place_names,
    quote,
    quote_all,
    unique_names,
)
from ihgmm.words.phrases import counted, shorten

LONG_TEXT = 8  # words from which a cell is no name
LEAST_TEXTS = 2  # that have a word; in one alone, it says nothing about others
# What a first column is called that has no name of its own.
NO_NAMES = ("Unnamed: 0", "row.names", "rownames")
WIDE = 100  # columns from which their names are those of words or genes


@dataclass(frozen=True)
class _Column:
    """A column, and what is made of it."""

    numbers: Numbers
    reason: str = ""  # why it is not used; "" if it is
    may_be_ids: bool = False
    warning: Note | None = None


def choose_columns(raw: RawTable, request: Request, *, is_whole: bool = True) -> Table:
    """Make a table of the columns that hold numbers, with what came beside them.

    Of a table that ``is_whole``, rows that are no observations are left out: they drown
    all else. A model labels every row in which something stands.
    """
    names = list(raw.frame.columns)
    if len(raw.frame) == 0:
        raise ValueError(f"{request.source} has a header but no rows.")
    request, notes = find_ids(raw, request)
    request.check(names, list(request.named), request.source)
    if request.text_column is None:
        request.check_features(names)
    for option in ("--label-column", "--id-column"):
        for name in request.named[option]:
            if any(map(_is_nested, raw.frame[name])):
                raise ValueError(
                    f"{option} {quote(name)}: that column of {request.source} holds "
                    "lists; give one of text or numbers."
                )
    if request.text_column is not None:
        return _words(raw, request, notes)
    asked = list(request.features or request.columns)
    beside = {request.label_column, request.id_column, *request.drop_columns}
    tried = asked or [name for name in names if name not in beside]
    columns = {name: _judge(name, raw, bool(asked)) for name in tried}
    used = [name for name in tried if not columns[name].reason]
    rows = np.arange(len(raw.frame))
    if is_whole and used:
        X = np.column_stack([columns[name].numbers.values for name in used])
        rows, row_notes = _observations(X, raw, request)
        notes += row_notes
        if len(rows) < len(X):  # the others may have made text of a column
            raw = replace(raw, frame=raw.frame.iloc[rows])
            columns = {name: _judge(name, raw, bool(asked)) for name in tried}
            used = [name for name in tried if not columns[name].reason]
    left_out = {name: columns[name].reason for name in tried if columns[name].reason}
    for name, reason in left_out.items() if asked else ():
        raise ValueError(
            f"{request.source}: column {quote(name)} cannot be used: {reason}."
        )
    hints = [] if asked else _hints(raw, request, columns)
    if not used:
        raise ValueError(
            f"{request.source} has no columns of numbers to cluster by; it has "
            f"{quote_all(names)}. {left_out_note(left_out)} "
            f"{' '.join(map(str, hints))}".rstrip()
        )
    numbers = {name: columns[name].numbers for name in used}
    warnings = [column.warning for column in columns.values() if column.warning]
    return Table(
        request.source,
        np.column_stack([column.values for column in numbers.values()]),
        **_beside(raw, request, rows),
        names=used,
        notes=[*_reading_notes(raw, numbers), *notes, *hints, *warnings],
        is_mixed=True,
        left_out=left_out,
    )


def transposed(raw: RawTable) -> RawTable:
    """Return a table with a row for each column, whose names come first.

    The first column has the names of the new ones, if it has anything like it. Columns
    of text are about the rows, and left out.
    """
    frame, phrases = raw.frame, [*raw.phrases, "rows as columns"]
    first, names = frame.columns[0], place_names(len(frame))
    if _judge(first, raw, False).reason:
        names = frame[first].astype(object).where(frame[first].notna(), "").map(str)
        phrases[-1] += f", with the names in {quote(first)}"
        frame = frame.drop(columns=first)
    columns = {name: _judge(name, raw, True).numbers for name in frame}
    kept = [
        name
        for name, numbers in columns.items()
        if not (numbers.is_text or np.isnan(numbers.values).all())
    ]
    if not kept:
        return replace(raw, phrases=phrases)  # which has nothing to cluster by
    if len(kept) < len(columns):
        others = [name for name in columns if name not in kept]
        phrases.append(f"but not {quote_all(others)}, without numbers")
    turned = frame[kept].T
    turned.columns = unique_names(list(names))
    turned.insert(0, "column", kept)
    turned.index = [raw.frame.columns.get_loc(name) + 1 for name in kept]
    made = replace(raw, frame=turned, phrases=phrases, place_words="column {}")
    return replace(made, is_typed=False)  # rows may have text, such as known labels


def find_ids(raw: RawTable, request: Request) -> tuple[Request, list[Note]]:
    """Return the request with the columns of ids and labels, and notes of them.

    A first column without a name has ids, if it holds text that is nowhere the same.
    """
    names = list(raw.frame.columns)
    request, notes = request.resolve(names)
    asked = {name for named in request.named.values() for name in named}
    if request.id_column is not None or names[0] in asked:
        return request, notes
    if request.transpose:
        return replace(request, id_column=names[0]), notes
    if names[0] in NO_NAMES:
        column = _judge(names[0], raw, False)
        if column.may_be_ids and column.numbers.is_text:
            notes.append(Note("Took ids from the first column, which has no name."))
            return replace(request, id_column=names[0], id_name="row"), notes
    return request, notes


def is_turned(raw: RawTable, request: Request) -> bool:
    """Tell whether rows, not columns, have the names of the columns of the model."""
    features = set(request.features or ())
    if not features or request.text_column or features <= set(raw.frame.columns):
        return False
    return features <= set(unique_names(list(map(str, raw.frame.iloc[:, 0]))))


def _beside(raw: RawTable, request: Request, rows: np.ndarray) -> dict[str, Any]:
    """Return what a table has beside its matrix: ids, labels and places of rows."""
    ids, labels = (
        None if name is None else _cells(raw.frame[name])
        for name in (request.id_column, request.label_column)
    )
    return {
        "ids": rows + 1 if ids is None else ids,
        "id_name": request.id_name or request.id_column or "row",
        "labels": labels,
        "places": raw.frame.index.to_numpy(),
        "place_words": raw.place_words,
    }


def _cells(column: Any) -> np.ndarray:
    """Return the cells of a column, None where they are missing."""
    cells = column.astype(object)
    return np.asarray(cells.where(cells.notna(), None).to_numpy(), dtype=object)


def _words(raw: RawTable, request: Request, notes: list[Note]) -> Table:
    """Make a table of the words of a column of texts; other columns have no part.

    A word has two letters or digits at least, and its case does not matter. Stop words
    stay: what to leave out depends on the language, and rarity weighs them down.
    """
    import scipy.sparse as sp
    from sklearn.feature_extraction.text import CountVectorizer

    name, words = str(request.text_column), request.features
    numbers = _judge(name, raw, True).numbers
    if not numbers.is_text:
        raise ValueError(
            f"--text-column {quote(name)}: that column of {request.source} holds no "
            "texts; give one that does."
        )
    texts = ["" if text is None else text for text in numbers.cells]
    counter = CountVectorizer(vocabulary=words, min_df=LEAST_TEXTS, dtype=float)
    try:
        X = sp.csr_array(counter.fit_transform(texts))
    except ValueError:
        raise ValueError(
            f"--text-column {quote(name)}: the {counted(len(texts), 'text')} of "
            f"{request.source} have no word that is in {LEAST_TEXTS} of them or more; "
            "give more texts, or longer ones."
        ) from None
    names = counter.get_feature_names_out().tolist()
    notes = [*_reading_notes(raw, {}), *notes]
    if words is None:
        own = {name, request.id_column, request.label_column}
        others = [other for other in raw.frame.columns if other not in own]
        text = f"Used {counted(len(names), 'word')} of column {quote(name)}: those in "
        notes.insert(0, Note(f"{text}{LEAST_TEXTS} texts or more."))
        left_out = left_out_note(dict.fromkeys(others, "beside the texts"))
        notes += [Note(left_out)] * bool(others)
    return Table(
        request.source,
        X,
        **_beside(raw, request, np.arange(len(texts))),
        names=names,
        notes=notes,
        is_sparse=True,
        counts_words=True,
    )


def describe_columns(table: Table) -> Table:
    """Return a table with notes of the columns that are used, and of those not."""
    names = table.names or []
    notes = [Note(f"Used {counted(len(names), 'column')}: {quote_all(names)}.")]
    if table.left_out:
        notes.append(Note(left_out_note(table.left_out)))
    return replace(table, notes=[*notes, *table.notes])


def left_out_note(left_out: dict[str, str], most: int = 8) -> str:
    """Say which columns are left out, and why: those of one reason together."""
    names_of: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        names_of.setdefault(reason, []).append(name)
    shown = [f"{quote_all(names, 4)} ({reason})" for reason, names in names_of.items()]
    more = ", and others" * (len(shown) > most)
    count = counted(len(left_out), "column")
    return f"Left out {count}: {', '.join(shown[:most])}{more}." if left_out else ""


# Columns


def _judge(name: str, raw: RawTable, asked: bool) -> _Column:
    """Return the numbers of a column, and why it is not used, if it is not.

    Of a column that is asked for, ids and dates are numbers as well.
    """
    from pandas.api.types import infer_dtype

    column = raw.frame[name]
    if column.dtype == "category":
        column = column.astype(column.cat.categories.dtype)
    kind = infer_dtype(column, skipna=True)
    nothing = Numbers(np.full(len(column), np.nan))
    if kind.startswith(("date", "time")):
        return _Column(nothing, "dates")
    if column.isna().all():
        return _Column(nothing, "empty")
    if kind in ("integer", "floating", "mixed-integer-float", "decimal", "boolean"):
        # Whole numbers of more than 16 digits are rounded, not refused.
        judged = _Column(Numbers(column.to_numpy(np.float64, na_value=np.nan)))
    elif any(map(_is_nested, column)):
        return _Column(nothing, "holds lists, not numbers")
    else:
        text = column.where(column.isna(), column.map(str)).where(column.notna(), None)
        numbers = parse_numbers(text, raw.point)
        if raw.is_typed:
            numbers = Numbers(nothing.values, numbers.cells)
        judged = _judge_text(name, numbers, raw)
    values = judged.numbers.values
    if judged.reason or asked:
        return judged
    known = values[~np.isnan(values)]
    # Among many columns a name is a word or a gene, and says nothing of this kind.
    reason = no_measurement("" if raw.frame.shape[1] > WIDE else name, known)
    if reason:
        differ = len(np.unique(known)) == len(values) > 1
        return replace(judged, reason=reason, may_be_ids=differ)
    return judged


def _is_nested(cell: Any) -> bool:
    return isinstance(cell, (list, dict, tuple)) or getattr(cell, "ndim", 0) > 0


# Names of things that whole numbers stand for, by their last word. The first need to be
# of another thing in each row: they may as well be numbers of things.
_NUMBERED = r"(?i:(.*[ _.\-])?(no|nr|number)\.?)|[A-Z]{1,2}ID"
_CODED = (
    r"((?i:.*[ _.\-])?(?i:u?u?id|key|index|fips?|zip|month|rank|school|student|subject|"
    r"patient|person|household|firm|litter|pair|plot|site|county|state|region|country|"
    r"group|status)|(?i:.*(code|fips?|row\.?names)|unnamed: 0)|.*[a-z]I[Dd])"
)


def no_measurement(name: str, values: np.ndarray) -> str:
    """Return why the numbers of a column measure nothing, or "" if they may.

    Such are row numbers and ranks, years, ids and codes, all of them whole numbers. The
    names were chosen on 143 tables of R packages, and judged on 98 tables of others: of
    90 such columns 55 are found there, and no other column is taken for one.
    """
    if not _are_whole(values):
        return ""
    different = np.unique(values)
    low, high, count = different[0], different[-1], len(different)
    each_once = count == len(values)
    if each_once and (re.fullmatch(_NUMBERED, name) or re.fullmatch(_CODED, name)):
        return "looks like ids: whole numbers, no two alike"
    if count <= 2:  # a flag, by whatever name
        return ""
    # Few measurements may be in a row, such as heights from 58 to 72 inches.
    in_a_row = each_once and high - low == count - 1
    if in_a_row and count >= (10 if low in (0, 1) else 100):
        return f"row numbers or ranks: {low:.0f} to {high:.0f}, each once"
    if (low >= 1700 and high <= 2100) or re.fullmatch(r"(?i).*(year|yr)", name):
        return "years"
    if low >= 19_000_101 and high <= 21_001_231 and (different // 100 % 100 < 13).all():
        return "dates"  # such as 20240131
    return "codes, as its name says" if re.fullmatch(_CODED, name) else ""


def _are_whole(values: np.ndarray) -> bool:
    return bool((values == np.round(values)).all())  # which NaN is not


def _judge_text(name: str, numbers: Numbers, raw: RawTable) -> _Column:
    """Judge a column of text, in which not all cells need be numbers."""
    known, bad = numbers.cells.dropna(), numbers.bad_rows
    if len(known) == 0:
        return _Column(numbers, "empty")
    if len(bad) == 0:
        return _Column(numbers)
    cell = quote(numbers.cells.iloc[bad[0]])
    count = f"{len(bad):,} of {len(known):,} cells"
    first = f"the first is {cell} in {raw.place(bad[0])}"
    # Beyond one cell in ten text is no slip: such columns hold codes (12A), or answers.
    if 10 * len(bad) <= len(known):
        text = f"Column {quote(name)} has {count} that are not numbers, {first}: taken"
        cure = f"Mend the file, or leave the column out: --drop-columns {quote(name)}."
        return _Column(numbers, warning=Note(f"{text} as missing.", cure, loud=True))
    if 2 * len(bad) <= len(known):
        return _Column(numbers, f"{count} are not numbers, {first}")
    date = r"(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?|\d{1,2}:\d\d(:\d\d)?)"
    if all(re.fullmatch(date, text) for text in known):
        return _Column(numbers, "dates")
    alike = known.nunique() < len(numbers.cells) or len(numbers.cells) == 1
    is_long = len(known.iloc[0].split()) >= LONG_TEXT
    reason = f"text such as {cell}"
    return _Column(numbers, reason, may_be_ids=not (alike or is_long))


# Rows


def _observations(
    X: np.ndarray, raw: RawTable, request: Request
) -> tuple[np.ndarray, list[Note]]:
    """Return the rows that are used, and notes of the others.

    Others are empty, or at the end without a number and with text in one cell at most:
    footnotes, and totals whose formulas were saved without a value. A last row that is
    the sum of all others is a total; it is told by its numbers, not by its name.
    """
    bare = np.flatnonzero(np.isnan(X).all(axis=1))
    n_filled = np.full(len(X), 2)
    blank = raw.frame.iloc[bare]
    n_filled[bare] = (blank.notna() & (blank != "")).sum(axis=1)
    last = int(np.flatnonzero(n_filled > 1).max(initial=-1))
    others = dict.fromkeys(range(last + 1, len(X)), "has no number")
    empty = np.flatnonzero(n_filled == 0).tolist()
    sums = np.nansum(np.delete(X, [last, *others, *empty], axis=0), axis=0)
    known = ~np.isnan(X[last])
    if last >= 3 and known.any():
        close = np.isclose(X[last, known], sums[known], rtol=1e-6, atol=0)
        if close.all() and (sums[known] > 0).all():
            others[last] = "is the sum of all other rows"
    kept = np.setdiff1d(np.arange(len(X)), [*others, *empty])
    shown = ", ".join(
        f"{raw.place(row)} {what}"
        for row, what in sorted(others.items())
        if row not in empty
    )
    notes = [Note(f"Left out {counted(len(empty), 'empty row')}.")] * bool(empty)
    if request.features is not None:  # a model labels them
        kept = np.setdiff1d(np.arange(len(X)), empty)
    if shown:
        what = "Left out" if request.features is None else "Labels mean nothing of"
        text = f"{what} rows that are no observations: {shorten(shown, 300)}."
        notes.append(Note(text, loud=True))
    return kept, notes


# What is said


def _reading_notes(raw: RawTable, columns: dict[str, Numbers]) -> list[Note]:
    """Say how a table was read, with an example of numbers as people write them."""
    phrases = list(raw.phrases)
    special = [name for name, numbers in columns.items() if numbers.point]
    if special:
        numbers = columns[special[0]]
        # The longest has most of what is special: groups, decimals, signs.
        lengths = numbers.cells.str.len().where(~np.isnan(numbers.values), 0)
        row = int(np.argmax(lengths))
        example = f"{quote(numbers.cells.iloc[row])} is {numbers.values[row]:.12g}"
        which = quote_all(special)
        phrases.append(f"numbers as people write them in {which} ({example})")
    return [Note(f"Read {', '.join(phrases)}.")] if phrases else []


def _hints(raw: RawTable, request: Request, columns: dict[str, _Column]) -> list[Note]:
    """Return options for columns named as labels or ids are, for texts and genes."""
    hints = []
    labels = r"(?i)(.*[ _.\-])?(label|class|cluster|type|target)s?$"
    ids = [name for name, column in columns.items() if column.may_be_ids]
    if ids and request.id_column is None:
        name = quote(ids[0])
        hints.append(
            Note("", f"If column {name} names the rows, add --id-column {name}.")
        )
    for name, column in columns.items():
        if not column.reason:
            if re.match(labels, name) and _are_whole(column.numbers.values):
                text = f"Column {quote(name)} is used as a feature."
                cure = f"If it holds known labels, add --label-column {quote(name)}."
                hints.append(Note(text, cure))
            continue
        cells = [cell for cell in raw.frame[name].head(200) if isinstance(cell, str)]
        n_words = float(np.median([len(cell.split()) for cell in cells] or [0]))
        if n_words >= LONG_TEXT:
            text = f"Column {quote(name)} holds texts of some {n_words:.0f} words."
            cure = f"To cluster by their words, add --text-column {quote(name)}."
            hints.append(Note(text, cure))
        if cells and all(re.match(r"ENS[A-Z]*\d{6}", cell) for cell in cells):
            text = f"Rows look like genes ({quote(cells[0])}), and they are clustered."
            hints.append(Note(text, "To cluster the columns, add --transpose."))
    return hints
