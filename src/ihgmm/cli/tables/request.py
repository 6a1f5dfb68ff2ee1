"""What is asked of the data: which file, which columns, and how they are prepared."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Self

from ihgmm._parameters import check_choice
from ihgmm.cli.tables import notes
from ihgmm.cli.tables.names import (
    as_option,
    check_there,
    nearest_hint,
    quote,
    quote_all,
)
from ihgmm.cli.tables.table import Note, Table

if TYPE_CHECKING:
    from ihgmm.storage import SavedModel

# Options that name a column that is no feature, and all that name columns.
BESIDE = ("label_column", "id_column", "known_column", "batch_column")
NAMING = (*BESIDE, "text_column", "columns", "drop_columns")


class NamedColumn(NamedTuple):
    """A column that an option names."""

    option: str  # as people type it
    name: str


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
    fit: "SavedModel | None" = None  # the saved model that the data are for

    @property
    def features(self) -> list[str] | None:
        """The columns of the model; None without a model, or if it knows no names."""
        if self.fit is None:
            return None
        names = getattr(self.fit.model, "feature_names_in_", None)
        return None if names is None else list(names)

    @property
    def names_to_cluster_by(self) -> Sequence[str]:
        """The columns to cluster by, if names are given: no ids or labels are there."""
        if self.text_column:
            return [self.text_column]
        return self.features or self.columns

    def named_columns(self, options: Sequence[str] = NAMING) -> list[NamedColumn]:
        """Return the columns that options name, each with its option."""
        pairs = []
        for option in options:
            value = getattr(self, option) or ()
            names = [value] if isinstance(value, str) else value
            pairs += [NamedColumn(as_option(option), name) for name in names]
        return pairs

    def resolve(self, names: Sequence[str]) -> tuple[Self, list[Note]]:
        """Return the request as it is for columns of these names, and notes on that.

        Blanks around names are left out, and columns are taken from where the fit did.
        """
        request = replace(
            self,
            columns=_without_blanks(self.columns, names),
            drop_columns=_without_blanks(self.drop_columns, names),
        )

        return request._with_columns_of_fit(set(names) - set(self.names_to_cluster_by))

    def _with_columns_of_fit(self, names: set[str]) -> tuple[Self, list[Note]]:
        """Take labels, ids and batches from where the fit did, if they are there."""
        request = self
        messages = []
        for option in ("label_column", "id_column", "batch_column"):
            name = getattr(self.fit, option, None)  # also without a fit
            if name is None or getattr(self, option) is not None:
                continue

            if name in names:
                request = replace(request, **{option: name})
                messages.append(notes.column_of_fit(as_option(option), name))
            elif option == "id_column":
                messages.append(notes.no_column_of_ids(name))
        return request, messages

    def check(
        self, names: Sequence[str], where: str, options: Sequence[str] = NAMING
    ) -> None:
        """Raise if an option names a column that is not there, or one to cluster by."""
        beside = [as_option(option) for option in BESIDE]
        for option, name in self.named_columns(options):
            check_there(option, name, names, where, "column")
            if name in self.names_to_cluster_by and option in beside:
                text = f"{option} {quote(name)}: that column is clustered by"
                raise ValueError(f"{text}; name another.")

    def check_features(self, names: Sequence[str]) -> None:
        """Raise if the data, which have these columns, lack some of the model."""
        features = self.features or []
        column_of = columns_of_flags(features)

        available = set(names)
        lacking = [column_of[name] for name in features if name not in available]
        lacking = list(dict.fromkeys(lacking))

        if lacking:
            n_columns = len(set(column_of.values()))
            new_names = [name for name in names if name not in features]
            raise ValueError(
                f"{self.source} lacks {len(lacking)} of the {n_columns} columns "
                f"that the model was fitted on: {quote_all(lacking)}"
                f"{nearest_hint(lacking[0], new_names)}. It has {quote_all(names)}."
            )

    def select(self, table: Table) -> Table:
        """Return the columns that are asked for, or those of the model in its order."""
        names = table.column_names
        features = self.features
        # Columns without names are numbered. If the model has only some of the numbers,
        # the fit left out the others; else all stay, whatever it calls them.
        if features and table.names is None and not set(features) < set(names):
            return table

        self.check_features(names)
        if features is None:
            self.check(names, self.source, ("columns", "drop_columns"))
            candidates = self.columns or names
            features = [name for name in candidates if name not in self.drop_columns]

        if features == names:
            return table

        places = {name: place for place, name in enumerate(names)}
        return table.keep_columns([places[name] for name in features])


def columns_of_flags(features: Sequence[str]) -> dict[str, str]:
    """Return the column of the data that each feature of a model comes from.

    Categories are flags, such as ``vote=yes`` and ``vote=no``, of one column.
    """
    columns = {name: name.partition("=")[0] for name in features}
    n_features = Counter(columns.values())
    return {
        name: column if n_features[column] > 1 else name
        for name, column in columns.items()
    }


def _without_blanks(asked: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return names, without the blanks of "a, b" unless a column has them as well."""
    return [name if name in names else name.strip() for name in asked]


@dataclass(frozen=True)
class PreparationRequest:
    """How the columns of a table are made ready for a model."""

    missing: str = "auto"  # what becomes of missing cells
    prepare: str = "auto"  # what becomes of columns in different units
    model_fills_cells: bool = True  # whether the model can fill missing cells in
    spares_wild_cells: bool = False  # whether scalers are learnt without these
    columns: str = "given"  # what the model does to columns by itself

    def check(self) -> None:
        """Raise if an option has a value that is not known."""
        from ihgmm.estimators.column_scaler import METHODS

        check_choice("missing", self.missing, ("auto", "fit", "zero", "drop", "error"))
        check_choice("prepare", self.prepare, METHODS)
