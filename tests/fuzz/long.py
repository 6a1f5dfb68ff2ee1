"""A long run in one process: python tests/fuzz/long.py [--minutes M]

Chapter after chapter come data of other sizes and kinds: fits, predictions, files and
pickles, and updates of one model that lives on. At the end memory has stayed flat, no
file or thread is left, and a fresh process that does some chapters again, and all
updates, has the same answers to the last bit.
"""

import argparse
import gc
import hashlib
import os
import pickle
import subprocess
import sys
import time
import warnings
from tempfile import TemporaryDirectory
from threading import active_count

import dask.array as da
import numpy as np
import pandas as pd
import scipy.sparse as sp

import ihgmm
from ihgmm.storage import load_model, save_model

WARM = 8  # chapters until every kind of data and model was there once
FULL = 30_000  # rows of the first update, so that the sample that a model keeps is full
GROWTH = 20  # MB by which memory may differ: allocators keep what they please


def make_data(seed, folder):
    """Return data of a size and kind that change with the chapter."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(40, 400))
    p = int(rng.integers(5, 60))
    k = int(rng.integers(2, 6))
    X, _ = ihgmm.make_ihgmm(n, p, k, random_state=seed)

    if seed % 2:
        path = f"{folder}/x.parquet"
        pd.DataFrame(X).to_parquet(path)
    else:
        path = f"{folder}/x.npy"
        np.save(path, X)

    kinds = [
        lambda: X,
        lambda: pd.DataFrame(X, columns=[f"c{j}" for j in range(p)]),
        lambda: np.load(path, mmap_mode="r"),
        lambda: ihgmm.open_data(path),
        lambda: sp.csr_array(X * (X > 0)),
        lambda: X.astype(np.float32),
        lambda: ihgmm.open_data(path),
        lambda: da.from_array(X, chunks=(n // 3, p)),
    ]
    return kinds[seed % len(kinds)](), k


def chapter(seed):
    """Return a digest of all answers of a chapter."""
    with TemporaryDirectory() as folder:
        X, k = make_data(seed, folder)
        models = [
            ihgmm.IhSC(k),
            ihgmm.IhGMM(k, noise="tied"),
            ihgmm.IhSC("auto", outliers="auto", random_state=0),
            ihgmm.IhSC(k, recipe="psc", random_state=0),
            ihgmm.SphericalKMeans(k, random_state=0),
        ]
        model = models[seed % len(models)].fit(X)
        answers = [model.labels_, model.cluster_centers_]

        save_model(model, f"{folder}/model.npz")
        loaded = load_model(f"{folder}/model.npz")
        unpickled = pickle.loads(pickle.dumps(model))
        for each_model in (model, loaded, unpickled):
            answers.append(each_model.predict(X))

        if seed % 9 == 0:
            model.report(X, f"{folder}/page.html")
        return digest(*answers)


def update(model, seed):
    """Go on with new rows of clusters that drift; return the model or a copy of it."""
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(0).normal(size=(3, 12))
    centers += 0.3 * np.sin(seed / 50 + np.arange(12))
    n = 80 if seed else FULL
    signal = centers[rng.integers(3, size=n)] * rng.lognormal(size=(n, 1))

    model.partial_fit(signal + 0.1 * rng.normal(size=signal.shape))
    return pickle.loads(pickle.dumps(model)) if seed % 7 == 0 else model


def digest(*answers):
    result = hashlib.sha256()
    for answer in answers:
        result.update(np.ascontiguousarray(answer).tobytes())
    return result.hexdigest()


def resources():
    """Return the memory of this process in MB, its open files and its threads."""
    gc.collect()
    with open("/proc/self/statm") as file:
        memory = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    return memory, len(os.listdir("/proc/self/fd")), active_count()


def do_again(seeds):
    """Print the digests of some chapters, then that of all updates up to the last."""
    print(*map(chapter, seeds), sep="\n")
    model = ihgmm.IhSC(3)
    for seed in range(seeds[-1] + 1):
        model = update(model, seed)
    print(digest(model.cluster_centers_, model.labels_))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--again", type=int, nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.again:
        do_again(options.again)
        return

    model = ihgmm.IhSC(3)
    digests = []
    usage = []
    begin = time.monotonic()
    time_of_report = begin

    while len(digests) < 2 * WARM or time.monotonic() - begin < 60 * options.minutes:
        model = update(model, len(digests))
        digests.append(chapter(len(digests)))
        usage.append((*resources(), len(pickle.dumps(model))))
        if time.monotonic() - time_of_report > 60:
            time_of_report = time.monotonic()
            print(f"{len(digests)} chapters: {_in_words(usage[-1])}", flush=True)

    first_half, second_half = np.array_split(usage[WARM:], 2)
    before = np.median(first_half, axis=0)
    after = np.median(second_half, axis=0)
    print(f"the first half: {_in_words(before)}")
    print(f"the second half: {_in_words(after)}")

    assert after[0] < before[0] + GROWTH, "memory grew"
    assert usage[-1][1:3] == usage[WARM][1:3], "files or threads are left"
    assert after[3] < 1.01 * before[3], "the model grew"

    last_chapter = len(digests) - 1
    seeds = np.linspace(0, last_chapter, min(last_chapter // 4, 41), dtype=int).tolist()
    command = [sys.executable, __file__, "--again", *map(str, seeds)]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    expected = [digests[seed] for seed in seeds]
    expected.append(digest(model.cluster_centers_, model.labels_))

    assert process.stdout.split() == expected, "a fresh process answers otherwise"

    print(
        f"{len(seeds)} chapters and {last_chapter + 1} updates again, afresh: the same"
    )


def _in_words(usage):
    memory, files, threads, size = usage
    return (
        f"{memory:.0f} MB, {files:.0f} files, {threads:.0f} threads, "
        f"the model {size / 1e3:.0f} kB"
    )


if __name__ == "__main__":
    main()
