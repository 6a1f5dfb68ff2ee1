"""Errors of rows without a label, by how many rows of each class have one.

    python benchmarks/known.py                    # sets that are there, first 800 rows
    python benchmarks/known.py --groups ten --rows 2000
    python benchmarks/known.py --rows 300 --save  # results/known.md

All labels are right, or a tenth of them is wrong. A set counts once, with the mean over
its preparations. The thresholds of ``policy.Teaching`` were chosen on the ten and the
development half. Peers take unit rows, and in the columns "- prepared" unit rows of
roots where IhSC without known labels takes these. Where nothing is known, clusters are
matched to classes by the true labels of all rows, which no other column is told.
"""

import os
import warnings
from collections.abc import Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy starts its threads

import numpy as np
from labelled import GROUPS, all_samples, means_by_set
from measure import arguments, markdown, publish
from methods import roots
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from ihgmm import IhSC
from ihgmm.metrics import misclassification_rate

COUNTS = (1, 3, 10, 30)
WRONG = (0.0, 0.1)
PEERS = ("LabelSpreading", "- prepared", "SelfTraining", "- prepared")
METHODS = ("nothing known", "IhSC", *PEERS)


def teach(y: np.ndarray, per_class: int, wrong: float) -> np.ndarray:
    """Return labels of some rows of each class, at most half of them; else -1."""
    rng = np.random.default_rng(per_class)
    known_labels = np.full(len(y), -1)
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        known_labels[rows[: min(per_class, len(rows) // 2)]] = label

    known_rows = np.flatnonzero(known_labels >= 0)
    wrong_rows = rng.permutation(known_rows)[: round(wrong * len(known_rows))]
    shifts = rng.integers(1, y.max() + 1, len(wrong_rows))
    known_labels[wrong_rows] = (known_labels[wrong_rows] + shifts) % (y.max() + 1)

    return known_labels


def errors(X: np.ndarray, y: np.ndarray, wrong: float) -> Iterator[float]:
    """Yield errors of unknown rows, of each method for each count of known rows."""
    k = int(y.max()) + 1
    clusters = IhSC(k).fit(X)
    unit_rows = normalize(X)
    prepared = normalize(roots(X)) if clusters.columns_.roots else unit_rows

    for per_class in COUNTS:
        known_labels = teach(y, per_class, wrong)
        is_unknown = known_labels < 0
        spreading = LabelSpreading(kernel="knn", n_neighbors=min(10, len(y) - 1))
        self_training = SelfTrainingClassifier(LogisticRegression(C=10, max_iter=200))
        yield misclassification_rate(y[is_unknown], clusters.labels_[is_unknown])

        for labels in (
            IhSC(k).fit(X, known_labels=known_labels).labels_,
            spreading.fit(unit_rows, known_labels).transduction_,
            spreading.fit(prepared, known_labels).transduction_,
            self_training.fit(unit_rows, known_labels).predict(unit_rows),
            self_training.fit(prepared, known_labels).predict(prepared),
        ):
            yield float(np.mean(labels[is_unknown] != y[is_unknown]))


def main() -> None:
    parser = arguments(__doc__, "known.md", rows=800)
    parser.add_argument("--groups", nargs="*", default=list(GROUPS[:3]))
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # real data are not what methods hope
    names = []
    error_lists = []

    for labelled_set, X, y in all_samples(options.groups, None, options.rows):
        errors_of_set = [error for share in WRONG for error in errors(X, y, share)]
        error_lists.append(errors_of_set)
        names.append(labelled_set.name)

    means = means_by_set(names, error_lists)
    tables = means.mean(axis=0).reshape(len(WRONG), len(COUNTS), len(METHODS))
    text = ["# Known labels", "", "`python benchmarks/known.py`.", ""]

    for share_wrong, table in zip(WRONG, tables, strict=True):
        title = f"{len(means)} sets, {len(error_lists)} preparations, "
        title += f"{share_wrong:.0%} wrong"
        rows = [
            [count, *(f"{value:.3f}" for value in line)]
            for count, line in zip(COUNTS, table, strict=True)
        ]
        head = ["known rows a class", *METHODS]
        text.append(markdown([[title], head, *rows]))

    publish(options, "\n".join(text))


if __name__ == "__main__":
    main()
