"""The command ``ihgmm predict``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ihgmm import SphericalKMeans
from ihgmm._checks import complete_matrix
from ihgmm._text import counted
from ihgmm.cli import output as out
from ihgmm.cli.data import RowReading
from ihgmm.cli.describing import (
    Figures,
    certainties,
    cluster_lines,
    outlier_scores,
    print_clusters,
)
from ihgmm.cli.options import DATA, LABELS_FILE, argument
from ihgmm.cli.screen import Screen
from ihgmm.cli.tables.preparation import prepared_columns
from ihgmm.cli.tables.reading import read_table
from ihgmm.cli.tables.table import Request
from ihgmm.matrix import to_host
from ihgmm.matrix.delimited import DELIMITERS
from ihgmm.statistics.diagnosis import diagnose_fit
from ihgmm.statistics.observed import filled_cells
from ihgmm.storage import load_saved


def predict(
    *,
    model: Path = argument(
        "MODEL",
        "A model that ihgmm fit --save or ihgmm.storage.save_model has written. "
        "Nothing in it is executed.",
    ),
    data: str = DATA,
    output: Path | None = LABELS_FILE,
    rows: RowReading,
    screen: Screen,
) -> None:
    """Label the rows of DATA with a saved model.

    Columns are found by name, in any order, and prepared as they were for the fit.
    Columns that the model does not know are left out. Ids and known labels come from
    the columns that the fit used, if DATA has them; name others with --id-column and
    --label-column. The labels file has the columns of ihgmm fit. Certainty is judged by
    the other rows of DATA, and stays empty if there are fewer than ten rows for each
    cluster.

    [bold]Examples[/]

      ihgmm predict model.npz new.csv -o labels.csv

      ihgmm predict model.npz new.parquet --id-column barcode -o labels.csv --quiet
    """
    if not model.is_file():
        raise ValueError(f"{model}: no such file; ihgmm fit --save writes models.")
    out.check_output(output, "-o", DELIMITERS, [data, model])
    screen = screen.beside(output)
    saved = load_saved(model)
    fitted = saved.model
    scaler, estimator = fitted if isinstance(fitted, Pipeline) else (None, fitted)
    if rows.missing == "fit" and estimator.missing != "fit":
        raise ValueError(
            f"--missing fit: {model} was fitted without it and cannot fill cells in; "
            "fit it with --missing fit, or give --missing drop."
        )
    names = getattr(fitted, "feature_names_in_", None)
    request = Request(
        data,
        label=rows.label_column,
        ids=rows.id_column,
        features=None if names is None else list(names),
        fit_label=saved.label_column,
        fit_ids=saved.id_column,
    )
    with screen.working(f"reading {data}"):
        # Rows are not left out unless it is asked for.
        fills = "fit" if estimator.missing == "fit" else "error"
        missing = fills if rows.missing == "auto" else rows.missing
        table = read_table(request, missing=missing, memory=rows.memory_bytes)
    n, p = table.X.shape
    if p != fitted.n_features_in_:
        nameless = "has no names for them" if names is None else "finds them by name"
        raise ValueError(
            f"{data} has {p} columns of numbers and {model} was fitted on "
            f"{fitted.n_features_in_}; the model {nameless}. Give a file with "
            "those columns alone."
        )
    with warnings.catch_warnings():
        # Columns were matched by name when they were read.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        X = table.X if scaler is None else prepared_columns(table, scaler)
        labels = np.asarray(estimator.predict(X))
    figures = _figures(estimator, X, labels)
    remarks = out.write_labels(output, table, labels, figures)
    comparison = out.compare_labels(table.labels, labels)
    clusters = cluster_lines(labels, len(estimator.cluster_centers_), figures)
    kind = type(estimator).__name__
    screen.document(
        "predict",
        {"model": model, "class": kind, **table.facts},
        clusters=clusters,
        known_labels=comparison,
        notes=[*table.notes, *remarks],
        labels_file=output,
    )
    screen.say(f"{data}: {counted(n, 'row')} placed by {model} ({kind})", "bold")
    screen.notes(table.notes)
    print_clusters(screen, clusters)
    out.print_labels(screen, n, comparison, output, remarks)


def _figures(estimator: Any, X: Any, labels: np.ndarray) -> Figures:
    """Return the figures of rows that a model has placed.

    Scale and size are those of the multiple of its centre nearest to a row. No multiple
    is below 0, unless scales have both signs.
    """
    centers = np.asarray(estimator.cluster_centers_, dtype=np.float64)
    data = complete_matrix(X, estimator, of_fit=False)
    n, k = len(labels), len(centers)
    products = data.unit * to_host(data @ centers.T)[np.arange(n), labels]
    products = np.where(labels < 0, np.nan, products)  # outliers have no centre
    squares = (centers**2).sum(axis=1)[labels]
    scales = products / np.where(squares > 0, squares, 1.0)
    if not getattr(estimator, "signed", False):
        scales = np.maximum(scales, 0.0)
    sizes = scales * np.sqrt(squares)
    if isinstance(estimator, SphericalKMeans):  # which does not know how long rows are
        scales = np.full(n, np.nan)
    certainty = np.full(n, np.nan)
    if (labels >= 0).sum() >= 10 * k:  # else clusters of these rows would not show
        certainty = certainties(diagnose_fit(estimator, X, labels, of_fit=False))
    strange = outlier_scores(estimator, n, data)
    return Figures(scales, sizes, certainty, strange, filled_cells(data))
