"""Tables with named columns: which columns and rows are used, which not, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ihgmm.cli.tables.loading import RawTable
from ihgmm.cli.tables.numbers import NOT_KNOWN, as_texts, parse_numbers
from ihgmm.cli.tables.table import (
    BESIDE,
    Note,
    Request,
    Table,
    place_names,
    quote,
    quote_all,
    unique_names,
)
from ihgmm.words.phrases import counted

LONG_TEXT = 8  # words from which a cell is no name
LEAST_TEXTS = 2  # that have a word; in one alone, it says nothing about others
# What a first column is called that has no name of its own.
NO_NAMES = ("Unnamed: 0", "row.names", "rownames")
MOST_VALUES = 20  # of a category; on average it has five rows for each
WIDE = 100  # columns from which their names are those of words or genes


@dataclass(frozen=True)
class _Column:
    """A column, and what is made of it."""

    values: np.ndarray  # NaN where a cell has no number
    texts: Any = None  # of the cells, NA where they are missing; None for true numbers
    point: str | None = None  # the decimal point of numbers as people write them
    is_text: bool = False  # whether most cells hold something else than a number
    reason: str = ""  # why it is not used; "" if it is
    may_be_ids: bool = False
    warning: Note | None = None


def choose_columns(raw: RawTable, request: Request) -> Table:
    """Make a table of the columns that hold numbers, with what came beside them."""
    names, source = list(raw.frame.columns), request.source
    is_empty = raw.frame.apply(_is_blank).all(axis=1).to_numpy()
    rows = np.flatnonzero(~is_empty)
    if len(rows) == 0:
        raise ValueError(f"{source} has a header but no rows.")
    raw = replace(raw, frame=raw.frame.iloc[rows])
    request, notes = find_ids(raw, request)
    if len(rows) < len(is_empty):
        count = counted(int(is_empty.sum()), "empty row")
        notes.append(Note(f"Left out {count}."))
    request.check(names, source)
    if request.text_column is not None:
        return _words(raw, request, rows, notes)
    raw = _with_flags(raw, request.features or ())
    request.check_features(list(raw.frame.columns))
    asked = list(request.features or request.columns)
    beside = {name for _, name in request.named(*BESIDE, "drop_columns")}
    tried = asked or [name for name in names if name not in beside]
    columns = {name: _judge(name, raw, bool(asked)) for name in tried}
    categories, notes_on_text = _categories(columns), []
    if request.use_categories:
        raw, used = _with_flags(raw, categories), set(categories.values())
        columns = {name: c for name, c in columns.items() if name not in used}
        columns |= {flag: _judge(flag, raw, True) for flag in categories}
        count = counted(len(used), "column")
        notes_on_text = [Note(f"Took {count} of text as categories.")] * bool(used)
    elif categories:
        which = quote_all(list(dict.fromkeys(categories.values())))
        cure = f"To use text with few values ({which}), add --use-categories."
        notes_on_text = [Note("", cure)]
        categories = {}
    numbers = {name: column for name, column in columns.items() if not column.reason}
    left_out = {name: c.reason for name, c in columns.items() if c.reason}
    hints = [*([] if asked else _hints(raw, request, columns)), *notes_on_text]
    for name in left_out if asked else ():
        raise ValueError(
            f"{source}: column {quote(name)} cannot be used: {left_out[name]}. "
            f"{' '.join(map(str, hints))}".rstrip()
        )
    if not numbers:
        raise ValueError(
            f"{source} has no columns of numbers to cluster by; it has "
            f"{quote_all(names)}. {left_out_note(left_out)} "
            f"{' '.join(map(str, [*hints, raw.remedy]))}".rstrip()
        )
    X = np.column_stack([column.values for column in numbers.values()])
    warnings = [column.warning for column in columns.values() if column.warning]
    return Table(
        source,
        X,
        **beside_rows(raw, request, rows),
        names=list(numbers),
        notes=[*_reading_notes(raw, numbers), *notes, *hints, *warnings],
        is_mixed=True,
        left_out=left_out,
        flags=list(categories),
    )


def _categories(columns: dict[str, _Column]) -> dict[str, str]:
    """Return flags such as ``region=north``, and the text with few values of each."""
    flags: dict[str, str] = {}
    for name, column in columns.items():
        known = column.texts.dropna() if column.is_text else []
        values = sorted(set(known))
        if 1 < len(values) <= min(MOST_VALUES, len(known) // 5):
            flags |= {f"{name}={value}": name for value in values}
    return flags


def _with_flags(raw: RawTable, flags: Iterable[str]) -> RawTable:
    """Return a table with the flags of categories: whether cells have that value."""
    frame, made = raw.frame, {}
    for flag in [flag for flag in flags if "=" in flag and flag not in frame]:
        for name in [name for name in frame if flag.startswith(f"{name}=")]:
            says = as_texts(frame[name]) == flag.removeprefix(f"{name}=")
            made[flag] = says.fillna(False).astype(bool)
    return replace(raw, frame=frame.assign(**made)) if made else raw


def _is_blank(column: Any) -> Any:
    if column.dtype.kind != "O":
        return column.isna()
    blank = [isinstance(cell, str) and not cell for cell in column]
    return column.isna() | np.array(blank, bool)  # a cell may be a list


def transposed(raw: RawTable) -> RawTable:
    """Return a table with a row for each column of numbers, whose names come first."""
    frame, phrases = raw.frame, [*raw.phrases, "rows as columns"]
    first, names = frame.columns[0], place_names(len(frame))
    if _judge(first, raw, False).reason:
        names = frame[first].astype(object).where(frame[first].notna(), "").map(str)
        phrases[-1] += f", with the names in {quote(first)}"
        frame = frame.drop(columns=first)
    columns = {name: _judge(name, raw, True) for name in frame}
    # Columns of text are about the rows.
    others = [n for n, c in columns.items() if c.is_text or np.isnan(c.values).all()]
    if len(others) == len(columns):
        return replace(raw, phrases=phrases)  # which has nothing to cluster by
    if others:
        phrases.append(f"but not {quote_all(others)}, without numbers")
    turned = frame.drop(columns=others).T
    turned.columns = unique_names(list(names))
    turned.insert(0, "column", turned.index)
    turned.index = raw.frame.columns.get_indexer(turned.index) + 1
    # Rows may have text, such as known labels.
    return RawTable(turned, phrases, raw.point, place_words="column {}")


def find_ids(raw: RawTable, request: Request) -> tuple[Request, list[Note]]:
    """Return the request with the columns of ids and labels, and notes of them."""
    first = raw.frame.columns[0]
    request, notes = request.resolve(list(raw.frame.columns))
    asked = [name for _, name in request.named()]
    if request.id_column is not None or first in asked:
        return request, notes
    if not request.transpose:  # a first column of text without a name may have ids
        column = _judge(first, raw, False) if first in NO_NAMES else None
        if column is None or not (column.may_be_ids and column.is_text):
            return request, notes
        which = "which has no name" if first == NO_NAMES[0] else quote(first)
        notes.append(Note(f"Took ids from the first column, {which}."))
    return replace(request, id_column=first), notes


def known_labels(column: Any) -> np.ndarray:
    """Return labels, None where a cell of a pandas column says that there is none."""
    cells = column.astype(object)
    unknown = cells.isna() | cells.map(str).str.strip().isin(NOT_KNOWN)
    return np.asarray(cells.where(~unknown, None))


def labels_beside(frame: Any, request: Request) -> dict[str, np.ndarray | None]:
    """Return labels, known classes and batches, where columns of these are named."""
    columns = (request.label_column, request.known_column, request.batch_column)
    cells = [None if name is None else known_labels(frame[name]) for name in columns]
    return dict(zip(("labels", "known", "batch"), cells, strict=True))


def beside_rows(raw: RawTable, request: Request, rows: np.ndarray) -> dict[str, Any]:
    """Return what a table has beside its matrix: ids, labels and places of rows."""
    for option, name in request.named(*BESIDE):
        if any(map(_is_nested, raw.frame[name])):
            raise ValueError(
                f"{option} {quote(name)}: that column of {request.source} holds lists; "
                "give one of text or numbers."
            )
    ids = rows + 1
    if request.id_column is not None:
        cells = raw.frame[request.id_column].astype(object)
        ids = cells.where(cells.notna(), None).to_numpy()
    has_name = request.id_column not in (None, *NO_NAMES)
    return {
        "ids": ids,
        "id_name": request.id_column if has_name else "row",
        **labels_beside(raw.frame, request),
        "places": raw.frame.index.to_numpy(),
        "place_words": raw.place_words,
    }


def _words(
    raw: RawTable, request: Request, rows: np.ndarray, notes: list[Note]
) -> Table:
    """Make a table of the words of a column of texts; other columns have no part."""
    import scipy.sparse as sp
    from sklearn.feature_extraction.text import CountVectorizer

    name, words = str(request.text_column), request.features
    column, option = _judge(name, raw, True), f"--text-column {quote(name)}"
    if not column.is_text:
        raise ValueError(
            f"{option}: that column of {request.source} holds no texts; give one that "
            "does."
        )
    counter = CountVectorizer(vocabulary=words, min_df=LEAST_TEXTS, dtype=float)
    try:
        X = sp.csr_array(counter.fit_transform(column.texts.fillna("")))
    except ValueError:
        raise ValueError(
            f"{option}: the {counted(len(column.values), 'text')} of {request.source} "
            f"have no word that is in {LEAST_TEXTS} of them or more; give more texts, "
            "or longer ones."
        ) from None
    names = counter.get_feature_names_out().tolist()
    notes = [*_reading_notes(raw, {}), *notes]
    if words is None:
        own = {name, *(other for _, other in request.named(*BESIDE))}
        others = [other for other in raw.frame.columns if other not in own]
        text = f"Used {counted(len(names), 'word')} of column {quote(name)}: those in "
        notes.insert(0, Note(f"{text}{LEAST_TEXTS} texts or more."))
        left_out = left_out_note(dict.fromkeys(others, "beside the texts"))
        notes += [Note(left_out)] * bool(others)
    beside = beside_rows(raw, request, rows) | {"names": names, "notes": notes}
    return Table(request.source, X, **beside, is_sparse=True, counts_words=True)


def choice_notes(table: Table, most: int) -> list[str]:
    """Say which columns are used and which are not; at most so many are named."""
    names = table.column_names
    used = f"Used {counted(len(names), 'column')}: {quote_all(names, most)}."
    return [used, *filter(None, [left_out_note(table.left_out, most)])]


def left_out_note(left_out: dict[str, str], most: int = 8) -> str:
    """Say which columns are left out, and why: those of one reason together."""
    names_of: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        names_of.setdefault(reason, []).append(name)
    shown = [
        f"{quote_all(names, most // 2)} ({reason})"
        for reason, names in names_of.items()
    ]
    more = ", and others" * (len(shown) > most)
    count = counted(len(left_out), "column")
    return f"Left out {count}: {', '.join(shown[:most])}{more}." if left_out else ""


def _judge(name: str, raw: RawTable, asked: bool) -> _Column:
    """Judge a column: one that is asked for need not measure anything."""
    from pandas.api.types import infer_dtype

    column = raw.frame[name]
    if column.dtype == "category":
        column = column.astype(column.cat.categories.dtype)
    kind, nothing = infer_dtype(column, skipna=True), np.full(len(column), np.nan)
    if kind.startswith(("date", "time")):
        return _Column(nothing, reason="dates")
    if column.isna().all():
        return _Column(nothing, reason="empty")
    if kind in ("integer", "floating", "mixed-integer-float", "decimal", "boolean"):
        # Whole numbers of more than 16 digits are rounded, not refused.
        judged = _Column(column.to_numpy(np.float64, na_value=np.nan))
    elif any(map(_is_nested, column)):
        return _Column(nothing, reason="holds lists, not numbers")
    else:
        texts = as_texts(column)
        numbers = (nothing, None) if raw.is_typed else parse_numbers(texts, raw.point)
        judged = _judge_text(name, _Column(numbers[0], texts, numbers[1]), raw)
    if judged.reason or asked:
        return judged
    known = judged.values[~np.isnan(judged.values)]
    # Among many columns a name is a word or a gene, and says nothing of this kind.
    reason = no_measurement("" if raw.frame.shape[1] > WIDE else name, known)
    may_name = bool(reason) and _are_whole(known)
    differ = may_name and len(np.unique(known)) == len(column) > 1
    return replace(judged, reason=reason, may_be_ids=differ)


def _is_nested(cell: Any) -> bool:
    return isinstance(cell, (list, dict, tuple)) or getattr(cell, "ndim", 0) > 0


# Names of things that whole numbers stand for, by their last word. The first need to be
# of another thing in each row: they may as well be numbers of things.
_NUMBERED = r"(?i:(.*[ _.\-])?(no|nr|number)\.?)|[A-Z]{1,2}ID"
_THINGS = (
    "id|uid|uuid|pid|#|key|index|obs|fips?|zip|month|weekday|day.of.week|wave|rank|"
    "school|teacher|student|subject|subj|patient|person|household|firm|store|judge|"
    "litter|pair|plot|block|site|clinic|center|centre|ward|dept|department|county|"
    "district|province|state|region|country|sector|industry|occupation|race|sex|"
    "gender|group|status"
)
_CODED = (
    rf"(?i:(.*[ _.\-])?({_THINGS}))|(?i:.*(code|fips?|row\.?names)|unnamed: 0)|"
    r"(?i:(case|child|county|school|study|town|unit)_?id)|.*[a-z]I[Dd]"
)
_PLACES = r"(?i)(.*[ _.\-])?(lat(itude)?|lon|lng|long(itude)?|easting|northing)"


def no_measurement(name: str, values: np.ndarray) -> str:
    """Return why the numbers of a column measure nothing, or "" if they may.

    Such are places on a map, row numbers and ranks, days of the month, years, ids and
    codes. All but the first are whole numbers. ``name`` is "" where names say nothing.
    Names were chosen on one half of 1,542 tables of R packages. In the other half they
    left out 114 columns that an older list had used; by name and range, four of these
    measure something. That half then changed two names, so it judges the list no more.
    """
    different = np.unique(values)
    low, high, count = different[0], different[-1], len(different)
    if count == 1:
        return ""  # a constant, whatever it is
    if re.fullmatch(_PLACES, name):
        return "coordinates"
    # True and false, by whatever name, are no codes.
    if not _are_whole(different) or (low == 0 and high == 1):
        return ""
    is_code, each_once = re.fullmatch(_CODED, name), count == len(values)
    if each_once and (is_code or re.fullmatch(_NUMBERED, name)):
        return "looks like ids: whole numbers, no two alike"
    # Few measurements may be in a row, such as heights from 58 to 72 inches.
    in_a_row = each_once and high - low == count - 1
    if in_a_row and count >= (10 if low in (0, 1) else 100):
        return f"row numbers or ranks: {low:.0f} to {high:.0f}, each once"
    if (low >= 1700 and high <= 2100) or re.fullmatch(r"(?i).*(year|yr)", name):
        return "years"
    if low >= 19_000_101 and high <= 21_001_231 and (different // 100 % 100 < 13).all():
        return "dates"  # such as 20240131
    if re.fullmatch(r"(?i)(.*[ _.\-])?m?day", name) and low >= 1 and 28 <= high <= 31:
        return "days of the month"
    if name and (low, high) == (1, 2) and not each_once:
        return "a code of two values: 1 and 2"
    return "codes, as its name says" if is_code else ""


def _are_whole(values: np.ndarray) -> bool:
    return bool((values == np.round(values)).all())  # which NaN is not


def _judge_text(name: str, column: _Column, raw: RawTable) -> _Column:
    """Judge a column of text, in which not all cells need be numbers."""
    known = column.texts.dropna()
    bad = np.flatnonzero(np.isnan(column.values) & column.texts.notna())
    if len(known) == 0:
        return replace(column, reason="empty")
    if len(bad) == 0:
        return column
    cell = quote(column.texts.iloc[bad[0]])
    if 2 * len(bad) > len(known):
        differ = known.nunique() == len(column.texts) > 1
        is_ids = differ and len(known.iloc[0].split()) < LONG_TEXT
        reason = f"text such as {cell}"
        return replace(column, is_text=True, reason=reason, may_be_ids=is_ids)
    count = f"{len(bad):,} of {len(known):,} cells"
    first = f"not numbers, the first is {cell} in {raw.place(bad[0])}"
    # Beyond one cell in ten text is no slip: such columns hold codes (12A), or answers.
    if 10 * len(bad) > len(known):
        return replace(column, reason=f"{count} are {first}")
    cure = f"Mend the file, or leave the column out: --drop-columns {quote(name)}."
    text = f"Column {quote(name)} has {count} that are {first}: taken as missing."
    return replace(column, warning=Note(text, cure, loud=True))


def _reading_notes(raw: RawTable, columns: dict[str, _Column]) -> list[Note]:
    """Say how a table was read, with an example of numbers as people write them."""
    phrases = list(raw.phrases)
    special = [name for name, column in columns.items() if column.point]
    if special:
        column = columns[special[0]]
        # The longest has most of what is special: groups, decimals, signs.
        lengths = column.texts.str.len().where(~np.isnan(column.values), 0)
        row = int(np.argmax(lengths))
        example = f"{quote(column.texts.iloc[row])} is {column.values[row]:.12g}"
        which = quote_all(special)
        phrases.append(f"numbers as people write them in {which} ({example})")
    return [Note(f"Read {', '.join(phrases)}.")] if phrases else []


def _hints(raw: RawTable, request: Request, columns: dict[str, _Column]) -> list[Note]:
    """Return options for columns named as labels or ids are, and for texts."""
    hints = []
    labels = r"(?i)(.*[ _.\-])?(label|class|cluster|type|target)s?$"
    ids = [quote(name) for name, column in columns.items() if column.may_be_ids]
    if ids and request.id_column is None:
        cure = f"If column {ids[0]} names the rows, add --id-column {ids[0]}."
        hints.append(Note("", cure))
    for name, column in columns.items():
        called, n_words = quote(name), 0
        if column.is_text:
            n_words = column.texts.dropna().head(200).str.split().map(len).median()
        if n_words >= LONG_TEXT:
            text = f"Column {called} holds texts of some {n_words:.0f} words."
            cure = f"To cluster by their words, add --text-column {called}."
            hints.append(Note(text, cure))
        is_used = not column.reason and _are_whole(column.values)
        if is_used and re.match(labels, name):
            cure = f"If it holds known labels, add --label-column {called}."
            hints.append(Note(f"Column {called} is used as a feature.", cure))
    return hints
