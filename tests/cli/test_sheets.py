"""What people with a spreadsheet ask for: names, typical rows, layers, totals."""

import re
import zipfile
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
from command_line import document, fail, good, invoke, read, shop, table_of

from ihgmm.cli.files import read_names
from ihgmm.storage import load_saved

NAMES = ["Cheese lovers", "Butchers", "Fishers"]


# Names of clusters


def write_names(path):
    table = pd.DataFrame({"cluster": range(3), "name": NAMES})
    if path.endswith(".xlsx"):
        table.to_excel(path, index=False)
    elif path.endswith(".parquet"):
        table.to_parquet(path)
    else:
        mark = {"semicolons.csv": ";", "tabs.tsv": "\t"}.get(path, ",")
        encoding = "utf-16" if path == "utf16.csv" else "utf-8-sig"
        table.to_csv(path, index=False, sep=mark, encoding=encoding)


FILES = ["names.csv", "semicolons.csv", "tabs.tsv", "utf16.csv", "names.xlsx"]


@pytest.mark.parametrize("path", [*FILES, "names.parquet"])
def test_names_are_read_from_any_table(path):
    write_names(path)
    assert [name for _, name, _ in read_names(Path(path))] == NAMES


def test_names_travel_from_a_file_to_the_model_and_on():
    frame = shop()
    frame.to_excel("shop.xlsx", index=False)
    write_names("semicolons.csv")
    line = ["fit", "shop.xlsx", "-k", 3, "--id-column", "customer no."]
    text = good(*line, "--names", "semicolons.csv", "-o", "a.csv", "--save", "m.npz")
    assert re.search("^0 Cheese lovers +30 ", text, re.MULTILINE)
    for row in read("a.csv"):
        assert row["name"] == NAMES[int(row["cluster"])]
    assert load_saved("m.npz").cluster_names == NAMES
    frame.head(7).to_csv("new.csv", index=False, sep=";", decimal=",")
    good("predict", "m.npz", "new.csv", "-o", "b.csv")
    assert read("b.csv")[0].keys() == read("a.csv")[0].keys()
    assert [row["name"] for row in read("b.csv")] == [
        row["name"] for row in read("a.csv")[:7]
    ]
    # The labels that have the names name the next fit, whatever its clusters are.
    found = document(*line, "--names", "a.csv")
    assert [cluster["name"] for cluster in found["clusters"]] == NAMES
    # Those of a command go before those of the model.
    (pd.DataFrame({"cluster": [1], "name": ["Other"]})).to_csv("o.csv", index=False)
    found = document("predict", "m.npz", "new.csv", "--names", "o.csv")
    assert [cluster["name"] for cluster in found["clusters"]] == ["", "Other", ""]
    # Without names there is no column for them.
    good(*line, "-o", "c.csv")
    assert "name" not in read("c.csv")[0]


def test_names_of_rows_that_are_elsewhere_now():
    shop().to_csv("shop.csv", index=False)
    line = ["fit", "shop.csv", "-k", 3, "--id-column", "customer no."]
    good(*line, "-o", "a.csv")
    old = pd.read_csv("a.csv")
    old["cluster"] = 2 - old["cluster"]
    old["name"] = np.array(NAMES)[old["cluster"]]
    old.to_csv("old.csv", index=False)
    warnings = invoke(*line, "--names", "old.csv").stderr.splitlines()
    assert len(warnings) == 2  # the middle one has stayed
    told = "warning: --names old.csv: most rows that it calls 'Cheese lovers' are in"
    assert any(text.startswith(f"{told} cluster 2 now") for text in warnings)


def test_names_that_cannot_be_used():
    shop().to_csv("shop.csv", index=False)
    line = ["fit", "shop.csv", "-k", 3, "--names"]
    pd.DataFrame({"cluster": [7], "name": ["x"]}).to_csv("far.csv", index=False)
    assert "far.csv has cluster '7' ('x'), and the clusters are 0 to 2" in fail(
        *line, "far.csv"
    )
    pd.DataFrame({"Cluster": [0], "name": ["x"]}).to_csv("case.csv", index=False)
    assert "column 'cluster' (did you mean 'Cluster'?)" in fail(*line, "case.csv")
    pd.DataFrame({"cluster": ["a"], "name": ["x"]}).to_csv("text.csv", index=False)
    assert "has cluster 'a' ('x'), and the clusters" in fail(*line, "text.csv")
    np.save("names.npy", np.eye(2))
    assert "names.npy has no named columns; give one of .csv" in fail(
        *line, "names.npy"
    )


