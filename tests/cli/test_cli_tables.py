"""Tables as users have them: every format, odd columns, gaps, damage."""

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from command_line import (
    document,
    fail,
    good,
    invoke,
    named,
    notes_of,
    table_of,
    write,
)
from pyarrow import parquet

from ihgmm import IhSC
from ihgmm.storage import load_model


def load(path, missing="fit", **asked):
    """Return a table and what is said about it."""
    table = table_of(path, **asked, missing=missing)
    return table, notes_of(table)


def refusal(path, missing="error", **asked):
    """Return why a table is refused."""
    with pytest.raises(ValueError, match=r"\.") as raised:
        table_of(path, **asked, missing=missing)

    return str(raised.value)


FORMATS = ["a.csv", "a.csv.gz", "a.tsv", "a.parquet", "a.npy", "dense.npz"]


@pytest.mark.parametrize("name", [*FORMATS, "sparse.npz", "no-names.txt"])
def test_every_format_is_read(sample, name):
    if name == "no-names.txt":
        np.savetxt(name, sample[0], delimiter=",", fmt="%.17g")
    else:
        write(name, *sample)
    table, _ = load(name)

    assert table.is_sparse == (name == "sparse.npz")

    X = table.X.toarray() if table.is_sparse else table.X

    np.testing.assert_array_equal(X, sample[0])
    assert table.rows.ids.tolist() == [*range(1, 121)]


HOSTILE = (
    '<script>alert(1)</script>"', "a,b;c\td", "two\nlines\r\n", "👩‍🔬 émile",
    "שלום עולם", "\u202egnp.exe\u2066", "\x1b[31mred\x1b]0;title\x07",
    "[bold]markup[/] {braces} %s", "=1+1", " 007 ", "NA", "",
)  # fmt: skip


def test_names_cannot_steer_the_terminal(sample):
    names = [f"{name}{i}" for i, name in enumerate(HOSTILE)]
    table = pd.DataFrame(sample[0], columns=names)
    table["\x1b[2J" + "y" * 10_000] = "\x1b[2Jtext\u202e"
    table["kind"] = np.resize(["\x1b[2J\u202eA", "B\nC", "z" * 10_000], 120)
    table.to_csv("a.csv", index=False)
    for command in (
        ["choose-k", "a.csv"],
        ["fit", "a.csv", "-k", 3, "--id-column", "kind"],
    ):
        text = good(*command)
        assert all(c.isprintable() or c in "\n\u200d" for c in text)
        assert max(map(len, text.splitlines())) < 500

    assert "\\x1b[2J\\u202eA" in text
    assert "B\\nC" in text
    assert "zzz…" in text

    message = fail("fit", "a.csv", "-k", 3, "--id-column", "\x1b[31m")

    assert message.isprintable()

    # In JSON and in the model they are what they are.
    document("fit", "a.csv", "-k", 3, "--save", "model.npz")

    assert list(load_model("model.npz").feature_names_in_) == names


def test_what_looks_like_ids_is_not_clustered_by(sample):
    frame = named(sample[0])
    frame.insert(0, "customer_id", 9_000_000_000_000_000_000 + 10**6 * np.arange(120))
    frame["name"] = [f"customer {i}" for i in range(120)]
    frame.to_csv("a.csv", index=False)
    table, notes = load("a.csv")

    assert table.X.shape == (120, 12)
    assert "'customer_id' (looks like ids; --id-column takes them)" in notes

    frame.rename(columns={"customer_id": "PID"}).to_csv("c.csv", index=False)

    assert load("c.csv")[0].X.shape == (120, 12)

    for column in ("customer_id", "name"):  # one is enough
        table, notes = load("a.csv", id_column=column)
        assert "Left out 1 column: " in notes

    assert load("a.csv", columns=["customer_id", "f1", "f2"])[0].X.shape == (120, 3)

    message = refusal("a.csv", columns=["f1", "name"])

    assert "column 'name' cannot be used: text such as 'customer 0'" in message

    frame.rename(columns={"customer_id": "item"}).to_csv("d.csv", index=False)

    assert load("d.csv")[0].X.shape == (120, 12)  # by its many digits

    frame["customer_id"] = frame["customer_id"].to_numpy()[::-1] // 10**5
    frame.rename(columns={"customer_id": "acid", "f1": "a,b"}).to_csv("b.csv")
    table, notes = load("b.csv")  # with the numbers that pandas writes

    assert table.X.shape == (120, 13)
    assert "'Unnamed: 0' (looks like ids" in notes
    assert "2 features" in good("fit", "b.csv", "-k", 2, "--columns", '"a,b",f2')


