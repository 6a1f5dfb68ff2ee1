"""The command line, run as a user runs it: real files, the real commands."""

import contextlib
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from command_line import clusters, document, fail, good, invoke, read, write
from nested_rows import nested
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from ihgmm import IhSC, make_ihgmm, select_n_clusters
from ihgmm.cli.commands import COMMANDS
from ihgmm.storage import save_model

COMMAND = shutil.which("ihgmm", path=str(Path(sys.executable).parent)) or "ihgmm"


def test_main_command():
    command = [COMMAND, "fit", "iris", "-k", "3"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120)

    assert process.returncode == 0, process.stderr
    assert process.stderr == ""

    for words in (
        "150 rows, 4 features, 3 clusters",
        "size        scales  certainty",
        "0        petal length (cm)",
        "Mostly reliable. Refitting on other rows keeps 99",
        "of the labels; on real data that looked as clear, ",
        "(3 classes): 4 of 150 rows differ (2.7%), adjusted Rand index 0.92; "
        "with k-means 16 (10.7%), 0.73\n",
        "labels were not saved; add -o labels.csv",
    ):
        assert words in process.stdout

    assert len(process.stdout.splitlines()) <= 20


def test_of_one_cluster_there_is_nothing_to_compare_or_to_be_sure_of():
    text = good("fit", "iris", "-k", "1")

    assert "One cluster: nothing to separate." in text
    assert "known labels" not in text
    assert "100%" not in text


def test_count():
    text = good("fit", "demo", "-k", "auto", "--explain")

    assert "600 rows, 200 features, 4 clusters" in text
    assert "4 clusters, with high confidence: " in text
    assert "0 of 600 rows differ" in text

    # Words are explained once.
    words = ("  size:", "certainty:", "mean:", "keeps:", "as clear:")

    assert all(text.count(word) == 1 for word in words)


@pytest.mark.parametrize("columns", ["auto", "counts", "noise"])
def test_scales_of_predict_are_those_of_the_fit(folder, columns):
    rng = np.random.default_rng(0)
    rates = rng.gamma(0.5, size=(2, 60))[np.arange(80) % 2]
    X = rng.poisson(rng.lognormal(1, 1, (80, 1)) * rates).astype(float)
    np.save("counts.npy", X)
    weights = (np.arange(80) < 70).astype(float)
    model = IhSC(2, columns=columns, random_state=0).fit(X, sample_weight=weights)
    save_model(model, "m.npz")
    good("predict", "m.npz", "counts.npy", "-o", "out.csv")
    for name, fitted_values in (("scale", model.scales_), ("size", model.sizes_)):
        predicted_values = np.array([float(row[name]) for row in read("out.csv")])
        np.testing.assert_allclose(predicted_values[70:], fitted_values[70:], rtol=1e-4)
        # The fit leaves a row of its own out of the centre that it compares it with.
        ratios = predicted_values / fitted_values
        assert np.median(np.abs(ratios - 1)) < 0.01


def test_output_is_whole_or_not_at_all(folder, sample):
    write("a.csv", *sample)
    content = Path("a.csv").read_bytes()
    for option in ("-o", "--save"):
        assert "is also an input file" in fail("fit", "a.csv", "-k", 3, option, "a.csv")

    assert Path("a.csv").read_bytes() == content

    Path("old.csv").write_text("kept")
    fail("fit", "a.csv", "-k", 500, "-o", "old.csv", "--save", "m.npz")

    assert Path("old.csv").read_text() == "kept"
    assert "there is no folder" in fail("fit", "a.csv", "-k", 3, "-o", "no/x.csv")

    message = fail("fit", "a.csv", "-k", 3, "-o", "x.csv", "--save", folder / "x.csv")

    assert "or another output; give another name" in message
    assert "ends in .csv or .tsv" in fail("fit", "a.csv", "-k", 3, "-o", "x.png")
    assert "is a folder" in fail("fit", "a.csv", "-k", 3, "--save", "..")

    message = fail("fit", "a.csv", "-k", 3, "--save", os.devnull)

    assert f"--save {os.devnull} is a device" in message
    assert sorted(path.name for path in folder.iterdir()) == ["a.csv", "old.csv"]


