"""The semidefinite relaxation of k-means."""

import sys
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.preprocessing import normalize

from ihgmm import ClusterCountWarning, SDPKMeans, make_ihgmm
from ihgmm.metrics import exact_recovery

pytest.importorskip("cvxpy", reason="cvxpy is not installed")

TOL = 2e-4  # what an accuracy of 1e-5 in the solver leaves in the constraints


@pytest.fixture(scope="module")
def sample():
    return make_ihgmm(30, 15, 3, scale_ratio=1.0, random_state=0, return_params=True)


@pytest.fixture(scope="module")
def fitted(sample):
    return SDPKMeans(3, random_state=0).fit(sample.X)


def membership(labels):
    same = labels[:, None] == labels
    return same / same.sum(axis=1)


def cost(X, labels):
    return sum(
        ((X[labels == k] - X[labels == k].mean(axis=0)) ** 2).sum()
        for k in np.unique(labels)
    )


@pytest.mark.parametrize(("n_clusters", "p", "seed"), [(2, 5, 0), (3, 100, 1)])
def test_recovery_above_the_cutoff(n_clusters, p, seed):
    n = 40
    # The squared separation above which labels can be found, for noise of level 1.
    cutoff = 4 * (1 + np.sqrt(1 + n_clusters * p / (n * np.log(n)))) * np.log(n)
    options = {"scale_ratio": 1.0, "noise_levels": 1.0, "random_state": seed}
    X, labels = make_ihgmm(n, p, n_clusters, separation=np.sqrt(2 * cutoff), **options)
    model = SDPKMeans(n_clusters, random_state=seed).fit(X)
    assert exact_recovery(labels, model.labels_)
    assert model.exact_
    assert model.status_ == "optimal"
    assert_array_equal(model.predict(X), model.labels_)
    assert_allclose(model.solution_, membership(labels), atol=1e-3)


@pytest.mark.parametrize("separation", [1.0, 4.0, 12.0])
def test_solution_is_feasible_and_no_clustering_beats_it(separation):
    X, labels = make_ihgmm(
        30, 10, 3, scale_ratio=1.0, separation=separation, random_state=0
    )
    X += 5  # the mean plays no part
    model = SDPKMeans(3, random_state=0).fit(X)
    Z = model.solution_
    assert_array_equal(Z, Z.T)
    assert_allclose(Z.sum(axis=1), 1, atol=TOL)
    assert np.trace(Z) == pytest.approx(3, abs=TOL)
    assert Z.min() > -TOL
    assert np.linalg.eigvalsh(Z)[0] > -TOL
    A = X @ X.T
    assert model.objective_ == pytest.approx((A * Z).sum(), rel=1e-6)
    slack = TOL * ((X - X.mean(axis=0)) ** 2).sum()
    for clustering in (labels, model.labels_):
        assert model.objective_ >= (A * membership(clustering)).sum() - slack
    assert (X**2).sum() - model.objective_ <= cost(X, model.labels_) + slack


def test_exact_means_optimal():
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(6):
        X = rng.standard_normal((7, 2)) + 3 * rng.integers(0, 2, (7, 1))
        codes = (np.array(c) for c in product(range(2), repeat=7))
        best = min(cost(X, c) for c in codes if len(set(c)) == 2)
        model = SDPKMeans(2, random_state=0).fit(X)
        bound = (X**2).sum() - model.objective_
        assert bound <= best + 1e-3
        seen.add(model.exact_)
        if model.exact_:
            assert cost(X, model.labels_) == pytest.approx(best)
            assert bound == pytest.approx(best, abs=1e-2)
    assert True in seen


def interior_point(A, n_clusters):
    """Solve the relaxation by another method; return the solution and its value."""
    import cvxpy as cp

    Z = cp.Variable(A.shape, PSD=True)
    constraints = [Z >= 0, cp.sum(Z, axis=1) == 1, cp.trace(Z) == n_clusters]
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(A, Z))), constraints)
    problem.solve(solver=cp.CLARABEL)
    return Z.value, problem.value


def test_agrees_with_an_interior_point_solver(sample):
    X = sample.X[:16] - sample.X[:16].mean(axis=0)
    model = SDPKMeans(4, tol=1e-7, random_state=0).fit(X)
    _, value = interior_point(X @ X.T, 4)
    assert model.objective_ == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("separation", [2.0, 8.0])
