"""The commands ``ihgmm predict`` and ``ihgmm update``."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm import IhSC, SphericalKMeans
from ihgmm._checks import complete_matrix
from ihgmm.cli import clusters as cl
from ihgmm.cli import files
from ihgmm.cli import options as opt
from ihgmm.cli.screen import ExplainingScreen, Screen
from ihgmm.cli.tables.loading import DELIMITERS
from ihgmm.cli.tables.preparation import apply_scaler
from ihgmm.cli.tables.table import Table, Warned
from ihgmm.matrix import Filled, Matrix, MissingIndicator, to_host
from ihgmm.numerics.whitening import Whitener
from ihgmm.policy import Cautions, Trust
from ihgmm.statistics.described_fit import DescribedFit
from ihgmm.storage import SavedModel, load_saved, save_model, steps_of
from ihgmm.words.phrases import counted, figure


def predict(
    *,
    model: Path = opt.MODEL,
    data: str = opt.DATA,
    output: Path | None = opt.LABELS_FILE,
    raw_cells: bool = opt.RAW_CELLS,
    reading: opt.RowReading,
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
    files.check_output(output, "-o", DELIMITERS, [data, model], streams=True)
    screen.leave_room_for(output)
    _, estimator, table = read_for_model(model, data, reading, screen)
    estimator, table = cl.without_batches(estimator, table)
    # Numbers of clusters, where predict has names of classes.
    labels = to_host(getattr(estimator, "_nearest", estimator.predict)(table.X))
    n, k = len(labels), len(estimator.cluster_centers_)
    complete = complete_matrix(table.X, estimator, of_fit=False)
    figures = _figures(estimator, table.X, complete, labels)
    usual = np.nanmedian(np.append(figures["scale"], 1.0))
    if not 1 / Cautions.HUGE < usual < Cautions.HUGE and table.texts is None:
        more = "more" if usual > 1 else "less"
        text = f"Half of the rows are {figure(usual)} times as large as those of the "
        text += f"fit, or {more}: are columns in the same units?"
        table = table.noting(Warned(text))
    zero = np.flatnonzero(to_host(complete.sqnorms) == 0)
    for first in zero[:1]:
        text = f"{len(zero):,} of {n:,} rows, the first is {table.place(first)}, have "
        text += "nothing but zeros, or no cell: their label 0 means nothing."
        table = table.noting(Warned(text))
    remarks = files.write_labels(output, table, labels, figures, raw_cells, estimator)
    known_labels, comparison = cl.compare_labels(table, labels)
    clusters = cl.cluster_lines(labels, k, figures, table)
    kind = type(estimator).__name__
    heading = f"{data}: {counted(n, 'row')} labelled by {model} ({kind})"
    facts = {"model": model, "method": kind, "clusters": clusters}
    facts |= {"known_labels": known_labels, "labels_file": output}
    screen.begin("predict", table, heading, remarks, **facts)
    cl.print_clusters(screen, clusters, table.id_name)
    cl.print_labels(screen, comparison, output, remarks)


def update(
    *,
    model: Path = opt.MODEL,
    data: str = opt.DATA,
    save: Path = opt.output_option(
        "Write the model to this file; it may be MODEL itself. Required.", ...
    ),
    reading: opt.RowReading,
    screen: Screen,
) -> None:
    """Let a saved model go on with the rows of DATA.

    Clusters keep their numbers. The model learns from all rows that it has seen, and
    keeps a sample of them, and labels of DATA alone. Columns are found by name and
    prepared as they were for the fit. A warning says if a cluster gets no more rows, or
    if another one seems to appear. Models of IhSC with its default recipe can go on,
    without options for outliers, signs, whitening, refining or batches. Missing cells
    are filled in if the fit did so.

    [bold]Examples[/]

      ihgmm update model.npz tuesday.csv --save model.npz
    """
    files.check_output(save, "--save", others=[data])
    saved, estimator, table = read_for_model(model, data, reading, screen)
    if type(estimator) is not IhSC:
        raise ValueError(f"{model} is no model of IhSC, which alone can go on.")
    with screen.working("updating"):
        estimator.partial_fit(table.X)
    about = {one.name: getattr(saved, one.name) for one in fields(saved)[1:]}
    save_model(saved.model, save, **about)
    growth, k = estimator.growth_, len(estimator.cluster_centers_)
    sizes, seen = np.bincount(to_host(estimator.labels_), minlength=k), growth.n_samples
    shares = growth.sums.weights / growth.sums.weights.sum()
    moved = growth.moved_share
    pairs = enumerate(zip(sizes.tolist(), shares.tolist(), strict=True))
    lines = [{"cluster": i, "new_rows": n, "share_of_all": s} for i, (n, s) in pairs]
    rows = counted(table.X.shape[0], "row")
    heading = f"{save} has learnt from {rows} of {data}, and {seen:,} in all"
    facts = {"model": model, "n_samples_seen": seen, "clusters": lines}
    screen.begin("update", table, heading, **facts, share_moved=moved, model_file=save)
    formats = {"cluster": "", "new rows": ",", "about, of all": ".1%"}
    screen.table(formats, [line.values() for line in lines])
    if moved:
        text = f"about {max(moved, 0.001):.1%} of earlier rows have another label now"
        screen.say(f"clusters moved: {text}; ihgmm predict labels them again")
    screen.say(f"model written to {save}; use it with: ihgmm predict {save} DATA")


def read_for_model(
    model: Path, data: str, reading: opt.RowReading, screen: Screen
) -> tuple[SavedModel, Any, Table]:
    """Return a saved model, its estimator, and the data as it takes them."""
    if not model.is_file():
        raise ValueError(f"{model}: no such file; ihgmm fit --save writes models.")
    saved = load_saved(model)
    *scalers, estimator = (step for _, step in steps_of(saved.model))
    if scalers and hasattr(scalers[0], "vocabulary_"):
        raise ValueError(
            f"{model} takes texts, not a table; use it from Python: "
            f"ihgmm.storage.load_model({str(model)!r}).predict(texts)."
        )
    missing, fills = reading.missing, estimator.missing == "fit"
    text_column = reading.text_column or saved.text_column
    wrong = ["--missing fit"] * (missing == "fit" and not fills)
    wrong += ["--text-column"] * (text_column is not None and saved.text_column is None)
    for option in wrong:
        raise ValueError(f"{option}: {model} was fitted without it; leave it out.")
    if missing == "auto":  # rows are not left out unless it is asked for
        missing = "fit" if fills else "zero" if saved.empty_is_zero else "error"
    as_fit = {"missing": missing, "fills": fills, "text_column": text_column}
    with screen.working(f"reading {data}"):
        table = reading.load(data, **as_fit, prepare="none", fit=saved)
    p, fitted_p = table.X.shape[1], saved.model.n_features_in_
    if p != fitted_p:
        raise ValueError(
            f"{data} has {p} columns of numbers and {model} was fitted on {fitted_p}. "
            "Give a file with those columns alone."
        )
    for scaler in scalers:
        table = apply_scaler(table, scaler)
    return saved, estimator, table


def _figures(estimator: Any, X: Any, data: Matrix, labels: np.ndarray) -> cl.Figures:
    """Return figures of rows; the scale is that of the nearest multiple of a centre."""
    centers = np.asarray(estimator.cluster_centers_, dtype=np.float64)
    weighted = centers  # as columns were in the fit
    for change in estimator.preparation_:
        # The factor of a row is in the row and in the multiple alike: it drops out.
        if isinstance(change, Whitener):
            weighted = centers * np.square(change.columns)
    n, k = len(labels), len(centers)
    squares, seen = (centers * weighted).sum(axis=1)[labels], data
    if data.incomplete is not None:  # a scale is that of observed cells
        seen = Filled(data.incomplete)
        holes = MissingIndicator(data.incomplete)
        hidden = to_host(holes @ (centers * weighted).T)
        squares = squares - hidden[np.arange(n), labels]
    products = seen.unit * to_host(seen @ weighted.T)[np.arange(n), labels]
    products = np.where(labels < 0, np.nan, products)  # outliers have no centre
    scales = products / np.where(squares > 0, squares, 1.0)
    if not getattr(estimator, "signed", False):
        scales = np.maximum(scales, 0.0)
    certainty, scores = np.full(n, np.nan), None
    trusted = getattr(estimator, "temperature_", 1.0) < Trust.UNKNOWN
    if hasattr(estimator, "predict_proba") and trusted:
        certainty = to_host(estimator.predict_proba(X)).max(axis=1)
        certainty[(labels < 0) | (to_host(data.sqnorms) == 0)] = np.nan
    if hasattr(estimator, "outlier_rule_"):
        scores = estimator.outlier_rule_.scores(data)
    fit = DescribedFit(
        data=data,
        labels=labels,
        clusters=np.arange(k),
        scales=scales,
        centers=centers,
    )
    figures = cl.figures_of(fit, certainty, scores)
    if isinstance(estimator, SphericalKMeans):  # which does not know how long rows are
        figures["scale"] = np.full(n, np.nan)
    return figures
