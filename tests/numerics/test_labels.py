import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ortho_group
from sklearn.datasets import make_circles
from sklearn.metrics import pairwise_distances_argmin
from sklearn.mixture import GaussianMixture

from ihgmm.matrix import HOST, ops_of, to_host
from ihgmm.metrics import exact_recovery, misclassification_rate
from ihgmm.numerics.kmeans import kmeans_runs
from ihgmm.numerics.labels import (
    ASSIGNMENTS,
    LinearRule,
    NeighborRule,
    cluster_qr,
    kmeans_labels,
    learn_rule,
    nearest_center,
    neighbor_graph,
    shared_covariance,
)


def generator(seed=0):
    return np.random.default_rng(seed)


def noisy_simplex(n, k, noise, seed, sizes=None):
    """Rows near k orthogonal unit vectors: the embedding of the paper's Lemma 1."""
    rng = generator(seed)
    labels = rng.choice(k, n, p=sizes)
    labels[:k] = np.arange(k)
    corners = ortho_group.rvs(k, random_state=seed) if k > 1 else np.eye(1)
    rows = corners[labels] + noise * rng.standard_normal((n, k))
    return HOST.unit_rows(rows), labels


def ellipses(n, seed, gap=5.0):
    """Three clusters that share a long and thin covariance."""
    rng = generator(seed)
    labels = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    noise = rng.standard_normal((n, 3)) * [4.0, 1.0, 1.0]
    centers = gap * np.array([[0.0, 0, 0], [1, 1, 0], [0, 1, 1]])
    return (centers[labels] + noise) @ ortho_group.rvs(3, random_state=seed), labels


@pytest.mark.parametrize("method", ASSIGNMENTS)
@pytest.mark.parametrize(
    ("n", "k", "seed"), [(60, 1, 0), (60, 3, 1), (500, 8, 2), (9000, 5, 0)]
)
def test_separated_rows_are_recovered(method, n, k, seed):
    rows, labels = noisy_simplex(n, k, 0.1, seed)
    rule, _ = learn_rule(HOST, rows, k, method, rng=generator(seed))
    found = rule(HOST, rows)
    assert exact_recovery(labels, found)
    assert found.dtype == np.intp


@pytest.mark.parametrize("method", ["tied", "kmeans"])
@pytest.mark.parametrize("seed", range(3))
def test_small_cluster_among_many_rows(method, seed):
    # 0.5% of 20,000 rows, found from a sample of them.
    rows, labels = noisy_simplex(20_000, 4, 0.1, seed, [0.4, 0.4, 0.195, 0.005])
    rule, _ = learn_rule(HOST, rows, 4, method, rng=generator(seed))
    assert exact_recovery(labels, rule(HOST, rows))


def test_rows_beyond_the_fit_are_assigned_to_the_nearest_centre():
    rows, labels = noisy_simplex(20_000, 4, 0.1, 0)
    found = kmeans_labels(HOST, rows.astype(np.float32), 4, rng=generator())
    assert exact_recovery(labels, found)


def test_restarts_find_a_better_optimum():
    # Three tight pairs on a circle: a single start often merges two of them.
    angles = np.repeat([0.0, 0.3, 2.0, 2.3, 4.0, 4.3], 50)
    angles = angles + 0.02 * generator().standard_normal(300)
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    truth = np.repeat(np.arange(6), 50)
    for method in ("tied", "kmeans"):
        for seed in range(10):
            rule, _ = learn_rule(HOST, rows, 6, method, rng=generator(seed))
            assert exact_recovery(truth, rule(HOST, rows))


def test_runs_that_end_in_one_place_are_given_once():
    rows, _ = noisy_simplex(300, 4, 0.1, 0)
    assert len(kmeans_runs(HOST, [rows], 4, rng=generator())[0]) == 1
    rows = generator().standard_normal((300, 4))
    (runs,) = kmeans_runs(HOST, [rows], 6, n_init=20, rng=generator())
    inertias = [run.inertia for run in runs]
    assert len(runs) > 1
    assert (np.diff(inertias) > 0).all()


@pytest.mark.parametrize("method", ASSIGNMENTS)
def test_same_seed_same_labels(method):
    rows, _ = noisy_simplex(600, 6, 0.4, 0)
    one, two = (
        learn_rule(HOST, rows, 6, method, rng=generator(3))[0] for _ in range(2)
    )
    assert_array_equal(one(HOST, rows), two(HOST, rows))