def test_cosine_is_the_relaxation_with_a_hollow_diagonal(separation):
    X, _ = make_ihgmm(16, 20, 3, separation=separation, random_state=0)
    hollow = normalize(X) @ normalize(X).T
    np.fill_diagonal(hollow, 0)
    Z, value = interior_point(hollow, 3)
    model = SDPKMeans(3, gram="cosine", tol=1e-7, random_state=0).fit(X)
    assert_allclose(model.solution_, Z, atol=1e-3)
    # The diagonal of ones adds the trace of Z, which is the number of clusters.
    assert model.objective_ == pytest.approx(value + 3, rel=1e-4)


def test_cosine_finds_kinds_through_scales():
    X, labels = make_ihgmm(40, 30, 4, scale_ratio=20.0, random_state=1)
    model = SDPKMeans(4, gram="cosine", random_state=1).fit(X)
    assert exact_recovery(labels, model.labels_)
    assert model.exact_
    assert not exact_recovery(labels, SDPKMeans(4, random_state=1).fit(X).labels_)


def test_cosine_is_about_unit_rows(sample):
    factors = 10.0 ** np.random.default_rng(0).uniform(-3, 3, 30)
    X, unit = sample.X * factors[:, None], normalize(sample.X)
    model = SDPKMeans(3, gram="cosine", random_state=0).fit(X)
    plain = SDPKMeans(3, random_state=0).fit(unit)
    assert_array_equal(model.labels_, plain.labels_)
    assert_allclose(model.solution_, plain.solution_, atol=TOL)
    assert_allclose(model.cluster_centers_, plain.cluster_centers_, atol=1e-12)
    assert_allclose(model.transform(X), plain.transform(unit), atol=1e-7)
    assert_array_equal(model.predict(X), model.labels_)
    assert_array_equal(model.predict(csr_array(X)), model.labels_)
    assert model.score(X) == pytest.approx(-cost(unit, model.labels_))
    assert model.score(X) <= model.objective_ - 30 + TOL * 30


def test_cosine_leaves_zero_rows_out(sample):
    X = np.insert(sample.X, [0, 10, 30], 0.0, axis=0)
    live = X.any(axis=1)
    with pytest.warns(DataConversionWarning, match="3 of 33 rows are zero") as caught:
        model = SDPKMeans(3, gram="cosine", random_state=0).fit(X)
    assert len(caught) == 1
    alone = SDPKMeans(3, gram="cosine", random_state=0).fit(sample.X)
    assert_array_equal(model.labels_[live], alone.labels_)
    assert_array_equal(model.labels_[~live], 0)
    assert_array_equal(model.predict(X), model.labels_)
    assert_allclose(model.cluster_centers_, alone.cluster_centers_)
    assert not model.embedding_[~live].any()
    assert not model.solution_[~live].any()
    assert_allclose(model.solution_[np.ix_(live, live)], alone.solution_)
    assert_array_equal(model.transform(X)[~live], 1)
    message = "n_clusters=3 is more than the 2 rows of X that are not zero"
    with pytest.raises(ValueError, match=message), pytest.warns(DataConversionWarning):
        SDPKMeans(3, gram="cosine").fit(np.vstack([np.eye(2), np.zeros((3, 2))]))


def test_fewer_directions_than_clusters():
    rng = np.random.default_rng(0)
    kinds = rng.standard_normal((2, 5))
    X = kinds[np.arange(12) % 2] * rng.uniform(1, 9, (12, 1))
    for dtype in (np.float64, np.float32):
        with pytest.warns(ClusterCountWarning, match="Rows are in 2 of"):
            model = SDPKMeans(3, gram="cosine", random_state=0).fit(X.astype(dtype))
        assert exact_recovery(np.arange(12) % 2, model.labels_)
        assert not model.exact_