NOWHERE = ["fit", "nowhere.csv", "-k", 2]
SPHERICAL = ["--method", "SphericalKMeans"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (NOWHERE, "no such file, nor a built-in data set (iris"),
        (["fit", ".", "-k", 2], ": a folder; give one of .csv"),
        (["fit", "iris", "-k", 0], "-k 0 is out of range"),
        (["fit", "iris", "-k", 151], "-k 151 is more than the number of rows, 150"),
        (["fit", "iris", "-k", "three"], "-k three: Give the number of clusters"),
        (["fit", "iris"], "such as -k 5, or -k auto"),
        (
            ["fit", "iris", "-k", "auto", "--method", "SphericalKMeans"],
            "-k auto: SphericalKMeans does not count clusters; ihgmm choose-k does",
        ),
        (["fit", "iris", "-k", 3, "--columns-as", "soap"], "--columns-as soap is not"),
        (
            ["fit", "iris", "-k", 3, "--method", "IhGMM", "--columns-as", "counts"],
            "--columns-as: IhGMM has no such option",
        ),
        (["fit", "iris", "-k", 3, "--signed", "--paper"], "leave one out"),
        (["choose-k", "iris", "--columns-as", "soap"], "--columns-as soap is not"),
        (["fit", "iris", "-k", 3, "--prepare", "log"], "--prepare log is not known"),
        (["fit", "iris", "-k", 3, "--id-column", "x"], "features, iris has no such"),
        (["fit", "iris", "-k", 3, "--columns", "x"], "such column; it has 'sepal le"),
        (["explode"], "No such command"),
        ([*NOWHERE, "--method", "kmeans"], "--method kmeans: give one of IhSC, IhGMM"),
        (
            [*NOWHERE, *SPHERICAL, "--signed"],
            "--signed: SphericalKMeans has no such opt",
        ),
        (
            [*NOWHERE, *SPHERICAL, "--outliers", "auto"],
            "--outliers: SphericalKMeans has",
        ),
        ([*NOWHERE, "--method", "IhGMM", "--paper"], "--paper: IhGMM has no such opt"),
        (["choose-k", "iris", "--plot", "a.txt"], "ends in .png or .pdf or .svg"),
        (["choose-k", "iris", "--method", "magic"], "No such option: --method"),
        (["predict", "no.npz", "iris"], "no.npz: no such file; ihgmm fit --save"),
        (["fit", "iris", "-k", 3, "--save", "-"], "--save -: this cannot go to stand"),
        (["reproduce", "exp1", "-o", "-"], "-o - is no folder; give the name of one"),
    ],
)
def test_wrong_use(folder, arguments, message):
    assert message in fail(*arguments)
    assert list(folder.iterdir()) == []


def test_predict_finds_columns_by_name(sample):
    X, labels = sample
    write("a.csv", X, labels)
    good("fit", "a.csv", "-k", 3, "--prepare", "standardize", "--save", "model.npz")
    table = pd.read_csv("a.csv")
    table[table.columns[::-1]].to_parquet("new.parquet")
    # Of fewer rows: what was learnt at the fit is applied, not learnt again.
    table[:7].to_csv("few.csv", index=False)
    np.save("few.npy", X[:7])
    X_standardized = StandardScaler().fit_transform(X)
    model = IhSC(3, random_state=0).fit(X_standardized)
    expected = model.predict(X_standardized).tolist()
    for name, n in (("new.parquet", 120), ("few.csv", 7), ("few.npy", 7)):
        text = good("predict", "model.npz", name, "-o", "out.csv")
        assert f"{n} rows labelled by model.npz (IhSC)" in text
        assert [*map(int, clusters("out.csv"))] == expected[:n]


