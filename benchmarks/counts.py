"""Errors on counts and on unequal noise, by what is done to columns.

    python benchmarks/counts.py                     # designs, 10 draws, and real counts
    python benchmarks/counts.py --draws 3 --sets none
    python benchmarks/counts.py --extra FOLDER --save   # and sets of a folder
    python benchmarks/counts.py --draws 0 --sets none   # the cost alone

The designs are those of ``designs.py``. Real sets are those of ``labelled.py`` whose
entries look like counts. "log" is what is usual for single cells: rows are divided by
their total, times the median total, and logarithms of one more are taken. "k-means of
roots" is given unit rows of roots with weights of columns, as IhSC takes them. The cost
is processor time, in fits to columns as given, on 50,000 sparse texts of 20,000 words.
"""

import os
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from cases import counts as texts
from designs import DESIGNS
from labelled import SETS, LabelledSet, MissingDataError, extra_sets, sampled
from measure import Table, arguments, markdown, publish
from methods import Method, estimator, kmeans, on_roots
from sklearn.cluster import KMeans

from ihgmm import IhSC, select_n_clusters
from ihgmm.matrix import as_matrix
from ihgmm.metrics import misclassification_rate
from ihgmm.numerics.whitening import Columns, suited_noise

COUNTS = ("counts15", "counts30", "counts60", "counts300")
UNEQUAL = ["gaussian", "columns", "rows", "gamma", "similar", "t3"]
UNEQUAL += ["row-noise-200x5000"]
Cases = list[tuple[Any, ...]]  # names of parameters, and their values
BURSTS: Cases = [("counts in a row", "dispersion")]
BURSTS += [(300, 0.3), (1000, 0.3), (1000, 1.0), (3000, 1.0)]
ZEROS: Cases = [("noise", "share"), ("gamma", 0.3), ("gamma", 0.5), ("gamma", 0.8)]
ZEROS += [("counts", 0.3), ("counts", 0.5)]
Draw = Callable[..., tuple[np.ndarray, np.ndarray]]  # of rows and their labels


def bursts(seed: int, size: float, dispersion: float) -> tuple[np.ndarray, np.ndarray]:
    """Return counts of variance m + dispersion m², as of genes in cells, and kinds.

    300 rows of four kinds, 500 columns whose means are log-normal (1.5). A fifth of
    the columns of a kind differ, by log-normal factors (0.7). Sizes of rows are
    log-normal (0.5) with median ``size``.
    """
    rng = np.random.default_rng(seed)
    n = 300
    p = 500
    k = 4
    patterns = rng.standard_normal((k, p)) * (rng.random((k, p)) < 0.2)
    profiles = rng.lognormal(0, 1.5, p) * np.exp(0.7 * patterns)
    profiles /= profiles.sum(axis=1, keepdims=True)
    labels = np.arange(n) % k
    means = size * rng.lognormal(0, 0.5, n)[:, None] * profiles[labels]
    means *= rng.gamma(1 / dispersion, dispersion, means.shape)

    return rng.poisson(means).astype(float), labels


