"""How much answers change with half or twice of each threshold of the policy.

    python benchmarks/policy.py                  # all groups of ihgmm/policy.py
    python benchmarks/policy.py Trust Counting   # some
    python benchmarks/policy.py --save           # to results/policy.md

Each group is asked for what it decides, on one draw of some designs of ``designs.py``.
A share above one half is moved by half and twice its distance to 1. ``changed`` is the
share of designs whose answer is another one, or of rows with another label; ``moved``
is the mean absolute change of a figure. Thresholds that are no numbers, or are read as
the package is imported, are left out.
"""

import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

if __name__ == "__main__":  # Processes share the cores; NumPy reads this as it starts.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from designs import DESIGNS, Draw
from measure import Table, arguments, markdown, publish

import ihgmm
from ihgmm import IhGMM, IhSC
from ihgmm import policy as table
from ihgmm import scale_heterogeneity_test as scale_test
from ihgmm.words.scales import recommendation

NAMES = "gaussian ar80 overlap large80-12 p10 customers outliers5-3 few"
Answer = tuple[np.ndarray, np.ndarray]  # decisions, one or one for each row; figures


def inside(draw: Draw) -> tuple[np.ndarray, np.ndarray]:
    """Return rows that are in a cluster, and their labels."""
    rows = draw.labels >= 0
    return draw.X[rows], draw.labels[rows]


def of_estimates(draw: Draw) -> Answer:
    X, labels = inside(draw)
    estimates = ihgmm.estimate_parameters(X, labels)
    test = scale_test(X, labels)
    decisions = np.array([recommendation(test).partition(":")[0]])
    figures = [test.p_value, *estimates.scales, *estimates.scale_errors]
    return decisions, np.array(figures)


def of_diagnosis(draw: Draw) -> Answer:
    diagnosis = ihgmm.diagnose(*inside(draw))
    names = " ".join(sorted(type(caution).__name__ for caution in diagnosis.cautions))
    decisions = np.array([f"{diagnosis.verdict} {names}"])
    return decisions, np.array([diagnosis.expected_error])


def of_count(draw: Draw) -> Answer:
    count = ihgmm.select_n_clusters(draw.X, random_state=0)
    scores = [evidence.score for evidence in count.evidence]
    decisions = np.array([f"{count.n_clusters} {count.confidence.value}"])
    return decisions, np.array([count.lead, max(scores, default=0.0)])


def of_tree(draw: Draw) -> Answer:
    tree = ihgmm.cluster_tree(draw.X, random_state=0)
    support = [split.support for split in tree.splits]
    decisions = np.array([f"{tree.levels}"])
    return decisions, np.array([max(support, default=0.0)])


def of_labels(make: Callable[..., Any], **options: Any) -> Callable[[Draw], Answer]:
    def answer(draw: Draw) -> Answer:
        model = make(len(draw.centers), random_state=0, **options).fit(draw.X)
        return model.labels_, np.array([model.cluster_centers_.std()])

    return answer


QUESTIONS: dict[str, Callable[[Draw], Answer]] = {
    "Scales": of_estimates,
    "Weighting": of_estimates,
    "Rounds": of_labels(IhGMM),
    "TiedNoise": of_labels(IhGMM, noise="tied"),
    "Outliers": of_labels(IhSC, outliers="auto"),
    "Refitting": of_diagnosis,
    "Trust": of_diagnosis,
    "Cautions": of_diagnosis,
    "Counting": of_count,
    "Levels": of_tree,
}


def others(value: float) -> tuple[float, float]:
    """Return half and twice of a threshold, of the same type."""
    if 0.5 < value < 1:
        return 1 - 2 * (1 - value), 1 - (1 - value) / 2
    if isinstance(value, int):
        return int(max(value / 2, 1)), 2 * value
    return value / 2, 2 * value


def thresholds(group: str) -> dict[str, float]:
    """Return the numbers of a group by their names."""
    return {
        name: value
        for name, value in vars(getattr(table, group)).items()
        if name.isupper() and not np.ndim(value)
    }


def compared(task: tuple[str, str]) -> dict[str, list[float]]:
    """Return what half and twice of each threshold change: of a group, on a design."""
    group, design = task
    policy = getattr(table, group)
    draw = DESIGNS[design](0)
    ask = QUESTIONS.get(group, of_labels(IhSC))
    rows = {}

    with warnings.catch_warnings(action="ignore"):
        decisions, figures = ask(draw)
        for name, value in thresholds(group).items():
            cells = []
            for changed_value in others(value):
                setattr(policy, name, changed_value)
                try:
                    changed_decisions, changed_figures = ask(draw)
                    moved = np.nan
                    if figures.shape == changed_figures.shape:
                        moved = np.nanmean(np.abs(changed_figures - figures))
                    cells += [np.mean(changed_decisions != decisions), moved]
                except (ValueError, ArithmeticError, np.linalg.LinAlgError):
                    cells += [1.0, np.nan]
                finally:
                    setattr(policy, name, value)

            rows[name] = cells

    return rows


def lines(group: str, run: Callable[..., Any]) -> Table:
    parts = list(run(compared, [(group, design) for design in NAMES.split()]))
    yield [group]
    yield ["threshold", "value", "half: changed", "moved", "twice: changed", "moved"]
    for name, value in thresholds(group).items():
        mean = np.nanmean([part[name] for part in parts], axis=0)
        yield [name, f"{value:g}", *(f"{cell:.3f}" for cell in mean)]


def main() -> None:
    groups = [name for name, value in vars(table).items() if isinstance(value, type)]
    groups.remove("Small")  # rounding: nothing depends on it
    parser = arguments(__doc__, "policy.md", groups, jobs=os.cpu_count())
    options = parser.parse_args()
    about = __doc__.split("\n\n")[2]
    text = [f"# How sensitive answers are to thresholds\n\n{about}\n"]
    with ProcessPoolExecutor(options.jobs) as pool:
        text += [markdown(lines(name, pool.map), "##") for name in options.names]
    publish(options, "\n".join(text))


if __name__ == "__main__":
    main()
