"""Estimators tell how far a fit has come."""

import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from ihgmm import IhGMM, IhSC, make_ihgmm

STEPS = {
    IhSC: ["check", "count", "eigenvectors", "labels", "doubt", "centers"],
    IhGMM: ["check", "count", "eigenvectors", "labels", "noise", "rounds", "centers"],
}
FULL = {IhSC: {}, IhGMM: {"noise": "auto"}}


def sample():
    return make_ihgmm(200, 60, 3, separation_constant=1.0, random_state=0)[0]


@pytest.mark.parametrize("estimator", STEPS, ids=lambda e: e.__name__)
def test_a_line_for_each_step(estimator, capsys):
    model = estimator("auto", random_state=0, **FULL[estimator])
    quiet_model = clone(model).fit(sample())

    assert capsys.readouterr().err == ""

    model.set_params(verbose=True).fit(sample())
    lines = capsys.readouterr().err.splitlines()

    assert [line.split()[0] for line in lines] == STEPS[estimator]
    assert all(line.split()[2] == "s" for line in lines)
    assert "200 rows, 60 features" in lines[0]
    assert "3 clusters" in lines[1]
    assert_array_equal(model.labels_, quiet_model.labels_)


def test_the_second_level_tells_each_round(capsys):
    def steps_of(level):
        IhGMM(3, tol=1e-9, random_state=0, verbose=level).fit(sample())
        return [line.split()[0] for line in capsys.readouterr().err.splitlines()]

    steps = steps_of(1)
    steps_and_rounds = steps_of(2)

    assert steps == ["check", "eigenvectors", "labels", "rounds", "centers"]
    assert steps_of(0) == []
    assert steps_and_rounds.count("rounds") > 2
    assert list(dict.fromkeys(steps_and_rounds)) == steps


def test_a_model_that_grows_tells_too(capsys):
    model = IhSC(3, verbose=1).partial_fit(sample()[:100])
    capsys.readouterr()
    model.partial_fit(sample()[100:])
    check, grow = capsys.readouterr().err.splitlines()

    assert "100 rows, 60 features" in check
    assert grow.startswith("grow ")
