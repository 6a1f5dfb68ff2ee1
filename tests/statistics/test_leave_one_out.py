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
        is_kept = np.arange(len(X)) != i
        centers = weights[is_kept].T @ X[is_kept]
        length = np.linalg.norm(centers, axis=1) * np.linalg.norm(X[i])
        cosines[i] = centers @ X[i] / length
    return cosines


def test_leave_one_out_agrees_with_leaving_out(kind):
    X, _ = make_ihgmm(40, 30, 3, separation=4.0, random_state=0)
    weights = np.random.default_rng(0).random((40, 3))
    projections, directions = leave_one_out(as_matrix(kind(X)), weights)

    assert_allclose(projections.cosines, naive(X, weights), atol=1e-10)
    assert_allclose(directions.sums, X.T @ weights, atol=1e-10)

    is_kept = np.arange(40) != 7
    centers = weights[is_kept].T @ X[is_kept]

    assert_allclose(projections.center_sqnorms[7], (centers**2).sum(axis=1))
    assert_allclose(projections.loads[7], (weights[is_kept] ** 2).sum(axis=0))


def test_accuracy_is_the_squared_cosine_with_the_true_centre():
    errors = []
    for seed in range(20):
        sample = make_ihgmm(
            60, 500, 2, separation=8.0, scale_ratio=2, noise_levels=1.0,
            random_state=seed, return_params=True,
        )  # fmt: skip
        X = as_matrix(sample.X)
        weights = indicators(X, sample.labels, 2) * sample.scales[:, None]
        _, directions = leave_one_out(X, weights)
        projections = project_rows(X, X.sqnorms, directions)
        cosines = np.einsum("jk,kj->k", directions.sums, sample.centers)
        cosines /= np.sqrt(directions.sqnorms) * np.linalg.norm(sample.centers, axis=1)
        errors.append(projections.accuracy(np.ones(2))[0] - cosines**2)

    assert abs(np.mean(errors)) < 0.01


def test_likelihood_with_known_noise_integrates_the_length():
    # Two features, the centre along the first: the density is integrated numerically.
    x = np.array([1.3, 0.4])
    sigma = 0.7
    cosine = np.array([[x[0] / np.linalg.norm(x)]])
    # The centre is exact, and of length one.
    projections = Projections(
        cosines=cosine,
        center_sqnorms=np.ones((1, 1)),
        loads=np.zeros((1, 1)),
        sqnorms=np.array([x @ x]),
        n_features=2,
    )
    shares = np.array([0.5])
    values = joint_log_likelihood(projections, shares, np.array([sigma**2]))
    lengths = np.linspace(0, 20, 20_001)
    density = norm.pdf(x[0], lengths, sigma) * norm.pdf(x[1], 0, sigma)

    assert_allclose(values[0, 0], np.log(0.5 * trapezoid(density, lengths)), atol=1e-6)


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
        labelings = (start, refined.labels, soft, label_oracle(sample))
        rates.append([misclassification_rate(sample.labels, z) for z in labelings])
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

    refined = refine_labels(X, np.zeros(60, dtype), 1)

    assert not refined.labels.any()
    assert refined.n_iter == 0
    assert refined.converged


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
    start_memberships = indicators(data, start, 5)
    mixture = fit_mixture(data, start_memberships, max_iter=3, say=messages.append)

    assert mixture.change > 1e-4
    assert mixture.n_iter == len(messages) == 3
    assert messages[0].startswith("round 1, memberships moved by 0.")


@pytest.mark.parametrize("noise", ["individual", "class", "common"])
def test_a_settled_mixture_is_what_its_memberships_make(noise):
    options = {"separation_constant": 0.3, "noise_structure": noise}
    X, labels = make_ihgmm(150, 40, 3, random_state=0, **options)
    data = as_matrix(X)
    start = indicators(data, labels, 3)
    mixture = fit_mixture(data, start, noise=noise, tol=1e-8)
    memberships = mixture.memberships
    next_mixture = fit_mixture(data, memberships, noise=noise, settling=3, max_iter=1)

    assert_allclose(next_mixture.memberships, memberships, atol=1e-3)
    assert_allclose(next_mixture.log_likelihood, mixture.log_likelihood, rtol=1e-3)

    reordered = mixture.in_order(np.array([2, 0, 1]), HOST)

    assert_array_equal(reordered.memberships[:, 0], mixture.memberships[:, 2])
    assert_array_equal(reordered.center_sums.sums[:, 0], mixture.center_sums.sums[:, 2])
