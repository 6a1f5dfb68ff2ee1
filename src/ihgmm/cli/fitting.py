"""Fitting a model to a table, and telling people what was found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm._checks import complete_matrix
from ihgmm._warnings import UnstableLabelsWarning, ignored
from ihgmm.cli import clusters as cl
from ihgmm.cli import files
from ihgmm.cli.options import Fitting, Reading
from ihgmm.cli.screen import Screen, print_message
from ihgmm.cli.tables.table import Note, Table
from ihgmm.matrix import to_host
from ihgmm.metrics import class_agreement
from ihgmm.statistics.contrasts import set_apart
from ihgmm.statistics.diagnosis import Caution, Diagnosis, Verdict, diagnose_fit
from ihgmm.statistics.estimation import estimate_parameters
from ihgmm.words.diagnoses import (
    caution_text,
    feature_words,
    trust_sentence,
    wild_cells_note,
)
from ihgmm.words.phrases import counted


def run_fit(
    data: str,
    fitting: Fitting,
    output: Path | None,
    raw_cells: bool,
    save: Path | None,
    names: Path | None,
    reading: Reading,
    screen: Screen,
) -> None:
    """Do what ``ihgmm fit`` is asked for."""
    files.check_output(output, "-o", files.LABELS_SUFFIXES, [data], streams=True)
    files.check_output(save, "--save", sources=[data])
    if output is not None and save is not None and output.resolve() == save.resolve():
        raise ValueError(f"-o and --save both name {save}; give two files.")
    screen = screen.beside(output)
    model, table, cluster_names = fit_table(data, fitting, reading, names, screen)
    if save is not None:
        _save(model, table, reading, cluster_names, save)
    labels, k = to_host(model.labels_).astype(np.intp), len(model.cluster_centers_)
    with screen.working("describing"):
        figures, clusters, diagnosis, same_size = _describe(
            model, table, labels, cluster_names
        )
    remarks = files.write_labels(
        output, table, labels, figures, cluster_names, raw_cells
    )
    comparison = cl.compare_labels(table, labels)
    if comparison is not None:
        comparison = _beside_k_means(comparison, model, table, fitting.random_state)
    cautions = [_caution(caution, table) for caution in diagnosis.cautions]
    cells, column_names = getattr(model, "outlier_cells_", None), table.column_names
    wild = None  # if nobody looked
    if cells is not None:
        wild = [[table.ids[i], column_names[j]] for i, j in cells]
    if wild:
        table = table.noting(Note(wild_cells_note(len(wild), table.X.shape)))
    count = getattr(model, "selection_", None)
    method, python = type(model).__name__, _python_lines(model, data, reading)
    screen.document(
        "fit",
        table.facts,
        method=method,
        n_clusters=k,
        count=None if count is None else str(count),
        clusters=clusters,
        verdict=str(diagnosis.verdict),
        stability=diagnosis.stability,
        doubt=diagnosis.doubt,
        expected_error=diagnosis.expected_error,
        error_range=diagnosis.error_range,
        eigenvalues=getattr(model, "eigenvalues_", None),
        outlier_cells=wild,
        known_labels=comparison,
        notes=[*table.notes, *cautions, *remarks],
        python=python,
        labels_file=output,
        model_file=save,
    )
    screen.say(f"{table.heading}, {counted(k, 'cluster')} ({method})", "bold")
    screen.notes(table.notes)
    if count and count.n_clusters > 1 and not count.is_doubtful:
        screen.say(str(count))  # of any other count, a warning has said it
    if count and count.is_doubtful:
        screen.say("To see the evidence for each number: ihgmm choose-k")
    cl.print_clusters(screen, clusters)
    _print_features(screen, clusters, same_size, table.X.shape[1])
    _print_trust(screen, diagnosis, cautions)
    cl.print_labels(screen, len(labels), comparison, output, remarks)
    if screen.explains:
        screen.say("The same in Python:", "bold")
        for line in python:
            screen.say(f"    {line}")
    if save is not None:
        screen.say(f"model written to {save}; use it with: ihgmm predict {save} DATA")
    if not screen.explains:
        screen.say("what the words mean, and the same in Python: --explain", "dim")


def _save(
    model: Any,
    table: Table,
    reading: Reading,
    cluster_names: list[str] | None,
    path: Path,
) -> None:
    """Write the model, and what ``ihgmm predict`` has to know of its data."""
    from sklearn.pipeline import make_pipeline

    from ihgmm.storage import save_model

    save_model(
        make_pipeline(table.scaler, model) if table.scaler else model,
        path,
        feature_names=table.names,
        id_column=reading.id_column,
        label_column=reading.label_column,
        text_column=reading.text_column,
        layer=reading.layer,
        empty_is_zero=reading.missing == "zero",
        cluster_names=cluster_names,
    )


def fit_table(
    data: str, fitting: Fitting, reading: Reading, names: Path | None, screen: Screen
) -> tuple[Any, Table, list[str] | None]:
    """Return a fitted model, its data, and names of its clusters where a file has some.

    What cannot be done is refused before the data are read.
    """
    model = fitting.model(reading.missing)
    named = None if names is None else files.read_names(names)
    fills, wild_cells = model.missing is not None, _takes_cells(model)
    options: dict[str, Any] = {"fills": fills, "wild_cells": wild_cells}
    table = reading.load(data, screen, whiten=fitting.whiten, **options)
    if table.has_missing:
        model.missing = "fit"
    # How stable labels are, the diagnosis of all that fit a table says.
    with screen.working("clustering"), ignored(UnstableLabelsWarning), table.quiet:
        model.fit(table.named_data)
    if names is None or named is None:
        return model, table, None
    k, labels = len(model.cluster_centers_), to_host(model.labels_)
    return model, table, files.names_for(names, named, table, labels, k)


def _caution(caution: Caution, table: Table) -> str:
    """Return a caution with the option that follows it."""
    text = caution_text(caution, table.column_names, prepared=bool(table.scaler))
    if caution.kind.name != "RULING_COLUMN":
        return text
    return f"{text} Add --{'drop-columns' if table.scaler else 'prepare scale'}."


def _takes_cells(model: Any) -> bool:
    """Tell whether a model takes cells that fit no row for missing."""
    return bool(getattr(model, "outliers", None) == "cells")


def _python_lines(model: Any, data: str, reading: Reading) -> list[str]:
    """Return what reads the same data and fits the same model in Python."""
    given = reading.given
    if reading.missing == "auto" and model.missing is None:
        given["missing"] = "drop"
    if _takes_cells(model):
        given["wild_cells"] = True
    if getattr(model, "whiten", None) and reading.prepare == "auto":
        given["whiten"] = model.whiten
    options = "".join(f", {name}={value!r}" for name, value in given.items())
    made = " ".join(repr(model).split())
    if "n_clusters=" not in made:  # the default is not written
        made = made.replace("(", f"(n_clusters={model.n_clusters!r}, ", 1)
    return [
        f"from ihgmm import {type(model).__name__}",
        "from ihgmm.cli.tables import read_table",
        f"X = read_table({data!r}{options}).X",
        f"model = {made}.fit(X)",
    ]


def _beside_k_means(
    comparison: cl.KnownLabels, model: Any, table: Table, seed: int
) -> cl.KnownLabels:
    """Return a comparison with what k-means makes of the same numbers, if it is quick.

    With a million entries it takes some ten seconds, unless they are only noise.
    """
    X, k = table.X, len(model.cluster_centers_)
    n, p = X.shape
    if table.on_disk or table.labels is None:
        return comparison
    if (X.nnz if table.is_sparse else n * p) + k * p > 10**6:
        return comparison
    from sklearn.cluster import KMeans

    if table.is_sparse:  # k-means takes indices of 32 bits alone
        indices = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        X = sp.csr_array((X.data, *indices), shape=X.shape)
    elif table.has_missing:  # filled in as for the fit
        X = to_host(complete_matrix(X, model).rows(np.arange(n)))
    labels = KMeans(k, n_init=10, random_state=seed).fit_predict(X)
    rival = class_agreement(table.labels.astype(str), labels)
    return replace(
        comparison,
        k_means_misplaced=rival.misplaced,
        k_means_adjusted_rand_index=rival.adjusted_rand_index,
    )


def _describe(
    model: Any, table: Table, labels: np.ndarray, names: list[str] | None
) -> tuple[dict[str, np.ndarray], list[dict[str, Any]], Diagnosis, bool]:
    """Return figures of rows, a line about each cluster, and how far to trust them.

    The last tells whether clusters are compared with others of the same size.
    """
    data, k = complete_matrix(table.X, model), len(model.cluster_centers_)
    if hasattr(model, "scales_"):
        known = model.scales_, model.cluster_centers_
    else:  # a method that knows nothing of scales
        estimates = estimate_parameters(data, labels, k)
        known = estimates.scales, estimates.centers
    scales, centers = (to_host(values).astype(float) for values in known)
    diagnosis = diagnose_fit(model, table.X, labels)
    scores = getattr(model, "outlier_scores_", None)
    figures = cl.figures_of(data, labels, scales, centers, diagnosis, scores)
    clusters = cl.cluster_lines(labels, names or [""] * k, figures, table.ids)
    units = {"original": table.original, "n_features": 5}
    apart = set_apart(model, data, labels, scales, **units)
    features = table.names or [f"feature {j}" for j in range(1, data.shape[1] + 1)]
    marks = apart.ranked.features
    if table.counts_words:  # a text is known by the words that it has more of
        more = np.where(apart.means > apart.others, apart.ranked.contrasts, 0.0)
        marks = np.argsort(-more, kind="stable")[:, :5]
    for line in clusters:
        i = line["cluster"]
        line["features"] = [
            {
                "feature": str(features[j]),
                "mean": apart.means[i, j],
                "others": apart.others[i, j],
                "contrast": apart.ranked.contrasts[i, j],
            }
            for j in (marks[i] if k > 1 and i >= 0 else ())
            if apart.ranked.contrasts[i, j] != 0
        ]
    return figures, clusters, diagnosis, apart.same_size


def _print_features(
    screen: Screen,
    clusters: list[dict[str, Any]],
    same_size: bool,
    n_features: int,
    most: int = 12,
) -> None:
    """Print the features that set each of the largest clusters apart most.

    They are five for each; fewer, but two, of few features or for many clusters.
    """
    shown = int(np.clip(min(30 // len(clusters), n_features // 2), 2, 5))
    rows = [
        (cl.called(line) if i == 0 else "", *feature.values())
        for line in clusters[:most]
        for i, feature in enumerate(line["features"][:shown])
    ]
    if rows:
        others = "others, same size" if same_size else "others"
        formats = {"cluster": "", "set apart by": "", "mean": ".4g", others: ".4g"}
        screen.table(formats | {"contrast": "+.1f"}, rows)
        screen.explain(feature_words(same_size))
        if len(clusters) > most:
            screen.say(f"These are the {most} largest clusters; --json has all.", "dim")


def _print_trust(screen: Screen, diagnosis: Diagnosis, cautions: list[str]) -> None:
    """Print how far to trust the labels; where not at all, also if little is said."""
    trust = trust_sentence(diagnosis)
    if screen.silent and diagnosis.verdict is Verdict.NO_SEPARATION:
        print_message("warning", trust)
    screen.say(trust)
    for caution in cautions:
        screen.say(caution, "yellow")
