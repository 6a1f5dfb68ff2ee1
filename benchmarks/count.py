"""How often the number of clusters is right, beside ways that people use.

    python benchmarks/count.py                      # simulated, and the sets there are
    python benchmarks/count.py --groups simulated   # or ten, development, "held out"
    python benchmarks/count.py --extra FOLDER --save
    python benchmarks/count.py --no-peers           # ours alone

Simulated are clear clusters, K 1 to 30, with 25 rows each; clusters within clusters;
designs of ``designs.py``; and data without clusters. Sets are those of ``labelled.py``.
``--seed`` starts the draws. ``HEAD`` says what counts as right, and what figures are.
Leiden needs the packages igraph and leidenalg.
"""

import os
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy starts its threads

import numpy as np
from designs import DESIGNS, mixture
from labelled import all_samples, means_by_set
from measure import Table, arguments, markdown, publish
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import normalize

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
    listed: tuple[int, ...]
    confidence: Confidence
    lead: float
    fits: float  # time, over that of a fit
    peers: dict[str, int]  # numbers of other methods

    @property
    def exact(self) -> bool:
        return self.number in self.right

    @property
    def is_listed(self) -> bool:
        return any(is_near(number, self.right) for number in self.listed)

    @property
    def near(self) -> bool:
        return is_near(self.number, self.right)


def is_near(number: int, right: tuple[int, ...]) -> bool:
    """Tell whether a number is within a quarter of one that is right."""
    return any(abs(number - k) <= 0.25 * k for k in right)


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
            yield simulated_case("no clusters", X, right=(1,))

    for p in (2, 3, 4, 6, 8, 10, 20):
        for n in (200, 1000):
            for X in in_few_features(seed, n, p):
                yield simulated_case(f"no clusters, {p} features", X, right=(1,))

    for name, design in DESIGNS.items():
        if name not in LEFT_OUT:
            draw = design(seed + 7)
            k = len(np.unique(draw.labels[draw.labels >= 0]))
            yield simulated_case("designs", draw.X, right=(k,))


def principal_rows(X: np.ndarray) -> np.ndarray:
    """Return unit rows in at most twenty principal directions."""
    units = normalize(X)
    n_directions = min(20, *units.shape, len(units) - 1)
    return PCA(n_directions, random_state=0).fit_transform(units)


def numbers_for(rows: np.ndarray) -> list[int]:
    most = len(rows) // 8
    return [k for k in (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24) if k <= most]


def by_silhouette(X: np.ndarray) -> int:
    rows = principal_rows(X)

    def clearness(k: int) -> float:
        labels = KMeans(k, n_init=3, random_state=0).fit_predict(rows)
        return silhouette_score(rows, labels) if len(set(labels)) > 1 else -1.0

    return max(numbers_for(rows), key=clearness, default=1)


def by_bic(X: np.ndarray) -> int:
    rows = principal_rows(X)

    def price(k: int) -> float:
        mixture = GaussianMixture(
            k, covariance_type="diag", reg_covar=1e-5, random_state=0
        )
        return mixture.fit(rows).bic(rows)

    return min([1, *numbers_for(rows)], key=price)


def by_eigengap(X: np.ndarray) -> int:
    """Return the place of the largest gap in the spectrum of a graph of neighbours."""
    rows = normalize(X)
    links = kneighbors_graph(rows, min(10, len(rows) - 1)).toarray()
    links = (links + links.T) / 2
    degrees = np.maximum(links.sum(axis=1), 1e-12)
    values = np.linalg.eigvalsh(links / np.sqrt(np.outer(degrees, degrees)))[::-1][:25]
    return int(np.argmax(values[:-1] - values[1:])) + 1


def by_hdbscan(X: np.ndarray) -> int:
    labels = HDBSCAN(min_cluster_size=10, copy=True).fit_predict(principal_rows(X))
    return max(int(labels.max()) + 1, 1)


def by_leiden(X: np.ndarray) -> int:
    import igraph
    import leidenalg

    links = kneighbors_graph(normalize(X), min(15, len(X) - 1)).tocoo()
    graph = igraph.Graph(n=len(X), edges=list(zip(links.row, links.col, strict=True)))
    graph = graph.simplify()
    partition = leidenalg.find_partition(
        graph, leidenalg.RBConfigurationVertexPartition, resolution_parameter=1, seed=0
    )
    return len(partition)


PEERS: dict[str, Callable[[np.ndarray], int]] = {
    "silhouette": by_silhouette,
    "BIC": by_bic,
    "eigengap": by_eigengap,
    "HDBSCAN": by_hdbscan,
    "Leiden": by_leiden,
}


