"""Runs of a study: the same however they are run, kept, and never spoilt."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from ihgmm.paper.runner import read_results, run_study
from ihgmm.paper.studies import STUDIES, Panel, simulation_study
from ihgmm.statistics.model import make_ihgmm

COMMAND = shutil.which("ihgmm", path=str(Path(sys.executable).parent)) or "ihgmm"
REPEATS = 6  # of which two are there when a run is stopped, and two more when killed

PANEL = Panel(
    name="one",
    title="one",
    varies=("n_features",),
    symbol="p",
    values=(20, 40),
    fixed={"n_samples": 60, "n_clusters": 3},
)
SMALL = simulation_study("small", "A small study", [PANEL], ("IhSC", "k-means"))


def run(path, reps, study=SMALL, **options):
    settings = options.pop("settings", study.settings)
    return sorted(run_study(settings, study.methods, path, reps=reps, **options))


def test_results_do_not_depend_on_order_or_resumption(tmp_path):
    whole_path = tmp_path / "one.csv"
    progress = []

    results = run(whole_path, 3, progress=lambda *counts: progress.append(counts))

    assert progress == [(i, 12) for i in range(13)]
    assert len(results) == 12 * len(SMALL.methods)

    resumed_path = tmp_path / "two.csv"
    draws = []

    def counting(**options):
        draws.append(options)
        return make_ihgmm(**options)

    panel = replace(PANEL, sampler=counting)
    study = simulation_study("small", "", [panel], SMALL.methods)

    run(resumed_path, 1, study)
    run(resumed_path, 2, study, settings=study.choose("/40/"))

    assert len(draws) == 6

    for _ in range(2):  # finished runs are not run again
        assert run(resumed_path, 3, study) == results
        assert len(draws) == 12

    assert sorted(whole_path.read_text()) == sorted(resumed_path.read_text())


@pytest.mark.skipif(os.name == "nt", reason="two handles of a process share a lock")
def test_one_run_at_a_time_writes_to_a_table(tmp_path):
    path = tmp_path / "runs.csv"

    def run_again(done, total):
        with pytest.raises(BlockingIOError, match="written by another run; wait for"):
            run(path, 1)
        assert run(tmp_path / "more.csv", 1)  # other tables are not concerned

    results = run(path, 1, progress=run_again)

    assert len(run(path, 2)) == 2 * len(results)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["more.csv", "runs.csv"]


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_unfinished_ends_are_run_again(tmp_path, cut):
    path = tmp_path / "runs.csv"
    results = run(path, 2)
    text = path.read_text()

    path.write_text(text[:-cut])

    assert run(path, 2) == results
    assert set(path.read_text().splitlines()) == set(text.splitlines())


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "one line"])
def test_foreign_files_are_left_alone(tmp_path, text):
    path = tmp_path / "runs.csv"
    path.write_text(text)

    with pytest.raises(ValueError, match=r"not a table of runs: its first line is"):
        run(path, 1)

    assert path.read_text() == text


def started(command, path, n_lines):
    """Start a command; return it once a table has more than so many lines."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Where these tests run in the background, interrupts may be ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120

    while not (path.exists() and len(path.read_text().splitlines()) > n_lines):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)

    return process


@pytest.mark.skipif(os.name == "nt", reason="groups of processes are of POSIX")
def test_what_processes_have_done_survives_interrupts_and_kills(tmp_path):
    study = STUDIES["exp1"]
    settings = study.choose("n=p/100")
    whole_path = tmp_path / "whole.csv"
    folder = tmp_path / "folder"
    path = folder / "exp1-runs.csv"

    results = run(whole_path, REPEATS, study, settings=settings)
    arguments = ("reproduce", "exp1", "--repeats", str(REPEATS), "--only", "n=p/100")
    two_jobs = [COMMAND, *arguments, "--jobs", "2", "-o", str(folder)]

    stopped = started(two_jobs, path, 12)
    os.killpg(stopped.pid, signal.SIGINT)  # as a terminal does, workers too
    _, errors = stopped.communicate(timeout=60)

    assert stopped.returncode == 130

    *slow_steps, last = (
        errors.splitlines()
    )  # a slow machine names the step that takes long

    assert len(slow_steps) <= 1
    assert last.startswith("stopped: what is finished is kept in")
    assert list(folder.iterdir()) == [path]

    n_finished = len(read_results(path, study.methods))

    assert n_finished >= 12

    killed = started(two_jobs, path, n_finished + 12)
    killed.kill()
    killed.communicate(timeout=60)  # returns when its workers have ended too

    assert n_finished < len(read_results(path, study.methods)) < len(results)
    assert run(path, REPEATS, study, settings=settings) == results

    lines = set(path.read_text().splitlines())

    assert lines == set(whole_path.read_text().splitlines())
