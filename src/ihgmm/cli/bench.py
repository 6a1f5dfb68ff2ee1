"""The command ``ihgmm bench``."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from ihgmm import IhSC, SphericalKMeans, make_ihgmm
from ihgmm.cli.data import Reading
from ihgmm.cli.options import FETCHED, N_CLUSTERS, SEED, argument, option
from ihgmm.cli.screen import Screen
from ihgmm.cli.tables.preparation import prepare
from ihgmm.cli.tables.reading import BUILT_IN
from ihgmm.cli.tables.table import Table, numbered_table
from ihgmm.metrics import misclassification_rate
from ihgmm.words.phrases import counted

# Samples of the model: rows, features, clusters.
SHAPES = {
    "rows": (20_000, 200, 10),
    "features": (500, 10_000, 5),
    "square": (3_000, 3_000, 10),
}
SIZES = ", ".join(f"{name} ({n:,} x {p:,})" for name, (n, p, _) in SHAPES.items())


def bench(
    *,
    data: str = argument(
        "[DATA]",
        f"Data as for ihgmm fit; or a sample of the model: {SIZES}.",
        [*SHAPES, *BUILT_IN, *FETCHED],
        default="rows",
    ),
    n_clusters: int | None = option(
        "Number of clusters; that of the known labels by default.", names=N_CLUSTERS
    ),
    repeats: int = option("Runs of each method; the fastest counts.", 3),
    random_state: int = SEED,
    reading: Reading,
    screen: Screen,
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
        raise ValueError(f"--repeats {repeats} is too small; give 1 or more.")
    table = _draw_or_read(data, reading, screen, random_state)
    known = None if table.labels is None else table.labels.astype(str)
    k = n_clusters
    if k is None and known is not None:
        k = len(set(known))
    if k is None:
        raise ValueError(
            f"{data} has no known labels; give the number of clusters, -k."
        )
    if table.on_disk:
        raise ValueError(
            f"{data} is read block by block, which others than IhSC cannot do; give "
            "more --memory, or fewer rows."
        )
    best = _race(screen, table, k, random_state, repeats)
    methods = [
        {
            "method": name,
            "seconds": seconds,
            "ratio": seconds / best["IhSC"][0],
            "error": None if known is None else misclassification_rate(known, labels),
        }
        for name, (seconds, labels) in best.items()
    ]
    dtype, clusters = str(table.X.dtype), counted(k, "cluster")
    settings = {"n_clusters": k, "dtype": dtype, "repeats": repeats}
    screen.document("bench", table.facts, **settings, methods=methods)
    screen.say(f"{table.heading}, {clusters}, {dtype}; best of {repeats}", "bold")
    screen.notes(table.notes)
    formats = {"method": "", "seconds": ".3g", "x IhSC": ".2f", "error": ".4f"}
    screen.table(formats, [method.values() for method in methods])
    if known is None:
        screen.say("error: not known; --label-column names the true labels", "dim")


def _draw_or_read(data: str, reading: Reading, screen: Screen, seed: int) -> Table:
    """Return a sample of the model, or the data; a file of that name comes first."""
    if data not in SHAPES or Path(data).exists():
        if reading.missing == "fit":
            raise ValueError(
                "--missing fit: k-means and others cannot fill cells in; give "
                "--missing drop, to compare all methods on the same rows, or --missing "
                "zero if an empty cell means none."
            )
        return reading.load(data, screen, fills=False)
    reading.request(data).refuse_names()
    with screen.working(f"drawing {data}"):
        X, labels = make_ihgmm(*SHAPES[data], dtype=np.float32, random_state=seed)
    return prepare(numbered_table(data, X, labels=labels), reading.prepare)


def _race(
    screen: Screen, table: Table, k: int, seed: int, repeats: int
) -> dict[str, tuple[float, np.ndarray]]:
    """Return the shortest time and the labels of each method."""
    # One start each, as is the default of KMeans.
    kmeans = KMeans(k, n_init=1, random_state=seed)
    spherical = SphericalKMeans(k, n_init=1, random_state=seed)
    methods: dict[str, Callable[[Any], np.ndarray]] = {
        "IhSC": IhSC(k, random_state=seed).fit_predict,
        "SphericalKMeans": spherical.fit_predict,
        "KMeans": kmeans.fit_predict,
        "KMeans on unit rows": make_pipeline(Normalizer(), kmeans).fit_predict,
    }
    if not table.is_sparse and importlib.util.find_spec("faiss") is not None:
        methods["faiss, spherical"] = lambda X: _faiss(X, k, seed)
    best: dict[str, tuple[float, np.ndarray]] = {}
    turns = [*methods.items()] * repeats  # so that a busy moment hits all alike
    with screen.working("comparing", len(turns)) as update:
        for done, (name, method) in enumerate(turns, 1):
            start = time.perf_counter()
            labels = method(table.X)
            seconds = time.perf_counter() - start
            if name not in best or seconds < best[name][0]:
                best[name] = seconds, labels
            update(done, len(turns))
    return best


def _faiss(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    import faiss

    unit = np.array(X, dtype=np.float32, order="C")
    faiss.normalize_L2(unit)  # the caller's to do
    # All rows take part, however many or few there are for each centre.
    limits = {"min_points_per_centroid": 1, "max_points_per_centroid": len(unit)}
    options = {"niter": 20, "spherical": True, "seed": seed, **limits}
    model = faiss.Kmeans(unit.shape[1], k, **options)
    model.train(unit)
    return np.asarray(model.index.search(unit, 1)[1][:, 0])
