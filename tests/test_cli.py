"""The command line, run as a user runs it: a process, real files."""

import csv
import gzip
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

from ihgmm import make_ihgmm
from ihgmm.metrics import exact_recovery

COMMAND = shutil.which("ihgmm", path=str(Path(sys.executable).parent)) or "ihgmm"


def ihgmm(*arguments, cwd=None):
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd, timeout=120,
    )  # fmt: skip


def fail(*arguments, cwd=None):
    done = ihgmm(*arguments, cwd=cwd)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def sample():
    X, labels = make_ihgmm(120, 12, 3, random_state=0)
    return np.round(X, 6), labels


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_main_command():
    done = ihgmm("fit", "iris", "-k", 3)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for words in (
        "150 rows, 4 features, 3 clusters",
        "scale: median",
        "only 2 of 3 leading eigenvalues are positive",
        "leading eigenvalues: 9136  263.9",
        "known labels (3 classes): 7 of 150 rows differ (4.7%)",
        "labels were not saved; add -o labels.csv",
    ):
        assert words in done.stdout


@pytest.mark.parametrize(("name", "k"), [("wine", 3), ("digits", 10), ("demo", 4)])
def test_built_in(name, k):
    done = ihgmm("fit", name, "-k", k)
    assert done.returncode == 0, done.stderr
    assert f"{k} clusters" in done.stdout
    assert "against the known labels" in done.stdout


def test_count_and_refine():
    done = ihgmm("fit", "demo", "-k", "auto", "--refine")
    assert done.returncode == 0, done.stderr
    assert "600 rows, 200 features, 4 clusters" in done.stdout
    assert "4 eigenvalues stand out from sign-flipped data" in done.stdout
    assert "0 of 600 rows differ" in done.stdout
    done = ihgmm("fit", "wine", "-k", "auto")
    assert "one column holds 98%" in done.stderr.replace("\n", " ")


def write(path, X, labels):
    table = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    if path.name.endswith(".csv"):
        table.to_csv(path, index=False)
    elif path.name.endswith(".csv.gz"):
        with gzip.open(path, "wt") as file:
            table.to_csv(file, index=False)
    elif path.name.endswith(".tsv"):
        table.to_csv(path, index=False, sep="\t")
    elif path.name.endswith(".parquet"):
        table.to_parquet(path)
    elif path.name.endswith(".npy"):
        np.save(path, X)
    elif path.name == "dense.npz":
        np.savez(path, X=X, labels=labels)
    elif path.name == "sparse.npz":
        sp.save_npz(path, sp.csr_matrix(X))
    else:
        scipy.io.mmwrite(path, sp.coo_matrix(X))


@pytest.mark.parametrize(
    "name",
    ["a.csv", "a.csv.gz", "a.tsv", "a.parquet", "a.npy", "dense.npz", "sparse.npz",
     "a.mtx"],
)  # fmt: skip
def test_every_format_gives_the_labels(tmp_path, sample, name):
    X, labels = sample
    write(tmp_path / name, X, labels)
    done = ihgmm("fit", name, "-k", 3, "-o", "labels.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "labels written to labels.csv" in done.stdout
    rows = read(tmp_path / "labels.csv")
    assert list(rows[0]) == ["row", "cluster", "scale"]
    assert [row["row"] for row in rows] == [str(i) for i in range(1, 121)]
    assert exact_recovery(labels, [row["cluster"] for row in rows])
    assert np.mean([float(row["scale"]) for row in rows]) == pytest.approx(1, abs=1e-4)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, "labels.csv"])


