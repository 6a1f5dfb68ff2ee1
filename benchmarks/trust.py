"""How far a diagnosis can be believed: what it says beside the truth.

    python benchmarks/trust.py                       # designs and the sets there are
    python benchmarks/trust.py --groups development  # choose thresholds on these
    python benchmarks/trust.py --extra FOLDER --save

Designs are those of ``designs.py``, sets those of ``labelled.py``, which says where
they come from and which are kept aside.
"""

import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

# Processes share the cores; set before NumPy starts its threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from designs import DESIGNS
from labelled import LabelledSet, MissingDataError, all_sets, means_by_set
from measure import Table, arguments, digits, markdown, publish
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.metrics import roc_auc_score

from ihgmm import ColumnScaler, IhSC, diagnose
from ihgmm.metrics import match_labels, misclassification_rate
from ihgmm.statistics.cautions import Caution, OtherClusters, RulingColumn

METHODS: dict[str, Callable[[int], Any]] = {
    "default": lambda k: IhSC(k, random_state=0),
    "paper": lambda k: IhSC.paper(k, random_state=0),
    "PSC": lambda k: IhSC(k, recipe="psc", random_state=0),
    "k-means": lambda k: KMeans(k, n_init=3, random_state=0),
}
GROUPS = ("designs", "ten", "development", "held out")
BANDS = (0.0, 0.05, 0.1, 0.2, 0.35, 1.0)  # of expected errors
CERTAINTIES = (0.0, 0.5, 0.7, 0.85, 0.95, 1.0)


@dataclass(frozen=True)
class Said:
    """A caution, whether it was right, and what its remedy changed, if it has one."""

    kind: type  # of the caution
    right: bool
    gain: float = np.nan  # by how much its remedy lowers the error


@dataclass(frozen=True)
class Case:
    """Labels of one method on one sample, and what the diagnosis says about them."""

    group: str
    name: str
    sample: str
    n_features: int
    n_clusters: int
    method: str
    error: float  # the truth
    stability: float
    expected: float
    low: float
    high: float
    verdict: str
    warned: bool  # whether the fit warned that its labels may be unstable
    cautions: list[Said]
    area: float  # under the curve of wrong rows, ranked by their certainty
    rows: np.ndarray  # shares by certainty
    right: np.ndarray


def judged(
    names: tuple[str, str, str], X: np.ndarray, true_labels: np.ndarray
) -> Iterator[Case]:
    """Yield a case for each method, and one for labels in another order."""
    is_known = true_labels >= 0
    k = len(np.unique(true_labels[is_known]))
    cases = {}
    warned = set()

    for method, estimator in METHODS.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cases[method] = estimator(k).fit_predict(X)
        if any("unstable" in str(warning.message) for warning in caught):
            warned.add(method)

    mixed = np.random.default_rng(0).permutation(cases["default"])
    errors = {
        method: misclassification_rate(true_labels[is_known], labels[is_known])
        for method, labels in cases.items()
    }

    for method, labels in [*cases.items(), ("mixed up", mixed)]:
        diagnosis = diagnose(X, labels)
        is_right = (
            match_labels(true_labels[is_known], labels[is_known])
            == true_labels[is_known]
        )
        certainty = diagnosis.certainty[is_known]
        bins = np.digitize(certainty, CERTAINTIES[1:-1])
        error = float(1 - is_right.mean())
        cautions = []

        for caution in diagnosis.cautions:
            kind = type(caution)
            if kind is OtherClusters:
                gain = error - errors["default"]
                cautions.append(Said(kind, gain > 0, gain))
            elif kind is RulingColumn and method != "mixed up":
                scaled = ColumnScaler().fit_transform(X)
                remedied = METHODS[method](k).fit_predict(scaled)[is_known]
                gain = error - misclassification_rate(true_labels[is_known], remedied)
                cautions.append(Said(kind, gain >= 0, gain))
            elif method != "mixed up":
                cautions.append(Said(kind, True))  # a fact

        group, name, sample = names
        lowest, highest = diagnosis.error_range
        area = np.nan
        if 0 < is_right.mean() < 1:
            area = roc_auc_score(is_right, certainty)
        yield Case(
            group=group,
            name=name,
            sample=sample,
            n_features=X.shape[1],
            n_clusters=k,
            method=method,
            error=error,
            stability=diagnosis.stability,
            expected=diagnosis.expected_error,
            low=lowest,
            high=highest,
            verdict=diagnosis.verdict.name,
            warned=method in warned,
            cautions=cautions,
            area=area,
            rows=np.bincount(bins, minlength=5) / len(is_right),
            right=np.bincount(bins, is_right, minlength=5) / len(is_right),
        )


