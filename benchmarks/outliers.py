"""Which rows are called outliers: planted ones, none, and in real sets; with peers.

    python benchmarks/outliers.py                 # all tables, 20 draws of each design
    python benchmarks/outliers.py --draws 5
    python benchmarks/outliers.py --save          # to results/outliers.md

Designs are those of ``designs.py``: n 300, p 100, four clusters. Outliers replace a
share of the rows by random directions, of so many times the median norm. Inliers are
wrong where their label is, and an inlier that is called an outlier is wrong too.
IsolationForest and LocalOutlierFactor look for outliers first, told their true share,
and IhSC clusters the other rows. HDBSCAN clusters unit rows.

Wild cells are 2% of all, 20 times as large or moved by 30 medians, or 30% of a column.
"flagged" counts cells of data as they are; "cells given" fills the true wild cells in.

Real sets are those of the paper and digits, as ``real.py`` finds them; none was planted
there.
"""

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from designs import DESIGNS, Draw, mixture, outliers
from labelled import TEN, MissingDataError
from measure import Table, arguments, markdown, publish
from sklearn.cluster import HDBSCAN
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import normalize

from ihgmm import IhGMM, IhSC
from ihgmm.metrics import misclassification_rate

Method = Callable[[np.ndarray, int, float, int], np.ndarray]  # X, K, share, seed


def fitted(X: np.ndarray, k: int, seed: int = 0, **options: Any) -> IhSC:
    return IhSC(k, random_state=seed, **options).fit(X)


def without(
    detector: Any, X: np.ndarray, k: int, share: float, seed: int
) -> np.ndarray:
    """Cluster the rows that are left by a peer that looks for outliers."""
    is_inlier = detector.set_params(contamination=share or "auto").fit_predict(X) > 0
    labels = np.full(len(X), -1)
    labels[is_inlier] = fitted(X[is_inlier], k, seed).labels_
    return labels


METHODS: dict[str, Method] = {
    "auto": lambda X, k, _, seed: fitted(X, k, seed, outliers="auto").labels_,
    "share": lambda X, k, share, seed: fitted(X, k, seed, outliers=share).labels_,
    "IhGMM auto": lambda X, k, _, seed: (
        IhGMM(k, outliers="auto", random_state=seed).fit(X).labels_
    ),
    "forest": lambda X, k, share, seed: without(
        IsolationForest(random_state=seed), X, k, share, seed
    ),
    "LOF": lambda X, k, share, seed: without(LocalOutlierFactor(), X, k, share, seed),
    "HDBSCAN": lambda X, *_: HDBSCAN(copy=True).fit_predict(normalize(X)),
}


def unit(seed: int) -> Draw:
    draw = mixture(seed)
    return replace(draw, X=normalize(draw.X))


CLEAN = [
    "gaussian", "t3", "rows", "scales1", "scales2", "ar50", "ar80", "ar95", "columns",
    "similar", "few", "p10", "gamma", "counts60", "k40",
]  # fmt: skip
CELLS = [
    "gaussian", "t3", "customers", "gamma", "counts60", "columns", "similar", "scales1",
    "p10", "large90-8", "ar80", "rows", "simplex", "counts300",
]  # fmt: skip
SHARES = (0.01, 0.05, 0.2)
PLANTED: dict[str, tuple[float, Callable[[int], Draw]]] = {
    f"{share:.0%}, {times} times": (share, partial(outliers, share=share, times=times))
    for share in SHARES
    for times in (3, 50, 1000, 1)
}
# Of ordinary norm in 400 features, where directions tell more.
WIDE = partial(outliers, times=1, p=400, length=8.0)
PLANTED |= {
    f"{share:.0%}, 1 times, p 400": (share, partial(WIDE, share=share))
    for share in SHARES
}


def clean_fit(draw: Draw, seed: int) -> float:
    rows = draw.labels >= 0
    labels = fitted(draw.X[rows], 4, seed).labels_
    return misclassification_rate(draw.labels[rows], labels)


def detection_scores(
    design: Callable[[int], Draw], share: float, method: str, draws: int
) -> list[float]:
    """Return precision, recall, the share flagged and the error of inliers."""
    counts = np.zeros(4)
    errors = []

    for seed in range(draws):
        draw = design(seed)
        labels = METHODS[method](draw.X, len(draw.centers), share, seed)
        is_outlier = draw.labels < 0
        is_flagged = labels < 0
        is_hit = is_outlier & is_flagged
        counts += is_hit.sum(), is_flagged.sum(), is_outlier.sum(), len(labels)

        is_inlier = ~is_outlier
        error = misclassification_rate(draw.labels[is_inlier], labels[is_inlier])
        errors.append(error)

    n_hits, n_flagged, n_outliers, n = counts
    precision = n_hits / n_flagged if n_flagged else np.nan
    recall = n_hits / n_outliers if n_outliers else np.nan

    return [precision, recall, n_flagged / n, np.mean(errors)]


