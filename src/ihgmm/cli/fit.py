"""The command ``ihgmm fit``."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ihgmm.cli.files import LABELS_SUFFIXES, check_output, write_labels
from ihgmm.cli.fitting import fit_table
from ihgmm.cli.options import (
    Data,
    Fitting,
    LabelsFile,
    RawCells,
    Reading,
    output_option,
)
from ihgmm.cli.screen import ExplainingScreen
from ihgmm.cli.tables.table import Table
from ihgmm.matrix import to_host


def fit(
    *,
    data: Data,
    fitting: Fitting,
    output: LabelsFile = None,
    raw_cells: RawCells = False,
    save: Annotated[
        Path | None,
        output_option(
            "Write the model to this file, for ihgmm predict; an old one is replaced."
        ),
    ] = None,
    reading: Reading,
    screen: ExplainingScreen,
) -> None:
    """Cluster the rows of DATA and describe the clusters.

    For each cluster you see how many rows it has, how large they are, how sure their
    labels are, and the features that set it apart. The labels file (-o) has a line for
    each row: cluster, scale, size, certainty, 1 to 3 if it is typical, how many cells
    were filled in, and with --outliers a score.

    [bold]Examples[/]

      ihgmm fit iris -k 3
      ihgmm fit cells.csv -k 8 --id-column barcode --label-column type -o labels.csv
      ihgmm fit reviews.csv -k auto --text-column review --id-column order
      cat cells.csv | ihgmm fit - -k 8 -o - > labels.csv
    """
    # The help does without what these load.
    from ihgmm.cli import describing
    from ihgmm.cli.comparing import compare_labels
    from ihgmm.cli.fit_result import FitResult, print_fit

    check_output(output, "-o", LABELS_SUFFIXES, [data], may_stream=True)
    check_output(save, "--save", others=[data, output or data])
    screen.leave_room_for(output)

    fitted, table = fit_table(data, fitting, reading, screen)
    model, table = describing.without_batches(fitted, table)
    labels = to_host(model.labels_).astype(np.intp)

    with screen.working("describing"):
        description = describing.describe_fit(model, table, labels)

    if save is not None:
        describing.temper(fitted, description.diagnosis)
        _save(fitted, table, reading, save)

    remarks: list[str] = []
    if output is not None:
        with screen.working("writing the labels"):
            remarks = write_labels(
                output,
                table.rows,
                labels,
                description.figures.columns(),
                classes=getattr(model, "classes_", None),
                raw_cells=raw_cells,
            )

    evidence_command = reading.command("choose-k", data, columns_as=fitting.columns_as)

    result = FitResult(
        model=model,
        table=table,
        labels=labels,
        description=description,
        comparison=compare_labels(table, labels, model),
        cautions=describing.caution_texts(description.diagnosis, table, model),
        remarks=remarks,
        labels_file=output,
        model_file=save,
        # It takes no batches.
        evidence_command=None if reading.batch_column else evidence_command,
    )
    print_fit(result, screen)


def _save(fitted: Any, table: Table, reading: Reading, path: Path) -> None:
    """Write a model with what prepared its columns, and what was asked of its data."""
    from sklearn.pipeline import make_pipeline

    from ihgmm.storage import save_model

    save_model(
        make_pipeline(table.scaler, fitted) if table.scaler else fitted,
        path,
        feature_names=table.names,
        id_column=reading.id_column,
        label_column=reading.label_column,
        batch_column=reading.batch_column,
        text_column=reading.text_column,
        layer=reading.layer,
        empty_is_zero=reading.missing == "zero",
    )
