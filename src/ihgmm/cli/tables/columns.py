"""Tables with named columns: which are used, which are not, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ihgmm.cli.tables.table import Note, Request, Table, quote, quote_all
from ihgmm.matrix.delimited import MISSING, NumberStyle, number_style, unique_names
from ihgmm.words.phrases import counted


@dataclass(frozen=True)
class Origin:
    """How a table was read."""

    python: str  # what reads it with pandas
    phrases: Sequence[str] = ()  # such as "as UTF-16", to be told
    decimal_point: str = "."
    is_typed: bool = False  # text is text, even if it looks like numbers
    # Where people find each row in the file, from 1 if None, and in what words.
    places: np.ndarray | None = None
    place_words: str = "row {}"
    # What is written in cells of a column that were read as missing, by its place.
    gap_words: dict[int, Counter[str]] = field(default_factory=dict)

    def place(self, row: int) -> str:
        """Return where people find a row."""
        number = row + 1 if self.places is None else self.places[row]
        return self.place_words.format(number)

    def keep(self, rows: np.ndarray, n_rows: int) -> Origin:
        """Return the origin of some of the rows, of which there are so many."""
        places = np.arange(1, n_rows + 1) if self.places is None else self.places
        gone = np.setdiff1d(np.arange(n_rows), rows).tolist()
        python = f"{self.python}.drop(index={gone})" if gone else self.python
        return replace(self, python=python, places=places[rows])


def choose_columns(arrow: Any, request: Request, origin: Origin) -> Table:
    """Make a table of the columns that hold numbers, with what came beside them."""
    source, names = request.source, arrow.column_names
    phrases = list(origin.phrases)
    names, before = unique_names(names), names
    new = [n for n, old in zip(names, before, strict=True) if n != old and old]
    if new:
        phrases.append(f"columns that have the name of another one as {quote_all(new)}")
    asked, request = request, request.resolve(names)
    if arrow.num_rows == 0:
        raise ValueError(f"{source} has a header but no rows.")
    request.check(names)
    columns = dict(zip(names, arrow.columns, strict=True))
    beside: dict[str | None, np.ndarray] = {
        name: np.array(columns[name].to_pylist(), dtype=object)
        for name in (request.label, request.ids)
        if name is not None
    }
    chosen = list(request.features or request.columns)
    passed = {*beside, *request.dropped}
    judged = {
        name: _judge(name, columns[name], origin, asked_for=bool(chosen))
        for name in (chosen or names)
        if chosen or name not in passed
    }
    numbers = {n: each.values for n, each in judged.items() if each.values is not None}
    used = {name: judged[name] for name in numbers}
    left_out = {name: each.reason for name, each in judged.items() if each.reason}
    if chosen and left_out:
        name, reason = next(iter(left_out.items()))
        raise ValueError(f"{source}: column {quote(name)} cannot be used: {reason}.")
    if not used:
        raise ValueError(
            f"{source} has no numeric columns beside those named; it has "
            f"{quote_all(names)}. {left_out_note(left_out)}".rstrip()
        )
    styled = [name for name, each in used.items() if each.style]
    if styled:
        phrases.append(_style_phrase(styled, columns, origin.decimal_point))
    notes = [Note(f"Read {', '.join(phrases)}.")] if phrases else []
    notes += asked.notes(request.label, request.ids)
    if not chosen:
        notes += _result_notes(names, list(used))
        notes += [_label_note(n) for n in used if _looks_like_labels(n, columns[n])]
        ids = [name for name, each in judged.items() if each.may_be_ids]
        if ids and request.ids is None:
            name = quote(ids[0])
            hint = (
                f"If column {name} names the rows, add --id-column {name}; to cluster "
                "by numbers in it, name it in --columns."
            )
            notes.append(Note(hint, ""))
    notes += [each.warning for each in judged.values() if each.warning]
    return Table(
        source,
        np.column_stack(list(numbers.values())),
        beside.get(request.ids, np.arange(1, arrow.num_rows + 1)),
        "row" if request.ids is None else request.ids,
        beside.get(request.label),
        list(used),
        notes,
        is_mixed=True,
        places=origin.places,
        place_words=origin.place_words,
        left_out=left_out,
        gap_words=_gap_words(names, used, origin),
        python=_python(origin.python, names, numbers, used),
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
    reasons: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        reasons.setdefault(reason, []).append(name)
    told = [
        f"{quote_all(names, 4)} ({reason})"
        for reason, names in list(reasons.items())[:most]
    ]
    more = ", and others" * (len(reasons) > most)
    count = counted(len(left_out), "column")
    return f"Left out {count}: {', '.join(told)}{more}." if left_out else ""


@dataclass(frozen=True)
class _Judged:
    """What is made of a column."""

    values: np.ndarray | None = None  # its numbers; None if it is not used
    reason: str = ""  # why it is not used
    style: NumberStyle | None = None  # how numbers are written, if not as for machines
    may_be_ids: bool = False
    warning: Note | None = None
    gap_words: Counter[str] = field(default_factory=Counter)  # in cells without numbers


def _gap_words(
    names: Sequence[str], used: dict[str, _Judged], origin: Origin
) -> dict[str, Counter[str]]:
    """Return what is written in cells without a number, by column."""
    read = {names[place]: words for place, words in origin.gap_words.items()}
    both = {name: used[name].gap_words + read.get(name, Counter()) for name in used}
    return {name: words for name, words in both.items() if words}


def _judge(name: str, column: Any, origin: Origin, *, asked_for: bool) -> _Judged:
    """Return the numbers of a column, or why it is not used."""
    judged = _judge_kind(name, column, origin)
    if judged.values is None or asked_for:
        return judged
    if _looks_like_ids(name, column, judged.values):
        what = "looks like ids: whole numbers, no two alike"
        return _Judged(reason=what, may_be_ids=True)
    return _Judged(reason="dates") if _looks_like_dates(judged.values) else judged


def _judge_kind(name: str, column: Any, origin: Origin) -> _Judged:
    """Return the numbers of a column, or why it has none."""
    from pyarrow import float64, types

    kind = column.type
    if types.is_temporal(kind):
        return _Judged(reason="dates")
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if any(is_kind(kind) for is_kind in (*numeric, types.is_null)):
        # Whole numbers of more than 16 digits are rounded, not refused.
        values = np.asarray(column.cast(float64(), safe=False).to_numpy())
        return _Judged(reason="empty") if np.isnan(values).all() else _Judged(values)
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    if not (types.is_string(column.type) or types.is_large_string(column.type)):
        return _Judged(reason=f"holds {column.type}, not numbers")
    return _judge_text(name, column, origin)


def _judge_text(name: str, column: Any, origin: Origin) -> _Judged:
    """Judge a column of text, which may be numbers as people write them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # What is missing, beside what pyarrow knows in columns of numbers.
    gaps = ["", "NA", "N/A", "n/a", "#N/A", "nan", "NaN", "null", "NULL", *MISSING]
    trimmed = pc.utf8_trim_whitespace(column.cast(pa.string()))
    is_gap = pc.is_in(trimmed, value_set=pa.array(gaps))
    cells = pc.if_else(is_gap, pa.scalar(None, pa.string()), trimmed)
    n_cells = len(cells) - cells.null_count
    if n_cells == 0:
        return _Judged(reason="empty")
    style, n_numbers = number_style(cells, origin.decimal_point)
    if origin.is_typed:
        n_numbers = 0
    n_bad = n_cells - n_numbers
    numbers = np.asarray(style.numbers(cells).to_numpy())
    shown = style if _is_special(style, cells) else None
    no_numbers = trimmed.filter(np.isnan(numbers)).drop_null().to_pylist()
    words = Counter(word for word in no_numbers if word)
    if n_bad == 0:
        return _Judged(numbers, style=shown, gap_words=words)
    is_bad = pc.or_(pc.invert(style.matches(cells)), origin.is_typed)
    row = pc.index(is_bad, True).as_py()
    cell = quote(cells[row].as_py())
    first = f"{cell} in {origin.place(row)}"
    what = f"{n_bad:,} of {n_cells:,} cells that are not numbers, the first is {first}"
    # Beyond one cell in ten text is no slip: such columns hold codes (12A), or answers.
    if 10 * n_bad <= n_cells:
        text = f"Column {quote(name)} has {what}: taken as missing."
        cure = f"Mend the file, or leave the column out: --drop-columns {quote(name)}."
        warning = Note(f"{text} {cure}", text, loud=True)
        return _Judged(numbers, style=shown, warning=warning, gap_words=words)
    if 2 * n_bad <= n_cells:
        text = f"Left out column {quote(name)}, which has {what}."
        cure = "To cluster by it, mend these cells, or empty them."
        reason = f"{n_bad:,} of {n_cells:,} cells are not numbers"
        return _Judged(reason=reason, warning=Note(f"{text} {cure}", text, loud=True))
    known = cells.drop_null()
    date = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?$"
    if pc.all(pc.match_substring_regex(known, date)).as_py():
        return _Judged(reason="dates")
    alike = len(known.unique()) < len(column) or len(column) == 1
    return _Judged(reason=f"text such as {cell}", may_be_ids=not alike)


