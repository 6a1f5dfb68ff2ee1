"""The estimators as users call them."""

import subprocess
import sys
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from ihgmm import (
    IhGMM,
    IhSC,
    Recipe,
    SDPKMeans,
    SphericalKMeans,
    TwoComponentLloyd,
    make_ihgmm,
)
from ihgmm.metrics import exact_recovery

PSC = partial(IhSC, recipe="psc")
ESTIMATORS = [IhSC, PSC, SphericalKMeans]
for_each_estimator = pytest.mark.parametrize("Estimator", ESTIMATORS)
MODELS = [Estimator(3, random_state=0) for Estimator in [*ESTIMATORS, IhGMM]]
MODELS.append(TwoComponentLloyd())
if find_spec("cvxpy") is not None:
    MODELS.append(SDPKMeans(3, tol=1e-3, random_state=0))
for_each_model = pytest.mark.parametrize(
    "model", MODELS, ids=lambda m: type(m).__name__
)


@pytest.fixture(scope="module")
def sample():
    return make_ihgmm(300, 40, 3, scale_ratio=4.0, random_state=0, return_params=True)


@pytest.fixture(scope="module")
def small_rows():
    return make_ihgmm(60, 20, 3, balance=0.4, scale_ratio=4.0, random_state=0)[0]


@for_each_model
def test_frames(model, small_rows):
    names = [f"gene{i}" for i in range(20)]
    baseline = clone(model).fit(small_rows)
    frame = pd.DataFrame(small_rows, columns=names)
    model = clone(model).fit(frame)

    assert_array_equal(model.labels_, baseline.labels_)
    assert (np.diff(np.bincount(model.labels_)) <= 0).all()  # numbered by size
    assert_array_equal(model.feature_names_in_, names)
    assert_array_equal(model.predict(frame), baseline.predict(small_rows))
    # KMeans has labels of this type.
    assert model.labels_.dtype == model.predict(frame).dtype == np.int32
    assert isinstance(model.score(frame), float)

    if hasattr(model, "transform"):
        output = model.set_output(transform="pandas").transform(frame)
        prefix = type(model).__name__.lower()
        k = len(model.cluster_centers_)
        assert list(output.columns) == [f"{prefix}{i}" for i in range(k)]


