"""The command ``ihgmm update``."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np

from ihgmm import IhSC
from ihgmm._warnings import ignored
from ihgmm.cli import files
from ihgmm.cli import options as opt
from ihgmm.cli.predict import read_for_model
from ihgmm.cli.screen import ExplainingScreen
from ihgmm.matrix import to_host
from ihgmm.storage import save_model
from ihgmm.words.phrases import counted


def update(
    *,
    model: Path = opt.MODEL,
    data: str = opt.DATA,
    save: Path = opt.output_option(
        "Write the model to this file; it may be MODEL itself. Required.", ...
    ),
    reading: opt.RowReading,
    screen: ExplainingScreen,
) -> None:
    """Let a saved model go on with the rows of DATA.

    Clusters keep their numbers, and the model does not become larger. It learns from
    all rows that it has seen, without keeping them. Columns are found by name and
    prepared as they were for the fit. A warning says if a cluster gets no more rows, or
    if another one seems to appear. Models of IhSC with its default recipe can go on,
    without options for outliers, missing cells, signs, whitening or batches.

    [bold]Examples[/]

      ihgmm update model.npz tuesday.csv --save model.npz
    """
    files.check_output(save, "--save", others=[data])
    saved, estimator, table = read_for_model(model, data, reading, screen)
    if type(estimator) is not IhSC:
        kind = type(estimator).__name__
        raise ValueError(f"{model} is a model of {kind}; only one of IhSC can go on.")
    # Columns were matched by name when they were read.
    names = ignored(UserWarning, "X does not have valid feature names")
    with screen.working("updating"), names:
        estimator.partial_fit(table.X)
    about = {one.name: getattr(saved, one.name) for one in fields(saved)[1:]}
    save_model(saved.model, save, **about)
    k, seen = len(estimator.cluster_centers_), estimator.n_samples_seen_
    sizes = np.bincount(to_host(estimator.labels_), minlength=k)
    shares = estimator.growth_.lengths[:, 0] / estimator.growth_.lengths[:, 0].sum()
    pairs = enumerate(zip(sizes.tolist(), shares.tolist(), strict=True))
    lines = [{"cluster": i, "new_rows": n, "share_of_all": s} for i, (n, s) in pairs]
    rows = counted(table.X.shape[0], "row")
    heading = f"{model} has learnt from {rows} of {data}, and {seen:,} in all"
    facts = {"model": model, "n_samples_seen": seen, "clusters": lines}
    screen.begin("update", table, heading, **facts, model_file=save)
    for line in lines:
        screen.say(
            f"cluster {line['cluster']}: {line['new_rows']:,} new rows, "
            f"{line['share_of_all']:.1%} of all"
        )
    screen.say(f"model written to {save}; use it with: ihgmm predict {save} DATA")
