"""Columns of texts, whose words are the features, and tables with features in rows."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from command_line import clusters, document, fail, good, invoke, read, shop, table_of

from ihgmm import top_features
from ihgmm.storage import load_model

WORDS = {
    "sea": ["wave", "boat", "sail", "tide", "harbour", "wind", "salt", "anchor"],
    "kitchen": ["flour", "oven", "butter", "knife", "salt", "dough", "pan", "sugar"],
}
FIT = ("fit", "t.csv", "-k", "2", "--text-column", "text")


def texts(n=60, name="t.csv"):
    """Write documents of two topics, of very different lengths; return the topics."""
    rng = np.random.default_rng(0)
    topics = rng.choice(list(WORDS), n)
    lengths = rng.integers(8, 120, n)
    pairs = zip(topics, lengths, strict=True)
    cells = [", ".join(rng.choice(WORDS[t], m)).capitalize() for t, m in pairs]
    names = [f"d{i}" for i in range(n)]
    frame = pd.DataFrame({"doc": names, "topic": topics, "text": cells, "price": 1.5})
    if name.endswith("csv"):
        frame.to_csv(name, index=False)
    else:
        frame.to_excel(name, index=False)
    return topics


def test_words_are_the_features_and_other_columns_keep_their_roles():
    texts()
    columns = ("--id-column", "doc", "--label-column", "topic")
    summary = document(*FIT, *columns, "-o", "l.csv")

    assert summary["known_labels"]["misplaced"] == 0
    assert summary["n_features"] == 15  # salt is in both
    assert "Used 15 words: 'anchor'" in summary["notes"][0]
    assert "Left out 1 column: 'price' (beside the texts)." in summary["notes"]

    # People see how the most typical text begins.
    text = good(*FIT, *columns)
    cluster = summary["clusters"][0]
    cells = pd.read_csv("t.csv").set_index("doc")["text"]

    assert cluster["texts"] == cells[cluster["typical"]].tolist()
    assert f"\ntypical of 0: {cluster['texts'][0][:69]}" in text

    features = [feature for line in summary["clusters"] for feature in line["features"]]
    words = {feature["feature"] for feature in features}

    assert words <= {*WORDS["sea"], *WORDS["kitchen"]} - {"salt"}
    assert [row["doc"] for row in read("l.csv")][:2] == ["d0", "d1"]


def test_a_saved_model_reads_the_texts_of_new_files_as_the_fit_did():
    texts()
    good(*FIT, "--id-column", "doc", "--save", "m.npz", "-o", "l.csv")
    good("predict", "m.npz", "t.csv", "-o", "again.csv")

    assert clusters("l.csv") == clusters("again.csv")
    assert [row["doc"] for row in read("again.csv")] == [f"d{i}" for i in range(60)]

    frame = pd.read_csv("t.csv").rename(columns={"text": "review"})
    top = top_features(frame["review"], load_model("m.npz"))

    assert {*top.names} == {word for kind in WORDS.values() for word in kind}

    frame.loc[0, "review"] = "words that nobody has seen"
    frame.to_csv("new.csv", index=False)
    message = fail("predict", "m.npz", "new.csv")

    assert "--text-column 'text': new.csv has no such column" in message

    result = invoke("predict", "m.npz", "new.csv", "--text-column", "review")

    assert result.exit_code == 0
    assert "1 of 60 rows, the first is doc 'd0', have nothing" in result.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--prepare", "scale"),
        ("--columns-as", "counts"),
        ("--outliers", "auto", "--missing", "zero"),
        ("--method", "IhGMM", "--prepare", "none"),
        ("--method", "SphericalKMeans"),
    ],
)
def test_texts_go_with_the_other_options(options):
    topics = texts()
    result = invoke(*FIT, *options, "--save", "m.npz", "-o", "l.csv", "-q")

    assert result.exit_code == 0, result.stderr

    good("predict", "m.npz", "t.csv", "-o", "again.csv")

    assert clusters("l.csv") == clusters("again.csv")

    labels = load_model("m.npz").predict(pd.read_csv("t.csv")["text"])

    assert [*map(str, labels)] == clusters("l.csv")

    counts = pd.crosstab(topics, clusters("l.csv")).drop(columns="-1", errors="ignore")

    assert counts.min(axis=1).sum() <= 1  # of those with a cluster


def test_even_noise_takes_the_counts_and_a_report_shows_words():
    texts()
    table = table_of("t.csv", missing="auto", text_column="text")

    assert sp.issparse(table.X)
    assert (table.X.data == np.round(table.X.data)).all()

    notes = document(*FIT, "--columns-as", "counts")["notes"]

    assert not any("tf-idf" in note for note in notes)

    good("report", *FIT[1:], "--label-column", "topic", "-o", "r.html")
    with open("r.html", encoding="utf-8") as page:
        assert "harbour" in page.read()

    texts(name="t.xlsx")

    assert "15 features" in good("choose-k", "t.xlsx", "--text-column", "text")


def test_what_makes_no_sense_with_texts_is_refused():
    texts()
    for option, *values in (
        ("--columns", "price"),
        ("--drop-columns", "price"),
        ("--transpose",),
    ):
        message = fail(*FIT, option, *values)
        assert f"--text-column 'text' and {option}: with texts, words are" in message

    assert "'text': that column is clustered by" in fail(*FIT, "--id-column", "text")
    assert "which fills sparse data up" in fail(*FIT, "--prepare", "standardize")
    assert "is too large for 0 GB of memory" in fail(*FIT, "--memory", "0")

    message = fail(*FIT[:-1], "price")

    assert "'price': that column of t.csv holds no texts" in message
    assert "have no word that is in 2 of them or more" in fail(*FIT[:-1], "doc")

    message = fail("fit", "iris", "-k", "3", "--text-column", "doc")

    assert "iris has no columns of text" in message

    good("fit", "iris", "-k", "2", "--save", "x.npz")
    message = fail("predict", "x.npz", "t.csv", "--text-column", "text")

    assert "--text-column: x.npz was fitted without it" in message


def test_texts_without_a_word_are_left_out_of_a_fit():
    texts()
    frame = pd.read_csv("t.csv")
    frame.loc[[3, 7], "text"] = ["", "Unheard!"]
    frame.to_csv("t.csv", index=False)
    result = invoke(*FIT, "--id-column", "doc", "-o", "l.csv")
    complaint = "2 texts without a word that another has, the first is in doc 'd3'"

    assert f"Left out {complaint}" in result.stderr
    assert len(read("l.csv")) == 58

    message = fail(*FIT, "--id-column", "doc", "--missing", "error")

    assert message.startswith(f"error: t.csv has {complaint}. Add --missing drop")


def genes():
    """Write cells by genes, and genes by cells with the kinds and a description."""
    rng = np.random.default_rng(1)
    patterns = np.array([[9, 1, 1, 4, 2], [1, 9, 2, 1, 5], [2, 1, 9, 3, 1]])
    kinds = np.arange(48) % 3
    X = rng.poisson(20 * patterns[kinds] * rng.uniform(0.3, 3, (48, 1)))
    cells = pd.DataFrame(X, columns=[f"G{j}" for j in range(5)])
    cells.index = [f"c{i}" for i in range(48)]
    cells.to_csv("cells.csv")
    transposed = cells.T.astype(object)
    transposed.loc["kind"] = [f"kind {k}" for k in kinds]
    transposed.insert(0, "about", [*list("abcde"), ""])
    transposed.index.name = "gene"
    transposed.to_csv("genes.csv")
    transposed.to_excel("genes.xlsx")
    transposed.drop(index="kind").infer_objects().reset_index().to_parquet(
        "genes.parquet"
    )
    return cells


def test_a_transposed_table_is_the_table_of_its_columns():
    cells = genes()
    for name in ("genes.csv", "genes.xlsx", "genes.parquet"):
        table = table_of(name, transpose=True)
        assert table.names == list(cells.columns)
        assert table.rows.ids.tolist() == list(cells.index)
        assert table.rows.id_name == "column"
        np.testing.assert_array_equal(table.X, cells)

    X = cells.to_numpy(float)
    np.save("g.npy", X.T)
    sp.save_npz("g.npz", sp.csr_array(X.T))

    np.testing.assert_array_equal(table_of("g.npy", transpose=True).X, X)
    np.testing.assert_array_equal(table_of("g.npz", transpose=True).X.toarray(), X)


def test_options_name_rows_of_a_transposed_file():
    genes()
    fit = ("fit", "genes.csv", "-k", "3", "--transpose", "--label-column", "kind")
    summary = document(*fit, "--drop-columns", "G4", "-o", "l.csv")

    assert summary["known_labels"]["misplaced"] == 0
    assert summary["n_features"] == 4
    assert any("but not 'about', without numbers" in note for note in summary["notes"])
    assert read("l.csv")[5]["column"] == "c5"
    assert document(*fit, "--columns", "G0,G1,G2")["n_features"] == 3

    good("choose-k", *fit[1:2], "--transpose")
    good("report", *fit[1:], "-o", "r.html")

    assert "iris has no features in its rows" in fail("fit", "iris", *fit[2:5])


def test_predict_takes_features_in_rows_too():
    genes()
    good("fit", "cells.csv", "-k", "3", "--save", "m.npz", "-o", "l.csv")
    expected = [(row["row"], row["cluster"]) for row in read("l.csv")]
    for id_name, *data in (
        ("row", "cells.csv"),
        ("column", "genes.csv", "--transpose"),
    ):
        good("predict", "m.npz", *data, "-o", "p.csv")
        labels = [(row[id_name], row["cluster"]) for row in read("p.csv")]
        assert labels == expected


def test_a_first_column_of_text_without_a_name_holds_the_ids():
    cells = genes()
    table = table_of("cells.csv")

    assert table.rows.ids.tolist() == list(cells.index)
    assert table.rows.id_name == "row"
    assert table.left_out == {}
    assert "Took ids from the first column" in good("fit", "cells.csv", "-k", "3")

    cells.index = ["a", "b"] * 24
    cells.to_csv("groups.csv")

    assert "Unnamed: 0" in table_of("groups.csv").left_out

    cells.reset_index(drop=True).to_csv("numbers.csv")

    assert re.match("looks like ids", table_of("numbers.csv").left_out["Unnamed: 0"])


def test_a_text_in_each_line_is_no_table():
    Path("a.txt").write_text("One, two.\nOne, two, three.\nOne.\nA, b, c, d, e.\n")
    assert "--text-column" in fail("fit", "a.txt", "-k", "2")


def test_categories_are_used_if_asked_for():
    frame = shop().assign(region=np.resize(["north", "south", "west"], 90))
    frame = frame.assign(opened=np.resize(["2024-01-31T00:00:00Z", "2025-01-31"], 90))
    frame.loc[4, "region"] = None
    frame.assign(region=frame["region"].mask(frame.index > 40)).to_csv("c.csv")
    notes = document("fit", "c.csv", "-k", 3, "--use-categories")["notes"]

    assert "'region' (text of few values, 55.6% of it empty)" in str(notes)

    frame.to_csv("a.csv", index=False)
    arguments = ("fit", "a.csv", "-k", 3, "--label-column", "region")

    assert "--use-categories" not in str(document(*arguments)["notes"])

    arguments = arguments[:-2]
    notes = document(*arguments)["notes"]

    assert "'region' (text of few values; --use-categories takes it)" in notes[1]
    assert "'opened' (dates such as '2024-01-31T00:00:00Z')" in notes[1]

    options = ("--use-categories", "--save", "m.npz", "-o", "a.out.csv")
    summary = document(*arguments, *options)
    empty_note = "Took missing cells of 'region' (1 of 90 read) as none of its values."

    assert summary["n_features"] == 8
    assert empty_note in summary["notes"]

    table = table_of("a.csv", use_categories=True)
    flags = table.X[:, -3:]

    assert table.column_names[-3:] == ["region=north", "region=south", "region=west"]
    # A category is of length 1, as a column is on average; an empty cell is of none.
    np.testing.assert_array_equal(flags.sum(axis=1), np.arange(90) != 4)
    assert flags.max() == 1

    # A model knows its categories, and new values are of none.
    frame["region"] = frame["region"].replace("west", "east")
    frame.to_csv("b.csv", index=False)
    prediction = document("predict", "m.npz", "b.csv")
    n_new = (frame["region"] == "east").sum()
    category_note = (
        f"Took {n_new} cells of 'region', such as 'east', as none of the fit's values."
    )

    assert {category_note, empty_note} < {*prediction["notes"]}
    assert prediction["n_features"] == 8

    good("predict", "m.npz", "a.csv", "-o", "b.out.csv")

    assert clusters("a.out.csv") == clusters("b.out.csv")

    frame.drop(columns="region").to_csv("c.csv", index=False)
    message = fail("predict", "m.npz", "c.csv")

    assert "lacks 1 of the 6 columns that the model was fitted on: 'region'" in message

    frame[["region"]].to_csv("c.csv", index=False)
    summary = document("fit", "c.csv", *arguments[2:], "--use-categories")

    assert summary["n_features"] == 3

    frame.to_parquet("b.parquet")
    message = fail("fit", "b.parquet", "-k", 3, "--use-categories", "--memory", 0)

    assert "read in memory alone" in message

    message = fail(*arguments, "--columns", "region,meat")

    assert "cannot be used: text of few values; --use-categories takes it" in message
