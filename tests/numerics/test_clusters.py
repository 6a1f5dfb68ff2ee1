"""Clusters of few rows on the host, and the search for roots."""

import numpy as np
import pytest
from ihgmm.numerics.clusters import lloyd, merged_start, mixture, pivots
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import qr
from scipy.stats import ortho_group
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from ihgmm.matrix import HOST
from ihgmm.metrics import exact_recovery, misclassification_rate
from ihgmm.numerics.roots import falling_root


def rows_of(seed, n=300, m=5, k=4, noise=1.5):
    rng = np.random.default_rng(seed)
    centers = 3 * rng.standard_normal((k, m))
    return centers[rng.integers(k, size=n)] + noise * rng.standard_normal((n, m))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_lloyd_by_distance_is_that_of_scikit_learn(seed, weighted):
    rows, rng = rows_of(seed), np.random.default_rng(seed)
    weights = rng.gamma(2.0, size=len(rows)) if weighted else np.ones(len(rows))
    start = rows[rng.permutation(300)[:4]]
    found = lloyd(rows, start, weights, by_angle=False)
    wanted = KMeans(4, init=start, n_init=1, tol=0, algorithm="lloyd")
    wanted.fit(rows, sample_weight=weights)
    assert misclassification_rate(found.labels, wanted.labels_) < 0.01
    inertia = weights @ np.square(rows).sum(axis=1) - 2 * found.score
    assert inertia == pytest.approx(wanted.inertia_, rel=1e-4)


@pytest.mark.parametrize("signed", [False, True])
def test_lloyd_by_angle_only_gains(signed):
    rng = np.random.default_rng(0)
    rows, weights = HOST.unit_rows(rows_of(0)), rng.gamma(2.0, size=300)
    start = rows[rng.permutation(300)[:4]]
    scores = [
        lloyd(rows, start, weights, signed=signed, max_iter=i).score for i in range(12)
    ]
    assert (np.diff(scores) >= -1e-9).all()
    run = lloyd(rows, start, weights, signed=signed)
    products = rows @ run.centers.T
    products = np.abs(products) if signed else products
    assert_array_equal(run.labels, products.argmax(axis=1))
    assert run.score == pytest.approx(weights @ products.max(axis=1))
    assert_allclose(np.linalg.norm(run.centers, axis=1), 1)


def test_opposite_rows_are_one_where_signs_say_nothing():
    rng = np.random.default_rng(1)
    rows = HOST.unit_rows(rows_of(1))
    flips = rng.choice([-1.0, 1.0], 300)
    one, other = (
        lloyd(part, rows[:4], np.ones(300), signed=True)
        for part in (rows, rows * flips[:, None])
    )
    assert_array_equal(one.labels, other.labels)
    merged = [
        merged_start(part, 4, np.ones(300), signed=True)
        for part in (rows, rows * flips[:, None])
    ]
    assert_allclose(np.abs(merged[0]), np.abs(merged[1]))


def test_a_centre_that_lost_its_rows_goes_to_the_row_that_fits_worst():
    rows = np.array([[0.0, 0], [0.1, 0], [0, 0.1], [10, 0], [10, 0.1]])
    start = np.array([[0.0, 0], [0, 0], [100, 100]])  # twice the same, and one too far
    run = lloyd(rows, start, np.ones(5), by_angle=False)
    assert len(np.unique(run.labels)) == 3
    # Where all rows sit on centres, others have none, and that is no error.
    run = lloyd(np.zeros((4, 2)), np.zeros((3, 2)), np.ones(4), by_angle=False)
    assert run.score == 0


def test_noisy_rows_have_no_centre_of_their_own():
    """By distance a centre near the origin takes them; by angle none can be there."""
    rng = np.random.default_rng(0)
    labels = rng.integers(30, size=3000)
    lengths = rng.uniform(0, 3, (3000, 1))
    rows = lengths * np.eye(30)[labels] + 0.3 * rng.standard_normal((3000, 30))
    rows = HOST.unit_rows(rows)
    run = lloyd(rows, np.eye(30), np.ones(3000))
    oracle = misclassification_rate(labels, rows.argmax(axis=1))
    assert misclassification_rate(labels, run.labels) < oracle + 0.01


@pytest.mark.parametrize("seed", range(5))
def test_pivots_are_those_of_a_decomposition(seed):
    rows = rows_of(seed, n=80, m=6)
    _, _, order = qr(rows.T, pivoting=True, mode="economic")
    assert_array_equal(pivots(rows, 5), order[:5])
    # Of unit rows the first comes first; beyond the rank nothing goes wrong.
    found = pivots(HOST.unit_rows(rows), 9)
    assert found[0] == 0
    assert len(np.unique(found[:6])) == 6


@pytest.mark.parametrize("k", [2, 5, 12])
def test_merged_small_clusters_are_a_start(k):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        labels = np.r_[np.arange(k), rng.integers(k, size=400)]
        corners = ortho_group.rvs(max(k, 2), random_state=seed)[:k]
        noise = 0.15 * rng.standard_normal((len(labels), max(k, 2)))
        rows = HOST.unit_rows(corners[labels] + noise)
        start = merged_start(rows, k, np.ones(len(rows)), signed=False)
        run = lloyd(rows, start, np.ones(len(rows)))
        assert exact_recovery(labels, run.labels)
    assert merged_start(rows[: 3 * k], k, np.ones(3 * k), signed=False) is None


# Gaussian clusters of one covariance