def test_predict_says_what_does_not_fit(sample):
    X, labels = sample
    write("a.csv", X, labels)
    good("fit", "a.csv", "-k", 3, "--save", "model.npz", "--quiet")
    table = pd.read_csv("a.csv")
    table.drop(columns=["f3", "f5"]).to_csv("less.csv", index=False)
    table.assign(f3="text").to_csv("text.csv", index=False)
    np.save("narrow.npy", X[:, :5])
    for data, message in (
        ("less.csv", "lacks 2 of the 12 columns that the model was fitted on: 'f3', '"),
        ("text.csv", "column 'f3' cannot be used: text"),
        ("narrow.npy", "has 5 columns of numbers and model.npz was fitted on 12"),
        ("iris", "iris lacks 12 of the 12 columns"),
    ):
        assert message in fail("predict", "model.npz", data)

    table[:2] = 0
    table.to_csv("zero.csv", index=False)
    warning = invoke("predict", "model.npz", "zero.csv", "-q").stderr
    start = "warning: 2 of 120 rows, the first is line 2, have nothing but zeros, or"

    assert warning.startswith(start)

    assert "it is a saved model; give the" in fail("choose-k", "model.npz")

    Path("cut.npz").write_bytes(Path("model.npz").read_bytes()[:999])

    assert "no model, or only a part" in fail("predict", "cut.npz", "a.csv")

    message = fail("predict", "model.npz", "a.csv", "-o", "a.csv")

    assert "is also an input file" in message


EVIDENCE_HEAD = ["inside", "by chance", "silhouette", "score", "lead"]


def evidence(text):
    """Return the cells of the table of numbers of clusters, by the number."""
    lines = iter(text.splitlines())
    head = next(line for line in lines if line.startswith("clusters"))

    assert re.split("  +", head.strip()) == ["clusters", *EVIDENCE_HEAD]

    rows = itertools.takewhile(lambda line: line[:1].isdigit(), lines)
    return {int(row.split()[0]): row.split()[1:] for row in rows}


def test_choose_k(folder):
    text = good("choose-k", "demo", "--plot", "a.png", "--explain")

    assert "600 rows, 200 features: 4 clusters" in text
    assert "4 clusters, with high confidence: " in text

    X, _ = make_ihgmm(600, 200, 4, scale_ratio=20.0, random_state=0)
    count = select_n_clusters(X, random_state=0)
    table = evidence(text)

    assert list(table) == [one.n_clusters for one in count.evidence]
    assert [k for k, cells in table.items() if cells[-1] == "best"] == [4]
    assert not any("yes" in cells for cells in table.values())

    for one in count.evidence:
        cells = [one.links_inside, one.links_by_chance, one.silhouette, one.score]
        lead = count.clouds.leads.get(one.n_clusters)
        if lead is not None:
            cells.append(lead)
        shown = table[one.n_clusters][: len(cells)]
        assert shown == [f"{cell:.2f}" for cell in cells]

    for word in EVIDENCE_HEAD:
        assert text.count(f"  {word}: ") == 1

    assert "what the words mean: --explain" not in text
    assert "picture written to a.png" in text
    assert Path("a.png").read_bytes()[:4] == b"\x89PNG"


def test_choose_k_explains_words_if_asked_to(folder):
    text = good("choose-k", "iris")

    assert evidence(text)
    assert "what the words mean: --explain" in text
    assert not any(f"  {word}: " in text for word in EVIDENCE_HEAD)
    assert list(folder.iterdir()) == []


def test_choose_k_of_few_rows_has_no_table(folder):
    write("few.csv", np.random.default_rng(0).uniform(size=(12, 5)), None)
    text = good("choose-k", "few.csv")

    assert "12 rows, 5 features: 1 cluster" in text
    assert "One cluster: there are too few rows to look for several." in text
    assert not any(line.startswith("clusters") for line in text.splitlines())
    assert document("choose-k", "few.csv")["evidence"] == []

    message = fail("choose-k", "few.csv", "--plot", "a.png")

    assert "This count tried no number of clusters beyond one" in message
    assert not Path("a.png").exists()


def test_choose_k_in_json(folder):
    wine = ["choose-k", "wine", "--prepare", "standardize"]
    summary = document(*wine, "--plot", "a.svg")
    X = StandardScaler().fit_transform(load_wine().data)
    expected = select_n_clusters(X, random_state=0)
    result = invoke(*wine, "-q")

    assert result.stdout == f"{expected.n_clusters}\n"
    assert result.stderr.startswith("warning: perhaps ") == expected.is_doubtful
    assert summary["n_clusters"] == expected.n_clusters
    assert summary["confidence"] == expected.confidence.value
    assert summary["plausible"] == list(expected.plausible)
    assert summary["lead"] == pytest.approx(expected.lead)
    assert summary["summary"] == str(expected)

    leads = {str(k): lead for k, lead in expected.clouds.leads.items()}

    assert summary["clouds"] == pytest.approx(leads)
    assert len(summary["evidence"]) == len(expected.evidence)

    for one, other in zip(summary["evidence"], expected.evidence, strict=True):
        assert one == pytest.approx(asdict(other) | {"score": other.score})

    assert summary["plot_file"] == "a.svg"
    assert Path("a.svg").read_text().startswith("<?xml")


