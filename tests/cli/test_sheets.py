"""Sheets as people keep them, places in a file, and layers of AnnData files."""

import re
import zipfile
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
from command_line import (
    GOODS,
    clusters,
    document,
    fail,
    good,
    invoke,
    notes_of,
    shop,
    table_of,
)

from ihgmm.cli.tables.columns import judging
from ihgmm.cli.tables.files import workbooks
from ihgmm.cli.tables.files.text_files import find_header
from ihgmm.storage import load_saved

FIT = ("fit", "a.xlsx", "-k", 3)


def test_cells_are_named_as_the_file_does():
    frame = shop()
    frame["meat"] = frame["meat"].astype(object)
    frame.loc[3, "meat"] = "ten"
    frame.to_csv("a.csv", index=False)
    frame.to_excel("a.xlsx", index=False, startrow=2)
    command = ("fit", "-k", 3, "--drop-columns", "customer no.")

    assert "'ten' in line 5: taken" in invoke(*command, "a.csv").stderr
    assert "'ten' in row 7 of the sheet: taken" in invoke(*command, "a.xlsx").stderr

    text = "a,b\n1,2\n\n\n3,inf\n4,1\n"  # lines that are empty
    Path("b.csv").write_text(text)

    assert "infinity in line 5, column 'b'" in fail("fit", "b.csv", "-k", 2)

    frame.loc[3, "meat"] = None
    frame.to_csv("a.csv", index=False)
    command = ("fit", "a.csv", "-k", 3, "--missing", "error")

    assert "the first is in line 5." in fail(*command)

    message = fail(*command, "--id-column", "customer no.")

    assert "the first is in customer no. '104'." in message


def far_out(path, cell, extra=b""):
    """Write a sheet in which something stands far from the table."""
    shop().to_excel("whole.xlsx", index=False)
    with zipfile.ZipFile("whole.xlsx") as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            text = source.read(name)
            if name == "xl/worksheets/sheet1.xml":
                text = text.replace(b"</sheetData>", cell + b"</sheetData>")
                text = re.sub(b'<dimension ref="[^"]*"', extra or rb"\g<0>", text)
            target.writestr(name, text, zipfile.ZIP_DEFLATED)


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
    message = fail(*FIT)

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


def test_many_sheets_count_together_and_empty_columns_are_not_parsed(monkeypatch):
    with pd.ExcelWriter("a.xlsx") as book:
        for title in ("one", "two", "three"):
            shop().to_excel(book, sheet_name=title, index=False)
            book.sheets[title].cell(2, 500, 1.0)
    with monkeypatch.context() as patch:
        patch.setattr(workbooks, "MOST_CELLS", 100_000)
        assert "it reaches over 136,500 cells" in fail(*FIT)

    parsed_columns = []
    as_texts = judging.as_texts
    monkeypatch.setattr(
        judging, "as_texts", lambda cells: parsed_columns.append(1) or as_texts(cells)
    )
    names = [*shop().columns]

    assert [name for name in table_of("a.xlsx").names if name in names] == names
    assert len(parsed_columns) <= len(names)


def test_an_archive_that_unpacks_to_too_much_is_refused():
    far_out("a.xlsx", b"<row/>")
    with zipfile.ZipFile("a.xlsx", "a") as book:
        book.writestr("image.png", b"")
        book.getinfo("image.png").file_size = 2 * 10**9  # as its header says
    message = fail("fit", "a.xlsx", "-k", 3, "--memory", 1)

    assert "a.xlsx is too large for 1 GB of memory; raise --memory" in message


def test_predict_remembers_that_empty_cells_meant_zero():
    frame = shop()
    is_missing = np.random.default_rng(2).random((90, 5)) < 0.05
    frame[GOODS] = frame[GOODS].mask(is_missing)
    frame.to_csv("a.csv", index=False)
    arguments = ("--id-column", "customer no.", "--missing", "zero")
    good("fit", "a.csv", "-k", 3, *arguments, "--save", "m.npz", "-o", "a.out.csv")

    assert load_saved("m.npz").empty_is_zero

    summary = document("predict", "m.npz", "a.csv", "-o", "b.csv")

    assert (
        f"Read {is_missing.sum()} missing cells as 0, as the fit did."
        in summary["notes"]
    )
    assert clusters("a.out.csv") == clusters("b.csv")

    # What is asked for goes before.
    message = fail("predict", "m.npz", "a.csv", "--missing", "error")

    assert "have missing cells" in message


@pytest.mark.parametrize("suffix", [".xlsx", ".csv"])
def test_titles_and_empty_rows_are_no_customers(suffix):
    frame = shop()
    frame = frame.assign(name="Maria", spent=frame[GOODS].sum(axis=1).round(2))
    title = ["Turnover (EUR, net)"]
    head = [*frame.columns]
    rows = frame.values.tolist()
    sheet = pd.DataFrame([title, head, *rows[:40], [], *rows[40:]])
    if suffix == ".xlsx":
        sheet.to_excel("a.xlsx", header=False, index=False)
    else:
        texts = sheet.map(
            lambda cell: cell if isinstance(cell, str) else str(cell).replace(".", ","),
            na_action="ignore",
        )
        texts.to_csv("a.csv", sep=";", header=False, index=False, encoding="cp1252")
    table = table_of(f"a{suffix}", missing="error")

    np.testing.assert_array_equal(table.X[:, :5], shop()[GOODS])

    notes = notes_of(table)
    place = "row 2" if suffix == ".xlsx" else "line 2"

    assert "'customer no.' (looks like ids" in notes
    assert f"names of columns from {place}" in notes
    assert "Left out 1 empty row." in notes
    assert table.rows.ids.tolist() == [*range(1, 41), *range(42, 92)]


