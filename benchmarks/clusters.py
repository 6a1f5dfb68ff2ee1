"""Compare IhSC with its peers by the number of clusters: error and time.

    python benchmarks/clusters.py                         # all shapes, an hour or two
    python benchmarks/clusters.py 20000x500 -k 10 50 100  # some
    python benchmarks/clusters.py --methods IhSC rival --save
    IHGMM_BEFORE=old/src python benchmarks/clusters.py    # beside another version

Methods take turns on each draw; times are medians over draws.
"""

import argparse
import statistics
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse as sp
from cases import Case, counts, dense
from measure import Table, arguments, markdown, publish
from methods import DENSE_ONLY, METHODS, timed_labels, with_before

from ihgmm.metrics import misclassification_rate

NOTE = """Rows follow the model: centres of length 2 at right angles unless correlated
or more than features, scales from 1 to 20, noise of level 1, clusters of equal size
unless unequal (1:20). The oracle knows the centres. Sparse rows are counts, of which
IhSC takes the roots; neither faiss nor the rival takes them. Errors are those beyond
the oracle's: the mean, and the largest in brackets. A ratio below 1 says that IhSC is
faster (`python benchmarks/clusters.py`).
"""
NUMBERS = (2, 5, 10, 20, 50, 100, 200)
SLOW = 20.0  # seconds, from which one draw tells enough of a method
SHAPES: dict[str, Callable[[int, int], Case]] = {
    "1000x200": partial(dense, 1_000, 200),
    "3000x500": partial(dense, 3_000, 500),
    "20000x500": partial(dense, 20_000, 500),
    "20000x500 unequal": partial(dense, 20_000, 500, ratio=20.0),
    "20000x500 correlated": partial(dense, 20_000, 500, common=0.3),
    "20000x50": partial(dense, 20_000, 50),
    "200000x200": partial(dense, 200_000, 200),
    "sparse 50000x20000": partial(counts, 50_000, 20_000),
}


def compare(shape: str, k: int, methods: list[str], draws: int) -> list[str]:
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    excess: dict[str, list[float]] = {name: [] for name in methods}
    oracles = []

    for seed in range(draws):
        X, labels, oracle = SHAPES[shape](k, seed)
        oracles.append(oracle)

        for name in methods:
            is_slow = seconds[name] and seconds[name][0] > SLOW
            if is_slow or (name in DENSE_ONLY and sp.issparse(X)):
                continue

            with warnings.catch_warnings(action="ignore"):
                duration, fitted = timed_labels(name, X, k, seed)
            seconds[name].append(duration)
            excess[name].append(misclassification_rate(labels, fitted) - oracle)

    cells = [shape, str(k), f"{np.mean(oracles):.4f}"]
    our_seconds = statistics.median(seconds[methods[0]])

    for name in methods:
        if not seconds[name]:
            cells += ["", ""]
            continue

        errors = excess[name]
        cells.append(f"{np.mean(errors):+.4f} ({max(errors):+.4f})")
        if name == methods[0]:
            cells.append(f"{our_seconds:.2f} s")
        else:
            cells.append(f"{our_seconds / statistics.median(seconds[name]):.2f}")

    return cells


def table(options: argparse.Namespace) -> Table:
    reference, *other_methods = options.methods
    head = ["data", "K", "oracle", f"{reference}, beyond it", "time"]
    for name in other_methods:
        head += [f"{name}, beyond it", f"time of {reference} / {name}"]
    yield [f"{options.draws} draws"]
    yield head
    for shape in options.names:
        for k in options.k:
            yield compare(shape, k, options.methods, options.draws)


def main() -> None:
    parser = arguments(__doc__, "clusters.md", SHAPES, draws=10)
    parser.add_argument("-k", nargs="+", type=int, default=list(NUMBERS))
    defaults = with_before(["IhSC", "rival", "faiss-1", "k-means-1"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=defaults)
    options = parser.parse_args()
    publish(options, f"# Many clusters\n\n{NOTE}\n{markdown(table(options))}")


if __name__ == "__main__":
    main()
