"""Errors on data that come in batches, beside peers that take batches out.

    python benchmarks/batches.py FOLDER --save      # results/batches.md

The folder has sets that factors of batches were developed on: each is ``NAME.npz`` with
rows ``X`` (or ``data``, ``indices``, ``indptr`` and ``shape`` of a sparse matrix),
classes ``y`` and ``batch``. Designs were looked at while the method was made, too.
Nobody has tuned anything on the sets of packages (see ``labelled``): some have batches
of their own, and held-out sets get batches here, with effects of several kinds or none.

Columns of tables are divided by their standard deviations. IhSC has its defaults, on
rows as they are and on what peers are given: logarithms of rows of equal size. K-means
(ten starts) takes these logarithms as they are, and as peers leave them: ComBat
(``scanpy.pp.combat``), Harmony (``harmonypy``) of 20 leading components, Scanorama. All
know the number of classes. *Mixing* is the share of the ten nearest rows, by cosine,
that are of other batches, over what it would be among random rows of the same class: 1
where batches are mixed, 0 where they lie apart.
"""

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import labelled
import numpy as np
import scipy.sparse as sp
from labelled import clean, sampled
from measure import Table, arguments, markdown, publish
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.preprocessing import normalize

from ihgmm import IhSC
from ihgmm.metrics import misclassification_rate

Data = tuple[np.ndarray, np.ndarray, np.ndarray]
ROWS = 500  # of a held-out set, and of each origin of pictures
OURS = ("IhSC", "IhSC, batches", "IhSC, batches, logs")
METHODS = (*OURS, "k-means", "ComBat", "Harmony", "Scanorama")
HEAD = ["", *METHODS]


def design(kind: str, seed: int = 0) -> Data:
    """Return rows of four clusters in three batches."""
    rng = np.random.default_rng(seed)
    n = 900
    p = 200
    k = 4
    centers = 1 + 0.35 * rng.gamma(1.5, 1, (k, p))
    y = rng.integers(k, size=n)
    batch = rng.integers(3, size=n)
    if "unequal" in kind:
        shares = np.array([[60, 36, 2, 2], [2, 60, 36, 2], [2, 2, 60, 36]]) / 100
        y = np.array([rng.choice(k, p=shares[b]) for b in batch])

    if "alone" in kind:
        y[(batch > 0) & (y == 3)] = 0
    effect = 0.0 if "none" in kind else 0.6
    factors = np.exp(effect * rng.standard_normal((3, p)))
    scales = np.exp(0.5 * rng.standard_normal((n, 1)))
    means = scales * centers[y] * factors[batch]
    if "counts" in kind:
        return rng.poisson(0.3 * means).astype(float), y, batch

    return np.maximum(means + scales * rng.standard_normal((n, p)), 0), y, batch


def codes(names: Any) -> np.ndarray:
    return np.unique(names, return_inverse=True)[1]


def read(path: Path) -> Data:
    archive = np.load(path)
    if "X" in archive:
        X = archive["X"]
    else:
        parts = tuple(archive[part] for part in ("data", "indices", "indptr"))
        X = sp.csr_array(parts, shape=tuple(archive["shape"])).toarray()

    X = X[:, X.any(axis=0)].astype(float)
    return X, codes(archive["y"]), codes(archive["batch"])


def logarithm(X: np.ndarray) -> np.ndarray:
    sums = X.sum(axis=1, keepdims=True)
    return np.log1p(X / sums * np.median(sums))


def measurements(
    package: str, item: str, kind: str, batch: str, drop: str = ""
) -> Data:
    frame = labelled.frame(package, item).dropna()
    numbers = frame.drop(columns=[kind, batch, *drop.split()]).select_dtypes("number")
    X = numbers.to_numpy(float)
    return X / X.std(axis=0), codes(frame[kind]), codes(frame[batch])


def origins() -> Data:
    """Return digits of three collections, as pictures of 8 by 8, in [0, 1]."""
    collections = labelled.mnist(), labelled.digits(), labelled.paper("usps")
    samples = []

    for i, (X, y) in enumerate(collections):
        X, y = sampled(X, y, ROWS)
        side = int(np.sqrt(X.shape[1]))
        pictures = (X - X.min()).reshape(-1, side, side) / np.ptp(X)
        margin = -side % 8 // 2
        pictures = np.pad(pictures, ((0, 0), (margin, margin), (margin, margin)))
        cell = pictures.shape[1] // 8
        averages = pictures.reshape(-1, 8, cell, 8, cell).mean(axis=(2, 4))
        rows = averages.reshape(len(y), 64)
        samples.append((rows, y.astype(int), np.full(len(y), i)))

    X, y, batch = map(np.concatenate, zip(*samples, strict=True))

    return X[:, X.any(axis=0)], y, batch


