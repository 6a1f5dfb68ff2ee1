"""The paper's experiments: settings, runner, table, figures, command."""

import csv
import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ihgmm.cli import app
from ihgmm.experiments import (
    EXPERIMENTS,
    PHASE,
    STUDIES,
    Result,
    Run,
    run_experiment,
    summarize,
)
from ihgmm.experiments.figures import grid, threshold_constants
from ihgmm.experiments.methods import METHODS
from ihgmm.experiments.oracles import center_oracle, label_oracle
from ihgmm.experiments.runner import Summary, execute, read_results
from ihgmm.experiments.studies import Experiment, Panel, correlated_sample
from ihgmm.experiments.table import (
    PAPER_COUNTS,
    Cell,
    real_data_table,
    to_csv,
    to_latex,
    to_markdown,
)
from ihgmm.metrics import misclassification_loss
from ihgmm.statistics.model import default_separation, make_ihgmm
from ihgmm.theory import thresholds

DATA = Path(__file__).parents[2] / "shared" / "data"
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="the downloaded data sets are not beside the repository"
)
COMMAND = shutil.which("ihgmm", path=str(Path(sys.executable).parent)) or "ihgmm"

SMALL = Experiment(
    "small",
    "A small experiment",
    (
        Panel(
            "one",
            "one",
            "n_features",
            "p",
            (20, 40),
            {"n_samples": 60, "n_clusters": 3},
        ),
    ),
)


def count(experiment, panel=None):
    return sum(panel in (None, s.panel) for s in EXPERIMENTS[experiment].settings())


def test_grids_are_the_papers():
    assert [count(e) for e in EXPERIMENTS] == [30, 42, 40, 20]
    first = EXPERIMENTS["exp1"].settings()
    assert {s.options["n_clusters"] for s in first} == {4}
    square = [s.options for s in first if s.panel == "n=p"]
    assert all(o["n_samples"] == o["n_features"] for o in square)
    assert sorted({o["n_samples"] for o in square}) == [100, 200, 300, 400, 500]
    second = EXPERIMENTS["exp2"].settings()
    assert {(s.options["n_samples"], s.options["n_features"]) for s in second} == {
        (5000, 1000), (1000, 1000), (1000, 5000),
    }  # fmt: skip
    assert sorted({s.x for s in second}) == [2, 3, 4, 5, 6, 7, 8]
    assert sorted({s.x for s in EXPERIMENTS["exp3"].settings()}) == list(
        range(5, 101, 5)
    )
    assert sorted({s.x for s in EXPERIMENTS["exp4"].settings()}) == pytest.approx(
        np.arange(1, 11) / 10
    )
    for name, n, p, value in (
        ("exp3", 500, 1000, 16.2408),
        ("exp4", 200, 1000, 20.4217),
    ):
        options = EXPERIMENTS[name].settings()[0].options
        assert (options["n_samples"], options["n_features"]) == (n, p)
        assert default_separation(n, p, options["n_clusters"]) == pytest.approx(
            value, abs=1e-4
        )
    for experiment in EXPERIMENTS.values():
        assert set(experiment.methods) <= set(METHODS)
        assert {"IhSC", "PSC", "k-means"} <= set(experiment.methods)
    assert "IhSC, magnitude" in EXPERIMENTS["exp4"].methods
    keys = [s.key for e in EXPERIMENTS.values() for s in e.settings()]
    assert len(set(keys)) == len(keys)
    for experiment in EXPERIMENTS.values():  # every setting can be sampled
        for s in experiment.settings():
            make_ihgmm(
                **{**s.options, "n_samples": 20, "n_features": 12}, noise=s.noise
            )


def test_seeds_depend_on_the_name_only():
    settings = EXPERIMENTS["exp1"].settings()
    seeds = [Run(s, rep).seed for s in settings for rep in range(200)]
    assert len(set(seeds)) > 0.999 * len(seeds)
    assert Run(settings[0], 0).key == "exp1/n>>p/500/gaussian/0"
    assert Run(settings[0], 0).seed == 902423127


def test_results_do_not_depend_on_jobs_order_or_resumption(tmp_path):
    seen = []
    one = run_experiment(SMALL, tmp_path / "one.csv", reps=3, jobs=1)
    two = run_experiment(
        SMALL, tmp_path / "two.csv", reps=3, jobs=2, progress=lambda *a: seen.append(a)
    )
    assert one == two
    assert seen[0] == (0, 12)
    assert seen[-1] == (12, 12)
    assert len(one) == 12 * len(SMALL.methods)
    run_experiment(SMALL, tmp_path / "three.csv", reps=1)
    run_experiment(SMALL, tmp_path / "three.csv", reps=2, only=lambda s: s.x == 40)
    assert run_experiment(SMALL, tmp_path / "three.csv", reps=3) == one
    texts = [sorted((tmp_path / f"{n}.csv").read_text().splitlines()) for n in
             ("one", "two", "three")]  # fmt: skip
    assert texts[0] == texts[1] == texts[2]


