"""The command ``ihgmm report``."""

from pathlib import Path
from typing import Annotated

import typer

from ihgmm.cli.files import check_output, real_file
from ihgmm.cli.fitting import fit_table
from ihgmm.cli.options import Data, Fitting, Reading, output_option
from ihgmm.cli.screen import Screen
from ihgmm.words.phrases import counted


def report(
    *,
    ctx: typer.Context,
    data: Data,
    fitting: Fitting,
    output: Annotated[
        Path,
        output_option(
            "The page, ending in .html; an existing file is replaced.",
            "-o",
            "--output",
        ),
    ],
    title: Annotated[str | None, output_option("Heading of the page.")] = None,
    reading: Reading,
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
    from ihgmm.cli.describing import without_batches
    from ihgmm.report import write_report

    check_output(output, "-o", (".html", ".htm"), [data], may_stream=True)
    screen.leave_room_for(output)

    model, table = fit_table(data, fitting, reading, screen)
    model, table = without_batches(model, table)

    with screen.working("writing the report"), real_file(output, ".html") as page:
        write_report(
            table.X,
            model,
            page,
            ids=table.rows.ids,
            id_name=table.rows.id_name,
            feature_names=table.names,
            title=title or f"Clusters of {Path(data).stem}",
            labels_true=table.rows.labels,
            notes=[str(note) for note in table.notes],
            original=table.original,
            texts=table.rows.texts,
            source=table.source,
            command=ctx.find_root().obj,
        )

    n_clusters = len(model.cluster_centers_)
    heading = f"{table.heading}, {counted(n_clusters, 'cluster')}"
    facts = {"n_clusters": n_clusters, "report_file": output}
    screen.begin("report", table, heading, facts)
    screen.say(f"report written to {output}; open it in a browser")