def cell_cycle() -> Data:
    """Return blood cells by type, in batches by the phase of their cycle."""
    X, y = labelled.blood()
    _, phase = labelled.blood("phase")
    X = np.expm1(X)
    return X[:, X.any(axis=0)], y, phase


PENGUINS = ("palmerpenguins", "penguins", "species")
LOGARITHMS = "latitude logwid logpet loglen"
APART: dict[str, tuple[Any, ...]] = {  # readers, and what they are given
    "digits, three collections": (origins,),
    "blood cells, phase of their cycle": (cell_cycle,),
    "crabs, sex": (measurements, "MASS", "crabs", "sp", "sex", "index"),
    "penguins, sex": (measurements, *PENGUINS, "sex", "year"),
    "penguins, island": (measurements, *PENGUINS, "island", "year"),
    "possums, sex": (measurements, "DAAG", "possum", "Pop", "sex", "case site age"),
    "athletes, sport": (measurements, "DAAG", "ais", "sex", "sport"),
    "leaves, place": (
        measurements, "DAAG", "leafshape", "arch", "location", LOGARITHMS,
    ),
}  # fmt: skip
TEXTS_AND_PICTURES = {"mnist", "clothes", "newsgroups", "books", "tweets"}
EFFECTS = ("none", "factors", "powers")


def held_out() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield sets that judge methods and have no entry below 0."""
    for labelled_set in labelled.SETS:
        if labelled_set.name not in labelled.HELD_OUT:
            continue

        X, y = clean(*labelled_set.read())
        X, y = clean(*sampled(X, y, ROWS))
        if X.min() < 0:
            continue

        is_table = labelled_set.name not in TEXTS_AND_PICTURES
        units = X.std(axis=0) if is_table else 1.0
        yield labelled_set.name, X / units, y


def with_effect(X: np.ndarray, y: np.ndarray, effect: str, unequal: bool) -> Data:
    """Return rows in three batches, which multiply columns or raise rows to a power."""
    rng = np.random.default_rng(0)
    batch = rng.integers(3, size=len(y))
    if unequal:  # most rows of a class are in one batch
        batch = np.where(rng.random(len(y)) < 0.6, y % 3, batch)
    if effect == "factors":
        X = X * np.exp(0.6 * rng.standard_normal((3, X.shape[1])))[batch]
    if effect == "powers":
        maximum = X.max()
        X = (X / maximum) ** np.array([0.6, 1.0, 1.5])[batch][:, None] * maximum

    return X, y, batch


def corrected(method: str, X: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """Return logarithms of rows as a peer leaves them."""
    logs = logarithm(X)
    if method == "ComBat":
        import scanpy as sc
        from anndata import AnnData

        cells = AnnData(logs.copy(), obs={"batch": batch.astype(str)})
        cells.obs["batch"] = cells.obs["batch"].astype("category")
        sc.pp.combat(cells, key="batch")
        return np.nan_to_num(np.asarray(cells.X))

    if method == "Harmony":
        import harmonypy
        import pandas as pd

        scores = PCA(min(20, *logs.shape)).fit_transform(logs)
        batch_table = pd.DataFrame({"batch": batch.astype(str)})
        fit = harmonypy.run_harmony(scores, batch_table, ["batch"], verbose=False)
        Z = np.asarray(fit.Z_corr)
        return Z if len(Z) == len(X) else Z.T

    if method == "Scanorama":
        import scanorama

        order = np.argsort(batch, kind="stable")
        rows_of_batches = [logs[batch == b] for b in np.unique(batch)]
        genes = [f"g{j}" for j in range(X.shape[1])]
        names_of_genes = [genes] * len(rows_of_batches)
        n_directions = min(20, X.shape[1] - 1)
        integrated, _ = scanorama.integrate(
            rows_of_batches, names_of_genes, dimred=n_directions, verbose=0
        )
        return np.vstack(integrated)[np.argsort(order)]

    return logs


def labels_and_rows(
    method: str, X: np.ndarray, batch: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return clusters of a method, and the rows that it found them in."""
    if method == "IhSC":
        return IhSC(k).fit(X).labels_, X
    if method in OURS:
        rows = logarithm(X) if method == "IhSC, batches, logs" else X
        model = IhSC(k).fit(rows, batch=batch)
        return model.labels_, np.asarray(model.without_batches(rows, batch))

    rows = corrected(method, X, batch)
    kmeans = KMeans(k, n_init=10, random_state=0)
    is_normalized = method in ("k-means", "ComBat")

    return kmeans.fit_predict(normalize(rows) if is_normalized else rows), rows