def run(task: LabelledSet | tuple[str, int], rows: int) -> list[Case] | str:
    """Return the cases of a set, or of a draw of a design; or what is missing."""
    warnings.simplefilter("ignore")
    if isinstance(task, tuple):
        name, seed = task
        draw = DESIGNS[name](seed)
        return list(judged(("designs", name, f"{name} {seed}"), draw.X, draw.labels))

    cases = []
    try:
        for preparation, X, y in task.prepared(rows):
            true_labels = np.unique(y, return_inverse=True)[1]
            names = (task.group, task.name, f"{task.name}, {preparation}")
            cases += judged(names, X, true_labels)
    except MissingDataError as error:
        return f"{task.name}: {error}"

    return cases


def by_set(cases: list[Case], figure: Callable[[Case], float]) -> float:
    """Return the mean over sets of the means over preparations."""
    means = means_by_set([c.name for c in cases], [figure(c) for c in cases])
    return float(means.mean()) if len(means) else np.nan


def ranks(cases: list[Case], figure: Callable[[Case], float]) -> float:
    said_errors = [figure(case) for case in cases]
    true_errors = [case.error for case in cases]
    return float(spearmanr(said_errors, true_errors)[0]) if len(cases) > 2 else np.nan


def is_in_range(case: Case) -> bool:
    """Tell whether the true error is in the range, give or take half a point."""
    return case.low - 0.005 <= case.error <= case.high + 0.005


def share(truths: list[bool]) -> str:
    return f"{np.mean(truths):.0%}" if truths else "-"


def tables(cases: list[Case]) -> Iterator[Table]:
    default = [case for case in cases if case.method == "default"]
    groups = {
        group: [case for case in default if case.group == group] for group in GROUPS
    }
    groups = {group: of_group for group, of_group in groups.items() if of_group}

    for group in ("development", "held out"):
        with_few_features = [c for c in groups.get(group, ()) if c.n_features <= 20]
        if with_few_features:
            groups[f"{group}, at most 20 features"] = with_few_features
        of_two = [c for c in groups.get(group, ()) if c.n_clusters == 2]
        if of_two:
            groups[f"{group}, two clusters"] = of_two

    yield overview(groups)
    yield bands(groups)
    yield verdicts(groups)
    yield warned_fits(cases)
    yield certainties(default)
    yield advice([c for c in cases if c.group != "designs"])
    yield surprises([c for c in default if c.group != "designs"])


def overview(groups: dict[str, list[Case]]) -> Table:
    yield ["Labels of the default settings"]
    yield ["cases", "number", "true error", "expected", "Spearman", "of 1 - stability",
           "in the range", "AUC of wrong rows"]  # fmt: skip
    for group, of_group in groups.items():
        yield [
            group, len(of_group), digits(by_set(of_group, lambda c: c.error)),
            digits(by_set(of_group, lambda c: c.expected)),
            f"{ranks(of_group, lambda c: c.expected):.2f}",
            f"{ranks(of_group, lambda c: -c.stability):.2f}",
            share([is_in_range(c) for c in of_group]),
            digits(by_set(of_group, lambda c: c.area)),
        ]  # fmt: skip


def bands(groups: dict[str, list[Case]]) -> Table:
    yield ["Expected and true errors"]
    shown_groups = [group for group in GROUPS if group in groups]
    heads = [
        (f"{group}: cases", "expected", "true", "in the range")
        for group in shown_groups
    ]
    yield ["expected", *(head for four in heads for head in four)]

    for lower, upper in pairwise(BANDS):
        line = [f"{lower:g} to {upper:g}"]
        for group in shown_groups:
            in_band = [c for c in groups[group] if lower <= c.expected < upper]
            pairs = [(c.expected, c.error) for c in in_band] or [(np.nan, np.nan)]
            line += [len(in_band), *map(digits, np.mean(pairs, axis=0))]
            line.append(share([is_in_range(c) for c in in_band]))
        yield line


def verdicts(groups: dict[str, list[Case]]) -> Table:
    yield ['Cases told that clusters overlap, or that there is "no separation"']
    yield ["cases", "fewer than 10% wrong", "told", "more than 40% wrong", "told"]
    doubtful = ("OVERLAPPING", "NO_SEPARATION")

    for group, cases_of_group in groups.items():
        told_if_good = [c.verdict in doubtful for c in cases_of_group if c.error < 0.1]
        told_if_bad = [c.verdict in doubtful for c in cases_of_group if c.error > 0.4]
        yield [
            group,
            len(told_if_good),
            share(told_if_good),
            len(told_if_bad),
            share(told_if_bad),
        ]


def warned_fits(cases: list[Case]) -> Table:
    yield ["Fits that warn of unstable labels"]
    yield ["settings", "group", "cases", "warned", "of these more than 25% wrong",
           "fewer than 10% wrong", "more than 40% wrong", "warned"]  # fmt: skip
    for method in ("default", "paper"):
        for group in GROUPS:
            key = (method, group)
            of_group = [c for c in cases if (c.method, c.group) == key]
            warned_errors = [c.error for c in of_group if c.warned]
            warned_if_bad = [c.warned for c in of_group if c.error > 0.4]
            if of_group:
                yield [
                    method, group, len(of_group), len(warned_errors),
                    share([e > 0.25 for e in warned_errors]),
                    sum(e < 0.1 for e in warned_errors),
                    len(warned_if_bad), share(warned_if_bad),
                ]  # fmt: skip


