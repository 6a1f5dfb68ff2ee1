"""The command ``ihgmm fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.pipeline import make_pipeline

from ihgmm import IhSC
from ihgmm._tables import TEXT, Table, TableError, check_output
from ihgmm.cli._data import Source, parse_n_clusters
from ihgmm.cli._labels import write_labels
from ihgmm.cli._options import (
    OUTPUT,
    AsJson,
    Columns,
    Data,
    DropColumns,
    DropMissing,
    Gram,
    IdColumn,
    LabelColumn,
    Labels,
    NClusters,
    Order,
    Quiet,
    Refine,
    ScaleColumns,
    Seed,
    Standardize,
)
from ihgmm.cli._screen import Screen
from ihgmm.cli._words import compared, comparison
from ihgmm.storage import save_model

__all__ = ["fit"]


def fit(
    data: Data,
    n_clusters: NClusters,
    output: Labels = None,
    save: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=OUTPUT,
            help="Write the model to this file, for ihgmm predict; an old one is "
            "replaced.",
        ),
    ] = None,
    gram: Gram = "hollow",
    order: Order = "algebraic",
    refine: Refine = False,
    seed: Seed = 0,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    columns: Columns = None,
    drop_columns: DropColumns = None,
    drop_missing: DropMissing = False,
    standardize: Standardize = False,
    scale_columns: ScaleColumns = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Cluster the rows of DATA with IhSC.

    [bold]Examples[/]

      ihgmm fit iris -k 3

      ihgmm fit cells.csv -k 8 --id-column barcode --label-column type -o labels.csv

      ihgmm fit customers.csv -k 5 --scale-columns --drop-missing --save model.npz

      ihgmm fit demo -k auto --refine --json
    """
    count = parse_n_clusters(n_clusters)
    _check_outputs(output, save, data)
    source = Source(
        data=data,
        label_column=label_column,
        id_column=id_column,
        columns=columns,
        drop_columns=drop_columns,
        drop_missing=drop_missing,
        standardize=standardize,
        scale_columns=scale_columns,
    )
    screen = Screen(as_json=as_json, quiet=quiet)
    table, scaler = source.load(screen)
    model = IhSC(
        count,
        gram=gram,  # type: ignore[arg-type]
        order=order,  # type: ignore[arg-type]
        refine=refine,
        random_state=seed,
    )
    with screen.working("clustering"):
        model.fit(table.X)
    if save is not None:
        whole = model if scaler is None else make_pipeline(scaler, model)
        told = {"id_column": id_column, "label_column": label_column}
        save_model(whole, save, feature_names=table.names, **told)
    beside = []
    if output is not None:
        beside = write_labels(output, table, model.labels_, model.scales_)
    found = _describe(data, table, model)
    found |= {"standardized": standardize, "columns_scaled": scale_columns}
    found |= {"labels_file": output, "model_file": save}
    caution = _few_directions(model, scaler is not None)
    screen.document(found | {"notes": [*table.notes, *caution, *beside]})
    _tell(screen, found, caution)
    for text in beside:
        screen.note(text)


def _check_outputs(output: Path | None, save: Path | None, data: str) -> None:
    if output is not None:
        check_output(output, "-o", suffixes=TEXT, sources=[data])
    if save is not None:
        check_output(save, "--save", sources=[data])
    if output is not None and save is not None and output.resolve() == save.resolve():
        raise TableError(f"-o and --save both name {save}; give two files.")


def _few_directions(model: IhSC, scaled: bool) -> list[str]:
    """Return what there is to say about eigenvalues that are not positive."""
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


def _describe(data: str, table: Table, model: IhSC) -> dict[str, Any]:
    """Return all that is said about a fit."""
    n, p = table.X.shape
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
                "share": len(scales) / n,
                "scale_median": middle,
                "scale_5%": low,
                "scale_95%": high,
            }
        )
    counted = model.n_clusters == "auto"
    return {
        "command": "fit",
        "data": data,
        "n_samples": n,
        "n_features": p,
        "n_clusters": model.n_clusters_,
        "count": str(model.selection_) if counted else None,
        "clusters": clusters,
        "eigenvalues": model.eigenvalues_,
        "known_labels": comparison(table.labels, model.labels_),
        "notes": table.notes,
    }


def _tell(screen: Screen, found: dict[str, Any], caution: list[str]) -> None:
    """Say it to people."""
    n, k = found["n_samples"], found["n_clusters"]
    screen.say(
        f"{found['data']}: {n:,} rows, {found['n_features']:,} features, "
        f"{k} cluster{'s' * (k != 1)}",
        "bold",
    )
    if found["count"] is not None:
        screen.say(found["count"])
    screen.notes(found["notes"])
    screen.grid(
        ("cluster", "rows", "share", "scale: median", "5%", "95%"),
        [
            (
                str(c["cluster"]),
                f"{c['rows']:,}",
                f"{c['share']:.1%}",
                *(
                    f"{c[name]:.2f}" if c["rows"] else "-"
                    for name in ("scale_median", "scale_5%", "scale_95%")
                ),
            )
            for c in found["clusters"]
        ],
    )
    values = found["eigenvalues"]
    screen.say("leading eigenvalues: " + "  ".join(f"{value:.4g}" for value in values))
    for text in caution:
        screen.caution(text)
    if found["known_labels"] is not None:
        screen.say(compared(found["known_labels"], n))
    if found["labels_file"] is None:
        screen.say("labels were not saved; add -o labels.csv")
    else:
        screen.say(f"labels written to {found['labels_file']}")
    if found["model_file"] is not None:
        name = found["model_file"]
        screen.say(f"model written to {name}; use it with: ihgmm predict {name} DATA")
