"""The command ``ihgmm predict``."""

from dataclasses import replace
from typing import Any

import numpy as np

from ihgmm import SphericalKMeans
from ihgmm._checks import complete_matrix
from ihgmm.cli.comparing import compare_labels
from ihgmm.cli.describing import (
    RowFigures,
    cluster_lines,
    row_figures,
    without_batches,
)
from ihgmm.cli.files import LABELS_SUFFIXES, check_output, write_labels
from ihgmm.cli.options import Data, LabelsFile, ModelFile, RawCells, RowReading
from ihgmm.cli.saved_models import read_for_model
from ihgmm.cli.screen import ExplainingScreen
from ihgmm.cli.showing import print_clusters, print_labels
from ihgmm.cli.tables import notes
from ihgmm.cli.tables.table import Note, Table
from ihgmm.matrix import Filled, Matrix, MissingIndicator, to_host
from ihgmm.numerics.whitening import Whitener
from ihgmm.policy import Cautions, Trust
from ihgmm.statistics.described_fit import DescribedFit
from ihgmm.words.phrases import counted


def predict(
    *,
    model: ModelFile,
    data: Data,
    output: LabelsFile = None,
    raw_cells: RawCells = False,
    reading: RowReading,
    screen: ExplainingScreen,
) -> None:
    """Label the rows of DATA with a saved model.

    Columns are found by name, in any order, and prepared as they were for the fit.
    Columns that the model does not know are left out. Missing cells are handled as in
    the fit, but no row is left out unless you ask for it. Ids and known labels come
    from the columns that the fit used, if DATA has them; name others with --id-column
    and --label-column. The labels file has the columns of ihgmm fit. Certainty is
    the membership of a row in its cluster, on average about as sure as the fit was.

    [bold]Examples[/]

      ihgmm predict model.npz new.csv -o labels.csv
    """
    check_output(output, "-o", LABELS_SUFFIXES, [data, model], may_stream=True)
    screen.leave_room_for(output)

    loaded = read_for_model(model, data, reading, screen)
    estimator, table = without_batches(loaded.estimator, loaded.table)
    # Numbers of clusters, where predict has names of classes.
    labels = to_host(estimator._place_rows(table.X))

    complete = complete_matrix(table.X, estimator, of_fit=False)
    figures = _figures(estimator, table.X, complete, labels)
    table = table.with_notes(*_notes_on_rows(table, complete, figures))

    remarks: list[str] = []
    if output is not None:
        remarks = write_labels(
            output,
            table.rows,
            labels,
            figures.columns(),
            classes=getattr(estimator, "classes_", None),
            raw_cells=raw_cells,
        )

    n_clusters = len(estimator.cluster_centers_)
    clusters = cluster_lines(labels, n_clusters, figures, table)
    comparison = compare_labels(table, labels)

    method = type(estimator).__name__
    facts = {
        "model": model,
        "method": method,
        "clusters": [line.document() for line in clusters],
        "known_labels": None if comparison is None else comparison.document(),
        "labels_file": output,
    }
    heading = f"{data}: {counted(len(labels), 'row')} labelled by {model} ({method})"
    screen.begin("predict", table, heading, facts, remarks)

    print_clusters(screen, clusters, table.rows.id_name)
    print_labels(screen, comparison, output, remarks)


def _notes_on_rows(table: Table, complete: Matrix, figures: RowFigures) -> list[Note]:
    """Warn of rows that are much larger than those of the fit, and of empty ones."""
    messages = []
    typical_scale = float(np.nanmedian(np.append(figures.scales, 1.0)))
    is_usual = 1 / Cautions.HUGE < typical_scale < Cautions.HUGE
    if not (is_usual or table.has_texts):
        messages.append(notes.rows_of_other_size(typical_scale))

    zero_rows = np.flatnonzero(to_host(complete.sqnorms) == 0)
    if len(zero_rows):
        first = table.rows.place(zero_rows[0])
        messages.append(notes.zero_rows(len(zero_rows), complete.shape[0], first))

    return messages


def _figures(
    estimator: Any, X: Any, complete: Matrix, labels: np.ndarray
) -> RowFigures:
    """Return figures of rows that a model has labelled."""
    scales = _scales(estimator, complete, labels)
    outlier_scores = None
    if hasattr(estimator, "outlier_rule_"):
        outlier_scores = estimator.outlier_rule_.scores(complete)

    centers = np.asarray(estimator.cluster_centers_, dtype=np.float64)
    described = DescribedFit(
        data=complete,
        labels=labels,
        clusters=np.arange(len(centers)),
        scales=scales,
        centers=centers,
    )

    certainty = _certainty(estimator, X, complete, labels)
    figures = row_figures(described, certainty, outlier_scores)
    if isinstance(estimator, SphericalKMeans):  # which does not know how long rows are
        figures = replace(figures, scales=np.full(len(labels), np.nan))
    return figures


def _scales(estimator: Any, complete: Matrix, labels: np.ndarray) -> np.ndarray:
    """Return the scale of the nearest multiple of its centre for each row.

    For a row x in the cluster with centre c it is <x, c> / <c, c>, over the cells that
    were observed, with the weights of columns in the fit; NaN for outliers.
    """
    centers = np.asarray(estimator.cluster_centers_, dtype=np.float64)
    weighted = centers  # as columns were in the fit
    for change in estimator.preparation_:
        # The factor of a row is in the row and in the multiple alike: it drops out.
        if isinstance(change, Whitener):
            weighted = centers * np.square(change.columns)

    rows = np.arange(len(labels))
    squares = (centers * weighted).sum(axis=1)[labels]

    observed = complete
    if complete.incomplete is not None:  # a scale is that of observed cells
        observed = Filled(complete.incomplete)
        is_missing = MissingIndicator(complete.incomplete)
        squares_of_missing = to_host(is_missing @ (centers * weighted).T)
        squares = squares - squares_of_missing[rows, labels]

    products = observed.unit * to_host(observed @ weighted.T)[rows, labels]
    products = np.where(labels < 0, np.nan, products)  # outliers have no centre

    scales = products / np.where(squares > 0, squares, 1.0)
    if getattr(estimator, "signed", False):
        return scales
    return np.maximum(scales, 0.0)


def _certainty(
    estimator: Any, X: Any, complete: Matrix, labels: np.ndarray
) -> np.ndarray:
    """Return the probability of the label of each row, NaN where it means nothing."""
    is_trusted = getattr(estimator, "temperature_", 1.0) < Trust.UNKNOWN
    if not (is_trusted and hasattr(estimator, "predict_proba")):
        return np.full(len(labels), np.nan)

    certainty = to_host(estimator.predict_proba(X)).max(axis=1)
    says_nothing = (labels < 0) | (to_host(complete.sqnorms) == 0)
    certainty[says_nothing] = np.nan
    return certainty