def test_finished_runs_are_not_run_again(tmp_path):
    drawn = []

    def counting(*args, **options):
        drawn.append(args)
        return make_ihgmm(*args, **options)

    panel = replace(SMALL.panels[0], sampler=counting)
    counted = replace(SMALL, panels=(panel,))
    first = run_experiment(counted, tmp_path / "runs.csv", reps=2)
    assert len(drawn) == 8
    assert run_experiment(counted, tmp_path / "runs.csv", reps=2) == first
    assert len(drawn) == 8


def writing(path, seconds):
    """Start a process that writes to a table for some time; return it at work."""
    code = (
        "import sys, time; from pathlib import Path; "
        "from ihgmm.experiments.runner import sole_writer\n"
        "with sole_writer(Path(sys.argv[1])): print(flush=True); "
        "time.sleep(float(sys.argv[2]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path), str(seconds)], stdout=subprocess.PIPE
    )
    process.stdout.readline()
    return process


def test_one_process_at_a_time_writes_to_a_table(tmp_path):
    path = tmp_path / "runs.csv"
    first = run_experiment(SMALL, path, reps=1)
    text = path.read_text()
    with writing(path, 60) as other:
        message = rf"written by another run \(process {other.pid}\); wait for it to end"
        for table in (
            lambda: run_experiment(SMALL, path, reps=2),
            lambda: real_data_table(path, only=["iris"]),
        ):
            with pytest.raises(BlockingIOError, match=message):
                table()
        assert path.read_text() == text
        # Other tables of the folder are not concerned.
        assert run_experiment(SMALL, tmp_path / "more.csv", reps=1) == first
        other.kill()  # whoever is killed holds up nobody
    assert len(run_experiment(SMALL, path, reps=2)) == 2 * len(first)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["more.csv", "runs.csv"]


def test_processes_that_take_turns(tmp_path):
    # Each removes the lock when it is done, while others may just have opened it.
    path = tmp_path / "runs.csv"
    code = """
import sys, time
from pathlib import Path
from ihgmm.experiments.runner import sole_writer
path, turns = Path(sys.argv[1]), 0
while turns < 200:
    try:
        with sole_writer(path):
            count = int(path.read_text() or 0)
            path.write_text(str(count + 1))
            turns += 1
    except BlockingIOError:
        pass
"""
    path.write_text("0")
    workers = [
        subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(2)
    ]
    assert [worker.wait(timeout=120) for worker in workers] == [0, 0]
    assert path.read_text() == "400"


