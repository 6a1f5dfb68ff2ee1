"""By what log-odds of memberships are divided, learnt in the fit or when asked for."""

from threading import Thread

import pytest
from matrix.array_kinds import strict
from numpy.testing import assert_array_equal

from ihgmm import IhSC, Recipe, make_ihgmm
from ihgmm.estimators import doubt
from ihgmm.matrix import to_host

pytestmark = pytest.mark.filterwarnings("ignore:Labels may be unstable")


def overlapping():
    return make_ihgmm(300, 60, 3, separation_constant=0.1, random_state=0)[0]


def test_a_fit_on_a_device_is_as_sure_as_one_on_the_host():
    X = overlapping()
    host_model = IhSC(3).fit(X)
    device_model = IhSC(3).fit(strict(X))

    assert host_model.temperature_ > 1.5
    assert device_model.temperature_ == pytest.approx(host_model.temperature_, rel=1e-6)


@pytest.mark.parametrize(
    "recipe",
    ["paper", "psc", Recipe(labels="neighbors"), Recipe(placement="cosine")],
    ids=str,
)
def test_a_fit_without_memberships_has_a_temperature_on_a_device_too(recipe):
    X = make_ihgmm(120, 30, 3, random_state=0)[0]
    model = IhSC(3, recipe=recipe, random_state=0).fit(strict(X))

    assert not hasattr(model, "predict_proba")
    assert model.temperature_ == 1.0


def test_threads_that_ask_at_once_get_the_same_memberships(monkeypatch):
    X = overlapping()
    model = IhSC(3).fit(strict(X))
    memberships_meanwhile = []
    learn = doubt.membership_temperature

    def ask():
        memberships_meanwhile.append(model.predict_proba(strict(X)))

    def ask_from_another_thread(*arguments):
        monkeypatch.setattr(doubt, "membership_temperature", learn)
        thread = Thread(target=ask)
        thread.start()
        thread.join(60)
        return learn(*arguments)

    monkeypatch.setattr(doubt, "membership_temperature", ask_from_another_thread)
    memberships = to_host(model.predict_proba(strict(X)))

    assert len(memberships_meanwhile) == 1
    assert_array_equal(to_host(memberships_meanwhile[0]), memberships)


def test_before_a_fit_there_is_none():
    assert not hasattr(IhSC(3), "temperature_")