def mixing(rows: np.ndarray, y: np.ndarray, batch: np.ndarray) -> float:
    cosines = normalize(rows) @ normalize(rows).T
    np.fill_diagonal(cosines, -np.inf)
    neighbors = np.argpartition(-cosines, 10, axis=1)[:, :10]
    share = np.mean(batch[neighbors] != batch[:, None])

    is_mate = y == y[:, None]
    sizes = is_mate.sum(axis=1)
    n_same_batch = (is_mate & (batch == batch[:, None])).sum(axis=1)
    expected_share = np.mean(1 - (n_same_batch - 1) / np.maximum(sizes - 1, 1))

    return float(share / expected_share)


def figures(data: Data) -> dict[str, Any]:
    """Return error, mixing and seconds of each method that is there and can do it."""
    X, y, batch = data
    is_nonzero = X.any(axis=1)
    X = X[is_nonzero]
    y = y[is_nonzero]
    batch = batch[is_nonzero]
    X = X[:, np.ptp(X, axis=0) > 0]
    k = len(np.unique(y))
    figures_of_methods = {}

    for method in METHODS:
        start = time.perf_counter()
        try:
            labels, rows = labels_and_rows(method, X, batch, k)
        except Exception as error:  # peers fail in many ways on few columns or rows
            if method in OURS:
                raise
            print(f"{method}: {type(error).__name__}: {error}")
            figures_of_methods[method] = (np.nan,) * 3
            continue

        seconds = time.perf_counter() - start
        error = misclassification_rate(y, labels)
        figures_of_methods[method] = error, mixing(rows, y, batch), seconds

    return figures_of_methods


def cells(figures_of_methods: Any) -> list[str]:
    """Return error and mixing in the words of a table."""
    return [
        "-" if np.isnan(error) else f"{error:.3f} ({mixed:.2f})"
        for error, mixed, _ in figures_of_methods
    ]


def table(
    title: str, sets: dict[str, tuple[Any, ...]], seconds_of_sets: list[list[float]]
) -> Table:
    """Yield errors and mixing of all methods; ``seconds_of_sets`` gets times."""
    yield [title]
    yield HEAD

    for name, (reader, *reader_arguments) in sets.items():
        figures_of_set = figures(reader(*reader_arguments)).values()
        seconds_of_sets.append([seconds for *_, seconds in figures_of_set])
        yield [name, *cells(figures_of_set)]


def held_out_tables() -> Iterator[Table]:
    """Yield means over sets that get batches here, and all sets with unequal ones."""
    figures_of_effects = {}
    for name, X, y in held_out():
        for effect in EFFECTS:
            for unequal in (False, True):
                data = with_effect(X, y, effect, unequal)
                of_methods = list(figures(data).values())
                figures_of_effects[name, effect, unequal] = of_methods
                print(name, effect, unequal, *cells(of_methods), flush=True)

    names = list(dict.fromkeys(name for name, _, _ in figures_of_effects))
    lines = [[f"Three batches put on {len(names)} held-out sets: means"], HEAD]

    for unequal in (False, True):
        for effect in EFFECTS:
            means = np.nanmean(
                [figures_of_effects[name, effect, unequal] for name in names], axis=0
            )
            words = f"{effect}, {'unequal' if unequal else 'equal'} batches"
            lines.append([words, *cells(means)])

    yield lines

    for effect in EFFECTS:
        lines = [
            [name, *cells(figures_of_effects[name, effect, True])] for name in names
        ]
        yield [[f"Held-out sets, unequal batches: {effect}"], HEAD, *lines]


def main() -> None:
    parser = arguments(__doc__, "batches.md")
    parser.add_argument("folder", nargs="?", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # real data are not what methods hope
    paths = sorted(options.folder.glob("*.npz")) if options.folder else []
    developed: dict[str, Any] = {path.stem: (read, path) for path in paths}
    for kind in ("mixed", "unequal", "alone", "counts", "none", "none, unequal"):
        developed[f"design: {kind}"] = (design, kind)

    seconds_of_sets: list[list[float]] = []
    text = [
        "# Batches\n\n`python benchmarks/batches.py`, which says what is what.",
        "Errors, and in brackets how well batches are mixed.\n",
        markdown(table("Sets that nobody tuned on", APART, seconds_of_sets)),
        markdown(
            table("Sets that factors were developed on", developed, seconds_of_sets)
        ),
        *map(markdown, held_out_tables()),
    ]
    seconds = [f"{median:.2f}" for median in np.nanmedian(seconds_of_sets, axis=0)]
    text.append(markdown([["Median time"], HEAD, ["seconds", *seconds]]))
    publish(options, "\n".join(text))


if __name__ == "__main__":
    main()
