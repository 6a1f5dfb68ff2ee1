"""Compare IhSC with its peers on real data sets whose classes are known.

    python benchmarks/real.py                        # the sets that are there, 3 seeds
    python benchmarks/real.py --groups ten --seeds 1
    python benchmarks/real.py --methods ihsc kmeans --max-rows 1000
    python benchmarks/real.py --extra FOLDER --save  # and sets of a folder; keep tables
    python benchmarks/real.py --peers peers.json     # run peers once, IhSC each time

``labelled.py`` names the packages that the sets come from and says how they are split.
Every method is told the true number of clusters. A rate is the share of rows whose
label is wrong under the best matching of labels to classes, a mean over seeds. A set
counts once in the means of groups, however many preparations it has.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# Processes share the cores; set before NumPy starts its threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import warnings

import numpy as np
from labelled import (
    EXTRA_KINDS,
    SETS,
    TEN,
    LabelledSet,
    MissingDataError,
    extra_sets,
    sampled,
)
from measure import environment, markdown
from methods import faiss_spherical
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import normalize

from ihgmm import PSC, IhSC
from ihgmm.metrics import misclassification_rate

RESULTS = Path(__file__).parent / "results" / "real.md"
PACKAGES = ("ihgmm", "numpy", "scipy", "scikit-learn", "faiss-cpu")
GROUPS = ("ten", "development", "held out", "other")

# -- the methods -----------------------------------------------------------------------


def ihsc(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    return IhSC(k, random_state=seed).fit(X).labels_


def as_in_the_paper(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    return IhSC.paper(k, order="magnitude", random_state=seed).fit(X).labels_


def kmeans(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    return KMeans(k, n_init=10, random_state=seed).fit(normalize(X)).labels_


def psc(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    return PSC(k, random_state=seed).fit(X).labels_


def faiss(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    # Scaled first: squares of large values overflow in single precision.
    X = np.ascontiguousarray(normalize(X), dtype=np.float32)
    return faiss_spherical(X, k, len(X), seed=seed, starts=10)


def neighbours(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    model = SpectralClustering(
        k, affinity="nearest_neighbors", n_neighbors=10, assign_labels="kmeans",
        random_state=seed,
    )  # fmt: skip
    return model.fit(normalize(X)).labels_


def mixture(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    width = min(2 * k + 2, X.shape[0] - 1, X.shape[1])
    scores = PCA(width, random_state=seed).fit_transform(normalize(X))
    # To unit size: the small constant that keeps covariances regular is absolute.
    scores /= scores[:, 0].std()
    model = GaussianMixture(k, covariance_type="tied", n_init=10, random_state=seed)
    return model.fit_predict(scores)


METHODS: dict[str, tuple[str, Callable[[np.ndarray, int, int], np.ndarray]]] = {
    "ihsc": ("IhSC", ihsc),
    "paper": ("IhSC, paper", as_in_the_paper),
    "kmeans": ("k-means", kmeans),
    "psc": ("PSC", psc),
    "faiss": ("faiss", faiss),
    "neighbours": ("neighbours", neighbours),
    "mixture": ("mixture", mixture),
}
LEGEND = """\
IhSC has its defaults, "IhSC, paper" the paper's settings. k-means runs on unit rows
from ten starts, faiss is its spherical k-means from ten starts, "neighbours" is
scikit-learn's SpectralClustering on the ten nearest neighbours of unit rows, "mixture"
is a Gaussian mixture with one covariance, from ten starts, on 2K + 2 principal
directions of unit rows. Sets and their split are described in `labelled.py`.
"""


# -- running them ----------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """The rates of the methods on one preparation of a data set."""

    group: str
    name: str
    preparation: str
    shape: tuple[int, int, int]  # rows, features, classes
    rates: list[float]  # not a number where a method failed

    def key(self, seeds: int) -> str:
        """Name what was run, for a file that keeps rates."""
        return f"{self.name}, {self.preparation}, {self.shape}, {seeds} seeds"


def all_sets(extra: Path | None) -> list[LabelledSet]:
    return [*TEN, *SETS, *(extra_sets(extra) if extra else ())]


def rate(X: np.ndarray, y: np.ndarray, method: str, seeds: int) -> float:
    """Return the mean rate of a method over seeds."""
    rates = []
    for seed in range(seeds):
        try:
            found = METHODS[method][1](X, len(np.unique(y)), seed)
        except (ValueError, np.linalg.LinAlgError) as error:
            print(f"{method} failed: {error}", file=sys.stderr)
            return float("nan")
        rates.append(misclassification_rate(y, found))
    return float(np.mean(rates))


def run_set(
    name: str,
    *,
    extra: Path | None,
    methods: list[str],
    seeds: int,
    max_rows: int,
    known: dict[str, dict[str, float]],
) -> list[Row] | str:
    """Return the rows of a set, or what is missing."""
    data = next(s for s in all_sets(extra) if s.name == name)
    rows = []
    try:
        for preparation, X, y in data.prepared():
            X, y = sampled(X, y, max_rows)
            shape = (*X.shape, len(np.unique(y)))
            row = Row(data.group, name, preparation, shape, [])
            before = known.get(row.key(seeds), {})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # real data are not what methods hope
                for method in methods:
                    done = before.get(method)
                    row.rates.append(
                        rate(X, y, method, seeds) if done is None else done
                    )
            rows.append(row)
    except MissingDataError as error:
        return f"{name}: {error}"
    return rows


# -- tables ----------------------------------------------------------------------------


def by_set(rows: Iterable[Row]) -> dict[str, np.ndarray]:
    """Return the mean rates of each set over its preparations."""
    rates: dict[str, list[list[float]]] = {}
    for row in rows:
        rates.setdefault(row.name, []).append(row.rates)
    return {name: np.mean(values, axis=0) for name, values in rates.items()}


def figure(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def group_tables(rows: list[Row], methods: list[str]) -> list[str]:
    """Return the tables of means and of wins and losses of the first method."""
    names = [METHODS[method][0] for method in methods]
    means: list[list[str]] = [["Mean rate over sets"], ["group", "sets", *names]]
    wins: list[list[str]] = [
        [f"Sets on which {names[0]} is better : worse, by .001 or more"],
        ["group", *names[1:]],
    ]
    groups = [group for group in GROUPS if any(row.group == group for row in rows)]
    for group in [*groups, "all"] if len(groups) > 1 else groups:
        sets = by_set(row for row in rows if group in (row.group, "all"))
        rates = np.array(list(sets.values()))
        rates = rates[~np.isnan(rates).any(axis=1)]
        if not len(rates):
            continue
        mean = [figure(value) for value in rates.mean(axis=0)]
        means.append([group, str(len(rates)), *mean])
        gain = (rates[:, 1:] - rates[:, :1]).round(6)
        better, worse = (gain >= 0.001).sum(axis=0), (gain <= -0.001).sum(axis=0)
        pairs = zip(better, worse, strict=True)
        wins.append([group, *(f"{b} : {w}" for b, w in pairs)])
    return [markdown(means), *([markdown(wins)] if len(names) > 1 else [])]


def set_tables(rows: list[Row], methods: list[str]) -> list[str]:
    """Return a table of each group, a line for each preparation of a set."""
    names = [METHODS[method][0] for method in methods]
    texts = []
    for group in GROUPS:
        lines = [
            [f"{row.name}, {row.preparation}", *map(str, row.shape),
             *map(figure, row.rates)]
            for row in rows if row.group == group
        ]  # fmt: skip
        if lines:
            title = f"Misclassification rates: {group}"
            texts.append(markdown([[title], ["set", "n", "p", "K", *names], *lines]))
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "sets", nargs="*", metavar="SET", help="names of sets, if not all"
    )
    parser.add_argument(
        "--groups", nargs="+", choices=GROUPS, default=GROUPS, metavar="GROUP",
        help=", ".join(GROUPS),
    )  # fmt: skip
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=list(METHODS),
        metavar="METHOD", help=", ".join(METHODS),
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--max-rows", type=int, default=10_000, help="larger sets are sampled"
    )
    parser.add_argument("--extra", type=Path, help="a folder of further sets")
    parser.add_argument(
        "--peers", type=Path, metavar="FILE",
        help="a JSON file that keeps the rates of all methods but IhSC's default",
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--save", action="store_true", help=f"to {RESULTS.name}")
    options = parser.parse_args()
    sets = all_sets(options.extra)
    unknown = set(options.sets) - {s.name for s in sets}
    if unknown:
        parser.error(f"no set {sorted(unknown)[0]!r}")
    names = [
        s.name for s in sets
        if s.group in options.groups and s.name in (options.sets or [s.name])
    ]  # fmt: skip
    known: dict[str, dict[str, float]] = {}
    if options.peers and options.peers.exists():
        known = json.loads(options.peers.read_text(encoding="utf-8"))
    run = partial(
        run_set, extra=options.extra, methods=options.methods, seeds=options.seeds,
        max_rows=options.max_rows, known=known,
    )  # fmt: skip
    rows, missing = [], []
    absent = sorted(set(EXTRA_KINDS) - {s.name for s in sets})
    if absent and not options.sets and set(options.groups) - {"ten", "other"}:
        missing.append(f"{', '.join(absent)}: not in a folder given by --extra")
    with ProcessPoolExecutor(options.jobs) as pool:
        for found in pool.map(run, names):
            if isinstance(found, str):
                missing.append(found)
                print(found, file=sys.stderr)
                continue
            rows += found
            for row in found:
                rates = zip(options.methods, row.rates, strict=True)
                peers = {method: value for method, value in rates if method != "ihsc"}
                known.setdefault(row.key(options.seeds), {}).update(peers)
                print(row.group, row.name, row.preparation, *row.shape,
                      *map(figure, row.rates), file=sys.stderr)  # fmt: skip
            if options.peers:
                options.peers.write_text(json.dumps(known, indent=1), encoding="utf-8")
    texts = [*group_tables(rows, options.methods), *set_tables(rows, options.methods)]
    if missing:
        texts.append("Left out:\n\n" + "".join(f"- {line}\n" for line in missing))
    print("\n".join(texts))
    if options.save:
        head = (
            f"# Real data\n\n{environment(PACKAGES)}\n\nMeans over {options.seeds} "
            f"seeds, at most {options.max_rows:,} rows of a set.\n\n{LEGEND}\n"
        )
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(head + "\n".join(texts), encoding="utf-8")


if __name__ == "__main__":
    main()
