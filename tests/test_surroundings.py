"""What surrounds a call: threads, a locale, a folder where nothing may be written."""

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ihgmm import IhSC, diagnose, make_ihgmm


def test_results_of_64_threads_are_those_of_one():
    samples = [make_ihgmm(60, 12, 3, random_state=seed)[0] for seed in range(64)]

    def work(X):
        model = IhSC(3).fit(X)
        return model.labels_, model.scales_, diagnose(X, model).expected_error

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


AS_A_USER = """
import os, sys
from ihgmm.cli import main
for number in range(2):
    sys.argv = ["ihgmm", "fit", "data.csv", "-k", "3", "--save", sys.argv[-1]]
    try:
        main()
    except SystemExit as ended:
        print(number, ended.code or 0)
    if number == 0:  # everything is imported from folders that only root may read
        os.remove(sys.argv[-1])
        os.setgid(65534)
        os.setuid(65534)
"""


@pytest.mark.skipif(not hasattr(os, "setuid") or os.getuid() != 0, reason="not root")
def test_a_folder_where_a_user_may_not_write_is_named(tmp_path):
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(0o755)
    np.savetxt(
        tmp_path / "data.csv", make_ihgmm(60, 4, 3, random_state=0)[0], "%.3f", ","
    )
    given = [sys.executable, "-c", AS_A_USER, tmp_path / "model.npz"]
    done = subprocess.run(
        given, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.rstrip().endswith("1 1"), done.stderr
    assert "model.npz could not be written (Permission denied)" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


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
