"""The commands ``ihgmm fit`` and ``ihgmm report``."""

from pathlib import Path
from typing import Any

import numpy as np
import typer

from ihgmm._warnings import PreparationWarning, UnstableLabelsWarning, ignored
from ihgmm.cli import files
from ihgmm.cli import options as opt
from ihgmm.cli.screen import ExplainingScreen, Screen, print_message
from ihgmm.cli.tables.loading import DELIMITERS
from ihgmm.cli.tables.table import Table, quote
from ihgmm.matrix import to_host
from ihgmm.policy import Counting
from ihgmm.words.phrases import counted, percent


def fit(
    *,
    data: str = opt.DATA,
    fitting: opt.Fitting,
    output: Path | None = opt.LABELS_FILE,
    raw_cells: bool = opt.RAW_CELLS,
    save: Path | None = opt.output_option(
        "Write the model to this file, for ihgmm predict; an old one is replaced."
    ),
    reading: opt.Reading,
    screen: ExplainingScreen,
) -> None:
    """Cluster the rows of DATA and describe the clusters.

    For each cluster you see how many rows it has, how large they are, how sure their
    labels are, and the features that set it apart. The labels file (-o) has a line for
    each row: cluster, scale, size, certainty, 1 to 3 if it is typical, how many cells
    were filled in, and with --outliers a score.

    [bold]Examples[/]

      ihgmm fit iris -k 3
      ihgmm fit cells.csv -k 8 --id-column barcode --label-column type -o labels.csv
      ihgmm fit reviews.csv -k auto --text-column review --id-column order
      cat cells.csv | ihgmm fit - -k 8 -o - > labels.csv
    """
    # The help does without what these load.
    from sklearn.pipeline import make_pipeline

    from ihgmm.cli import clusters as cl
    from ihgmm.statistics.diagnosis import Verdict
    from ihgmm.storage import save_model
    from ihgmm.words import diagnoses as words

    files.check_output(output, "-o", DELIMITERS, [data], streams=True)
    files.check_output(save, "--save", others=[data, output or data])
    screen.leave_room_for(output)
    model, table = fit_table(data, fitting, reading, screen)
    fitted, (model, table) = model, cl.without_batches(model, table)
    labels, k = to_host(model.labels_).astype(np.intp), len(model.cluster_centers_)
    with screen.working("describing"):
        figures, clusters, diagnosis, same_size = cl.describe_fit(model, table, labels)
    if save is not None:
        cl.temper(fitted, diagnosis)
        beside = ("id_column", "label_column", "batch_column", "text_column", "layer")
        asked: dict[str, Any] = {name: getattr(reading, name) for name in beside}
        asked |= {"empty_is_zero": reading.missing == "zero"}
        whole = make_pipeline(table.scaler, fitted) if table.scaler else fitted
        save_model(whole, save, feature_names=table.names, **asked)
    with screen.working("writing the labels"):
        remarks = files.write_labels(output, table, labels, figures, raw_cells, model)
    known_labels, comparison = cl.compare_labels(table, labels, model)
    cautions = cl.caution_texts(diagnosis, table, model)
    wild = getattr(model, "outlier_cells_", ())
    wild = [[table.ids[i], table.column_names[j]] for i, j in wild]
    method, count = type(model).__name__, getattr(model, "selection_", None)
    judged = ("verdict", "stability", "doubt", "expected_error", "error_range")
    facts = {"method": method, "n_clusters": k, "clusters": clusters}
    facts |= {"count": count and str(count), "outlier_cells": wild}
    facts |= {name: getattr(diagnosis, name) for name in judged}
    facts |= {"eigenvalues": getattr(model, "eigenvalues_", None)}
    facts |= {"known_labels": known_labels, "labels_file": output, "model_file": save}
    heading = f"{table.heading}, {counted(k, 'cluster')} ({method})"
    screen.begin("fit", table, heading, [*cautions, *remarks], **facts)
    if count and count.is_doubtful and not reading.batch_column:  # it takes none
        command = reading.command("choose-k", data, whiten=fitting.whiten)
        screen.say(f"To see the evidence for each number: {command}")
    elif count and count.n_clusters > 1 and not count.is_doubtful:
        screen.say(str(count))  # of any other count, a warning has said it
    if count and count.n_clusters > 1:
        moved = cl.moved_share(count, labels)
        if moved >= Counting.MOVED:
            text = f"The clusters below are others: {percent(moved)} of the rows are "
            screen.say(f"{text}elsewhere than in the tree of all rows.", "yellow")
    cl.print_clusters(screen, clusters, table.id_name)
    cl.print_features(screen, clusters, same_size)
    if screen.silent and diagnosis.verdict is Verdict.NO_SEPARATION:
        print_message("warning", words.trust_sentence(diagnosis))
    screen.say(words.trust_sentence(diagnosis))
    screen.explain(words.TRUST_WORDS)
    for text in cautions:
        screen.say(text, "yellow")
    cl.print_labels(screen, comparison, output, remarks)
    if save is not None:
        screen.say(f"model written to {save}; use it with: ihgmm predict {save} DATA")
    if not screen.explains:
        screen.say("what the words mean: --explain", "dim")