def test_cells_are_named_as_the_file_does():
    frame = shop()
    frame["meat"] = frame["meat"].astype(object)
    frame.loc[3, "meat"] = "ten"
    frame.to_csv("a.csv", index=False)
    frame.to_excel("a.xlsx", index=False, startrow=2)
    named = ("fit", "-k", 3, "--drop-columns", "customer no.")
    assert "'ten' in line 5: taken" in invoke(*named, "a.csv").stderr
    assert "'ten' in row 7 of the sheet: taken" in invoke(*named, "a.xlsx").stderr
    text = "a,b\n1,2\n\n\n3,inf\n4,1\n"  # lines that are empty
    Path("b.csv").write_text(text)
    assert "infinity in line 5, column 'b'" in fail("fit", "b.csv", "-k", 2)
    frame.loc[3, "meat"] = None
    frame.to_csv("a.csv", index=False)
    line = ("fit", "a.csv", "-k", 3, "--missing", "error")
    assert "the first is in line 5." in fail(*line)
    named = fail(*line, "--id-column", "customer no.")
    assert "the first is in customer no. '104'." in named


# Workbooks that are too large


def far_out(path, cell, extra=b""):
    """Write a sheet in which something stands far from the table."""
    shop().to_excel("whole.xlsx", index=False)
    with zipfile.ZipFile("whole.xlsx") as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name == "xl/worksheets/sheet1.xml":
                text = text.replace(b"</sheetData>", cell + b"</sheetData>")
                text = re.sub(b'<dimension ref="[^"]*"', extra or rb"\g<0>", text)
            new.writestr(name, text, zipfile.ZIP_DEFLATED)


@pytest.mark.parametrize(
    "cell",
    [
        b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>',
        b"<x:row xmlns:x='u'><x:c r='XFD9999'><x:is/></x:c></x:row>",
        b'<row><c s="1" r="A99999999"><v>1</v></c></row>',
    ],
)
def test_a_cell_that_is_far_out_is_refused(cell):
    far_out("a.xlsx", cell)
    message = fail("fit", "a.xlsx", "-k", 3)
    assert re.search("a.xlsx is too large: it reaches over [0-9,]+ cells", message)
    assert "at most 20,000,000 are read" in message
    assert "or save the sheet as CSV." in message


@pytest.mark.parametrize(
    ("cell", "extra"),
    [
        (b'<row r="1048576"><c r="XFD1048576" s="0"/></row>', b""),  # a border
        (b"<row/>", b'<dimension ref="A1:XFD1048576"'),
    ],
)
def test_a_sheet_that_only_seems_large_is_read(cell, extra):
    far_out("a.xlsx", cell, extra)
    np.testing.assert_array_equal(table_of("a.xlsx").X, shop().iloc[:, 1:])


def test_an_archive_that_unpacks_to_too_much_is_refused():
    far_out("a.xlsx", b"<row/>")
    with zipfile.ZipFile("a.xlsx", "a") as book:
        book.writestr("image.png", b"")
        book.getinfo("image.png").file_size = 2 * 10**9  # as its header says
    message = fail("fit", "a.xlsx", "-k", 3)
    assert "it unpacks to 2 GB, and at most 1.07 GB are read" in message


# Layers


def write_cells(path, *, layers=("counts", "scaled")):
    rng = np.random.default_rng(0)
    cells = anndata.AnnData(rng.gamma(1.0, size=(60, 6)))
    cells.obs_names = [f"cell{i}" for i in range(60)]
    cells.var_names = [f"gene{i}" for i in range(6)]
    cells.raw = anndata.AnnData(cells.X + 5, var=cells.var)
    for place, layer in enumerate(layers, 1):
        cells.layers[layer] = cells.X + 10 * place
    cells.write_h5ad(path)
    return cells


