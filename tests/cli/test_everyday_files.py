"""Files as people have them: read, prepared and clustered without an option."""

import csv
import io
import sys
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from command_line import (
    GOODS,
    clusters,
    document,
    fail,
    good,
    notes_of,
    shop,
    table_of,
)
from typer.testing import CliRunner

from ihgmm.cli.commands import app
from ihgmm.metrics import misclassification_rate


def customers():
    """Three kinds of customers; columns in different units."""
    table = shop()[GOODS] * [1000, 1, 10, 100, 0.1]
    return table.round(3), np.arange(90) % 3


def with_what_measures_nothing(path):
    table, kinds = customers()
    n = len(table)
    table.insert(2, "unit", 2024)
    table["year"] = np.resize([2019, 2020, 2021], n)
    table["founded"] = np.resize(np.arange(1950, 1990), n)
    table["place"] = np.random.default_rng(0).permutation(n) + 1
    table["region"] = np.resize([3, 1, 4, 7], n)
    is_paid = (kinds == 0) & (table["cheese"] > 1.5 * table["cheese"].median())
    table["paid.code"] = is_paid.astype(int)  # a flag, by whatever name
    table.to_csv(path, index=False)
    return kinds, [
        "Used 6 columns: ",
        "'year', 'founded' (years), 'place' (row numbers or ranks: 1 to 90, each once),"
        " 'region' (named like a code, id or year; name it among --columns to use it), "
        "'unit' (constant: 2024).",
    ]


def with_ids_and_dates(path):
    table, kinds = customers()
    days = pd.date_range("2021-01-31", periods=len(table))
    table.insert(0, "customer_id", np.arange(len(table)) * 7 + 1001)
    table["since"] = days.strftime("%Y-%m-%d")
    table["birthday"] = days.strftime("%d.%m.%Y")
    table["day"] = days.strftime("%Y%m%d")
    table["city"] = np.resize(["Rome", "Bonn", "Oslo", "Lima"], len(table))
    table["plan"] = np.resize(["basic", "full"], len(table))
    table.to_csv(path, index=False)
    return kinds, [
        "'customer_id' (looks like ids",
        "'since' (dates such as '2021-01-31'), 'birthday' (dates such as "
        "'31.01.2021'), 'day' (dates), 'city', 'plan' (text of few values; "
        "--use-categories takes it)",
    ]


def with_missing_cells(path):
    table, kinds = customers()
    is_missing = np.random.default_rng(1).random(table.shape) < 0.03
    table = table.astype(object)
    words = np.resize(["", "NA", "-", "?"], table.shape)
    table.where(~is_missing, words).to_csv(path, index=False)
    n_missing = is_missing.sum()
    return kinds, [f"Filled in {n_missing} missing cells (", "Divided 5 columns by"]


def as_anndata(path):
    rng = np.random.default_rng(0)
    kinds = np.resize([0, 1, 2], 90)
    profiles = rng.gamma(0.5, size=(3, 60)) + 0.05
    profiles /= profiles.sum(axis=1, keepdims=True)
    totals = 400 * np.exp(rng.normal(0, 0.7, (90, 1)))
    counts = rng.poisson(totals * profiles[kinds]).astype(np.float32)
    counts[:, 7] = 5  # a spike that was added to every cell
    cells = anndata.AnnData(sp.csr_matrix(counts))
    cells.obs_names = [f"cell{i}" for i in range(90)]
    cells.var["gene_symbols"] = [f"gene{i // 2}" for i in range(60)]
    cells.var_names = [f"ENSG{i:011d}" for i in range(60)]
    cells.write_h5ad(path)
    return kinds, [
        "Left out 1 column: 'gene3.1' (constant: 5).",
        "Took names of genes from 'gene_symbols' of var.",
    ]


FILES = {
    "ids.csv": with_ids_and_dates,
    "gaps.csv": with_missing_cells,
    "codes.csv": with_what_measures_nothing,
    "cells.h5ad": as_anndata,
}


@pytest.mark.parametrize("name", FILES)
def test_everyday_file(name):
    kinds, phrases = FILES[name](name)
    text = good("fit", name, "-k", "auto", "-o", "labels.csv")
    head = "\n".join(text.splitlines()[:5])

    assert "90 rows, " in head

    for phrase in phrases:
        assert phrase in head

    assert misclassification_rate(kinds, clusters("labels.csv")) <= 0.02