def test_blanks_after_commas_are_no_part_of_a_name(sample):
    named(sample[0]).rename(columns={"f3": " f3"}).to_csv("a.csv", index=False)

    assert "3 features" in good("fit", "a.csv", "-k", 2, "--columns", "f1, f2 , f3")
    assert "11 features" in good("fit", "a.csv", "-k", 2, "--drop-columns", "f1, f1")


@pytest.mark.parametrize("cell", ["oops", "--32.3", "+-3", "1.2.3"])
def test_semicolons_commas_and_bad_cells(sample, cell):
    table = named(sample[0]).astype(object)
    table.loc[7, "f3"] = cell
    table.to_csv("a.csv", index=False, sep=";")
    result = invoke("fit", "a.csv", "-k", 3, "--quiet")

    assert result.exit_code == 0
    assert " ".join(result.stderr.split()) == (
        "warning: Column 'f3' has 1 of 120 cells that are not numbers, the first is "
        f"'{cell}' in line 9: taken as missing. Mend the file, or leave the column "
        "out: --drop-columns 'f3'."
    )
    assert "in column 'f3' (1); the first is in line 9" in refusal("a.csv")

    table.loc[::4, "f3"] = cell
    table.to_csv("d.csv", index=False, sep=";")
    _, notes = load("d.csv")

    assert "Used 11 columns: 'f0', 'f1', 'f2', 'f4'" in notes
    assert f"'f3' (31 of 120 cells are not numbers, the first is '{cell}'" in notes

    named(sample[0]).to_csv("b.csv", index=False, sep=";", decimal=",")

    np.testing.assert_array_equal(load("b.csv")[0].X, sample[0])


def test_files_of_old_spreadsheets(sample):
    frame = pd.DataFrame(sample[0], columns=[f"größe {i}" for i in range(12)])
    frame["name"] = [f"José {i}" for i in range(120)]
    for encoding, phrase in (
        ("cp1252", "Read as Windows-1252, since it is not UTF-8 (look at the names)."),
        ("utf-16", ""),
        ("utf-8-sig", ""),
    ):
        frame.to_csv("a.csv", index=False, encoding=encoding)
        table = table_of("a.csv", id_column="name")
        assert phrase in map(str, [*table.notes, ""])
        assert table.names[0] == "größe 0"
        assert table.rows.ids[3] == "José 3"


def test_scaled_columns_keep_the_patterns():
    # Customers of very different sizes, columns in very different units.
    rng = np.random.default_rng(0)
    kinds = np.repeat([0, 1, 2], 60)
    X = 10 ** rng.uniform(0, 2, (180, 1)) * rng.exponential(1, (3, 8))[kinds]
    X = (X + rng.normal(0, 0.01, X.shape)) * 10.0 ** np.arange(8)
    table = pd.DataFrame(X, columns=[f"f{i}" for i in range(8)]).assign(kind=kinds)
    table.to_csv("a.csv", index=False)
    options = ["a.csv", "-k", 3, "--label-column", "kind"]
    for how in ("none", "standardize"):
        result = invoke("fit", *options, "--paper", "--prepare", how, "--json")
        assert json.loads(result.stdout)["known_labels"]["misplaced"] > 10

    summary = document("fit", *options, "--save", "model.npz")  # prepared by itself

    assert summary["known_labels"]["misplaced"] == 0

    start = "Divided 8 columns by the deviation ('f0': "

    assert any(note.startswith(start) for note in summary["notes"])

    prediction = document("predict", "model.npz", "a.csv", "--label-column", "kind")

    assert prediction["known_labels"]["misplaced"] == 0

    centers = load_model("model.npz")[-1].cluster_centers_
    expected = IhSC(3, random_state=0).fit(X / X.std(axis=0)).cluster_centers_

    np.testing.assert_allclose(centers, expected, rtol=1e-6)


