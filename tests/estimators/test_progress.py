"""Estimators tell how far a fit has come, on the screen and to scikit-learn."""

import copy
import io
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ihgmm import IhGMM, IhSC, Recipe, make_ihgmm
from ihgmm._progress import Steps

STEPS = {
    IhSC: ["check", "count", "eigenvectors", "labels", "refine", "centers"],
    IhGMM: ["check", "count", "eigenvectors", "labels", "refine", "rounds", "centers"],
}
ESTIMATORS = pytest.mark.parametrize("estimator", STEPS, ids=lambda e: e.__name__)


def sample(n=400):
    return make_ihgmm(n, 60, 3, separation_constant=1.0, random_state=0)[0]


def full(estimator, **options):
    """Return an estimator that goes through every step there is."""
    model = estimator("auto", random_state=0, **options)
    return model.set_params(refine=True) if estimator is IhSC else model


class Terminal(io.StringIO):
    def isatty(self):
        return True


@ESTIMATORS
def test_a_line_for_each_step(estimator, capsys):
    quiet = full(estimator).fit(sample())
    assert capsys.readouterr().err == ""
    model = full(estimator, verbose=True).fit(sample())
    shown = capsys.readouterr().err
    lines = shown.splitlines()
    assert [line.split()[0] for line in lines] == STEPS[estimator]
    assert all(line.split()[2] == "s" for line in lines)
    assert "400 rows, 60 features" in lines[0]
    assert "3 clusters" in lines[1]
    assert "\r" not in shown  # this is no terminal
    assert_array_equal(model.labels_, quiet.labels_)


def test_steps_that_are_left_out_are_not_shown(capsys):
    IhSC(3, random_state=0, verbose=True).fit(sample())
    names = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
    assert names == ["check", "eigenvectors", "labels", "centers"]


def test_products_are_told_one_by_one_on_a_terminal(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    IhSC(3, random_state=0, recipe=Recipe(solver="block", tol=1e-6), verbose=True).fit(
        sample()
    )
    shown = re.findall(
        r"eigenvectors .*? (\d+) products?, .*?([\r\n])", screen.getvalue()
    )
    counts = [int(count) for count, _ in shown]
    # The last one is there twice: as it comes, and on the line that stays.
    assert counts == [*range(1, counts[-1] + 1), counts[-1]]
    assert counts[-1] > 2
    assert [end for _, end in shown] == ["\r"] * counts[-1] + ["\n"]
    # No line leaves a part of the one before it.
    lines = re.split(r"[\r\n]", screen.getvalue())[:-1]
    assert len({len(line) for line in lines}) == 1


def test_a_step_that_fails_is_not_told_as_done(capsys):
    with pytest.raises(ZeroDivisionError), Steps(1).step("labels"):
        raise ZeroDivisionError
    assert capsys.readouterr().err == ""


@ESTIMATORS
def test_verbose_is_checked(estimator):
    with pytest.raises(TypeError, match="verbose='yes' is not known"):
        estimator(3, verbose="yes").fit(sample())
    with pytest.raises(ValueError, match="verbose=3 is out of range; give 0, 1 or 2"):
        estimator(3, verbose=3).fit(sample())


def test_the_second_level_tells_each_round(capsys):
    def lines(level):
        IhGMM(3, tol=1e-9, random_state=0, verbose=level).fit(sample())
        return [line.split()[0] for line in capsys.readouterr().err.splitlines()]

    once, rounds = lines(1), lines(2)
    assert once == ["check", "eigenvectors", "labels", "refine", "rounds", "centers"]
    assert lines(0) == []
    # In a file, too, where a line that is overwritten would not be seen.
    assert rounds.count("rounds") > 2
    assert list(dict.fromkeys(rounds)) == once


# scikit-learn's callbacks


class Recorder:
    """A callback that keeps what it is told."""

    def __init__(self):
        self.events = []
        self.copies = []

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.events.append(("end", context.task_name))
        if fitted_estimator is not None:
            self.copies.append(copy.copy(fitted_estimator))


@ESTIMATORS
def test_callbacks_hear_of_each_step(estimator):
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")
    heard = Recorder()
    X = sample()
    model = full(estimator).set_callbacks(heard).fit(X)
    tasks = [(when, s) for s in STEPS[estimator] for when in ("begin", "end")]
    assert heard.events == [
        ("setup", "fit"),
        ("begin", "fit"),
        *tasks,
        ("end", "fit"),
        ("teardown", "fit"),
    ]
    (fitted,) = heard.copies
    assert_array_equal(fitted.predict(X), model.predict(X))
    assert_array_equal(model.labels_, full(estimator).fit(X).labels_)


@ESTIMATORS
def test_callbacks_are_let_go_when_the_fit_fails(estimator):
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")
    heard = Recorder()
    model = estimator(3).set_callbacks(heard)
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(np.full((9, 3), np.nan))
    assert heard.events[-1] == ("teardown", "fit")
    assert ("end", "fit") not in heard.events
    model.fit(sample())
    assert heard.events[-2:] == [("end", "fit"), ("teardown", "fit")]


@ESTIMATORS
def test_progress_bar_of_scikit_learn(estimator, capsys):
    callback = pytest.importorskip("sklearn.callback", reason="before 1.9")
    model = estimator(3, random_state=0).set_callbacks(callback.ProgressBar())
    model.fit(sample())
    shown = capsys.readouterr().out
    assert f"{estimator.__name__} - fit" in shown
    assert "100%" in shown


def test_progress_bar_of_a_search(capsys):
    callback = pytest.importorskip("sklearn.callback", reason="before 1.9")
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(IhSC(random_state=0), {"n_clusters": [2, 3]}, cv=2)
    search.set_callbacks(callback.ProgressBar()).fit(sample(60))
    assert capsys.readouterr().out.count("IhSC - fit") >= 5