# Rules


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_nearest_centre_is_a_linear_rule(dtype):
    rng = generator()
    rows = rng.standard_normal((5_000, 4)).astype(dtype)
    centers = rng.standard_normal((7, 4))
    rule = nearest_center(centers)
    assert_array_equal(rule(HOST, rows), pairwise_distances_argmin(rows, centers))
    assert rule.scores(HOST, rows).dtype == dtype
    squares = ((rows[:, None] - centers) ** 2).sum(axis=2)
    shift = (rows.astype(float) ** 2).sum(axis=1, keepdims=True) / 2
    assert_allclose(rule.scores(HOST, rows), shift - squares / 2, atol=1e-4)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
@pytest.mark.parametrize("method", ASSIGNMENTS)
def test_rules_take_arrays_of_other_libraries(library, method):
    xp = pytest.importorskip(library, reason=f"{library} is not installed")
    rows, _ = noisy_simplex(400, 3, 0.4, 0)
    rule, _ = learn_rule(HOST, rows, 3, method, rng=generator())
    data = xp.asarray(rows)
    found = rule(ops_of(data), data)
    assert type(found) is type(data)
    assert_array_equal(to_host(found), rule(HOST, rows))


@pytest.mark.parametrize("method", ASSIGNMENTS)
def test_clusters_in_another_order(method):
    rows, _ = noisy_simplex(500, 4, 0.6, 0)
    rule, _ = learn_rule(HOST, rows, 4, method, rng=generator())
    order = np.array([2, 0, 3, 1])
    rank = np.argsort(order)
    assert_array_equal(rule.in_order(order)(HOST, rows), rank[rule(HOST, rows)])


def test_the_nearest_decides_where_votes_are_equal():
    known = np.array([[0.0], [1.0], [2.0], [3.0]])
    for labels in ([0, 0, 1, 1], [1, 1, 0, 0]):
        rule = NeighborRule(known, np.array(labels), 4)
        assert_array_equal(rule(HOST, np.array([[0.9], [2.2]])), [labels[0], labels[3]])


def test_cluster_qr_keeps_the_sign():
    # Opposite rows are different kinds, not one.
    rows = np.array([[1.0, 0.0], [0.9, 0.1], [-0.6, 0.1], [0.0, 1.0], [0.1, 0.9]])
    labels = cluster_qr(HOST, rows, 2)(HOST, rows)
    assert labels[0] == labels[1]
    assert labels[3] == labels[4] != labels[0]
    assert labels[2] != labels[0]


def test_neighbours_find_clusters_of_any_shape():
    for seed in range(5):
        rows, labels = make_circles(600, noise=0.04, factor=0.4, random_state=seed)
        rule = neighbor_graph(rows, 2, rng=generator(seed))
        assert exact_recovery(labels, rule(HOST, rows))
        few = neighbor_graph(rows, 2, max_rows=400, rng=generator(seed))
        assert len(few.rows) == 400
        assert exact_recovery(labels, few(HOST, rows))


@pytest.mark.parametrize("n", [2, 3, 8])
def test_neighbours_among_few_rows(n):
    rows = np.vstack([np.eye(2)[:1]] * (n - 1) + [np.eye(2)[1:]])
    labels = neighbor_graph(rows, 2, rng=generator())(HOST, rows)
    assert labels.shape == (n,)
    assert set(labels) <= {0, 1}


# Gaussian clusters of one covariance


@pytest.mark.parametrize("seed", range(5))
def test_a_shared_covariance_is_that_of_scikit_learn(seed):
    rows, labels = ellipses(600, seed)
    found = shared_covariance(HOST, [rows], 3, pull=0.0, rng=generator(seed))
    ours = found.rule(HOST, rows)
    means = np.array([rows[ours == j].mean(axis=0) for j in range(3)])
    peer = GaussianMixture(
        3,
        covariance_type="tied",
        tol=1e-8,
        max_iter=2000,
        means_init=means,
        random_state=0,
    ).fit(rows)
    # The gain is over one Gaussian, whose likelihood is that of its covariance.
    _, volume = np.linalg.slogdet(2 * np.pi * np.e * np.cov(rows.T, bias=True))
    assert found.gains[0] - volume / 2 == pytest.approx(peer.score(rows), abs=2e-3)
    assert misclassification_rate(peer.predict(rows), ours) <= 0.01
    assert misclassification_rate(labels, ours) < 0.05
    # Scores are log-likelihoods, up to a term for each row.
    scores = found.rule.scores(HOST, rows)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    order = [np.bincount(peer.predict(rows)[ours == j]).argmax() for j in range(3)]
    assert np.abs(shares - peer.predict_proba(rows)[:, order]).mean() < 0.01


