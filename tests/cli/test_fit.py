"""What ``ihgmm fit`` says about clusters, and what it writes about rows."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import COLUMNS, document, good, invoke, named, read, write

from ihgmm import IhSC, diagnose, make_ihgmm
from ihgmm.cli.options import METHODS
from ihgmm.storage import load_model


@pytest.mark.parametrize("method", METHODS)
def test_every_method_describes_its_clusters(sample, method):
    write("a.csv", sample[0], None)
    result = invoke("fit", "a.csv", "-k", 3, "--method", method.lower(), "-o", "l.csv")

    assert result.exit_code == 0, result.exception
    assert f"3 clusters ({method})" in result.stdout

    frame = pd.read_csv("l.csv")

    assert list(frame) == COLUMNS

    means = frame.groupby("cluster")["scale"].mean()

    np.testing.assert_allclose(means, 1, atol=0.05)
    assert (frame["size"] >= 0).all()
    assert frame["certainty"].between(0, 1).all()
    assert (frame.groupby("cluster")["typical"].min() == 1).all()
    assert (frame["filled"] == 0).all()


def test_filled_cells_are_counted(sample):
    X = sample[0].copy()
    X[5, :3] = X[7, 2] = np.nan
    write("a.csv", X, None)
    good("fit", "a.csv", "-k", 3, "-o", "l.csv", "--save", "m.npz")
    good("predict", "m.npz", "a.csv", "-o", "p.csv")
    for file in ("l.csv", "p.csv"):
        counts = pd.read_csv(file)["filled"].to_numpy()
        np.testing.assert_array_equal(counts, np.isnan(X).sum(axis=1))


def test_certainty_is_that_of_the_diagnosis(sample):
    X, _ = sample
    write("a.csv", X, None)
    summary = document("fit", "a.csv", "-k", 3, "-o", "l.csv", "--save", "m.npz")
    model = IhSC(3, random_state=0).fit(X)
    diagnosis = diagnose(X, model.labels_)
    certainties = [float(row["certainty"]) for row in read("l.csv")]

    np.testing.assert_allclose(certainties, diagnosis.certainty, rtol=1e-4)

    cluster_means = [cluster["certainty"] for cluster in summary["clusters"]]
    certainty = diagnosis.certainty
    expected_means = [certainty[model.labels_ == k].mean() for k in range(3)]

    np.testing.assert_allclose(cluster_means, expected_means, rtol=1e-6)
    assert summary["verdict"] == diagnosis.verdict


def test_later_rows_are_as_sure_as_those_of_the_fit_whatever_their_company():
    X, _ = make_ihgmm(300, 60, 3, separation_constant=0.1, random_state=0)
    write("a.csv", X, None)
    good("fit", "a.csv", "-k", 3, "-o", "fit.csv", "--save", "m.npz")
    good("predict", "m.npz", "a.csv", "-o", "all.csv")
    np.save("few.npy", X[:4])
    good("predict", "m.npz", "few.npy", "-o", "few.csv")
    fit_rows = pd.read_csv("fit.csv")
    all_rows = pd.read_csv("all.csv")
    first_rows = pd.read_csv("few.csv")
    fit_certainty = fit_rows["certainty"]
    certainty = all_rows["certainty"]

    assert list(all_rows) == COLUMNS
    assert fit_certainty.mean() < 0.97
    assert certainty.mean() == pytest.approx(fit_certainty.mean(), abs=0.01)
    assert fit_certainty.corr(certainty, method="spearman") > 0.5
    assert first_rows["certainty"].tolist() == certainty[:4].tolist()
    assert first_rows["typical"].isna().all()


def test_a_warning_is_printed_once():
    X, _ = make_ihgmm(120, 12, 3, random_state=0)
    X[5] *= 1e-90
    X[0, 0] = 1e5
    named(X).to_csv("faint.csv", index=False)
    result = invoke("fit", "faint.csv", "-k", "3", "--prepare", "none")

    assert result.stderr.count("are shorter than") == 1


@pytest.mark.parametrize(("zeros", "text"), [(0, ""), (1, " but zeros")])
def test_rows_without_an_observed_cell_are_called_so(zeros, text):
    X, _ = make_ihgmm(120, 12, 3, random_state=0)
    X[:zeros] = 0
    X[[5, 7]] = np.nan
    names = [f"n{i}" for i in range(120)]
    named(X).assign(name=names, other=names).to_csv("x.csv", index=False)
    result = invoke("fit", "x.csv", "-k", "3", "--id-column", "name")
    reason = "nothing but zeros or empty cells" if zeros else "no observed cell"

    assert f"{2 + zeros} rows without an observed cell{text} mean" in result.stdout
    assert f"{2 + zeros} of 120 rows have {reason}. They" in result.stderr


def test_no_label_is_certain_where_nothing_is_separated():
    X = np.random.default_rng(0).standard_normal((200, 20))
    write("a.csv", X, None)
    outputs = ("-o", "l.csv", "--save", "m.npz")
    result = invoke("fit", "a.csv", "-k", 3, "--json", *outputs)

    assert json.loads(result.stdout)["verdict"].startswith("no separation")
    assert pd.read_csv("l.csv")["certainty"].isna().all()

    invoke("predict", "m.npz", "a.csv", "-o", "later.csv")

    assert pd.read_csv("later.csv")["certainty"].isna().all()

    shares = load_model("m.npz").predict_proba(pd.read_csv("a.csv"))

    np.testing.assert_allclose(shares, 1 / 3)
    assert "uncertain rows" not in str(diagnose(X, np.arange(200) % 3))

    invoke("report", "a.csv", "-k", 3, "-o", "r.html")
    page = Path("r.html").read_text(encoding="utf-8")

    assert "No separation" in page
    assert "no certainty is known" in page
    assert "sure rows only" not in page
    assert page.count('<td class="number sure">-</td>') == 3
