"""Errors of rows without a label, by how many rows of each class have one.

    python benchmarks/known.py                    # sets that are there, first 800 rows
    python benchmarks/known.py --groups ten --rows 2000
    python benchmarks/known.py --rows 300 --save  # results/known.md

All labels are right, or a tenth of them is wrong. A set counts once, with the mean over
its preparations. The two thresholds of ``policy.Teaching`` were chosen on every fifth
preparation of 119, with 1, 3 and 10 known rows a class. Where nothing is known,
clusters are matched to classes by the true labels of all rows, which no other column is
told.
"""

import os
import warnings
from collections.abc import Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy starts its threads

import numpy as np
from labelled import GROUPS, all_samples, means_by_set
from measure import arguments, markdown, publish
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from ihgmm import IhSC
from ihgmm.metrics import misclassification_rate

COUNTS = (1, 3, 10)
WRONG = (0.0, 0.1)
METHODS = ("nothing known", "IhSC", "LabelSpreading", "SelfTraining")


def teach(y: np.ndarray, per_class: int, wrong: float) -> np.ndarray:
    """Return labels of some rows of each class, at most half of them; else -1."""
    rng = np.random.default_rng(per_class)
    known = np.full(len(y), -1)
    for one in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == one))
        known[rows[: min(per_class, len(rows) // 2)]] = one
    taught = np.flatnonzero(known >= 0)
    flipped = rng.permutation(taught)[: round(wrong * len(taught))]
    others = rng.integers(1, y.max() + 1, len(flipped))
    known[flipped] = (known[flipped] + others) % (y.max() + 1)
    return known


def errors(X: np.ndarray, y: np.ndarray, wrong: float) -> Iterator[float]:
    """Yield errors of unknown rows, of each method for each count of known rows."""
    k = int(y.max()) + 1
    units = normalize(X)
    alone = IhSC(k).fit(X).labels_
    for per_class in COUNTS:
        known = teach(y, per_class, wrong)
        asked = known < 0
        spread = LabelSpreading(kernel="knn", n_neighbors=min(10, len(y) - 1))
        itself = SelfTrainingClassifier(LogisticRegression(C=10, max_iter=200))
        yield misclassification_rate(y[asked], alone[asked])
        for labels in (
            IhSC(k).fit(X, known_labels=known).labels_,
            spread.fit(units, known).transduction_,
            itself.fit(units, known).predict(units),
        ):
            yield float(np.mean(labels[asked] != y[asked]))


def main() -> None:
    parser = arguments(__doc__, "known.md", rows=800)
    parser.add_argument("--groups", nargs="*", default=list(GROUPS[:3]))
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # real data are not what methods hope
    names = []
    found = []
    for data, X, y in all_samples(options.groups, None, options.rows):
        found.append([one for wrong in WRONG for one in errors(X, y, wrong)])
        names.append(data.name)
    means = means_by_set(names, found)
    tables = means.mean(axis=0).reshape(len(WRONG), len(COUNTS), len(METHODS))
    text = ["# Known labels", "", "`python benchmarks/known.py`.", ""]
    for wrong, table in zip(WRONG, tables, strict=True):
        title = f"{len(means)} sets, {len(found)} preparations, {wrong:.0%} wrong"
        rows = [
            [count, *(f"{value:.3f}" for value in line)]
            for count, line in zip(COUNTS, table, strict=True)
        ]
        head = ["known rows a class", *METHODS]
        text.append(markdown([[title], head, *rows]))
    publish(options, "\n".join(text))


if __name__ == "__main__":
    main()
