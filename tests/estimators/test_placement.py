"""How rows are placed: those of the fit keep their labels, whatever the settings."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from recipes import with_recipe

from ihgmm import IhSC, Recipe, make_ihgmm
from ihgmm.metrics import exact_recovery
from ihgmm.numerics.embedding import SPACES
from ihgmm.numerics.gram import GRAMS
from ihgmm.numerics.labels import ASSIGNMENTS
from ihgmm.storage import load_model, save_model

pytestmark = pytest.mark.filterwarnings(
    "ignore:In .* of the rows noise outweighs",
    "ignore:Refined labels still changed",
    "ignore:.* rows are zero",
    "ignore:.* clusters ended without rows",
)


def overlapping(dtype=np.float64, seed=0, n=120):
    """Rows near the borders of clusters, a very large one and two that are zero."""
    X, _ = make_ihgmm(n, 30, 4, separation_constant=0.15, random_state=seed)
    X[5] *= 40
    X[[3, 77]] = 0
    return X.astype(dtype)


grams = pytest.mark.parametrize("gram", GRAMS)
assignments = pytest.mark.parametrize("assign", ASSIGNMENTS)
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def settings(gram, assign):
    """Return options of all combinations of what is left."""
    names = ("space", "n_components", "clip")
    values = product(("auto", *SPACES), ("auto", None, 7), (None, 1.5))
    fixed = {"gram": gram, "labels": assign, "n_init": 2, "random_state": 0}
    return [fixed | dict(zip(names, value, strict=True)) for value in values]


@grams
@assignments
@dtypes
def test_rows_of_the_fit_keep_their_labels(gram, assign, dtype):
    X = overlapping(dtype)
    # Each pair of settings is met, if not with every other: others begin elsewhere.
    first = GRAMS.index(gram) + ASSIGNMENTS.index(assign)
    step = 4 if dtype is np.float64 else 7
    for options in settings(gram, assign)[first % step :: step]:
        model = IhSC(4, **with_recipe(**options)).fit(X)
        assert_array_equal(model.predict(X), model.labels_, err_msg=str(options))
        # One by one, and in any order.
        assert_array_equal(model.predict(X[40:50]), model.labels_[40:50])
        assert_array_equal(model.predict(X[::-1]), model.labels_[::-1])


@grams
@assignments
@dtypes
@pytest.mark.parametrize("build", [IhSC, IhSC.paper], ids=["default", "paper"])
def test_refined_rows_keep_their_labels(gram, assign, dtype, build):
    options = {"gram": gram, "labels": assign, "refine": True}
    X = overlapping(dtype, seed=int(dtype is np.float32))
    base = "default" if build is IhSC else "paper"
    model = IhSC(4, random_state=0, **with_recipe(base, **options)).fit(X)
    assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("order", ["algebraic", "magnitude"])
@pytest.mark.parametrize("solver", ["dense", "lanczos", "block"])
@pytest.mark.parametrize("build", [IhSC, IhSC.paper], ids=["default", "paper"])
def test_eigenvectors_of_every_solver_place_their_rows(solver, order, build):
    for seed, storage in enumerate((np.asarray, sp.csr_array, sp.csc_array)):
        data = storage(overlapping(seed=seed))
        options = {"order": order, "solver": solver, "random_state": seed}
        base = "default" if build is IhSC else "paper"
        model = IhSC(4, **with_recipe(base, **options)).fit(data)
        assert_array_equal(model.predict(data), model.labels_)


@pytest.mark.parametrize("unit", [2.0**-600, 1e-30, 1e30, 2.0**600])
@pytest.mark.parametrize("build", [IhSC, IhSC.paper], ids=["default", "paper"])
def test_every_unit(unit, build):
    X = overlapping()
    model = build(4, random_state=0).fit(X * unit)
    assert_array_equal(model.predict(X * unit), model.labels_)


def test_a_row_alone_may_have_another_unit_than_the_fit():
    # Rows are put in a unit in which their squares can be held: that of a tiny row
    # among others is not that of the row alone.
    X, _ = make_ihgmm(150, 30, 4, random_state=0)
    X *= np.logspace(-35, 35, 150)[:, None]
    for options in ({"clip": 1.5}, {"gram": "cosine"}):
        model = IhSC(4, random_state=0, **with_recipe(**options)).fit(X)
        for i in (0, 75, 149):
            assert_array_equal(model.predict(X[[i]]), model.labels_[[i]])


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("build", [IhSC, IhSC.paper], ids=["default", "paper"])
def test_rows_of_few_kinds_keep_their_labels(build, refine):
    kinds = np.array([[1.0, 0.0, 0.2], [-1.0, 0.0, -0.2], [0.3, 0.0, 1.0]])
    X = kinds[np.repeat([0, 1, 2], [5, 9, 7])]
    with pytest.warns(UserWarning, match="3 distinct rows, fewer than n_clusters=5"):
        model = build(5, refine=refine, random_state=0).fit(X)
    assert_array_equal(model.labels_, np.repeat([2, 0, 1], [5, 9, 7]))
    assert_array_equal(model.predict(X), model.labels_)
    # No new row goes to an empty cluster.
    rows = np.random.default_rng(0).standard_normal((200, 3))
    assert_array_equal(np.unique(model.predict(rows)), [0, 1, 2])


def test_rows_of_few_kinds_and_one_direction_share_a_cluster():
    X = np.outer([1.0, 1.0, 2.0, 2.0, 0.0], [0.5, 1.0])
    with pytest.warns(UserWarning, match="3 distinct rows"):
        model = IhSC(4, random_state=0).fit(X)
    assert_array_equal(model.labels_, 0)
    assert_array_equal(model.predict(X), 0)


@pytest.mark.parametrize("assign", ASSIGNMENTS)
@pytest.mark.parametrize("gram", GRAMS)
@pytest.mark.parametrize(("refine", "dtype"), [(False, np.float64), (True, np.float32)])
def test_models_on_disk_keep_the_labels(tmp_path, gram, assign, refine, dtype):
    X = overlapping(dtype)
    path = tmp_path / "model"
    options = {"gram": gram, "labels": assign, "refine": refine}
    model = IhSC(4, random_state=0, **with_recipe(**options)).fit(X)
    save_model(model, path)
    again = load_model(path)
    assert_array_equal(again.predict(X), model.labels_)
    new = overlapping(dtype, seed=1)
    assert_array_equal(again.predict(new), model.predict(new))


def test_the_cosine_rule_is_an_option():
    X = overlapping()
    model = IhSC(4, recipe=Recipe(placement="cosine"), random_state=0).fit(X)
    assert_array_equal(model.predict(X), model.transform(X).argmax(axis=1))
    assert (model.predict(X) != model.labels_).any()


@pytest.mark.parametrize("build", [IhSC, IhSC.paper], ids=["default", "paper"])
def test_zero_rows_go_to_the_largest_cluster(build):
    model = build(4, random_state=0).fit(overlapping())
    assert_array_equal(model.predict(np.zeros((2, 30))), 0)


@grams
@assignments
@pytest.mark.parametrize("space", ["auto", *SPACES])
def test_new_rows_of_the_model_are_placed_without_error(gram, assign, space):
    options = {"gram": gram, "labels": assign, "space": space}
    X, labels = make_ihgmm(500, 100, 4, random_state=0)
    model = IhSC(4, random_state=0, **with_recipe(**options)).fit(X[:300])
    assert exact_recovery(labels, model.predict(X))


def test_more_clusters_than_rows_that_are_not_zero():
    X = np.vstack([np.eye(3), np.zeros((2, 3))])
    with pytest.raises(
        ValueError, match="n_clusters=4 is more than the 3 rows of X th"
    ):
        IhSC(4).fit(X)