@pytest.mark.parametrize("model", MODELS[:4], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("state", [int, np.random.RandomState, np.random.default_rng])
@pytest.mark.filterwarnings(
    "ignore:.* alternate between the two clusters", "ignore:Labels may be unstable"
)
def test_same_seed_same_answer(model, state):
    X = np.random.default_rng(0).standard_normal((40, 30))  # nothing to hold on to
    first, second = (
        clone(model).set_params(random_state=state(7)).fit(X) for _ in range(2)
    )

    assert_array_equal(first.labels_, second.labels_)
    assert_array_equal(first.cluster_centers_, second.cluster_centers_)


SCRIPT = """
import sys
from threadpoolctl import threadpool_limits
from ihgmm import IhSC, SphericalKMeans, make_ihgmm
X, _ = make_ihgmm(9000, 60, 6, separation_constant=0.25, random_state=1, dtype="f4")
with threadpool_limits(2):
    psc = IhSC(6, recipe="psc", random_state=3)
    for model in (IhSC(6), psc, SphericalKMeans(6, random_state=3)):
        labels = model.fit(X).labels_
        sys.stdout.write("".join(map(str, labels)))
"""


def test_same_labels_with_two_threads_in_another_process():
    X, _ = make_ihgmm(9000, 60, 6, separation_constant=0.25, random_state=1, dtype="f4")
    with threadpool_limits(1):
        labels = [E(6, random_state=3).fit(X).labels_ for E in ESTIMATORS]
    command = [sys.executable, "-c", SCRIPT]
    process = subprocess.run(command, capture_output=True, text=True, check=True)

    assert "".join(map(str, np.concatenate(labels))) == process.stdout


def test_results_of_64_threads_are_those_of_one():
    samples = [make_ihgmm(60, 12, 3, random_state=seed)[0] for seed in range(64)]

    def work(X):
        model = IhSC(3).fit(X)
        return model.labels_, model.scales_, model.predict(2 * X)

    with warnings.catch_warnings(), ThreadPoolExecutor(64) as pool:
        warnings.simplefilter("ignore")
        joint_results = list(pool.map(work, samples))
        for X, result in zip(samples, joint_results, strict=True):
            for first, second in zip(work(X), result, strict=True):
                assert_array_equal(first, second)


@pytest.mark.parametrize("Estimator", [IhSC, IhGMM])
def test_sizes_compare_rows_of_different_clusters(Estimator, sample):
    assert not hasattr(Estimator(3), "sizes_")

    # The same patterns, in clusters of small, middling and large rows.
    factors = np.array([1.0, 5.0, 25.0])[sample.labels]
    X = sample.X * factors[:, None]
    model = Estimator(3, random_state=0).fit(X)

    assert exact_recovery(sample.labels, model.labels_)

    lengths = np.linalg.norm(model.cluster_centers_, axis=1)

    assert_allclose(model.sizes_, model.scales_ * lengths[model.labels_])

    sizes = np.linalg.norm(sample.signal, axis=1) * factors

    assert np.corrcoef(model.sizes_, sizes)[0, 1] > 0.98
    assert np.corrcoef(model.scales_, sizes)[0, 1] < 0.7


def test_ihsc_attributes(sample):
    model = IhSC(3, random_state=0).fit(sample.X)

    assert exact_recovery(sample.labels, model.labels_)
    assert_allclose(np.linalg.norm(model.embedding_, axis=1), 1)
    assert model.n_iter_ >= 1
    assert np.corrcoef(model.noise_levels_, sample.noise_levels)[0, 1] > 0.9

    transformed = model.transform(sample.X)

    assert_array_equal(transformed.argmax(axis=1), model.predict(sample.X))
    assert np.abs(transformed).max() <= 1
    assert 0.5 < model.score(sample.X) <= 1

    noiseless_rows = make_ihgmm(60, 10, 3, noise_levels=0.0, random_state=0)[0]
    model = IhSC(3, random_state=0).fit(noiseless_rows)

    assert model.score(noiseless_rows) == pytest.approx(1)


def test_embedding_is_that_of_lemma_1():
    # Without noise, rows of one cluster coincide and others are orthogonal. The zero
    # diagonal shifts rows a little; the full Gram matrix shows it exactly.
    X, labels = make_ihgmm(120, 30, 3, noise_levels=0.0, random_state=0)
    U = IhSC.paper(3, diagonal="full", random_state=0).fit(X).embedding_
    is_same = labels[:, None] == labels[None, :]

    assert_allclose(U @ U.T, is_same.astype(float), atol=1e-8)


def test_psc_is_a_recipe(sample):
    recipe = Recipe.of("psc", tol=1e-8)
    model = IhSC(3, random_state=0, recipe=recipe).fit(sample.X)
    left_vectors, singular_values, _ = np.linalg.svd(sample.X, full_matrices=False)

    assert_allclose(model.eigenvalues_, singular_values[:3] ** 2, rtol=1e-8)

    embedding = np.abs(left_vectors[:, :3] * singular_values[:3])

    assert_allclose(np.abs(model.embedding_), embedding, atol=1e-5)
    assert_array_equal(model.predict(sample.X), model.labels_)

    huge_model = IhSC(3, random_state=0, recipe=recipe).fit(sample.X * 1e200)

    assert_allclose(np.abs(huge_model.embedding_) / 1e200, embedding, atol=1e-5)
    assert_array_equal(PSC(3, random_state=0).fit(sample.X).labels_, model.labels_)


def test_spherical_kmeans_attributes(sample):
    model = SphericalKMeans(3, random_state=0).fit(sample.X)
    unit_rows = sample.X / np.linalg.norm(sample.X, axis=1, keepdims=True)

    assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1)

    cosines = unit_rows @ model.cluster_centers_.T

    assert_array_equal(model.labels_, cosines.argmax(axis=1))
    assert model.inertia_ == pytest.approx((1 - cosines.max(axis=1)).sum())
    assert model.score(sample.X) == pytest.approx(-model.inertia_)

    for k in range(3):  # a centre is the direction of its rows' sum: a fixed point
        total = unit_rows[model.labels_ == k].sum(axis=0)
        direction = total / np.linalg.norm(total)
        assert_allclose(model.cluster_centers_[k], direction, atol=1e-3)


