"""The command ``ihgmm predict``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ihgmm.cli.data import RowReading
from ihgmm.cli.options import DATA, LABELS, argument
from ihgmm.cli.output import check_output, compare_labels, print_labels, write_labels
from ihgmm.cli.screen import Screen
from ihgmm.cli.tables.reading import DELIMITERS, read_table
from ihgmm.cli.tables.request import Request
from ihgmm.storage import load_saved


def predict(
    *,
    model: Path = argument(
        ...,
        "A model that ihgmm fit --save or ihgmm.storage.save_model has written. "
        "Nothing in it is executed.",
        "MODEL",
    ),
    data: str = DATA,
    output: Path | None = LABELS,
    reading: RowReading,
    screen: Screen,
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
        raise ValueError(f"{model}: no such file; ihgmm fit --save writes models.")
    check_output(output, "-o", DELIMITERS, [data, model])
    saved = load_saved(model)
    names = getattr(saved.model, "feature_names_in_", None)
    request = Request(
        data,
        label=reading.label_column,
        ids=reading.id_column,
        features=None if names is None else list(names),
        fit_label=saved.label_column,
        fit_ids=saved.id_column,
    )
    with screen.working(f"reading {data}"):
        table = read_table(request, drop_missing=reading.drop_missing)
    n, p = table.X.shape
    if p != saved.model.n_features_in_:
        nameless = "has no names for them" if names is None else "finds them by name"
        raise ValueError(
            f"{data} has {p} columns of numbers and {model} was fitted on "
            f"{saved.model.n_features_in_}; the model {nameless}. Give a file with "
            "those columns alone."
        )
    fitted = saved.model
    scaler, estimator = fitted if isinstance(fitted, Pipeline) else (None, fitted)
    with warnings.catch_warnings():
        # Columns were matched by name when they were read.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        X = table.X if scaler is None else scaler.transform(table.X)
        labels = np.asarray(estimator.predict(X))
    scales = _scales(estimator, X, labels) if hasattr(estimator, "scales_") else None
    remarks = write_labels(output, table, labels, scales)
    counts = np.bincount(labels, minlength=len(estimator.cluster_centers_))
    clusters = [
        {"cluster": i, "rows": count, "share": count / n}
        for i, count in enumerate(counts)
    ]
    comparison = compare_labels(table.labels, labels)
    kind = type(estimator).__name__
    screen.document(
        {
            "command": "predict",
            "model": model,
            "class": kind,
            **table.facts,
            "clusters": clusters,
            "known_labels": comparison,
            "notes": [*table.notes, *remarks],
            "labels_file": output,
        }
    )
    screen.say(f"{data}: {n:,} rows placed by {model} ({kind})", "bold")
    screen.notes(table.notes)
    formats = {"cluster": "", "rows": ",", "share": ".1%"}
    screen.table(formats, [cluster.values() for cluster in clusters])
    print_labels(screen, n, comparison, output)
    for text in remarks:
        screen.remark(text)


def _scales(estimator: Any, X: Any, labels: np.ndarray) -> np.ndarray:
    """Return the multiple of its centre that is nearest to each row, 0 or more."""
    centers = np.asarray(estimator.cluster_centers_, dtype=np.float64)
    products = np.asarray(X @ centers.T)[np.arange(len(labels)), labels]
    lengths = (centers**2).sum(axis=1)[labels]
    return np.maximum(products / np.where(lengths > 0, lengths, 1.0), 0.0)
