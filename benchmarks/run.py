"""Compare IhSC with its peers on speed, memory and error.

    python benchmarks/run.py             # everything, five to ten minutes
    python benchmarks/run.py tall wide   # some cases
    python benchmarks/run.py --save      # and keep the tables under results/

Methods take turns in one process, several rounds; times are medians, shown as ratios
to IhSC and to one product ``X @ V`` plus ``X.T @ V`` with K + 8 columns. Memory is the
growth of the resident set of a fresh process that holds nothing but the data.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from cases import CASES, Case, dense
from measure import environment, markdown, peak, reset_peak, resident, timed
from methods import METHODS, Method
from rich.console import Console
from rich.progress import Progress
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris
from sklearn.preprocessing import normalize

from ihgmm import IhGMM, IhSC, diagnose, scale_heterogeneity_test, select_n_clusters
from ihgmm.metrics import misclassification_rate

HERE = Path(__file__).parent
PACKAGES = ("ihgmm", "numpy", "scipy", "scikit-learn", "faiss-cpu")
GROWTH = (50_000, 200_000, 800_000)
MORE = (
    (500, 200, 4),
    (2_000, 2_000, 8),
    (20_000, 100, 5),
    (200_000, 50, 6),
    (2_000, 20_000, 8),
)


def product_time(case: Case) -> float:
    width = case.n_clusters + 8
    n, p = case.X.shape
    rng = np.random.default_rng(0)
    W = rng.standard_normal((p, width)).astype(np.float32)
    V = rng.standard_normal((n, width)).astype(np.float32)
    return timed(lambda: (case.X @ W, case.X.T @ V))[0]


def usable(method: Method, case: Case) -> bool:
    return case.X.shape[0] <= method.largest and (
        method.sparse or not sp.issparse(case.X)
    )


def compare(key: str, rounds: int, progress: Progress) -> list[list[str]]:
    case = CASES[key]()
    methods = [m for m in METHODS if usable(m, case)]
    task = progress.add_task(case.name, total=rounds * len(methods) + len(methods))
    times: dict[str, list[float]] = {m.name: [] for m in methods}
    errors: dict[str, float] = {}
    products = []
    for turn in range(rounds):
        for method in methods:
            progress.advance(task)
            if turn and times[method.name][0] > 5:
                continue  # one round tells enough of the slow ones
            products.append(product_time(case))
            seconds, labels = timed(lambda m=method: m.run(case.X, case.n_clusters))
            times[method.name].append(seconds)
            if turn == 0 and not progress.console.is_terminal:
                print(f"{case.name}: {method.name} {seconds:.2f} s", file=sys.stderr)
            errors[method.name] = misclassification_rate(case.labels, labels)
    unit = statistics.median(products)
    ours = statistics.median(times["IhSC"])
    rows = []
    for method in methods:
        median = statistics.median(times[method.name])
        rows.append(
            [
                method.name,
                f"{median:.2f}",
                f"{median / ours:.2f}",
                f"{median / unit:.1f}",
                f"{extra_memory(key, method.name):.2f}",
                f"{errors[method.name]:.4f}",
            ]
        )
        progress.advance(task)
    title = f"{case.name} (oracle's error {case.oracle:.4f}, product {unit:.3f} s)"
    head = ["method", "seconds", "x IhSC", "x product", "memory / X", "error"]
    return [[title], head, *rows]


def extra_memory(key: str, name: str) -> float:
    done = subprocess.run(
        [sys.executable, __file__, "--memory", key, name],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(done.stdout)


def measure_memory(key: str, name: str) -> None:
    case = dense(1_000_000, 50, 10) if key == "memory" else CASES[key]()
    method = next(m for m in METHODS if m.name == name)
    size = case.X.data.nbytes * 2 if sp.issparse(case.X) else case.X.nbytes
    method.run(case.X[:500], case.n_clusters)  # load what is loaded late
    # Touch and drop memory that making the data had taken, to start from what is used.
    baseline = resident()
    reset_peak()
    method.run(case.X, case.n_clusters)
    print((peak() - baseline) / size)


def growth(rounds: int) -> list[list[str]]:
    medians = []
    for n in GROWTH:
        case = dense(n, 100, 10)
        seconds = [
            timed(lambda c=case, s=s: IhSC(10, random_state=s).fit(c.X))[0]
            for s in range(2 * rounds)
        ]
        medians.append(statistics.median(seconds))
    rows = [
        [f"{n:,}", f"{s:.3f}", "" if i == 0 else f"{s / medians[i - 1]:.2f}"]
        for i, (n, s) in enumerate(zip(GROWTH, medians, strict=True))
    ]
    return [
        ["IhSC as n grows, p = 100, K 10"],
        ["n", "seconds", "x a quarter of n"],
        *rows,
    ]


def more(rounds: int) -> list[list[str]]:
    """Count in fits what is done beyond one."""
    tasks = {
        "select_n_clusters": lambda X, model: select_n_clusters(X, random_state=0),
        "refine=True": lambda X, model: IhSC(
            model.n_clusters, refine=True, random_state=0
        ).fit(X),
        "IhGMM": lambda X, model: IhGMM(model.n_clusters, random_state=0).fit(X),
        "diagnose": lambda X, model: diagnose(X, model.labels_, random_state=0),
        "scale test": lambda X, model: scale_heterogeneity_test(
            X, model.labels_, random_state=0
        ),
    }
    rows = []
    for n, p, k in MORE:
        X = dense(n, p, k).X
        times: dict[str, list[float]] = {name: [] for name in ("fit", *tasks)}
        for _ in range(rounds):
            seconds, model = timed(lambda X=X, k=k: IhSC(k, random_state=0).fit(X))
            times["fit"].append(seconds)
            for name, task in tasks.items():
                times[name].append(timed(lambda t=task, X=X, m=model: t(X, m))[0])
        fit, *others = (statistics.median(times[name]) for name in times)
        ratios = [f"{other / fit:.1f}" for other in others]
        rows.append([f"{n:,} x {p:,}, K {k}", f"{fit:.3f}", *ratios])
    head = ["data", "IhSC, seconds", *(f"{name}, fits" for name in tasks)]
    return [["What is done beyond a fit, in fits"], head, *rows]


def small(rounds: int) -> list[list[str]]:
    """Compare fits of small data with ten runs of k-means."""
    model = dense(500, 200, 4)
    sets = {
        "iris": (*load_iris(return_X_y=True), 3),
        "digits": (*load_digits(return_X_y=True), 10),
        "500 x 200, K 4": (model.X, model.labels, 4),
    }
    methods = {
        "IhSC": lambda X, k: IhSC(k, random_state=0).fit(X),
        "IhSC.paper": lambda X, k: IhSC.paper(k, random_state=0).fit(X),
        "KMeans": lambda X, k: KMeans(k, n_init=10, random_state=0).fit(normalize(X)),
    }
    rows = []
    for name, (X, labels, k) in sets.items():
        times: dict[str, list[float]] = {method: [] for method in methods}
        errors = []
        for turn in range(4 * rounds):
            for method, run in methods.items():
                seconds, fitted = timed(lambda r=run, X=X, k=k: r(X, k))
                times[method].append(1000 * seconds)
                if turn == 0:
                    errors.append(misclassification_rate(labels, fitted.labels_))
        both = zip(times.values(), errors, strict=True)
        rows.append([name, *(f"{min(t):.1f} ({error:.3f})" for t, error in both)])
    title = "Small data: least milliseconds (error); KMeans(n_init=10) on unit rows"
    return [[title], ["data", *methods], *rows]


def memory_table() -> list[list[str]]:
    return [
        ["Memory beyond the data, 1,000,000 x 50 float32, K 10"],
        ["method", "memory / X"],
        *(
            [name, f"{extra_memory('memory', name):.2f}"]
            for name in ("IhSC", "SphericalKMeans", "KMeans", "KMeans on unit rows")
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare IhSC with its peers.")
    names = [*CASES, "small", "growth", "more", "memory"]
    parser.add_argument("only", nargs="*", metavar="CASE", help=", ".join(names))
    parser.add_argument(
        "--rounds", type=int, default=5, help="how often each method is timed (5)"
    )
    parser.add_argument("--save", action="store_true", help="keep the tables")
    parser.add_argument("--memory", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        return measure_memory(*options.memory)
    unknown = set(options.only) - set(names)
    if unknown:
        parser.error(f"no case {sorted(unknown)[0]!r}; there are {', '.join(names)}")
    console = Console()
    texts = []
    with Progress(console=console, transient=True) as progress:
        for name in options.only or names:
            if name == "small":
                table = small(options.rounds)
            elif name == "growth":
                table = growth(options.rounds)
            elif name == "more":
                table = more(options.rounds)
            elif name == "memory":
                table = memory_table()
            else:
                table = compare(name, options.rounds, progress)
            texts.append(markdown(table))
            progress.console.print(texts[-1], markup=False, highlight=False)
    console.print(environment(PACKAGES), highlight=False)
    if options.save:
        target = HERE / "results" / "cpu.md"
        target.parent.mkdir(exist_ok=True)
        text = f"# Benchmark\n\n{environment(PACKAGES)}\n\n" + "\n".join(texts)
        target.write_text(text, encoding="utf-8")
    return None


if __name__ == "__main__":
    main()