def report(
    *,
    ctx: typer.Context,
    data: str = opt.DATA,
    fitting: opt.Fitting,
    output: Path = opt.output_option(
        "The page, ending in .html; an existing file is replaced.", ..., "-o --output"
    ),
    title: str | None = opt.output_option("Heading of the page."),
    reading: opt.Reading,
    screen: Screen,
) -> None:
    """Cluster the rows of DATA and write a report about it.

    The report is one HTML page that opens in any browser, also offline. It has a
    verdict, a map of the rows, their scales, the features that set clusters apart, and
    a table to search. Readers can name the clusters.

    [bold]Examples[/]

      ihgmm report iris -k 3 -o report.html
    """
    # The help does without what these load.
    from ihgmm.cli.clusters import without_batches
    from ihgmm.report import write_report

    files.check_output(output, "-o", (".html", ".htm"), [data], streams=True)
    screen.leave_room_for(output)
    model, table = fit_table(data, fitting, reading, screen)
    model, table = without_batches(model, table)
    with screen.working("writing the report"), files.real_file(output, ".html") as page:
        same = ("ids", "id_name", "notes", "original", "texts", "source")
        options: dict[str, Any] = {name: getattr(table, name) for name in same}
        options |= {"feature_names": table.names, "labels_true": table.labels}
        options["title"] = title or f"Clusters of {Path(data).stem}"
        write_report(table.X, model, page, **options, command=ctx.find_root().obj)
    k = len(model.cluster_centers_)
    facts = {"n_clusters": k, "report_file": output}
    screen.begin("report", table, f"{table.heading}, {counted(k, 'cluster')}", **facts)
    screen.say(f"report written to {output}; open it in a browser")


def fit_table(
    data: str, fitting: opt.Fitting, reading: opt.Reading, screen: Screen
) -> tuple[Any, Table]:
    """Return a fitted model and its data."""
    # What cannot be done is refused before the data are read.
    model = fitting.model(reading.missing)
    wild = getattr(model, "outliers", None) == "cells"
    options = {"fills": model.missing is not None, "wild_cells": wild}
    with screen.working(f"reading {data}"):
        table = reading.load(data, whiten=fitting.whiten, **options)
    if table.has_missing:
        model.missing = "fit"
    given = {"known_labels": table.known, "batch": table.batch}
    given = {name: value for name, value in given.items() if value is not None}
    if given and fitting.method.lower() != "ihsc":
        both = "--known-column and --batch-column"
        raise ValueError(f"{both}: {fitting.method} takes neither; IhSC does.")
    # How stable labels are, and which column rules, the diagnosis says.
    unstable = ignored(UnstableLabelsWarning)
    ruled = ignored(PreparationWarning, "Column ")
    with screen.working("clustering"), unstable, ruled, table.quiet:
        model.fit(table.named_data, **given)
    outliers = model.outlier_cells_ if wild else model.labels_[model.labels_ < 0]
    if getattr(model, "outliers", None) is not None and len(outliers) == 0:
        table = table.noting("No outliers were found.")
    elif wild:
        share = percent(len(outliers) / np.prod(table.X.shape))
        note = f"Treated {counted(len(outliers), 'wild cell')} ({share}) as missing: "
        note += "the other cells of the row and the column do not explain such values."
        table = table.noting(note)
    if table.known is not None:
        names = ", ".join(f"{i} {quote(name)}" for i, name in enumerate(model.classes_))
        table = table.noting(f"Clusters stand for classes: {names}.")
    return model, table
