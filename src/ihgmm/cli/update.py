"""The command ``ihgmm update``."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import numpy as np

from ihgmm import IhSC
from ihgmm.cli.files import check_output
from ihgmm.cli.options import Data, ModelFile, RowReading, output_option
from ihgmm.cli.saved_models import read_for_model
from ihgmm.cli.screen import Screen
from ihgmm.matrix import to_host
from ihgmm.storage import SavedModel, save_model
from ihgmm.words.phrases import counted


def update(
    *,
    model: ModelFile,
    data: Data,
    save: Annotated[
        Path,
        output_option(
            "Write the model to this file; it may be MODEL itself. Required."
        ),
    ],
    reading: RowReading,
    screen: Screen,
) -> None:
    """Let a saved model go on with the rows of DATA.

    Clusters keep their numbers. The model learns from all rows that it has seen, and
    keeps a sample of them, and labels of DATA alone. Columns are found by name and
    prepared as they were for the fit. A warning says if a cluster gets no more rows, or
    if another one seems to appear. Models of IhSC with its default recipe can go on,
    without options for outliers, signs, even noise, refining or batches. Missing cells
    are filled in if the fit did so.

    [bold]Examples[/]

      ihgmm update model.npz tuesday.csv --save model.npz
    """
    check_output(save, "--save", others=[data])
    loaded = read_for_model(model, data, reading, screen)
    estimator = loaded.estimator
    if type(estimator) is not IhSC:
        raise ValueError(f"{model} is no model of IhSC, which alone can go on.")

    with screen.working("updating"):
        estimator.partial_fit(loaded.table.X)
    _save_again(loaded.saved, save)

    growth = estimator.growth_
    lines = _cluster_lines(estimator)
    facts = {
        "model": model,
        "n_samples_seen": growth.n_samples,
        "clusters": lines,
        "share_moved": growth.moved_share,
        "model_file": save,
    }

    rows = f"{counted(loaded.table.X.shape[0], 'row')} of {data}"
    heading = f"{save} has learnt from {rows}, and {growth.n_samples:,} in all"
    screen.begin("update", loaded.table, heading, facts)

    formats = {"cluster": "", "new rows": ",", "about, of all": ".1%"}
    screen.table(formats, [line.values() for line in lines])
    if growth.moved_share:
        share = max(growth.moved_share, 0.001)
        text = f"about {share:.1%} of earlier rows have another label now"
        screen.say(f"clusters moved: {text}; ihgmm predict labels them again")
    screen.say(f"model written to {save}; use it with: ihgmm predict {save} DATA")


def _cluster_lines(estimator: IhSC) -> list[dict[str, float]]:
    """Return for each cluster how many new rows it has, and its share of all rows."""
    labels = to_host(estimator.labels_)
    sizes = np.bincount(labels, minlength=len(estimator.cluster_centers_))
    weights = estimator.growth_.sums.weights
    shares = weights / weights.sum()
    return [
        {"cluster": cluster, "new_rows": int(size), "share_of_all": float(share)}
        for cluster, (size, share) in enumerate(zip(sizes, shares, strict=True))
    ]


def _save_again(saved: SavedModel, path: Path) -> None:
    """Write a model with all that its file said of the data of the fit."""
    names = [field.name for field in fields(saved) if field.name != "model"]
    about = {name: getattr(saved, name) for name in names}
    save_model(saved.model, path, **about)
