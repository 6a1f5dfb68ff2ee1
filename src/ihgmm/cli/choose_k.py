"""The command ``ihgmm choose-k``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ihgmm import select_n_clusters
from ihgmm._files import atomic_write
from ihgmm.cli.data import Reading
from ihgmm.cli.options import OUTPUT, Data, Seed, one_of
from ihgmm.cli.output import check_output
from ihgmm.cli.screen import AnswerScreen
from ihgmm.selection import ClusterCount
from ihgmm.selection.count import COUNT_GRAMS, METHODS
from ihgmm.selection.stability import FEW_FEATURES
from ihgmm.selection.words import headline


def choose_k(
    *,
    data: Data,
    method: Annotated[
        str,
        typer.Option(
            autocompletion=one_of(METHODS),
            help="parallel: count directions that stand out from noise; stability: "
            "the largest number of clusters that halves of the data agree on; auto: "
            f"stability in {FEW_FEATURES} features or fewer, parallel in more.",
        ),
    ] = "auto",
    gram: Annotated[
        str,
        typer.Option(
            autocompletion=one_of(COUNT_GRAMS),
            help=f"Similarity of rows: {', '.join(COUNT_GRAMS)}.",
        ),
    ] = "auto",
    max_clusters: Annotated[
        int, typer.Option(help="The largest number to look for.")
    ] = 50,
    plot: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=OUTPUT,
            help="Draw the eigenvalues and the edge of noise, and the prediction "
            "strengths of stability: a PNG, PDF or SVG file.",
        ),
    ] = None,
    seed: Seed = 0,
    reading: Reading,
    screen: AnswerScreen,
) -> None:
    """Find the number of clusters in DATA, and show on what evidence.

    [bold]Examples[/]

      ihgmm choose-k demo

      ihgmm choose-k wine --standardize --method stability --plot eigenvalues.png

      ihgmm choose-k cells.csv --id-column barcode --json
    """
    check_output(plot, "--plot", suffixes=(".png", ".pdf", ".svg"), sources=[data])
    table, _ = reading.load(data, screen)
    with screen.working("counting"):
        count = select_n_clusters(
            table.X,
            max_clusters=max_clusters,
            gram=gram,  # type: ignore[arg-type]
            method=method,  # type: ignore[arg-type]
            random_state=seed,
        )
    if plot is not None:
        _draw(count, plot)
    n, p = table.X.shape
    screen.document(
        {
            "command": "choose-k",
            "data": data,
            "n_samples": n,
            "n_features": p,
            "n_clusters": count.n_clusters,
            "rank": count.rank,
            "summary": count.summary,
            "eigenvalues": count.eigenvalues,
            "edge": count.edge,
            "strengths": count.strengths,
            "method": count.method,
            "gram": count.gram,
            "notes": table.notes,
            "plot_file": plot,
        }
    )
    screen.say(f"{data}: {n:,} rows, {p:,} features: {headline(count)}", "bold")
    screen.notes(table.notes)
    screen.say(count.summary)
    beyond = 5  # eigenvalues after those that count, to show how they go on
    screen.table(
        {"number": "", "eigenvalue": ".4g", "over the edge": ".2f", "counts": ""},
        [
            (
                i,
                value,
                value / count.edge if count.edge > 0 else None,
                "yes" if i <= count.rank else "no",
            )
            for i, value in enumerate(count.eigenvalues[: count.rank + beyond], 1)
        ],
    )
    if count.strengths:
        screen.table(
            {"clusters": "", "prediction strength": ".2f"}, count.strengths.items()
        )
    if plot is not None:
        screen.say(f"drawn in {plot}")
    screen.answer(str(count.n_clusters))


def _draw(count: ClusterCount, path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("--plot needs matplotlib: pip install matplotlib") from error
    panels = 2 if count.strengths else 1
    figure = Figure(figsize=(6 if panels == 1 else 10, 4), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    count.plot(axes[0])
    if count.strengths:
        count.plot_strengths(axes[1])
    with atomic_write(path, "wb") as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=150)
