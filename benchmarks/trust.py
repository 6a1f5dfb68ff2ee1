"""How far a diagnosis can be believed: expected beside true errors.

Run ``python benchmarks/trust.py`` for all designs of ``designs.py``. ``--sets FOLDER``
adds real sets, files ``NAME.npz`` with ``X`` and the true classes ``y``; names that
differ after the last underscore are one set, prepared in several ways. ``--draws`` is
the draws of a design, ``--rows`` the rows of a set, ``--jobs`` the processes, and
``--save`` keeps the tables in ``results/trust.md``.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

if __name__ == "__main__":  # Processes share the cores; NumPy reads this as it starts.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from designs import DESIGNS
from scipy.stats import spearmanr
from sklearn.cluster import KMeans

from ihgmm import IhSC, diagnose
from ihgmm.metrics import match_labels

RESULTS = Path(__file__).parent / "results" / "trust.md"
METHODS = {
    "default": lambda k: IhSC(k, random_state=0),
    "paper": lambda k: IhSC.paper(k, random_state=0),
    "k-means": lambda k: KMeans(k, n_init=3, random_state=0),
}
EDGES = np.array([0.5, 0.7, 0.85, 0.95, 0.99])


@dataclass(frozen=True)
class Case:
    """Labels of one method on one sample, and what the diagnosis says about them."""

    name: str
    family: str  # samples of a family share a weight
    real: bool
    method: str
    error: float  # the truth
    expected: float
    disagreement: float  # of fits to separate halves
    verdict: str
    cautions: tuple[str, ...]
    rows: np.ndarray  # in each range of certainties, the share of all rows
    right: np.ndarray  # and of those whose label is right


def cases(task: tuple[str, int, str | None, int]) -> list[Case]:
    """Return a case for each method."""
    warnings.simplefilter("ignore")
    name, seed, path, rows = task
    if path is None:
        draw = DESIGNS[name](seed)
        X, truth, family = draw.X, draw.labels, name
    else:
        with np.load(path, allow_pickle=True) as stored:
            X, truth = stored["X"], np.unique(stored["y"], return_inverse=True)[1]
        family = name.rsplit("_", 1)[0]
    if len(X) > rows:
        some = np.random.default_rng(seed).choice(len(X), rows, replace=False)
        X, truth = X[some], truth[some]
    known = truth >= 0
    k = len(np.unique(truth[known]))
    made = []
    for method, estimator in METHODS.items():
        labels = estimator(k).fit_predict(X)
        found = diagnose(X, labels)
        right = match_labels(truth[known], labels[known]) == truth[known]
        at = np.digitize(found.certainty[known], EDGES)
        counts = np.bincount(at, minlength=len(EDGES) + 1) / len(right)
        hits = np.bincount(at, right, minlength=len(EDGES) + 1) / len(right)
        case = Case(
            name=name,
            family=family,
            real=path is not None,
            method=method,
            error=1 - right.mean(),
            expected=found.expected_error,
            disagreement=1 - found.agreement,
            verdict=found.verdict.name,
            cautions=tuple(caution.kind.name for caution in found.cautions),
            rows=counts,
            right=hits,
        )
        made.append(case)
    return made


def rank_correlation(group: list[Case]) -> float:
    pairs = [(case.error, case.expected) for case in group]
    return float(spearmanr(*zip(*pairs, strict=True))[0])


def tables(found: list[Case]) -> Iterator[str]:
    """Yield the lines of all tables."""
    default = [case for case in found if case.method == "default"]
    groups = {
        "designs": [case for case in default if not case.real],
        "sets": [case for case in default if case.real],
        "designs and sets": default,
        "the same, labels of all methods": found,
    }
    groups = {name: group for name, group in groups.items() if len(group) > 2}
    yield "| cases | number | true error | expected | Spearman |"
    yield "|---|---|---|---|---|"
    for name, group in groups.items():
        true, expected = (
            np.mean([getattr(case, field) for case in group])
            for field in ("error", "expected")
        )
        yield (
            f"| {name} | {len(group)} | {true:.3f} | {expected:.3f} | "
            f"{rank_correlation(group):.2f} |"
        )
    yield ""
    yield "| verdict | cases | expected | true | all methods | expected | true |"
    yield "|---|---|---|---|---|---|---|"
    for verdict in ("WELL_SEPARATED", "SEPARATED", "OVERLAPPING", "NO_SEPARATION"):
        cells = []
        for group in (default, found):
            here = [case for case in group if case.verdict == verdict]
            expected = np.mean([case.expected for case in here]) if here else np.nan
            true = np.mean([case.error for case in here]) if here else np.nan
            cells += [f"{len(here)}", f"{expected:.3f}", f"{true:.3f}"]
        yield f"| {verdict.lower().replace('_', ' ')} | {' | '.join(cells)} |"
    yield ""
    yield "| certainty | rows | right | all methods: rows | right |"
    yield "|---|---|---|---|---|"
    ends = [0, *EDGES, 1]
    totals = [weighted(default), weighted(found)]
    for i, (low, high) in enumerate(pairwise(ends)):
        cells = [
            f"{rows[i]:.1%} | {hits[i] / max(rows[i], 1e-12):.1%}"
            for rows, hits in totals
        ]
        yield f"| {low:g} to {high:g} | {' | '.join(cells)} |"
    yield ""
    yield "| caution | cases | another method | default better | worse |"
    yield "|---|---|---|---|---|"
    yield from advice(found)


def weighted(group: list[Case]) -> tuple[np.ndarray, np.ndarray]:
    """Return shares of rows and of hits; families and methods weigh the same."""
    sizes = Counter((case.family, case.method) for case in group)
    weights = np.array([1 / sizes[case.family, case.method] for case in group])
    weights /= weights.sum()
    return (
        weights @ np.array([case.rows for case in group]),
        weights @ np.array([case.right for case in group]),
    )


def advice(found: list[Case]) -> Iterator[str]:
    """Yield how often each caution is given, and whether the default does better."""
    errors = [case.error for case in found if case.method == "default"]
    given: dict[str, list[float]] = defaultdict(list)
    counts: Counter[str] = Counter()
    for method in METHODS:
        mine = [case for case in found if case.method == method]
        for case, error in zip(mine, errors, strict=True):
            counts.update(case.cautions)
            for kind in case.cautions if method != "default" else ():
                given[kind].append(case.error - error)
    for kind, number in counts.most_common():
        gains = np.array(given[kind])
        yield (
            f"| {kind.lower().replace('_', ' ')} | {number} | {len(gains)} | "
            f"{int((gains > 0.01).sum())} | {int((gains < -0.01).sum())} |"
        )


HEAD = """# How far a diagnosis can be believed

