"""How rows are placed: those of the fit keep their labels, whatever the settings."""

import numpy as np
import pytest
import scipy.sparse as sp
from covering import case_name, covering
from numpy.testing import assert_array_equal

from ihgmm import IhSC, Recipe, make_ihgmm
from ihgmm.metrics import exact_recovery
from ihgmm.numerics.embedding import SPACES
from ihgmm.numerics.labels import ASSIGNMENTS
from ihgmm.storage import load_model, save_model

pytestmark = pytest.mark.filterwarnings(
    "ignore:Labels may be unstable",
    "ignore:.* rows are zero",
    "ignore:Rows are in",
)


def overlapping(dtype=np.float64, seed=0, n=120):
    """Rows near the borders of clusters, a very large one and two that are zero."""
    X, _ = make_ihgmm(n, 30, 4, separation_constant=0.15, random_state=seed)
    X[5] *= 40
    X[[3, 77]] = 0
    return X.astype(dtype)


BORDERS = covering(
    {
        "rows": ["unit", "given"],
        "diagonal": ["full", "zero"],
        "labels": ASSIGNMENTS,
        "space": ["auto", *SPACES],
        "n_components": ["auto", None, 7],
        "order": ["algebraic", "magnitude"],
        "storage": [np.asarray, sp.csr_array, sp.csc_array],
        "dtype": [np.float64, np.float32],
        "unit": [1.0, 1e-30, 1e30],
    }
)


@pytest.mark.parametrize("case", BORDERS, ids=case_name)
def test_rows_of_the_fit_keep_their_labels(case, tmp_path):
    options = dict(case)
    names = ("storage", "dtype", "unit")
    storage, dtype, unit = (options.pop(key) for key in names)
    rows, new_rows = (
        storage(overlapping(dtype, seed) * dtype(unit)) for seed in (0, 1)
    )
    recipe = Recipe(**options, n_init=2)
    model = IhSC(4, recipe=recipe, random_state=0).fit(rows)

    assert_array_equal(model.predict(rows), model.labels_)
    # One by one, and in any order.
    assert_array_equal(model.predict(rows[40:50]), model.labels_[40:50])
    assert_array_equal(model.predict(rows[::-1]), model.labels_[::-1])

    # A model from a file has kept all that it takes.
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")

    assert_array_equal(loaded.predict(rows), model.labels_)
    assert_array_equal(loaded.predict(new_rows), model.predict(new_rows))


def test_a_row_alone_may_have_another_unit_than_the_fit():
    # Rows are put in a unit in which their squares can be held: that of a tiny row
    # among others is not that of the row alone.
    X, _ = make_ihgmm(150, 30, 4, random_state=0)
    X *= np.logspace(-35, 35, 150)[:, None]
    model = IhSC(4).fit(X)

    for i in (0, 75, 149):
        assert_array_equal(model.predict(X[[i]]), model.labels_[[i]])


@pytest.mark.parametrize("build", [IhSC, IhSC.paper], ids=["default", "paper"])
def test_rows_of_few_kinds_keep_their_labels(build):
    patterns = np.array([[1.0, 0.0, 0.2], [-1.0, 0.0, -0.2], [0.3, 0.0, 1.0]])
    X = patterns[np.repeat([0, 1, 2], [5, 9, 7])]

    with pytest.warns(UserWarning, match="Rows are in 3 of n_clusters=5"):
        model = build(5, random_state=0).fit(X)

    assert_array_equal(model.labels_, np.repeat([2, 0, 1], [5, 9, 7]))
    assert_array_equal(model.predict(X), model.labels_)

    # No new row goes to an empty cluster.
    new_rows = np.random.default_rng(0).standard_normal((200, 3))

    assert_array_equal(np.unique(model.predict(new_rows)), [0, 1, 2])


def test_the_cosine_rule_is_an_option():
    X = overlapping()
    model = IhSC(4, recipe=Recipe(placement="cosine"), random_state=0).fit(X)

    assert_array_equal(model.predict(X), model.transform(X).argmax(axis=1))
    assert (model.predict(X) != model.labels_).any()


SEPARATED = covering(
    {
        "base": ["default", "paper"],
        "rows": ["unit", "given"],
        "diagonal": ["full", "zero"],
        "labels": ASSIGNMENTS,
        "space": ["auto", *SPACES],
        "placement": ["embedding", "cosine"],
        "dtype": [np.float64, np.float32],
    }
)


@pytest.mark.parametrize("case", SEPARATED, ids=case_name)
def test_rows_of_the_model_and_new_ones_are_placed_without_error(case):
    settings = dict(case)
    dtype = settings.pop("dtype")
    base = settings.pop("base")
    X, labels = make_ihgmm(500, 100, 4, random_state=0, dtype=dtype)
    recipe = Recipe.of(base, **settings)
    model = IhSC(4, recipe=recipe, random_state=0).fit(X[:300])

    assert exact_recovery(labels[:300], model.labels_)
    assert exact_recovery(labels, model.predict(X))
    assert model.embedding_.dtype == dtype


def test_more_clusters_than_rows_that_are_not_zero():
    X = np.vstack([np.eye(3), np.zeros((2, 3))])

    with pytest.raises(ValueError, match="=4 is more than the 3 rows of X that"):
        IhSC(4).fit(X)
