"""What commands say where newcomers would read something else into it."""

from dataclasses import replace

import numpy as np
import pytest
from command_line import fail, good, invoke, named

from ihgmm import make_ihgmm, select_n_clusters


def test_a_name_in_use_is_never_suggested():
    frame = named(make_ihgmm(60, 4, 2, random_state=0)[0])
    frame.to_csv("x.csv", index=False)
    good("fit", "x.csv", "-k", "2", "--save", "m.npz")
    frame.drop(columns="f3").to_csv("lacks.csv", index=False)
    message = fail("predict", "m.npz", "lacks.csv")
    assert "lacks 1 of the 4 columns that the model was fitted on: 'f3'. It" in message


def test_a_file_that_is_missing_is_called_so_whatever_else_is_asked():
    for option in ("--layer", "--sheet", "--text-column"):
        message = fail("fit", "no.h5ad", "-k", "2", option, "counts")
        assert "no.h5ad: no such file, nor a built-in data set" in message


def test_python_lines_name_the_number_of_clusters_also_if_it_is_the_default():
    done = invoke("fit", "demo", "-k", "8", "--explain")
    assert "model = IhSC(n_clusters=8, random_state=0).fit(X)" in done.stdout


def test_a_count_without_eigenvalues_says_what_it_rests_on():
    count = select_n_clusters(make_ihgmm(90, 5, 2, random_state=0)[0], random_state=0)
    text = str(replace(count, rank=0))
    assert "These trees are the evidence: no eigenvalue stands out from noise" in text
    assert "as happens with 5 features" in text
    assert "No eigenvalue" not in text


def test_the_tree_of_choose_k_is_not_taken_for_the_clusters_of_a_fit():
    printed = good("choose-k", "demo")
    assert "A fit places rows anew: its clusters may differ from the tree's." in printed


@pytest.mark.filterwarnings("always")
def test_a_warning_is_printed_once():
    X, _ = make_ihgmm(120, 12, 3, random_state=0)
    X[5] *= 1e-90
    X[0, 0] = 1e5
    named(X).to_csv("faint.csv", index=False)
    done = invoke("fit", "faint.csv", "-k", "3", "--prepare", "none")
    assert done.stderr.count("are shorter than") == 1


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize(("zeros", "text"), [(0, ""), (1, " but zeros")])
def test_rows_without_an_observed_cell_are_called_so(zeros, text):
    X, _ = make_ihgmm(120, 12, 3, random_state=0)
    X[:zeros] = 0
    X[[5, 7]] = np.nan
    names = [f"n{i}" for i in range(120)]
    frame = named(X).assign(name=names, other=names)
    frame.to_csv("x.csv", index=False)
    done = invoke("fit", "x.csv", "-k", "3", "--save", "m.npz", "--id-column", "name")
    assert f"{2 + zeros} rows have no observed cell{text}: their" in done.stdout
    if not zeros:
        assert "2 of 120 rows have no observed cell. They show no" in done.stderr
        done = invoke("predict", "m.npz", "x.csv")
        assert "are without an observed cell in the columns of the" in done.stderr
