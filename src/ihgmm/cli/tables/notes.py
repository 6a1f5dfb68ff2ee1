"""What people are told about their data: a note for each thing that was done."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ihgmm.cli.tables.names import quote, quote_all
from ihgmm.cli.tables.numbers import WrittenNumbers
from ihgmm.cli.tables.table import Note
from ihgmm.words.phrases import counted, figure, percent, sentence

if TYPE_CHECKING:
    from ihgmm.estimators import ColumnScaler

MOST_COLUMNS = 40  # that are named in full: the reader is to look at them
MOST_LEFT_OUT = 30  # columns that are named on the screen

# The reading of files.

BY_BLOCKS = Note("The data are read block by block.")


def how_it_was_read(
    phrases: Sequence[str], written: WrittenNumbers | None = None
) -> list[Note]:
    """Say how a table was read, with an example of numbers as people write them."""
    phrases = list(phrases)
    if written is not None:
        example = f"{quote(written.text)} is {written.value:.12g}"
        names = quote_all(written.columns)
        phrases.append(f"numbers as people write them in {names} ({example})")

    return [Note(f"Read {', '.join(phrases)}.")] if phrases else []


def columns_chosen_by(n_rows: int) -> Note:
    """Say that a large file was not read whole to choose its columns."""
    return Note(f"{BY_BLOCKS} Columns were chosen by {n_rows:,} rows.")


def layer_of_fit(layer: str) -> Note:
    """Say which layer of a file was taken, if nobody named it."""
    return Note(f"Took layer {quote(layer)}, as the fit did.")


def changed_counts(
    path: Path, layer: str, change: str, other_layer: str | None
) -> Note:
    """Warn of counts that are "logged" or "centred", and name a layer that may not be.

    Cells of a type are multiples of one pattern in counts, and in nothing else.
    """
    remedy = "Give counts."
    if change == "logged":
        remedy = "Give counts, or undo the logarithm: np.expm1."

    if other_layer is not None:
        remedy = f"If {other_layer} has counts, take it: --layer {other_layer}."

    return Note(
        f"{layer} of {path} is {change}: cells of a type are then no multiples of one "
        f"pattern. {remedy}",
        is_warning=True,
    )


def names_of_genes(column: str) -> Note:
    """Say where names of genes come from."""
    return Note(f"Took names of genes from {column} of var.")


# The choice of columns and rows.


def column_of_fit(option: str, name: str) -> Note:
    """Say that a column has the part that it had in the fit."""
    return Note(f"Took {option} {quote(name)}, as the fit did.")


def no_column_of_ids(name: str) -> Note:
    """Say that rows have no names, where those of the fit had."""
    return Note(f"There is no {quote(name)}: rows go by their number.")


def ids_from_first_column(name: str) -> Note:
    """Say that the first column has the names of rows."""
    return Note(f"Took ids from the first column, {quote(name)}.")


def empty_rows(n_rows: int) -> Note:
    """Say how many rows are empty."""
    return Note(f"Left out {counted(n_rows, 'empty row')}.")


def missing_categories(column: str, n_missing: int, n_rows: int) -> Note:
    """Say how many cells of a category are empty."""
    count = f"({n_missing:,} of {n_rows:,} read)"
    return Note(f"Took missing cells of {quote(column)} {count} as none of its values.")


def new_categories(column: str, n_cells: int, example: str) -> Note:
    """Say how many cells of a category have a value that the fit did not know."""
    return Note(
        f"Took {counted(n_cells, 'cell')} of {quote(column)}, such as "
        f"{quote(example)}, as none of the fit's values."
    )


def columns_used(names: Sequence[str], thing: str) -> Note:
    """Say which columns, or words, are clustered by."""
    n_shown = MOST_COLUMNS if len(names) <= MOST_COLUMNS else 8
    return Note(f"Used {counted(len(names), thing)}: {quote_all(names, n_shown)}.")


def columns_left_out(left_out: Mapping[str, str]) -> list[Note]:
    """Say which columns are left out, and why: those of one reason together."""
    if not left_out:
        return []

    names_by_reason: dict[str, list[str]] = {}
    for name in list(left_out)[:MOST_LEFT_OUT]:
        names_by_reason.setdefault(left_out[name], []).append(name)

    groups = [
        f"{quote_all(names, MOST_LEFT_OUT)} ({reason})"
        for reason, names in names_by_reason.items()
    ]

    text = f"Left out {counted(len(left_out), 'column')}: {', '.join(groups)}"
    if len(left_out) > MOST_LEFT_OUT:
        text += f" and {len(left_out) - MOST_LEFT_OUT} more"
    return [Note(f"{text}.")]


def where_all_are_listed(left_out: Mapping[str, str]) -> list[Note]:
    """Say where people find columns that are left out and not named, if there are."""
    return [Note("--json lists all.")] if len(left_out) > MOST_LEFT_OUT else []


def shared_ids(n_sharing: int, n_rows: int, id_name: str) -> Note:
    """Say how many rows have the name of another."""
    return Note(
        f"{n_sharing:,} of {n_rows:,} rows share their {id_name!r} with another row: "
        "labels joined by it would be ambiguous."
    )


# Missing cells.


def wordless_texts(what: str) -> Note:
    """Warn of texts that are left out."""
    return Note(f"Left out {what}.", is_warning=True)


def missing_as_zero(n_cells: int, as_fit: bool) -> Note:
    """Say how many empty cells are taken for 0."""
    note = f"Read {counted(n_cells, 'missing cell')} as 0"
    return Note(f"{note}, as the fit did." if as_fit else f"{note}.")


def cells_filled_in(
    n_cells: int, share: float, where: str, names_zero: bool, is_warning: bool
) -> Note:
    """Say how many cells the model fills in; ``names_zero`` names the other way."""
    text = f"Filled in {counted(n_cells, 'missing cell')} ({percent(share)}), {where}."
    if names_zero:
        text += " If empty cells mean none, in all columns, add --missing zero."
    return Note(text, is_warning=is_warning)


def incomplete_rows(n_incomplete: int, n_rows: int, where: str, remedy: str) -> Note:
    """Warn of rows that are left out, and name a remedy if there is one."""
    text = f"Left out {n_incomplete:,} of {n_rows:,} rows, with missing cells {where}."
    return Note(f"{text} {remedy}" if remedy else text, is_warning=True)


# Columns in different units.

WEIGHTED_WORDS = Note("Weighed words by tf-idf: rare and repeated ones count more.")


def left_to_even_noise(columns: str) -> Note:
    """Say that columns stay as they are, since the model evens out their noise."""
    return Note(
        f"Left the columns as they are: --columns-as {columns} evens out their noise."
    )


ROOTS_OF_COUNTS = Note(
    "Left the columns as they are: they look like counts, and rows are compared by "
    "their roots. Another way to even out their noise is --columns-as counts."
)


def columns_prepared(
    scaler: "ColumnScaler", names: Sequence[str], *, is_chosen: bool, are_counts: bool
) -> Note:
    """Say what was done to columns, with one of each kind before and after, and why.

    ``is_chosen`` says whether the data chose the way, and so the reason is told.
    """
    decisions = np.array(scaler.decisions_)
    reason = f"{scaler.reason_[0].lower()}{scaler.reason_[1:]}"
    if (decisions == "left alone").all():
        return Note(
            f"Left the columns as they are: {reason} --prepare scale divides all by "
            "their deviation."
        )

    qualifier = ", far from 0," if is_chosen else ""

    phrases = {
        "divided": "divided {} by the deviation",
        "centred and divided": f"gave {{}}{qualifier} mean 0 and deviation 1",
    }

    changes = []
    for decision, phrase in phrases.items():
        places = np.flatnonzero(decisions == decision)
        if len(places):
            columns = phrase.format(counted(len(places), "column"))
            changes.append(f"{columns} ({_before_and_after(scaler, names, places[0])})")

    text = f"{sentence(', '.join(changes))}."
    if is_chosen:
        text += f" The reason: {reason}"

    if are_counts:
        text += " Another way to even it out is IhSC with --columns-as counts."
    return Note(text)


def _before_and_after(scaler: "ColumnScaler", names: Sequence[str], column: int) -> str:
    """Return the range of a column as it was, and as it became."""
    old_range = np.array([scaler.data_min_[column], scaler.data_max_[column]])
    new_range = (old_range - scaler.center_[column]) / scaler.scale_[column]

    before = " to ".join(map(figure, old_range))
    after = " to ".join(map(figure, new_range))
    return f"{quote(names[column])}: {before} became {after}"


# The fit.

NO_OUTLIERS = Note("No outliers were found.")


def wild_cells(n_cells: int, share: float) -> Note:
    """Say how many cells a fit treated as missing."""
    return Note(
        f"Treated {counted(n_cells, 'wild cell')} ({percent(share)}) as missing: the "
        "other cells of the row and the column do not explain such values."
    )


def clusters_of_classes(classes: Sequence[object]) -> Note:
    """Say which cluster stands for which known class."""
    names = ", ".join(f"{number} {quote(name)}" for number, name in enumerate(classes))
    return Note(f"Clusters stand for classes: {names}.")


# Later rows.


def rows_of_other_size(typical_scale: float) -> Note:
    """Warn that rows are much larger, or smaller, than those of the fit."""
    direction = "more" if typical_scale > 1 else "less"
    return Note(
        f"Half of the rows are {figure(typical_scale)} times as large as those of the "
        f"fit, or {direction}: are columns in the same units?",
        is_warning=True,
    )


def zero_rows(n_zero: int, n_rows: int, first: str) -> Note:
    """Warn of rows whose label means nothing."""
    return Note(
        f"{n_zero:,} of {n_rows:,} rows, the first is {first}, have nothing but zeros, "
        "or no cell: their label 0 means nothing.",
        is_warning=True,
    )
