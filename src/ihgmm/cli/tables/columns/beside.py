"""Columns beside the features: ids, known labels, classes that teach, batches."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ihgmm.cli.tables import notes
from ihgmm.cli.tables.columns.judging import is_nested, judge_column
from ihgmm.cli.tables.columns.measurement import NO_NAMES
from ihgmm.cli.tables.files.raw_table import RawTable
from ihgmm.cli.tables.names import as_option, quote
from ihgmm.cli.tables.numbers import NOT_KNOWN
from ihgmm.cli.tables.request import Request
from ihgmm.cli.tables.table import Note, RowFacts

if TYPE_CHECKING:
    import pandas as pd


def find_ids(raw: RawTable, request: Request) -> tuple[Request, list[Note]]:
    """Return the request with the columns of ids and labels, and notes of them."""
    first = raw.frame.columns[0]
    request, messages = request.resolve(list(raw.frame.columns))

    names = [name for _, name in request.named_columns()]
    if request.id_column is not None or first in names:
        return request, messages

    if request.transpose:  # the first column has the names of columns
        return replace(request, id_column=first), messages

    if first in NO_NAMES:
        column = judge_column(first, raw, is_asked=False)
        if column.is_text and column.texts is not None and column.texts.is_unique:
            messages.append(notes.ids_from_first_column(first))
            return replace(request, id_column=first), messages
    return request, messages


def row_facts(
    frame: "pd.DataFrame | None",
    request: Request,
    *,
    ids: np.ndarray,
    places: np.ndarray,
    id_name: str = "row",
    place_words: str = "row {}",
) -> RowFacts:
    """Return what is beside a matrix, None where not known; ids may be given."""
    labels = _classes(frame, request, "label_column")

    named_ids = _named_cells(frame, request, "id_column")
    if named_ids is not None:
        # A row may be called NA.
        ids = named_ids.where(named_ids.notna(), None).to_numpy()
        if request.id_column is not None and request.id_column not in NO_NAMES:
            id_name = request.id_column

    return RowFacts(
        ids=ids,
        places=places,
        id_name=id_name,
        place_words=place_words,
        labels=labels,
        known_classes=_classes(frame, request, "known_column"),
        batches=_classes(frame, request, "batch_column"),
    )


def _classes(
    frame: "pd.DataFrame | None", request: Request, option: str
) -> np.ndarray | None:
    """Return the class of each row, None where the cell says that it is not known."""
    cells = _named_cells(frame, request, option)
    if cells is None:
        return None
    is_unknown = cells.isna() | cells.map(str).str.strip().isin(NOT_KNOWN)
    return cells.where(~is_unknown, None).to_numpy()


def _named_cells(
    frame: "pd.DataFrame | None", request: Request, option: str
) -> "pd.Series | None":
    """Return the column that an option names, if it names one."""
    name = getattr(request, option)
    if frame is None or not name:
        return None

    cells = frame[name].astype(object)
    if any(map(is_nested, cells)):
        raise ValueError(
            f"{as_option(option)} {quote(name)}: that column of {request.source} holds "
            "lists; give one of text or numbers."
        )
    return cells
