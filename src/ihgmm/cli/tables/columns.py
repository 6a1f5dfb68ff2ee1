"""Tables with named columns: which columns and rows are used, which not, and why."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ihgmm.cli.tables import table as tb
from ihgmm.cli.tables.loading import RawTable
from ihgmm.cli.tables.numbers import NOT_KNOWN, as_texts, parse_numbers
from ihgmm.cli.tables.table import BESIDE, Request, Table, quote, quote_all
from ihgmm.words.phrases import counted, percent

# What a first column is called that has no name of its own.
NO_NAMES = ("Unnamed: 0", "row.names", "rownames")
MOST_NAMED = 30  # of the columns that are left out, on the screen


@dataclass
class _Column:
    """A column, and what is made of it."""

    values: np.ndarray  # NaN where a cell has no number
    texts: Any = None  # of the cells, NA where they are missing; None for true numbers
    point: str | None = None  # the decimal point of numbers as people write them
    is_text: bool = False  # whether most cells hold something else than a number
    reason: str = ""  # why it is not used; "" if it is
    categories: Sequence[str] = ()  # the few values of text
    warning: str = ""


def choose_columns(raw: RawTable, request: Request) -> Table:
    """Make a table of the columns that hold numbers, with what came beside them."""
    names, source = list(raw.frame.columns), request.source
    is_empty = raw.frame.isna().all(axis=1).to_numpy()
    rows = np.flatnonzero(~is_empty)
    if len(rows) == 0:
        raise ValueError(f"{source} has a header but no rows.")
    raw = replace(raw, frame=raw.frame.iloc[rows])
    request, notes = find_ids(raw, request)
    if len(rows) < len(is_empty):
        notes.append(f"Left out {counted(int(is_empty.sum()), 'empty row')}.")
    request.check(names, source)
    about = beside_rows(raw.frame, request, rows + 1)
    about |= {"places": raw.frame.index.to_numpy(), "place_words": raw.place_words}
    if request.text_column is not None:
        return _words(raw, request, notes, about)
    raw = _with_flags(raw, request.features or (), notes)
    request.check_features(list(raw.frame.columns))
    asked = list(request.features or request.columns)
    others = {name for _, name in request.named(*BESIDE.values(), "drop_columns")}
    tried = [name for name in asked or names if name not in others]
    needs = bool(asked), bool(request.features)
    columns = {name: _judge(name, raw, *needs) for name in tried}
    flags = []
    for name in tried if request.use_categories else ():
        if columns[name].categories:
            flags += [f"{name}={value}" for value in columns.pop(name).categories]
    raw = _with_flags(raw, flags, notes)
    columns |= {flag: _judge(flag, raw, True) for flag in flags}
    numbers = {name: column for name, column in columns.items() if not column.reason}
    left_out = {name: c.reason for name, c in columns.items() if c.reason}
    told = _reading_notes(raw, numbers)
    for name, why in left_out.items() if asked else ():
        raise ValueError(f"{source}: column {quote(name)} cannot be used: {why}.")
    if not numbers:
        raise ValueError(
            f"{source} has no columns of numbers to cluster by; it has "
            f"{quote_all(names)}. {left_out_note(left_out)} {' '.join(told)}"
        )
    warned = [tb.Warned(c.warning) for c in columns.values() if c.warning]
    X = np.column_stack([column.values for column in numbers.values()])
    about |= {"names": list(numbers), "notes": [*told, *notes, *warned]}
    return Table(source, X, **about, is_mixed=True, left_out=left_out, flags=flags)


def _with_flags(raw: RawTable, flags: Sequence[str], notes: list[str]) -> RawTable:
    """Return a table with the flags of categories: whether cells have that value."""
    frame, made = raw.frame, {}
    for name in frame:
        own = [flag for flag in flags if flag.startswith(f"{name}=")]
        if {*own} <= {*frame}:
            continue
        values, cells = [], as_texts(frame[name])
        for flag in own:
            values.append(flag.removeprefix(f"{name}="))
            if flag not in frame:
                made[flag] = (cells == values[-1]).fillna(False).astype(bool)
        known, what = cells.dropna(), f"of {quote(name)}"
        if n := len(cells) - len(known):
            took = f"Took missing cells {what} ({n:,} of {len(cells):,} read)"
            notes.append(f"{took} as none of its values.")
        new = known[~known.isin(values)]
        if len(new):
            took = f"Took {counted(len(new), 'cell')} {what}, such as"
            notes.append(f"{took} {quote(new.iloc[0])}, as none of the fit's values.")
    return replace(raw, frame=frame.assign(**made)) if made else raw


def transposed(raw: RawTable) -> RawTable:
    """Return a table with a row for each column of numbers, whose names come first."""
    frame, phrases = raw.frame, [*raw.phrases, "rows as columns"]
    first, names = frame.columns[0], tb.place_names(len(frame))
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
    turned.columns = tb.unique_names(list(names))
    turned.insert(0, "column", turned.index)
    turned.index = raw.frame.columns.get_indexer(turned.index) + 1
    # Rows may have text, such as known labels.
    return RawTable(turned, phrases, raw.point, place_words="column {}")


def find_ids(raw: RawTable, request: Request) -> tuple[Request, list[str]]:
    """Return the request with the columns of ids and labels, and notes of them."""
    first = raw.frame.columns[0]
    request, notes = request.resolve(list(raw.frame.columns))
    if request.id_column is not None or first in [name for _, name in request.named()]:
        return request, notes
    column = _judge(first, raw, False)
    has_ids = first in NO_NAMES and column.is_text and column.texts.is_unique
    if has_ids and not request.transpose:
        notes.append(f"Took ids from the first column, {quote(first)}.")
    is_id = has_ids or request.transpose  # which begins with the names of columns
    return (replace(request, id_column=first) if is_id else request), notes


def beside_rows(
    frame: Any, request: Request, ids: np.ndarray, id_name: str = "row"
) -> dict[str, Any]:
    """Return what is beside a matrix, None where not known; ids may be given."""
    about: dict[str, Any] = {"ids": ids, "id_name": id_name}
    for field, option in BESIDE.items():
        for _, name in request.named(option):
            cells = frame[name].astype(object)
            if any(map(_is_nested, cells)):
                raise ValueError(
                    f"{tb.as_option(option)} {quote(name)}: that column of "
                    f"{request.source} holds lists; give one of text or numbers."
                )
            unknown = cells.isna()
            if field != "ids":  # a row may be called NA
                unknown |= cells.map(str).str.strip().isin(NOT_KNOWN)
            elif name not in NO_NAMES:
                about["id_name"] = name
            about[field] = cells.where(~unknown, None).to_numpy()
    return about


def _words(
    raw: RawTable, request: Request, notes: list[str], about: dict[str, Any]
) -> Table:
    """Make a table of the words of a column of texts; other columns have no part."""
    import scipy.sparse as sp
    from sklearn.feature_extraction.text import CountVectorizer

    name, words = str(request.text_column), request.features
    column, option = _judge(name, raw, True), f"--text-column {quote(name)}"
    if not column.is_text:
        where = f"that column of {request.source}"
        raise ValueError(f"{option}: {where} holds no texts; name another.")
    # A word of one text alone says nothing about others.
    counter = CountVectorizer(vocabulary=words, min_df=2, dtype=float)
    try:
        X = sp.csr_array(counter.fit_transform(column.texts.fillna("")))
    except ValueError:
        raise ValueError(
            f"{option}: the texts of {request.source} have no word that is in 2 of "
            "them or more; give more texts, or longer ones."
        ) from None
    own = {name, *(other for _, other in request.named(*BESIDE.values()))}
    left_out = dict.fromkeys(raw.frame.columns.drop([*own]), "beside the texts")
    about |= {"names": counter.get_feature_names_out().tolist(), "left_out": left_out}
    about |= {"notes": [*_reading_notes(raw, {}), *notes]}
    about |= {"texts": column.texts.fillna("").to_numpy(object)}
    return Table(request.source, X, **about, is_sparse=True)


def left_out_note(left_out: dict[str, str]) -> str:
    """Say which columns are left out, and why: those of one reason together."""
    names_of: dict[str, list[str]] = {}
    for name in [*left_out][:MOST_NAMED]:
        names_of.setdefault(left_out[name], []).append(name)
    shown = [f"{quote_all(names_of[why], MOST_NAMED)} ({why})" for why in names_of]
    more = f" and {len(left_out) - MOST_NAMED} more" * (len(left_out) > MOST_NAMED)
    count = counted(len(left_out), "column")
    return f"Left out {count}: {', '.join(shown)}{more}." if left_out else ""


# Kinds of cells, as pandas names them, that need not be read as text.
_NUMERIC = ("integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty")


def _judge(name: str, raw: RawTable, asked: bool, of_model: bool = False) -> _Column:
    """Judge a column: if asked for it need not measure anything, nor hold a number."""
    from pandas.api.types import infer_dtype

    cells = raw.frame[name]
    if cells.dtype == "category":
        cells = cells.astype(cells.cat.categories.dtype)
    kind, column = infer_dtype(cells, skipna=True), _Column(np.full(len(cells), np.nan))
    if kind.startswith(("date", "time")):
        column.reason = "dates"
    elif kind in _NUMERIC:
        # Whole numbers of more than 16 digits are rounded, not refused.
        column.values = cells.to_numpy(np.float64, na_value=np.nan)
    elif any(map(_is_nested, cells)):
        column.reason = "holds lists, not numbers"
    else:
        column.texts = as_texts(cells)
        if not raw.is_typed:
            column.values, column.point = parse_numbers(column.texts, raw.point)
        _judge_text(name, column, raw, of_model)
    known = column.values[~np.isnan(column.values)]
    if not (column.reason or len(known) or of_model):
        column.reason = "empty"
    if not (column.reason or asked):
        # Among many columns a name is a word or a gene, and says nothing of this kind.
        is_wide = raw.frame.shape[1] > 100
        first = next((n for n in raw.frame if n not in NO_NAMES), "")
        column.reason = no_measurement("" if is_wide else name, known, name == first)
    return column


def _is_nested(cell: Any) -> bool:
    return isinstance(cell, (list, dict, tuple)) or getattr(cell, "ndim", 0) > 0


def _judge_text(name: str, column: _Column, raw: RawTable, of_model: bool) -> None:
    """Judge a column of text, in which not all cells need be numbers."""
    known = column.texts.dropna()
    bad = np.flatnonzero(np.isnan(column.values) & column.texts.notna())
    if len(bad) == 0:
        return
    cell = quote(column.texts.iloc[bad[0]])
    count = f"{len(bad):,} of {len(known):,} cells"
    place = raw.place_words.format(raw.frame.index[bad[0]])
    first = f"not numbers, the first is {cell} in {place}"
    if 2 * len(bad) > len(known):
        column.is_text, column.reason = True, f"text such as {cell}"
        values = sorted(set(known))
        if known.str.match(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{2,4}(\b|T\d)").all():
            column.reason = f"dates such as {cell}"
        elif 1 < len(values) <= min(20, len(known) // 5):  # five rows for each
            empty = 1 - len(known) / len(column.texts)
            column.categories = values if empty <= 0.5 else ()
            column.reason = f"text of few values, {percent(empty)} of it empty"
            if column.categories:
                column.reason = "text of few values; --use-categories takes it"
        elif known.head(200).str.split().map(len).median() >= 8:  # words: no name
            column.reason += f"; --text-column {quote(name)} takes its words"
    # Beyond one cell in ten text is no slip: such columns hold codes (12A), or answers.
    elif 10 * len(bad) > len(known):
        column.reason = f"{count} are {first}"
    else:
        column.warning = f"Column {quote(name)} has {count} that are {first}: taken as "
        rest = f", or leave the column out: --drop-columns {quote(name)}"
        column.warning += f"missing. Mend the file{rest * (not of_model)}."


# Names of things that whole numbers stand for, by their last word. The first need to be
# of another thing in each row: they may as well be numbers of things, or platinum.
# docs/tables.md tells on which tables they were chosen.
_NUMBERED = r"(?i:(.*[ _.\-])?(no|number)\.?|.*(?<!de|ha|mi|ti)num)"
_THINGS = (
    "id|pid|index|obs|fips?|month|weekday|day.of.week|wave|rank|school|student|subject|"
    "patient|household|firm|store|litter|pair|block|site|center|centre|dept|department|"
    "county|district|state|region|sector|occupation|race|group|status"
)
_WHOSE = r"([ _.\-](husb(and)?|wife))?"
_CODED = (
    rf"(?i:(.*[ _.\-])?({_THINGS}){_WHOSE})|(?i:.*(code|fips?|row\.?names)|unnamed: 0)|"
    r"__index_level_\d+__|"  # the index of pandas
    r"(?i:(county|study|town)_?id)|.*[a-z]I[Dd]"
)
_YEARS, _DAYS = r"(?i).*(year|yr)", r"(?i)(.*[ _.\-])?m?day"
_DATES = r"(?i)(.*[ _.\-])?date"
_PLACES = r"(?i)(.*[ _.\-])?(lat(itude)?|lon|lng|long(itude)?)"


def no_measurement(name: str, values: np.ndarray, is_first: bool = False) -> str:
    """Return why a column measures nothing, or ""; a name may be "" as well."""
    each = np.unique(values)
    low, high, each_once = each[0], each[-1], len(each) == len(values)
    is_code, is_numbered = re.fullmatch(_CODED, name), re.fullmatch(_NUMBERED, name)
    is_named = is_code or re.fullmatch(_YEARS, name)
    is_id = each_once and (is_code or is_numbered)
    # Few measurements may be in a row, such as heights from 58 to 72 inches.
    is_long = len(each) >= (10 if low in (0, 1) else 100)
    in_a_row = each_once and high == low + len(each) - 1
    ranks = f"row numbers or ranks: {low:.0f} to {high:.0f}, each once"
    is_day = low >= 1 and 28 <= high <= 31
    is_pair = (low, high) == (1, 2)
    is_vast = 2**53 <= high < 2**63  # where counts and amounts hardly are
    is_date = low >= 19_000_101 and high <= 21_001_231  # such as 20240131
    # Few rows may be sorted by an amount.
    rises = is_first and len(each) >= 100 and (np.diff(values, prepend=-1) > 0).all()
    reasons = {  # the first that holds
        "coordinates": low < high and re.fullmatch(_PLACES, name),
        # A constant, whatever it is; and true and false, by whatever name.
        "": low == high or (each != np.round(each)).any() or (low, high) == (0, 1),
        "looks like ids; --id-column takes them": is_id or (each_once and is_vast),
        ranks: in_a_row and is_long,
        f"numbers of rows, which start again: 1 to {high:.0f}": (
            is_numbered and is_long and low == 1 and high == len(each)
        ),
        "years": low >= 1700 and high <= 2100,
        "dates": re.fullmatch(_DATES, name) or (is_date and max(each % 10_000) < 1300),
        "days of the month": is_day and re.fullmatch(_DAYS, name),
        "a code of two values: 1 and 2": is_pair and name and not each_once,
        "named like a code, id or year; name it among --columns to use it": is_named,
        "rises from row to row, as ids do; --id-column takes it": rises,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _reading_notes(raw: RawTable, columns: dict[str, _Column]) -> list[str]:
    """Say how a table was read, with an example of numbers as people write them."""
    phrases = list(raw.phrases)
    special = [name for name, column in columns.items() if column.point]
    if special:
        column = columns[special[0]]
        # The longest has most of what is special: groups, decimals, signs.
        row = int(np.argmax(column.texts.str.len().where(~np.isnan(column.values), 0)))
        example = f"{quote(column.texts.iloc[row])} is {column.values[row]:.12g}"
        which = quote_all(special)
        phrases.append(f"numbers as people write them in {which} ({example})")
    return [f"Read {', '.join(phrases)}."] if phrases else []
