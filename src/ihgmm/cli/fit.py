"""The command ``ihgmm fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.pipeline import make_pipeline

from ihgmm import IhSC
from ihgmm.cli.data import Fitting, Reading
from ihgmm.cli.options import OUTPUT, Data, Labels
from ihgmm.cli.output import (
    check_output,
    compare_labels,
    comparison_sentence,
    labels_sentence,
    write_labels,
)
from ihgmm.cli.screen import Screen
from ihgmm.cli.tables import DELIMITERS
from ihgmm.storage import save_model


def fit(
    *,
    data: Data,
    fitting: Fitting,
    output: Labels = None,
    save: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=OUTPUT,
            help="Write the model to this file, for ihgmm predict; an old one is "
            "replaced.",
        ),
    ] = None,
    reading: Reading,
    screen: Screen,
) -> None:
    """Cluster the rows of DATA with IhSC.

    [bold]Examples[/]

      ihgmm fit iris -k 3

      ihgmm fit cells.csv -k 8 --id-column barcode --label-column type -o labels.csv

      ihgmm fit customers.csv -k 5 --scale-columns --drop-missing --save model.npz

      ihgmm fit demo -k auto --refine --json
    """
    model = fitting.model()
    check_output(output, "-o", suffixes=DELIMITERS, sources=[data])
    check_output(save, "--save", sources=[data])
    if output is not None and save is not None and output.resolve() == save.resolve():
        raise ValueError(f"-o and --save both name {save}; give two files.")
    table, scaler = reading.load(data, screen)
    with screen.working("clustering"):
        model.fit(table.X)
    if save is not None:
        save_model(
            model if scaler is None else make_pipeline(scaler, model),
            save,
            feature_names=table.names,
            id_column=reading.id_column,
            label_column=reading.label_column,
        )
    remarks = write_labels(output, table, model.labels_, model.scales_)
    cautions = _few_directions(model, scaler is not None)
    n, p = table.X.shape
    k = model.n_clusters_
    result = {
        "command": "fit",
        "data": data,
        "n_samples": n,
        "n_features": p,
        "n_clusters": k,
        "count": str(model.selection_) if model.n_clusters == "auto" else None,
        "clusters": _describe_clusters(model),
        "eigenvalues": model.eigenvalues_,
        "known_labels": compare_labels(table.labels, model.labels_),
        "notes": [*table.notes, *cautions, *remarks],
        "standardized": reading.standardize,
        "columns_scaled": reading.scale_columns,
        "labels_file": output,
        "model_file": save,
    }
    screen.document(result)
    screen.say(
        f"{data}: {n:,} rows, {p:,} features, {k} cluster{'s' * (k != 1)}", "bold"
    )
    if result["count"] is not None:
        screen.say(result["count"])
    screen.notes(table.notes)
    screen.table(
        {
            "cluster": "",
            "rows": ",",
            "share": ".1%",
            "scale: median": ".2f",
            "5%": ".2f",
            "95%": ".2f",
        },
        [cluster.values() for cluster in result["clusters"]],
    )
    values = "  ".join(f"{value:.4g}" for value in model.eigenvalues_)
    screen.say(f"leading eigenvalues: {values}")
    for text in cautions:
        screen.caution(text)
    if result["known_labels"] is not None:
        screen.say(comparison_sentence(result["known_labels"], n))
    screen.say(labels_sentence(output))
    if save is not None:
        screen.say(f"model written to {save}; use it with: ihgmm predict {save} DATA")
    for text in remarks:
        screen.remark(text)


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
        text += " If columns are in different units, try --scale-columns."
    return [text]


def _describe_clusters(model: IhSC) -> list[dict[str, Any]]:
    """Return size and scales of each cluster, in the order of the table's columns."""
    clusters = []
    for cluster in range(model.n_clusters_):
        scales = model.scales_[model.labels_ == cluster]
        low, middle, high = (
            np.quantile(scales, [0.05, 0.5, 0.95]) if len(scales) else [np.nan] * 3
        )
        clusters.append(
            {
                "cluster": cluster,
                "rows": len(scales),
                "share": len(scales) / len(model.labels_),
                "scale_median": middle,
                "scale_5%": low,
                "scale_95%": high,
            }
        )
    return clusters
