"""Commands for known classes, batches, and rows that come later."""

import re

import numpy as np
import pandas as pd
import pytest
from command_line import GOODS, clusters, document, fail, good, invoke, read, shop

from ihgmm.storage import load_model

KINDS = np.array(["dairy", "meat", "fish"])


@pytest.fixture(autouse=True)
def customers(folder):
    table = shop(240)
    table["kind"] = np.where(np.arange(240) % 12 < 3, KINDS[np.arange(240) % 3], "")
    table["shop"] = np.where(np.arange(240) // 3 % 2, "east", "west")
    table.loc[table["shop"] == "east", GOODS] *= [1, 3, 1, 0.4, 2]
    table.iloc[:150].to_csv("monday.csv", index=False)
    table.iloc[150:].to_csv("tuesday.csv", index=False)


FIT = ["fit", "monday.csv", "-k", 3, "--id-column", "customer no.", "--prepare", "none"]
BATCHES = [*FIT, "--batch-column", "shop", "--drop-columns", "kind"]


def test_known_classes_teach_and_are_written():
    options = ["--known-column", "kind", "--batch-column", "shop", "-o", "labels.csv"]
    text = good(*FIT, *options, "--save", "model.npz")

    assert "Clusters stand for classes: 0 'dairy', 1 'fish', 2 'meat'." in text
    assert "(the 39 labels given aside). Refitting on other rows keeps " in text

    rows = read("labels.csv")

    assert [row["class"] for row in rows] == KINDS[np.arange(150) % 3].tolist()

    good("predict", "model.npz", "tuesday.csv", "-o", "new.csv")

    assert [row["class"] for row in read("new.csv")][:3] == KINDS.tolist()


def test_batches_are_taken_out():
    good(*BATCHES, "-o", "labels.csv", "--save", "model.npz")
    labels = clusters("labels.csv")

    assert all(len(set(labels[i::3])) == 1 for i in range(3))

    text = good("predict", "model.npz", "tuesday.csv", "-o", "new.csv")

    assert "Took --batch-column 'shop', as the fit did." in text
    assert clusters("new.csv")[:3] == labels[:3]

    text = fail("update", "model.npz", "tuesday.csv", "--save", "model.npz")

    assert "partial_fit cannot go on" in text


def test_a_model_goes_on_with_new_rows():
    good(*FIT, "--drop-columns", "kind,shop", "--save", "model.npz")
    model = load_model("model.npz")
    summary = document("update", "model.npz", "tuesday.csv", "--save", "model.npz")

    assert summary["n_samples_seen"] == 240
    assert sum(line["new_rows"] for line in summary["clusters"]) == 90

    updated_model = load_model("model.npz")

    assert updated_model.n_samples_seen_ == 240
    assert updated_model.feature_names_in_.tolist() == GOODS

    centers = pd.DataFrame(updated_model.cluster_centers_, columns=GOODS)

    np.testing.assert_array_equal(model.predict(centers), [0, 1, 2])

    text = good("update", "model.npz", "tuesday.csv", "--save", "again.npz")

    assert "learnt from 90 rows of tuesday.csv, and 330 in all" in text
    assert summary["share_moved"] == 0

    good(*FIT, "-k", 7, "--drop-columns", "kind,shop", "--save", "seven.npz")
    text = good("update", "seven.npz", "tuesday.csv", "--save", "seven.npz")

    assert "% of earlier rows have another label now; ihgmm predict labels" in text


def test_rows_in_other_units_are_told():
    good(*FIT, "--drop-columns", "kind,shop", "--save", "model.npz")
    table = pd.read_csv("tuesday.csv")

    assert "same units" not in good("predict", "model.npz", "tuesday.csv")

    for factor, words in ((1000, "or more"), (0.001, "or less")):
        rescaled_table = table.assign(**{name: factor * table[name] for name in GOODS})
        rescaled_table.to_csv("changed.csv", index=False)
        result = invoke("predict", "model.npz", "changed.csv")
        assert "warning: Half of the rows are" in result.stderr
        assert f"those of the fit, {words}: are columns in the" in result.stderr


def test_batches_leave_zero_where_it_is():
    table = pd.read_csv("monday.csv").assign(hPa=99e3 + 9e2 * np.sin(np.arange(150)))
    table.to_csv("monday.csv", index=False)
    text = good(*BATCHES, "--prepare", "auto")

    assert "Divided 6 columns" in text
    assert "None is centred: batches multiply columns." in text

    text = fail(*BATCHES, "--prepare", "standardize")

    assert "divide without centring, --prepare scale." in text

    table.assign(meat=table["meat"] - 10).to_csv("monday.csv", index=False)
    text = fail(*BATCHES, "--prepare", "scale")

    assert "goes below 0 in 1 of 6 columns: --drop-columns 'meat'." in text


def test_rows_with_missing_cells_are_left_out_where_batches_are_taken_out():
    table = pd.read_csv("monday.csv")
    table.loc[::9, GOODS[2]] = np.nan
    table.to_csv("monday.csv", index=False)

    assert "Left out 17 of 150 rows, with missing" in invoke(*BATCHES).stderr

    text = fail(*BATCHES, "--missing", "fit")

    assert "fit and --outliers cells: leave them out, and give --missing drop." in text


def test_missing_cells_are_filled_in_where_the_fit_did():
    for day in ("monday", "tuesday"):
        table = pd.read_csv(f"{day}.csv").drop(columns=["kind", "shop"])
        table.to_csv(f"{day}.csv", index=False)
        table.loc[::9, GOODS[2]] = np.nan
        table.to_csv(f"{day}-gaps.csv", index=False)
    good("fit", "monday-gaps.csv", *FIT[2:], "--save", "gaps.npz")
    summary = document("update", "gaps.npz", "tuesday-gaps.csv", "--save", "gaps.npz")

    assert summary["n_samples_seen"] == 240

    # Scales are those of observed cells, in the fit and later; so are labels.
    good("fit", "monday-gaps.csv", *FIT[2:], "--save", "own.npz", "-o", "fit.csv")
    good("predict", "own.npz", "monday-gaps.csv", "-o", "later.csv")
    fit_rows = pd.read_csv("fit.csv")
    predicted_rows = pd.read_csv("later.csv")

    assert (fit_rows["cluster"] == predicted_rows["cluster"]).all()
    assert np.abs(fit_rows["scale"] - predicted_rows["scale"]).max() < 0.1
    assert fit_rows["certainty"].min() >= 1 / 3

    good(*FIT, "--save", "whole.npz")
    table.iloc[:1].to_csv("one.csv", index=False)  # in which a column is empty
    document("update", "gaps.npz", "one.csv", "--save", "gaps.npz")

    assert "Filled in 1 missing cell" in good("predict", "gaps.npz", "one.csv")

    good("predict", "whole.npz", "one.csv", "--missing", "zero")
    for rows in ("tuesday-gaps.csv", "one.csv"):
        text = fail("update", "whole.npz", rows, "--save", "new.npz")
        assert "--missing zero reads them as 0" in text  # it cannot fill them in


def test_what_cannot_be_done_is_said():
    text = fail(*BATCHES, "--method", "SphericalKMeans")

    assert "--known-column and --batch-column: SphericalKMeans takes neither" in text
    assert "no such column" in fail(*FIT, "--known-column", "kinds")

    spherical = ("--method", "SphericalKMeans", "--drop-columns", "kind,shop")
    good(*FIT, *spherical, "--save", "means.npz")
    text = fail("update", "means.npz", "tuesday.csv", "--save", "new.npz")

    assert "means.npz is no model of IhSC" in text
    assert invoke("update", "means.npz", "tuesday.csv").exit_code == 2


def test_wild_cells_are_counted_without_missing_ones():
    table = pd.read_csv("monday.csv")[GOODS].astype(float)
    table.iloc[::5, 1] = np.nan
    table.iloc[[3, 7], [0, 2]] = 1e6
    table.assign(hPa=99e3 + 9e2 * np.sin(np.arange(150))).to_csv("w.csv", index=False)
    arguments = ("fit", "w.csv", "-k", 3, "--outliers", "cells", "-o", "l.csv")
    notes = " ".join(document(*arguments)["notes"])

    assert "Filled in 30 missing cells" in notes

    (count,) = re.findall(r"(\d+) wild cells had no part", notes)

    assert 4 <= int(count) < 30
