"""Sheets as people keep them: empty cells that mean none, titles, footnotes, sums."""

from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
from command_line import GOODS, clusters, document, fail, good, shop, table_of

from ihgmm.cli.tables.loading import find_header
from ihgmm.storage import load_saved

FIT = ("fit", "-k", 3)
IDS = ("--id-column", "customer no.")


def test_predict_remembers_that_empty_cells_meant_zero():
    frame = shop()
    gaps = np.random.default_rng(2).random((90, 5)) < 0.05
    frame[GOODS] = frame[GOODS].mask(gaps)
    frame.to_csv("a.csv", index=False)
    good(*FIT, "a.csv", *IDS, "--missing", "zero", "--save", "m.npz", "-o", "a.out.csv")
    assert load_saved("m.npz").empty_is_zero
    found = document("predict", "m.npz", "a.csv", "-o", "b.csv")
    assert f"Read {gaps.sum()} missing cells as 0, as the fit did." in found["notes"]
    assert clusters("a.out.csv") == clusters("b.csv")
    # What is asked for goes before.
    message = fail("predict", "m.npz", "a.csv", "--missing", "error")
    assert "have missing cells" in message


def write_sheet(path, rows):
    if path.endswith(".xlsx"):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.save(path)
        return
    width = max(map(len, rows))
    texts = [
        [str("" if c is None else c).replace(".", ",") for c in row]
        + [""] * (width - len(row))
        for row in rows
    ]
    texts[1] = [str(name) for name in rows[1]]  # customer no. has a point
    lines = "\n".join(";".join(row) for row in texts)
    Path(path).write_text(lines, encoding="cp1252")


@pytest.mark.parametrize("suffix", [".xlsx", ".csv"])
def test_titles_and_empty_rows_are_no_customers(suffix):
    frame = shop()
    frame = frame.assign(name="Maria", spent=frame[GOODS].sum(axis=1).round(2))
    title, head, rows = ["Turnover (EUR, net)"], [*frame.columns], frame.values.tolist()
    write_sheet(f"a{suffix}", [title, head, *rows[:40], [], *rows[40:]])
    table = table_of(f"a{suffix}", missing="error")
    np.testing.assert_array_equal(table.X[:, :5], shop()[GOODS])
    notes = " ".join(map(str, table.notes))
    assert "'customer no.' (looks like ids" in notes
    where = "row 2" if suffix == ".xlsx" else "line 2"
    assert f"names of columns from {where}" in notes
    assert "Left out 1 empty row." in notes
    assert table.ids.tolist() == [*range(1, 41), *range(42, 92)]


@pytest.mark.parametrize(
    ("text", "n_titles"),
    [
        ("Sales, 2023 (EUR, net);;\na;b;c\n1,5;2,5;3\n", 1),
        ("Sales, 2023\n\nnet\na;b;c\n1;2;3\n", 3),
        ("Sales\na,b,c\n1,2,3\n", 1),
        ("Sales\ta\tb\n1\t2\t3\n", 0),
        ("a;b;c\n1,5;2,5;3,5\n4,5;5,5;6,5\n", 0),
        ("revenue, EUR;cost\n1;2\n3;4\n", 0),
        ("id,,\n1,2,3\n", 0),  # numbers are no names
        ("1,2\n3,4\n", 0),
        ("a\n1\n2\n", 0),
    ],
)
def test_titles_are_told_from_names(text, n_titles):
    names = text.splitlines()[n_titles]
    delimiter = next((mark for mark in ";\t" if mark in names), ",")
    assert find_header(text, ".csv")[:2] == (delimiter, n_titles)


def test_notes_and_a_pivot_come_first():
    with pd.ExcelWriter("a.xlsx") as book:
        notes = pd.DataFrame(["Contact: Anna"], columns=["Read me"])
        notes.to_excel(book, sheet_name="Notes", index=False)
        sums = shop()[GOODS].describe().reset_index()
        sums.to_excel(book, sheet_name="Pivot", index=False)
        shop().to_excel(book, sheet_name="2023", index=False)
        shop(60).to_excel(book, sheet_name="2024", index=False)
    found = document(*FIT, "a.xlsx")
    note = "Read sheet '2023' (--sheet takes another: 'Notes', 'Pivot', '2024')."
    assert note in found["notes"]
    assert found["n_samples"] == 90
    found = document(*FIT, "a.xlsx", "--sheet", "2024", "--save", "m.npz")
    assert found["n_samples"] == 60
    found = document("predict", "m.npz", "a.xlsx", "--sheet", "2024")
    assert found["n_samples"] == 60
    message = fail(*FIT, "a.xlsx", "--sheet", "2O24")
    assert "no such sheet (did you mean '2024'" in message
    message = fail(*FIT, "a.xlsx", "--sheet", "Notes")
    assert "(--sheet takes another: 'Pivot', '2023', '2024')." in message
    assert "iris has no sheets" in fail(*FIT, "iris", "--sheet", "a")
