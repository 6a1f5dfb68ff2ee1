"""What results print, and what they show in a notebook."""

import pickle
import subprocess
import sys
from dataclasses import replace
from html import escape
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest
from nested_rows import nested

import ihgmm
from ihgmm import IhSC, cluster_tree, diagnose, make_ihgmm, select_n_clusters
from ihgmm._display import Result, describe
from ihgmm.matrix import as_matrix
from ihgmm.statistics.cautions import (
    Caution,
    OneValueColumn,
    OtherClusters,
    RulingColumn,
    ZeroRows,
)
from ihgmm.statistics.selection import ClusterCount, Confidence
from ihgmm.statistics.tree_building import tree_of_rows
from ihgmm.words.counts import (
    count_headline,
    evidence_rows,
    evidence_words,
    split_rows,
    split_words,
)
from ihgmm.words.diagnoses import caution_text

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def sample():
    X, kinds = make_ihgmm(120, 30, 2, balance=0.5, random_state=0)
    return X, np.array([EVIL, "b"])[kinds]


def test_notebooks_show_what_is_printed(sample):
    X, labels = sample
    results = diagnose(X, labels), ihgmm.scale_heterogeneity_test(X, labels)
    for result in (*results, select_n_clusters(X, random_state=0)):
        html = result._repr_html_()
        assert "<img" not in html
        assert html == f"<pre>{escape(str(result))}</pre>"


def test_figures_are_those_of_the_results(sample):
    X, labels = sample
    diagnosis = diagnose(X, labels)
    lines = str(diagnosis).splitlines()

    assert lines[0].startswith("Well separated. Refitting on other rows keeps 100%")
    assert lines[2].split()[:4] == ["data", "120", "x", "30"]

    printed = " ".join(str(diagnosis).split())

    assert all(str(caution) in printed for caution in diagnosis.cautions)

    test = ihgmm.scale_heterogeneity_test(X, labels)
    rows = str(test).splitlines()[1:4]

    assert [row.split("  ")[0] for row in rows] == [EVIL, "b", "all"]

    sizes = [int(row.removeprefix(EVIL).split()[-3]) for row in rows[:2]]

    assert sizes == list(test.sizes)


def test_a_tree(sample):
    rng = np.random.default_rng(0)
    tree = tree_of_rows(as_matrix(nested(0)[0]), n_clusters=9, max_clusters=50, rng=rng)
    rows = [*split_rows(tree, tree.splits)]

    assert [row[0] for row in rows] == [split.n_clusters for split in tree.splits]
    assert [row[0] for row in rows if row[-1] == "yes"] == list(tree.levels) == [3, 9]
    assert list(split_words()) == ["rise", "agreement", "stability", "drop", "level"]
    assert {len(row) for row in rows} == {1 + len(split_words())}

    noise = np.random.default_rng(0).normal(size=(80, 40))
    flat_tree = cluster_tree(noise, random_state=0)

    assert str(flat_tree) == "The tree is not stable at any number of clusters."

    tree_of_two = cluster_tree(IhSC(2, random_state=0).fit(sample[0]), random_state=0)

    assert str(tree_of_two).startswith("Within this fit, no smaller number stands out.")


@pytest.fixture(scope="module")
def count_of_three():
    X, _ = make_ihgmm(120, 12, 3, random_state=0)
    return select_n_clusters(X, random_state=0)


def test_a_number_of_clusters_in_few_words(count_of_three):
    def count_of(k, *others, confidence=Confidence.LOW, most=50, **parts):
        count = replace(count_of_three, n_clusters=k, plausible=(k, *others), **parts)
        return replace(count, confidence=confidence, max_clusters=most)

    assert count_headline(count_of_three) == "3 clusters"

    evidence = count_of_three.evidence_for(3)

    assert str(count_of_three) == (
        f"3 clusters, with high confidence: {evidence.links_inside:.0%} of the links "
        "between neighbours stay inside clusters, where chance would leave "
        f"{evidence.links_by_chance:.0%}."
    )
    assert count_headline(count_of(3, 4, 2)) == "perhaps 3 clusters, or 4 or 2"

    text = str(count_of(3, 4, 2))

    assert text.startswith("Perhaps 3 clusters, with low confidence: ")
    assert text.endswith(" Also plausible: 4 or 2.")

    # One of the plausible numbers is named by a sentence of its own.
    text = str(count_of(3, 4, 1, confidence=Confidence.MIDDLE))

    assert "3 clusters, with middle confidence: " in text
    assert " Also plausible: 4. There may be no clusters at all: a cloud" in text
    assert "Also plausible" not in str(count_of(3, 1))
    assert "stopped at max_clusters=3; there may be more." in str(count_of(3, most=3))


