"""The paper's table of real data, and the commands that make it and the figures."""

import csv
import os
import re
from pathlib import Path
from statistics import median

import pytest
from cli.command_line import document, fail, good

from ihgmm.paper.runner import read_results, run_study, summarize
from ihgmm.paper.studies import PHASE
from ihgmm.paper.table import (
    PAPER_COUNTS,
    Cell,
    real_data_study,
    table_cells,
    to_latex,
    to_markdown,
)

DATA = Path(os.environ.get("IHGMM_DATA") or Path(__file__).parents[3] / "shared/data")


def run_table(path, names, methods):
    """Run the table on some data sets; return its cells by data set and method."""
    study = real_data_study(DATA)
    settings = [s for s in study.settings if s.name in names]
    functions = {method: study.methods[method] for method in methods}
    results = run_study(settings, functions, path, reps=3)
    return {(cell.dataset, cell.method): cell for cell in table_cells(results)}


def test_phase_command(tmp_path):
    study = ("phase", "--quick", "--only", "phase/K=2/0.8", "--jobs", 1)

    assert "label oracle" in good("reproduce", *study, "-o", tmp_path)

    names = ("K.png", "K.pdf", "summary.csv", "runs.csv")

    assert {p.name for p in tmp_path.iterdir()} == {f"phase-{name}" for name in names}

    results = read_results(tmp_path / "phase-runs.csv", PHASE.methods)

    assert len(results) == 2 * len(PHASE.methods)

    with open(tmp_path / "phase-summary.csv", newline="") as file:
        rows = list(csv.DictReader(file))

    for row, s in zip(rows, summarize(PHASE, results), strict=True):
        place = (s.experiment, s.panel, "0.8", s.noise, s.method, "1")
        figures = (f"{s.rate:.6f}", f"{s.exact_share:.4f}")
        assert tuple(row.values()) == (*place, *figures)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["exp9"], "WHAT='exp9' is not known; give one of exp1, exp2"),
        (["exp1", "--only", "moon"], "--only 'moon' matches nothing in exp1"),
        (["table", "--only", "moon"], "settings are named like 'table/iris'"),
        (["exp1", "--repeats", 0], "--repeats 0 is out of range"),
        (["exp1", "--jobs", 0], "--jobs 0 is out of range"),
    ],
)
def test_wrong_use(tmp_path, arguments, message):
    assert message in fail("reproduce", *arguments, "-o", tmp_path)


def test_table_formats():
    cells = [
        Cell("iris", "IhSC", 150, (7, 7, 8), 7),
        Cell("iris", "spherical k-means", 150, (5, 5, 5), None),
        Cell("wine", "IhSC", 178, (9,), 9),
        Cell("wine", "spherical k-means", 178, (13,), None),
    ]

    assert to_markdown(cells).splitlines() == [
        "| data | n | IhSC | paper | spherical k-means |",
        "|---|---:|---:|---:|---:|",
        "| iris | 150 | 7 (7-8) | 7 | 5 |",
        "| wine | 178 | 9 | 9 | 13 |",
    ]
    assert r"iris & 150 & 7 (7--8) & 7 & 5 \\" in to_latex(cells)


@pytest.mark.skipif(
    not DATA.is_dir(), reason="the downloaded data sets are not beside the repository"
)
@pytest.mark.filterwarnings("ignore:Labels may be unstable")
def test_table_agrees_with_the_paper(tmp_path):
    # IhSC within 1% of n of the paper's count on every data set.
    names = ["wine", "seeds", "dermatology", "dna", "segment", "satimage"]
    table = run_table(tmp_path / "runs.csv", names, ["IhSC"])
    table |= run_table(tmp_path / "others.csv", ["seeds"], ["PSC", "k-means"])

    for name in names:
        cell = table[name, "IhSC"]
        difference = abs(median(cell.counts) - PAPER_COUNTS[name]["IhSC"])
        assert difference <= 0.01 * cell.n_samples

    assert str(table["seeds", "PSC"]) == "16"
    assert str(table["seeds", "k-means"]) == "17"


def test_table_command(tmp_path):
    command = ("reproduce", "table", "--only", "iris", "--jobs", 1, "-o", tmp_path)
    pattern = r"\| iris \| 150 \| 10 \| 7 \| 7 \| \d+ \| 16 \| 16 \| 16 \| 16 \|"

    assert re.search(pattern, good(*command, "--repeats", 1))

    names = sorted(path.name for path in tmp_path.iterdir())

    assert names == ["table-runs.csv", "table.md", "table.tex"]

    # Counts that are there are not made again.
    runs = tmp_path / "table-runs.csv"
    runs.write_text(runs.read_text().replace("0,IhSC,150,10", "0,IhSC,150,70"))

    cell = document(*command, "--repeats", 2)["studies"]["table"]["cells"][0]

    assert (cell["method"], cell["counts"], cell["paper"]) == ("IhSC", [70, 10], 7)