def planted(draws: int) -> Table:
    yield ["Planted outliers"]
    heads = ([f"{method}: precision", "recall", "error"] for method in METHODS)
    yield ["share and norm", "rows without", *chain(*heads)]

    for name, (share, design) in PLANTED.items():
        error_without = np.mean(
            [clean_fit(design(seed), seed) for seed in range(draws)]
        )
        line = [name, f"{error_without:.1%}"]
        for method in METHODS:
            precision, recall, _, error = detection_scores(design, share, method, draws)
            line += [f"{precision:.2f}", f"{recall:.2f}", f"{error:.1%}"]

        yield line


def clean(draws: int) -> Table:
    methods = [method for method in METHODS if method != "share"]
    yield ["None planted: share of rows flagged"]
    yield ["design", *methods]

    for name in [*CLEAN, "unit rows"]:
        design = unit if name == "unit rows" else DESIGNS[name]
        shares = (detection_scores(design, 0.0, method, draws)[2] for method in methods)
        yield [name, *(f"{share:.2%}" for share in shares)]


def spoilt(X: np.ndarray, kind: str, seed: int) -> np.ndarray:
    """Return which cells go wild."""
    rng = np.random.default_rng([seed, 7])
    if kind != "column x 20":
        return rng.random(X.shape) < 0.02
    is_in_column = np.arange(X.shape[1]) == rng.integers(X.shape[1])
    return is_in_column & (rng.random((len(X), 1)) < 0.3)


def cells(draws: int) -> Table:
    kinds = ["2% x 20", "2% + 30", "column x 20"]
    yield ["Wild cells"]
    heads = ([f"{kind}: error", "with cells", "cells given"] for kind in kinds)
    yield ["design", "error", "with cells", "flagged", *chain(*heads)]

    for name in CELLS:
        figures = []
        for seed in range(draws):
            draw = DESIGNS[name](seed)
            X = draw.X
            k = len(draw.centers)
            models = [fitted(X, k), fitted(X, k, outliers="cells")]
            share_flagged = len(models[1].outlier_cells_) / X.size

            for kind in kinds:
                is_wild = spoilt(X, kind, seed)
                size = np.median(np.abs(X[X != 0]))
                moved = X + 30 * size if "+" in kind else 20 * X
                spoilt_X = np.where(is_wild, moved, X)
                holed_X = np.where(is_wild, np.nan, X)
                models += [
                    fitted(spoilt_X, k),
                    fitted(spoilt_X, k, outliers="cells"),
                    fitted(holed_X, k, missing="fit"),
                ]

            errors = [misclassification_rate(draw.labels, m.labels_) for m in models]
            figures.append([*errors[:2], share_flagged, *errors[2:]])

        means = np.mean(figures, axis=0)
        line = [name, *(f"{value:.1%}" for value in means)]
        line[3] = f"{means[2]:.2%}"
        yield line


def real(draws: int) -> Table:
    yield ["Real sets, none planted"]
    yield ["set", "rows", "flagged", "error", "with auto", "with auto, other rows"]
    for labelled_set in TEN:
        try:
            _, X, classes = next(labelled_set.prepared())
        except MissingDataError:
            continue

        k = len(np.unique(classes))
        labels = fitted(X, k, outliers="auto").labels_
        is_clustered = labels >= 0
        rates = [
            misclassification_rate(classes, fitted(X, k).labels_),
            misclassification_rate(classes, labels),
            misclassification_rate(classes[is_clustered], labels[is_clustered]),
        ]
        flagged = f"{1 - is_clustered.mean():.2%}"
        yield [labelled_set.name, len(X), flagged, *(f"{rate:.1%}" for rate in rates)]


TABLES = {f.__name__: f for f in (planted, clean, cells, real)}


def main() -> None:
    parser = arguments(__doc__, "outliers.md", draws=20)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # many designs are hard on purpose
    text = [
        "# Rows that fit no cluster\n",
        f"`python benchmarks/outliers.py`, which says what is what, {options.draws} "
        f"draws.\n",
        *(markdown(TABLES[name](options.draws)) for name in options.tables),
    ]
    publish(options, "\n".join(text))


if __name__ == "__main__":
    main()
