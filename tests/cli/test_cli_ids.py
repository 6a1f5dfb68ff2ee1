"""Ids on the command line: carried from file to file, and remembered by models."""

import csv
import json

import numpy as np
import pandas as pd
from command_line import COLUMNS, fail, invoke

from ihgmm import IhSC, make_ihgmm
from ihgmm.storage import save_model

X, LABELS = make_ihgmm(60, 8, 3, random_state=0)
NAMES = [f"f{i}" for i in range(8)]
FORMULAS = ['=HYPERLINK("http://x","y")', "@SUM(1)", "+cmd", "-1+1", "\t=1", "\uff1d1"]
HARMLESS = ["-5", "+3.2", "-.5e-3", "007", "a=b", "", "x", "'=1", " NA "]


def run(*arguments):
    """Return what a command says on standard output and on standard error."""
    result = invoke(*arguments)

    assert result.exit_code == 0, result.stderr or result.exception

    return result.stdout, result.stderr


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter="\t" if path.endswith("tsv") else ","))


def table(name="customer", ids=None):
    """Return data with ids, text and known labels."""
    data = pd.DataFrame(X, columns=NAMES)
    data.insert(0, name, [f"{i:03d}" for i in range(60)] if ids is None else ids)
    return data.assign(city="Bonn", kind=np.array(["x", "y", "z"])[LABELS])


def test_formulas_get_an_apostrophe_unless_cells_are_raw():
    ids = [*FORMULAS, *HARMLESS, *map(str, range(45))]
    escaped_ids = [f"'{cell}" if cell in [*FORMULAS, "'=1"] else cell for cell in ids]
    table(ids=ids).to_csv("a.csv", index=False)
    fit = ["fit", "a.csv", "-k", 3, "--id-column", "customer", "--save", "m.npz"]
    note = (
        "7 cells of labels.tsv begin like a formula, the first is "
        f"{FORMULAS[0]!r}: with an apostrophe in front no spreadsheet runs it. "
        "--raw-cells writes cells as they are."
    )
    out, err = run(*fit, "-o", "labels.tsv")

    assert err == f"note: {note}\n"
    assert "formula" not in out

    command = ["predict", "m.npz", "a.csv", "-o", "labels.tsv"]
    out, err = run(*command, "--json")

    assert json.loads(out)["notes"][-1] == note
    assert err == ""
    assert [row[0] for row in read("labels.tsv")] == ["customer", *escaped_ids]
    assert run(*command, "--quiet") == ("", f"note: {note}\n")
    assert run(*command[:-2])[1] == ""  # no file, no note
    assert run(*command[:-1], "labels.csv", "--raw-cells", "-q") == ("", "")
    assert [row[0] for row in read("labels.csv")] == ["customer", *ids]


def test_predict_knows_the_columns_of_the_fit():
    data = table()
    data.to_csv("a.csv", index=False)
    run("fit", "a.csv", "-k", 3, "--id-column", "customer", "--label-column", "kind",
        "--save", "m.npz")  # fmt: skip
    data = data[data.columns[::-1]]
    data.loc[4, "f2"] = np.nan
    data.to_csv("new.csv", index=False)
    data.to_parquet("new.parquet")

    assert "in column 'f2' (1)" in fail("predict", "m.npz", "new.csv")

    remaining_ids = [f"{i:03d}" for i in range(60) if i != 4]
    options = ["m.npz", "new.parquet", "--missing", "drop", "-o", "out.csv"]
    out, err = run("predict", *options)

    assert "Took --id-column 'customer', as the fit did." in out
    assert "Took --label-column 'kind', as the fit did." in out
    assert "(3 classes): 0 of 59 rows differ" in out

    # What is left out of the data is said also where little is said.
    assert err == (
        "warning: Left out 1 of 60 rows, with missing cells in column 'f2' (1).\n"
    )
    assert run("predict", *options, "-q") == ("", err)

    rows = read("out.csv")

    assert rows[0] == ["customer", *COLUMNS[1:]]
    assert [row[0] for row in rows[1:]] == remaining_ids

    # What is said on the command line wins.
    out, _ = run("predict", *options, "--id-column", "city", "--label-column", "city")

    assert "Took" not in out
    assert [row[0] for row in read("out.csv")] == ["city", *["Bonn"] * 59]
    assert "(1 class): " in out

    features = data.drop(columns=["customer", "kind"]).dropna()
    features.to_csv("bare.csv", index=False)
    out, _ = run("predict", "m.npz", "bare.csv", "-o", "out.csv")

    assert "There is no 'customer': rows go by their" in out
    assert "known labels" not in out
    assert [row[0] for row in read("out.csv")][:3] == ["row", "1", "2"]

    np.save("bare.npy", features[NAMES])

    assert "rows go by their number" in run("predict", "m.npz", "bare.npy")[0]


def test_a_feature_is_no_id_whatever_a_model_says():
    model = IhSC(3, random_state=0).fit(X)
    save_model(model, "m.npz", feature_names=NAMES, id_column="f0", label_column="f1")
    table().to_csv("a.csv", index=False)
    out, _ = run("predict", "m.npz", "a.csv", "-o", "out.csv")

    assert "Took" not in out
    assert [int(row[1]) for row in read("out.csv")[1:]] == list(model.predict(X))

    message = fail("predict", "m.npz", "a.csv", "--id-column", "f2")

    assert "'f2': that column is clustered by; name another" in message

    columns = ["--columns", "f0,f1,f2"]
    message = fail("fit", "a.csv", "-k", 2, *columns, "--label-column", "f1")

    assert "--label-column 'f1': that column is clustered by; name another" in message


def test_ids_named_like_the_results():
    name = "cluster"
    table(name).to_csv("a.csv", index=False)
    options = ["a.csv", "--id-column", name, "-o", "out.csv"]
    for command in (["fit", "-k", 3, "--save", "m.npz"], ["predict", "m.npz"]):
        run(*command, *options)
        rows = read("out.csv")
        assert rows[0] == [f"id_{name}", *COLUMNS[1:]]
        assert [row[0] for row in rows[1:]] == list(table()["customer"])
