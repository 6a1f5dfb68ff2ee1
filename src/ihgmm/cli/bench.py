"""The command ``ihgmm bench``."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from ihgmm import IhSC, SphericalKMeans, make_ihgmm
from ihgmm._tables import BUILT_IN, Table, TableError
from ihgmm.cli._data import column_scaler, load, scaled
from ihgmm.cli._options import (
    FETCHED,
    AsJson,
    Columns,
    DropColumns,
    DropMissing,
    IdColumn,
    LabelColumn,
    Quiet,
    ScaleColumns,
    Seed,
    Standardize,
    one_of,
)
from ihgmm.cli._screen import Screen
from ihgmm.metrics import misclassification_rate

__all__ = ["bench"]

SHAPES = {
    "rows": (20_000, 200, 10),
    "features": (500, 10_000, 5),
    "square": (3_000, 3_000, 10),
}
"""Samples of the model: rows, features, clusters."""

Method = Callable[[Any, int, int], np.ndarray]


def bench(
    data: Annotated[
        str,
        typer.Argument(
            metavar="[DATA]",
            autocompletion=one_of([*SHAPES, *BUILT_IN, *FETCHED]),
            help="Data as for ihgmm fit; or a sample of the model: "
            + ", ".join(f"{name} ({n:,} x {p:,})" for name, (n, p, _) in SHAPES.items())
            + ".",
        ),
    ] = "rows",
    n_clusters: Annotated[
        int | None,
        typer.Option(
            "-k",
            "--n-clusters",
            help="Number of clusters; that of the known labels by default.",
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option(help="Runs of each method; the fastest counts.")
    ] = 3,
    seed: Seed = 0,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    columns: Columns = None,
    drop_columns: DropColumns = None,
    drop_missing: DropMissing = False,
    standardize: Standardize = False,
    scale_columns: ScaleColumns = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare IhSC with k-means on your data or on a sample: time and error.

    KMeans is scikit-learn's with its own defaults; faiss takes part where it is
    installed and the data are dense. Times are relative to IhSC's; the error is the
    share of rows misplaced, where labels are known.

    [bold]Examples[/]

      ihgmm bench

      ihgmm bench digits --repeats 5

      ihgmm bench cells.csv -k 8 --label-column type --json
    """
    if repeats < 1:
        raise TableError(f"--repeats {repeats} is too small; give 1 or more.")
    scaler = column_scaler(standardize, scale_columns)
    screen = Screen(as_json=as_json, quiet=quiet)
    with screen.working(f"reading {data}"):
        named = any((label_column, id_column, columns, drop_columns))
        if data in SHAPES and not named and not Path(data).exists():
            n, p, k = SHAPES[data]
            X, labels = make_ihgmm(n, p, k, dtype=np.float32, random_state=seed)
            table = Table(X, np.arange(n), labels=labels)
        else:
            table = load(
                data,
                label_column=label_column,
                id_column=id_column,
                columns=columns,
                drop_columns=drop_columns,
                drop_missing=drop_missing,
            )
    table = scaled(table, scaler)
    X, labels, notes = table.X, table.labels, table.notes
    if labels is not None:
        labels = np.asarray(labels).astype(str)
    if n_clusters is None and labels is None:
        raise TableError(
            f"{data} has no known labels; give the number of clusters, -k."
        )
    count = n_clusters or len(set(labels))
    runs = _race(screen, X, count, seed, repeats)
    base = runs["IhSC"][0]
    found: list[dict[str, Any]] = [
        {
            "method": name,
            "seconds": seconds,
            "ratio": seconds / base,
            "error": None
            if labels is None
            else misclassification_rate(labels, clusters),
        }
        for name, (seconds, clusters) in runs.items()
    ]
    n, p = X.shape
    screen.document(
        {
            "command": "bench",
            "data": data,
            "n_samples": n,
            "n_features": p,
            "n_clusters": count,
            "dtype": str(X.dtype),
            "repeats": repeats,
            "methods": found,
            "notes": notes,
        }
    )
    screen.say(
        f"{data}: {n:,} rows, {p:,} features, {count} clusters, {X.dtype}; best of "
        f"{repeats}",
        "bold",
    )
    for note in notes:
        screen.say(note, "yellow")
    screen.grid(
        ("method", "seconds", "x IhSC", "error"),
        [
            (
                run["method"],
                f"{run['seconds']:.3g}",
                f"{run['ratio']:.2f}",
                "-" if run["error"] is None else f"{run['error']:.4f}",
            )
            for run in found
        ],
    )


def _race(
    screen: Screen, X: Any, k: int, seed: int, repeats: int
) -> dict[str, tuple[float, np.ndarray]]:
    """Return the shortest time and the labels of each method."""
    methods = _methods(X)
    found: dict[str, tuple[float, np.ndarray]] = {}
    total = repeats * len(methods)
    with screen.working("comparing", total) as update:
        for i in range(repeats):  # in turn, so that a busy moment hits all alike
            for j, (name, method) in enumerate(methods.items()):
                start = time.perf_counter()
                labels = method(X, k, seed)
                seconds = time.perf_counter() - start
                if name not in found or seconds < found[name][0]:
                    found[name] = seconds, labels
                update(i * len(methods) + j + 1, total)
    return found


def _methods(X: Any) -> dict[str, Method]:
    methods: dict[str, Method] = {
        "IhSC": lambda X, k, seed: IhSC(k, random_state=seed).fit(X).labels_,
        "SphericalKMeans": lambda X, k, seed: (
            SphericalKMeans(k, random_state=seed).fit(X).labels_
        ),
        "KMeans": lambda X, k, seed: KMeans(k, random_state=seed).fit(X).labels_,
        "KMeans on unit rows": lambda X, k, seed: (
            KMeans(k, random_state=seed).fit(normalize(X)).labels_
        ),
    }
    if not sp.issparse(X) and importlib.util.find_spec("faiss") is not None:
        methods["faiss, spherical"] = _faiss
    return methods


def _faiss(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    import faiss

    unit = np.array(X, dtype=np.float32, order="C")
    faiss.normalize_L2(unit)  # the caller's to do
    model = faiss.Kmeans(
        unit.shape[1],
        k,
        niter=20,
        spherical=True,
        seed=seed,
        min_points_per_centroid=1,
        max_points_per_centroid=len(unit),
    )
    model.train(unit)
    return np.asarray(model.index.search(unit, 1)[1][:, 0])
