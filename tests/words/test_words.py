"""What results print, and what they show in a notebook."""

import pickle
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from nested_rows import nested

from ihgmm import (
    IhSC,
    cluster_tree,
    diagnose,
    make_ihgmm,
    scale_heterogeneity_test,
    select_n_clusters,
)
from ihgmm.statistics.selection import Confidence
from ihgmm.words.counts import SPLIT_HEAD, count_headline

EVIL = "<img src=x onerror=alert(1)>"


class Cells(HTMLParser):
    """Lines of all tables, and all text, of well-formed HTML."""

    def __init__(self, text):
        super().__init__()
        self.lines, self.text, self.open = [], "", []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert tag != "img"
        self.open.append(tag)
        if tag == "tr":
            self.lines.append([])
        if tag in ("td", "th"):
            self.lines[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.text += text
        if self.open[-1] in ("td", "th"):
            self.lines[-1][-1] += text


@pytest.fixture(scope="module")
def sample():
    X, kinds = make_ihgmm(120, 30, 2, balance=0.5, random_state=0)
    return X, np.array([EVIL, "b"])[kinds]


def test_figures_are_those_of_the_results(sample):
    X, labels = sample
    found = diagnose(X, labels)
    shown = Cells(found._repr_html_())
    assert shown.text.startswith("Well separated.")
    assert shown.lines[0][:2] == ["data", "120 x 30"]
    assert all(str(caution) in shown.text for caution in found.cautions)

    test = scale_heterogeneity_test(X, labels)
    shown = Cells(test._repr_html_())
    assert [line[0] for line in shown.lines] == ["cluster", EVIL, "b", "all"]
    assert [int(line[1]) for line in shown.lines[1:3]] == list(test.sizes)
    assert shown.text.startswith(str(test).splitlines()[4])


def test_a_count(sample):
    count = select_n_clusters(sample[0], random_state=0)
    shown = Cells(count._repr_html_())
    assert str(count) in shown.text
    numbers = [line[0] for line in shown.lines]
    assert numbers == ["clusters", *map(str, sorted(count.plausible))]
    assert shown.lines[1][-1] == "yes"
    X, *_ = nested(0, types=2)
    nests = select_n_clusters(X, random_state=0)
    shown = Cells(nests._repr_html_())
    numbers = [int(line[0]) for line in shown.lines[1:]]
    assert numbers == sorted(nests.plausible)
    assert {*nests.levels} == {2, 6} <= {*numbers}


def test_a_tree(sample):
    tree = cluster_tree(nested(0)[0], random_state=0)
    shown = Cells(tree._repr_html_())
    assert shown.text.startswith("The tree is stable at 3 and 9 clusters.")
    head, *lines = shown.lines
    assert head == list(SPLIT_HEAD)
    for line, split in zip(lines, tree.splits, strict=True):
        figures = (split.contrast, split.agreement, split.stability, split.drop)
        assert line[:-1] == [str(split.n_clusters), *(f"{one:.2f}" for one in figures)]
        assert (line[-1] == "yes") == (split.n_clusters in tree.levels)
    flat = cluster_tree(np.random.default_rng(0).normal(size=(80, 40)), random_state=0)
    assert str(flat) == "The tree is not stable at any number of clusters."
    two = cluster_tree(IhSC(2, random_state=0).fit(sample[0]), random_state=0)
    assert str(two).startswith("No smaller number of clusters stands out.")


def test_a_number_of_clusters_in_few_words():
    def said(k, *others, confidence=Confidence.LOW, tree=None, rank=1, most=50):
        count = replace(known, n_clusters=k, plausible=(k, *others), rank=rank)
        return replace(count, confidence=confidence, tree=tree, max_clusters=most)

    known = select_n_clusters(nested(0)[0], random_state=0)
    tree = known.tree
    assert count_headline(known) == "9 clusters"
    assert count_headline(said(0)) == "no structure"
    assert count_headline(said(3, 4, 2)) == "perhaps 3 clusters, or 4 or 2"
    assert "there are too few rows to look for groups" in str(said(1))
    assert "do not agree on any groups" in str(
        said(1, confidence=Confidence.HIGH, tree=tree)
    )
    text = str(said(1, 4, 2, tree=tree))
    assert "do not agree on any number of groups" in text
    assert "If there are clusters, their number is most likely 4 or 2." in text
    # Nothing else is plausible where a tree has but one branch.
    alone = replace(tree, splits=(), levels=())
    assert str(said(1, tree=alone)).startswith("Probably one cluster")
    assert "stopped at max_clusters=3" in str(said(3, tree=tree, most=3))


def test_estimators_keep_the_diagram_of_scikit_learn(sample):
    assert "sk-" in IhSC(2).fit(sample[0])._repr_html_()


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