def test_attributes(sample, fitted):
    X = sample.X
    assert exact_recovery(sample.labels, fitted.labels_)
    assert_allclose(fitted.embedding_.T @ fitted.embedding_, np.eye(3), atol=1e-10)
    projection = fitted.embedding_ @ fitted.embedding_.T
    assert_allclose(projection, membership(sample.labels), atol=1e-3)
    means = [X[fitted.labels_ == k].mean(axis=0) for k in range(3)]
    assert_allclose(fitted.cluster_centers_, means, atol=1e-10)
    distances = np.linalg.norm(X[:, None] - np.array(means), axis=2)
    assert_allclose(fitted.transform(X), distances, rtol=1e-6)
    assert fitted.score(X) == pytest.approx(-cost(X, fitted.labels_))
    assert fitted.n_iter_ >= 1
    assert isinstance(fitted.objective_, float)
    assert isinstance(fitted.exact_, bool)


def test_labels_are_numbered_by_size():
    X, labels = make_ihgmm(30, 10, 3, balance=0.4, scale_ratio=1.0, random_state=2)
    model = SDPKMeans(3, random_state=0).fit(X)
    assert exact_recovery(labels, model.labels_)
    assert_array_equal(np.bincount(model.labels_), [13, 13, 4])


def test_as_many_clusters_as_rows():
    X = np.random.default_rng(0).standard_normal((6, 10))
    for k in (1, 2, 5, 6):
        model = SDPKMeans(k, random_state=0).fit(X)
        assert model.transform(X).shape == (6, k)
        assert np.trace(model.solution_) == pytest.approx(k, abs=TOL)
        assert set(model.labels_) == set(range(k))
    assert model.n_iter_ == 0
    assert model.exact_
    assert SDPKMeans(1).fit(X[:1]).labels_ == [0]


def test_fewer_distinct_rows_than_clusters():
    kinds = np.array([[1.0, 0.0, 0.2], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    X = kinds[np.arange(12) % 3]
    with pytest.warns(
        ClusterCountWarning, match="Rows are in 3 of n_clusters=5"
    ) as caught:
        model = SDPKMeans(5, random_state=0).fit(X)
    assert len(caught) == 1
    assert exact_recovery(np.arange(12) % 3, model.labels_)
    assert not model.exact_
    assert_array_equal(model.cluster_centers_[3:], 0)


@pytest.mark.parametrize(("unit", "dtype"), [(1e-300, np.float64), (1e25, np.float32)])
def test_huge_and_tiny_values(sample, fitted, unit, dtype):
    scaled = sample.X.astype(dtype) * dtype(unit)
    cosines = SDPKMeans(3, gram="cosine", random_state=0).fit(scaled)
    assert_array_equal(cosines.predict(scaled), fitted.labels_)
    assert np.linalg.norm(cosines.cluster_centers_, axis=1) == pytest.approx(
        0.9, abs=0.1
    )
    assert -30 < cosines.score(scaled) < 0
    model = SDPKMeans(3, random_state=0).fit(scaled)
    assert_array_equal(model.labels_, fitted.labels_)
    assert_array_equal(model.predict(scaled), fitted.labels_)
    centers = model.cluster_centers_ / dtype(unit)
    assert_allclose(centers, fitted.cluster_centers_, rtol=1e-3, atol=1e-3)
    assert np.isfinite(model.transform(scaled)).all()
    assert not np.isnan(model.score(scaled))


def test_too_many_rows():
    X = np.random.default_rng(0).standard_normal((501, 2))
    message = (
        r"n_samples=501 is more than max_samples=500: the relaxation has 501\^2 "
        "variables. Use PSC, or IhSC .* or raise max_samples"
    )
    with pytest.raises(ValueError, match=message):
        SDPKMeans(2).fit(X)
    SDPKMeans(1, max_samples=501).fit(X)


def test_cap_on_iterations_warns(sample):
    with pytest.warns(ConvergenceWarning, match="after max_iter=20 iterat") as caught:
        model = SDPKMeans(3, max_iter=20, random_state=0).fit(sample.X)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.status_ == "optimal_inaccurate"
    assert model.n_iter_ == 20


def test_no_solution_is_an_error(sample):
    message = "SCS found no solution .status 'unb.*max_iter=2"
    with pytest.raises(RuntimeError, match=message):
        SDPKMeans(3, max_iter=2).fit(sample.X)


def test_missing_package_names_the_extra(sample, monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ImportError, match="pip install cvxpy"):
        SDPKMeans(3).fit(sample.X)
