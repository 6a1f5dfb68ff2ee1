"""Compare ways to fill missing cells by the clusters that IhSC finds afterwards.

    python benchmarks/missing.py                 # designs and sets, two draws
    python benchmarks/missing.py gaussian iris --draws 5
    python benchmarks/missing.py --scale         # time and memory of 1,000,000 x 50

Cells are missing at random. Zeros, column means, scikit-learn's KNNImputer and
IterativeImputer are followed by the same IhSC that ``missing="fit"`` has. Real sets are
the paper's and the digits, as in ``labelled.py``, of at most 1,000 rows; each draw has
other missing cells. IterativeImputer has four rounds from 80 columns on, and looks at
30 columns at a time from 120 on: with its defaults a table of 256 columns takes it
half an hour.
"""

import os
import warnings
from collections.abc import Callable
from functools import cache, partial

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from designs import DESIGNS, customers, mixture
from labelled import TEN
from measure import Table, arguments, markdown, measured, publish
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from ihgmm import IhSC
from ihgmm.metrics import misclassification_rate

SHARES = (0.1, 0.3, 0.5)


def positive(rng: np.random.Generator, k: int, p: int) -> np.ndarray:
    """Centres whose entries are all positive."""
    centers = np.abs(rng.standard_normal((k, p)))
    return centers / np.linalg.norm(centers, axis=1, keepdims=True)


NAMES = "gaussian similar t3 columns ar80 overlap few p10 p50 counts60"
CASES = {name: DESIGNS[name] for name in NAMES.split()}
CASES["positive"] = partial(mixture, directions=positive, length=10)
CASES["customers"] = partial(customers, n=800)
SETS = [data.name for data in TEN]


@cache
def real(name: str) -> tuple[np.ndarray, np.ndarray]:
    (data,) = (data for data in TEN if data.name == name)
    return next(data.prepared(1_000))[1:]


def case(name: str, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return data with NaN, and labels."""
    if name in CASES:
        draw = CASES[name](seed)
        X = draw.X
        labels = draw.labels
    else:
        X, labels = real(name)

    rng = np.random.default_rng([seed, int(100 * share)])
    X = np.array(X, dtype=np.float64)
    X[rng.random(X.shape) < share] = np.nan

    return X, labels


def iterative(X: np.ndarray) -> np.ndarray:
    p = X.shape[1]
    model = IterativeImputer(
        random_state=0, n_nearest_features=30 if p > 120 else None,
        max_iter=10 if p < 80 else 4, keep_empty_features=True,
    )  # fmt: skip
    return model.fit_transform(X)


PEERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "zero": lambda X: np.nan_to_num(X, nan=0.0),
    "mean": lambda X: SimpleImputer(keep_empty_features=True).fit_transform(X),
    "knn": lambda X: KNNImputer(keep_empty_features=True).fit_transform(X),
    "iter": iterative,
}


def rates(name: str, share: float, seed: int) -> list[float]:
    """Return the error of each peer, then ours."""
    X, labels = case(name, share, seed)
    k = len(np.unique(labels))
    models = [IhSC(k, random_state=seed).fit(fill(X)) for fill in PEERS.values()]
    models.append(IhSC(k, random_state=seed, missing="fit").fit(X))

    return [misclassification_rate(labels, model.labels_) for model in models]


def table(names: list[str], draws: int, gaps: list[np.ndarray]) -> Table:
    """Yield means; ``gaps`` gets by how much draws are worse than the best peer's."""
    yield ["Rows with a wrong label, in percent"]
    yield ["data", "missing", "zeros", "means", "KNN", "iterative", 'missing="fit"',
           "+/-"]  # fmt: skip
    means = []

    for name in names:
        for share in SHARES:
            lines = np.array([rates(name, share, seed) for seed in range(draws)])
            mean_rates = lines.mean(axis=0)
            means.append(mean_rates)
            best_peer = int(mean_rates[:-1].argmin())
            gap = lines[:, -1] - lines[:, best_peer]
            gaps.append(gap)

            cells = [f"{100 * rate:.1f}" for rate in mean_rates]
            cells[best_peer] = f"*{cells[best_peer]}*"
            if gap.mean() <= 1e-9:
                cells[-1] = f"**{cells[-1]}**"
            yield [name, f"{share:.0%}", *cells, f"{100 * doubt(gap):.1f}"]

    yield ["mean", "", *(f"{100 * value:.1f}" for value in np.mean(means, axis=0)), ""]


def doubt(gap: np.ndarray) -> float:
    """Return the standard error of a mean."""
    return gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan


def summary(gaps: list[np.ndarray]) -> str:
    mean_gaps = np.mean(gaps, axis=1)
    doubts = np.nan_to_num([doubt(gap) for gap in gaps])
    is_clear = mean_gaps > np.maximum(2 * doubts, 0.005)
    return (
        f'Of {len(gaps)} lines, missing="fit" is no worse than the best of the four '
        f"in {(mean_gaps <= 1e-9).mean():.0%}, no worse by more than half a point in "
        f"{(mean_gaps <= 0.005).mean():.0%}, and not worse by more than chance (two "
        "standard errors of the difference, or half a point) in "
        f"{(~is_clear).mean():.0%}. "
        f"On average it is {-100 * mean_gaps.mean():.1f} points better than the best."
    )


def at_scale(n: int, p: int, k: int = 10) -> str:
    """Return time and memory of data with a fifth missing, and of complete data."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((k, p))
    labels = rng.integers(k, size=n)
    X = rng.lognormal(0, 0.5, n)[:, None] * centers[labels]
    X += rng.standard_normal((n, p))

    IhSC(k, random_state=0).fit(X[:10_000])  # start the threads
    complete, _ = measured(lambda: IhSC(k, random_state=0).fit(X))
    for i in range(0, n, 100_000):
        block = X[i : i + 100_000]
        block[rng.random(block.shape) < 0.2] = np.nan

    model = IhSC(k, random_state=0, missing="fit")
    missing, _ = measured(lambda: model.fit(X))
    seconds_complete = complete["seconds"]
    seconds_missing = missing["seconds"]
    ratio = seconds_missing / seconds_complete

    def memory(figures: dict[str, float]) -> float:
        return (figures["peak"] - figures["before"]) * 1e9 / X.nbytes

    return (
        f"- {n:,} x {p:,}, 20% missing: {seconds_missing:.1f} s, {ratio:.1f} times "
        f"the fit of complete data ({seconds_complete:.1f} s). Memory beyond X: "
        f"{memory(missing):.2f} X, of complete data {memory(complete):.2f} X.\n"
    )


HOW = """(`python benchmarks/missing.py`), cells missing at random, each way
followed by the same IhSC. The best of the four others is in italics, `missing="fit"` in
bold where it is no worse; the last column is the standard error of the difference of
the two."""


def main() -> None:
    parser = arguments(__doc__, "missing.md", [*CASES, *SETS], draws=2)
    parser.add_argument("--scale", action="store_true", help="large data alone")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.scale:
        for shape in ((1_000_000, 50), (20_000, 1_000), (2_000, 20_000)):
            print(at_scale(*shape), end="", flush=True)
        return

    gaps: list[np.ndarray] = []
    text = markdown(table(options.names, options.draws, gaps))
    head = f"# Missing cells\n\nMeans over {options.draws} draws {HOW}\n\n"
    publish(options, f"{head}{text}\n{summary(gaps)}\n")


if __name__ == "__main__":
    main()