def test_ten_starts_of_spherical_kmeans_find_one_optimum_of_iris():
    X = load_iris().data
    inertias = [
        SphericalKMeans(3, random_state=seed).fit(X).inertia_ for seed in range(9)
    ]

    assert_allclose(inertias, inertias[0], rtol=1e-6)


def test_spherical_kmeans_starts_once_on_large_data():
    rng = np.random.default_rng(0)

    for shape, n_init in (((200, 10), 10), ((200_001, 20), 1)):
        X = rng.standard_normal(shape, dtype=np.float32)
        options = {"max_iter": 1, "random_state": 0}
        model = SphericalKMeans(4, **options).fit(X)
        explicit_model = SphericalKMeans(4, n_init=n_init, **options).fit(X)
        other_model = SphericalKMeans(4, n_init=11 - n_init, **options).fit(X)
        assert model.inertia_ == explicit_model.inertia_ != other_model.inertia_


def test_spherical_kmeans_fills_empty_clusters():
    X = np.vstack([np.eye(4)] * 5) + 0.01
    distant_centers = -np.ones((4, 4))  # no row is near any of these
    labels = SphericalKMeans(4, init=distant_centers + 0.1 * np.eye(4)).fit_predict(X)

    assert adjusted_rand_score(np.tile(range(4), 5), labels) == 1


def test_zero_rows(kind):
    X, labels = make_ihgmm(100, 20, 3, random_state=0)
    X[[3, 50]] = 0
    nonzero_rows = np.delete(np.arange(100), [3, 50])

    for model in (
        IhSC(3, random_state=0),
        IhSC(3, outliers="auto", random_state=0),
        IhSC.paper(3, random_state=0),
        SphericalKMeans(3, n_init=5, random_state=0),
    ):
        with pytest.warns(UserWarning, match="2 of 100 rows are zero") as caught:
            model.fit(kind(X))

        assert len(caught) == 1
        assert_array_equal(model.labels_[[3, 50]], 0)
        assert exact_recovery(labels[nonzero_rows], model.labels_[nonzero_rows])
        assert_array_equal(model.predict(kind(X))[[3, 50]], 0)
        assert_array_equal(model.transform(kind(X))[[3, 50]], 0)
        if isinstance(model, IhSC):
            assert_array_equal(model.embedding_[[3, 50]], 0)
            assert_array_equal(model.scales_[[3, 50]], 0)
            assert_array_equal(model.sizes_[[3, 50]], 0)


@pytest.mark.parametrize(("recipe", "max_ratio"), [("default", 3), ("paper", 10)])
def test_memory_stays_within_some_times_the_data(recipe, max_ratio):
    X, labels = make_ihgmm(80_000, 50, 4, random_state=0, dtype=np.float32)
    tracemalloc.start()
    labels_found = IhSC(4, recipe=recipe, random_state=0).fit(X).labels_
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert exact_recovery(labels, labels_found)
    assert peak < max_ratio * X.nbytes


@for_each_estimator
@pytest.mark.filterwarnings("ignore:Labels may be unstable")
def test_as_many_clusters_as_rows(Estimator):
    X = np.random.default_rng(0).standard_normal((6, 10))
    for k in (1, 2, 5, 6):
        model = Estimator(k, random_state=0).fit(X)
        assert model.transform(X).shape == (6, k)
        assert set(model.labels_) <= set(range(k))

    assert (Estimator(1, random_state=0).fit(X).labels_ == 0).all()
    assert Estimator(1, random_state=0).fit(X[:1]).labels_ == [0]


@for_each_model
def test_every_estimator_can_tell_of_its_steps(model, small_rows, capsys):
    clone(model).set_params(verbose=True).fit(small_rows)

    assert " s " in capsys.readouterr().err
