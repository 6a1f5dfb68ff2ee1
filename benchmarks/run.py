"""Compare IhSC with its peers on speed, memory, readings of X and error.

    python benchmarks/run.py             # everything, five to ten minutes
    python benchmarks/run.py tall wide   # some cases
    python benchmarks/run.py --save      # and keep the tables in results/cpu.md
    IHGMM_BEFORE=old/src python benchmarks/run.py   # beside another version

Methods take turns in one process, several rounds; times are medians, shown as ratios
to IhSC and to one product ``X @ V`` plus ``X.T @ V`` with K + 8 columns. Memory is the
growth of the resident set of a fresh process that holds nothing but the data. Readings
are how often IhSC goes over the data when they come in blocks.
"""

import json
import statistics
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import measure
import numpy as np
import scipy.sparse as sp
from cases import Case, counts, dense
from measure import Table, arguments, markdown, publish, timed
from methods import DENSE_ONLY, METHODS, before_environment, timed_labels, with_before
from sklearn.datasets import load_digits, load_iris

import ihgmm
from ihgmm import IhSC
from ihgmm import scale_heterogeneity_test as scale_test
from ihgmm.metrics import misclassification_rate

CASES: dict[str, tuple[str, int, Callable[[], Case]]] = {
    "tall": ("200,000 x 200, K 10", 10, partial(dense, 200_000, 200, 10)),
    "wide": ("2,000 x 20,000, K 8", 8, partial(dense, 2_000, 20_000, 8, length=3.0)),
    "square": ("20,000 x 2,000, K 20", 20, partial(dense, 20_000, 2_000, 20)),
    "sparse": ("sparse 50,000 x 20,000, K 10", 10, partial(counts, 50_000, 20_000, 10)),
    "memory": ("1,000,000 x 50, K 10", 10, partial(dense, 1_000_000, 50, 10)),
}
COMPARED = with_before([
    "IhSC", "rival", "SphericalKMeans", "naive", "k-means-raw", "k-means-1", "spectral",
    "faiss-1", "faiss-sample",
])  # fmt: skip
SMALL_ONLY = {"naive", "spectral"}  # methods that form an n by n matrix
MORE = ((500, 200, 4), (2_000, 2_000, 8), (20_000, 100, 5), (200_000, 50, 6))


def product_time(X: Any, width: int) -> float:
    rng = np.random.default_rng(0)
    n, p = X.shape
    W = rng.standard_normal((p, width)).astype(np.float32)
    V = rng.standard_normal((n, width)).astype(np.float32)
    return timed(lambda: (X @ W, X.T @ V))[0]


def compare(key: str, rounds: int) -> Table:
    title, k, make = CASES[key]
    X, labels, oracle = make()
    names = [
        name for name in COMPARED
        if (len(labels) <= 3_000 or name not in SMALL_ONLY)
        and not (sp.issparse(X) and name in DENSE_ONLY)
    ]  # fmt: skip
    times: dict[str, list[float]] = {name: [] for name in names}
    errors = {}
    products = []

    for turn in range(rounds):
        for name in names:
            if turn and times[name][0] > 5:
                continue  # one round tells enough of the slow ones
            products.append(product_time(X, k + 8))
            seconds, labels_of_method = timed_labels(name, X, k, turn)
            times[name].append(seconds)
            errors[name] = misclassification_rate(labels, labels_of_method)
            if turn == 0:
                print(f"{title}: {name} {seconds:.2f} s", file=sys.stderr)

    product_seconds = statistics.median(products)
    our_seconds = statistics.median(times["IhSC"])
    yield [f"{title} (oracle's error {oracle:.4f}, product {product_seconds:.3f} s)"]
    figures = ("seconds", "x IhSC", "x product", "memory / X", "readings", "error")
    yield ["method", *figures]

    for name in names:
        median = statistics.median(times[name])
        figures_of_process = process_figures(key, name)
        yield [
            name, f"{median:.2f}", f"{median / our_seconds:.2f}",
            f"{median / product_seconds:.1f}", f"{figures_of_process['memory']:.2f}",
            figures_of_process.get("readings", ""), f"{errors[name]:.4f}",
        ]  # fmt: skip


def process_figures(key: str, name: str) -> dict[str, float]:
    """Return figures of a fresh process, which imports the version that is asked."""
    environ = before_environment() if name == "before" else None
    method = "IhSC" if name == "before" else name
    return measure.in_process(__file__, key, method, env=environ)


