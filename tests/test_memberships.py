import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import trapezoid
from scipy.stats import norm

from ihgmm import make_ihgmm
from ihgmm.memberships import (
    Projections,
    indicators,
    leave_one_out,
    log_evidence,
    precision_weights,
    project,
    unit_weights,
)


@pytest.fixture
def sample():
    return make_ihgmm(40, 30, 3, separation=4.0, random_state=0, return_params=True)


def naive(X, weights):
    """Form every centre without the row, one after the other."""
    cosines = np.empty(weights.shape)
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        centers = weights[rest].T @ X[rest]
        length = np.linalg.norm(centers, axis=1) * np.linalg.norm(X[i])
        cosines[i] = centers @ X[i] / length
    return cosines


def test_leave_one_out_agrees_with_leaving_out(sample, kind):
    rng = np.random.default_rng(0)
    weights = rng.random((40, 3))
    sqnorms = (sample.X**2).sum(axis=1)
    found, directions = leave_one_out(kind(sample.X), sqnorms, weights)
    assert_allclose(found.cosines, naive(sample.X, weights), atol=1e-10)
    assert_allclose(directions.sums, sample.X.T @ weights, atol=1e-10)
    rest = np.arange(40) != 7
    centers = weights[rest].T @ sample.X[rest]
    assert_allclose(found.squares[7], (centers**2).sum(axis=1))
    assert_allclose(found.loads[7], (weights[rest] ** 2).sum(axis=0))


def test_a_row_alone_has_no_centre(sample):
    labels = sample.labels.copy()
    labels[labels == 2] = 0
    labels[5] = 2
    sqnorms = (sample.X**2).sum(axis=1)
    weights = unit_weights(indicators(labels, 3), sqnorms)
    found, _ = leave_one_out(sample.X, sqnorms, weights)
    assert found.cosines[5, 2] == 0
    assert (found.cosines[np.arange(40) != 5, 2] != 0).all()


def test_the_length_of_rows_does_not_matter(sample):
    weights = unit_weights(indicators(sample.labels, 3), (sample.X**2).sum(axis=1))
    one, _ = leave_one_out(sample.X, (sample.X**2).sum(axis=1), weights)
    factor = 10.0 ** np.random.default_rng(0).uniform(-3, 3, 40)
    Y = sample.X * factor[:, None]
    squares = (Y**2).sum(axis=1)
    weights = unit_weights(indicators(sample.labels, 3), squares)
    other, _ = leave_one_out(Y, squares, weights)
    assert_allclose(one.cosines, other.cosines, atol=1e-9)


def test_accuracy_is_the_squared_cosine_with_the_true_centre():
    errors = []
    for seed in range(20):
        s = make_ihgmm(
            60, 500, 2, separation=8.0, scale_ratio=2, noise_levels=1.0,
            random_state=seed, return_params=True,
        )  # fmt: skip
        sqnorms = (s.X**2).sum(axis=1)
        weights = indicators(s.labels, 2) * s.scales[:, None]
        _, directions = leave_one_out(s.X, sqnorms, weights)
        found = project(s.X, sqnorms, directions)
        cosines = np.einsum("jk,kj->k", directions.sums, s.centers)
        cosines /= np.sqrt(directions.sqnorms) * np.linalg.norm(s.centers, axis=1)
        errors.append(found.accuracy(np.ones(2), 500)[0] - cosines**2)
    assert abs(np.mean(errors)) < 0.01


def test_precision_weights_are_length_over_noise():
    found = Projections(
        np.array([[0.6, -0.2], [0.8, 0.1]]), np.ones((2, 2)), np.zeros((2, 2))
    )
    weights = precision_weights(np.ones((2, 2)), found, np.array([1.0, 4.0]))
    first = np.array([0.6 / 0.64, 1.6 / (4 * 0.36)])
    assert_allclose(weights[:, 0], first / first.max())
    assert_allclose(weights[:, 1], [0, 1])


def test_evidence_with_known_noise_integrates_the_length():
    # Two features, the centre along the first: the density is integrated numerically.
    x, sigma = np.array([1.3, 0.4]), 0.7
    found = Projections(
        np.array([[x[0] / np.linalg.norm(x)]]), np.ones((1, 1)), np.zeros((1, 1))
    )
    got = log_evidence(found, np.array([x @ x]), 2, np.array([sigma**2]))[0, 0]
    lengths = np.linspace(0, 20, 200_001)
    density = norm.pdf(x[0], lengths, sigma) * norm.pdf(x[1], 0, sigma)
    assert_allclose(got, np.log(trapezoid(density, lengths)), atol=1e-6)


def test_evidence_grows_with_the_cosine_and_ignores_zero_rows():
    cosines = np.linspace(-0.99, 0.99, 50)[:, None]
    found = Projections(cosines, np.ones_like(cosines), np.zeros_like(cosines))
    for variances in (None, np.array([0.1])):
        value = log_evidence(found, np.ones(50), 10, variances)[:, 0]
        assert (np.diff(value[25:]) > 0).all()
    assert (log_evidence(found, np.zeros(50), 10) == 0).all()