@pytest.mark.parametrize(
    ("text", "n_titles"),
    [
        ("Sales, 2023 (EUR, net);;\na;b;c\n1,5;2,5;3\n", 1),
        ("Sales, 2023\n\nnet\na;b;c\n1;2;3\n", 3),
        ("Sales\na,b,c\n1,2,3\n", 1),
        ("Sales\ta\tb\n1\t2\t3\n", 0),
        ("a;b;c\n1,5;2,5;3,5\n4,5;5,5;6,5\n", 0),
        ("revenue, EUR;cost\n1;2\n3;4\n", 0),
        ("id,,\n1,2,3\n", 0),  # numbers are no names
        ("1,2\n3,4\n", 0),
        ("a\n1\n2\n", 0),
    ],
)
def test_titles_are_told_from_names(text, n_titles):
    names = text.splitlines()[n_titles]
    delimiter = next((mark for mark in ";\t" if mark in names), ",")
    header = find_header(text, ".csv")

    assert (header.delimiter, header.n_rows_above) == (delimiter, n_titles)


def test_notes_and_a_pivot_come_first():
    with pd.ExcelWriter("a.xlsx") as book:
        notes = pd.DataFrame(["Contact: Anna"], columns=["Read me"])
        notes.to_excel(book, sheet_name="Notes", index=False)
        sums = shop()[GOODS].describe().reset_index()
        sums.to_excel(book, sheet_name="Pivot", index=False)
        shop().to_excel(book, sheet_name="2023", index=False)
        shop(60).to_excel(book, sheet_name="2024", index=False)
    summary = document(*FIT)
    note = "Read sheet '2023' (--sheet takes another: 'Notes', 'Pivot', '2024')."

    assert note in summary["notes"]
    assert summary["n_samples"] == 90

    summary = document(*FIT, "--sheet", "2024", "--save", "m.npz")

    assert summary["n_samples"] == 60

    summary = document("predict", "m.npz", "a.xlsx", "--sheet", "2024")

    assert summary["n_samples"] == 60

    message = fail(*FIT, "--sheet", "2O24")

    assert "no such sheet (did you mean '2024'" in message

    message = fail(*FIT, "--sheet", "Notes")

    assert "(--sheet takes another: 'Pivot', '2023', '2024')." in message
    assert "iris has no sheets" in fail("fit", "iris", "-k", 3, "--sheet", "a")


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

    names = ["gene4", "gene1"]
    table = table_of("a.h5ad", layer="counts", columns=names, missing="error")

    np.testing.assert_array_equal(table.X, cells.layers["counts"][:, [4, 1]])
    assert table.names == names

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


def test_predict_takes_the_layer_of_the_fit():
    cells = write_cells("a.h5ad")
    invoke("fit", "a.h5ad", "-k", 2, "--layer", "counts", "--save", "m.npz")
    summary = document("predict", "m.npz", "a.h5ad", "-o", "a.csv")

    assert "Took layer 'counts', as the fit did." in summary["notes"]

    counts = pd.DataFrame(cells.layers["counts"], columns=cells.var_names)
    labels = load_saved("m.npz").model.predict(counts)

    assert [*map(int, clusters("a.csv"))] == labels.tolist()

    write_cells("b.h5ad", layers=())
    message = fail("predict", "m.npz", "b.h5ad")
    reason = "that of the fit was 'counts': b.h5ad has no such layer"

    assert f"give --layer; {reason}" in message

    result = invoke("predict", "m.npz", "b.h5ad", "--layer", "X")

    assert "times as large as those of the fit" in result.stderr


def logged(path, *, layer=True, centred=False):
    """Write counts of two types as most files have them: logarithms in X."""
    rng = np.random.default_rng(0)
    types = np.arange(80) % 2
    depths = rng.lognormal(0, 1, (80, 1))
    counts = rng.poisson(depths * rng.gamma(1, 4, (2, 30))[types]).astype(float)
    X = np.log1p(counts / counts.sum(axis=1, keepdims=True) * 1e4)
    if centred:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    # HDF5 keeps None in an array without a shape.
    cells = anndata.AnnData(X, uns={"log1p": {"base": None}})
    if layer:
        cells.layers["counts"] = counts
    cells.write_h5ad(path)


def test_logarithms_in_a_file_of_cells_are_named():
    logged("a.h5ad")
    logged("b.h5ad", layer=False)
    logged("c.h5ad", centred=True)

    def notes(path, **asked):
        return notes_of(table_of(path, **asked, missing="error"))

    assert "X of a.h5ad is logged" in notes("a.h5ad")
    assert "take it: --layer counts." in notes("a.h5ad")
    assert "or undo the logarithm: np.expm1." in notes("b.h5ad")
    assert "X of c.h5ad is centred" in notes("c.h5ad")
    assert "logged" not in notes("a.h5ad", layer="counts")
