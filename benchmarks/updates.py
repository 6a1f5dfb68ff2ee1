"""Show what a model does that grows by batches, beside peers that grow too.

    python benchmarks/updates.py                  # 200,000 x 50 in 100 batches
    python benchmarks/updates.py --rows 1000000 --save      # results/updates.md

Errors are on all rows, at the end. Where a cluster turns, by 90 degrees, they are on
the last tenth, beside a fit to these rows that starts from the model. Seconds are those
of the processor, all threads together. Memory is that of the model. Peers are
scikit-learn's MiniBatchKMeans on unit rows and IncrementalPCA, in the same run.
"""

import pickle
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from measure import arguments, markdown, publish
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import IncrementalPCA
from sklearn.preprocessing import normalize

from ihgmm import DriftWarning, IhSC, make_ihgmm
from ihgmm.metrics import misclassification_rate
from ihgmm.storage import load_model, save_model

BATCHES = 100
K = 10


def grow(model, batches, after=lambda model: model):
    """Return seconds, the model, bytes of it after a tenth and at the end, warnings."""
    sizes = []
    seconds = 0.0

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i, rows in enumerate(batches):
            start = time.process_time()
            model.partial_fit(rows)
            seconds += time.process_time() - start
            model = after(model)
            if i in (len(batches) // 10 - 1, len(batches) - 1):
                sizes.append(len(pickle.dumps(model)))

    drift_warnings = [warning for warning in caught if warning.category is DriftWarning]

    return seconds, model, sizes, drift_warnings


def turning(sample, at_once: bool) -> np.ndarray:
    """Return rows of which those of a cluster turn away: by degrees, or half way."""
    X = sample.X.copy()
    rows_of_cluster = np.flatnonzero(sample.labels == 0)
    center = sample.centers[0]

    direction = np.random.default_rng(0).standard_normal(len(center))
    direction -= (direction @ center) / (center @ center) * center
    direction *= np.linalg.norm(center) / np.linalg.norm(direction)

    times = rows_of_cluster / len(X)  # from 0 to 1
    angles = np.pi / 2 * (np.round(times) if at_once else times)[:, None]
    scales = (X[rows_of_cluster] @ center / (center @ center))[:, None]
    moves = (np.cos(angles) - 1) * center + np.sin(angles) * direction
    X[rows_of_cluster] += scales * moves

    return X


def kept_numbers(X, labels, has_late_cluster: bool) -> float:
    """Return the share of rows whose cluster keeps its number over 20 updates.

    With ``has_late_cluster``, a tenth comes only after the first five.
    """
    rng = np.random.default_rng(0)
    positions = rng.permutation(len(X))[:42_000]
    is_late = labels[positions] == 0
    early_rows = positions[~is_late] if has_late_cluster else positions

    model = IhSC(K - has_late_cluster).partial_fit(X[early_rows[:2_000]])
    labels_before = model.predict(X[early_rows])

    if has_late_cluster:
        mixed_rows = rng.permutation(np.r_[early_rows[12_000:], positions[is_late]])
        parts = np.array_split(early_rows[2_000:12_000], 5)
        parts += np.array_split(mixed_rows, 15)
    else:
        parts = np.array_split(early_rows[2_000:], 20)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        for part in parts:
            model.partial_fit(X[part])

    return float(np.mean(model.predict(X[early_rows]) == labels_before))


def main() -> None:
    options = arguments(__doc__, "updates.md", rows=200_000).parse_args()
    design = {"separation_constant": 0.35, "random_state": 0, "return_params": True}
    sample = make_ihgmm(options.rows, 50, K, **design)
    X = sample.X
    true_labels = sample.labels
    scores = (X @ sample.centers.T) / np.linalg.norm(sample.centers, axis=1)
    oracle = np.mean(scores.argmax(axis=1) != true_labels)
    shuffled = np.array_split(X, BATCHES)
    sorted_batches = np.array_split(X[np.argsort(true_labels, kind="stable")], BATCHES)

    start = time.process_time()
    fit_to_all = IhSC(K).fit(X)
    error = misclassification_rate(true_labels, fit_to_all.labels_)
    seconds = time.process_time() - start

    table = [
        [f"{options.rows:,} x 50, {K} clusters, {BATCHES} batches"],
        ["", "error", "seconds", "MB after 10 batches", "MB at the end", "drift said"],
        ["nearest true centre by angle", f"{oracle:.4f}", "", "", "", ""],
        ["one fit", f"{error:.4f}", f"{seconds:.1f}", "", "", ""],
    ]

    def row(name, batches, model, after=lambda model: model, unit=False, asked=None):
        seconds, model, sizes, drift_warnings = grow(model, batches, after)
        cells = [name, "", f"{seconds:.1f}", *(f"{size / 1e6:.1f}" for size in sizes)]
        if hasattr(model, "predict"):
            rows = X if asked is None else asked
            labels = model.predict(normalize(rows) if unit else rows)
            cells[1] = (
                f"{misclassification_rate(true_labels[-len(rows) :], labels):.4f}"
            )

        table.append([*cells, len(drift_warnings)])
        return model

    model = row("partial_fit", shuffled, IhSC(K))
    for count in (10, 1000):
        row(f"{count:,} batches", np.array_split(X, count), IhSC(K))
    row("partial_fit, sorted by cluster", sorted_batches, IhSC(K))

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.npz"

        def revive(model):
            save_model(model, file)
            return load_model(file)

        revived = row("saved and read after each batch", shuffled, IhSC(K), revive)

    half = BATCHES // 2
    labels_of_batches = np.array_split(true_labels, BATCHES)
    ending = [
        *shuffled[:half],
        *(shuffled[i][labels_of_batches[i] != 0] for i in range(half, BATCHES)),
    ]
    row("one of ten clusters ends half way", ending, IhSC(K))

    for at_once in (False, True):
        turned = turning(sample, at_once)
        manner = ("by degrees", "half way")[at_once]
        last_tenth = turned[-len(X) // 10 :]
        name = f"one of ten clusters turns {manner}"
        parts = np.array_split(turned, BATCHES)
        model_of_stream = row(name, parts, IhSC(K), asked=last_tenth)
        start = time.process_time()
        labels = IhSC(K, init=model_of_stream).fit(last_tenth).labels_
        seconds = f"{time.process_time() - start:.1f}"
        error = f"{misclassification_rate(true_labels[-len(last_tenth) :], labels):.4f}"
        refit_row = ["a fit to its last tenth, init=model", error, seconds]
        table.append([*refit_row, "", "", ""])

    units = [normalize(block) for block in shuffled]
    minibatch = MiniBatchKMeans(K, random_state=0, n_init=1)
    row("MiniBatchKMeans, unit rows", units, minibatch, unit=True)
    row("IncrementalPCA, unit rows", units, IncrementalPCA(22))

    is_same = np.array_equal(model.cluster_centers_, revived.cluster_centers_)
    text = ["# Rows that come later", "", "`python benchmarks/updates.py`.", ""]
    text.append(markdown(table))
    text += [f"Saved and read after each batch, the model is the same: {is_same}.", ""]

    words = "Rows that keep their number over 20 updates, with"
    for scenario, has_new_cluster in (
        ("the same clusters", False),
        ("a cluster that comes later", True),
    ):
        share = kept_numbers(X, true_labels, has_new_cluster)
        text.append(f"{words} {scenario}: {share:.2%}")

    publish(options, "\n".join(text))


if __name__ == "__main__":
    main()
