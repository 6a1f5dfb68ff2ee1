"""How often the number of clusters is right, and how far its confidence tells.

    python benchmarks/count.py                      # simulated, and the sets there are
    python benchmarks/count.py --groups simulated   # or ten, development, "held out"
    python benchmarks/count.py --extra FOLDER --save

Simulated are clear clusters, K 1 to 30, with 25 rows each; clusters within clusters;
designs of ``designs.py``; and data without clusters. Sets are those of ``labelled.py``.
``--seed`` starts the draws. ``HEAD`` says what counts as right, and what figures are.
"""

import os
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy starts its threads

import numpy as np
from designs import DESIGNS, mixture
from labelled import all_samples, means_by_set
from measure import Table, arguments, markdown, publish
from sklearn.metrics import roc_auc_score

from ihgmm import IhSC, make_ihgmm, select_n_clusters
from ihgmm.statistics.selection import Confidence

GROUPS = ("simulated", "ten", "development", "held out")
NUMBERS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 21, 25, 30)
NESTED = ((3, 3), (2, 4), (4, 2))
# Other designs are of outliers, of signs, or too large to be drawn often.
LEFT_OUT = {
    "signs", "k40", "large90-8", "row-noise-200x5000", "p20000", "outliers20-50",
    "outliers20-3",
}  # fmt: skip
LEVELS = list(Confidence)


class Case(NamedTuple):
    """A sample, and the numbers that are right for it."""

    group: str
    name: str
    X: np.ndarray
    right: tuple[int, ...]


class Finding(NamedTuple):
    """What was found in a sample."""

    group: str
    name: str
    right: tuple[int, ...]
    number: int
    levels: tuple[int, ...]
    listed: tuple[int, ...]
    confidence: Confidence
    support: float
    fits: float  # time, over that of a fit

    @property
    def exact(self) -> bool:
        # Without clusters, it is right to say that there may be none.
        return self.number in self.right or (1 in self.right and 1 in self.listed)

    @property
    def is_listed(self) -> bool:
        return bool({*self.right} & {*self.listed})

    @property
    def near(self) -> bool:
        return any(abs(self.number - k) <= 0.25 * k for k in self.right)


def nested(seed: int, a: int, b: int) -> np.ndarray:
    """Draw a kinds of clusters, each of b."""
    rng = np.random.default_rng(seed)
    n = 450
    p = 100
    directions = np.linalg.qr(rng.standard_normal((p, a + a * b)))[0].T
    centers = 10 * np.repeat(directions[:a], b, axis=0) + 5 * directions[a:]
    scales = rng.lognormal(0, 0.4, (n, 1))

    return scales * centers[np.arange(n) % (a * b)] + rng.standard_normal((n, p))


def autoregressive(rng: np.random.Generator, n: int, p: int, r: float) -> np.ndarray:
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = r * X[:, j - 1] + np.sqrt(1 - r * r) * X[:, j]
    return X


def without_clusters(seed: int) -> Iterator[np.ndarray]:
    """Yield noise, and single populations: log-normal, of counts, and one cluster."""
    rng = np.random.default_rng(seed)
    n = 300
    p = 100
    yield rng.standard_normal((n, p))
    yield autoregressive(rng, n, p, 0.95)
    yield autoregressive(rng, 200, 400, 0.95)
    spreads = rng.uniform(0.3, 1.2, p)
    yield np.exp(rng.standard_normal((n, p)) * spreads + rng.standard_normal(p))
    means = 3 * rng.gamma(0.5, size=p) * rng.lognormal(0, 0.6, (n, 1))
    yield rng.poisson(means * rng.gamma(2.0, 0.5, (n, p))).astype(float)
    yield mixture(seed, k=1, n=n, p=p).X


def in_few_features(seed: int, n: int, p: int) -> Iterator[np.ndarray]:
    """Yield noise, and single populations, as above."""
    rng = np.random.default_rng([seed, n, p])
    noise = rng.standard_normal((n, p))
    yield noise
    center = rng.standard_normal(p)
    center *= 3 * np.sqrt(p) / np.linalg.norm(center)
    yield rng.lognormal(0, 0.4, (n, 1)) * center + noise
    shape = rng.standard_normal((p, p)) / np.sqrt(p) * rng.uniform(0.5, 2, p)
    yield rng.standard_normal((n, p)) @ shape + 4 * rng.standard_normal(p)
    yield np.exp(noise * rng.uniform(0.3, 1.2, p) + rng.standard_normal(p))
    yield autoregressive(rng, n, p, 0.95)
    means = (3 * rng.gamma(0.5, size=p) + 1) * rng.lognormal(0, 0.6, (n, 1))
    yield rng.poisson(means * rng.gamma(2.0, 0.5, (n, p))).astype(float)


def simulated_case(name: str, X: np.ndarray, right: tuple[int, ...]) -> Case:
    return Case(group="simulated", name=name, X=X, right=right)


def simulated(seed: int) -> Iterator[Case]:
    for k in NUMBERS:
        options = {"n": 25 * k, "p": max(100, 3 * k), "k": k}
        draw = mixture(seed + k, length=9, spread=0.4, **options)
        yield simulated_case("clear clusters", draw.X, right=(k,))
        if k > 1:
            X, _ = make_ihgmm(25 * k, 200, k, random_state=seed + k)
            yield simulated_case("clear clusters", X, right=(k,))

    for a, b in NESTED:
        for i in range(3):
            X = nested(seed + i, a, b)
            yield simulated_case("clusters in clusters", X, right=(a, a * b))

    for i in range(3):
        for X in without_clusters(seed + i):
            yield simulated_case("no clusters", X, right=(0, 1))

    for p in (2, 3, 4, 6, 8, 10, 20):
        for n in (200, 1000):
            for X in in_few_features(seed, n, p):
                yield simulated_case(f"no clusters, {p} features", X, right=(0, 1))

    for name, design in DESIGNS.items():
        if name not in LEFT_OUT:
            draw = design(seed + 7)
            k = len(np.unique(draw.labels[draw.labels >= 0]))
            yield simulated_case("designs", draw.X, right=(k,))


