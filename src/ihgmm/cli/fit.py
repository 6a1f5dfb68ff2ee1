"""The command ``ihgmm fit``."""

from __future__ import annotations

from pathlib import Path

from sklearn.pipeline import make_pipeline

from ihgmm._text import automatic_count_warnings, counted
from ihgmm.cli import describing
from ihgmm.cli import output as out
from ihgmm.cli.data import Reading
from ihgmm.cli.declaring import command_line
from ihgmm.cli.fitting import Fitting
from ihgmm.cli.labels import ClusterNames
from ihgmm.cli.options import DATA, LABELS_FILE, NAMES_FILE, output_option
from ihgmm.cli.screen import Screen
from ihgmm.cli.spelling import in_shell
from ihgmm.matrix import to_host
from ihgmm.storage import save_model


def fit(
    *,
    data: str = DATA,
    fitting: Fitting,
    output: Path | None = LABELS_FILE,
    save: Path | None = output_option(
        "Write the model to this file, for ihgmm predict; an old one is replaced."
    ),
    names: Path | None = NAMES_FILE,
    reading: Reading,
    screen: Screen,
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

      cat cells.csv | ihgmm fit - -k 8 -o - > labels.csv

      ihgmm fit demo -k auto --refine --json
    """
    model = fitting.model(reading.missing)
    out.check_output(output, "-o", out.LABELS_SUFFIXES, [data])
    out.check_output(save, "--save", sources=[data])
    if output is not None and save is not None and output.resolve() == save.resolve():
        raise ValueError(f"-o and --save both name {save}; give two files.")
    named = None if names is None else ClusterNames.read(names)
    screen = screen.beside(output)
    table = reading.load(data, screen, fills=model.missing is not None)
    if table.has_missing:
        model.missing = "fit"
    with screen.working("clustering"):
        model.fit(table.named_data)
    k, labels = len(model.cluster_centers_), to_host(model.labels_)
    called = None if named is None else named.of(table, labels, k)
    if save is not None:
        save_model(
            make_pipeline(table.scaler, model) if table.scaler else model,
            save,
            feature_names=table.names,
            id_column=reading.id_column,
            label_column=reading.label_column,
            layer=reading.layer,
            empty_is_zero=reading.missing == "zero",
            cluster_names=called,
        )
    with screen.working("describing"):
        found = describing.describe_fit(model, table, called)
    remarks = out.write_labels(output, table, labels, found.figures, called)
    comparison = out.compare_labels(table.labels, labels)
    count = getattr(model, "selection_", None)
    summary = None if count is None else in_shell(count.summary)
    method = type(model).__name__
    python = table.python and (
        *table.python,
        f"from ihgmm import {method}",
        f"model = {' '.join(repr(model).split())}.fit(X)",
    )
    screen.document(
        "fit",
        table.facts,
        method=method,
        n_clusters=k,
        count=summary,
        clusters=found.clusters,
        verdict=str(found.diagnosis.verdict),
        expected_error=found.diagnosis.expected_error,
        eigenvalues=getattr(model, "eigenvalues_", None),
        known_labels=comparison,
        notes=[*table.notes, *found.cautions, *remarks],
        python=python,
        labels_file=output,
        model_file=save,
    )
    screen.say(f"{table.heading}, {counted(k, 'cluster')} ({method})", "bold")
    screen.notes(table.notes)
    if count is not None:
        # A warning may have said it.
        warned = automatic_count_warnings(count, hidden_from=None)
        if not any(count.summary in text for text in warned):
            screen.say(in_shell(count.summary))
        if count.is_doubtful:
            options = {"whiten": fitting.whiten, "seed": fitting.random_state or None}
            look = command_line("choose-k", data, reading, **options)
            screen.say(f"To see the evidence for each number: {look}")
    describing.print_clusters(screen, found.clusters)
    describing.print_features(screen, found.clusters)
    describing.print_trust(screen, found)
    out.print_labels(screen, len(labels), comparison, output, remarks)
    screen.python(python)
    if save is not None:
        screen.say(f"model written to {save}; use it with: ihgmm predict {save} DATA")
