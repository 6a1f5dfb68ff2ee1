"""What ``ihgmm fit`` says about clusters, and what it writes about rows."""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import COLUMNS, document, fail, good, invoke, read, write

from ihgmm import IhSC, diagnose
from ihgmm.cli.options import METHODS


@pytest.mark.parametrize("method", METHODS)
def test_every_method_describes_its_clusters(sample, method):
    write("a.csv", sample[0], None)
    done = invoke("fit", "a.csv", "-k", 3, "--method", method.lower(), "-o", "l.csv")
    assert done.exit_code == 0, done.exception
    assert f"3 clusters ({method})" in done.stdout
    rows = read("l.csv")
    assert list(rows[0]) == COLUMNS
    frame = pd.read_csv("l.csv")
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


def test_features_are_in_the_units_of_the_data():
    rng = np.random.default_rng(0)
    scales, kinds = rng.uniform(1, 3, (200, 1)), np.arange(200) % 2
    patterns = np.array([[5.0, 1.0, 2000.0], [1.0, 5.0, 2000.0]])
    table = pd.DataFrame(scales * patterns[kinds], columns=["red", "blue", "grams"])
    table *= rng.lognormal(0, 0.05, table.shape)
    table.to_csv("a.csv", index=False)
    for option in ("scale", "standardize"):
        found = document("fit", "a.csv", "-k", 2, "--prepare", option, "-o", "l.csv")
        labels = np.array([int(row["cluster"]) for row in read("l.csv")])
        for cluster in found["clusters"]:
            first, second, last = cluster["features"]
            assert {first["feature"], second["feature"]} == {"red", "blue"}
            mine = table[labels == cluster["cluster"]].mean()
            others = table[labels != cluster["cluster"]].mean()
            for feature in cluster["features"]:
                name = feature["feature"]
                assert feature["mean"] == pytest.approx(mine[name])
                if option == "scale" and name != "grams":
                    assert feature["others"] == pytest.approx(others[name], rel=0.3)
            more = first["mean"] > first["others"]
            assert more == (first["contrast"] > 0)
            assert abs(first["contrast"]) >= abs(last["contrast"])


def test_certainty_is_that_of_the_diagnosis(sample):
    X, _ = sample
    write("a.csv", X, None)
    found = document("fit", "a.csv", "-k", 3, "-o", "l.csv", "--save", "m.npz")
    model = IhSC(3, random_state=0).fit(X)
    expected = diagnose(X, model.labels_)
    written = [float(row["certainty"]) for row in read("l.csv")]
    np.testing.assert_allclose(written, expected.certainty, rtol=1e-4)
    shown = [cluster["certainty"] for cluster in found["clusters"]]
    means = [np.mean(expected.certainty[model.labels_ == k]) for k in range(3)]
    np.testing.assert_allclose(shown, means, rtol=1e-6)
    assert found["verdict"] == expected.verdict
    # New rows are judged by each other, where there are enough of them.
    good("predict", "m.npz", "a.csv", "-o", "again.csv")
    assert list(read("again.csv")[0]) == COLUMNS
    again = [float(row["certainty"]) for row in read("again.csv")]
    np.testing.assert_allclose(again, written, rtol=1e-4)
    np.save("few.npy", X[:4])
    told = good("predict", "m.npz", "few.npy", "-o", "few.csv")
    assert {row["certainty"] for row in read("few.csv")} == {""}
    assert {row["typical"] for row in read("few.csv")} == {""}
    assert "Certainty is not known" in told
    assert "3 clusters need 30 rows, but the file has 4" in told
    assert "Certainty is not known" not in good("predict", "m.npz", "a.csv")


@pytest.mark.filterwarnings("default")
def test_a_doubtful_count_tells_one_story():
    rng = np.random.default_rng(7)
    patterns = rng.dirichlet(np.full(7, 0.5), 5)
    X = patterns[rng.integers(0, 5, 150)] * rng.lognormal(6, 0.8, (150, 1))
    X *= rng.lognormal(0, 0.5, X.shape)
    np.savetxt("a.csv", X, "%.2f", delimiter=",", header="a,b,c,d,e,f,g", comments="")
    found = json.loads(invoke("choose-k", "a.csv", "--json").stdout)
    assert found["confidence"] == "low"
    assert invoke("choose-k", "a.csv", "-q").stderr.startswith("warning: ")
    text = invoke("choose-k", "a.csv", "--explain").stdout
    head, *lines = text.splitlines()
    assert [int(n) for n in re.findall(r"\d+", head.rpartition(":")[2])] == found[
        "plausible"
    ]
    names, *table = lines[next(i for i, x in enumerate(lines) if x[:8] == "clusters") :]
    rows = itertools.takewhile(lambda line: line[:1].isdigit(), table)
    cells = {int(row.split()[0]): row.split()[1:] for row in rows}
    # Each number that is called plausible has its line, with the evidence for it.
    splits = {split["n_clusters"]: split for split in found["splits"]}
    assert {*found["plausible"]} <= {*cells}
    shown = names.split()[1:-1]
    for k, line in cells.items():
        wanted = [f"{splits[k][name]:.2f}" for name in shown]
        assert line[: len(shown)] == wanted
    levels = [k for k, line in cells.items() if line[-1] == "yes"]
    assert levels == found["levels"]
    assert found["n_clusters"] in levels
    agreement = splits[found["n_clusters"]]["agreement"]
    assert f"halves of the rows have an agreement of {agreement:.2f}" in text
    # The legend has the words of the table, and no others.
    legend = re.findall(r"^  ([a-z ]+): ", text, re.MULTILINE)
    assert legend == [*names.split()[1:], "edge"]
    assert "sign-flipped" not in text
    assert "ihgmm choose-k" in invoke("fit", "a.csv", "-k", "auto").stdout


def test_one_cluster_has_nothing_to_set_it_apart():
    text = good("fit", "iris", "-k", 1)
    assert "One cluster: nothing to separate." in text
    assert "set apart by" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "kmeans"], "--method kmeans: give one of IhSC, IhGMM, PSC"),
        (["--method", "PSC", "--refine"], "--refine: PSC has no such option, IhSC has"),
        (
            ["--method", "PSC", "--outliers", "auto"],
            "--outliers: PSC has no such option, IhSC and IhGMM have",
        ),
        (["--method", "IhGMM", "--paper"], "--paper: these are settings of IhSC"),
        (
            ["--method", "SphericalKMeans", "--missing", "fit"],
            "--missing: SphericalKMeans has no such option, IhSC, IhGMM and PSC have",
        ),
    ],
)
def test_what_a_method_cannot_do_is_refused_at_once(arguments, message):
    assert message in fail("fit", "nowhere.csv", "-k", 3, *arguments)
    assert not Path("m.npz").exists()


def test_methods_that_do_not_count():
    message = fail("fit", "iris", "-k", "auto", "--method", "PSC")
    assert "-k auto: PSC does not count clusters; ihgmm choose-k does" in message
