"""The command ``ihgmm fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ihgmm._warnings import PreparationWarning, UnstableLabelsWarning, ignored
from ihgmm.cli import files
from ihgmm.cli import options as opt
from ihgmm.cli.screen import ExplainingScreen, Screen, print_message
from ihgmm.cli.tables.table import Note, Table
from ihgmm.matrix import to_host
from ihgmm.words.phrases import counted


def fit(
    *,
    data: str = opt.DATA,
    fitting: opt.Fitting,
    output: Path | None = opt.LABELS_FILE,
    raw_cells: bool = opt.RAW_CELLS,
    save: Path | None = opt.output_option(
        "Write the model to this file, for ihgmm predict; an old one is replaced."
    ),
    names: Path | None = opt.NAMES_FILE,
    reading: opt.Reading,
    screen: ExplainingScreen,
) -> None:
    """Cluster the rows of DATA and describe the clusters.

    For each cluster you see how many rows it has, how large they are, how sure their
    labels are, and the features that set it apart. The labels file (-o) has a line for
    each row: cluster, scale, size, certainty, whether it is typical, with --names the
    name of its cluster, and with --outliers a score.

    [bold]Examples[/]

      ihgmm fit iris -k 3
      ihgmm fit cells.csv -k 8 --id-column barcode --label-column type -o labels.csv
      ihgmm fit customers.csv -k 5 --prepare scale --save model.npz
      ihgmm fit reviews.csv -k auto --text-column review --id-column order
      cat cells.csv | ihgmm fit - -k 8 -o - > labels.csv
      ihgmm fit demo -k auto --refine --json
    """
    # The help does without what these load.
    from sklearn.pipeline import make_pipeline

    from ihgmm.cli import clusters as cl
    from ihgmm.statistics.diagnosis import Verdict
    from ihgmm.storage import save_model
    from ihgmm.words.diagnoses import caution_text, trust_sentence, wild_cells_note

    files.check_output(output, "-o", files.LABELS_SUFFIXES, [data], streams=True)
    files.check_output(save, "--save", sources=[data])
    if output is not None and save is not None and output.resolve() == save.resolve():
        raise ValueError(f"-o and --save both name {save}; give two files.")
    screen.leave_room_for(output)
    model, table, cluster_names = fit_table(data, fitting, reading, names, screen)
    if save is not None:
        beside = ("id_column", "label_column", "text_column", "layer")
        save_model(
            make_pipeline(table.scaler, model) if table.scaler else model,
            save,
            feature_names=table.names,
            **{name: getattr(reading, name) for name in beside},
            empty_is_zero=reading.missing == "zero",
            cluster_names=cluster_names,
        )
    labels, k = to_host(model.labels_).astype(np.intp), len(model.cluster_centers_)
    with screen.working("describing"):
        figures, clusters, diagnosis, same_size = cl.describe_fit(
            model, table, labels, cluster_names or [""] * k
        )
    remarks = files.write_labels(
        output, table, labels, figures, cluster_names, raw_cells
    )
    others = None
    if table.labels is not None and k > 1:
        others = cl.k_means_labels(model, table, fitting.random_state)
    known_labels, comparison = cl.compare_labels(table, labels, others)
    cautions = []
    for caution in diagnosis.cautions:
        text = caution_text(caution, table.column_names, prepared=bool(table.scaler))
        if caution.kind.name == "RULING_COLUMN" and table.scaler:
            text += " Add --drop-columns."
        cautions.append(text)
    wild = getattr(model, "outlier_cells_", None)  # None if nobody looked
    if wild is not None:
        wild = [[table.ids[i], table.column_names[j]] for i, j in wild]
    if wild:
        table = table.noting(Note(wild_cells_note(len(wild), table.X.shape)))
    count = getattr(model, "selection_", None)
    judged = ("stability", "doubt", "expected_error", "error_range")
    method, python = type(model).__name__, _python_lines(model, data, reading)
    screen.document(
        "fit",
        table.facts,
        method=method,
        n_clusters=k,
        count=None if count is None else str(count),
        clusters=clusters,
        verdict=str(diagnosis.verdict),
        **{name: getattr(diagnosis, name) for name in judged},
        eigenvalues=getattr(model, "eigenvalues_", None),
        outlier_cells=wild,
        known_labels=known_labels,
        notes=[*table.notes, *cautions, *remarks],
        python=python,
        labels_file=output,
        model_file=save,
    )
    screen.say(f"{table.heading}, {counted(k, 'cluster')} ({method})", "bold")
    screen.notes(table.notes)
    if count and count.n_clusters > 1 and not count.is_doubtful:
        screen.say(str(count))  # of any other count, a warning has said it
    if count and count.is_doubtful:
        screen.say("To see the evidence for each number: ihgmm choose-k")
    cl.print_clusters(screen, clusters)
    cl.print_features(screen, clusters, same_size, table.X.shape[1])
    trust = trust_sentence(diagnosis)
    if screen.silent and diagnosis.verdict is Verdict.NO_SEPARATION:
        print_message("warning", trust)
    screen.say(trust)
    for text in cautions:
        screen.say(text, "yellow")
    cl.print_labels(screen, comparison, output, remarks)
    if screen.explains:
        screen.say("The same in Python:", "bold")
        for line in python:
            screen.say(f"    {line}")
    if save is not None:
        screen.say(f"model written to {save}; use it with: ihgmm predict {save} DATA")
    if not screen.explains:
        screen.say("what the words mean, and the same in Python: --explain", "dim")


def fit_table(
    data: str,
    fitting: opt.Fitting,
    reading: opt.Reading,
    names: Path | None,
    screen: Screen,
) -> tuple[Any, Table, list[str] | None]:
    """Return a fitted model, its data, and names of its clusters where a file has some.

    What cannot be done is refused before the data are read.
    """
    model = fitting.model(reading.missing)
    named = files.read_names(names)
    options: dict[str, Any] = {"fills": model.missing is not None}
    options["wild_cells"] = getattr(model, "outliers", None) == "cells"
    table = reading.load(data, screen, whiten=fitting.whiten, **options)
    if table.has_missing:
        model.missing = "fit"
    # How stable labels are, and which column rules, the diagnosis says.
    with (
        screen.working("clustering"),
        ignored(UnstableLabelsWarning),
        ignored(PreparationWarning, "Column "),
        table.quiet,
    ):
        model.fit(table.named_data)
    k, labels = len(model.cluster_centers_), to_host(model.labels_)
    return model, table, files.names_for(names, named, table, labels, k)


def _python_lines(model: Any, data: str, reading: opt.Reading) -> list[str]:
    """Return what reads the same data and fits the same model in Python."""
    given = reading.given
    if reading.missing == "auto" and model.missing is None:
        given["missing"] = "drop"
    if getattr(model, "outliers", None) == "cells":
        given["wild_cells"] = True
    if getattr(model, "whiten", None) and reading.prepare == "auto":
        given["whiten"] = model.whiten
    options = "".join(f", {name}={value!r}" for name, value in given.items())
    made = " ".join(repr(model).split())
    if "n_clusters=" not in made:  # the default is not written
        made = made.replace("(", f"(n_clusters={model.n_clusters!r}, ", 1)
    return [
        f"from ihgmm import {type(model).__name__}",
        "from ihgmm.cli.tables import read_table",
        f"X = read_table({data!r}{options}).X",
        f"model = {made}.fit(X)",
    ]
