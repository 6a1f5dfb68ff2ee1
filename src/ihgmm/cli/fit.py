"""The command ``ihgmm fit``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline

from ihgmm import IhSC
from ihgmm._text import counted
from ihgmm.cli import output as out
from ihgmm.cli.data import Fitting, Reading
from ihgmm.cli.options import DATA, LABELS_FILE, output_option
from ihgmm.cli.screen import Screen, print_warning
from ihgmm.matrix.delimited import DELIMITERS
from ihgmm.storage import save_model


def fit(
    *,
    data: str = DATA,
    fitting: Fitting,
    output: Path | None = LABELS_FILE,
    save: Path | None = output_option(
        "Write the model to this file, for ihgmm predict; an old one is replaced."
    ),
    reading: Reading,
    screen: Screen,
) -> None:
    """Cluster the rows of DATA with IhSC.

    [bold]Examples[/]

      ihgmm fit iris -k 3

      ihgmm fit cells.csv -k 8 --id-column barcode --label-column type -o labels.csv

      ihgmm fit customers.csv -k 5 --prepare scale --save model.npz

      cat cells.csv | ihgmm fit - -k 8 -o - > labels.csv

      ihgmm fit demo -k auto --refine --json
    """
    model = fitting.model(reading.missing)
    out.check_output(output, "-o", DELIMITERS, [data])
    out.check_output(save, "--save", sources=[data])
    if output is not None and save is not None and output.resolve() == save.resolve():
        raise ValueError(f"-o and --save both name {save}; give two files.")
    screen = screen.beside(output)
    table = reading.load(data, screen, fills=model.missing is not None)
    if table.has_missing:
        model.missing = "fit"
    with screen.working("clustering"):
        model.fit(table.X)
    if save is not None:
        save_model(
            make_pipeline(table.scaler, model) if table.scaler else model,
            save,
            feature_names=table.names,
            id_column=reading.id_column,
            label_column=reading.label_column,
        )
    k, labels = model.n_clusters_, model.labels_
    figures = {"scale": model.scales_, "size": model.sizes_}
    told = figures
    if model.outliers is not None:
        told = figures | {"outlier_score": model.outlier_scores_}
    remarks = out.write_labels(output, table, labels, told)
    comparison = out.compare_labels(table.labels, labels)
    count = str(model.selection_) if model.n_clusters == "auto" else None
    cautions = _few_directions(model, table.scaler is not None)
    clusters = out.cluster_sizes(labels, k)
    for cluster in clusters:
        mine = labels == cluster["cluster"]
        scales, sizes = (
            values[mine] if mine.any() else [np.nan] for values in figures.values()
        )
        cluster["scale_median"] = np.median(scales)
        cluster["scale_5%"], cluster["scale_95%"] = np.quantile(scales, [0.05, 0.95])
        cluster["size_median"] = np.median(sizes)
    screen.document(
        "fit",
        table.facts,
        n_clusters=k,
        count=count,
        clusters=clusters,
        eigenvalues=model.eigenvalues_,
        known_labels=comparison,
        notes=[*table.notes, *cautions, *remarks],
        python=table.python,
        labels_file=output,
        model_file=save,
    )
    screen.say(f"{table.heading}, {counted(k, 'cluster')}", "bold")
    screen.notes(table.notes)
    if count is not None:
        screen.say(count)
    shown = {"scale: median": ".2f", "5%": ".2f", "95%": ".2f", "size: median": ".4g"}
    rows = [cluster.values() for cluster in clusters]
    screen.table(out.SIZE_FORMATS | shown, rows)
    values = "  ".join(f"{value:.4g}" for value in model.eigenvalues_)
    screen.say(f"leading eigenvalues: {values}")
    for text in cautions:
        if screen.silent:
            print_warning(text)
        screen.say(text, "yellow")
    out.print_labels(screen, len(labels), comparison, output, remarks)
    screen.python(table.python)
    if save is not None:
        screen.say(f"model written to {save}; use it with: ihgmm predict {save} DATA")


def _few_directions(model: IhSC, scaled: bool) -> list[str]:
    """Return a caution where eigenvalues are not positive."""
    k, positive = model.n_clusters_, int((model.eigenvalues_ > 0).sum())
    if positive >= k:
        return []
    text = (
        f"{positive} of {k} leading eigenvalues {'is' if k == 1 else 'are'} positive: "
        "the clusters are told apart by fewer directions than there are clusters."
    )
    if not scaled:
        text += " If columns are in different units, try --prepare scale."
    return [text]
