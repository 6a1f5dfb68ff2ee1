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
from ihgmm.statistics.cautions import (
    Caution,
    OneValueColumn,
    OtherClusters,
    RulingColumn,
    ZeroRows,
)
from ihgmm.statistics.selection import ClusterCount, Confidence
from ihgmm.words.counts import count_headline, split_rows
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
    tree = cluster_tree(nested(0)[0], random_state=0)
    rows = [*split_rows(tree, tree.splits)]

    assert [row[0] for row in rows] == [split.n_clusters for split in tree.splits]
    assert [row[0] for row in rows if row[-1] == "yes"] == list(tree.levels) == [3, 9]

    noise = np.random.default_rng(0).normal(size=(80, 40))
    flat_tree = cluster_tree(noise, random_state=0)

    assert str(flat_tree) == "The tree is not stable at any number of clusters."

    tree_of_two = cluster_tree(IhSC(2, random_state=0).fit(sample[0]), random_state=0)

    assert str(tree_of_two).startswith("Within this fit, no smaller number stands out.")


def test_a_number_of_clusters_in_few_words():
    nested_count = select_n_clusters(nested(0)[0], random_state=0)
    tree = nested_count.tree

    def count_of(k, *others, confidence=Confidence.LOW, tree=None, rank=1, most=50):
        count = replace(nested_count, n_clusters=k, plausible=(k, *others), rank=rank)
        return replace(count, confidence=confidence, tree=tree, max_clusters=most)

    assert count_headline(nested_count) == "9 clusters"
    assert count_headline(count_of(0)) == "no structure"
    assert str(count_of(0, rank=0)).startswith("No structure: no eigenvalue stands out")
    assert count_headline(count_of(3, 4, 2)) == "perhaps 3 clusters, or 4 or 2"
    assert "there are too few rows to look for groups" in str(count_of(1))

    one_cluster = count_of(1, confidence=Confidence.HIGH, tree=tree)

    assert "do not agree on any groups" in str(one_cluster)

    text = str(count_of(1, 4, 2, tree=tree))

    assert "do not agree on any number of groups" in text
    assert "If there are clusters, their number is most likely 4 or 2." in text

    # Nothing else is plausible where a tree has but one branch.
    single_branch = replace(tree, splits=(), levels=())

    assert str(count_of(1, tree=single_branch)).startswith("Probably one cluster")
    assert "nested: the tree is stable at 3 and 9 clusters." in str(nested_count)

    best_guess = replace(count_of(7, 3, tree=tree, rank=7), levels=(3,))
    sentence = "The tree is stable at 3 clusters. 7 is the best guess, since"

    assert f"{sentence} as many eigenvalues stand out from noise." in str(best_guess)

    best_guess = replace(best_guess, rank=1)
    text = str(best_guess)

    assert f"{sentence} rise + 1.5 x drop is largest there, of numbers with" in text
    assert " 7 is the best guess, since rise" in str(replace(best_guess, levels=()))
    assert "from noise (edge" in text
    assert text.endswith("and there can be more clusters than that.")
    assert "stopped at max_clusters=3" in str(count_of(3, tree=tree, most=3))


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