def with_zeros(seed: int, noise: str, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in which a share of the cells is 0 whatever their kind, and kinds.

    400 rows of four kinds, 150 columns. Scales of rows are log-normal (0.7). Patterns
    are log-normal (1), times gamma noise of shape 2; or those of negative binomial
    counts (c = 0.5, five a cell) are log-normal factors (0.8) of common ones (1.5).
    """
    rng = np.random.default_rng(seed)
    n = 400
    p = 150
    k = 4
    labels = np.arange(n) % k
    scales = rng.lognormal(0, 0.7, (n, 1))
    if noise == "gamma":
        means = scales * rng.lognormal(0, 1, (k, p))[labels]
    else:
        patterns = rng.lognormal(0, 1.5, p) * rng.lognormal(0, 0.8, (k, p))
        means = scales * (5 * patterns / patterns.mean(axis=1, keepdims=True))[labels]

    X = means * rng.gamma(2, 0.5, (n, p))
    X = X if noise == "gamma" else rng.poisson(X).astype(float)

    return X * (rng.random((n, p)) >= share), labels


def log_normalised(X: np.ndarray) -> np.ndarray:
    totals = X.sum(axis=1, keepdims=True)
    return np.log1p(X * np.median(totals) / totals)


def of_logs(model: Callable[..., Any]) -> Method:
    def labels(X: np.ndarray, k: int, seed: int) -> np.ndarray:
        return model(k, random_state=seed).fit(log_normalised(X)).labels_

    return labels


METHODS: dict[str, Method] = {
    'columns="given"': estimator("IhSC", columns="given"),
    "IhSC": estimator("IhSC"),
    'columns="counts"': estimator("IhSC", columns="counts"),
    'columns="noise"': estimator("IhSC", columns="noise"),
    "IhSC of logs": of_logs(IhSC),
    "k-means of logs": of_logs(partial(KMeans, n_init=10)),
    "k-means of roots": on_roots(kmeans),
}
ANY_SIGN = ('columns="given"', "IhSC", 'columns="noise"')


def errors(
    fits: list[Method], X: np.ndarray, y: np.ndarray, k: int, seed: int
) -> list[float]:
    return [misclassification_rate(y, fit(X, k, seed)) for fit in fits]


def design_table(names: Iterable[str], methods: Iterable[str], draws: int) -> Table:
    yield ["Errors in percent, means over draws"]
    yield ["design", *methods, "centre oracle"]
    fits = [METHODS[name] for name in methods]

    for name in names:
        rates = []
        for seed in range(draws):
            draw = DESIGNS[name](seed)
            oracle_rate = misclassification_rate(draw.labels, draw.best())
            errors_of_draw = errors(fits, draw.X, draw.labels, len(draw.centers), seed)
            rates.append([*errors_of_draw, oracle_rate])
        yield [name, *(f"{100 * mean:.1f}" for mean in np.mean(rates, axis=0))]


def sample_table(title: str, cases: Cases, draw: Draw, draws: int) -> Table:
    head, *cases = cases
    yield [f"{title}: errors in percent"]
    yield [*head, *METHODS]
    fits = list(METHODS.values())
    for case in cases:
        rates = [errors(fits, *draw(seed, *case), 4, seed) for seed in range(draws)]
        yield [*case, *(f"{100 * mean:.1f}" for mean in np.mean(rates, axis=0))]


def number_table(draws: int) -> Table:
    yield ["Draws in which four clusters were found"]
    settings: tuple[Columns, ...] = ("given", "auto", "counts")
    yield ["design", *settings, "logs"]
    for name in COUNTS[1:]:
        n_right = np.zeros(4, dtype=int)
        for seed in range(draws):
            draw = DESIGNS[name](seed)
            counts = [
                select_n_clusters(draw.X, columns=columns, random_state=seed)
                for columns in settings
            ]
            logs = log_normalised(draw.X)
            counts.append(select_n_clusters(logs, columns="given", random_state=seed))
            n_right += [count.n_clusters == len(draw.centers) for count in counts]

        yield [name, *(f"{value} of {draws}" for value in n_right)]


def real_table(sets: list[LabelledSet], seeds: int) -> Table:
    yield ["Errors on real counts"]
    yield ["set", "n", "p", "K", *METHODS]
    rates_of_sets = []
    fits = list(METHODS.values())

    for labelled_set in sets:
        try:
            prepared = labelled_set.prepared()
            X, y = next((X, y) for name, X, y in prepared if name == "raw")
        except (MissingDataError, StopIteration):
            continue

        if suited_noise(as_matrix(X)) != "counts":
            continue

        X, y = sampled(X, y, 3_000)
        k = len(np.unique(y))
        rates = np.mean([errors(fits, X, y, k, seed) for seed in range(seeds)], axis=0)
        rates_of_sets.append(rates)
        yield [labelled_set.name, *X.shape, k, *(f"{rate:.3f}" for rate in rates)]

    if rates_of_sets:
        means = (f"{rate:.3f}" for rate in np.mean(rates_of_sets, axis=0))
        yield ["mean", "", "", "", *means]


def cost_table(runs: int) -> Table:
    X = texts(50_000, 20_000, 10).X
    share = 100 * X.nnz / np.prod(X.shape)
    yield [f"Cost, {share:.1f}% of the entries above zero: medians of {runs} runs"]
    yield ["method", "seconds", "fits"]
    methods = [name for name in METHODS if "log" not in name]
    seconds = np.zeros((runs, len(methods)))

    for run in range(runs):
        for column, name in enumerate(methods):  # by turns: other work slows all alike
            start = time.process_time()
            METHODS[name](X, 10, run)
            seconds[run, column] = time.process_time() - start

    times = np.median(seconds, axis=0)
    ratios = np.median(seconds / seconds[:, :1], axis=0)
    for name, median_seconds, ratio in zip(methods, times, ratios, strict=True):
        yield [name, f"{median_seconds:.2f}", f"{ratio:.2f}"]


def main() -> None:
    parser = arguments(__doc__, "counts.md", draws=10, runs=3, seeds=1)
    parser.add_argument("--sets", choices=("all", "extra", "none"), default="all")
    parser.add_argument("--extra", type=Path, help="a folder of further sets")
    options = parser.parse_args()
    sets = [*extra_sets(options.extra)] if options.extra else []
    if options.sets != "extra":
        sets = [*SETS, *sets] if options.sets == "all" else []

    tables = []
    draws = options.draws
    if options.runs:
        tables.append(cost_table(options.runs))
    if draws:
        tables += [
            design_table(COUNTS, METHODS, draws),
            number_table(draws),
            sample_table("Counts that come in bursts", BURSTS, bursts, draws),
            sample_table("Cells set to 0 at random", ZEROS, with_zeros, draws),
            design_table(UNEQUAL, ANY_SIGN, draws),
        ]

    if sets:
        tables.append(real_table(sets, options.seeds))

    warnings.simplefilter("ignore")  # hints are what this is about
    head = "# Counts and unequal noise\n\n"
    head += f"Means over {draws} draws (`python benchmarks/counts.py`).\n\n"
    publish(options, head + "\n".join(map(markdown, tables)))


if __name__ == "__main__":
    main()
