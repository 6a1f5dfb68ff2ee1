"""The command ``ihgmm report``."""

from __future__ import annotations

from pathlib import Path

import typer

from ihgmm.cli.files import check_output, real_file
from ihgmm.cli.fit import fit_table
from ihgmm.cli.options import DATA, Fitting, Reading, output_option
from ihgmm.cli.screen import Screen
from ihgmm.cli.tables.table import Warned
from ihgmm.words.phrases import counted


def report(
    *,
    ctx: typer.Context,
    data: str = DATA,
    fitting: Fitting,
    output: Path = output_option(
        "The page, ending in .html; an existing file is replaced.", ..., "-o --output"
    ),
    title: str | None = output_option("Heading of the page."),
    reading: Reading,
    screen: Screen,
) -> None:
    """Cluster the rows of DATA and write a report about it.

    The report is one HTML page that opens in any browser, also offline. It has a
    verdict, a map of the rows, their scales, the features that set clusters apart, and
    a table to search. Readers can name the clusters.

    [bold]Examples[/]

      ihgmm report iris -k 3 -o report.html
      ihgmm report cells.csv -k 8 --id-column barcode -o report.html
      ihgmm report wine -k 3 --prepare standardize --title "Wines" -o wine.html
    """
    # The help does without what these load.
    from ihgmm.cli.clusters import without_batches
    from ihgmm.report import write_report

    check_output(output, "-o", (".html", ".htm"), [data], streams=True)
    screen.leave_room_for(output)
    model, table = fit_table(data, fitting, reading, screen)
    model, table = without_batches(model, table)
    if table.labels is not None and any(label is None for label in table.labels):
        text = "The page does without known labels: some rows have none."
        table = table.noting(Warned(text), labels=None)
    with screen.working("writing the report"), real_file(output, ".html") as page:
        write_report(
            table.X,
            model,
            page,
            ids=table.ids,
            id_name=table.id_name,
            feature_names=table.names,
            title=title or f"Clusters of {Path(data).stem}",
            labels_true=table.labels,
            notes=list(table.notes),
            original=table.original,
            texts=table.texts,
            source=table.source,
            command=ctx.find_root().obj,
        )
    k = len(model.cluster_centers_)
    facts = {"n_clusters": k, "report_file": output}
    screen.begin("report", table, f"{table.heading}, {counted(k, 'cluster')}", **facts)
    screen.say(f"report written to {output}; open it in a browser")