Expected errors of `diagnose` beside true ones (`python benchmarks/trust.py`), with the
true number of clusters given. Designs are those of `designs.py`. Where certainties are
counted, each design and each set has the same weight. The last table says how often
each caution is given; where labels are those of another method, it also counts how
often the default settings of IhSC are closer to the truth by more than a point, and
how often they are further from it.

"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("designs", nargs="*", help=", ".join(DESIGNS))
    parser.add_argument("--sets", type=Path, help="folder of NAME.npz with X and y")
    parser.add_argument("--draws", type=int, default=2, help="draws of a design")
    parser.add_argument("--rows", type=int, default=1500, help="rows of a sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--save", action="store_true", help=f"to {RESULTS.name}")
    options = parser.parse_args()
    names = options.designs or list(DESIGNS)
    tasks: list[tuple[str, int, str | None, int]] = [
        (name, seed, None, options.rows)
        for name in names
        for seed in range(options.draws)
    ]
    if options.sets is not None:
        paths = sorted(options.sets.glob("*.npz"))
        tasks += [(path.stem, 0, str(path), options.rows) for path in paths]
    found: list[Case] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for made in pool.map(cases, tasks):
            found += made
            first = made[0]
            print(
                f"{first.name:24} true {first.error:.3f} expected "
                f"{first.expected:.3f} halves {first.disagreement:.3f}",
                flush=True,
            )
    lines = list(tables(found))
    print("\n".join(lines))
    if options.save:
        RESULTS.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
