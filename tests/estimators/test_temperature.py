"""By what log-odds of memberships are divided, learnt in the fit or when asked for."""

from threading import Thread

import numpy as np
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
    host, device = IhSC(3).fit(X), IhSC(3).fit(strict(X))
    assert host.temperature_ > 1.5
    assert device.temperature_ == pytest.approx(host.temperature_, rel=1e-6)


@pytest.mark.parametrize(
    "recipe",
    ["paper", "psc", Recipe(placement="cosine")],
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
    meanwhile = []
    learn = doubt.membership_temperature

    def ask_from_another_thread(*given):
        monkeypatch.setattr(doubt, "membership_temperature", learn)
        work = Thread(target=lambda: meanwhile.append(model.predict_proba(strict(X))))
        work.start()
        work.join(60)
        return learn(*given)

    monkeypatch.setattr(doubt, "membership_temperature", ask_from_another_thread)
    memberships = to_host(model.predict_proba(strict(X)))
    assert len(meanwhile) == 1
    assert_array_equal(to_host(meanwhile[0]), memberships)


def test_a_model_goes_on_with_the_temperature_of_its_fit():
    X = overlapping()
    model = IhSC(3).fit(strict(X))
    asked = IhSC(3).fit(strict(X))
    wanted = asked.temperature_
    few = strict(make_ihgmm(10, 60, 3, random_state=1)[0])
    assert not np.isclose(wanted, 1.0)
    assert model.partial_fit(few).temperature_ == asked.partial_fit(few).temperature_


def test_before_a_fit_there_is_none():
    assert not hasattr(IhSC(3), "temperature_")