def test_a_table_that_cannot_be_locked(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.warns(
        UserWarning, match="cannot be locked here .* no other run"
    ) as seen:
        run_experiment(SMALL, tmp_path / "runs.csv", reps=1)
    assert seen[0].filename == __file__


@pytest.mark.parametrize("cut", [1, 20, 90, 200])
def test_unfinished_ends_are_repaired(tmp_path, cut):
    path = tmp_path / "runs.csv"
    whole = run_experiment(SMALL, path, reps=2)
    text = path.read_text()
    path.write_text(text[:-cut])
    assert run_experiment(SMALL, path, reps=2) == whole
    assert sorted(path.read_text().splitlines()) == sorted(text.splitlines())


def test_foreign_files_are_left_alone(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"not a table of runs: its columns are a, b"):
        run_experiment(SMALL, path, reps=1)
    assert path.read_text() == "a,b\n1,2\n"


def test_summary():
    rows = [
        Result("e", "p", 1.0, "gaussian", rep, "IhSC", 10, errors)
        for rep, errors in enumerate([0, 0, 5, 1])
    ]
    (summary,) = summarize(rows)
    assert summary.reps == 4
    assert summary.rate == pytest.approx(0.15)
    assert summary.exact_share == 0.5


def test_phase_varies_one_thing_at_a_time():
    settings = PHASE.settings()
    assert len({s.key for s in settings}) == len(settings) == 2 * 10 * 33
    assert settings[0].key == "phase/p=50/0.05/gaussian"
    assert PHASE.panels == tuple(p for m in PHASE.maps for p in m.panels)
    assert set(PHASE.methods) <= set(METHODS)
    base = {"n_samples": 200, "n_features": 500, "n_clusters": 4, "scale_ratio": 5}
    for panel in PHASE.panels:
        assert panel.values[0] == 0.05
        assert panel.values[-1] == 3
        differ = [k for k, v in panel.fixed.items() if base.get(k) != v]
        assert len(differ) <= 1, panel.name
    rows = {m.name: [p.title for p in m.panels] for m in PHASE.maps}
    assert rows["K"] == ["2", "3", "4", "6", "8", "12"]
    assert rows["cosine"] == ["0", "0.3", "0.6", "0.9"]
    for s in settings:  # every one can be sampled, with the separation it says
        small = {**s.options, "n_samples": 30, "n_features": 20}
        sample = s.sampler(**small, noise=s.noise, random_state=0, return_params=True)
        expected = default_separation(30, 20, len(sample.centers), s.x)
        assert sample.separation == pytest.approx(expected)
    assert STUDIES == {**EXPERIMENTS, "phase": PHASE}


@pytest.mark.parametrize("cosine", [0.0, 0.3, 0.9])
def test_correlated_centres(cosine):
    sample = correlated_sample(
        40, 30, 5, cosine=cosine, separation_constant=0.7, random_state=3,
        return_params=True,
    )  # fmt: skip
    units = sample.centers / np.linalg.norm(sample.centers, axis=1, keepdims=True)
    cosines = (units @ units.T)[~np.eye(5, dtype=bool)]
    np.testing.assert_allclose(cosines, cosine, atol=1e-12)
    differences = sample.centers[:, None] - sample.centers
    distances = np.linalg.norm(differences, axis=2)[~np.eye(5, dtype=bool)]
    np.testing.assert_allclose(distances, default_separation(40, 30, 5, 0.7))
    X, labels = correlated_sample(
        40, 30, 5, cosine=cosine, separation_constant=0.7, random_state=3
    )
    np.testing.assert_array_equal(X, sample.X)
    np.testing.assert_array_equal(labels, sample.labels)


@pytest.mark.parametrize("cosine", [-0.1, 1.0])
def test_impossible_cosines(cosine):
    message = rf"cosine={cosine} is out of range; give at least 0 and at most 0\.99"
    with pytest.raises(ValueError, match=message):
        correlated_sample(40, 30, 3, cosine=cosine, separation_constant=1.0)


def naive_label_oracle(sample, i):
    """Place row i with nothing but the other rows and their labels."""
    others = np.arange(len(sample.X)) != i
    X, labels = sample.X[others], sample.labels[others]
    norms = np.linalg.norm(X, axis=1)
    weights = 1 / norms
    for _ in range(5):
        cosines = np.empty(len(X))
        for j in range(len(X)):
            rows = (labels == labels[j]) & (np.arange(len(X)) != j)
            center = weights[rows] @ X[rows]
            cosines[j] = X[j] @ center / (np.linalg.norm(center) * norms[j])
        cosines = np.maximum(cosines, 0)
        weights = cosines * norms / ((1 - cosines**2) * norms**2)
    centers = [weights[labels == c] @ X[labels == c] for c in range(labels.max() + 1)]
    return np.argmax([sample.X[i] @ c / np.linalg.norm(c) for c in centers])


@pytest.mark.parametrize("seed", range(4))
def test_label_oracle_is_the_naive_one(seed):
    sample = make_ihgmm(
        50, 60, 3, scale_ratio=3.0, separation_constant=0.3, random_state=seed,
        return_params=True,
    )  # fmt: skip
    found = label_oracle(sample)
    assert (found != sample.labels).any()  # or the test would show nothing
    naive = [naive_label_oracle(sample, i) for i in range(len(found))]
    np.testing.assert_array_equal(found, naive)


def test_those_who_know_more_err_less():
    # Sums over draws, near the transition and with unequal noise.
    names = ("centre oracle", "label oracle", "IhSC, refined", "IhGMM", "IhSC")
    errors = dict.fromkeys(names, 0)
    for seed in range(8):
        sample = make_ihgmm(
            150, 400, 3, scale_ratio=5.0, separation_constant=0.3,
            noise_levels=(1 / 3, 3.0), random_state=seed, return_params=True,
        )  # fmt: skip
        for name in names:
            found = METHODS[name](sample, seed)
            errors[name] += misclassification_loss(sample.labels, found)
    assert 0 < errors["centre oracle"] < errors["label oracle"]
    assert errors["label oracle"] < errors["IhSC"]
    assert errors["IhSC, refined"] < errors["IhSC"]
    assert errors["IhGMM"] < errors["IhSC"]


def test_oracles_are_run_like_all_others():
    setting = next(s for s in PHASE.settings() if (s.panel, s.x) == ("K=2", 0.2))
    results = {r.method: r.errors for r in execute(Run(setting, 0))}
    assert tuple(results) == PHASE.methods
    sample = make_ihgmm(
        **setting.options, noise=setting.noise, random_state=Run(setting, 0).seed,
        return_params=True,
    )  # fmt: skip
    for name, oracle in (
        ("label oracle", label_oracle),
        ("centre oracle", center_oracle),
    ):
        assert results[name] == misclassification_loss(sample.labels, oracle(sample))


def test_maps_pool_the_noises():
    one = PHASE.maps[1]
    rows = [
        Summary("phase", "K=3", 0.05, "gaussian", "IhSC", 3, 0.4, 0.0),
        Summary("phase", "K=3", 0.05, "rademacher", "IhSC", 1, 0.8, 1.0),
        Summary("phase", "K=3", 0.05, "gaussian", "IhGMM", 3, 0.9, 0.9),
        Summary("phase", "R=1", 0.05, "gaussian", "IhSC", 3, 0.9, 0.9),
    ]
    errors, shares = grid(one, rows, "IhSC")
    assert errors.shape == shares.shape == (6, 10)
    assert errors[1, 0] == pytest.approx(0.5)
    assert shares[1, 0] == pytest.approx(0.25)
    assert np.isfinite(errors).sum() == np.isfinite(shares).sum() == 1


def test_thresholds_in_units_of_the_papers():
    two, three = PHASE.maps[1].panels[:2]
    found = threshold_constants(three)
    assert found["IhSC"] == 1
    for name, value in thresholds(200, 500, 3).items():
        separation = default_separation(200, 500, 3, found[name])
        np.testing.assert_allclose(separation, value)
    # Drawn as one line, since they are one number.
    pair = threshold_constants(two)
    assert pair["Ndaoud 2022"] == pair["Chen and Yang 2021"]


@pytest.fixture
def reproduce(capsys):
    """Run the command in this process; return its status and what it printed."""

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            app(["reproduce", *map(str, arguments)])
        shown = capsys.readouterr()
        return SimpleNamespace(
            returncode=ended.value.code, stdout=shown.out, stderr=shown.err
        )

    return run


def test_phase_command(tmp_path, reproduce):
    arguments = ["phase", "--quick", "--only", "phase/K=2/0.8", "--jobs", 1]
    done = reproduce(*arguments, "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "label oracle" in done.stdout
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {
        "phase-K.png", "phase-K.pdf", "phase-summary.csv", "phase-runs.csv",
    }  # fmt: skip
    assert (tmp_path / "phase-K.png").read_bytes()[:4] == b"\x89PNG"
    runs = tmp_path / "phase-runs.csv"
    before = runs.read_text()
    assert len(before.splitlines()) == 1 + 2 * len(PHASE.methods)
    runs.write_text(before[:-300])  # as a killed process might leave it
    assert reproduce(*arguments, "-o", tmp_path).returncode == 0
    assert sorted(runs.read_text().splitlines()) == sorted(before.splitlines())


def test_command_survives_kill_9(tmp_path):
    experiment, arguments = EXPERIMENTS["exp1"], ["--reps", "20", "--only", "n=p/1"]
    whole, path = tmp_path / "whole.csv", tmp_path / "exp1-runs.csv"
    results = run_experiment(
        experiment, whole, reps=20, only=lambda s: "n=p/1" in s.key
    )
    command = [COMMAND, "reproduce", "exp1", *arguments, "-o", str(tmp_path), "-q"]
    killed = subprocess.Popen([*command, "--jobs", "2"], start_new_session=True)
    deadline = time.monotonic() + 120
    while not (path.exists() and len(path.read_text().splitlines()) > 40):
        assert time.monotonic() < deadline
        assert killed.poll() is None
        time.sleep(0.02)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    before = len(read_results(path, experiment.methods))
    assert 0 < before < len(results)
    subprocess.run([*command, "--jobs", "1"], check=True, timeout=400)
    lines = [sorted(file.read_text().splitlines()) for file in (path, whole)]
    assert lines[0] == lines[1]
    assert (tmp_path / "exp1.png").read_bytes()[:4] == b"\x89PNG"
    with open(tmp_path / "exp1-summary.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [tuple(row.values()) for row in rows] == [
        (s.experiment, s.panel, "100", s.noise, s.method, "20", f"{s.rate:.6f}",
         f"{s.exact_share:.4f}")
        for s in summarize(results)
    ]  # fmt: skip


def test_ihsc_recovers_clusters_of_unequal_sizes(tmp_path):
    results = run_experiment(
        EXPERIMENTS["exp4"], tmp_path / "runs.csv", reps=2,
        only=lambda s: s.x in (0.2, 0.6, 1.0),
    )  # fmt: skip
    errors = [r.errors for r in results if r.method == "IhSC"]
    assert errors == [0] * 12


def test_interrupt_keeps_what_is_done(tmp_path):
    running = subprocess.Popen(
        [COMMAND, "reproduce", "exp1", "--only", "n=p", "--jobs", "2",
         "-o", str(tmp_path)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
        # Where these tests run in the background, interrupts may be ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    path = tmp_path / "exp1-runs.csv"
    deadline = time.monotonic() + 120
    try:
        while not (path.exists() and len(path.read_text().splitlines()) > 20):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does, workers too
        _, errors = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130
    assert errors.startswith("stopped; what is finished is kept in")
    assert errors.count("\n") == 1
    assert len(read_results(path, EXPERIMENTS["exp1"].methods)) >= 12
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["exp9"], "WHAT='exp9' is not known; give one of exp1, exp2"),
        (["exp1", "--only", "moon"], "--only 'moon' matches nothing in exp1"),
        (["table", "--only", "moon"], "matches no data set; there are iris"),
        (["exp1", "--reps", 0], "--reps 0 is too small"),
        (["exp1", "--jobs", 0], "--jobs 0 is too small"),
    ],
)
def test_wrong_use(tmp_path, reproduce, arguments, message):
    done = reproduce(*arguments, "-o", tmp_path)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


CELLS = [
    Cell("iris", "IhSC", 150, (7, 7, 8), 7),
    Cell("iris", "spherical k-means", 150, (5, 5, 5), None),
]


def test_table_formats():
    assert to_csv(CELLS).splitlines()[:2] == [
        "dataset,n_samples,method,seed,errors,paper",
        "iris,150,IhSC,0,7,7",
    ]
    assert to_markdown(CELLS).splitlines() == [
        "| data | n | IhSC | paper | spherical k-means |",
        "|---|---:|---:|---:|---:|",
        "| iris | 150 | 7 (7-8) | 7 | 5 |",
    ]
    assert r"iris & 150 & 7 (7--8) & 7 & 5 \\" in to_latex(CELLS)


def test_table_of_an_interrupted_run():
    begun = [*CELLS, Cell("wine", "IhSC", 178, (9,), 9)]
    assert to_markdown(begun).splitlines()[2:] == [
        "| iris | 150 | 7 (7-8) | 7 | 5 |",
        "| wine | 178 | 9 | 9 |  |",
    ]


def test_counts_are_kept_and_not_made_again(tmp_path):
    path, seen = tmp_path / "table.csv", []
    first = real_data_table(path, seeds=1, only=["iris"])
    path.write_text(path.read_text().replace("IhSC,0,7,", "IhSC,0,70,"))
    both = real_data_table(
        path, seeds=1, only=["wine"], progress=lambda *done: seen.append(done)
    )
    assert both[0].counts == (70,)
    assert both[1:4] == first[1:]
    assert [cell.dataset for cell in both[4:]] == ["wine"] * 4
    assert seen == [(i, 4) for i in range(5)]
    assert list(tmp_path.iterdir()) == [path]


def test_iris_has_the_papers_counts():
    cells = {c.method: c for c in real_data_table(seeds=10, only=["iris"])}
    assert cells["IhSC"].median == 7
    assert set(cells["PSC"].counts) == set(cells["k-means"].counts) == {16}


@needs_data
def test_table_agrees_with_the_paper():
    # IhSC within 1% of n of the paper's count on every data set.
    names = ["wine", "seeds", "dermatology", "dna", "segment", "satimage"]
    cells = real_data_table(seeds=5, data_home=DATA, only=names)
    table = {(c.dataset, c.method): c for c in cells}
    for name in names:
        cell = table[name, "IhSC"]
        assert abs(cell.median - PAPER_COUNTS[name]["IhSC"]) <= 0.01 * cell.n_samples
    assert table["seeds", "PSC"].median == 16
    assert table["seeds", "k-means"].median == 17


def test_table_command(tmp_path, reproduce):
    done = reproduce("table", "--quick", "--only", "iris", "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    row = r"\| iris \| 150 \| [78]( .7-8.)? \| 7 \| 16 \| 16 \| 16 \| 16 \|"
    assert re.search(row, done.stdout)
    for suffix in ("csv", "md", "tex"):
        assert (tmp_path / f"table.{suffix}").stat().st_size > 100