def find(case: Case, seed: int, with_peers: bool) -> Finding:
    warnings.simplefilter("ignore")
    start = time.process_time()
    count = select_n_clusters(case.X, random_state=seed)
    count_seconds = time.process_time() - start

    n_clusters = min(10, max(2, len(case.X) // 10))
    start = time.process_time()
    IhSC(n_clusters, random_state=seed).fit(case.X)
    fit_seconds = time.process_time() - start

    peers = {}
    for name, count_by in PEERS.items() if with_peers else ():
        try:
            peers[name] = count_by(case.X)
        except ImportError:
            continue

    return Finding(
        group=case.group,
        name=case.name,
        right=case.right,
        number=count.n_clusters,
        listed=count.plausible,
        confidence=count.confidence,
        lead=count.lead,
        fits=count_seconds / fit_seconds,
        peers=peers,
    )


def mean_by_set(findings: list[Finding], values: list[float]) -> float:
    """Return the mean over sets, which may have several preparations."""
    return float(means_by_set([finding.name for finding in findings], values).mean())


def by_set(findings: list[Finding], figure: str) -> float:
    return mean_by_set(findings, [float(getattr(f, figure)) for f in findings])


def log_ratio(findings: list[Finding], numbers: list[int]) -> float:
    """Return the root of the mean squared logarithm of said over true numbers."""
    true_numbers = np.array([finding.right[0] for finding in findings])
    squares = np.log(np.maximum(numbers, 1) / true_numbers) ** 2
    return float(np.sqrt(mean_by_set(findings, squares.tolist())))


def simulated_table(findings: list[Finding]) -> Table:
    yield ["Simulated"]
    yield ["", "draws", "right", "within 25%", "listed", "high but wrong", "fits"]
    for name in dict.fromkeys(finding.name for finding in findings):
        of_design = [finding for finding in findings if finding.name == name]
        n_high_but_wrong = sum(
            f.confidence is LEVELS[0] and not f.near for f in of_design
        )
        yield [
            name, len(of_design), sum(f.exact for f in of_design),
            sum(f.near for f in of_design), sum(f.is_listed for f in of_design),
            n_high_but_wrong, f"{np.median([f.fits for f in of_design]):.0f}",
        ]  # fmt: skip


def set_table(groups: dict[str, list[Finding]]) -> Table:
    yield ["Labelled sets"]
    yield ["sets", "preparations", "exact", "within 25%", "log ratio", "listed",
           "numbers listed", "one", "fits"]  # fmt: skip
    for group, of_group in groups.items():
        numbers = [f.number for f in of_group]
        yield [
            group, len(of_group), f"{by_set(of_group, 'exact'):.2f}",
            f"{by_set(of_group, 'near'):.2f}", f"{log_ratio(of_group, numbers):.2f}",
            f"{by_set(of_group, 'is_listed'):.2f}",
            f"{np.mean([len(f.listed) for f in of_group]):.1f}",
            sum(number == 1 for number in numbers),
            f"{np.median([f.fits for f in of_group]):.0f}",
        ]  # fmt: skip


# How many classes there are, at least and at most.
CLASSES = ((2, 2), (3, 3), (4, 6), (7, 10), (11, 20), (21, 99), (2, 99))


def class_table(findings: list[Finding]) -> Table:
    yield ["Share within 25%, by the number of classes"]
    names = list(findings[0].peers)
    yield ["classes", "preparations", "ours", *names]
    for least, most in CLASSES:
        of_size = [f for f in findings if least <= f.right[0] <= most]
        if not of_size:
            continue
        line = [f"{least} to {most}" if least < most else f"{least}", len(of_size)]
        line.append(f"{by_set(of_size, 'near'):.2f}")
        for name in names:
            is_right = [float(is_near(f.peers[name], f.right)) for f in of_size]
            line.append(f"{mean_by_set(of_size, is_right):.2f}")
        yield line

    ratios = [log_ratio(findings, [f.peers[name] for f in findings]) for name in names]
    ours = log_ratio(findings, [f.number for f in findings])
    yield [
        "log ratio, all",
        len(findings),
        *(f"{ratio:.2f}" for ratio in [ours, *ratios]),
    ]


def confidence_table(groups: dict[str, list[Finding]]) -> Table:
    yield ["Confidence, and how often the number is within 25%"]
    yield ["sets", *(head for level in LEVELS for head in (level.value, "right"))]
    for group, of_group in groups.items():
        line = [group]
        for confidence in LEVELS:
            is_near_right = [f.near for f in of_group if f.confidence is confidence]
            share = f"{np.mean(is_near_right):.0%}" if is_near_right else "-"
            line += [len(is_near_right), share]
        yield line


def tables(findings: list[Finding]) -> Iterator[Table]:
    groups = {name: [f for f in findings if f.group == name] for name in GROUPS}
    groups = {name: of_group for name, of_group in groups.items() if of_group}

    if simulated_findings := groups.pop("simulated", None):
        yield simulated_table(simulated_findings)
    if groups:
        yield set_table(groups)
        yield class_table([f for of_group in groups.values() for f in of_group])
        yield confidence_table(groups)


HEAD = """# How many clusters

How often `select_n_clusters` is right (`python benchmarks/count.py --rows 600`). Its
constants were chosen among some hundred combinations with all of these sets in view,
also those held out, and the lead of one cluster with such clouds as are drawn here. So
no figure below is of data that nobody had looked at. For labelled sets the
number of classes counts as right, which need not be the number of clusters. A number is
listed if one of the plausible ones is within 25%. "Log ratio" is the root of the mean
squared logarithm of the number over that of classes. Means are over sets, which may
have several preparations. "Fits" is processor time over that of a default fit with ten
clusters, the median.

Peers count in at most twenty principal directions of unit rows, but for the graphs,
which are of unit rows: the silhouette of k-means, BIC of mixtures with diagonal
covariances, the largest gap in the spectrum of the graph of ten neighbours, HDBSCAN
with clusters of ten rows, and Leiden with resolution 1 on fifteen neighbours.

"""


def main() -> None:
    parser = arguments(__doc__, "count.md", rows=1000, seed=0, jobs=1)
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=GROUPS)
    parser.add_argument("--extra", type=Path, help="a folder of further sets")
    parser.add_argument("--no-peers", action="store_true", help="ours alone")
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

    find_in = partial(find, seed=options.seed, with_peers=not options.no_peers)
    with ProcessPoolExecutor(options.jobs) as pool:
        findings = list(pool.map(find_in, cases))
    publish(options, HEAD + "\n\n".join(map(markdown, tables(findings))))


if __name__ == "__main__":
    main()