def _is_special(style: NumberStyle, cells: Any) -> bool:
    """Return whether numbers are written otherwise than machines do."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = cells.filter(style.matches(cells))
    try:
        plain = pc.cast(numbers, pa.float64())
    except pa.ArrowInvalid:
        return True
    return not plain.equals(pc.cast(style.numbers(numbers), pa.float64()))


def _style_phrase(names: list[str], columns: dict[str, Any], point: str) -> str:
    """Say how numbers were read that are written as people do, with an example."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = columns[names[0]].cast(pa.string()).drop_null()
    style, _ = number_style(column, point)
    numbers = style.numbers(column)
    # The longest has most of what is special: groups, decimals, signs.
    lengths = pc.if_else(pc.is_valid(numbers), pc.utf8_length(column), 0)
    place = pc.index(lengths, pc.max(lengths)).as_py()
    cell, number = column[place].as_py(), numbers[place].as_py()
    example = f"{quote(cell)} is {number:.12g}"
    return f"numbers as people write them in {quote_all(names)} ({example})"


def _looks_like_ids(name: str, column: Any, values: np.ndarray) -> bool:
    """Return whether a column is named as ids are, and holds different integers."""
    pattern = r"((?i:^|.*[ _.\-])(?i:u?u?id|key|no|nr|number)\.?|.*[a-z]I[Dd])$"
    # Programs name a column of row numbers so.
    row_numbers = name.lower() in ("index", "unnamed: 0")
    return bool(
        (row_numbers or re.match(pattern, name))
        and (values == np.round(values)).all()  # which NaN is not
        and len(column.unique()) == len(column) > 1
    )


