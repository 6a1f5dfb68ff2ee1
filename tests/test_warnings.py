"""Warnings point at the user's line, however deep in the package they arise."""

import runpy
import warnings

import pytest

from ihgmm._warnings import warn

SCRIPT = """
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from ihgmm import IhSC

X = np.random.default_rng(0).standard_normal((40, 60))
{call}  # here
"""


@pytest.mark.parametrize(
    "call",
    [
        'IhSC("auto", random_state=0).fit(X)',
        'IhSC("auto", random_state=0).fit_predict(X)',
        'make_pipeline(IhSC("auto", random_state=0)).fit(X)',
        'GridSearchCV(IhSC("auto", random_state=0), {"refine": [False]}, cv=2).fit(X)',
    ],
)
def test_a_warning_of_a_fit_points_at_the_line_of_the_call(call, tmp_path):
    script = tmp_path / "analysis.py"
    script.write_text(SCRIPT.format(call=call))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        runpy.run_path(str(script))
    found = [w for w in caught if "All rows are put in one cluster" in str(w.message)]
    assert found
    line = script.read_text().splitlines().index(f"{call}  # here") + 1
    assert {(w.filename, w.lineno) for w in found} == {(str(script), line)}


def test_the_category_and_the_text_are_kept():
    with pytest.warns(FutureWarning, match="soon") as caught:
        warn("soon", FutureWarning)
    assert caught[0].filename == __file__
