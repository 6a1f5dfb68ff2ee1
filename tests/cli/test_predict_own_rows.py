"""Rows of the fit get from ``ihgmm predict`` what the fit said of them."""

import numpy as np
import pandas as pd
import pytest
from command_line import good, invoke

from ihgmm import make_ihgmm


@pytest.fixture
def table(monkeypatch, tmp_path):
    """Noisy rows, two of them equal, and the same with gaps."""
    monkeypatch.chdir(tmp_path)
    X, _ = make_ihgmm(120, 12, 3, separation_constant=0.8, random_state=0)
    X[7] = X[3]
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    frame.to_csv("a.csv", index=False)
    gaps = frame.mask(np.random.default_rng(0).random(X.shape) < 0.05)
    gaps.to_csv("gaps.csv", index=False)
    return frame


def figures(file):
    return pd.read_csv(file).drop(columns=["row", "typical"])


CASES = [
    ("a.csv",),
    ("a.csv", "--whiten", "learned"),
    ("a.csv", "--refine"),
    ("a.csv", "--signed"),
    ("a.csv", "--prepare", "standardize"),
    ("a.csv", "--outliers", "0.1"),
    ("a.csv", "--method", "IhGMM"),
    ("gaps.csv",),
    ("gaps.csv", "--whiten", "learned"),
    ("gaps.csv", "--method", "IhGMM"),
    ("gaps.csv", "--outliers", "cells"),
]


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_rows_of_the_fit_keep_their_figures(table, case):
    assert (
        invoke("fit", *case, "-k", 3, "-o", "f.csv", "--save", "m.npz").exit_code == 0
    )
    file = pd.read_csv(case[0])
    good("predict", "m.npz", case[0], "-o", "p.csv")
    pd.testing.assert_frame_equal(figures("p.csv"), figures("f.csv"))
    # Few of them, in another order, after a row that is new.
    some = np.array([40, 4, 90, 11, 12])
    new = 1.5 * file.iloc[[5]]
    pd.concat([new, file.iloc[some]]).to_csv("some.csv", index=False)
    good("predict", "m.npz", "some.csv", "-o", "s.csv")
    pd.testing.assert_frame_equal(
        figures("s.csv").iloc[1:].reset_index(drop=True),
        figures("f.csv").iloc[some].reset_index(drop=True),
    )
    assert np.isnan(figures("s.csv")["certainty"][0])  # which is not known of few
