"""The command ``ihgmm choose-k``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated

import typer

from ihgmm import select_n_clusters
from ihgmm._tables import Table, check_output, write_whole
from ihgmm._text import count_headline
from ihgmm.cli._data import Source
from ihgmm.cli._options import (
    OUTPUT,
    AsJson,
    Bare,
    Columns,
    Data,
    DropColumns,
    DropMissing,
    IdColumn,
    LabelColumn,
    ScaleColumns,
    Seed,
    Standardize,
    one_of,
)
from ihgmm.cli._screen import Screen
from ihgmm.statistics.selection import COUNT_GRAMS, METHODS, ClusterCount

__all__ = ["choose_k"]

PICTURES = (".png", ".pdf", ".svg")
BEYOND = 5
"""Eigenvalues shown after those that count."""


Method = Annotated[
    str,
    typer.Option(
        autocompletion=one_of(METHODS),
        help="parallel: count directions that stand out from noise; stability: "
        "the largest number of clusters that halves of the data agree on; auto: "
        "stability in 20 features or fewer, parallel in more.",
    ),
]
CountGram = Annotated[
    str,
    typer.Option(
        autocompletion=one_of(COUNT_GRAMS),
        help=f"Similarity of rows: {', '.join(COUNT_GRAMS)}.",
    ),
]
MaxClusters = Annotated[int, typer.Option(help="The largest number to look for.")]
Plot = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=OUTPUT,
        help="Draw the eigenvalues and the edge of noise, and the prediction "
        "strengths of stability: a PNG, PDF or SVG file.",
    ),
]


def choose_k(
    data: Data,
    method: Method = "auto",
    gram: CountGram = "auto",
    max_clusters: MaxClusters = 50,
    plot: Plot = None,
    seed: Seed = 0,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    columns: Columns = None,
    drop_columns: DropColumns = None,
    drop_missing: DropMissing = False,
    standardize: Standardize = False,
    scale_columns: ScaleColumns = False,
    as_json: AsJson = False,
    quiet: Bare = False,
) -> None:
    """Find the number of clusters in DATA, and show on what evidence.

    [bold]Examples[/]

      ihgmm choose-k demo

      ihgmm choose-k wine --standardize --method stability --plot eigenvalues.png

      ihgmm choose-k cells.csv --id-column barcode --json
    """
    if plot is not None:
        check_output(plot, "--plot", suffixes=PICTURES, sources=[data])
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
    with screen.working("counting"):
        found = select_n_clusters(
            table.X,
            max_clusters=max_clusters,
            gram=gram,  # type: ignore[arg-type]
            method=method,  # type: ignore[arg-type]
            random_state=seed,
        )
    if plot is not None:
        _draw(found, plot)
    screen.document(
        {
            "command": "choose-k",
            "data": data,
            "n_samples": table.X.shape[0],
            "n_features": table.X.shape[1],
            "n_clusters": found.n_clusters,
            "rank": found.rank,
            "summary": found.summary,
            "eigenvalues": found.eigenvalues,
            "edge": found.edge,
            "strengths": found.strengths,
            "method": found.method,
            "gram": found.gram,
            "notes": table.notes,
            "plot_file": plot,
        }
    )
    _tell(screen, data, table, found, plot)
    screen.answer(str(found.n_clusters))


def _tell(
    screen: Screen, data: str, table: Table, found: ClusterCount, plot: Path | None
) -> None:
    """Say it to people."""
    n, p = table.X.shape
    screen.say(f"{data}: {n:,} rows, {p:,} features: {count_headline(found)}", "bold")
    screen.notes(table.notes)
    screen.say(found.summary)
    shown = found.eigenvalues[: found.rank + BEYOND]
    screen.grid(
        ("number", "eigenvalue", "over the edge", "counts"),
        [
            (
                str(i),
                f"{value:.4g}",
                f"{value / found.edge:.2f}" if found.edge > 0 else "-",
                "yes" if i <= found.rank else "no",
            )
            for i, value in enumerate(shown, 1)
        ],
    )
    if found.strengths:
        screen.grid(
            ("clusters", "prediction strength"),
            [(str(i), f"{value:.2f}") for i, value in found.strengths.items()],
        )
    if plot is not None:
        screen.say(f"drawn in {plot}")


def _draw(found: ClusterCount, path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("--plot needs matplotlib: pip install matplotlib") from error
    panels = 2 if found.strengths else 1
    figure = Figure(figsize=(6 if panels == 1 else 10, 4), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    found.plot(axes[0])
    if found.strengths:
        found.plot_strengths(axes[1])
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix[1:].lower(), dpi=150)
    write_whole(path, picture.getvalue())
