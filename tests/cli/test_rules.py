"""Which columns are left out, and rows without a known label."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import document, good, invoke, named, notes_of, table_of

from ihgmm import make_ihgmm
from ihgmm.cli.tables.columns.measurement import no_measurement

CODE = "named like a code, id or year; name it among --columns to use it"
IDS = "looks like ids; --id-column takes them"
STARTS_AGAIN = "numbers of rows, which start again: 1 to 12"


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("year", [1985, 1995, 1985], "years"),
        (
            "model_yr",
            [78, 85, 85],
            "named like a code, id or year; name it among --columns to use it",
        ),
        ("founded", [1985, 1995, 1985], "years"),
        ("Day", [*range(1, 32), 4], "days of the month"),
        ("day", [0, 3, 9, 9], ""),  # of an experiment
        ("billingDays", [10, 31, 31], ""),
        ("date", [111597, 11698, 11698], "dates"),
        ("update", [16527, 16527, 20186], ""),
        ("id", [3, 7, 12, 15], IDS),
        ("id", [3, 7, 7, 15], CODE),
        ("__index_level_0__", [0, 2, 3, 7], IDS),
        ("dept", [4, 4, 11], CODE),
        ("Sample Number", [*range(1, 13), *range(1, 7)], STARTS_AGAIN),
        ("number", [1, 2, 3, 3, 7], ""),  # of tumours
        ("countyid", [20, 20, 31], CODE),
        ("humid", [20, 20, 31], ""),
        ("pidnum", [10056, 10059, 10089], IDS),
        ("numnum", [20, 20, 31], ""),
        ("platinum", [20, 25, 31], ""),
        ("occupation_husb", [1, 5, 6, 6], CODE),
        ("site_latitude", [36.03, 36.1], "coordinates"),
        ("long", [-93.2, 188.1, 2.0], "coordinates"),
        ("length", [-93.2, 188.1, 2.0], ""),
        ("trt", [1, 2, 2], "a code of two values: 1 and 2"),
        ("", [1, 2, 2], ""),  # one of many genes
        ("sex", [0, 1, 1], ""),
        ("temperature", [170, 180, 170], ""),
        ("year", [2024, 2024], ""),  # a constant, as all others
    ],
)
def test_what_measures_nothing(name, values, reason):
    assert no_measurement(name, np.array(values, float)) == reason


def test_numbers_that_rise_through_the_first_column_are_ids():
    frame = named(make_ihgmm(120, 6, 2)[0])
    numbers = np.cumsum([1, 3, 11] * 40)
    frame.insert(0, "seqn", numbers)
    frame["last"] = numbers
    frame.to_csv("a.csv")  # after the numbers that pandas writes
    left_out = table_of("a.csv").left_out

    assert list(left_out) == ["Unnamed: 0", "seqn"]
    assert left_out["seqn"] == "rises from row to row, as ids do; --id-column takes it"

    for values in (numbers[::-1], numbers[:99], numbers - 9, numbers * 1.1):
        assert no_measurement("seqn", values, True) == ""


def sparse_columns():
    """Return a table with columns that are 40%, 60% and 99% empty, and a constant."""
    frame = named(make_ihgmm(200, 6, 2, random_state=0)[0])
    frame.loc[:79, "f1"] = frame.loc[:119, "f2"] = frame.loc[:197, "f3"] = np.nan
    frame["unit"] = [7.0, np.nan] * 100
    return frame


def test_columns_that_are_mostly_empty_are_left_out_and_named_once():
    sparse_columns().to_csv("a.csv", index=False)
    table = table_of("a.csv", missing="auto")

    assert table.left_out == {
        "f2": "60.0% of it empty",
        "f3": "99.0% of it empty",
        "unit": "constant: 7",
    }

    notes = notes_of(table)

    assert "Filled in 80 missing cells (10.0%), in column 'f1' (80)." in notes

    for name in ("f2", "f3", "unit"):
        assert notes.count(repr(name)) == 1

    # Rows are dropped for what is used alone.
    assert table_of("a.csv", missing="drop").X.shape == (120, 4)

    # Of the rows that are left, more columns may be constant; other ways are named.
    frame = sparse_columns()
    frame["flag"] = frame["f1"].notna()
    frame.to_csv("b.csv", index=False)
    table = table_of("b.csv", missing="drop")

    assert table.left_out["flag"] == "constant in the rows that are left: 1"
    assert table.left_out["unit"] == "constant: 7"

    notes = notes_of(table)

    assert "in column 'f1' (80). --missing fit fills them in, zero reads" in notes
    assert "drop" not in notes

    # Where an empty cell means none, it is a number; and what is asked for is used.
    assert table_of("a.csv", missing="zero").X.shape == (200, 7)

    table = table_of("a.csv", missing="fit", columns=["f0", "f2", "f3"])

    assert table.names == ["f0", "f2", "f3"]


def test_a_table_of_ratings_keeps_its_columns():
    X = make_ihgmm(200, 6, 2, random_state=0)[0]
    X[np.random.default_rng(0).random(X.shape) < 0.6] = np.nan
    named(X).to_csv("a.csv", index=False)

    assert table_of("a.csv", missing="fit").left_out == {}


def test_rows_without_a_known_label_are_no_class():
    X, kinds = make_ihgmm(120, 12, 3, random_state=0)
    labels = np.array(["a", "b", "none"], dtype=object)[kinds]
    labels[:7] = ["", "NA", " ", "?", "", "", "NaN"]
    named(X).assign(kind=labels).to_csv("a.csv", index=False)
    command = ("fit", "a.csv", "-k", 3, "--label-column", "kind")
    comparison = document(*command)["known_labels"]

    assert comparison["classes"] == 3
    assert comparison["rows"] == 113
    assert not comparison["by_majority"]
    assert comparison["misplaced"] == 0
    assert "(3 classes; 7 rows without one): 0 of 113 rows differ" in good(*command)

    good("report", *command[1:], "-o", "r.html")
    page = Path("r.html").read_text()

    assert "0 of 113 rows differ (0%)" in page
    assert "7 rows without a known label are not compared." in page


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt"])
def test_spaces_between_cells(suffix):
    path = Path(f"a{suffix}")
    path.write_text('  "a b"   c\n 1.5  2\n  3   NA  \n  4   5  \n')
    table = table_of(str(path), missing="fit")

    assert table.names == ["a b", "c"]
    np.testing.assert_array_equal(table.X, [[1.5, 2], [3, np.nan], [4, 5]])

    path.write_text('"x" "y"\n"r 1" 2 3\n"r 2" 4 6.5\n')  # as R writes it
    table = table_of(str(path))

    assert (table.names, list(table.rows.ids)) == (["x", "y"], ["r 1", "r 2"])


def test_features_are_shown_of_twelve_clusters():
    note = "Features are shown of the 12 largest clusters"
    for k in (12, 13):
        np.save("a.npy", make_ihgmm(40 * k, 20, k, random_state=0)[0])
        assert (note in invoke("fit", "a.npy", "-k", k).stdout) == (k > 12)


def test_rows_without_a_pattern_are_not_compared_and_not_certain():
    X, kinds = make_ihgmm(120, 12, 3, separation_constant=1.5, random_state=0)
    X[:4] = 50 * np.random.default_rng(0).standard_normal((4, 12))
    X[7] = 0
    named(X).assign(kind=kinds).to_csv("a.csv", index=False)
    command = ("fit", "a.csv", "-k", 3, "--label-column", "kind")
    invoke(*command, "-o", "fit.csv", "--save", "model.npz")
    invoke("predict", "model.npz", "a.csv", "-o", "new.csv")
    for path in ("fit.csv", "new.csv"):
        certainty = pd.read_csv(path)["certainty"]
        assert np.flatnonzero(certainty.isna()).tolist() == [7]

    command += ("--outliers", "auto")
    summary = json.loads(invoke(*command, "--json").stdout)
    n_outliers = summary["clusters"][-1]["rows"]

    assert summary["known_labels"]["rows"] == 120 - n_outliers < 120
    assert f"{n_outliers} outliers aside" in invoke(*command).stdout
