"""The default settings: where they differ from the paper's, and what they check."""

import pickle
import re
import warnings
from dataclasses import fields
from functools import partial
from importlib import import_module
from itertools import cycle

import numpy as np
import pytest
import scipy.sparse as sp
from matrix.array_kinds import csr, dask_dense, memory_map, strict, torch_cpu
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import GridSearchCV

from ihgmm import IhGMM, IhSC, Recipe, UnstableLabelsWarning, make_ihgmm
from ihgmm.matrix import to_host
from ihgmm.metrics import exact_recovery, misclassification_rate


@pytest.fixture(scope="module")
def designs(root):
    """The designs of the benchmark."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(root / "benchmarks")
        return import_module("designs").DESIGNS


def errors(designs, name, build, seeds):
    rates_and_spaces = []
    for seed in seeds:
        draw = designs[name](seed)
        model = build(len(draw.centers), random_state=seed).fit(draw.X)
        rate = misclassification_rate(draw.labels, model.labels_)
        rates_and_spaces.append((rate, model.space_))
    return rates_and_spaces


@pytest.mark.parametrize(
    ("name", "limit"), [("large90-20", 0.005), ("large90-12", 0.02), ("plane", 0.01)]
)
def test_noise_does_not_drown_a_large_cluster_or_rays_in_a_plane(designs, name, limit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of noise
        results = errors(designs, name, IhSC, range(3))
        paper_results = errors(designs, name, IhSC.paper, range(1))

    assert max(rate for rate, _ in results) <= limit
    assert {space for _, space in results} == {"projected"}
    # Eigenvectors alone, as in the paper, do not show these clusters.
    assert min(rate for rate, _ in paper_results) > 0.3


def test_similar_patterns_are_told_apart_in_eigenvectors(designs):
    # The cosine between any two patterns is 0.9.
    for seed in range(4):
        draw = designs["similar"](seed)
        model = IhSC(4, random_state=seed).fit(draw.X)
        best_rate = misclassification_rate(draw.labels, draw.best())
        rate = misclassification_rate(draw.labels, model.labels_)

        assert model.space_ == "eigenvectors"
        assert rate <= best_rate + 0.02


# Labels are a function of the data: rows near borders would show what else they see

# Directions are exact by features, iterated, exact in more rows than compete.
SHAPES = [(300, 50, 4), (300, 500, 4), (3000, 60, 5), (6000, 30, 4)]
ignore_unstable = pytest.mark.filterwarnings("ignore:Labels may be unstable")


def border_cases(shape, seeds=(0, 1)):
    for seed in seeds:
        X, kinds = make_ihgmm(*shape, separation_constant=0.15, random_state=seed)
        labels = IhSC(shape[2]).fit_predict(X)
        assert 0.02 < misclassification_rate(kinds, labels) < 0.1
        yield X, labels, np.random.default_rng(seed + 100)


@ignore_unstable
@pytest.mark.parametrize("shape", SHAPES)
def test_lengths_of_rows_seed_and_order_change_no_label(shape):
    for X, labels, rng in border_cases(shape):
        factors = 10 ** rng.uniform(-6, 6, (len(X), 1))

        assert_array_equal(IhSC(shape[2]).fit_predict(X * factors), labels)

        seeded_model = IhSC(shape[2], random_state=int(rng.integers(1000)))

        assert_array_equal(seeded_model.fit_predict(X), labels)

        rows, columns = map(rng.permutation, X.shape)
        for Y, expected in ((X[rows], labels[rows]), (X[:, columns], labels)):
            # Up to names, which clusters of one size may swap
            assert exact_recovery(expected, IhSC(shape[2]).fit_predict(Y))


@ignore_unstable
def test_nor_does_it_where_the_spectrum_does_not_fall():
    # As of texts: many directions count, of which the last are known to one digit.
    rng = np.random.default_rng(0)
    n = 1000
    p = 10_500
    topics = 60
    words = rng.dirichlet(np.full(p, 0.02), topics) * rng.zipf(1.5, p).clip(max=50)
    shares = rng.dirichlet(np.full(topics, 0.05), n)
    X = sp.csr_array(rng.poisson(80 * shares @ (words / words.sum(axis=1)[:, None])))
    X = X[np.flatnonzero(X.sum(axis=1))].astype(float).log1p()
    labels = IhSC(12).fit_predict(X)
    rows = rng.permutation(X.shape[0])
    for Y, expected in ((3 * X, labels), (X[rows], labels[rows])):
        assert exact_recovery(expected, IhSC(12).fit_predict(Y))


@ignore_unstable
def test_rounding_does_not_choose_among_equals():
    for seed in range(5):  # whole numbers without clusters, with many ties
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 3, (300, 4)).astype(float)
        X = X[X.any(axis=1)]
        labels = IhSC(5).fit_predict(X)
        rows = rng.permutation(len(X))
        factors = 10 ** rng.uniform(-6, 6, (len(X), 1))
        for Y, expected in ((factors * X, labels), (X[rows], labels[rows])):
            assert exact_recovery(expected, IhSC(5).fit_predict(Y))


@ignore_unstable
@pytest.mark.parametrize("k", [10, 12])
def test_single_precision_finds_the_same_clusters_whatever_the_order(k):
    X = load_digits().data
    labels = IhSC(k).fit_predict(X)
    rows = np.random.default_rng(0).permutation(len(X))
    labels_found = IhSC(k).fit_predict(X[rows].astype(np.float32))

    assert misclassification_rate(labels[rows], labels_found) <= 2 / len(X)


@ignore_unstable
@pytest.mark.parametrize("shape", SHAPES[1:])
def test_every_kind_of_array_has_the_same_labels(shape, tmp_path_factory):
    for X, labels, _ in border_cases(shape, seeds=[0]):
        for convert in (memory_map, csr, dask_dense, torch_cpu, strict):
            data = convert(X, tmp_path_factory.mktemp("data"))
            assert_array_equal(to_host(IhSC(shape[2]).fit(data).labels_), labels)


UNSTABLE = "Labels may be unstable: .* Look at diagnose.* ask for another number"


@pytest.mark.parametrize(
    ("shape", "k"),
    [((1000, 20), 2), ((1000, 20), 5), ((1500, 100), 3), ((300, 50), 50)],
)
def test_pure_noise_is_doubted(shape, k):
    for seed in range(2):
        X = np.random.default_rng(seed).standard_normal(shape)
        with pytest.warns(UnstableLabelsWarning, match=UNSTABLE) as caught:
            IhSC(k).fit(X)
        assert len(caught) == 1


@pytest.mark.parametrize("shape", [(400, 100, 3), (1000, 100, 5), (2000, 200, 20)])
def test_overlapping_clusters_are_doubted(shape):
    for seed in range(2):
        X, kinds = make_ihgmm(*shape, separation=0.2, random_state=seed)
        with pytest.warns(UnstableLabelsWarning, match=UNSTABLE) as caught:
            model = IhSC(shape[2]).fit(X)

        assert len(caught) == 1
        assert misclassification_rate(kinds, model.labels_) > 0.25


def test_rows_that_hardly_count_are_not_doubted():
    X, _ = make_ihgmm(300, 100, 3, random_state=0)
    noise = np.random.default_rng(0).standard_normal((150, 100))
    weights = np.r_[np.ones(300), np.full(150, 1e-9)]
    IhSC(3, random_state=0).fit(np.r_[X, noise], sample_weight=weights)

    with pytest.warns(UnstableLabelsWarning, match=UNSTABLE):
        IhSC(3, random_state=0).fit(np.r_[X, noise], sample_weight=1 / weights)


def test_signs_are_no_reason_to_doubt():
    for seed in range(2):
        X, _ = make_ihgmm(300, 100, 3, random_state=seed)
        X *= np.random.default_rng(seed).choice([-1, 1], (300, 1))
        IhSC(3, signed=True, random_state=0).fit(X)  # warnings are errors here
        noise = np.random.default_rng(seed).standard_normal((300, 100))
        with pytest.warns(UnstableLabelsWarning, match=UNSTABLE):
            IhSC(3, signed=True, random_state=0).fit(noise)


def test_the_model_is_not_doubted():
    shapes = [(1000, 200, 4), (300, 300, 4), (200, 3000, 4), (400, 400, 8)]
    shapes += [(100, 50, 2), (20, 30, 3), (1000, 200, 50), (150, 300, 50)]
    for seed, (n, p, k) in zip(cycle([0, 1]), shapes, strict=False):
        X, _ = make_ihgmm(n, p, k, random_state=seed)
        IhSC(k).fit(X)  # warnings are errors here


@pytest.mark.parametrize(
    ("load", "k"), [(load_iris, 3), (load_wine, 3), (load_digits, 10)]
)
def test_real_data_are_not_doubted(load, k):
    X = load().data
    if load is load_wine:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    IhSC(k).fit(X)  # warnings are errors here


@pytest.mark.parametrize("name", [field.name for field in fields(Recipe)])
def test_a_recipe_checks_its_settings(name):
    for value in (-1.5, object(), "none"):
        message = f"^{name}={re.escape(repr(value))} .*; give "
        for build in (Recipe, partial(IhSC.paper, 3)):
            with pytest.raises((TypeError, ValueError), match=message):
                build(**{name: value})


@pytest.mark.filterwarnings("ignore:Labels may be unstable", "ignore:Rows are in 2 of")
def test_any_number_of_components_that_the_data_have():
    X, _ = make_ihgmm(60, 30, 3, random_state=0)
    for n_components in (1, 2, 3, 10, 30):
        model = IhSC(3, recipe=Recipe(n_components=n_components), random_state=0).fit(X)
        assert model.embedding_.shape == (60, n_components)
        assert_array_equal(model.predict(X), model.labels_)

    with pytest.raises(ValueError, match="=31 is more than 60 rows of 30 features"):
        IhSC(3, recipe=Recipe(n_components=31)).fit(X)


def test_the_settings_of_the_paper():
    assert IhSC.paper(5).recipe == "paper"

    model = IhSC.paper(5, random_state=3, tol=1e-4)
    settings = {
        "rows": "given",
        "diagonal": "zero",
        "n_components": None,
        "space": "eigenvectors",
        "labels": "kmeans",
        "tol": 1e-4,
    }
    explicit_model = IhSC(5, recipe=Recipe(**settings), random_state=3)

    assert model.get_params() == explicit_model.get_params()
    assert IhSC.paper().n_clusters == IhSC().n_clusters

    X, _ = make_ihgmm(200, 50, 5, random_state=0)

    assert_array_equal(clone(model).fit(X).labels_, explicit_model.fit(X).labels_)


def test_a_recipe_shows_what_differs_from_the_default_and_reads_back():
    for recipe in (Recipe(), Recipe.of("paper"), Recipe.of("psc", tol=1e-3)):
        assert eval(repr(recipe)) == recipe

    assert repr(Recipe(diagonal="zero", tol=1e-2)) == "Recipe(diagonal='zero')"


def test_recipes_go_through_searches_clones_and_pickles():
    X, _ = make_ihgmm(90, 20, 3, random_state=0)
    recipes = ["default", "paper", Recipe(diagonal="zero", labels="kmeans")]
    search = GridSearchCV(IhSC(3, random_state=0), {"recipe": recipes}, cv=2).fit(X)

    assert search.best_params_["recipe"] in recipes

    model = search.best_estimator_

    for copy in (clone(model), pickle.loads(pickle.dumps(model))):
        assert copy.get_params() == model.get_params()


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (IhSC(3, recipe="papr"), ValueError, "recipe='papr' .*'default', 'paper', 'p"),
        (IhSC(3, recipe={"labels": "tied"}), TypeError, "is a dict; give a Recipe or"),
        (IhGMM(3, recipe=None), TypeError, "recipe=None is a NoneType; give a Recipe"),
    ],
)
def test_what_is_no_recipe_is_refused_by_fit(model, error, message):
    X, _ = make_ihgmm(60, 30, 3, random_state=0)

    with pytest.raises(error, match=message):
        model.fit(X)
