"""The data of a command: a matrix, what is beside it, and what people are told."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from ihgmm._warnings import PreparationWarning, ignored
from ihgmm.cli.tables.names import numbered_names, quote
from ihgmm.matrix import Matrix, as_matrix


@dataclass(frozen=True)
class Note:
    """A sentence on what was done to the data; warnings are shown in any case."""

    text: str
    is_warning: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class RowFacts:
    """What is known about each row beside its features, None where nothing is."""

    ids: np.ndarray  # a name for each row; its number, from 1, unless given
    places: np.ndarray  # of rows in the file, counted from 1
    id_name: str = "row"
    place_words: str = "row {}"  # with the place in the braces
    labels: np.ndarray | None = None  # known labels, to compare with
    known_classes: np.ndarray | None = None  # classes that teach the clusters
    batches: np.ndarray | None = None
    texts: np.ndarray | None = None  # whose words are the features

    def take(self, rows: np.ndarray) -> Self:
        """Return what is known of some rows."""
        return replace(
            self,
            ids=self.ids[rows],
            places=self.places[rows],
            labels=_taken(self.labels, rows),
            known_classes=_taken(self.known_classes, rows),
            batches=_taken(self.batches, rows),
            texts=_taken(self.texts, rows),
        )

    def place(self, row: int) -> str:
        """Return where people find a row: by its id, or its place in the file."""
        if self.ids.dtype.kind == "O" and self.ids[row] is not None:
            return f"{self.id_name} {quote(self.ids[row])}"
        return self.place_words.format(self.places[row])


def _taken(values: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if values is None else values[rows]


@dataclass(frozen=True)
class CellSummary:
    """Where cells are missing, and the range of each column."""

    is_incomplete_row: np.ndarray  # (n_samples,)
    n_missing: np.ndarray  # (n_features,)
    minima: np.ndarray  # (n_features,); infinite where a column is empty
    maxima: np.ndarray  # (n_features,); minus infinity where a column is empty

    @property
    def n_missing_cells(self) -> int:
        """The number of missing cells in all columns."""
        return int(self.n_missing.sum())


@dataclass(frozen=True)
class Table:
    """A data matrix with what came beside it."""

    source: str  # the file, or the name of the data set
    X: Any  # n_samples by n_features: an array, sparse, or a Matrix that is on disk
    rows: RowFacts
    names: list[str] | None = None  # of the columns of X
    notes: Sequence[Note] = ()  # on what was done to the data
    is_sparse: bool = False  # entries that are not stored are 0
    has_missing: bool = False  # cells are NaN, for the model to fill in
    is_mixed: bool = False  # columns may be in different units, as in a spreadsheet
    left_out: dict[str, str] = field(default_factory=dict)  # columns, and why
    flags: Sequence[str] = ()  # columns that say whether a text has one of few values
    original: Any = None  # X before its columns were prepared, if they were
    scaler: Any = None  # the transformer that prepared them

    @property
    def is_on_disk(self) -> bool:
        """Whether rows are read block by block."""
        return isinstance(self.X, Matrix)

    @property
    def has_texts(self) -> bool:
        """Whether the columns of X count the words of texts."""
        return self.rows.texts is not None

    @property
    def column_names(self) -> list[str]:
        """The names of the columns of X, which it may have had to be given."""
        return self.names or numbered_names(self.X.shape[1])

    @property
    def named_data(self) -> Matrix:
        """X with the names of its columns, so that messages of a fit use them."""
        return as_matrix(self.X).named(self.column_names)

    @cached_property
    def cells(self) -> CellSummary:
        """Missing cells and ranges; data on disk are read once."""
        if self.is_on_disk:
            blocks = self.X.map(lambda block: block.array)
            return _joined([_summary(block, self.is_sparse) for block in blocks])
        return _summary(self.X, self.is_sparse)

    @property
    def without_advice_to_prepare(self) -> AbstractContextManager[None]:
        """Where nobody is told to prepare columns that are prepared already."""
        return ignored(PreparationWarning) if self.scaler else nullcontext()

    @property
    def heading(self) -> str:
        """What people are told about the data first."""
        n_samples, n_features = self.X.shape
        return f"{self.source}: {n_samples:,} rows, {n_features:,} features"

    def with_notes(self, *notes: Note) -> Self:
        """Return the table with further notes."""
        return replace(self, notes=[*self.notes, *notes])

    def keep_rows(self, rows: np.ndarray) -> Self:
        """Return some rows."""
        X = self.X.keep_rows(rows) if self.is_on_disk else self.X[rows]
        return replace(self, X=X, rows=self.rows.take(rows))

    def keep_columns(self, places: Sequence[int] | np.ndarray) -> Self:
        """Return some columns; where they had no names, they have them now."""
        positions = np.array(places, dtype=int)
        names = self.column_names

        X = self.X.keep_columns(positions) if self.is_on_disk else self.X[:, positions]

        return replace(self, X=X, names=[names[place] for place in places])


def _summary(X: Any, is_sparse: bool) -> CellSummary:
    """Return missing cells and ranges of an array."""
    from ihgmm.estimators.column_scaler import column_ranges

    # The estimator names the place of a NaN among sparse entries.
    is_missing = np.zeros((1, X.shape[1]), bool) if is_sparse else np.isnan(X)

    minima, maxima = column_ranges(X)
    return CellSummary(
        is_incomplete_row=np.broadcast_to(is_missing.any(axis=1), X.shape[0]),
        n_missing=is_missing.sum(axis=0),
        minima=minima,
        maxima=maxima,
    )


def _joined(parts: Sequence[CellSummary]) -> CellSummary:
    """Return the summary of all rows from those of blocks of rows."""
    return CellSummary(
        is_incomplete_row=np.concatenate([part.is_incomplete_row for part in parts]),
        n_missing=np.sum([part.n_missing for part in parts], axis=0),
        minima=np.min([part.minima for part in parts], axis=0),
        maxima=np.max([part.maxima for part in parts], axis=0),
    )