def test_table_as_people_have_them(tmp_path, sample):
    # A header, ids with commas, quotes and newlines, text, known labels, gaps.
    X, labels = sample
    ids = [f'cell "{i}", batch\n{i % 3} é✓' for i in range(120)]
    table = pd.DataFrame(X, columns=[f"gene {i}" for i in range(12)])
    table.insert(0, "barcode", ids)
    table["city"] = "Chongqing"
    table["type"] = np.array(["T", "B", "NK"])[labels]
    table.loc[[4, 9], "gene 3"] = np.nan
    table.to_csv(tmp_path / "cells.csv", index=False)
    options = ["cells.csv", "-k", 3, "--id-column", "barcode", "--label-column", "type"]
    message = fail("fit", *options, cwd=tmp_path)
    assert "2 of 120 rows have missing cells" in message
    assert "column 'gene 3', the first in row 5" in message
    assert "--drop-missing" in message
    done = ihgmm("fit", *options, "--drop-missing", "-o", "out.tsv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Left out column 'city': it does not hold numbers." in done.stdout
    assert "Left out 2 rows with missing cells" in done.stdout
    assert "0 of 118 rows differ" in done.stdout
    with open(tmp_path / "out.tsv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    assert rows[0] == ["barcode", "cluster", "scale"]
    assert [row[0] for row in rows[1:]] == [
        x for i, x in enumerate(ids) if i not in (4, 9)
    ]


def test_semicolons_and_bad_cells(tmp_path, sample):
    names = [f"f{i}" for i in range(12)]
    table = pd.DataFrame(sample[0], columns=names).astype(object)
    table.loc[7, "f3"] = "oops"
    table.to_csv(tmp_path / "a.csv", index=False, sep=";")
    done = ihgmm("fit", "a.csv", "-k", 3, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "Clustered by 11 columns: 'f0', 'f1', 'f2', 'f4'" in text
    assert "column 'f3': 1 of 120 cells are not numbers, the first is 'oops' in" in text


def test_module_can_be_run():
    done = subprocess.run(
        [sys.executable, "-m", "ihgmm", "--version"], capture_output=True, text=True
    )
    assert done.stdout.startswith("ihgmm ")


def test_file_without_header(tmp_path, sample):
    np.savetxt(tmp_path / "plain.csv", sample[0], delimiter=",")
    done = ihgmm("fit", "plain.csv", "-k", 3, cwd=tmp_path)
    assert "120 rows, 12 features" in done.stdout


def test_standardize_is_the_z_score():
    done = ihgmm("fit", "wine", "-k", 3, "--standardize")
    wrong = int(done.stdout.split("classes): ")[1].split(" of")[0])
    assert wrong <= 10  # the paper has 9; without it there are many more


def test_output_is_whole_or_not_at_all(tmp_path, sample):
    X, labels = sample
    write(tmp_path / "a.csv", X, labels)
    before = (tmp_path / "a.csv").read_bytes()
    assert "is the data itself" in fail(
        "fit", "a.csv", "-k", 3, "-o", "a.csv", cwd=tmp_path
    )
    assert (tmp_path / "a.csv").read_bytes() == before
    (tmp_path / "old.csv").write_text("kept")
    fail("fit", "a.csv", "-k", 500, "-o", "old.csv", cwd=tmp_path)
    assert (tmp_path / "old.csv").read_text() == "kept"
    assert "there is no folder" in fail(
        "fit", "a.csv", "-k", 3, "-o", "no/x.csv", cwd=tmp_path
    )
    assert "ends in .csv or .tsv" in fail(
        "fit", "a.csv", "-k", 3, "-o", "x.png", cwd=tmp_path
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.csv", "old.csv"]


BROKEN = {
    "empty.csv": (b"", "empty.csv is empty"),
    "header.csv": (b"a,b\n", "has a header but no rows"),
    "ragged.csv": (b"a,b\n1,2\n3\n", "cannot be read as csv"),
    "text.csv": (b"a,b\nx,y\n", "no numeric columns"),
    "twice.csv": (b"a,a\n1,2\n", "several columns named 'a'"),
    "gap.csv": (b"a,b\n1,\n2,\n", "2 of 2 rows have missing cells"),
    "cut.parquet": (b"PAR1 no", "cannot be read as parquet"),
    "bad.npy": (b"\x93NUMPY nothing", "cannot be read as npy"),
    "bad.npz": (b"PK nothing", "cannot be read as npz"),
    "bad.mtx": (b"%%MatrixMarket nonsense\n", "cannot be read as mtx"),
    "data.xyz": (b"1", "unknown format '.xyz'; give one of .csv"),
    "binary.csv": (b"\xff\xfe\x00\x01", "cannot be read as csv"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(tmp_path, name):
    content, message = BROKEN[name]
    (tmp_path / name).write_bytes(content)
    assert message in fail("fit", name, "-k", 2, cwd=tmp_path)


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
        (["explode"], "No such command"),
    ],
)
def test_wrong_use(arguments, message):
    assert message in " ".join(fail(*arguments).split())


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(5), "has shape (5,); give rows by columns"),
        (np.zeros((0, 3)), "nothing to cluster"),
        (np.array([["a"]]), "entries; give real numbers"),
        (np.array([[1.0, np.inf], [1.0, 2.0]]), "contains infinity at row 0, column 1"),
    ],
)
def test_bad_arrays(tmp_path, array, message):
    np.save(tmp_path / "a.npy", array)
    assert message in fail("fit", "a.npy", "-k", 2, cwd=tmp_path)


def test_pickles_are_never_loaded(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"x": 1}], dtype=object), allow_pickle=True)
    assert "cannot be read as npy" in fail("fit", "a.npy", "-k", 2, cwd=tmp_path)


def test_sparse_cannot_be_standardized(tmp_path, sample):
    write(tmp_path / "sparse.npz", *sample)
    message = fail("fit", "sparse.npz", "-k", 3, "--standardize", cwd=tmp_path)
    assert "fills sparse data up" in message


def test_unknown_column_lists_those_there_are(tmp_path, sample):
    write(tmp_path / "a.csv", *sample)
    message = fail("fit", "a.csv", "-k", 3, "--id-column", "name", cwd=tmp_path)
    assert "no such column; it has 'f0', 'f1'" in message
    assert "and 4 more" in message


def test_warnings_are_one_line(tmp_path, sample):
    X = sample[0].copy()
    X[7] = 0
    np.save(tmp_path / "a.npy", X)
    done = ihgmm("fit", "a.npy", "-k", 3, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.startswith("warning: 1 of 120 rows are zero.")
    assert done.stderr.count("\n") == 1


def test_help_and_version():
    assert "ihgmm fit iris -k 3" in ihgmm("fit", "--help").stdout
    assert ihgmm("--version").stdout.startswith("ihgmm ")
