"""The command ``ihgmm predict``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.pipeline import Pipeline

from ihgmm._tables import TEXT, Table, TableError, check_output, read_table
from ihgmm.cli._labels import write_labels
from ihgmm.cli._options import (
    AsJson,
    Data,
    DropMissing,
    IdColumn,
    LabelColumn,
    Labels,
    Quiet,
)
from ihgmm.cli._screen import Screen
from ihgmm.cli._words import compared, comparison
from ihgmm.storage import load_saved

__all__ = ["predict"]


def predict(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A model that ihgmm fit --save or ihgmm.storage.save_model has "
            "written. Nothing in it is executed.",
        ),
    ],
    data: Data,
    output: Labels = None,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    drop_missing: DropMissing = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Place the rows of DATA in the clusters of a saved model.

    Columns are found by name, in whatever order they are; columns that the model does
    not know are left out. Columns are scaled or standardised as they were for the
    fit. Ids and known labels are taken from the columns that the fit had them in, where
    DATA has these; name others with --id-column and --label-column.

    [bold]Examples[/]

      ihgmm predict model.npz new.csv -o labels.csv

      ihgmm predict model.npz new.parquet --id-column barcode -o labels.csv --quiet
    """
    if not model.is_file():
        raise TableError(f"{model}: no such file; ihgmm fit --save writes models.")
    if output is not None:
        check_output(output, "-o", suffixes=TEXT, sources=[data, model])
    screen = Screen(as_json=as_json, quiet=quiet)
    saved = load_saved(model)
    fitted = saved.model
    names = getattr(fitted, "feature_names_in_", None)
    with screen.working(f"reading {data}"):
        table = read_table(
            data,
            label_column=label_column,
            id_column=id_column,
            drop_missing=drop_missing,
            features=None if names is None else list(names),
            usual_label=saved.label_column,
            usual_ids=saved.id_column,
        )
    _check_width(fitted, model, data, table)
    scaler, estimator = fitted if isinstance(fitted, Pipeline) else (None, fitted)
    with warnings.catch_warnings():
        # Columns were matched by name when they were read.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        X = table.X if scaler is None else scaler.transform(table.X)
        labels = np.asarray(estimator.predict(X))
    beside = []
    if output is not None:
        known = hasattr(estimator, "scales_")
        scales = _scales(estimator, X, labels) if known else None
        beside = write_labels(output, table, labels, scales)
    found = {
        "command": "predict",
        "model": model,
        "class": type(estimator).__name__,
        "data": data,
        "n_samples": len(labels),
        "n_features": table.X.shape[1],
        "clusters": _sizes(labels, len(estimator.cluster_centers_)),
        "known_labels": comparison(table.labels, labels),
        "notes": table.notes,
        "labels_file": output,
    }
    screen.document(found | {"notes": [*table.notes, *beside]})
    _tell(screen, found)
    for text in beside:
        screen.note(text)


def _check_width(fitted: Any, model: Path, data: str, table: Table) -> None:
    wanted, given = fitted.n_features_in_, table.X.shape[1]
    if given != wanted:
        names = getattr(fitted, "feature_names_in_", None)
        nameless = "has no names for them" if names is None else "finds them by name"
        raise TableError(
            f"{data} has {given} columns of numbers and {model} was fitted on "
            f"{wanted}; the model {nameless}. Give a file with those columns alone."
        )


def _scales(estimator: Any, X: Any, labels: np.ndarray) -> np.ndarray:
    """Return the multiple of its centre that is nearest to each row, 0 or more."""
    centers = np.asarray(estimator.cluster_centers_, dtype=np.float64)
    products = np.asarray(X @ centers.T)[np.arange(len(labels)), labels]
    lengths = (centers**2).sum(axis=1)[labels]
    return np.maximum(products / np.where(lengths > 0, lengths, 1.0), 0.0)


def _sizes(labels: np.ndarray, n_clusters: int) -> list[dict[str, Any]]:
    counts = np.bincount(labels, minlength=n_clusters)
    return [
        {"cluster": i, "rows": count, "share": count / len(labels)}
        for i, count in enumerate(counts)
    ]


def _tell(screen: Screen, found: dict[str, Any]) -> None:
    """Say it to people."""
    n = found["n_samples"]
    screen.say(
        f"{found['data']}: {n:,} rows placed by {found['model']} ({found['class']})",
        "bold",
    )
    screen.notes(found["notes"])
    screen.grid(
        ("cluster", "rows", "share"),
        [
            (str(c["cluster"]), f"{c['rows']:,}", f"{c['share']:.1%}")
            for c in found["clusters"]
        ],
    )
    if found["known_labels"] is not None:
        screen.say(compared(found["known_labels"], n))
    if found["labels_file"] is None:
        screen.say("labels were not saved; add -o labels.csv")
    else:
        screen.say(f"labels written to {found['labels_file']}")