def test_missing_cells_are_told_where_they_are(sample):
    table = named(sample[0].copy())
    table.loc[:4, "f1"] = np.nan
    table.loc[:2, "f2"] = np.nan
    table.to_csv("a.csv", index=False)
    message = refusal("a.csv")

    assert "5 of 120 rows have missing cells, in columns 'f1' (5), 'f2' (3)" in message
    assert "as 0, drop leaves out their rows; or leave out such columns." in message

    table.loc[:3, "f3"] = np.nan
    table.loc[::2, "f5"] = table.loc[1::2, "f6"] = np.nan
    table.to_csv("d.csv", index=False)

    assert refusal("d.csv", missing="drop").endswith(
        "120 of 120 rows have missing cells, in columns 'f5' (60), 'f6' (60), 'f1' (5) "
        "and 2 more; the first is in line 2. --missing fit fills them in, zero reads "
        "them as 0; or leave out such columns."
    )


def test_numbers_as_people_write_them(sample):
    frame = named(sample[0])
    templates = ["1,{:03d}.50", "1.{:03d},50", "1 {:03d}", "$ 3,{:03d}"]
    templates.append("7,{}%")
    integers = [*range(119), 118]  # no two alike would be row numbers
    for i, template in enumerate(templates):
        frame[f"t{i}"] = [template.format(j) for j in integers]
    frame["few"] = ["7" if i < 90 else "1,234" for i in range(120)]
    frame["names"] = [f"c{i},000" for i in range(120)]
    frame.to_csv("a.csv", index=False)
    table = table_of("a.csv", missing="error")

    assert table.left_out == {"names": "text such as 'c0,000'"}

    values = dict(zip(table.names, table.X.T, strict=True))
    for i, start in enumerate((1000.5, 1000.5, 1000, 3000)):
        np.testing.assert_array_equal(values[f"t{i}"], start + np.array(integers))

    decimals = [float(f"7.{j}") for j in integers]

    np.testing.assert_array_equal(values["t4"], decimals)
    assert list(values["few"]) == [7.0] * 90 + [1234.0] * 30

    notes = notes_of(table)

    assert "Read numbers as people write them in 't0', 't1', 't2', 't3'" in notes
    assert "('1,000.50' is 1000.5)." in notes


BROKEN = {
    "empty.csv": (b"", "empty.csv is empty"),
    "header.csv": (b"a,b\n", "has a header but no rows"),
    "ragged.csv": (b"a,b\n1,2\n3,4,5\n", "cannot be read as csv"),
    "text.csv": (b"a,b\nx,y\n", "no columns of numbers"),
    "one.csv": (b"a,b\n1,x\n2,y\n", "only column 'a' is left to cluster by"),
    "constant.csv": (b"a,b\n1,7\n2,7\n", "Left out 1 column: 'b' (constant: 7)."),
    "cut.parquet": (b"PAR1 no", "cannot be read as parquet"),
    "bad.npy": (b"\x93NUMPY nothing", "cannot be read as npy"),
    "bad.npz": (b"PK nothing", "cannot be read as npz"),
    "archive.npy": (b"PK\x03\x04", "archive.npy cannot be read as npy"),
    "array.npz": (b"\x93NUMPY\x01\x00", "array.npz cannot be read as npz"),
    "data.xyz": (b"1", "unknown format '.xyz'; give one of .csv"),
    "data.xlsx": (b"PK", "data.xlsx cannot be read as xlsx: "),
    "bad.jsonl": (b'{"a": 1}\n{"a": ', "bad.jsonl cannot be read as jsonl"),
    "binary.csv": (b"a,b\x81\xff\n1,2\n", "cannot be read as csv"),
    "zero.csv": (b"\x00\x81\x8d,\n\x9d\x8f,3\n", "zero.csv cannot be read as csv: "),
}