def test_columns_of_arrays_and_built_in_data_can_be_chosen(sample):
    np.save("a.npy", sample[0])
    table = table_of("a.npy", columns=["col3", "col1", "col2"], drop_columns=["col1"])

    np.testing.assert_array_equal(table.X, sample[0][:, [2, 1]])

    good("fit", "a.npy", "-k", "3", "--drop-columns", "col4", "--save", "m.npz")

    assert "120 rows labelled" in good("predict", "m.npz", "a.npy")
    assert len(table_of("wine", drop_columns=["ash", "hue"]).names) == 11


@pytest.mark.parametrize("suffix", [".csv.gz", ".jsonl"])
def test_pipes(suffix, monkeypatch):
    table, _ = customers()
    name = f"a{suffix}"
    if suffix == ".jsonl":
        records = table.assign(tags=[["x"]] * 90, who=[{"name": "n"}] * 90)
        records.to_json(name, orient="records", lines=True)
    else:
        table.to_csv(name, index=False)
    content = io.BytesIO(Path(name).read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    piped_table = table_of("-", missing="error")

    np.testing.assert_array_equal(piped_table.X, table)


def test_labels_to_a_pipe():
    table, kinds = customers()
    arguments = ["fit", "-", "-k", "3", "-o", "-"]
    content = table.to_csv(index=False).encode()
    result = CliRunner().invoke(app, arguments, input=content)

    assert result.exit_code == 0, result.stderr
    assert "-: 90 rows, 5 features, 3 clusters" in result.stderr

    rows = list(csv.DictReader(result.stdout.splitlines()))

    assert misclassification_rate(kinds, [row["cluster"] for row in rows]) <= 0.02
    assert list(Path().iterdir()) == []


def test_what_pipes_cannot_do():
    def refusal(content, *arguments):
        result = CliRunner().invoke(app, ["fit", "-", "-k", "2", *arguments], content)

        assert result.exit_code == 2

        return " ".join(result.stderr.split())

    for content in (b"", b"PK\x03\x04\x00\xff"):
        assert "Standard input is empty, or holds no text" in refusal(content)

    message = refusal(b"a,b\n1,2\n", "-o", "-", "--json")

    assert "both write to standard output" in message

    message = refusal(b"a,b\n1\n2,3,4\n")

    assert "error: Standard input cannot be read as csv: " in message

    result = CliRunner().invoke(app, ["report", "iris", "-k", "3", "-o", "-"])

    assert result.stdout.startswith("<!doctype html>")
    assert "report written to -" in result.stderr


def test_a_mistyped_column_gets_the_nearest_name():
    table, _ = customers()
    table.to_csv("a.csv", index=False)
    for option in ("--id-column", "--label-column", "--columns", "--drop-columns"):
        message = fail("fit", "a.csv", "-k", "3", option, "Chese")
        assert f"{option} 'Chese': a.csv has no such column (did you mean" in message
        assert "(did you mean 'cheese'?)" in message

    as_anndata("a.h5ad")
    message = fail("fit", "a.h5ad", "-k", "3", "--label-column", "kind")

    assert "obs of a.h5ad has no such column; it has none" in message


def test_files_of_cells_that_are_stored_otherwise():
    table, _ = customers()
    anndata.AnnData(sp.csc_matrix(table.to_numpy())).write_h5ad("columns.h5ad")

    assert document("fit", "columns.h5ad", "-k", "3")["n_samples"] == len(table)

    message = fail("fit", "columns.h5ad", "-k", "3", "--memory", "0")

    assert "The matrix /X is stored by columns (CSC)" in message

    with h5py.File("old.h5ad", "w") as file:  # tables were no groups
        file["X"] = np.ones((3, 2))
        file["obs"] = np.zeros(3, dtype=[("index", "S4")])

    assert "or is of anndata before 0.7" in fail("fit", "old.h5ad", "-k", 2)


def test_a_table_of_texts_is_told_what_to_type():
    reviews = ["a review of more than eight words in all"] * 40
    pd.DataFrame({"review": reviews}).to_csv("t.csv", index=False)
    message = fail("fit", "t.csv", "-k", "2")

    assert "--text-column 'review' takes its words" in message


def test_folders_and_hdf5_are_for_python():
    Path("a.parquet").mkdir()
    Path("a.h5").touch()
    reasons = {"a.parquet": "a folder", "a.h5": "unknown format '.h5'"}
    for name, reason in reasons.items():
        message = fail("fit", name, "-k", "2")
        assert f"{name}: {reason}; give one of .csv, " in message
        assert "In Python, ihgmm.open_data reads HDF5, zarr, and folders" in message


def test_ids_that_repeat_are_told_once_and_left_out_columns_counted():
    table, _ = customers()
    table["who"] = np.arange(90) // 2 + 1001
    table.loc[0, "who"] = 1
    for i in range(9):
        table[f"t{i}"] = [f"{i}a{j}" for j in range(90)]
    table.to_csv("a.csv", index=False)
    notes = notes_of(table_of("a.csv", id_column="who"))

    assert notes.count("88 of 90 rows share their 'who' with another row: labels") == 1
    assert notes.count("(text such as '") == 9

    table.assign(**{f"u{i}": "" for i in range(23)}).to_csv("a.csv", index=False)
    summary = document("fit", "a.csv", "-k", "3", "--id-column", "who")

    assert "(empty) and 2 more. --json lists all." in " ".join(summary["notes"])
    assert len(summary["left_out"]) == 32
    assert summary["prepared"] == dict.fromkeys(GOODS, "divided")


@pytest.fixture
def cells():
    """Counts of 300 cells of three types; the first genes are abundant in all."""
    rng = np.random.default_rng(0)
    abundances = np.r_[rng.uniform(8, 20, 6), rng.lognormal(0, 0.5, 114)]
    patterns = np.tile(abundances, (3, 1))
    for kind in range(3):
        patterns[kind, 6 + 12 * kind : 18 + 12 * kind] *= 8
    patterns /= patterns.sum(axis=1, keepdims=True)
    kinds = rng.choice(3, 300, p=[0.5, 0.3, 0.2])
    depths = rng.lognormal(5.0, 0.5, (300, 1))
    names = [f"all{j}" for j in range(6)]
    names += [f"{kind}_{j}" for kind in "abc" for j in range(12)]
    names += [f"gene{j}" for j in range(78)]
    X = rng.poisson(depths * patterns[kinds] * rng.gamma(5, 0.2, (300, 120)))
    frame = pd.DataFrame(X, columns=names)
    frame.to_csv("cells.csv", index=False)
    matrix = sp.csr_matrix(frame.to_numpy(np.float32))
    anndata.AnnData(matrix, var=frame.iloc[:0].T).write_h5ad("cells.h5ad")
    return frame, kinds


def test_counts_are_one_thing_in_every_file(cells):
    labels = []
    for file in ("cells.csv", "cells.h5ad"):
        options = ("--columns-as", "given", "-o", f"{file}-l.csv", "--save", "m.npz")
        text = good("fit", file, "-k", 3, *options)
        assert "Divided 120 columns by the deviation ('all0': " in text
        assert "the columns look like counts" in text
        assert "--columns-as counts" in text
        assert "mean 0" not in text  # zero is the origin of counts
        good("predict", "m.npz", file, "-o", "p.csv")
        labels.append(pd.read_csv(f"{file}-l.csv")["cluster"])
        np.testing.assert_array_equal(pd.read_csv("p.csv")["cluster"], labels[-1])

    np.testing.assert_array_equal(*labels)


@pytest.mark.parametrize("command", ["fit", "report", "choose-k"])
def test_what_steps_aside_for_even_noise_says_so(cells, command):
    options = {"fit": ("-k", 3), "report": ("-k", 3, "-o", "r.html"), "choose-k": ()}
    reasons = {
        "auto": "they look like counts, and rows are compared by their roots.",
        "noise": "--columns-as noise evens out their noise.",
        "counts": "--columns-as counts evens out their noise.",
    }
    for columns, reason in reasons.items():
        file = "cells.h5ad" if columns == "counts" else "cells.csv"
        text = good(command, file, *options[command], "--columns-as", columns)
        assert text.count(f"Left the columns as they are: {reason}") == 1
        assert "Divided" not in text


@pytest.mark.parametrize(
    "options", [("--method", "IhGMM"), ("--paper",), ("--signed",)]
)
def test_counts_are_divided_for_fits_that_take_no_roots(cells, options):
    assert "Divided 120 columns" in good("fit", "cells.csv", "-k", 3, *options)


def test_few_large_means_among_many_columns_are_not_subtracted():
    X = np.random.default_rng(0).lognormal(0, 1, (60, 120))
    X[:, :5] = 50 + X[:, :5]
    X[:, 1::7] *= 100
    pd.DataFrame(X).add_prefix("g").to_csv("a.csv", index=False)

    assert "Divided 120 columns" in good("fit", "a.csv", "-k", 2)

    text = good("fit", "a.csv", "-k", 2, "--columns", "g0,g1,g2,g3,g4,g5,g6")

    assert "gave 5 columns, far from 0, mean 0" in text
