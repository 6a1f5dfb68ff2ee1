"""The command ``ihgmm fit``."""

from __future__ import annotations

from pathlib import Path

from ihgmm.cli.options import (
    DATA,
    LABELS_FILE,
    NAMES_FILE,
    RAW_CELLS,
    Fitting,
    Reading,
    output_option,
)
from ihgmm.cli.screen import ExplainingScreen


def fit(
    *,
    data: str = DATA,
    fitting: Fitting,
    output: Path | None = LABELS_FILE,
    raw_cells: bool = RAW_CELLS,
    save: Path | None = output_option(
        "Write the model to this file, for ihgmm predict; an old one is replaced."
    ),
    names: Path | None = NAMES_FILE,
    reading: Reading,
    screen: ExplainingScreen,
) -> None:
    """Cluster the rows of DATA and describe the clusters.

    For each cluster you see how many rows it has, how large they are, how sure their
    labels are, and the features that set it apart. The labels file (-o) has a line for
    each row: cluster, scale, size, certainty, whether it is typical, with --names the
    name of its cluster, and with --outliers a score.

    [bold]Examples[/]

      ihgmm fit iris -k 3

      ihgmm fit cells.csv -k 8 --id-column barcode --label-column type -o labels.csv

      ihgmm fit customers.csv -k 5 --prepare scale --save model.npz

      ihgmm fit reviews.csv -k auto --text-column review --id-column order

      cat cells.csv | ihgmm fit - -k 8 -o - > labels.csv

      ihgmm fit demo -k auto --refine --json
    """
    from ihgmm.cli.fitting import run_fit  # the help does without what it loads

    run_fit(data, fitting, output, raw_cells, save, names, reading, screen)
