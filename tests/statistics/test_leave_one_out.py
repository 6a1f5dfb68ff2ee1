import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import trapezoid
from scipy.stats import norm

from ihgmm import IhSC, make_ihgmm
from ihgmm.matrix import HOST, as_matrix, to_host
from ihgmm.metrics import misclassification_rate
from ihgmm.paper.methods import label_oracle
from ihgmm.statistics.leave_one_out import indicators
from ihgmm.statistics.mixture_fit import fit_mixture
from ihgmm.statistics.projections import CenterSums, Projections, project_rows
from ihgmm.statistics.refinement import refine_labels
from ihgmm.statistics.row_likelihood import joint_log_likelihood


def leave_one_out(X, weights):
    """Compare each row with the weighted sums of the others; return sums too."""
    sums = to_host(X.adjoint(weights)).astype(np.float64)
    loads = (weights**2).sum(axis=0)
    directions = CenterSums(sums=sums, loads=loads)
    return project_rows(X, X.sqnorms, directions, weights), directions


def naive(X, weights):
    """Form every centre without the row, one after the other."""
    cosines = np.empty(weights.shape)
    for i in range(len(X)):
        remaining = np.arange(len(X)) != i
        centers = weights[remaining].T @ X[remaining]
        length = np.linalg.norm(centers, axis=1) * np.linalg.norm(X[i])
        cosines[i] = centers @ X[i] / length
    return cosines


def test_leave_one_out_agrees_with_leaving_out(kind):
    X, _ = make_ihgmm(40, 30, 3, separation=4.0, random_state=0)
    weights = np.random.default_rng(0).random((40, 3))
    record, directions = leave_one_out(as_matrix(kind(X)), weights)

    assert_allclose(record.cosines, naive(X, weights), atol=1e-10)
    assert_allclose(directions.sums, X.T @ weights, atol=1e-10)

    remaining = np.arange(40) != 7
    centers = weights[remaining].T @ X[remaining]

    assert_allclose(record.center_sqnorms[7], (centers**2).sum(axis=1))
    assert_allclose(record.loads[7], (weights[remaining] ** 2).sum(axis=0))


def test_accuracy_is_the_squared_cosine_with_the_true_centre():
    errors = []
    for seed in range(20):
        s = make_ihgmm(
            60, 500, 2, separation=8.0, scale_ratio=2, noise_levels=1.0,
            random_state=seed, return_params=True,
        )  # fmt: skip
        weights = indicators(as_matrix(s.X), s.labels, 2) * s.scales[:, None]
        X = as_matrix(s.X)
        _, directions = leave_one_out(X, weights)
        record = project_rows(X, X.sqnorms, directions)
        cosines = np.einsum("jk,kj->k", directions.sums, s.centers)
        cosines /= np.sqrt(directions.sqnorms) * np.linalg.norm(s.centers, axis=1)
        errors.append(record.accuracy(np.ones(2))[0] - cosines**2)

    assert abs(np.mean(errors)) < 0.01


