"""Tables with named columns: which columns and rows are used, which not, and why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ihgmm.cli.tables.table import Note, Request, Table, quote, quote_all
from ihgmm.cli.tables.texts import LEAST, count_words
from ihgmm.cli.tables.totals import no_observations, totals
from ihgmm.matrix.delimited import Numbers, parse_numbers, place_names, unique_names
from ihgmm.words.phrases import counted, sentence

LONG_TEXT = 8  # words from which a cell is no name
# What a first column is called that has no name of its own.
NO_NAMES = ("Unnamed: 0", "row.names", "rownames")
WIDE = 100  # columns from which their names are those of words or genes


@dataclass(frozen=True)
class RawTable:
    """A table as a library reads it, and how it was read."""

    arrow: Any  # a table of pyarrow; its columns may have the same name
    phrases: Sequence[str] = ()  # such as "as UTF-16", to be told
    decimal_point: str = "."
    is_typed: bool = False  # text is text, even if it looks like numbers
    # Where people find each row in the file, from 1 if None, and in what words.
    places: np.ndarray | None = None
    place_words: str = "row {}"

    def place(self, row: int) -> str:
        """Return where people find a row."""
        number = row + 1 if self.places is None else self.places[row]
        return self.place_words.format(number)

    def keep_rows(self, rows: np.ndarray) -> RawTable:
        """Return some of the rows."""
        n = self.arrow.num_rows
        places = np.arange(1, n + 1) if self.places is None else self.places
        return replace(self, arrow=self.arrow.take(rows), places=places[rows])

    def transposed(self) -> RawTable:
        """Return the table with a row for each column, whose names come first.

        The first column has the names of the new ones, if it has anything like it.
        Columns of text are about the rows, and left out.
        """
        import pyarrow as pa

        raw = replace(
            self, arrow=self.arrow.rename_columns(unique_names(self.arrow.column_names))
        )
        columns = {name: _judge(name, raw, True) for name in raw.arrow.column_names}
        first = next(iter(columns))
        names: Sequence[str] = place_names(raw.arrow.num_rows)
        phrases = [*self.phrases, "rows as columns"]
        if _judge(first, raw, False).reason:
            names = [str(c.as_py() or "") for c in raw.arrow[first]]
            phrases[-1] += f", with the names in {quote(first)}"
            del columns[first]
        numbers = {
            name: column.numbers
            for name, column in columns.items()
            if not (column.numbers.is_text or np.isnan(column.numbers.values).all())
        }
        if len(numbers) < len(columns):
            others = [name for name in columns if name not in numbers]
            phrases.append(f"but not {quote_all(others)}, without numbers")
        if not numbers:
            return replace(raw, phrases=phrases)  # which has nothing to cluster by
        cells = np.column_stack([column.values for column in numbers.values()])
        made = list(map(pa.array, cells))
        # Rows with text, such as known labels, become columns of text.
        for row in {int(i) for column in numbers.values() for i in column.bad_rows}:
            made[row] = pa.array([str(raw.arrow[name][row]) for name in numbers])
        places = [raw.arrow.column_names.index(name) + 1 for name in numbers]
        return replace(
            raw,
            arrow=pa.table([pa.array([*numbers]), *made], ["column", *names]),
            phrases=phrases,
            places=np.array(places),
            place_words="column {}",
        )


@dataclass(frozen=True)
class _Column:
    """A column, and what is made of it."""

    numbers: Numbers
    reason: str = ""  # why it is not used; "" if it is
    may_be_ids: bool = False
    warning: Note | None = None


def choose_columns(raw: RawTable, request: Request, *, is_whole: bool = True) -> Table:
    """Make a table of the columns that hold numbers, with what came beside them.

    Of a table that ``is_whole``, rows that are no observations are left out, and
    columns that sum up others: the former drown all else, the latter say nothing new.
    Columns that are asked for by name stay, and those of a model, which labels every
    row in which something stands.
    """
    import pyarrow as pa

    written = raw.arrow.column_names
    names = unique_names(written)
    new = [n for n, old in zip(names, written, strict=True) if n != old and old]
    phrases = list(raw.phrases)
    if new:
        phrases.append(f"columns that have the name of another one as {quote_all(new)}")
    raw = replace(raw, arrow=raw.arrow.rename_columns(names), phrases=phrases)
    if raw.arrow.num_rows == 0:
        raise ValueError(f"{request.source} has a header but no rows.")
    request, notes = find_ids(raw, request)
    request.check(names, list(request.named), request.source)
    if request.text_column is None:
        request.check_features(names)
    for option in ("--label-column", "--id-column"):
        for name in request.named[option]:
            kind = raw.arrow.schema.field(name).type
            if pa.types.is_nested(kind):
                raise ValueError(
                    f"{option} {quote(name)}: that column of {request.source} holds "
                    f"{kind}; give one of text or numbers."
                )
    if request.text_column is not None:
        return _words(raw, request, notes)
    asked = list(request.features or request.columns)
    beside = {request.label_column, request.id_column, *request.drop_columns}
    tried = asked or [name for name in names if name not in beside]
    columns = {name: _judge(name, raw, bool(asked)) for name in tried}
    used = [name for name in tried if not columns[name].reason]
    rows = np.arange(raw.arrow.num_rows)
    if is_whole and used:
        X = np.column_stack([columns[name].numbers.values for name in used])
        rows, row_notes = _observations(X, raw, request)
        notes += row_notes
        if len(rows) < len(X):  # the others may have made text of a column
            raw = raw.keep_rows(rows)
            columns = {name: _judge(name, raw, bool(asked)) for name in tried}
            used = [name for name in tried if not columns[name].reason]
    left_out = {name: columns[name].reason for name in tried if columns[name].reason}
    for name, reason in left_out.items() if asked else ():
        raise ValueError(
            f"{request.source}: column {quote(name)} cannot be used: {reason}."
        )
    layout = _layout_hints(raw, request)
    if not used or (len(used) == 1 and layout):
        what = f"only {quote(used[0])} as a column" if used else "no columns"
        raise ValueError(
            f"{request.source} has {what} of numbers to cluster by; it has "
            f"{quote_all(names)}. {left_out_note(left_out)} "
            f"{' '.join(map(str, layout))}".rstrip()
        )
    numbers = {name: columns[name].numbers for name in used}
    hints = [] if asked else layout + _hints(request, columns)
    warnings = [column.warning for column in columns.values() if column.warning]
    table = Table(
        request.source,
        np.column_stack([column.values for column in numbers.values()]),
        **_beside(raw, request, rows),
        names=used,
        notes=[*_reading_notes(raw, numbers), *notes, *hints, *warnings],
        is_mixed=True,
        left_out=left_out,
    )
    return table if asked or not is_whole else _leave_out_totals(table)


def find_ids(raw: RawTable, request: Request) -> tuple[Request, list[Note]]:
    """Return the request with the columns of ids and labels, and notes of them.

    A first column without a name has ids, if it holds text that is nowhere the same.
    """
    names = unique_names(raw.arrow.column_names)
    request, notes = request.resolve(names)
    raw, first = replace(raw, arrow=raw.arrow.rename_columns(names)), names[0]
    asked = {name for named in request.named.values() for name in named}
    if request.id_column is not None or first in asked:
        return request, notes
    if first in NO_NAMES:
        column = _judge(first, raw, False)
        if column.may_be_ids and column.numbers.is_text:
            notes.append(Note("Took ids from the first column, which has no name."))
            return replace(request, id_column=first, id_name="row"), notes
    return replace(request, id_column=first if request.transpose else None), notes


def is_turned(raw: RawTable, request: Request) -> bool:
    """Tell whether rows, not columns, have the names of the columns of the model."""
    features = set(request.features or ())
    names = raw.arrow.column_names
    if not features or request.text_column or features <= set(unique_names(names)):
        return False
    cells = [str(cell or "") for cell in raw.arrow.column(0).to_pylist()]
    return features <= set(unique_names(cells))


def _beside(raw: RawTable, request: Request, rows: np.ndarray) -> dict[str, Any]:
    """Return what a table has beside its matrix: ids, labels and places of rows."""
    ids, labels = (
        None if name is None else np.array(raw.arrow[name].to_pylist(), dtype=object)
        for name in (request.id_column, request.label_column)
    )
    return {
        "ids": rows + 1 if ids is None else ids,
        "id_name": request.ids_called,
        "labels": labels,
        "places": raw.places,
        "place_words": raw.place_words,
    }


def _words(raw: RawTable, request: Request, notes: list[Note]) -> Table:
    """Make a table of the words of a column of texts; other columns have no part."""
    name, words = str(request.text_column), request.features
    numbers = _judge(name, raw, True).numbers
    if not numbers.is_text:
        raise ValueError(
            f"--text-column {quote(name)}: that column of {request.source} holds no "
            "texts; give one that does."
        )
    cells = numbers.cells.fill_null("").to_pylist()
    try:
        X, names = count_words(cells, words)
    except ValueError:
        raise ValueError(
            f"--text-column {quote(name)}: the {counted(len(cells), 'text')} of "
            f"{request.source} have no word that is in {LEAST} of them or more; give "
            "more texts, or longer ones."
        ) from None
    notes = [*_reading_notes(raw, {}), *notes]
    if words is None:
        own = {name, request.id_column, request.label_column}
        others = [other for other in raw.arrow.column_names if other not in own]
        text = f"Used {counted(len(names), 'word')} of column {quote(name)}: those in "
        notes.insert(0, Note(f"{text}{LEAST} texts or more."))
        left_out = left_out_note(dict.fromkeys(others, "beside the texts"))
        notes += [Note(left_out)] * bool(others)
    return Table(
        request.source,
        X,
        **_beside(raw, request, np.arange(len(cells))),
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
    import pyarrow as pa

    column, types = raw.arrow[name], pa.types
    nothing = Numbers(np.full(len(column), np.nan), None)
    if types.is_temporal(column.type):
        return _Column(nothing, "dates")
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if any(is_kind(column.type) for is_kind in (*numeric, types.is_null)):
        # Whole numbers of more than 16 digits are rounded, not refused.
        values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy())
        judged = _Column(Numbers(values, None), "empty" * bool(np.isnan(values).all()))
    else:
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if not (types.is_string(column.type) or types.is_large_string(column.type)):
            return _Column(nothing, f"holds {column.type}, not numbers")
        numbers = parse_numbers(column.cast(pa.string()), raw.decimal_point)
        if raw.is_typed:
            numbers = Numbers(nothing.values, numbers.cells)
        judged = _judge_text(name, numbers, raw)
    values = judged.numbers.values
    if judged.reason or asked:
        return judged
    known = values[~np.isnan(values)]
    # Among many columns a name is a word or a gene, and says nothing of this kind.
    is_wide = raw.arrow.num_columns > WIDE
    reason = no_measurement("" if is_wide else name, known)
    if reason:
        differ = len(np.unique(known)) == len(values) > 1
        return replace(judged, reason=reason, may_be_ids=differ)
    if known.min() >= 19_000_101 and known.max() <= 21_001_231 and _are_whole(known):
        month, day = known // 100 % 100, known % 100
        if ((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all():
            return replace(judged, reason="dates")  # such as 20240131
    return judged


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
    return "codes, as its name says" if re.fullmatch(_CODED, name) else ""


def _are_whole(values: np.ndarray) -> bool:
    return bool((values == np.round(values)).all())  # which NaN is not


def _judge_text(name: str, numbers: Numbers, raw: RawTable) -> _Column:
    """Judge a column of text, in which not all cells need be numbers."""
    import pyarrow.compute as pc

    known, bad = numbers.cells.drop_null(), numbers.bad_rows
    if len(known) == 0:
        return _Column(numbers, "empty")
    if len(bad) == 0:
        return _Column(numbers)
    cell = quote(numbers.cells[int(bad[0])].as_py())
    count = f"{len(bad):,} of {len(known):,} cells"
    first = f"the first is {cell} in {raw.place(int(bad[0]))}"
    # Beyond one cell in ten text is no slip: such columns hold codes (12A), or answers.
    if 10 * len(bad) <= len(known):
        text = f"Column {quote(name)} has {count} that are not numbers, {first}: taken"
        cure = f"Mend the file, or leave the column out: --drop-columns {quote(name)}."
        return _Column(numbers, warning=Note(f"{text} as missing.", cure, loud=True))
    if 2 * len(bad) <= len(known):
        text = f"Left out column {quote(name)}, which has {count} that are not numbers"
        cure = "To cluster by it, mend these cells, or empty them."
        warning = Note(f"{text}, {first}.", cure, loud=True)
        return _Column(numbers, f"{count} are not numbers", warning=warning)
    date = r"^(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?|\d{1,2}:\d\d(:\d\d)?)$"
    if pc.all(pc.match_substring_regex(known, date)).as_py():
        return _Column(numbers, "dates")
    n_cells = len(numbers.cells)
    alike = len(known.unique()) < n_cells or n_cells == 1
    is_long = len(known[0].as_py().split()) >= LONG_TEXT
    reason = f"text such as {cell}"
    return _Column(numbers, reason, may_be_ids=not (alike or is_long))


# Rows and columns that sum up others


def _observations(
    X: np.ndarray, raw: RawTable, request: Request
) -> tuple[np.ndarray, list[Note]]:
    """Return the rows that are used, and notes of the others."""
    others = no_observations(X, raw.arrow)
    empty = [row for row, what in others.items() if what == ""]
    notes = [Note(f"Left out {counted(len(empty), 'empty row')}.")] * bool(empty)
    texts = []
    for row, what in sorted(others.items()):
        place = raw.place(row)
        if request.id_column and (name := raw.arrow[request.id_column][row].as_py()):
            place = f"{request.ids_called} {quote(name)}"
        if what and (request.features is None or what.startswith("is")):
            texts.append(f"{place} {what}")
    shown = ", ".join(texts[:4]) + f", and {len(texts) - 4} more" * (len(texts) > 4)
    if texts and request.features is None:
        what = "a row that is no observation"
        if len(texts) > 1:
            what = f"{len(texts):,} rows that are no observations"
        notes.append(Note(f"Left out {what}: {shown}.", loud=True))
    elif texts:
        label = "its label means" if len(texts) == 1 else "their labels mean"
        notes.append(Note(f"{sentence(shown)}: {label} nothing.", loud=True))
    gone = list(others) if request.features is None else empty
    return np.setdiff1d(np.arange(len(X)), gone), notes


def _leave_out_totals(table: Table, most: int = 500) -> Table:
    """Leave out columns that sum up others, of tables as people keep them."""
    X, names = table.X, table.column_names
    # A total shows in some of the rows.
    sums = totals(X[:: 1 + len(X) // 1000].T) if X.shape[1] <= most else {}
    reasons = {
        names[place]: f"the sum of {len(parts)} columns, {quote(names[parts[0]])} to "
        f"{quote(names[parts[-1]])}"
        for place, parts in sums.items()
    }
    kept = table.keep_columns(np.setdiff1d(np.arange(len(names)), list(sums)))
    return replace(kept, left_out=table.left_out | reasons) if sums else table


# What is said


def _reading_notes(raw: RawTable, columns: dict[str, Numbers]) -> list[Note]:
    """Say how a table was read, with an example of numbers as people write them."""
    phrases = list(raw.phrases)
    special = [name for name, numbers in columns.items() if numbers.point]
    if special:
        numbers = columns[special[0]]
        # The longest has most of what is special: groups, decimals, signs.
        lengths = np.array([len(str(cell)) for cell in numbers.cells.to_pylist()])
        row = int(np.argmax(np.where(np.isnan(numbers.values), 0, lengths)))
        example = f"{quote(numbers.cells[row])} is {numbers.values[row]:.12g}"
        which = quote_all(special)
        phrases.append(f"numbers as people write them in {which} ({example})")
    return [Note(f"Read {', '.join(phrases)}.")] if phrases else []


def _layout_hints(raw: RawTable, request: Request) -> list[Note]:
    """Return the options for tables of genes by samples, and for columns of text."""
    import pyarrow as pa

    hints, (n, p), names = [], raw.arrow.shape, raw.arrow.column_names
    barcodes = [name for name in names if re.match("[ACGT]{8}", name)]
    is_tall = n >= max(500, 10 * p) or 2 * len(barcodes) > p
    beside = (request.id_column, request.label_column, *request.drop_columns)
    for place, (name, column) in enumerate(zip(names, raw.arrow.columns, strict=True)):
        if not pa.types.is_string(column.type):
            continue
        cells = [str(cell or "") for cell in column.slice(0, 200).to_pylist()]
        if place == 0 and is_tall and _look_like_genes(cells):
            text = f"Rows look like genes ({quote(cells[0])}), and they are clustered."
            hints.append(Note(text, "To cluster the columns, add --transpose."))
        n_words = float(np.median([len(cell.split()) for cell in cells]))
        if n_words >= LONG_TEXT and name not in beside:
            text = f"Column {quote(name)} holds texts of some {n_words:.0f} words."
            cure = f"To cluster by their words, add --text-column {quote(name)}."
            hints.append(Note(text, cure))
    return hints


def _look_like_genes(cells: list[str]) -> bool:
    """Tell whether most cells are ids of Ensembl, or symbols such as TP53 or Trp53."""
    ensembl = sum(bool(re.fullmatch(r"ENS[A-Z]*\d{6,}(\.\d+)?", c)) for c in cells)
    symbols = [c for c in cells if re.fullmatch(r"[A-Z][A-Za-z0-9.\-]{1,14}", c)]
    stems = {re.split(r"\d", c)[0] for c in symbols}  # codes such as C001 share one
    with_digits = sum(any(map(str.isdigit, c)) for c in symbols)
    are_symbols = len(symbols) >= 0.8 * len(cells) and 3 * len(stems) >= len(cells)
    return ensembl >= 0.8 * len(cells) or (are_symbols and 3 * with_digits > len(cells))


def _hints(request: Request, columns: dict[str, _Column]) -> list[Note]:
    """Return what people may want to know of columns named as labels or ids are."""
    hints = []
    pattern = r"(?i)(.*[ _.\-])?(label|class|cluster|type|target)s?$"
    for name, column in columns.items():
        is_named = re.match(pattern, name) and not column.reason
        if is_named and _are_whole(column.numbers.values):
            text = f"Column {quote(name)} is used as a feature."
            cure = f"If it holds known labels, add --label-column {quote(name)}."
            hints.append(Note(text, cure))
    ids = [name for name, column in columns.items() if column.may_be_ids]
    if ids and request.id_column is None:
        name = quote(ids[0])
        hint = f"If column {name} names the rows, add --id-column {name}"
        if not columns[ids[0]].numbers.is_text:
            hint += "; to cluster by numbers in it, name it in --columns"
        hints.append(Note("", f"{hint}."))
    numbers = [
        quote(name)
        for name, column in columns.items()
        if column.reason and not column.may_be_ids and _are_whole(column.numbers.values)
    ]
    if numbers:
        hint = (
            f"To cluster by {numbers[0]} as well, name it in --columns with the rest."
        )
        hints.append(Note("", hint))
    return hints