def test_a_doubtful_number_is_said_where_little_is(folder):
    X, *_ = nested(0, types=2, kinds=4)
    np.save("nested.npy", X)
    expected = document("choose-k", "nested.npy")

    assert expected["confidence"] == "low"
    assert {*expected["plausible"]} == {2, 8}

    result = invoke("choose-k", "nested.npy", "-q")
    k, other = expected["plausible"]

    assert result.stdout == f"{k}\n"
    assert result.stderr.startswith(f"warning: perhaps {k} clusters, or {other}. ")

    text = good("choose-k", "nested.npy")
    table = evidence(text)

    assert f"450 rows, 100 features: perhaps {k} clusters, or {other}" in text
    assert [table[k][-1], table[other][-1]] == ["best", "yes"]


def test_labels_of_noise_are_told_also_where_little_is():
    np.save("noise.npy", np.random.default_rng(0).normal(size=(80, 20)))
    result = invoke("fit", "noise.npy", "-k", 3, "--json", "-q")

    assert result.exit_code == 0
    assert "No separation: do not trust these labels" in result.stderr
    assert json.loads(result.stdout)["verdict"].startswith("no separation")


def test_help_lists_commands_and_exit_codes(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    text = good("--help")

    assert "130 interrupted" in " ".join(text.split())

    for name, summary in COMMANDS.items():
        assert f"│ {name} {summary}" in " ".join(text.split())

    assert good("--version").startswith("ihgmm ")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "160")
    text = good(command, "--help")
    for words in (COMMANDS[command], f"{command} [OPTIONS]", "Examples", "--json"):
        assert words in text

    assert text.lower().count("bool") <= 1  # flags have no type, but for typer's --help


def test_without_what_the_command_line_needs():
    code = (
        "import sys, ihgmm.cli\n"
        "for package in ('typer', 'rich'):\n"
        "    sys.modules[package] = None\n"
        "    try: ihgmm.cli.main()\n"
        "    except SystemExit as end: print(end)\n"
        "    del sys.modules[package]"
    )
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, capture_output=True, text=True)
    message = "The command line needs packages: pip install 'ihgmm[cli]'\n"

    assert process.stdout == 2 * message, process.stderr


def test_failures_of_the_work_end_with_1(monkeypatch):
    matrix = sp.csr_array((np.ones(8), np.arange(8), np.arange(9)), shape=(8, 10**13))
    sp.save_npz("wide.npz", matrix)
    options = ("--prepare", "none", "--memory", 10**6)
    message = fail("fit", "wide.npz", "-k", 3, *options, code=1)

    assert "not enough memory: Unable to allocate" in message

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    message = fail("choose-k", "iris", "--plot", "a.png", code=1)

    assert "pip install matplotlib" in message


def test_progress_on_a_terminal_and_interrupt(folder):
    pty = pytest.importorskip("pty", reason="terminals are of POSIX")
    leader, follower = pty.openpty()
    screen = ""
    is_interrupted = False
    with subprocess.Popen(
        [COMMAND, "choose-k", "digits", "--plot", "a.png"],
        stdout=subprocess.DEVNULL, stderr=follower,
        env=dict(os.environ, TERM="xterm-256color"),
    ) as process:  # fmt: skip
        os.close(follower)
        with contextlib.suppress(OSError):  # what Linux says at the end of a terminal
            while chunk := os.read(leader, 65536):
                screen += chunk.decode(errors="replace")
                if not is_interrupted and "counting" in screen:
                    process.send_signal(signal.SIGINT)
                    is_interrupted = True
    os.close(leader)

    assert process.returncode == 130
    assert "reading digits" in screen
    assert "\x1b[33mstopped:" in screen
    assert screen.endswith(" no file was left half written.\r\n")
    assert list(folder.iterdir()) == []


