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
from ihgmm.cli._data import Source
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
Runs = dict[str, tuple[float, np.ndarray]]


DataOrSample = Annotated[
    str,
    typer.Argument(
        metavar="[DATA]",
        autocompletion=one_of([*SHAPES, *BUILT_IN, *FETCHED]),
        help="Data as for ihgmm fit; or a sample of the model: "
        + ", ".join(f"{name} ({n:,} x {p:,})" for name, (n, p, _) in SHAPES.items())
        + ".",
    ),
]
KnownClusters = Annotated[
    int | None,
    typer.Option(
        "-k",
        "--n-clusters",
        help="Number of clusters; that of the known labels by default.",
    ),
]
Repeats = Annotated[int, typer.Option(help="Runs of each method; the fastest counts.")]


def bench(
    data: DataOrSample = "rows",
    n_clusters: KnownClusters = None,
    repeats: Repeats = 3,
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
    table = _drawn_or_read(screen, source, seed)
    known = None if table.labels is None else table.labels.astype(str)
    if n_clusters is not None:
        count = n_clusters
    elif known is not None:
        count = len(set(known))
    else:
        raise TableError(
            f"{data} has no known labels; give the number of clusters, -k."
        )
    runs = _race(screen, table.X, count, seed, repeats)
    n, p = table.X.shape
    found = {
        "command": "bench",
        "data": data,
        "n_samples": n,
        "n_features": p,
        "n_clusters": count,
        "dtype": str(table.X.dtype),
        "repeats": repeats,
        "methods": _figures(runs, known),
        "notes": table.notes,
    }
    screen.document(found)
    _tell(screen, found)


def _drawn_or_read(screen: Screen, source: Source, seed: int) -> Table:
    """Return a sample of the model, or the data; a file of that name comes first."""
    named = (
        source.label_column,
        source.id_column,
        source.columns,
        source.drop_columns,
    )
    if source.data not in SHAPES or any(named) or Path(source.data).exists():
        return source.load(screen)[0]
    with screen.working(f"drawing {source.data}"):
        n, p, k = SHAPES[source.data]
        X, labels = make_ihgmm(n, p, k, dtype=np.float32, random_state=seed)
    return source.scaled(Table(X, np.arange(n), labels=labels))[0]


def _figures(runs: Runs, known: np.ndarray | None) -> list[dict[str, Any]]:
    """Return time and error of each method."""
    base = runs["IhSC"][0]
    return [
        {
            "method": name,
            "seconds": seconds,
            "ratio": seconds / base,
            "error": None if known is None else misclassification_rate(known, clusters),
        }
        for name, (seconds, clusters) in runs.items()
    ]


def _tell(screen: Screen, found: dict[str, Any]) -> None:
    """Say it to people."""
    k = found["n_clusters"]
    screen.say(
        f"{found['data']}: {found['n_samples']:,} rows, {found['n_features']:,} "
        f"features, {k} cluster{'s' * (k != 1)}, {found['dtype']}; best of "
        f"{found['repeats']}",
        "bold",
    )
    screen.notes(found["notes"])
    screen.grid(
        ("method", "seconds", "x IhSC", "error"),
        [
            (
                run["method"],
                f"{run['seconds']:.3g}",
                f"{run['ratio']:.2f}",
                "-" if run["error"] is None else f"{run['error']:.4f}",
            )
            for run in found["methods"]
        ],
    )


def _race(screen: Screen, X: Any, k: int, seed: int, repeats: int) -> Runs:
    """Return the shortest time and the labels of each method."""
    methods = _methods(X)
    found: Runs = {}
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
