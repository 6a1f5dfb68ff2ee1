"""Saved models with data to use them on, for the commands predict and update."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ihgmm.cli.options import RowReading
from ihgmm.cli.screen import Screen
from ihgmm.cli.tables.preparation.scaling import apply_scaler
from ihgmm.cli.tables.reading import read_table
from ihgmm.cli.tables.request import PreparationRequest, Request
from ihgmm.cli.tables.table import Table
from ihgmm.storage import SavedModel, load_saved, steps_of


@dataclass(frozen=True)
class ModelWithData:
    """A saved model, and data that are ready for its last step."""

    saved: SavedModel
    estimator: Any  # the last step of the model, which clusters
    table: Table  # after all steps before it


def read_for_model(
    model: Path, data: str, reading: RowReading, screen: Screen
) -> ModelWithData:
    """Return a saved model with data that went through all its steps but the last."""
    if not model.is_file():
        raise ValueError(f"{model}: no such file; ihgmm fit --save writes models.")
    saved = load_saved(model)

    *scalers, estimator = (step for _, step in steps_of(saved.model))
    if scalers and hasattr(scalers[0], "vocabulary_"):  # it counts words
        raise ValueError(
            f"{model} takes texts, not a table; use it from Python: "
            f"ihgmm.storage.load_model({str(model)!r}).predict(texts)."
        )
    _refuse_what_the_fit_lacks(model, saved, estimator, reading)

    request = replace(
        reading.request(data),
        text_column=reading.text_column or saved.text_column,
        fit=saved,
    )
    table = _read_as_for_fit(request, estimator, reading.missing, screen)

    n_columns = table.X.shape[1]
    n_columns_of_fit = saved.model.n_features_in_
    if n_columns != n_columns_of_fit:
        raise ValueError(
            f"{data} has {n_columns} columns of numbers and {model} was fitted on "
            f"{n_columns_of_fit}. Give a file with those columns alone."
        )

    for scaler in scalers:
        table = apply_scaler(table, scaler)

    return ModelWithData(saved=saved, estimator=estimator, table=table)


def _refuse_what_the_fit_lacks(
    model: Path, saved: SavedModel, estimator: Any, reading: RowReading
) -> None:
    """Raise if options ask for something that the model was fitted without."""
    option = ""
    if reading.missing == "fit" and estimator.missing != "fit":
        option = "--missing fit"
    elif reading.text_column and saved.text_column is None:
        option = "--text-column"

    if option:
        raise ValueError(f"{option}: {model} was fitted without it; leave it out.")


def _read_as_for_fit(
    request: Request, estimator: Any, missing: str, screen: Screen
) -> Table:
    """Return the data with missing cells handled as in the fit, not scaled yet."""
    fills_cells = estimator.missing == "fit"
    if missing == "auto":
        missing = "error"  # "drop", to leave rows out, has to be asked for
        if fills_cells:
            missing = "fit"
        elif getattr(request.fit, "empty_is_zero", False):
            missing = "zero"

    preparation = PreparationRequest(
        missing=missing,
        prepare="none",
        model_fills_cells=fills_cells,
    )
    with screen.working(f"reading {request.source}"):
        return read_table(request, preparation)