def test_outliers(folder):
    rng = np.random.default_rng(0)
    X = np.outer(rng.uniform(1, 3, 60), np.eye(5)[0]) + 0.1 * rng.normal(size=(60, 5))
    X[30:] = X[30:, ::-1]
    X[:3] = 50 * rng.normal(size=(3, 5))
    write("rows.csv", X, None)
    arguments = ["rows.csv", "-k", 2, "--outliers", "auto"]
    summary = document("fit", *arguments, "-o", "labels.csv", "--save", "model.npz")

    assert summary["clusters"][-1]["cluster"] == -1
    assert summary["clusters"][-1]["rows"] == 3

    assert [k == "-1" for k in clusters("labels.csv")] == [i < 3 for i in range(60)]

    scores = [float(row["outlier_score"]) for row in read("labels.csv")]

    assert min(scores[:3]) > max(scores[3:])

    good("predict", "model.npz", "rows.csv", "-o", "again.csv")

    assert clusters("again.csv") == clusters("labels.csv")

    predicted_scores = [float(row["outlier_score"]) for row in read("again.csv")]

    np.testing.assert_allclose(predicted_scores, scores, rtol=1e-4)
    assert "1.5%" not in good("fit", "rows.csv", "-k", 2)

    for kind in ("auto", "cells"):
        text = good("fit", "demo", "-k", 4, "--outliers", kind)
        assert "No outliers were found." in text
    for value in ("0.7", "many"):
        message = fail("fit", "rows.csv", "-k", 2, f"--outliers={value}")
        assert f"--outliers {value}" in message
        assert "give 'auto', 'cells' or a number above 0 and at most 0.5." in message


def test_wild_cells(folder):
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 3, (80, 1)) * rng.gamma(1, 3, (2, 12))[np.arange(80) % 2]
    X += 0.1 * rng.normal(size=X.shape)
    X[3, 4] = 500
    X[7, 1] = -300
    write("rows.csv", X, None)
    arguments = ["rows.csv", "-k", 2, "--outliers", "cells"]
    summary = document("fit", *arguments, "-o", "labels.csv", "--save", "model.npz")

    assert [cell[1] for cell in summary["outlier_cells"]] == ["f4", "f1"]

    rows = read("labels.csv")

    assert [i for i in range(80) if float(rows[i]["filled"])] == [3, 7]
    assert "outlier_score" not in rows[0]
    assert "Treated 2 wild cells (0.2%) as missing" in good("fit", *arguments)

    good("predict", "model.npz", "rows.csv", "-o", "again.csv")

    assert clusters("again.csv") == clusters("labels.csv")

    # A wild cell has no say in whether columns are alike.
    X = rng.uniform(1, 3, (80, 1)) * rng.uniform(2, 4, (2, 12))[np.arange(80) % 2]
    X[3, 4] = 500
    write("rows.csv", X + 0.1 * rng.normal(size=X.shape), None)

    assert "by the deviation" in good("fit", *arguments[:3])

    text = good("fit", *arguments)

    assert "Treated 1 wild cell" in text
    assert "by the deviation" not in text


def test_messages_of_the_package_name_options_as_the_shell_has_them():
    rng = np.random.default_rng(0)
    lines = rng.choice([-1, 1], (200, 1)) * np.eye(8)[np.arange(200) % 4]
    np.save("lines.npy", lines + 0.05 * rng.normal(size=(200, 8)))

    assert "use --signed." in invoke("fit", "lines.npy", "-k", 4).stderr

    message = fail("fit", "lines.npy", "-k", 4, "--signed", "--paper")

    assert "cannot be combined with --signed; leave one out" in message

    with pytest.raises(ValueError, match="combined with signed=True; leave one out"):
        IhSC(4, signed=True, recipe="paper").fit(lines)


def test_a_doubtful_number_comes_with_the_command_that_shows_why(folder):
    X, *_ = nested(0, types=2, kinds=4)
    write("a b.csv", np.insert(X, [1, 1], 100.0, axis=1), None)
    options = ("--drop-columns", "f1", "--drop-columns", "f2", "--prepare", "none")
    options += ("--columns-as", "given")
    text = invoke("fit", "a b.csv", "-k", "auto", *options).stdout
    command = text.partition("evidence for each number: ihgmm ")[2].splitlines()[0]
    flags = "--drop-columns f1 --drop-columns f2 --prepare none --columns-as given"

    assert command == f"choose-k 'a b.csv' {flags}"

    good(*shlex.split(command))