def certainties(cases: list[Case]) -> Table:
    """Yield how many labels were right by their certainty; sets weigh the same."""
    yield ["Labels by their certainty"]
    yield ["certainty", "designs: rows", "right", "real sets: rows", "right"]
    totals = []

    for real in (False, True):
        of_kind = [c for c in cases if (c.group != "designs") == real]
        sizes = Counter(c.name for c in of_kind)
        weights = np.array([1 / sizes[c.name] / len(sizes) for c in of_kind])
        figures = np.array([(c.rows, c.right) for c in of_kind]).reshape(-1, 2, 5)
        totals.append(np.tensordot(weights, figures, 1))

    for i, (lower, upper) in enumerate(pairwise(CERTAINTIES)):
        line = [f"{lower:g} to {upper:g}"]
        for rows, is_right in totals:
            line += [f"{rows[i]:.1%}", f"{is_right[i] / max(rows[i], 1e-12):.1%}"]
        yield line


def advice(cases: list[Case]) -> Table:
    """Yield how often each caution was right on real sets, and whether it helped.

    Other clusters are those of the default settings, and so labels of other methods
    are asked about them; about all else, labels of the default settings.
    """
    yield ["Cautions on real sets"]
    yield ["caution", "group", "cases", "sets", "right", "remedy lowers the error",
           "raises it"]  # fmt: skip

    for kind in get_args(Caution):
        for group in GROUPS[1:]:
            pairs = [
                (c, s) for c in cases for s in c.cautions
                if (c.group, s.kind) == (group, kind)
                and (kind is OtherClusters) != (c.method == "default")
            ]  # fmt: skip
            if not pairs:
                continue
            gains = np.array([s.gain for _, s in pairs])
            has_remedy = not np.isnan(gains).all()
            yield [
                re.sub("(?<!^)(?=[A-Z])", " ", kind.__name__).lower(), group,
                len(pairs), len({c.name for c, _ in pairs}),
                share([s.right for _, s in pairs]),
                (gains > 0.005).sum() if has_remedy else "-",
                (gains < -0.005).sum() if has_remedy else "-",
            ]  # fmt: skip


def surprises(cases: list[Case]) -> Table:
    yield ["Where the labels were worse than expected, and where better"]
    yield ["set", "stability", "expected", "range", "true"]
    worst = sorted(cases, key=lambda case: case.expected - case.error)

    for case in [*worst[:6], *worst[:-5:-1]]:
        yield [
            case.sample, f"{case.stability:.1%}", digits(case.expected),
            f"{case.low:.2f} to {case.high:.2f}", digits(case.error),
        ]  # fmt: skip


HEAD = """# How far a diagnosis can be believed

What `diagnose` says beside the truth (`python benchmarks/trust.py`), with the true
number of clusters given. Curves and thresholds were chosen on the ten sets, on the
development sets and, at a tenth of their weight, on designs; the choice of the figures
behind them, on random halves of all sets. Means are over sets, which may have several
preparations; rank correlations are over preparations. "In the range" is the share of
cases whose true error is in `error_range`, give or take half a point. Expected errors
are those of real data: designs have fewer.

A caution "other clusters" is right if the default settings of IhSC make fewer errors;
it is asked of labels of three other methods and of labels that were shuffled. The other
cautions are asked of labels of the default settings: "ruling column" is right if there
are no more errors after ColumnScaler, and "zero rows" is a
fact.

"""


def main() -> None:
    parser = arguments(__doc__, "trust.md", draws=1, rows=1000, jobs=1)
    parser.add_argument("names", nargs="*", help="designs and sets, if not all")
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=GROUPS)
    parser.add_argument("--extra", type=Path, help="a folder of further sets")
    options = parser.parse_args()
    sets = {s.name: s for s in all_sets(options.extra) if s.group in options.groups}
    designs = DESIGNS if "designs" in options.groups else {}
    names = options.names or [*designs, *sets]
    tasks = [
        (name, i) for name in designs if name in names for i in range(options.draws)
    ]
    tasks += [sets[name] for name in sets if name in names]
    cases: list[Case] = []

    with ProcessPoolExecutor(options.jobs) as pool:
        for cases_of_set in pool.map(partial(run, rows=options.rows), tasks):
            if isinstance(cases_of_set, str):
                print(cases_of_set, file=sys.stderr)
                continue
            cases += cases_of_set
            for case in cases_of_set:
                if case.method == "default":
                    figures = (case.stability, case.expected, case.error)
                    print(case.sample, *map(digits, figures), case.verdict, flush=True)

    publish(options, HEAD + "\n".join(map(markdown, tables(cases))))


if __name__ == "__main__":
    main()