def test_long_clusters_are_not_cut_across():
    for seed in range(5):
        rows, labels = ellipses(500, seed)
        tied, kmeans = (
            learn_rule(HOST, rows, 3, method, rng=generator(seed))[0](HOST, rows)
            for method in ("tied", "kmeans")
        )
        assert misclassification_rate(labels, tied) < 0.04
        assert misclassification_rate(labels, kmeans) > 0.12


def test_pulled_all_the_way_clusters_are_spheres():
    rows, _ = ellipses(400, 0, gap=20.0)
    rule = shared_covariance(HOST, [rows], 3, pull=1.0, rng=generator()).rule
    labels = rule(HOST, rows)
    means = np.array([rows[labels == j].mean(axis=0) for j in range(3)])
    # Coefficients are centres over one variance.
    variance = np.sum(means**2) / np.sum(rule.coefficients.T * means)
    assert_allclose(rule.coefficients.T * variance, means, atol=0.05)


def test_the_space_that_shows_clusters_is_chosen():
    for seed in range(8):
        rng = generator(seed)
        clear, labels = ellipses(300, seed, gap=8.0)
        noise = 50 * rng.standard_normal((300, 5))
        for spaces, wanted in (((clear, noise), 0), ((noise, clear), 1)):
            found = shared_covariance(HOST, spaces, 3, rng=generator(seed))
            assert found.space == wanted
            assert found.gains[wanted] == max(found.gains)
            assert (
                misclassification_rate(labels, found.rule(HOST, spaces[wanted])) < 0.02
            )


def test_no_linear_map_of_a_space_changes_its_gain():
    for seed in range(5):
        rows, _ = ellipses(400, seed, gap=8.0)
        other = rows @ generator(seed).standard_normal((3, 3))
        found = shared_covariance(HOST, [rows, other], 3, pull=0.0, rng=generator(seed))
        assert found.gains[0] == pytest.approx(found.gains[1], abs=5e-3)


def test_starts_of_all_spaces_are_tried_in_all():
    # In the second space a long direction says nothing, and k-means cuts across it.
    better = 0
    for seed in range(12):
        good, labels = noisy_simplex(300, 3, 0.1, seed)
        long = np.column_stack([good, generator(seed).standard_normal(300)])
        alone = shared_covariance(HOST, [long], 3, rng=generator(seed))
        found = shared_covariance(HOST, [good, long], 3, rng=generator(seed))
        assert found.space == 0
        assert exact_recovery(labels, found.rule(HOST, good))
        assert found.gains[1] > 0.8
        better += found.gains[1] > alone.gains[0] + 0.5
    assert better >= 4


def test_many_rows_go_on_from_a_trial():
    rows, labels = ellipses(9_000, 0, gap=8.0)
    whole = shared_covariance(HOST, [rows], 3, max_trial=9_000, rng=generator())
    part = shared_covariance(HOST, [rows], 3, max_trial=1_000, rng=generator())
    assert part.gains[0] == pytest.approx(whole.gains[0], abs=1e-3)
    assert misclassification_rate(labels, part.rule(HOST, rows)) < 0.01


@pytest.mark.parametrize("rows", [np.zeros((6, 2)), np.eye(2)[[0, 1, 0, 1, 0, 0]]])
def test_fewer_places_than_clusters(rows):
    # Clusters vanish in every run, and k-means has the last word.
    found = shared_covariance(HOST, [rows], 3, rng=generator())
    labels = found.rule(HOST, rows)
    assert set(labels) <= {0, 1, 2}
    same = (rows[:, None] == rows).all(axis=2)
    assert_array_equal(labels[:, None] == labels, same)


def test_as_many_clusters_as_rows():
    rows = generator().standard_normal((5, 3))
    rule = shared_covariance(HOST, [rows], 5, rng=generator()).rule
    assert sorted(rule(HOST, rows)) == [0, 1, 2, 3, 4]


def test_rules_are_frozen():
    rule = LinearRule(np.eye(2), np.zeros(2))
    with pytest.raises(AttributeError):
        rule.intercepts = np.ones(2)