def test_one_cluster_in_few_words(count_of_three):
    one = replace(count_of_three, n_clusters=1, plausible=(1,))

    assert count_headline(one) == "1 cluster"
    assert str(one) == (
        "One cluster, or none: neighbours hold together in parts of the data hardly "
        f"more than in a cloud without clusters (lead {one.lead:.2f}; several clusters "
        "have 0.06 or more)."
    )

    several = replace(one, plausible=(1, 4, 2), confidence=Confidence.MIDDLE)
    ending = " If there are clusters, their number is most likely 4 or 2."

    assert str(several) == str(one) + ending
    assert count_headline(several) == "1 cluster"

    too_few = replace(one, evidence=(), confidence=Confidence.LOW)

    assert str(too_few) == "One cluster: there are too few rows to look for several."

    only_one = replace(too_few, max_clusters=1)

    assert str(only_one).startswith("One cluster: no other number was looked at.")
    assert str(only_one).endswith("stopped at max_clusters=1; there may be more.")


def test_the_evidence_for_each_number(count_of_three):
    count = replace(count_of_three, plausible=(3, 9))
    rows = [*evidence_rows(count)]
    leads = count.clouds.leads

    assert list(evidence_words())[:4] == ["inside", "by chance", "silhouette", "score"]
    assert {len(row) for row in rows} == {2 + len(evidence_words())}
    assert [row[0] for row in rows] == [one.n_clusters for one in count.evidence]
    assert {row[0]: row[-1] for row in rows if row[-1]} == {3: "best", 9: "yes"}

    for row, one in zip(rows, count.evidence, strict=True):
        k, inside, by_chance, silhouette, score, lead, _ = row
        assert (inside, by_chance) == (one.links_inside, one.links_by_chance)
        assert (silhouette, score) == (one.silhouette, one.score)
        assert lead == leads.get(k)

    # The words say how the score is made of the other columns.
    assert "inside - 0.5 x by chance + silhouette / 3" in evidence_words()["score"]

    score = inside - 0.5 * by_chance + silhouette / 3

    assert score == pytest.approx(rows[-1][4])
    assert max(rows, key=lambda row: row[4])[0] == 3
    assert count.lead == max(leads.values())


def in_a_fresh_process(code, *arguments):
    """Run code in a process that has imported nothing; return what it prints."""
    process = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return process.stdout


def test_a_pickled_result_finds_its_words_in_a_fresh_process(sample, tmp_path):
    X, labels = sample
    results = [
        diagnose(X, labels),
        select_n_clusters(X, random_state=0),
        cluster_tree(IhSC(3, random_state=0).fit(X), random_state=0),
        ihgmm.scale_heterogeneity_test(X, labels),
        ihgmm.top_features(X, labels),
    ]
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')))"
    for result in results:
        path = tmp_path / type(result).__name__
        path.write_bytes(pickle.dumps(result))
        assert in_a_fresh_process(code, path) == f"{result}\n"


def test_a_pickled_model_shows_itself_in_a_fresh_process(sample, tmp_path):
    X, _ = sample
    model = IhSC("auto", random_state=0).fit(X)
    (tmp_path / "model").write_bytes(pickle.dumps((model, X)))
    code = """
import pickle, sys
model, X = pickle.load(open(sys.argv[1], "rb"))
print(model, model.selection_, sep="\\n")
model.selection_.plot()
model.report(X, sys.argv[2])
"""
    printed = in_a_fresh_process(code, tmp_path / "model", tmp_path / "report.html")

    assert printed == f"{model}\n{model.selection_}\n"
    assert "</html>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def subclasses(kind):
    return {kind}.union(*map(subclasses, kind.__subclasses__()))


def test_every_result_has_sentences_of_its_own():
    results = subclasses(Result) - {Result}
    no_sentences = describe.dispatch(object)

    assert {ClusterCount, OtherClusters, ZeroRows} <= results
    for result in results:
        assert describe.dispatch(result) is not no_sentences, result

    with pytest.raises(TypeError, match="There are no sentences for a dict"):
        describe({})


def test_every_caution_has_a_sentence_and_no_other_kind_has_one():
    cautions = [
        OtherClusters(
            agreement=0.9, stability=0.4, is_by_chance=True, is_of_ihsc=False
        ),
        OneValueColumn(column="kind", other_columns=(), clusters=(1,)),
        RulingColumn(column=2, share=0.9),
        ZeroRows(n_rows=3, n_unobserved=1),
    ]

    assert [type(caution) for caution in cautions] == [*get_args(Caution)]

    texts = [caution_text(caution) for caution in cautions]

    assert texts == [
        "Fits to halves of the rows agree with each other on 90% of the rows, but with "
        "these labels on 40% only: the data show other clusters. Are rows and labels "
        "in the same order? IhSC finds them by default.",
        "Each cluster has one value, or almost, of column 'kind': it may decide which "
        "rows are in cluster 1 alone. A fit without it shows what else there is.",
        "Column 2 holds about 90% of the variance of ordinary rows, more than all "
        "others together. If columns are in different units, ColumnScaler makes them "
        "comparable.",
        "The labels of 3 rows without an observed cell but zeros mean nothing.",
    ]
    assert texts == [str(caution) for caution in cautions]


def test_a_caution_of_a_new_kind_is_not_said_to_be_about_rows_of_zeros():
    new_kind = SimpleNamespace(kind="new", figures={"rows": 3}, n_rows=3)
    with pytest.raises(AssertionError, match="Expected code to be unreachable"):
        caution_text(new_kind)
