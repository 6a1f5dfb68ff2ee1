"""A model fitted to the rows of a table, for commands that describe its clusters."""

from typing import Any

import numpy as np

from ihgmm._warnings import PreparationWarning, UnstableLabelsWarning, ignored
from ihgmm.cli.options import Fitting, Reading
from ihgmm.cli.screen import Screen
from ihgmm.cli.tables import notes
from ihgmm.cli.tables.reading import read_table
from ihgmm.cli.tables.request import PreparationRequest
from ihgmm.cli.tables.table import Note, Table


def fit_table(
    data: str, fitting: Fitting, reading: Reading, screen: Screen
) -> tuple[Any, Table]:
    """Return a fitted model and its data."""
    # What cannot be done is refused before the data are read.
    model = fitting.model(reading.missing)

    table = _read(data, model, fitting, reading, screen)
    if table.has_missing:
        model.missing = "fit"
    _fit(model, table, fitting.method, screen)
    return model, table.with_notes(*_notes_on_fit(model, table))


def _read(
    data: str, model: Any, fitting: Fitting, reading: Reading, screen: Screen
) -> Table:
    """Return the data, prepared for a model."""
    preparation = PreparationRequest(
        missing=reading.missing,
        prepare=reading.prepare,
        model_fills_cells=model.missing is not None,
        spares_wild_cells=_looks_for_wild_cells(model),
        columns=_treatment_of_columns(model),
    )

    with screen.working(f"reading {data}"):
        return read_table(reading.request(data), preparation)


def _treatment_of_columns(model: Any) -> str:
    """Return what a model does to columns by itself, "given" for nothing."""
    columns: str = model.get_params().get("columns", "given")
    if columns in ("auto", "roots") and (model.signed or model.recipe == "paper"):
        return "given"  # neither ever takes roots
    return columns


def _looks_for_wild_cells(model: Any) -> bool:
    return getattr(model, "outliers", None) == "cells"


def _fit(model: Any, table: Table, method: str, screen: Screen) -> None:
    """Fit a model, and teach it what is known of the rows."""
    # Only what is known is passed on: other methods have no such arguments.
    known_facts: dict[str, np.ndarray] = {}
    if table.rows.known_classes is not None:
        known_facts["known_labels"] = table.rows.known_classes
    if table.rows.batches is not None:
        known_facts["batch"] = table.rows.batches

    if known_facts and method.lower() != "ihsc":
        options = "--known-column and --batch-column"
        raise ValueError(f"{options}: {method} takes neither; IhSC does.")

    # How stable labels are, and which column rules, the diagnosis says.
    without_stability = ignored(UnstableLabelsWarning)
    without_ruling_column = ignored(PreparationWarning, "Column ")
    with (
        screen.working("clustering"),
        without_stability,
        without_ruling_column,
        table.without_advice_to_prepare,
    ):
        model.fit(table.named_data, **known_facts)


def _notes_on_fit(model: Any, table: Table) -> list[Note]:
    """Say which outliers were found, and which classes clusters stand for."""
    messages = []
    if getattr(model, "outliers", None) is not None:
        looks_for_cells = _looks_for_wild_cells(model)
        is_outlier = model.labels_ < 0
        n_found = len(model.outlier_cells_) if looks_for_cells else is_outlier.sum()

        if n_found == 0:
            messages.append(notes.NO_OUTLIERS)
        elif looks_for_cells:
            share = n_found / np.prod(table.X.shape)
            messages.append(notes.wild_cells(n_found, share))

    if table.rows.known_classes is not None:
        messages.append(notes.clusters_of_classes(model.classes_))
    return messages
