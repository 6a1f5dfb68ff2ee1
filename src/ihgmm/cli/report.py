"""The command ``ihgmm report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ihgmm import IhSC
from ihgmm._tables import check_output
from ihgmm.cli._data import column_scaler, load, parse_n_clusters, scaled
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
    NClusters,
    Order,
    Quiet,
    Refine,
    ScaleColumns,
    Seed,
    Standardize,
)
from ihgmm.cli._screen import Screen
from ihgmm.report import write_report

__all__ = ["report"]


def report(
    data: Data,
    n_clusters: NClusters,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            rich_help_panel=OUTPUT,
            help="The page, ending in .html; an old one is replaced.",
        ),
    ],
    title: Annotated[
        str | None, typer.Option(rich_help_panel=OUTPUT, help="Heading of the page.")
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
    """Cluster the rows of DATA with IhSC and write a page of HTML about it.

    The page opens in any browser, without network: what to think of the clusters, a
    map of the rows, scales, telling features, and a table to search.

    [bold]Examples[/]

      ihgmm report iris -k 3 -o report.html

      ihgmm report cells.csv -k 8 --id-column barcode -o report.html

      ihgmm report wine -k 3 --standardize --title "Wines" -o wine.html
    """
    count = parse_n_clusters(n_clusters)
    check_output(output, "-o", suffixes=(".html", ".htm"), sources=[data])
    scaler = column_scaler(standardize, scale_columns)
    screen = Screen(as_json=as_json, quiet=quiet)
    with screen.working(f"reading {data}"):
        table = load(
            data,
            label_column=label_column,
            id_column=id_column,
            columns=columns,
            drop_columns=drop_columns,
            drop_missing=drop_missing,
        )
    table = scaled(table, scaler)
    model = IhSC(
        count,
        gram=gram,  # type: ignore[arg-type]
        order=order,  # type: ignore[arg-type]
        refine=refine,
        random_state=seed,
    )
    with screen.working("clustering"):
        model.fit(table.X)
    with screen.working("writing the report"):
        write_report(
            model,
            table.X,
            output,
            ids=table.ids,
            id_name=id_column or "id",
            feature_names=table.names,
            title=title or f"Clusters of {Path(data).stem}",
            labels_true=table.labels,
            notes=table.notes,
        )
    n, p = table.X.shape
    screen.document(
        {
            "command": "report",
            "data": data,
            "n_samples": n,
            "n_features": p,
            "n_clusters": model.n_clusters_,
            "report_file": output,
            "notes": table.notes,
        }
    )
    for note in table.notes:
        screen.say(note, "yellow")
    screen.say(f"report written to {output}; open it in a browser")