@pytest.mark.parametrize("shape", [(10**23, 2), (True, 2), (-1, 2)])
def test_an_array_that_claims_a_shape(shape):
    content = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(content, header)
    content.write(bytes(16))
    Path("a.npy").write_bytes(content.getvalue())
    with zipfile.ZipFile("a.npz", "w") as archive:
        archive.writestr("X.npy", content.getvalue())

    assert "a.npy cannot be read as npy" in refusal("a.npy")
    assert "a.npz cannot be read as npz" in refusal("a.npz")


@pytest.mark.parametrize("cells", [[[1, 2], [3]], [{"a": 1}, {"a": 2}]])
@pytest.mark.parametrize("option", ["label_column", "id_column"])
def test_lists_are_no_ids_and_no_labels(cells, option):
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [2.0, 1.0], "z": cells})
    frame.to_parquet("a.parquet")
    frame.to_json("a.jsonl", orient="records", lines=True)
    for name in ("a.parquet", "a.jsonl"):
        assert "'z': that column of a." in refusal(name, **{option: "z"})


def test_columns_of_one_name_in_parquet():
    columns = [[1.0, 2.0], [2.0, 1.0], [5.0, 3.0]]
    parquet.write_table(pa.table(columns, names=["x", "x", "y"]), "a.parquet")
    table = table_of("a.parquet")

    assert table.names == ["x", "x.1", "y"]
    np.testing.assert_array_equal(table.X.T, columns)


def test_names_of_files_that_are_not_utf_8(sample):
    stem = os.fsdecode(b"\xe9")
    for suffix in (".csv", ".parquet", ".npy", ".npz", ".xlsx"):
        name = f"{stem}{suffix}"
        if suffix == ".xlsx":
            named(sample[0]).to_excel("a.xlsx")
        else:
            write(f"a{suffix}", *sample)
        os.rename(f"a{suffix}", name)
        files = ["-o", f"{stem}-labels.csv", "--save", f"{stem}-model.npz"]
        summary = document("fit", name, "-k", 3, *files)
        assert (summary["data"], summary["model_file"]) == (name, files[-1])

    assert document("predict", files[-1], name)["data"] == name

    good("report", name, "-k", 3, "-o", f"{stem}.html")

    assert "\ufffd.xlsx" in Path(f"{stem}.html").read_text(encoding="utf-8")

    message = fail("fit", f"{stem}{stem}", "-k", 3)

    assert message.startswith("error: \\udce9\\udce9: no such")


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(name):
    content, message = BROKEN[name]
    Path(name).write_bytes(content)

    assert message in refusal(name)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(5), "has shape (5,) and float64 entries; give real numbers"),
        (np.zeros((0, 3)), "has shape (0, 3)"),
        (np.array([["a"]]), "entries; give real numbers"),
        (np.array([[1.0, np.inf], [3.0, 2.0]]), "infinity in row 1, column 'col2'"),
    ],
)
def test_bad_arrays(array, message):
    np.save("a.npy", array)
    assert message in fail("fit", "a.npy", "-k", 2)


def test_archives_of_something_else_pickles_and_wrong_places_are_refused(sample):
    np.save("a.npy", np.array([{"x": 1}], dtype=object), allow_pickle=True)

    assert "cannot be read as npy" in refusal("a.npy")

    matrix = sp.csr_matrix(sample[0])
    matrix.indices[5] = 1_000_000_000
    sp.save_npz("beyond.npz", matrix)

    assert "beyond.npz cannot be read as npz" in refusal("beyond.npz")

    np.savez("a.npz", a=sample[0], b=sample[1])

    assert "as npz: of its arrays, 'a', 'b', none is X" in refusal("a.npz")