def ellipses(n, seed, gap=5.0):
    """Three clusters that share a long and thin covariance."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    noise = rng.standard_normal((n, 3)) * [4.0, 1.0, 1.0]
    centers = gap * np.array([[0.0, 0, 0], [1, 1, 0], [0, 1, 1]])
    return (centers[labels] + noise) @ ortho_group.rvs(3, random_state=seed), labels


@pytest.mark.parametrize("seed", range(5))
def test_a_mixture_is_that_of_scikit_learn(seed):
    rows, labels = ellipses(600, seed)
    found = mixture(rows, [np.eye(3)[:, labels]], np.ones(600), pulls=[0.0])
    scores = rows @ found.coefficients + found.intercepts
    means = np.array([rows[labels == j].mean(axis=0) for j in range(3)])
    peer = GaussianMixture(
        3, covariance_type="tied", tol=1e-8, max_iter=2000, means_init=means
    ).fit(rows)
    # One Gaussian has the likelihood of its covariance.
    _, volume = np.linalg.slogdet(2 * np.pi * np.e * np.cov(rows.T, bias=True))
    assert found.gain - volume / 2 == pytest.approx(peer.score(rows), abs=2e-3)
    assert (peer.predict(rows) != scores.argmax(axis=1)).mean() <= 0.01
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    assert np.abs(shares - peer.predict_proba(rows)).mean() < 0.01


def test_pulled_all_the_way_clusters_are_spheres():
    rows, labels = ellipses(400, 0, gap=20.0)
    found = mixture(rows, [np.eye(3)[:, labels]], np.ones(400), pulls=[1.0])
    means = np.array([rows[labels == j].mean(axis=0) for j in range(3)])
    # Coefficients are centres over one variance.
    variance = np.sum(means**2) / np.sum(found.coefficients.T * means)
    assert_allclose(found.coefficients.T * variance, means, atol=0.05)


def test_a_mixture_goes_on_from_another():
    rows, labels = ellipses(500, 1)
    ones = np.ones(500)
    rough = mixture(rows, [np.eye(3)[:, labels]], ones, max_iter=2)
    whole = mixture(rows, [np.eye(3)[:, labels]], ones)
    onward = mixture(rows, [rough.members(rows, signed=False)], ones)
    assert onward.gain == pytest.approx(whole.gain, abs=1e-2)
    assert onward.gain >= rough.gain - 1e-2


@pytest.mark.parametrize("signed", [False, True])
def test_of_several_runs_the_best_is_returned(signed):
    for seed in range(5):
        rows, labels = ellipses(300, seed)
        others = np.random.default_rng(seed).integers(3, size=300)
        starts = [np.eye(3)[:, kinds] for kinds in (others, labels)]
        options = {"signed": signed, "max_iter": 20}
        single = [
            mixture(rows, [start], np.ones(300), pulls=[pull], **options)
            for start in starts
            for pull in (0.2, 1.0)
        ]
        # From chance, clusters may vanish.
        best = max(filter(None, single), key=lambda run: run.worth)
        found = mixture(rows, starts, np.ones(300), pulls=[0.2, 1.0], **options)
        assert_allclose(found.coefficients, best.coefficients, rtol=1e-6, atol=1e-9)
        assert found.worth == pytest.approx(best.worth)
        assert (found.pull, found.n_iter) == (best.pull, best.n_iter)
        # A bar that none reaches leaves none.
        bar = best.worth + 1
        assert mixture(rows, starts, np.ones(300), bar=bar, **options) is None


def test_no_linear_map_changes_the_gain_over_one_gaussian():
    for seed in range(5):
        rows, labels = ellipses(400, seed)
        gains = []
        for turn in (np.eye(3), np.random.default_rng(seed).standard_normal((3, 3))):
            start = np.eye(3)[:, labels]
            gains.append(mixture(rows @ turn, [start], np.ones(400), pulls=[0.0]).gain)
        assert gains[0] == pytest.approx(gains[1], abs=1e-3)


def test_a_signed_mixture_is_one_of_twice_as_many_clusters():
    """A step of it is a step on rows and their opposites, from mirrored clusters."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((60, 3))
    rows -= rows.mean(axis=0)  # or one Gaussian would differ
    start = np.eye(2)[rng.integers(0, 2, 60)] * rng.choice([-1, 1], (60, 1))
    found = mixture(rows, [start.T], np.ones(60), signed=True, max_iter=3)
    both = np.concatenate([rows, -rows])
    ahead, back = np.maximum(start, 0), np.maximum(-start, 0)
    members = np.block([[ahead, back], [back, ahead]])
    mirrored = mixture(both, [members.T], np.ones(120), max_iter=3)
    assert_allclose(
        mirrored.coefficients,
        np.hstack([found.coefficients, -found.coefficients]),
        atol=1e-10,
    )
    # Each end has half of the cluster's rows.
    assert_allclose(mirrored.intercepts, np.tile(found.intercepts - np.log(2), 2))
    assert_allclose(mirrored.gain, found.gain)


def test_falling_roots():
    powers = np.array([0.5, 1.0, 3.0, 9.0])
    calls = []

    def function(x):
        calls.append(x)
        return 0.3 - x**powers

    found = falling_root(function, np.zeros(4), np.ones(4))
    assert_allclose(found, 0.3 ** (1 / powers), rtol=1e-12)
    assert len(calls) < 30
    # Positive at both ends: the upper one.
    assert_allclose(falling_root(lambda x: 2 - x, np.zeros(1), np.ones(1)), 1.0)
