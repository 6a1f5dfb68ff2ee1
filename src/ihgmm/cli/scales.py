"""The command ``ihgmm test-scales``."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from ihgmm import IhSC, scale_heterogeneity_test
from ihgmm._tables import TableError
from ihgmm.cli._data import Source, parse_n_clusters
from ihgmm.cli._options import (
    READING,
    AsJson,
    Bare,
    Columns,
    Data,
    DropColumns,
    DropMissing,
    Gram,
    IdColumn,
    ScaleColumns,
    Seed,
    Standardize,
)
from ihgmm.cli._screen import Screen
from ihgmm.statistics.scale_test import ScaleTest

__all__ = ["scale_test"]


def scale_test(
    data: Data,
    n_clusters: Annotated[
        str | None,
        typer.Option(
            "-k",
            "--n-clusters",
            help='Test within so many clusters that IhSC finds, or "auto"; without it '
            "within the known labels.",
        ),
    ] = None,
    gram: Gram = "hollow",
    seed: Seed = 0,
    label_column: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=READING,
            help="Column with known labels (or array of an NPZ file): rows are "
            "tested within them, unless -k is given.",
        ),
    ] = None,
    id_column: IdColumn = None,
    columns: Columns = None,
    drop_columns: DropColumns = None,
    drop_missing: DropMissing = False,
    standardize: Standardize = False,
    scale_columns: ScaleColumns = False,
    as_json: AsJson = False,
    quiet: Bare = False,
) -> None:
    """Test whether the rows of a cluster differ in scale at all.

    A small p-value speaks for individual scales, a large one for the classical mixture.

    [bold]Examples[/]

      ihgmm test-scales iris

      ihgmm test-scales cells.csv --label-column type

      ihgmm test-scales cells.csv -k 8 --drop-columns batch,plate --json
    """
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
    with screen.working("testing"):
        if n_clusters is not None:
            model = IhSC(
                parse_n_clusters(n_clusters),
                gram=gram,  # type: ignore[arg-type]
                random_state=seed,
            )
            labels, origin = model.fit_predict(table.X), "found by IhSC"
        elif table.labels is not None:
            labels, origin = table.labels.astype(str), "known"
        else:
            raise TableError(
                f"{data} has no known labels: name their column with --label-column, "
                "or give -k to test within clusters that are found."
            )
        found = scale_heterogeneity_test(table.X, labels, random_state=seed)
    screen.document(
        {
            "command": "test-scales",
            "data": data,
            "labels": origin,
            **_figures(found),
            "notes": table.notes,
        }
    )
    n, p = table.X.shape
    screen.say(f"{data}: {n:,} rows, {p:,} features, labels {origin}", "bold")
    screen.notes(table.notes)
    _tell(screen, found)
    screen.answer(found.advice)


def _figures(found: ScaleTest) -> dict[str, Any]:
    """Return the test for machines."""
    names = ("p_value", "statistic", "spread", "detectable", "recommendation")
    clusters = zip(
        found.clusters,
        found.sizes,
        found.spreads,
        found.statistics,
        found.p_values,
        strict=True,
    )
    keys = ("cluster", "rows", "spread", "statistic", "p_value")
    return {
        **{name: getattr(found, name) for name in names},
        "clusters": [dict(zip(keys, row, strict=True)) for row in clusters],
    }


def _tell(screen: Screen, found: ScaleTest) -> None:
    """Say it to people."""
    each = zip(found.clusters, found.sizes, found.spreads, found.p_values, strict=True)
    total = ("all", found.sizes.sum(), found.spread, found.p_value)
    screen.grid(
        ("cluster", "rows", "spread", "p-value"),
        [
            (
                str(name),
                f"{size:,}",
                "-" if np.isnan(spread) else f"{spread:.1%}",
                "-" if np.isnan(p) else "<1e-300" if p < 1e-300 else f"{p:.2g}",
            )
            for name, size, spread, p in (*each, total)
        ],
    )
    screen.say(found.recommendation)