def test_layers_of_an_anndata_file():
    cells = write_cells("a.h5ad")
    for layer, X in (
        ("counts", cells.layers["counts"]),
        ("scaled", cells.layers["scaled"]),
        ("raw", cells.raw.X),
        ("X", cells.X),
        (None, cells.X),
    ):
        table = table_of("a.h5ad", layer=layer, missing="error")
        np.testing.assert_array_equal(table.X, X)
    chosen = ["gene4", "gene1"]
    table = table_of("a.h5ad", layer="counts", columns=chosen, missing="error")
    np.testing.assert_array_equal(table.X, cells.layers["counts"][:, [4, 1]])
    assert table.names == chosen
    table = table_of("a.h5ad", drop_columns=["gene0"], missing="error")
    np.testing.assert_array_equal(table.X, cells.X[:, 1:])


def test_a_layer_that_is_not_there():
    write_cells("a.h5ad")
    shop().to_csv("shop.csv", index=False)
    message = fail("fit", "a.h5ad", "-k", 2, "--layer", "count")
    assert "a.h5ad has no such layer (did you mean 'counts'?)" in message
    assert "it has 'X', 'raw', 'counts', 'scaled'." in message
    message = fail("fit", "a.h5ad", "-k", 2, "--columns", "counts")
    assert "a.h5ad has no such column" in message
    for data in ("shop.csv", "iris"):
        message = fail("fit", data, "-k", 2, "--layer", "counts")
        assert f"{data} has no layers; leave" in message


@pytest.mark.filterwarnings("default")
def test_predict_takes_the_layer_of_the_fit():
    cells = write_cells("a.h5ad")
    invoke("fit", "a.h5ad", "-k", 2, "--layer", "counts", "--save", "m.npz")
    found = document("predict", "m.npz", "a.h5ad", "-o", "a.csv")
    assert "Took layer 'counts', as the fit did." in found["notes"]
    counts = pd.DataFrame(cells.layers["counts"], columns=cells.var_names)
    labels = load_saved("m.npz").model.predict(counts)
    assert [int(row["cluster"]) for row in read("a.csv")] == labels.tolist()
    write_cells("b.h5ad", layers=())
    message = fail("predict", "m.npz", "b.h5ad")
    assert "--layer 'counts': b.h5ad has no such layer; it has 'X'" in message
    good("predict", "m.npz", "b.h5ad", "--layer", "X")


# Totals


def test_a_total_is_named_by_fit_and_predict():
    frame = shop()
    frame.to_csv("shop.csv", index=False)
    line = ["-k", 3, "--id-column", "customer no."]
    good("fit", "shop.csv", *line, "--save", "m.npz")
    total = frame.sum().to_frame().T
    total["customer no."] = "all"
    note = pd.DataFrame({"customer no.": ["As of 31.12.2023, net"]})
    pd.concat([frame, total, note]).to_csv("new.csv", index=False)
    for command in (("fit", "new.csv", *line), ("predict", "m.npz", "new.csv")):
        done = invoke(*command, "--missing", "drop")
        assert "Line 92 is the sum of all rows above it. If it is a" in done.stderr


def logged(path, *, layer=True, centred=False):
    """Write counts of two types as most files have them: logarithms in X."""
    rng = np.random.default_rng(0)
    types, depths = np.arange(80) % 2, rng.lognormal(0, 1, (80, 1))
    counts = rng.poisson(depths * rng.gamma(1, 4, (2, 30))[types]).astype(float)
    X = np.log1p(counts / counts.sum(axis=1, keepdims=True) * 1e4)
    X = (X - X.mean(axis=0)) / X.std(axis=0) if centred else X
    cells = anndata.AnnData(X, uns={"log1p": {}})
    if layer:
        cells.layers["counts"] = counts
    cells.write_h5ad(path)


def test_logarithms_in_a_file_of_cells_are_named():
    logged("a.h5ad")
    logged("b.h5ad", layer=False)
    logged("c.h5ad", centred=True)

    def notes(path, **asked):
        table = table_of(path, **asked, missing="error")
        return " ".join(map(str, table.notes))

    assert "X of a.h5ad holds logarithms" in notes("a.h5ad")
    assert "take them: --layer counts." in notes("a.h5ad")
    assert "--layer LAYER" in notes("b.h5ad")
    assert "were centred" in notes("c.h5ad")
    assert "logarithms" not in notes("a.h5ad", layer="counts")
    cells = anndata.read_h5ad("b.h5ad")
    cells.uns.clear()  # cells show it too
    cells.layers["logs"] = cells.X
    cells.write_h5ad("d.h5ad")
    assert "X of d.h5ad holds logarithms" in notes("d.h5ad")
    assert "logs of d.h5ad holds logarithms" in notes("d.h5ad", layer="logs")
