"""What results print, and what they show in a notebook."""

import pickle
import subprocess
import sys
from dataclasses import replace
from html import escape

import numpy as np
import pytest
from nested_rows import nested

import ihgmm
from ihgmm import IhSC, cluster_tree, diagnose, make_ihgmm, select_n_clusters
from ihgmm.statistics.selection import Confidence
from ihgmm.words.counts import count_headline, split_rows

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def sample():
    X, kinds = make_ihgmm(120, 30, 2, balance=0.5, random_state=0)
    return X, np.array([EVIL, "b"])[kinds]


def test_notebooks_show_what_is_printed(sample):
    X, labels = sample
    results = diagnose(X, labels), ihgmm.scale_heterogeneity_test(X, labels)
    for result in (*results, select_n_clusters(X, random_state=0)):
        shown = result._repr_html_()
        assert "<img" not in shown
        assert shown == f"<pre>{escape(str(result))}</pre>"


def test_figures_are_those_of_the_results(sample):
    X, labels = sample
    found = diagnose(X, labels)
    lines = str(found).splitlines()
    assert lines[0] == "Well separated."
    assert lines[1].split()[:4] == ["data", "120", "x", "30"]
    printed = " ".join(str(found).split())
    assert all(str(caution) in printed for caution in found.cautions)
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
    flat = cluster_tree(np.random.default_rng(0).normal(size=(80, 40)), random_state=0)
    assert str(flat) == "The tree is not stable at any number of clusters."
    two = cluster_tree(IhSC(2, random_state=0).fit(sample[0]), random_state=0)
    assert str(two).startswith("Within this fit, no smaller number stands out.")


def test_a_number_of_clusters_in_few_words():
    def said(k, *others, confidence=Confidence.LOW, tree=None, rank=1, most=50):
        count = replace(known, n_clusters=k, plausible=(k, *others), rank=rank)
        return replace(count, confidence=confidence, tree=tree, max_clusters=most)

    known = select_n_clusters(nested(0)[0], random_state=0)
    tree = known.tree
    assert count_headline(known) == "9 clusters"
    assert count_headline(said(0)) == "no structure"
    assert str(said(0, rank=0)).startswith("No structure: no eigenvalue stands out")
    assert count_headline(said(3, 4, 2)) == "perhaps 3 clusters, or 4 or 2"
    assert "there are too few rows to look for groups" in str(said(1))
    one = said(1, confidence=Confidence.HIGH, tree=tree)
    assert "do not agree on any groups" in str(one)
    text = str(said(1, 4, 2, tree=tree))
    assert "do not agree on any number of groups" in text
    assert "If there are clusters, their number is most likely 4 or 2." in text
    # Nothing else is plausible where a tree has but one branch.
    alone = replace(tree, splits=(), levels=())
    assert str(said(1, tree=alone)).startswith("Probably one cluster")
    assert "nested: the tree is stable at 3 and 9 clusters." in str(known)
    some = replace(said(7, 3, tree=tree, rank=7), levels=(3,))
    guess = "The tree is stable at 3 clusters. 7 is the best guess, since"
    assert f"{guess} as many eigenvalues stand out from noise." in str(some)
    some = replace(some, rank=1)
    assert f"{guess} rise + 1.5 x drop is largest there, of numbers with" in str(some)
    assert " 7 is the best guess, since rise" in str(replace(some, levels=()))
    assert "from noise (edge" in str(some)
    assert str(some).endswith("and there can be more clusters than that.")
    assert "stopped at max_clusters=3" in str(said(3, tree=tree, most=3))


def test_a_result_of_a_file_finds_its_words(sample, tmp_path):
    """Also in a process that has imported nothing but the class of the result."""
    found = diagnose(*sample)
    (tmp_path / "found").write_bytes(pickle.dumps(found))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')))"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "found"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{found}\n"
