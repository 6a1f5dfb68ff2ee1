"""Errors on counts and on unequal noise, with whitening and without.

    python benchmarks/counts.py                     # designs, 10 draws, and real counts
    python benchmarks/counts.py --draws 3 --sets none
    python benchmarks/counts.py --extra FOLDER --save   # and sets of a folder
    python benchmarks/counts.py --draws 0 --sets none   # the cost alone

The designs are those of ``designs.py``. Real sets are those of ``labelled.py`` whose
entries look like counts. "log" is what is usual for single cells: rows are divided by
their total, times the median total, and logarithms of one more are taken. The cost is
processor time, in fits without whitening, on 50,000 sparse texts of 20,000 words.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from cases import counts as texts
from designs import DESIGNS
from labelled import SETS, LabelledSet, MissingDataError, extra_sets, sampled
from measure import markdown, save
from methods import Method, estimator
from sklearn.cluster import KMeans

from ihgmm import IhSC, select_n_clusters
from ihgmm.matrix import as_matrix
from ihgmm.metrics import misclassification_rate
from ihgmm.numerics.whitening import suited_noise

COUNTS = ("counts15", "counts30", "counts60", "counts300")
UNEQUAL = (
    "gaussian",
    "columns",
    "rows",
    "gamma",
    "similar",
    "t3",
    "row-noise-200x5000",
)
BURSTS = ["Counts that come in bursts: errors in percent"]
BURSTS += ["counts in a row", "dispersion"]
BURST_CASES = ((300, 0.3), (1000, 0.3), (1000, 1.0), (3000, 1.0))
ZEROS = ["Cells set to 0 at random: errors in percent", "noise", "share"]
ZERO_CASES = (("gamma", 0.3), ("gamma", 0.5), ("gamma", 0.8))
ZERO_CASES += (("counts", 0.3), ("counts", 0.5))


def bursts(seed: int, size: float, dispersion: float) -> tuple[np.ndarray, np.ndarray]:
    """Return counts of variance m + dispersion m², as of genes in cells, and kinds.

    300 rows of four kinds, 500 columns whose means are log-normal (1.5). A fifth of
    the columns of a kind differ, by log-normal factors (0.7). Sizes of rows are
    log-normal (0.5) with median ``size``.
    """
    rng, n, p, k = np.random.default_rng(seed), 300, 500, 4
    own = rng.standard_normal((k, p)) * (rng.random((k, p)) < 0.2)
    profiles = rng.lognormal(0, 1.5, p) * np.exp(0.7 * own)
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
    rng, n, p, k = np.random.default_rng(seed), 400, 150, 4
    labels, scales = np.arange(n) % k, rng.lognormal(0, 0.7, (n, 1))
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


def ihsc_of_logs(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    return IhSC(k, random_state=seed).fit(log_normalised(X)).labels_


def kmeans_of_logs(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    return KMeans(k, n_init=10, random_state=seed).fit_predict(log_normalised(X))


METHODS: dict[str, Method] = {
    "IhSC": estimator("IhSC"),
    'whiten="counts"': estimator("IhSC", whiten="counts"),
    'whiten="learned"': estimator("IhSC", whiten="learned"),
    'whiten="auto"': estimator("IhSC", whiten="auto"),
    "IhSC of logs": ihsc_of_logs,
    "k-means of logs": kmeans_of_logs,
}
ANY_SIGN = ("IhSC", 'whiten="learned"', 'whiten="auto"')


def design_rates(name: str, methods: list[str], draws: int) -> np.ndarray:
    """Return the rate of each method and of the oracle, a line for each draw."""
    rates = []
    for seed in range(draws):
        draw = DESIGNS[name](seed)
        k = len(draw.centers)
        found = [METHODS[method](draw.X, k, seed) for method in methods]
        found.append(draw.best())
        rates.append([misclassification_rate(draw.labels, z) for z in found])
    return np.array(rates)


def numbers_found(name: str, draws: int) -> list[str]:
    """Return in how many draws the number of clusters was found, for three ways."""
    right = np.zeros(3, dtype=int)
    for seed in range(draws):
        draw = DESIGNS[name](seed)
        found = [
            select_n_clusters(draw.X, random_state=seed),
            select_n_clusters(draw.X, whiten="counts", random_state=seed),
            select_n_clusters(log_normalised(draw.X), random_state=seed),
        ]
        right += [count.n_clusters == len(draw.centers) for count in found]
    return [f"{value} of {draws}" for value in right]


def design_table(names: tuple[str, ...], methods: list[str], draws: int) -> str:
    lines = [["Errors in percent, means over draws"]]
    lines.append(["design", *methods, "centre oracle"])
    for name in names:
        means = 100 * design_rates(name, methods, draws).mean(axis=0)
        lines.append([name, *(f"{mean:.1f}" for mean in means)])
        print(*lines[-1], flush=True)
    return markdown(lines)


def sample_table(
    head: list[str],
    cases: tuple[tuple[Any, ...], ...],
    draw: Callable[..., tuple[np.ndarray, np.ndarray]],
    draws: int,
) -> str:
    lines = [head[:1], [*head[1:], *METHODS]]
    for case in cases:
        rates = []
        for seed in range(draws):
            X, y = draw(seed, *case)
            found = [fit(X, 4, seed) for fit in METHODS.values()]
            rates.append([misclassification_rate(y, z) for z in found])
        means = (f"{100 * rate:.1f}" for rate in np.mean(rates, axis=0))
        lines.append([*map(str, case), *means])
        print(*lines[-1], flush=True)
    return markdown(lines)


def number_table(draws: int) -> str:
    lines = [["Draws in which four clusters were found"]]
    lines.append(["design", "plain", 'whiten="counts"', "logs"])
    for name in COUNTS[1:]:
        lines.append([name, *numbers_found(name, draws)])
        print(*lines[-1], flush=True)
    return markdown(lines)


def real_table(sets: list[LabelledSet], seeds: int) -> str:
    lines = [["Errors on real counts"], ["set", "n", "p", "K", *METHODS]]
    rows = []
    for data in sets:
        try:
            X, y = next((X, y) for name, X, y in data.prepared() if name == "raw")
        except (MissingDataError, StopIteration):
            continue
        if suited_noise(as_matrix(X)) != "counts":
            continue
        X, y = sampled(X, y, 3_000)
        k = len(np.unique(y))
        rows.append(
            [
                np.mean([misclassification_rate(y, fit(X, k, s)) for s in range(seeds)])
                for fit in METHODS.values()
            ]
        )
        shape = [str(size) for size in (*X.shape, k)]
        lines.append([data.name, *shape, *(f"{rate:.3f}" for rate in rows[-1])])
        print(*lines[-1], flush=True)
    if not rows:
        return "No set of real counts was there.\n"
    means = (f"{rate:.3f}" for rate in np.mean(rows, axis=0))
    lines.append(["mean", "", "", "", *means])
    return markdown(lines)


def cost_table(runs: int) -> str:
    X = texts(50_000, 20_000, 10).X
    methods = [name for name in METHODS if "log" not in name]
    seconds = np.zeros((runs, len(methods)))
    for run in range(runs):
        for at, name in enumerate(methods):  # by turns: other work slows all alike
            start = time.process_time()
            METHODS[name](X, 10, run)
            seconds[run, at] = time.process_time() - start
    share = 100 * X.nnz / np.prod(X.shape)
    lines = [[f"Cost, {share:.1f}% of the entries above zero: medians of {runs} runs"]]
    lines.append(["method", "seconds", "fits"])
    times = np.median(seconds, axis=0)
    ratios = np.median(seconds / seconds[:, :1], axis=0)
    for name, each, ratio in zip(methods, times, ratios, strict=True):
        lines.append([name, f"{each:.2f}", f"{ratio:.2f}"])
        print(*lines[-1], flush=True)
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3, help="of each fit for its cost")
    parser.add_argument("--seeds", type=int, default=1, help="of fits to real sets")
    parser.add_argument("--sets", choices=("all", "extra", "none"), default="all")
    parser.add_argument("--extra", type=Path, help="a folder of further sets")
    parser.add_argument("--save", action="store_true", help="to counts.md")
    options = parser.parse_args()
    sets = [*extra_sets(options.extra)] if options.extra else []
    if options.sets != "extra":
        sets = [*SETS, *sets] if options.sets == "all" else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hints are what this is about
        parts = [cost_table(options.runs)] if options.runs else []
        if options.draws:
            parts += [
                design_table(COUNTS, list(METHODS), options.draws),
                number_table(options.draws),
                sample_table(BURSTS, BURST_CASES, bursts, options.draws),
                sample_table(ZEROS, ZERO_CASES, with_zeros, options.draws),
                design_table(UNEQUAL, list(ANY_SIGN), options.draws),
            ]
        if sets:
            parts.append(real_table(sets, options.seeds))
    if options.save:
        head = "# Counts and unequal noise\n\n"
        head += f"Means over {options.draws} draws (`python benchmarks/counts.py`).\n\n"
        save("counts.md", head + "\n".join(parts))


if __name__ == "__main__":
    main()
