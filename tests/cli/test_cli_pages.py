"""The commands that write pages: report with names, and compare."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from command_line import document, fail, good, invoke

from ihgmm import make_ihgmm
from ihgmm.metrics import misclassification_loss


def write_cells(folder, sample, units=1.0):
    X, kinds = sample
    names = [f"gene {j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X * units, columns=names).assign(cell=ids(len(X)), kind=kinds)
    frame.to_csv(folder / "cells.csv", index=False)
    return frame


def ids(n):
    return [f"c{i}" for i in range(n)]


def page_of(path):
    return path.read_text(encoding="utf-8")


def test_report_with_names(folder, sample):
    write_cells(folder, sample)
    line = ["report", "cells.csv", "-k", 3, "--id-column", "cell"]
    line += ["--drop-columns", "kind", "-o", "r.html"]
    # As the page saves it: formulas are kept from spreadsheets.
    (folder / "labels.csv").write_text(
        "cell,cluster,name\nc0,0,B cells\nc1,2,'=T cells\nc2,1,\n", encoding="utf-8-sig"
    )
    good(*line, "--names", "labels.csv")
    page = page_of(folder / "r.html")
    data = json.loads(re.search('id="data">(.*?)</script>', page)[1])
    assert data["names"] == ["B cells", "", "=T cells"]
    assert "<bdi>cells.csv</bdi>" in page
    asked = "ihgmm report cells.csv -k 3 --id-column cell --drop-columns kind"
    asked += " --names labels.csv --output r.html"
    command = re.search("<dt>Command</dt><dd><code>(.*?)</code>", page)[1]
    assert sorted(command.split()) == sorted(
        asked.replace("-k ", "--n-clusters ").split()
    )
    (folder / "none.csv").write_text("cell,cluster\nc0,0\n")
    assert "no column 'name' beside 'cluster'" in fail(*line, "--names", "none.csv")
    (folder / "more.csv").write_text("cluster,name\n5,x\n")
    assert "more.csv has cluster 5 ('x'), and the clusters are" in fail(
        *line, "--names", "more.csv"
    )


def test_means_of_columns_that_were_prepared(folder, sample):
    units = np.where(np.arange(12) % 2, 1000.0, 1.0)
    frame = write_cells(folder, sample, units)
    line = ["cells.csv", "-k", 3, "--id-column", "cell", "--drop-columns", "kind"]
    line += ["--prepare", "standardize", "-o"]
    good("report", *line, "r.html")
    good("fit", *line, "labels.csv")
    mine = pd.read_csv("labels.csv")["cluster"].to_numpy() == 0
    card = page_of(folder / "r.html").split('<article class="card">')[1]
    found = re.findall(r'title="(gene \d+)".*?<td class="number">([^<]*)</td>', card)
    assert len(found) == 8
    for name, text in found:
        mean = frame[name][mine].mean()
        shown = float(text[:-1]) * 1000 if text.endswith("k") else float(text)
        assert abs(shown - mean) <= 0.006 * abs(mean)


def write_labels(path, names, clusters, **more):
    columns = {"cell": names, "cluster": clusters, **more}
    pd.DataFrame(columns).to_csv(path, index=False)


def test_compare(folder):
    rng = np.random.default_rng(0)
    one = rng.integers(0, 3, 60)
    two = np.where(np.arange(60) < 6, 3, 2 - one)
    write_labels(folder / "one.csv", ids(60), one)
    order = rng.permutation(60)[:50]
    shuffled = [ids(60)[i] for i in order]
    write_labels(folder / "two.csv", shuffled, two[order])
    kept = np.sort(order)
    moved = misclassification_loss(one[kept], two[kept])
    found = document("compare", "one.csv", "two.csv", "-o", "c.html")
    assert found["n_samples"] == 50
    assert found["moved"] == moved
    assert sum(flow["rows"] for flow in found["flows"]) == 50
    assert found["notes"] == [
        "Left out 10 rows of one.csv: the other file does not have them."
    ]
    done = invoke("compare", "one.csv", "two.csv", "-q")
    assert (done.stdout, done.stderr) == ("", f"note: {found['notes'][0]}\n")
    page = page_of(folder / "c.html")
    assert f"{50 - moved} of 50 rows" in page
    done = invoke("compare", "one.csv", "two.csv", "-o", "-")
    assert done.stdout.startswith("<!doctype html>")
    assert f"50 rows in both: {moved} (" in done.stderr
    assert "Clusters compared: one and two" in page
    shown = good("compare", "one.csv", "two.csv")
    assert f"50 rows in both: {moved} (" in shown
    assert "It is not known which one is more stable" in shown
    # With the data of both it says which one is more stable there.
    X, truth = make_ihgmm(60, 20, 3, random_state=0)
    np.savetxt(
        folder / "x.csv", X, delimiter=",", header=",".join("abcdefghijklmnopqrst")
    )
    numbers = [str(i) for i in range(1, 61)]
    mixed = np.where(np.arange(60) % 5, truth, (truth + 1) % 3)
    write_labels(folder / "true.csv", numbers, truth)
    write_labels(folder / "mixed.csv", numbers[::-1], mixed[::-1])
    command = ["compare", "mixed.csv", "true.csv", "--data", "x.csv"]
    shown = good(*command)
    assert "On these data 'true' is more stable: 100% of the labels of 'true'" in shown
    found = document(*command, "--prepare", "none", "-o", "c.html", "--title", "A b")
    assert found["stability"] == pytest.approx([0.8, 1])
    line = (
        "ihgmm compare mixed.csv true.csv --prepare none --data x.csv --title "
        "&#39;A b&#39; --output c.html"
    )
    assert line in page_of(folder / "c.html")
    write_labels(folder / "few.csv", numbers, np.minimum(truth, 1))
    shown = good("compare", "mixed.csv", "few.csv", "--data", "x.csv")
    assert "number of clusters, use ihgmm choose-k" in shown
    assert "x.csv has no row 'c2'; give the data that both" in fail(
        "compare", "one.csv", "two.csv", "--data", "x.csv"
    )
    # Names of clusters, and a file without ids.
    named = np.array(["B", "T", "NK"])[one]
    write_labels(folder / "one.csv", ids(60), one, name=named)
    found = document("compare", "one.csv", "two.csv")
    assert {flow["name"] for flow in found["flows"]} == {"0 B", "1 T", "2 NK"}
    for name in ("a.csv", "b.tsv"):
        tab = "\t" if name.endswith("tsv") else ","
        lines = [f"cluster{tab}scale", *(f"{k}{tab}1.0" for k in one)]
        (folder / name).write_text("\n".join(lines))
    assert document("compare", "a.csv", "b.tsv")["moved"] == 0


def test_files_that_cannot_be_compared(folder):
    write_labels(folder / "one.csv", ["a", "b"], [0, 1])
    write_labels(folder / "two.csv", ["x", "y"], [0, 1])
    write_labels(folder / "twice.csv", ["a", "a"], [0, 1])
    (folder / "other.csv").write_text("cell,kind\na,0\n")
    (folder / "ragged.csv").write_text("cell,cluster\na,0\nb\n")
    (folder / "bytes.csv").write_bytes(b"\xff\xfe\x00cluster")
    assert "have no id in common, the first ids are 'a' and 'x'" in fail(
        "compare", "one.csv", "two.csv"
    )
    assert "twice.csv: the id 'a' occurs in 2 rows" in fail(
        "compare", "one.csv", "twice.csv"
    )
    assert "other.csv has columns 'cell', 'kind'" in fail(
        "compare", "one.csv", "other.csv"
    )
    assert (
        "ragged.csv cannot be read as csv: CSV parse error: Row #3: Expected 2"
        in fail("compare", "one.csv", "ragged.csv")
    )
    assert "bytes.csv cannot be read as csv" in fail("compare", "one.csv", "bytes.csv")
    assert "one.csv is given twice" in fail("compare", "one.csv", "one.csv")
    assert "no.csv: no such file" in fail("compare", "one.csv", "no.csv")
