"""Files that are read block by block, and AnnData files: the same results."""

import json

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from command_line import clusters, document, fail, good, invoke, named, read

from ihgmm import make_ihgmm

BLOCKS = ("--memory", "0")


@pytest.fixture
def table():
    X, labels = make_ihgmm(400, 12, 3, random_state=0)
    frame = named(X)
    frame["flag"] = X[:, 0] > 0
    frame.insert(0, "id", [f"{i:04d}" for i in range(400)])
    frame["kind"] = [f"kind {k}" for k in labels]
    return frame


def store(table, name):
    if name.endswith("csv"):
        table.to_csv(name, index=False)
    elif name.endswith("parquet"):
        table.to_parquet(name, row_group_size=50)
    elif name.endswith("npy"):
        np.save(name, table.filter(like="f").to_numpy(float).copy("C"))
    else:
        cells = anndata.AnnData(sp.csr_matrix(table.filter(like="f").to_numpy(float)))
        cells.obs_names = table["id"]
        cells.var_names = table.filter(like="f").columns
        cells.obs["kind"] = pd.Categorical(table["kind"])
        cells.write_h5ad(name)


@pytest.mark.parametrize("name", ["x.parquet", "x.h5ad", "x.npy"])
def test_the_same_labels_from_disk_and_memory(name, table):
    store(table, name)
    column_options = [] if name == "x.npy" else ["--label-column", "kind"]
    if name == "x.parquet":
        column_options += ["--id-column", "id"]
    options = ("-k", "3", *column_options)
    for output, memory in (("disk.csv", "0"), ("memory.csv", "1")):
        summary = document("fit", name, *options, "--memory", memory, "-o", output)
        notes = " ".join(summary["notes"])
        assert ("read block by block" in notes) == (memory == "0")
        assert (summary["n_samples"], summary["n_features"]) == (400, 13)
        assert column_options == [] or summary["known_labels"]["misplaced"] == 0

    assert clusters("disk.csv") == clusters("memory.csv")

    ids = list(table["id"]) if column_options else [str(i) for i in range(1, 401)]

    assert [next(iter(row.values())) for row in read("disk.csv")] == ids


@pytest.mark.parametrize("name", ["x.parquet", "x.h5ad"])
def test_predict_from_disk(name, table):
    store(table, name)
    column_options = () if name == "x.h5ad" else ("--drop-columns", "flag")
    fit = ["fit", name, "-k", "3", "--prepare", "scale", *column_options]
    good(*fit, "--save", "m.npz", "-o", "a.csv")
    good("predict", "m.npz", name, "-o", "b.csv", *BLOCKS)
    good(*fit, "-o", "c.csv", *BLOCKS)

    assert clusters("a.csv") == clusters("b.csv") == clusters("c.csv")


@pytest.mark.parametrize("how", ["auto", "standardize"])
def test_columns_far_from_zero_are_centred_on_disk(how, table):
    table["f1"] = 9000 + 50 * table["f1"]
    table.loc[::9, "f3"] = np.nan
    store(table, "x.parquet")
    command = ("fit", "x.parquet", "-k", "3", "--prepare", how)
    in_memory = document(*command)
    on_disk = document(*command, *BLOCKS)

    assert "mean 0 and deviation 1" in " ".join(on_disk["notes"])

    pairs = zip(in_memory["clusters"], on_disk["clusters"], strict=True)
    for cluster, expected in pairs:
        assert cluster["rows"] == expected["rows"]
        features = zip(cluster["features"], expected["features"], strict=True)
        for figures, expected_figures in features:
            assert figures.pop("feature") == expected_figures.pop("feature")
            assert figures == pytest.approx(expected_figures)


def test_columns_are_chosen_by_rows_of_several_groups(table):
    table["month"] = np.arange(400) // 40 + 1
    table.to_parquet("x.parquet", row_group_size=40)
    notes = " ".join(document("fit", "x.parquet", "-k", "3", *BLOCKS)["notes"])

    assert "'month' (named like a code" in notes
    assert "chosen by 160 rows" in notes


def test_missing_cells_on_disk(table):
    name = "x.parquet"
    table.loc[[7, 300], "f3"] = np.nan
    store(table, name)
    message = fail("fit", name, "-k", "3", "--missing", "error", *BLOCKS)

    assert "2 of 400 rows have missing cells, in column 'f3' (2)" in message
    assert "row 8. --missing fit fills them in" in message

    for handling, rows in (("drop", 398), ("fit", 400)):
        options = ("-k", "3", "--label-column", "kind", "--missing", handling, *BLOCKS)
        summary = json.loads(invoke("fit", name, *options, "--json").stdout)
        assert summary["n_samples"] == rows
        assert summary["known_labels"]["misplaced"] == 0


def test_what_cannot_be_done_on_disk(table):
    for name in ("x.csv", "x.parquet", "x.h5ad"):
        store(table, name)
    for arguments, message in (
        (("fit", "x.csv", "-k", "3"), "convert it once to Parquet"),
        (("fit", "x.h5ad", "-k", "3", "--columns", "g1"), "no such column"),
        (("fit", "x.h5ad", "-k", "3", "--label-column", "type"), "it has 'kind'"),
    ):
        assert message in fail(*arguments, *BLOCKS)

    assert "give a number of GB" in fail("fit", "x.csv", "-k", "3", "--memory", "-1")


def test_labels_of_many_rows_are_written_block_by_block(monkeypatch):
    X, _ = make_ihgmm(20_000, 4, 2, random_state=0)
    np.save("x.npy", X)
    monkeypatch.setattr("ihgmm.cli.screen.PATIENCE", 0)
    result = invoke("fit", "x.npy", "-k", "2", "-o", "labels.csv", *BLOCKS)

    assert "clustering ...\n" in result.stderr  # for those who see nothing turn
    assert [row["row"] for row in read("labels.csv")] == [*map(str, range(1, 20_001))]
    assert "..." not in invoke("fit", "x.npy", "-k", "2", "-q").stderr
