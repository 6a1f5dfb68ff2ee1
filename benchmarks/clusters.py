"""Compare IhSC with its peers by the number of clusters: error and time.

    python benchmarks/clusters.py                         # all shapes, an hour or two
    python benchmarks/clusters.py 20000x500 -k 10 50 100  # some
    python benchmarks/clusters.py --save                  # and keep the table

Rows follow the model: patterns of length 2, at right angles unless ``correlated`` or
more than features, scales from 1 to 20, noise of level 1, clusters of equal size unless
``unequal`` (1:20).
The oracle knows the patterns and gives a row to the one of largest product. Methods
take turns on each draw; times are medians over draws, and errors beyond the oracle's
are the mean and the largest. Sparse rows are counts, which IhSC whitens.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from measure import environment, markdown, names_asked, timed
from methods import faiss_spherical
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from ihgmm import IhSC
from ihgmm.metrics import misclassification_rate

RESULTS = Path(__file__).parent / "results" / "clusters.md"
PACKAGES = ("ihgmm", "numpy", "scipy", "scikit-learn", "faiss-cpu")
NOTE = """Rows follow the model: patterns at right angles unless correlated or more than
features, scales from 1 to 20, clusters of equal size unless unequal (1:20). The oracle
knows the patterns. faiss takes no sparse rows.
Errors are those beyond the oracle's: the mean, and the largest in brackets. A ratio
below 1 says that IhSC is faster (`python benchmarks/clusters.py`)."""
NUMBERS = (2, 5, 10, 20, 50, 100, 200)
SLOW = 20.0  # seconds, from which one draw tells enough of a method


def dense(
    n: int, p: int, k: int, seed: int, *, common: float = 0.0, ratio: float = 1.0
) -> tuple[np.ndarray, np.ndarray, float]:
    """Draw rows of the model; return them, their clusters and the oracle's error."""
    rng = np.random.default_rng(seed)
    patterns = rng.standard_normal((k, p))
    patterns = normalize(patterns) if k > p else np.linalg.qr(patterns.T)[0].T
    if common:
        shared = patterns.mean(axis=0) * np.sqrt(k)
        patterns = normalize(np.sqrt(1 - common) * patterns + np.sqrt(common) * shared)
    shares = np.geomspace(1, ratio, k)
    kinds = rng.choice(k, n, p=shares / shares.sum())
    kinds[:k] = np.arange(k)
    scales = rng.uniform(1, 20, (n, 1))
    X = 2 * scales * patterns[kinds] + rng.standard_normal((n, p))
    error = float((np.argmax(X @ patterns.T, axis=1) != kinds).mean())
    return X.astype(np.float32), kinds, error


def counts(n: int, p: int, k: int, seed: int) -> tuple[sp.csr_array, np.ndarray, float]:
    """Draw sparse counts of long and short texts, about 1.3% of them above zero."""
    rng = np.random.default_rng(seed)
    common = rng.dirichlet(np.full(p, 0.1))
    own = rng.dirichlet(np.full(p, 0.02), size=k)
    topics = 0.7 * common + 0.3 * own
    kinds = rng.integers(k, size=n)
    kinds[:k] = np.arange(k)
    lengths = rng.integers(30, 600, size=n)
    edges = np.r_[0, np.cumsum(lengths)].astype(np.int32)
    words = np.empty(edges[-1], dtype=np.int32)
    for topic in range(k):
        rows = np.flatnonzero(kinds == topic)
        drawn = rng.choice(p, size=int(lengths[rows].sum()), p=topics[topic])
        parts = np.split(drawn, np.cumsum(lengths[rows])[:-1])
        for row, part in zip(rows, parts, strict=True):
            words[edges[row] : edges[row + 1]] = part
    X = sp.csr_array((np.ones(len(words), np.float32), words, edges), shape=(n, p))
    X.sum_duplicates()
    scores = X @ np.log(topics).T
    return X, kinds, float((np.argmax(scores, axis=1) != kinds).mean())


def unit_kmeans(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    return KMeans(k, n_init=1, random_state=seed).fit(normalize(X)).labels_


def faiss(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    return faiss_spherical(X, k, len(X), seed=seed)


def ihsc(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    whiten = "counts" if sp.issparse(X) else None  # as a fit of counts advises
    return IhSC(k, whiten=whiten, random_state=seed).fit(X).labels_


METHODS: dict[str, Callable[..., np.ndarray]] = {
    "IhSC": ihsc,
    "faiss": faiss,
    "k-means": unit_kmeans,
}
SHAPES: dict[str, Callable[[int, int], tuple]] = {
    "1000x200": lambda k, seed: dense(1_000, 200, k, seed),
    "3000x500": lambda k, seed: dense(3_000, 500, k, seed),
    "20000x500": lambda k, seed: dense(20_000, 500, k, seed),
    "20000x500 unequal": lambda k, seed: dense(20_000, 500, k, seed, ratio=20.0),
    "20000x500 correlated": lambda k, seed: dense(20_000, 500, k, seed, common=0.3),
    "20000x50": lambda k, seed: dense(20_000, 50, k, seed),
    "200000x200": lambda k, seed: dense(200_000, 200, k, seed),
    "sparse 50000x20000": lambda k, seed: counts(50_000, 20_000, k, seed),
}


def compare(shape: str, k: int, draws: int) -> list[str]:
    """Return a line of the table."""
    seconds: dict[str, list[float]] = {name: [] for name in METHODS}
    excess: dict[str, list[float]] = {name: [] for name in METHODS}
    oracles = []
    for seed in range(draws):
        X, kinds, oracle = SHAPES[shape](k, seed)
        oracles.append(oracle)
        for name, method in METHODS.items():
            slow = seconds[name] and seconds[name][0] > SLOW
            if slow or (name == "faiss" and sp.issparse(X)):
                continue
            with warnings.catch_warnings(action="ignore"):
                time, labels = timed(partial(method, X, k, seed))
            seconds[name].append(time)
            excess[name].append(misclassification_rate(kinds, labels) - oracle)
    line = [shape, str(k), f"{np.mean(oracles):.4f}"]
    own = statistics.median(seconds["IhSC"])
    for name in METHODS:
        if not seconds[name]:
            line += ["", ""]
            continue
        errors = excess[name]
        line.append(f"{np.mean(errors):+.4f} ({max(errors):+.4f})")
        time = statistics.median(seconds[name])
        line.append(f"{own:.2f} s" if name == "IhSC" else f"{own / time:.2f}")
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", nargs="*", help=f"some of {', '.join(SHAPES)}")
    parser.add_argument("-k", nargs="+", type=int, default=list(NUMBERS))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    header = ["data", "K", "oracle", "IhSC, beyond it", "time"]
    for name in list(METHODS)[1:]:
        header += [f"{name}, beyond it", f"time of IhSC / {name}"]
    lines = []
    for shape in names_asked(parser, args.shapes, SHAPES):
        for k in args.k:
            lines.append(compare(shape, k, args.draws))
            print(" | ".join(lines[-1]), flush=True)
    title = f"{args.draws} draws"
    text = f"# Many clusters\n\n{NOTE}\n\n{environment(PACKAGES)}\n\n"
    text += markdown([[title], header, *lines])
    print(text)
    if args.save:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
