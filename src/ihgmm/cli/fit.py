"""The command ``ihgmm fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from ihgmm import IhSC
from ihgmm._tables import (
    BUILT_IN,
    TEXT,
    Table,
    TableError,
    read_table,
    standardize,
    write_csv,
)
from ihgmm.eigen import ORDERS
from ihgmm.gram import GRAMS
from ihgmm.metrics import misclassification_loss

__all__ = ["fit"]


def fit(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A CSV, TSV, Parquet, NPY, NPZ or MTX file, rows being observations; "
            f"or a built-in data set: {', '.join(BUILT_IN)}, or one of the paper's "
            "that are downloaded: seeds, dermatology, dna, segment, satimage, usps, "
            "pendigits.",
        ),
    ],
    n_clusters: Annotated[
        str,
        typer.Option(
            "-k",
            "--n-clusters",
            help='Number of clusters, or "auto" to count the directions in the data.',
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write id, cluster and scale to this CSV."),
    ] = None,
    zscore: Annotated[
        bool,
        typer.Option(
            "--standardize", help="Give every column mean 0 and deviation 1 first."
        ),
    ] = False,
    label_column: Annotated[
        str | None,
        typer.Option(help="Column with known labels: not used, but compared with."),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="Column with names of rows, for the output.")
    ] = None,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows with missing cells.")
    ] = False,
    gram: Annotated[
        str, typer.Option(help=f"Similarity of rows: {', '.join(GRAMS)}.")
    ] = "hollow",
    order: Annotated[
        str, typer.Option(help=f"Which eigenvalues lead: {', '.join(ORDERS)}.")
    ] = "algebraic",
    refine: Annotated[
        bool,
        typer.Option(
            "--refine", help="Reassign rows to the centres that the other rows give."
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the random starts.")] = 0,
) -> None:
    """Cluster the rows of DATA with IhSC.

    [bold]Examples[/]

      ihgmm fit iris -k 3

      ihgmm fit cells.csv -k 8 --id-column barcode --label-column type -o labels.csv

      ihgmm fit wine -k 3 --standardize

      ihgmm fit demo -k auto --refine
    """
    count = _count(n_clusters)
    if output is not None:
        _check_output(output, data)
    table = read_table(
        data, label_column=label_column, id_column=id_column, drop_missing=drop_missing
    )
    X = standardize(table.X) if zscore else table.X
    model = IhSC(
        count,  # type: ignore[arg-type]
        gram=gram,  # type: ignore[arg-type]
        order=order,  # type: ignore[arg-type]
        refine=refine,
        random_state=seed,
    )
    model.fit(X)
    if output is not None:
        write_csv(
            output,
            [table.id_name, "cluster", "scale"],
            [table.ids, model.labels_, [f"{s:.6g}" for s in model.scales_]],
        )
    _summarize(Console(), data, table, model, output)


def _count(text: str) -> int | str:
    """Return the number of clusters as it is written on the command line."""
    try:
        return int(text)
    except ValueError:
        if text.lower() == "auto":
            return "auto"
        raise TableError(f"-k {text}: give a whole number, or auto.") from None


def _check_output(output: Path, data: str) -> None:
    """Refuse an output that could not be written, before any work is done."""
    if output.suffix not in TEXT:
        raise TableError(f"-o {output}: give a name that ends in .csv or .tsv.")
    if not output.parent.is_dir():
        raise TableError(f"-o {output}: there is no folder {output.parent}.")
    if output.is_dir():
        raise TableError(f"-o {output} is a folder; give a file name.")
    if output.exists() and Path(data).exists() and output.samefile(data):
        raise TableError(f"-o {output} is the data itself; give another name.")


def _summarize(
    console: Console, data: str, table: Table, model: IhSC, output: Path | None
) -> None:
    n, p = table.X.shape
    k = model.n_clusters_
    console.print(
        f"[bold]{escape(data)}[/]: {n:,} rows, {p:,} features, "
        f"{k} cluster{'s' * (k != 1)}",
        highlight=False,
    )
    if model.n_clusters == "auto":
        console.print(escape(str(model.selection_)), highlight=False)
    for note in table.notes:
        console.print(escape(note), style="yellow", highlight=False)
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for name in ("cluster", "rows", "share", "scale: median", "5%", "95%"):
        grid.add_column(name, justify="right")
    for cluster in range(k):
        scales = model.scales_[model.labels_ == cluster]
        if len(scales) == 0:
            grid.add_row(str(cluster), "0", "0.0%", "-", "-", "-")
            continue
        low, middle, high = np.quantile(scales, [0.05, 0.5, 0.95])
        grid.add_row(
            str(cluster),
            f"{len(scales):,}",
            f"{len(scales) / n:.1%}",
            *(f"{value:.2f}" for value in (middle, low, high)),
        )
    console.print(grid)
    values = "  ".join(f"{value:.4g}" for value in model.eigenvalues_)
    console.print(f"leading eigenvalues: {values}", highlight=False)
    positive = int((model.eigenvalues_ > 0).sum())
    if positive < k:
        console.print(
            f"only {positive} of {k} leading eigenvalues are positive: the data show "
            "fewer directions than clusters. Ask for fewer clusters; if columns are "
            "in different units, add --standardize.",
            style="yellow",
            highlight=False,
        )
    if table.labels is not None:
        classes = len(set(table.labels.astype(str)))
        wrong = misclassification_loss(table.labels.astype(str), model.labels_)
        console.print(
            f"against the known labels ({classes} classes): {wrong:,} of {n:,} rows "
            f"differ ({wrong / n:.1%})",
            highlight=False,
        )
    if output is None:
        console.print("labels were not saved; add -o labels.csv", highlight=False)
    else:
        console.print(f"labels written to {escape(str(output))}", highlight=False)
