"""The command that writes pages: a report with names."""

import json
import re

import pandas as pd
from command_line import fail, good


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
    asked += " -o r.html --names labels.csv"
    command = re.search("<dt>Command</dt><dd><code>(.*?)</code>", page)[1]
    assert sorted(command.split()) == sorted(asked.split())
    (folder / "none.csv").write_text("cell,cluster\nc0,0\n")
    assert "with the column 'name'" in fail(*line, "--names", "none.csv")
    (folder / "more.csv").write_text("cluster,name\n5,x\n")
    assert "more.csv has cluster '5' ('x'), and the clusters are" in fail(
        *line, "--names", "more.csv"
    )