def _looks_like_dates(values: np.ndarray) -> bool:
    """Return whether whole numbers are all days such as 20240131."""
    known = values[~np.isnan(values)]
    if known.min() < 19_000_101 or known.max() > 21_001_231:
        return False  # at once, where there are many columns
    month, day = known // 100 % 100, known % 100
    plausible = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    return bool((plausible & (day == np.round(day))).all())


def _looks_like_labels(name: str, column: Any) -> bool:
    """Return whether a column is named as labels are, and holds integers."""
    from pyarrow import types

    pattern = r"(?i)(.*[ _.\-])?(label|class|cluster|type|target)s?$"
    return bool(re.match(pattern, name) and types.is_integer(column.type))


# Columns of a labels file; the first two are the names of nothing else.
RESULTS = (
    "certainty",
    "outlier_score",
    "cluster",
    "scale",
    "size",
    "typical",
    "filled",
)


def _result_notes(names: Sequence[str], used: Sequence[str]) -> list[Note]:
    """Return a note if columns look like those that an earlier fit wrote."""
    lower = {name.lower() for name in names}
    mine = [name for name in used if name.lower() in RESULTS]
    is_clear = not lower.isdisjoint(RESULTS[:2]) or len(lower.intersection(RESULTS)) > 2
    if not mine or not is_clear:
        return []
    what = f"Clustered by {quote_all(mine)}, named as results of an earlier fit are"
    cure = f"To leave them out, add --drop-columns {quote(','.join(mine))}."
    return [Note(f"{what}. {cure}", f"{what}.")]


def _label_note(name: str) -> Note:
    what = f"Column {quote(name)} is used as a feature. If it holds known labels,"
    on_page = f"{what} it should be named as such and not be clustered by."
    return Note(f"{what} add --label-column {quote(name)}.", on_page)


def _python(
    read: str,
    names: Sequence[str],
    numbers: dict[str, np.ndarray],
    used: dict[str, _Judged],
) -> tuple[str, ...]:
    """Return the lines that take the same columns of a frame of pandas."""
    others = [name for name in names if name not in used]
    select = f"[{list(used)}]"
    in_order = list(used) == [name for name in names if name in used]
    if in_order and len(used) > 8 > len(others):
        select = f".drop(columns={others})" if others else ""
    if len(select) > 300:  # of many names, or long ones
        places = {name: place for place, name in enumerate(names)}
        select = f".iloc[:, {[places[name] for name in used]}]"
    lines = ["import pandas as pd", "", f"X = {read}{select}"]
    for style in {each.style for each in used.values() if each.style}:
        styled = [name for name, each in used.items() if each.style == style]
        strip = ascii(f"{style.groups}|[$€£¥%\\s]")
        change = f'.astype(str).str.replace({strip}, "", regex=True)'
        if style.decimal_point == ",":
            change += '.str.replace(",", ".")'
        these = str(styled)
        if len(these) > 300:
            these = f"X.columns[{[j for j, name in enumerate(used) if name in styled]}]"
        lines += [f"for name in {these}:", f"    X[name] = X[name]{change}"]
    styled_at_all = any(each.style for each in used.values())
    if styled_at_all or any(np.isnan(values).any() for values in numbers.values()):
        # Cells without a number, and those that are no numbers, are NaN.
        lines.append('X = X.apply(pd.to_numeric, errors="coerce")')
    return (*lines, "X = X.astype(float)")
