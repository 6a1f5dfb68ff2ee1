"""Ten files as people have them: read, prepared and clustered without an option."""

from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from command_line import good, read

from ihgmm.cli.tables.preparation import prepare
from ihgmm.cli.tables.reading import read_table
from ihgmm.cli.tables.table import Request
from ihgmm.metrics import misclassification_rate


def customers(n=150, seed=0):
    """Three kinds of customers of very different sizes; columns in different units."""
    rng = np.random.default_rng(seed)
    kinds = np.resize([0, 1, 2], n)
    habits = np.array(
        [[9, 1, 1, 6, 1, 2, 8, 1], [1, 8, 2, 1, 7, 1, 1, 6], [1, 2, 9, 2, 1, 8, 2, 2]]
    )
    sizes = np.exp(rng.normal(0, 0.7, (n, 1)))
    X = habits[kinds] * sizes * np.exp(rng.normal(0, 0.15, (n, 8)))
    units = np.array([1000, 1, 10, 100, 1, 0.1, 50, 5])
    names = [
        "revenue",
        "visits",
        "basket",
        "returns",
        "calls",
        "rate",
        "miles",
        "hours",
    ]
    return pd.DataFrame(np.round(X * units, 3), columns=names), kinds


def with_thousands(path):
    table, kinds = customers()
    table["revenue"] = [f"{value:,.2f}" for value in table["revenue"]]
    table["miles"] = [f"{value:,.1f}" for value in table["miles"]]
    table.to_csv(path, index=False)
    return kinds, ["Read numbers as people write them in 'revenue', 'miles' ('"]


def with_decimal_commas(path):
    table, kinds = customers()
    table.to_csv(path, index=False, sep=";", decimal=",")
    return kinds, ["Read commas as decimal points."]


def with_a_byte_order_mark(path):
    table, kinds = customers()
    table.to_csv(path, index=False, encoding="utf-8-sig")
    return kinds, ["Used 8 columns: 'revenue', 'visits'"]


def in_utf16(path):
    table, kinds = customers()
    table.to_csv(path, index=False, sep="\t", encoding="utf-16")
    return kinds, ["Read as UTF-16."]


def with_duplicate_headers(path):
    table, kinds = customers()
    table.columns = ["a", "b", "a", "c", "a", "d", "b", "e"]
    table.to_csv(path, index=False)
    return kinds, ["the name of another one as 'a.1', 'a.2', 'b.1'"]


def with_a_constant_column(path):
    table, kinds = customers()
    table.insert(2, "year", 2024)
    table.to_csv(path, index=False)
    return kinds, ["Left out 1 column: 'year' (constant: 2024)."]


def with_ids_and_dates(path):
    table, kinds = customers()
    days = pd.date_range("2021-01-31", periods=len(table))
    table.insert(0, "customer_id", np.arange(len(table)) * 7 + 1001)
    table["since"] = days.strftime("%Y-%m-%d")
    table["birthday"] = days.strftime("%d.%m.%Y")
    table["day"] = days.strftime("%Y%m%d")
    table["city"] = np.resize(["Rome", "Bonn", "Oslo", "Lima"], len(table))
    table.to_csv(path, index=False)
    return kinds, [
        "'customer_id' (looks like ids",
        "'since', 'birthday', 'day' (dates), 'city' (text such as 'Rome')",
    ]


def with_missing_cells(path):
    table, kinds = customers()
    holes = np.random.default_rng(1).random(table.shape) < 0.03
    table = table.astype(object)
    table = table.where(~holes, np.resize(["", "NA", "-", "?"], table.shape))
    table.to_csv(path, index=False)
    return kinds, [f"Filled in {holes.sum()} missing cells (", "Divided 8 columns by"]


def as_spreadsheet(path):
    table, kinds = customers()
    table.insert(0, "name", [f"customer {i}" for i in range(len(table))])
    with pd.ExcelWriter(path) as book:
        pd.DataFrame().to_excel(book, sheet_name="cover")
        table.to_excel(book, sheet_name="data", index=False, startrow=2)
        book.sheets["data"]["A1"] = "Customers of 2024"
    return kinds, ["Read sheet 'data' (not 'cover'), names of columns from row 3."]


def as_anndata(path):
    rng = np.random.default_rng(0)
    kinds = np.resize([0, 1, 2], 150)
    profiles = rng.gamma(0.5, size=(3, 60)) + 0.05
    profiles /= profiles.sum(axis=1, keepdims=True)
    totals = 400 * np.exp(rng.normal(0, 0.7, (150, 1)))
    counts = rng.poisson(totals * profiles[kinds]).astype(np.float32)
    counts[:, 7] = 5  # a spike that was added to every cell
    cells = anndata.AnnData(sp.csr_matrix(counts))
    cells.obs_names = [f"cell{i}" for i in range(150)]
    cells.var_names = [f"gene{i}" for i in range(60)]
    cells.write_h5ad(path)
    return kinds, ["Left out 1 column: 'gene7' (constant: 5)."]


FILES = {
    "thousands.csv": with_thousands,
    "commas.csv": with_decimal_commas,
    "mark.csv": with_a_byte_order_mark,
    "utf16.tsv": in_utf16,
    "duplicates.csv": with_duplicate_headers,
    "constant.csv": with_a_constant_column,
    "ids.csv": with_ids_and_dates,
    "gaps.csv": with_missing_cells,
    "sheet.xlsx": as_spreadsheet,
    "cells.h5ad": as_anndata,
}


@pytest.mark.parametrize("name", FILES)
def test_everyday_file(name):
    kinds, phrases = FILES[name](name)
    text = good("fit", name, "-k", "auto", "-o", "labels.csv")
    first = "\n".join(text.splitlines()[:5])
    assert "150 rows, " in first
    for phrase in phrases:
        assert phrase in first
    labels = [row["cluster"] for row in read("labels.csv")]
    assert misclassification_rate(kinds, labels) <= 0.02
    # What is printed does the same in Python.
    table = prepare(read_table(Request(name), missing="auto"), "auto")
    printed = text[text.index("in Python:") :].splitlines()[1:]
    lines = [line[4:] for line in printed if line.startswith("    ") or not line]
    assert lines == list(table.python)
    space = {}
    exec("\n".join(lines), space)
    X = space["X"].toarray() if sp.issparse(space["X"]) else np.asarray(space["X"])
    expected = table.X.toarray() if table.is_sparse else table.X
    np.testing.assert_allclose(X, expected, rtol=1e-12)


@pytest.mark.parametrize("name", FILES)
def test_report_of_an_everyday_file(name):
    _, phrases = FILES[name](name)
    first = good("report", name, "-k", "auto", "-o", "page.html").splitlines()[:5]
    for phrase in phrases:
        assert phrase in "\n".join(first)
    assert "</html>" in Path("page.html").read_text(encoding="utf-8")
