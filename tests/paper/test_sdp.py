"""The semidefinite relaxation of k-means."""

import sys
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.preprocessing import normalize

from ihgmm import SDPKMeans, make_ihgmm
from ihgmm.metrics import exact_recovery

pytest.importorskip("cvxpy", reason="cvxpy is not installed")

TOL = 2e-4  # what an accuracy of 1e-5 in the solver leaves in the constraints


@pytest.fixture(scope="module")
def sample():
    return make_ihgmm(30, 15, 3, scale_ratio=1.0, random_state=0, return_params=True)


def cost(X, labels):
    return sum(
        ((X[labels == k] - X[labels == k].mean(axis=0)) ** 2).sum()
        for k in np.unique(labels)
    )


def test_exact_means_optimal():
    rng = np.random.default_rng(0)
    exactness = set()

    for _ in range(6):
        X = rng.standard_normal((7, 2)) + 3 * rng.integers(0, 2, (7, 1))
        partitions = map(np.array, product(range(2), repeat=7))
        optimum = min(cost(X, labels) for labels in partitions if len(set(labels)) == 2)

        model = SDPKMeans(2, random_state=0).fit(X)
        bound = (X**2).sum() - model.objective_
        exactness.add(model.exact_)

        assert bound <= optimum + 1e-3
        if model.exact_:
            assert cost(X, model.labels_) == pytest.approx(optimum)
            assert bound == pytest.approx(optimum, abs=1e-2)

    assert True in exactness


def interior_point(A, n_clusters):
    """Solve the relaxation by another method; return the solution and its value."""
    import cvxpy as cp

    Z = cp.Variable(A.shape, PSD=True)
    constraints = [Z >= 0, cp.sum(Z, axis=1) == 1, cp.trace(Z) == n_clusters]
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(A, Z))), constraints)
    problem.solve(solver=cp.CLARABEL)
    return Z.value, problem.value


@pytest.mark.parametrize("gram", ["full", "cosine"])
@pytest.mark.parametrize("separation", [2.0, 8.0])
def test_agrees_with_an_interior_point_solver(gram, separation):
    X, _ = make_ihgmm(16, 20, 3, separation=separation, random_state=0)
    A = X @ X.T
    if gram == "cosine":  # a hollow diagonal takes the trace of Z, 3, off the objective
        A = normalize(X) @ normalize(X).T
        np.fill_diagonal(A, 0)

    Z, value = interior_point(A, 3)
    model = SDPKMeans(3, gram=gram, tol=1e-7, random_state=0).fit(X)

    assert_allclose(model.solution_, Z, atol=2e-3)

    expected = value + 3 * (gram == "cosine")

    assert model.objective_ == pytest.approx(expected, rel=1e-4)

    if gram == "full":  # the mean plays no part
        moved = SDPKMeans(3, tol=1e-7, random_state=0).fit(X + 5)
        assert_allclose(moved.solution_, Z, atol=2e-3)
        assert moved.objective_ == pytest.approx(np.sum((X + 5) @ (X + 5).T * Z))


def test_cosine_is_about_unit_rows(sample):
    factors = 10.0 ** np.random.default_rng(0).uniform(-3, 3, 30)
    X = sample.X * factors[:, None]
    unit_rows = normalize(sample.X)

    model = SDPKMeans(3, gram="cosine", random_state=0).fit(X)
    baseline = SDPKMeans(3, random_state=0).fit(unit_rows)

    assert_array_equal(model.labels_, baseline.labels_)
    assert_allclose(model.solution_, baseline.solution_, atol=TOL)
    assert_allclose(model.cluster_centers_, baseline.cluster_centers_, atol=1e-12)
    assert_allclose(model.transform(X), baseline.transform(unit_rows), atol=1e-7)
    assert_array_equal(model.predict(X), model.labels_)
    assert_array_equal(model.predict(csr_array(X)), model.labels_)
    assert model.score(X) == pytest.approx(-cost(unit_rows, model.labels_))
    assert exact_recovery(sample.labels, model.labels_)
    assert not exact_recovery(sample.labels, SDPKMeans(3).fit(X).labels_)


def test_cosine_leaves_zero_rows_out(sample):
    X = np.insert(sample.X, [0, 10, 30], 0.0, axis=0)
    is_nonzero = X.any(axis=1)

    with pytest.warns(DataConversionWarning, match="3 of 33 rows are zero") as caught:
        model = SDPKMeans(3, gram="cosine", random_state=0).fit(X)

    assert len(caught) == 1

    baseline = SDPKMeans(3, gram="cosine", random_state=0).fit(sample.X)

    assert_array_equal(model.labels_[is_nonzero], baseline.labels_)
    assert_array_equal(model.labels_[~is_nonzero], 0)
    assert_array_equal(model.predict(X), model.labels_)
    assert_allclose(model.cluster_centers_, baseline.cluster_centers_)
    assert not model.embedding_[~is_nonzero].any()
    assert not model.solution_[~is_nonzero].any()
    assert_allclose(model.solution_[np.ix_(is_nonzero, is_nonzero)], baseline.solution_)
    assert_array_equal(model.transform(X)[~is_nonzero], 1)

    message = "n_clusters=3 is more than the 2 rows of X that are not zero"

    with pytest.raises(ValueError, match=message), pytest.warns(DataConversionWarning):
        SDPKMeans(3, gram="cosine").fit(np.vstack([np.eye(2), np.zeros((3, 2))]))


def test_attributes():
    options = {"balance": 0.4, "scale_ratio": 1.0, "random_state": 2}
    X, labels = make_ihgmm(30, 10, 3, **options)
    model = SDPKMeans(3, random_state=0).fit(X)

    assert exact_recovery(labels, model.labels_)
    assert_array_equal(np.bincount(model.labels_), [13, 13, 4])  # numbered by size

    is_same_cluster = labels[:, None] == labels
    ideal = is_same_cluster / is_same_cluster.sum(axis=1)

    assert_allclose(model.solution_, ideal, atol=1e-3)
    assert_allclose(model.embedding_ @ model.embedding_.T, ideal, atol=1e-3)

    means = np.array([X[model.labels_ == k].mean(axis=0) for k in range(3)])

    assert_allclose(model.cluster_centers_, means, atol=1e-10)

    distances = np.linalg.norm(X[:, None] - means, axis=2)

    assert_allclose(model.transform(X), distances, rtol=1e-6)
    assert model.score(X) == pytest.approx(-cost(X, model.labels_))
    assert model.exact_ is True
    assert model.status_ == "optimal"
    assert isinstance(model.objective_, float)


def test_limits_of_rows_and_iterations(sample, monkeypatch):
    message = (
        r"n_samples=30 is more than max_samples=29: the relaxation has 30\^2 "
        "variables. Use IhSC, .* or raise max_samples"
    )

    with pytest.raises(ValueError, match=message):
        SDPKMeans(2, max_samples=29).fit(sample.X)

    with pytest.warns(ConvergenceWarning, match="after max_iter=20 iterat") as caught:
        model = SDPKMeans(3, max_iter=20, random_state=0).fit(sample.X)

    assert [warning.filename for warning in caught] == [__file__]
    assert (model.status_, model.n_iter_) == ("optimal_inaccurate", 20)

    message = "SCS found no solution .status 'unb.*max_iter=2"

    with pytest.raises(RuntimeError, match=message):
        SDPKMeans(3, max_iter=2).fit(sample.X)

    monkeypatch.setitem(sys.modules, "cvxpy", None)

    with pytest.raises(ImportError, match="pip install cvxpy"):
        SDPKMeans(3).fit(sample.X)
