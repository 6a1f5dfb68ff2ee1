"""The command ``ihgmm choose-k``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from ihgmm import select_n_clusters
from ihgmm._files import atomic_write
from ihgmm.cli.files import check_output
from ihgmm.cli.options import (
    ColumnsAs,
    Data,
    Reading,
    Seed,
    option,
    output_option,
)
from ihgmm.cli.screen import ExplainingScreen, print_message
from ihgmm.cli.tables.reading import read_table
from ihgmm.cli.tables.request import PreparationRequest
from ihgmm.cli.tables.table import Table
from ihgmm.plotting.counts import plot_count
from ihgmm.statistics.selection import ClusterCount
from ihgmm.words.counts import count_headline, evidence_rows, evidence_words


def choose_k(
    *,
    data: Data,
    max_clusters: Annotated[
        int, option("The largest number of clusters to look for.")
    ] = 50,
    columns_as: ColumnsAs = "auto",
    random_state: Seed = 0,
    plot: Annotated[
        Path | None,
        output_option("Draw the evidence for each number in a PNG, PDF or SVG file."),
    ] = None,
    reading: Reading,
    screen: ExplainingScreen,
) -> None:
    """Find the number of clusters in DATA, and show the evidence.

    [bold]Examples[/]

      ihgmm choose-k wine --plot numbers.png
    """
    check_output(plot, "--plot", (".png", ".pdf", ".svg"), [data])
    if reading.batch_column is not None:
        raise ValueError("--batch-column: fit -k auto takes batches out, choose-k not.")

    preparation = PreparationRequest(
        missing=reading.missing,
        prepare=reading.prepare,
        columns=columns_as,
    )
    with screen.working(f"reading {data}"):
        table = read_table(reading.request(data), preparation)

    with screen.working("counting"), table.without_advice_to_prepare:
        count = _count(table, max_clusters, columns_as, random_state)

    if plot is not None:
        _draw(count, plot)
    _show(count, table, plot, screen)


def _count(
    table: Table, max_clusters: int, columns_as: str, random_state: int
) -> ClusterCount:
    """Count the clusters of a table."""
    missing: Literal["fit", "error"] = "fit" if table.has_missing else "error"
    return select_n_clusters(
        table.named_data,
        max_clusters=max_clusters,
        columns=columns_as,  # type: ignore[arg-type]
        missing=missing,
        random_state=random_state,
    )


def _draw(count: ClusterCount, path: Path) -> None:
    """Draw the evidence for each number of clusters in a file."""
    figure = plot_count(count).figure
    with atomic_write(path) as file:
        figure.savefig(  # type: ignore[union-attr]
            file, format=path.suffix[1:].lower(), dpi=150
        )


def _show(
    count: ClusterCount, table: Table, plot: Path | None, screen: ExplainingScreen
) -> None:
    """Print the number of clusters, and the evidence for it."""
    headline = count_headline(count)
    facts = {
        "n_clusters": count.n_clusters,
        "plausible": count.plausible,
        "confidence": count.confidence,
        "lead": count.lead,
        "evidence": [asdict(one) | {"score": one.score} for one in count.evidence],
        "clouds": count.clouds.leads,
        "summary": str(count),
        "plot_file": plot,
    }

    screen.begin("choose-k", table, f"{table.heading}: {headline}", facts)
    screen.say(str(count))

    meanings = evidence_words()
    if count.evidence:
        formats = {"clusters": "", **dict.fromkeys(meanings, ".2f"), "": ""}
        screen.table(formats, evidence_rows(count))
        screen.explain(f"{name}: {meaning}" for name, meaning in meanings.items())

    screen.name_explain()
    if plot is not None:
        screen.say(f"picture written to {plot}")

    if screen.quiet and not screen.as_json:
        if count.is_doubtful:
            print_message("warning", f"{headline}. {count}")
        typer.echo(count.n_clusters)  # for scripts
