"""What surrounds a call: threads, a locale, a folder where nothing may be written."""

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ihgmm import IhSC, make_ihgmm


def test_results_of_64_threads_are_those_of_one():
    samples = [make_ihgmm(60, 12, 3, random_state=seed)[0] for seed in range(64)]

    def work(X):
        model = IhSC(3).fit(X)
        return model.labels_, model.scales_, model.predict(2 * X)

    with warnings.catch_warnings(), ThreadPoolExecutor(64) as pool:
        warnings.simplefilter("ignore")
        together = list(pool.map(work, samples))
        for X, found in zip(samples, together, strict=True):
            for one, other in zip(work(X), found, strict=True):
                np.testing.assert_array_equal(one, other)


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "ihgmm", *map(str, arguments)],
        capture_output=True, text=True, timeout=120, **options,
    )  # fmt: skip


def test_a_decimal_comma_of_the_locale_changes_nothing(tmp_path):
    made = subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", tmp_path / "de_DE.UTF-8"],
        capture_output=True,
    ) if Path("/usr/bin/localedef").exists() else None  # fmt: skip
    if made is None or made.returncode:
        pytest.skip("this machine has no German locale")
    german = {"LOCPATH": str(tmp_path), "LC_ALL": "de_DE.UTF-8"}
    written = []
    for name, words in {"here": {}, "there": german}.items():
        labels = tmp_path / f"{name}.csv"
        done = command(
            "fit", "iris", "-k", 3, "-o", labels, "--quiet", env={**os.environ, **words}
        )
        assert done.returncode == 0, done.stderr
        written.append(labels.read_bytes())
    assert written[0] == written[1]
    assert b";" not in written[0]
