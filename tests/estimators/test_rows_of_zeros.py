"""Rows of zeros show no pattern: they get label 0, in the fit and in ``predict``.

Every estimator that compares rows by direction does so, whoever gives clusters their
numbers. Where the origin is a point like others, it is placed as other rows are.
"""

import numpy as np
import pytest
from covering import case_name, covering
from numpy.testing import assert_array_equal

from ihgmm import IhGMM, IhSC, Recipe, SphericalKMeans, make_ihgmm
from ihgmm.numerics.zero_rows import ZERO_ROW_LABEL

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* rows are zero"),
    pytest.mark.filterwarnings("ignore:Labels may be unstable"),
]
ZERO_ROWS = [0, 3, 90]


def sample():
    """Return rows of which cluster 2 of three is the largest, and their clusters."""
    X, kinds = make_ihgmm(180, 20, 3, random_state=0)
    is_kept = np.ones(180, dtype=bool)
    is_kept[np.flatnonzero(kinds == 0)[:40]] = False
    is_kept[np.flatnonzero(kinds == 1)[:20]] = False
    X, kinds = X[is_kept], kinds[is_kept]
    X[ZERO_ROWS] = 0
    return X, kinds


X, KINDS = sample()
WEIGHTS = np.where(np.arange(len(X)) < 30, 0.0, 1.0)  # 0 for two of the zero rows
WEIGHTS[60:90] = 5.0
# Of a third of the rows that are not zero; by them the largest cluster is number 2.
KNOWN = np.where(np.arange(len(X)) % 3 == 1, KINDS, -1)
KNOWN[ZERO_ROWS] = -1
RECIPES = {
    "default": "default",
    "paper": "paper",
    "projected": Recipe(space="projected"),
    "cosine": Recipe(placement="cosine"),
    "kmeans": Recipe(labels="kmeans"),
    "no neighbours": Recipe(neighbors=False),
    "rows as they are": Recipe(rows="given"),
}


def assert_zero_rows_are_labelled(model, is_known=False):
    labels = model.labels_
    assert_array_equal(labels[ZERO_ROWS], ZERO_ROW_LABEL)
    # Known labels stay those of their rows, whatever new rows would get.
    assert ((model.predict(X) == labels) | is_known).all()
    assert_array_equal(model.predict(X[ZERO_ROWS]), ZERO_ROW_LABEL)
    beside_another = np.vstack([np.zeros((1, 20)), X[1:2]])
    assert model.predict(beside_another)[0] == ZERO_ROW_LABEL


DATA = {"outliers": [None, "auto", 0.05], "weighted": [False, True]}


@pytest.mark.parametrize(
    "case", covering(DATA | {"recipe": list(RECIPES)}), ids=case_name
)
def test_ihsc(case):
    recipe = RECIPES[case["recipe"]]
    model = IhSC(3, recipe=recipe, outliers=case["outliers"], random_state=0)
    weights = WEIGHTS if case["weighted"] else None
    assert_zero_rows_are_labelled(model.fit(X, sample_weight=weights))


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
@pytest.mark.parametrize("outliers", [None, "auto"])
def test_ihsc_where_known_labels_give_the_numbers(weights, outliers):
    model = IhSC(3, outliers=outliers)
    model.fit(X, sample_weight=weights, known_labels=KNOWN)
    assert np.bincount(model.labels_[KNOWN >= 0]).argmax() == 2
    assert_zero_rows_are_labelled(model, KNOWN >= 0)


@pytest.mark.parametrize("recipe", ["default", "paper"])
def test_ihsc_where_an_older_model_gives_the_numbers(recipe):
    older_model = IhSC(3).fit(X, known_labels=KNOWN)
    model = IhSC(3, recipe=recipe, init=older_model, random_state=0).fit(X)
    if recipe == "default":
        assert np.bincount(model.labels_).argmax() == 2
    assert_zero_rows_are_labelled(model)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
def test_ihsc_that_goes_on_with_rows(weights):
    model = IhSC(3).partial_fit(X, sample_weight=weights)
    assert_zero_rows_are_labelled(model.partial_fit(X, sample_weight=weights))


NOISES = ["individual", "class", "common", "tied"]


@pytest.mark.parametrize("case", covering(DATA | {"noise": NOISES}), ids=case_name)
def test_ihgmm(case):
    noise = case["noise"]
    model = IhGMM(3, noise=noise, outliers=case["outliers"], random_state=0)
    weights = WEIGHTS if case["weighted"] else None
    assert_zero_rows_are_labelled(model.fit(X, sample_weight=weights))


def test_ihgmm_where_the_largest_cluster_has_not_the_largest_share():
    X = make_ihgmm(300, 60, 4, balance=0.2, separation_constant=0.2, random_state=1)[0]
    X[7] = 0
    model = IhGMM(4, random_state=0).fit(X)
    assert model.weights_.argmax() != ZERO_ROW_LABEL
    assert model.labels_[7] == ZERO_ROW_LABEL
    assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
@pytest.mark.parametrize("init", ["k-means++", np.eye(3, 20) + 0.1], ids=["", "init"])
def test_spherical_kmeans(init, weights):
    model = SphericalKMeans(3, init=init, random_state=0)
    assert_zero_rows_are_labelled(model.fit(X, sample_weight=weights))


def test_the_origin_is_a_point_like_others_where_rows_keep_their_length():
    # The largest cluster is far from the origin, the other one near it.
    rng = np.random.default_rng(0)
    rows = np.vstack([20 + rng.normal(size=(40, 5)), 3 + rng.normal(size=(20, 5))])
    rows[50] = 0
    model = IhSC(2, recipe="psc", random_state=0).fit(rows)
    assert_array_equal(model.labels_, np.repeat([0, 1], [40, 20]))
    assert_array_equal(model.predict(rows), model.labels_)
