"""Sheets as people keep them: empty cells that mean none, titles, footnotes, sums."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import document, fail, good, invoke, read

from ihgmm.storage import load_saved

GOODS = ["cheese", "meat", "fish", "fruit", "drinks"]
FIT = ("fit", "-k", 3)
IDS = ("--id-column", "customer no.")


def shop(n=90):
    """Return customers of three kinds, with amounts of money."""
    rng = np.random.default_rng(1)
    profiles = np.array([[8, 1, 2, 1, 1], [1, 8, 1, 2, 1], [1, 2, 8, 1, 3]])
    sizes = 10 * np.exp(rng.normal(0, 0.8, (n, 1)))
    amounts = profiles[np.arange(n) % 3] * sizes * np.exp(rng.normal(0, 0.2, (n, 5)))
    frame = pd.DataFrame(amounts.round(2), columns=GOODS)
    frame.insert(0, "customer no.", np.arange(101, 101 + n))
    return frame


def with_gaps(frame, share=0.05):
    rng = np.random.default_rng(2)
    gaps = rng.random((len(frame), len(GOODS))) < share
    frame = frame.copy()
    frame[GOODS] = frame[GOODS].mask(gaps)
    return frame


# Empty cells


def test_predict_remembers_that_empty_cells_meant_zero():
    frame = with_gaps(shop())
    frame.to_csv("a.csv", index=False)
    good(*FIT, "a.csv", *IDS, "--missing", "zero", "--save", "m.npz", "-o", "a.out.csv")
    assert load_saved("m.npz").empty_is_zero
    found = document("predict", "m.npz", "a.csv", "-o", "b.csv")
    cells = int(frame[GOODS].isna().to_numpy().sum())
    assert f"Took {cells} missing cells for 0, as the fit did." in found["notes"]
    clusters = [[row["cluster"] for row in read(f)] for f in ("a.out.csv", "b.csv")]
    assert clusters[0] == clusters[1]
    # What is asked for goes before.
    assert "have missing cells" in fail(
        "predict", "m.npz", "a.csv", "--missing", "error"
    )


def test_advice_on_missing_cells_can_be_followed():
    shop().to_csv("whole.csv", index=False)
    with_gaps(shop(), 0.3).to_csv("gaps.csv", index=False)
    good(*FIT, "whole.csv", *IDS, "--save", "m.npz")
    for command in (
        ["predict", "m.npz", "gaps.csv"],
        ["test-scales", "gaps.csv", "-k", 3, *IDS],
        ["bench", "gaps.csv", "-k", 3, *IDS, "--repeats", 1],
    ):
        for handling in ("auto", "drop", "fit", "error"):
            said = invoke(*command, "--missing", handling).stderr
            advised = set(re.findall(r"--missing (\w+)", said)) - {"fit"}
            assert advised >= {"zero"}, (command, handling, said)
            # A model that cannot fill cells in has to be fitted anew.
            assert "--missing fit to have them" not in said
        for handling in ("zero", "drop"):
            done = invoke(*command, "--missing", handling)
            assert done.exit_code == 0, done.stderr
