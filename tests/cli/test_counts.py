"""Cells of people's own: counts of genes, in a spreadsheet or an AnnData file."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from command_line import good


@pytest.fixture
def cells():
    """Counts of 300 cells of three types; the first genes are abundant in all."""
    rng = np.random.default_rng(0)
    share = np.r_[rng.uniform(8, 20, 6), rng.lognormal(0, 0.5, 114)]
    patterns = np.tile(share, (3, 1))
    for kind in range(3):
        patterns[kind, 6 + 12 * kind : 18 + 12 * kind] *= 8
    patterns /= patterns.sum(axis=1, keepdims=True)
    kinds = rng.choice(3, 300, p=[0.5, 0.3, 0.2])
    depths = rng.lognormal(5.0, 0.5, (300, 1))
    names = [f"all{j}" for j in range(6)]
    names += [f"{kind}_{j}" for kind in "abc" for j in range(12)]
    names += [f"gene{j}" for j in range(78)]
    X = rng.poisson(depths * patterns[kinds] * rng.gamma(5, 0.2, (300, 120)))
    frame = pd.DataFrame(X, columns=names)
    frame.to_csv("cells.csv", index=False)
    anndata = pytest.importorskip("anndata")
    matrix = sp.csr_matrix(frame.to_numpy(np.float32))
    anndata.AnnData(matrix, var=frame.iloc[:0].T).write_h5ad("cells.h5ad")
    return frame, kinds


def test_counts_are_one_thing_in_every_file(cells):
    told = []
    for file in ("cells.csv", "cells.h5ad"):
        text = good("fit", file, "-k", 3, "-o", f"{file}-l.csv", "--save", "m.npz")
        assert "Divided 120 columns by the deviation ('all0': " in text
        assert "The columns look like counts" in text
        assert "--whiten counts" in text
        assert "mean 0" not in text  # zero is the origin of counts
        good("predict", "m.npz", file, "-o", "p.csv")
        told.append(pd.read_csv(f"{file}-l.csv")["cluster"])
        np.testing.assert_array_equal(pd.read_csv("p.csv")["cluster"], told[-1])
    np.testing.assert_array_equal(*told)


@pytest.mark.parametrize("command", ["fit", "report", "choose-k"])
def test_what_steps_aside_for_whitening_says_so(cells, command):
    line = {"fit": ("-k", 3), "report": ("-k", 3, "-o", "r.html"), "choose-k": ()}
    for file, whiten in (("cells.csv", "auto"), ("cells.h5ad", "counts")):
        text = good(command, file, *line[command], "--whiten", whiten)
        assert text.count("Left the columns as they are: --whiten") == 1
        assert "Divided" not in text


def test_few_large_means_among_many_columns_are_not_subtracted():
    X = np.random.default_rng(0).lognormal(0, 1, (60, 120))
    X[:, :5] = 50 + X[:, :5]
    X[:, 1::7] *= 100
    pd.DataFrame(X).add_prefix("g").to_csv("a.csv", index=False)
    assert "Divided 120 columns" in good("fit", "a.csv", "-k", 2)
    few = ["--columns", "g0,g1,g2,g3,g4,g5,g6"]
    assert "gave 5 columns mean 0" in good("fit", "a.csv", "-k", 2, *few)
