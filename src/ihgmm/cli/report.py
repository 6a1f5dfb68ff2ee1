"""The command ``ihgmm report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ihgmm import IhSC
from ihgmm._tables import Table, check_output
from ihgmm.cli._data import Source, parse_n_clusters
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
    table, _ = source.load(screen)
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
            id_name=table.id_name,
            feature_names=table.names,
            title=title or f"Clusters of {Path(data).stem}",
            labels_true=table.labels,
            notes=table.notes_in_words,
        )
    found = {"n_clusters": model.n_clusters_, "report_file": output}
    _tell(screen, data, table, found)


def _tell(screen: Screen, data: str, table: Table, found: dict[str, Any]) -> None:
    """Say to machines and to people what was written."""
    n, p = table.X.shape
    screen.document(
        {
            "command": "report",
            "data": data,
            "n_samples": n,
            "n_features": p,
            **found,
            "notes": table.notes,
        }
    )
    screen.notes(table.notes)
    screen.say(f"report written to {found['report_file']}; open it in a browser")