def find(case: Case, seed: int) -> Finding:
    warnings.simplefilter("ignore")
    start = time.process_time()
    count = select_n_clusters(case.X, random_state=seed)
    count_seconds = time.process_time() - start

    start = time.process_time()
    IhSC(max(count.n_clusters, 2), random_state=seed).fit(case.X)
    fit_seconds = time.process_time() - start

    split = count.tree.split(count.n_clusters) if count.tree else None

    return Finding(
        group=case.group,
        name=case.name,
        right=case.right,
        number=count.n_clusters,
        levels=count.levels,
        listed=count.plausible,
        confidence=count.confidence,
        support=split.support if split else -1.0,
        fits=count_seconds / fit_seconds,
    )


def area(findings: list[Finding], figure: list[float]) -> str:
    """Return the area under the curve that tells right numbers from wrong ones."""
    is_exact = [finding.exact for finding in findings]
    has_both = 0 < sum(is_exact) < len(is_exact)
    return f"{roc_auc_score(is_exact, figure):.2f}" if has_both else "-"


def by_set(findings: list[Finding], figure: str) -> float:
    """Return the mean over sets, which may have several preparations."""
    values = [float(getattr(finding, figure)) for finding in findings]
    return float(means_by_set([finding.name for finding in findings], values).mean())


def simulated_table(findings: list[Finding]) -> Table:
    yield ["Simulated"]
    yield ["", "draws", "right", "listed", "high but wrong", "levels are those drawn",
           "fits"]  # fmt: skip
    for name in dict.fromkeys(finding.name for finding in findings):
        of_design = [finding for finding in findings if finding.name == name]
        n_high_but_wrong = sum(
            f.confidence is LEVELS[0] and not f.exact for f in of_design
        )
        n_levels_right = sum(set(f.levels) == set(f.right) for f in of_design)
        yield [
            name, len(of_design), sum(f.exact for f in of_design),
            sum(f.is_listed for f in of_design), n_high_but_wrong,
            n_levels_right if name == "clusters in clusters" else "-",
            f"{np.median([f.fits for f in of_design]):.0f}",
        ]  # fmt: skip


def set_table(groups: dict[str, list[Finding]]) -> Table:
    yield ["Labelled sets"]
    yield ["sets", "preparations", "exact", "within 25%", "class number is listed",
           "numbers listed", "one or none", "ten classes or more: preparations",
           "within 25%", "AUC of confidence", "of support", "fits"]  # fmt: skip
    for group, of_group in groups.items():
        with_ten_classes = [f for f in of_group if f.right[0] >= 10]
        yield [
            group, len(of_group), f"{by_set(of_group, 'exact'):.2f}",
            f"{by_set(of_group, 'near'):.2f}", f"{by_set(of_group, 'is_listed'):.2f}",
            f"{np.mean([len(f.listed) for f in of_group]):.1f}",
            sum(f.number <= 1 for f in of_group), len(with_ten_classes),
            sum(f.near for f in with_ten_classes),
            area(of_group, [-LEVELS.index(f.confidence) for f in of_group]),
            area(of_group, [f.support for f in of_group]),
            f"{np.median([f.fits for f in of_group]):.0f}",
        ]  # fmt: skip


def confidence_table(groups: dict[str, list[Finding]]) -> Table:
    yield ["Confidence"]
    yield ["sets", *(head for level in LEVELS for head in (level.value, "right"))]
    for group, of_group in groups.items():
        line = [group]
        for confidence in LEVELS:
            is_exact = [f.exact for f in of_group if f.confidence is confidence]
            line += [len(is_exact), f"{np.mean(is_exact):.0%}" if is_exact else "-"]
        yield line


def tables(findings: list[Finding]) -> Iterator[Table]:
    groups = {name: [f for f in findings if f.group == name] for name in GROUPS}
    groups = {name: of_group for name, of_group in groups.items() if of_group}

    if simulated_findings := groups.pop("simulated", None):
        yield simulated_table(simulated_findings)
    if groups:
        yield set_table(groups)
        yield confidence_table(groups)


HEAD = """# How many clusters

How often `select_n_clusters` is right (`python benchmarks/count.py`). Thresholds were
chosen on simulated data, on the ten sets and on the development sets. Those held out
were looked at twice: a first rule, chosen on the others alone, did worse on them than
that of version 0.3, and was dropped. For labelled sets the number of classes counts as
right, which need not be the number of clusters. Draws without clusters are right if one
or none is among the plausible numbers. Means are over sets, which may have several
preparations. "Fits" is processor time over that of a default fit, the median.

"""


def main() -> None:
    parser = arguments(__doc__, "count.md", rows=1000, seed=0, jobs=1)
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=GROUPS)
    parser.add_argument("--extra", type=Path, help="a folder of further sets")
    options = parser.parse_args()
    cases = list(simulated(options.seed)) if "simulated" in options.groups else []

    for labelled_set, X, y in all_samples(options.groups, options.extra, options.rows):
        right = (len(np.unique(y)),)
        case = Case(
            group=labelled_set.group,
            name=labelled_set.name,
            X=np.asarray(X, dtype=float),
            right=right,
        )
        cases.append(case)

    with ProcessPoolExecutor(options.jobs) as pool:
        findings = list(pool.map(partial(find, seed=options.seed), cases))
    publish(options, HEAD + "\n\n".join(map(markdown, tables(findings))))


if __name__ == "__main__":
    main()
