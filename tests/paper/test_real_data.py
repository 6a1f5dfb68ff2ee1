"""The paper's table of real data, and the commands that make it and the figures."""

import re
from pathlib import Path

import pytest

from ihgmm.paper.studies import PHASE
from ihgmm.paper.table import PAPER_COUNTS, Cell, real_data_table, to_latex, to_markdown

DATA = Path(__file__).parents[3] / "shared" / "data"


needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="the downloaded data sets are not beside the repository"
)


def test_phase_command(tmp_path, command):
    study = ("phase", "--quick", "--only", "phase/K=2/0.8", "--jobs", 1)
    done = command("reproduce", *study, "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "label oracle" in done.stdout
    pictures, tables = ("phase-K.png", "phase-K.pdf"), ("summary", "runs")
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {*pictures, *(f"phase-{name}.csv" for name in tables)}
    assert (tmp_path / "phase-K.png").read_bytes()[:4] == b"\x89PNG"
    runs = (tmp_path / "phase-runs.csv").read_text().splitlines()
    assert len(runs) == 1 + 2 * len(PHASE.methods)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["exp9"], "WHAT='exp9' is not known; give one of exp1, exp2"),
        (["exp1", "--only", "moon"], "--only 'moon' matches nothing in exp1"),
        (["table", "--only", "moon"], "matches no data set; there are iris"),
        (["exp1", "--repeats", 0], "--repeats 0 is too small"),
        (["exp1", "--jobs", 0], "--jobs 0 is too small"),
    ],
)
def test_wrong_use(tmp_path, command, arguments, message):
    done = command("reproduce", *arguments, "-o", tmp_path)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


CELLS = [
    Cell("iris", "IhSC", 150, (7, 7, 8), 7),
    Cell("iris", "spherical k-means", 150, (5, 5, 5), None),
]


def test_table_formats():
    assert to_markdown(CELLS).splitlines() == [
        "| data | n | IhSC | paper | spherical k-means |",
        "|---|---:|---:|---:|---:|",
        "| iris | 150 | 7 (7-8) | 7 | 5 |",
    ]
    assert r"iris & 150 & 7 (7--8) & 7 & 5 \\" in to_latex(CELLS)


def test_table_of_an_interrupted_run():
    begun = [*CELLS, Cell("wine", "IhSC", 178, (9,), 9)]
    assert to_markdown(begun).splitlines()[2:] == [
        "| iris | 150 | 7 (7-8) | 7 | 5 |",
        "| wine | 178 | 9 | 9 |  |",
    ]


def test_counts_are_kept_and_not_made_again(tmp_path):
    path, seen = tmp_path / "table.csv", []
    first = real_data_table(path, seeds=1, only=["iris"])
    path.write_text(path.read_text().replace("IhSC,0,10,", "IhSC,0,70,"))
    both = real_data_table(
        path, seeds=1, only=["wine"], progress=lambda *done: seen.append(done)
    )
    assert both[0].counts == (70,)
    many = len(first)
    assert both[1:many] == first[1:]
    assert [cell.dataset for cell in both[many:]] == ["wine"] * many
    assert seen == [(i, many) for i in range(many + 1)]
    assert list(tmp_path.iterdir()) == [path]


def test_iris_has_the_papers_counts():
    cells = {c.method: c for c in real_data_table(seeds=10, only=["iris"])}
    assert set(cells["IhSC, magnitude"].counts) == {7}
    assert set(cells["IhSC"].counts) == {10}
    assert cells["IhSC, default"].median <= 7
    assert set(cells["PSC"].counts) == set(cells["k-means"].counts) == {16}


@needs_data
def test_table_agrees_with_the_paper():
    # IhSC within 1% of n of the paper's count on every data set.
    names = ["wine", "seeds", "dermatology", "dna", "segment", "satimage"]
    cells = real_data_table(seeds=3, data_home=DATA, only=names)
    table = {(c.dataset, c.method): c for c in cells}
    for name in names:
        cell = table[name, "IhSC"]
        assert abs(cell.median - PAPER_COUNTS[name]["IhSC"]) <= 0.01 * cell.n_samples
    assert table["seeds", "PSC"].median == 16
    assert table["seeds", "k-means"].median == 17


def test_table_command(tmp_path, command):
    done = command("reproduce", "table", "--quick", "--only", "iris", "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    row = r"\| iris \| 150 \| 10 \| 7 \| 7 \| \d+ \| 16 \| 16 \| 16 \| 16 \|"
    assert re.search(row, done.stdout)
    for suffix in ("csv", "md", "tex"):
        assert (tmp_path / f"table.{suffix}").stat().st_size > 100