def be_process(key: str, name: str) -> None:
    """Print the memory that a method takes beyond X, and its readings of X."""
    _, k, make = CASES[key]
    X = make().X
    fit_labels = METHODS[name]
    n_bytes = X.data.nbytes * 2 if sp.issparse(X) else X.nbytes
    fit_labels(X[:500], k, 0)  # load what is loaded late
    gigabytes, _ = measure.measured(lambda: fit_labels(X, k, 0))
    figures = {"memory": (gigabytes["peak"] - gigabytes["before"]) * 1e9 / n_bytes}
    if name == "IhSC":
        figures["readings"] = measure.readings(X, lambda rows: fit_labels(rows, k, 0))
    print(json.dumps(figures))


def growth(rounds: int) -> Table:
    yield ["IhSC as n grows, p = 100, K 10"]
    yield ["n", "seconds", "x a quarter of n"]
    previous = np.nan

    for n in (50_000, 200_000, 800_000):
        X = dense(n, 100, 10).X
        runs = range(2 * rounds)
        median = statistics.median(timed_labels("IhSC", X, 10, i)[0] for i in runs)
        ratio = "" if np.isnan(previous) else f"{median / previous:.2f}"
        yield [f"{n:,}", f"{median:.3f}", ratio]
        previous = median


TASKS: dict[str, Callable[[Any, Any, int], Any]] = {
    "select_n_clusters": lambda X, *_: ihgmm.select_n_clusters(X, random_state=0),
    "IhGMM": lambda X, _, k: ihgmm.IhGMM(k, random_state=0).fit(X),
    "diagnose": lambda X, labels, _: ihgmm.diagnose(X, labels, random_state=0),
    "scale test": lambda X, labels, _: scale_test(X, labels, random_state=0),
}


def more(rounds: int) -> Table:
    yield ["What is done beyond a fit, in fits"]
    yield ["data", "IhSC, seconds", *(f"{name}, fits" for name in TASKS)]
    for n, p, k in MORE:
        X = dense(n, p, k).X
        seconds_of_rounds = []
        for _ in range(rounds):
            seconds, model = timed(lambda X=X, k=k: IhSC(k, random_state=0).fit(X))
            line = [seconds]
            for task in TASKS.values():
                seconds, _ = timed(partial(task, X, model.labels_, k))
                line.append(seconds)
            seconds_of_rounds.append(line)

        fit_seconds, *task_seconds = np.median(seconds_of_rounds, axis=0)
        ratios = [f"{seconds / fit_seconds:.1f}" for seconds in task_seconds]
        yield [f"{n:,} x {p:,}, K {k}", f"{fit_seconds:.3f}", *ratios]


def small(rounds: int) -> Table:
    sets = {
        "iris": load_iris(return_X_y=True),
        "digits": load_digits(return_X_y=True),
        "500 x 200, K 4": dense(500, 200, 4)[:2],
    }
    names = with_before(["IhSC", "rival", "paper", "k-means"])
    yield ["Small data: least milliseconds (error); k-means of unit rows, ten starts"]
    yield ["data", *names]

    for data, (X, labels) in sets.items():
        k = len(np.unique(labels))
        cells = []
        for name in names:
            runs = [timed_labels(name, X, k, 0) for _ in range(4 * rounds)]
            error = misclassification_rate(labels, runs[0][1])
            cells.append(f"{1000 * min(run[0] for run in runs):.1f} ({error:.3f})")

        yield [data, *cells]


def memory(rounds: int) -> Table:
    yield [f"Memory beyond the data, {CASES['memory'][0]}"]
    yield ["method", "memory / X"]
    for name in with_before(["IhSC", "SphericalKMeans", "k-means-raw", "k-means-1"]):
        yield [name, f"{process_figures('memory', name)['memory']:.2f}"]


def main() -> None:
    if sys.argv[1:2] == ["--process"]:
        return be_process(*sys.argv[2:])
    tables = {key: partial(compare, key) for key in CASES if key != "memory"}
    tables |= {f.__name__: f for f in (small, growth, more, memory)}
    options = arguments(__doc__, "cpu.md", tables, rounds=5).parse_args()
    warnings.simplefilter("ignore")
    parts = [markdown(tables[name](options.rounds)) for name in options.names]
    publish(options, "\n".join(["# Benchmark\n\n`python benchmarks/run.py`\n", *parts]))


if __name__ == "__main__":
    main()
