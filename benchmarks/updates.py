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

    return (
        seconds,
        model,
        sizes,
        [warning for warning in caught if warning.category is DriftWarning],
    )


def turning(sample, at_once: bool) -> np.ndarray:
    """Return rows of which those of a cluster turn away: by degrees, or half way."""
    X = sample.X.copy()
    rows_of_cluster = np.flatnonzero(sample.labels == 0)
    center = sample.centers[0]
    direction = np.random.default_rng(0).standard_normal(len(center))
    direction -= (direction @ center) / (center @ center) * center
    direction *= np.linalg.norm(center) / np.linalg.norm(direction)
    part = rows_of_cluster / len(X)
    angles = np.pi / 2 * (np.round(part) if at_once else part)[:, None]
    scales = (X[rows_of_cluster] @ center / (center @ center))[:, None]
    X[rows_of_cluster] += scales * (
        (np.cos(angles) - 1) * center + np.sin(angles) * direction
    )

    return X


def kept_numbers(X, kinds, new: bool) -> float:
    """Return the share of rows whose cluster keeps its number over 20 updates.

    With ``new``, a tenth cluster comes only after the first five.
    """
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(X))[:42_000]
    is_late = kinds[rows] == 0
    first = rows[~is_late] if new else rows
    model = IhSC(K - new).partial_fit(X[first[:2_000]])
    before = model.predict(X[first])
    if new:
        other_rows = rng.permutation(np.r_[first[12_000:], rows[is_late]])
        parts = np.array_split(first[2_000:12_000], 5) + np.array_split(other_rows, 15)
    else:
        parts = np.array_split(first[2_000:], 20)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        for part in parts:
            model.partial_fit(X[part])

    return float(np.mean(model.predict(X[first]) == before))


def main() -> None:
    options = arguments(__doc__, "updates.md", rows=200_000).parse_args()
    design = {"separation_constant": 0.35, "random_state": 0, "return_params": True}
    sample = make_ihgmm(options.rows, 50, K, **design)
    X = sample.X
    kinds = sample.labels
    scores = (X @ sample.centers.T) / np.linalg.norm(sample.centers, axis=1)
    oracle = np.mean(scores.argmax(axis=1) != kinds)
    shuffled = np.array_split(X, BATCHES)
    sorted_rows = np.array_split(X[np.argsort(kinds, kind="stable")], BATCHES)
    start = time.process_time()
    fit_to_all = IhSC(K).fit(X)
    error = misclassification_rate(kinds, fit_to_all.labels_)
    seconds = time.process_time() - start
    table = [
        [f"{options.rows:,} x 50, {K} clusters, {BATCHES} batches"],
        ["", "error", "seconds", "MB after 10 batches", "MB at the end", "drift said"],
        ["nearest true centre by angle", f"{oracle:.4f}", "", "", "", ""],
        ["one fit", f"{error:.4f}", f"{seconds:.1f}", "", "", ""],
    ]

    def row(name, batches, model, after=lambda model: model, unit=False, asked=None):
        seconds, model, sizes, warnings_of_calls = grow(model, batches, after)
        cells = [name, "", f"{seconds:.1f}", *(f"{size / 1e6:.1f}" for size in sizes)]
        if hasattr(model, "predict"):
            rows = X if asked is None else asked
            labels = model.predict(normalize(rows) if unit else rows)
            cells[1] = f"{misclassification_rate(kinds[-len(rows) :], labels):.4f}"

        table.append([*cells, len(warnings_of_calls)])
        return model

    model = row("partial_fit", shuffled, IhSC(K))
    for count in (10, 1000):
        row(f"{count:,} batches", np.array_split(X, count), IhSC(K))
    row("partial_fit, sorted by cluster", sorted_rows, IhSC(K))

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.npz"

        def revive(model):
            save_model(model, file)
            return load_model(file)

        revived = row("saved and read after each batch", shuffled, IhSC(K), revive)

    drifting = shuffled[: BATCHES // 2]
    later = zip(shuffled, np.array_split(kinds, BATCHES), strict=True)
    drifting += [part[own != 0] for part, own in [*later][BATCHES // 2 :]]
    row("one of ten clusters ends half way", drifting, IhSC(K))

    for at_once in (False, True):
        turned = turning(sample, at_once)
        way = ("by degrees", "half way")[at_once]
        last_tenth = turned[-len(X) // 10 :]
        name = f"one of ten clusters turns {way}"
        parts = np.array_split(turned, BATCHES)
        stale_row = row(name, parts, IhSC(K), asked=last_tenth)
        start = time.process_time()
        labels = IhSC(K, init=stale_row).fit(last_tenth).labels_
        seconds = f"{time.process_time() - start:.1f}"
        error = f"{misclassification_rate(kinds[-len(last_tenth) :], labels):.4f}"
        refit_row = ["a fit to its last tenth, init=model", error, seconds]
        table.append([*refit_row, "", "", ""])

    units = [normalize(part) for part in shuffled]
    minibatch = MiniBatchKMeans(K, random_state=0, n_init=1)
    row("MiniBatchKMeans, unit rows", units, minibatch, unit=True)
    row("IncrementalPCA, unit rows", units, IncrementalPCA(22))
    is_same = np.array_equal(model.cluster_centers_, revived.cluster_centers_)
    text = ["# Rows that come later", "", "`python benchmarks/updates.py`.", ""]
    text.append(markdown(table))
    text += [f"Saved and read after each batch, the model is the same: {is_same}.", ""]

    for has_new_cluster, scenario in enumerate(
        ("the same clusters", "a cluster that comes later")
    ):
        share = kept_numbers(X, kinds, bool(has_new_cluster))
        words = "Rows that keep their number over 20 updates, with"
        text.append(f"{words} {scenario}: {share:.2%}")

    publish(options, "\n".join(text))


if __name__ == "__main__":
    main()
