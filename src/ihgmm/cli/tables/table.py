"""What is asked of the data, and the matrix that comes of it."""

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Self

import numpy as np

from ihgmm._warnings import PreparationWarning, ignored
from ihgmm.matrix import Matrix, as_matrix
from ihgmm.words.phrases import shorten


class Warned(str):
    """A note on the data that is a warning."""


@dataclass(frozen=True)
class Table:
    """A data matrix with what came beside it."""

    source: str  # the file, or the name of the data set
    X: Any  # n_samples by n_features: an array, sparse, or a Matrix that is on disk
    ids: np.ndarray  # a name for each row; its number, from 1, unless given
    places: np.ndarray  # of rows in the file, counted from 1
    id_name: str = "row"
    labels: np.ndarray | None = None  # those known, one for each row
    known: np.ndarray | None = None  # classes that teach the clusters
    batch: np.ndarray | None = None  # the batch of each row
    names: list[str] | None = None  # of the columns of X
    notes: Sequence[str] = ()  # on what was done to the data
    is_sparse: bool = False  # entries that are not stored are 0
    has_missing: bool = False  # cells are NaN, for the model to fill in
    is_mixed: bool = False  # columns may be in different units, as in a spreadsheet
    texts: np.ndarray | None = None  # of which the columns of X count words
    place_words: str = "row {}"
    left_out: dict[str, str] = field(default_factory=dict)  # columns, and why
    flags: Sequence[str] = ()  # columns that say whether a text has one of few values
    original: Any = None  # X before its columns were prepared, if they were
    scaler: Any = None  # what prepared them

    @property
    def on_disk(self) -> bool:
        """Whether rows are read block by block."""
        return isinstance(self.X, Matrix)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns of X, which it may have had to be given."""
        return self.names or place_names(self.X.shape[1])

    @property
    def named_data(self) -> Matrix:
        """X with the names of its columns, so that messages of a fit use them."""
        return as_matrix(self.X).named(self.column_names)

    @cached_property
    def cells(self) -> tuple[np.ndarray, ...]:
        """Rows that lack cells; by column the gaps, the least and the largest."""
        # The least number of an empty column is infinite. Data on disk are read once.
        from ihgmm.estimators.column_scaler import column_ranges

        parts = []
        for X in self.X.map(lambda block: block.array) if self.on_disk else [self.X]:
            # The estimator names the place of a NaN among sparse entries.
            empty = np.zeros((1, X.shape[1]), bool) if self.is_sparse else np.isnan(X)
            incomplete = np.broadcast_to(empty.any(axis=1), X.shape[0])
            parts.append((incomplete, empty.sum(axis=0), *column_ranges(X)))
        rows, gaps, low, high = zip(*parts, strict=True)
        ends = np.min(low, axis=0), np.max(high, axis=0)
        return np.concatenate(rows), np.sum(gaps, axis=0), *ends

    @property
    def quiet(self) -> AbstractContextManager[None]:
        """Where nobody is told to prepare columns that are prepared already."""
        return ignored(PreparationWarning) if self.scaler else nullcontext()

    @property
    def heading(self) -> str:
        """What people are told about the data first."""
        n, p = self.X.shape
        return f"{self.source}: {n:,} rows, {p:,} features"

    def noting(self, note: str, **changes: Any) -> Self:
        """Return a changed table with a further note."""
        return replace(self, notes=[*self.notes, note], **changes)

    def place(self, row: int) -> str:
        """Return where people find a row: by its id, or its place in the file."""
        if self.ids.dtype.kind == "O" and self.ids[row] is not None:
            return f"{self.id_name} {quote(self.ids[row])}"
        return self.place_words.format(self.places[row])

    def keep_rows(self, rows: np.ndarray) -> Self:
        """Return some rows."""
        X = self.X.keep_rows(rows) if self.on_disk else self.X[rows]
        beside = {name: getattr(self, name) for name in (*BESIDE, "texts", "places")}
        kept = {name: v[rows] for name, v in beside.items() if v is not None}
        return replace(self, X=X, **kept)

    def keep_columns(self, places: Sequence[int] | np.ndarray) -> Self:
        """Return some columns; where they had no names, they have them now."""
        chosen, names = np.array(places, dtype=int), self.column_names
        X = self.X.keep_columns(chosen) if self.on_disk else self.X[:, chosen]
        return replace(self, X=X, names=[names[place] for place in places])


# What a table has beside its matrix, and the option that names its column.
BESIDE = {"labels": "label_column", "ids": "id_column"}
BESIDE |= {"known": "known_column", "batch": "batch_column"}
NAMING = (*BESIDE.values(), "text_column", "columns", "drop_columns")


@dataclass(frozen=True)
class Request:
    """The data, and what is asked of its columns."""

    source: str  # a file, or the name of a data set
    memory: int  # bytes that the data may take
    label_column: str | None = None  # with known labels
    id_column: str | None = None  # with names of rows
    known_column: str | None = None  # with classes that teach the clusters
    batch_column: str | None = None  # with batches of rows
    text_column: str | None = None  # with texts, whose words are the features
    columns: Sequence[str] = ()  # to use; all that hold numbers, if empty
    drop_columns: Sequence[str] = ()  # to leave out
    use_categories: bool = False  # whether text with few values is used
    transpose: bool = False  # whether rows of the file are columns of the table
    layer: str | None = None  # of an AnnData file; X, if None
    sheet: str | None = None  # of a workbook; the one with most rows, if None
    fit: Any = None  # the SavedModel that the data are for

    @property
    def features(self) -> list[str] | None:
        """The columns of the model. Data without names pass as they are."""
        names = getattr(self.fit and self.fit.model, "feature_names_in_", None)
        return None if names is None else list(names)

    def named(self, *options: str) -> list[tuple[str, str]]:
        """Return the columns that options name, each after its option."""
        pairs = []
        for option in options or NAMING:
            value = getattr(self, option) or ()
            values = [value] if isinstance(value, str) else value
            pairs += [(as_option(option), name) for name in values]
        return pairs

    @property
    def used(self) -> Sequence[str]:
        """The columns to cluster by that are named: they hold no ids and no labels."""
        return [self.text_column] if self.text_column else self.features or self.columns

    def resolve(self, names: Sequence[str]) -> tuple[Self, list[str]]:
        """Return the request with the columns of the fit among these, and notes."""
        there, notes = set(names) - set(self.used), []
        changes: dict[str, Any] = {}
        for option in ("columns", "drop_columns"):  # in "a, b" the blank is no name's
            asked = getattr(self, option)
            changes[option] = [n if n in names else n.strip() for n in asked]
        for option in ("label_column", "id_column", "batch_column"):
            name = getattr(self.fit, option, None)
            if name is None or getattr(self, option) is not None:
                continue
            if name in there:
                changes[option] = name
                notes.append(f"Took {as_option(option)} {quote(name)}, as the fit did.")
            elif option == "id_column":
                notes.append(f"There is no {quote(name)}: rows go by their number.")
        return replace(self, **changes), notes

    def check(self, names: Sequence[str], where: str, *options: str) -> None:
        """Raise if an option names no column of ``where``, or one to cluster by."""
        for option, name in self.named(*options):
            check_there(option, name, names, where, "column")
            if name in self.used and option in map(as_option, BESIDE.values()):
                text = f"{option} {quote(name)}: that column is clustered by"
                raise ValueError(f"{text}; name another.")

    def check_features(self, names: Sequence[str]) -> None:
        """Raise if the data, which have these columns, lack some of the model."""
        features, there = self.features or (), set(names)
        # Categories are flags, such as vote=yes and vote=no, of one column of the data.
        kinds = Counter(name.partition("=")[0] for name in features)
        flags = {n: of for n in features if kinds[of := n.partition("=")[0]] > 1}
        missing = [*{flags.get(n, n): 0 for n in features if n not in there}]
        others = [name for name in names if name not in features]
        if missing:
            n_columns = len({flags.get(name, name) for name in features})
            raise ValueError(
                f"{self.source} lacks {len(missing)} of the {n_columns} columns "
                f"that the model was fitted on: {quote_all(missing)}"
                f"{near(missing[0], others)}. It has {quote_all(names)}."
            )

    def select(self, table: Table) -> Table:
        """Return the columns that are asked for, or those of the model in its order."""
        chosen, names = self.features, table.column_names
        # Of columns without names some may have been left out of the fit.
        if chosen and table.names is None and not set(chosen) < set(names):
            return table
        self.check_features(names)
        if chosen is None:
            self.check(names, self.source, "columns", "drop_columns")
            chosen = [n for n in self.columns or names if n not in self.drop_columns]
        if chosen == names:
            return table
        places = {name: place for place, name in enumerate(names)}
        return table.keep_columns([places[name] for name in chosen])


def as_option(name: str) -> str:
    """Return how the command line calls an argument."""
    return f"--{name.replace('_', '-')}"


def quote(name: object) -> str:
    """Return a name for a message: in quotes, short, nothing in it invisible."""
    return repr(shorten(str(name)))


def quote_all(names: Sequence[str], most: int = 8) -> str:
    """Return the first few of many names, for a message."""
    shown = ", ".join(quote(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def check_there(
    option: str, name: str, names: Sequence[str], where: str, thing: str
) -> None:
    """Raise if an option names a thing that is not there, and say what is."""
    if name not in names:
        raise ValueError(
            f"{option} {quote(name)}: {where} has no such {thing}{near(name, names)}; "
            f"it has {quote_all(names) or 'none'}."
        )


def near(name: str, names: Sequence[str]) -> str:
    """Return what to add to the message that there is no such name: the nearest one."""
    lower = {other.lower(): other for other in names}
    # At 0.6, the default, 'cluster' is near 'customer no.', which helps nobody.
    matches = get_close_matches(name.lower(), lower, n=1, cutoff=0.7)
    return f" (did you mean {lower[matches[0]]!r}?)" if matches else ""


def place_names(n_columns: int) -> list[str]:
    """Return what columns without names are called."""
    np.empty(n_columns, dtype=object)  # refuses at once what memory cannot hold
    return [f"col{i}" for i in range(1, n_columns + 1)]


def unique_names(names: Sequence[str]) -> list[str]:
    """Return names as pandas does: the second ``a`` is ``a.1``, none ``Unnamed: 0``."""
    names = [name or f"Unnamed: {i}" for i, name in enumerate(names)]
    taken, counts, unique = set(names), Counter[str](), dict[str, None]()
    for name in names:
        new = name
        # A name of the file is never given to another column.
        while new in unique or (new != name and new in taken):
            counts[name] += 1
            new = f"{name}.{counts[name]}"
        unique[new] = None
    return list(unique)