def test_likelihood_with_known_noise_integrates_the_length():
    # Two features, the centre along the first: the density is integrated numerically.
    x = np.array([1.3, 0.4])
    sigma = 0.7
    cosine = np.array([[x[0] / np.linalg.norm(x)]])
    item = np.ones((1, 1))
    # The centre is exact, and of length one.
    record = Projections(
        cosines=cosine,
        center_sqnorms=item,
        loads=0 * item,
        sqnorms=np.array([x @ x]),
        n_features=2,
    )
    value = joint_log_likelihood(record, np.array([0.5]), np.array([sigma**2]))[0, 0]
    lengths = np.linspace(0, 20, 20_001)
    density = norm.pdf(x[0], lengths, sigma) * norm.pdf(x[1], 0, sigma)

    assert_allclose(value, np.log(0.5 * trapezoid(density, lengths)), atol=1e-6)


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
@pytest.mark.parametrize(
    ("shape", "balance", "constant"),
    [((200, 700, 3), 0.2, 0.15), ((300, 120, 4), 1.0, 0.2)],
)
def test_near_the_threshold_labels_are_close_to_the_oracle(shape, balance, constant):
    k = shape[2]
    rates = []
    for seed in range(6):
        sample = make_ihgmm(
            *shape, balance=balance, separation_constant=constant,
            noise=("gaussian", "rademacher")[seed % 2], random_state=seed,
            return_params=True,
        )  # fmt: skip
        start = IhSC(k, random_state=seed).fit_predict(sample.X)
        refined = refine_labels(sample.X, start, k)
        assert refined.converged
        data = as_matrix(sample.X)
        mixture = fit_mixture(data, indicators(data, refined.labels, k), tol=1e-3)
        soft = mixture.memberships.argmax(axis=1)
        result = (start, refined.labels, soft, label_oracle(sample))
        rates.append([misclassification_rate(sample.labels, z) for z in result])
    rates = np.array(rates)
    before, after, soft, oracle = rates.mean(axis=0)
    error = np.std(rates[:, 1] - rates[:, 0]) / np.sqrt(6)

    assert after <= 1.15 * oracle + 0.005
    assert after <= before + 2 * error
    assert soft <= after + 0.002


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64])
def test_right_labels_stay_and_wrong_ones_change(dtype):
    X, labels = make_ihgmm(60, 40, 2, separation=4.0, random_state=0)
    refined = refine_labels(X, labels, 2)

    assert_array_equal(refined.labels, labels)
    assert refined.converged

    start = labels.astype(dtype)
    start[:5] = 1 - start[:5]

    assert_array_equal(refine_labels(X, start, 2).labels, labels)

    item = refine_labels(X, np.zeros(60, dtype), 1)

    assert (item.labels.max(), item.n_iter, item.converged) == (0, 0, True)


def test_no_cluster_is_emptied():
    rng = np.random.default_rng(0)
    for seed in range(4):
        X = rng.standard_normal((30, 5))
        refined = refine_labels(X, np.arange(30) % 6, 6)
        assert len(np.unique(refined.labels)) == 6, seed
        data = as_matrix(X)
        mixture = fit_mixture(data, indicators(data, np.arange(30) % 6, 6))
        assert (mixture.memberships.sum(axis=0) >= 0.5).all(), seed


def test_cap():
    X = np.random.default_rng(0).standard_normal((200, 50))
    start = np.arange(200) % 5
    refined = refine_labels(X, start, 5, max_iter=3)

    assert not refined.converged
    assert refined.n_iter == 3

    messages = []
    data = as_matrix(X)
    members = indicators(data, start, 5)
    mixture = fit_mixture(data, members, max_iter=3, say=messages.append)

    assert mixture.change > 1e-4
    assert mixture.n_iter == len(messages) == 3
    assert messages[0].startswith("round 1, memberships moved by 0.")


@pytest.mark.parametrize("noise", ["individual", "class", "common"])
def test_a_settled_mixture_is_what_its_memberships_make(noise):
    options = {"separation_constant": 0.3, "noise_structure": noise}
    X, labels = make_ihgmm(150, 40, 3, random_state=0, **options)
    data = as_matrix(X)
    start = indicators(data, labels, 3)
    fitted = fit_mixture(data, start, noise=noise, tol=1e-8)
    result = fitted.memberships
    judged = fit_mixture(data, result, noise=noise, settling=3, max_iter=1)

    assert_allclose(judged.memberships, result, atol=1e-3)
    assert judged.log_likelihood == pytest.approx(fitted.log_likelihood, rel=1e-3)

    second = fitted.in_order(np.array([2, 0, 1]), HOST)

    assert_array_equal(second.memberships[:, 0], fitted.memberships[:, 2])
    assert_array_equal(second.center_sums.sums[:, 0], fitted.center_sums.sums[:, 2])
