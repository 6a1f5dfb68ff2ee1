"""The command line, run as a user runs it: real files, the real commands."""

import ast
import contextlib
import csv
import errno
import gzip
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from ihgmm import IhGMM, IhSC, SphericalKMeans, make_ihgmm, select_n_clusters
from ihgmm.cli import app
from ihgmm.cli.commands import COMMANDS
from ihgmm.cli.tables.reading import explain_damage
from ihgmm.metrics import exact_recovery
from ihgmm.storage import load_model, save_model

COMMAND = shutil.which("ihgmm", path=str(Path(sys.executable).parent)) or "ihgmm"


def process(*arguments, **options):
    """Run the installed command."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        capture_output=True, text=True, timeout=120, **options,
    )  # fmt: skip


def ihgmm(*arguments):
    """Run the command in this process, which saves two seconds of imports."""
    return CliRunner().invoke(app, [str(a) for a in arguments])


def good(*arguments):
    done = ihgmm(*arguments)
    assert done.exit_code == 0, done.stderr or done.exception
    assert done.stderr == ""
    return done.stdout


def document(*arguments):
    return json.loads(good(*arguments, "--json"))


def fail(*arguments, code=2):
    done = ihgmm(*arguments)
    assert done.exit_code == code
    assert done.stdout == ""
    assert isinstance(done.exception, SystemExit)  # told, not thrown
    return " ".join(done.stderr.split())


@pytest.fixture(scope="module")
def sample():
    X, labels = make_ihgmm(120, 12, 3, random_state=0)
    return np.round(X, 6), labels


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(name, X, labels):
    table = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    if name.endswith(".csv"):
        table.to_csv(name, index=False)
    elif name.endswith(".csv.gz"):
        with gzip.open(name, "wt") as file:
            table.to_csv(file, index=False)
    elif name.endswith(".tsv"):
        table.to_csv(name, index=False, sep="\t")
    elif name.endswith(".parquet"):
        table.to_parquet(name)
    elif name.endswith(".npy"):
        np.save(name, X)
    elif name == "dense.npz":
        np.savez(name, X=X, labels=labels)
    elif name == "sparse.npz":
        sp.save_npz(name, sp.csr_matrix(X))
    else:
        scipy.io.mmwrite(name, sp.coo_matrix(X))


def test_main_command():
    done = process("fit", "iris", "-k", 3)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for words in (
        "150 rows, 4 features, 3 clusters",
        "scale: median",
        "2 of 3 leading eigenvalues are positive: the clusters are told apart by fewer",
        "try --scale-columns.",
        "leading eigenvalues: 9136  263.9",
        "known labels (3 classes): 7 of 150 rows differ (4.7%)",
        "labels were not saved; add -o labels.csv",
    ):
        assert words in done.stdout


@pytest.mark.parametrize(("name", "k"), [("wine", 3), ("digits", 10), ("demo", 4)])
def test_built_in(name, k):
    text = good("fit", name, "-k", k)
    assert f"{k} clusters" in text
    assert "against the known labels" in text


def test_count_and_refine():
    text = good("fit", "demo", "-k", "auto", "--refine")
    assert "600 rows, 200 features, 4 clusters" in text
    assert "4 eigenvalues stand out from sign-flipped data" in text
    assert "0 of 600 rows differ" in text


@pytest.mark.parametrize(
    "name",
    ["a.csv", "a.csv.gz", "a.tsv", "a.parquet", "a.npy", "dense.npz", "sparse.npz",
     "a.mtx"],
)  # fmt: skip
def test_every_format_gives_the_labels(folder, sample, name):
    X, labels = sample
    write(name, X, labels)
    assert "labels written to labels.csv" in good(
        "fit", name, "-k", 3, "-o", "labels.csv"
    )
    rows = read("labels.csv")
    assert list(rows[0]) == ["row", "cluster", "scale"]
    assert [row["row"] for row in rows] == [str(i) for i in range(1, 121)]
    assert exact_recovery(labels, [row["cluster"] for row in rows])
    assert np.mean([float(row["scale"]) for row in rows]) == pytest.approx(1, abs=1e-4)
    assert sorted(p.name for p in folder.iterdir()) == sorted([name, "labels.csv"])


def test_labels_in_an_npz(sample):
    write("dense.npz", *sample)
    text = good("fit", "dense.npz", "-k", 3, "--label-column", "labels")
    assert "0 of 120 rows differ" in text
    message = fail("fit", "dense.npz", "-k", 3, "--label-column", "y")
    assert "has no such array; it has 'X', 'labels'" in message


HOSTILE = [
    '<script>alert(1)</script>"',
    "a,b;c\td",
    "two\nlines\r\n",
    "👩‍🔬 émile",
    "שלום עולם",
    "\u202egnp.exe\u2066",
    "\x1b[31mred\x1b]0;title\x07",
    "[bold]markup[/] {braces} %s",
    "=1+1",
    " 007 ",
    "NA",
    "",
    "x" * 10_000,
]


def test_customers(sample):
    # A header, ids with everything in them, text, known labels, gaps.
    X, labels = sample
    ids = [f"{HOSTILE[i % len(HOSTILE)]}{i:03d}" for i in range(118)] + ["NA", "007"]
    table = pd.DataFrame(X.copy(), columns=[f"gene {i}" for i in range(12)])
    table.insert(0, "barcode", ids)
    table["city"] = "Chongqing"
    table["nothing"] = ""
    table["type"] = np.array(["T", "B", "NK"])[labels]
    table.loc[[4, 9], "gene 3"] = np.nan
    table.to_csv("cells.csv", index=False)
    options = ["cells.csv", "-k", 3, "--id-column", "barcode", "--label-column", "type"]
    message = fail("fit", *options)
    assert "2 of 120 rows have missing cells, all of them in column 'gene 3'" in message
    assert "the first is in row 5" in message
    assert (
        "--drop-missing to leave those rows out, --drop-columns to leave out "
        "'gene 3', or fill them in."
    ) in message
    done = ihgmm("fit", *options, "--drop-missing", "-o", "out.tsv")
    assert done.exit_code == 0
    assert "9 cells of column 'barcode' in out.tsv begin like a formula" in done.stderr
    text = done.stdout
    assert "Left out column 'city': it does not hold numbers but text such as" in text
    assert "Left out column 'nothing': it is empty." in text
    assert "Left out 2 rows with missing cells" in text
    assert "0 of 118 rows differ" in text
    with open("out.tsv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    assert rows[0] == ["barcode", "cluster", "scale"]
    assert [row[0] for row in rows[1:]] == [
        x for i, x in enumerate(ids) if i not in (4, 9)
    ]
    text = good("fit", *options, "--drop-columns", "gene 3")
    assert "120 rows, 11 features" in text


def test_names_cannot_steer_the_terminal(sample):
    names = [f"{name}{i}" for i, name in enumerate(HOSTILE[:12])]
    table = pd.DataFrame(sample[0], columns=names)
    table["\x1b[2J" + "y" * 10_000] = "\x1b[2Jtext\u202e"
    table["kind"] = np.resize(["\x1b[2J\u202eA", "B\nC", "z" * 10_000], 120)
    table.to_csv("a.csv", index=False)
    for command in (
        ["fit", "a.csv", "-k", 3, "--label-column", "kind"],
        ["choose-k", "a.csv"],
        ["test-scales", "a.csv", "--label-column", "kind"],
    ):
        text = good(*command)
        assert all(c.isprintable() or c in "\n\u200d" for c in text)
        assert max(map(len, text.splitlines())) < 500
    assert "\\x1b[2J\\u202eA" in text
    assert "B\\nC" in text
    assert "zzz…" in text
    message = fail("fit", "a.csv", "-k", 3, "--id-column", "\x1b[31m")
    assert message.isprintable()
    # In JSON and in the model they are what they are.
    document("fit", "a.csv", "-k", 3, "--save", "model.npz")
    assert list(load_model("model.npz").feature_names_in_) == names


def test_what_looks_like_ids_is_not_clustered_by(sample):
    table = pd.DataFrame(sample[0], columns=[f"f{i}" for i in range(12)])
    table.insert(0, "customer_id", np.arange(120) + 9_000_000_000_000_000_000)
    table["name"] = [f"customer {i}" for i in range(120)]
    table.to_csv("a.csv", index=False)
    text = good("fit", "a.csv", "-k", 3)
    assert "120 rows, 12 features" in text
    assert "column 'customer_id': it looks like ids: whole numbers, no two" in text
    assert "If it names the rows, add --id-column 'name'." in text
    for column in ("customer_id", "name"):  # one is enough
        text = good("fit", "a.csv", "-k", 3, "--id-column", column)
        assert "Left out column" in text
        assert "--id-column" not in text
    columns = ["--columns", "customer_id,f1", "--columns", "f2"]
    assert "120 rows, 3 features" in good("fit", "a.csv", "-k", 3, *columns)
    assert "column 'name' does not hold numbers" in fail(
        "fit", "a.csv", "-k", 3, "--columns", "f1,name"
    )
    table.rename(columns={"customer_id": "acid", "f1": "a,b"}).to_csv("b.csv")
    text = good("fit", "b.csv", "-k", 3)  # with the numbers that pandas writes
    assert "120 rows, 13 features" in text
    assert "Left out column ''" in text
    assert "2 features" in good("fit", "b.csv", "-k", 2, "--columns", '"a,b",f2')


def test_semicolons_commas_and_bad_cells(sample):
    names = [f"f{i}" for i in range(12)]
    table = pd.DataFrame(sample[0], columns=names).astype(object)
    table.loc[7, "f3"] = "oops"
    table.to_csv("a.csv", index=False, sep=";")
    text = good("fit", "a.csv", "-k", 3)
    assert "Used 11 columns: 'f0', 'f1', 'f2', 'f4'" in text
    assert (
        "'f3': it has 1 of 120 cells that are not numbers, the first is 'oops' in row 8"
        in text
    )
    pd.DataFrame(*sample[:1]).to_csv("b.csv", index=False, sep=";", decimal=",")
    assert "12 features" in good("fit", "b.csv", "-k", 3)
    table.loc[7, "f3"] = "?"
    table.to_csv("c.csv", index=False)
    assert "column 'f3'; the first is in row 8" in fail("fit", "c.csv", "-k", 3)


def test_files_of_old_spreadsheets(sample):
    table = pd.DataFrame(sample[0], columns=[f"größe {i}" for i in range(12)])
    table["name"] = [f"José {i}" for i in range(120)]
    table.to_csv("a.csv", index=False, encoding="cp1252")
    text = good("fit", "a.csv", "-k", 3, "--id-column", "name", "-o", "b.csv")
    assert "read as Windows-1252" in text
    assert "'größe 0'" in text
    assert read("b.csv")[3]["name"] == "José 3"
    table.to_csv("c.csv", index=False, encoding="utf-16")
    assert "stored as UTF-16; save it as UTF-8" in fail("fit", "c.csv", "-k", 3)
    table.to_csv("d.csv", index=False, encoding="utf-8-sig")
    assert "Used 12 columns: 'größe 0'" in good("fit", "d.csv", "-k", 3)


def test_file_without_header(sample):
    np.savetxt("plain.csv", sample[0], delimiter=",")
    assert "120 rows, 12 features" in good("fit", "plain.csv", "-k", 3)


def test_standardize_is_the_z_score():
    found = document("fit", "wine", "-k", 3, "--standardize")
    assert found["known_labels"]["misplaced"] <= 10  # the paper has 9; else many more


def test_scaled_columns_keep_the_patterns():
    # Customers of very different sizes, columns in very different units.
    rng = np.random.default_rng(0)
    kinds = np.repeat([0, 1, 2], 60)
    X = 10 ** rng.uniform(0, 2, (180, 1)) * rng.exponential(1, (3, 8))[kinds]
    X = (X + rng.normal(0, 0.01, X.shape)) * 10.0 ** np.arange(8)
    table = pd.DataFrame(X, columns=[f"f{i}" for i in range(8)]).assign(kind=kinds)
    table.to_csv("a.csv", index=False)
    options = ["a.csv", "-k", 3, "--label-column", "kind"]
    for option in ("--gram=hollow", "--standardize"):  # as they are, and z-scores
        done = ihgmm("fit", *options, option, "--json")
        assert json.loads(done.stdout)["known_labels"]["misplaced"] > 10
    found = document("fit", *options, "--scale-columns", "--save", "model.npz")
    assert found["known_labels"]["misplaced"] == 0
    assert found["columns_scaled"]
    assert not found["standardized"]
    assert "Divided every column by its deviation." in found["notes"]
    again = document("predict", "model.npz", "a.csv", "--label-column", "kind")
    assert again["known_labels"]["misplaced"] == 0
    centers = load_model("model.npz")[-1].cluster_centers_
    expected = IhSC(3, random_state=0).fit(X / X.std(axis=0)).cluster_centers_
    np.testing.assert_allclose(centers, expected, rtol=1e-6)
    for command in (["choose-k"], ["test-scales"], ["bench", "--repeats", 1]):
        found = document(*command, "a.csv", "--label-column", "kind", "--scale-columns")
        assert "Divided every column by its deviation." in found["notes"]


def test_sparse_columns_can_be_scaled(sample):
    X, labels = sample
    units = X * 10.0 ** np.arange(12)
    write("sparse.npz", units, labels)
    found = good("fit", "sparse.npz", "-k", 3, "--scale-columns", "--save", "m.npz")
    assert "Divided every column" in found
    model = load_model("m.npz")
    expected = IhSC(3, random_state=0).fit(units / units.std(axis=0))
    assert exact_recovery(model[-1].labels_, expected.labels_)
    good("predict", "m.npz", "sparse.npz", "-o", "out.csv")
    clusters = [int(row["cluster"]) for row in read("out.csv")]
    assert clusters == list(expected.predict(units / units.std(axis=0)))
    assert exact_recovery(labels, clusters)


@pytest.mark.parametrize(
    "command", ["fit", "report", "choose-k", "test-scales", "bench"]
)
def test_scaling_is_one_or_the_other(folder, command):
    options = {"fit": ["-k", 3], "report": ["-k", 3, "-o", "r.html"]}.get(command, [])
    both = ["--standardize", "--scale-columns"]
    message = fail(command, "iris", *options, *both)
    assert "--standardize and --scale-columns exclude each other" in message
    assert list(folder.iterdir()) == []


def test_missing_cells_are_told_where_they_are(sample):
    table = pd.DataFrame(sample[0].copy(), columns=[f"f{i}" for i in range(12)])
    table.to_csv("whole.csv", index=False)
    good("fit", "whole.csv", "-k", 3, "--save", "model.npz")
    table.loc[:4, "f1"] = np.nan
    table.loc[:2, "f2"] = np.nan
    table.to_csv("a.csv", index=False)
    message = fail("fit", "a.csv", "-k", 3)
    assert "5 of 120 rows have missing cells, most of them in column 'f1'" in message
    assert "--drop-columns" not in message  # 'f1' alone would not do
    table.loc[:3, "f3"] = np.nan
    table.to_csv("b.csv", index=False)
    message = fail("fit", "b.csv", "-k", 3)
    assert "the most of them in columns 'f1' (5), 'f3' (4), 'f2' (3);" in message
    assert "--drop-columns to leave out 'f1', 'f3', 'f2', or fill them in" in message
    good("fit", "b.csv", "-k", 3, "--drop-columns", "f1,f3,f2")
    message = fail("predict", "model.npz", "b.csv")
    assert "out, or fill them in." in message
    assert "--drop-columns" not in message  # predict has no such option
    table.loc[:3, "f4"] = np.nan
    table.to_csv("c.csv", index=False)
    message = fail("fit", "c.csv", "-k", 3)
    assert "columns 'f1' (5), 'f3' (4), 'f4' (4); the first" in message
    assert "--drop-columns" not in message
    table["f5"] = [np.nan if i % 2 else 1.0 for i in range(120)]
    table["f6"] = [1.0 if i % 2 else np.nan for i in range(120)]
    table.to_csv("d.csv", index=False)
    message = fail("fit", "d.csv", "-k", 3, "--drop-missing")
    assert message.endswith(
        "every row has a missing cell, the most of them in columns 'f5' (60), "
        "'f6' (60), 'f1' (5). Fill them in."
    )


def test_a_column_that_costs_most_rows_is_named(sample):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(sample[0].copy(), columns=[f"f{i}" for i in range(12)])
    table = table.mask(rng.random(table.shape) < 0.01)
    left = int(table.isna().any(axis=1).sum())
    table["age"] = [np.nan if i % 2 else 30.0 + i for i in range(120)]
    rows = int(table.isna().any(axis=1).sum())
    table.to_csv("a.csv", index=False)
    cure = f"--drop-columns to leave out 'age' (then {left} rows remain incomplete)"
    message = fail("fit", "a.csv", "-k", 3)
    assert f"{rows} of 120 rows have missing cells, most of them in column" in message
    assert f"leave those rows out, {cure}, or fill them in." in message
    # It is said wherever little is said, too.
    what = (
        f"Left out {rows} of 120 rows ({rows / 1.2:.0f}%) with missing cells, most of "
        "them in column 'age'."
    )
    said = f"{what} To keep more rows, add {cure}, or fill them in."
    for command in (
        ["fit", "a.csv", "-k", 3],
        ["fit", "a.csv", "-k", 3, "--quiet"],
        ["choose-k", "a.csv", "--quiet"],
        ["test-scales", "a.csv", "-k", 3, "--json"],
        ["report", "a.csv", "-k", 3, "-o", "r.html"],
    ):
        done = ihgmm(*command, "--drop-missing")
        assert done.exit_code == 0
        assert " ".join(done.stderr.split()) == f"warning: {said}"
    page = Path("r.html").read_text(encoding="utf-8")
    assert what.replace("'age'", "<bdi>'age'</bdi>") in page
    assert "--drop-columns" not in page
    drop = ["--drop-columns", "age", "--drop-missing"]
    text = good("fit", "a.csv", "-k", 3, *drop)  # few rows go
    assert f"Left out {left} rows with missing cells." in text
    # A model has its columns: they can only be filled in.
    table.fillna(1.0).to_csv("whole.csv", index=False)
    good("fit", "whole.csv", "-k", 3, "--save", "model.npz")
    done = ihgmm("predict", "model.npz", "a.csv", "--drop-missing")
    assert done.stderr.endswith("'age'. To keep more rows, fill them in.\n")


def test_thousands_separators_are_named(sample):
    table = pd.DataFrame(sample[0], columns=[f"f{i}" for i in range(12)])
    for i, text in enumerate(["1,{:03d}.50", "1.{:03d},50", "1 {:03d}", "2'{:03d}.5"]):
        table[f"t{i}"] = [text.format(j) for j in range(120)]
    table["few"] = ["7" if i < 90 else "1,234" for i in range(120)]
    table["names"] = [f"c{i},000" for i in range(120)]
    table.to_csv("a.csv", index=False)
    notes = document("fit", "a.csv", "-k", 3)["notes"]
    told = {note.split("'")[1]: note for note in notes if note.startswith("Left out")}
    for name in ("t0", "t1", "t2", "t3", "few"):
        assert told[name].endswith("write them without thousands separators.")
        assert "--id-column" not in told[name]
    assert "such as '1,000.50'" in told["t0"]
    assert "the first is '1,234' in row 91" in told["few"]
    assert "--id-column 'names'" in told["names"]


def test_labels_among_the_features_are_noted(sample):
    X, labels = sample
    table = pd.DataFrame(X, columns=[f"f{i}" for i in range(12)])
    table.assign(true_class=labels, subclass=labels).to_csv("a.csv", index=False)
    note = (
        "Column 'true_class' is used as a feature. If it holds known labels, add "
        "--label-column 'true_class'."
    )
    notes = document("fit", "a.csv", "-k", 3)["notes"]
    assert [n for n in notes if "used as a feature" in n] == [note]
    for options in (["--label-column"], ["--drop-columns"]):
        assert note not in good("fit", "a.csv", "-k", 3, *options, "true_class")


def test_output_is_whole_or_not_at_all(folder, sample):
    write("a.csv", *sample)
    before = Path("a.csv").read_bytes()
    for option in ("-o", "--save"):
        assert "is a file that is read" in fail(
            "fit", "a.csv", "-k", 3, option, "a.csv"
        )
    assert Path("a.csv").read_bytes() == before
    Path("old.csv").write_text("kept")
    fail("fit", "a.csv", "-k", 500, "-o", "old.csv", "--save", "m.npz")
    assert Path("old.csv").read_text() == "kept"
    assert "there is no folder" in fail("fit", "a.csv", "-k", 3, "-o", "no/x.csv")
    assert "ends in .csv or .tsv" in fail("fit", "a.csv", "-k", 3, "-o", "x.png")
    assert "is a folder" in fail("fit", "a.csv", "-k", 3, "--save", "..")
    message = fail("fit", "a.csv", "-k", 3, "--save", os.devnull)
    assert "--save /dev/null is a device" in message
    assert sorted(p.name for p in folder.iterdir()) == ["a.csv", "old.csv"]


BROKEN = {
    "empty.csv": (b"", "empty.csv is empty"),
    "header.csv": (b"a,b\n", "has a header but no rows"),
    "ragged.csv": (b"a,b\n1,2\n3\n", "cannot be read as csv"),
    "text.csv": (b"a,b\nx,y\n", "no numeric columns"),
    "twice.csv": (b"a,a\n1,2\n", "several columns named 'a'"),
    "gap.csv": (b"a,b\n1,\n,2\n", "2 of 2 rows have missing cells"),
    "cut.parquet": (b"PAR1 no", "cannot be read as parquet"),
    "bad.npy": (b"\x93NUMPY nothing", "cannot be read as npy"),
    "bad.npz": (b"PK nothing", "cannot be read as npz"),
    "bad.mtx": (b"%%MatrixMarket nonsense\n", "cannot be read as mtx"),
    "cut.mtx": (
        b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 1 -1.3E",
        "it ends in the middle of a number",
    ),
    "sign.mtx": (
        b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 1 -1.3E-",
        "it ends in the middle of a number",
    ),
    "array.npz": (b"\x93NUMPY\x01\x00", "array.npz cannot be read as npz"),
    "data.xyz": (b"1", "unknown format '.xyz'; give one of .csv"),
    "data.xlsx": (b"PK", "is a spreadsheet; save the sheet with the data as CSV"),
    "binary.csv": (b"\xff\xfe\x00\x01", "cannot be read as csv"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(name):
    content, message = BROKEN[name]
    Path(name).write_bytes(content)
    assert message in fail("fit", name, "-k", 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["fit", "nowhere.csv", "-k", 2],
            "no such file, nor a built-in data set (iris",
        ),
        (["fit", ".", "-k", 2], "is a folder; give one file"),
        (["fit", "iris", "-k", 0], "n_clusters=0 is too small"),
        (["fit", "iris", "-k", 151], "n_clusters=151 is more than n_samples=150"),
        (["fit", "iris", "-k", "three"], "-k three: give a whole number, or auto"),
        (["fit", "iris"], "--n-clusters"),
        (["fit", "iris", "-k", 3, "--gram", "wavy"], "gram='wavy' is not known"),
        (["fit", "iris", "-k", 3, "--id-column", "x"], "iris has no named columns"),
        (["fit", "iris", "-k", 3, "--columns", "x"], "iris has no named columns"),
        (["explode"], "No such command"),
        (["choose-k", "iris", "--plot", "a.txt"], "ends in .png or .pdf or .svg"),
        (["choose-k", "iris", "--method", "magic"], "method='magic' is not known"),
        (["test-scales", "demo", "-k", "x"], "-k x: give a whole number"),
        (["predict", "no.npz", "iris"], "no.npz: no such file; ihgmm fit --save"),
        (["sample", "a.txt"], "ends in .csv or .tsv or .parquet"),
        (["sample", "a.csv", "--noise-levels", "a,b"], "give one number, or two"),
        (["sample", "a.csv", "--balance", 2], "balance=2.0"),
        (["sample", "a.csv", "--dtype", "int8"], "give float64 or float32"),
        (["bench", "iris", "--repeats", 0], "--repeats 0 is too small"),
        (["datasets", "fetch", "moon"], "name='moon' is not known"),
        (["datasets", "--json", "fetch", "iris"], "Give options after fetch"),
    ],
)
def test_wrong_use(folder, arguments, message):
    assert message in fail(*arguments)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(5), "has shape (5,); give rows by columns"),
        (np.zeros((0, 3)), "nothing to cluster"),
        (np.array([["a"]]), "entries; give real numbers"),
        (np.array([[1.0, np.inf], [1.0, 2.0]]), "contains infinity at row 0, column 1"),
    ],
)
def test_bad_arrays(array, message):
    np.save("a.npy", array)
    assert message in fail("fit", "a.npy", "-k", 2)


def test_damaged_files_are_refused(sample):
    write("sparse.npz", *sample)
    good = Path("sparse.npz").read_bytes()
    Path("cut.npz").write_bytes(good[: len(good) // 2])
    assert "cut.npz cannot be read as npz" in fail("fit", "cut.npz", "-k", 2)
    beyond = sp.csr_matrix(sample[0])
    beyond.indices[5] = 1_000_000_000
    sp.save_npz("beyond.npz", beyond)
    assert "beyond.npz cannot be read as npz" in fail("fit", "beyond.npz", "-k", 2)


def test_an_encrypted_archive_is_refused(sample):
    write("dense.npz", *sample)
    raw = bytearray(Path("dense.npz").read_bytes())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.index(signature) + flags] |= 1  # as if X had a password
    Path("secret.npz").write_bytes(raw)
    assert "secret.npz cannot be read as npz" in fail("fit", "secret.npz", "-k", 2)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.npy", "dense.npz", "a.mtx"])
def test_a_defect_is_not_taken_for_a_damaged_file(sample, monkeypatch, name):
    def broken(*_, **__):
        raise error

    write(name, *sample)
    for error in (KeyError("x"), TypeError("x"), NotImplementedError("x")):
        for function in ("choose_columns", "numbered_table"):
            monkeypatch.setattr(f"ihgmm.cli.tables.reading.{function}", broken)
        done = ihgmm("fit", name, "-k", 3)
        assert done.exception is error
        assert "cannot be read" not in done.stderr


def test_a_failing_disk_is_not_a_damaged_file():
    for error in (PermissionError(errno.EACCES, "no"), OSError(errno.EIO, "disk")):
        with pytest.raises(type(error)) as raised, explain_damage(Path("a.csv")):
            raise error
        assert raised.value is error
    with pytest.raises(ValueError, match="cannot be read as csv: Truncated"):  # noqa: SIM117
        with explain_damage(Path("a.csv")):
            raise OSError("Truncated stream")  # as pyarrow says it, without a number


def test_an_archive_of_something_else_is_refused(sample):
    for name in ("X", "labels"):
        np.savez("a.npz", **{"X": sample[0], "labels": sample[1], name: []})
        with zipfile.ZipFile("a.npz") as old, zipfile.ZipFile("b.npz", "w") as new:
            for member in old.namelist():
                content = b"text" if member == f"{name}.npy" else old.read(member)
                new.writestr(member, content)
        message = fail("fit", "b.npz", "-k", 3, "--label-column", "labels")
        assert ("b.npz has shape ()" in message) == (name == "X")
        assert ("b.npz holds () labels" in message) == (name == "labels")


def test_pickles_are_never_loaded():
    np.save("a.npy", np.array([{"x": 1}], dtype=object), allow_pickle=True)
    assert "cannot be read as npy" in fail("fit", "a.npy", "-k", 2)


def test_sparse_cannot_be_standardized(sample):
    write("sparse.npz", *sample)
    for command in ("fit", "test-scales"):
        message = fail(command, "sparse.npz", "-k", 3, "--standardize")
        assert "fills sparse data up; take --scale-columns" in message


def test_unknown_column_lists_those_there_are(sample):
    write("a.csv", *sample)
    message = fail("fit", "a.csv", "-k", 3, "--id-column", "name")
    assert "no such column; it has 'f0', 'f1'" in message
    assert "and 4 more" in message


def test_predict_finds_columns_by_name(sample):
    X, labels = sample
    write("a.csv", X, labels)
    good("fit", "a.csv", "-k", 3, "--standardize", "--save", "model.npz")
    table = pd.read_csv("a.csv")
    table["kind"] = labels
    table["id"] = [f"<{i}>" for i in range(120)]
    table[table.columns[::-1]].to_parquet("new.parquet")
    options = ["--id-column", "id", "--label-column", "kind", "-o", "out.csv"]
    text = good("predict", "model.npz", "new.parquet", *options)
    assert "120 rows placed by model.npz (IhSC)" in text
    assert "(3 classes): 0 of 120 rows differ" in text
    model = IhSC(3, random_state=0).fit(StandardScaler().fit_transform(X))
    expected = model.predict(StandardScaler().fit_transform(X))
    rows = read("out.csv")
    assert [row["id"] for row in rows] == list(table["id"])
    assert [int(row["cluster"]) for row in rows] == list(expected)
    for row, x in zip(rows, StandardScaler().fit_transform(X), strict=True):
        center = model.cluster_centers_[int(row["cluster"]), None]
        nearest = np.linalg.lstsq(center.T, x)[0]
        np.testing.assert_allclose(float(row["scale"]), nearest.clip(0), rtol=1e-4)
    # Fewer rows: what was learnt at the fit is applied, not learnt again.
    table[:7].to_csv("few.csv", index=False)
    good("predict", "model.npz", "few.csv", "-o", "few-out.csv")
    assert [int(r["cluster"]) for r in read("few-out.csv")] == list(expected[:7])
    np.save("few.npy", X[:7])
    found = document("predict", "model.npz", "few.npy")
    assert [c["rows"] for c in found["clusters"]] == list(
        np.bincount(expected[:7], minlength=3)
    )


def test_predict_says_what_does_not_fit(sample):
    X, labels = sample
    write("a.csv", X, labels)
    good("fit", "a.csv", "-k", 3, "--save", "model.npz", "--quiet")
    table = pd.read_csv("a.csv")
    table.drop(columns=["f3", "f5"]).to_csv("less.csv", index=False)
    message = fail("predict", "model.npz", "less.csv")
    assert (
        "lacks 2 of the 12 columns that the model was fitted on: 'f3', 'f5'" in message
    )
    table.assign(f3="text").to_csv("text.csv", index=False)
    assert "column 'f3' does not hold numbers" in fail(
        "predict", "model.npz", "text.csv"
    )
    table.loc[2, "f1"] = np.nan
    table.to_csv("gap.csv", index=False)
    assert "1 of 120 rows have missing cells" in fail("predict", "model.npz", "gap.csv")
    good("predict", "model.npz", "gap.csv", "--drop-missing", "-o", "out.csv")
    assert [row["row"] for row in read("out.csv")][:3] == ["1", "2", "4"]
    np.save("narrow.npy", X[:, :5])
    message = fail("predict", "model.npz", "narrow.npy")
    assert "has 5 columns of numbers and model.npz was fitted on 12" in message
    assert "iris lacks 12 of the 12 columns" in fail("predict", "model.npz", "iris")
    Path("cut.npz").write_bytes(Path("model.npz").read_bytes()[:999])
    assert "no model, or only a part" in fail("predict", "cut.npz", "a.csv")
    assert "is a file that is read" in fail(
        "predict", "model.npz", "a.csv", "-o", "a.csv"
    )


def test_predict_with_a_model_from_python(sample):
    X, labels = sample
    model = IhGMM(3, random_state=0).fit(X)
    save_model(model, "model.npz")
    write("a.csv", X, labels)
    assert "(IhGMM)" in good("predict", "model.npz", "a.csv", "-o", "out.csv")
    clusters = [int(row["cluster"]) for row in read("out.csv")]
    np.testing.assert_array_equal(clusters, model.predict(X))
    scales = [float(row["scale"]) for row in read("out.csv")]
    np.testing.assert_allclose(scales, model.scales_, atol=0.1)
    model = SphericalKMeans(3, random_state=0).fit(X)  # tells no scales
    save_model(model, "model.npz")
    good("predict", "model.npz", "a.csv", "-o", "out.csv")
    assert list(read("out.csv")[0]) == ["row", "cluster"]


def test_choose_k():
    text = good("choose-k", "demo", "--plot", "a.png")
    assert "4 clusters" in text
    assert good("choose-k", "demo", "-q") == "4\n"
    assert "over the edge" in text
    assert text.count("yes") == 4
    assert Path("a.png").read_bytes()[:4] == b"\x89PNG"
    found = document(
        "choose-k", "wine", "--standardize", "--method", "stability", "--plot", "a.svg"
    )
    X = StandardScaler().fit_transform(load_wine().data)
    expected = select_n_clusters(X, method="stability", random_state=0)
    assert found["n_clusters"] == expected.n_clusters
    assert found["strengths"] == {str(k): v for k, v in expected.strengths.items()}
    np.testing.assert_allclose(found["eigenvalues"], expected.eigenvalues)
    assert found["plot_file"] == "a.svg"
    assert Path("a.svg").read_text().startswith("<?xml")


def test_test_scales(sample):
    X, labels = sample
    pd.DataFrame(X).assign(kind=labels).to_csv("a.csv", index=False)
    text = good("test-scales", "a.csv", "--label-column", "kind")
    assert "Ih-GMM: rows of a cluster differ in scale by about" in text
    assert good("test-scales", "a.csv", "--label-column", "kind", "-q") == "Ih-GMM\n"
    found = document("test-scales", "a.csv", "--drop-columns", "kind", "-k", 3)
    assert found["p_value"] < 1e-6
    assert found["labels"] == "found by IhSC"
    assert sum(c["rows"] for c in found["clusters"]) == 120
    message = fail("test-scales", "a.csv")
    assert "name their column with --label-column, or give -k" in message


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "npy", "npz"])
def test_sample(folder, suffix):
    name = f"s.{suffix}"
    options = ["-n", 60, "-p", 8, "-k", 2, "--seed", 5, "--noise", "uniform",
               "--noise-levels", 2, "--scale-ratio", 3, "--separation", 9,
               "--balance", 0.5, "--noise-structure", "class"]  # fmt: skip
    found = document("sample", name, *options)
    drawn = make_ihgmm(
        60, 8, 2, scale_ratio=3.0, balance=0.5, separation=9.0, noise="uniform",
        noise_levels=2.0, noise_structure="class", random_state=5, return_params=True,
    )  # fmt: skip
    assert found["sizes"] == [45, 15]
    assert found["files"] == sorted(p.name for p in folder.iterdir())[::-1]
    with np.load(found["files"][-1]) as parameters:
        for key in ("labels", "scales", "noise_levels", "centers", "separation"):
            np.testing.assert_array_equal(parameters[key], getattr(drawn, key))
        if suffix == "npz":
            np.testing.assert_array_equal(parameters["X"], drawn.X)
    exactly = {"float_precision": "round_trip"}
    if suffix == "npy":
        np.testing.assert_array_equal(np.load(name), drawn.X)
    elif suffix in ("csv", "parquet"):
        read = pd.read_parquet if suffix == "parquet" else pd.read_csv
        table = read(name, **({} if suffix == "parquet" else exactly))
        np.testing.assert_array_equal(table.pop("label"), drawn.labels)
        np.testing.assert_array_equal(table, drawn.X)
    label = {"npz": "labels", "npy": None}.get(suffix, "label")
    if label:
        text = good("fit", name, "-k", 2, "--label-column", label)
        assert "60 rows, 8 features" in text
        assert "rows differ" in text
    before = Path(name).read_bytes()
    assert "add --force to replace it" in fail("sample", name, *options, "--seed", 6)
    assert Path(name).read_bytes() == before
    text = good("sample", name, *options, "--seed", 6, "--force")
    assert Path(name).read_bytes() != before
    how = f" --label-column {label}" if label else ""
    assert text.endswith(f"cluster it with: ihgmm fit {name} -k 2{how}\n")


def test_datasets(folder, monkeypatch):
    monkeypatch.setenv("IHGMM_DATA", str(folder / "kept"))
    text = good("datasets")
    assert "dermatology    358        34        6  not downloaded" in text
    assert f"folder: {folder / 'kept'}" in text
    assert good("datasets", "list") == text
    assert document("datasets", "list") == document("datasets")
    found = {entry["name"]: entry for entry in document("datasets")["datasets"]}
    assert len(found) == 9
    assert found["iris"]["where"] == "scikit-learn"
    assert (found["usps"]["rows"], found["usps"]["features"]) == (7291, 256)
    assert "Wine: 178 rows, 13 features, 3 classes" in good("datasets", "fetch", "wine")
    # A file that is there and is something else is a failure of the work.
    (folder / "kept").mkdir()
    (folder / "kept" / "dna.scale").write_text("1 1:1\n")
    assert "is not the DNA data" in fail("datasets", "fetch", "dna", code=1)
    assert "dna.scale" in good("datasets")


def test_datasets_are_listed_without_what_downloads_them(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.delenv("IHGMM_DATA", raising=False)
    for name in ("HOME", "USERPROFILE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(folder))
    text = good("datasets")
    assert text.count("not downloaded") == 7
    assert f"folder: {folder}" in text
    assert "pip install pooch" in fail("datasets", "fetch", "dna", code=1)


def test_bench(sample):
    X, labels = sample
    pd.DataFrame(X).assign(kind=labels).to_csv("a.csv", index=False)
    found = document("bench", "a.csv", "--label-column", "kind", "--repeats", 1)
    methods = {run["method"]: run for run in found["methods"]}
    assert methods["IhSC"]["ratio"] == 1
    assert methods["IhSC"]["error"] == 0
    assert methods["KMeans"]["error"] > 0
    assert {"SphericalKMeans", "KMeans on unit rows"} < set(methods)
    assert found["n_clusters"] == 3
    write("sparse.npz", *sample)
    text = good("bench", "sparse.npz", "-k", 3, "--repeats", 1)
    assert "x IhSC" in text
    assert "faiss" not in text
    assert "give the number of clusters, -k" in fail("bench", "sparse.npz")
    options = ["--label-column", "kind", "-k", 0]
    assert "n_clusters=0 is too small" in fail("bench", "a.csv", *options)


def test_reproduce_for_machines():
    found = document("reproduce", "table", "--only", "iris", "--reps", 1, "-o", "out")
    (ours,) = (c for c in found["studies"]["table"]["cells"] if c["method"] == "IhSC")
    assert ours["paper"] == 7
    assert len(ours["counts"]) == 1
    assert Path("out", "table.md").exists()


def test_plan_is_there():
    assert document("plan", "--n", "1e9", "--p", "2000", "-k", 50)


def test_json_is_one_document_and_quiet_is_silent(sample):
    X, labels = sample
    write("a.csv", X, labels)
    found = document("fit", "a.csv", "-k", 3, "-o", "b.csv", "--quiet")
    assert found["n_clusters"] == 3
    assert [c["rows"] for c in found["clusters"]] == [40, 40, 40]
    assert found["labels_file"] == "b.csv"
    for command in (
        ["fit", "iris", "-k", 2],
        ["datasets"],
        ["bench", "iris", "--repeats", 1],
        ["sample", "s.npy"],
    ):
        assert good(*command, "-q") == ""


def test_few_directions_are_told_also_where_little_is():
    for option in ("-q", "--json"):
        done = ihgmm("fit", "iris", "-k", 3, option)
        assert done.exit_code == 0
        assert done.stderr.startswith("warning: 2 of 3 leading eigenvalues are pos")
        assert done.stderr.count("\n") == 1
    assert json.loads(done.stdout)["notes"][0].startswith("2 of 3 leading")
    text = good("fit", "iris", "-k", 3, "--scale-columns")
    assert "2 of 3 leading eigenvalues" in text
    assert "try --scale-columns" not in text  # it is there


def test_rows_without_ids_are_called_the_same(sample):
    table = pd.DataFrame(sample[0], columns=[f"f{i}" for i in range(12)])
    table.assign(name=[f"n{i}" for i in range(120)]).to_csv("a.csv", index=False)
    for options, word in (([], "row"), (["--id-column", "name"], "name")):
        good("fit", "a.csv", "-k", 3, *options, "-o", "labels.csv")
        good("report", "a.csv", "-k", 3, *options, "-o", "r.html")
        assert next(iter(read("labels.csv")[0])) == word
        page = Path("r.html").read_text(encoding="utf-8")
        assert f'"idName":"{word}"' in page
        assert "--id-column" not in page  # who reads it may not be at a terminal


def test_the_report_tells_what_was_done_to_the_data(sample):
    table = pd.DataFrame(sample[0], columns=[f"f{i}" for i in range(12)])
    table.assign(city="Bonn").to_csv("a.csv", index=False)
    good("report", "a.csv", "-k", 3, "--scale-columns", "-o", "r.html")
    page = Path("r.html").read_text(encoding="utf-8")
    done = page[page.index("What was done") : page.index("Map of the rows")]
    assert "Left out column <bdi>&#39;city&#39;</bdi>" in done
    assert "Divided every column by its deviation." in done


def test_help_has_examples_and_codes():
    text = good("--help")
    assert "130 interrupted" in " ".join(text.split())
    names = ["fit", "predict", "choose-k", "sample", "test-scales", "bench", "plan",
             "report", "reproduce", "datasets"]  # fmt: skip
    for name in names:
        assert name in text
        shown = good(name, "--help")
        assert "Examples" in shown
        assert f"ihgmm {name} " in shown
        assert "--json" in shown
    assert good("--version").startswith("ihgmm ")


@pytest.mark.parametrize(
    "command", [[], ["fit"], ["datasets"], ["datasets", "list"], ["datasets", "fetch"]]
)
def test_flags_have_no_type(command):
    text = good(*command, "--help")
    assert "--help" in text
    assert "bool" not in text.lower()


def test_help_says_what_labels_are_for():
    words = {"fit": "not used, but compared with", "test-scales": "tested within them"}
    for name, said in words.items():
        text = " ".join(good(name, "--help").replace("│", " ").split())
        assert said in text
    assert words["fit"] not in text


def test_help_breaks_lines_where_the_terminal_ends(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    text = good("predict", "--help")
    assert "columns that the model does not know are left out. Columns are" in text


def test_help_and_version_load_no_command():
    code = (
        "import sys; from typer.testing import CliRunner; from ihgmm.cli import app\n"
        "for option in ('--help', '--version'):\n"
        "    assert CliRunner().invoke(app, [option]).exit_code == 0\n"
        "print([m for m in sys.modules if m.startswith('ihgmm.cli.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    loaded = {"ihgmm.cli.commands", "ihgmm.cli.messages"}
    assert set(ast.literal_eval(done.stdout)) == loaded, done.stderr


def test_lists_say_what_the_commands_say_of_themselves():
    for name, summary in COMMANDS.items():
        text = " ".join(good(name, "--help").split())
        assert f"{name} [OPTIONS]" in text
        assert summary in text


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_what_the_command_line_needs(package):
    code = (
        f"import sys; sys.modules['{package}'] = None\n"
        "import ihgmm.cli; print('imported'); ihgmm.cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "imported\n")
    message = "The command line needs typer and rich: pip install typer rich pyarrow\n"
    assert done.stderr == message


def test_completion():
    # What a shell asks for after: ihgmm fit w<TAB>
    environment = dict(os.environ, _IHGMM_COMPLETE="complete_bash",
                       COMP_WORDS="ihgmm fit w", COMP_CWORD="2")  # fmt: skip
    assert process(env=environment).stdout.split() == ["wine"]


def test_warnings_are_one_line(sample):
    X = sample[0].copy()
    X[7] = 0
    np.save("a.npy", X)
    done = subprocess.run(
        [sys.executable, "-m", "ihgmm", "fit", "a.npy", "-k", "3", "--json"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr.startswith("warning: 1 of 120 rows are zero.")
    assert done.stderr.count("\n") == 1
    assert json.loads(done.stdout)["n_clusters"] == 3


def test_failures_of_the_work_end_with_1(monkeypatch):
    message = fail("sample", "a.npy", "-p", 10**13, code=1)
    assert "not enough memory: Unable to allocate" in message
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    message = fail("choose-k", "iris", "--plot", "a.png", code=1)
    assert "pip install matplotlib" in message


def on_terminal(*arguments, until="", **environment):
    """Return the exit code and what a user sees of standard error on a terminal.

    The command is interrupted as soon as ``until`` is seen.
    """
    leader, follower = pty.openpty()
    seen = ""
    with subprocess.Popen(
        [COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=follower,
        env=dict(os.environ, TERM="xterm-256color", **environment),
    ) as running:  # fmt: skip
        os.close(follower)
        with contextlib.suppress(OSError):  # what Linux says at the end of a terminal
            while part := os.read(leader, 65536):
                seen += part.decode(errors="replace")
                if until and until in seen:
                    running.send_signal(signal.SIGINT)
                    until = ""
    os.close(leader)
    return running.returncode, seen


def test_progress_on_a_terminal_and_interrupt(folder):
    code, seen = on_terminal("bench", "iris", "--repeats", "99999", until="comparing")
    assert code == 130
    assert "━" in seen
    assert "\x1b[33mstopped:" in seen
    assert seen.endswith(" no file was left half written.\r\n")
    assert list(folder.iterdir()) == []


def test_an_interrupt_while_a_command_is_loaded(monkeypatch):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr("ihgmm.cli.commands.import_module", interrupted)
    assert fail("fit", "iris", "-k", 3, code=130) == (
        "stopped: no file was left half written."
    )


def test_colours_can_be_turned_off(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")  # as if on a terminal
    assert "\x1b[31merror:\x1b[0m nowhere" in fail("predict", "nowhere", "iris")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "error: nowhere: no such file" in fail("predict", "nowhere", "iris")
