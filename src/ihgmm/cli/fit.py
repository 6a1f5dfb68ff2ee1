"""The command ``ihgmm fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from ihgmm import IhSC
from ihgmm.cli.data import Fitting, Reading
from ihgmm.cli.options import DATA, LABELS, OUTPUT, option
from ihgmm.cli.output import check_output, compare_labels, print_labels, write_labels
from ihgmm.cli.screen import Screen
from ihgmm.cli.tables.reading import DELIMITERS
from ihgmm.cli.tables.table import plural
from ihgmm.storage import save_model


def fit(
    *,
    data: str = DATA,
    fitting: Fitting,
    output: Path | None = LABELS,
    save: Path | None = option(
        None,
        "Write the model to this file, for ihgmm predict; an old one is replaced.",
        panel=OUTPUT,
    ),
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
    check_output(output, "-o", DELIMITERS, [data])
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
    comparison = compare_labels(table.labels, model.labels_)
    count = str(model.selection_) if model.n_clusters == "auto" else None
    cautions = _few_directions(model, scaler is not None)
    clusters = [_describe(model, cluster) for cluster in range(model.n_clusters_)]
    screen.document(
        {
            "command": "fit",
            **table.facts,
            "n_clusters": model.n_clusters_,
            "count": count,
            "clusters": clusters,
            "eigenvalues": model.eigenvalues_,
            "known_labels": comparison,
            "notes": [*table.notes, *cautions, *remarks],
            "standardized": reading.standardize,
            "columns_scaled": reading.scale_columns,
            "labels_file": output,
            "model_file": save,
        }
    )
    screen.say(f"{table.heading}, {plural(model.n_clusters_, 'cluster')}", "bold")
    if count is not None:
        screen.say(count)
    screen.notes(table.notes)
    formats = {"cluster": "", "rows": ",", "share": ".1%"}
    formats |= {"scale: median": ".2f", "5%": ".2f", "95%": ".2f"}
    screen.table(formats, [cluster.values() for cluster in clusters])
    values = "  ".join(f"{value:.4g}" for value in model.eigenvalues_)
    screen.say(f"leading eigenvalues: {values}")
    for text in cautions:
        screen.caution(text)
    print_labels(screen, len(model.labels_), comparison, output)
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


def _describe(model: IhSC, cluster: int) -> dict[str, Any]:
    """Return size and scales of a cluster, in the order of the table's columns."""
    scales = model.scales_[model.labels_ == cluster]
    low, middle, high = (
        np.quantile(scales, [0.05, 0.5, 0.95]) if len(scales) else [np.nan] * 3
    )
    return {
        "cluster": cluster,
        "rows": len(scales),
        "share": len(scales) / len(model.labels_),
        "scale_median": middle,
        "scale_5%": low,
        "scale_95%": high,
    }
